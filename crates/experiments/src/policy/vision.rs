//! From images to the features that a policy was trained on.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use candle_core::Device;
use dataset::Frame;
use dataset::features::{FrameEncoder, PixelEncoder};
use half::f16;
use models::encoder::{DinoV2, DinoV2Encoder, Kind};

use crate::error::{Error, Result};
use crate::source::SourceRecord;

/// The environment variable with the directory of the encoder's weights.
pub const WEIGHTS: &str = "REFACTOR_VLA_WEIGHTS";

/// What encodes images.
pub(super) enum Vision {
    /// The policy sees no images.
    None,
    /// Images made small.
    Pixels(PixelEncoder),
    /// DINOv2.
    DinoV2(Box<DinoV2Encoder>),
    /// The weights are not there: every image counts as the average image, of so many features.
    Blind(usize),
}

/// Features of some observations, and how long they took.
pub(super) struct Encoded {
    /// `[B, F]`, as the cache of features would have them.
    pub(super) features: Vec<f32>,
    pub(super) resize: Duration,
    pub(super) vision: Duration,
}

impl Vision {
    /// The encoder of a policy. `width` is that of the features of all cameras, `weights` the directory of DINOv2's weights
    /// if the user gave one, `fingerprint` the hash of the encoder that made the training features.
    pub(super) fn open(
        source: &SourceRecord,
        width: usize,
        weights: Option<&Path>,
        fingerprint: Option<&str>,
        device: &Device,
    ) -> Result<(Vision, Option<String>)> {
        let Some(name) = source.encoder.as_deref().filter(|_| width > 0 && !source.cameras.is_empty()) else {
            return Ok((Vision::None, None));
        };
        let vision = match name.strip_prefix("pixels ").and_then(|size| size.split('×').next()) {
            Some(side) => {
                let side = side.parse().map_err(|_| Error::Mismatch(format!("there is no encoder `{name}`")))?;
                Vision::Pixels(PixelEncoder::new(side))
            }
            None => match weights.map(Path::to_owned).or_else(|| found(name)) {
                Some(folder) => Vision::DinoV2(Box::new(dinov2(name, &folder, fingerprint, device)?)),
                None => {
                    let note = format!(
                        "the policy was trained on features by `{name}`, whose weights are not here: images are ignored, and \
                         every image counts as the average one; give the directory of the weights with `--weights DIR` or \
                         `{WEIGHTS}`"
                    );
                    return Ok((Vision::Blind(width), Some(note)));
                }
            },
        };
        let found = vision.width() * source.cameras.len();
        if found != width {
            return Err(Error::Mismatch(format!(
                "`{name}` gives {found} features for {} cameras, and the policy was trained on {width}",
                source.cameras.len()
            )));
        }
        Ok((vision, None))
    }

    /// Encodes the images of some observations, all cameras of one after the other.
    ///
    /// # Errors
    /// In words, if an image cannot be encoded.
    pub(super) fn encode(&mut self, frames: &[Frame], count: usize) -> std::result::Result<Encoded, String> {
        let mut encoded = Encoded { features: Vec::new(), resize: Duration::ZERO, vision: Duration::ZERO };
        if let Vision::Blind(width) = self {
            encoded.features = vec![f32::NAN; *width * count];
            return Ok(encoded);
        }
        let width = self.width();
        encoded.features = vec![0.0; frames.len() * width];
        let most = match self {
            Vision::DinoV2(encoder) => encoder.batch(),
            _ => frames.len(),
        };
        let parts = frames.chunks(most.max(1)).zip(encoded.features.chunks_mut((most * width).max(1)));
        for (frames, out) in parts {
            let begun = Instant::now();
            match self {
                Vision::None | Vision::Blind(_) => {}
                Vision::Pixels(encoder) => {
                    encoder.encode(frames, out)?;
                    encoded.vision += begun.elapsed();
                }
                Vision::DinoV2(encoder) => {
                    let pictures = encoder.resized(frames);
                    encoded.resize += begun.elapsed();
                    let begun = Instant::now();
                    encoder.encode_resized(&pictures, out)?;
                    encoded.vision += begun.elapsed();
                }
            }
        }
        // Policies are trained on features from a cache, which stores them in half precision.
        encoded.features.iter_mut().for_each(|value| *value = f16::from_f32(*value).to_f32());
        Ok(encoded)
    }

    /// The shortest side that an image may have.
    pub(super) fn least_side(&self) -> usize {
        match self {
            // Three features for each of side × side cells.
            Vision::Pixels(encoder) => (encoder.width() / 3).isqrt(),
            Vision::None | Vision::DinoV2(_) | Vision::Blind(_) => 1,
        }
    }

    /// Features of one image.
    fn width(&self) -> usize {
        match self {
            Vision::None => 0,
            Vision::Pixels(encoder) => encoder.width(),
            Vision::DinoV2(encoder) => encoder.width(),
            Vision::Blind(width) => *width,
        }
    }
}

fn dinov2(name: &str, folder: &Path, fingerprint: Option<&str>, device: &Device) -> Result<DinoV2Encoder> {
    let format = |reason: String| Error::Format { path: folder.to_owned(), reason };
    let kind: Kind = name.rsplit(' ').next().unwrap_or_default().parse().map_err(format)?;
    let encoder = DinoV2Encoder::load(folder, kind, device, DinoV2::default_precision(device));
    let encoder = encoder.map_err(|error| format(error.to_string()))?;
    if encoder.name() != name {
        return Err(format(format!("has the weights of `{}`; the policy was trained on `{name}`", encoder.name())));
    }
    if fingerprint.is_some_and(|wanted| wanted != encoder.fingerprint()) {
        return Err(format(format!("has other weights of `{name}` than those that the policy was trained with")));
    }
    Ok(encoder)
}

/// Where weights may be: in the directory that the environment names, or in the cache of the Hugging Face Hub.
fn found(name: &str) -> Option<PathBuf> {
    let model = name.split(' ').next()?;
    let is_model =
        |folder: &PathBuf| folder.join("config.json").is_file() && folder.join("model.safetensors").is_file();
    let named = std::env::var_os(WEIGHTS).map(PathBuf::from);
    let own = named.iter().flat_map(|folder| [folder.clone(), folder.join(model)]).find(is_model);
    own.or_else(|| {
        let home = std::env::var_os("HF_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/huggingface")))?;
        let snapshots = home.join(format!("hub/models--facebook--{model}/snapshots"));
        let mut folders: Vec<PathBuf> = snapshots.read_dir().ok()?.flatten().map(|entry| entry.path()).collect();
        folders.sort();
        folders.into_iter().find(is_model)
    })
}
