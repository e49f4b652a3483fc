//! Whether two returns are the same, as far as a few rollouts can tell: a one-sided t-test on the size of paired differences.
//!
//! The hypothesis to be refuted is that returns differ by more than ε on average, E|Δ| > ε. It is refuted at level α exactly
//! if the upper (1 − α) confidence bound of the mean |Δ| is below ε. Sizes and not differences are averaged, so that what
//! one call gains does not make up for what another loses. A test for difference would not do: with few or noisy rollouts
//! it finds none, and would admit what it cannot judge.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::error::{Error, Result};

/// What the test found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Equivalence {
    /// The mean difference, which says whether it is a gain or a loss.
    pub mean: f64,
    /// The lower end of its (1 − 2α) confidence interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The mean size of a difference.
    pub size: f64,
    /// Its upper (1 − α) confidence bound.
    pub bound: f64,
    /// ε.
    pub margin: f64,
    /// How many differences there were.
    pub rollouts: usize,
    /// Whether the bound is below ε.
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
    let student = StudentsT::new(0.0, 1.0, (count - 1) as f64)
        .map_err(|error| Error::Mismatch(format!("Student's distribution: {error}")))?;
    let quantile = student.inverse_cdf(1.0 - alpha);
    let (mean, reach) = mean_and_reach(differences, quantile);
    let sizes: Vec<f64> = differences.iter().map(|one| one.abs()).collect();
    let (size, above) = mean_and_reach(&sizes, quantile);
    Ok(Equivalence {
        mean,
        low: mean - reach,
        high: mean + reach,
        size,
        bound: size + above,
        margin,
        rollouts: count,
        equivalent: size + above < margin,
    })
}

/// The mean, and how far its confidence interval reaches to each side.
fn mean_and_reach(values: &[f64], quantile: f64) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, quantile * (variance / count).sqrt())
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
        // Of the sizes 0.01, 0.03, 0.02, 0.0, 0.02: mean 0.016, standard error 0.0050990.
        assert!((found.size - 0.016).abs() < 1e-15);
        assert!((found.bound - (0.016 + 2.131_846_8 * 0.005_099_02)).abs() < 1e-6, "{found:?}");
        assert!(found.equivalent);
    }

    #[test]
    fn gains_do_not_make_up_for_losses() {
        let cancelling: Vec<f64> = (0..1000).map(|at| if at % 2 == 0 { 0.2 } else { -0.2 }).collect();
        let found = equivalence(&cancelling, 0.05, 0.05).unwrap();
        assert!(found.low > -0.05 && found.high < 0.05, "the mean alone would pass");
        assert!(!found.equivalent && (found.size - 0.2).abs() < 1e-12);
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
