//! The difference between a script and a person who teleoperates a robot.

use rand_chacha::rand_core::RngCore;

use crate::draw::{bell, unit};

/// How unsteady a demonstration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Noise {
    /// Exact motions: no tremor, no hesitation, no sensor noise, and a state two frames behind the command.
    None,
    /// A practised operator.
    #[default]
    Mild,
    /// An operator with some practice.
    Strong,
    /// A beginner with a worn robot.
    Severe,
}

impl Noise {
    /// All levels, 0 to 3.
    pub const ALL: [Noise; 4] = [Noise::None, Noise::Mild, Noise::Strong, Noise::Severe];

    /// The level of a number from 0 to 3.
    pub fn level(number: u8) -> Option<Noise> {
        Noise::ALL.get(usize::from(number)).copied()
    }

    /// The standard deviation of the tremor of a command, as a share of the column's range.
    pub(super) fn tremor(self) -> f64 {
        0.0012 * self.scale()
    }

    /// The standard deviation of the noise of a state, as a share of the column's range.
    pub(super) fn sensor(self) -> f64 {
        0.0004 * self.scale()
    }

    /// The probability that a motion is interrupted by a hesitation.
    pub(super) fn hesitation(self) -> f64 {
        (0.15 * self.scale()).min(0.6)
    }

    /// The largest share of a motion's time by which a joint arrives early.
    pub(super) fn stagger(self) -> f64 {
        (0.06 * self.scale()).min(0.2)
    }

    /// The frames that a state is behind its command.
    pub(super) fn lag(self, random: &mut impl RngCore) -> usize {
        let drawn = 2 + (unit(random) * 4.0) as usize;
        if self == Noise::None { 2 } else { drawn }
    }

    fn scale(self) -> f64 {
        [0.0, 1.0, 2.0, 4.0][self as usize]
    }
}

/// A tremor with standard deviation 1: noise of which only a band passes, as hands shake.
pub(super) struct Tremor {
    slow: f64,
    fast: f64,
}

impl Tremor {
    pub(super) fn new() -> Tremor {
        Tremor { slow: 0.0, fast: 0.0 }
    }

    /// The next value. Both filters are of first order; what the slow one has passes too, what neither follows does not.
    pub(super) fn next(&mut self, random: &mut impl RngCore) -> f64 {
        const FAST: f64 = 0.7;
        const SLOW: f64 = 0.95;
        let drawn = f64::from(bell(random));
        self.fast = FAST * self.fast + root(1.0 - FAST * FAST) * drawn;
        self.slow = SLOW * self.slow + root(1.0 - SLOW * SLOW) * drawn;
        (self.fast + self.slow) / 1.8
    }
}

/// The square root, which IEEE 754 rounds correctly, so it is the same on every machine.
fn root(value: f64) -> f64 {
    value.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::{Purpose, generator};

    #[test]
    fn tremor_is_smooth_and_has_variance_1() {
        let mut random = generator(0, Purpose::SyntheticRobot, [0, 0]);
        let mut tremor = Tremor::new();
        let drawn: Vec<f64> = (0..50_000).map(|_| tremor.next(&mut random)).collect();
        let variance = drawn.iter().map(|value| value * value).sum::<f64>() / 50_000.0;
        let follows = drawn.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / 50_000.0 / variance;
        assert!((0.8..1.2).contains(&variance) && follows > 0.7, "{variance} {follows}");
    }

    #[test]
    fn more_noise_is_more_of_all() {
        for pair in Noise::ALL.windows(2) {
            assert!(pair[0].tremor() < pair[1].tremor() && pair[0].sensor() < pair[1].sensor());
            assert!(pair[0].hesitation() < pair[1].hesitation() && pair[0].stagger() < pair[1].stagger());
        }
        assert_eq!((Noise::level(0), Noise::level(3), Noise::level(4)), (Some(Noise::None), Some(Noise::Severe), None));
    }
}
