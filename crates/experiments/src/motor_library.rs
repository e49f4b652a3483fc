//! The motor library (SPEC §7, §11): the paper's cell, which stays empty, beside skills by behaviour.
//!
//! **Strict.** Training episodes are cut into windows of 16 steps that do not overlap, each a run-length program over 17
//! symbols, anti-unified token by token, as they are and warped to the medoids of their clusters ([`skills::strict_sweep`]).
//! The paper warps within clusters of its kernel; here they are KMeans on the standardised action windows, one for each
//! task, so that the cell needs no model.
//!
//! **Skills.** Episodes are cut at change points, segments that turn out alike under D_φ are one token, and the motions of
//! the training demonstrations are refactored through all three gates, as the loop does it
//! ([`crate::cycle::refactoring::grown`]), but without their tasks: what is admitted here was earned by motions alone.
//! Beside it the same with classes by KMeans on the segments' actions themselves. The gates are the same in both, D_φ and
//! the verifier included, so that only the tokens differ.

use std::sync::atomic::AtomicBool;

use candle_core::Device;
use clustering::{KMeansConfig, Points, kmeans};
use compression::LibraryEntry;
use dataset::{FRAGMENT_LENGTH, FragmentIndex};
use models::FragmentTable;
use models::noise::mix;
use serde::{Deserialize, Serialize};
use skills::{PhaseScores, ReplayScores, StrictConfig, StrictRun, motions_in, strict_sweep};

use crate::amortizer_phase::Teacher;
use crate::cycle::Event;
use crate::cycle::classes::Classes;
use crate::cycle::corpus::{Corpus, Subject};
use crate::cycle::demonstrations::{Demonstrations, rows};
use crate::cycle::gates::{Gates, Judgement, RecordedCalls};
use crate::cycle::refactoring::{Grown, grown};
use crate::cycle::segment_kernel::SegmentKernel;
use crate::cycle::settings::CycleSettings;
use crate::cycle::skill_scores::{replay, skill_phases};
use crate::cycle::summary::Refactored;
use crate::error::Result;
use crate::prepared::Prepared;

/// How the experiment is run.
pub struct MotorOptions<'a> {
    /// How episodes are cut, classed, written, refactored and judged.
    pub cycle: &'a CycleSettings,
    /// Of clusters and rollouts.
    pub seed: u64,
    /// Where the world model runs.
    pub device: &'a Device,
    /// Set by someone else to end it early.
    pub stop: Option<&'a AtomicBool>,
    /// Called with the progress.
    pub observer: &'a mut dyn FnMut(Event<'_>),
}

/// Where the classes of segments come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tokens {
    /// KMeans under D_φ.
    Behaviour,
    /// KMeans on the segments' own actions: no world model.
    Actions,
}

/// The paper's cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrictReport {
    /// Windows of training episodes.
    pub fragments: usize,
    /// Steps of each.
    pub length: usize,
    /// Clusters of windows within which they are warped: KMeans on standardised actions.
    pub clusters: usize,
    /// Without warping and with it.
    pub runs: Vec<StrictRun>,
}

/// An entry of a library of skills.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MotorEntry {
    /// The entry.
    pub entry: LibraryEntry,
    /// How many motions its body names; two or more tell an abstraction from an abbreviation.
    pub motions: usize,
    /// What the gates measured when it was admitted.
    pub judgement: Option<Judgement>,
}

/// A library of skills, and what it is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillLibrary {
    /// Where classes come from.
    pub tokens: Tokens,
    /// Skills: classes, told apart by the gripper's command.
    pub skills: usize,
    /// Held-out segments against phases.
    pub phases: Option<PhaseScores>,
    /// Held-out programs against what was recorded.
    pub replay: ReplayScores,
    /// What was admitted and not pruned.
    pub entries: Vec<MotorEntry>,
    /// How many of them name two motions or more.
    pub of_several_motions: usize,
    /// Motions of training demonstrations that call the library, and those of held-out ones.
    pub rewritten: (usize, usize),
    /// Every candidate with its figures, and the library.
    pub refactored: Refactored,
}

/// The experiment on one dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MotorReport {
    /// The dataset's name.
    pub dataset: String,
    /// The hash of the world model's weights.
    pub world_model: String,
    /// Training demonstrations and held-out ones.
    pub demonstrations: (usize, usize),
    /// Segments of both.
    pub segments: (usize, usize),
    /// The paper's cell.
    pub strict: StrictReport,
    /// Skills by behaviour, then by actions.
    pub skills: Vec<SkillLibrary>,
}

