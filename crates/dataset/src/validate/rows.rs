//! The rows of the data files: every listed column, the counters, the times, the ends of episodes.
//!
//! Where a file has as many rows as its episodes, rows are held against the place that the metadata give them. Where it has
//! not, that is told once, and what its own `episode_index` says is taken for the episodes, or every row behind the first
//! missing one would be wrong.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use arrow_array::ArrayRef;
use rayon::prelude::*;

use super::notes::Notes;
use super::statistics::Moments;
use super::{Meter, Report, Stage, Validation, frames_of, images};
use crate::episodes::{DataFile, EpisodeTable};
use crate::fault::Fault;
use crate::numbers::{Expected, fitting, in_words, numbers};
use crate::plausible::{self, Magnitudes, column_name, fault, not_finite};
use crate::roles::Roles;
use crate::table::{Bad, Table};
use crate::tasks::TASKS;

/// The same tolerance as lerobot's, in seconds.
pub(super) const TOLERANCE: f64 = 1e-4;

/// The most unknown tasks that are named in one file.
const MAX_UNKNOWN: usize = 4;

/// What all data files say together.
pub(super) struct Rows {
    /// By feature, of the features that could be read everywhere.
    pub(super) moments: BTreeMap<String, Moments>,
    /// Whether every row was read.
    pub(super) complete: bool,
}

/// A data file and what it should hold.
struct Plan {
    file: String,
    /// Its episodes with their rows in the dataset; unknown without metadata.
    episodes: Option<Vec<Segment>>,
}

/// An episode's number and its rows in the dataset.
type Segment = (usize, Range<usize>);

/// What was found in a file.
#[derive(Default)]
struct Found {
    notes: Notes,
    rows: Option<usize>,
    pictures: usize,
    moments: BTreeMap<String, Moments>,
    /// Of the columns that training uses.
    magnitudes: BTreeMap<String, Magnitudes>,
}

/// What the check of a file needs.
struct Check<'a> {
    validation: &'a Validation<'a>,
    columns: Vec<Expected>,
    tasks: Option<&'a BTreeSet<i64>>,
    done: Option<&'a str>,
    /// The columns that training uses.
    used: Vec<&'a str>,
    images: &'a [String],
    meter: Meter<'a>,
}

/// Checks all data files, in parallel.
pub(super) fn check(
    validation: &Validation<'_>,
    table: Option<&EpisodeTable>,
    tasks: Option<&BTreeSet<i64>>,
    roles: Option<&Roles>,
    images: &[String],
    report: &mut Report,
) -> Rows {
    let plans = plans(validation, table);
    let meter = validation.meter(Stage::Rows, table.map_or(0, frames_of));
    let done = roles.and_then(|roles| roles.done.as_deref());
    let used = roles.map_or_else(Vec::new, |roles| {
        [Some(&roles.state), Some(&roles.action), roles.reward.as_ref()]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect()
    });
    let check = Check { validation, columns: Expected::all(validation.info), tasks, done, used, images, meter };
    let found: Vec<Found> = plans.par_iter().enumerate().map(|(at, plan)| check.file(at, plan)).collect();
    let mut rows = Rows { moments: BTreeMap::new(), complete: true };
    let mut all_magnitudes: BTreeMap<String, Magnitudes> = BTreeMap::new();
    for (at, Found { notes, rows: read, pictures, moments, magnitudes }) in found.into_iter().enumerate() {
        for (key, more) in magnitudes {
            match all_magnitudes.entry(key) {
                Entry::Occupied(mut known) => known.get_mut().merge(&more),
                Entry::Vacant(free) => drop(free.insert(more)),
            }
        }
        let faults = notes.into_faults();
        rows.complete &= read.is_some() && !faults.iter().any(|fault| matches!(fault, Fault::WrongRows { .. }));
        report.checked.files += u64::from(read.is_some());
        report.checked.rows += read.unwrap_or(0) as u64;
        report.checked.pictures += pictures as u64;
        report.faults.extend(faults);
        match at {
            0 => rows.moments = moments,
            _ => rows.moments.retain(|key, so_far| moments.get(key).is_some_and(|more| so_far.merge(more))),
        }
    }
    for (key, magnitudes) in all_magnitudes {
        let Some(column) = check.columns.iter().find(|column| column.key == key) else { continue };
        report.faults.extend(magnitudes.implausible().iter().map(|(found, usual)| {
            let plan = &plans[found.file];
            fault(
                plan.file.clone(),
                check.name(column, found.dimension),
                plan.episode_of(found.row),
                found,
                Some(*usual),
            )
        }));
    }
    rows
}

