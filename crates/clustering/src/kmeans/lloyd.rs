//! Lloyd's descent: assign each point to its nearest centre, move each centre to the mean of its points, until nothing
//! moves.
//!
//! Most points need not be measured again (Hamerly 2010). A point keeps an upper bound u on the distance to its centre
//! and a lower bound l on that to any other. When centres move, u grows by the way of its own and l shrinks by the
//! longest way of the others; as long as u < l, or u is less than half the way from its centre to the next one, the
//! label stands. Bounds include the rounding of single precision, so that labels are those of the plain descent; a test
//! holds them against it. The sums of clusters change with the labels that change.

use rayon::prelude::*;

use super::{Stopped, chunk_rows};
use crate::panels::{PANEL, Panels, Visit, margin};
use crate::points::Points;

/// Rows that are held against the centres at a time; they stay in the first cache.
pub(super) const BLOCK: usize = 64;

/// The label of a point that has none yet.
const NONE: u32 = u32::MAX;

/// Where a descent ended.
pub(super) struct Descent {
    pub(super) centres: Vec<f32>,
    pub(super) labels: Vec<u32>,
    pub(super) inertia: f64,
    pub(super) iterations: usize,
    pub(super) stopped: Stopped,
}

/// Descends from `[k, d]` centres. `tolerance` bounds the sum of squared shifts at which the centres have settled.
pub(super) fn descend(points: Points<'_>, centres: Vec<f32>, tolerance: f64, max_iterations: usize) -> Descent {
    let (width, rows) = (points.width(), chunk_rows(points.len()));
    let clusters = centres.len() / width;
    let mut centres = Centres { values: centres, shifts: vec![0.0; clusters], half: Vec::new() };
    let mut labels = vec![NONE; points.len()];
    // With these bounds every point is measured.
    let mut bounds = vec![Bounds { upper: f32::INFINITY, lower: 0.0 }; points.len()];
    let mut chunks: Vec<Chunk> = (0..points.len().div_ceil(rows))
        .map(|_| Chunk { sums: vec![0.0; clusters * width], counts: vec![0; clusters] })
        .collect();
    let (mut iterations, mut stopped) = (0, Stopped::IterationLimit);
    while iterations < max_iterations {
        iterations += 1;
        let panels = Panels::new(&centres.values, width);
        centres.half = half_ways(&centres.values, &panels, width);
        let values = points.values().par_chunks(rows * width);
        let changed: Vec<bool> = (values, labels.par_chunks_mut(rows), bounds.par_chunks_mut(rows), &mut chunks)
            .into_par_iter()
            .map(|(values, labels, bounds, chunk)| chunk.assign(values, &centres, &panels, labels, bounds))
            .collect();
        let shift = centres.move_to_means(points, &chunks, &labels, &panels);
        if !changed.contains(&true) {
            stopped = Stopped::LabelsSettled;
            break;
        }
        if shift <= tolerance {
            stopped = Stopped::CentresSettled;
            break;
        }
    }
    let (labels, distances) = assigned(points, &Panels::new(&centres.values, width));
    let inertia = distances.iter().map(|&distance| f64::from(distance)).sum();
    Descent { centres: centres.values, labels, inertia, iterations, stopped }
}

/// The nearest centre of each point, the first of equals, and its squared distance.
pub(crate) fn assigned(points: Points<'_>, panels: &Panels<f32>) -> (Vec<u32>, Vec<f32>) {
    let (width, rows) = (points.width(), chunk_rows(points.len()));
    let mut labels = vec![NONE; points.len()];
    let mut distances = vec![0.0; points.len()];
    (points.values().par_chunks(rows * width), labels.par_chunks_mut(rows), distances.par_chunks_mut(rows))
        .into_par_iter()
        .for_each(|(values, labels, distances)| {
            let mut nearest = TwoNearest::new();
            let blocks = values.chunks(BLOCK * width).zip(labels.chunks_mut(BLOCK)).zip(distances.chunks_mut(BLOCK));
            for ((values, labels), distances) in blocks {
                panels.tell_distances(values, &mut nearest);
                labels.copy_from_slice(&nearest.label[..labels.len()]);
                distances.copy_from_slice(&nearest.first[..distances.len()]);
            }
        });
    (labels, distances)
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    upper: f32,
    lower: f32,
}

/// The nearest and second-nearest centre of the rows of a block.
pub(super) struct TwoNearest {
    pub(super) first: [f32; BLOCK],
    pub(super) second: [f32; BLOCK],
    pub(super) label: [u32; BLOCK],
}

