//! Phase B: the heads of a policy, trained on programs, and how well they do on held-out episodes.
//!
//! | arm | programs that the heads are trained on |
//! |---|---|
//! | with library | written with the library |
//! | without library | written with primitives and skills alone, over the same number of segments |
//! | no programs | none: the decoder gets the instruction as one token |
//!
//! All arms have the same data, number of steps, model sizes and start. [`Head`] says what a head is.

mod decoder;
mod emitter;
mod head;
mod off_path;
mod samples;

use std::ops::Range;
use std::path::Path;

use candle_core::{Device, Tensor};
use dataset::FragmentIndex;
use models::FragmentTable;
use models::decoder::DecoderConfig;
use models::emitter::{BeamConfig, EmitterConfig, WordVocabulary};
use models::noise::{mix, normal};
use models::training::checkpoint::MODEL;
use models::training::{Objective, Outcome, TrainConfig, train};
use models::vocabulary::{BoundVocabulary, Growth, Piece, Vocabulary};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use skills::SkillAlphabet;

pub use self::decoder::DecoderShape;
#[cfg(test)]
pub(crate) use self::decoder::evaluated_chunk;
pub(crate) use self::decoder::noise_at;
pub use self::emitter::EmitterShape;
pub use self::head::{Head, HeldOutPrograms, Measure, TrainedHead, value_of};
pub(crate) use self::samples::without_positions;
pub use self::samples::{Part as PlanPart, Samples};
use super::corpus::Written;
use super::demonstrations::Demonstrations;
use super::plan::Planner;
use crate::error::{Error, Result};
use crate::pictures::Pictures;
use crate::prepared::Prepared;
use crate::settings::{Batch, PrecisionChoice};
use crate::trained::{Launch, Phase, Record};

/// Frames that are evaluated at once.
const CHUNK: usize = 64;

/// How the emitter is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmitterSettings {
    /// The model.
    pub model: EmitterConfig,
    /// The trainer.
    pub train: TrainConfig,
    /// Frames in a step.
    pub batch: Batch,
    /// The precision of products.
    pub precision: PrecisionChoice,
    /// States are off by this deviation in training, in deviations of the state: where the robot is must not tell by itself
    /// what comes next.
    pub state_noise: f64,
    /// The same for visual features, in their deviations. A few demonstrations differ in a few numbers each, and an emitter that
    /// remembers by these numbers which demonstration it sees does not listen to the instruction.
    pub feature_noise: f64,
    /// The share of frames whose images are hidden in training, for the same reason.
    pub hidden_images: f64,
}

impl Default for EmitterSettings {
    fn default() -> Self {
        let (model, train, batch, precision) = Default::default();
        EmitterSettings { model, train, batch, precision, state_noise: 0.02, feature_noise: 0.0, hidden_images: 0.0 }
    }
}

/// How the decoder is trained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DecoderSettings {
    /// The model.
    pub model: DecoderConfig,
    /// Whether the eye of a decoder that reads programs is open. The emitter has seen the images already and says where to go; a
    /// decoder that sees nothing else than the robot's state learns to go there and nothing more.
    pub sees_with_programs: bool,
    /// Whether a decoder that reads programs also reads the positions in states, and not only how far its targets are.
    pub reads_positions: bool,
    /// The trainer.
    pub train: TrainConfig,
    /// Frames in a step.
    pub batch: Batch,
    /// The precision of products.
    pub precision: PrecisionChoice,
    /// Noise that is added to its inputs in training.
    pub perturb: Perturbation,
}

/// How plans and states are changed while the decoder learns. A policy executes plans that it has written itself, from where its
/// own actions have led: neither is exact, and what is seen must correct it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Perturbation {
    /// Numbers of a plan are off by a deviation drawn between zero and this, as a share of the number, or of its deviation in
    /// training if that is less. Numbers are distances that are left, so the nearer the target, the more exact they are: a
    /// decoder that cannot trust the last centimetre closes the gripper too early.
    pub numbers: f64,
    /// Robots are moved beside the demonstrated path by a deviation drawn between zero and this, in steps of the grid, and learn
    /// to return to it (only with programs).
    pub off_path: f64,
    /// States are off by this deviation, in deviations of the state.
    pub states: f64,
    /// The share of frames whose plan is without its motion.
    pub no_motion: f64,
    /// The share of frames whose plan is without its task, as in programs of skills alone.
    pub no_task: f64,
}