/// The files that the metadata name, or those that are there.
fn plans(validation: &Validation<'_>, table: Option<&EpisodeTable>) -> Vec<Plan> {
    let Some(table) = table else {
        let folder = validation.info.data_path.split('/').next().unwrap_or_default();
        let files = validation.root.list(folder).into_iter().filter(|file| file.ends_with(".parquet"));
        return files.map(|file| Plan { file, episodes: None }).collect();
    };
    let plan = |file: &DataFile| Plan { file: file.path.clone(), episodes: Some(Vec::new()) };
    let mut plans: Vec<Plan> = table.files.iter().map(plan).collect();
    for (episode, number) in table.episodes.iter().zip(&table.numbers) {
        if let Some(episodes) = &mut plans[episode.file as usize].episodes {
            episodes.push((*number, episode.frames.clone()));
        }
    }
    plans
}

impl Plan {
    /// The episode that a row of the file belongs to, as far as the metadata say it.
    fn episode_of(&self, row: usize) -> Option<usize> {
        let mut end = 0_usize;
        let holds = |(_, rows): &&Segment| {
            end = end.saturating_add(rows.len());
            row < end
        };
        self.episodes.as_ref()?.iter().find(holds).map(|(number, _)| *number)
    }
}

impl Check<'_> {
    /// A dimension of a column, by its name where it has one.
    fn name(&self, column: &Expected, dimension: usize) -> String {
        let names = self.validation.info.feature(&column.key).and_then(|feature| feature.dimension_names());
        column_name(&column.key, column.width, dimension, names.as_deref())
    }

    /// `at`: the place of the file among all.
    fn file(&self, at: usize, plan: &Plan) -> Found {
        let mut found = Found::default();
        let table = match Table::open(self.validation.root, &plan.file) {
            Ok(table) => table,
            Err(error) => {
                found.notes.extend(error.into_faults());
                return found;
            }
        };
        let rows = table.rows();
        let sum = |episodes: &Vec<Segment>| episodes.iter().fold(0, |sum: usize, it| sum.saturating_add(it.1.len()));
        let expected = plan.episodes.as_ref().map(sum);
        if let Some(expected) = expected.filter(|expected| *expected != rows) {
            let (file, found_rows, expected) = (plan.file.clone(), rows as u64, expected as u64);
            found.notes.extend([Fault::WrongRows { file, found: found_rows, expected }]);
        }
        let readable = self.readable(&table, &mut found.notes);
        let wanted: Vec<&str> = readable.iter().map(|column| column.key.as_str()).collect();
        let segments = plan.episodes.as_deref().filter(|_| expected == Some(rows));
        let mut walk = Walk::new(self, &plan.file, segments);
        let scanned = table.scan(&wanted, |row, arrays| {
            let mut batch = Batch::default();
            for (column, array) in readable.iter().zip(arrays) {
                match numbers(column, array) {
                    Ok(values) => {
                        self.check_numbers(column, &values, row, at, plan, &mut found);
                        batch.put(column, values, &mut found);
                    }
                    Err(bad) => found.notes.add(&column.key, fault_of(bad, &plan.file, column, row, array)),
                }
            }
            walk.rows(row, arrays.first().map_or(0, |array| array.len()), &batch, &mut found.notes);
            self.meter.add(arrays.first().map_or(0, |array| array.len()));
            Ok(())
        });
        match scanned {
            Ok(()) => {
                walk.finish(rows, &mut found.notes);
                found.rows = Some(rows);
                for image in self.images.iter().filter(|key| table.column(key).is_some()) {
                    found.pictures += images::check(self.validation, &table, image, &mut found.notes);
                }
            }
            Err(error) => found.notes.extend(error.into_faults()),
        }
        found
    }

    /// The columns that can be read, and faults for those that cannot.
    fn readable(&self, table: &Table, notes: &mut Notes) -> Vec<&Expected> {
        let file = table.file();
        let missing = |column: &str, expected: String| Fault::MissingColumn {
            file: file.to_string(),
            column: column.to_string(),
            expected,
        };
        let mut readable = Vec::new();
        for column in &self.columns {
            match table.column(&column.key).map(|found| fitting(column, found)) {
                Some(Ok(())) => readable.push(column),
                Some(Err(found)) => notes.extend([Fault::WrongType {
                    file: file.to_string(),
                    column: column.key.clone(),
                    found,
                    expected: column.shown.clone(),
                }]),
                None => notes.extend([missing(&column.key, column.shown.clone())]),
            }
        }
        for image in self.images.iter().filter(|key| table.column(key).is_none()) {
            notes.extend([missing(image, "pictures as bytes of PNG or JPEG".to_string())]);
        }
        let listed =
            |name: &str| self.columns.iter().any(|it| it.key == name) || self.validation.info.feature(name).is_some();
        let extra = table.columns().into_iter().filter(|name| !listed(name));
        notes.extend(extra.map(|name| Fault::ExtraColumn { file: file.to_string(), column: name.to_string() }));
        readable
    }
}

