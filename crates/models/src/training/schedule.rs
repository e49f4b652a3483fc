//! The rate of each step: a line up, then half a cosine down.
//!
//! With `s` counted from one: rate·s/warmup up to `s = warmup`, then rate·(f + (1 − f)·(1 + cos πt)/2) with
//! t = (s − warmup)/(steps − warmup), which ends at rate·f in the last step.

use super::config::TrainConfig;

/// The rate of a step that is counted from one.
pub fn rate(config: &TrainConfig, step: u64) -> f64 {
    let TrainConfig { steps, rate, warmup, final_rate, .. } = *config;
    if step < warmup {
        return rate * step as f64 / warmup as f64;
    }
    let done = (step.min(steps) - warmup.min(steps)) as f64 / (steps - warmup.min(steps)).max(1) as f64;
    rate * (final_rate + (1.0 - final_rate) * 0.5 * (1.0 + (std::f64::consts::PI * done).cos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_in_a_line_and_falls_in_a_cosine() {
        let config = TrainConfig { steps: 1000, rate: 2.0, warmup: 100, final_rate: 0.1, ..TrainConfig::default() };
        let near = |step, wanted: f64| assert!((rate(&config, step) - wanted).abs() < 1e-12, "step {step}");
        near(1, 0.02);
        near(50, 1.0);
        near(100, 2.0);
        near(550, 2.0 * (0.1 + 0.9 * 0.5));
        near(325, 2.0 * (0.1 + 0.9 * 0.5 * (1.0 + std::f64::consts::FRAC_1_SQRT_2)));
        near(1000, 0.2);
    }

    #[test]
    fn no_warm_up_starts_near_the_top() {
        let config = TrainConfig { steps: 10, rate: 1.0, warmup: 0, final_rate: 0.0, ..TrainConfig::default() };
        assert!((rate(&config, 1) - 0.5 * (1.0 + (0.1 * std::f64::consts::PI).cos())).abs() < 1e-12);
        assert!(rate(&config, 10).abs() < 1e-12);
    }
}
