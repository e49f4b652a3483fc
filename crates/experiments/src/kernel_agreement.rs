//! How well the cheap forms of D_φ agree with the Monte-Carlo reference, and how each clusters.
//!
//! All three are computed on the same held-out fragments. `mc` imagines each from visited states of the training episodes;
//! `separable_vpk` is trained here, by the one trainer, on what `mc` says of training fragments; `legacy_cosine` is the
//! amortizer's. Spearman's ρ is over all pairs; NMI is that of KMeans on the forms' coordinates. Raw windows stand beside them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use candle_core::{Device, Tensor};
use clustering::{KMeansConfig, Points, kmeans};
use dataset::{FragmentId, FragmentIndex, Shuffled, probe};
use models::amortizer::{Amortizer, AmortizerConfig};
use models::kernel::{
    Distances, Imagination as _, KernelConfig, MonteCarlo, Separable, SeparableConfig, Targets, agreement,
    cosine_distances, visited,
};
use models::training::distributed::Alone;
use models::training::{Loss, Objective, Options, Outcome, Part, Progress, TrainConfig, train};
use models::{FragmentTable, Parameters, Precision, WorldModel};
use serde::{Deserialize, Serialize};

use crate::amortizer_phase::Teacher;
use crate::embeddings::{amortized, windows};
use crate::error::{Error, Result};
use crate::prepared::{Prepared, starts};
use crate::run::{Loaded, Record};

/// Fragments that are looked at at once.
const CHUNK: usize = 64;

/// Two pairs have no ranks to speak of.
const LEAST: usize = 3;

/// How the comparison is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelOptions {
    /// Held-out fragments that are compared in pairs.
    pub fragments: usize,
    /// Training fragments whose rollouts `separable_vpk` learns from.
    pub lessons: usize,
    /// Steps of its training.
    pub steps: u64,
    /// Horizon, starts, weights and seed of D_φ.
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
    /// `mc`, `separable_vpk`, `legacy_cosine`, or `raw windows`, which is no form of D_φ but what they are read beside.
    pub form: String,
    /// Spearman's ρ with `mc` over pairs; none where a form is the same for all.
    pub spearman: Option<f64>,
    /// NMI of KMeans on its coordinates against tasks.
    pub nmi_task: f64,
    /// The same against phases.
    pub nmi_phase: Option<f64>,
}

/// The three forms on one dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelReport {
    /// The dataset's name.
    pub dataset: String,
    /// Fragments compared.
    pub fragments: usize,
    /// Pairs compared.
    pub pairs: usize,
    /// The mean distances of `mc`: of returns, and of rollouts.
    pub parts: (f64, f64),
    /// All forms, `mc` first; raw windows last.
    pub forms: Vec<FormScores>,
}

