//! What can go wrong between files, tensors and training.

use std::path::PathBuf;

/// Why something could not be built, loaded, trained or saved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The tensor framework refused an operation.
    #[error("{0}")]
    Tensor(#[from] candle_core::Error),
    /// A dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// A device was asked for that is not there.
    #[error("no device `{wanted}`: {reason}")]
    NoDevice {
        /// What was asked for.
        wanted: String,
        /// Why it cannot be had, and what can.
        reason: String,
    },
    /// A setting that cannot be.
    #[error("{0}")]
    Config(String),
    /// A file could not be read or written.
    #[error("cannot read or write `{path}`: {reason}", path = path.display(), reason = dataset::files::reason(source))]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}: {reason}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What was found, and what was wanted.
        reason: String,
    },
    /// Processes that train together lost each other.
    #[error("rank {rank}: {reason}")]
    Transport {
        /// The rank that noticed.
        rank: usize,
        /// What happened.
        reason: String,
    },
    /// Training stopped because it went wrong.
    #[error("training stopped at step {step}: {reason}")]
    Diverged {
        /// The step.
        step: u64,
        /// What was seen, and where the last good weights are.
        reason: String,
    },
}

/// What functions here return.
pub type Result<T> = std::result::Result<T, Error>;
