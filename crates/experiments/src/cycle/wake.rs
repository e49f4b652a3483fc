//! Phase B: both models on programs that are written with a library, and how well they do on held-out episodes.

use std::path::Path;

use candle_core::Device;
use dataset::FragmentIndex;
use language::PrefixChecker;
use models::decoder::{Decoder, DecoderConfig};
use models::emitter::{BeamConfig, Emitter, EmitterConfig, WordVocabulary, best, exact_match};
use models::training::checkpoint::MODEL;
use models::training::{Objective, Outcome, TrainConfig, train};
use models::vocabulary::{BoundVocabulary, Growth, SEPARATOR, UNKNOWN, Vocabulary};
use models::{FragmentTable, Parameters};
use serde::{Deserialize, Serialize};

use super::corpus::{GOAL, Written};
use super::decoder_phase::{DecoderObjective, DecoderShape, measured};
use super::emitter_phase::{EmitterObjective, EmitterShape};
use super::samples::Samples;
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::run::{Launch, Phase, Record, load_decoder, load_emitter};
use crate::settings::{Batch, PrecisionChoice};

/// Frames that are judged at once.
pub(super) const CHUNK: usize = 64;

/// How the emitter is trained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
}

/// How the decoder is trained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DecoderSettings {
    /// The model.
    pub model: DecoderConfig,
    /// The trainer.
    pub train: TrainConfig,
    /// Frames in a step.
    pub batch: Batch,
    /// The precision of products.
    pub precision: PrecisionChoice,
}

/// How phase B is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WakeSettings {
    /// The emitter.
    pub emitter: EmitterSettings,
    /// The decoder.
    pub decoder: DecoderSettings,
    /// How programs are searched for when exact matches are counted.
    pub beam: BeamConfig,
    /// Held-out frames, evenly chosen, that accuracy and velocity are measured at.
    pub judged: usize,
    /// Held-out frames, evenly chosen, that programs are emitted for (paper: 256).
    pub emitted: usize,
}

impl Default for WakeSettings {
    fn default() -> Self {
        WakeSettings {
            emitter: EmitterSettings::default(),
            decoder: DecoderSettings::default(),
            beam: BeamConfig::default(),
            judged: 4096,
            emitted: 256,
        }
    }
}

/// Held-out figures of phase B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WakeScores {
    /// Frames that accuracy and velocity were measured at.
    pub frames: usize,
    /// The share of tokens that are the most likely one, given those before.
    pub token_accuracy: f64,
    /// Of the tokens of tasks alone.
    pub task_accuracy: f64,
    /// Of the tokens of what is done now alone.
    pub motion_accuracy: f64,
    /// Of those, skills, library entries and syntax.
    pub structure_accuracy: f64,
    /// Of those, numbers: sums of commands and durations.
    pub number_accuracy: f64,
    /// Tokens that the vocabulary does not have, as a share; they count as wrong.
    pub unknown: f64,
    /// Frames that programs were emitted for.
    pub emitted: usize,
    /// The share of frames whose best programs are the right ones, token by token.
    pub exact: f64,
    /// Of the tasks alone.
    pub task_exact: f64,
    /// The mean squared error of the velocity, in standardised units: what we take the paper's v_err to be.
    pub velocity: f64,
    /// The mean squared error of chunks after all Euler steps, given the right programs.
    pub chunk: f64,
    /// The same at the frames that programs were emitted for, given those: the policy on its own.
    pub own_chunk: f64,
}

/// Frames of an index, all of them or about `most`, evenly chosen.
pub(super) fn every(index: &FragmentIndex, most: usize) -> Vec<usize> {
    let step = index.len().div_ceil(most.max(1)).max(1);
    index.iter().step_by(step).map(|(_, fragment)| fragment.frames.start).collect()
}

/// What phase B works on: programs as numbers, and the data on the device.
pub struct Wake<'a> {
    /// The data.
    pub prepared: &'a Prepared,
    /// The data on the device.
    pub table: &'a FragmentTable,
    /// Frames with their programs.
    pub samples: &'a Samples,
    /// What tokens are.
    pub vocabulary: &'a Vocabulary,
    /// What words are.
    pub words: &'a WordVocabulary,
    /// How it is run.
    pub settings: &'a WakeSettings,
}

