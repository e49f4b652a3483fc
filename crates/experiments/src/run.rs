//! Run directories: how a phase was made, and how its result is loaded again.
//!
//! `config.json` is written before the first step. What is needed to load a model again is in its safetensors file as well,
//! so a model can be moved without its directory.

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
use models::world_model::Widths;
use models::{Parameters, Precision, Scales, WorldModel, WorldModelConfig};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cycle::{DecoderShape, EmitterShape};
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::separable_phase::SeparableShape;
use crate::source::SourceRecord;

/// The file with the resolved settings.
pub const CONFIG: &str = "config.json";

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
                "the model held out {} episodes of this dataset and these are other ones; use the same `--hold-out`",
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
        let EmitterShape { config, .. } = &record.model;
        Ok(Emitter::new(&mut parameters.root(), config, record.widths, record.model.symbols())?)
    })
}

/// The decoder of a finished run, by its directory.
pub fn load_decoder(run: &Path, device: &Device) -> Result<Loaded<Decoder, DecoderShape>> {
    load(run, device, Phase::Decoder, Weights::Learned, |parameters: &mut Parameters, record: &Record<DecoderShape>| {
        let DecoderShape { config, vocabulary } = &record.model;
        Ok(Decoder::new(&mut parameters.root(), config, record.widths, vocabulary.len())?)
    })
}

/// The hash of a file, by which a teacher is known.
pub(crate) fn weights_hash(run: &Path) -> Result<String> {
    let path = run.join(MODEL);
    let bytes = fs::read(&path).map_err(Error::file(&path))?;
    Ok(format!("{:016x}", models::noise::mix(0, &bytes)))
}

impl<'a> Launch<'a> {
    /// Writes how the run is made, or refuses a directory with another one in it. Gives what the trainer wants.
    pub(crate) fn begin<M: Serialize>(self, record: &Record<M>, train: &TrainConfig) -> Result<Options<'a>> {
        let metadata = serde_json::to_value(record).map_err(|error| unwritten(self.run, &error))?;
        if self.transport.rank() == 0 {
            let goes_on = self.refuse_others(&metadata)?;
            fs::create_dir_all(self.run).map_err(Error::file(self.run))?;
            // A run that goes on is what it was made as; whether that is what is asked for now, the trainer looks.
            if !goes_on {
                let config = json!({
                    "version": env!("CARGO_PKG_VERSION"),
                    "preset": self.preset,
                    "train": train,
                    "run": metadata,
                });
                write_json(&self.run.join(CONFIG), &config)?;
            }
        }
        let Launch { resume, transport, progress, stop, .. } = self;
        Ok(Options { resume, transport, progress, stop, metadata })
    }

    /// Returns whether there is a run to go on with.
    fn refuse_others(&self, metadata: &Value) -> Result<bool> {
        let exists = |reason: &str| Error::RunExists { run: self.run.to_owned(), reason: reason.to_owned() };
        if self.run.is_file() {
            return Err(exists("is a file, wanted a directory to make"));
        }
        let (finished, checkpoints) = (self.run.join(MODEL).exists(), checkpoint::list(self.run)?);
        let has_run = finished || !checkpoints.is_empty();
        if !self.resume && has_run {
            return Err(exists("has a run in it"));
        }
        if finished && checkpoints.is_empty() {
            return Err(exists("has a finished run in it, and no checkpoint to go on from"));
        }
        let path = self.run.join(CONFIG);
        if has_run && path.exists() {
            let written: Value = read_json(&path)?;
            if written["run"]["phase"] != metadata["phase"] {
                return Err(exists("has a run of another phase in it"));
            }
        } else if !has_run && !path.exists() && has_files(self.run) {
            return Err(exists("has other files in it"));
        }
        Ok(has_run && path.exists())
    }
}

/// Whether there is anything in a directory, but for a first file whose writing was cut short.
pub(crate) fn has_files(run: &Path) -> bool {
    let unfinished = beside(Path::new(CONFIG));
    run.read_dir().into_iter().flatten().flatten().any(|entry| entry.file_name() != unfinished.as_os_str())
}

fn load<T, M: DeserializeOwned>(
    run: &Path,
    device: &Device,
    phase: Phase,
    weights: Weights,
    build: impl Fn(&mut Parameters, &Record<M>) -> Result<T>,
) -> Result<Loaded<T, M>> {
    let path = run.join(MODEL);
    if !path.is_file() {
        let reason = match checkpoint::list(run)?.first() {
            Some((step, _)) => format!("no `{MODEL}`: training stopped at step {step}; go on with `--resume`"),
            None => format!("no `{MODEL}`, so it is no directory of a finished run"),
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

/// Reads JSON.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read(path).map_err(Error::file(path))?;
    serde_json::from_slice(&text).map_err(|error| Error::Format { path: path.to_owned(), reason: error.to_string() })
}

/// Writes JSON beside its place and renames it.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    write_text(path, &json_bytes(path, value)?)
}

/// What [`write_json`] writes; the path is for the message of a failure.
pub(crate) fn json_bytes(path: &Path, value: &impl Serialize) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| unwritten(path, &error))?;
    text.push(b'\n');
    Ok(text)
}

/// Writes a file beside its place and renames it.
pub fn write_text(path: &Path, text: &[u8]) -> Result<()> {
    let beside = beside(path);
    fs::write(&beside, text).and_then(|()| fs::rename(&beside, path)).map_err(Error::file(path))
}

/// Where a file is written before it is renamed.
fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".partial");
    PathBuf::from(beside)
}

fn unwritten(path: &Path, error: &serde_json::Error) -> Error {
    Error::Format { path: path.to_owned(), reason: format!("cannot be written: {error}") }
}
