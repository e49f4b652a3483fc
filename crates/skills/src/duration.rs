//! How long a skill takes: a line over the length of its way.

use serde::{Deserialize, Serialize};

/// What draws the slope towards one step for each step of way, in steps squared.
const RIDGE: f64 = 25.0;

/// The number of steps of a skill, by the length of its way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Duration {
    /// Steps of the mean way.
    pub steps: f64,
    /// The mean length of the way, in steps at the robot's pace.
    pub way: f64,
    /// Steps for each further step of way.
    pub slope: f64,
    /// The fewest steps of a member, and the most.
    pub bounds: [usize; 2],
}

impl Duration {
    /// Fits a line to members, each with the length of its way and its steps: least squares, with a ridge.
    pub(crate) fn fit(members: &[(f64, usize)]) -> Duration {
        let count = members.len().max(1) as f64;
        let way = members.iter().map(|(way, _)| way / count).sum::<f64>();
        let steps = members.iter().map(|(_, steps)| *steps as f64 / count).sum::<f64>();
        let (mut squares, mut products) = (RIDGE, RIDGE);
        for (one, taken) in members {
            squares += (one - way).powi(2);
            products += (one - way) * (*taken as f64 - steps);
        }
        let bounds = members.iter().fold([usize::MAX, 1], |[least, most], (_, one)| [least.min(*one), most.max(*one)]);
        Duration { steps, way, slope: (products / squares).max(0.0), bounds }
    }

    /// How many steps a way of this length takes: at least half the fewest steps of a member, and at most twice the most.
    pub fn of(&self, way: f64) -> usize {
        let [least, most] = self.bounds;
        let steps = (self.steps + self.slope * (way - self.way)).round();
        (if steps.is_finite() { steps.max(0.0) as usize } else { 0 })
            .clamp((least / 2).max(1), most.saturating_mul(2).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_ways_take_longer_within_bounds() {
        let members: Vec<(f64, usize)> = (1..40).map(|at| (f64::from(at), 10 + 2 * at as usize)).collect();
        let duration = Duration::fit(&members);
        assert!((1.9..2.1).contains(&duration.slope), "{duration:?}");
        assert!(duration.of(20.0).abs_diff(50) <= 1 && duration.of(1e9) == 176 && duration.of(-1e9) == 6);
        // One member alone: the ridge decides.
        let one = Duration::fit(&[(10.0, 12)]);
        assert_eq!((one.of(10.0), one.of(13.0), one.of(f64::NAN)), (12, 15, 6));
    }
}
