//! Writing LeRobot v3.0 datasets, as the lerobot package reads them.
//!
//! A [`Writer`] takes one episode after the other and holds no more than a row group of each file: memory does not grow
//! with the dataset, but for the statistics (at most 2 MiB for each place of a vector) and the list of tasks. All is
//! written into a directory beside the target, and renamed by [`Writer::finish`]; a writer that is dropped leaves
//! nothing.
//!
//! ```
//! use dataset::write::{ColumnData, EpisodeData, WriteOptions, Writer};
//! use dataset::{Dtype, Feature};
//!
//! # fn main() -> Result<(), dataset::Error> {
//! # let folder = tempfile::tempdir().map_err(|error| dataset::Fault::NoFrames)?;
//! # let target = folder.path().join("pour");
//! let features = vec![("action".to_string(), Feature::new(Dtype::Float32, &[2]).named(&["x", "y"]))];
//! let mut writer = Writer::create(&target, WriteOptions::new(20, features))?;
//! let action = [0.0, 0.1, 0.2, 0.3];
//! let columns = [("action", ColumnData::F32(&action))];
//! writer.add_episode(&EpisodeData { task: "pour the water", columns: &columns })?;
//! let summary = writer.finish()?;
//! assert_eq!((summary.episodes, summary.frames), (1, 2));
//! # Ok(())
//! # }
//! ```
//!
//! Pictures are written as PNG inside the data files. Videos are not encoded.

pub(crate) mod annotate;
mod beside;
mod columns;
mod describe;
mod episodes;
mod extend;
mod language;
mod modes;
mod outline;
mod rolling;
mod runs;
mod subtasks;
mod tables;
mod whole;

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use rayon::prelude::*;

pub use annotate::{Annotation, SUBTASK_INDEX, SUBTASKS, annotate, has_subtasks, vocabulary_file, wrong_key};
pub use columns::ColumnData;
pub use describe::WriteOptions;
pub use extend::{ExtraColumn, rewrite_with_columns};
pub use language::{LANGUAGE_EVENTS, LANGUAGE_PERSISTENT};
pub use modes::check_writable;
pub use outline::{Outline, is_within};
pub use runs::{FrameValues, Runs};
pub use subtasks::{Foreign, Form, Place, RECORD, SKILL_INDEX, Subtasks, foreign_subtasks, write_subtasks};

use crate::fault::{Error, Fault};
use crate::info::{Feature, INFO};
use crate::stats::{FeatureStats, Numbers, Running, STATS, Stats, pictures, stats_shape};
use crate::tasks::TASKS;
use beside::Beside;
use episodes::{EpisodeRow, EpisodeTable};
use rolling::{Rolling, parquet_file};

/// Where data files are.
const DATA: &str = "data";

/// An episode to be written.
#[derive(Clone, Copy, Debug)]
pub struct EpisodeData<'a> {
    /// The instruction. Equal texts are one task; tasks are numbered in the order of their first episode.
    pub task: &'a str,
    /// A column for each feature of the options, in any order. All have the same number of rows, at least one.
    pub columns: &'a [(&'a str, ColumnData<'a>)],
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The number of episodes.
    pub episodes: u64,
    /// The number of frames.
    pub frames: u64,
    /// The number of tasks.
    pub tasks: u64,
    /// The number of data files.
    pub data_files: u64,
}

/// Writes a dataset, episode by episode.
pub struct Writer {
    options: WriteOptions,
    /// Those of the options and those that every dataset has.
    features: Vec<(String, Feature)>,
    schema: SchemaRef,
    data: Rolling,
    episode_table: EpisodeTable,
    /// Statistics of the whole dataset, of each feature that has any.
    running: Vec<Option<Running>>,
    tasks: Vec<String>,
    task_numbers: BTreeMap<String, usize>,
    episodes: u64,
    frames: u64,
    /// What went wrong in the middle of writing: then what is there is no dataset.
    broken: Option<Error>,
    // Last, so that files are closed before their directory is removed.
    beside: Beside,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("beside", &self.beside).field("episodes", &self.episodes).finish_non_exhaustive()
    }
}

