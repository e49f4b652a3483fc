//! The soundness gate: the motions that a candidate merges must be near each other under D_φ (SPEC §7 i).
//!
//! ε_t is the distance that as many pairs of training segments are within as there are pairs of one class: merged motions must
//! be as near as motions of one class are.
//!
//! Distances are averaged at each step of the body, and the step with the largest mean counts: averaged over all steps, one step
//! that merges motions with different outcomes would be hidden by the others (the more, the longer the body).
//!
//! Departure: SPEC wants all merged motions within ε_t of each other; here it is their mean distance at a step, because one odd
//! pair among hundreds would reject every entry. The largest distance is in the figure (`worst`). A minority of odd calls is
//! therefore seen only if it is large enough; results/gates says how large.

use clustering::dtw_path_costs;
use compression::Candidate;
use report::{Figure, Verdict};

use super::scene::{Evidence, Merged, Scene};
use super::{Gate, measured};
use crate::cycle::classes::pairs;
use crate::error::Result;

/// Pairs of segments that are compared at one step of a body.
const PAIRS: usize = 200;

/// Pairs of stretches of demonstrations that are aligned.
const ALIGNED: usize = 100;

/// Compares the mean distance of merged motions, at the step where it is largest, with ε_t.
#[derive(Clone, Copy, Debug)]
pub struct Soundness;

/// ε_t of distances in ascending order, `alike` of whose pairs are of one class: as many are below it, and it is half-way to the
/// next one. Where classes are tight and far from each other, that is between the two kinds of pairs. 0 without distances.
pub fn epsilon_between(sorted: &[f64], alike: usize) -> f64 {
    let Some(last) = sorted.last() else { return 0.0 };
    let below = alike.checked_sub(1).map_or(0.0, |at| sorted.get(at).copied().unwrap_or(*last));
    (below + sorted.get(alike).copied().unwrap_or(*last)) / 2.0
}

impl Gate for Soundness {
    fn name(&self) -> &'static str {
        "soundness"
    }

    fn judge(&self, candidate: &Candidate, scene: &Scene<'_>) -> Result<Figure> {
        let groups = distances(&scene.evidence.merged(candidate), scene.evidence);
        let mean_of = |group: &Vec<f64>| group.iter().sum::<f64>() / group.len() as f64;
        let Some(mean) = groups.iter().map(mean_of).max_by(f64::total_cmp) else {
            return Ok(Figure::inactive(self.name(), "the candidate merges no motions that could be compared"));
        };
        let all = groups.concat();
        let mut figure = measured(self.name(), mean, scene.epsilon, "");
        let details = [
            ("mean", mean_of(&all)),
            ("worst", all.iter().copied().fold(0.0, f64::max)),
            ("pairs", all.len() as f64),
            ("steps", groups.len() as f64),
        ];
        figure.details.extend(details.map(|(name, value)| (name.to_owned(), value)));
        // A distance that is not a number is not a small one.
        if mean.is_nan() || mean > scene.epsilon {
            figure.verdict = Verdict::Failed;
            figure.reason =
                format!("merged motions are {mean:.3} apart on average, at most {:.3} is allowed", scene.epsilon);
        }
        Ok(figure)
    }
}

/// D_φ over pairs of merged segments: for each step of the body, and for all aligned stretches together. Groups without pairs are
/// left out.
fn distances(merged: &Merged, evidence: &dyn Evidence) -> Vec<Vec<f64>> {
    let distance = |one: usize, other: usize| if one == other { 0.0 } else { evidence.distance(one, other) };
    let at_step = |segments: &Vec<usize>| pairs(segments, PAIRS).map(|(one, other)| distance(one, other)).collect();
    let mut groups: Vec<Vec<f64>> = merged.steps.iter().map(at_step).collect();
    let stretches = &merged.stretches;
    let mut aligned = Vec::new();
    for (one, other) in pairs(&(0..stretches.len()).collect::<Vec<_>>(), ALIGNED) {
        let (one, other) = (&stretches[one], &stretches[other]);
        aligned.extend(dtw_path_costs(one.len(), other.len(), |row, column| distance(one[row], other[column])));
    }
    groups.push(aligned);
    groups.retain(|group| !group.is_empty());
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epsilon_is_between_pairs_of_one_class_and_others() {
        assert_eq!(epsilon_between(&[0.1, 0.2, 3.0, 4.0], 2), 1.6);
        assert_eq!(epsilon_between(&[0.1, 0.2], 2), 0.2);
        assert_eq!(epsilon_between(&[1.0, 2.0], 0), 0.5);
        assert_eq!(epsilon_between(&[], 0), 0.0);
    }
}
