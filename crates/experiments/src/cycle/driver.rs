//! The loop (SPEC §9): world model once, then T times wake, sleep, refactor; then the policy with the last library, beside the
//! first one, which has none.
//!
//! ```text
//! RUN/config.json            how it was made, before anything else
//!     world_model/           phase A
//!     t1/emitter, decoder/   phase B on programs written with F₀   t1/wake.json
//!     t1/amortizer/          phase C                               t1/sleep.json
//!     t1/refactor.json       candidates, gates, F₁
//!     t2/ …
//!     with/                  the policy with F_T, from the same start as that of t1, which has no library
//!     skills.json, library.json, library.txt, summary.json, then report.json, report.html
//! ```
//! **Every stage is a function of the stages before it**, and is there or is not: a file appears whole, a model when its
//! training has ended. So a run that was killed anywhere is resumed by doing what is not there yet, and ends the same.
//!
//! Departure: k_χ is trained anew in each iteration, as the paper says, but M_φ, which teaches it, does not change; what
//! differs is the seed. Classes of segments come from D_φ itself, of which k_χ's cosine is a poor stand-in on our data
//! (results/kernel).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use candle_core::Device;
use clustering::{KMeansConfig, Points, kmeans};
use compression::Library;
use language::TermId;
use models::FragmentTable;
use models::emitter::{Growth, Vocabulary, WordVocabulary};
use models::noise::mix;
use models::training::checkpoint::MODEL;
use models::training::distributed::Alone;
use models::training::{Outcome, Progress};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::annotation::{ANNOTATION, RunAnnotation};
use super::classes::Classes;
use super::corpus::{Corpus, Written};
use super::demonstrations::{Demonstrations, action_layout};
use super::gates::{Figures, Gates, Scene};
use super::refactoring::grown;
use super::samples::Samples;
use super::settings::{CycleSettings, RunSettings};
use super::skill_scores::{replay, skill_phases, skill_tasks};
use super::story::{Telling, tell};
use super::summary::{Refactored, Rewriting, RunSummary, SleepScores, WakeResult};
use super::wake::{Before, DECODER, EMITTER, Policy, Wake, table};
use crate::amortizer_phase::{Teacher, train_amortizer};
use crate::embeddings::amortized;
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::run::{CONFIG, Launch, has_files, load_amortizer, read_json, write_json, write_text};
use crate::scores::agreement;
use crate::world_model_phase::train_world_model;

/// How a run is made.
pub struct RunOptions<'a> {
    /// Its directory.
    pub out: &'a Path,
    /// Whether to go on with what is there.
    pub resume: bool,
    /// The name or path of the preset, for the record.
    pub preset: &'a str,
    /// Of everything.
    pub seed: u64,
    /// Where it runs.
    pub device: &'a Device,
    /// Set by someone else to end it early.
    pub stop: Option<&'a AtomicBool>,
    /// Hears how it goes.
    pub tell: &'a mut dyn FnMut(Told<'_>),
    /// The device in words, for the report.
    pub runs_on: String,
    /// The command that makes it again, for the report.
    pub command: String,
}

/// What a run tells while it goes.
pub enum Told<'a> {
    /// A stage begins; `done` says that it was there already.
    Stage {
        /// Its name, such as `t1 wake: emitter`.
        name: &'a str,
        /// Whether there is nothing to do.
        done: bool,
    },
    /// A training goes on.
    Training(&'a Progress),
    /// A candidate was judged.
    Judged {
        /// Its name and body.
        candidate: &'a compression::Candidate,
        /// What the gates found.
        figures: &'a Figures,
    },
}

/// The summary of a finished run.
pub const SUMMARY: &str = "summary.json";

/// The directory of phase A in that of a run.
pub const WORLD_MODEL: &str = "world_model";

/// The last library of a finished run.
pub const LIBRARY: &str = "library.json";

/// The skills of a finished run, that its library calls.
pub const SKILLS: &str = "skills.json";

/// What a wake phase came to, in its folder.
pub const WAKE: &str = "wake.json";

/// How long a run has taken. What clocks measure is not the same for a run that was killed: this file, the time in
/// `report.json` and `report.html`, and the rates in `metrics.jsonl`. All else is.
const TIME: &str = "time.json";