impl TwoNearest {
    pub(super) fn new() -> TwoNearest {
        TwoNearest { first: [0.0; BLOCK], second: [0.0; BLOCK], label: [0; BLOCK] }
    }
}

impl Visit<f32> for &mut TwoNearest {
    /// Halves the panel four times, keeping the lesser of each pair and the least of what came second; all of it
    /// becomes vector instructions.
    #[inline(always)]
    fn visit(&mut self, row: usize, panel: usize, lanes: &[f32; PANEL]) {
        let min = |a: f32, b: f32| if b < a { b } else { a };
        let max = |a: f32, b: f32| if b < a { a } else { b };
        let (mut low, mut next) = (*lanes, [f32::INFINITY; PANEL]);
        let mut half = PANEL / 2;
        while half > 0 {
            for at in 0..half {
                next[at] = min(min(next[at], next[at + half]), max(low[at], low[at + half]));
                low[at] = min(low[at], low[at + half]);
            }
            half /= 2;
        }
        let mut places = 0u32;
        for (at, &lane) in lanes.iter().enumerate() {
            places |= u32::from(lane == low[0]) << at;
        }
        let label = (panel * PANEL) as u32 + places.trailing_zeros();
        if panel == 0 {
            (self.first[row], self.second[row], self.label[row]) = (low[0], next[0], label);
        } else if low[0] < self.first[row] {
            self.second[row] = min(self.first[row], next[0]);
            (self.first[row], self.label[row]) = (low[0], label);
        } else {
            self.second[row] = min(self.second[row], low[0]);
        }
    }
}

/// What a chunk of points knows of its clusters.
struct Chunk {
    /// `[k, d]`.
    sums: Vec<f64>,
    counts: Vec<u64>,
}

impl Chunk {
    /// Assigns the points whose label may have changed; says whether any has.
    fn assign(
        &mut self,
        values: &[f32],
        centres: &Centres,
        panels: &Panels<f32>,
        labels: &mut [u32],
        bounds: &mut [Bounds],
    ) -> bool {
        let width = values.len() / labels.len().max(1);
        let (farthest, others) = centres.longest_ways();
        // The bounds are rounded away from each other, by more than the distances and the sums can be off.
        let (more, less) = (1.0 + margin(width), 1.0 - margin(width));
        let mut changed = false;
        let mut nearest = TwoNearest::new();
        let mut open = [0; BLOCK];
        let mut gathered = Vec::with_capacity(BLOCK * width);
        let blocks = values.chunks(BLOCK * width).zip(labels.chunks_mut(BLOCK)).zip(bounds.chunks_mut(BLOCK));
        for ((values, labels), bounds) in blocks {
            let mut count = 0;
            for (row, (&label, bounds)) in labels.iter().zip(&mut *bounds).enumerate() {
                if label != NONE {
                    let way = if label as usize == farthest { others.1 } else { others.0 };
                    bounds.upper = (bounds.upper + centres.shifts[label as usize]) * more;
                    bounds.lower = (bounds.lower - way) * if bounds.lower > way { less } else { more };
                    if bounds.upper < bounds.lower || bounds.upper < centres.half[label as usize] {
                        continue;
                    }
                }
                open[count] = row;
                count += 1;
            }
            let rows = if count == labels.len() {
                values
            } else {
                gathered.clear();
                open[..count].iter().for_each(|&row| gathered.extend_from_slice(&values[row * width..][..width]));
                &gathered
            };
            panels.tell_distances(rows, &mut nearest);
            for (at, &row) in open[..count].iter().enumerate() {
                bounds[row] =
                    Bounds { upper: nearest.first[at].sqrt() * more, lower: nearest.second[at].sqrt() * less };
                if labels[row] != nearest.label[at] {
                    self.move_point(&values[row * width..][..width], labels[row], nearest.label[at]);
                    labels[row] = nearest.label[at];
                    changed = true;
                }
            }
        }
        changed
    }

    fn move_point(&mut self, row: &[f32], from: u32, to: u32) {
        let width = row.len();
        let sums = &mut self.sums[to as usize * width..][..width];
        sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
        self.counts[to as usize] += 1;
        if from != NONE {
            let sums = &mut self.sums[from as usize * width..][..width];
            sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum -= f64::from(value));
            self.counts[from as usize] -= 1;
        }
    }
}

struct Centres {
    /// `[k, d]`.
    values: Vec<f32>,
    /// How far each moved last.
    shifts: Vec<f32>,
    /// Half the way from each to the next, less what rounding may add.
    half: Vec<f32>,
}

