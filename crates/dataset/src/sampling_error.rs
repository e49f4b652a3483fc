//! What cannot be windowed, split or sampled, and what to ask for instead.

use crate::ids::EpisodeId;

/// The most fragments that one batch may have. Past this a batch size is a mistake, not a plan.
pub const MAX_BATCH: usize = 1 << 20;

/// Why there is no such index, split or sampler. The messages stand alone: what was found, then what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what each kind and each field is")]
pub enum SamplingError {
    #[error("a fragment cannot have 0 steps; give a length of 1 or more, such as 16")]
    NoLength,
    #[error("fragments cannot follow each other at a stride of 0; give a stride of 1 or more")]
    NoStride,
    #[error("there is no episode {episode}; choose from the {episodes} there are, counted from 0")]
    UnknownEpisode { episode: EpisodeId, episodes: usize },
    #[error("episode {episode} is chosen twice; name each episode once")]
    RepeatedEpisode { episode: EpisodeId },
    #[error("there are {found} fragments, at most {limit} can be sampled; take a larger stride or fewer episodes")]
    TooManyFragments { found: u128, limit: usize },

    #[error(
        "{}, so none can be held out to evaluate by; record a second episode of at least one task, or give episodes of the \
         same task the same instruction in `meta/tasks.parquet`",
        single(*tasks)
    )]
    SingleEpisodes { tasks: usize },
    #[error("a share of {share} cannot be held out; give at least 0 and less than 1, such as 0.2")]
    BadShare { share: f64 },
    #[error("there is no split `{name}`; {}", known(names))]
    UnknownSplit { name: String, names: Vec<String> },
    #[error("split `{name}` is `{found}`: {reason}; write first and end, such as `0:54`")]
    BadSplit { name: String, found: String, reason: &'static str },
    #[error("split `{name}` is `{found}`, there are {episodes} episodes; end it at {episodes} or before")]
    SplitPastEnd { name: String, found: String, episodes: usize },
    #[error("splits `{train}` and `{held_out}` share episode {episode}; an episode can be in one of them only")]
    SharedEpisode { train: String, held_out: String, episode: EpisodeId },

    #[error(
        "there is no fragment to sample: {too_short} episodes are shorter than {length} steps; take a shorter length \
         or more episodes"
    )]
    NoFragments { too_short: usize, length: usize },
    #[error("a batch cannot be empty; give a batch size of 1 or more")]
    NoBatch,
    #[error("a batch of {found} is too large; give a batch size of {MAX_BATCH} or less")]
    LargeBatch { found: usize },
}

fn single(tasks: usize) -> String {
    match tasks {
        1 => "the only task has a single episode".to_owned(),
        tasks => format!("each of the {tasks} tasks has a single episode"),
    }
}

fn known(names: &[String]) -> String {
    match names {
        [] => "the dataset names none, so split it by rounds or by share".to_owned(),
        names => format!("choose from `{}`", names.join("`, `")),
    }
}
