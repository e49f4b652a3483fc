//! The velocity profiles that a segment may have.
//!
//! Over the segment's own time τ from 0 to 1, with one amplitude for each column:
//!
//! | profile | | what moves so |
//! |---|---|---|
//! | constant | 1 | a motion of one velocity, rest |
//! | bell | τ²(1 − τ)² | people and smooth planners, from rest to rest (minimum jerk; Flash and Hogan 1985) |
//! | skewed bell | τ²(1 − τ)² · (1 + a(2τ − 1)) | a person who speeds up or slows down on the way, as in aiming at a small target |
//! | plateau | 1 − (2τ − 1)⁴ | controllers with a limited acceleration: off, on at one velocity, off |
//!
//! The skew a is another number for each column, so that a segment with it costs a share of the penalty more; it explains at
//! most [`SKEWED`] of what the bell explains. Bell and skew are even and odd about the middle: what they explain adds up.
//!
//! With x the samples of a segment of length L and S_k = Σ x u^k their moments, u being the distance from the segment's end
//! in samples, the inner products ⟨x, profile⟩ are sums of five moments. It does not matter that u runs backwards: that
//! changes the sign of the skew only.

/// Three samples are no shape.
pub(super) const LEAST: usize = 4;

/// The most that a skew explains, as a share of what its bell explains.
const SKEWED: f64 = 0.3;

/// Columns that are computed at once; what is left of the last ones is zero.
pub(super) const LANES: usize = 4;

/// A number for each of some columns.
pub(super) type Lanes = [f64; LANES];

/// For some columns Σ x u^k, for k from 1 to 5.
pub(super) type Moments = [Lanes; 5];

/// Profiles of every length up to some.
pub(super) struct Shapes {
    /// For each length Σ of squares of bell, plateau and skew over its samples, each times L¹⁰, inverted.
    inverse: Vec<[f64; 3]>,
    /// What a skew must explain.
    charge: f64,
}

impl Shapes {
    /// Profiles of up to `most` samples. A skew costs `charge`, in units of energy.
    pub(super) fn new(most: usize, charge: f64) -> Shapes {
        let energies = |length: usize| {
            let size = length as f64;
            let mut sums = [0.0; 3];
            for at in 0..length {
                let share = (at as f64 + 0.5) / size;
                let (bell, side) = ((share * (1.0 - share)).powi(2), 2.0 * share - 1.0);
                let profiles = [bell, 1.0 - side.powi(4), bell * side];
                sums.iter_mut().zip(profiles).for_each(|(sum, value)| *sum += value * value);
            }
            sums.map(|sum| if length < LEAST { 0.0 } else { 1.0 / (sum * size.powi(10)) })
        };
        Shapes { inverse: (0..=most).map(energies).collect(), charge }
    }

    /// The most samples of a shape.
    pub(super) fn longest(&self) -> usize {
        self.inverse.len() - 1
    }

    /// The energy that the best of them explains, less what a skew costs.
    #[inline(always)]
    pub(super) fn explained(&self, length: usize, moments: &[Moments]) -> f64 {
        let Some(inverse) = self.inverse.get(length).filter(|_| length >= LEAST) else { return 0.0 };
        let l = length as f64;
        let (l2, l3, l4) = (l * l, l * l * l, l * l * l * l);
        let (mut bell, mut plateau, mut skew) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        for [s1, s2, s3, s4, s5] in moments {
            for lane in 0..LANES {
                let (s1, s2, s3, s4, s5) = (l4 * s1[lane], l3 * s2[lane], l2 * s3[lane], l * s4[lane], s5[lane]);
                let even = s2 - 2.0 * s3 + s4;
                let flat = 8.0 * s1 - 24.0 * s2 + 32.0 * s3 - 16.0 * s4;
                let odd = s2 - 4.0 * s3 + 5.0 * s4 - 2.0 * s5;
                bell[lane] += even * even;
                plateau[lane] += flat * flat;
                skew[lane] += odd * odd;
            }
        }
        let bell = total(bell) * inverse[0];
        let skew = ((total(skew) * inverse[2]).min(SKEWED * bell) - self.charge).max(0.0);
        (bell + skew).max(total(plateau) * inverse[1])
    }
}

/// Adds one sample to the moments of a segment that grows backwards from its end.
#[inline(always)]
pub(super) fn grow(moments: &mut [Moments], sample: &[Lanes], from_end: usize) {
    let u = from_end as f64 + 0.5;
    let u2 = u * u;
    let powers = [u, u2, u2 * u, u2 * u2, u2 * u2 * u];
    for (moments, values) in moments.iter_mut().zip(sample) {
        for (sums, power) in moments.iter_mut().zip(powers) {
            for lane in 0..LANES {
                sums[lane] += power * values[lane];
            }
        }
    }
}

/// The sum over columns.
#[inline(always)]
pub(super) fn total(lanes: Lanes) -> f64 {
    (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What one profile explains of some samples, by its definition.
    fn by_definition(samples: &[f64], profile: impl Fn(f64) -> f64) -> f64 {
        let shares: Vec<f64> = (0..samples.len()).map(|at| (at as f64 + 0.5) / samples.len() as f64).collect();
        let along: f64 = samples.iter().zip(&shares).map(|(value, share)| value * profile(*share)).sum();
        along * along / shares.iter().map(|share| profile(*share).powi(2)).sum::<f64>()
    }

    #[test]
    fn moments_give_what_profiles_explain() {
        let bell = |share: f64| (share * (1.0 - share)).powi(2);
        for (length, charge) in [(4, 0.0), (5, 0.1), (17, 0.0), (300, 0.01)] {
            let shapes = Shapes::new(300, charge);
            let samples: Vec<f64> = (0..length).map(|at| ((at * at) as f64).sin() + 0.3).collect();
            let mut moments = [[[0.0; LANES]; 5]];
            let lanes = |value: f64| [[0.0, value, 0.0, 0.0]];
            samples.iter().rev().enumerate().for_each(|(at, value)| grow(&mut moments, &lanes(*value), at));
            let even = by_definition(&samples, bell);
            let odd = by_definition(&samples, |share| bell(share) * (1.0 - 2.0 * share));
            let plateau = by_definition(&samples, |share| 1.0 - (2.0 * share - 1.0).powi(4));
            let wanted = (even + (odd.min(SKEWED * even) - charge).max(0.0)).max(plateau);
            let found = shapes.explained(length, &moments);
            assert!((found - wanted).abs() < 1e-9 * (1.0 + found), "{length}: {found} {wanted}");
        }
        let (shapes, ones) = (Shapes::new(300, 0.0), [[[1.0; LANES]; 5]]);
        assert_eq!((shapes.explained(3, &ones), shapes.explained(301, &ones)), (0.0, 0.0));
    }
}
