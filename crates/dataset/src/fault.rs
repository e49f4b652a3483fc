//! What can be wrong with a dataset: one variant for each kind of fault, with its data.
//!
//! A fault knows its message, the file it is in, what was wanted instead, and what to do. Reading stops at an [`Error`],
//! which holds one fault or more; [`validate`](crate::validate) collects all that it can find.

use std::fmt;

/// The command of the lerobot package that converts a dataset of format v2.1.
pub const CONVERT_V21: &str =
    "python -m lerobot.datasets.v30.convert_dataset_v21_to_v30 --repo-id=<user>/<name> --root=<directory>";

/// One thing that is wrong. `file` is always the path inside the dataset.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what each kind and each field is")]
pub enum Fault {
    // The dataset as a whole.
    #[error("there is no dataset in `{directory}`")]
    NoDataset { directory: String, found: String },
    #[error("the dataset has format {found}")]
    OldVersion { file: String, found: String },
    #[error("the dataset has format {found}, which is newer than this program")]
    NewVersion { file: String, found: String },

    // Files.
    #[error("`{file}` is missing")]
    MissingFile { file: String },
    #[error("`{file}` cannot be read: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("`{file}` has {bytes} bytes, at most {limit} are read")]
    TooLarge { file: String, bytes: u64, limit: u64 },
    #[error("`{file}` is no {format} file: {reason}")]
    Malformed { file: String, format: &'static str, reason: String },
    #[error("cannot write `{file}`: {reason}")]
    Unwritable { file: String, reason: String },

    // meta/info.json.
    #[error("`{key}` of `{file}` is {found}")]
    BadInfo { file: String, key: String, found: String, expected: String },
    #[error("`{file}` says {found} {what}, there are {counted}")]
    WrongTotal { file: String, what: &'static str, found: u64, counted: u64 },
    #[error("path `{template}` leaves the dataset's directory")]
    EscapingPath { file: String, template: String },

    // Which columns are what.
    #[error("no column is the {role}: {reason}")]
    NoRole { role: &'static str, reason: String, candidates: Vec<String> },
    #[error("there is no column `{key}`")]
    UnknownKey { key: String, candidates: Vec<String> },
    #[error("column `{key}` cannot be the {role}: it is {found}")]
    WrongRole { role: &'static str, key: String, found: String, expected: String },

    // Columns of parquet files.
    #[error("`{file}` has no column `{column}`")]
    MissingColumn { file: String, column: String, expected: String },
    #[error("column `{column}` of `{file}` is {found}")]
    WrongType { file: String, column: String, found: String, expected: String },
    #[error("column `{column}` of `{file}` has {found} values in row {row}")]
    WrongWidth { file: String, column: String, row: usize, found: usize, expected: usize },
    #[error("column `{column}` of `{file}` is empty in row {row}{more}", more = and_more(*.count))]
    MissingValue { file: String, column: String, row: usize, count: usize },
    #[error("column `{column}` of `{file}` is {value} in row {row}{more}", more = and_more(*.count))]
    NotFinite { file: String, column: String, row: usize, value: f64, count: usize },

    // Tasks and episodes.
    #[error("`{file}` has no task {task}, which {users} use")]
    UnknownTask { file: String, task: i64, users: String },
    #[error("task {task} occurs twice in `{file}`")]
    RepeatedTask { file: String, task: i64 },
    #[error("episode {episode} is missing from `{file}`")]
    MissingEpisode { file: String, episode: usize },
    #[error("episode {episode} occurs twice in `{file}`")]
    RepeatedEpisode { file: String, episode: usize },
    #[error("episode {episode} has length {length}, its rows are {from} to {to}")]
    WrongLength { file: String, episode: usize, length: u64, from: u64, to: u64 },
    #[error("episode {episode} starts at row {found}, the one before it ends at {expected}")]
    EpisodeGap { file: String, episode: usize, found: u64, expected: u64 },
    #[error("episode {episode} is empty")]
    EmptyEpisode { file: String, episode: usize },
    #[error("the dataset has no frames")]
    NoFrames,

    // Rows against the metadata.
    #[error("`{file}` has {found} rows, its episodes have {expected}")]
    WrongRows { file: String, found: u64, expected: u64 },
    #[error("column `{column}` of `{file}` is {found} in row {row}{more}", more = and_more(*.count))]
    WrongIndex { file: String, column: &'static str, row: usize, found: i64, expected: i64, count: usize },
    #[error("timestamp of row {row} of `{file}` is {found} s{more}", more = and_more(*.count))]
    WrongTimestamp { file: String, row: usize, found: f64, expected: f64, count: usize },
    #[error("`{file}` ends episode {episode} {found}", found = done_found(*.early))]
    WrongDone { file: String, episode: usize, early: bool },

    // Images and videos.
    #[error("`{file}` has no picture for episode {episode}: its time {wanted} s is past the end at {end} s")]
    ShortVideo { file: String, episode: usize, wanted: f64, end: f64 },
    #[error("`{file}` has no picture at {wanted} s, the nearest is at {nearest} s")]
    NoPicture { file: String, wanted: f64, nearest: f64 },
    #[error("episode {episode} runs from {from} s to {to} s in `{file}`")]
    WrongSpan { file: String, episode: usize, from: f64, to: f64, expected: f64 },
    #[error("`{file}` is encoded as {codec}")]
    UnknownCodec { file: String, codec: String },
    #[error("picture {picture} of `{file}` cannot be decoded: {reason}")]
    BadPicture { file: String, picture: String, reason: String },
    #[error("pictures of `{file}` are {found}")]
    WrongSize { file: String, camera: String, found: String, expected: String },
    #[error("`{file}` has {found} frames per second")]
    WrongRate { file: String, found: f64, expected: f64 },

    // meta/stats.json.
    #[error("`{key}` in `{file}` has {found}")]
    BadStats { file: String, key: String, found: String, expected: String },
    #[error("`{key}` in `{file}` is {found}, the data say {counted}")]
    StaleStats { file: String, key: String, found: String, counted: String },
}

fn and_more(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        more => format!(", and in {} more", more - 1),
    }
}

fn done_found(early: bool) -> &'static str {
    if early { "before its last row" } else { "without `next.done` in its last row" }
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
