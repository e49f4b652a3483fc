//! The numbers of a whole dataset, each column contiguous in memory.
//!
//! A window is a slice of these, never a copy. Files are read in parallel, each into its own part of the columns, so that
//! the peak of memory is the columns and what the decoders hold.

use std::collections::BTreeMap;

use arrow_array::{Array, ArrayRef};
use rayon::prelude::*;

use crate::episodes::DataFile;
use crate::fault::{Error, Fault};
use crate::files::Root;
use crate::info::Info;
use crate::roles::Roles;
use crate::table::{Bad, Table, booleans_of, integers_of, rows_of};

/// Rows of equal width, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The number of values in a row.
    pub width: usize,
    /// `rows × width` values.
    pub values: Vec<f32>,
}

impl Matrix {
    /// Some rows.
    ///
    /// # Shapes
    /// `[rows, width]`, row by row.
    pub fn rows(&self, rows: std::ops::Range<usize>) -> &[f32] {
        &self.values[rows.start * self.width..rows.end * self.width]
    }
}

/// The columns that have a role, over all frames of the dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// The robot's states.
    pub states: Matrix,
    /// The actions.
    pub actions: Matrix,
    /// Rewards after each action.
    pub rewards: Option<Vec<f32>>,
    /// Whether the episode ends.
    pub done: Option<Vec<bool>>,
    /// Whether the task is solved.
    pub success: Option<Vec<bool>>,
    /// The task of each frame.
    pub tasks: Vec<i64>,
    /// Seconds since the episode's start.
    pub timestamps: Vec<f32>,
    /// Integer columns by name.
    pub labels: BTreeMap<String, Vec<i64>>,
}

/// Data files that are held open while they are read.
const MAX_OPEN: usize = 256;

/// The most bytes that the columns of one dataset may take.
const MAX_BYTES: usize = 1 << 40;

/// Reads the columns from all data files. `check` sees the automatic columns of each batch, and says what is wrong with
/// them.
pub(crate) fn read(
    root: &Root,
    info: &Info,
    roles: &Roles,
    files: &[DataFile],
    check: &(dyn Fn(&Counters<'_>) -> Vec<Fault> + Sync),
) -> Result<Columns, Error> {
    // Row counts first: nothing is allocated for rows that only the metadata promise. Many files are opened twice rather
    // than held open, as systems allow a process a thousand or so.
    let open = |file: &DataFile| Table::open(root, &file.path);
    let hold = files.len() <= MAX_OPEN;
    let counted = |file: &DataFile| open(file).map(|table| (table.rows(), hold.then_some(table)));
    let tables: Vec<(usize, Option<Table>)> = files.par_iter().map(counted).collect::<Result<_, _>>()?;
    let short = tables.iter().zip(files).filter(|((rows, _), file)| *rows != file.rows.len());
    let wrong = short.map(|((rows, _), file)| Fault::WrongRows {
        file: file.path.clone(),
        found: *rows as u64,
        expected: file.rows.len() as u64,
    });
    if let Some(error) = Error::of(wrong.collect()) {
        return Err(error);
    }
    let rows = files.last().map_or(0, |file| file.rows.end);
    let mut columns = Columns::zeros(info, roles, rows).ok_or(Fault::NoFrames)?;
    let parts = columns.parts(files);
    let faults: Vec<Fault> = parts
        .into_par_iter()
        .zip(tables)
        .zip(files)
        .map(|((mut part, (_, table)), file)| {
            let table = table.map_or_else(|| open(file), Ok);
            match table.and_then(|table| part.fill(&table, file, roles, check)) {
                Ok(faults) => faults,
                Err(error) => error.into_faults(),
            }
        })
        .flatten()
        .collect();
    Error::of(faults).map_or(Ok(columns), Err)
}

/// The automatic columns of some rows of a file.
pub(crate) struct Counters<'a> {
    /// The file.
    pub(crate) file: &'a str,
    /// The first row, in the file.
    pub(crate) row: usize,
    /// The first row, in the dataset.
    pub(crate) index: usize,
    pub(crate) episode_index: &'a [i64],
    pub(crate) task_index: &'a [i64],
}

impl Columns {
    /// Columns of zeros, or `None` if they would pass all bounds. Untouched pages take no memory.
    fn zeros(info: &Info, roles: &Roles, rows: usize) -> Option<Columns> {
        let width = |key: &str| info.feature(key).map_or(1, |feature| feature.width());
        let matrix = |key: &str| Some(Matrix { width: width(key), values: zeros(rows.checked_mul(width(key))?)? });
        Some(Columns {
            states: matrix(&roles.state)?,
            actions: matrix(&roles.action)?,
            rewards: if roles.reward.is_some() { Some(zeros(rows)?) } else { None },
            done: if roles.done.is_some() { Some(zeros(rows)?) } else { None },
            success: if roles.success.is_some() { Some(zeros(rows)?) } else { None },
            tasks: zeros(rows)?,
            timestamps: zeros(rows)?,
            labels: roles.labels.iter().map(|key| Some((key.clone(), zeros(rows)?))).collect::<Option<_>>()?,
        })
    }

    /// The number of frames.
    pub fn len(&self) -> usize {
        self.timestamps.len()
    }

    /// Whether there are no frames.
    pub fn is_empty(&self) -> bool {
        self.timestamps.is_empty()
    }

    /// The bytes that the columns take.
    pub fn bytes(&self) -> usize {
        let options = [
            self.rewards.as_ref().map(|it| it.len() * 4),
            self.done.as_ref().map(Vec::len),
            self.success.as_ref().map(Vec::len),
        ];
        (self.states.values.len() + self.actions.values.len() + self.timestamps.len()) * 4
            + (self.tasks.len() + self.labels.values().map(Vec::len).sum::<usize>()) * 8
            + options.into_iter().flatten().sum::<usize>()
    }

    /// The columns cut into one part for each file.
    fn parts<'a>(&'a mut self, files: &[DataFile]) -> Vec<Part<'a>> {
        let lengths: Vec<usize> = files.iter().map(|file| file.rows.len()).collect();
        let (state_width, action_width) = (self.states.width, self.actions.width);
        let mut states = cut(&mut self.states.values, &lengths, state_width).into_iter();
        let mut actions = cut(&mut self.actions.values, &lengths, action_width).into_iter();
        let mut tasks = cut(&mut self.tasks, &lengths, 1).into_iter();
        let mut timestamps = cut(&mut self.timestamps, &lengths, 1).into_iter();
        let mut rewards = self.rewards.as_deref_mut().map(|column| cut(column, &lengths, 1).into_iter());
        let mut done = self.done.as_deref_mut().map(|column| cut(column, &lengths, 1).into_iter());
        let mut success = self.success.as_deref_mut().map(|column| cut(column, &lengths, 1).into_iter());
        let mut labels: Vec<_> =
            self.labels.iter_mut().map(|(key, column)| (key.as_str(), cut(column, &lengths, 1).into_iter())).collect();
        let mut parts = Vec::with_capacity(files.len());
        while let (Some(states), Some(actions), Some(tasks), Some(timestamps)) =
            (states.next(), actions.next(), tasks.next(), timestamps.next())
        {
            parts.push(Part {
                states: (state_width, states),
                actions: (action_width, actions),
                tasks,
                timestamps,
                rewards: rewards.as_mut().and_then(Iterator::next),
                done: done.as_mut().and_then(Iterator::next),
                success: success.as_mut().and_then(Iterator::next),
                labels: labels.iter_mut().filter_map(|(key, column)| Some((*key, column.next()?))).collect(),
            });
        }
        parts
    }
}

