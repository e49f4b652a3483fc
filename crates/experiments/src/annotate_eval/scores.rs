//! From cuts and names of episodes to figures.
//!
//! | figure | per episode |
//! |---|---|
//! | boundary F1 at ±s | cuts matched one to one with changes of phase, at most s seconds apart |
//! | segment F1 at IoU | segments matched one to one with true ones that overlap by IoU or more |
//! | phase accuracy | the share of frames whose subtask has the verb of the true phase |
//! | with object | the same, where the subtask also names the true object; frames without one need the verb alone |
//!
//! A figure is the mean over held-out episodes with its percentile bootstrap interval, which resamples whole episodes.
//! `pooled` is the F1 of the counts over all episodes, in which long episodes weigh more.

use std::ops::Range;

use clustering::{BootstrapConfig, bootstrap_mean, matched_boundaries, matched_segments};
use serde::{Deserialize, Serialize};

use super::naming::Label;
use super::samples::Sample;
use super::truth::{means, objects_of};
use crate::error::Result;

/// Seconds by which boundaries may be off, and overlaps that segments must have.
pub const TOLERANCES: [f64; 2] = [0.2, 0.5];
/// Intersections over unions that make segments the same.
pub const OVERLAPS: [f64; 2] = [0.5, 0.75];

/// A figure over episodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The mean over episodes.
    pub mean: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Over the counts of all episodes.
    pub pooled: f64,
}

/// What was right in one episode: matched, wanted, found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    matched: usize,
    wanted: usize,
    found: usize,
}

impl Counts {
    /// 2 · matched / (wanted + found); 1 if there is nothing on either side.
    pub fn f1(self) -> f64 {
        match self.wanted + self.found {
            0 => 1.0,
            both => 2.0 * self.matched as f64 / both as f64,
        }
    }

    fn plus(self, other: Counts) -> Counts {
        Counts {
            matched: self.matched + other.matched,
            wanted: self.wanted + other.wanted,
            found: self.found + other.found,
        }
    }
}

/// Boundaries of an episode against the true ones.
pub fn boundary_counts(sample: &Sample, cuts: &[usize], seconds: f64, fps: f64) -> Counts {
    let truth = sample.true_cuts();
    let tolerance = ((seconds * fps).round() as usize).max(1);
    Counts { matched: matched_boundaries(&truth, cuts, tolerance), wanted: truth.len(), found: cuts.len() }
}

/// Segments of an episode against the true ones.
pub fn segment_counts(sample: &Sample, cuts: &[usize], least: f64) -> Counts {
    let truth: Vec<Range<usize>> = sample.truth.iter().map(|one| one.rows.clone()).collect();
    let found = segments_between(cuts, sample.len());
    Counts { matched: matched_segments(&truth, &found, least), wanted: truth.len(), found: found.len() }
}

/// Frames whose label is right: phases alone, and with objects.
pub fn label_counts(sample: &Sample, labels: &[Label]) -> [Counts; 2] {
    let mut objects = objects_of(&sample.instruction);
    // An instruction that is not understood names no objects, yet they must be told apart.
    objects.named.extend(sample.truth.iter().filter_map(|one| one.object.clone()));
    let (mut phases, mut with_objects) = (0, 0);
    for truth in &sample.truth {
        for label in labels {
            let shared = truth.rows.end.min(label.rows.end).saturating_sub(truth.rows.start.max(label.rows.start));
            if shared == 0 || !label.is_phase(&truth.phase) {
                continue;
            }
            phases += shared;
            let right = match (&truth.object, &label.object) {
                (None, _) => true,
                (Some(truth), Some(named)) => means(named, truth, &objects),
                (Some(_), None) => false,
            };
            with_objects += if right { shared } else { 0 };
        }
    }
    let all = sample.len();
    [phases, with_objects].map(|matched| Counts { matched, wanted: all, found: all })
}

/// The segments between cuts.
pub fn segments_between(cuts: &[usize], length: usize) -> Vec<Range<usize>> {
    let ends: Vec<usize> = [0].into_iter().chain(cuts.iter().copied()).chain([length]).collect();
    ends.windows(2).map(|two| two[0]..two[1]).filter(|one| !one.is_empty()).collect()
}

/// The mean of episodes with its interval, and the pooled value.
///
/// # Errors
/// On no episodes.
pub fn figure(counts: &[Counts], seed: u64) -> Result<Figure> {
    let values: Vec<f64> = counts.iter().map(|one| one.f1()).collect();
    let interval = bootstrap_mean(&values, &BootstrapConfig { seed, ..BootstrapConfig::default() })?;
    let pooled = counts.iter().fold(Counts::default(), |sum, one| sum.plus(*one)).f1();
    Ok(Figure { mean: interval.estimate, low: interval.low, high: interval.high, pooled })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::annotate_eval::tests::sample;

    #[test]
    fn figures_of_two_episodes_by_hand() {
        // 2 of 3 found cuts are 2 of 2 true ones: 4/5. Nothing found of 2: 0.
        let first = Counts { matched: 2, wanted: 2, found: 3 };
        let second = Counts { matched: 0, wanted: 2, found: 0 };
        let found = figure(&[first, second], 0).unwrap();
        assert!((found.mean - 0.4).abs() < 1e-12 && (found.pooled - 4.0 / 7.0).abs() < 1e-12, "{found:?}");
        assert!(found.low >= 0.0 && found.high <= 0.8 && found.low <= found.mean && found.mean <= found.high);
        assert_eq!(Counts::default().f1(), 1.0);
        assert!(figure(&[], 0).is_err());
    }

    #[test]
    fn boundaries_and_segments_of_an_episode_by_hand() {
        let sample = sample("put the milk in the basket", &[("reach", 10), ("grasp", 4), ("lift", 6)]);
        // True cuts are 10 and 14; at 10 frames a second ±0.2 s are two frames.
        assert_eq!(boundary_counts(&sample, &[8, 17], 0.2, 10.0), Counts { matched: 1, wanted: 2, found: 2 });
        assert_eq!(boundary_counts(&sample, &[8, 17], 0.5, 10.0), Counts { matched: 2, wanted: 2, found: 2 });
        // 0..8 overlaps 0..10 by 0.8, 8..17 overlaps 10..14 by 4/9, and 17..20 overlaps 14..20 by 0.5.
        assert_eq!(segment_counts(&sample, &[8, 17], 0.5), Counts { matched: 2, wanted: 3, found: 3 });
        assert_eq!(segment_counts(&sample, &[8, 17], 0.75), Counts { matched: 1, wanted: 3, found: 3 });
    }

    #[test]
    fn frames_count_where_the_verb_and_the_object_are_right() {
        let sample = sample("put the milk in the basket", &[("reach", 10), ("grasp", 5), ("retreat", 5)]);
        let label = |rows: Range<usize>, verb: &str, object: Option<&str>| Label {
            rows,
            verb: verb.to_owned(),
            object: object.map(str::to_owned),
            arm: None,
        };
        let labels = [
            label(0..8, "reach", Some("milk")),
            label(8..12, "grasp", Some("milk")),
            label(12..15, "grasp", Some("basket")),
            label(15..20, "retreat", None),
        ];
        let [phases, with_objects] = label_counts(&sample, &labels);
        assert_eq!((phases.matched, with_objects.matched, phases.wanted), (18, 15, 20));
        assert!((phases.f1() - 0.9).abs() < 1e-12);
    }

    #[test]
    fn segments_cover_the_episode() {
        assert_eq!(segments_between(&[3, 5], 9), [0..3, 3..5, 5..9]);
        assert_eq!(segments_between(&[], 0), [0..0; 0]);
    }
}
