//! Writes subtasks and classes of motions into a dataset: into a copy, or in place with a backup.
//!
//! | form | columns | files |
//! |---|---|---|
//! | [`Form::Subtasks`] | `subtask_index`, `skill_index` | `meta/subtasks.parquet`, `meta/skills.json` |
//! | [`Form::Language`] | `language_persistent`, `language_events`, `skill_index` | `meta/skills.json` |
//!
//! lerobot 0.4 fills `item["subtask"]` from the first form; lerobot 0.6 reads the second one.
//!
//! **What a person wrote is not replaced** unless it is asked for. [`RECORD`] says which columns this program wrote, with
//! hashes of their texts and of their values as they are in the data files, so that an annotation can be made again but
//! what was changed since is noticed. Language rows of other styles than `subtask`, and events, are never replaced.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::annotate::{SUBTASK_INDEX, SUBTASKS, vocabulary_file};
use super::extend::{Changes, ExtraColumn, Target, extended};
use super::language::{LANGUAGE_EVENTS, LANGUAGE_PERSISTENT, Language};
use super::outline::Outline;
use super::runs::Runs;
use super::tables::write_texts;
use crate::fault::{Error, Fault};
use crate::files::Root;
use crate::info::Info;
use crate::table::Table;

/// The column with the class of each frame's motion.
pub const SKILL_INDEX: &str = "skill_index";

/// The file that says what was annotated by this program.
pub const RECORD: &str = "meta/annotation.json";

/// The largest record and the largest file of texts.
const MAX_BYTES: u64 = 1 << 28;

/// How subtasks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A number for each frame and a table of texts.
    Subtasks,
    /// Rows of text in each frame.
    Language,
}

/// Where the annotated dataset goes.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// A new directory outside of the dataset, which must not exist or be empty.
    New(&'a Path),
    /// The place of the dataset, which becomes a backup beside it.
    InPlace,
}

/// What is written.
#[derive(Clone, Debug)]
pub struct Subtasks<'a> {
    /// The names of the subtasks.
    pub names: &'a [String],
    /// For each frame the place of its subtask in the names.
    pub values: &'a Runs,
    /// The names of the classes of motions.
    pub class_names: &'a [String],
    /// For each frame the place of its class in their names, or −1 for none.
    pub classes: &'a Runs,
    /// How the subtasks are written.
    pub form: Form,
    /// Whether videos are hard links to those of the source where the file system allows it, and not copies.
    pub link_videos: bool,
    /// Further files, by path; files of these names are replaced, or left out if there is no content.
    pub files: Vec<(String, Option<Vec<u8>>)>,
}

/// Writes an annotated dataset. `progress` gets numbers of rows that were written. In place, it gives the backup.
///
/// # Errors
/// If the dataset cannot be read, the place is taken, or a number has no name.
pub fn write_subtasks(
    source: &Root,
    place: Place<'_>,
    subtasks: &Subtasks<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Option<PathBuf>, Error> {
    named(SUBTASK_INDEX, subtasks.values, subtasks.names, 0)?;
    named(SKILL_INDEX, subtasks.classes, subtasks.class_names, -1)?;
    let outline = Outline::read(source)?;
    let info = &outline.info;
    let vocabulary = vocabulary_file(SKILL_INDEX);
    let mut changes = Changes {
        columns: vec![ExtraColumn { key: SKILL_INDEX, values: subtasks.classes }],
        language: None,
        unspoken: false,
        removed: Vec::new(),
        without: vec![vocabulary.clone(), SUBTASKS.to_string(), RECORD.to_string()],
        link_videos: subtasks.link_videos,
    };
    let removed: &[&str] = match subtasks.form {
        Form::Subtasks => {
            changes.columns.push(ExtraColumn { key: SUBTASK_INDEX, values: subtasks.values });
            changes.unspoken = spoken_by_others(source, &outline)?;
            if changes.unspoken { &[] } else { &[LANGUAGE_PERSISTENT, LANGUAGE_EVENTS] }
        }
        Form::Language => {
            changes.language = Some(Language { subtasks: subtasks.values, names: subtasks.names });
            &[SUBTASK_INDEX]
        }
    };
    changes.removed.extend(removed.iter().filter(|key| info.feature(key).is_some()).map(|key| key.to_string()));
    changes.without.extend(subtasks.files.iter().map(|(file, _)| file.clone()));
    let target = match place {
        Place::New(out) => Target::New(out),
        Place::InPlace => Target::InPlace,
    };
    let beside = extended(source, &target, &changes, progress)?;
    let mut words = json!({"feature": SKILL_INDEX, "names": subtasks.class_names});
    if super::runs::has(subtasks.classes, -1) {
        words["none"] = json!(-1);
    }
    beside.write_json(&vocabulary, &words)?;
    let columns: &[&str] = match subtasks.form {
        Form::Subtasks => {
            write_texts(&beside, SUBTASKS, SUBTASK_INDEX, subtasks.names)?;
            if changes.unspoken { &OURS } else { &[SUBTASK_INDEX, SKILL_INDEX] }
        }
        Form::Language => &[LANGUAGE_PERSISTENT, LANGUAGE_EVENTS, SKILL_INDEX],
    };
    // As they are in the files now.
    let written = beside.root();
    let values: Result<Map<String, Value>, Error> = columns
        .iter()
        .filter(|key| **key != LANGUAGE_EVENTS)
        .map(|key| Ok((key.to_string(), json!(values_hash(&written, &outline, key)?))))
        .collect();
    let record = json!({
        "program": "refactor-vla",
        "version": env!("CARGO_PKG_VERSION"),
        "columns": columns,
        "names": hash(subtasks.names),
        "class_names": hash(subtasks.class_names),
        "values": values?,
    });
    beside.write_json(RECORD, &record)?;
    for (file, content) in &subtasks.files {
        if let Some(content) = content {
            beside.write(file, content)?;
        }
    }
    beside.put()
}

/// All columns that hold annotations.
const OURS: [&str; 4] = [SUBTASK_INDEX, LANGUAGE_PERSISTENT, LANGUAGE_EVENTS, SKILL_INDEX];

/// Something that this program did not write, or that was changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// What it is, such as "a column `subtask_index`".
    pub what: String,
    /// Whether it is about classes of motions, and not about subtasks.
    pub classes: bool,
}

