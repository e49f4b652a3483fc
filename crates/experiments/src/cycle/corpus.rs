//! Programs of demonstrations: what was asked for, by the instruction, and what was done, by the motion.
//!
//! Every demonstration has two programs, and one library serves both. The *task* comes from the instruction by the grammar
//! of `language`, as far as that understands it; a sentence of which it understands nothing becomes `instructed "the
//! sentence"`, so that no demonstration is lost.
//! The *motion* is the row of skills that its segments are, each with where it ends: `seq[skill_3 pose[…], …]`.
//!
//! **What is done at a frame.** The policy learns, for each frame, a program that covers the next H segments (setting
//! `horizon_segments`), with a library and without one: the horizon is counted in segments, never in parts of a program, so
//! that both arms know equally much of what comes. The first segment is the one that the frame lies in. Its call says where it
//! ends, as a position and never as a distance from a start that is over, so **it is the same program at every frame of a
//! segment**; only the base of a robot that does not know where it is has a distance left to go.

use std::collections::{BTreeMap, BTreeSet};

use compression::{Compiled, Library, Programs, Strategy, compile};
use language::{Signature, TermId, TermStore, TypeId, evaluate, instruction};
use skills::{AlphabetConfig, Argument, Position, SkillAlphabet, SkillCall, Written as Calls};

use super::classes::Classes;
use super::demonstrations::Demonstrations;
use super::plan::nothing;
use crate::error::{Error, Result};

/// The primitive for sentences that the grammar does not know.
pub(crate) const INSTRUCTED: (&str, &str, &str) = ("instructed", "Lang -> Motion", "do what the sentence says");

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
    /// For each demonstration the same calls with targets as exact positions, off the grid.
    pub exact: Vec<Vec<SkillCall>>,
    /// For each demonstration the position before each of its calls, on the grid.
    pub positions: Vec<Vec<Position>>,
    /// For each demonstration and each of its frames the segment that is under way there.
    pub under_way: Vec<Vec<UnderWay>>,
    /// Instructions that the grammar does not know or knows in part, and why.
    pub unknown: Vec<String>,
}