/// Makes a run, or goes on with one. `None` if it was told to stop.
pub fn run(prepared: &Prepared, settings: &RunSettings, options: RunOptions<'_>) -> Result<Option<RunSummary>> {
    // Actions that skills cannot be made of are refused before anything is trained.
    action_layout(prepared)?;
    let mut driver = Driver::new(prepared, settings, options);
    driver.begin()?;
    unless_stopped(driver.go())
}

/// Nothing, if it was told to stop.
pub(super) fn unless_stopped<T>(went: Going<T>) -> Result<Option<T>> {
    match went {
        Err(Stopped::Told) => Ok(None),
        Err(Stopped::Failed(error)) => Err(error),
        Ok(made) => Ok(Some(made)),
    }
}

/// Why a run did not come to its end.
pub(super) enum Stopped {
    Told,
    Failed(Error),
}

impl<E: Into<Error>> From<E> for Stopped {
    fn from(error: E) -> Stopped {
        Stopped::Failed(error.into())
    }
}

pub(super) type Going<T> = std::result::Result<T, Stopped>;

pub(super) struct Driver<'a, 'o> {
    prepared: &'a Prepared,
    settings: &'a RunSettings,
    options: RunOptions<'o>,
    started: Instant,
    /// Seconds of earlier tries.
    before: f64,
}

/// What all stages after the world model look at.
pub(super) struct World {
    teacher: Teacher,
    table: FragmentTable,
    pub(super) demonstrations: Demonstrations,
    pub(super) classes: Classes,
    pub(super) corpus: Corpus,
    /// Places among demonstrations of those that are learned from.
    training: Vec<usize>,
    words: WordVocabulary,
}

impl World {
    /// Segments, classes and programs by a world model.
    pub(super) fn new(
        prepared: &Prepared,
        cycle: &CycleSettings,
        teacher: Teacher,
        options: &RunOptions<'_>,
    ) -> Result<World> {
        let (loaded, device) = (&teacher.loaded, options.device);
        let discount = loaded.record.model.discount;
        let table = prepared.table(loaded.record.scales.clone(), device, loaded.parameters.precision(), discount)?;
        let demonstrations = Demonstrations::new(prepared, &cycle.segments)?;
        let classes =
            Classes::new(prepared, &demonstrations, loaded, &table, &cycle.classes, seed(options, b"classes"))?;
        let corpus = Corpus::new(prepared, &demonstrations, &classes, &cycle.alphabet)?;
        let (training, words) = (demonstrations.which(false), Samples::words(&demonstrations));
        Ok(World { teacher, table, demonstrations, classes, corpus, training, words })
    }
}

impl<'a, 'o> Driver<'a, 'o> {
    /// A run that has taken no time yet, or what an earlier try has.
    pub(super) fn new(prepared: &'a Prepared, settings: &'a RunSettings, options: RunOptions<'o>) -> Self {
        let before = existing::<Value>(&options.out.join(TIME)).ok().flatten();
        let before = before.and_then(|time| time["seconds"].as_f64()).unwrap_or(0.0);
        Driver { prepared, settings, options, started: Instant::now(), before }
    }
}

