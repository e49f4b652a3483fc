//! DP-means (Kulis and Jordan 2012): KMeans that finds the number of clusters, by a price λ on each of them.
//!
//! Minimises Σᵢ ‖xᵢ − c(i)‖² + λ k. It starts with one cluster at the mean; a point farther than λ (squared) from every
//! centre becomes a centre. Points are taken in their order, so the result is a function of the input alone. Distances to the
//! centres of the pass before are computed in parallel; what remains in order are the few points that open clusters.
//!
//! A departure from the paper: a point within λ of an old centre is not held against the centres that its own pass opened
//! before it. The next pass does that, the objective falls either way, and passes parallelise.

use crate::error::ClusteringError;
use crate::kmeans::assigned;
use crate::panels::Panels;
use crate::points::{Points, exact_square};

/// How DP-means runs.
#[derive(Clone, Debug, PartialEq)]
pub struct DpMeansConfig {
    /// λ, what a cluster costs, in units of squared distance; [`lambda_for_clusters`] finds one.
    pub lambda: f64,
    /// The most passes over the points.
    pub max_iterations: usize,
}

/// What DP-means found.
#[derive(Clone, Debug, PartialEq)]
pub struct DpMeans {
    /// `[k, d]`, row by row, in the order in which they were opened.
    pub centres: Vec<f32>,
    /// The cluster of each point.
    pub labels: Vec<i64>,
    /// Σ of squared distances between points and their centres.
    pub inertia: f64,
    /// Inertia + λ k.
    pub objective: f64,
    /// Passes over the points.
    pub iterations: usize,
    /// Whether the last pass changed nothing.
    pub converged: bool,
}

/// Clusters points; the price λ decides into how many.
///
/// # Shapes
/// `points` is `[n, d]` with n ≥ 1; the centres are `[k, d]`, the labels `[n]`.
///
/// # Errors
/// On no points and settings out of range.
pub fn dp_means(points: Points<'_>, config: &DpMeansConfig) -> Result<DpMeans, ClusteringError> {
    if !(config.lambda > 0.0 && config.lambda.is_finite()) {
        let (found, wanted) =
            (config.lambda.to_string(), "a positive squared distance; `lambda_for_clusters` finds one");
        return Err(ClusteringError::BadSetting { name: "lambda", found, wanted });
    }
    if config.max_iterations == 0 {
        let (found, wanted) = ("0".to_owned(), "1 or more, such as 100");
        return Err(ClusteringError::BadSetting { name: "max_iterations", found, wanted });
    }
    let mut labels = vec![0u32; points.len()];
    let mut centres = means(points, &mut labels);
    if centres.is_empty() {
        return Err(ClusteringError::TooFewPoints { found: 0, wanted: 1 });
    }
    let (mut iterations, mut converged) = (0, false);
    while iterations < config.max_iterations && !converged {
        iterations += 1;
        let mut next = pass(points, &centres, config.lambda);
        centres = means(points, &mut next);
        converged = next == labels;
        labels = next;
    }
    let width = points.width();
    let distances = points.rows().zip(&labels).map(|(row, &label)| {
        let centre = &centres[label as usize * width..][..width];
        exact_square(row, centre)
    });
    let inertia: f64 = distances.sum();
    let objective = inertia + config.lambda * (centres.len() / width) as f64;
    let labels = labels.into_iter().map(i64::from).collect();
    Ok(DpMeans { centres, labels, inertia, objective, iterations, converged })
}

/// A price λ at which DP-means finds about `clusters` clusters, by farthest-first traversal: from the mean, go `clusters`
/// times to the point that is farthest from all places visited; λ is the squared length of the last way.
///
/// # Errors
/// On fewer points than clusters, no clusters, and points that are all alike, for which no price is right.
pub fn lambda_for_clusters(points: Points<'_>, clusters: usize) -> Result<f64, ClusteringError> {
    if clusters == 0 {
        let (found, wanted) = ("0".to_owned(), "1 or more");
        return Err(ClusteringError::BadSetting { name: "clusters", found, wanted });
    }
    if points.len() < clusters {
        return Err(ClusteringError::TooFewPoints { found: points.len(), wanted: clusters });
    }
    let width = points.width();
    let mut place = means(points, &mut vec![0u32; points.len()]);
    let mut closest = vec![f32::INFINITY; points.len()];
    let mut lambda = 0.0;
    for _ in 0..clusters {
        let (_, distances) = assigned(points, &Panels::new(&place, width));
        closest.iter_mut().zip(&distances).for_each(|(closest, &distance)| *closest = closest.min(distance));
        let farthest = (0..closest.len()).fold(0, |far, at| if closest[at] > closest[far] { at } else { far });
        lambda = f64::from(closest[farthest]);
        place = points.row(farthest).to_vec();
    }
    if lambda > 0.0 {
        return Ok(lambda);
    }
    let (found, wanted) = (clusters.to_string(), "fewer clusters: there are not so many different points");
    Err(ClusteringError::BadSetting { name: "clusters", found, wanted })
}