/// Compares the forms. `None` if it was told to stop.
pub fn kernel_agreement(
    prepared: &Prepared,
    teacher: &Teacher,
    amortizer: &Loaded<Amortizer, AmortizerConfig>,
    options: KernelOptions,
    device: &Device,
    stop: Option<&AtomicBool>,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Option<KernelReport>> {
    let world_model = &teacher.loaded;
    world_model.check(prepared)?;
    amortizer.check(prepared)?;
    taught_by(teacher, &amortizer.record)?;
    let (model, record) = (&world_model.model, &world_model.record);
    let config = KernelConfig { discount: record.model.discount, ..options.kernel };
    let table = prepared.table(record.scales.clone(), device, world_model.parameters.precision(), config.discount)?;
    let length = prepared.held_out.index.length();

    let chosen = probe(&prepared.held_out.index, options.fragments, config.seed);
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
    let lessons = starts(&prepared.training, &probe(&prepared.training, options.lessons, config.seed));
    let visits = visited(&table.gather(&lessons, length)?, config.starts, config.seed)?;
    let reference = MonteCarlo::new(model, &visits, config)?;
    let chunks = |starts: &'_ [usize]| -> Vec<Vec<usize>> { starts.chunks(CHUNK).map(<[usize]>::to_vec).collect() };

    let imagined = reference.signatures(chunks(&compared).iter().map(|chunk| table.gather(chunk, length)))?;
    let truth = reference.distances(&imagined);
    let mc = imagined.coordinates(config.w_r, config.w_e)?;

    let Some(separable) = taught(&reference, model, &table, &lessons, length, options, stop, progress)? else {
        return Ok(None);
    };
    let encoded = chunks(&compared);
    let encoded = encoded.iter().map(|chunk| model_encode(model, &table, chunk, length));
    let separated = separable.signatures(encoded, config.horizon)?;
    let separated_distances = separated.distances(config.w_r, config.w_e);
    let separated = separated.coordinates(config.w_r, config.w_e)?;

    let seen = prepared.table(amortizer.record.scales.clone(), device, amortizer.parameters.precision(), 1.0)?;
    let embedded = amortized(&amortizer.model, &seen, &compared, length)?;
    let cosine = cosine_distances(&embedded.values, embedded.width)?;

    // What no learning reaches, on the same fragments: with fewer of them NMI is higher.
    let raw = prepared.table(prepared.scales.clone(), &Device::Cpu, Precision::F32, 1.0)?;
    let raw = windows(&raw, &compared, length)?;
    let row = |at: usize| &raw.values[at * raw.width..(at + 1) * raw.width];
    let raw_distances = Distances::between(compared.len(), |one, other| euclidean(row(one), row(other)));

    let labels = Labels::new(prepared, &chosen);
    let form = |name: &str, distances: &Distances, values: &[f32], width: usize| -> Result<FormScores> {
        let (nmi_task, nmi_phase) = labels.nmi(values, width, config.seed)?;
        let spearman = agreement(&truth, distances, usize::MAX, config.seed)?.spearman;
        Ok(FormScores { form: name.to_owned(), spearman, nmi_task, nmi_phase })
    };
    let forms = vec![
        form("mc", &truth, &mc.0, mc.1)?,
        form("separable_vpk", &separated_distances, &separated.0, separated.1)?,
        form("legacy_cosine", &cosine, &embedded.values, embedded.width)?,
        form("raw windows", &raw_distances, &raw.values, raw.width)?,
    ];
    let mean =
        |distances: Distances| distances.condensed().iter().sum::<f64>() / distances.condensed().len().max(1) as f64;
    Ok(Some(KernelReport {
        dataset: prepared.source.name.clone(),
        fragments: compared.len(),
        pairs: truth.condensed().len(),
        parts: (mean(imagined.distances(1.0, 0.0)), mean(imagined.distances(0.0, 1.0))),
        forms,
    }))
}

/// Refuses an amortizer that this world model did not teach: it would say nothing of this world model's D_φ.
fn taught_by(teacher: &Teacher, student: &Record<AmortizerConfig>) -> Result<()> {
    let found = match &student.teacher {
        Some(hash) if *hash == teacher.hash => return Ok(()),
        Some(hash) => format!("the world model {hash}"),
        None => "no world model".to_owned(),
    };
    Err(Error::Mismatch(format!(
        "the amortizer was taught by {found}, wanted one that was taught by this world model, {}; give the run that was its \
         `--teacher`, or train one with `train amortizer --teacher`",
        teacher.hash
    )))
}

fn euclidean(one: &[f32], other: &[f32]) -> f64 {
    one.iter().zip(other).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>().sqrt()
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

    fn nmi(&self, values: &[f32], width: usize, seed: u64) -> Result<(f64, Option<f64>)> {
        let config = KMeansConfig { clusters: self.clusters, seed, ..KMeansConfig::default() };
        let found = kmeans(Points::new(values, width)?, &config)?;
        let nmi = |labels: &[i64]| clustering::nmi(labels, &found.labels);
        Ok((nmi(&self.tasks)?, self.phases.as_deref().map(nmi).transpose()?))
    }
}

fn model_encode(model: &WorldModel, table: &FragmentTable, starts: &[usize], length: usize) -> models::Result<Tensor> {
    models::kernel::Imagination::encode_fragment(model, &table.gather(starts, length)?)
}

/// `separable_vpk` as the trainer sees it: latents and targets are there before the first step.
struct Lessons {
    separable: Separable,
    parameters: Parameters,
    /// `[lessons, d_z]`
    latents: Tensor,
    targets: Targets,
    order: Shuffled,
}

impl Objective for Lessons {
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
        (SEPARABLE_BATCH as f64, "fragments")
    }
}

/// Fragments in a step of the separable form's training.
const SEPARABLE_BATCH: usize = 64;

#[expect(clippy::too_many_arguments, reason = "it is one step of the function above")]
fn taught(
    reference: &MonteCarlo<'_, WorldModel>,
    model: &WorldModel,
    table: &FragmentTable,
    lessons: &[usize],
    length: usize,
    options: KernelOptions,
    stop: Option<&AtomicBool>,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Option<Separable>> {
    let (mut latents, mut expected, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for chunk in lessons.chunks(CHUNK) {
        let fragments = table.gather(chunk, length)?;
        let targets = reference.targets(&fragments)?;
        latents.push(models::kernel::Imagination::encode_fragment(model, &fragments)?);
        expected.push(targets.latents);
        values.push(targets.values);
    }
    let mut parameters = Parameters::new(table.device(), Precision::F32, options.kernel.seed);
    let shape = SeparableConfig { latent: model.latent_width(), ..SeparableConfig::default() };
    let separable = Separable::new(&mut parameters.root(), shape)?;
    let batch = SEPARABLE_BATCH.min(lessons.len());
    let objective = Lessons {
        separable,
        parameters,
        latents: Tensor::cat(&latents, 0)?,
        targets: Targets { latents: Tensor::cat(&expected, 0)?, values: Tensor::cat(&values, 0)? },
        order: Shuffled::new(&rows(lessons.len())?, batch, options.kernel.seed)?,
    };
    let folder = tempfile::tempdir().map_err(Error::file(Path::new("a temporary directory")))?;
    let settings = TrainConfig {
        steps: options.steps,
        rate: 1e-3,
        warmup: options.steps / 10,
        evaluate_every: 0,
        checkpoint_every: 0,
        ..TrainConfig::default()
    };
    let outcome = train(
        &objective,
        &settings,
        folder.path(),
        Options {
            resume: false,
            transport: Arc::new(Alone::default()),
            progress,
            stop,
            metadata: serde_json::Value::Null,
        },
    )?;
    Ok(match outcome {
        Outcome::Finished(_) => Some(objective.separable),
        Outcome::Stopped(_) => None,
    })
}

/// Rows of a table as an index that samplers take: one episode of fragments of one step.
fn rows(count: usize) -> Result<FragmentIndex> {
    let span = dataset::EpisodeSpan { frames: 0..count, task: dataset::TaskId(0) };
    Ok(FragmentIndex::of_all(&[span], 1, 1)?)
}