impl Driver<'_, '_> {
    /// Writes how the run is made, or looks whether the one that is there is made the same way.
    fn begin(&self) -> Result<()> {
        let config = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "preset": self.options.preset,
            "seed": self.options.seed,
            "source": self.prepared.source.record(),
            "split": self.prepared.split,
            "settings": self.settings,
        });
        begin(self.options.out, self.options.resume, &config)
    }

    fn go(&mut self) -> Going<RunSummary> {
        let world = self.world()?;
        let mut library = Library::new();
        let (mut wake, mut sleep, mut refactored) = (Vec::new(), Vec::new(), Vec::<Refactored>::new());
        let mut vocabulary = Vocabulary::new();
        for t in 1..=self.settings.cycle.iterations {
            let folder = self.options.out.join(format!("t{t}"));
            let before = if t > 1 { Some(self.options.out.join(format!("t{}", t - 1))) } else { None };
            let names = (format!("t{t}"), folder.clone());
            wake.push(self.wake(&world, &library, &mut vocabulary, names, before.as_deref())?);
            sleep.push(self.sleep(&world, t, &folder)?);
            let found = self.refactor(&world, refactored.last(), t, &folder)?;
            library = found.library.clone();
            refactored.push(found);
        }
        let names = ("with".to_owned(), self.options.out.join("with"));
        let with_library = self.wake(&world, &library, &mut Vocabulary::new(), names, None)?;
        // F₀ is empty, so the first policy is the one without a library: same seed, same start, as many steps.
        let without_library = wake[0].clone();
        let summary = RunSummary {
            dataset: self.prepared.source.name.clone(),
            demonstrations: (world.training.len(), world.demonstrations.all.len() - world.training.len()),
            segments: world.demonstrations.segments_of(&world.training).len(),
            skills: world.corpus.alphabet.skills.len(),
            skill_tasks: skill_tasks(self.prepared, &world.demonstrations, &world.corpus)?,
            skill_phases: skill_phases(self.prepared, &world.demonstrations, &world.corpus)?,
            replay: replay(self.prepared, &world.demonstrations, &world.corpus)?,
            unknown_instructions: world.corpus.unknown.clone(),
            wake,
            sleep,
            refactor: refactored,
            with_library,
            without_library,
        };
        let out = self.options.out;
        // Whoever finds a library finds its skills, and whoever finds the summary finds both.
        write_json(&out.join(SKILLS), &world.corpus.alphabet)?;
        let annotation = RunAnnotation::of(self.prepared, &world.demonstrations, &world.corpus);
        write_json(&out.join(ANNOTATION), &annotation)?;
        write_json(&out.join(LIBRARY), &library)?;
        write_text(&out.join("library.txt"), library.to_text().as_bytes())?;
        write_json(&out.join(SUMMARY), &summary)?;
        self.stage("report", false)?;
        let telling = Telling {
            out,
            preset: self.options.preset,
            seed: self.options.seed,
            device: self.options.runs_on.clone(),
            seconds: self.seconds(),
            command: self.options.command.clone(),
        };
        let report = tell(self.prepared, self.settings, &world, &summary, &library, &telling)?;
        write_text(&out.join("report.json"), report.to_json()?.as_bytes())?;
        write_text(&out.join("report.html"), report::render(&report).as_bytes())?;
        Ok(summary)
    }

    /// Phase A, then segments, classes and programs, which are made anew each time: they cost less than they would to keep.
    fn world(&mut self) -> Going<World> {
        let folder = self.options.out.join(WORLD_MODEL);
        if self.stage("world model", folder.join(MODEL).is_file())? {
            let (prepared, settings) = (self.prepared, &self.settings.world_model);
            finished(launched(&mut self.options, &folder, b"world model", |launch| {
                train_world_model(prepared, settings, launch)
            })?)?;
        }
        self.stage("segments, classes, programs", false)?;
        let teacher = Teacher::load(&folder, self.options.device)?;
        Ok(World::new(self.prepared, &self.settings.cycle, teacher, &self.options)?)
    }

    /// Phase B with a library. The vocabulary grows by what the library and the training programs have.
    pub(super) fn wake(
        &mut self,
        world: &World,
        library: &Library,
        vocabulary: &mut Vocabulary,
        (name, folder): (String, PathBuf),
        before: Option<&Path>,
    ) -> Going<WakeResult> {
        let (mut written, compiled) = world.corpus.compiled(library, self.settings.cycle.refactor.strategy)?;
        let old = vocabulary.clone();
        vocabulary.extend_with_signature(&written.store, &written.signature);
        let programs = training_programs(world, &written);
        vocabulary.extend_with_terms(&mut written.store, &programs);
        let done: Option<WakeResult> = existing(&folder.join(WAKE))?;
        if let Some(done) = done {
            self.stage(&format!("{name} wake"), true)?;
            return Ok(done);
        }
        let (prepared, settings) = (self.prepared, &self.settings.wake);
        let data = table(prepared, self.options.device, settings)?;
        let samples = Samples::new(prepared, &world.demonstrations, &mut written, vocabulary, &world.words)?;
        let wake = Wake { prepared, table: &data, samples: &samples, vocabulary, words: &world.words, settings };
        let growth = Growth::between(&old, vocabulary, &mut written.store, &written.signature)?;
        let before = before.map(|run| Before { run, growth });
        let places = (folder.join(EMITTER), folder.join(DECODER));
        self.stage(&format!("{name} wake: emitter"), places.0.join(MODEL).is_file())?;
        let train = |launch: Launch<'_>| wake.emitter(launch, before.as_ref());
        let emitter = launched(&mut self.options, &places.0, b"emitter", train)?;
        let emitter = emitter.ok_or(Stopped::Told)?;
        self.stage(&format!("{name} wake: decoder"), places.1.join(MODEL).is_file())?;
        let train = |launch: Launch<'_>| wake.decoder(launch, before.as_ref());
        let decoder = launched(&mut self.options, &places.1, b"decoder", train)?;
        let decoder = decoder.ok_or(Stopped::Told)?;
        self.stage(&format!("{name} wake: held-out figures"), false)?;
        let scores = wake.scores(&Policy { emitter, decoder }, &mut written)?;
        let count = world.demonstrations.all.len();
        let rewritten = (0..count).filter(|at| compiled.rewritten[*at] || compiled.rewritten[count + at]).count();
        let rewriting = Rewriting {
            demonstrations: count,
            rewritten,
            entries_used: compiled.entries_used(),
            entries: library.len(),
        };
        let result = WakeResult { scores, rewriting, vocabulary: vocabulary.len() };
        write_json(&folder.join(WAKE), &result)?;
        Ok(result)
    }

    /// Phase C, and k_χ's clusters of the probe.
    fn sleep(&mut self, world: &World, t: u32, folder: &Path) -> Going<SleepScores> {
        let (run, path) = (folder.join("amortizer"), folder.join("sleep.json"));
        if self.stage(&format!("t{t} sleep: amortizer"), run.join(MODEL).is_file())? {
            let (prepared, settings) = (self.prepared, &self.settings.amortizer);
            finished(launched(&mut self.options, &run, format!("amortizer {t}").as_bytes(), |launch| {
                train_amortizer(prepared, settings, Some(&world.teacher), launch)
            })?)?;
        }
        if let Some(done) = existing(&path)? {
            return Ok(done);
        }
        let (prepared, device) = (self.prepared, self.options.device);
        let loaded = load_amortizer(&run, device)?;
        let data = prepared.table(loaded.record.scales.clone(), device, loaded.parameters.precision(), 1.0)?;
        let held_out = &prepared.held_out;
        let probe = amortized(&loaded.model, &data, &held_out.probe_starts(), held_out.index.length())?;
        let config = KMeansConfig { clusters: held_out.clusters, seed: self.options.seed, ..Default::default() };
        let found = kmeans(Points::new(&probe.values, probe.width)?, &config)?;
        let scores = SleepScores {
            task: agreement(&held_out.tasks, &found.labels)?,
            phase: held_out.phases.as_deref().map(|phases| agreement(phases, &found.labels)).transpose()?,
        };
        write_json(&path, &scores)?;
        Ok(scores)
    }

    /// F_t from F_{t−1} and the programs as that left them: candidates through the gates, then pruning.
    fn refactor(&mut self, world: &World, last: Option<&Refactored>, t: u32, folder: &Path) -> Going<Refactored> {
        let path = folder.join("refactor.json");
        let done: Option<Refactored> = existing(&path)?;
        self.stage(&format!("t{t} refactor"), done.is_some())?;
        if let Some(done) = done {
            return Ok(done);
        }
        let (prepared, cycle) = (self.prepared, &self.settings.cycle);
        let World { demonstrations, corpus, classes, training, .. } = world;
        let scene = Scene {
            prepared,
            table: &world.table,
            demonstrations,
            training,
            subjects: &Corpus::subjects(training),
            classes,
            corpus,
            model: &world.teacher.loaded.model,
        };
        let gates = Gates::new(scene, &cycle.gates, seed(&self.options, b"verifier"));
        let (stop, tell) = (self.options.stop, &mut self.options.tell);
        let mut told = |candidate: &_, figures: &_| tell(Told::Judged { candidate, figures });
        let found = grown(&gates, last, &cycle.refactor, t, stop, &mut told)?.ok_or(Stopped::Told)?;
        write_json(&path, &found)?;
        Ok(found)
    }

    /// Tells of a stage. Gives whether there is something to do.
    fn stage(&mut self, name: &str, done: bool) -> Going<bool> {
        self.unless_told()?;
        (self.options.tell)(Told::Stage { name, done });
        write_json(&self.options.out.join(TIME), &json!({ "seconds": self.seconds() }))?;
        Ok(!done)
    }

    /// The time that the run has taken, earlier tries up to their last stage counted in.
    fn seconds(&self) -> f64 {
        self.before + self.started.elapsed().as_secs_f64()
    }

    fn unless_told(&self) -> Going<()> {
        match self.options.stop {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Stopped::Told),
            _ => Ok(()),
        }
    }
}

