//! A dataset with more columns: a new directory that is the old one and an integer for each frame.
//!
//! Data files are those that the episodes are in, wherever `data_path` puts them. They are read and written one row
//! group at a time, with the types of all their columns as they were. The new columns are added to `info.json`, to the
//! statistics of the dataset and of each episode. Videos are hard links where the file system allows it, since they may
//! be large; all other files are copies, a parquet file that belongs to no episode too.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::{DataType, Field, Metadata, Schema, SchemaRef};
use serde_json::Value;

use super::beside::{Beside, unwritable};
use super::columns::{HUGGINGFACE, huggingface_feature, plain_pictures, properties, refused_array};
use super::describe::describe_feature;
use super::episodes::{OWN_PLACE, stats_columns, stats_fields};
use super::outline::{Outline, is_within};
use super::whole::{Output, Whole};
use crate::episodes::EPISODES;
use crate::fault::{Error, Fault};
use crate::files::{Root, unreadable};
use crate::info::{Dtype, Feature, INFO, Info};
use crate::roles::AUTOMATIC;
use crate::stats::{FeatureStats, Numbers, Running, STATS};

/// A new column: an `int64` for each frame, in the order of the dataset's `index`.
#[derive(Clone, Copy, Debug)]
pub struct ExtraColumn<'a> {
    /// The feature's key. An integer column of this name is replaced.
    pub key: &'a str,
    /// One for each frame of the dataset.
    pub values: &'a [i64],
}

