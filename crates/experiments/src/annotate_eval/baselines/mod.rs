//! Other ways to cut episodes, each with the settings that are tried on training episodes.
//!
//! | baseline | idea | settings |
//! |---|---|---|
//! | uniform | segments of equal length, as many as there truly are | none; it is told the number |
//! | gripper events | a cut wherever a gripper begins to open or to close | none |
//! | gripper events and hold | the same, and a second cut a fixed time later, when the hand has closed or opened | the time |
//! | speed minima | a cut wherever the robot is slowest | smoothing, prominence |
//! | PELT | the best piecewise constant signal for a penalty on segments (`ruptures`' `Pelt(model="l2")`) | the penalty |
//! | KMeans on windows | windows of actions are clustered; a cut wherever the cluster changes | clusters, seconds |
//! | peers | cuts that another program wrote into a file | as in the file |

mod gripper;
mod peer;
mod pelt;
mod speed;
mod uniform;
mod windows;

pub use gripper::{GripperEvents, GripperHold};
pub use peer::Peer;
pub use pelt::{Pelt, pelt};
pub use speed::SpeedMinima;
pub use uniform::Uniform;
pub use windows::WindowClusters;

use super::naming::Label;
use super::samples::{Sample, Samples};
use crate::error::Result;

/// A way to cut episodes.
pub trait Cutter: Sync {
    /// Its name in tables.
    fn name(&self) -> String;

    /// The settings to try, in words; one if there is nothing to choose.
    fn settings(&self) -> Vec<String>;

    /// The rows at which segments begin, but for the first: ascending, each within the episode.
    ///
    /// # Errors
    /// If the episode cannot be cut in this way.
    fn cuts(&self, setting: usize, sample: &Sample) -> Result<Vec<usize>>;

    /// The labels of the episode, of a cutter that has any; others are named by our namer.
    ///
    /// # Errors
    /// If the episode cannot be cut in this way.
    fn labels(&self, _setting: usize, _sample: &Sample) -> Result<Option<Vec<Label>>> {
        Ok(None)
    }

    /// Whether it can cut an episode at all; a peer may lack some.
    fn knows(&self, _sample: &Sample) -> bool {
        true
    }
}

/// All baselines that need nothing but the dataset itself.
///
/// # Errors
/// If windows cannot be clustered.
pub fn baselines(samples: &Samples, seed: u64) -> Result<Vec<Box<dyn Cutter>>> {
    let mut all: Vec<Box<dyn Cutter>> = vec![
        Box::new(Uniform),
        Box::new(GripperEvents),
        Box::new(GripperHold::new(samples.fps)),
        Box::new(SpeedMinima::new(samples)),
        Box::new(Pelt::on_actions()),
        Box::new(WindowClusters::new(samples, seed)?),
    ];
    if samples.is_absolute() {
        all.push(Box::new(Pelt::on_velocities()));
    }
    Ok(all)
}

/// A time in rows, one or more.
fn rows(seconds: f64, fps: f64) -> usize {
    ((seconds * fps).round() as usize).max(1)
}
