//! What the loss has been, and whether training has gone wrong.
//!
//! Each step leaves scalars on the device. They are read together, because reading waits for the device; what was read
//! but not reported yet is part of a checkpoint, so that a resumed run reports the same means.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::config::TrainConfig;

/// Losses whose median is the measure of the next ones.
const REMEMBERED: usize = 256;

/// Losses before which no median is trusted.
const FEWEST: usize = 64;

/// The scalars of one step: the loss, the norm of the gradients, then the terms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Reading {
    pub(super) step: u64,
    pub(super) values: Vec<f64>,
}

/// Where the loss is among the values.
pub(super) const LOSS: usize = 0;
/// Where the gradients' norm is.
pub(super) const NORM: usize = 1;
/// Where the terms start.
pub(super) const TERMS: usize = 2;

/// What is remembered of the steps so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Monitor {
    unreported: Vec<Reading>,
    losses: VecDeque<f64>,
    high_since: Option<u64>,
}

impl Monitor {
    /// Takes a reading. Returns why training should stop, if it should.
    pub(super) fn take(&mut self, reading: Reading, names: &[&str], config: &TrainConfig) -> Option<String> {
        let Reading { step, values } = &reading;
        let bad = |index: usize| values.get(index).is_some_and(|value| !value.is_finite());
        // A term says more than the sum of all.
        let culprit =
            (TERMS..values.len()).find(|index| bad(*index)).or_else(|| [LOSS, NORM].into_iter().find(|i| bad(*i)));
        if let Some(index) = culprit {
            let name = match index {
                LOSS => "the loss".to_owned(),
                NORM => "the norm of the gradients".to_owned(),
                term => format!("the loss's term `{}`", names.get(term - TERMS).unwrap_or(&"?")),
            };
            return Some(format!("{name} is {}", values[index]));
        }
        let loss = values[LOSS];
        let reason = self.judge(*step, loss, config);
        self.unreported.push(reading);
        reason
    }

    /// The means over the steps since the last call.
    pub(super) fn report(&mut self) -> Vec<f64> {
        let readings = std::mem::take(&mut self.unreported);
        let width = readings.first().map_or(TERMS, |reading| reading.values.len());
        let mean = |index: usize| {
            let sum: f64 = readings.iter().filter_map(|reading| reading.values.get(index)).sum();
            sum / readings.len().max(1) as f64
        };
        (0..width).map(mean).collect()
    }

    fn judge(&mut self, step: u64, loss: f64, config: &TrainConfig) -> Option<String> {
        let median = self.median();
        // For a loss below zero, as far above its median as the factor says for one above zero.
        let limit = median.map(|median| median + (config.divergence - 1.0) * median.abs());
        match limit.filter(|limit| config.divergence > 0.0 && loss > *limit) {
            None => {
                self.high_since = None;
                self.losses.push_back(loss);
                if self.losses.len() > REMEMBERED {
                    self.losses.pop_front();
                }
                None
            }
            // What is too high is not remembered: a median that follows it would never object.
            Some(limit) => {
                let since = *self.high_since.get_or_insert(step);
                (step + 1 - since >= config.divergence_patience).then(|| {
                    format!(
                        "the loss is {loss:.4}, and has been above {limit:.4}, {} times its running \
                         median, since step {since}",
                        config.divergence
                    )
                })
            }
        }
    }

    fn median(&self) -> Option<f64> {
        if self.losses.len() < FEWEST {
            return None;
        }
        let mut sorted: Vec<f64> = self.losses.iter().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        Some(sorted[sorted.len() / 2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(step: u64, loss: f64) -> Reading {
        Reading { step, values: vec![loss, 1.0, loss] }
    }

    fn run(losses: impl Iterator<Item = f64>) -> Option<(u64, String)> {
        let config = TrainConfig { divergence: 10.0, divergence_patience: 20, ..TrainConfig::default() };
        let mut monitor = Monitor::default();
        (1..).zip(losses).find_map(|(step, loss)| Some(step).zip(monitor.take(reading(step, loss), &["flow"], &config)))
    }

    #[test]
    fn a_loss_that_stays_high_stops_and_a_spike_does_not() {
        let spiky = (0..500).map(|step| if step % 50 < 19 && step > 100 { 11.0 } else { 1.0 });
        assert_eq!(run(spiky), None);
        let (step, reason) = run((0..500).map(|step| if step < 100 { 1.0 } else { 11.0 })).unwrap();
        assert_eq!(step, 120);
        assert!(reason.contains("since step 101"), "{reason}");
        // Below zero, ten times the median is lower, not higher.
        assert_eq!(run((0..500).map(|step| -1.0 - f64::from(step))), None);
        assert!(run((0..500).map(|step| if step < 100 { -1.0 } else { 9.0 })).is_some());
    }

    #[test]
    fn the_term_that_is_not_finite_is_named() {
        let mut monitor = Monitor::default();
        let values = vec![f64::NAN, f64::NAN, 1.0, f64::INFINITY];
        let reason = monitor.take(Reading { step: 3, values }, &["flow", "drift"], &TrainConfig::default());
        assert_eq!(reason.unwrap(), "the loss's term `drift` is inf");
        let reason = monitor.take(Reading { step: 3, values: vec![1.0, f64::NAN] }, &[], &TrainConfig::default());
        assert_eq!(reason.unwrap(), "the norm of the gradients is NaN");
    }

    #[test]
    fn means_go_over_what_was_not_reported() {
        let mut monitor = Monitor::default();
        for (step, loss) in [(1, 2.0), (2, 4.0)] {
            assert_eq!(monitor.take(reading(step, loss), &["flow"], &TrainConfig::default()), None);
        }
        assert_eq!(monitor.report(), [3.0, 1.0, 3.0]);
        assert_eq!(monitor.take(reading(3, 8.0), &["flow"], &TrainConfig::default()), None);
        assert_eq!(monitor.report(), [8.0, 1.0, 8.0]);
    }
}
