//! Lloyd's descent: assign each point to its nearest centre, move each centre to the mean of its points, until nothing moves.

use rayon::prelude::*;

use super::{Stopped, chunk_rows};
use crate::panels::{PANEL, Panels};
use crate::points::Points;

/// Rows that are held against the centres at a time; they stay in the first cache.
const BLOCK: usize = 64;

/// Rows whose sum is taken in single precision before it is added to one in double precision.
const SUMMED: usize = 1024;

/// Where a descent ended.
pub(super) struct Descent {
    pub(super) centres: Vec<f32>,
    pub(super) labels: Vec<u32>,
    pub(super) inertia: f64,
    pub(super) iterations: usize,
    pub(super) stopped: Stopped,
}

/// What a chunk of points knows of its clusters. As long as no label in it changes, neither do its sums.
struct Chunk {
    /// `[k, d]`.
    sums: Vec<f64>,
    counts: Vec<u64>,
}

/// Descends from `[k, d]` centres. `tolerance` bounds the sum of squared shifts at which the centres have settled.
pub(super) fn descend(points: Points<'_>, mut centres: Vec<f32>, tolerance: f64, max_iterations: usize) -> Descent {
    let (width, rows) = (points.width(), chunk_rows(points.len()));
    let clusters = centres.len() / width;
    let mut labels = vec![u32::MAX; points.len()];
    let mut distances = vec![0.0f32; points.len()];
    let mut chunks: Vec<Chunk> = (0..points.len().div_ceil(rows))
        .map(|_| Chunk { sums: vec![0.0; centres.len()], counts: vec![0; clusters] })
        .collect();
    let (mut iterations, mut stopped) = (0, Stopped::IterationLimit);
    while iterations < max_iterations {
        iterations += 1;
        let panels = Panels::new(&centres, width);
        let values = points.values().par_chunks(rows * width);
        let changed: Vec<bool> = (values, labels.par_chunks_mut(rows), distances.par_chunks_mut(rows), &mut chunks)
            .into_par_iter()
            .map(|(values, labels, distances, chunk)| {
                let changed = assign(values, &panels, labels, distances);
                if changed {
                    chunk.sum(values, width, labels);
                }
                changed
            })
            .collect();
        let shift = move_centres(points, &mut centres, &chunks, &labels, &distances);
        if !changed.contains(&true) {
            stopped = Stopped::LabelsSettled;
            break;
        }
        if shift <= tolerance {
            stopped = Stopped::CentresSettled;
            break;
        }
    }
    if stopped != Stopped::LabelsSettled {
        (labels, distances) = assigned(points, &Panels::new(&centres, width));
    }
    let inertia = distances.iter().map(|&distance| f64::from(distance)).sum();
    Descent { centres, labels, inertia, iterations, stopped }
}

/// The nearest centre of each point and its squared distance.
pub(crate) fn assigned(points: Points<'_>, panels: &Panels<f32>) -> (Vec<u32>, Vec<f32>) {
    let (width, rows) = (points.width(), chunk_rows(points.len()));
    let mut labels = vec![u32::MAX; points.len()];
    let mut distances = vec![0.0; points.len()];
    (points.values().par_chunks(rows * width), labels.par_chunks_mut(rows), distances.par_chunks_mut(rows))
        .into_par_iter()
        .for_each(|(values, labels, distances)| {
            assign(values, panels, labels, distances);
        });
    (labels, distances)
}

/// Assigns a chunk; says whether any label changed.
fn assign(values: &[f32], panels: &Panels<f32>, labels: &mut [u32], distances: &mut [f32]) -> bool {
    let width = values.len() / labels.len().max(1);
    let mut changed = false;
    let mut nearest = [0u32; BLOCK];
    let blocks = values.chunks(BLOCK * width).zip(labels.chunks_mut(BLOCK)).zip(distances.chunks_mut(BLOCK));
    for ((values, labels), distances) in blocks {
        panels.distances(values, |row, panel, lanes| {
            let (lane, least) = least(lanes);
            if panel == 0 || least < distances[row] {
                distances[row] = least;
                nearest[row] = (panel * PANEL + lane) as u32;
            }
        });
        let nearest = &nearest[..labels.len()];
        if labels != nearest {
            changed = true;
            labels.copy_from_slice(nearest);
        }
    }
    changed
}

