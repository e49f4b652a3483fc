//! A minimum spanning tree under mutual reachability, max(core(a), core(b), ‖a − b‖), by Prim from point 0.
//!
//! Each point outside the tree carries its least distance to the tree, its *reach*. Three things keep the O(n²) steps cheap:
//!
//! - A reach cannot fall below the point's own core distance. Points that have come down to it are **settled**: they wait in a
//!   heap and are never measured again. In most data that is soon the greater part.
//! - The rest is packed into panels that shrink as points leave. A panel is passed over when the core distance of the new
//!   point is no less than every reach in it.
//! - Distances are in single precision; only those that could lower a reach are measured again, in double precision.
//!
//! Parts of the points run in parallel. The next point is the one of least reach, the first of equals, whatever the parts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rayon::prelude::*;

use crate::panels::{PANEL, Panels, margin};
use crate::points::{Points, exact_square};

/// Points of a part at the start.
const PART: usize = 2048;

/// Coordinates outside the tree below which a step is not worth sharing between threads.
const SHARED: usize = 1 << 16;

/// An edge, as Prim found it: `to` was outside the tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) length: f64,
}

/// The n − 1 edges of the tree, in the order in which they were found. There must be a core distance for each point.
pub(super) fn minimum_spanning_tree(points: Points<'_>, core: &[f64]) -> Vec<Edge> {
    let outside: Vec<u32> = (1..points.len() as u32).collect();
    let mut parts: Vec<Part> = outside.par_chunks(PART).map(|ids| Part::new(points, core, ids)).collect();
    let mut settled: BinaryHeap<Reverse<Near>> = BinaryHeap::new();
    let mut edges = Vec::with_capacity(outside.len());
    let mut current = 0;
    while edges.len() < outside.len() {
        let left: usize = parts.iter().map(|part| part.ids.len()).sum();
        if left * points.width() < SHARED {
            parts.iter_mut().for_each(|part| part.measure(points, current, core[current as usize]));
        } else {
            parts.par_iter_mut().for_each(|part| part.measure(points, current, core[current as usize]));
        }
        for part in &mut parts {
            settled.extend(part.settled.drain(..).map(Reverse));
        }
        let nearest = parts.iter().enumerate().filter_map(|(at, part)| Some((part.nearest()?, at))).min();
        let next = match (nearest, settled.peek()) {
            (Some(((near, place), part)), top) if top.is_none_or(|top| near < top.0) => {
                parts[part].remove(place);
                near
            }
            _ => match settled.pop() {
                Some(Reverse(near)) => near,
                None => break,
            },
        };
        edges.push(Edge { from: next.source, to: next.id, length: next.reach });
        current = next.id;
        parts.retain(|part| !part.ids.is_empty());
    }
    edges
}

/// A point outside the tree, ordered by reach, then by number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Near {
    reach: f64,
    id: u32,
    source: u32,
}

impl Eq for Near {}

impl Ord for Near {
    fn cmp(&self, other: &Near) -> std::cmp::Ordering {
        self.reach.total_cmp(&other.reach).then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Near) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Some of the points outside the tree, packed; places are where they stand in it.
struct Part {
    panels: Panels<f32>,
    ids: Vec<u32>,
    core: Vec<f64>,
    reach: Vec<f64>,
    source: Vec<u32>,
    /// A squared distance that is not below this cannot lower the reach. Places without a point have 0.
    limit: Vec<f32>,
    /// For each panel the greatest reach in it, and its nearest point with its place.
    summary: Vec<(f64, Option<(Near, usize)>)>,
    /// Points that left because they can come no nearer.
    settled: Vec<Near>,
}

impl Part {
    fn new(points: Points<'_>, core: &[f64], ids: &[u32]) -> Part {
        let rows: Vec<f32> = ids.iter().flat_map(|&id| points.row(id as usize)).copied().collect();
        let panels = Panels::new(&rows, points.width());
        let mut limit = vec![0.0; panels.count() * PANEL];
        limit[..ids.len()].fill(f32::INFINITY);
        Part {
            summary: vec![(f64::INFINITY, None); panels.count()],
            panels,
            ids: ids.to_vec(),
            core: ids.iter().map(|&id| core[id as usize]).collect(),
            reach: vec![f64::INFINITY; ids.len()],
            source: vec![0; ids.len()],
            limit,
            settled: Vec::new(),
        }
    }

