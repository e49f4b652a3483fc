//! A policy head that the program does not have is one file: this one.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use experiments::cycle::wake::{Before, Head, HeldOutPrograms, Measure, TrainedHead, WakeData};
use experiments::cycle::{Event, Extensions, RunOptions, run};
use experiments::trained::Launch;
use experiments::{Device, Result};
use models::training::distributed::Alone;

use crate::cycle::settings;
use crate::prepared;

/// Predicts how many frames are left in an episode: the mean over the training episodes.
struct Remaining;

struct TrainedRemaining {
    mean: f64,
}

impl Head for Remaining {
    fn name(&self) -> &'static str {
        "remaining"
    }

    fn train(&self, data: &WakeData<'_>, launch: Launch<'_>, _: Option<&Before<'_>>) -> Result<Box<dyn TrainedHead>> {
        fs::create_dir_all(launch.run).unwrap();
        let lengths = lengths(data, false);
        let mean = lengths.values().sum::<f64>() / lengths.len() as f64 / 2.0;
        fs::write(launch.run.join("mean.txt"), mean.to_string()).unwrap();
        Ok(Box::new(TrainedRemaining { mean }))
    }
}

impl TrainedHead for TrainedRemaining {
    fn measures(&self, data: &WakeData<'_>, held_out: &HeldOutPrograms) -> Result<Vec<Measure>> {
        let ends = lengths(data, true);
        let error = |frame: &usize| {
            let (first, length) = ends.range(..=*frame).next_back().unwrap();
            (*length - (*frame - *first) as f64 - self.mean).abs()
        };
        let mean = held_out.judged.iter().map(error).sum::<f64>() / held_out.judged.len() as f64;
        Ok(vec![Measure::lower("remaining", "absolute error", mean, "in frames")])
    }
}

/// The lengths of training or held-out episodes by their first frame.
fn lengths(data: &WakeData<'_>, held_out: bool) -> BTreeMap<usize, f64> {
    let split = &data.prepared.split;
    let episodes = if held_out { &split.held_out } else { &split.train };
    let spans = data.prepared.source.dataset.spans();
    episodes.iter().map(|one| &spans[one.at()].frames).map(|frames| (frames.start, frames.len() as f64)).collect()
}

#[test]
fn a_head_is_one_file() {
    let prepared = prepared();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let mut settings = settings();
    settings.cycle.iterations = 1;
    let options = RunOptions {
        out: &out,
        resume: false,
        preset: "tiny",
        seed: 5,
        device: &Device::Cpu,
        transport: Arc::new(Alone::default()),
        stop: None,
        observer: &mut |_: Event<'_>| {},
        runs_on: "cpu".to_owned(),
        command: "refactor-vla run".to_owned(),
        extensions: Extensions { heads: vec![&Remaining] },
    };
    let summary = run(&prepared, &settings, options).unwrap().unwrap();
    for arm in &summary.arms {
        let own = arm.measures.iter().find(|one| one.group == "remaining").unwrap();
        assert!(own.value > 0.0 && own.value < 100.0, "{own:?}");
    }
    assert!(out.join("with/remaining/mean.txt").is_file());
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("absolute error"), "its figure is in the report");
}
