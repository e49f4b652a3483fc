//! Whether two returns are the same, as far as a few rollouts can tell: two one-sided t-tests on paired differences.
//!
//! The hypothesis to be refuted is that the mean difference is beyond ±ε. It is refuted at level α exactly if the (1 − 2α)
//! confidence interval of the mean lies within ±ε. A test for difference would not do: with few or noisy rollouts it finds
//! none, and would admit what it cannot judge.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::error::{Error, Result};

/// What the test found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Equivalence {
    /// The mean difference.
    pub mean: f64,
    /// The lower end of its (1 − 2α) confidence interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// ε.
    pub margin: f64,
    /// How many differences there were.
    pub rollouts: usize,
    /// Whether the interval lies within ±ε.
    pub equivalent: bool,
}

/// Tests paired differences for equivalence within `margin` at level `alpha`.
///
/// # Errors
/// On fewer than two differences, one that is not finite, and settings out of range.
pub fn equivalence(differences: &[f64], margin: f64, alpha: f64) -> Result<Equivalence> {
    let count = differences.len();
    if count < 2 || !differences.iter().all(|one| one.is_finite()) {
        return Err(Error::Mismatch(format!(
            "{count} differences of returns cannot be tested; wanted two or more, all finite"
        )));
    }
    if !(margin > 0.0 && alpha > 0.0 && alpha < 0.5) {
        return Err(Error::Settings(vec![format!(
            "the margin is {margin} and the level {alpha}; wanted a margin above 0 and a level between 0 and 0.5"
        )]));
    }
    let mean = differences.iter().sum::<f64>() / count as f64;
    let variance = differences.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (count - 1) as f64;
    let student = StudentsT::new(0.0, 1.0, (count - 1) as f64)
        .map_err(|error| Error::Mismatch(format!("Student's distribution: {error}")))?;
    let reach = student.inverse_cdf(1.0 - alpha) * (variance / count as f64).sqrt();
    let (low, high) = (mean - reach, mean + reach);
    Ok(Equivalence { mean, low, high, margin, rollouts: count, equivalent: low > -margin && high < margin })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SciPy: `ttest_rel`-style intervals, `t.ppf(0.95, 4) * sem` with differences 0.01, 0.03, −0.02, 0.0, 0.02.
    #[test]
    fn the_interval_is_scipys() {
        let found = equivalence(&[0.01, 0.03, -0.02, 0.0, 0.02], 0.05, 0.05).unwrap();
        assert!((found.mean - 0.008).abs() < 1e-15);
        assert!((found.low - (0.008 - 0.018_338_839_5)).abs() < 1e-6, "{found:?}");
        assert!(found.equivalent);
    }

    #[test]
    fn what_cannot_be_judged_is_not_equivalent() {
        // No difference on average, but far too noisy.
        let noisy: Vec<f64> = (0..32).map(|at| if at % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert!(!equivalence(&noisy, 0.05, 0.05).unwrap().equivalent);
        // Precise, but different.
        assert!(!equivalence(&[0.06; 32], 0.05, 0.05).unwrap().equivalent);
        assert!(equivalence(&[0.04; 32], 0.05, 0.05).unwrap().equivalent);
        assert!(equivalence(&[0.0], 0.05, 0.05).is_err());
        assert!(equivalence(&[0.0, f64::NAN], 0.05, 0.05).is_err());
    }
}
