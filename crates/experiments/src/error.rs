//! What can go wrong between a dataset and a result.

use std::path::{Path, PathBuf};

/// Why an experiment could not be set up, run or read again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A model could not be built, trained or loaded.
    #[error(transparent)]
    Models(#[from] models::Error),
    /// A dataset could not be read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// There is no such split or sampler.
    #[error(transparent)]
    Sampling(#[from] dataset::SamplingError),
    /// Points could not be clustered or scored.
    #[error(transparent)]
    Clustering(#[from] clustering::ClusteringError),
    /// Motions could not be made into skills.
    #[error(transparent)]
    Skills(#[from] skills::SkillError),
    /// A robot's columns could not be read as motions.
    #[error(transparent)]
    Subtasks(#[from] subtasks::Error),
    /// A library cannot be used.
    #[error(transparent)]
    Library(#[from] compression::LibraryError),
    /// Programs cannot be refactored.
    #[error(transparent)]
    Programs(#[from] compression::LoadError),
    /// A report cannot be written.
    #[error(transparent)]
    Report(#[from] report::ReportError),
    /// There is no such dataset.
    #[error("there is no dataset `{written}`")]
    NoDataset {
        /// As it was asked for.
        written: String,
    },
    /// A dataset's features were not made, or cannot be told apart.
    #[error("{reason}")]
    NoFeatures {
        /// What was found, and what was looked for.
        reason: String,
        /// What makes them.
        advice: String,
    },
    /// A run directory cannot be written into.
    #[error("`{}` {reason}", run.display())]
    RunExists {
        /// The directory.
        run: PathBuf,
        /// What it has.
        reason: String,
    },
    /// The user interrupted the run; what is finished is stored.
    #[error("interrupted; finished work is stored")]
    Interrupted,
    /// Invalid settings, all of them.
    #[error("{}", .0.join("; "))]
    Settings(Vec<String>),
    /// Things that do not belong together.
    #[error("{0}")]
    Mismatch(String),
    /// A file or directory could not be written.
    #[error("cannot write to `{}`: {}", path.display(), dataset::files::reason(source))]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file could not be read.
    #[error("cannot read `{}`: {}", path.display(), dataset::files::reason(source))]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What was found, and what was wanted.
        reason: String,
    },
}

/// What functions here return.
pub type Result<T> = std::result::Result<T, Error>;

/// Maps an interruption to `None`.
pub fn unless_interrupted<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(Error::Interrupted) => Ok(None),
        other => other.map(Some),
    }
}

impl From<candle_core::Error> for Error {
    fn from(error: candle_core::Error) -> Error {
        Error::Models(error.into())
    }
}

impl Error {
    /// A file or directory that could not be written.
    pub(crate) fn write(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
        |source| Error::Write { path: path.to_owned(), source }
    }

    /// A file that could not be read.
    pub(crate) fn file(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
        |source| Error::File { path: path.to_owned(), source }
    }

    /// As the trainer expects it from an objective.
    pub(crate) fn for_trainer(self) -> models::Error {
        match self {
            Error::Models(error) => error,
            other => models::Error::Config(other.to_string()),
        }
    }
}
