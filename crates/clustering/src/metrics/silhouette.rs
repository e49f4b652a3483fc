//! The mean silhouette (Rousseeuw 1987): with a the mean distance of a point to the others of its cluster and b the least
//! mean distance to another cluster, (b − a) / max(a, b); 0 for a cluster of one.
//!
//! Points are sorted by cluster and packed cluster by cluster, in double precision. Blocks of rows run in parallel and pass
//! over all clusters, so that memory is the points twice and a row of sums, never an n × n matrix.

use rayon::prelude::*;

use super::contingency::numbered;
use crate::error::ClusteringError;
use crate::panels::{PANEL, Panels};
use crate::points::Points;

/// Rows of one piece of work.
const BLOCK: usize = 32;

/// The mean silhouette of labelled points, by Euclidean distance, in `[−1, 1]`. Noise is one more cluster.
///
/// # Shapes
/// `points` is `[n, d]`, `labels` `[n]`.
///
/// # Errors
/// Unless there is a label for each point, and at least two different ones, and fewer different ones than points.
pub fn silhouette(points: Points<'_>, labels: &[i64]) -> Result<f64, ClusteringError> {
    if labels.len() != points.len() {
        return Err(ClusteringError::LabelsForPoints { labels: labels.len(), points: points.len() });
    }
    let (numbers, clusters) = numbered(labels);
    if clusters < 2 || clusters >= points.len() {
        return Err(ClusteringError::NoSilhouette { labels: clusters, points: points.len() });
    }
    let width = points.width();
    let mut members = vec![Vec::new(); clusters];
    for (row, &cluster) in points.rows().zip(&numbers) {
        members[cluster as usize].extend(row.iter().map(|&value| f64::from(value)));
    }
    let packed: Vec<(usize, Panels<f64>)> =
        members.par_iter().map(|rows| (rows.len() / width, Panels::new(rows, width))).collect();
    let blocks: Vec<(usize, &[f64])> = members
        .iter()
        .enumerate()
        .flat_map(|(cluster, rows)| rows.chunks(BLOCK * width).map(move |rows| (cluster, rows)))
        .collect();
    let sums: Vec<f64> = blocks.into_par_iter().map(|(own, rows)| block_sum(rows, width, own, &packed)).collect();
    Ok(sums.into_iter().sum::<f64>() / points.len() as f64)
}

/// The sum of the silhouettes of a few rows of one cluster.
fn block_sum(rows: &[f64], width: usize, own: usize, packed: &[(usize, Panels<f64>)]) -> f64 {
    let count = rows.len() / width;
    let (mut inside, mut outside) = ([0.0; BLOCK], [f64::INFINITY; BLOCK]);
    for (cluster, (size, panels)) in packed.iter().enumerate() {
        let mut sums = [[0.0; PANEL]; BLOCK];
        let last = panels.count() - 1;
        let in_last = size - last * PANEL;
        panels.distances(rows, |row, panel, lanes| {
            // Each place in a panel has a sum of its own, so that roots and sums are taken by whole vectors.
            if panel < last {
                sums[row].iter_mut().zip(lanes).for_each(|(sum, square)| *sum += square.sqrt());
            } else {
                sums[row].iter_mut().zip(&lanes[..in_last]).for_each(|(sum, square)| *sum += square.sqrt());
            }
        });
        for (row, sums) in sums.iter().enumerate().take(count) {
            let sum: f64 = sums.iter().sum();
            if cluster == own {
                inside[row] = sum / (*size as f64 - 1.0);
            } else {
                outside[row] = outside[row].min(sum / *size as f64);
            }
        }
    }
    if packed[own].0 == 1 {
        return 0.0;
    }
    let values = inside.iter().zip(&outside).take(count).map(|(&inside, &outside)| {
        let largest = f64::max(inside, outside);
        if largest > 0.0 { (outside - inside) / largest } else { 0.0 }
    });
    values.sum()
}
