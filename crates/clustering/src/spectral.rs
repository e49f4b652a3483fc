//! Spectral clustering (Ng, Jordan and Weiss 2001; von Luxburg 2007): KMeans on the leading eigenvectors of a graph.
//!
//! Each point is joined with its nearest neighbours; a pair that is joined in one direction only counts half. With W these
//! weights and d their sums, the k largest eigenvectors of D^(−1/2) W D^(−1/2), divided by √d, are the coordinates that
//! KMeans clusters. This is scikit-learn's `SpectralClustering(affinity="nearest_neighbors")`, whose `n_neighbors` counts the
//! point itself, as `neighbours` does here. Of equal distances the point that comes first is nearer.

use rayon::prelude::*;

use crate::error::ClusteringError;
use crate::kmeans::{KMeansConfig, kmeans};
use crate::points::{Points, exact_square};
use crate::symmetric_eigen::symmetric_eigen;

/// The most points: the eigenvectors of a dense matrix are computed.
const MOST_POINTS: usize = 4096;

/// How spectral clustering runs.
#[derive(Clone, Debug, PartialEq)]
pub struct SpectralConfig {
    /// How many clusters.
    pub clusters: usize,
    /// Nearest neighbours of a point, itself included (scikit-learn: 10).
    pub neighbours: usize,
    /// Seed of KMeans.
    pub seed: u64,
}

impl Default for SpectralConfig {
    fn default() -> SpectralConfig {
        SpectralConfig { clusters: 8, neighbours: 10, seed: 0 }
    }
}

/// The cluster of each point.
///
/// # Errors
/// On fewer points than clusters or neighbours, on settings of 0 and 1 that make no graph, and on more points than a dense
/// matrix should have.
pub fn spectral(points: Points<'_>, config: &SpectralConfig) -> Result<Vec<i64>, ClusteringError> {
    let &SpectralConfig { clusters, neighbours, seed } = config;
    let n = points.len();
    for (name, found, least, wanted) in [
        ("clusters", clusters, 1, "1 or more"),
        ("neighbours", neighbours, 2, "2 or more, as a point is one of its own"),
    ] {
        if found < least {
            return Err(ClusteringError::BadSetting { name, found: found.to_string(), wanted });
        }
    }
    if n < clusters.max(neighbours) {
        return Err(ClusteringError::TooFewPoints { found: n, wanted: clusters.max(neighbours) });
    }
    if n > MOST_POINTS {
        return Err(ClusteringError::TooManyPoints { found: n, limit: MOST_POINTS });
    }
    let coordinates = embedding(points, clusters, neighbours);
    let config = KMeansConfig { clusters, seed, ..KMeansConfig::default() };
    Ok(kmeans(Points::new(&coordinates, clusters)?, &config)?.labels)
}

/// The coordinates that are clustered, `[n, clusters]`.
fn embedding(points: Points<'_>, clusters: usize, neighbours: usize) -> Vec<f32> {
    let n = points.len();
    let nearest: Vec<Vec<usize>> = (0..n).into_par_iter().map(|at| nearest(points, at, neighbours)).collect();
    let mut weights = vec![0.0; n * n];
    for (at, others) in nearest.iter().enumerate() {
        for &other in others.iter().filter(|other| **other != at) {
            weights[at * n + other] += 0.5;
            weights[other * n + at] += 0.5;
        }
    }
    let roots: Vec<f64> = weights.chunks_exact(n).map(|row| row.iter().sum::<f64>().sqrt()).collect();
    for (at, row) in weights.chunks_exact_mut(n).enumerate() {
        row.iter_mut().zip(&roots).for_each(|(weight, root)| *weight /= root * roots[at]);
    }
    let (_, vectors) = symmetric_eigen(weights, n);
    // The largest come last.
    let coordinate = |at: usize, which: usize| (vectors[at * n + n - 1 - which] / roots[at]) as f32;
    (0..n).flat_map(|at| (0..clusters).map(move |which| (at, which))).map(|(at, which)| coordinate(at, which)).collect()
}

fn nearest(points: Points<'_>, at: usize, count: usize) -> Vec<usize> {
    let row = points.row(at);
    // A point is its own nearest neighbour, also where others lie on the same spot.
    let distance = |(other, theirs): (usize, &[f32])| match other == at {
        true => (-1.0, other),
        false => (exact_square(row, theirs), other),
    };
    let mut all: Vec<(f64, usize)> = points.rows().enumerate().map(distance).collect();
    let by_distance = |one: &(f64, usize), other: &(f64, usize)| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1));
    if count < all.len() {
        all.select_nth_unstable_by(count - 1, by_distance);
    }
    all[..count].iter().map(|one| one.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_told_apart() {
        let ring = |radius: f32| {
            (0..40).flat_map(move |at| {
                let angle = at as f32 / 40.0 * std::f32::consts::TAU;
                [radius * angle.cos(), radius * angle.sin()]
            })
        };
        let values: Vec<f32> = ring(1.0).chain(ring(4.0)).collect();
        let points = Points::new(&values, 2).unwrap();
        let found = spectral(points, &SpectralConfig { clusters: 2, neighbours: 5, seed: 0 }).unwrap();
        assert!(found[..40].iter().all(|label| *label == found[0]), "{found:?}");
        assert!(found[40..].iter().all(|label| *label == found[40] && *label != found[0]), "{found:?}");
    }

    #[test]
    fn what_makes_no_graph_is_refused() {
        let points = Points::new(&[0.0, 1.0, 2.0], 1).unwrap();
        for (clusters, neighbours) in [(0, 2), (2, 1), (4, 2), (2, 4)] {
            assert!(spectral(points, &SpectralConfig { clusters, neighbours, seed: 0 }).is_err());
        }
    }
}
