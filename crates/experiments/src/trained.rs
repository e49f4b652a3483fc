//! Trained models: how a training is started, what a model records about itself, and how it is loaded again.
//!
//! `config.json` is written before the first step. Everything needed to load a model is in its safetensors file as well, so
//! a model can be moved without its directory.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use candle_core::Device;
use dataset::Split;
use models::amortizer::{Amortizer, AmortizerConfig, Supervision};
use models::decoder::Decoder;
use models::emitter::Emitter;
use models::kernel::Separable;
use models::training::checkpoint::{self, MODEL};
use models::training::distributed::Transport;
use models::training::{Options, Progress, TrainConfig, load_model};
use models::{Parameters, Precision, Scales, Widths, WorldModel, WorldModelConfig};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cycle::{DecoderShape, EmitterShape};
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::run_dir::{CONFIG, claim, write_json};
use crate::separable_phase::SeparableShape;
use crate::source::SourceRecord;

/// How many episodes a message names.
const SHOWN: usize = 5;

/// No header of weights is longer, in bytes.
const MAX_HEADER: u64 = 64 << 20;

/// How a phase is started.
pub struct Launch<'a> {
    /// Its directory.
    pub run: &'a Path,
    /// Go on from the newest checkpoint, if there is one.
    pub resume: bool,
    /// The name or path of the preset, for the record.
    pub preset: &'a str,
    /// Of weights, batches and noise.
    pub seed: u64,
    /// Where it runs.
    pub device: &'a Device,
    /// The way to other processes.
    pub transport: Arc<dyn Transport>,
    /// Called at each reading.
    pub progress: &'a mut dyn FnMut(&Progress),
    /// Set by someone else to end it early, with a checkpoint.
    pub stop: Option<&'a AtomicBool>,
}

/// Which phase made a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A.
    WorldModel,
    /// C.
    Amortizer,
    /// The separable form of D_φ.
    Separable,
    /// B, from pictures and words to programs.
    Emitter,
    /// B, from programs to actions.
    Decoder,
}

impl Phase {
    /// The directory of the phase within a run.
    pub fn name(self) -> &'static str {
        match self {
            Phase::WorldModel => "world_model",
            Phase::Amortizer => "amortizer",
            Phase::Separable => "separable",
            Phase::Emitter => "emitter",
            Phase::Decoder => "decoder",
        }
    }
}

/// What a model carries: all that it needs to be used on data again. `M` is its shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record<M> {
    /// Which phase.
    pub phase: Phase,
    /// The model's settings.
    pub model: M,
    /// The widths of what it sees.
    pub widths: Widths,
    /// How what it sees is standardised.
    pub scales: Scales,
    /// Fragments in a step.
    pub batch: usize,
    /// The precision of products.
    pub precision: Precision,
    /// What taught it, in phase C.
    pub supervision: Option<Supervision>,
    /// A hash of the weights of the world model that taught it, in phase C with distillation or with D_φ.
    pub teacher: Option<String>,
    /// The data.
    pub source: SourceRecord,
    /// Which episodes were for what.
    pub split: Split,
    /// The contents of all episodes that it learned from, or what taught it did: hashes, in ascending order. Runs of earlier
    /// versions do not say.
    #[serde(default)]
    pub seen: BTreeSet<String>,
    /// Of weights, batches and noise.
    pub seed: u64,
}

/// A model with its record and weights.
pub struct Loaded<T, M> {
    /// The model.
    pub model: T,
    /// Its weights.
    pub parameters: Parameters,
    /// How it was made.
    pub record: Record<M>,
}

impl<T, M> Loaded<T, M> {
    /// Refuses data of another kind, and data that holds out what the model has learned from: the same dataset with other
    /// episodes held out, or any dataset with such an episode, known by its contents.
    pub fn check(&self, prepared: &Prepared) -> Result<()> {
        let (was, is) = (&self.record.source, prepared.source.record());
        if was.encoder != is.encoder || was.cameras != is.cameras {
            let say = |record: &SourceRecord| record.encoder.clone().unwrap_or_else(|| "no encoder".to_owned());
            return Err(Error::Mismatch(format!(
                "the model was trained on features by {} of {:?}, these are by {} of {:?}; use the same",
                say(was),
                was.cameras,
                say(&is),
                is.cameras
            )));
        }
        let same = was.fingerprint == is.fingerprint;
        if same && self.record.split != prepared.split {
            return Err(Error::Mismatch(format!(
                "the model held out {} episodes of this dataset and these are other ones; use the same `--hold-out` and \
                 `--tuning`",
                self.record.split.held_out.len()
            )));
        }
        self.refuse_seen(prepared, same)
    }

