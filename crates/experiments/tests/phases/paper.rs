//! All experiments of the paper, small, on the embedded dataset.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use experiments::cycle::Event;
use experiments::paper::{self, Bench, EXPERIMENTS, Experiment, PaperRun, Report};
use experiments::{Device, Error, Prepared};

use crate::prepared;

/// Runs an experiment with one seed; stops it when so many events were heard.
fn go(one: &dyn Experiment, datasets: &[Prepared], out: &Path, stop_after: Option<usize>) -> Result<Report, Error> {
    let settings = PaperRun::resolve("smoke", &[]).unwrap();
    let (stop, mut heard) = (AtomicBool::new(false), 0);
    let mut observer = |_: Event<'_>| {
        heard += 1;
        stop.store(stop_after.is_some_and(|after| heard >= after), Ordering::Relaxed);
    };
    let bench = Bench {
        settings: &settings,
        preset: "smoke",
        datasets,
        out,
        device: &Device::Cpu,
        runs_on: "cpu".to_owned(),
        command: format!("refactor-vla eval {}", one.name()),
        stop: Some(&stop),
        observer: RefCell::new(&mut observer),
    };
    paper::run(one, &bench, 1)
}

/// When each file of results was written, and what is in it.
fn files(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![out.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => waiting.push(path),
                false => drop(found.insert(path.display().to_string(), fs::read(&path).unwrap())),
            }
        }
    }
    found
}

#[test]
fn every_experiment_runs_answers_both_questions_and_is_not_run_again() {
    let datasets = [prepared()];
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("paper");
    for one in EXPERIMENTS {
        let name = one.name();
        let started = std::time::Instant::now();
        let report = go(one, &datasets, &out, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        println!("{name}: {:.1} s", started.elapsed().as_secs_f64());
        assert!(!report.rows.is_empty(), "{name}");
        for file in ["results.json", "table.md", "figure.svg"] {
            assert!(fs::metadata(out.join(name).join(file)).unwrap().len() > 100, "{name}/{file}");
        }
        let clusters = report.columns.iter().any(|(key, ..)| key == "nmi_task");
        for row in report.rows.iter().filter(|row| clusters && row.figures.contains_key("nmi_task")) {
            assert!(row.figures.contains_key("nmi_phase"), "{name}, {}: tasks without phases", row.row);
            let (low, high) = row.figures["nmi_task"].ours.interval.unwrap();
            assert!((0.0..=1.0).contains(&low) && low <= high && high <= 1.0, "{name}, {}: {low} {high}", row.row);
        }
        for (row, minus) in one.contrasts() {
            for wanted in [row, minus] {
                assert!(report.rows.iter().any(|row| row.row == *wanted), "{name} has no row `{wanted}`");
            }
        }
        // The paper's values are of rows that exist, and figures with a heading are figures that some row has.
        for (key, heading, _) in &report.columns {
            assert!(report.rows.iter().any(|row| row.figures.contains_key(key)), "{name}: no row has `{heading}`");
        }
        let before = files(&out);
        assert_eq!(go(one, &datasets, &out, None).unwrap(), report, "{name}: the second time");
        assert_eq!(before.keys().collect::<Vec<_>>(), files(&out).keys().collect::<Vec<_>>(), "{name} trained again");
    }
    // The world model without contrast is one, however many experiments need it.
    let models: Vec<_> = fs::read_dir(out.join("models/libero_goal_mini")).unwrap().flatten().collect();
    let world_models = models.iter().filter(|entry| entry.file_name().to_string_lossy().starts_with("world-model"));
    assert_eq!(world_models.count(), 7, "none, supcon and episode_contrast; states and spectral norm; two larger ones");

    // Other settings are not mistaken for these.
    let other = PaperRun::resolve("smoke", &["amortizer.train.steps=5".to_owned()]).unwrap();
    let mut silent = |_: Event<'_>| {};
    let bench = Bench {
        settings: &other,
        preset: "smoke",
        datasets: &datasets,
        out: &out,
        device: &Device::Cpu,
        runs_on: String::new(),
        command: String::new(),
        stop: None,
        observer: RefCell::new(&mut silent),
    };
    let error = paper::run(paper::experiment("windows").unwrap(), &bench, 1).unwrap_err().to_string();
    assert!(error.contains("contains a run with other settings") && error.contains("steps"), "{error}");
}

#[test]
fn an_experiment_that_was_stopped_anywhere_ends_as_one_that_was_not() {
    let datasets = [prepared()];
    let folder = tempfile::tempdir().unwrap();
    let one = paper::experiment("windows").unwrap();
    let whole = go(one, &datasets, &folder.path().join("whole"), None).unwrap();
    let (broken, mut tries) = (folder.path().join("broken"), 0);
    let found = loop {
        match go(one, &datasets, &broken, Some(1 + tries)) {
            Ok(report) => break report,
            Err(Error::Interrupted) => tries += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(tries < 60, "it never ends");
    };
    assert!(tries > 2, "{tries}");
    assert_eq!(found, whole);
}
