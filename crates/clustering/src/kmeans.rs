//! KMeans: k centres c that make the inertia Σᵢ minⱼ ‖xᵢ − cⱼ‖² small.
//!
//! Each restart seeds by greedy k-means++ (`seeding`) and descends by Lloyd's steps (`lloyd`); the restart of least inertia
//! wins, the first of equals. Defaults and stopping rules are scikit-learn's, so that figures compare: tolerance relative to
//! the mean variance of the coordinates, 2 + ⌊ln k⌋ trials for each seed, empty clusters moved to the farthest points.
//!
//! Work is cut into chunks by the number of points alone and merged in order: **the result does not depend on the number of
//! threads.** [`mini_batch_kmeans`] takes a stream of batches instead, for points beyond memory.

mod lloyd;
mod mini_batch;
mod seeding;

pub(crate) use lloyd::assigned;
pub use mini_batch::{MiniBatchConfig, MiniBatchKMeans, mini_batch_kmeans};
use rayon::prelude::*;

use crate::draw::{Purpose, generator};
use crate::error::ClusteringError;
use crate::panels::Panels;
use crate::points::{Points, exact_square};

/// How KMeans runs. `Default` is scikit-learn's but for the restarts, of which there are ten.
#[derive(Clone, Debug, PartialEq)]
pub struct KMeansConfig {
    /// k, the number of clusters.
    pub clusters: usize,
    /// How many times to start anew; the best counts.
    pub restarts: usize,
    /// The most Lloyd steps of one restart.
    pub max_iterations: usize,
    /// A restart has settled once the centres' squared shifts sum to this much of the mean variance of a coordinate.
    pub tolerance: f64,
    /// Decides the first centres.
    pub seed: u64,
}

impl Default for KMeansConfig {
    fn default() -> KMeansConfig {
        KMeansConfig { clusters: 8, restarts: 10, max_iterations: 300, tolerance: 1e-4, seed: 0 }
    }
}

impl KMeansConfig {
    fn check(&self) -> Result<(), ClusteringError> {
        let wanted = "1 or more";
        for (name, found) in
            [("clusters", self.clusters), ("restarts", self.restarts), ("max_iterations", self.max_iterations)]
        {
            if found == 0 {
                return Err(ClusteringError::BadSetting { name, found: found.to_string(), wanted });
            }
        }
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            let (found, wanted) = (self.tolerance.to_string(), "a finite number of 0 or more, such as 1e-4");
            return Err(ClusteringError::BadSetting { name: "tolerance", found, wanted });
        }
        Ok(())
    }
}

/// Why a restart stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// No point changed its cluster: a local optimum.
    LabelsSettled,
    /// The centres moved less than the tolerance.
    CentresSettled,
    /// The limit of iterations was reached.
    IterationLimit,
}

/// What KMeans found.
#[derive(Clone, Debug, PartialEq)]
pub struct KMeans {
    /// `[k, d]`, row by row.
    pub centres: Vec<f32>,
    /// The nearest centre of each point, the first of equals.
    pub labels: Vec<i64>,
    /// Σ of squared distances between points and their centres, in double precision.
    pub inertia: f64,
    /// Lloyd steps of the winning restart.
    pub iterations: usize,
    /// Why it stopped.
    pub stopped: Stopped,
}

/// Clusters points around k centres.
///
/// # Shapes
/// `points` is `[n, d]` with n ≥ k; the centres are `[k, d]`, the labels `[n]`.
///
/// # Errors
/// On fewer points than clusters, and settings out of range.
pub fn kmeans(points: Points<'_>, config: &KMeansConfig) -> Result<KMeans, ClusteringError> {
    config.check()?;
    let clusters = config.clusters;
    if points.len() < clusters {
        return Err(ClusteringError::TooFewPoints { found: points.len(), wanted: clusters });
    }
    let tolerance = config.tolerance * mean_variance(points);
    let best = (0..config.restarts as u64)
        .into_par_iter()
        .map(|restart| {
            let mut random = generator(config.seed, Purpose::Seeding, restart);
            let centres = seeding::plus_plus(points, clusters, &mut random);
            (restart, lloyd::descend(points, centres, tolerance, config.max_iterations))
        })
        .min_by(|a, b| a.1.inertia.total_cmp(&b.1.inertia).then(a.0.cmp(&b.0)));
    let Some((_, run)) = best else {
        return Err(ClusteringError::TooFewPoints { found: points.len(), wanted: clusters });
    };
    Ok(KMeans {
        inertia: inertia(points, &run.centres, &run.labels),
        labels: run.labels.iter().map(|&label| i64::from(label)).collect(),
        centres: run.centres,
        iterations: run.iterations,
        stopped: run.stopped,
    })
}

/// The nearest centre of each point, the first of equals.
///
/// # Shapes
/// `points` is `[n, d]`, `centres` `[k, d]` with k ≥ 1; the labels are `[n]`.
///
/// # Errors
/// On points and centres of different widths, and no centre.
pub fn nearest_centres(points: Points<'_>, centres: Points<'_>) -> Result<Vec<i64>, ClusteringError> {
    if points.width() != centres.width() {
        return Err(ClusteringError::OtherWidth { found: points.width(), wanted: centres.width() });
    }
    if centres.is_empty() {
        return Err(ClusteringError::TooFewPoints { found: 0, wanted: 1 });
    }
    let (labels, _) = lloyd::assigned(points, &Panels::new(centres.values(), centres.width()));
    Ok(labels.into_iter().map(i64::from).collect())
}

/// Rows of one chunk of work, from the number of points alone.
pub(crate) fn chunk_rows(count: usize) -> usize {
    count.div_ceil(128).max(256)
}

/// Σ ‖xᵢ − c(labelᵢ)‖², summed in the order of the points.
fn inertia(points: Points<'_>, centres: &[f32], labels: &[u32]) -> f64 {
    let (width, rows) = (points.width(), chunk_rows(points.len()));
    let sums: Vec<f64> = points
        .values()
        .par_chunks(rows * width)
        .zip(labels.par_chunks(rows))
        .map(|(values, labels)| {
            let rows = values.chunks_exact(width).zip(labels);
            rows.map(|(row, &label)| exact_square(row, &centres[label as usize * width..][..width])).sum()
        })
        .collect();
    sums.into_iter().sum()
}

/// The variance of a coordinate, averaged over the coordinates.
fn mean_variance(points: Points<'_>) -> f64 {
    let (width, rows) = (points.width(), chunk_rows(points.len()));
    // Shifted by the first point, so that points far from the origin do not cancel.
    let origin = points.row(0);
    let chunks: Vec<(Vec<f64>, f64)> = points
        .values()
        .par_chunks(rows * width)
        .map(|values| {
            let (mut sums, mut squares) = (vec![0.0; width], vec![0.0; width]);
            pulp::Arch::new().dispatch(|| {
                for row in values.chunks_exact(width) {
                    for (((sum, square), &value), &origin) in sums.iter_mut().zip(&mut squares).zip(row).zip(origin) {
                        let value = f64::from(value) - f64::from(origin);
                        *sum += value;
                        *square += value * value;
                    }
                }
            });
            (sums, squares.into_iter().sum())
        })
        .collect();
    let (mut sums, mut squares) = (vec![0.0; width], 0.0);
    for (chunk, square) in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, chunk)| *sum += chunk);
        squares += square;
    }
    let count = points.len() as f64;
    let means: f64 = sums.iter().map(|sum| (sum / count).powi(2)).sum();
    ((squares / count - means) / width as f64).max(0.0)
}
