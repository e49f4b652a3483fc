//! How well the cheap forms of D_φ agree with the Monte-Carlo reference, how each clusters, and what a pair costs.
//!
//! All forms are computed on the same held-out fragments:
//!
//! | form | distances |
//! |---|---|
//! | `mc` | sampled rollouts from visited states of the training episodes |
//! | `separable_vpk` | trained here, by the one trainer, on what `mc` says of training windows |
//! | `amortized` | Euclidean, between embeddings of an amortizer that was trained on D_φ |
//! | `legacy_cosine` | cosine, between embeddings of an amortizer that was trained on z_T |
//! | `raw windows` | Euclidean, between standardised states and actions: no model at all |
//!
//! Spearman's ρ is over all pairs; NMI is that of KMeans on the forms' coordinates, as many clusters as there are tasks.
//! The time of a form is that of everything from fragments on the device to all distances on the host, divided by the
//! pairs, after one chunk to warm up.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use candle_core::Device;
use clustering::{KMeansConfig, Points, kmeans};
use dataset::{FragmentId, probe};
use models::Precision;
use models::amortizer::{Amortizer, AmortizerConfig};
use models::kernel::{Distances, KernelConfig, agreement, cosine_distances, euclidean_distances};
use models::training::distributed::Alone;
use models::training::{Outcome, Progress, TrainConfig};
use serde::{Deserialize, Serialize};

use crate::amortizer_phase::Teacher;
use crate::embeddings::{Embeddings, amortized, windows};
use crate::error::{Error, Result};
use crate::prepared::{Prepared, starts};
use crate::reference::Reference;
use crate::separable_phase::{SeparableSettings, separable_signatures, train_separable};
use crate::trained::{Launch, Loaded, load_separable};
use crate::windows::Windows;

/// Ranks of fewer fragments mean nothing.
const LEAST: usize = 3;

/// Fragments that warm a form up before it is timed.
const WARM_UP: usize = 8;

/// Windows in a step of the separable form's training.
const SEPARABLE_BATCH: usize = 64;

/// How the comparison is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelOptions {
    /// Held-out fragments that are compared in pairs.
    pub fragments: usize,
    /// Training fragments whose rollouts `separable_vpk` learns from.
    pub lessons: usize,
    /// Steps of its training.
    pub steps: u64,
    /// D_φ, where no amortizer says which one it was trained on.
    pub kernel: KernelConfig,
}

impl Default for KernelOptions {
    fn default() -> Self {
        KernelOptions { fragments: 256, lessons: 1024, steps: 1000, kernel: KernelConfig::default() }
    }
}

/// One form of D_φ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormScores {
    /// `mc`, `separable_vpk`, `amortized`, `legacy_cosine`, or the baseline `raw windows`, which is not a form of D_φ.
    pub form: String,
    /// Spearman's ρ with `mc` over pairs; none where a form is the same for all.
    pub spearman: Option<f64>,
    /// NMI of KMeans on its coordinates against tasks.
    pub nmi_task: f64,
    /// The same against phases.
    pub nmi_phase: Option<f64>,
    /// Wall-clock seconds for a pair in this run.
    pub seconds_per_pair: f64,
}

/// All forms on one dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelReport {
    /// The dataset's name.
    pub dataset: String,
    /// Fragments compared.
    pub fragments: usize,
    /// Pairs compared.
    pub pairs: usize,
    /// k of D_φ: actions that are imagined.
    pub horizon: usize,
    /// Starts that each fragment is imagined from.
    pub starts: usize,
    /// Rollouts drawn from each start; one follows the means.
    pub samples: usize,
    /// The mean distances of `mc`: of returns, and of rollouts.
    pub parts: (f64, f64),
    /// All forms, `mc` first; raw windows last.
    pub forms: Vec<FormScores>,
}

