//! A random order of n things that is computed, not stored: `at(i)` is the i-th of them, in any order of asking.
//!
//! This is what lets a sampler be a function of the step: the 5000th batch of the third epoch is read off without the
//! 4999 before it, by many threads at once, with a kilobyte of keys instead of a list of all fragments.
//!
//! The method is the swap-or-not shuffle of Hoang, Morris and Rogaway (CRYPTO 2012). A round draws a pivot K below n.
//! It pairs each x with its reflection K − x (mod n), and a hash of the pair tosses a coin: swap the two, or not. Every
//! round is its own inverse, so the whole is a permutation **whatever the hash is**; only its randomness rests on the
//! hash. After r rounds the place of a single thing is uniform to within 2⁻ʳ, and O(log n) rounds mix all of them.
//! There is no range that is special: n = 3 mixes as n = 2²⁰ does, and nothing is padded to a power of two.

use rand_chacha::rand_core::RngCore;

use crate::draw::below;

/// Rounds for each bit of the size, and those that even the smallest size gets. The paper of the method takes more,
/// against an adversary who sees most of the order and would know the rest; a training run only needs its order to be
/// random.
const ROUNDS_PER_BIT: u32 = 2;
const ROUNDS_AT_LEAST: u32 = 32;

/// A permutation of `0..size`.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    size: u64,
    rounds: Vec<Round>,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    pivot: u64,
    salt: u64,
}

impl Permutation {
    /// A random permutation of `0..size`.
    pub(crate) fn new(size: usize, random: &mut impl RngCore) -> Permutation {
        let size = size as u64;
        let bits = u64::BITS - size.leading_zeros();
        let rounds = (0..ROUNDS_AT_LEAST + ROUNDS_PER_BIT * bits)
            .map(|_| Round { pivot: below(random, size), salt: random.next_u64() })
            .collect();
        Permutation { size, rounds }
    }

    /// The thing at a place. `place` must be below the size.
    pub(crate) fn at(&self, place: usize) -> usize {
        let mut here = place as u64;
        debug_assert!(here < self.size, "place {here} of {}", self.size);
        for &Round { pivot, salt } in &self.rounds {
            let there = if pivot >= here { pivot - here } else { pivot + (self.size - here) };
            // `if heads { here = there }` without a jump, which no processor could foresee.
            here ^= (here ^ there) & coin(here.max(there), salt).wrapping_neg();
        }
        here as usize
    }

    /// The first `count` things, or all if there are fewer: a draw without repeats.
    pub(crate) fn first(&self, count: usize) -> impl Iterator<Item = usize> + '_ {
        (0..count.min(self.size as usize)).map(|place| self.at(place))
    }
}

/// The coin of a pair, known by its larger member, 0 or 1: the top bit of SplitMix64's finaliser.
fn coin(pair: u64, salt: u64) -> u64 {
    let mut bits = pair.wrapping_add(salt);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits >> 63 // The last shift of the finaliser would leave the top bit alone.
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::draw::{Purpose, generator};

    fn permutation(size: usize, seed: u64) -> Permutation {
        Permutation::new(size, &mut generator(seed, Purpose::Epoch, [0, 0]))
    }

    proptest! {
        #[test]
        fn each_thing_stands_at_one_place(size in 1usize..400, seed: u64) {
            let mut things: Vec<usize> = permutation(size, seed).first(size).collect();
            things.sort_unstable();
            prop_assert!(things.into_iter().eq(0..size));
        }
    }

    #[test]
    fn sizes_that_are_hard_to_pad() {
        for size in [1, 2, 3, 4095, 4096, 4097, 65_537] {
            let permutation = permutation(size, 3);
            let mut seen = vec![false; size];
            permutation.first(usize::MAX).for_each(|thing| seen[thing] = true);
            assert!(seen.into_iter().all(|seen| seen), "{size}");
        }
    }

    /// χ² over all 24 orders of four things; 23 degrees of freedom stay below 49.7 with probability 0.999.
    #[test]
    fn all_orders_are_equally_likely() {
        let mut counts = BTreeMap::<Vec<usize>, f64>::new();
        for seed in 0..24_000 {
            *counts.entry(permutation(4, seed).first(4).collect()).or_default() += 1.0;
        }
        let chi_squared: f64 = counts.values().map(|count| (count - 1000.0).powi(2) / 1000.0).sum();
        assert_eq!(counts.len(), 24);
        assert!(chi_squared < 49.7, "{chi_squared}");
    }

    /// In a random order a neighbour comes next as often as anything else: about once in a permutation, on each side.
    #[test]
    fn neighbours_are_parted() {
        let size = 20_000;
        let order: Vec<usize> = permutation(size, 5).first(size).collect();
        let neighbours = order.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
        assert!(neighbours < 12, "{neighbours}");
        let fixed = order.iter().enumerate().filter(|(place, thing)| *place == **thing).count();
        assert!(fixed < 8, "{fixed}");
    }
}
