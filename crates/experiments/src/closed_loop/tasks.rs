//! What a simulator kit can run, and which of it a run was trained for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::policy::PolicyRecord;
use crate::run_dir::read_json;

/// The instructions of each suite, in the order of the kit's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suites(Vec<(String, Vec<String>)>);

/// The tasks of one evaluation: instructions by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The suite.
    pub suite: String,
    /// Its tasks, or compositions.
    pub tasks: BTreeMap<usize, String>,
}

#[derive(Deserialize)]
struct KitTask {
    language: String,
}

#[derive(Deserialize)]
struct Compositions {
    suite: String,
    compositions: Vec<Composition>,
}

#[derive(Deserialize)]
struct Composition {
    tasks: Vec<usize>,
}

impl Suites {
    /// Reads the kit's `tasks.json`.
    ///
    /// # Errors
    /// If it cannot be read, or has no suites.
    pub fn read(path: &Path) -> Result<Suites> {
        let all: Map<String, Value> = read_json(path)?;
        let format = |reason: String| Error::Format { path: path.to_owned(), reason };
        let suite = |(name, tasks): (String, Value)| {
            let tasks: Vec<KitTask> =
                serde_json::from_value(tasks).map_err(|error| format(format!("suite `{name}`: {error}")))?;
            Ok((name, tasks.into_iter().map(|task| task.language).collect()))
        };
        let suites = all.into_iter().map(suite).collect::<Result<Vec<_>>>()?;
        match suites.is_empty() {
            true => Err(format(
                "has no suites; expected an object such as `{\"libero_goal\": [{\"language\": …}]}`".to_owned(),
            )),
            false => Ok(Suites(suites)),
        }
    }

    /// The names of all suites.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The instructions of a suite.
    pub fn tasks(&self, suite: &str) -> Option<&[String]> {
        self.0.iter().find(|(name, _)| name == suite).map(|(_, tasks)| tasks.as_slice())
    }

    /// The tasks that a run was trained for, by suite; empty if there are none.
    pub fn trained(&self, record: &PolicyRecord) -> Vec<Chosen> {
        let known: BTreeSet<String> = record.tasks.iter().map(|task| normalised(&task.instruction)).collect();
        let chosen = self.0.iter().map(|(suite, tasks)| {
            let tasks = tasks.iter().enumerate().filter(|(_, instruction)| known.contains(&normalised(instruction)));
            Chosen { suite: suite.clone(), tasks: tasks.map(|(at, text)| (at, text.clone())).collect() }
        });
        chosen.filter(|chosen| !chosen.tasks.is_empty()).collect()
    }

    /// All tasks of a suite.
    pub fn whole(&self, suite: &str) -> Option<Chosen> {
        let tasks = self.tasks(suite)?.iter().cloned().enumerate().collect();
        Some(Chosen { suite: suite.to_owned(), tasks })
    }

    /// All compositions of a file, with their instructions joined as the simulator does.
    ///
    /// # Errors
    /// If the file cannot be read, or names tasks that do not exist.
    pub fn compositions(&self, path: &Path) -> Result<Chosen> {
        let file: Compositions = read_json(path)?;
        let format = |reason: String| Error::Format { path: path.to_owned(), reason };
        let known = self.tasks(&file.suite).ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            format(format!("has the suite `{}`; expected one of {}", file.suite, names.join(", ")))
        })?;
        let instruction = |(at, one): (usize, Composition)| {
            let parts = one.tasks.iter().map(|task| {
                let missing =
                    || format(format!("composition {at} has the task {task}; expected 0 to {}", known.len() - 1));
                known.get(*task).map(String::as_str).ok_or_else(missing)
            });
            Ok((at, parts.collect::<Result<Vec<&str>>>()?.join(" and then ")))
        };
        let tasks = file.compositions.into_iter().enumerate().map(instruction).collect::<Result<_>>()?;
        Ok(Chosen { suite: file.suite, tasks })
    }
}

/// An instruction as it is compared: case and spaces do not matter.
fn normalised(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::policy::TaskRecord;

    fn suites() -> Suites {
        let of = |name: &str, tasks: &[&str]| (name.to_owned(), tasks.iter().map(|text| (*text).to_owned()).collect());
        Suites(vec![of("goal", &["turn on the stove", "put the bowl on the stove"]), of("ten", &["stack the mugs"])])
    }

    fn record(instructions: &[&str]) -> PolicyRecord {
        let task = |text: &&str| TaskRecord { instruction: (*text).to_owned(), program: String::new() };
        PolicyRecord {
            fps: 20.0,
            state_key: String::new(),
            state_names: vec![],
            action_names: vec![],
            limits: vec![],
            encoder: None,
            tasks: instructions.iter().map(task).collect(),
        }
    }

    #[test]
    fn a_run_is_evaluated_on_the_tasks_that_it_was_trained_for() {
        let found = suites().trained(&record(&["Put the bowl  on the stove", "fold the towel"]));
        let tasks = BTreeMap::from([(1, "put the bowl on the stove".to_owned())]);
        assert_eq!(found, [Chosen { suite: "goal".to_owned(), tasks }]);
        assert_eq!(suites().trained(&record(&["stack the mugs", "turn on the stove"])).len(), 2);
        assert!(suites().trained(&record(&["fold the towel"])).is_empty());
        assert_eq!(suites().whole("ten").unwrap().tasks.len(), 1);
    }

    #[test]
    fn compositions_have_joined_instructions_and_wrong_tasks_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pairs.json");
        fs::write(&path, r#"{"suite": "goal", "compositions": [{"tasks": [0, 1], "end": [0], "program": "x"}]}"#)
            .unwrap();
        let chosen = suites().compositions(&path).unwrap();
        assert_eq!(chosen.tasks[&0], "turn on the stove and then put the bowl on the stove");
        fs::write(&path, r#"{"suite": "goal", "compositions": [{"tasks": [0, 7], "end": []}]}"#).unwrap();
        let error = suites().compositions(&path).unwrap_err().to_string();
        assert!(error.contains("composition 0 has the task 7; expected 0 to 1"), "{error}");
        fs::write(&path, r#"{"suite": "soup", "compositions": []}"#).unwrap();
        let error = suites().compositions(&path).unwrap_err().to_string();
        assert!(error.contains("expected one of goal, ten"), "{error}");
    }
}
