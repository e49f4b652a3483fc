//! Cuts where a gripper is told something else.

use super::{Cutter, rows};
use crate::annotate_eval::samples::Sample;
use crate::error::Result;

/// A cut wherever a gripper begins to open or to close.
pub struct GripperEvents;

impl Cutter for GripperEvents {
    fn name(&self) -> String {
        "gripper events".to_owned()
    }

    fn settings(&self) -> Vec<String> {
        vec!["begins to move".to_owned()]
    }

    fn cuts(&self, _setting: usize, sample: &Sample) -> Result<Vec<usize>> {
        Ok(sample.signals.gripper_events.clone())
    }
}

/// The same, and a second cut after a fixed time: a hand takes about as long to close in every episode, so that the end of a
/// grasp or release can be told from its start.
pub struct GripperHold {
    fps: f64,
}

/// Seconds that are tried.
const HOLDS: [f64; 9] = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.2];

impl GripperHold {
    /// For episodes of a frame rate.
    pub fn new(fps: f64) -> GripperHold {
        GripperHold { fps }
    }
}

impl Cutter for GripperHold {
    fn name(&self) -> String {
        "gripper events and hold".to_owned()
    }

    fn settings(&self) -> Vec<String> {
        HOLDS.iter().map(|seconds| format!("hold {seconds} s")).collect()
    }

    fn cuts(&self, setting: usize, sample: &Sample) -> Result<Vec<usize>> {
        let hold = rows(HOLDS[setting.min(HOLDS.len() - 1)], self.fps);
        let events = &sample.signals.gripper_events;
        let mut cuts: Vec<usize> = events.iter().flat_map(|event| [*event, event + hold]).collect();
        cuts.retain(|cut| *cut < sample.len());
        cuts.sort_unstable();
        cuts.dedup();
        Ok(cuts)
    }
}
