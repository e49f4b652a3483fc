//! Greedy k-means++ (Arthur and Vassilvitskii 2007, with the trials of their implementation): each next centre is drawn with
//! probability proportional to the squared distance to the centres before it; of 2 + ⌊ln k⌋ draws the one that lowers the
//! potential Σ min ‖x − c‖² most is kept.

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::chunk_rows;
use crate::draw::{below, unit};
use crate::panels::{PANEL, Panels};
use crate::points::Points;

/// Rows that are held against the candidates at a time; they stay in the first cache.
const BLOCK: usize = 64;

/// `[clusters, d]` first centres, each a point. There must be a point.
pub(super) fn plus_plus(points: Points<'_>, clusters: usize, random: &mut ChaCha8Rng) -> Vec<f32> {
    let trials = (2 + (clusters as f64).ln() as usize).min(PANEL);
    let mut centres = Vec::with_capacity(clusters * points.width());
    let first = below(random, points.len() as u64) as usize;
    centres.extend_from_slice(points.row(first));
    let mut closest = vec![f32::INFINITY; points.len()];
    let mut tried = vec![0.0; points.len() * trials];
    // Of one candidate there is only one to keep.
    let mut sums = potentials(points, &[first], &mut closest, &mut tried[..points.len()]);
    keep(&mut closest, &tried[..points.len()], 1, 0);
    let mut chunks: Vec<f64> = sums.drain(..).map(|sums| sums[0]).collect();
    while centres.len() < clusters * points.width() {
        let total: f64 = chunks.iter().sum();
        let candidates: Vec<usize> =
            (0..trials).map(|_| drawn(&closest, &chunks, unit(random) * total, random)).collect();
        let sums = potentials(points, &candidates, &mut closest, &mut tried);
        let mut totals = [0.0; PANEL];
        for chunk in &sums {
            totals.iter_mut().zip(chunk).for_each(|(total, sum)| *total += sum);
        }
        let best = (0..trials).fold(0, |best, trial| if totals[trial] < totals[best] { trial } else { best });
        keep(&mut closest, &tried, trials, best);
        chunks = sums.into_iter().map(|sums| sums[best]).collect();
        centres.extend_from_slice(points.row(candidates[best]));
    }
    centres
}

/// For each chunk of points what would be left of the potential with each of the candidates. `tried` receives
/// `[n, candidates]` distances to the closest centre, the candidate included.
fn potentials(points: Points<'_>, candidates: &[usize], closest: &mut [f32], tried: &mut [f32]) -> Vec<[f64; PANEL]> {
    let (width, trials, rows) = (points.width(), candidates.len(), chunk_rows(points.len()));
    let chosen: Vec<f32> = candidates.iter().flat_map(|&point| points.row(point)).copied().collect();
    let panels = Panels::new(&chosen, width);
    let values = points.values().par_chunks(rows * width);
    (values, closest.par_chunks(rows), tried.par_chunks_mut(rows * trials))
        .into_par_iter()
        .map(|(values, closest, tried)| {
            let mut sums = [0.0; PANEL];
            let blocks = values.chunks(BLOCK * width).zip(closest.chunks(BLOCK)).zip(tried.chunks_mut(BLOCK * trials));
            for ((values, closest), tried) in blocks {
                panels.distances(values, |row, _, lanes| {
                    let least = lanes.map(|lane| if lane < closest[row] { lane } else { closest[row] });
                    sums.iter_mut().zip(least).for_each(|(sum, least)| *sum += f64::from(least));
                    tried[row * trials..][..trials].copy_from_slice(&least[..trials]);
                });
            }
            sums
        })
        .collect()
}

/// Takes over the distances of the candidate that won.
fn keep(closest: &mut [f32], tried: &[f32], trials: usize, best: usize) {
    for (closest, tried) in closest.iter_mut().zip(tried.chunks_exact(trials)) {
        *closest = tried[best];
    }
}

/// The point at which the running sum of the potential passes `mark`; any point if all potential is gone.
fn drawn(closest: &[f32], chunks: &[f64], mut mark: f64, random: &mut ChaCha8Rng) -> usize {
    let rows = chunk_rows(closest.len());
    for (chunk, &sum) in chunks.iter().enumerate() {
        if mark < sum {
            let start = chunk * rows;
            let part = &closest[start..closest.len().min(start + rows)];
            for (at, &distance) in part.iter().enumerate() {
                mark -= f64::from(distance);
                if mark < 0.0 {
                    return start + at;
                }
            }
            // Rounding can leave a rest; it belongs to the last point that has any potential.
            if let Some(last) = part.iter().rposition(|&distance| distance > 0.0) {
                return start + last;
            }
        }
        mark -= sum;
    }
    match closest.iter().rposition(|&distance| distance > 0.0) {
        Some(last) => last,
        None => below(random, closest.len() as u64) as usize,
    }
}
