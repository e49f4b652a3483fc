//! Writes discovered skills back into a dataset.
//!
//! A copy of the dataset gets an integer column with the skill of each frame, and a vocabulary beside it:
//! `meta/skills.json` for a column `skill` or `skill_index`, in the form of the `meta/phases.json` that some datasets have. lerobot has
//! a place for what happens in a frame, subtasks: a column `subtask_index` and texts in `meta/subtasks.parquet`, from
//! which it fills `item["subtask"]`. It takes the number as a row of that table and would read −1 as the last one, so
//! frames without a skill get a subtask of their own there, `none`.

use std::path::Path;

use serde_json::json;

use super::extend::{Changes, ExtraColumn, Target, extended};
use super::outline::Outline;
use super::tables::write_texts;
use crate::fault::{Error, Fault};
use crate::files::Root;
use crate::info::{INFO, Info};
use crate::roles::AUTOMATIC;

/// Where lerobot keeps the texts of subtasks.
pub const SUBTASKS: &str = "meta/subtasks.parquet";

/// The column of frames with their subtasks.
pub const SUBTASK_INDEX: &str = "subtask_index";

/// The text of frames without a skill, as a subtask.
const NONE: &str = "none";

/// What is written back.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// The column, such as `skill`.
    pub key: String,
    /// What the skills are called.
    pub names: Vec<String>,
    /// For each frame, in the order of the dataset's `index`: the place of its skill in `names`, or −1 for none.
    pub values: Vec<i64>,
    /// Whether the skills are also written as lerobot's subtasks.
    pub subtasks: bool,
}

/// Writes a copy of a dataset with an annotation. The target must not exist, or be an empty directory, and is not
/// inside the dataset. A column of the same name is replaced; subtasks that are there are not.
pub fn annotate(source: &Root, out: &Path, annotation: &Annotation) -> Result<(), Error> {
    let Annotation { key, names, values, subtasks } = annotation;
    let info = Outline::read(source)?.info;
    let refuse = |key: &str, found: &str, expected: &str| Fault::BadInfo {
        file: INFO.to_string(),
        key: format!("features.{key}"),
        found: found.to_string(),
        expected: expected.to_string(),
    };
    if let Some(expected) = wrong_key(key) {
        return Err(refuse(key, "no key for skills", expected).into());
    }
    if *subtasks && has_subtasks(source, &info) {
        return Err(refuse(SUBTASK_INDEX, "there already", "an annotation without subtasks").into());
    }
    if info.feature(key).is_none() && source.has(&vocabulary_file(key)) {
        let reason = format!("the dataset has such a file, but no column `{key}`");
        return Err(Fault::Unwritable { file: vocabulary_file(key), reason }.into());
    }
    let least = -1;
    if let Some((frame, value)) =
        values.iter().enumerate().find(|(_, value)| **value < least || **value >= names.len() as i64)
    {
        return Err(Fault::WrongType {
            file: vocabulary_file(key),
            column: key.clone(),
            found: format!("{value} in frame {frame}"),
            expected: format!("a place in its {} names, or -1 for none", names.len()),
        }
        .into());
    }
    let mut texts = names.clone();
    let unlabelled = values.contains(&-1);
    if unlabelled {
        texts.push(NONE.to_string());
    }
    let numbers: Vec<i64> = values.iter().map(|value| if *value < 0 { names.len() as i64 } else { *value }).collect();
    let mut columns = vec![ExtraColumn { key, values }];
    let mut replaced = vec![vocabulary_file(key)];
    if *subtasks {
        columns.push(ExtraColumn { key: SUBTASK_INDEX, values: &numbers });
        replaced.push(SUBTASKS.to_string());
    }
    let changes = Changes { columns, without: replaced, ..Changes::default() };
    let beside = extended(source, &Target::New(out), &changes, &|_| {})?;
    let mut vocabulary = json!({"feature": key, "names": names});
    if unlabelled {
        vocabulary["none"] = json!(-1);
    }
    beside.write_json(&vocabulary_file(key), &vocabulary)?;
    if *subtasks {
        write_texts(&beside, SUBTASKS, SUBTASK_INDEX, &texts)?;
    }
    beside.finish()
}

/// What a key should be instead, if skills cannot be written under it.
///
/// The key is part of the name of a file, and of columns of metadata. With some keys that file would be one of
/// lerobot's own, such as `meta/stats.json`.
pub fn wrong_key(key: &str) -> Option<&'static str> {
    const RESERVED: [&str; 5] = ["task", "subtask", SUBTASK_INDEX, "stat", "info"];
    let plain = |it: char| it.is_ascii_alphanumeric() || "_.-".contains(it);
    if key.is_empty() || key.starts_with('.') || !key.chars().all(plain) {
        return Some("letters, digits, `_`, `.` and `-`, with no dot in front, such as `skill`");
    }
    let key = key.to_ascii_lowercase();
    // The names of `stat_index` would be in `meta/stats.json`.
    let names = [key.as_str(), key.strip_suffix("_index").unwrap_or(&key)];
    let reserved = names.iter().any(|name| RESERVED.contains(name) || AUTOMATIC.contains(name));
    reserved.then_some("a name that lerobot does not use itself, such as `skill`")
}

/// Whether a dataset has subtasks, which an annotation would have to replace.
pub fn has_subtasks(source: &Root, info: &Info) -> bool {
    info.feature(SUBTASK_INDEX).is_some() || source.has(SUBTASKS)
}

/// Where the names are: `meta/skills.json` for a column `skill` or `skill_index`.
pub fn vocabulary_file(key: &str) -> String {
    let named = key.strip_suffix("_index").filter(|name| !name.is_empty()).unwrap_or(key);
    format!("meta/{named}s.json")
}
