//! The subtasks that a dataset has, in either of lerobot's forms.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array as _, ArrayRef};

use crate::fault::Error;
use crate::open::Dataset;
use crate::table::Table;
use crate::write::{FrameValues as _, LANGUAGE_PERSISTENT, Runs, SUBTASK_INDEX, SUBTASKS};

/// Subtasks of a dataset's frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameSubtasks {
    /// The names.
    pub names: Vec<String>,
    /// For each frame the place of its subtask in the names, or −1 for none.
    pub values: Runs,
}

impl FrameSubtasks {
    /// Those of a dataset; `None` if it has none.
    ///
    /// # Errors
    /// On files that cannot be read.
    pub fn of(dataset: &Dataset) -> Result<Option<FrameSubtasks>, Error> {
        if let Some(values) = dataset.columns().labels.get(SUBTASK_INDEX)
            && dataset.root().has(SUBTASKS)
        {
            let table = Table::open(dataset.root(), SUBTASKS)?;
            let text = if table.column("subtask").is_some() { "subtask" } else { "__index_level_0__" };
            let names = table.texts(text)?;
            let mut runs = Runs::default();
            values.runs(0..values.len(), &mut |run, value| {
                let known = usize::try_from(value).is_ok_and(|value| value < names.len());
                runs.push(run.len(), if known { value } else { -1 });
            });
            return Ok(Some(FrameSubtasks { names, values: runs }));
        }
        match dataset.info().feature(LANGUAGE_PERSISTENT) {
            Some(_) => spoken(dataset).map(Some),
            None => Ok(None),
        }
    }
}

/// Those of the language columns. Every frame of an episode has all rows, so the first frame of each is looked at.
fn spoken(dataset: &Dataset) -> Result<FrameSubtasks, Error> {
    let mut found = FrameSubtasks::default();
    let mut places: BTreeMap<String, i64> = BTreeMap::new();
    let mut rows: BTreeMap<usize, Vec<(f64, i64)>> = BTreeMap::new();
    for file in dataset.files() {
        let starts: BTreeMap<usize, usize> = (dataset.episodes().iter().enumerate())
            .filter(|(_, episode)| file.rows.contains(&episode.frames.start))
            .map(|(at, episode)| (episode.frames.start - file.rows.start, at))
            .collect();
        Table::open(dataset.root(), &file.path)?.scan(&[LANGUAGE_PERSISTENT], |row, arrays| {
            for (start, episode) in starts.range(row..row + arrays[0].len()) {
                let subtasks = subtasks_in(&arrays[0], start - row).into_iter().map(|(time, name)| {
                    let place = *places.entry(name).or_insert_with_key(|name| {
                        found.names.push(name.clone());
                        found.names.len() as i64 - 1
                    });
                    (time, place)
                });
                rows.insert(*episode, subtasks.collect());
            }
            Ok(())
        })?;
    }
    for (at, episode) in dataset.episodes().iter().enumerate() {
        let rows = rows.remove(&at).unwrap_or_default();
        for frame in episode.frames.clone() {
            let now = f64::from(dataset.columns().timestamps[frame]) + 1e-6;
            let active = rows.iter().rev().find(|(time, _)| *time <= now);
            found.values.push(1, active.map_or(-1, |(_, name)| *name));
        }
    }
    Ok(found)
}

/// The subtasks of one row with their times, in order of time.
fn subtasks_in(array: &ArrayRef, row: usize) -> Vec<(f64, String)> {
    let Some(list) = array.as_list_opt::<i32>().filter(|list| list.is_valid(row)) else { return Vec::new() };
    let values = list.value(row);
    let Some(rows) = values.as_struct_opt() else { return Vec::new() };
    let text = |name: &str, at: usize| {
        let texts = rows.column_by_name(name)?.as_string_opt::<i32>()?;
        texts.is_valid(at).then(|| texts.value(at).to_owned())
    };
    let time = |at: usize| {
        let times = rows.column_by_name("timestamp")?;
        let single = times.as_primitive_opt::<Float32Type>().map(|times| f64::from(times.value(at)));
        single.or_else(|| times.as_primitive_opt::<Float64Type>().map(|times| times.value(at)))
    };
    let mut found: Vec<(f64, String)> = (0..rows.len())
        .filter(|at| text("style", *at).as_deref() == Some("subtask"))
        .filter_map(|at| Some((time(at)?, text("content", at)?)))
        .collect();
    found.sort_by(|one, other| one.0.total_cmp(&other.0));
    found
}
