//! Episodes that a policy executed in a simulator, to be watched.

use serde::{Deserialize, Serialize};

use crate::json_number;
use crate::motion::Picture;

/// Episodes of one evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rollouts {
    /// What was evaluated, such as `libero_goal`.
    pub title: String,
    /// What is shown, as full sentences.
    pub lead: Vec<String>,
    /// Control steps per second.
    #[serde(deserialize_with = "json_number::one")]
    pub fps: f64,
    /// Control steps between two moments.
    pub stride: u64,
    /// The episodes in their order.
    pub episodes: Vec<Rollout>,
}

/// One episode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rollout {
    /// Number of the task in its suite.
    pub task: u64,
    /// The instruction, or the program that was sent instead.
    pub instruction: String,
    /// Number of the start state.
    pub start: u64,
    /// Whether it ended in success.
    pub success: bool,
    /// Control steps until the end.
    pub steps: u64,
    /// The task's successes and episodes in the whole evaluation.
    pub of_task: (u64, u64),
    /// The observations on which the policy decided, in the order of time.
    pub moments: Vec<Moment>,
}

/// One observation and the decision of the policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// One picture for each camera.
    pub pictures: Vec<Picture>,
    /// The instruction at this moment, where it changes during an episode.
    pub prompt: String,
    /// The program of the motion.
    pub program: String,
    /// The bytes of it that are its active call.
    pub active: Option<(u64, u64)>,
    /// The program of the task.
    pub task: String,
    /// The active skill, for people.
    pub skill: Option<String>,
    /// How much of the active call is done, from 0 to 1.
    pub progress: Option<f64>,
}

impl Moment {
    /// The program cut at its active call: before, the call, after. An invalid span leaves the program whole.
    pub fn cut(&self) -> (&str, &str, &str) {
        let program = self.program.as_str();
        let span = self.active.and_then(|(start, end)| {
            let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
            Some((program.get(..start)?, program.get(start..end)?, program.get(end..)?))
        });
        span.unwrap_or((program, "", ""))
    }
}
