//! The same episodes as people would have teleoperated them.
//!
//! The noise model is [`dataset::synthetic::human`]: time warps, hesitations, corrections, tremor and latency at three levels.
//! Training episodes are disturbed as well, so that baselines are tuned on what they are scored on.

use dataset::Matrix;
pub use dataset::synthetic::human::Level;
use dataset::synthetic::human::{Recording, disturb};
use rayon::prelude::*;
use subtasks::robot::moved_parts;

use super::samples::{Rows, Sample, Samples};
use super::truth::TrueSegment;
use crate::error::{Error, Result};
use crate::prepared::Prepared;

/// All episodes as operators of a level would have recorded them.
///
/// # Errors
/// If columns of the robot do not fit the rows.
pub fn disturbed(prepared: &Prepared, samples: &Samples, level: Level, seed: u64) -> Result<Samples> {
    let parts = moved_parts(prepared.robot());
    let columns = prepared.source.dataset.columns();
    let one = |sample: &Sample| -> Result<Rows> {
        let matrix = |width: usize, values: &[f32]| Matrix { width, values: values.to_vec() };
        let recorded = Recording {
            fps: samples.fps,
            actions: matrix(columns.actions.width, &sample.actions),
            states: matrix(columns.states.width, &sample.states),
            labels: numbers(&sample.truth),
        };
        let found = disturb(&recorded, &parts, level, seed, u64::from(sample.episode.0))
            .map_err(|error| Error::Mismatch(format!("episode {} cannot be disturbed: {error}", sample.episode)))?;
        let Recording { actions, states, labels, .. } = found.recording;
        Ok(Rows { truth: renumbered(&sample.truth, &labels), actions: actions.values, states: states.values })
    };
    samples.with_rows(samples.all.par_iter().map(one).collect::<Result<Vec<_>>>()?)
}

/// The place of each row's segment.
fn numbers(truth: &[TrueSegment]) -> Vec<i64> {
    truth.iter().enumerate().flat_map(|(at, one)| one.rows.clone().map(move |_| at as i64)).collect()
}

/// True segments by the places of their rows. One of which no row is left is lost.
fn renumbered(truth: &[TrueSegment], labels: &[i64]) -> Vec<TrueSegment> {
    let mut found: Vec<TrueSegment> = Vec::new();
    for (at, segment) in truth.iter().enumerate() {
        let first = labels.partition_point(|label| *label < at as i64);
        let end = labels.partition_point(|label| *label <= at as i64);
        if first < end {
            found.push(TrueSegment { rows: first..end, ..segment.clone() });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_keep_their_phases_under_another_time() {
        let segment = |rows, phase: &str| TrueSegment { rows, phase: phase.to_owned(), object: None };
        let truth = [segment(0..2, "reach"), segment(2..3, "grasp"), segment(3..6, "reach")];
        assert_eq!(numbers(&truth), [0, 0, 1, 2, 2, 2]);
        let found = renumbered(&truth, &[0, 0, 0, 0, 1, 1, 2]);
        assert_eq!(found, [segment(0..4, "reach"), segment(4..6, "grasp"), segment(6..7, "reach")]);
        assert_eq!(renumbered(&truth, &[0, 2]), [segment(0..1, "reach"), segment(1..2, "reach")]);
    }
}