impl Default for Perturbation {
    fn default() -> Self {
        Perturbation { numbers: 0.1, off_path: 2.0, states: 0.02, no_motion: 0.0, no_task: 0.1 }
    }
}

/// How phase B is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WakeSettings {
    /// The emitter.
    pub emitter: EmitterSettings,
    /// The decoder.
    pub decoder: DecoderSettings,
    /// Whether the heads also learn from the held-out episodes: for a policy that a simulator or a robot judges, which needs every
    /// demonstration. The figures of held-out frames are then of frames that the heads have seen, and say so.
    pub train_on_all: bool,
    /// Whether a policy that executes whole plans begins a known task with the program of the demonstration that looks most alike, its
    /// targets moved to where a still camera sees them, and asks the emitter only about other tasks and scenes.
    pub landmarks: bool,
    /// How programs are searched for when a policy is evaluated.
    pub beam: BeamConfig,
    /// Held-out frames, evenly chosen, at which token accuracy is measured.
    pub judged: usize,
    /// Held-out frames, evenly chosen, for which programs are emitted and actions decoded (paper: 256).
    pub emitted: usize,
}

impl Default for WakeSettings {
    fn default() -> Self {
        WakeSettings {
            emitter: EmitterSettings::default(),
            decoder: DecoderSettings::default(),
            train_on_all: false,
            landmarks: false,
            beam: BeamConfig::default(),
            judged: 4096,
            emitted: 256,
        }
    }
}

impl WakeSettings {
    /// Pixels on a side of the images that heads with an eye see; `None` if no head has one.
    ///
    /// # Errors
    /// If emitter and decoder want images of different sizes.
    pub fn image_side(&self) -> Result<Option<usize>> {
        let sides = [self.emitter.model.eye, self.decoder.model.eye].map(|eye| eye.map(|eye| (eye.side, eye.patch)));
        match sides {
            [Some(one), Some(other)] if one != other => Err(Error::Mismatch(
                "emitter and decoder have eyes of different `side` or `patch`; set both to the same".to_owned(),
            )),
            [one, other] => Ok(one.or(other).map(|(side, _)| side)),
        }
    }
}

/// The heads of the policy, in the order of their training. A new head is one more line here.
pub fn heads(settings: &WakeSettings) -> Vec<&dyn Head> {
    vec![&settings.emitter, &settings.decoder]
}

/// What heads are trained on: the data on the device, and frames with their programs as numbers.
pub struct WakeData<'a> {
    /// The data.
    pub prepared: &'a Prepared,
    /// The data on the device.
    pub table: &'a FragmentTable,
    /// Frames with their programs.
    pub samples: &'a Samples,
    /// The programs themselves.
    pub written: &'a Written,
    /// The tokens of programs.
    pub vocabulary: &'a Vocabulary,
    /// The same, bound to the store of the programs.
    pub bound: &'a BoundVocabulary,
    /// The words of instructions.
    pub words: &'a WordVocabulary,
    /// The skills.
    pub alphabet: &'a SkillAlphabet,
    /// The demonstrations.
    pub demonstrations: &'a Demonstrations,
    /// The images, for heads with an eye.
    pub pictures: Option<&'a Pictures>,
    /// Whether there are programs; otherwise the decoder reads the instruction.
    pub has_programs: bool,
    /// How phase B is run.
    pub settings: &'a WakeSettings,
}

/// An earlier policy, whose weights are the start of this one's training.
pub struct Before<'a> {
    /// Its directory.
    pub run: &'a Path,
    /// How rows of new tokens start.
    pub growth: Growth,
}

