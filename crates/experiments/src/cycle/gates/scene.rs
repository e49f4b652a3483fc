//! What gates look at: the calls of a candidate as evidence, and the world model as a verifier.
//!
//! A gate sees no dataset. [`Evidence`] maps the calls of a candidate to segments, which have distances, and to stretches of
//! recorded actions, which have replacements; [`super::RecordedCalls`] does so for demonstrations, a test does so for a world
//! of its choice.

use compression::{Candidate, Place};

use crate::cycle::verifier::Verifier;
use crate::error::Result;

/// What gates look at.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The calls of candidates.
    pub evidence: &'a dyn Evidence,
    /// ε_t, the largest mean distance of motions that may be merged.
    pub epsilon: f64,
    /// The largest return of the training data, by which changes of return are divided; 0 without rewards.
    pub largest_return: f64,
    /// Imagines what actions return.
    pub verifier: Verifier<'a>,
}

/// The calls of a candidate in the data.
pub trait Evidence {
    /// How many calls are in tasks, and how many in motions.
    fn count(&self, candidate: &Candidate) -> Calls;

    /// The segments that the candidate merges.
    fn merged(&self, candidate: &Candidate) -> Merged;

    /// D_φ of two segments, by the numbers that [`Evidence::merged`] gives them.
    fn distance(&self, one: usize, other: usize) -> f64;

    /// What the candidate does instead of what was recorded, for each of its calls where that can be said.
    fn replacements(&self, candidate: &Candidate) -> Result<Vec<Replacement>>;
}

/// The number of calls of a candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Calls in tasks.
    pub tasks: usize,
    /// Calls in motions.
    pub motions: usize,
}

/// Segments that a candidate merges, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// For each step of the body the segments that it stands for, one for each call in a motion.
    pub steps: Vec<Vec<usize>>,
    /// For each call in a task the segments of its stretch, in order. Stretches are aligned in pairs.
    pub stretches: Vec<Vec<usize>>,
}

/// One call: what was recorded, and what would be done instead. Actions are rows as they were recorded, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Replacement {
    /// The frame that the call starts at.
    pub frame: usize,
    /// The recorded actions.
    pub recorded: Vec<f32>,
    /// The actions that the candidate stands for.
    pub instead: Vec<f32>,
    /// Standing still for as long as what was recorded: the control.
    pub still: Vec<f32>,
}

impl Merged {
    /// Adds the segments of a call in a motion: its own steps in order, each at its step of the body. `number` gives the number
    /// of a segment of the call's demonstration.
    pub fn add_motion(&mut self, place: &Place, number: impl Fn(usize) -> Option<usize>) {
        for (step, segment) in place.own.iter().cloned().flatten().enumerate() {
            if self.steps.len() <= step {
                self.steps.resize(step + 1, Vec::new());
            }
            self.steps[step].extend(number(segment));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_merged_by_step_of_the_body() {
        let expansion = language::TermStore::new().text("a call");
        let place = |own: &[(usize, usize)]| Place {
            program: 0,
            arguments: Vec::new(),
            expansion,
            steps: None,
            own: own.iter().map(|(from, to)| *from..*to).collect(),
        };
        let mut merged = Merged::default();
        // The second step of the first call is an argument's; segment 9 is not known.
        merged.add_motion(&place(&[(0, 1), (2, 3)]), |segment| Some(10 + segment));
        merged.add_motion(&place(&[(4, 6)]), |segment| Some(20 + segment));
        merged.add_motion(&place(&[(9, 11)]), |segment| (segment != 9).then_some(30 + segment));
        assert_eq!(merged.steps, [vec![10, 24], vec![12, 25, 40]]);
    }
}
