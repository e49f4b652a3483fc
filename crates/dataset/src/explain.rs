//! What a fault means for whoever has it: a code for programs, the file, what was wanted, and what to do.
//!
//! Messages say what was found; this module says the rest, in the shape that all our errors have:
//!
//! ```text
//! error: column `action` of `data/chunk-000/file-000.parquet` has 6 values in row 12
//!   expected  7 values, as `meta/info.json` says
//! hint: …
//! ```

use serde::Serialize;

use crate::episodes::EPISODES;
use crate::fault::{CONVERT_V21, Fault, seconds, short};
use crate::info::INFO;

/// Whether a dataset can be used all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something would be read wrongly, or not at all.
    Error,
    /// What is read is right; something beside it is not.
    Warning,
}

/// All that there is to say about a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// See [`Fault::kind`].
    pub kind: &'static str,
    /// See [`Fault::severity`].
    pub severity: Severity,
    /// What was found.
    pub message: String,
    /// The path inside the dataset.
    pub file: Option<String>,
    /// What was wanted.
    pub expected: Option<String>,
    /// What to do.
    pub hint: Option<String>,
}

/// The faults as a person reads them, one below the other; a hint that many share is given once.
pub fn explain(faults: &[Fault]) -> String {
    let mut text = String::new();
    let mut given: Vec<String> = Vec::new();
    for (at, fault) in faults.iter().enumerate() {
        let Explanation { severity, message, file, expected, hint, .. } = fault.explanation();
        let named = file.as_ref().is_some_and(|file| message.contains(&format!("`{file}`")));
        let [file, expected] = [file.filter(|_| !named), expected].map(|fact| fact.as_deref().map(printable));
        // Only hints have lines of their own.
        let hint = hint.map(|hint| hint.split('\n').map(printable).collect::<Vec<_>>().join("\n"));
        let message = printable(&message);
        let separator = if at > 0 { "\n" } else { "" };
        let word = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        text.push_str(&format!("{separator}{word}: {message}\n"));
        // The names of facts line up.
        let width = if expected.is_some() { "expected".len() } else { "file".len() };
        for (name, value) in [("file", file), ("expected", expected)] {
            if let Some(value) = value {
                text.push_str(&format!("  {name:width$}  {value}\n"));
            }
        }
        if let Some(hint) = hint.filter(|hint| !given.contains(hint)) {
            text.push_str(&format!("hint: {hint}\n"));
            given.push(hint);
        }
    }
    text
}

/// A text of a dataset as a terminal may have it: what would move the cursor, change colours or turn the direction of
/// writing is written as `\u{1b}`.
pub fn printable(text: &str) -> String {
    let unseen = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match unseen(letter) {
            true => shown.extend(letter.escape_unicode()),
            false => shown.push(letter),
        }
    }
    shown
}

impl Fault {
    /// All of it.
    pub fn explanation(&self) -> Explanation {
        Explanation {
            kind: self.kind(),
            severity: self.severity(),
            message: self.to_string(),
            file: self.file().map(String::from),
            expected: self.expected(),
            hint: self.hint(),
        }
    }

