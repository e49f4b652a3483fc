//! A dataset with more columns: a new directory that is the old one and an integer for each frame.
//!
//! Data files are those that the episodes are in, wherever `data_path` puts them. They are read and written one row
//! group at a time, several files in parallel, with the types of all their columns as they were. The new columns are added
//! to `info.json`, to the statistics of the dataset and of each episode. All other files are
//! copies, which share their blocks where the file system allows it (reflinks). Videos become hard links only on request:
//! they take no space, but whoever changes one of them changes both datasets.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::{DataType, Field, Metadata, Schema, SchemaRef};
use rayon::prelude::*;
use serde_json::Value;

use super::beside::{Beside, unwritable};
use super::columns::{HUGGINGFACE, huggingface_feature, plain_pictures, properties, refused_array};
use super::describe::describe_feature;
use super::episodes::{OWN_PLACE, stats_columns, stats_fields};
use super::language::{self, Language, Row};
use super::modes::make_writable;
use super::outline::{Outline, is_within};
use super::runs::{FrameValues, stats_of, values_of};
use super::whole::{Output, Whole};
use crate::episodes::EPISODES;
use crate::fault::{Error, Fault};
use crate::files::{Root, unreadable};
use crate::info::{Dtype, Feature, INFO};
use crate::roles::AUTOMATIC;
use crate::stats::{FeatureStats, Numbers, STATS};
use crate::table::Table;

/// A new column: an `int64` for each frame.
#[derive(Clone, Copy)]
pub struct ExtraColumn<'a> {
    /// The feature's key. An integer column of this name is replaced.
    pub key: &'a str,
    /// One for each frame of the dataset.
    pub values: &'a dyn FrameValues,
}

/// Writes a copy of a dataset with more columns. The target must not exist, or be an empty directory.
pub fn rewrite_with_columns(source: &Root, out: &Path, columns: &[ExtraColumn<'_>]) -> Result<(), Error> {
    let changes = Changes { columns: columns.to_vec(), ..Changes::default() };
    extended(source, &Target::New(out), &changes, &|_| {})?.finish()
}

/// What a copy has in addition to its source, and what it lacks.
#[derive(Clone, Default)]
pub(super) struct Changes<'a> {
    /// New columns.
    pub(super) columns: Vec<ExtraColumn<'a>>,
    /// Subtasks as lerobot's language columns.
    pub(super) language: Option<Language<'a>>,
    /// Whether language columns that stay lose their subtasks.
    pub(super) unspoken: bool,
    /// Columns of the source that the copy does not have.
    pub(super) removed: Vec<String>,
    /// Files of the source that the copy does not have, or that are written later.
    pub(super) without: Vec<String>,
    /// Whether videos are hard links where the file system allows it.
    pub(super) link_videos: bool,
}

/// Where the result goes.
pub(super) enum Target<'a> {
    /// Into a new directory outside of the source.
    New(&'a Path),
    /// In place of the source, which is kept as a backup.
    InPlace,
}

/// The largest `info.json` or `stats.json`.
const MAX_JSON: u64 = 64 << 20;

