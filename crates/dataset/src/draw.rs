//! Random numbers whose bytes never change: which generator belongs to what, and how a number is drawn from it.
//!
//! Everything random here is a function of `(seed, purpose, place)`: the three together are the key of a ChaCha8
//! generator of their own. A batch can be drawn without drawing those before it, and two samplers with one seed do not
//! follow each other.
//!
//! The draws are written out instead of taken from `rand`, which may change its algorithms between versions: a probe
//! set that is "drawn once" must be the same one next year. For the same reason noise is a sum of uniforms, not a
//! function of logarithms and cosines, whose last bits differ between platforms.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng as _};

/// What a generator is for. The numbers are part of every drawn set: never change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The held-out episodes of a task.
    HeldOut = 1,
    /// The probe fragments of a task.
    Probe = 2,
    /// The order of all fragments in an epoch.
    Epoch = 3,
    /// The order of a class's fragments.
    Class = 4,
    /// The order of the classes.
    Classes = 5,
    /// Which episodes a batch of pairs is from, and which fragments of them.
    Pairs = 6,
    /// The start of an episode of RecursivePour.
    PourStart = 7,
    /// The unsteady hand of its expert.
    PourExpert = 8,
    /// An episode of a synthetic robot.
    SyntheticRobot = 9,
    /// The person who teleoperates a robot instead of a script.
    Operator = 10,
}

/// The generator of one place of one purpose.
pub(crate) fn generator(seed: u64, purpose: Purpose, place: [u64; 2]) -> ChaCha8Rng {
    let mut key = [0; 32];
    for (bytes, word) in key.chunks_exact_mut(8).zip([seed, purpose as u64, place[0], place[1]]) {
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

/// A number in `[0, 1)`, a multiple of 2⁻²⁴, so that every one of them is exact in `f32`.
pub(crate) fn unit(random: &mut impl RngCore) -> f32 {
    (random.next_u32() >> 8) as f32 / (1 << 24) as f32
}

/// A number within ±6 of mean 0 and variance 1, nearly normal: the sum of twelve uniforms, less its mean.
pub(crate) fn bell(random: &mut impl RngCore) -> f32 {
    (0..12).map(|_| unit(random)).sum::<f32>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_the_same_for_ever() {
        let mut random = generator(7, Purpose::Probe, [1, 2]);
        let drawn: Vec<u64> = (0..6).map(|_| below(&mut random, 1000)).collect();
        assert_eq!(drawn, [147, 289, 102, 202, 534, 975]);
        assert_eq!((unit(&mut random), bell(&mut random)), (0.49096286, -0.43346357));
    }

    #[test]
    fn each_part_of_the_key_matters() {
        let first = |seed, purpose, place| generator(seed, purpose, place).next_u64();
        let base = first(1, Purpose::Epoch, [0, 0]);
        assert_ne!(base, first(2, Purpose::Epoch, [0, 0]));
        assert_ne!(base, first(1, Purpose::Class, [0, 0]));
        assert_ne!(base, first(1, Purpose::Epoch, [1, 0]));
        assert_ne!(base, first(1, Purpose::Epoch, [0, 1]));
    }

    #[test]
    fn below_is_fair_and_in_range() {
        let mut random = generator(0, Purpose::Probe, [0, 0]);
        let mut counts = [0; 7];
        for _ in 0..70_000 {
            counts[below(&mut random, 7) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (9_600..10_400).contains(&count)), "{counts:?}");
        assert_eq!(below(&mut random, 1), 0);
        assert_eq!(below(&mut random, 0), 0);
    }

    #[test]
    fn bell_has_mean_0_and_variance_1() {
        let mut random = generator(0, Purpose::PourExpert, [0, 0]);
        let drawn: Vec<f64> = (0..20_000).map(|_| f64::from(bell(&mut random))).collect();
        let mean = drawn.iter().sum::<f64>() / 20_000.0;
        let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
