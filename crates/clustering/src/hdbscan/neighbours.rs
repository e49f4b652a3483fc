//! Core distances: how far each point's k-th neighbour is, itself the first.
//!
//! All pairs are looked at in single precision. What could be among the k nearest, rounding considered, is measured again in
//! double precision, so that the result is exact.

use rayon::prelude::*;

use crate::panels::{PANEL, Panels, margin};
use crate::points::{Points, exact_square};

/// Rows of one piece of work; they stay in the first cache while the panels pass by.
const BLOCK: usize = 32;

/// The distance of each point to its `nearest`-th neighbour, itself the first; there must be so many points.
pub(super) fn core_distances(points: Points<'_>, panels: &Panels<f32>, nearest: usize) -> Vec<f64> {
    let width = points.width();
    let mut core = vec![0.0; points.len()];
    let blocks = core.par_chunks_mut(BLOCK).zip(points.values().par_chunks(BLOCK * width));
    blocks.for_each_init(
        || vec![Candidates::default(); BLOCK],
        |candidates, (core, values)| {
            candidates.iter_mut().for_each(|candidates| candidates.clear(nearest));
            panels.distances(values, |row, panel, lanes| {
                let limit = candidates[row].limit;
                let mut closer = 0u32;
                for (lane, &distance) in lanes.iter().enumerate() {
                    closer |= u32::from(distance < limit) << lane;
                }
                if closer != 0 {
                    candidates[row].add(closer, panel, lanes, nearest, margin(width));
                }
            });
            for ((core, row), candidates) in core.iter_mut().zip(values.chunks_exact(width)).zip(candidates) {
                *core = candidates.exact(points, row, nearest, margin(width));
            }
        },
    );
    core
}

/// The points that may be among a row's nearest.
#[derive(Clone, Debug, Default)]
struct Candidates {
    /// What is not below this is not among them.
    limit: f32,
    /// The list is cut down when it reaches this length.
    capacity: usize,
    found: Vec<(f32, u32)>,
}

impl Candidates {
    fn clear(&mut self, nearest: usize) {
        self.found.clear();
        self.limit = f32::INFINITY;
        self.capacity = 2 * nearest + 2 * PANEL;
    }

    /// Adds the marked places of a panel.
    #[inline(never)]
    fn add(&mut self, mut closer: u32, panel: usize, lanes: &[f32; PANEL], nearest: usize, margin: f32) {
        while closer != 0 {
            let lane = closer.trailing_zeros() as usize;
            self.found.push((lanes[lane], (panel * PANEL + lane) as u32));
            closer &= closer - 1;
        }
        if self.found.len() >= self.capacity {
            self.cut(nearest, margin);
            // Points at one distance are all kept; more of them may follow.
            self.capacity = self.capacity.max(2 * self.found.len());
        }
    }

    /// Keeps what may be among the nearest.
    fn cut(&mut self, nearest: usize, margin: f32) {
        if self.found.len() < nearest {
            return;
        }
        let (_, &mut (last, _), _) = self.found.select_nth_unstable_by(nearest - 1, |a, b| a.0.total_cmp(&b.0));
        // Each distance is off by at most the margin, so two margins lie between the nearest in truth and as measured. What
        // is smaller than any normal number may be off by more.
        self.limit = last * (1.0 + 4.0 * margin) + 4.0 * f32::MIN_POSITIVE;
        self.found.retain(|&(distance, _)| distance < self.limit);
    }

    /// The distance of the last of the nearest.
    fn exact(&mut self, points: Points<'_>, row: &[f32], nearest: usize, margin: f32) -> f64 {
        self.cut(nearest, margin);
        let mut squares: Vec<f64> =
            self.found.iter().map(|&(_, point)| exact_square(row, points.row(point as usize))).collect();
        let (_, &mut square, _) = squares.select_nth_unstable_by(nearest - 1, f64::total_cmp);
        square.sqrt()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn core_distances_are_those_of_a_sorted_list(
            width in 1usize..5,
            // Few different values give many ties.
            values in prop::collection::vec(-2i8..3, 8..400),
            nearest in 1usize..8,
            scale in prop::sample::select(vec![1.0f32, 1e-20, 1e-30, 1e12, 0.1]),
        ) {
            let values: Vec<f32> = values.iter().map(|&value| f32::from(value) * scale).collect();
            let points = Points::new(&values[..values.len() / width * width], width).unwrap();
            let nearest = nearest.min(points.len());
            let found = core_distances(points, &Panels::new(points.values(), width), nearest);
            for (row, found) in points.rows().zip(found) {
                let mut all: Vec<f64> = points.rows().map(|other| exact_square(row, other)).collect();
                all.sort_unstable_by(f64::total_cmp);
                prop_assert_eq!(found, all[nearest - 1].sqrt());
            }
        }
    }
}
