//! Runs that are stopped, killed or damaged, and go on.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use models::Precision;
use models::training::{Outcome, TrainConfig, load_model};

use crate::regression::{Regression, Run, config, metrics, model};

/// Tells the test below to be the process that is killed, and where to train.
const DIRECTORY: &str = "TRAINING_TEST_KILLED_IN";

fn unbroken(config: TrainConfig) -> (tempfile::TempDir, models::training::Summary) {
    let directory = tempfile::tempdir().unwrap();
    let Outcome::Finished(summary) = Run::new(config).start(directory.path()).unwrap() else { panic!("stopped") };
    (directory, summary)
}

#[test]
fn overfits_and_writes_all_files() {
    let config = TrainConfig { steps: 1500, log_every: 100, evaluate_every: 500, checkpoint_every: 400, ..config() };
    let (directory, summary) = unbroken(config);
    let lines = metrics(directory.path());
    let losses: Vec<f64> = lines.iter().filter_map(|line| line["loss"].as_f64()).collect();
    assert_eq!(losses.len(), 15);
    assert!(losses[0] > 0.5 && losses[14] < 0.1, "{losses:?}");
    assert_eq!(summary.loss, Some(losses[14]));
    let evaluated: Vec<u64> =
        lines.iter().filter(|line| line["evaluation"].is_object()).map(|line| line["step"].as_u64().unwrap()).collect();
    assert_eq!(evaluated, [500, 1000, 1500]);
    assert_eq!(lines[0]["terms"]["squared"], lines[0]["loss"]);
    let checkpoints: Vec<String> = files(&directory.path().join("checkpoints"));
    assert_eq!(checkpoints, ["step-00001200.safetensors", "step-00001500.safetensors"]);
    assert_eq!(files(&directory.path().join("events")).len(), 1);
    // The result is the weights that were trained, and loads into a new model.
    let fresh = Regression::new(Precision::F32);
    let about = load_model(&summary.model.unwrap(), models::training::Objective::parameters(&fresh)).unwrap();
    assert_eq!(about["config"]["metadata"]["seed"], 7);
    let error = models::training::Objective::evaluate(&fresh).unwrap()["squared"];
    assert_eq!(Some(error), summary.evaluation.get("squared").copied());
}

#[test]
fn a_stopped_run_goes_on_to_the_same_bytes() {
    for ema in [None, Some(0.9)] {
        for precision in [Precision::F32, Precision::Bf16] {
            let config = TrainConfig { ema, accumulation: 2, ..config() };
            let start = |resume, stop: Option<&AtomicBool>, stop_at, directory: &Path| {
                let run = Run { objective: Regression::new(precision), resume, ..Run::new(config) };
                Run { stop, stop_at, ..run }.start(directory).unwrap()
            };
            let whole = tempfile::tempdir().unwrap();
            start(false, None, u64::MAX, whole.path());
            let broken = tempfile::tempdir().unwrap();
            let mut at = 0;
            for (turn, stop_at) in [14, 28, 35].into_iter().enumerate() {
                let flag = AtomicBool::new(false);
                let Outcome::Stopped(summary) = start(turn > 0, Some(&flag), stop_at, broken.path()) else {
                    panic!("was not stopped")
                };
                assert_eq!(summary.resumed_from, Some(at).filter(|step| *step > 0));
                // The flag is seen one step after the reading, which is no multiple of anything.
                assert_eq!(summary.step, stop_at + 1);
                at = summary.step;
                assert!(summary.checkpoint.exists() && summary.model.is_none());
            }
            let Outcome::Finished(_) = start(true, None, u64::MAX, broken.path()) else { panic!("stopped") };
            assert!(model(whole.path()) == model(broken.path()), "ema {ema:?}, {precision:?}");
            assert_eq!(metrics(whole.path()), metrics(broken.path()));
            assert_eq!(files(&broken.path().join("events")).len(), 4);
        }
    }
}

#[test]
fn a_failed_evaluation_loses_no_step() {
    // With a checkpoint at the same step, without one, and at the last step of all.
    for (checkpoint_every, fails, at) in [(10, 1, 40), (0, 1, 40), (30, 0, 20), (10, 2, 60)] {
        let config = TrainConfig { checkpoint_every, ema: Some(0.9), ..config() };
        let (whole, _) = unbroken(config);
        let broken = tempfile::tempdir().unwrap();
        let mut run = Run::new(config);
        run.objective.fails = Some(fails);
        let error = run.start(broken.path()).unwrap_err().to_string();
        assert!(error.contains("the evaluation failed"), "{error}");
        let resumed = Run { resume: true, ..Run::new(config) }.start(broken.path()).unwrap();
        let Outcome::Finished(summary) = resumed else { panic!("stopped") };
        assert_eq!(summary.resumed_from, Some(at), "checkpoints every {checkpoint_every}");
        assert!(model(whole.path()) == model(broken.path()));
        assert_eq!(metrics(whole.path()), metrics(broken.path()));
    }
}

