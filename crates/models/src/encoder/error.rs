//! Why an encoder cannot be loaded or used.

use std::io;
use std::path::PathBuf;

use candle_core::DType;

/// What is wrong with a folder of weights, or with what the encoder is given.
#[derive(Debug, thiserror::Error)]
pub enum EncoderError {
    /// A file of the folder is not there or cannot be read.
    #[error("cannot read `{}`: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// `config.json` describes something else than a DINOv2 that is built here. All reasons are given.
    #[error("`{}` describes no encoder that is supported: {}", file.display(), problems.join("; "))]
    Config {
        /// The file.
        file: PathBuf,
        /// One for each key.
        problems: Vec<String>,
    },
    /// The file of weights is no safetensors file, or breaks off.
    #[error("`{}` is no whole safetensors file: {reason}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What its reader says.
        reason: String,
    },
    /// Tensors are missing, or have another shape than `config.json` wants. All are given.
    #[error("the tensors of `{}` are not those that `config.json` describes: {}", file.display(), problems.join("; "))]
    Tensors {
        /// The file.
        file: PathBuf,
        /// One for each tensor.
        problems: Vec<String>,
    },
    /// A precision that the device does not compute in.
    #[error("no {} on {device}: CPUs compute in f32, GPUs in f16, bf16 and f32", precision.as_str())]
    Precision {
        /// What was asked for.
        precision: DType,
        /// Where.
        device: String,
    },
    /// Pictures that cannot be cut into patches.
    #[error("{bytes} bytes are not {pictures} RGB pictures of {height}×{width}, both multiples of {patch}")]
    Pictures {
        /// Bytes that were given.
        bytes: usize,
        /// Pictures that were announced.
        pictures: usize,
        /// Their height in pixels.
        height: usize,
        /// Their width in pixels.
        width: usize,
        /// The side of a patch in pixels.
        patch: usize,
    },
    /// The tensor framework refused an operation.
    #[error("{0}")]
    Tensor(#[from] candle_core::Error),
}
