//! `features …`: fills the cache of visual features.

use std::env;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use dataset::features::{FeatureCache, Filling, FrameEncoder, PixelEncoder};
use dataset::{CameraId, Dataset, FrameOptions};
use indicatif::{ProgressBar, ProgressStyle};
use models::encoder::{DinoV2, DinoV2Encoder, EncoderError, Kind};
use serde::Serialize;

use crate::args::{self, FeaturesArgs};
use crate::data::{overrides, root};
use crate::failure::{Failure, Problem};
use crate::files;
use crate::table::{Align, table};

/// The variable that says where caches are.
const CACHE_VARIABLE: &str = "REFACTOR_VLA_CACHE";

/// What is there for one camera.
#[derive(Debug, Serialize)]
struct Filled {
    camera: String,
    encoder: String,
    frames: usize,
    width: usize,
    /// Frames that were encoded now; the others were there.
    encoded: usize,
    folder: PathBuf,
}

/// Computes the features that are not there yet.
pub(crate) fn run(options: &FeaturesArgs) -> Result<(), Failure> {
    let mut encoder = encoder(options)?;
    let directory = match &options.cache {
        Some(directory) => directory.clone(),
        None => default_cache()?,
    };
    let dataset = Dataset::open(root(&options.dataset)?, &overrides(&options.keys))?;
    if dataset.roles().cameras.is_empty() {
        return Err(Problem::new(format!("`{}` has no cameras, so there is nothing to encode", options.dataset))
            .hint("no features are needed: `run` and `train` learn from its states and actions")
            .into());
    }
    let memory = FrameOptions { cache_bytes: 0, stream_bytes: (options.memory as usize) << 20 };
    let mut filled = Vec::new();
    for (at, camera) in dataset.roles().cameras.iter().enumerate() {
        let cache = watched(camera, |progress| {
            FeatureCache::fill(&dataset, CameraId(at), encoder.as_mut(), &directory, memory, progress)
        })?;
        filled.push(Filled {
            camera: camera.clone(),
            encoder: encoder.name(),
            frames: cache.frames(),
            width: cache.width(),
            encoded: cache.encoded(),
            folder: directory.join(cache.folder()),
        });
    }
    match options.json {
        true => files::print(&files::json_bytes(&filled)?),
        false => files::print(text(&filled).as_bytes()),
    }
}

/// The encoder that a user names.
fn encoder(options: &FeaturesArgs) -> Result<Box<dyn FrameEncoder>, Failure> {
    let written = options.encoder.as_str();
    let side = match written.split_once(':') {
        None if written == "pixels" => Some(PixelEncoder::default()),
        Some(("pixels", side)) => {
            let side = side.parse().ok().filter(|side| (1..=256).contains(side));
            Some(side.map(PixelEncoder::new).ok_or_else(|| no_encoder(written))?)
        }
        _ => None,
    };
    let folder = Path::new(written);
    match side {
        Some(_) if options.kind.is_some() => {
            Err(Problem::new(format!("`{written}` has no tokens for `--kind` to keep"))
                .hint("omit `--kind`, or give a directory of weights as `--encoder`")
                .into())
        }
        Some(pixels) => Ok(Box::new(pixels)),
        None if !folder.is_dir() => Err(no_encoder(written).into()),
        None => {
            let kind = match options.kind {
                None | Some(args::Kind::Cls) => Kind::Cls,
                Some(args::Kind::Mean) => Kind::Mean,
                Some(args::Kind::Grid4) => Kind::Grid4,
            };
            let device = options.device.open().map_err(|error| {
                Problem::new(error.to_string())
                    .hint("`--device cpu` works everywhere, `--device auto` takes what is there")
            })?;
            let loaded = DinoV2Encoder::load(folder, kind, &device, DinoV2::default_precision(&device));
            Ok(Box::new(loaded.map_err(|error| not_loaded(written, error))?))
        }
    }
}

fn no_encoder(written: &str) -> Problem {
    Problem::new(format!("there is no encoder `{written}`"))
        .fact("expected", "`pixels`, `pixels:SIDE` with a side from 1 to 256, or a directory of weights")
        .hint("a directory of weights contains `config.json` and `model.safetensors` of a DINOv2, as on the Hugging Face Hub")
}

/// Why a folder of weights is no encoder, and what would be one.
fn not_loaded(folder: &str, error: EncoderError) -> Problem {
    match error {
        EncoderError::File { file, source } if source.kind() == io::ErrorKind::NotFound => {
            let name = file.file_name().unwrap_or_default().display();
            Problem::new(format!("`{folder}` has no `{name}`"))
                .fact("expected", "`config.json` and `model.safetensors` of a DINOv2")
                .hint("take both files of a model such as facebook/dinov2-base from the Hugging Face Hub")
        }
        EncoderError::Config { file, problems } => {
            Problem::new(format!("`{}` describes an encoder that is not supported", file.display()))
                .list(problems)
                .hint("DINOv2 small, base and large without registers are supported")
        }
        EncoderError::Damaged { file, reason } => {
            Problem::new(format!("`{}` is not a complete safetensors file", file.display()))
                .fact("found", reason)
                .hint("download the file again: it may be truncated, or a Git LFS pointer")
        }
        EncoderError::Tensors { file, problems } => {
            Problem::new(format!("`{}` does not have the tensors that `config.json` describes", file.display()))
                .list(problems)
                .hint("take `config.json` and `model.safetensors` from the same model")
        }
        other => Problem::new(other.to_string()).hint("check the directory and `--device`"),
    }
}

/// Where features are kept if the user does not say.
pub(crate) fn default_cache() -> Result<PathBuf, Failure> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(CACHE_VARIABLE)
        .or_else(|| set("XDG_CACHE_HOME").map(|home| home.join("refactor-vla")))
        .or_else(|| set("HOME").map(|home| home.join(".cache").join("refactor-vla")))
        .or_else(|| set("LOCALAPPDATA").map(|home| home.join("refactor-vla")))
        .ok_or_else(|| {
            Problem::new("there is no directory for caches: `HOME` is not set")
                .hint(format!("give one with `--cache`, or set `{CACHE_VARIABLE}`"))
                .into()
        })
}

fn text(filled: &[Filled]) -> String {
    let columns = [
        ("camera", Align::Left),
        ("encoder", Align::Left),
        ("frames", Align::Right),
        ("width", Align::Right),
        ("encoded now", Align::Right),
        ("in", Align::Left),
    ];
    let row = |it: &Filled| {
        vec![
            it.camera.clone(),
            it.encoder.clone(),
            it.frames.to_string(),
            it.width.to_string(),
            it.encoded.to_string(),
            it.folder.display().to_string(),
        ]
    };
    table(&columns, &filled.iter().map(row).collect::<Vec<_>>())
}

/// Runs the work, with its progress on stderr if somebody is there to see it.
fn watched<T>(camera: &str, work: impl FnOnce(&mut dyn FnMut(Filling)) -> T) -> T {
    if !io::stderr().is_terminal() {
        return work(&mut |_| {});
    }
    let bar = ProgressBar::new(0).with_message(camera.to_string());
    if let Ok(style) = ProgressStyle::with_template("{elapsed} {bar:40} {pos}/{len} {msg}, {per_sec}, {eta} left") {
        bar.set_style(style);
    }
    let done = work(&mut |filling| {
        bar.set_length(filling.frames as u64);
        bar.set_position(filling.done as u64);
    });
    bar.finish_and_clear();
    done
}