fn zeros<T: Clone + Default>(count: usize) -> Option<Vec<T>> {
    if count.checked_mul(size_of::<T>())? > MAX_BYTES {
        return None;
    }
    Some(vec![T::default(); count])
}

fn cut<'a, T>(mut column: &'a mut [T], lengths: &[usize], width: usize) -> Vec<&'a mut [T]> {
    let mut parts = Vec::with_capacity(lengths.len());
    for length in lengths {
        let (part, rest) = column.split_at_mut(length * width);
        parts.push(part);
        column = rest;
    }
    parts
}

/// The rows of one file.
struct Part<'a> {
    states: (usize, &'a mut [f32]),
    actions: (usize, &'a mut [f32]),
    rewards: Option<&'a mut [f32]>,
    done: Option<&'a mut [bool]>,
    success: Option<&'a mut [bool]>,
    tasks: &'a mut [i64],
    timestamps: &'a mut [f32],
    labels: Vec<(&'a str, &'a mut [i64])>,
}

impl Part<'_> {
    /// Reads the file into the part.
    fn fill(
        &mut self,
        table: &Table,
        file: &DataFile,
        roles: &Roles,
        check: &(dyn Fn(&Counters<'_>) -> Vec<Fault> + Sync),
    ) -> Result<Vec<Fault>, Error> {
        let mut wanted = vec!["episode_index", "task_index", "timestamp"];
        let counters = wanted.len();
        wanted.extend([roles.state.as_str(), roles.action.as_str()]);
        wanted.extend([&roles.reward, &roles.done, &roles.success].into_iter().flatten().map(String::as_str));
        // In their own order, which is not that of the description.
        wanted.extend(self.labels.iter().map(|(key, _)| *key));
        let mut faults = Vec::new();
        let mut episode_index = Vec::new();
        table.scan(&wanted, |row, arrays| {
            let rows = row..row + arrays[0].len();
            let put = |column: &str, filled: Result<(), Bad>, expected: &str, array: &ArrayRef| {
                table.fill(column, row, filled, expected, array)
            };
            episode_index.resize(rows.len(), 0);
            put("episode_index", integers_of(&arrays[0], &mut episode_index), "integers", &arrays[0])?;
            put("task_index", integers_of(&arrays[1], &mut self.tasks[rows.clone()]), "integers", &arrays[1])?;
            put("timestamp", rows_of(&arrays[2], 1, &mut self.timestamps[rows.clone()]), "numbers", &arrays[2])?;
            faults.extend(check(&Counters {
                file: table.file(),
                row,
                index: file.rows.start + row,
                episode_index: &episode_index,
                task_index: &self.tasks[rows.clone()],
            }));
            let mut at = counters;
            for (width, values) in [&mut self.states, &mut self.actions] {
                let part = &mut values[rows.start * *width..rows.end * *width];
                put(wanted[at], rows_of(&arrays[at], *width, part), "numbers", &arrays[at])?;
                at += 1;
            }
            if let Some(values) = &mut self.rewards {
                put(wanted[at], rows_of(&arrays[at], 1, &mut values[rows.clone()]), "numbers", &arrays[at])?;
                at += 1;
            }
            for values in [&mut self.done, &mut self.success].into_iter().flatten() {
                put(wanted[at], booleans_of(&arrays[at], &mut values[rows.clone()]), "true or false", &arrays[at])?;
                at += 1;
            }
            for (_, values) in &mut self.labels {
                put(wanted[at], integers_of(&arrays[at], &mut values[rows.clone()]), "integers", &arrays[at])?;
                at += 1;
            }
            Ok(())
        })?;
        Ok(faults)
    }
}
