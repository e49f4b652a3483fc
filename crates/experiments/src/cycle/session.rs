//! What all phases of a run share: its directory, its options, its events and its trainings.
//!
//! Every phase works the same way under one process and under several (`torchrun`, Slurm): all processes train and prepare the
//! same data, the first one computes and stores the results of stages.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use candle_core::Device;
use models::noise::mix;
use models::training::checkpoint::MODEL;
use models::training::distributed::Transport;
use models::training::{Outcome, Progress};
use serde_json::{Value, json};

use super::gates::Judgement;
use super::segment_kernel::SegmentKernel;
use super::settings::RunSettings;
use super::wake::Head;
use crate::amortizer_phase::{Teacher, train_amortizer};
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::run_dir::{RunDir, read_json, write_json};
use crate::settings::{AmortizerSettings, WorldModelSettings};
use crate::trained::{Launch, Phase, load_amortizer};
use crate::world_model_phase::train_world_model;

/// How a run is made.
pub struct RunOptions<'a> {
    /// Its directory.
    pub out: &'a Path,
    /// Whether to resume the run that is there.
    pub resume: bool,
    /// The name or path of the preset, for the record.
    pub preset: &'a str,
    /// The random seed; every purpose derives a seed from it.
    pub seed: u64,
    /// Where it runs.
    pub device: &'a Device,
    /// The way to the other processes of the run.
    pub transport: Arc<dyn Transport>,
    /// Set by someone else to end it early.
    pub stop: Option<&'a AtomicBool>,
    /// Called with the progress of the run.
    pub observer: &'a mut dyn FnMut(Event<'_>),
    /// The device in words, for the report.
    pub runs_on: String,
    /// The command that makes the run again, for the report.
    pub command: String,
    /// Parts that the program itself does not have.
    pub extensions: Extensions<'a>,
}

/// Heads that a run trains in addition to those of the program.
#[derive(Default)]
pub struct Extensions<'a> {
    /// Trained after the program's own, in this order.
    pub heads: Vec<&'a dyn Head>,
}

impl RunOptions<'_> {
    /// The seed for a purpose.
    pub(super) fn seed_for(&self, purpose: &[u8]) -> u64 {
        mix(self.seed, purpose)
    }
}

/// Progress of a run.
pub enum Event<'a> {
    /// A stage begins; `done` says that its result is stored already.
    Stage {
        /// Its name, such as `t1 emitter`.
        name: &'a str,
        /// Whether there is nothing to do.
        done: bool,
    },
    /// A training has advanced.
    Training(&'a Progress),
    /// A candidate was judged.
    Judged {
        /// Its name and body.
        candidate: &'a compression::Candidate,
        /// What the gates measured and decided.
        judgement: &'a Judgement,
    },
}

/// How long a run has taken. A resumed run takes another time than an unbroken one: this file, the time in `report.json`
/// and `report.html`, and the rates in `metrics.jsonl` differ between the two. Everything else is equal.
const TIME: &str = "time.json";

/// A run that is being made.
pub(super) struct Session<'a, 'o> {
    pub(super) prepared: &'a Prepared,
    pub(super) options: RunOptions<'o>,
    pub(super) run: RunDir,
    started: Instant,
    /// Seconds of earlier starts.
    before: f64,
}