#[test]
fn the_result_with_averages_is_the_average() {
    let plain = unbroken(config()).0;
    let averaged = unbroken(TrainConfig { ema: Some(0.5), ..config() }).0;
    let (plain, averaged) = (crate::regression::weights(plain.path()), crate::regression::weights(averaged.path()));
    assert_ne!(plain["gain"], averaged["gain"]);
    // The weights move little at the end of the schedule, and a short average is near them.
    for (left, right) in plain["gain"].iter().zip(&averaged["gain"]) {
        assert!((left - right).abs() < 0.01, "{left} {right}");
    }
    // Training itself is not touched, nor is what takes no part.
    assert_eq!(plain["unused"], averaged["unused"]);
}

#[test]
fn a_finished_run_stays_as_it_is() {
    let (directory, _) = unbroken(config());
    let (before, lines) = (model(directory.path()), metrics(directory.path()));
    let Outcome::Finished(summary) = (Run { resume: true, ..Run::new(config()) }).start(directory.path()).unwrap()
    else {
        panic!("stopped")
    };
    assert_eq!(summary.resumed_from, Some(60));
    assert!(before == model(directory.path()));
    assert_eq!(lines, metrics(directory.path()));
}

#[test]
fn a_damaged_newest_checkpoint_is_skipped_with_a_warning() {
    let (whole, _) = unbroken(config());
    for damage in [cut_in_half as fn(&Path), change_a_byte] {
        let (directory, _) = unbroken(config());
        let newest = directory.path().join("checkpoints/step-00000060.safetensors");
        damage(&newest);
        let resumed = Run { resume: true, ..Run::new(config()) }.start(directory.path()).unwrap();
        let Outcome::Finished(summary) = resumed else { panic!("stopped") };
        assert_eq!(summary.resumed_from, Some(50));
        assert_eq!(summary.warnings.len(), 1);
        assert!(summary.warnings[0].contains("step-00000060"), "{:?}", summary.warnings);
        assert!(model(whole.path()) == model(directory.path()));
        assert_eq!(metrics(whole.path()), metrics(directory.path()));
    }
}

#[test]
fn a_killed_run_goes_on_to_the_same_bytes() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let mut run = Run { resume: true, ..Run::new(killed_config()) };
        run.objective.pause = Duration::from_millis(1);
        run.start(Path::new(&directory)).unwrap();
        return;
    }
    let (whole, _) = unbroken(killed_config());
    let broken = tempfile::tempdir().unwrap();
    let newest = || {
        let names = files(&broken.path().join("checkpoints"));
        names.iter().rfind(|name| name.ends_with("safetensors")).map_or(0, |name| name[5..13].parse::<u64>().unwrap())
    };
    // Milliseconds after a new checkpoint, so that kills fall into steps, checkpoints and lines alike; one before any.
    for (turn, delay) in [0, 0, 2, 5, 11, 23].into_iter().enumerate() {
        let before = newest();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "resume::a_killed_run_goes_on_to_the_same_bytes"])
            .env(DIRECTORY, broken.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while turn > 0 && newest() <= before {
            assert_eq!(child.try_wait().unwrap(), None, "it ended by itself after step {}", newest());
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(delay));
        // `kill` is SIGKILL: the process has no chance to tidy up.
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert!(!status.success(), "it finished before it was killed: {status}");
        assert!(newest() >= before, "went back from {before} to {}", newest());
    }
    let last = newest();
    let Outcome::Finished(summary) = (Run { resume: true, ..Run::new(killed_config()) }).start(broken.path()).unwrap()
    else {
        panic!("stopped")
    };
    assert_eq!(summary.resumed_from, Some(last));
    assert!(model(whole.path()) == model(broken.path()));
    assert_eq!(metrics(whole.path()), metrics(broken.path()));
}

/// Checkpoints so often that kills hit some while they are written.
fn killed_config() -> TrainConfig {
    TrainConfig { steps: 600, checkpoint_every: 3, log_every: 5, evaluate_every: 50, ema: Some(0.99), ..config() }
}

fn cut_in_half(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

fn change_a_byte(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn files(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}
