//! Phase C: k_χ on the training fragments of a dataset, taught by labels, by a world model or by episodes.
//!
//! With distillation z_T of all training fragments is computed once, before the first step; a batch gathers its rows.

use std::collections::BTreeMap;
use std::path::Path;

use candle_core::{Device, Tensor};
use dataset::{FragmentId, FragmentIndex};
use models::amortizer::{Amortizer, AmortizerConfig, Target, loss};
use models::training::{Loss, Objective, Outcome, Part, train};
use models::{FragmentTable, Parameters, Scales, WorldModel, WorldModelConfig};

use crate::batches::{Batches, Order};
use crate::embeddings::{amortized, latents};
use crate::error::{Error, Result};
use crate::prepared::{HeldOut, Prepared, starts};
use crate::run::{Launch, Loaded, Phase, Record, load_world_model, weights_hash};
use crate::scores::quick_nmi;
use crate::settings::{AmortizerSettings, Mode};

/// A world model that teaches, and how it is known.
pub struct Teacher {
    /// The model.
    pub loaded: Loaded<WorldModel, WorldModelConfig>,
    /// The hash of its weights.
    pub hash: String,
}

impl Teacher {
    /// The world model of a finished run, by its directory.
    pub fn load(run: &Path, device: &Device) -> Result<Teacher> {
        Ok(Teacher { loaded: load_world_model(run, device)?, hash: weights_hash(run, Phase::WorldModel)? })
    }
}

/// k_χ as the trainer sees it.
pub struct AmortizerObjective<'a> {
    model: Amortizer,
    parameters: Parameters,
    table: FragmentTable,
    index: FragmentIndex,
    batches: Batches,
    taught: Taught,
    held_out: &'a HeldOut,
}

enum Taught {
    Labels,
    /// z_T of each training fragment, `[fragments, embedding]`.
    Latents(Tensor),
    Pairs,
}

impl<'a> AmortizerObjective<'a> {
    /// A new model; distillation wants a teacher, the other modes refuse one.
    pub fn new(
        prepared: &'a Prepared,
        settings: &AmortizerSettings,
        teacher: Option<&Teacher>,
        seed: u64,
        device: &Device,
    ) -> Result<AmortizerObjective<'a>> {
        let precision = settings.precision.on(device);
        let scales = scales(prepared, teacher);
        let table = prepared.table(scales, device, precision, WorldModelConfig::default().discount)?;
        let mut parameters = Parameters::new(device, precision, seed);
        let config = fitting(settings.model, teacher);
        let model = Amortizer::new(&mut parameters.root(), config, table.widths())?;
        let index = prepared.training.clone();
        let (order, taught) = match (settings.supervision, teacher) {
            (Mode::TaskIndex, None) => (Order::Balanced, Taught::Labels),
            (Mode::EpisodeContrast, None) => (Order::Pairs(settings.positive_window), Taught::Pairs),
            (Mode::TaskIndex | Mode::EpisodeContrast, Some(_)) => {
                return Err(Error::Settings(vec![
                    "a world model is given to learn from, and `supervision` says to learn from something else; leave the \
                     world model out, or set `supervision` to `distillation`"
                        .to_owned(),
                ]));
            }
            (Mode::Distillation, Some(teacher)) => {
                teacher.loaded.check(prepared)?;
                let all: Vec<usize> = index.iter().map(|(_, fragment)| fragment.frames.start).collect();
                let found = latents(&teacher.loaded.model, &table, &all, index.length())?;
                let rows = Tensor::from_vec(found.values, (all.len(), found.width), &Device::Cpu)?;
                (Order::Shuffled, Taught::Latents(rows.to_device(device)?))
            }
            (Mode::Distillation, None) => {
                return Err(Error::Settings(vec![
                    "distillation needs a world model to learn from; give the directory of its run, or set \
                     `supervision` to `task_index` or `episode_contrast`"
                        .to_owned(),
                ]));
            }
        };
        let batches = Batches::new(&index, order, settings.batch.0, seed)?;
        Ok(AmortizerObjective { model, parameters, table, index, batches, taught, held_out: &prepared.held_out })
    }

    /// The model.
    pub fn model(&self) -> &Amortizer {
        &self.model
    }

    /// The data.
    pub fn table(&self) -> &FragmentTable {
        &self.table
    }
}

