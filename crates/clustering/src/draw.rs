//! Random numbers that are a function of seed, purpose and place, so that no result depends on the order of work.
//!
//! Each restart of KMeans, each block of resamples has a ChaCha8 generator of its own, keyed by all three. The draws
//! are written out instead of taken from `rand`, which may change its algorithms between versions.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng as _};

/// What a generator is for. The numbers are part of every result: never change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The first centres of one restart of KMeans.
    Seeding = 1,
    /// One block of bootstrap resamples.
    Resamples = 2,
    /// Where centres of KMeans move to.
    Swaps = 3,
    /// The first guess of the principal axes.
    Axes = 4,
}

/// The generator of one place of one purpose.
pub(crate) fn generator(seed: u64, purpose: Purpose, place: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    for (bytes, word) in key.chunks_exact_mut(8).zip([seed, purpose as u64, place, 0]) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}

/// A whole number below `count`, all equally likely; 0 if `count` is 0.
///
/// Lemire's method: the high half of a product, drawn again in the few cases that would favour small numbers.
pub(crate) fn below(random: &mut impl RngCore, count: u64) -> u64 {
    if count == 0 {
        return 0;
    }
    let unfair = count.wrapping_neg() % count;
    loop {
        let wide = u128::from(random.next_u64()) * u128::from(count);
        if wide as u64 >= unfair {
            return (wide >> 64) as u64;
        }
    }
}

/// A number in `[0, 1)`, a multiple of 2⁻⁵³.
pub(crate) fn unit(random: &mut impl RngCore) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_the_key_matters() {
        let first = |seed, purpose, place| generator(seed, purpose, place).next_u64();
        let base = first(1, Purpose::Seeding, 0);
        assert_ne!(base, first(2, Purpose::Seeding, 0));
        assert_ne!(base, first(1, Purpose::Resamples, 0));
        assert_ne!(base, first(1, Purpose::Seeding, 1));
    }

    #[test]
    fn draws_are_in_range_and_fair() {
        let mut random = generator(0, Purpose::Seeding, 0);
        let mut counts = [0; 7];
        for _ in 0..70_000 {
            counts[below(&mut random, 7) as usize] += 1;
            assert!((0.0..1.0).contains(&unit(&mut random)));
        }
        assert!(counts.iter().all(|&count| (9_600..10_400).contains(&count)), "{counts:?}");
        assert_eq!((below(&mut random, 1), below(&mut random, 0)), (0, 0));
    }
}
