//! Phase A: M_φ on the training fragments of a dataset.
//!
//! | contrast | fragments of a step |
//! |---|---|
//! | `none` | all, once an epoch |
//! | `supcon` | tasks equally often |
//! | `episode_contrast` | pairs of one episode |
//!
//! With `batches = "by_task"` tasks are equally often in a batch without a contrastive term, too.
//!
//! The noise of a row is a function of seed, step and the row's place in the global batch, so it does not depend on how many
//! processes share the batch.

use std::collections::{BTreeMap, BTreeSet};

use candle_core::{Device, Tensor};
use dataset::{Dataset, EpisodeId, FragmentId, FragmentIndex};
use models::fragments::{returns_to_go, rewards_of};
use models::noise::{mix, normal};
use models::ops::without_gradients;
use models::training::{Loss, Objective, Outcome, Part, train};
use models::world_model::ContrastMode;
use models::{FragmentTable, Parameters, WorldModel, WorldModelConfig};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use crate::batches::{Batches, Order};
use crate::embeddings::latents;
use crate::error::{Error, Result};
use crate::prepared::{HeldOut, Prepared, starts};
use crate::scores::quick_nmi;
use crate::settings::{BatchOrder, Returns, WorldModelSettings};
use crate::trained::{Launch, Phase, Record};

/// Fragments whose loss is evaluated at once; even, so that pairs stay whole.
const CHUNK: usize = 128;

/// The term that is no mean over fragments, and so not evaluated.
const CONTRAST: &str = "infonce";

/// M_φ as the trainer sees it.
pub struct WorldModelObjective<'a> {
    model: WorldModel,
    parameters: Parameters,
    table: FragmentTable,
    index: FragmentIndex,
    batches: Batches,
    seed: u64,
    /// What evaluations look at, if there is anything held out.
    held_out: Option<&'a HeldOut>,
}

/// One micro-batch: first frames, and noise `[rows, T, d_z]`.
pub struct Drawn {
    pub(crate) starts: Vec<usize>,
    noise: Vec<f32>,
}

impl<'a> WorldModelObjective<'a> {
    /// A new model, on a table of fragments of `index`.
    pub fn new(
        config: &WorldModelConfig,
        batch: usize,
        seed: u64,
        table: FragmentTable,
        index: FragmentIndex,
        held_out: Option<&'a HeldOut>,
        mut parameters: Parameters,
    ) -> Result<WorldModelObjective<'a>> {
        let model = WorldModel::new(&mut parameters.root(), config, table.widths())?;
        let order = match config.contrast {
            ContrastMode::None => Order::Shuffled,
            ContrastMode::Supcon => Order::Balanced,
            ContrastMode::EpisodeContrast => Order::Pairs(config.positive_window),
        };
        let batches = Batches::new(&index, order, batch, seed)?;
        Ok(WorldModelObjective { model, parameters, table, index, batches, seed, held_out })
    }

    /// The same with batches in an order that the settings choose.
    pub(crate) fn in_order(mut self, order: BatchOrder) -> Result<WorldModelObjective<'a>> {
        match (order, self.model.config().contrast) {
            // Batches for `supcon` hold tasks equally often already.
            (BatchOrder::Auto, _) | (BatchOrder::ByTask, ContrastMode::Supcon) => {}
            (BatchOrder::ByTask, ContrastMode::None) => {
                self.batches = Batches::new(&self.index, Order::Balanced, self.batches.size(), self.seed)?;
            }
            (BatchOrder::ByTask, ContrastMode::EpisodeContrast) => {
                let reason = "`batches` is `by_task`, but `model.contrast` is `episode_contrast`, which needs pairs of one \
                              episode; set `batches` to `auto`";
                return Err(Error::Settings(vec![reason.to_owned()]));
            }
        }
        Ok(self)
    }

    /// The model.
    pub fn model(&self) -> &WorldModel {
        &self.model
    }

    /// The data.
    pub fn table(&self) -> &FragmentTable {
        &self.table
    }

    fn noise(&self, step: u64, place: usize) -> Vec<f32> {
        let mut text = b"world model noise".to_vec();
        text.extend(step.to_le_bytes());
        text.extend((place as u64).to_le_bytes());
        let mut generator = ChaCha8Rng::seed_from_u64(mix(self.seed, &text));
        normal(&mut generator, self.index.length() * self.model.config().latent)
    }

    fn loss_of(&self, starts: &[usize], noise: Tensor) -> models::Result<Loss> {
        let fragments = self.table.gather(starts, self.index.length())?;
        let losses = self.model.loss(&fragments, &noise, &self.table.labels(starts))?;
        Ok(Loss { total: losses.total, terms: losses.terms })
    }

    /// The terms on the probe, each latent at its mean.
    fn probe_terms(&self, held_out: &HeldOut) -> models::Result<BTreeMap<String, f64>> {
        let probe = held_out.probe_starts();
        let mut sums = BTreeMap::<String, f64>::new();
        let mut count = 0;
        for chunk in probe.chunks(CHUNK) {
            // Pairs are whole where episodes are contrasted: one fragment at most is left out.
            let chunk = &chunk[..chunk.len() & !1];
            if chunk.is_empty() {
                continue;
            }
            let shape = (chunk.len(), self.index.length(), self.model.config().latent);
            let noise = Tensor::zeros(shape, candle_core::DType::F32, self.table.device())?;
            let terms = without_gradients(|| self.loss_of(chunk, noise))?.terms;
            for (name, value) in terms.into_iter().filter(|(name, _)| *name != CONTRAST) {
                *sums.entry(name.to_owned()).or_default() += f64::from(value.to_scalar::<f32>()?) * chunk.len() as f64;
            }
            count += chunk.len();
        }
        sums.values_mut().for_each(|sum| *sum /= count.max(1) as f64);
        Ok(sums)
    }
}