/// Runs the experiment. `None` if the user interrupted it.
///
/// # Errors
/// On a world model of other features, or one that has learned from what is held out.
pub fn motor_library(prepared: &Prepared, teacher: &Teacher, options: MotorOptions<'_>) -> Result<Option<MotorReport>> {
    let MotorOptions { cycle, seed, device, stop, observer } = options;
    let loaded = &teacher.loaded;
    loaded.check(prepared)?;
    observer(Event::Stage { name: "strict tokens", done: false });
    let strict = strict(prepared, cycle, seed)?;

    observer(Event::Stage { name: "segments and their classes", done: false });
    let (precision, discount) = (loaded.parameters.precision(), loaded.record.model.discount);
    let table = prepared.table(loaded.record.scales.clone(), device, precision, discount)?;
    let demonstrations = Demonstrations::new(prepared, &cycle.segments)?;
    let of_classes = mix(seed, b"classes");
    // The reference, whatever `classes.kernel` says: the experiment is about tokens, and has a world model alone.
    let kernel = SegmentKernel::MonteCarlo;
    let behaviour = Classes::new(prepared, &demonstrations, teacher, &table, &cycle.classes, &kernel, of_classes)?;
    let bench = Bench { prepared, teacher, table, demonstrations, cycle, seed, stop };
    let mut skills = Vec::new();
    let Some(found) = bench.library(Tokens::Behaviour, &behaviour, observer)? else { return Ok(None) };
    skills.push(found);
    let actions = behaviour.by_actions(&bench.demonstrations, &cycle.classes, of_classes)?;
    let Some(found) = bench.library(Tokens::Actions, &actions, observer)? else { return Ok(None) };
    skills.push(found);

    let demonstrations = &bench.demonstrations;
    let sides = (demonstrations.which(false), demonstrations.which(true));
    Ok(Some(MotorReport {
        dataset: prepared.source.name.clone(),
        world_model: teacher.hash.clone(),
        demonstrations: (sides.0.len(), sides.1.len()),
        segments: (demonstrations.segments_of(&sides.0).len(), demonstrations.segments_of(&sides.1).len()),
        strict,
        skills,
    }))
}

/// The paper's cell over windows that do not overlap: each recorded step is counted once.
fn strict(prepared: &Prepared, cycle: &CycleSettings, seed: u64) -> Result<StrictReport> {
    let dataset = &prepared.source.dataset;
    let index = FragmentIndex::new(dataset.spans(), &prepared.split.train, FRAGMENT_LENGTH, FRAGMENT_LENGTH)?;
    let fragments: Vec<Points<'_>> =
        index.iter().map(|(_, fragment)| rows(dataset, &fragment.frames)).collect::<Result<_>>()?;
    let mut values: Vec<f32> = fragments.iter().flat_map(|rows| rows.values()).copied().collect();
    prepared.scales.actions.apply(&mut values);
    let clusters = prepared.held_out.clusters.clamp(1, fragments.len().max(1));
    let width = FRAGMENT_LENGTH * dataset.columns().actions.width;
    let found = kmeans(Points::new(&values, width)?, &KMeansConfig { clusters, seed, ..Default::default() })?;
    let (threads, max_steps) = (rayon::current_num_threads(), Some(cycle.refactor.max_steps));
    let config = StrictConfig { threads, max_steps, ..StrictConfig::default() };
    let runs = strict_sweep(&fragments, Some(&found.labels), &config)?;
    Ok(StrictReport { fragments: fragments.len(), length: FRAGMENT_LENGTH, clusters, runs })
}

/// What libraries of different tokens have in common.
struct Bench<'a> {
    prepared: &'a Prepared,
    teacher: &'a Teacher,
    table: FragmentTable,
    demonstrations: Demonstrations,
    cycle: &'a CycleSettings,
    seed: u64,
    stop: Option<&'a AtomicBool>,
}

impl Bench<'_> {
    /// A library of the training motions, written in classes.
    fn library(
        &self,
        tokens: Tokens,
        classes: &Classes,
        observer: &mut dyn FnMut(Event<'_>),
    ) -> Result<Option<SkillLibrary>> {
        let name = match tokens {
            Tokens::Behaviour => "library of skills by behaviour",
            Tokens::Actions => "library of skills by actions",
        };
        observer(Event::Stage { name, done: false });
        let Bench { prepared, demonstrations, cycle, .. } = self;
        let corpus = Corpus::new(demonstrations, classes, &cycle.alphabet)?;
        let training = demonstrations.which(false);
        let subjects: Vec<Subject> = training.iter().map(|at| Subject::Motion(*at)).collect();
        let (training, subjects, corpus) = (&training, &subjects, &corpus);
        let calls = RecordedCalls { prepared, demonstrations, training, subjects, classes, corpus };
        let scene = calls.scene(&self.table, &self.teacher.loaded.model, &cycle.gates);
        let gates = Gates::new(scene, &cycle.gates, cycle.refactor.max_judged, mix(self.seed, b"verifier"));
        let mut judged = |candidate: &_, judgement: &_| observer(Event::Judged { candidate, judgement });
        let refactored = grown(&calls, &gates, None, cycle, 1, self.stop, &mut judged)?;
        let Some(Grown { summary: refactored, .. }) = refactored else { return Ok(None) };

        let compiled = corpus.compiled(&refactored.library, cycle.refactor.strategy)?;
        let written = &compiled.programs;
        let count = demonstrations.all.len();
        let calling = |held_out: bool| {
            demonstrations.which(held_out).into_iter().filter(|at| compiled.rewritten[count + at]).count()
        };
        let entries: Vec<MotorEntry> = refactored
            .library
            .entries()
            .iter()
            .map(|entry| MotorEntry {
                motions: motions_in(written.store(), written.signature(), &entry.name),
                judgement: (refactored.candidates.iter())
                    .find(|candidate| candidate.judgement.admitted && candidate.name == entry.name)
                    .map(|candidate| candidate.judgement.clone()),
                entry: entry.clone(),
            })
            .collect();
        Ok(Some(SkillLibrary {
            tokens,
            skills: corpus.alphabet.skills.len(),
            phases: skill_phases(prepared, demonstrations, corpus)?,
            replay: replay(demonstrations, corpus)?,
            of_several_motions: entries.iter().filter(|entry| entry.motions > 1).count(),
            entries,
            rewritten: (calling(false), calling(true)),
            refactored,
        }))
    }
}
