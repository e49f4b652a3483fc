//! How sure a boundary is.
//!
//! A cut between the segments a and b lowers the cost and leaves something unexplained:
//!
//! ```text
//! rise = (cost(a ∪ b) − cost(a) − cost(b)) / penalty        what the cut saves, in penalties (which contain the noise)
//! left = (cost(a) + cost(b)) / seconds of a and b            power that no profile explains
//! confidence = 1 / (1 + exp(−(w₀ + w₁ ln rise + w₂ ln(left + 10⁻⁴))))
//! ```
//!
//! A cut between two clean motions leaves little. Hesitations, corrections and tremor leave much, and some of the cuts there
//! are made by them. The weights are those of a logistic regression of whether a boundary is within 0.2 s of a true one, over
//! the cuts of the training rounds of the four LIBERO datasets, as they are and as operators of the three levels of
//! human noise would have recorded them. What is left decides: optimal partitioning makes no cuts
//! that save less than a penalty, and among those it makes, saving more hardly makes a cut more often right (the slope that is
//! fitted freely is 0.0; w₁ is set to 0.1, which costs nothing, so that a cut that saves more is never less sure).

/// The confidence of a boundary at which a gripper is commanded to open or to close: all of those were right.
pub(super) const OF_A_GRIPPER: f64 = 0.99;

/// Intercept, and slopes of the log-odds in ln rise and ln left.
const FITTED: [f64; 3] = [-1.306, 0.1, -1.443];

/// What is left of a motion without any noise.
const LEAST_LEFT: f64 = 1e-4;

/// What speaks for a cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evidence {
    /// By how many penalties the cost rises without it.
    pub(super) rise: f64,
    /// The power that the segments on both sides do not explain.
    pub(super) left: f64,
}

impl Evidence {
    /// The confidence that the cut is right.
    pub(super) fn confidence(self) -> f64 {
        let [base, rise, left] = FITTED;
        let odds = base + rise * self.rise.max(1e-3).ln() + left * (self.left.max(0.0) + LEAST_LEFT).ln();
        (1.0 / (1.0 + (-odds).exp())).min(OF_A_GRIPPER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_that_is_saved_and_less_that_is_left_are_surer() {
        let confidence = |rise: f64, left: f64| Evidence { rise, left }.confidence();
        for (rise, left) in [(1.0, 0.3), (3.0, 0.05), (100.0, 1.0), (0.0, 10.0)] {
            let one = confidence(rise, left);
            assert!(one > 0.0 && one < confidence(2.0 * rise + 0.01, left) && one < confidence(rise, left / 2.0));
        }
        assert_eq!(confidence(1e9, 0.0), OF_A_GRIPPER);
        assert!(confidence(f64::MAX, f64::MAX) >= 0.0 && confidence(-1.0, -1.0) <= 1.0);
    }
}
