//! The percentile bootstrap: draw as many values with replacement as there are, take the statistic, and do so thousands of
//! times; the middle `confidence` of what came out is the interval.

use rayon::prelude::*;

use crate::draw::{Purpose, below, generator};
use crate::error::ClusteringError;

/// Resamples of one piece of work, which has a generator of its own.
const BLOCK: usize = 64;

/// How a bootstrap runs. `Default` is the paper's.
#[derive(Clone, Debug, PartialEq)]
pub struct BootstrapConfig {
    /// How many times to resample.
    pub resamples: usize,
    /// The share of resamples inside the interval.
    pub confidence: f64,
    /// Decides the resamples.
    pub seed: u64,
}

impl Default for BootstrapConfig {
    fn default() -> BootstrapConfig {
        BootstrapConfig { resamples: 10_000, confidence: 0.95, seed: 0 }
    }
}

/// A statistic and how sure of it one can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The statistic of the values themselves.
    pub estimate: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The mean of values and its interval.
///
/// # Errors
/// On no values, values that are not finite, and settings out of range.
pub fn bootstrap_mean(values: &[f64], config: &BootstrapConfig) -> Result<Interval, ClusteringError> {
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        return Err(ClusteringError::BadSample { at, value: values[at] });
    }
    bootstrap(values.len(), config, |drawn| {
        drawn.iter().map(|&at| values[at as usize]).sum::<f64>() / drawn.len() as f64
    })
}

/// Any statistic of `count` things and its interval. The statistic is given which things were drawn, by their numbers, some
/// of them several times.
///
/// # Errors
/// On no things, on a statistic that is not finite, and settings out of range.
pub fn bootstrap(
    count: usize,
    config: &BootstrapConfig,
    statistic: impl Fn(&[u32]) -> f64 + Sync,
) -> Result<Interval, ClusteringError> {
    if count == 0 {
        return Err(ClusteringError::NoValues);
    }
    if u32::try_from(count).is_err() {
        return Err(ClusteringError::TooManyPoints { found: count, limit: u32::MAX as usize });
    }
    if config.resamples == 0 {
        let (found, wanted) = ("0".to_owned(), "1 or more, such as 10000");
        return Err(ClusteringError::BadSetting { name: "resamples", found, wanted });
    }
    if !(config.confidence > 0.0 && config.confidence < 1.0) {
        let (found, wanted) = (config.confidence.to_string(), "a share between 0 and 1, such as 0.95");
        return Err(ClusteringError::BadSetting { name: "confidence", found, wanted });
    }
    let mut resampled = vec![0.0; config.resamples];
    resampled.par_chunks_mut(BLOCK).enumerate().for_each(|(block, results)| {
        let mut random = generator(config.seed, Purpose::Resamples, block as u64);
        let mut drawn = vec![0; count];
        for result in results {
            drawn.fill_with(|| below(&mut random, count as u64) as u32);
            *result = statistic(&drawn);
        }
    });
    let estimate = statistic(&(0..count as u32).collect::<Vec<u32>>());
    if let Some(at) = resampled.iter().position(|value| !value.is_finite()) {
        return Err(ClusteringError::BadSample { at, value: resampled[at] });
    }
    resampled.sort_unstable_by(f64::total_cmp);
    let outside = (1.0 - config.confidence) / 2.0;
    Ok(Interval { estimate, low: quantile(&resampled, outside), high: quantile(&resampled, 1.0 - outside) })
}

/// The value below which a share of sorted values lies, linear between neighbours as NumPy's default is; not a number of
/// none.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    low + (high - low) * (place - below as f64)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_mean_is_that_of_the_normal_law() {
        let values: Vec<f64> = (0..400).map(|value| f64::from(value % 20)).collect();
        let interval = bootstrap_mean(&values, &BootstrapConfig::default()).unwrap();
        // Deviation of 0..20 is √((400 − 1)/12); of a mean of 400 it is a twentieth of that.
        let deviation = (399.0f64 / 12.0).sqrt() / 20.0;
        assert!((interval.estimate - 9.5).abs() < 1e-12);
        assert!((interval.low - (9.5 - 1.96 * deviation)).abs() < 0.03, "{interval:?}");
        assert!((interval.high - (9.5 + 1.96 * deviation)).abs() < 0.03, "{interval:?}");
    }

    #[test]
    fn the_seed_decides_and_threads_do_not() {
        let values: Vec<f64> = (0..50).map(|value| f64::from(value * value)).collect();
        let run = |seed, threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| bootstrap_mean(&values, &BootstrapConfig { seed, ..BootstrapConfig::default() }).unwrap())
        };
        assert_eq!(run(1, 1), run(1, 3));
        assert_ne!(run(1, 1), run(2, 1));
    }

    #[test]
    fn what_cannot_be_resampled_is_refused() {
        let config = BootstrapConfig::default();
        assert_eq!(bootstrap_mean(&[], &config), Err(ClusteringError::NoValues));
        assert!(matches!(bootstrap_mean(&[1.0, f64::NAN], &config), Err(ClusteringError::BadSample { at: 1, .. })));
        for confidence in [0.0, 1.0, f64::NAN] {
            assert!(bootstrap_mean(&[1.0], &BootstrapConfig { confidence, ..config.clone() }).is_err());
        }
        assert!(bootstrap_mean(&[1.0], &BootstrapConfig { resamples: 0, ..config }).is_err());
    }

    #[test]
    fn one_value_has_no_spread() {
        let interval = bootstrap_mean(&[4.0], &BootstrapConfig::default()).unwrap();
        assert_eq!(interval, Interval { estimate: 4.0, low: 4.0, high: 4.0 });
    }
}