/// Writes how a run is made, or looks whether the one that is there is made the same way.
pub(super) fn begin(out: &Path, resume: bool, config: &Value) -> Result<()> {
    if refuse_others(out, resume, config)? {
        return Ok(());
    }
    fs::create_dir_all(out).map_err(Error::file(out))?;
    write_json(&out.join(CONFIG), config)
}

/// Refuses a directory with something else in it. Gives whether the run is there.
pub(super) fn refuse_others(out: &Path, resume: bool, config: &Value) -> Result<bool> {
    let exists = |reason: &str| Error::RunExists { run: out.to_owned(), reason: reason.to_owned() };
    if out.is_file() {
        return Err(exists("is a file, wanted a directory to make"));
    }
    let path = out.join(CONFIG);
    if path.is_file() {
        if !resume {
            return Err(exists("has a run in it"));
        }
        let written: Value = read_json(&path)?;
        return match differences(&written, config, "") {
            found if found.is_empty() => Ok(true),
            found => Err(exists(&format!("has a run with other settings in it: {}", found.join(", ")))),
        };
    }
    if has_files(out) {
        return Err(exists("has other files in it"));
    }
    Ok(false)
}

/// A seed for each purpose.
fn seed(options: &RunOptions<'_>, purpose: &[u8]) -> u64 {
    mix(options.seed, purpose)
}