/// Annotations of a dataset that this program did not write, or that were changed since.
///
/// # Errors
/// If a data file cannot be read.
pub fn foreign_subtasks(source: &Root, info: &Info) -> Result<Vec<Foreign>, Error> {
    let json = |file: &str| serde_json::from_slice::<Value>(&source.read(file, MAX_BYTES).ok()?).ok();
    let record = json(RECORD).unwrap_or_default();
    let ours = |key: &str| record["columns"].as_array().is_some_and(|columns| columns.iter().any(|it| it == key));
    let mut found = Vec::new();
    let mut add = |key: &str, what: String| found.push(Foreign { what, classes: key == SKILL_INDEX });
    let columns: Vec<&str> = OURS.into_iter().filter(|key| info.feature(key).is_some()).collect();
    for key in columns.iter().filter(|key| !ours(key)) {
        add(key, format!("a column `{key}`"));
    }
    if source.has(SUBTASKS) {
        let texts = Table::open(source, SUBTASKS).and_then(|table| table.texts("__index_level_0__"));
        match ours(SUBTASK_INDEX) {
            false => add(SUBTASK_INDEX, format!("a file `{SUBTASKS}`")),
            true if texts.is_ok_and(|texts| record["names"] == json!(hash(&texts))) => {}
            true => add(SUBTASK_INDEX, format!("texts of `{SUBTASKS}` that were changed since")),
        }
    }
    let vocabulary = vocabulary_file(SKILL_INDEX);
    if source.has(&vocabulary) {
        let names =
            json(&vocabulary).and_then(|file| serde_json::from_value::<Vec<String>>(file["names"].clone()).ok());
        match ours(SKILL_INDEX) {
            false => add(SKILL_INDEX, format!("a file `{vocabulary}`")),
            true if names.is_some_and(|names| record["class_names"] == json!(hash(&names))) => {}
            true => add(SKILL_INDEX, format!("names of `{vocabulary}` that were changed since")),
        }
    }
    if columns.is_empty() {
        return Ok(found);
    }
    let outline = Outline::read(source)?;
    for key in columns.into_iter().filter(|key| *key != LANGUAGE_EVENTS && ours(key)) {
        if record["values"][key] != json!(values_hash(source, &outline, key)?) {
            let what = if key == LANGUAGE_PERSISTENT { "texts" } else { "numbers" };
            add(key, format!("{what} in the column `{key}` that were changed since"));
        }
    }
    Ok(found)
}

/// Whether a dataset has language rows that are no subtasks, or events.
fn spoken_by_others(source: &Root, outline: &Outline) -> Result<bool, Error> {
    if [LANGUAGE_PERSISTENT, LANGUAGE_EVENTS].iter().all(|key| outline.info.feature(key).is_none()) {
        return Ok(false);
    }
    for (file, _) in outline.data_files() {
        if super::language::has_others(source, file)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A hash of a column's numbers, or of its subtasks, in the order of data files and rows.
fn values_hash(source: &Root, outline: &Outline, key: &str) -> Result<String, Error> {
    let mut hasher = blake3::Hasher::new();
    for (file, _) in outline.data_files() {
        let table = Table::open(source, file)?;
        if table.column(key).is_none() {
            continue;
        }
        if key == LANGUAGE_PERSISTENT {
            table.scan(&[key], |_, arrays| {
                super::language::hash_subtasks(&arrays[0], &mut hasher);
                Ok(())
            })?;
            continue;
        }
        // Stretches, since numbers are the same over many frames.
        for run in table.integers(key)?.chunk_by(|one, other| one == other) {
            hasher.update(&(run.len() as u64).to_le_bytes()).update(&run[0].to_le_bytes());
        }
    }
    Ok(hasher.finalize().to_hex()[..32].to_string())
}

/// Checks that every number has a name.
fn named(key: &str, values: &Runs, names: &[String], least: i64) -> Result<(), Error> {
    let Some((frame, value)) = super::runs::outside(values, least..names.len() as i64) else { return Ok(()) };
    Err(Fault::WrongType {
        file: "the annotation".to_string(),
        column: key.to_string(),
        found: format!("{value} in frame {frame}"),
        expected: format!("a place in its {} names", names.len()),
    }
    .into())
}

fn hash(texts: &[String]) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_string()
}