    /// `own`: whether it was trained on this very dataset and split. A dataset that has an episode twice, once on either side,
    /// is then what the user gave.
    fn refuse_seen(&self, prepared: &Prepared, own: bool) -> Result<()> {
        let held_out = &prepared.split.held_out;
        let twice = if own { prepared.contents(&prepared.split.train) } else { Vec::new() };
        let learned = |content: &String| self.record.seen.contains(content) && !twice.contains(content);
        let contents = prepared.contents(held_out);
        let seen: Vec<String> = (held_out.iter().zip(&contents))
            .filter(|(_, content)| learned(content))
            .map(|(episode, _)| episode.at().to_string())
            .collect();
        if seen.is_empty() {
            return Ok(());
        }
        let (shown, dots) = (seen[..seen.len().min(SHOWN)].join(", "), if seen.len() > SHOWN { ", …" } else { "" });
        Err(Error::Mismatch(format!(
            "the model, or what taught it, has learned from {} of the {} episodes that `{}` holds out ({shown}{dots}), so they \
             cannot judge it; use a dataset or a `--hold-out` whose held-out episodes are new to it",
            seen.len(),
            held_out.len(),
            prepared.source.name,
        )))
    }
}

/// With which weights a model is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// Those that it has learned.
    Learned,
    /// Those that it began with: its untrained twin, alike in all else.
    First,
}

/// The world model of a finished run, by its directory.
pub fn load_world_model(run: &Path, device: &Device) -> Result<Loaded<WorldModel, WorldModelConfig>> {
    load_world_model_with(Weights::Learned, run, device)
}

/// The same, or its untrained twin.
pub fn load_world_model_with(
    weights: Weights,
    run: &Path,
    device: &Device,
) -> Result<Loaded<WorldModel, WorldModelConfig>> {
    load(run, device, Phase::WorldModel, weights, |parameters, record: &Record<WorldModelConfig>| {
        Ok(WorldModel::new(&mut parameters.root(), &record.model, record.widths)?)
    })
}

/// The amortizer of a finished run, by its directory.
pub fn load_amortizer(run: &Path, device: &Device) -> Result<Loaded<Amortizer, AmortizerConfig>> {
    load_amortizer_with(Weights::Learned, run, device)
}

/// The same, or its untrained twin.
pub fn load_amortizer_with(
    weights: Weights,
    run: &Path,
    device: &Device,
) -> Result<Loaded<Amortizer, AmortizerConfig>> {
    load(run, device, Phase::Amortizer, weights, |parameters, record: &Record<AmortizerConfig>| {
        Ok(Amortizer::new(&mut parameters.root(), record.model, record.widths)?)
    })
}

/// The separable form of D_φ of a finished run, by its directory.
pub fn load_separable(run: &Path, device: &Device) -> Result<Loaded<Separable, SeparableShape>> {
    load(run, device, Phase::Separable, Weights::Learned, |parameters, record: &Record<SeparableShape>| {
        Ok(Separable::new(&mut parameters.root(), record.model.config)?)
    })
}

/// The emitter of a finished run, by its directory.
pub fn load_emitter(run: &Path, device: &Device) -> Result<Loaded<Emitter, EmitterShape>> {
    load(run, device, Phase::Emitter, Weights::Learned, |parameters: &mut Parameters, record: &Record<EmitterShape>| {
        let EmitterShape { config, numbers, .. } = &record.model;
        Ok(Emitter::new(&mut parameters.root(), config, record.widths, record.model.symbols(), numbers)?)
    })
}

/// The decoder of a finished run, by its directory.
pub fn load_decoder(run: &Path, device: &Device) -> Result<Loaded<Decoder, DecoderShape>> {
    load(run, device, Phase::Decoder, Weights::Learned, |parameters: &mut Parameters, record: &Record<DecoderShape>| {
        let DecoderShape { config, vocabulary, numbers } = &record.model;
        Ok(Decoder::new(&mut parameters.root(), config, record.widths, vocabulary.len(), numbers)?)
    })
}

/// The directory of a model: the given one, or that of the phase within a run.
pub fn directory_of(run: &Path, phase: Phase) -> PathBuf {
    let inner = run.join(phase.name());
    if inner.is_dir() && !run.join(MODEL).is_file() { inner } else { run.to_owned() }
}