impl<'a, 'o> Session<'a, 'o> {
    /// Opens the directory. `settings` are the settings of the phases to come, by section.
    pub(super) fn open(prepared: &'a Prepared, options: RunOptions<'o>, settings: &Value) -> Result<Session<'a, 'o>> {
        let config = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "preset": options.preset,
            "seed": options.seed,
            "source": prepared.source.record(),
            "split": prepared.split,
            "settings": settings,
        });
        let run = RunDir::open(options.out, options.resume, &config, options.transport.clone())?;
        let time = read_json::<Value>(&run.path(TIME)).ok();
        let before = time.and_then(|time| time["seconds"].as_f64()).unwrap_or(0.0);
        Ok(Session { prepared, options, run, started: Instant::now(), before })
    }

    /// Announces a stage, unless the user has interrupted the run.
    pub(super) fn announce(&mut self, name: &str, done: bool) -> Result<()> {
        // All processes stop together, whichever of them was interrupted first.
        let stopped = self.options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        let answers = self.options.transport.exchange(&[f64::from(u8::from(stopped))])?;
        if answers.iter().flatten().any(|answer| *answer > 0.0) {
            return Err(Error::Interrupted);
        }
        if self.run.is_first() {
            (self.options.observer)(Event::Stage { name, done });
            write_json(&self.run.path(TIME), &json!({ "seconds": self.seconds() }))?;
        }
        Ok(())
    }

    /// The wall-clock time that the run has taken, earlier starts up to their last stage included.
    pub(super) fn seconds(&self) -> f64 {
        self.before + self.started.elapsed().as_secs_f64()
    }

    /// Trains in a directory of the run, from the newest checkpoint if there is one, on all processes.
    pub(super) fn training<T>(
        &mut self,
        folder: &str,
        purpose: &[u8],
        train: impl FnOnce(Launch<'_>) -> Result<T>,
    ) -> Result<T> {
        let (path, seed) = (self.run.path(folder), self.options.seed_for(purpose));
        let observer = &mut *self.options.observer;
        let trained = train(Launch {
            run: &path,
            resume: true,
            preset: self.options.preset,
            seed,
            device: self.options.device,
            transport: self.options.transport.clone(),
            progress: &mut |progress| observer(Event::Training(progress)),
            stop: self.options.stop,
        })?;
        // The first process writes the model; nobody reads it before it is there.
        self.run.wait()?;
        Ok(trained)
    }

    /// Phase A, or its stored result.
    pub(super) fn world_model(&mut self, settings: &WorldModelSettings) -> Result<Teacher> {
        let (prepared, folder) = (self.prepared, Phase::WorldModel.name());
        if self.needs_training("world model", folder)? {
            self.training(folder, b"world model", |launch| finished(train_world_model(prepared, settings, launch)?))?;
        }
        Teacher::load(&self.run.path(folder), self.options.device)
    }

    /// Phase C, or its stored result, in the directory `amortizer` of the run.
    pub(super) fn amortizer(&mut self, settings: &AmortizerSettings, teacher: Option<&Teacher>) -> Result<()> {
        let (prepared, folder) = (self.prepared, Phase::Amortizer.name());
        if self.needs_training("amortizer", folder)? {
            self.training(folder, b"amortizer", |launch| {
                finished(train_amortizer(prepared, settings, teacher, launch)?)
            })?;
        } else if let Some(teacher) = teacher {
            teacher.check_student(&load_amortizer(&self.run.path(folder), self.options.device)?.record)?;
        }
        Ok(())
    }

    /// The form of D_φ that segments are compared by, trained once: its teacher does not change between iterations.
    pub(super) fn kernel(&mut self, settings: &RunSettings, teacher: &Teacher) -> Result<SegmentKernel> {
        let (prepared, form) = (self.prepared, settings.cycle.classes.kernel);
        let Some(folder) = SegmentKernel::folder(form) else { return Ok(SegmentKernel::MonteCarlo) };
        if self.needs_training(&format!("{} kernel", form.name()), folder)? {
            self.training(folder, b"amortizer", |launch| {
                SegmentKernel::train(prepared, form, &settings.amortizer, teacher, launch)?.map_or(Ok(()), finished)
            })?;
        }
        SegmentKernel::load(form, &self.run.path(folder), self.options.device)
    }

    /// Announces a training; whether it has yet to be done. That the settings of a finished one are the same was checked
    /// when the directory was opened.
    fn needs_training(&mut self, name: &str, folder: &str) -> Result<bool> {
        let model = self.run.path(folder).join(MODEL);
        let done = self.run.agreed(|| model.is_file())?;
        self.announce(name, done)?;
        Ok(!done)
    }
}

fn finished(outcome: Outcome) -> Result<()> {
    match outcome {
        Outcome::Finished(_) => Ok(()),
        Outcome::Stopped(_) => Err(Error::Interrupted),
    }
}
