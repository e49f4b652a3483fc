//! Cuts where the robot is slowest.

use clustering::quantile;

use super::Cutter;
use crate::annotate_eval::samples::{Sample, Samples};
use crate::error::Result;

/// Minima of the smoothed speed that are deep enough.
pub struct SpeedMinima {
    fps: f64,
    /// The speed of fast motions, which prominences are shares of.
    fast: f64,
}

/// Deviations of the smoothing in seconds, and prominences as shares of the fast speed: each with each.
const SMOOTHINGS: [f64; 3] = [0.05, 0.1, 0.2];
const PROMINENCES: [f64; 3] = [0.02, 0.05, 0.1];

impl SpeedMinima {
    /// For the episodes of a dataset.
    pub fn new(samples: &Samples) -> SpeedMinima {
        let mut speeds: Vec<f64> =
            samples.which(false).into_iter().flat_map(|sample| sample.signals.speed.iter().copied()).collect();
        speeds.sort_unstable_by(f64::total_cmp);
        let fast = quantile(&speeds, 0.95);
        SpeedMinima { fps: samples.fps, fast: if fast.is_finite() { fast } else { 1.0 } }
    }
}

impl Cutter for SpeedMinima {
    fn name(&self) -> String {
        "speed minima".to_owned()
    }

    fn settings(&self) -> Vec<String> {
        let each = |smoothing: f64| {
            PROMINENCES.map(|prominence| format!("smoothing {smoothing} s, prominence {prominence} of the fast speed"))
        };
        SMOOTHINGS.into_iter().flat_map(each).collect()
    }

    fn cuts(&self, setting: usize, sample: &Sample) -> Result<Vec<usize>> {
        let (smoothing, prominence) = (setting / PROMINENCES.len(), setting % PROMINENCES.len());
        let smooth = smoothed(&sample.signals.speed, SMOOTHINGS[smoothing.min(SMOOTHINGS.len() - 1)] * self.fps);
        Ok(minima(&smooth, PROMINENCES[prominence] * self.fast))
    }
}

/// A Gaussian mean with a deviation in rows; weights beyond the ends are left out.
fn smoothed(values: &[f64], deviation: f64) -> Vec<f64> {
    let reach = (3.0 * deviation).ceil() as usize;
    let weight = |apart: usize| (-0.5 * (apart as f64 / deviation.max(1e-9)).powi(2)).exp();
    let at = |row: usize| {
        let near = row.saturating_sub(reach)..(row + reach + 1).min(values.len());
        let (mut sum, mut total) = (0.0, 0.0);
        for other in near {
            sum += weight(row.abs_diff(other)) * values[other];
            total += weight(row.abs_diff(other));
        }
        sum / total
    };
    (0..values.len()).map(at).collect()
}

/// Local minima from which the signal rises by `prominence` or more on both sides before it falls below them; the middle of a
/// flat one. The ends are none.
fn minima(values: &[f64], prominence: f64) -> Vec<usize> {
    let mut found = Vec::new();
    let mut row = 1;
    while row + 1 < values.len() {
        let mut end = row;
        while end + 1 < values.len() && values[end + 1] == values[row] {
            end += 1;
        }
        let is_lowest = values[row - 1] > values[row] && end + 1 < values.len() && values[end + 1] > values[row];
        if is_lowest {
            let rise = |side: &mut dyn Iterator<Item = &f64>| {
                side.take_while(|value| **value >= values[row]).copied().fold(f64::NEG_INFINITY, f64::max) - values[row]
            };
            let (before, after) = (rise(&mut values[..row].iter().rev()), rise(&mut values[end + 1..].iter()));
            if before.min(after) >= prominence {
                found.push(row.midpoint(end));
            }
        }
        row = end + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minima_must_be_deep_on_both_sides() {
        let values = [0.0, 3.0, 1.0, 1.0, 1.0, 2.0, 1.8, 4.0, 0.0];
        assert_eq!(minima(&values, 0.1), [3, 6]);
        // From 1.8 the signal rises by 0.2 only before it falls to 1.
        assert_eq!(minima(&values, 0.5), [3]);
        assert_eq!(minima(&values, 2.5), [0; 0]);
        assert_eq!(minima(&[1.0, 0.0], 0.0), [0; 0]);
    }

    #[test]
    fn smoothing_keeps_constants_and_lowers_peaks() {
        assert!(smoothed(&[2.0; 9], 1.5).iter().all(|value| (value - 2.0).abs() < 1e-12));
        let peak = smoothed(&[0.0, 0.0, 1.0, 0.0, 0.0], 1.0);
        assert!(peak[2] < 0.5 && (peak[1] - peak[3]).abs() < 1e-12 && peak[1] < peak[2]);
    }
}
