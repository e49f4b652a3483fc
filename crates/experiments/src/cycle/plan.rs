//! Plans: what the decoder reads. A plan is the task and the next calls of skills, with every library entry unfolded and every
//! target exact.
//!
//! The library and its grid are for writing programs. To execute a call, a robot needs to know how far it still has to go,
//! whether the program says so by a position, by a distance from the previous target or inside a library entry. A plan keeps
//! targets as positions, and [`Plan::seen_from`] gives them as distances from where the robot is: a network that has to find
//! differences of two inputs by itself learns them late. All arms with programs have the same decoder inputs, and differ in
//! how their programs are written.

use language::{Signature, TermId, TermStore, Token, evaluate, term_of};
use models::vocabulary::{BoundVocabulary, Encoded, Piece, SEPARATOR};
use skills::{ActionLayout, Argument, Control, Group, Position, SkillAlphabet, SkillCall};

use crate::error::{Error, Result};

/// What is to be executed, with targets as positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// Task and motion.
    pub(crate) pieces: Vec<Piece>,
    /// For each vector of the motion where it begins among the pieces, and the group whose target it is.
    targets: Vec<(usize, usize)>,
    /// The motion as calls.
    pub(crate) calls: Vec<SkillCall>,
}

impl Plan {
    /// A plan of some calls.
    pub(crate) fn new(encoded: Encoded, alphabet: &SkillAlphabet, calls: &[SkillCall]) -> Plan {
        let groups = calls.iter().flat_map(|call| {
            let groups = alphabet.skills.get(call.skill.0).map_or(&[][..], |skill| &skill.arguments);
            let is_position = move |group: usize, argument: &Argument| {
                matches!(argument, Argument::To(_)) && is_measured(&alphabet.layout.groups[group])
            };
            groups.iter().zip(&call.arguments).map(move |(group, argument)| (*group, is_position(*group, argument)))
        });
        let motion = encoded.pieces.iter().position(|piece| piece.id == SEPARATOR).unwrap_or(encoded.pieces.len());
        let starts = (motion..encoded.pieces.len()).filter(|at| encoded.is_number[*at] && encoded.is_start[*at]);
        let targets = starts.zip(groups).filter(|(_, (_, is_position))| *is_position);
        Plan {
            targets: targets.map(|(at, (group, _))| (at, group)).collect(),
            pieces: encoded.pieces,
            calls: calls.to_vec(),
        }
    }

    /// What the decoder reads when the robot is at a position: every target that can be measured as the distance that is left.
    pub(crate) fn seen_from(&self, position: &Position) -> Vec<Piece> {
        let mut pieces = self.pieces.clone();
        for (start, group) in &self.targets {
            for (piece, now) in pieces[*start..].iter_mut().zip(position.get(*group).into_iter().flatten()) {
                piece.number -= now;
            }
        }
        pieces
    }
}

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
    /// The plan of an emitted program, of which `position` is where it begins, and whose first calls are `over`. A motion that is
    /// no row of skills is left out.
    pub(crate) fn of_pieces(&self, emitted: &[Piece], position: &Position, over: usize) -> Result<Plan> {
        let mut programs = self.bound.decode(emitted).into_iter();
        let mut store = self.store.clone();
        let task = self.term(&mut store, programs.next())?;
        let motion = self.term(&mut store, programs.next())?;
        let trace = evaluate(&mut store, self.signature, motion).unwrap_or_default();
        let calls = self.alphabet.calls_of_trace(&store, &trace).unwrap_or_default();
        let calls = anchored(self.alphabet, &calls, position)?;
        self.encoded(&mut store, task, &calls[over.min(calls.len())..])
    }

    /// The plan of some calls that belong to no task.
    pub(crate) fn of_calls(&self, calls: &[SkillCall], position: &Position) -> Result<Plan> {
        let mut store = self.store.clone();
        let nothing = nothing(&mut store)?;
        self.encoded(&mut store, nothing, &anchored(self.alphabet, calls, position)?)
    }

    fn encoded(&self, store: &mut TermStore, task: TermId, calls: &[SkillCall]) -> Result<Plan> {
        let motion = self.alphabet.program(store, calls)?;
        Ok(Plan::new(self.bound.encode(store, &[task, motion]), self.alphabet, calls))
    }

    fn term(&self, store: &mut TermStore, tokens: Option<Vec<Token>>) -> Result<TermId> {
        match tokens.and_then(|tokens| term_of(store, &tokens).ok()) {
            Some(term) => Ok(term),
            None => nothing(store),
        }
    }
}

/// Calls with every target as a position, off the grid.
pub(crate) fn anchored(alphabet: &SkillAlphabet, calls: &[SkillCall], position: &Position) -> Result<Vec<SkillCall>> {
    let exact = alphabet.without_grid();
    let mut position = position.clone();
    let mut anchored = Vec::with_capacity(calls.len());
    for call in calls {
        anchored.push(exact.anchored(call, &position)?);
        exact.advance(&mut position, call)?;
    }
    Ok(anchored)
}

/// Whether the state says where a group is that is commanded by changes. Positions of groups that are commanded by positions are
/// commands in demonstrations, and measured when a policy runs: their targets stay as they are.
pub(crate) fn is_measured(group: &Group) -> bool {
    group.control == Control::Relative && !group.states.is_empty()
}

/// The columns of states that a plan makes superfluous: it says how far every target is, which holds anywhere.
pub(crate) fn hidden_states(layout: &ActionLayout) -> Vec<usize> {
    layout.groups.iter().filter(|group| is_measured(group)).flat_map(|group| group.states.iter().copied()).collect()
}

/// A program that does nothing.
pub(crate) fn nothing(store: &mut TermStore) -> Result<TermId> {
    store.seq(&[]).map_err(|error| Error::Mismatch(format!("internal error: an empty program: {error}")))
}