impl Writer {
    /// Starts a dataset. The directory must not exist, or be empty.
    pub fn create(directory: &Path, options: WriteOptions) -> Result<Writer, Error> {
        options.check()?;
        let beside = Beside::create(directory)?;
        let features = options.all_features();
        let (schema, properties) = columns::data_format(&features);
        let (limit, chunks_size) = (u64::from(options.data_file_mb) << 20, u64::from(options.chunks_size));
        Ok(Writer {
            data: Rolling::new(DATA, schema.clone(), properties, limit, chunks_size),
            episode_table: EpisodeTable::new(&features, limit, chunks_size),
            running: features.iter().map(|(_, feature)| running_for(feature)).collect(),
            tasks: Vec::new(),
            task_numbers: BTreeMap::new(),
            episodes: 0,
            frames: 0,
            broken: None,
            options,
            features,
            schema,
            beside,
        })
    }

    /// Appends an episode. One that is refused leaves the dataset as it was.
    pub fn add_episode(&mut self, episode: &EpisodeData<'_>) -> Result<(), Error> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let (columns, rows) = self.checked(episode)?;
        let written = self.write_episode(episode.task, &columns, rows);
        self.broken = written.as_ref().err().cloned();
        written
    }

    /// Names the values of an integer column, in a file such as `meta/skills.json` for a column `skill`.
    pub fn name_values(&mut self, key: &str, names: &[String]) -> Result<(), Error> {
        self.beside.write_json(&annotate::vocabulary_file(key), &serde_json::json!({"feature": key, "names": names}))
    }

