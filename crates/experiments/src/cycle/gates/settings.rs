//! The settings of the gates.

use serde::{Deserialize, Serialize};

/// What a candidate must pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GateSettings {
    /// Whether merged motions must be near each other.
    pub soundness: bool,
    /// ε_t, as a quantile of D_φ over pairs of training segments; 0 takes the share of pairs that are of one class.
    pub soundness_quantile: f64,
    /// Whether returns must be preserved.
    pub returns: bool,
    /// ε, as a share of the largest return (paper: 0.05).
    pub return_margin: f64,
    /// ε is also at most this share of the change that standing still at the same calls makes; 0 switches this limit off.
    pub control_share: f64,
    /// α, the chance of one or more false admissions among all candidates of an iteration (paper: 0.05 for each candidate).
    pub level: f64,
    /// Whether α is divided by the number of candidates that an iteration may judge (Bonferroni).
    pub correct_level: bool,
    /// A candidate with fewer calls is rejected by the return gate, because its returns cannot be judged; at least 2.
    pub min_calls: usize,
    /// K_v, rollouts of each candidate (paper: 32). Candidates with fewer calls roll each of them out several times.
    pub rollouts: usize,
    /// The longest rollout, in steps; longer motions are cut there.
    pub rollout_steps: usize,
    /// Whether the description length must drop.
    pub length: bool,
    /// By more than this many nats (paper: 4).
    pub min_gain: f64,
}

impl Default for GateSettings {
    fn default() -> Self {
        GateSettings {
            soundness: true,
            soundness_quantile: 0.0,
            returns: true,
            return_margin: 0.05,
            control_share: 0.5,
            level: 0.05,
            correct_level: true,
            min_calls: 3,
            rollouts: 32,
            rollout_steps: 64,
            length: true,
            min_gain: 4.0,
        }
    }
}

impl GateSettings {
    /// Every violation, as a sentence.
    pub fn problems(&self) -> Vec<String> {
        let GateSettings { soundness_quantile: quantile, return_margin, control_share, level, .. } = *self;
        let GateSettings { min_calls, rollouts, rollout_steps, .. } = *self;
        [
            (!(0.0..=1.0).contains(&quantile), format!("`gates.soundness_quantile` is {quantile}, wanted 0 to 1")),
            (!(0.0..=1.0).contains(&control_share), format!("`gates.control_share` is {control_share}, wanted 0 to 1")),
            (
                return_margin.is_nan() || return_margin <= 0.0,
                format!("`gates.return_margin` is {return_margin}, wanted more than 0"),
            ),
            (!(level > 0.0 && level < 0.5), format!("`gates.level` is {level}, wanted between 0 and 0.5")),
            (min_calls < 2, format!("`gates.min_calls` is {min_calls}, wanted 2 or more")),
            (
                rollouts < min_calls.max(2),
                format!("`gates.rollouts` is {rollouts}, wanted `gates.min_calls` ({min_calls}) or more"),
            ),
            (rollout_steps == 0, "`gates.rollout_steps` is 0, wanted 1 or more".to_owned()),
        ]
        .into_iter()
        .filter_map(|(is_wrong, reason)| is_wrong.then_some(reason))
        .collect()
    }
}
