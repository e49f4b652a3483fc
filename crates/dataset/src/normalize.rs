//! Numbers brought to a common scale, and back.
//!
//! A model is trained on normalised states and actions; the [`Normalization`] is stored with it, so that the same
//! numbers come back wherever it runs. It is `(x − offset) / scale` for each place of a vector, with
//!
//! | kind | offset | scale | a typical value lies in |
//! |---|---|---|---|
//! | `mean_std` | mean | std | about −3 … 3 |
//! | `min_max` | (max + min) / 2 | (max − min) / 2 | −1 … 1 |
//! | `quantile` | (q99 + q01) / 2 | (q99 − q01) / 2 | −1 … 1, outliers beyond |
//!
//! A place that never changes (a scale of less than 1e-8, or of less than what `f32` can tell apart at that offset) is
//! not divided: its scale is 1, so that it becomes 0, and comes back as it was. lerobot adds 1e-8 to the divisor
//! instead, which turns rounding in a constant into large numbers.

use serde::{Deserialize, Serialize};

use crate::fault::{Error, Fault};
use crate::stats::{FeatureStats, Numbers, QUANTILES, Running, STATS};

/// Which numbers of a column become 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NormalizationKind {
    /// The mean becomes 0, the standard deviation 1.
    #[default]
    MeanStd,
    /// The least value becomes −1, the greatest 1.
    MinMax,
    /// The quantile 0.01 becomes −1, the quantile 0.99 becomes 1.
    Quantile,
}

/// How the vectors of a column are normalised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Normalization {
    /// What it was made of.
    pub kind: NormalizationKind,
    /// What is taken off, for each place.
    pub offset: Vec<f32>,
    /// What is divided by, for each place.
    pub scale: Vec<f32>,
}

/// A smaller scale is that of a place that never changes.
const LEAST_SCALE: f64 = 1e-8;

impl Normalization {
    /// From statistics, such as those of `meta/stats.json`; `key` is for messages.
    pub fn from_stats(kind: NormalizationKind, key: &str, stats: &FeatureStats) -> Result<Normalization, Error> {
        let between = |low: &[f64], high: &[f64]| -> Vec<(f64, f64)> {
            low.iter().zip(high).map(|(low, high)| (low + (high - low) / 2.0, (high - low) / 2.0)).collect()
        };
        let places = match kind {
            NormalizationKind::MeanStd => stats.mean.iter().copied().zip(stats.std.iter().copied()).collect(),
            NormalizationKind::MinMax => between(&stats.min, &stats.max),
            NormalizationKind::Quantile => match (&stats.quantiles[0], &stats.quantiles[QUANTILES.len() - 1]) {
                (Some(low), Some(high)) => between(low, high),
                _ => {
                    let expected = "quantiles, as lerobot 0.4 and later write them".to_string();
                    let found = "no `q01` and `q99`".to_string();
                    let (file, key) = (STATS.to_string(), key.to_string());
                    return Err(Fault::BadStats { file, key, found, expected }.into());
                }
            },
        };
        let (offset, scale) = places.into_iter().map(|(offset, scale)| usable(offset, scale)).unzip();
        Ok(Normalization { kind, offset, scale })
    }

    /// From rows of the column, such as those of the training episodes, in parts of any length; none without a row.
    pub fn from_rows<'a>(
        kind: NormalizationKind,
        width: usize,
        parts: impl IntoIterator<Item = &'a [f32]>,
    ) -> Option<Normalization> {
        let mut running = Running::new(width);
        parts.into_iter().for_each(|rows| running.add_f32(rows));
        let stats = running.stats(Numbers::Float, &[width])?;
        Normalization::from_stats(kind, "", &stats).ok()
    }

    /// Leaves vectors of a width as they are.
    pub fn identity(width: usize) -> Normalization {
        Normalization { kind: NormalizationKind::MeanStd, offset: vec![0.0; width], scale: vec![1.0; width] }
    }

    /// The same with one scale for neighbouring places that are in one unit, such as pixels: the root of their mean square. A
    /// place that hardly changes then stays small, where dividing by its own deviation would turn noise into a signal. Places that
    /// never change, whose scale is 1, count as zero. `widths` says how many places each unit has.
    pub fn with_shared_scales(mut self, widths: impl IntoIterator<Item = usize>) -> Normalization {
        let mut rest = self.scale.as_mut_slice();
        for width in widths {
            let (unit, after) = rest.split_at_mut(width.min(rest.len()));
            let square = |scale: &f32| if *scale == 1.0 { 0.0 } else { f64::from(*scale).powi(2) };
            let mean = unit.iter().map(square).sum::<f64>() / unit.len().max(1) as f64;
            if mean > 0.0 {
                unit.fill(mean.sqrt() as f32);
            }
            rest = after;
        }
        self
    }

    /// The length of its vectors.
    pub fn width(&self) -> usize {
        self.offset.len().min(self.scale.len())
    }

    /// Normalises rows in place.
    pub fn apply(&self, rows: &mut [f32]) {
        self.each(rows, |value, offset, scale| (value - offset) / scale);
    }

    /// Brings rows back, in place.
    pub fn invert(&self, rows: &mut [f32]) {
        self.each(rows, |value, offset, scale| value * scale + offset);
    }

    fn each(&self, rows: &mut [f32], change: impl Fn(f32, f32, f32) -> f32) {
        if self.width() == 0 {
            return;
        }
        for row in rows.chunks_mut(self.width()) {
            for ((value, offset), scale) in row.iter_mut().zip(&self.offset).zip(&self.scale) {
                *value = change(*value, *offset, *scale);
            }
        }
    }
}

