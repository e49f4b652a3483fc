//! The bound for abstractions that have used up their parameters.
//!
//! With no parameter left to give, an open hole must be filled by fixed structure and by parameters that are used again.
//! So what stands there at the rows of a completion is one term F with each row's own arguments put in. Let the *outline*
//! of a term be what is left of it when all leaves look alike ([`Space::outlines`]). Two rows whose arguments have the
//! same outlines have the same outline at every hole, as F is the same. Hence, with the rows divided into classes by the
//! outlines of their arguments, and each class into groups by the outlines of their holes, a completion keeps at most one
//! group of each class: the sum over the classes of the largest group bounds its saving. An argument that does not fit
//! into any hole of its row cannot be used again there and counts as a leaf, which makes for fewer classes.
//!
//! With one parameter left and several holes, either the new parameter stands in one hole only, and the others are filled
//! without it; or it stands in two or more. Then it is a leaf wherever no more than one hole holds more than a leaf, and
//! those rows are divided as before; the other rows are all counted. The largest of these cases is the bound.
//!
//! This rule is ours. It matters most on long spines: patterns that spend their
//! parameters inside a spine while its head is still open are what a sum over matches cannot tell from good ones.

use crate::pattern::Partial;
use crate::space::Space;

/// Scratch space of the bound.
#[derive(Default)]
pub(crate) struct Groups {
    /// For each row, the class that its arguments put it into, as a hash.
    classes: Vec<u64>,
    /// For each row, the sum of the hashes of what stands at its holes.
    keys: Vec<u64>,
    table: Table,
    largest: Table,
}

/// The most that any completion saves, its body aside, when `left` parameters (0 or 1) may still be added.
pub(crate) fn consumed(partial: &Partial, left: usize, space: &Space, groups: &mut Groups) -> u64 {
    let outlines = space.outlines();
    groups.classify(partial, outlines, space);
    groups.hash_holes(partial, outlines);
    if left == 0 {
        return groups.bound(partial, |_| 0, |_| false);
    }
    // In two holes or more: a leaf, unless two of them hold more than a leaf.
    let is_inner = |hole: usize, row: usize| outlines[partial.content(hole)[row] as usize] != 0;
    let is_free = |row: usize| (0..partial.holes.len()).filter(|&hole| is_inner(hole, row)).nth(1).is_some();
    let mut best = groups.bound(partial, |_| 0, is_free);
    for hole in 0..partial.holes.len() {
        if best >= partial.saving {
            break;
        }
        let content = partial.content(hole);
        best = best.max(groups.bound(partial, |row| hash(hole, outlines[content[row] as usize]), |_| false));
    }
    best
}

impl Groups {
    fn classify(&mut self, partial: &Partial, outlines: &[u32], space: &Space) {
        self.classes.clear();
        self.classes.resize(partial.rows(), 0);
        for param in 0..partial.arity {
            for (row, (class, &argument)) in self.classes.iter_mut().zip(partial.param(param)).enumerate() {
                let outline = outlines[argument as usize];
                let fits = |hole: usize| {
                    let node = partial.content(hole)[row];
                    space.cost(argument) <= space.cost(node) && space.may_contain(node, argument)
                };
                if outline != 0 && (0..partial.holes.len()).any(fits) {
                    *class = class.wrapping_add(hash(param, outline));
                }
            }
        }
    }

    fn hash_holes(&mut self, partial: &Partial, outlines: &[u32]) {
        self.keys.clear();
        self.keys.resize(partial.rows(), 0);
        for hole in 0..partial.holes.len() {
            for (key, &node) in self.keys.iter_mut().zip(partial.content(hole)) {
                *key = key.wrapping_add(hash(hole, outlines[node as usize]));
            }
        }
    }

    /// The sum over the classes of the largest group, and of all rows that `is_free` says may be in any.
    ///
    /// `except` is taken off the key of a row. Groups whose keys collide are counted as one, which only loosens the bound;
    /// so are classes, but then their groups must be as well, so a group is known by its key alone within a class.
    fn bound(&mut self, partial: &Partial, except: impl Fn(usize) -> u64, is_free: impl Fn(usize) -> bool) -> u64 {
        self.table.clear(partial.rows());
        self.largest.clear(partial.rows());
        let (weights, potentials) = (partial.weights(), partial.potentials());
        let mut bound = 0;
        for (row, (&key, &class)) in self.keys.iter().zip(&self.classes).enumerate() {
            let potential = u64::from(weights[row]) * u64::from(potentials[row]);
            if is_free(row) {
                bound += potential;
                continue;
            }
            let key = key.wrapping_sub(except(row)).wrapping_add(class.rotate_left(32));
            let sum = self.table.entry(key);
            *sum += potential;
            let sum = *sum;
            let largest = self.largest.entry(class);
            if sum > *largest {
                bound += sum - *largest;
                *largest = sum;
            }
        }
        bound
    }
}

/// Sums by key: an open-addressing table.
#[derive(Default)]
struct Table {
    /// By number from 1; 0 is free.
    slots: Vec<u32>,
    sums: Vec<(u64, u64)>,
}

impl Table {
    /// Empties the table, for up to `len` keys.
    fn clear(&mut self, len: usize) {
        self.slots.clear();
        self.slots.resize((len * 2).next_power_of_two(), 0);
        self.sums.clear();
    }

    fn entry(&mut self, key: u64) -> &mut u64 {
        let mask = self.slots.len() - 1;
        let mut at = (key >> 32) as usize & mask;
        let index = loop {
            match self.slots[at] as usize {
                0 => {
                    self.sums.push((key, 0));
                    self.slots[at] = self.sums.len() as u32;
                    break self.sums.len() - 1;
                }
                number if self.sums[number - 1].0 == key => break number - 1,
                _ => at = (at + 1) & mask,
            }
        };
        &mut self.sums[index].1
    }
}

/// A hash of an outline at a place, such that sums of them tell combinations apart.
fn hash(place: usize, outline: u32) -> u64 {
    let seed = (place as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(outline);
    let mixed = (seed ^ (seed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ (mixed >> 32)
}
