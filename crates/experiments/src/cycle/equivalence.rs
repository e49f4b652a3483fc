//! Whether two returns are the same, as far as a few rollouts can show.
//!
//! The hypothesis to refute is that returns differ by more than ε on average over *calls*, E|Δ| > ε. It is refuted at level α
//! exactly if the upper (1 − α) confidence bound of the mean |Δ| is below ε. Sizes and not differences are averaged, so that
//! what one call gains does not make up for what another loses. A test for difference would not do: with few or noisy rollouts
//! it finds none, and would admit what it cannot judge.
//!
//! **Calls are the sample, rollouts are not.** Several rollouts of one call share its start and its actions, so they say little
//! more about other calls than one of them does. The bound is a cluster bootstrap: calls are resampled, each with all of its
//! rollouts, and the percentile of the resampled means is the bound. Every call has the same weight, however often it was
//! rolled out.
//!
//! **Few calls.** No resampled mean exceeds the largest call, so with few calls the percentile is too low (with five calls whose
//! Δ is normal, the largest |Δ| is below the true mean in 6 of 100 cases). Student's bound over the calls' means is computed as
//! well, and the larger of the two counts. With fewer than [`Test::min_calls`] calls there is no bound at all, and returns are
//! never found equivalent.
//!
//! **Many candidates.** [`corrected`] divides α by the number of candidates that may be judged (Bonferroni). Holm's procedure is
//! more powerful, but it orders the p-values of all candidates, and here each one is admitted or rejected before the next one
//! is proposed.

use clustering::{BootstrapConfig, bootstrap_mean};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::error::{Error, Result};

/// How many resampled means should lie beyond the bound, so that it is not decided by a single one of them.
const BEYOND: f64 = 20.0;

/// The least number of resamples (the paper's number for its intervals), and the most.
const RESAMPLES: (usize, usize) = (10_000, 1_000_000);

/// The settings of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// ε.
    pub margin: f64,
    /// The level of this one test, already corrected.
    pub level: f64,
    /// The least number of calls that give a bound; at least 2.
    pub min_calls: usize,
    /// Seed of the resampling.
    pub seed: u64,
}

/// The result of the test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Equivalence {
    /// The mean difference, which shows whether it is a gain or a loss.
    pub mean: f64,
    /// The mean size of a difference.
    pub size: f64,
    /// The lower (1 − α) confidence bound of the size, by the bootstrap; `None` with too few calls.
    pub low: Option<f64>,
    /// The upper (1 − α) confidence bound of the size; `None` with too few calls.
    pub bound: Option<f64>,
    /// ε.
    pub margin: f64,
    /// The level of the bound.
    pub level: f64,
    /// The number of calls.
    pub calls: usize,
    /// The number of rollouts of all calls together.
    pub rollouts: usize,
    /// Whether the bound is below ε.
    pub equivalent: bool,
}

/// The level of one test, so that the chance of one or more false admissions among `tests` tests is at most `level`.
pub fn corrected(level: f64, tests: usize) -> f64 {
    level / tests.max(1) as f64
}

/// Tests paired differences of returns for equivalence: for each call the differences of its rollouts.
///
/// # Errors
/// On no calls, a call without rollouts, a difference that is not finite, and settings out of range.
pub fn equivalence(calls: &[Vec<f64>], test: &Test) -> Result<Equivalence> {
    let Test { margin, level, min_calls, seed } = *test;
    let is_bad = |call: &Vec<f64>| call.is_empty() || !call.iter().all(|one| one.is_finite());
    if calls.is_empty() || calls.iter().any(is_bad) {
        return Err(Error::Mismatch(format!(
            "differences of returns of {} calls cannot be tested; expected one or more calls, each with finite differences",
            calls.len()
        )));
    }
    if !(margin > 0.0 && level > 0.0 && level < 0.5) {
        return Err(Error::Settings(vec![format!(
            "the margin is {margin} and the level {level}; expected a margin above 0 and a level between 0 and 0.5"
        )]));
    }
    let sizes: Vec<f64> = calls.iter().map(|call| mean_of(call.iter().map(|one| one.abs()))).collect();
    let size = mean_of(sizes.iter().copied());
    let (low, bound) = if calls.len() < min_calls.max(2) {
        (None, None)
    } else {
        let resamples = (BEYOND / level).ceil() as usize;
        let config = BootstrapConfig {
            resamples: resamples.clamp(RESAMPLES.0, RESAMPLES.1),
            confidence: 1.0 - 2.0 * level,
            seed,
        };
        let interval = bootstrap_mean(&sizes, &config)?;
        (Some(interval.low), Some(interval.high.max(size + students_reach(&sizes, level)?)))
    };
    Ok(Equivalence {
        mean: mean_of(calls.iter().map(|call| mean_of(call.iter().copied()))),
        size,
        low,
        bound,
        margin,
        level,
        calls: calls.len(),
        rollouts: calls.iter().map(Vec::len).sum(),
        equivalent: bound.is_some_and(|bound| bound < margin),
    })
}