impl WakeData<'_> {
    /// The held-out figures of all heads of a policy.
    pub fn measures(&self, policy: &[Box<dyn TrainedHead>]) -> Result<Vec<Measure>> {
        let judged = every(&self.samples.held_out, self.settings.judged);
        let frames = every(&self.samples.held_out, self.settings.emitted);
        let mut emitted = None;
        for head in policy {
            emitted = head.programs(self, &frames)?.or(emitted);
        }
        let (oracle, plans) = (self.samples.targets(&frames), self.samples.plans(&frames));
        let held_out = HeldOutPrograms { judged, oracle, plans, frames, emitted };
        let mut all = Vec::new();
        for head in policy {
            all.extend(head.measures(self, &held_out)?);
        }
        if self.settings.train_on_all {
            all.iter_mut().for_each(|measure| measure.note = format!("ON TRAINING FRAMES; {}", measure.note));
        }
        Ok(all)
    }

    /// The plans of programs that a policy wrote for some frames.
    pub(crate) fn planned(&self, frames: &[usize], emitted: &[Vec<Piece>]) -> Result<Vec<Vec<Piece>>> {
        let Written { store, signature, .. } = self.written;
        let planner = Planner { store, signature, bound: self.bound, alphabet: self.alphabet };
        let of = |(frame, pieces): (&usize, &Vec<Piece>)| {
            let position = self.demonstrations.position(*frame).unwrap_or_default();
            Ok(planner.of_pieces(pieces, &position, 0)?.seen_from(&position))
        };
        frames.iter().zip(emitted).map(of).collect()
    }

    /// What a model of this data records about itself.
    fn record<M>(&self, phase: Phase, model: M, batch: usize, precision: models::Precision, seed: u64) -> Record<M> {
        let split = &self.prepared.split;
        let more = if self.settings.train_on_all { split.held_out.as_slice() } else { &[] };
        let seen = [split.train.as_slice(), more].concat();
        Record {
            phase,
            model,
            widths: self.table.widths(),
            scales: self.table.scales().clone(),
            batch,
            precision,
            supervision: None,
            teacher: None,
            source: self.prepared.source.record(),
            split: self.prepared.split.clone(),
            seen: self.prepared.contents(&seen).into_iter().collect(),
            seed,
        }
    }
}

/// Frames of an index: all of them, or about `most`, evenly chosen.
fn every(index: &FragmentIndex, most: usize) -> Vec<usize> {
    let step = index.len().div_ceil(most.max(1)).max(1);
    index.iter().step_by(step).map(|(_, fragment)| fragment.frames.start).collect()
}

/// Numbers for a batch, `count` for each place, that are a function of seed, `step` and the places in the global batch.
fn drawn<T>(
    what: &str,
    places: Range<usize>,
    seed: u64,
    step: u64,
    numbers: impl Fn(&mut ChaCha8Rng) -> Vec<T>,
) -> Vec<T> {
    let own = |place: usize| {
        let mut name = what.as_bytes().to_vec();
        name.extend(step.to_le_bytes());
        name.extend((place as u64).to_le_bytes());
        numbers(&mut ChaCha8Rng::seed_from_u64(mix(seed, &name)))
    };
    places.flat_map(own).collect()
}

/// What is added to `count` standardised numbers of each place of a batch.
fn shaken(what: &str, deviation: f64, count: usize, places: Range<usize>, seed: u64, step: u64) -> Vec<f32> {
    let scaled = |value: f32| value * deviation as f32;
    drawn(what, places, seed, step, |generator| normal(generator, count).into_iter().map(scaled).collect())
}

/// Adds noise to states or features, `[B, n]`.
fn add_noise(numbers: &mut Option<Tensor>, noise: Vec<f32>) -> models::Result<()> {
    if let Some(numbers) = numbers {
        let noise = Tensor::from_vec(noise, numbers.dims(), &Device::Cpu)?.to_device(numbers.device())?;
        *numbers = (&*numbers + noise)?;
    }
    Ok(())
}

/// Trains to the last step.
///
/// # Errors
/// `Interrupted` if training was stopped before.
fn trained<O: Objective, M: Serialize>(
    objective: &O,
    config: &TrainConfig,
    launch: Launch<'_>,
    record: &Record<M>,
) -> Result<()> {
    let run = launch.run;
    let options = launch.begin(record, config)?;
    match train(objective, config, run, options)? {
        Outcome::Finished(_) => Ok(()),
        Outcome::Stopped(_) => Err(Error::Interrupted),
    }
}

/// Whether a head's training has finished in a directory; all processes get the first one's answer.
fn is_finished(launch: &Launch<'_>) -> Result<bool> {
    let said = vec![u8::from(launch.run.join(MODEL).is_file())];
    Ok(launch.transport.broadcast_bytes(said)? == [1])
}