    /// Writes the metadata and puts the directory in its place.
    pub fn finish(mut self) -> Result<Summary, Error> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        if self.frames == 0 {
            return Err(Fault::NoFrames.into());
        }
        self.data.close()?;
        self.episode_table.close(&self.beside)?;
        tables::write_texts(&self.beside, TASKS, "task_index", &self.tasks)?;
        let mut stats = Stats::default();
        for ((key, feature), running) in self.features.iter().zip(&mut self.running) {
            if let (Some(running), Some(shape)) = (running, stats_shape(feature)) {
                let found = running.stats(Numbers::of(&feature.dtype), &shape);
                stats.features.extend(found.map(|found| (key.clone(), found)));
            }
        }
        self.beside.write_json(STATS, &stats.to_json())?;
        let summary = Summary {
            episodes: self.episodes,
            frames: self.frames,
            tasks: self.tasks.len() as u64,
            data_files: self.data.files(),
        };
        self.beside.write_json(INFO, &self.options.info(summary.episodes, summary.frames, summary.tasks))?;
        self.beside.finish()?;
        Ok(summary)
    }

    /// The columns in the order of the features, and the number of rows; or all that is wrong with them.
    fn checked<'a>(&self, episode: &EpisodeData<'a>) -> Result<(Vec<ColumnData<'a>>, usize), Error> {
        let file = format!("episode {}", self.episodes);
        let mut faults = Vec::new();
        for (at, (key, _)) in episode.columns.iter().enumerate() {
            let candidates = || self.options.features.iter().map(|(key, _)| key.clone()).collect();
            let twice = episode.columns[..at].iter().any(|(other, _)| other == key);
            if twice || !self.options.features.iter().any(|(known, _)| known == key) {
                faults.push(Fault::UnknownKey { key: key.to_string(), candidates: candidates() });
            }
        }
        let find = |key: &str| episode.columns.iter().find(|(name, _)| *name == key).map(|(_, data)| *data);
        let rows = self.options.features.first().and_then(|(key, feature)| {
            let width = if feature.dtype.is_camera() { 1 } else { feature.width() };
            find(key).map(|data| data.len() / width.max(1))
        });
        let rows = rows.unwrap_or(0);
        let mut columns = Vec::new();
        for (key, feature) in &self.options.features {
            match find(key) {
                Some(data) => {
                    faults.extend(data.check(&file, key, feature, rows));
                    columns.push(data);
                }
                None => faults.push(Fault::MissingColumn {
                    file: file.clone(),
                    column: key.clone(),
                    expected: feature.shown(),
                }),
            }
        }
        if faults.is_empty() && rows == 0 {
            faults.push(Fault::EmptyEpisode { file, episode: self.episodes as usize });
        }
        Error::of(faults).map_or(Ok((columns, rows)), Err)
    }

    fn write_episode(&mut self, task: &str, columns: &[ColumnData<'_>], rows: usize) -> Result<(), Error> {
        let task_index = match self.task_numbers.get(task) {
            Some(number) => *number,
            None => {
                self.task_numbers.insert(task.to_string(), self.tasks.len());
                self.tasks.push(task.to_string());
                self.tasks.len() - 1
            }
        };
        let automatic = Automatic::new(self.options.fps, self.episodes, self.frames, task_index, rows);
        let columns: Vec<ColumnData<'_>> = columns.iter().copied().chain(automatic.columns()).collect();
        let place = self.data.begin(&self.beside, rows as u64)?;
        let name = parquet_file(DATA, place);
        let step = batch_rows(&self.features);
        for start in (0..rows).step_by(step) {
            let range = start..rows.min(start + step);
            let arrays = self
                .features
                .iter()
                .zip(&columns)
                .map(|((_, feature), data)| columns::array(&name, feature, data, range.clone()));
            let arrays: Vec<ArrayRef> = arrays.collect::<Result<_, Error>>()?;
            let batch = RecordBatch::try_new(self.schema.clone(), arrays)
                .map_err(|error| columns::refused_array(&name, &error))?;
            self.data.write(&batch)?;
        }
        self.data.pause()?;
        let stats = self.measure(&columns, rows);
        let row = EpisodeRow { task: task.to_string(), length: rows as u64, data: place, from: self.frames, stats };
        self.episode_table.push(&self.beside, row)?;
        self.episodes += 1;
        self.frames += rows as u64;
        Ok(())
    }

    /// The statistics of an episode, which are also added to those of the dataset.
    fn measure(&mut self, columns: &[ColumnData<'_>], rows: usize) -> Vec<FeatureStats> {
        let together = self.features.par_iter().zip(columns).zip(&mut self.running);
        let measured = together.map(|(((_, feature), data), running)| {
            let shape = stats_shape(feature)?;
            let mut own = running_for(feature)?;
            match data {
                ColumnData::Images(frames) => pictures::add_pictures(&mut own, frames),
                data => {
                    let width = own.width();
                    own.add(rows as u64, data.len() / width.max(1), |row, place| data.number(row * width + place));
                }
            }
            if let Some(running) = running {
                running.merge(&own);
            }
            own.stats(Numbers::of(&feature.dtype), &shape)
        });
        measured.collect::<Vec<_>>().into_iter().flatten().collect()
    }
}

fn running_for(feature: &Feature) -> Option<Running> {
    stats_shape(feature).map(|shape| Running::new(shape.iter().product()))
}

/// The rows that are made into arrow arrays at once: few of pictures, so that they fit into memory as PNG.
fn batch_rows(features: &[(String, Feature)]) -> usize {
    const VALUES: usize = 1 << 22;
    let width = features.iter().map(|(_, feature)| feature.width()).sum::<usize>();
    (VALUES / width.max(1)).clamp(1, 8192)
}

/// The columns that every dataset has.
struct Automatic {
    timestamp: Vec<f32>,
    /// `frame_index`, `episode_index`, `index`, `task_index`
    numbers: [Vec<i64>; 4],
}

impl Automatic {
    fn new(fps: u32, episode: u64, first: u64, task: usize, rows: usize) -> Automatic {
        let frames = 0..rows as i64;
        Automatic {
            timestamp: frames.clone().map(|frame| (frame as f64 / f64::from(fps)) as f32).collect(),
            numbers: [
                frames.clone().collect(),
                vec![episode as i64; rows],
                frames.map(|frame| first as i64 + frame).collect(),
                vec![task as i64; rows],
            ],
        }
    }

    fn columns(&self) -> impl Iterator<Item = ColumnData<'_>> {
        let numbers = self.numbers.iter().map(|values| ColumnData::I64(values));
        std::iter::once(ColumnData::F32(&self.timestamp)).chain(numbers)
    }
}

#[cfg(test)]
mod tests;
