//! The settings of a run that are the same for all phases.

use serde::{Deserialize, Serialize};

use super::adamw::AdamWConfig;
use crate::error::{Error, Result};

/// How long, how fast, and how often what is written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainConfig {
    /// Steps of the optimizer.
    pub steps: u64,
    /// The highest rate.
    pub rate: f64,
    /// Steps of the line up to the highest rate.
    pub warmup: u64,
    /// Where the cosine ends, as a fraction of the highest rate.
    pub final_rate: f64,
    /// Into how many micro-batches a process cuts its share of the global batch.
    pub accumulation: usize,
    /// The optimizer's constants.
    pub adamw: AdamWConfig,
    /// The decay of an exponential mean of the weights, which then is the result; none without it.
    pub ema: Option<f64>,
    /// Steps between readings of the loss, each of which waits for the device.
    pub log_every: u64,
    /// Steps between evaluations; 0 is never.
    pub evaluate_every: u64,
    /// Steps between checkpoints; 0 is at the end alone.
    pub checkpoint_every: u64,
    /// How many checkpoints are kept.
    pub keep_checkpoints: usize,
    /// Training stops once the loss was above this many times its running median for `divergence_patience` steps in a
    /// row; 0 switches that off. What is not finite always stops it.
    pub divergence: f64,
    /// See `divergence`.
    pub divergence_patience: u64,
}

impl Default for TrainConfig {
    fn default() -> Self {
        TrainConfig {
            steps: 4000,
            rate: 3e-4,
            warmup: 200,
            final_rate: 0.1,
            accumulation: 1,
            adamw: AdamWConfig::default(),
            ema: None,
            log_every: 20,
            evaluate_every: 400,
            checkpoint_every: 400,
            keep_checkpoints: 2,
            divergence: 10.0,
            divergence_patience: 200,
        }
    }
}

impl TrainConfig {
    /// All that is wrong, at once.
    pub fn validate(&self) -> Result<()> {
        let AdamWConfig { beta_1, beta_2, epsilon, weight_decay, clip, .. } = self.adamw;
        let positive = |value: f64| value.is_finite() && value > 0.0;
        let within = |value: f64| (0.0..1.0).contains(&value);
        let rules = [
            (self.steps > 0, format!("`steps` is {}, wanted at least 1", self.steps)),
            (positive(self.rate), format!("`rate` is {}, wanted a positive number", self.rate)),
            (
                self.warmup <= self.steps,
                format!("`warmup` is {}, wanted no more than `steps`, {}", self.warmup, self.steps),
            ),
            (
                (0.0..=1.0).contains(&self.final_rate),
                format!("`final_rate` is {}, wanted a fraction of `rate` from 0 to 1", self.final_rate),
            ),
            (self.accumulation > 0, "`accumulation` is 0, wanted at least 1".to_owned()),
            (within(beta_1), format!("`adamw.beta_1` is {beta_1}, wanted 0 ≤ β₁ < 1")),
            (within(beta_2), format!("`adamw.beta_2` is {beta_2}, wanted 0 ≤ β₂ < 1")),
            (positive(epsilon), format!("`adamw.epsilon` is {epsilon}, wanted a positive number")),
            (
                weight_decay.is_finite() && weight_decay >= 0.0,
                format!("`adamw.weight_decay` is {weight_decay}, wanted 0 or more"),
            ),
            (positive(clip), format!("`adamw.clip` is {clip}, wanted a positive number")),
            (
                self.ema.is_none_or(within),
                format!("`ema` is {}, wanted a decay 0 ≤ d < 1, or none", self.ema.unwrap_or_default()),
            ),
            (self.log_every > 0, "`log_every` is 0, wanted at least 1".to_owned()),
            (self.keep_checkpoints > 0, "`keep_checkpoints` is 0, wanted at least 1".to_owned()),
            (
                self.divergence == 0.0 || (self.divergence.is_finite() && self.divergence > 1.0),
                format!("`divergence` is {}, wanted more than 1, or 0 to switch it off", self.divergence),
            ),
            (self.divergence_patience > 0, "`divergence_patience` is 0, wanted at least 1".to_owned()),
        ];
        let wrong: Vec<String> = rules.into_iter().filter(|(holds, _)| !holds).map(|(_, reason)| reason).collect();
        if wrong.is_empty() { Ok(()) } else { Err(Error::Config(wrong.join("; "))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid_and_every_violation_is_listed() {
        assert!(TrainConfig::default().validate().is_ok());
        let broken = TrainConfig {
            steps: 0,
            rate: f64::NAN,
            accumulation: 0,
            ema: Some(1.0),
            divergence: 0.5,
            ..TrainConfig::default()
        };
        let message = broken.validate().unwrap_err().to_string();
        for name in ["steps", "rate", "warmup", "accumulation", "ema", "divergence"] {
            assert!(message.contains(&format!("`{name}`")), "{name} in {message}");
        }
        assert!(!message.contains("final_rate"), "{message}");
    }

    #[test]
    fn unknown_settings_are_refused() {
        assert!(toml::from_str::<TrainConfig>("steps = 10").is_ok());
        assert!(toml::from_str::<TrainConfig>("step = 10").is_err());
    }
}