/// The hash of a model's weights, by which a teacher is identified.
pub(crate) fn weights_hash(run: &Path, phase: Phase) -> Result<String> {
    let path = directory_of(run, phase).join(MODEL);
    let bytes = fs::read(&path).map_err(Error::file(&path))?;
    Ok(format!("{:016x}", models::noise::mix(0, &bytes)))
}

impl<'a> Launch<'a> {
    /// Records how the model is made, or refuses a directory that holds another one. Returns what the trainer needs.
    pub(crate) fn begin<M: Serialize>(self, record: &Record<M>, train: &TrainConfig) -> Result<Options<'a>> {
        let metadata = serde_json::to_value(record).map_err(|error| Error::Mismatch(error.to_string()))?;
        if self.transport.rank() == 0 {
            self.claim(&json!({
                "version": env!("CARGO_PKG_VERSION"),
                "preset": self.preset,
                "train": train,
                "run": metadata,
            }))?;
        }
        let Launch { resume, transport, progress, stop, .. } = self;
        Ok(Options { resume, transport, progress, stop, metadata })
    }

    fn claim(&self, config: &Value) -> Result<()> {
        let exists = |reason: &str| Error::RunExists { run: self.run.to_owned(), reason: reason.to_owned() };
        // A resumed training is compared with its checkpoint by the trainer; here only the phase must be the same.
        let phase = json!({ "run": { "phase": config["run"]["phase"] } });
        let (finished, checkpoints) = (self.run.join(MODEL).exists(), checkpoint::list(self.run)?);
        let known = claim(self.run, self.resume, finished || !checkpoints.is_empty(), &phase)?;
        if finished && checkpoints.is_empty() {
            return Err(exists("contains a finished training without a checkpoint to resume from"));
        }
        if known.is_none() {
            fs::create_dir_all(self.run).map_err(Error::write(self.run))?;
            write_json(&self.run.join(CONFIG), config)?;
        }
        Ok(())
    }
}

fn load<T, M: DeserializeOwned>(
    run: &Path,
    device: &Device,
    phase: Phase,
    weights: Weights,
    build: impl Fn(&mut Parameters, &Record<M>) -> Result<T>,
) -> Result<Loaded<T, M>> {
    let run = &directory_of(run, phase);
    let path = run.join(MODEL);
    if !path.is_file() {
        let reason = match checkpoint::list(run)?.first() {
            Some((step, _)) => {
                format!("has no `{MODEL}`: training stopped at step {step}; continue it with `--resume`")
            }
            None => format!("has no `{MODEL}`: not the directory of a finished training"),
        };
        return Err(Error::Format { path: run.to_owned(), reason });
    }
    let format = |reason: String| Error::Format { path: path.clone(), reason };
    let metadata = metadata(&path)?;
    let written = &metadata["config"]["metadata"];
    if written["phase"] != json!(phase) {
        return Err(format(format!("made by phase {}, wanted {}", written["phase"], json!(phase))));
    }
    let record: Record<M> = Record::deserialize(written)
        .map_err(|error| format(format!("its record is of another version of the program: {error}")))?;
    // On a CPU there is no reason for the rounding of bf16.
    let precision = if device.is_cpu() { Precision::F32 } else { record.precision };
    let mut parameters = Parameters::new(device, precision, record.seed);
    let model = build(&mut parameters, &record)?;
    if weights == Weights::Learned {
        load_model(&path, &parameters)?;
    }
    Ok(Loaded { model, parameters, record })
}

/// What is said about the weights of a safetensors file: its header alone is read.
fn metadata(path: &Path) -> Result<Value> {
    let format = |reason: &str| Error::Format { path: path.to_owned(), reason: reason.to_owned() };
    let mut file = File::open(path).map_err(Error::file(path))?;
    let mut length = [0; 8];
    file.read_exact(&mut length).map_err(Error::file(path))?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER {
        return Err(format("no file of weights of ours: its header is too long"));
    }
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header).map_err(Error::file(path))?;
    let header: Value = serde_json::from_slice(&header).map_err(|_| format("no file of weights: no JSON header"))?;
    let said = header["__metadata__"]["run"].as_str().ok_or_else(|| format("weights without a record of ours"))?;
    serde_json::from_str(said).map_err(|_| format("weights with a record that is no JSON"))
}
