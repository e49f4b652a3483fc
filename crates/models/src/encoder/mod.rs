//! The frozen visual encoder: DINOv2, read from a folder of weights.
//!
//! ```text
//! picture ──► 224×224 ──► patches of 14×14 ──► Transformer ──► tokens [1 + 256, D] ──► cls | mean | grid4
//! ```
//! [`DinoV2`] is the model, and [`DinoV2Encoder`] wraps it for the feature cache of `dataset`. A folder has the files of the
//! Hugging Face Hub, `config.json` and `model.safetensors`, in f16, bf16 or f32.
//!
//! A picture has 257 tokens, so for DINOv2-small the 21.3 M weights of products cost 10.9 GFLOP and attention 1.2 GFLOP.
//! Everything between the products is one pass over memory each ([`ops`](crate::ops)), so that the products dominate the
//! time on a CPU.

mod config;
mod dinov2;
mod error;
mod layer;
mod picture;
mod positions;
mod weights;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use candle_core::{DType, Device, Tensor};
use dataset::Frame;
use dataset::features::FrameEncoder;
use rayon::prelude::*;

pub use config::DinoV2Config;
pub use dinov2::DinoV2;
pub use error::EncoderError;
pub use picture::resized;

/// The side to which pictures are resized, in pixels: what DINOv2's own evaluations use, 16×16 patches.
const SIDE: usize = 224;

/// The version of the preprocessing, part of the fingerprint: increase it when the patches of a picture change, so that cached
/// features of the old patches are not used.
const PREPROCESSING: &str = "whole picture to 224×224, bicubic, version 1";

/// Cells of `grid4` along each side.
const CELLS: usize = 4;

/// How the tokens of a picture become features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// The class token, D values.
    #[default]
    Cls,
    /// The mean of the patches, D values.
    Mean,
    /// The means of the patches in 4×4 cells, line by line, 16 · D values. Knows where things are.
    Grid4,
}

impl Kind {
    /// The number of values for tokens of a width.
    pub fn width(self, hidden_size: usize) -> usize {
        match self {
            Kind::Cls | Kind::Mean => hidden_size,
            Kind::Grid4 => CELLS * CELLS * hidden_size,
        }
    }

    /// Features out of tokens. Cells of a grid that 4 does not divide differ by a patch.
    ///
    /// # Shapes
    /// `tokens`: `[B, 1 + rows · columns, D]`, each at least 4 for `grid4`; the result: `[B, width(D)]`.
    pub fn pool(self, tokens: &Tensor, (rows, columns): (usize, usize)) -> candle_core::Result<Tensor> {
        let (pictures, _, width) = tokens.dims3()?;
        match self {
            Kind::Cls => tokens.narrow(1, 0, 1)?.squeeze(1),
            Kind::Mean => tokens.narrow(1, 1, rows * columns)?.mean(1),
            Kind::Grid4 => {
                let patches = tokens.narrow(1, 1, rows * columns)?.reshape((pictures, rows, columns, width))?;
                let bounds = |cell: usize, count: usize| (cell * count / CELLS, (cell + 1) * count / CELLS);
                let mut cells = Vec::with_capacity(CELLS * CELLS);
                for (row, column) in (0..CELLS).flat_map(|row| (0..CELLS).map(move |column| (row, column))) {
                    let ((top, bottom), (left, right)) = (bounds(row, rows), bounds(column, columns));
                    let cell = patches.narrow(1, top, bottom - top)?.narrow(2, left, right - left)?;
                    cells.push(cell.mean((1, 2))?);
                }
                Tensor::cat(&cells, 1)
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Cls => "cls",
            Kind::Mean => "mean",
            Kind::Grid4 => "grid4",
        })
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        match text {
            "cls" => Ok(Kind::Cls),
            "mean" => Ok(Kind::Mean),
            "grid4" => Ok(Kind::Grid4),
            _ => Err(format!("`{text}` is not a kind of feature; give `cls`, `mean` or `grid4`")),
        }
    }
}

/// DINOv2 as an encoder of frames.
pub struct DinoV2Encoder {
    model: DinoV2,
    kind: Kind,
}

impl DinoV2Encoder {
    /// Loads the weights of a folder; see [`DinoV2::load`].
    pub fn load(folder: &Path, kind: Kind, device: &Device, precision: DType) -> Result<DinoV2Encoder, EncoderError> {
        Ok(DinoV2Encoder { model: DinoV2::load(folder, device, precision)?, kind })
    }
}

impl FrameEncoder for DinoV2Encoder {
    fn name(&self) -> String {
        format!("{} {}", self.model.config().name(), self.kind)
    }

    fn fingerprint(&self) -> String {
        let written = format!("{} {} {PREPROCESSING}", self.model.fingerprint(), self.kind);
        blake3::hash(written.as_bytes()).to_hex().to_string()
    }

    fn width(&self) -> usize {
        self.kind.width(self.model.config().hidden_size)
    }

    fn batch(&self) -> usize {
        if self.model.device().is_cpu() { 16 } else { 64 }
    }

    fn encode(&mut self, frames: &[Frame], out: &mut [f32]) -> Result<(), String> {
        self.encode_resized(&self.resized(frames), out)
    }
}

impl DinoV2Encoder {
    /// Pictures in the size that the model reads, one after the other.
    pub fn resized(&self, frames: &[Frame]) -> Vec<u8> {
        let side = self.side();
        let pictures: Vec<Vec<u8>> = frames.par_iter().map(|frame| picture::resized(frame, side, side)).collect();
        pictures.concat()
    }

    /// The features of pictures that are [resized](DinoV2Encoder::resized) already, or why there are none.
    ///
    /// # Shapes
    /// `out`: `[B, width]`.
    pub fn encode_resized(&mut self, pictures: &[u8], out: &mut [f32]) -> Result<(), String> {
        let side = self.side();
        let features = self.model.features(pictures, (pictures.len() / (side * side * 3), side, side), self.kind);
        let features = features.and_then(|features| Ok(features.flatten_all()?.to_vec1::<f32>()?));
        let features = features.map_err(|error| error.to_string())?;
        if let Some(at) = features.iter().position(|value| !value.is_finite()) {
            return Err(format!("value {} of a feature is not finite", at % self.width()));
        }
        out.copy_from_slice(&features);
        Ok(())
    }

    /// [`SIDE`], or for models with other patches than 14 the next lower multiple of theirs, at least four.
    fn side(&self) -> usize {
        let patch = self.model.config().patch_size;
        (SIDE / patch).max(CELLS) * patch
    }
}