/// Runs a training, from its newest checkpoint if there is one.
fn launched<T>(
    options: &mut RunOptions<'_>,
    run: &Path,
    purpose: &[u8],
    with: impl FnOnce(Launch<'_>) -> Result<T>,
) -> Result<T> {
    let (seed, tell) = (seed(options, purpose), &mut *options.tell);
    with(Launch {
        run,
        resume: true,
        preset: options.preset,
        seed,
        device: options.device,
        transport: Arc::new(Alone::default()),
        progress: &mut |told| tell(Told::Training(told)),
        stop: options.stop,
    })
}

fn finished(outcome: Outcome) -> Going<()> {
    match outcome {
        Outcome::Finished(_) => Ok(()),
        Outcome::Stopped(_) => Err(Stopped::Told),
    }
}

/// What was written before, if it was.
fn existing<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if path.is_file() { read_json(path).map(Some) } else { Ok(None) }
}

/// Settings that differ, by name.
fn differences(one: &Value, other: &Value, path: &str) -> Vec<String> {
    match (one, other) {
        (Value::Object(ones), Value::Object(others)) => {
            let keys: std::collections::BTreeSet<&String> = ones.keys().chain(others.keys()).collect();
            let nothing = Value::Null;
            keys.into_iter()
                .flat_map(|key| {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    differences(ones.get(key).unwrap_or(&nothing), others.get(key).unwrap_or(&nothing), &path)
                })
                .collect()
        }
        _ if one == other => Vec::new(),
        _ => vec![format!("`{path}`")],
    }
}

/// All terms that training frames have as targets.
fn training_programs(world: &World, written: &Written) -> Vec<TermId> {
    let of = |at: &usize| std::iter::once(written.tasks[*at]).chain(written.now[*at].iter().copied());
    world.training.iter().flat_map(of).collect()
}