/// The least of a panel's distances, and the first place where it stands. Written as halvings, which become four vector
/// instructions.
#[inline(always)]
fn least(lanes: &[f32; PANEL]) -> (usize, f32) {
    let min = |a: f32, b: f32| if b < a { b } else { a };
    let eight: [f32; 8] = std::array::from_fn(|at| min(lanes[at], lanes[at + 8]));
    let four: [f32; 4] = std::array::from_fn(|at| min(eight[at], eight[at + 4]));
    let least = min(min(four[0], four[2]), min(four[1], four[3]));
    let mut places = 0u32;
    for (at, &lane) in lanes.iter().enumerate() {
        places |= u32::from(lane == least) << at;
    }
    (places.trailing_zeros() as usize, least)
}

impl Chunk {
    /// Sums the points of each cluster anew.
    fn sum(&mut self, values: &[f32], width: usize, labels: &[u32]) {
        self.sums.fill(0.0);
        self.counts.fill(0);
        let mut single = vec![0.0f32; self.sums.len()];
        for (values, labels) in values.chunks(SUMMED * width).zip(labels.chunks(SUMMED)) {
            pulp::Arch::new().dispatch(|| {
                for (row, &label) in values.chunks_exact(width).zip(labels) {
                    let sum = &mut single[label as usize * width..][..width];
                    sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
                    self.counts[label as usize] += 1;
                }
                for (sum, single) in self.sums.iter_mut().zip(&mut single) {
                    *sum += f64::from(*single);
                    *single = 0.0;
                }
            });
        }
    }
}

/// Moves the centres to the means of their points; returns the sum of squared shifts.
fn move_centres(points: Points<'_>, centres: &mut [f32], chunks: &[Chunk], labels: &[u32], distances: &[f32]) -> f64 {
    let width = points.width();
    let (mut sums, mut counts) = (vec![0.0; centres.len()], vec![0u64; centres.len() / width]);
    for chunk in chunks {
        sums.iter_mut().zip(&chunk.sums).for_each(|(sum, chunk)| *sum += chunk);
        counts.iter_mut().zip(&chunk.counts).for_each(|(count, chunk)| *count += chunk);
    }
    fill_empty(points, &mut sums, &mut counts, labels, distances);
    let mut shift = 0.0;
    for ((centre, sums), &count) in centres.chunks_exact_mut(width).zip(sums.chunks_exact(width)).zip(&counts) {
        if count == 0 {
            continue;
        }
        for (centre, sum) in centre.iter_mut().zip(sums) {
            let mean = (sum / count as f64) as f32;
            shift += f64::from(mean - *centre).powi(2);
            *centre = mean;
        }
    }
    shift
}

/// Gives each empty cluster the point that is farthest from its centre, the first of equals, and takes it from its old
/// cluster.
fn fill_empty(points: Points<'_>, sums: &mut [f64], counts: &mut [u64], labels: &[u32], distances: &[f32]) {
    let width = points.width();
    let empty: Vec<usize> = (0..counts.len()).filter(|&cluster| counts[cluster] == 0).collect();
    if empty.is_empty() {
        return;
    }
    let mut farthest: Vec<usize> = (0..points.len()).collect();
    let order = |a: &usize, b: &usize| distances[*b].total_cmp(&distances[*a]).then(a.cmp(b));
    if empty.len() < farthest.len() {
        farthest.select_nth_unstable_by(empty.len(), order);
        farthest.truncate(empty.len());
    }
    farthest.sort_unstable_by(order);
    for (cluster, point) in empty.into_iter().zip(farthest) {
        let old = labels[point] as usize;
        for (at, &value) in points.row(point).iter().enumerate() {
            sums[old * width + at] -= f64::from(value);
            sums[cluster * width + at] = f64::from(value);
        }
        counts[old] -= 1;
        counts[cluster] = 1;
    }
}
