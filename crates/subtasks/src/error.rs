//! Why a dataset cannot be annotated.

/// What can go wrong between a dataset and its subtasks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The dataset could not be read or written.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// Points could not be clustered or scored.
    #[error(transparent)]
    Clustering(#[from] clustering::ClusteringError),
    /// Motions could not be cut or described.
    #[error(transparent)]
    Skills(#[from] skills::SkillError),
    /// A vocabulary cannot be used; all that is wrong with it.
    #[error("not a file of names: {}", .0.join("; "))]
    Names(Vec<String>),
    /// A file of subtasks cannot be used; all that is wrong with it.
    #[error("not a file of subtasks for this dataset: {}", .0.join("; "))]
    Segments(Vec<String>),
    /// The skills of a run do not fit.
    #[error("{0}")]
    Run(String),
}

/// What functions here return.
pub type Result<T> = std::result::Result<T, Error>;
