//! Out of local optima: a centre that is hardly missed moves to where one is wanted, and Lloyd's steps follow.
//!
//! Lloyd's descent cannot carry a centre from one crowded place to another. A swap can (Lattanzi and Sohler 2019): draw
//! places for a new centre as k-means++ does; for each of them and each centre there is, what the potential would be
//! with the one in place of the other is known from the nearest and second-nearest centre of every point, in one pass
//! for all pairs. Take the best pair, descend again, and keep the result if it is better. A few swaps of the best
//! restart find what many more restarts would not. Among many points the search looks at a sample, and what it finds is
//! tried on all. A departure from scikit-learn, with an off-switch.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::lloyd::{BLOCK, Descent, TwoNearest, descend};
use super::{Stopped, chunk_rows, seeding};
use crate::panels::{PANEL, Panels};
use crate::points::Points;

/// Swaps in a row that may fail before the search ends.
const PATIENCE: usize = 6;

/// Lloyd steps after which a swap must have become better than what it started from.
const TRIAL: usize = 5;

/// Points beyond which swaps are searched for on a sample of about so many: what a swap gains shows there as well.
const SAMPLE: usize = 16_384;

/// Tries up to `swaps` swaps. The inertia of what is returned is no more than that of what is given.
pub(super) fn improve(
    points: Points<'_>,
    best: Descent,
    swaps: usize,
    tolerance: f64,
    max_iterations: usize,
    random: &mut ChaCha8Rng,
) -> Descent {
    let clusters = best.centres.len() / points.width();
    let stride = points.len() / SAMPLE.max(64 * clusters);
    if stride < 2 || swaps == 0 {
        return search(points, best, swaps, tolerance, max_iterations, random);
    }
    let rows: Vec<f32> = points.rows().step_by(stride).flatten().copied().collect();
    let Ok(sample) = Points::new(&rows, points.width()) else { return best };
    let start = descend(sample, best.centres.clone(), tolerance, max_iterations);
    let before = start.inertia;
    let found = search(sample, start, swaps, tolerance, max_iterations, random);
    if found.inertia >= before {
        return best;
    }
    let found = descend(points, found.centres, tolerance, max_iterations);
    if found.inertia < best.inertia { found } else { best }
}

fn search(
    points: Points<'_>,
    mut best: Descent,
    swaps: usize,
    tolerance: f64,
    max_iterations: usize,
    random: &mut ChaCha8Rng,
) -> Descent {
    let width = points.width();
    let mut nearest = two_nearest(points, &best.centres);
    // Pairs that failed: the cluster of the place, and the centre that moved there.
    let mut failed = BTreeSet::new();
    for _ in 0..swaps {
        let places = seeding::places(&nearest, PANEL, random);
        let swap = best_swap(points, &nearest, &places, best.centres.len() / width, &failed);
        let Some((place, centre)) = swap else { break };
        let mut centres = best.centres.clone();
        centres[centre * width..][..width].copy_from_slice(points.row(place));
        let mut found = descend(points, centres, tolerance, max_iterations.min(TRIAL));
        if found.inertia < best.inertia {
            if found.stopped == Stopped::IterationLimit && max_iterations > TRIAL {
                found = descend(points, found.centres, tolerance, max_iterations - TRIAL);
                found.iterations += TRIAL;
            }
            best = found;
            nearest = two_nearest(points, &best.centres);
            failed.clear();
        } else {
            failed.insert((nearest[place].label as usize, centre));
            if failed.len() == PATIENCE {
                break;
            }
        }
    }
    best
}

/// What a point has of its centres.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nearest {
    /// The squared distance to the nearest centre.
    pub(super) first: f32,
    /// The squared distance to the second-nearest.
    second: f32,
    /// Which is the nearest.
    label: u32,
}

fn two_nearest(points: Points<'_>, centres: &[f32]) -> Vec<Nearest> {
    let (width, rows) = (points.width(), chunk_rows(points.len()));
    let panels = Panels::new(centres, width);
    let mut nearest = vec![Nearest { first: f32::INFINITY, second: f32::INFINITY, label: 0 }; points.len()];
    points.values().par_chunks(rows * width).zip(nearest.par_chunks_mut(rows)).for_each(|(values, nearest)| {
        let mut found = TwoNearest::new();
        for (values, nearest) in values.chunks(BLOCK * width).zip(nearest.chunks_mut(BLOCK)) {
            panels.tell_distances(values, &mut found);
            for (row, nearest) in nearest.iter_mut().enumerate() {
                *nearest = Nearest { first: found.first[row], second: found.second[row], label: found.label[row] };
            }
        }
    });
    nearest
}

/// The pair of a place and a centre for which the potential would be the lowest with the one instead of the other; none
/// if all pairs have failed.
fn best_swap(
    points: Points<'_>,
    nearest: &[Nearest],
    places: &[usize],
    clusters: usize,
    failed: &BTreeSet<(usize, usize)>,
) -> Option<(usize, usize)> {
    let (width, rows) = (points.width(), chunk_rows(points.len()));
    let chosen: Vec<f32> = places.iter().flat_map(|&place| points.row(place)).copied().collect();
    let panels = Panels::new(&chosen, width);
    // For each centre and place what the centre's points would lose without it; at the end, the potential with all
    // centres.
    let chunks: Vec<Vec<[f64; PANEL]>> = points
        .values()
        .par_chunks(rows * width)
        .zip(nearest.par_chunks(rows))
        .map(|(values, nearest)| {
            let mut sums = vec![[0.0; PANEL]; clusters + 1];
            for (values, nearest) in values.chunks(BLOCK * width).zip(nearest.chunks(BLOCK)) {
                panels.distances(values, |row, _, lanes| {
                    let Nearest { first, second, label } = nearest[row];
                    for at in 0..PANEL {
                        let with = if lanes[at] < first { lanes[at] } else { first };
                        let without = if lanes[at] < second { lanes[at] } else { second };
                        sums[label as usize][at] += f64::from(without) - f64::from(with);
                        sums[clusters][at] += f64::from(with);
                    }
                });
            }
            sums
        })
        .collect();
    let mut sums = vec![[0.0; PANEL]; clusters + 1];
    for chunk in chunks {
        for (sums, chunk) in sums.iter_mut().zip(chunk) {
            sums.iter_mut().zip(chunk).for_each(|(sum, chunk)| *sum += chunk);
        }
    }
    let mut best = None;
    let mut lowest = f64::INFINITY;
    for (at, &place) in places.iter().enumerate() {
        for (centre, losses) in sums[..clusters].iter().enumerate() {
            let potential = sums[clusters][at] + losses[at];
            let from = nearest[place].label as usize;
            // A centre that moves within its own cluster would only be brought back by the descent.
            if potential < lowest && from != centre && !failed.contains(&(from, centre)) {
                (lowest, best) = (potential, Some((place, centre)));
            }
        }
    }
    best
}
