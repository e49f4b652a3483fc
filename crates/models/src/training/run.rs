//! What a run is given, how it is doing, and how it ended.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::Value;

use super::distributed::Transport;

/// What a run needs besides its settings.
pub struct Options<'a> {
    /// Go on from the newest checkpoint, if there is one.
    pub resume: bool,
    /// The way to other processes.
    pub transport: Arc<dyn Transport>,
    /// Called at each reading, on the first rank.
    pub progress: &'a mut dyn FnMut(&Progress),
    /// Set by someone else to end the run early, with a checkpoint.
    pub stop: Option<&'a AtomicBool>,
    /// The settings of the phase, written into checkpoints; a resumed run must have the same.
    pub metadata: Value,
}

/// How a run is doing.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Steps taken.
    pub step: u64,
    /// Steps in all.
    pub steps: u64,
    /// The mean loss since the last reading.
    pub loss: f64,
    /// The means of its terms.
    pub terms: Vec<(&'static str, f64)>,
    /// The rate of the last step.
    pub rate: f64,
    /// The mean norm of the gradients before clipping.
    pub gradient_norm: f64,
    /// Throughput since the last reading, without evaluations and checkpoints, in `unit`.
    pub per_second: f64,
    /// What is counted.
    pub unit: &'static str,
    /// Seconds to the end.
    pub eta_seconds: f64,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// With its last step.
    Finished(Summary),
    /// Early, because it was told to.
    Stopped(Summary),
}

/// What it left.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Steps taken, those of earlier starts included.
    pub step: u64,
    /// The step that this start went on from.
    pub resumed_from: Option<u64>,
    /// The last reading of the loss in this start.
    pub loss: Option<f64>,
    /// The last evaluation in this start, on the first rank.
    pub evaluation: BTreeMap<String, f64>,
    /// The newest checkpoint.
    pub checkpoint: PathBuf,
    /// The result, once the run is finished.
    pub model: Option<PathBuf>,
    /// What was wrong without stopping the run.
    pub warnings: Vec<String>,
}
