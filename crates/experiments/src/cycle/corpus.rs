//! Programs of demonstrations: what was asked for, by the instruction, and what was done, by the motion.
//!
//! Every demonstration has two programs, and one library serves both. The *task* comes from the instruction by the grammar
//! of `language`; a sentence that it does not know becomes `instructed "the sentence"`, so that no demonstration is lost.
//! The *motion* is the row of skills that its segments are, `seq[skill_3 twist[…] 12, …]`.

use std::ops::Range;

use compression::{Compiled, Library, Strategy, compile};
use language::{Signature, Term, TermId, TermStore, TypeId, evaluate, parse};
use skills::{AlphabetConfig, SkillAlphabet, SkillCall, rows_of};

use super::classes::Classes;
use super::demonstrations::{Demonstrations, rows};
use crate::error::{Error, Result};
use crate::prepared::Prepared;

/// The primitive for sentences that the grammar does not know.
const INSTRUCTED: (&str, &str, &str) = ("instructed", "Lang -> Motion", "do what the sentence says");

/// The programs of all demonstrations, without a library.
pub struct Corpus {
    /// Where terms live.
    pub store: TermStore,
    /// The primitives and the skills.
    pub base: Signature,
    /// The skills.
    pub alphabet: SkillAlphabet,
    /// For each demonstration its task.
    pub tasks: Vec<TermId>,
    /// How many steps each task has.
    pub task_steps: Vec<usize>,
    /// For each demonstration its motion.
    pub motions: Vec<TermId>,
    /// For each demonstration the calls of its motion, one for each segment.
    pub calls: Vec<Vec<SkillCall>>,
    /// Instructions that the grammar does not know, and why.
    pub unknown: Vec<String>,
}

/// How many parts of the motion that is left the emitter writes and the decoder reads.
const PARTS: usize = 2;

/// What a program is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// What a demonstration was asked for.
    Task(usize),
    /// What was done in it.
    Motion(usize),
}

impl Corpus {
    /// Writes the programs of all demonstrations.
    pub fn new(
        prepared: &Prepared,
        demonstrations: &Demonstrations,
        classes: &Classes,
        config: &AlphabetConfig,
    ) -> Result<Corpus> {
        let dataset = &prepared.source.dataset;
        let mut store = TermStore::new();
        let mut base = Signature::standard(&mut store);
        let (name, scheme, meaning) = INSTRUCTED;
        base.declare(&mut store, name, scheme, meaning).map_err(|error| unexpected(&error))?;
        let alphabet = alphabet(prepared, demonstrations, classes, config)?;
        alphabet.declare(&mut store, &mut base)?;

        let (mut tasks, mut motions, mut calls, mut unknown) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (at, demonstration) in demonstrations.all.iter().enumerate() {
            tasks.push(match language::instruction::program(&demonstration.instruction, &mut store, &base) {
                Ok(term) => term,
                Err(error) => {
                    let said = format!("`{}`: {error}", demonstration.instruction);
                    if !unknown.contains(&said) {
                        unknown.push(said);
                    }
                    let sentence = store.text(&demonstration.instruction);
                    store.call(name, &[sentence]).map_err(|error| unexpected(&error))?
                }
            });
            let episode = rows(dataset, &demonstration.frames)?;
            let own: Vec<Range<usize>> = demonstration
                .segments
                .iter()
                .map(|one| one.start - demonstration.frames.start..one.end - demonstration.frames.start)
                .collect();
            let labels = known(&alphabet, episode, &own, &classes.labels_of(at))?;
            let found = alphabet.encode(episode, &own, &labels)?;
            motions.push(alphabet.program(&mut store, &found)?);
            calls.push(found);
        }
        let task_steps = tasks.iter().map(|task| steps_of(&mut store, &base, *task)).collect::<Result<_>>()?;
        Ok(Corpus { store, base, alphabet, tasks, task_steps, motions, calls, unknown })
    }

    /// What there are programs about in some demonstrations: first all tasks, then all motions.
    pub fn subjects(demonstrations: &[usize]) -> Vec<Subject> {
        let tasks = demonstrations.iter().map(|at| Subject::Task(*at));
        tasks.chain(demonstrations.iter().map(|at| Subject::Motion(*at))).collect()
    }

    /// The program about each subject.
    pub fn programs(&self, subjects: &[Subject]) -> Vec<TermId> {
        let of = |subject: &Subject| match *subject {
            Subject::Task(at) => self.tasks[at],
            Subject::Motion(at) => self.motions[at],
        };
        subjects.iter().map(of).collect()
    }

    /// All demonstrations' programs with a library: the grammatical compiler.
    pub fn compiled(&self, library: &Library, strategy: Strategy) -> Result<(Written, Compiled)> {
        let all: Vec<usize> = (0..self.tasks.len()).collect();
        let compiled = compile(&self.store, &self.base, library, &self.programs(&Corpus::subjects(&all)), strategy)?;
        let mut store = self.store.clone();
        let mut rests = Vec::new();
        for calls in &self.calls {
            for from in 0..calls.len() {
                rests.push(self.alphabet.program(&mut store, &calls[from..])?);
            }
        }
        let rests = compile(&store, &self.base, library, &rests, strategy)?;
        let signature = library.define(&mut store, &self.base)?;
        let tasks = compiled.programs[..self.tasks.len()].iter().map(|text| parsed(&mut store, &signature, text));
        let tasks = tasks.collect::<Result<_>>()?;
        let mut rests = rests.programs.iter();
        let mut now = Vec::with_capacity(self.calls.len());
        for calls in &self.calls {
            let own = rests.by_ref().take(calls.len()).map(|text| {
                let rest = parsed(&mut store, &signature, text)?;
                first_parts(&mut store, &signature, rest)
            });
            now.push(own.collect::<Result<_>>()?);
        }
        Ok((Written { store, signature, tasks, now }, compiled))
    }
}

