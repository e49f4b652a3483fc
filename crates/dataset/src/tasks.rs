//! `meta/tasks.parquet`: what the episodes are about, in words.

use std::collections::BTreeMap;

use crate::fault::{Error, Fault};
use crate::files::Root;
use crate::table::Table;

/// Where they are in a dataset.
pub(crate) const TASKS: &str = "meta/tasks.parquet";

/// No dataset that we know has more tasks.
const MAX_TASKS: i64 = 1 << 24;

/// The task strings, in order of `task_index`; all that is wrong with them goes to `faults`.
pub(crate) fn read(root: &Root, faults: &mut Vec<Fault>) -> Result<Vec<String>, Error> {
    Ok(read_numbered(root, faults)?.into_values().collect())
}

/// The task strings by `task_index`, which are the numbers from 0 unless faults were found.
pub(crate) fn read_numbered(root: &Root, faults: &mut Vec<Fault>) -> Result<BTreeMap<i64, String>, Error> {
    let table = Table::open(root, TASKS)?;
    let indices = table.integers("task_index")?;
    let words = table.texts(text_column(&table)?)?;
    let mut tasks = BTreeMap::new();
    for (index, task) in indices.into_iter().zip(words) {
        if !(0..MAX_TASKS).contains(&index) {
            let expected = "the numbers from 0 to one less than the number of tasks".to_string();
            faults.push(Fault::WrongType {
                file: TASKS.to_string(),
                column: "task_index".to_string(),
                found: index.to_string(),
                expected,
            });
        } else if tasks.insert(index, task).is_some() {
            faults.push(Fault::RepeatedTask { file: TASKS.to_string(), task: index });
        }
    }
    // One gap is told, not all: a single large number would make millions.
    let gap = (0..).zip(tasks.keys()).find(|(expected, index)| expected != *index);
    if let Some((task, _)) = gap {
        faults.push(Fault::MissingTask { file: TASKS.to_string(), task });
    }
    Ok(tasks)
}

/// The task string is the index of a pandas table, whose column has a name of pandas' choosing; older writers call it
/// `task`.
fn text_column(table: &Table) -> Result<&'static str, Fault> {
    ["task", "__index_level_0__"].into_iter().find(|name| table.column(name).is_some()).ok_or_else(|| {
        let expected = "the task strings as the table's index".to_string();
        Fault::MissingColumn { file: TASKS.to_string(), column: "task".to_string(), expected }
    })
}