/// Compares the forms, with one row for each amortizer. `None` if it was interrupted.
///
/// # Errors
/// On amortizers that another world model taught, or that were trained on different D_φ.
pub fn kernel_agreement(
    prepared: &Prepared,
    teacher: &Teacher,
    amortizers: &[Loaded<Amortizer, AmortizerConfig>],
    options: KernelOptions,
    device: &Device,
    stop: Option<&AtomicBool>,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Option<KernelReport>> {
    let world_model = &teacher.loaded;
    world_model.check(prepared)?;
    for amortizer in amortizers {
        amortizer.check(prepared)?;
        teacher.check_student(&amortizer.record)?;
    }
    let record = &world_model.record;
    let config = taught_kernel(amortizers, KernelConfig { discount: record.model.discount, ..options.kernel })?;
    let table = prepared.table(record.scales.clone(), device, world_model.parameters.precision(), config.discount)?;
    let length = prepared.held_out.index.length();
    let (chosen, compared) = compared_fragments(prepared, options.fragments, config.seed)?;
    let comparison = Comparison { labels: Labels::new(prepared, &chosen), compared: &compared, seed: config.seed };

    let reference = Reference::new(prepared, world_model, &table, config)?;
    let mut imagined = None;
    let mc = comparison.timed(|starts| {
        let signatures = reference.signatures(&Windows::of_fragments(&table, starts, config.horizon)?)?;
        let (values, width) = signatures.coordinates(config.w_r, config.w_e)?;
        let distances = reference.distances(&signatures);
        imagined = Some(signatures);
        Ok((distances, Embeddings { values, width }))
    })?;
    let truth = &mc.distances;
    let mut forms = vec![comparison.scores("mc", &mc, truth)?];

    let folder = tempfile::tempdir().map_err(Error::write(std::path::Path::new("a temporary directory")))?;
    let train = TrainConfig {
        steps: options.steps,
        rate: 1e-3,
        warmup: options.steps / 10,
        evaluate_every: 0,
        checkpoint_every: 0,
        ..TrainConfig::default()
    };
    let settings = SeparableSettings { lessons: options.lessons, batch: SEPARABLE_BATCH, train };
    let transport = Arc::new(Alone::default());
    let launch =
        Launch { run: folder.path(), resume: false, preset: "", seed: config.seed, device, transport, progress, stop };
    if let Outcome::Stopped(_) = train_separable(prepared, &settings, teacher, config, launch)? {
        return Ok(None);
    }
    let separable = load_separable(folder.path(), device)?.model;
    let separated = comparison.timed(|starts| {
        let windows = Windows::of_fragments(&table, starts, config.horizon)?;
        let signatures = separable_signatures(&separable, &world_model.model, &windows, &table, config.horizon)?;
        let (values, width) = signatures.coordinates(config.w_r, config.w_e)?;
        Ok((signatures.distances(config.w_r, config.w_e), Embeddings { values, width }))
    })?;
    forms.push(comparison.scores("separable_vpk", &separated, truth)?);

    for amortizer in amortizers {
        let seen = prepared.table(amortizer.record.scales.clone(), device, amortizer.parameters.precision(), 1.0)?;
        let has_metric = amortizer.model.config().metric.is_some();
        let embedded = comparison.timed(|starts| {
            let points = amortized(&amortizer.model, &seen, starts, length)?;
            let distances = if has_metric { euclidean_distances } else { cosine_distances };
            Ok((distances(&points.values, points.width)?, points))
        })?;
        let name = if has_metric { "amortized" } else { "legacy_cosine" };
        forms.push(comparison.scores(name, &embedded, truth)?);
    }

    // The baseline on the same fragments: with fewer of them NMI is higher.
    let raw = prepared.table(prepared.scales.clone(), &Device::Cpu, Precision::F32, 1.0)?;
    let raw = comparison.timed(|starts| {
        let points = windows(&raw, starts, length)?;
        Ok((euclidean_distances(&points.values, points.width)?, points))
    })?;
    forms.push(comparison.scores("raw windows", &raw, truth)?);

    let mean =
        |distances: Distances| distances.condensed().iter().sum::<f64>() / distances.condensed().len().max(1) as f64;
    let part = |w_r, w_e| imagined.as_ref().map_or(0.0, |imagined| mean(imagined.distances(w_r, w_e)));
    Ok(Some(KernelReport {
        dataset: prepared.source.name.clone(),
        fragments: compared.len(),
        pairs: truth.condensed().len(),
        horizon: config.horizon,
        starts: config.starts,
        samples: config.samples,
        parts: (part(1.0, 0.0), part(0.0, 1.0)),
        forms,
    }))
}

/// The D_φ that amortizers were trained on, so that they are compared with the very distances that they learned; that of the
/// options where none was.
fn taught_kernel(amortizers: &[Loaded<Amortizer, AmortizerConfig>], otherwise: KernelConfig) -> Result<KernelConfig> {
    let mut taught = amortizers.iter().filter_map(|one| one.model.config().metric.map(|metric| metric.kernel));
    let Some(first) = taught.next() else { return Ok(otherwise) };
    match taught.find(|other| !other.is_same(&first)) {
        None => Ok(first),
        Some(other) => Err(Error::Mismatch(format!(
            "the amortizers were trained on different distances, {first:?} and {other:?}; compare them one at a time"
        ))),
    }
}

/// Held-out fragments, and their first frames.
fn compared_fragments(prepared: &Prepared, count: usize, seed: u64) -> Result<(Vec<FragmentId>, Vec<usize>)> {
    let chosen = probe(&prepared.held_out.index, count, seed);
    let clusters = prepared.held_out.clusters;
    if chosen.len() < clusters.max(LEAST) {
        return Err(Error::Settings(vec![format!(
            "{} fragments are too few, wanted {} or more: KMeans makes a cluster for each of the {clusters} tasks, and ranks \
             want three pairs",
            chosen.len(),
            clusters.max(LEAST),
        )]));
    }
    let compared = starts(&prepared.held_out.index, &chosen);
    Ok((chosen, compared))
}

/// One form on the compared fragments.
struct Measured {
    distances: Distances,
    coordinates: Embeddings,
    seconds: f64,
}

/// What all forms are measured on.
struct Comparison<'a> {
    labels: Labels,
    compared: &'a [usize],
    seed: u64,
}