/// The segment that a frame lies in.
#[derive(Clone, Debug, PartialEq)]
pub struct UnderWay {
    /// Its place in the demonstration.
    pub segment: usize,
    /// Its call as it is from the frame on.
    pub rest: SkillCall,
}

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
    pub fn new(demonstrations: &Demonstrations, classes: &Classes, config: &AlphabetConfig) -> Result<Corpus> {
        let labels: Vec<Vec<i64>> = (0..demonstrations.all.len()).map(|at| classes.labels_of(at)).collect();
        Corpus::with_labels(demonstrations, &labels, config)
    }

    /// Writes the programs of all demonstrations, given the class of each segment of each of them.
    pub fn with_labels(
        demonstrations: &Demonstrations,
        labels: &[Vec<i64>],
        config: &AlphabetConfig,
    ) -> Result<Corpus> {
        let mut store = TermStore::new();
        let mut base = primitives(demonstrations, &mut store);
        let (name, scheme, meaning) = INSTRUCTED;
        base.declare(&mut store, name, scheme, meaning).map_err(|error| unexpected(&error))?;
        let alphabet = alphabet(demonstrations, labels, config)?;
        alphabet.declare(&mut store, &mut base)?;

        let (mut tasks, mut unknown, mut written, mut exact) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let off_grid = alphabet.without_grid();
        for (at, demonstration) in demonstrations.all.iter().enumerate() {
            let mut note = |said: String| {
                if !unknown.contains(&said) {
                    unknown.push(said);
                }
            };
            tasks.push(match instruction::understand(&demonstration.instruction, &mut store, &base) {
                Ok(found) => {
                    if !found.missing.is_empty() {
                        let missing = found.missing.join("`, `");
                        note(format!("`{}`: read without `{missing}`", demonstration.instruction));
                    }
                    found.term
                }
                Err(error) => {
                    note(format!("`{}`: {error}", demonstration.instruction));
                    let sentence = store.text(&demonstration.instruction);
                    store.call(name, &[sentence]).map_err(|error| unexpected(&error))?
                }
            });
            let (episode, own) = (&demonstrations.episodes[at], demonstrations.rows_of(at));
            exact.push(off_grid.encode(episode, &own, &labels[at])?);
            written.push(Calls { start: alphabet.start(episode), calls: alphabet.encode(episode, &own, &labels[at])? });
        }
        if config.by {
            alphabet.shorten(&mut written, &demonstrations.which(false))?;
        }
        let (mut motions, mut calls, mut positions, mut under_way) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (at, Calls { start, calls: own }) in written.into_iter().enumerate() {
            motions.push(alphabet.program(&mut store, &own)?);
            let before = positions_before(&alphabet, start, &own)?;
            under_way.push(rests(&alphabet, demonstrations, at, &own, &before)?);
            positions.push(before);
            calls.push(own);
        }
        let task_steps = tasks.iter().map(|task| steps_of(&mut store, &base, *task)).collect::<Result<_>>()?;
        Ok(Corpus { store, base, alphabet, tasks, task_steps, motions, calls, exact, positions, under_way, unknown })
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

    /// Some of the programs, as terms without calls of the library that they are bound with.
    pub fn bound(&self, library: &Library, subjects: &[Subject]) -> Result<Programs> {
        Ok(Programs::new(&self.store, &self.base, library, self.programs(subjects))?)
    }

    /// All demonstrations' programs with a library, first all tasks, then all motions: the grammatical compiler.
    pub fn compiled(&self, library: &Library, strategy: Strategy) -> Result<Compiled> {
        let all: Vec<usize> = (0..self.tasks.len()).collect();
        Ok(compile(&self.bound(library, &Corpus::subjects(&all))?, strategy)?)
    }

    /// What the policy learns at each frame: the task, and what is done over the next `horizon` segments, compiled as a whole
    /// with the library of `compiled` ([`Corpus::compiled`]).
    pub fn written(&self, compiled: &Compiled, strategy: Strategy, horizon: usize) -> Result<Written> {
        let mut store = compiled.programs.store().clone();
        let mut places: BTreeMap<TermId, usize> = BTreeMap::new();
        let mut distinct = Vec::new();
        let mut at_frames: Vec<Vec<usize>> = Vec::with_capacity(self.calls.len());
        for (at, (calls, under_way)) in self.calls.iter().zip(&self.under_way).enumerate() {
            let mut own = Vec::with_capacity(under_way.len());
            for UnderWay { segment, rest } in under_way {
                let end = segment.saturating_add(horizon.max(1)).min(calls.len());
                let stretch = self.stretch(at, rest, segment + 1..end)?;
                let term = self.alphabet.program(&mut store, &stretch)?;
                own.push(*places.entry(term).or_insert_with(|| {
                    distinct.push(term);
                    distinct.len() - 1
                }));
            }
            at_frames.push(own);
        }
        let stretches = compiled.programs.with_terms(store, distinct)?;
        let (store, signature, terms) = compile(&stretches, strategy)?.programs.into_parts();
        let now = at_frames.iter().map(|own| own.iter().map(|place| terms[*place]).collect()).collect();
        // The first store extends that of the compiled programs, and so does this one.
        let tasks = compiled.programs.terms()[..self.tasks.len()].to_vec();
        let mut store = store;
        let plans = (0..self.calls.len()).map(|at| self.plans(&mut store, at, horizon)).collect::<Result<_>>()?;
        Ok(Written { store, signature, tasks, now, plans })
    }
}

impl Corpus {
    /// What the decoder reads at each frame of a demonstration.
    fn plans(&self, store: &mut TermStore, at: usize, horizon: usize) -> Result<Vec<PlanTerms>> {
        let mut plans: Vec<PlanTerms> = Vec::with_capacity(self.under_way[at].len());
        let mut last: Option<(&UnderWay, PlanTerms)> = None;
        for under_way in &self.under_way[at] {
            let UnderWay { segment, rest } = under_way;
            let plan = match last {
                Some((before, plan)) if before == under_way => plan,
                _ => {
                    let end = segment.saturating_add(horizon.max(1)).min(self.calls[at].len());
                    let mut on_grid = vec![rest.clone()];
                    for place in segment + 1..end {
                        on_grid.push(self.alphabet.anchored(&self.calls[at][place], &self.positions[at][place])?);
                    }
                    // A group without a measured position has a distance left, which depends on the frame.
                    let own = |(exact, on_grid): (&SkillCall, &SkillCall)| {
                        let arguments = exact.arguments.iter().zip(&on_grid.arguments);
                        let kept = |(exact, on_grid): (&Argument, &Argument)| match on_grid {
                            Argument::By(_) => on_grid.clone(),
                            Argument::To(_) => exact.clone(),
                        };
                        SkillCall { skill: exact.skill, arguments: arguments.map(kept).collect() }
                    };
                    let exact: Vec<SkillCall> = self.exact[at][*segment..end].iter().zip(&on_grid).map(own).collect();
                    let on_grid = self.alphabet.program(store, &on_grid)?;
                    PlanTerms { on_grid, exact: self.alphabet.program(store, &exact)? }
                }
            };
            last = Some((under_way, plan));
            plans.push(plan);
        }
        Ok(plans)
    }