impl Centres {
    /// Which centre moved farthest, and the longest ways: of all, and of all but that one.
    fn longest_ways(&self) -> (usize, (f32, f32)) {
        let mut longest = (0, (0.0, 0.0));
        for (centre, &shift) in self.shifts.iter().enumerate() {
            if shift > longest.1.0 {
                longest = (centre, (shift, longest.1.0));
            } else if shift > longest.1.1 {
                longest.1.1 = shift;
            }
        }
        longest
    }

    /// Moves the centres to the means of their points; returns the sum of squared shifts. `panels` are the centres.
    fn move_to_means(&mut self, points: Points<'_>, chunks: &[Chunk], labels: &[u32], panels: &Panels<f32>) -> f64 {
        let width = points.width();
        let (mut sums, mut counts) = (vec![0.0; self.values.len()], vec![0u64; self.shifts.len()]);
        for chunk in chunks {
            sums.iter_mut().zip(&chunk.sums).for_each(|(sum, chunk)| *sum += chunk);
            counts.iter_mut().zip(&chunk.counts).for_each(|(count, chunk)| *count += chunk);
        }
        if counts.contains(&0) {
            fill_empty(points, &mut sums, &mut counts, labels, &assigned(points, panels).1);
        }
        let mut total = 0.0;
        let centres = self.values.chunks_exact_mut(width).zip(sums.chunks_exact(width));
        for ((centre, sums), (&count, way)) in centres.zip(counts.iter().zip(&mut self.shifts)) {
            let mut square = 0.0;
            if count > 0 {
                for (centre, sum) in centre.iter_mut().zip(sums) {
                    let mean = (sum / count as f64) as f32;
                    square += (f64::from(mean) - f64::from(*centre)).powi(2);
                    *centre = mean;
                }
            }
            *way = (square.sqrt() * (1.0 + 1e-6)) as f32;
            total += square;
        }
        total
    }
}

/// For each centre half the way to the next one, less what rounding may add. Infinite if there is no other.
fn half_ways(centres: &[f32], panels: &Panels<f32>, width: usize) -> Vec<f32> {
    let mut ways = Vec::with_capacity(centres.len() / width);
    let mut nearest = TwoNearest::new();
    for centres in centres.chunks(BLOCK * width) {
        panels.tell_distances(centres, &mut nearest);
        // The nearest centre of a centre is itself.
        let seconds = nearest.second.iter().take(centres.len() / width);
        ways.extend(seconds.map(|second| second.sqrt() * 0.5 * (1.0 - margin(width))));
    }
    ways
}

/// Gives each empty cluster the point that is farthest from its centre, the first of equals, and takes it from its old
/// cluster.
fn fill_empty(points: Points<'_>, sums: &mut [f64], counts: &mut [u64], labels: &[u32], distances: &[f32]) {
    let width = points.width();
    let empty: Vec<usize> = (0..counts.len()).filter(|&cluster| counts[cluster] == 0).collect();
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lloyd's descent without bounds: measures everything, sums everything.
    fn plain(points: Points<'_>, mut centres: Vec<f32>, max_iterations: usize) -> (Vec<f32>, Vec<u32>) {
        let width = points.width();
        for _ in 0..max_iterations {
            let (labels, distances) = assigned(points, &Panels::new(&centres, width));
            let (mut sums, mut counts) = (vec![0.0; centres.len()], vec![0; centres.len() / width]);
            for (row, &label) in points.rows().zip(&labels) {
                counts[label as usize] += 1;
                for (sum, &value) in sums[label as usize * width..].iter_mut().zip(row) {
                    *sum += f64::from(value);
                }
            }
            if counts.contains(&0) {
                fill_empty(points, &mut sums, &mut counts, &labels, &distances);
            }
            for (at, centre) in centres.iter_mut().enumerate() {
                if counts[at / width] > 0 {
                    *centre = (sums[at] / counts[at / width] as f64) as f32;
                }
            }
        }
        let (labels, _) = assigned(points, &Panels::new(&centres, width));
        (centres, labels)
    }

    proptest! {
        #[test]
        fn bounds_change_no_label(
            width in 1usize..7,
            clusters in 1usize..40,
            // Multiples of a power of two sum without rounding, so that both ways of summing are equal.
            values in prop::collection::vec(-64i8..64, 300..1800),
            iterations in 1usize..9,
        ) {
            let values: Vec<f32> = values.iter().map(|&value| f32::from(value) / 16.0).collect();
            let points = Points::new(&values[..values.len() / width * width], width).unwrap();
            let first = points.values()[..clusters * width].to_vec();
            let found = descend(points, first.clone(), -1.0, iterations);
            let (centres, labels) = plain(points, first, iterations);
            prop_assert_eq!(found.centres, centres);
            prop_assert_eq!(found.labels, labels);
        }
    }
}
