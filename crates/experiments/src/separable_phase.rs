//! `separable_vpk`: the value head and the latent transition of D_φ, trained on what the Monte-Carlo reference says of
//! training windows.
//!
//! Latents and targets are computed once, before the first step; a batch gathers its rows.

use candle_core::Tensor;
use dataset::{EpisodeSpan, FragmentIndex, Shuffled, TaskId};
use models::kernel::{Imagination, KernelConfig, Separable, SeparableConfig, Signatures, Targets};
use models::training::{Loss, Objective, Outcome, Part, TrainConfig, train};
use models::{FragmentTable, Parameters, Precision, WorldModel};
use serde::{Deserialize, Serialize};

use crate::amortizer_phase::Teacher;
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::reference::{Reference, lessons};
use crate::settings::AmortizerSettings;
use crate::trained::{Launch, Phase, Record};
use crate::windows::Windows;

/// Windows that are encoded at once.
const CHUNK: usize = 64;

/// How the separable form is trained.
#[derive(Clone, Debug, PartialEq)]
pub struct SeparableSettings {
    /// Training fragments that it learns from, besides the segments.
    pub lessons: usize,
    /// Windows in a step.
    pub batch: usize,
    /// The trainer.
    pub train: TrainConfig,
}

impl From<&AmortizerSettings> for SeparableSettings {
    /// As many lessons and steps as the amortizer has, which it stands in for.
    fn from(settings: &AmortizerSettings) -> SeparableSettings {
        SeparableSettings { lessons: settings.lessons, batch: settings.batch.0, train: settings.train }
    }
}

/// What its file of weights says about it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeparableShape {
    /// The networks.
    pub config: SeparableConfig,
    /// D_φ that it was trained on.
    pub kernel: KernelConfig,
}

/// `separable_vpk` as the trainer sees it.
struct SeparableObjective {
    separable: Separable,
    parameters: Parameters,
    /// `[lessons, d_z]`
    latents: Tensor,
    targets: Targets,
    order: Shuffled,
    batch: usize,
}

impl Objective for SeparableObjective {
    type Batch = Vec<u32>;

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn prepare(&self, step: u64, part: Part) -> models::Result<Vec<u32>> {
        let rows: Vec<u32> = self.order.batch(step).into_iter().map(|row| row.0 as u32).collect();
        Ok(rows[part.range(rows.len())].to_vec())
    }

    fn loss(&self, rows: Vec<u32>) -> models::Result<Loss> {
        let rows = Tensor::new(rows, self.latents.device())?;
        let targets = Targets {
            latents: self.targets.latents.index_select(&rows, 0)?,
            values: self.targets.values.index_select(&rows, 0)?,
        };
        let losses = self.separable.loss(&self.latents.index_select(&rows, 0)?, &targets)?;
        let terms = vec![("transition", losses.transition.detach()), ("value", losses.value.detach())];
        Ok(Loss { total: losses.total, terms })
    }

    fn work_per_step(&self) -> (f64, &'static str) {
        (self.batch as f64, "windows")
    }
}

/// Trains the separable form into a run directory, on the D_φ that `kernel` describes.
pub fn train_separable(
    prepared: &Prepared,
    settings: &SeparableSettings,
    teacher: &Teacher,
    kernel: KernelConfig,
    launch: Launch<'_>,
) -> Result<Outcome> {
    let loaded = &teacher.loaded;
    loaded.check(prepared)?;
    let scales = loaded.record.scales.clone();
    let table = prepared.table(scales.clone(), launch.device, loaded.parameters.precision(), kernel.discount)?;
    let reference = Reference::new(prepared, loaded, &table, kernel)?;
    let windows = lessons(prepared, &table, &teacher.distances.segments, settings.lessons, kernel)?;
    let (mut latents, mut expected, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for chunk in windows.chunks(CHUNK) {
        let recorded = windows.recorded(&chunk, &table)?;
        let targets = reference.targets(&recorded)?;
        latents.push(Imagination::encode_fragment(&loaded.model, &recorded)?);
        expected.push(targets.latents);
        values.push(targets.values);
    }
    let precision = Precision::F32;
    let mut parameters = Parameters::new(launch.device, precision, launch.seed);
    let config = SeparableConfig { latent: loaded.model.latent_width(), ..SeparableConfig::default() };
    let batch = settings.batch.min(windows.len());
    let objective = SeparableObjective {
        separable: Separable::new(&mut parameters.root(), config)?,
        parameters,
        latents: Tensor::cat(&latents, 0)?,
        targets: Targets { latents: Tensor::cat(&expected, 0)?, values: Tensor::cat(&values, 0)? },
        order: Shuffled::new(&rows(windows.len())?, batch, launch.seed)?,
        batch,
    };
    let record = Record {
        phase: Phase::Separable,
        model: SeparableShape { config, kernel },
        widths: table.widths(),
        scales,
        batch,
        precision,
        supervision: None,
        teacher: Some(teacher.hash.clone()),
        source: prepared.source.record(),
        split: prepared.split.clone(),
        seen: loaded.record.seen.iter().cloned().chain(prepared.contents(&prepared.split.train)).collect(),
        seed: launch.seed,
    };
    let run = launch.run;
    let options = launch.begin(&record, &settings.train)?;
    Ok(train(&objective, &settings.train, run, options)?)
}

/// V(z) and f^k(z) of windows, whose distances are the separable form's D_φ.
pub(crate) fn separable_signatures(
    separable: &Separable,
    world_model: &WorldModel,
    windows: &Windows,
    table: &FragmentTable,
    steps: usize,
) -> Result<Signatures> {
    let chunks = windows.chunks(CHUNK);
    let encoded = chunks.iter().map(|chunk| {
        let recorded = windows.recorded(chunk, table).map_err(Error::for_trainer)?;
        Imagination::encode_fragment(world_model, &recorded)
    });
    Ok(separable.signatures(encoded, steps)?)
}

/// Rows of a table as an index that samplers take: one episode of fragments of one step.
pub(crate) fn rows(count: usize) -> Result<FragmentIndex> {
    let span = EpisodeSpan { frames: 0..count, task: TaskId(0) };
    Ok(FragmentIndex::of_all(&[span], 1, 1)?)
}
