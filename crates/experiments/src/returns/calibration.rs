//! How well imagined returns agree with true ones: errors, correlation, reliability, and the area under the ROC curve.

use models::kernel::spearman;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Bins of the reliability table.
const BINS: usize = 10;

/// The mean errors of some imagined returns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Errors {
    /// How many there are.
    pub count: usize,
    /// The mean imagined return.
    pub imagined: f64,
    /// The mean true return.
    pub truth: f64,
    /// The mean of imagined − true: above 0 it is optimistic.
    pub mean_error: f64,
    /// The mean of |imagined − true|.
    pub mean_absolute_error: f64,
}

/// One row of the reliability table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bin {
    /// The least imagined return of the bin.
    pub from: f64,
    /// The largest; it belongs to the next bin, except for the last one.
    pub to: f64,
    /// How many imagined returns are in it.
    pub count: usize,
    /// Their mean; `None` if there are none.
    pub imagined: Option<f64>,
    /// The mean of the true returns; `None` if there are none.
    pub truth: Option<f64>,
}

/// Imagined against true returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Over all.
    pub errors: Errors,
    /// Pearson's correlation; `None` if one side never changes.
    pub pearson: Option<f64>,
    /// Spearman's rank correlation; `None` if one side never changes.
    pub spearman: Option<f64>,
    /// Expected calibration error: the mean |imagined − true| of the bins' means, each bin with the weight of its count.
    pub expected_calibration_error: f64,
    /// Ten bins of equal width from the least to the largest imagined return.
    pub bins: Vec<Bin>,
}

impl Errors {
    /// Of pairs of an imagined and a true return; `None` without pairs.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Errors> {
        if pairs.is_empty() {
            return None;
        }
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
        Some(Errors {
            count: pairs.len(),
            imagined: mean(&|pair| pair.0),
            truth: mean(&|pair| pair.1),
            mean_error: mean(&|pair| pair.0 - pair.1),
            mean_absolute_error: mean(&|pair| (pair.0 - pair.1).abs()),
        })
    }
}

impl Calibration {
    /// Of pairs of an imagined and a true return.
    ///
    /// # Errors
    /// On no pairs, and on numbers that are not finite.
    pub fn of(pairs: &[(f64, f64)]) -> Result<Calibration> {
        let is_finite = pairs.iter().all(|(imagined, truth)| imagined.is_finite() && truth.is_finite());
        let errors = Errors::of(pairs).filter(|_| is_finite).ok_or_else(|| {
            Error::Mismatch(format!(
                "{} imagined returns cannot be compared with true ones; expected one or more, all finite",
                pairs.len()
            ))
        })?;
        let (imagined, truth): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let bins = bins(pairs);
        let off = |bin: &Bin| Some(bin.count as f64 * (bin.imagined? - bin.truth?).abs());
        Ok(Calibration {
            errors,
            pearson: pearson(&imagined, &truth),
            spearman: spearman(&imagined, &truth),
            expected_calibration_error: bins.iter().filter_map(off).sum::<f64>() / pairs.len() as f64,
            bins,
        })
    }
}

/// The area under the ROC curve: the chance that a positive number is larger than a negative one, ties counting half. `None`
/// if there are none of either.
pub fn auc(positive: &[f64], negative: &[f64]) -> Option<f64> {
    if positive.is_empty() || negative.is_empty() {
        return None;
    }
    let mut sorted = negative.to_vec();
    sorted.sort_by(f64::total_cmp);
    let below = |value: f64| sorted.partition_point(|other| *other < value) as f64;
    let up_to = |value: f64| sorted.partition_point(|other| *other <= value) as f64;
    let wins: f64 = positive.iter().map(|value| (below(*value) + up_to(*value)) / 2.0).sum();
    Some(wins / (positive.len() as f64 * negative.len() as f64))
}

fn bins(pairs: &[(f64, f64)]) -> Vec<Bin> {
    let least = pairs.iter().map(|pair| pair.0).fold(f64::INFINITY, f64::min);
    let largest = pairs.iter().map(|pair| pair.0).fold(f64::NEG_INFINITY, f64::max);
    let width = (largest - least) / BINS as f64;
    let bin_of = |value: f64| if width > 0.0 { (((value - least) / width) as usize).min(BINS - 1) } else { 0 };
    let bin = |at: usize| {
        let inside: Vec<(f64, f64)> = pairs.iter().copied().filter(|pair| bin_of(pair.0) == at).collect();
        let errors = Errors::of(&inside);
        Bin {
            from: least + at as f64 * width,
            to: least + (at + 1) as f64 * width,
            count: inside.len(),
            imagined: errors.map(|errors| errors.imagined),
            truth: errors.map(|errors| errors.truth),
        }
    };
    (0..BINS).map(bin).collect()
}

fn pearson(one: &[f64], other: &[f64]) -> Option<f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (centre, other_centre) = (mean(one), mean(other));
    let product = |f: &dyn Fn(f64, f64) -> f64| one.iter().zip(other).map(|(a, b)| f(*a, *b)).sum::<f64>();
    let together = product(&|a, b| (a - centre) * (b - other_centre));
    let scale = (product(&|a, _| (a - centre).powi(2)) * product(&|_, b| (b - other_centre).powi(2))).sqrt();
    (scale > 0.0).then(|| together / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scikit-learn: `roc_auc_score([1, 1, 1, 0, 0], [0.9, 0.4, 0.4, 0.4, 0.1])` is 0.8333….
    #[test]
    fn the_area_is_scikit_learns() {
        assert_eq!(auc(&[0.9, 0.4, 0.4], &[0.4, 0.1]), Some(5.0 / 6.0));
        assert_eq!((auc(&[2.0, 3.0], &[1.0]), auc(&[1.0], &[2.0, 3.0])), (Some(1.0), Some(0.0)));
        assert_eq!((auc(&[], &[1.0]), auc(&[1.0], &[])), (None, None));
    }

    #[test]
    fn what_is_right_has_no_error_and_what_is_off_has_the_offset() {
        let right: Vec<(f64, f64)> = (0..100).map(|at| (f64::from(at), f64::from(at))).collect();
        let found = Calibration::of(&right).unwrap();
        assert_eq!((found.expected_calibration_error, found.errors.mean_absolute_error), (0.0, 0.0));
        assert!((found.pearson.unwrap() - 1.0).abs() < 1e-12 && found.spearman == Some(1.0));
        assert_eq!(found.bins.iter().map(|bin| bin.count).collect::<Vec<_>>(), [10; 10]);
        let off: Vec<(f64, f64)> = right.iter().map(|(imagined, truth)| (imagined + 2.0, *truth)).collect();
        let found = Calibration::of(&off).unwrap();
        assert!((found.expected_calibration_error - 2.0).abs() < 1e-12 && found.errors.mean_error == 2.0);
    }

    #[test]
    fn errors_that_cancel_within_a_bin_are_no_error_of_calibration() {
        // All values are equal, so they are in one bin.
        let found = Calibration::of(&[(0.5, 0.0), (0.5, 1.0)]).unwrap();
        assert_eq!((found.expected_calibration_error, found.errors.mean_absolute_error), (0.0, 0.5));
        assert_eq!((found.pearson, found.spearman, found.bins[0].count), (None, None, 2));
        assert!(Calibration::of(&[]).is_err() && Calibration::of(&[(f64::NAN, 0.0)]).is_err());
    }
}