impl Corpus {
    /// Instead of programs, the instruction of each demonstration as one token, and nothing about motions.
    pub fn instructions_alone(&self, demonstrations: &Demonstrations) -> Result<Written> {
        let mut store = self.store.clone();
        let nothing = store.seq(&[]).map_err(|error| unexpected(&error))?;
        let (mut tasks, mut now) = (Vec::new(), Vec::new());
        for demonstration in &demonstrations.all {
            let sentence = store.text(&demonstration.instruction);
            tasks.push(store.call(INSTRUCTED.0, &[sentence]).map_err(|error| unexpected(&error))?);
            now.push(vec![nothing; demonstration.segments.len()]);
        }
        Ok(Written { store, signature: self.base.clone(), tasks, now })
    }
}

/// Programs written with a library.
pub struct Written {
    /// Where terms live.
    pub store: TermStore,
    /// The primitives, the skills and the library.
    pub signature: Signature,
    /// For each demonstration its task.
    pub tasks: Vec<TermId>,
    /// For each demonstration and each of its segments what is done from there on: the first [`PARTS`] parts of the motion
    /// that is left. It is written anew for each segment, so that a program never speaks of what is over.
    pub now: Vec<Vec<TermId>>,
}

/// A program in concrete syntax as a term.
fn parsed(store: &mut TermStore, signature: &Signature, text: &str) -> Result<TermId> {
    let parsed = parse(store, signature, text);
    Ok(parsed.map_err(|error| Error::Mismatch(format!("a rewritten program does not parse: {error:?}")))?.term)
}

/// The first [`PARTS`] parts of a motion, each a skill or a library entry with its arguments.
fn first_parts(store: &mut TermStore, signature: &Signature, motion: TermId) -> Result<TermId> {
    let (mut parts, mut waiting) = (Vec::new(), vec![motion]);
    while let Some(term) = waiting.pop() {
        if parts.len() == PARTS {
            break;
        }
        if let Term::Seq(inner) = store.get(term) {
            waiting.extend(inner.iter().rev());
            continue;
        }
        let (term, rest) = without_rest(store, signature, term)?;
        waiting.extend(rest);
        parts.push(term);
    }
    store.seq(&parts).map_err(|error| unexpected(&error))
}

/// An entry that matched in the middle of a sequence takes the rest of the sequence as its last argument. Here that is cut
/// off: `fn_1 a (seq[b, c])` is `fn_1 a (seq[])` and then `seq[b, c]`, if that is the same.
fn without_rest(store: &mut TermStore, signature: &Signature, term: TermId) -> Result<(TermId, Option<TermId>)> {
    let (head, arguments) = store.spine(term);
    let entry = match store.get(head) {
        Term::Constant(name) => signature.get(*name).and_then(language::Entry::body),
        _ => None,
    };
    let (Some(_), Some((&rest, others))) = (entry, arguments.split_last()) else { return Ok((term, None)) };
    let nothing = store.seq(&[]).map_err(|error| unexpected(&error))?;
    let mut alone = head;
    for argument in others.iter().chain([&nothing]) {
        alone = store.apply(alone, *argument).map_err(|error| unexpected(&error))?;
    }
    // Where the last argument is no motion, neither has a trace.
    let (Ok(mut own), Ok(after)) = (evaluate(store, signature, alone), evaluate(store, signature, rest)) else {
        return Ok((term, None));
    };
    own.extend(after);
    let whole = evaluate(store, signature, term).map_err(|error| unexpected(&error))?;
    Ok(if rest != nothing && own == whole { (alone, Some(rest)) } else { (term, None) })
}

fn steps_of(store: &mut TermStore, signature: &Signature, term: TermId) -> Result<usize> {
    Ok(evaluate(store, signature, term).map_err(|error| unexpected(&error))?.len())
}

/// Skills from the segments of the training demonstrations.
fn alphabet(
    prepared: &Prepared,
    demonstrations: &Demonstrations,
    classes: &Classes,
    config: &AlphabetConfig,
) -> Result<SkillAlphabet> {
    let (mut segments, mut labels) = (Vec::new(), Vec::new());
    for id in demonstrations.segments_of(&demonstrations.which(false)) {
        segments.push(rows(&prepared.source.dataset, &demonstrations.frames(id))?);
        labels.extend(classes.place(id).map(|place| classes.labels[place]));
    }
    Ok(SkillAlphabet::fit(&segments, &labels, demonstrations.layout, config)?)
}

/// Labels that the alphabet knows under the segments' gripper commands: a held-out segment may combine a class and a command
/// that no training segment does, and then is the skill that its motion is nearest to.
fn known(
    alphabet: &SkillAlphabet,
    episode: clustering::Points<'_>,
    segments: &[Range<usize>],
    labels: &[i64],
) -> Result<Vec<i64>> {
    let one = |(segment, label): (&Range<usize>, &i64)| -> Result<i64> {
        let own = rows_of(episode, segment)?;
        if alphabet.skill_of(own, *label).is_ok() {
            return Ok(*label);
        }
        let nearest = alphabet.nearest(own)?;
        Ok(nearest.map_or(*label, |skill| alphabet.skills[skill.0].label))
    };
    segments.iter().zip(labels).map(one).collect()
}

fn unexpected(error: &dyn std::fmt::Display) -> Error {
    Error::Mismatch(format!("a program of our own making is refused: {error}"))
}

/// The type of all programs.
pub const GOAL: TypeId = TypeId::MOTION;
