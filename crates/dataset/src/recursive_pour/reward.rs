//! The unit of rewards, which the paper leaves open.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::demos::Demo;
use super::{Depth, MAX_DEPTH};

/// The litres that the reward of a step is divided by. Returns lie in [0, 1] either way.
///
/// | scale | litres in one unit | the same pour into the bowl |
/// |---|---|---|
/// | `depth` | d, what the cups of the episode hold | earns 1/d: an error of η at depth d is d·η litres |
/// | `fixed` | 4, what four cups hold | earns the same at every depth: an error of η is 4·η litres |
///
/// The scale changes the unit of η, so values of η in different scales must not be compared: compare them in litres.
/// It also changes what a model has to learn, because with `fixed` the reward is one law for all depths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewardScale {
    /// The litres that the cups of the episode can hold, which is the depth.
    #[default]
    Depth,
    /// The litres that [`MAX_DEPTH`] cups can hold, at every depth.
    Fixed,
}

impl RewardScale {
    /// All scales, the default first.
    pub const ALL: [RewardScale; 2] = [RewardScale::Depth, RewardScale::Fixed];

    /// Its name in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            RewardScale::Depth => "depth",
            RewardScale::Fixed => "fixed",
        }
    }

    /// The litres of one unit of reward in an episode of this depth.
    pub fn litres(self, depth: Depth) -> f32 {
        match self {
            RewardScale::Depth => depth.cups() as f32,
            RewardScale::Fixed => MAX_DEPTH as f32,
        }
    }

    /// A reward or return of [`EnvState`](super::EnvState), which is in the scale `depth`, in this scale.
    pub fn convert(self, depth: Depth, reward: f32) -> f32 {
        // The factor of `depth` is exactly 1, so that the default changes no bit.
        reward * (RewardScale::Depth.litres(depth) / self.litres(depth))
    }
}

impl FromStr for RewardScale {
    type Err = String;

    fn from_str(text: &str) -> Result<RewardScale, String> {
        let names = || RewardScale::ALL.map(|scale| format!("`{}`", scale.name())).join(", ");
        let found = RewardScale::ALL.into_iter().find(|scale| scale.name() == text);
        found.ok_or_else(|| format!("`{text}` is not a reward scale; choose one of {}", names()))
    }
}

impl Demo {
    /// The demonstration with its rewards in another scale. It must be as [`Demo::record`] gives it.
    #[must_use]
    pub fn in_scale(mut self, scale: RewardScale) -> Demo {
        let depth = self.depth;
        self.rewards.iter_mut().for_each(|reward| *reward = scale.convert(depth, *reward));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recursive_pour::{SEED_TRAIN, demos};

    #[test]
    fn the_default_scale_changes_no_bit_and_the_fixed_one_measures_the_same_litres() {
        for demo in demos(3, SEED_TRAIN) {
            assert_eq!(demo.clone().in_scale(RewardScale::default()), demo);
            let fixed = demo.clone().in_scale(RewardScale::Fixed);
            let litres = |demo: &Demo, scale: RewardScale| demo.total_return() * scale.litres(demo.depth);
            let (one, other) = (litres(&demo, RewardScale::Depth), litres(&fixed, RewardScale::Fixed));
            assert!((one - other).abs() < 1e-5, "{one} {other}");
            assert!((0.0..=1.0).contains(&fixed.total_return()));
            assert_eq!(fixed.total_return() < demo.total_return(), demo.depth.cups() < MAX_DEPTH);
        }
    }

    #[test]
    fn scales_are_known_by_their_names() {
        for scale in RewardScale::ALL {
            assert_eq!(scale.name().parse(), Ok(scale));
            assert_eq!(serde_json::to_string(&scale).unwrap(), format!("\"{}\"", scale.name()));
        }
        let error = "litres".parse::<RewardScale>().unwrap_err();
        assert_eq!(error, "`litres` is not a reward scale; choose one of `depth`, `fixed`");
    }
}