impl Objective for AmortizerObjective<'_> {
    type Batch = Vec<FragmentId>;

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn prepare(&self, step: u64, part: Part) -> models::Result<Vec<FragmentId>> {
        Ok(self.batches.part(step, part)?.into_iter().map(|(_, fragment)| fragment).collect())
    }

    fn loss(&self, fragments: Vec<FragmentId>) -> models::Result<Loss> {
        let starts = starts(&self.index, &fragments);
        let embeddings = self.model.embed(&self.table.gather(&starts, self.index.length())?)?;
        let total = match &self.taught {
            Taught::Labels => loss(&embeddings, Target::Labels(&self.table.labels(&starts)))?,
            Taught::Pairs => loss(&embeddings, Target::Pairs)?,
            Taught::Latents(latents) => {
                let rows: Vec<u32> = fragments.iter().map(|fragment| fragment.0 as u32).collect();
                let rows = Tensor::from_vec(rows, fragments.len(), latents.device())?;
                loss(&embeddings, Target::Teacher(&latents.index_select(&rows, 0)?))?
            }
        };
        Ok(Loss { total, terms: Vec::new() })
    }

    fn evaluate(&self) -> models::Result<BTreeMap<String, f64>> {
        let probe = amortized(&self.model, &self.table, &self.held_out.probe_starts(), self.index.length());
        let (task, phase) = probe.and_then(|probe| quick_nmi(&probe, self.held_out, 0)).map_err(Error::for_trainer)?;
        let mut figures = BTreeMap::from([("nmi_task".to_owned(), task)]);
        figures.extend(phase.map(|phase| ("nmi_phase".to_owned(), phase)));
        Ok(figures)
    }

    fn work_per_step(&self) -> (f64, &'static str) {
        (self.batches.size() as f64, "fragments")
    }
}

/// Trains k_χ into a run directory.
pub fn train_amortizer(
    prepared: &Prepared,
    settings: &AmortizerSettings,
    teacher: Option<&Teacher>,
    launch: Launch<'_>,
) -> Result<Outcome> {
    let objective = AmortizerObjective::new(prepared, settings, teacher, launch.seed, launch.device)?;
    let taught_by = teacher.into_iter().flat_map(|teacher| teacher.loaded.record.seen.iter().cloned());
    let record = Record {
        phase: Phase::Amortizer,
        model: objective.model.config(),
        widths: objective.model.widths(),
        scales: objective.table.scales().clone(),
        batch: settings.batch.0,
        precision: settings.precision.on(launch.device),
        supervision: Some(settings.supervision),
        teacher: teacher.map(|teacher| teacher.hash.clone()),
        source: prepared.source.record(),
        split: prepared.split.clone(),
        seen: taught_by.chain(prepared.contents(&prepared.split.train)).collect(),
        seed: launch.seed,
    };
    let run = launch.run;
    let options = launch.begin(&record, &settings.train)?;
    Ok(train(&objective, &settings.train, run, options)?)
}

/// A student sees through its teacher's scales.
fn scales(prepared: &Prepared, teacher: Option<&Teacher>) -> Scales {
    teacher.map_or_else(|| prepared.scales.clone(), |teacher| teacher.loaded.record.scales.clone())
}

/// An embedding is as wide as what it imitates.
fn fitting(mut config: AmortizerConfig, teacher: Option<&Teacher>) -> AmortizerConfig {
    if let Some(teacher) = teacher {
        config.embedding = teacher.loaded.record.model.latent;
    }
    config
}
