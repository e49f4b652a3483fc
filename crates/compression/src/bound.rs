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
    keys: Vec<u64>,
    /// Open-addressing table of (key, sum); key 0 is free.
    slots: Vec<(u64, u64)>,
}

/// The most that any completion saves, its body aside, when `left` parameters (0 or 1) may still be added.
pub(crate) fn consumed(partial: &Partial, left: usize, space: &Space, groups: &mut Groups) -> u64 {
    let mut reusable = 0;
    let mut second = 0;
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
    if left == 0 {
        return groups.largest(partial, space.coarse_shape(reusable), None);
    }
    let without_it = space.coarse_shape(reusable);
    let in_one = (0..partial.holes.len())
        .map(|hole| groups.largest(partial, without_it, Some(hole)))
        .max();
    let in_several = groups.largest(partial, space.coarse_shape(reusable.max(second)), None);
    in_one.unwrap_or(0).max(in_several)
}

impl Groups {
    /// The largest sum of potentials over the groups of rows that agree in the shape of every hole but `except`.
    ///
    /// Groups whose keys collide are counted as one, which only loosens the bound.
    fn largest(&mut self, partial: &Partial, shape: &[u32], except: Option<usize>) -> u64 {
        let rows = partial.rows();
        self.keys.clear();
        self.keys.resize(rows, 1);
        for hole in (0..partial.holes.len()).filter(|&hole| Some(hole) != except) {
            for (key, &node) in self.keys.iter_mut().zip(partial.content(hole)) {
                *key = (key.rotate_left(23) ^ u64::from(shape[node as usize])).wrapping_mul(0x517C_C1B7_2722_0A95) | 1;
            }
        }
        let mask = (rows * 2).next_power_of_two() - 1;
        self.slots.clear();
        self.slots.resize(mask + 1, (0, 0));
        let mut best = 0;
        let potentials = partial.weights().iter().zip(partial.potentials());
        for (&key, (&weight, &potential)) in self.keys.iter().zip(potentials) {
            let mut at = (key >> 32) as usize & mask;
            while self.slots[at].0 != key && self.slots[at].0 != 0 {
                at = (at + 1) & mask;
            }
            let sum = self.slots[at].1 + u64::from(weight) * u64::from(potential);
            self.slots[at] = (key, sum);
            best = best.max(sum);
        }
        best
    }
}