/// Makes the changed dataset, which is not yet put in its place. `progress` gets numbers of rows that were written.
pub(super) fn extended(
    source: &Root,
    target: &Target<'_>,
    changes: &Changes<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Beside, Error> {
    let refuse = |file: String, reason: &str| Fault::Unwritable { file, reason: reason.to_string() };
    let outline = Outline::read(source)?;
    check(&outline, changes)?;
    let beside = match (target, source.directory()) {
        (Target::New(out), _) if is_within(source, out) => {
            let reason = "it is inside the dataset that is copied, or the dataset itself";
            return Err(refuse(out.display().to_string(), reason).into());
        }
        (Target::New(out), _) => Beside::create(out)?,
        (Target::InPlace, Some(directory)) => Beside::over(directory)?,
        (Target::InPlace, None) => return Err(refuse(source.shown(), "it is part of the program").into()),
    };
    let files: Vec<(&str, Range<usize>)> = outline.data_files().collect();
    let written: Vec<Result<(), Error>> = files
        .par_iter()
        .map(|(file, rows)| {
            let found = extend_data(source, file, rows, &outline, changes, &beside, progress)?;
            let expected = rows.len() as u64;
            if found == expected {
                return Ok(());
            }
            Err(Fault::WrongRows { file: file.to_string(), found, expected }.into())
        })
        .collect();
    written.into_iter().collect::<Result<(), Error>>()?;
    // Paths as the system takes them: a template with `//` names the same files.
    let mut done: BTreeSet<PathBuf> =
        [INFO, STATS].into_iter().chain(changes.without.iter().map(String::as_str)).map(PathBuf::from).collect();
    done.extend(files.iter().map(|(file, _)| PathBuf::from(file)));
    for file in source.list(EPISODES).into_iter().filter(|file| file.ends_with(".parquet")) {
        extend_episodes(source, &file, changes, &beside)?;
        done.insert(PathBuf::from(file));
    }
    for file in all_files(source)?.into_iter().filter(|file| !done.contains(Path::new(file))) {
        copy(source, &file, changes.link_videos && outline.may_be_video(&file), &beside)?;
    }
    write_info(&source.read(INFO, MAX_JSON)?, changes, &beside)?;
    write_stats(source, changes, &beside)?;
    Ok(beside)
}

/// An integer of 64 bits in each row.
fn feature() -> Feature {
    Feature::new(Dtype::Int(64), &[1])
}

fn check(outline: &Outline, changes: &Changes<'_>) -> Result<(), Error> {
    let mut faults = Vec::new();
    let frames = outline.frames() as u64;
    let columns = &changes.columns;
    if let Some(found) = changes.language.map(|language| language.subtasks.frames() as u64).filter(|it| *it != frames) {
        faults.push(Fault::WrongRows { file: language::LANGUAGE_PERSISTENT.to_string(), found, expected: frames });
    }
    for (at, column) in columns.iter().enumerate() {
        let refuse = |found: &str, expected: &str| Fault::BadInfo {
            file: INFO.to_string(),
            key: format!("features.{}", column.key),
            found: found.to_string(),
            expected: expected.to_string(),
        };
        if column.key.is_empty() || column.key.contains('/') {
            faults.push(refuse("no key for a feature", "a key without `/`, such as `skill`"));
        }
        if AUTOMATIC.contains(&column.key) || columns[..at].iter().any(|other| other.key == column.key) {
            faults.push(refuse("there already", "a key of its own, such as `skill`"));
        } else if let Some(known) = outline.info.feature(column.key)
            && (!known.dtype.is_integer() || known.width() != 1)
        {
            faults.push(refuse(&known.shown(), "a new key, or that of an integer column, which is replaced"));
        }
        if column.values.frames() as u64 != frames {
            let (file, found) = (column.key.to_string(), column.values.frames() as u64);
            faults.push(Fault::WrongRows { file, found, expected: frames });
        }
    }
    Error::of(faults).map_or(Ok(()), Err)
}

/// Every file of the dataset, in order of path.
fn all_files(source: &Root) -> Result<Vec<String>, Error> {
    let mut files = Vec::new();
    match source {
        Root::Directory(path) => {
            let fault = |error: &std::io::Error| unreadable(&source.shown(), error);
            for entry in fs::read_dir(path).map_err(|error| fault(&error))? {
                let entry = entry.map_err(|error| fault(&error))?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if entry.path().is_file() {
                    files.push(name);
                } else if !name.starts_with('.') {
                    // Hidden folders are caches and version control, not the dataset.
                    files.extend(source.list(&name));
                }
            }
        }
        Root::Memory { files: known, .. } => files.extend(known.keys().cloned()),
    }
    files.sort();
    Ok(files)
}

/// Rewrites a data file, and gives its number of rows.
fn extend_data(
    source: &Root,
    file: &str,
    frames: &Range<usize>,
    outline: &Outline,
    changes: &Changes<'_>,
    beside: &Beside,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<u64, Error> {
    let whole = Whole::open(source, file)?;
    let columns = &changes.columns;
    let mut added: Vec<Field> = columns.iter().map(|column| Field::new(column.key, DataType::Int64, true)).collect();
    let mut notes = whole.notes();
    if changes.language.is_some() {
        // Events of the source stay as they are.
        let events = whole.schema().field_with_name(language::LANGUAGE_EVENTS).is_ok();
        added.extend(language::fields().into_iter().take(if events { 1 } else { 2 }));
        // lerobot does the same: without the note, columns are read by their arrow types.
        notes.retain(|note| note.key != HUGGINGFACE);
    }
    for note in notes.iter_mut().filter(|note| note.key == HUGGINGFACE) {
        note.value = note.value.as_deref().map(|value| with_features(value, changes));
    }
    let mut metadata = whole.schema().metadata().clone();
    metadata.retain(|key, _| changes.language.is_none() || key != HUGGINGFACE);
    metadata.extend(notes.iter().filter_map(|note| Some((note.key.clone(), note.value.clone()?))));
    let kept = kept(whole.schema(), |name| !changes.removed.iter().any(|removed| removed == name));
    let (schema, places) = with_fields(whole.schema(), &kept, &added, None, metadata);
    let mut properties = properties().set_key_value_metadata(Some(notes));
    for (key, _) in outline.info.features.iter().filter(|(_, feature)| feature.dtype == Dtype::Image) {
        properties = plain_pictures(properties, key);
    }
    let times = match changes.language {
        Some(_) => times(source, file, frames)?,
        None => Vec::new(),
    };
    let name_at = |at: &usize| whole.schema().field(*at).name();
    let spoken = kept.iter().position(|at| changes.unspoken && name_at(at) == language::LANGUAGE_PERSISTENT);
    let mut output = Output::create(beside, file, &schema, properties.build())?;
    let mut rows = 0;
    let writer = std::cell::RefCell::new(&mut output);
    whole.scan(
        |batch| {
            let indices = whole.integers(batch, "index")?;
            let mut arrays: Vec<ArrayRef> = kept.iter().map(|&at| batch.column(at).clone()).collect();
            let mut new: Vec<ArrayRef> = Vec::new();
            for column in columns {
                let values = numbers(*column, &indices, file, rows as usize)?;
                new.push(Arc::new(Int64Array::from(values)));
            }
            if let Some(language) = changes.language {
                let texts = texts(language, outline, frames, &times, &indices);
                let [mut persistent, events] = texts.map_err(|error| refused_array(file, &error))?;
                if let Some(old) = batch.column_by_name(language::LANGUAGE_PERSISTENT) {
                    persistent =
                        language::with_others(old, &persistent).map_err(|error| refused_array(file, &error))?;
                }
                // `zip` below leaves the events out where those of the source stay.
                new.extend([persistent, events]);
            }
            if let Some(at) = spoken {
                arrays[at] = language::without_subtasks(&arrays[at]).map_err(|error| refused_array(file, &error))?;
            }
            for (array, place) in new.into_iter().zip(&places) {
                put(&mut arrays, *place, array);
            }
            rows += batch.num_rows() as u64;
            progress(batch.num_rows() as u64);
            writer.borrow_mut().write(&schema, arrays)
        },
        || writer.borrow_mut().end_group(),
    )?;
    output.close()?;
    Ok(rows)
}

/// The values of a column for the rows of a file, given by their `index`; `row` is the first of them.
fn numbers(column: ExtraColumn<'_>, indices: &[i64], file: &str, row: usize) -> Result<Vec<i64>, Fault> {
    let mut values = Vec::with_capacity(indices.len());
    // Rows that follow each other are looked up together.
    for run in indices.chunk_by(|one, other| one.checked_add(1) == Some(*other)) {
        let first = usize::try_from(run[0]).unwrap_or(usize::MAX);
        let found = values_of(column.values, first..first.saturating_add(run.len()));
        if found.len() != run.len() {
            let frames = column.values.frames() as i64;
            let at = run.iter().position(|index| !(0..frames).contains(index)).unwrap_or_default();
            return Err(out_of_range(file, row + values.len() + at, run[at], frames as usize));
        }
        values.extend(found);
    }
    Ok(values)
}

/// Seconds of the frames of a data file, as it has them.
fn times(source: &Root, file: &str, frames: &Range<usize>) -> Result<Vec<f32>, Error> {
    let table = Table::open(source, file)?;
    let mut times = vec![0.0; frames.len()];
    for (index, time) in table.integers("index")?.into_iter().zip(table.floats("timestamp")?) {
        let place = usize::try_from(index).ok().and_then(|index| index.checked_sub(frames.start));
        if let Some(slot) = place.and_then(|place| times.get_mut(place)) {
            *slot = time as f32;
        }
    }
    Ok(times)
}

/// The language columns of some rows, given by their `index`.
fn texts(
    language: Language<'_>,
    outline: &Outline,
    frames: &Range<usize>,
    times: &[f32],
    indices: &[i64],
) -> Result<[ArrayRef; 2], arrow_schema::ArrowError> {
    let episode = |index: &i64| {
        let index = usize::try_from(*index).unwrap_or(usize::MAX);
        outline.episodes.partition_point(|episode| episode.frames.end <= index)
    };
    let time = |frame: usize| frame.checked_sub(frames.start).and_then(|at| times.get(at)).copied().unwrap_or(0.0);
    let runs: Vec<(Vec<Row<'_>>, usize)> = indices
        .chunk_by(|one, other| episode(one) == episode(other))
        .map(|run| {
            let own = outline.episodes.get(episode(&run[0])).map_or(0..0, |episode| episode.frames.clone());
            (language.rows(own, time), run.len())
        })
        .collect();
    let each: Vec<&[Row<'_>]> =
        runs.iter().flat_map(|(rows, count)| std::iter::repeat_n(rows.as_slice(), *count)).collect();
    language::arrays(&each)
}

/// Rewrites a file of episodes with their statistics of the new columns.
fn extend_episodes(source: &Root, file: &str, changes: &Changes<'_>, beside: &Beside) -> Result<(), Error> {
    let whole = Whole::open(source, file)?;
    let columns = &changes.columns;
    let added: Vec<Field> = columns.iter().flat_map(|column| stats_fields(column.key, Numbers::Integer, 1)).collect();
    let metadata = whole.schema().metadata().clone();
    let of_removed = |name: &str| changes.removed.iter().any(|key| name.starts_with(&format!("stats/{key}/")));
    let kept = kept(whole.schema(), |name| !of_removed(name));
    let (schema, places) = with_fields(whole.schema(), &kept, &added, Some(OWN_PLACE[0]), metadata);
    let properties = properties().set_key_value_metadata(Some(whole.notes())).build();
    let mut output = Output::create(beside, file, &schema, properties)?;
    let mut row = 0;
    let writer = std::cell::RefCell::new(&mut output);
    whole.scan(
        |batch| {
            let (from, to) = (whole.integers(batch, "dataset_from_index")?, whole.integers(batch, "dataset_to_index")?);
            let mut new = Vec::new();
            for column in columns {
                let mut stats = Vec::new();
                for (from, to) in from.iter().zip(&to) {
                    let range = usize::try_from(*from).ok().zip(usize::try_from(*to).ok());
                    let found = range.and_then(|(from, to)| stats_of(column.values, from..to));
                    stats.push(found.ok_or_else(|| out_of_range(file, row, *to, column.values.frames()))?);
                    row += 1;
                }
                let stats: Vec<&FeatureStats> = stats.iter().collect();
                new.extend(stats_columns(&stats).map_err(|error| refused_array(file, &error))?);
            }
            let mut arrays: Vec<ArrayRef> = kept.iter().map(|&at| batch.column(at).clone()).collect();
            for (array, place) in new.into_iter().zip(&places) {
                put(&mut arrays, *place, array);
            }
            writer.borrow_mut().write(&schema, arrays)
        },
        || writer.borrow_mut().end_group(),
    )?;
    output.close()
}

/// The places of the columns that stay.
fn kept(schema: &Schema, stays: impl Fn(&str) -> bool) -> Vec<usize> {
    (0..schema.fields().len()).filter(|&at| stays(schema.field(at).name())).collect()
}

/// Where a column goes: over one that is there, or between others.
#[derive(Clone, Copy, Debug)]
enum Placing {
    Replace(usize),
    Insert(usize),
}

/// Some fields of a schema and more, before a named one or at the end, and where each goes, to be put in order.
fn with_fields(
    schema: &Schema,
    kept: &[usize],
    added: &[Field],
    before: Option<&str>,
    metadata: Metadata,
) -> (SchemaRef, Vec<Placing>) {
    let mut fields: Vec<Arc<Field>> = kept.iter().map(|&at| schema.fields()[at].clone()).collect();
    let mut places = Vec::new();
    for field in added {
        let field = Arc::new(field.clone());
        match fields.iter().position(|known| known.name() == field.name()) {
            Some(place) => {
                fields[place] = field;
                places.push(Placing::Replace(place));
            }
            None => {
                let place = fields.iter().position(|known| Some(known.name().as_str()) == before);
                let place = place.unwrap_or(fields.len());
                fields.insert(place, field);
                places.push(Placing::Insert(place));
            }
        }
    }
    (Arc::new(Schema::new(fields).with_metadata(metadata)), places)
}

fn put(arrays: &mut Vec<ArrayRef>, place: Placing, array: ArrayRef) {
    match place {
        Placing::Replace(place) => arrays[place] = array,
        Placing::Insert(place) => arrays.insert(place, array),
    }
}

fn copy(source: &Root, file: &str, link: bool, beside: &Beside) -> Result<(), Error> {
    let place = beside.place(file)?;
    let Some(directory) = source.directory() else {
        return beside.write(file, &source.read(file, u64::MAX)?);
    };
    // Datasets in a cache are symbolic links, which must not be copied as such.
    let original = fs::canonicalize(directory.join(file)).map_err(|error| unreadable(file, &error))?;
    if link && fs::hard_link(&original, &place).is_ok() {
        return Ok(());
    }
    fs::copy(&original, &place).and_then(|_| make_writable(&place)).map_err(|error| unwritable(file, &error))?;
    File::open(&place).and_then(|copied| copied.sync_all()).map_err(|error| unwritable(file, &error))
}

fn write_info(content: &[u8], changes: &Changes<'_>, beside: &Beside) -> Result<(), Error> {
    let mut info = parse(INFO, content)?;
    if let Some(Value::Object(features)) = info.get_mut("features") {
        changes.removed.iter().for_each(|key| drop(features.shift_remove(key)));
        for column in &changes.columns {
            features.insert(column.key.to_string(), describe_feature(&feature()));
        }
        if changes.language.is_some() {
            features.extend(language::fields().map(|field| (field.name().clone(), language::described())));
        }
    }
    beside.write_json(INFO, &info)
}

fn write_stats(source: &Root, changes: &Changes<'_>, beside: &Beside) -> Result<(), Error> {
    if !source.has(STATS) {
        return Ok(());
    }
    let mut stats = parse(STATS, &source.read(STATS, MAX_JSON)?)?;
    let Value::Object(entries) = &mut stats else {
        return Err(malformed_json(STATS, "it holds no object".to_string()).into());
    };
    changes.removed.iter().for_each(|key| drop(entries.shift_remove(key)));
    for column in &changes.columns {
        let found = stats_of(column.values, 0..column.values.frames());
        entries.extend(found.map(|found| (column.key.to_string(), found.to_json())));
    }
    beside.write_json(STATS, &stats)
}

/// The note of the `datasets` package with the new columns; as it was, if we do not understand it.
fn with_features(note: &str, changes: &Changes<'_>) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(note) else { return note.to_string() };
    let Some(Value::Object(features)) = value.pointer_mut("/info/features") else { return note.to_string() };
    changes.removed.iter().for_each(|key| drop(features.shift_remove(key)));
    for column in &changes.columns {
        features.extend(huggingface_feature(&feature()).map(|noted| (column.key.to_string(), noted)));
    }
    if let Value::Object(fields) = &mut value {
        // The package's caches know data by it, and these are others.
        fields.shift_remove("fingerprint");
    }
    value.to_string()
}

fn parse(file: &str, content: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(content).map_err(|error| malformed_json(file, error.to_string()).into())
}

fn malformed_json(file: &str, reason: String) -> Fault {
    Fault::Malformed { file: file.to_string(), format: "JSON", reason }
}

fn out_of_range(file: &str, row: usize, found: i64, frames: usize) -> Fault {
    Fault::WrongIndex { file: file.to_string(), column: "index", row, found, expected: frames as i64 - 1, count: 1 }
}
