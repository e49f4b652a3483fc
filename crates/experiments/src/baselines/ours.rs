//! Ours: the kernel D_φ of a world model, on fragments and on segments.
//!
//! M_φ is trained first, as the preset says but as long as the budget says; it is the same for all choices of one seed. k_χ
//! then learns D_φ between training windows (`supervision = "kernel"`), without labels. Fragments are clustered by k_χ as all
//! vectors are; segments are the change points of [`skills::segment()`], and their classes are those of the loop
//! ([`crate::cycle::classes`]).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::Device;
use models::amortizer::Supervision;
use models::kernel::KernelForm;
use models::training::checkpoint::{self, MODEL};
use models::training::distributed::Alone;
use models::training::{Outcome, Progress, TrainConfig};
use models::world_model::ContrastMode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::segment_actions::of_demonstrations;
use super::{Budget, Found, Fragments, Operator, Trainings, setting};
use crate::amortizer_phase::{Teacher, train_amortizer};
use crate::cycle::classes::{ClassSettings, Classes};
use crate::cycle::demonstrations::Demonstrations;
use crate::cycle::segment_kernel::SegmentKernel;
use crate::embeddings::amortized;
use crate::error::{Error, Result};
use crate::reference::DistanceSettings;
use crate::trained::{Launch, load_amortizer};
use crate::world_model_phase::train_world_model;

/// D_φ's classes.
pub struct Ours {
    of_segments: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    /// k of D_φ: how many steps are imagined.
    horizon: usize,
    /// The highest rate of k_χ's training.
    rate: f64,
}

impl Ours {
    /// KMeans on k_χ of fragments.
    pub fn fragments() -> Ours {
        Ours { of_segments: false }
    }

    /// The loop's classes of segments.
    pub fn segments() -> Ours {
        Ours { of_segments: true }
    }

    /// Trains what is not trained yet. Gives the teacher and the directory of k_χ.
    fn trained(
        &self,
        data: &Fragments<'_>,
        setting: &Setting,
        seed: u64,
        device: &Device,
    ) -> Result<(Teacher, PathBuf)> {
        let (trainings, steps) = (&data.trainings, data.budget.steps);
        let world_model = trainings.folder.join(format!("world_model-{seed}"));
        let student = trainings.folder.join(format!("amortizer-{seed}-{}-{}", setting.horizon, setting.rate));
        let mut silent = |_: &Progress| {};
        if !world_model.join(MODEL).is_file() {
            let mut settings = trainings.world_model.clone();
            // No labels: contrast by `task_index` would be one.
            if settings.model.contrast == ContrastMode::Supcon {
                settings.model.contrast = ContrastMode::None;
            }
            settings.train = lasting(&settings.train, steps);
            finished(train_world_model(
                data.prepared,
                &settings,
                launch(data, &world_model, seed, device, &mut silent),
            )?)?;
            checkpoint::prune(&world_model, 0)?;
        }
        let teacher = Teacher::load(&world_model, device)?.with_distances(self.distances(data, setting));
        if !student.join(MODEL).is_file() {
            let mut settings = trainings.amortizer.clone();
            settings.supervision = Supervision::Kernel;
            settings.lessons = data.budget.fragments.min(data.prepared.training.len()).max(2);
            settings.train = TrainConfig { rate: setting.rate, ..lasting(&settings.train, steps) };
            finished(train_amortizer(
                data.prepared,
                &settings,
                Some(&teacher),
                launch(data, &student, seed, device, &mut silent),
            )?)?;
            checkpoint::prune(&student, 0)?;
        }
        Ok((teacher, student))
    }

    fn distances(&self, data: &Fragments<'_>, setting: &Setting) -> DistanceSettings {
        let cycle = &data.trainings.cycle;
        let classes = ClassSettings {
            horizon: setting.horizon,
            kernel: KernelForm::Amortized,
            classes: data.clusters,
            ..cycle.classes.clone()
        };
        DistanceSettings { segments: cycle.segments.clone(), classes }
    }
}

impl Operator for Ours {
    fn name(&self) -> &'static str {
        if self.of_segments { "ours_segments" } else { "ours_fragments" }
    }

    fn source(&self) -> &'static str {
        match self.of_segments {
            false => "k_χ that has learned D_φ of a world model, without labels; KMeans on fragments",
            true => "the loop's classes of segments under D_φ, by the same k_χ; KMeans on segments",
        }
    }

    fn choices(&self, _budget: &Budget) -> Vec<Value> {
        [(16, 1e-3), (16, 3e-3), (8, 1e-3), (8, 3e-3)]
            .map(|(horizon, rate)| json!({ "horizon": horizon, "rate": rate }))
            .to_vec()
    }

    fn missing(&self, data: &Fragments<'_>) -> Option<String> {
        (data.table.widths().features == 0).then(|| "visual features, which the world model needs".to_owned())
    }

    fn labels(&self, data: &Fragments<'_>, choice: &Value, seed: u64, device: &Device) -> Result<Found> {
        let setting: Setting = setting(self.name(), choice)?;
        let (teacher, student) = self.trained(data, &setting, seed, device)?;
        let loaded = load_amortizer(&student, device)?;
        let scales = loaded.record.scales.clone();
        let discount = teacher.loaded.record.model.discount;
        let table = data.prepared.table(scales, device, loaded.parameters.precision(), discount)?;
        if !self.of_segments {
            let vectors = amortized(&loaded.model, &table, &data.all_starts(), data.length)?;
            return data.found_by_clustering(&vectors, seed);
        }
        let DistanceSettings { segments, classes } = self.distances(data, &setting);
        let demonstrations = Demonstrations::new(data.prepared, &segments)?;
        let kernel = SegmentKernel::Amortized(Box::new(loaded));
        let found = Classes::new(data.prepared, &demonstrations, &teacher, &table, &classes, &kernel, seed)?;
        Ok(of_demonstrations(data, &demonstrations, &found.labels))
    }
}

fn launch<'a>(
    data: &'a Fragments<'_>,
    run: &'a Path,
    seed: u64,
    device: &'a Device,
    progress: &'a mut dyn FnMut(&Progress),
) -> Launch<'a> {
    let Trainings { preset, stop, .. } = &data.trainings;
    Launch { run, resume: true, preset, seed, device, transport: Arc::new(Alone::default()), progress, stop: *stop }
}

fn finished(outcome: Outcome) -> Result<()> {
    match outcome {
        Outcome::Finished(_) => Ok(()),
        Outcome::Stopped(_) => Err(Error::Interrupted),
    }
}

/// The same training over another number of steps, without evaluations, which cost time and change nothing.
fn lasting(train: &TrainConfig, steps: u64) -> TrainConfig {
    TrainConfig { steps, warmup: steps / 10, evaluate_every: 0, ..*train }
}