impl Comparison<'_> {
    /// Runs a form on a few fragments, and then on all with a clock.
    fn timed(&self, mut form: impl FnMut(&[usize]) -> Result<(Distances, Embeddings)>) -> Result<Measured> {
        form(&self.compared[..self.compared.len().min(WARM_UP)])?;
        let started = Instant::now();
        let (distances, coordinates) = form(self.compared)?;
        Ok(Measured { distances, coordinates, seconds: started.elapsed().as_secs_f64() })
    }

    fn scores(&self, name: &str, found: &Measured, truth: &Distances) -> Result<FormScores> {
        let Measured { distances, coordinates, seconds } = found;
        let (nmi_task, nmi_phase) = self.labels.nmi(coordinates, self.seed)?;
        Ok(FormScores {
            form: name.to_owned(),
            spearman: agreement(truth, distances, usize::MAX, self.seed)?.spearman,
            nmi_task,
            nmi_phase,
            seconds_per_pair: seconds / truth.condensed().len().max(1) as f64,
        })
    }
}

/// Tasks and phases of the compared fragments.
struct Labels {
    tasks: Vec<i64>,
    phases: Option<Vec<i64>>,
    clusters: usize,
}

impl Labels {
    fn new(prepared: &Prepared, chosen: &[FragmentId]) -> Labels {
        let held_out = &prepared.held_out;
        let tasks = chosen.iter().map(|at| i64::from(held_out.index.get(*at).task.0)).collect();
        let phases = prepared.phases_of(&held_out.index, chosen);
        Labels { tasks, phases, clusters: held_out.clusters }
    }

    fn nmi(&self, points: &Embeddings, seed: u64) -> Result<(f64, Option<f64>)> {
        let config = KMeansConfig { clusters: self.clusters, seed, ..KMeansConfig::default() };
        let found = kmeans(Points::new(&points.values, points.width)?, &config)?;
        let nmi = |labels: &[i64]| clustering::nmi(labels, &found.labels);
        Ok((nmi(&self.tasks)?, self.phases.as_deref().map(nmi).transpose()?))
    }
}