impl Check<'_> {
    /// Notes numbers that are not finite, and measures the magnitudes of those that training uses.
    fn check_numbers(&self, column: &Expected, values: &[f64], row: usize, at: usize, plan: &Plan, found: &mut Found) {
        if let Some(bad) = not_finite(values.iter().copied(), column.width) {
            let bad = plausible::Found { row: row + bad.row, ..bad };
            let name = self.name(column, bad.dimension);
            let fault = fault(plan.file.clone(), name, plan.episode_of(bad.row), &bad, None);
            found.notes.add(&column.key, fault);
        }
        if self.used.contains(&column.key.as_str()) {
            let own = found.magnitudes.entry(column.key.clone()).or_insert_with(|| Magnitudes::new(column.width));
            own.add(values.iter().copied(), at, row);
        }
    }
}

fn fault_of(bad: Bad, file: &str, column: &Expected, row: usize, array: &ArrayRef) -> Fault {
    let (file, key) = (file.to_string(), column.key.clone());
    match bad {
        Bad::Missing(at) => Fault::MissingValue { file, column: key, row: row + at, count: array.null_count().max(1) },
        Bad::Width { row: at, found, expected } => {
            Fault::WrongWidth { file, column: key, row: row + at, found, expected }
        }
        Bad::Type => {
            let found = in_words(array.data_type());
            Fault::WrongType { file, column: key, found, expected: column.shown.clone() }
        }
    }
}

/// The values of some rows that are needed together.
#[derive(Default)]
struct Batch {
    columns: BTreeMap<String, Vec<f64>>,
}

impl Batch {
    /// Takes a column, and measures it.
    fn put(&mut self, column: &Expected, values: Vec<f64>, found: &mut Found) {
        let width = column.width.max(1);
        if column.flat {
            found.moments.entry(column.key.clone()).or_insert_with(|| Moments::new(width)).add(&values);
        }
        if width == 1 {
            self.columns.insert(column.key.clone(), values);
        }
    }

    fn get(&self, key: &str) -> Option<&[f64]> {
        self.columns.get(key).map(Vec::as_slice)
    }
}

/// Follows the rows of a file from episode to episode.
struct Walk<'a> {
    check: &'a Check<'a>,
    file: &'a str,
    /// Its episodes, if the file has as many rows as they.
    segments: Option<&'a [Segment]>,
    /// Which of them the next row belongs to, and which of its rows it is.
    segment: usize,
    position: usize,
    /// The episode of the row before, where there are no segments.
    before: Option<f64>,
    /// What `next.done` was in the row before.
    was_done: Option<bool>,
    unknown: BTreeMap<i64, usize>,
}