/// Both models of a wake phase, trained.
pub struct Policy {
    /// The emitter.
    pub emitter: Emitter,
    /// The decoder.
    pub decoder: Decoder,
}

/// A wake phase before this one, whose weights are where training starts.
pub struct Before<'a> {
    /// Its directory.
    pub run: &'a Path,
    /// How rows of new tokens start.
    pub growth: Growth,
}

impl Wake<'_> {
    /// Trains the emitter into `launch.run`, unless that is done. `None` if it was told to stop.
    pub fn emitter(&self, launch: Launch<'_>, before: Option<&Before<'_>>) -> Result<Option<Emitter>> {
        let settings = &self.settings.emitter;
        if launch.run.join(MODEL).is_file() {
            return Ok(Some(load_emitter(launch.run, launch.device)?.model));
        }
        let learned = before.map(|before| load_emitter(&before.run.join(EMITTER), launch.device)).transpose()?;
        let mut config = settings.model;
        let old = learned.as_ref().map_or(0, |learned| learned.record.model.config.tokens);
        config.tokens = config.tokens.max(self.samples.longest()).max(old);
        let shape = EmitterShape { config, vocabulary: self.vocabulary.clone(), words: self.words.clone() };
        let precision = settings.precision.on(launch.device);
        let parameters = Parameters::new(launch.device, precision, launch.seed);
        let objective =
            EmitterObjective::new(&shape, settings.batch.0, launch.seed, self.table, self.samples, parameters)?;
        if let (Some(before), Some(learned)) = (before, learned) {
            before.growth.apply(&learned.parameters.masters(), &objective.parameters, &objective.model.tables())?;
        }
        let record = self.record(Phase::Emitter, shape, settings.batch.0, precision, launch.seed);
        let finished = trained(&objective, &settings.train, launch, &record)?;
        Ok(if finished { Some(objective.model) } else { None })
    }

    /// Trains the decoder into `launch.run`, unless that is done. `None` if it was told to stop.
    pub fn decoder(&self, launch: Launch<'_>, before: Option<&Before<'_>>) -> Result<Option<Decoder>> {
        let settings = &self.settings.decoder;
        if launch.run.join(MODEL).is_file() {
            return Ok(Some(load_decoder(launch.run, launch.device)?.model));
        }
        let learned = before.map(|before| load_decoder(&before.run.join(DECODER), launch.device)).transpose()?;
        let mut config = settings.model;
        let old = learned.as_ref().map_or(0, |learned| learned.record.model.config.tokens);
        config.tokens = config.tokens.max(self.samples.longest()).max(old);
        let shape = DecoderShape { config, vocabulary: self.vocabulary.clone() };
        let precision = settings.precision.on(launch.device);
        let parameters = Parameters::new(launch.device, precision, launch.seed);
        let objective =
            DecoderObjective::new(&shape, settings.batch.0, launch.seed, self.table, self.samples, parameters)?;
        if let (Some(before), Some(learned)) = (before, learned) {
            before.growth.apply(&learned.parameters.masters(), &objective.parameters, &objective.model.tables())?;
        }
        let record = self.record(Phase::Decoder, shape, settings.batch.0, precision, launch.seed);
        let finished = trained(&objective, &settings.train, launch, &record)?;
        Ok(if finished { Some(objective.model) } else { None })
    }

    /// Held-out figures of a policy.
    pub fn scores(&self, policy: &Policy, written: &mut Written) -> Result<WakeScores> {
        let bound = self.vocabulary.bind(&mut written.store)?;
        let frames = every(&self.samples.held_out, self.settings.judged);
        let tokens = self.token_counts(&policy.emitter, &frames)?;
        let error = measured(&policy.decoder, self.table, &frames, &self.samples.targets(&frames))?;
        let emitted = every(&self.samples.held_out, self.settings.emitted);
        let programs = self.emitted(&policy.emitter, &bound, written, &emitted)?;
        let targets = self.samples.targets(&emitted);
        let own = measured(&policy.decoder, self.table, &emitted, &programs)?;
        let TokenCounts { task, structure, numbers, unknown } = tokens;
        let (motion, all) = (structure.and(numbers), task.and(structure).and(numbers));
        Ok(WakeScores {
            frames: frames.len(),
            token_accuracy: all.share(),
            task_accuracy: task.share(),
            motion_accuracy: motion.share(),
            structure_accuracy: structure.share(),
            number_accuracy: numbers.share(),
            unknown: Counted { right: unknown, all: all.all }.share(),
            emitted: emitted.len(),
            exact: exact_match(&programs, &targets),
            task_exact: exact_match(&tasks(&programs), &tasks(&targets)),
            velocity: error.velocity_mean_square(),
            chunk: error.chunk_mean_square(),
            own_chunk: own.chunk_mean_square(),
        })
    }

    /// How many tokens are right under teacher forcing. The separator belongs to the task, the end to the motion's structure.
    fn token_counts(&self, emitter: &Emitter, frames: &[usize]) -> Result<TokenCounts> {
        let mut counts = TokenCounts::default();
        for chunk in frames.chunks(CHUNK) {
            let batch = self.samples.emitter_batch(self.table, chunk, emitter.config().words)?;
            let correct: Vec<Vec<f32>> = emitter.token_scores(&batch)?.correct.to_vec2()?;
            for (frame, correct) in chunk.iter().zip(correct) {
                let target = self.samples.target(*frame);
                let mut in_task = true;
                for ((id, is_number), correct) in target.ids.iter().zip(&target.numbers).zip(correct) {
                    let kind = match (in_task, is_number) {
                        (true, _) => &mut counts.task,
                        (false, true) => &mut counts.numbers,
                        (false, false) => &mut counts.structure,
                    };
                    // What the vocabulary does not have cannot be written.
                    kind.right += if *id == UNKNOWN { 0.0 } else { f64::from(correct) };
                    kind.all += 1.0;
                    in_task &= *id != SEPARATOR;
                }
                counts.unknown += target.unknown as f64;
            }
        }
        Ok(counts)
    }

    /// The best programs for some frames; an empty one where the search found none within its limit.
    fn emitted(
        &self,
        emitter: &Emitter,
        bound: &BoundVocabulary,
        written: &Written,
        frames: &[usize],
    ) -> Result<Vec<Vec<u32>>> {
        let mut checker = PrefixChecker::new(&written.store, &written.signature, GOAL);
        let beam = BeamConfig { tokens: emitter.config().tokens, ..self.settings.beam };
        let mut programs = Vec::with_capacity(frames.len());
        for chunk in frames.chunks(CHUNK) {
            let batch = self.samples.emitter_batch(self.table, chunk, emitter.config().words)?;
            let emissions = emitter.emit(&batch.condition, bound, &mut checker, &beam)?;
            programs.extend(best(&emissions));
        }
        Ok(programs)
    }

    fn record<M>(&self, phase: Phase, model: M, batch: usize, precision: models::Precision, seed: u64) -> Record<M> {
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
            seen: self.prepared.contents(&self.prepared.split.train).into_iter().collect(),
            seed,
        }
    }
}

