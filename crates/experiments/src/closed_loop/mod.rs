//! Closed-loop evaluation: a policy server controls simulated robots, and a simulator judges success.
//!
//! The simulator is another program. [`tasks`] says what it can run and what a run was trained for, [`parts`] stores finished
//! episodes so that an evaluation can be resumed, and [`LoopReport`] is the result: success per task with Wilson's interval,
//! steps, and the latency of the server by stage. Starting processes is the business of the caller.
//!
//! **An episode is identified by suite, task and start state**, and the simulator's seed follows from the start state. An
//! evaluation that is cut into pieces therefore gives the same episodes as one in a single piece.

pub mod parts;
mod report;
pub mod tasks;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ::report::Moment;
use serde::{Deserialize, Serialize};

pub use self::report::{Latency, LoopReport, TaskScore, Totals, markdown};
use crate::error::{Error, Result};
use crate::landmarks::LANDMARKS;
use crate::policy::{Emission, Executor, POLICY};

/// The folder of evaluations in the directory of a run.
pub const CLOSED_LOOP: &str = "closed_loop";

/// What an evaluation's episodes depend on. Episodes of equal settings may be combined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoopSettings {
    /// The suite of the tasks.
    pub suite: String,
    /// Hash of the file of compositions; none if single tasks are run.
    pub compose: Option<String>,
    /// Where episodes begin.
    #[serde(default)]
    pub init: Init,
    /// What a request says about the task: `instruction`, `program` or `current`.
    pub prompt: String,
    /// Actions executed of each reply.
    pub replan: u32,
    /// Side of the images in a request, in pixels.
    pub size: u32,
    /// Side of the images that the simulator draws, in pixels.
    pub camera: u32,
    /// The simulator's seed for start state 0.
    pub seed: u64,
    /// When the policy of a run writes programs; none for other servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emission: Option<Emission>,
    /// What turned programs into actions; none for other servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
    /// Who answers.
    pub policy: Answering,
    /// Hash of the program that serves the policy of a run: a changed controller gives other episodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// Where the episodes of a task begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Init {
    /// In the benchmark's fixed start states, in their order.
    #[default]
    Fixed,
    /// In states drawn as in recordings, by the simulator's seed.
    Random,
}

impl Init {
    /// As the simulator calls it.
    pub fn name(self) -> &'static str {
        match self {
            Init::Fixed => "fixed",
            Init::Random => "random",
        }
    }
}

/// Who answers requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answering {
    /// The policy of a run, by a hash of its files.
    Run(String),
    /// Another server, by its address.
    Server(String),
}

/// One finished episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpisodeRecord {
    /// The task, by its number in the suite or in the file of compositions.
    pub task: usize,
    /// The start state.
    pub start: u64,
    /// The simulator's seed.
    pub seed: u64,
    /// Whether the simulator's predicate held.
    pub success: bool,
    /// Control steps.
    pub steps: u64,
    /// Requests to the server.
    pub requests: u64,
    /// Wall-clock time.
    pub seconds: f64,
    /// Mean time of a request in milliseconds, measured by the client.
    pub latency_ms: Option<f64>,
    /// How many tasks of a composition were done, in order.
    pub done: Option<u64>,
}

/// An episode with what the server saw of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Played {
    /// The episode.
    pub episode: EpisodeRecord,
    /// Milliseconds of each request by stage; empty for other servers than ours.
    pub timings: BTreeMap<String, Vec<f64>>,
    /// The observations and decisions, if the episode was filmed.
    pub film: Option<Vec<Moment>>,
}

/// `results.json` of the simulator, as far as it is used.
#[derive(Clone, Debug, Deserialize)]
pub struct SimulatorResults {
    /// The episodes.
    pub episodes: Vec<SimulatorEpisode>,
}

/// An episode in `results.json` of the simulator.
#[derive(Clone, Debug, Deserialize)]
pub struct SimulatorEpisode {
    task: usize,
    episode: u64,
    seed: u64,
    success: bool,
    steps: u64,
    #[serde(default)]
    requests: u64,
    #[serde(default)]
    seconds: f64,
    latency_ms: Option<f64>,
    done: Option<u64>,
}

impl SimulatorEpisode {
    /// The same as a record; `first` is the start state of the simulator's episode 0.
    pub fn record(self, first: u64) -> EpisodeRecord {
        let SimulatorEpisode { task, episode, seed, success, steps, requests, seconds, latency_ms, done } = self;
        EpisodeRecord { task, start: first + episode, seed, success, steps, requests, seconds, latency_ms, done }
    }
}

/// Reads `results.json` of the simulator.
///
/// # Errors
/// If it is not there or not what the simulator writes.
pub fn simulator_results(path: &Path) -> Result<SimulatorResults> {
    crate::run_dir::read_json(path)
}

/// A hash of the files that the policy of a run is loaded from: trained models, and what the run noted about them. Another
/// training gives another hash, and a copy of the directory the same.
///
/// # Errors
/// If they cannot be read.
pub fn fingerprint(run: &Path) -> Result<String> {
    let mut files = Vec::new();
    model_files(run, &mut files)?;
    files.push(run.join(POLICY));
    files.sort();
    let mut hash = blake3::Hasher::new();
    for path in files.iter().filter(|path| path.is_file()) {
        let name = path.strip_prefix(run).unwrap_or(path).to_string_lossy().into_owned();
        let content = blake3::hash(&fs::read(path).map_err(Error::file(path))?);
        hash.update(format!("{name}\0{content}\n").as_bytes());
    }
    Ok(hash.finalize().to_hex()[..32].to_owned())
}

/// A hash of a file's content.
///
/// # Errors
/// If it cannot be read.
pub fn file_hash(path: &Path) -> Result<String> {
    Ok(blake3::hash(&fs::read(path).map_err(Error::file(path))?).to_hex()[..32].to_owned())
}

/// Trained models and landmarks below a directory; checkpoints of a training are not part of the policy.
fn model_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(Error::file(folder))? {
        let path = entry.map_err(Error::file(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match path.is_dir() {
            true if name != "checkpoints" && name != CLOSED_LOOP => model_files(&path, found)?,
            false if name.ends_with(".safetensors") || LANDMARKS.contains(&name.as_str()) => found.push(path),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_the_simulator_become_records_by_start_state() {
        let text = r#"{"options": {"suite": "libero_object"}, "summary": {}, "episodes": [
            {"success": true, "steps": 122, "seconds": 1.72, "latency_ms": 5.5, "requests": 16, "suite": "libero_object",
             "task": 3, "episode": 2, "prompt": "pick it up", "seed": 9003007}]}"#;
        let results: SimulatorResults = serde_json::from_str(text).unwrap();
        let record = results.episodes[0].clone().record(5);
        assert_eq!((record.task, record.start, record.seed, record.success), (3, 7, 9_003_007, true));
        assert_eq!((record.steps, record.requests, record.latency_ms, record.done), (122, 16, Some(5.5), None));
    }

    #[test]
    fn another_training_has_another_fingerprint_and_a_checkpoint_has_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("wake/decoder/model.safetensors", "a");
        let first = fingerprint(folder.path()).unwrap();
        write("wake/decoder/checkpoints/step-5.safetensors", "b");
        write("closed_loop/libero_goal.json", "{}");
        assert_eq!(fingerprint(folder.path()).unwrap(), first);
        write("wake/decoder/model.safetensors", "c");
        let second = fingerprint(folder.path()).unwrap();
        assert_ne!(second, first);
        write("wake/landmarks.json", "{}");
        assert_ne!(fingerprint(folder.path()).unwrap(), second);
    }
}