impl Objective for WorldModelObjective<'_> {
    type Batch = Drawn;

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn frozen(&self) -> BTreeSet<String> {
        self.model.frozen()
    }

    fn prepare(&self, step: u64, part: Part) -> models::Result<Drawn> {
        let rows = self.batches.part(step, part)?;
        let noise = rows.iter().flat_map(|(place, _)| self.noise(step, *place)).collect();
        let fragments: Vec<FragmentId> = rows.into_iter().map(|(_, fragment)| fragment).collect();
        Ok(Drawn { starts: starts(&self.index, &fragments), noise })
    }

    fn loss(&self, Drawn { starts, noise }: Drawn) -> models::Result<Loss> {
        let shape = (starts.len(), self.index.length(), self.model.config().latent);
        let noise = Tensor::from_vec(noise, shape, &Device::Cpu)?.to_device(self.table.device())?;
        self.loss_of(&starts, noise)
    }

    fn evaluate(&self) -> models::Result<BTreeMap<String, f64>> {
        let Some(held_out) = self.held_out else { return Ok(BTreeMap::new()) };
        let mut figures = self.probe_terms(held_out)?;
        let probe = latents(&self.model, &self.table, &held_out.probe_starts(), self.index.length());
        let (task, phase) = probe.and_then(|probe| quick_nmi(&probe, held_out, 0)).map_err(Error::for_trainer)?;
        figures.insert("nmi_task".to_owned(), task);
        figures.extend(phase.map(|phase| ("nmi_phase".to_owned(), phase)));
        Ok(figures)
    }

    fn work_per_step(&self) -> (f64, &'static str) {
        (self.batches.size() as f64, "fragments")
    }
}

/// The model's settings on a dataset: with a return head if it has rewards, in the scales of its training episodes, unless
/// settings say otherwise.
pub fn resolved(settings: &WorldModelSettings, dataset: &Dataset, training: &[EpisodeId]) -> WorldModelConfig {
    let mut config = settings.model.clone();
    if settings.returns == Returns::Auto
        && let Some(rewards) = rewards_of(dataset)
    {
        config.returns = true;
        let returns = returns_to_go(&rewards, dataset.spans(), config.discount);
        let deviation = |values: &[f32]| {
            let all = training.iter().flat_map(|episode| &values[dataset.spans()[episode.at()].frames.clone()]);
            let (count, sum, squares) = all.fold((0.0, 0.0, 0.0), |(count, sum, squares), value| {
                (count + 1.0, sum + f64::from(*value), squares + f64::from(*value).powi(2))
            });
            let deviation = (squares / f64::max(count, 1.0) - (sum / f64::max(count, 1.0)).powi(2)).max(0.0).sqrt();
            // Rewards that never change have no scale of their own.
            if deviation > 1e-6 { deviation } else { 1.0 }
        };
        (config.reward_scale, config.return_scale) = (deviation(&rewards), deviation(&returns));
    }
    config
}

/// M_φ before its first step, on a dataset.
pub fn untrained<'a>(
    prepared: &'a Prepared,
    settings: &WorldModelSettings,
    seed: u64,
    device: &Device,
) -> Result<WorldModelObjective<'a>> {
    let config = resolved(settings, &prepared.source.dataset, &prepared.split.train);
    let precision = settings.precision.on(device);
    let table = prepared.table(prepared.scales.clone(), device, precision, config.discount)?;
    let parameters = Parameters::new(device, precision, seed);
    let held_out = Some(&prepared.held_out);
    WorldModelObjective::new(&config, settings.batch.0, seed, table, prepared.training.clone(), held_out, parameters)?
        .in_order(settings.batches)
}

/// Trains M_φ into a run directory.
pub fn train_world_model(prepared: &Prepared, settings: &WorldModelSettings, launch: Launch<'_>) -> Result<Outcome> {
    let objective = untrained(prepared, settings, launch.seed, launch.device)?;
    let record = Record {
        phase: Phase::WorldModel,
        model: objective.model.config().clone(),
        widths: objective.model.widths(),
        scales: prepared.scales.clone(),
        batch: settings.batch.0,
        precision: settings.precision.on(launch.device),
        supervision: None,
        teacher: None,
        source: prepared.source.record(),
        split: prepared.split.clone(),
        seen: prepared.contents(&prepared.split.train).into_iter().collect(),
        seed: launch.seed,
    };
    let run = launch.run;
    let options = launch.begin(&record, &settings.train)?;
    Ok(train(&objective, &settings.train, run, options)?)
}
