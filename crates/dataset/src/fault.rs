//! What can be wrong with a dataset: one variant for each kind of fault, with its data.
//!
//! A fault knows its message, the file it is in, what was wanted instead, and what to do. Reading stops at an [`Error`],
//! which holds one fault or more; [`validate`](crate::validate) collects all that it can find.

use std::fmt;

/// The module of the lerobot package that converts a dataset of format v2.1 in place. It looks for the dataset in
/// `<root>/<repo-id>`, and uploads the result unless it is told not to.
pub const CONVERT_V21: &str = "python -m lerobot.datasets.v30.convert_dataset_v21_to_v30";

/// One thing that is wrong. `file` is always the path inside the dataset.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what each kind and each field is")]
pub enum Fault {
    // The dataset as a whole.
    #[error("there is no dataset in `{directory}`: {found}")]
    NoDataset { directory: String, found: String, near: Vec<String> },
    #[error("the dataset has the older format {found}")]
    OldVersion { file: String, found: String, directory: Option<String> },
    #[error("the dataset has format {found}, which is newer than this program knows")]
    NewVersion { file: String, found: String },

    #[error("`{one}` and `{other}` cannot be joined: {what}")]
    Unjoinable { one: String, other: String, what: String },

    // Files.
    #[error("`{file}` is missing")]
    MissingFile { file: String },
    #[error("`{file}` cannot be read: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("`{file}` has {bytes} bytes, at most {limit} are read")]
    TooLarge { file: String, bytes: u64, limit: u64 },
    #[error("`{file}` is no {format} file: {reason}")]
    Malformed { file: String, format: &'static str, reason: String },
    #[error("`{file}` is a pointer of Git LFS, not the file itself")]
    LfsPointer { file: String },
    #[error("cannot write `{file}`: {reason}")]
    Unwritable { file: String, reason: String },

    // meta/info.json.
    #[error("`{key}` of `{file}` is {found}")]
    BadInfo { file: String, key: String, found: String, expected: String },
    #[error("`total_{what}` of `{file}` is {found}, the dataset has {counted}")]
    WrongTotal { file: String, what: &'static str, found: u64, counted: u64 },
    #[error("the path `{template}` leaves the dataset's directory")]
    EscapingPath { file: String, template: String },

    // Which columns are what.
    #[error("no column is the {role}: {reason}")]
    NoRole { role: &'static str, reason: String, candidates: Vec<String> },
    #[error("there is no column `{key}`")]
    UnknownKey { key: String, candidates: Vec<String> },
    #[error("there is no {what} `{key}`")]
    UnknownPart { what: &'static str, key: String, candidates: Vec<String> },
    #[error("`{one}` and `{other}` contradict each other")]
    Contradiction { one: String, other: String },
    #[error("column `{key}` cannot be the {role}: it is {found}")]
    WrongRole { role: &'static str, key: String, found: String, expected: String },

    // Columns of parquet files.
    #[error("`{file}` has no column `{column}`")]
    MissingColumn { file: String, column: String, expected: String },
    #[error("`{file}` has a column `{column}` that `meta/info.json` does not list")]
    ExtraColumn { file: String, column: String },
    #[error("column `{column}` of `{file}` is {found}")]
    WrongType { file: String, column: String, found: String, expected: String },
    #[error("column `{column}` of `{file}` has {found} in row {row}", found = values(*.found))]
    WrongWidth { file: String, column: String, row: usize, found: usize, expected: usize },
    #[error("column `{column}` of `{file}` is empty in row {row}{more}", more = and_more(*.count))]
    MissingValue { file: String, column: String, row: usize, count: usize },
    #[error("column `{column}` of `{file}` is {value} in row {row}{of}{more}", of = of_episode(*.episode), more = and_more(*.count))]
    NotFinite { file: String, column: String, row: usize, episode: Option<usize>, value: f64, count: usize },
    #[error("column `{column}` of `{file}` is {value} in row {row}{of}{more}", value = short(*.value), of = of_episode(*.episode), more = and_more(*.count))]
    Implausible {
        file: String,
        column: String,
        row: usize,
        episode: Option<usize>,
        value: f64,
        usual: f64,
        count: usize,
    },

    // Tasks and episodes.
    #[error("`{file}` has no task {task}, but later ones")]
    MissingTask { file: String, task: i64 },
    #[error("`{file}` has no task {task}, used by {users}")]
    UnknownTask { file: String, task: i64, users: String },
    #[error("episode {episode} has the task `{task}`, which is not in `meta/tasks.parquet`{more}", more = and_so(*.count, "episode"))]
    UnknownWords { file: String, episode: usize, task: String, count: usize },
    #[error("task {task} occurs twice in `{file}`")]
    RepeatedTask { file: String, task: i64 },
    #[error("episode {episode} is missing from `{file}`{more}", more = and_so(*.count, "episode"))]
    MissingEpisode { file: String, episode: usize, count: usize },
    #[error("episode {episode} occurs a second time in `{file}`{more}", more = and_so(*.count, "episode"))]
    RepeatedEpisode { file: String, episode: usize, count: usize },
    #[error("episode {episode} has length {length}, its rows are {from} to {to}{more}", more = and_so(*.count, "episode"))]
    WrongLength { file: String, episode: usize, length: u64, from: u64, to: u64, count: usize },
    #[error("episode {episode} starts at row {found}, the one before it ends at {expected}{more}", more = and_so(*.count, "episode"))]
    EpisodeGap { file: String, episode: usize, found: u64, expected: u64, count: usize },
    #[error("episode {episode} is empty")]
    EmptyEpisode { file: String, episode: usize },
    #[error("the episodes of `{file}` are not in one stretch: episode {episode} follows one of another file{more}", more = and_so(*.count, "episode"))]
    ScatteredFile { file: String, episode: usize, count: usize },
    #[error("the dataset has no frames")]
    NoFrames,

    // Rows against the metadata.
    #[error("`{file}` has {found} rows, its episodes have {expected}")]
    WrongRows { file: String, found: u64, expected: u64 },
    #[error("column `{column}` of `{file}` is {found} in row {row}{more}", more = and_more(*.count))]
    WrongIndex { file: String, column: &'static str, row: usize, found: i64, expected: i64, count: usize },
    #[error("the timestamp of `{file}` is {found} s in row {row}{more}", found = seconds(*.found), more = and_more(*.count))]
    WrongTimestamp { file: String, row: usize, found: f64, expected: f64, count: usize },
    #[error("`{column}` of `{file}` {found} in row {row}{more}", found = done_found(*.early), more = and_more(*.count))]
    WrongDone { file: String, column: String, row: usize, early: bool, count: usize },

    // Images and videos.
    #[error("`{file}` has no picture for episode {episode}: its time {wanted} s is past the end at {end} s", wanted = seconds(*.wanted), end = seconds(*.end))]
    ShortVideo { file: String, episode: usize, wanted: f64, end: f64 },
    #[error("`{file}` has no picture at {wanted} s, the nearest is at {nearest} s", wanted = seconds(*.wanted), nearest = seconds(*.nearest))]
    NoPicture { file: String, wanted: f64, nearest: f64 },
    #[error("`{file}` ends at {end} s, but episode {episode} has a frame at {wanted} s{more}", end = seconds(*.end), wanted = seconds(*.wanted), more = and_so(*.count, "episode"))]
    EndsEarly { file: String, episode: usize, wanted: f64, end: f64, count: usize },
    #[error("`{file}` has no picture for episode {episode} at {wanted} s{more}", wanted = seconds(*.wanted), more = and_so(*.count, "frame"))]
    OffTime { file: String, episode: usize, wanted: f64, nearest: f64, count: usize },
    #[error("episode {episode} starts at {from} s in `{file}`, before the episode in front of it ends", from = seconds(*.from))]
    SharedPictures { file: String, episode: usize, from: f64, before: f64 },
    #[error("there is no frame {frame}, the dataset has {frames}")]
    NoFrame { frame: usize, frames: usize },
    #[error("episode {episode} runs from {from} s to {to} s in `{file}`{more}", from = seconds(*.from), to = seconds(*.to), more = and_so(*.count, "episode"))]
    WrongSpan { file: String, episode: usize, from: f64, to: f64, expected: f64, count: usize },
    #[error("`{file}` is encoded as {codec}")]
    UnknownCodec { file: String, codec: String },
    #[error("picture {picture} of `{file}` cannot be decoded: {reason}")]
    BadPicture { file: String, picture: String, reason: String },
    #[error("pictures of `{file}` are {found}")]
    WrongSize { file: String, camera: String, found: String, expected: String },
    #[error("`{file}` has {found} pictures per second", found = seconds(*.found))]
    WrongRate { file: String, found: f64, expected: f64 },

    #[error("features cannot be kept in `{directory}`: {reason}")]
    NoCache { directory: String, reason: String },
    #[error("encoder `{encoder}` gives no features: {reason}")]
    NoFeatures { encoder: String, reason: String },

    // meta/stats.json.
    #[error("`{key}` in `{file}` has {found}")]
    BadStats { file: String, key: String, found: String, expected: String },
    #[error("`{key}` in `{file}` is {found}, the data say {counted}")]
    StaleStats { file: String, key: String, found: String, counted: String },
    #[error("`{file}` says nothing about `{key}`")]
    NoStats { file: String, key: String },

    // Besides.
    #[error("`{file}` belongs to no episode{more}", more = and_so(*.count, "file"))]
    ExtraFile { file: String, count: usize },
}

fn and_more(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        2 => ", and in 1 more row".to_string(),
        more => format!(", and in {} more rows", more - 1),
    }
}

fn of_episode(episode: Option<usize>) -> String {
    episode.map_or_else(String::new, |episode| format!(" (episode {episode})"))
}

/// A number of any size in a few digits.
pub(crate) fn short(value: f64) -> String {
    if value.abs() >= 1e6 { format!("{value:.1e}") } else { value.to_string() }
}

fn and_so(count: usize, what: &str) -> String {
    match count {
        0 | 1 => String::new(),
        2 => format!(", and so on for 1 more {what}"),
        more => format!(", and so on for {} more {what}s", more - 1),
    }
}

fn values(count: usize) -> String {
    if count == 1 { "1 value".to_string() } else { format!("{count} values") }
}

/// A time or a rate without the digits that only rounding put there.
pub(crate) fn seconds(value: f64) -> String {
    if value.abs() >= 1e9 {
        return format!("{value:e}");
    }
    let text = format!("{value:.4}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

fn done_found(early: bool) -> &'static str {
    if early { "ends an episode before its last frame" } else { "does not end an episode at its last frame" }
}

/// Why a dataset could not be read or written: one fault or more.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    faults: Vec<Fault>,
}

impl Error {
    /// An error of several faults; `None` if there are none.
    pub fn of(faults: Vec<Fault>) -> Option<Error> {
        (!faults.is_empty()).then_some(Error { faults })
    }

    /// The faults, at least one.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The faults, at least one.
    pub fn into_faults(self) -> Vec<Fault> {
        self.faults
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error { faults: vec![fault] }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.faults.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_times_are_short_texts() {
        let shown = [0.1 + 0.2, 12.0, -1e11, 1e300, f64::INFINITY, f64::NAN].map(seconds);
        assert_eq!(shown, ["0.3", "12", "-1e11", "1e300", "inf", "NaN"]);
    }
}