    /// What is left of a call, then some later calls of a demonstration. Where one of these is the first in the program to move
    /// a group, it has a position: what a distance would be counted from is not in the program.
    fn stretch(&self, at: usize, rest: &SkillCall, later: std::ops::Range<usize>) -> Result<Vec<SkillCall>> {
        let groups = |call: &SkillCall| self.alphabet.skills[call.skill.0].arguments.clone();
        let mut mentioned: BTreeSet<usize> = groups(rest).into_iter().collect();
        let mut stretch = vec![rest.clone()];
        for place in later {
            let call = &self.calls[at][place];
            let own = groups(call);
            let is_known = own.iter().all(|group| mentioned.contains(group));
            stretch.push(match is_known {
                true => call.clone(),
                false => self.alphabet.anchored(call, &self.positions[at][place])?,
            });
            mentioned.extend(own);
        }
        Ok(stretch)
    }

    /// Instead of programs, the instruction of each demonstration as one token, and nothing about motions.
    pub fn instructions_alone(&self, demonstrations: &Demonstrations) -> Result<Written> {
        let mut store = self.store.clone();
        let nothing = nothing(&mut store)?;
        let (mut tasks, mut now, mut plans) = (Vec::new(), Vec::new(), Vec::new());
        for demonstration in &demonstrations.all {
            let sentence = store.text(&demonstration.instruction);
            tasks.push(store.call(INSTRUCTED.0, &[sentence]).map_err(|error| unexpected(&error))?);
            now.push(vec![nothing; demonstration.frames.len()]);
            plans.push(vec![PlanTerms { on_grid: nothing, exact: nothing }; demonstration.frames.len()]);
        }
        Ok(Written { store, signature: self.base.clone(), tasks, now, plans })
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
    /// For each demonstration and each of its frames what is done from there on, over the next segments of the horizon.
    pub now: Vec<Vec<TermId>>,
    /// For each demonstration and each of its frames what the decoder reads: the same segments without the library, with
    /// positions as targets.
    pub plans: Vec<Vec<PlanTerms>>,
}

/// A motion with positions as targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanTerms {
    /// On the grid.
    pub on_grid: TermId,
    /// As it was.
    pub exact: TermId,
}

/// The standard primitives, and the general ones if an instruction needs them: a primitive that no program uses would only
/// make the names of all others longer.
pub(crate) fn primitives(demonstrations: &Demonstrations, store: &mut TermStore) -> Signature {
    let mut base = Signature::standard(store);
    let is_general = |text: &str| instruction::partial(text).is_ok_and(|found| found.plan.is_general());
    if demonstrations.all.iter().any(|demonstration| is_general(&demonstration.instruction)) {
        base.declare_general(store);
    }
    base
}

/// The position before each call.
fn positions_before(alphabet: &SkillAlphabet, start: Position, calls: &[SkillCall]) -> Result<Vec<Position>> {
    let mut position = start;
    let mut before = Vec::with_capacity(calls.len());
    for call in calls {
        before.push(position.clone());
        alphabet.advance(&mut position, call)?;
    }
    Ok(before)
}

/// For each frame of an episode its segment, and that segment's call as it is from the frame on.
fn rests(
    alphabet: &SkillAlphabet,
    demonstrations: &Demonstrations,
    at: usize,
    calls: &[SkillCall],
    before: &[Position],
) -> Result<Vec<UnderWay>> {
    let episode = &demonstrations.episodes[at];
    let mut found = Vec::with_capacity(episode.len());
    for (segment, (rows, call)) in demonstrations.rows_of(at).iter().zip(calls).enumerate() {
        let whole = alphabet.anchored(call, &before[segment])?;
        for row in rows.clone() {
            found.push(UnderWay { segment, rest: alphabet.rest(&whole, episode, rows, row)? });
        }
    }
    Ok(found)
}

fn steps_of(store: &mut TermStore, signature: &Signature, term: TermId) -> Result<usize> {
    Ok(evaluate(store, signature, term).map_err(|error| unexpected(&error))?.len())
}

/// Skills from the segments of the training demonstrations.
fn alphabet(demonstrations: &Demonstrations, labels: &[Vec<i64>], config: &AlphabetConfig) -> Result<SkillAlphabet> {
    let (mut segments, mut own) = (Vec::new(), Vec::new());
    for at in demonstrations.which(false) {
        for (rows, label) in demonstrations.rows_of(at).iter().zip(&labels[at]) {
            segments.push(demonstrations.episodes[at].motion(rows)?);
            own.push(*label);
        }
    }
    Ok(SkillAlphabet::fit(&segments, &own, demonstrations.layout.clone(), config)?)
}

fn unexpected(error: &dyn std::fmt::Display) -> Error {
    Error::Mismatch(format!("internal error: a generated program does not type-check: {error}"))
}

/// The type of all programs.
pub const GOAL: TypeId = TypeId::MOTION;
