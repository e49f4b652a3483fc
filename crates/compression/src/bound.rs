//! The bound for abstractions that have used up their parameters.
//!
//! With no parameter left to give, an open hole must be filled by fixed structure and by parameters that are used again.
//! Then the rows of a completion agree there in everything except where a used parameter stands, and what stands there
//! costs no more than the largest argument that fits the hole. So at all rows of a completion the hole's content has the
//! same *coarse shape*, where subterms up to that cost look alike ([`Space::coarse_shape`]): the completion's rows lie in
//! one group by coarse shape, and the best group bounds its saving.
//!
//! With one parameter left and several holes, either the new parameter stands in one hole only, and the other holes are
//! filled without it; or it stands in two or more, so that its argument costs no more than the second largest content of
//! the row, and all holes are filled with arguments up to that cost. The largest group over these cases is the bound.
//!
//! This rule is ours. On the spines of the cogsci corpora it cuts the search to a quarter: patterns that spend their
//! parameters inside a spine while its head is still open are what a sum over matches cannot tell from good ones.

use crate::pattern::Partial;
use crate::space::Space;

/// Scratch space of the bound.
#[derive(Default)]
pub(crate) struct Groups {
    /// For each row, the sum of the hashes of what stands at its holes.
    keys: Vec<u64>,
    /// Open-addressing table of groups, by number from 1; 0 is free.
    table: Vec<u32>,
    /// The key and the sum of each group.
    sums: Vec<(u64, u64)>,
}

/// The most that any completion saves, its body aside, when `left` parameters (0 or 1) may still be added.
pub(crate) fn consumed(partial: &Partial, left: usize, space: &Space, groups: &mut Groups) -> u64 {
    let (reusable, second) = sizes(partial, space);
    let fine = space.coarse_shape(reusable);
    groups.hash_holes(partial, fine);
    if left == 0 {
        return groups.largest(partial, None);
    }
    let mut best = 0;
    for hole in 0..partial.holes.len() {
        best = best.max(groups.largest(partial, Some((hole, fine))));
        if best >= partial.saving {
            return best;
        }
    }
    let coarse = space.coarse_shape(reusable.max(second));
    if !std::ptr::eq(fine, coarse) {
        groups.hash_holes(partial, coarse);
    }
    best.max(groups.largest(partial, None))
}

/// Over all rows, the largest argument that fits a hole of its row, and the largest second largest content.
fn sizes(partial: &Partial, space: &Space) -> (u32, u32) {
    // Column maxima bound both from above. If they are no larger than a leaf, no shape tells less than another.
    let (mut largest, mut second) = (0, 0);
    for hole in &partial.holes {
        second = second.max(hole.largest.min(largest));
        largest = largest.max(hole.largest);
    }
    let reusable = partial.largest_argument.min(largest);
    if reusable.max(second) <= space.call {
        return (reusable, second);
    }
    let (mut reusable, mut second) = (0, 0);
    for row in 0..partial.rows() {
        let (mut largest, mut next) = (0, 0);
        for hole in 0..partial.holes.len() {
            let cost = space.cost(partial.content(hole)[row]);
            next = next.max(cost.min(largest));
            largest = largest.max(cost);
        }
        for param in 0..partial.arity {
            let cost = space.cost(partial.param(param)[row]);
            if cost <= largest {
                reusable = reusable.max(cost);
            }
        }
        second = second.max(next);
    }
    (reusable, second)
}

impl Groups {
    fn hash_holes(&mut self, partial: &Partial, shape: &[u32]) {
        self.keys.clear();
        self.keys.resize(partial.rows(), 0);
        for hole in 0..partial.holes.len() {
            for (key, &node) in self.keys.iter_mut().zip(partial.content(hole)) {
                *key = key.wrapping_add(hash(hole, shape[node as usize]));
            }
        }
    }

    /// The largest sum of potentials over the groups of rows that agree in the shape of every hole, but one if said.
    ///
    /// Groups whose keys collide are counted as one, which only loosens the bound.
    fn largest(&mut self, partial: &Partial, except: Option<(usize, &[u32])>) -> u64 {
        let mask = (partial.rows() * 2).next_power_of_two() - 1;
        self.table.clear();
        self.table.resize(mask + 1, 0);
        self.sums.clear();
        let mut best = 0;
        let excepted = except.map(|(hole, shape)| (hole, shape, partial.content(hole)));
        let (weights, potentials) = (partial.weights(), partial.potentials());
        for (row, &key) in self.keys.iter().enumerate() {
            let key = match excepted {
                Some((hole, shape, content)) => key.wrapping_sub(hash(hole, shape[content[row] as usize])),
                None => key,
            };
            let mut at = (key >> 32) as usize & mask;
            let group = loop {
                match self.table[at] as usize {
                    0 => {
                        self.sums.push((key, 0));
                        self.table[at] = self.sums.len() as u32;
                        break self.sums.len() - 1;
                    }
                    group if self.sums[group - 1].0 == key => break group - 1,
                    _ => at = (at + 1) & mask,
                }
            };
            let sum = &mut self.sums[group].1;
            *sum += u64::from(weights[row]) * u64::from(potentials[row]);
            best = best.max(*sum);
        }
        best
    }
}

/// A hash of a shape at a hole, such that sums of them tell combinations apart.
fn hash(hole: usize, shape: u32) -> u64 {
    let seed = (hole as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(shape);
    let mixed = (seed ^ (seed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ (mixed >> 32)
}