/// The directories of the two models of a wake phase.
pub const EMITTER: &str = "emitter";
/// See [`EMITTER`].
pub const DECODER: &str = "decoder";

#[derive(Default)]
struct TokenCounts {
    task: Counted,
    structure: Counted,
    numbers: Counted,
    unknown: f64,
}

/// How many are right, of how many.
#[derive(Clone, Copy, Default)]
struct Counted {
    right: f64,
    all: f64,
}

impl Counted {
    fn and(self, other: Counted) -> Counted {
        Counted { right: self.right + other.right, all: self.all + other.all }
    }

    fn share(self) -> f64 {
        self.right / self.all.max(1.0)
    }
}

/// The first of two programs, of each.
fn tasks(programs: &[Vec<u32>]) -> Vec<Vec<u32>> {
    programs.iter().map(|ids| ids.split(|id| *id == SEPARATOR).next().unwrap_or_default().to_vec()).collect()
}

/// Whether training went to its end.
fn trained<O: Objective, M: Serialize>(
    objective: &O,
    config: &TrainConfig,
    launch: Launch<'_>,
    record: &Record<M>,
) -> Result<bool> {
    let run = launch.run;
    let options = launch.begin(record, config)?;
    Ok(matches!(train(objective, config, run, options).map_err(Error::from)?, Outcome::Finished(_)))
}

/// The data for wake: in scales of its own or those of the world model, which are the same here.
pub fn table(prepared: &Prepared, device: &Device, settings: &WakeSettings) -> Result<FragmentTable> {
    prepared.table(prepared.scales.clone(), device, settings.emitter.precision.on(device), 1.0)
}
