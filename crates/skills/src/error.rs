//! What cannot be segmented, named or replayed, and what to give instead.

use clustering::ClusteringError;
use compression::{CompressError, CorpusError};
use language::{EvaluateError, MotorError, SignatureError, TermError};

/// Why there are no segments, no alphabet, no program or no actions. The messages stand alone: what was found, then what
/// to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what each kind and each field is")]
pub enum SkillError {
    #[error("`{name}` is {found}; give {wanted}")]
    BadSetting { name: &'static str, found: String, wanted: &'static str },
    #[error("actions have {found} columns, the layout says {wanted}; give the layout of these actions")]
    OtherWidth { found: usize, wanted: usize },
    #[error("there are {states} rows of states for {actions} rows of actions; give one for each")]
    OtherRows { states: usize, actions: usize },
    #[error("there are {found} labels for {wanted} segments; give one for each")]
    OtherLabels { found: usize, wanted: usize },
    #[error("segments cover {found} rows of an episode of {wanted}; give segments that cover it")]
    NotCovered { found: usize, wanted: usize },
    #[error("there are {segments} lists of segments and {calls} of calls for {episodes} episodes; give one for each")]
    OtherEpisodes { episodes: usize, segments: usize, calls: usize },
    #[error("there is no segment to fit an alphabet to; give at least one")]
    NoSegments,
    #[error("segment {segment} has no rows; give segments of one row or more")]
    EmptySegment { segment: usize },
    #[error("class {label} ({gripper}) is in no segment that the alphabet was fitted to")]
    UnknownClass { label: i64, gripper: String },
    #[error("skill {found} is not in an alphabet of {skills} skills; use the alphabet that made the call")]
    UnknownSkill { found: usize, skills: usize },
    #[error("found `{found}`, wanted a skill of the alphabet with a target for each group that it moves")]
    NotSkill { found: String },
    #[error("{what} of the compression cannot be read: {reason}; use the signature that it was made with")]
    NotRead { what: String, reason: String },
    #[error("only the world decides on `{found}`, so this program has no actions of its own; give one without choices")]
    Undecided { found: String },
    #[error("the program has more than {limit} steps; lower its counts")]
    TooLong { limit: usize },
    #[error(transparent)]
    Clustering(#[from] ClusteringError),
    #[error(transparent)]
    Term(#[from] TermError),
    #[error(transparent)]
    Signature(#[from] SignatureError),
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    #[error(transparent)]
    Motor(#[from] MotorError),
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    #[error(transparent)]
    Compress(#[from] CompressError),
}

/// Refuses a setting that is not a finite number of at least `least`.
pub(crate) fn at_least(name: &'static str, value: f64, least: f64, wanted: &'static str) -> Result<(), SkillError> {
    match value.is_finite() && value >= least {
        true => Ok(()),
        false => Err(SkillError::BadSetting { name, found: value.to_string(), wanted }),
    }
}