/// Labels after one pass; those from the number of centres on are clusters that the pass opened.
fn pass(points: Points<'_>, centres: &[f32], lambda: f64) -> Vec<u32> {
    let width = points.width();
    let (mut labels, distances) = assigned(points, &Panels::new(centres, width));
    let old = (centres.len() / width) as u32;
    let mut opened: Vec<&[f32]> = Vec::new();
    for (point, row) in points.rows().enumerate() {
        let mut least = f64::from(distances[point]);
        if least <= lambda {
            continue;
        }
        for (at, centre) in opened.iter().enumerate() {
            let distance = exact_square(row, centre);
            if distance < least {
                (least, labels[point]) = (distance, old + at as u32);
            }
        }
        if least > lambda {
            labels[point] = old + opened.len() as u32;
            opened.push(row);
        }
    }
    labels
}

/// The means of the clusters, `[k, d]`. Clusters without points are dropped, and the labels close the gaps.
fn means(points: Points<'_>, labels: &mut [u32]) -> Vec<f32> {
    let width = points.width();
    let most = labels.iter().copied().max().map_or(0, |most| most as usize + 1);
    let (mut sums, mut counts) = (vec![0.0f64; most * width], vec![0u64; most]);
    for (row, &label) in points.rows().zip(&*labels) {
        let sum = &mut sums[label as usize * width..][..width];
        sum.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
        counts[label as usize] += 1;
    }
    let (mut numbers, mut centres) = (vec![0; most], Vec::new());
    for (cluster, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        numbers[cluster] = (centres.len() / width) as u32;
        centres.extend(sums[cluster * width..][..width].iter().map(|sum| (sum / count as f64) as f32));
    }
    labels.iter_mut().for_each(|label| *label = numbers[*label as usize]);
    centres
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    const THREE: [f32; 12] = [0.0, 0.0, 0.1, 0.0, 9.0, 9.0, 9.0, 9.2, -8.0, 7.0, -8.0, 7.1];

    #[test]
    fn the_price_decides_the_number_of_clusters() {
        let points = Points::new(&THREE, 2).unwrap();
        for (lambda, clusters) in [(1e4, 1), (10.0, 3), (1e-4, 6)] {
            let found = dp_means(points, &DpMeansConfig { lambda, max_iterations: 100 }).unwrap();
            assert_eq!(found.centres.len(), 2 * clusters, "{lambda}");
            assert!(found.converged && (found.objective - found.inertia - lambda * clusters as f64).abs() < 1e-9);
        }
    }

    #[test]
    fn the_price_for_three_finds_three() {
        let points = Points::new(&THREE, 2).unwrap();
        let lambda = lambda_for_clusters(points, 3).unwrap();
        let found = dp_means(points, &DpMeansConfig { lambda, max_iterations: 100 }).unwrap();
        assert_eq!(found.labels, [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn what_has_no_price_is_refused() {
        let points = Points::new(&[1.0; 4], 1).unwrap();
        assert!(lambda_for_clusters(points, 2).is_err());
        assert!(lambda_for_clusters(points, 5).is_err());
        assert!(lambda_for_clusters(points, 0).is_err());
        for lambda in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(dp_means(points, &DpMeansConfig { lambda, max_iterations: 1 }).is_err());
        }
        assert!(dp_means(points, &DpMeansConfig { lambda: 1.0, max_iterations: 0 }).is_err());
        let none = Points::new(&[], 1).unwrap();
        assert!(dp_means(none, &DpMeansConfig { lambda: 1.0, max_iterations: 1 }).is_err());
    }
}
