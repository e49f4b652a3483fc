//! A world model that was hardly trained, on the embedded dataset: enough to see that figures travel.

use std::sync::{Arc, OnceLock};

use dataset::{FRAGMENT_LENGTH, Overrides};
use experiments::amortizer_phase::Teacher;
use experiments::trained::Launch;
use experiments::world_model_phase::train_world_model;
use experiments::{Device, FeatureChoice, Prepared, Source, WorldModelSettings, resolve};
use models::training::distributed::Alone;
use tempfile::TempDir;

/// Features and the run, made once for all tests.
static FOLDER: OnceLock<TempDir> = OnceLock::new();

/// The embedded dataset and a world model of it.
pub(crate) fn tiny() -> (Prepared, Teacher) {
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let sets = ["train.steps=2", "train.warmup=1", "train.log_every=2", "train.evaluate_every=2", "batch=8"];
        let settings: WorldModelSettings = resolve("tiny", &sets.map(str::to_owned)).unwrap();
        let launch = Launch {
            run: &folder.path().join("run"),
            resume: false,
            preset: "tiny",
            seed: 3,
            device: &Device::Cpu,
            transport: Arc::new(Alone::default()),
            progress: &mut |_| {},
            stop: None,
        };
        train_world_model(&prepared(&folder), &settings, launch).unwrap();
        folder
    });
    (prepared(folder), Teacher::load(&folder.path().join("run"), &Device::Cpu).unwrap())
}

fn prepared(folder: &TempDir) -> Prepared {
    let choice = FeatureChoice {
        encoder: Some("pixels:2".to_owned()),
        cache: Some(folder.path().join("features")),
        ..Default::default()
    };
    let source = Source::open("embedded:libero_goal_mini", &Overrides::default(), &choice, &mut |_| {}).unwrap();
    Prepared::new(source, None, FRAGMENT_LENGTH).unwrap()
}