    /// A code that stays the same from version to version.
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::NoDataset { .. } => "no-dataset",
            Fault::OldVersion { .. } => "old-version",
            Fault::NewVersion { .. } => "new-version",
            Fault::Unjoinable { .. } => "unjoinable",
            Fault::MissingFile { .. } => "missing-file",
            Fault::Unreadable { .. } => "unreadable",
            Fault::TooLarge { .. } => "too-large",
            Fault::Malformed { .. } => "malformed",
            Fault::LfsPointer { .. } => "lfs-pointer",
            Fault::Unwritable { .. } => "unwritable",
            Fault::BadInfo { .. } => "bad-info",
            Fault::WrongTotal { .. } => "wrong-total",
            Fault::EscapingPath { .. } => "escaping-path",
            Fault::NoRole { .. } => "no-role",
            Fault::UnknownKey { .. } => "unknown-key",
            Fault::UnknownPart { .. } => "unknown-part",
            Fault::Contradiction { .. } => "contradiction",
            Fault::WrongRole { .. } => "wrong-role",
            Fault::MissingColumn { .. } => "missing-column",
            Fault::ExtraColumn { .. } => "extra-column",
            Fault::WrongType { .. } => "wrong-type",
            Fault::WrongWidth { .. } => "wrong-width",
            Fault::MissingValue { .. } => "missing-value",
            Fault::NotFinite { .. } => "not-finite",
            Fault::Implausible { .. } => "implausible",
            Fault::MissingTask { .. } => "missing-task",
            Fault::UnknownTask { .. } => "unknown-task",
            Fault::UnknownWords { .. } => "unknown-words",
            Fault::RepeatedTask { .. } => "repeated-task",
            Fault::MissingEpisode { .. } => "missing-episode",
            Fault::RepeatedEpisode { .. } => "repeated-episode",
            Fault::WrongLength { .. } => "wrong-length",
            Fault::EpisodeGap { .. } => "episode-gap",
            Fault::EmptyEpisode { .. } => "empty-episode",
            Fault::ScatteredFile { .. } => "scattered-file",
            Fault::NoFrames => "no-frames",
            Fault::WrongRows { .. } => "wrong-rows",
            Fault::WrongIndex { .. } => "wrong-index",
            Fault::WrongTimestamp { .. } => "wrong-timestamp",
            Fault::WrongDone { .. } => "wrong-done",
            Fault::ShortVideo { .. } | Fault::EndsEarly { .. } => "short-video",
            Fault::NoPicture { .. } | Fault::OffTime { .. } => "no-picture",
            Fault::NoFeatures { .. } => "no-features",
            Fault::NoCache { .. } => "no-cache",
            Fault::SharedPictures { .. } => "shared-pictures",
            Fault::WrongSpan { .. } => "wrong-span",
            Fault::UnknownCodec { .. } => "unknown-codec",
            Fault::BadPicture { .. } => "bad-picture",
            Fault::WrongSize { .. } => "wrong-size",
            Fault::WrongRate { .. } => "wrong-rate",
            Fault::BadStats { .. } => "bad-stats",
            Fault::StaleStats { .. } => "stale-stats",
            Fault::NoStats { .. } => "no-stats",
            Fault::ExtraFile { .. } => "extra-file",
            Fault::NoFrame { .. } => "no-frame",
        }
    }

    /// Whether the dataset can be used all the same.
    pub fn severity(&self) -> Severity {
        match self {
            Fault::StaleStats { .. } | Fault::NoStats { .. } | Fault::ExtraFile { .. } | Fault::ExtraColumn { .. } => {
                Severity::Warning
            }
            // Statistics can be computed again from the data.
            Fault::MissingFile { file } if file == STATS => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// The path inside the dataset, where the fault is in a file.
    pub fn file(&self) -> Option<&str> {
        match self {
            Fault::OldVersion { file, .. }
            | Fault::NewVersion { file, .. }
            | Fault::MissingFile { file }
            | Fault::Unreadable { file, .. }
            | Fault::TooLarge { file, .. }
            | Fault::Malformed { file, .. }
            | Fault::LfsPointer { file }
            | Fault::Unwritable { file, .. }
            | Fault::BadInfo { file, .. }
            | Fault::WrongTotal { file, .. }
            | Fault::EscapingPath { file, .. }
            | Fault::MissingColumn { file, .. }
            | Fault::ExtraColumn { file, .. }
            | Fault::WrongType { file, .. }
            | Fault::WrongWidth { file, .. }
            | Fault::MissingValue { file, .. }
            | Fault::NotFinite { file, .. }
            | Fault::Implausible { file, .. }
            | Fault::MissingTask { file, .. }
            | Fault::UnknownTask { file, .. }
            | Fault::UnknownWords { file, .. }
            | Fault::RepeatedTask { file, .. }
            | Fault::MissingEpisode { file, .. }
            | Fault::RepeatedEpisode { file, .. }
            | Fault::WrongLength { file, .. }
            | Fault::EpisodeGap { file, .. }
            | Fault::EmptyEpisode { file, .. }
            | Fault::ScatteredFile { file, .. }
            | Fault::WrongRows { file, .. }
            | Fault::WrongIndex { file, .. }
            | Fault::WrongTimestamp { file, .. }
            | Fault::WrongDone { file, .. }
            | Fault::ShortVideo { file, .. }
            | Fault::EndsEarly { file, .. }
            | Fault::NoPicture { file, .. }
            | Fault::OffTime { file, .. }
            | Fault::SharedPictures { file, .. }
            | Fault::WrongSpan { file, .. }
            | Fault::UnknownCodec { file, .. }
            | Fault::BadPicture { file, .. }
            | Fault::WrongSize { file, .. }
            | Fault::WrongRate { file, .. }
            | Fault::BadStats { file, .. }
            | Fault::StaleStats { file, .. }
            | Fault::NoStats { file, .. }
            | Fault::ExtraFile { file, .. } => Some(file),
            _ => None,
        }
    }

    /// What was wanted, where the message does not say it.
    pub fn expected(&self) -> Option<String> {
        Some(match self {
            Fault::NoDataset { .. } => format!("a directory with `{INFO}` in it"),
            Fault::OldVersion { .. } | Fault::NewVersion { .. } => "v3.0, or a later v3".to_string(),
            Fault::BadInfo { expected, .. }
            | Fault::WrongRole { expected, .. }
            | Fault::MissingColumn { expected, .. }
            | Fault::WrongType { expected, .. }
            | Fault::WrongSize { expected, .. }
            | Fault::BadStats { expected, .. } => expected.clone(),
            Fault::EscapingPath { .. } => "a path below the dataset's directory, without `..`".to_string(),
            Fault::NoRole { candidates, .. }
            | Fault::UnknownKey { candidates, .. }
            | Fault::UnknownPart { candidates, .. }
                if !candidates.is_empty() =>
            {
                format!("one of {}", listed(candidates))
            }
            Fault::NoRole { role, .. } => format!("a feature for the {role}, such as `{}`", usual(role)),
            Fault::WrongWidth { expected: 1, .. } => format!("1 value, as `{INFO}` says"),
            Fault::WrongWidth { expected, .. } => format!("{expected} values, as `{INFO}` says"),
            Fault::MissingValue { .. } => "a value in every row".to_string(),
            Fault::NotFinite { .. } => "finite numbers".to_string(),
            Fault::Implausible { usual, .. } => {
                format!("a number of the usual size: half of the values of this column are below {}", short(*usual))
            }
            Fault::WrongLength { length, from, to, .. } => {
                format!("a length of {}, or rows that are {length} apart", to.saturating_sub(*from))
            }
            Fault::MissingEpisode { .. } => "every number from 0 to one less than the number of episodes".to_string(),
            Fault::EmptyEpisode { .. } | Fault::NoFrames => "at least one frame".to_string(),
            Fault::ScatteredFile { .. } => "all episodes of a data file one after the other".to_string(),
            Fault::WrongIndex { expected, column, .. } => match *column {
                "index" => format!("{expected}, its place in the whole dataset"),
                "frame_index" => format!("{expected}, its place in its episode"),
                _ => format!("{expected}, the episode that has this row"),
            },
            Fault::WrongTimestamp { expected, .. } => {
                format!("{} s, its `frame_index` divided by the frames per second", seconds(*expected))
            }
            Fault::WrongDone { .. } => "true in the last row of every episode, and nowhere else".to_string(),
            Fault::OffTime { nearest, .. } => {
                format!("one at that time to within 0.0001 s; the nearest is at {} s", seconds(*nearest))
            }
            Fault::SharedPictures { before, .. } => format!("{} s or later", seconds(*before)),
            Fault::WrongSpan { expected, .. } => {
                format!("{} s, its length divided by the frames per second", seconds(*expected))
            }
            Fault::UnknownCodec { .. } => "AV1 or H.264".to_string(),
            Fault::BadPicture { .. } => "a picture that decodes".to_string(),
            Fault::WrongRate { expected, .. } => format!("{}, as `{INFO}` says", seconds(*expected)),
            _ => return None,
        })
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Fault::NoDataset { near, .. } if !near.is_empty() => format!("did you mean {}?", listed(near)),
            Fault::NoDataset { .. } => "check the path, and the directory that you are in".to_string(),
            Fault::OldVersion { directory, .. } => convert_hint(directory.as_deref()),
            Fault::NewVersion { .. } => "use a newer version of this program".to_string(),
            Fault::Unjoinable { .. } => {
                "columns of states and actions, names of cameras and frames per second must agree: run datasets of different \
                 robots with `--each`, one after the other, or convert one of them"
                    .to_string()
            }
            Fault::MissingFile { file } if file == STATS => STATS_HINT.to_string(),
            Fault::MissingFile { .. } | Fault::Malformed { .. } | Fault::WrongRows { .. } => COPY_HINT.to_string(),
            Fault::LfsPointer { .. } => "run `git lfs pull` in the dataset's directory".to_string(),
            Fault::Unreadable { .. } => "check that you may read the file".to_string(),
            Fault::Unwritable { reason, .. } if reason.contains("exists") => {
                "choose another directory, or remove that one first".to_string()
            }
            Fault::Unwritable { file, reason } if reason.contains("write-protected") => {
                let all = if reason.starts_with("the folder") { "" } else { "-R " };
                format!("allow writing with `chmod {all}u+w {file}`, or write a copy to a new directory instead")
            }
            Fault::Unwritable { .. } => "choose a directory that you may write to and that has room".to_string(),
            Fault::NoCache { .. } => {
                "name a directory that you may write to and that has room: `--cache DIR` of `features`, `--features DIR` of other \
                 commands, or `REFACTOR_VLA_CACHE` for all of them"
                    .to_string()
            }
            Fault::BadInfo { .. } | Fault::EscapingPath { .. } => format!("correct `{INFO}` with an editor"),
            Fault::WrongTotal { what, counted, .. } => {
                format!("set `total_{what}` of `{INFO}` to {counted}, unless files are missing")
            }
            Fault::NoRole { role, .. } => format!("name the column with `--{role}-key`"),
            Fault::UnknownPart { what: "group", .. } => {
                "run `refactor-vla data inspect <dataset>` to list the groups, or give action columns such as `6-8`".to_string()
            }
            Fault::Contradiction { .. } => "leave one of them out".to_string(),
            Fault::UnknownPart { .. } => "name an action column, or give its number from 0, or `none`".to_string(),
            Fault::UnknownKey { .. } | Fault::WrongRole { .. } => {
                "run `refactor-vla data inspect <dataset>` to list the columns".to_string()
            }
            Fault::MissingColumn { file, .. } | Fault::WrongType { file, .. } if file.starts_with("meta/") => {
                "copy or download the dataset again, or convert it again with lerobot".to_string()
            }
            Fault::MissingColumn { .. } | Fault::WrongType { .. } | Fault::WrongWidth { .. } => {
                format!("correct the feature in `{INFO}`, or write the file again")
            }
            Fault::ExtraColumn { .. } => format!("list it under `features` of `{INFO}`, or leave it: it is not read"),
            Fault::MissingValue { .. } => "fill the value in, or remove the episode".to_string(),
            Fault::NotFinite { .. } | Fault::Implausible { .. } => NUMBERS_HINT.to_string(),
            Fault::UnknownTask { .. } | Fault::UnknownWords { .. } => "add the task to `meta/tasks.parquet`".to_string(),
            Fault::MissingTask { .. } | Fault::RepeatedTask { .. } => "number the tasks from 0, each once".to_string(),
            Fault::MissingEpisode { .. }
            | Fault::RepeatedEpisode { .. }
            | Fault::WrongLength { .. }
            | Fault::EpisodeGap { .. }
            | Fault::EmptyEpisode { .. } => {
                "such episodes come from a recording or a merge that broke off; remove them with lerobot, or merge again"
                    .to_string()
            }
            Fault::ScatteredFile { .. } => {
                format!("check `data/chunk_index` and `data/file_index` in `{EPISODES}`, or write the dataset again")
            }
            Fault::WrongIndex { .. } => "write the data files again: these columns are counters".to_string(),
            Fault::WrongTimestamp { .. } => format!(
                "check `fps` of `{INFO}`; if it is right, frames were lost in recording, and pictures would not match rows"
            ),
            Fault::WrongDone { .. } => "returns would be cut at the wrong frame; write the column again".to_string(),
            Fault::ShortVideo { .. }
            | Fault::EndsEarly { .. }
            | Fault::NoPicture { .. }
            | Fault::OffTime { .. }
            | Fault::WrongSpan { .. }
            | Fault::SharedPictures { .. }
            | Fault::WrongRate { .. } => "pictures would not match rows; encode the video again from its pictures".to_string(),
            Fault::UnknownCodec { .. } => "encode it again, such as with `ffmpeg -i <old> -c:v libx264 <new>`".to_string(),
            Fault::BadPicture { .. } => COPY_HINT.to_string(),
            Fault::WrongSize { camera, .. } => format!("correct the shape of `{camera}` in `{INFO}`"),
            Fault::NoStats { .. } => STATS_HINT.to_string(),
            Fault::BadStats { .. } | Fault::StaleStats { .. } => {
                format!("regenerate `{STATS}` with lerobot, which needs it; here statistics can be computed from the data")
            }
            Fault::ExtraFile { .. } => "delete it if it is a leftover; it is not read".to_string(),
            _ => return None,
        })
    }

    /// The number of places that the fault stands for, where it counts them.
    pub(crate) fn count_mut(&mut self) -> Option<&mut usize> {
        match self {
            Fault::MissingValue { count, .. }
            | Fault::NotFinite { count, .. }
            | Fault::Implausible { count, .. }
            | Fault::UnknownWords { count, .. }
            | Fault::MissingEpisode { count, .. }
            | Fault::RepeatedEpisode { count, .. }
            | Fault::WrongLength { count, .. }
            | Fault::EpisodeGap { count, .. }
            | Fault::ScatteredFile { count, .. }
            | Fault::WrongIndex { count, .. }
            | Fault::WrongTimestamp { count, .. }
            | Fault::WrongDone { count, .. }
            | Fault::EndsEarly { count, .. }
            | Fault::OffTime { count, .. }
            | Fault::WrongSpan { count, .. }
            | Fault::ExtraFile { count, .. } => Some(count),
            _ => None,
        }
    }
}