/// Writes a copy of a dataset with more columns. The target must not exist, or be an empty directory.
pub fn rewrite_with_columns(source: &Root, out: &Path, columns: &[ExtraColumn<'_>]) -> Result<(), Error> {
    extended(source, out, columns, &[])?.finish()
}

/// The largest `info.json` or `stats.json`.
const MAX_JSON: u64 = 64 << 20;

/// As [`rewrite_with_columns`], but not yet put in its place, and without some files of the source.
pub(super) fn extended(
    source: &Root,
    out: &Path,
    columns: &[ExtraColumn<'_>],
    without: &[String],
) -> Result<Beside, Error> {
    if is_within(source, out) {
        let reason = "it is inside the dataset that is copied, or the dataset itself".to_string();
        return Err(Fault::Unwritable { file: out.display().to_string(), reason }.into());
    }
    let outline = Outline::read(source)?;
    check(&outline, columns)?;
    let beside = Beside::create(out)?;
    // Paths as the system takes them: a template with `//` names the same files.
    let mut done: BTreeSet<PathBuf> =
        [INFO, STATS].into_iter().chain(without.iter().map(String::as_str)).map(PathBuf::from).collect();
    for (file, expected) in outline.data_files() {
        let found = extend_data(source, file, &outline.info, columns, &beside)?;
        if found != expected {
            return Err(Fault::WrongRows { file: file.to_string(), found, expected }.into());
        }
        done.insert(PathBuf::from(file));
    }
    for file in source.list(EPISODES).into_iter().filter(|file| file.ends_with(".parquet")) {
        extend_episodes(source, &file, columns, &beside)?;
        done.insert(PathBuf::from(file));
    }
    for file in all_files(source)?.into_iter().filter(|file| !done.contains(Path::new(file))) {
        copy(source, &file, outline.may_be_video(&file), &beside)?;
    }
    write_info(&source.read(INFO, MAX_JSON)?, columns, &beside)?;
    write_stats(source, columns, &beside)?;
    Ok(beside)
}

/// An integer of 64 bits in each row.
fn feature() -> Feature {
    Feature::new(Dtype::Int(64), &[1])
}

fn check(outline: &Outline, columns: &[ExtraColumn<'_>]) -> Result<(), Error> {
    let mut faults = Vec::new();
    let frames = outline.frames() as u64;
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
        if column.values.len() as u64 != frames {
            let (file, found) = (column.key.to_string(), column.values.len() as u64);
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
    info: &Info,
    columns: &[ExtraColumn<'_>],
    beside: &Beside,
) -> Result<u64, Error> {
    let whole = Whole::open(source, file)?;
    let added: Vec<Field> = columns.iter().map(|column| Field::new(column.key, DataType::Int64, true)).collect();
    let mut notes = whole.notes();
    for note in notes.iter_mut().filter(|note| note.key == HUGGINGFACE) {
        note.value = note.value.as_deref().map(|value| with_features(value, columns));
    }
    let mut metadata = whole.schema().metadata().clone();
    metadata.extend(notes.iter().filter_map(|note| Some((note.key.clone(), note.value.clone()?))));
    let (schema, places) = with_fields(whole.schema(), &added, None, metadata);
    let mut properties = properties().set_key_value_metadata(Some(notes));
    for (key, _) in info.features.iter().filter(|(_, feature)| feature.dtype == Dtype::Image) {
        properties = plain_pictures(properties, key);
    }
    let mut output = Output::create(beside, file, &schema, properties.build())?;
    let mut rows = 0;
    let writer = std::cell::RefCell::new(&mut output);
    whole.scan(
        |batch| {
            let indices = whole.integers(batch, "index")?;
            let mut arrays = batch.columns().to_vec();
            for (column, place) in columns.iter().zip(&places) {
                let values = indices.iter().enumerate().map(|(row, index)| {
                    let value = usize::try_from(*index).ok().and_then(|index| column.values.get(index));
                    value.copied().ok_or_else(|| out_of_range(file, rows as usize + row, *index, column.values.len()))
                });
                let values: Vec<i64> = values.collect::<Result<_, Fault>>()?;
                put(&mut arrays, *place, Arc::new(Int64Array::from(values)));
            }
            rows += batch.num_rows() as u64;
            writer.borrow_mut().write(&schema, arrays)
        },
        || writer.borrow_mut().end_group(),
    )?;
    output.close()?;
    Ok(rows)
}

/// Rewrites a file of episodes with their statistics of the new columns.
fn extend_episodes(source: &Root, file: &str, columns: &[ExtraColumn<'_>], beside: &Beside) -> Result<(), Error> {
    let whole = Whole::open(source, file)?;
    let added: Vec<Field> = columns.iter().flat_map(|column| stats_fields(column.key, Numbers::Integer, 1)).collect();
    let metadata = whole.schema().metadata().clone();
    let (schema, places) = with_fields(whole.schema(), &added, Some(OWN_PLACE[0]), metadata);
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
                    let values = range.and_then(|(from, to)| column.values.get(from..to)).unwrap_or_default();
                    let found = stats_of(values).ok_or_else(|| out_of_range(file, row, *to, column.values.len()))?;
                    stats.push(found);
                    row += 1;
                }
                let stats: Vec<&FeatureStats> = stats.iter().collect();
                new.extend(stats_columns(&stats).map_err(|error| refused_array(file, &error))?);
            }
            let mut arrays = batch.columns().to_vec();
            for (array, place) in new.into_iter().zip(&places) {
                put(&mut arrays, *place, array);
            }
            writer.borrow_mut().write(&schema, arrays)
        },
        || writer.borrow_mut().end_group(),
    )?;
    output.close()
}

/// Where a column goes: over one that is there, or between others.
#[derive(Clone, Copy, Debug)]
enum Placing {
    Replace(usize),
    Insert(usize),
}

/// The schema with more fields, before a named one or at the end, and where each goes, to be put in order.
fn with_fields(
    schema: &Schema,
    added: &[Field],
    before: Option<&str>,
    metadata: Metadata,
) -> (SchemaRef, Vec<Placing>) {
    let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
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
    fs::copy(&original, &place).map_err(|error| unwritable(file, &error))?;
    File::open(&place).and_then(|copied| copied.sync_all()).map_err(|error| unwritable(file, &error))
}

fn write_info(content: &[u8], columns: &[ExtraColumn<'_>], beside: &Beside) -> Result<(), Error> {
    let mut info = parse(INFO, content)?;
    if let Some(Value::Object(features)) = info.get_mut("features") {
        for column in columns {
            features.insert(column.key.to_string(), describe_feature(&feature()));
        }
    }
    beside.write_json(INFO, &info)
}

fn write_stats(source: &Root, columns: &[ExtraColumn<'_>], beside: &Beside) -> Result<(), Error> {
    if !source.has(STATS) {
        return Ok(());
    }
    let mut stats = parse(STATS, &source.read(STATS, MAX_JSON)?)?;
    let Value::Object(entries) = &mut stats else {
        return Err(malformed_json(STATS, "it holds no object".to_string()).into());
    };
    for column in columns {
        entries.extend(stats_of(column.values).map(|found| (column.key.to_string(), found.to_json())));
    }
    beside.write_json(STATS, &stats)
}

fn stats_of(values: &[i64]) -> Option<FeatureStats> {
    let mut running = Running::new(1);
    running.add(values.len() as u64, values.len(), |row, _| values[row] as f64);
    running.stats(Numbers::Integer, &[1])
}

/// The note of the `datasets` package with the new columns; as it was, if we do not understand it.
fn with_features(note: &str, columns: &[ExtraColumn<'_>]) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(note) else { return note.to_string() };
    let Some(Value::Object(features)) = value.pointer_mut("/info/features") else { return note.to_string() };
    for column in columns {
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
