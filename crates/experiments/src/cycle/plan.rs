//! Plans: what the decoder reads. A plan is the task and the next calls of skills, with every library entry unfolded and every
//! target as an exact position.
//!
//! The library and its grid are for writing programs. To execute a call, a robot needs to know where it ends, whether the
//! program says so by a position, by a distance from the previous target or inside a library entry. All arms with programs
//! therefore have the same decoder inputs, and differ in how their programs are written.

use language::{Signature, TermId, TermStore, Token, evaluate, term_of};
use models::vocabulary::{BoundVocabulary, Piece};
use skills::{Position, SkillAlphabet, SkillCall};

use crate::error::{Error, Result};

/// Makes plans of programs.
pub(crate) struct Planner<'a> {
    /// Terms are made in a copy of it.
    pub(crate) store: &'a TermStore,
    /// The primitives, the skills and the library.
    pub(crate) signature: &'a Signature,
    /// The pieces of programs.
    pub(crate) bound: &'a BoundVocabulary,
    /// The skills.
    pub(crate) alphabet: &'a SkillAlphabet,
}

impl Planner<'_> {
    /// The plan of an emitted program, of which `position` is where it begins. A motion that is no row of skills is left out.
    pub(crate) fn of_pieces(&self, emitted: &[Piece], position: &Position) -> Result<Vec<Piece>> {
        let mut programs = self.bound.decode(emitted).into_iter();
        let mut store = self.store.clone();
        let task = self.term(&mut store, programs.next())?;
        let motion = self.term(&mut store, programs.next())?;
        let trace = evaluate(&mut store, self.signature, motion).unwrap_or_default();
        let calls = self.alphabet.calls_of_trace(&store, &trace).unwrap_or_default();
        self.encoded(&mut store, task, &anchored(self.alphabet, &calls, position)?)
    }

    /// The plan of some calls that belong to no task.
    pub(crate) fn of_calls(&self, calls: &[SkillCall], position: &Position) -> Result<Vec<Piece>> {
        let mut store = self.store.clone();
        let nothing = nothing(&mut store)?;
        self.encoded(&mut store, nothing, &anchored(self.alphabet, calls, position)?)
    }

    fn encoded(&self, store: &mut TermStore, task: TermId, calls: &[SkillCall]) -> Result<Vec<Piece>> {
        let motion = self.alphabet.program(store, calls)?;
        Ok(self.bound.encode(store, &[task, motion]).pieces)
    }

    fn term(&self, store: &mut TermStore, tokens: Option<Vec<Token>>) -> Result<TermId> {
        match tokens.and_then(|tokens| term_of(store, &tokens).ok()) {
            Some(term) => Ok(term),
            None => nothing(store),
        }
    }
}

/// Calls with every target as a position, off the grid.
pub(crate) fn anchored(
    alphabet: &SkillAlphabet,
    calls: &[SkillCall],
    position: &Position,
) -> Result<Vec<SkillCall>> {
    let exact = alphabet.without_grid();
    let mut position = position.clone();
    let mut anchored = Vec::with_capacity(calls.len());
    for call in calls {
        anchored.push(exact.anchored(call, &position)?);
        exact.advance(&mut position, call)?;
    }
    Ok(anchored)
}

/// A program that does nothing.
pub(crate) fn nothing(store: &mut TermStore) -> Result<TermId> {
    store.seq(&[]).map_err(|error| Error::Mismatch(format!("internal error: an empty program: {error}")))
}