const STATS: &str = "meta/stats.json";
const STATS_HINT: &str =
    "here statistics are computed from the data; lerobot needs the file, so regenerate it with lerobot";
const NUMBERS_HINT: &str = "such a row spoils everything that is measured or learned; correct the number, record the episode \
                            again, or remove it with `lerobot-edit-dataset --operation.type delete_episodes`";
const COPY_HINT: &str = "copy or download the dataset again; the file may have been cut off or left behind";

/// The command that converts a dataset, filled in where its directory is known.
fn convert_hint(directory: Option<&str>) -> String {
    let place = directory.and_then(|directory| {
        let path = std::path::Path::new(directory);
        let name = path.file_name()?.to_string_lossy().to_string();
        let parent = path.parent().map(|parent| parent.display().to_string()).filter(|parent| !parent.is_empty());
        Some((name, parent.unwrap_or_else(|| ".".to_string())))
    });
    let (name, parent) = place.unwrap_or(("<name>".to_string(), "<directory-above-it>".to_string()));
    format!(
        "convert it in place with lerobot 0.4, which keeps the old one as `{name}_old`:\n  \
         {CONVERT_V21} --repo-id={} --root={} --push-to-hub=false",
        quoted(&name),
        quoted(&parent),
    )
}

/// As a shell takes it for one word.
fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "._/-<>".contains(letter);
    if text.chars().all(plain) { text.to_string() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

fn usual(role: &str) -> &'static str {
    match role {
        "state" => "observation.state",
        "action" => "action",
        _ => "next.reward",
    }
}