/// What can be taken off and divided by.
fn usable(offset: f64, scale: f64) -> (f32, f32) {
    let told_apart = offset.abs() * f64::from(f32::EPSILON);
    let usable = scale.is_finite() && scale >= LEAST_SCALE.max(told_apart) && (scale as f32).is_normal();
    let offset = if offset.is_finite() { offset as f32 } else { 0.0 };
    (offset, if usable { scale as f32 } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KINDS: [NormalizationKind; 3] =
        [NormalizationKind::MeanStd, NormalizationKind::MinMax, NormalizationKind::Quantile];

    #[test]
    fn ends_become_one_and_what_never_changes_becomes_zero() {
        let rows = [0.0, 5.0, 2.0, 5.0, 4.0, 5.0];
        let made = Normalization::from_rows(NormalizationKind::MinMax, 2, [&rows[..2], &rows[2..]]).unwrap();
        let mut changed = rows;
        made.apply(&mut changed);
        assert_eq!(changed, [-1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
        made.invert(&mut changed);
        assert_eq!(changed, rows);
        let made = Normalization::from_rows(NormalizationKind::MeanStd, 2, [&rows[..]]).unwrap();
        let mut changed = rows;
        made.apply(&mut changed);
        assert!((changed[0] + 1.5f32.sqrt()).abs() < 1e-6 && changed[1] == 0.0);
    }

    #[test]
    fn a_constant_that_rounds_is_still_a_constant() {
        // In single precision these differ by one step, which is no signal.
        let rows = [1000.0f32, 1000.0f32.next_up(), 1000.0, 1000.0];
        for kind in KINDS {
            let made = Normalization::from_rows(kind, 1, [&rows[..]]).unwrap();
            assert_eq!(made.scale, [1.0], "{kind:?}");
        }
    }

    #[test]
    fn nothing_has_no_normalization_and_old_files_have_no_quantiles() {
        assert_eq!(Normalization::from_rows(NormalizationKind::MeanStd, 3, []), None);
        let mut stats = Running::new(1);
        stats.add_f32(&[1.0, 2.0]);
        let mut stats = stats.stats(Numbers::Float, &[1]).unwrap();
        stats.quantiles[0] = None;
        let error = Normalization::from_stats(NormalizationKind::Quantile, "action", &stats).unwrap_err();
        assert_eq!(error.to_string(), "`action` in `meta/stats.json` has no `q01` and `q99`");
    }

    #[test]
    fn places_in_one_unit_share_a_scale() {
        let own = Normalization { scale: vec![3.0, 1.0, 4.0, 2.0, 7.0], ..Normalization::identity(5) };
        let shared = own.clone().with_shared_scales([3, 1]);
        let mean = (25.0_f64 / 3.0).sqrt() as f32;
        assert_eq!(shared.scale, [mean, mean, mean, 2.0, 7.0]);
        assert_eq!(shared.offset, own.offset);
        assert_eq!(own.clone().with_shared_scales([1; 9]), own);
    }

    #[test]
    fn it_is_stored_as_json() {
        let made = Normalization::from_rows(NormalizationKind::Quantile, 1, [&[0.1f32, 0.7][..]]).unwrap();
        let text = serde_json::to_string(&made).unwrap();
        assert!(text.starts_with(r#"{"kind":"quantile","offset":[0.4"#), "{text}");
        assert_eq!(serde_json::from_str::<Normalization>(&text).unwrap(), made);
    }

    proptest! {
        #[test]
        fn what_is_applied_is_inverted(
            width in 1usize..5,
            values in prop::collection::vec(-1e3f32..1e3, 1..200),
            kind in prop::sample::select(&KINDS[..]),
        ) {
            let rows = &values[..values.len() / width * width];
            prop_assume!(!rows.is_empty());
            let made = Normalization::from_rows(kind, width, [rows]).unwrap();
            let mut changed = rows.to_vec();
            made.apply(&mut changed);
            prop_assert!(changed.iter().all(|value| value.is_finite()));
            made.invert(&mut changed);
            for (at, (value, back)) in rows.iter().zip(&changed).enumerate() {
                // Rounding happens at the size of the offset and of the scale.
                let size = value.abs() + made.offset[at % width].abs() + made.scale[at % width];
                prop_assert!((value - back).abs() <= 1e-6 * size, "{value} came back as {back}");
            }
        }
    }
}
