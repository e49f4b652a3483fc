//! `meta/episodes`: a row for each episode, with its tasks, its place in the data, and its statistics.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::beside::Beside;
use super::columns::{nest, properties, refused_array};
use super::rolling::{FilePlace, Rolling};
use crate::episodes::EPISODES;
use crate::fault::Error;
use crate::info::Feature;
use crate::stats::{FeatureStats, Numbers, QUANTILES, stats_shape};

/// Rows held back, so that they are written together.
const HELD: usize = 128;

/// One episode.
#[derive(Clone, Debug)]
pub(crate) struct EpisodeRow {
    pub(crate) task: String,
    pub(crate) length: u64,
    pub(crate) data: FilePlace,
    /// Its first row in the whole dataset.
    pub(crate) from: u64,
    /// In the order of the features that have any.
    pub(crate) stats: Vec<FeatureStats>,
}

/// Writes the rows.
pub(crate) struct EpisodeTable {
    /// The features with statistics.
    keys: Vec<String>,
    schema: SchemaRef,
    files: Rolling,
    held: Vec<EpisodeRow>,
    written: u64,
}

impl EpisodeTable {
    pub(crate) fn new(features: &[(String, Feature)], limit: u64, chunks_size: u64) -> EpisodeTable {
        let mut fields = vec![Field::new("episode_index", DataType::Int64, true)];
        let text = Arc::new(Field::new("element", DataType::Utf8, true));
        fields.push(Field::new("tasks", DataType::List(text), true));
        fields.extend(PLACES.map(|name| Field::new(name, DataType::Int64, true)));
        let mut keys = Vec::new();
        for (key, feature) in features {
            let Some(shape) = stats_shape(feature) else { continue };
            keys.push(key.clone());
            fields.extend(stats_fields(key, Numbers::of(&feature.dtype), shape.len()));
        }
        fields.extend(OWN_PLACE.map(|name| Field::new(name, DataType::Int64, true)));
        let schema = Arc::new(Schema::new(fields));
        let files = Rolling::new(EPISODES, schema.clone(), properties().build(), limit, chunks_size);
        EpisodeTable { keys, schema, files, held: Vec::new(), written: 0 }
    }

    pub(crate) fn push(&mut self, beside: &Beside, row: EpisodeRow) -> Result<(), Error> {
        self.held.push(row);
        if self.held.len() >= HELD { self.flush(beside) } else { Ok(()) }
    }

    pub(crate) fn close(&mut self, beside: &Beside) -> Result<(), Error> {
        self.flush(beside)?;
        self.files.close()
    }

    fn flush(&mut self, beside: &Beside) -> Result<(), Error> {
        if self.held.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.held);
        let place = self.files.begin(beside, rows.len() as u64)?;
        let batch = self.batch(&rows, place).map_err(|error| refused_array(EPISODES, &error))?;
        self.written += rows.len() as u64;
        self.files.write(&batch)?;
        self.files.pause()
    }

    fn batch(&self, rows: &[EpisodeRow], place: FilePlace) -> Result<RecordBatch, ArrowError> {
        let numbers = |value: &dyn Fn(usize, &EpisodeRow) -> u64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(rows.iter().enumerate().map(|(at, row)| value(at, row) as i64)))
        };
        let text = Field::new("element", DataType::Utf8, true);
        let mut tasks = ListBuilder::new(StringBuilder::new()).with_field(text);
        for row in rows {
            tasks.values().append_value(&row.task);
            tasks.append(true);
        }
        let mut columns: Vec<ArrayRef> = vec![
            numbers(&|at, _| self.written + at as u64),
            Arc::new(tasks.finish()),
            numbers(&|_, row| row.length),
            numbers(&|_, row| row.data.chunk),
            numbers(&|_, row| row.data.file),
            numbers(&|_, row| row.from),
            numbers(&|_, row| row.from + row.length),
        ];
        for at in 0..self.keys.len() {
            let stats: Vec<&FeatureStats> = rows.iter().filter_map(|row| row.stats.get(at)).collect();
            columns.extend(stats_columns(&stats)?);
        }
        columns.push(numbers(&|_, _| place.chunk));
        columns.push(numbers(&|_, _| place.file));
        RecordBatch::try_new(self.schema.clone(), columns)
    }
}

const PLACES: [&str; 5] = ["length", "data/chunk_index", "data/file_index", "dataset_from_index", "dataset_to_index"];

/// The place of the row itself.
pub(crate) const OWN_PLACE: [&str; 2] = ["meta/episodes/chunk_index", "meta/episodes/file_index"];

/// The columns `stats/<feature>/<statistic>` of a feature whose statistics have so many axes.
pub(crate) fn stats_fields(key: &str, numbers: Numbers, axes: usize) -> Vec<Field> {
    let own = match numbers {
        Numbers::Float => DataType::Float64,
        Numbers::Integer => DataType::Int64,
        Numbers::Bool => DataType::Boolean,
    };
    let list = |value: DataType, axes: usize| {
        (0..axes).fold(value, |inner, _| DataType::List(Arc::new(Field::new("element", inner, true))))
    };
    let field = |name: &str, value: DataType| Field::new(format!("stats/{key}/{name}"), value, true);
    let mut fields = vec![
        field("min", list(own.clone(), axes)),
        field("max", list(own, axes)),
        field("mean", list(DataType::Float64, axes)),
        field("std", list(DataType::Float64, axes)),
        field("count", list(DataType::Int64, 1)),
    ];
    fields.extend(QUANTILES.map(|(name, _)| field(name, list(DataType::Float64, axes))));
    fields
}

/// Their values, a row for each episode. All statistics must be of one feature.
pub(crate) fn stats_columns(episodes: &[&FeatureStats]) -> Result<Vec<ArrayRef>, ArrowError> {
    let Some(first) = episodes.first() else { return Ok(Vec::new()) };
    let (shape, rows) = (&first.shape, episodes.len());
    let floats = |list: &dyn Fn(&FeatureStats) -> Option<&Vec<f64>>| {
        let values = episodes.iter().filter_map(|stats| list(stats)).flatten().copied();
        nest(Arc::new(Float64Array::from_iter_values(values)), shape, rows)
    };
    let own = |list: fn(&FeatureStats) -> &Vec<f64>| {
        let values = episodes.iter().flat_map(|stats| list(stats));
        let array: ArrayRef = match first.numbers {
            Numbers::Float => Arc::new(Float64Array::from_iter_values(values.copied())),
            Numbers::Integer => Arc::new(Int64Array::from_iter_values(values.map(|value| *value as i64))),
            Numbers::Bool => Arc::new(BooleanArray::from(values.map(|value| *value != 0.0).collect::<Vec<_>>())),
        };
        nest(array, shape, rows)
    };
    let counts = episodes.iter().map(|stats| stats.count.unwrap_or(0) as i64);
    let mut columns = vec![
        own(|stats| &stats.min)?,
        own(|stats| &stats.max)?,
        floats(&|stats| Some(&stats.mean))?,
        floats(&|stats| Some(&stats.std))?,
        nest(Arc::new(Int64Array::from_iter_values(counts)), &[1], rows)?,
    ];
    for at in 0..QUANTILES.len() {
        columns.push(floats(&|stats| stats.quantiles[at].as_ref())?);
    }
    Ok(columns)
}
