//! Trains the small models of baselines by the one trainer, without keeping anything.

use std::sync::Arc;

use models::training::distributed::Alone;
use models::training::{Objective, Options, Outcome, TrainConfig, train};
use serde_json::Value;

use super::Fragments;
use crate::error::{Error, Result};

/// Trains an objective as long as the budget says; its weights are the result.
pub(super) fn train_briefly(objective: &impl Objective, data: &Fragments<'_>, rate: f64) -> Result<()> {
    let folder = tempfile::tempdir().map_err(Error::write(&std::env::temp_dir()))?;
    let steps = data.budget.steps;
    let config = TrainConfig {
        steps,
        rate,
        warmup: steps / 10,
        log_every: steps.clamp(1, 100),
        evaluate_every: 0,
        checkpoint_every: 0,
        ..TrainConfig::default()
    };
    let options = Options {
        resume: false,
        transport: Arc::new(Alone::default()),
        progress: &mut |_| {},
        stop: data.trainings.stop,
        metadata: Value::Null,
    };
    match train(objective, &config, folder.path(), options)? {
        Outcome::Finished(_) => Ok(()),
        Outcome::Stopped(_) => Err(Error::Interrupted),
    }
}
