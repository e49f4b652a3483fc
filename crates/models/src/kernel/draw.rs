//! Some of many, without repetition.

use std::collections::BTreeSet;

use rand::{RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::noise;

/// `count` different numbers below `total` in ascending order, all sets equally likely; all of them if there are no more.
///
/// Floyd's method: memory for what is drawn, whatever the total. Written out for the reason that `dataset` has: what is drawn
/// must not change with a version of `rand`.
pub(super) fn distinct(seed: u64, purpose: &[u8], total: usize, count: usize) -> Vec<usize> {
    let mut generator = ChaCha8Rng::seed_from_u64(noise::mix(seed, purpose));
    let mut drawn = BTreeSet::new();
    for last in total - count.min(total)..total {
        // The high half of a product: below `last + 1`, and even to within 2⁻⁶⁴ of that.
        let at = ((u128::from(generator.next_u64()) * (last as u128 + 1)) >> 64) as usize;
        if !drawn.insert(at) {
            drawn.insert(last);
        }
    }
    drawn.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_drawn_as_often_as_any_other() {
        let mut times = [0; 10];
        for seed in 0..2000 {
            let drawn = distinct(seed, b"a test", 10, 3);
            assert!(drawn.len() == 3 && drawn.is_sorted_by(|one, other| one < other));
            drawn.into_iter().for_each(|at| times[at] += 1);
        }
        // 600 are expected, with a deviation of 20.
        assert!(times.iter().all(|times| (500..700).contains(times)), "{times:?}");
    }

    #[test]
    fn asking_for_more_gives_all() {
        assert_eq!(distinct(0, b"a test", 4, 4), [0, 1, 2, 3]);
        assert_eq!(distinct(0, b"a test", 4, 9), [0, 1, 2, 3]);
        assert_eq!(distinct(0, b"a test", 0, 9), Vec::<usize>::new());
    }
}
