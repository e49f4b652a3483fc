//! Runs that must not go on, and what they say.

use std::fs;

use models::training::TrainConfig;
use models::{Error, Result};
use serde_json::json;

use crate::regression::{Run, config};

fn message<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => panic!("it went on"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_is_not_a_number_stops_with_the_last_good_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let mut run = Run::new(config());
    // Counted from zero: it is the 33rd step, read with the 35th.
    run.objective.poisoned = Some(32);
    let error = run.start(directory.path()).unwrap_err();
    assert!(matches!(error, Error::Diverged { step: 33, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("term `drift` is NaN") && text.contains("step-00000030.safetensors"), "{text}");
    let good = directory.path().join("checkpoints/step-00000030.safetensors");
    let tensors = candle_core::safetensors::load(&good, &candle_core::Device::Cpu).unwrap();
    for (name, tensor) in tensors.iter().filter(|(name, _)| *name != "checksum") {
        let values = tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert!(values.iter().all(|value| value.is_finite()), "{name}");
    }
    // The poison is not in the objective any more: the run goes on and ends.
    assert!(Run { resume: true, ..Run::new(config()) }.start(directory.path()).is_ok());
}

#[test]
fn a_detached_weight_fails_on_the_first_step_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let mut run = Run::new(config());
    run.objective.detached = true;
    let text = message(run.start(directory.path()));
    assert!(text.contains("`second.weight` has no gradient"), "{text}");
    assert!(!text.contains("`second.bias`") && !text.contains("`unused`"), "{text}");
    assert!(!directory.path().join("checkpoints").join("step-00000010.safetensors").exists());
}

#[test]
fn frozen_weights_are_those_without_a_gradient() {
    for (frozen, complaint) in [
        (vec![], "`unused` has no gradient"),
        (vec!["unused", "gain"], "`gain` has a gradient but is declared as frozen"),
        (vec!["unused", "gone"], "`gone` is declared as frozen but is not a weight"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let mut run = Run::new(config());
        run.objective.frozen = frozen;
        let text = message(run.start(directory.path()));
        assert!(text.contains(complaint), "{complaint} in {text}");
    }
}

#[test]
fn no_checkpoint_before_the_failure_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let mut run = Run::new(config());
    run.objective.poisoned = Some(3);
    let text = message(run.start(directory.path()));
    assert!(text.contains("stopped at step 4") && text.contains("no checkpoint before it"), "{text}");
}

#[test]
fn a_loss_that_stays_high_stops() {
    let directory = tempfile::tempdir().unwrap();
    let config = TrainConfig { steps: 400, divergence: 5.0, divergence_patience: 30, ..config() };
    let mut run = Run::new(config);
    run.objective.blown_up = Some((150, 1e4));
    let error = run.start(directory.path()).unwrap_err();
    assert!(matches!(error, Error::Diverged { step: 180, .. }), "{error}");
    assert!(error.to_string().contains("running median"), "{error}");
    // The switch is off at zero.
    let off = tempfile::tempdir().unwrap();
    let mut run = Run::new(TrainConfig { divergence: 0.0, ..config });
    run.objective.blown_up = Some((150, 1e4));
    assert!(run.start(off.path()).is_ok());
}

#[test]
fn a_directory_with_checkpoints_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    Run::new(config()).start(directory.path()).unwrap();
    let text = message(Run::new(config()).start(directory.path()));
    assert!(text.contains("checkpoints up to step 60") && text.contains("--resume"), "{text}");
}

#[test]
fn other_settings_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    Run::new(config()).start(directory.path()).unwrap();
    let other = TrainConfig { rate: 0.5, steps: 70, ..config() };
    let run = Run { resume: true, metadata: json!({ "seed": 8 }), ..Run::new(other) };
    let text = message(run.start(directory.path()));
    for difference in ["`train.rate` was 0.01, is 0.5", "`train.steps` was 60, is 70", "`metadata.seed` was 7, is 8"] {
        assert!(text.contains(difference), "{difference} in {text}");
    }
    assert!(!text.contains("warmup"), "{text}");
}

#[test]
fn no_whole_checkpoint_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    Run::new(config()).start(directory.path()).unwrap();
    for entry in fs::read_dir(directory.path().join("checkpoints")).unwrap() {
        fs::write(entry.unwrap().path(), b"nothing").unwrap();
    }
    let text = message(Run { resume: true, ..Run::new(config()) }.start(directory.path()));
    assert!(text.contains("no checkpoint of") && text.contains("remove them"), "{text}");
}

#[test]
fn two_processes_do_not_write_into_one_directory() {
    let directory = tempfile::tempdir().unwrap();
    let held = fs::File::create(directory.path().join("lock")).unwrap();
    held.try_lock().unwrap();
    let text = message(Run::new(config()).start(directory.path()));
    assert!(text.contains("another process trains"), "{text}");
    drop(held);
    assert!(Run::new(config()).start(directory.path()).is_ok());
}