    /// Takes note of a point that has joined the tree.
    fn measure(&mut self, points: Points<'_>, joined: u32, joined_core: f64) {
        let Part { panels, ids, core, reach, source, limit, summary, .. } = self;
        let row = points.row(joined as usize);
        let (used, slack) = (ids.len().div_ceil(PANEL), 1.0 + 4.0 * f64::from(margin(points.width())));
        let mut changed = Vec::new();
        panels.distances_from(
            row,
            used,
            |panel| joined_core < summary[panel].0,
            |panel, lanes| {
                let limits = &limit[panel * PANEL..][..PANEL];
                let mut closer = 0u32;
                for (lane, (&distance, &limit)) in lanes.iter().zip(limits).enumerate() {
                    closer |= u32::from(distance < limit) << lane;
                }
                let mut lowered = false;
                while closer != 0 {
                    let place = panel * PANEL + closer.trailing_zeros() as usize;
                    closer &= closer - 1;
                    let distance = exact_square(row, points.row(ids[place] as usize)).sqrt();
                    let found = distance.max(core[place]).max(joined_core);
                    if found < reach[place] {
                        (reach[place], source[place]) = (found, joined);
                        limit[place] = (found * found * slack) as f32 + 4.0 * f32::MIN_POSITIVE;
                        lowered = true;
                    }
                }
                if lowered {
                    changed.push(panel);
                }
            },
        );
        // From the back, so that the points that fill gaps come from behind all panels that are still to be looked at.
        for panel in changed.into_iter().rev() {
            for place in (panel * PANEL..self.ids.len().min((panel + 1) * PANEL)).rev() {
                if self.reach[place] <= self.core[place] {
                    self.settled.push(self.near(place));
                    self.remove(place);
                }
            }
            self.summarise(panel);
        }
    }

    /// The point of least reach, with its place.
    fn nearest(&self) -> Option<(Near, usize)> {
        self.summary.iter().filter_map(|summary| summary.1).min()
    }

    fn near(&self, place: usize) -> Near {
        Near { reach: self.reach[place], id: self.ids[place], source: self.source[place] }
    }

    /// Takes a point out; the last one moves to its place.
    fn remove(&mut self, place: usize) {
        let last = self.ids.len() - 1;
        self.panels.move_point(last, place);
        self.limit[place] = self.limit[last];
        self.limit[last] = 0.0;
        self.ids.swap_remove(place);
        self.core.swap_remove(place);
        self.reach.swap_remove(place);
        self.source.swap_remove(place);
        self.summarise(place / PANEL);
        self.summarise(last / PANEL);
    }

    fn summarise(&mut self, panel: usize) {
        let mut summary = (f64::NEG_INFINITY, None);
        for place in panel * PANEL..self.ids.len().min((panel + 1) * PANEL) {
            summary.0 = f64::max(summary.0, self.reach[place]);
            let near = Some((self.near(place), place));
            if summary.1.is_none() || near < summary.1 {
                summary.1 = near;
            }
        }
        self.summary[panel] = summary;
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Prim as in a textbook.
    fn plain(points: Points<'_>, core: &[f64]) -> Vec<Edge> {
        let mut reach = vec![(f64::INFINITY, 0); points.len()];
        let mut outside: Vec<u32> = (1..points.len() as u32).collect();
        let (mut current, mut edges) = (0u32, Vec::new());
        while !outside.is_empty() {
            for &id in &outside {
                let distance = exact_square(points.row(current as usize), points.row(id as usize)).sqrt();
                let found = distance.max(core[current as usize]).max(core[id as usize]);
                if found < reach[id as usize].0 {
                    reach[id as usize] = (found, current);
                }
            }
            let order = |id: &&u32| Near { reach: reach[**id as usize].0, id: **id, source: 0 };
            let next = *outside.iter().min_by_key(order).unwrap();
            outside.retain(|&id| id != next);
            edges.push(Edge { from: reach[next as usize].1, to: next, length: reach[next as usize].0 });
            current = next;
        }
        edges
    }

    proptest! {
        #[test]
        fn the_tree_is_that_of_the_textbook(
            width in 1usize..4,
            values in prop::collection::vec(-3i8..4, 8..600),
            cores in prop::collection::vec(0.0f64..3.0, 600),
            scale in prop::sample::select(vec![1.0f32, 1e-22, 0.1]),
        ) {
            let values: Vec<f32> = values.iter().map(|&value| f32::from(value) * scale).collect();
            let points = Points::new(&values[..values.len() / width * width], width).unwrap();
            let cores: Vec<f64> = cores.iter().map(|core| core * f64::from(scale)).collect();
            prop_assert_eq!(minimum_spanning_tree(points, &cores), plain(points, &cores));
        }
    }

    #[test]
    fn the_tree_of_many_parts_is_that_of_the_textbook() {
        let mut random = crate::draw::generator(3, crate::draw::Purpose::Seeding, 0);
        let values: Vec<f32> = (0..5000 * 16).map(|_| crate::draw::unit(&mut random) as f32).collect();
        let points = Points::new(&values, 16).unwrap();
        let core = crate::hdbscan::neighbours::core_distances(points, &Panels::new(&values, 16), 5);
        assert_eq!(minimum_spanning_tree(points, &core), plain(points, &core));
    }
}
