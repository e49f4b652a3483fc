//! Finished episodes on disk, and what is still to be run.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use models::training::distributed::Alone;
use serde_json::json;

use super::{LoopSettings, Played};
use crate::error::{Error, Result};
use crate::run_dir::{RunDir, json_bytes, stored};

/// The largest number of episodes that one process of the simulator runs: what an interruption can lose.
const MOST: u64 = 5;

/// Jobs per worker at least, where there are enough episodes: workers then finish at about the same time.
const JOBS: u64 = 4;

/// Finished episodes of one evaluation, by task and start state.
pub struct Parts {
    dir: RunDir,
    done: BTreeMap<(usize, u64), Played>,
}

/// Consecutive start states of one task, for one process of the simulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The task.
    pub task: usize,
    /// Its start states.
    pub starts: Range<u64>,
}

impl Parts {
    /// Opens the store of an evaluation with these settings, and loads what is finished. Other settings have another store,
    /// so that episodes are never mixed.
    ///
    /// # Errors
    /// If files cannot be read or written.
    pub fn open(folder: &Path, settings: &LoopSettings) -> Result<Parts> {
        let bytes = json_bytes(folder, settings)?;
        let root = folder.join(format!("{}-{}", settings.suite, &blake3::hash(&bytes).to_hex()[..12]));
        let config = json!({ "closed_loop": settings });
        let dir = RunDir::open(&root, true, &config, Arc::new(Alone::default()))?;
        let mut done = BTreeMap::new();
        let entries = root.read_dir().map_err(Error::file(&root))?.flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let names: BTreeSet<String> = names.filter_map(|name| Some(name.strip_suffix(".json")?.to_owned())).collect();
        for name in names.iter().filter(|name| name.starts_with("task_")) {
            for one in stored::<Vec<Played>>(&root, name)?.unwrap_or_default() {
                done.insert((one.episode.task, one.episode.start), one);
            }
        }
        Ok(Parts { dir, done })
    }

    /// Stores the episodes of a job.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn store(&mut self, job: &Job, played: Vec<Played>) -> Result<()> {
        let name = format!("task_{:02}_start_{:03}_{:03}", job.task, job.starts.start, job.starts.end);
        for one in self.dir.stage(&name, &(), || Ok(played))? {
            self.done.insert((one.episode.task, one.episode.start), one);
        }
        Ok(())
    }

    /// The finished episode of a task and start state.
    pub fn get(&self, task: usize, start: u64) -> Option<&Played> {
        self.done.get(&(task, start))
    }

    /// The finished ones among some tasks and start states, in their order.
    pub fn among<'a>(&'a self, tasks: &'a [usize], starts: Range<u64>) -> impl Iterator<Item = &'a Played> {
        let wanted = tasks.iter().flat_map(move |task| starts.clone().map(move |start| (*task, start)));
        wanted.filter_map(|place| self.done.get(&place))
    }

    /// Jobs for everything that is not finished.
    pub fn missing(&self, tasks: &[usize], starts: Range<u64>, workers: usize) -> Vec<Job> {
        let is_missing = |task: usize, start: u64| !self.done.contains_key(&(task, start));
        let count = tasks.iter().map(|task| starts.clone().filter(|start| is_missing(*task, *start)).count() as u64);
        let length = (count.sum::<u64>() / (JOBS * workers.max(1) as u64)).clamp(1, MOST);
        let mut jobs: Vec<Job> = Vec::new();
        for &task in tasks {
            for start in starts.clone().filter(|start| is_missing(task, *start)) {
                match jobs.last_mut() {
                    Some(last)
                        if last.task == task && last.starts.end == start && start - last.starts.start < length =>
                    {
                        last.starts.end += 1;
                    }
                    _ => jobs.push(Job { task, starts: start..start + 1 }),
                }
            }
        }
        jobs
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{Answering, EpisodeRecord, Init};
    use super::*;

    fn settings(replan: u32) -> LoopSettings {
        LoopSettings {
            suite: "goal".to_owned(),
            compose: None,
            prompt: "instruction".to_owned(),
            replan,
            size: 128,
            init: Init::Fixed,
            camera: 128,
            seed: 9_000_000,
            emission: None,
            executor: None,
            policy: Answering::Run("abc".to_owned()),
            program: None,
        }
    }

    fn played(task: usize, start: u64) -> Played {
        let episode = EpisodeRecord {
            task,
            start,
            seed: start,
            success: start.is_multiple_of(2),
            steps: 10,
            requests: 2,
            seconds: 0.5,
            latency_ms: None,
            done: None,
        };
        Played { episode, timings: BTreeMap::new(), film: None }
    }

    #[test]
    fn finished_episodes_of_the_same_settings_are_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut parts = Parts::open(folder.path(), &settings(8)).unwrap();
        let jobs = parts.missing(&[0, 3], 0..7, 1);
        let lengths: Vec<u64> = jobs.iter().map(|job| job.starts.end - job.starts.start).collect();
        assert_eq!(lengths, [3, 3, 1, 3, 3, 1], "14 episodes in at least four jobs");
        parts.store(&jobs[1], (3..6).map(|start| played(0, start)).collect()).unwrap();
        drop(parts);
        let again = Parts::open(folder.path(), &settings(8)).unwrap();
        assert_eq!(again.among(&[0, 3], 0..7).map(|one| one.episode.start).collect::<Vec<_>>(), [3, 4, 5]);
        let left = again.missing(&[0], 0..7, 1);
        assert_eq!(left.iter().map(|job| job.starts.clone()).collect::<Vec<_>>(), [0..1, 1..2, 2..3, 6..7]);
        // More episodes than before: those that are there count.
        assert_eq!(again.missing(&[0], 0..30, 1).iter().map(|job| job.starts.end - job.starts.start).sum::<u64>(), 27);
        assert!(again.missing(&[0], 3..6, 1).is_empty());
        let other = Parts::open(folder.path(), &settings(5)).unwrap();
        assert_eq!(other.among(&[0], 0..7).count(), 0, "other settings, other episodes");
    }

    #[test]
    fn many_workers_get_short_jobs() {
        let folder = tempfile::tempdir().unwrap();
        let parts = Parts::open(folder.path(), &settings(8)).unwrap();
        assert_eq!(parts.missing(&[0, 1], 0..4, 16).len(), 8);
        assert_eq!(parts.missing(&[0], 0..50, 2).len(), 10, "never more than five episodes at once");
    }
}