impl<'a> Walk<'a> {
    fn new(check: &'a Check<'a>, file: &'a str, segments: Option<&'a [Segment]>) -> Walk<'a> {
        let (before, was_done, unknown) = (None, None, BTreeMap::new());
        Walk { check, file, segments, segment: 0, position: 0, before, was_done, unknown }
    }

    fn rows(&mut self, first_row: usize, count: usize, batch: &Batch, notes: &mut Notes) {
        let fps = self.check.validation.info.fps;
        let [episodes, frames, indices, tasks, times] =
            ["episode_index", "frame_index", "index", "task_index", "timestamp"].map(|key| batch.get(key));
        let done = self.check.done.and_then(|key| batch.get(key));
        for at in 0..count {
            let row = first_row + at;
            let placed = self.advance(episodes.map(|values| values[at]));
            if let (Some(done), Some((key, _))) = (done, self.check.done.zip(placed)) {
                let first = self.position == 0;
                match (first, self.was_done) {
                    (true, Some(false)) => notes.add("late", self.wrong_done(key, row - 1, false)),
                    (false, Some(true)) => notes.add("early", self.wrong_done(key, row - 1, true)),
                    _ => {}
                }
                self.was_done = Some(done[at] != 0.0);
            }
            let mut counter = |column: &'static str, values: Option<&[f64]>, expected: Option<usize>| {
                if let (Some(values), Some(expected)) = (values, expected)
                    && values[at] != expected as f64
                {
                    let (file, found, expected) = (self.file.to_string(), values[at] as i64, expected as i64);
                    notes.add(column, Fault::WrongIndex { file, column, row, found, expected, count: 1 });
                }
            };
            let segment = self.segments.and_then(|segments| segments.get(self.segment));
            counter("index", indices, segment.map(|(_, rows)| rows.start.saturating_add(self.position)));
            counter("episode_index", episodes, placed.and_then(|episode| episode));
            counter("frame_index", frames, placed.map(|_| self.position));
            if let (Some(times), true, true) = (times, placed.is_some(), fps > 0.0) {
                let (found, expected) = (times[at], self.position as f64 / fps);
                if (found - expected).abs() > TOLERANCE + f64::from(f32::EPSILON) * expected && found.is_finite() {
                    let file = self.file.to_string();
                    notes.add("timestamp", Fault::WrongTimestamp { file, row, found, expected, count: 1 });
                }
            }
            if let (Some(values), Some(tasks)) = (tasks, self.check.tasks) {
                let task = values[at] as i64;
                if !tasks.contains(&task) && (self.unknown.len() < MAX_UNKNOWN || self.unknown.contains_key(&task)) {
                    *self.unknown.entry(task).or_default() += 1;
                }
            }
        }
    }

    /// Goes to the next row. `None` if nothing says which episode it belongs to; else its number, where the metadata say
    /// it, with `position` at its place in the episode.
    fn advance(&mut self, episode: Option<f64>) -> Option<Option<usize>> {
        let starting = self.before.is_none();
        if let Some(segments) = self.segments {
            self.before = Some(0.0);
            if !starting {
                self.position += 1;
            }
            while segments.get(self.segment).is_some_and(|(_, rows)| self.position >= rows.len()) {
                self.segment += 1;
                self.position = 0;
            }
            return segments.get(self.segment).map(|(number, _)| Some(*number));
        }
        let episode = episode?;
        self.position = if self.before == Some(episode) { self.position + 1 } else { 0 };
        self.before = Some(episode);
        Some(None)
    }

    fn wrong_done(&self, column: &str, row: usize, early: bool) -> Fault {
        Fault::WrongDone { file: self.file.to_string(), column: column.to_string(), row, early, count: 1 }
    }

    /// After the last row.
    fn finish(self, rows: usize, notes: &mut Notes) {
        // A file that is cut off ends in the middle of an episode.
        if let (Some(false), Some(key), Some(_)) = (self.was_done, self.check.done, self.segments) {
            notes.add("late", self.wrong_done(key, rows.saturating_sub(1), false));
        }
        notes.extend(self.unknown.iter().map(|(task, count)| {
            let users = match count {
                1 => format!("1 row of `{}`", self.file),
                _ => format!("{count} rows of `{}`", self.file),
            };
            Fault::UnknownTask { file: TASKS.to_string(), task: *task, users }
        }));
    }
}