/// How far Student's upper bound of a mean lies above it. Expects two or more values.
fn students_reach(values: &[f64], level: f64) -> Result<f64> {
    let count = values.len() as f64;
    let student = StudentsT::new(0.0, 1.0, count - 1.0)
        .map_err(|error| Error::Mismatch(format!("Student's distribution: {error}")))?;
    let mean = mean_of(values.iter().copied());
    let variance = values.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Ok(student.inverse_cdf(1.0 - level) * (variance / count).sqrt())
}

fn mean_of(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const TEST: Test = Test { margin: 0.05, level: 0.05, min_calls: 3, seed: 1 };

    fn single(differences: &[f64]) -> Vec<Vec<f64>> {
        differences.iter().map(|one| vec![*one]).collect()
    }

    /// The golden file has SciPy's percentile bootstrap and Student's bound of the calls' means; see its exporter. Resampling
    /// is random in both, so bounds are compared within 5 % of their distance from the mean (three standard errors of 10 000
    /// resamples), and Student's exactly.
    #[test]
    fn bounds_are_scipys() {
        let text = include_str!("../../fixtures/golden/equivalence/equivalence.json");
        let golden: Value = serde_json::from_str(text).unwrap();
        let mut by_bootstrap = 0;
        for case in golden["cases"].as_array().unwrap() {
            let calls: Vec<Vec<f64>> = serde_json::from_value(case["calls"].clone()).unwrap();
            let of = |name: &str| case[name].as_f64().unwrap();
            let found = equivalence(&calls, &Test { level: of("level"), ..TEST }).unwrap();
            assert!((found.mean - of("mean")).abs() < 1e-12 && (found.size - of("size")).abs() < 1e-12, "{found:?}");
            let (low, high, student) = (of("low"), of("high"), of("student"));
            assert!((found.low.unwrap() - low).abs() < 0.05 * (of("size") - low), "{found:?}, {case}");
            // The larger one of both; exactly Student's, where it is clearly larger.
            let (larger, slack) = (high.max(student), 0.05 * (high - of("size")));
            let tolerance = if student > high + slack { 1e-9 } else { slack };
            assert!((found.bound.unwrap() - larger).abs() < tolerance, "{found:?}, {case}");
            by_bootstrap += usize::from(high > student);
        }
        assert!(by_bootstrap > 0, "no case is decided by the bootstrap");
    }

    #[test]
    fn rollouts_of_one_call_do_not_count_as_calls() {
        let few = [0.01, 0.03, -0.02, 0.0, 0.02];
        let once = equivalence(&single(&few), &TEST).unwrap();
        let often: Vec<Vec<f64>> = few.iter().map(|one| vec![*one; 100]).collect();
        let often = equivalence(&often, &TEST).unwrap();
        for (one, other) in [(once.bound, often.bound), (once.low, often.low), (Some(once.size), Some(often.size))] {
            assert!((one.unwrap() - other.unwrap()).abs() < 1e-12, "{once:?}, {often:?}");
        }
        assert_eq!((often.calls, often.rollouts), (5, 500));
        // As 500 calls they would give a much lower bound.
        let independent = equivalence(&single(&few.repeat(100)), &TEST).unwrap();
        assert!(independent.bound.unwrap() < 0.018 && once.bound.unwrap() > 0.024, "{independent:?}, {once:?}");
    }

    #[test]
    fn gains_do_not_make_up_for_losses() {
        let cancelling: Vec<f64> = (0..1000).map(|at| if at % 2 == 0 { 0.2 } else { -0.2 }).collect();
        let found = equivalence(&single(&cancelling), &TEST).unwrap();
        assert!(found.mean.abs() < 1e-12, "the mean alone would pass");
        assert!(!found.equivalent && (found.size - 0.2).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_judged_is_not_equivalent() {
        // No difference on average, but far too noisy.
        let noisy: Vec<f64> = (0..32).map(|at| if at % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert!(!equivalence(&single(&noisy), &TEST).unwrap().equivalent);
        // Precise, but different.
        assert!(!equivalence(&single(&[0.06; 32]), &TEST).unwrap().equivalent);
        assert!(equivalence(&single(&[0.04; 32]), &TEST).unwrap().equivalent);
        // Too few calls, however many rollouts: no bound, even where nothing differs.
        let two = equivalence(&[vec![0.0; 50], vec![0.0; 50]], &TEST).unwrap();
        assert!(two.bound.is_none() && !two.equivalent && two.size == 0.0);
        assert!(equivalence(&single(&[0.0; 3]), &TEST).unwrap().equivalent);
        assert!(equivalence(&[], &TEST).is_err() && equivalence(&[vec![]], &TEST).is_err());
        assert!(equivalence(&single(&[0.0, f64::NAN]), &TEST).is_err());
        assert!(equivalence(&single(&[0.0; 3]), &Test { margin: 0.0, ..TEST }).is_err());
    }

    #[test]
    fn more_candidates_make_the_bound_wider() {
        let differences: Vec<f64> = (0..12).map(|at| 0.003 * f64::from(at)).collect();
        let one = equivalence(&single(&differences), &TEST).unwrap();
        let level = corrected(TEST.level, 32);
        assert_eq!(level, 0.05 / 32.0);
        let many = equivalence(&single(&differences), &Test { level, ..TEST }).unwrap();
        assert!(many.bound > one.bound && many.size == one.size);
    }
}