/// The first of several names.
fn listed(names: &[String]) -> String {
    const MOST: usize = 6;
    let mut text: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    if names.len() > MOST {
        text.push(format!("{} more", names.len() - MOST));
    }
    text.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_survives_odd_names() {
        let hint = convert_hint(Some("my sets/o'brien"));
        assert!(hint.contains(r"--repo-id='o'\''brien' --root='my sets' --push"), "{hint}");
        assert!(convert_hint(Some("pour")).contains("--repo-id=pour --root=. "));
        assert!(convert_hint(None).contains("--repo-id=<name> --root=<directory-above-it> "));
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let fault = Fault::UnknownWords {
            file: "meta/episodes".to_string(),
            episode: 0,
            task: "pour\u{1b}[2J\nerror: all is lost\u{9b}\u{202e}".to_string(),
            count: 1,
        };
        let told = explain(&[fault]);
        assert!(told.starts_with("error: episode 0 has the task `pour\\u{1b}[2J\\u{a}error: all is"), "{told}");
        assert!(told.contains("lost\\u{9b}\\u{202e}`"), "{told}");
        assert_eq!(told.chars().filter(|letter| letter.is_control() && *letter != '\n').count(), 0);
        assert_eq!(printable("put the λ on ▁▂▃"), "put the λ on ▁▂▃");
    }
}
