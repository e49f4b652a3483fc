//! Phase C: k_χ on the training fragments of a dataset, taught by labels, by a world model or by episodes.
//!
//! What a world model teaches is computed once, before the first step, and a batch gathers its rows:
//! - With `distillation`, z_T of all training fragments.
//! - With `kernel`, D_φ: the signatures of training windows ([`crate::reference::lessons`]), from which a batch of B windows
//!   takes all B² distances on the device. The loop compares segments by these distances. Its teacher does not change, so
//!   this k_χ is trained once for a run.

use std::collections::BTreeMap;
use std::path::Path;

use candle_core::{Device, Tensor};
use dataset::{FragmentId, FragmentIndex};
use models::amortizer::{Amortizer, AmortizerConfig, Metric, Supervision, Target, loss};
use models::kernel::{DistanceTable, Distances, agreement, euclidean_distances};
use models::training::{Loss, Objective, Outcome, Part, train};
use models::{FragmentTable, Parameters, Scales, WorldModel, WorldModelConfig};

use crate::batches::{Batches, Order};
use crate::embeddings::{amortized, amortized_windows, latents, seen_windows};
use crate::error::{Error, Result};
use crate::prepared::{HeldOut, Prepared, starts};
use crate::reference::{DistanceSettings, Reference, lessons};
use crate::scores::quick_nmi;
use crate::separable_phase::rows;
use crate::settings::AmortizerSettings;
use crate::trained::{Launch, Loaded, Phase, Record, load_world_model, weights_hash};
use crate::windows::Windows;

/// Pairs of training windows over which the mean of D_φ is taken.
const SCALE_PAIRS: usize = 20_000;

/// Held-out fragments on which training with `kernel` is watched.
const WATCHED: usize = 128;

/// A world model that teaches, and how it is known.
pub struct Teacher {
    /// The model.
    pub loaded: Loaded<WorldModel, WorldModelConfig>,
    /// The hash of its weights.
    pub hash: String,
    /// Which D_φ it teaches, with `kernel`.
    pub distances: DistanceSettings,
}

impl Teacher {
    /// The world model of a finished run, by its directory, with the default D_φ.
    pub fn load(run: &Path, device: &Device) -> Result<Teacher> {
        let (loaded, hash) = (load_world_model(run, device)?, weights_hash(run, Phase::WorldModel)?);
        Ok(Teacher { loaded, hash, distances: DistanceSettings::default() })
    }

    /// The same with another D_φ, such as that of a run's settings.
    pub fn with_distances(self, distances: impl Into<DistanceSettings>) -> Teacher {
        Teacher { distances: distances.into(), ..self }
    }

    /// Refuses a model that this world model did not teach: it would say nothing of this world model's D_φ.
    pub(crate) fn check_student<M>(&self, student: &Record<M>) -> Result<()> {
        let found = match &student.teacher {
            Some(hash) if *hash == self.hash => return Ok(()),
            Some(hash) => format!("the world model {hash}"),
            None => "no world model".to_owned(),
        };
        Err(Error::Mismatch(format!(
            "the amortizer was taught by {found}, wanted one that was taught by this world model, {}; give the run that was \
             its `--teacher`, or train one with `train amortizer --teacher`",
            self.hash
        )))
    }
}

/// k_χ as the trainer sees it.
pub struct AmortizerObjective<'a> {
    model: Amortizer,
    parameters: Parameters,
    table: FragmentTable,
    index: FragmentIndex,
    batches: Batches,
    lessons: Lessons,
    held_out: &'a HeldOut,
}

/// What a batch is compared with.
enum Lessons {
    Labels,
    /// z_T of each training fragment, `[fragments, embedding]`.
    Latents(Tensor),
    Pairs,
    Distances(Box<DistanceLessons>),
}

/// Windows with their distances, for training and for watching it.
struct DistanceLessons {
    windows: Windows,
    distances: DistanceTable,
    metric: Metric,
    /// Some held-out windows.
    watched: Windows,
    /// D_φ between them.
    truth: Distances,
}

impl<'a> AmortizerObjective<'a> {
    /// A new model. `distillation` and `kernel` need a teacher, the other modes refuse one.
    pub fn new(
        prepared: &'a Prepared,
        settings: &AmortizerSettings,
        teacher: Option<&Teacher>,
        seed: u64,
        device: &Device,
    ) -> Result<AmortizerObjective<'a>> {
        AmortizerObjective::on(prepared, prepared.training.clone(), settings, teacher, seed, device)
    }

    /// The same on some of the training fragments. With `kernel`, windows are taken of all of them nevertheless.
    pub fn on(
        prepared: &'a Prepared,
        index: FragmentIndex,
        settings: &AmortizerSettings,
        teacher: Option<&Teacher>,
        seed: u64,
        device: &Device,
    ) -> Result<AmortizerObjective<'a>> {
        let precision = settings.precision_on(device);
        let scales = scales(prepared, teacher);
        let table = prepared.table(scales, device, precision, WorldModelConfig::default().discount)?;
        let mut config = settings.model;
        let (order, lessons) = match (settings.supervision, teacher) {
            (Supervision::TaskIndex, None) => (Order::Balanced, Lessons::Labels),
            (Supervision::EpisodeContrast, None) => (Order::Pairs(settings.positive_window), Lessons::Pairs),
            (Supervision::TaskIndex | Supervision::EpisodeContrast, Some(_)) => {
                return Err(Error::Settings(vec![
                    "a world model is given to learn from, and `supervision` says to learn from something else; leave the \
                     world model out, or set `supervision` to `kernel` or `distillation`"
                        .to_owned(),
                ]));
            }
            (Supervision::Distillation, Some(teacher)) => {
                teacher.loaded.check(prepared)?;
                // An embedding is as wide as what it imitates.
                config.embedding = teacher.loaded.record.model.latent;
                let all: Vec<usize> = index.iter().map(|(_, fragment)| fragment.frames.start).collect();
                let found = latents(&teacher.loaded.model, &table, &all, index.length())?;
                let rows = Tensor::from_vec(found.values, (all.len(), found.width), &Device::Cpu)?;
                (Order::Shuffled, Lessons::Latents(rows.to_device(device)?))
            }
            (Supervision::Kernel, Some(teacher)) => {
                teacher.loaded.check(prepared)?;
                let lessons = DistanceLessons::new(prepared, teacher, settings.lessons, seed, device)?;
                (config.metric, config.horizon) = (Some(lessons.metric), lessons.metric.kernel.horizon);
                (Order::Shuffled, Lessons::Distances(Box::new(lessons)))
            }
            (Supervision::Distillation | Supervision::Kernel, None) => {
                return Err(Error::Settings(vec![
                    "`supervision` needs a world model to learn from; give the directory of its run, or set `supervision` to \
                     `task_index` or `episode_contrast`"
                        .to_owned(),
                ]));
            }
        };
        let mut parameters = Parameters::new(device, precision, seed);
        let model = Amortizer::new(&mut parameters.root(), config, table.widths())?;
        let batches = match &lessons {
            Lessons::Distances(lessons) => Batches::new(&rows(lessons.windows.len())?, order, settings.batch.0, seed)?,
            _ => Batches::new(&index, order, settings.batch.0, seed)?,
        };
        Ok(AmortizerObjective { model, parameters, table, index, batches, lessons, held_out: &prepared.held_out })
    }

    /// The model.
    pub fn model(&self) -> &Amortizer {
        &self.model
    }

    /// The data.
    pub fn table(&self) -> &FragmentTable {
        &self.table
    }

    /// Embeddings of fragments of the training index.
    fn embed(&self, starts: &[usize]) -> models::Result<Tensor> {
        self.model.embed(&self.table.gather(starts, self.index.length())?)
    }
}

impl DistanceLessons {
    /// Imagines what follows from the training windows, and from a few held-out ones.
    fn new(
        prepared: &Prepared,
        teacher: &Teacher,
        count: usize,
        seed: u64,
        device: &Device,
    ) -> Result<DistanceLessons> {
        let loaded = &teacher.loaded;
        let discount = loaded.record.model.discount;
        // What the world model looks at is in its precision, which need not be the student's.
        let table = prepared.table(loaded.record.scales.clone(), device, loaded.parameters.precision(), discount)?;
        let kernel = teacher.distances.classes.kernel_config(discount, seed);
        let reference = Reference::new(prepared, loaded, &table, kernel)?;
        let windows = lessons(prepared, &table, &teacher.distances.segments, count, kernel)?;
        let signatures = reference.signatures(&windows)?;
        let scale = signatures.mean_distance(kernel.w_r, kernel.w_e, SCALE_PAIRS, seed);
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(Error::Mismatch(format!(
                "the mean of D_φ over training windows is {scale}: the world model expects the same of all actions, so there \
                 are no distances to learn; train it longer, or give `w_r` or `w_e` a weight"
            )));
        }
        let held_out = &prepared.held_out;
        let every = held_out.probe.len().div_ceil(WATCHED).max(1);
        let some: Vec<FragmentId> = held_out.probe.iter().step_by(every).copied().collect();
        let watched = Windows::of_fragments(&table, &starts(&held_out.index, &some), kernel.horizon)?;
        Ok(DistanceLessons {
            distances: DistanceTable::new(&signatures, kernel.w_r, kernel.w_e, device)?,
            metric: Metric { kernel, scale },
            truth: reference.distances(&reference.signatures(&watched)?),
            windows,
            watched,
        })
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
        let places = |device: &Device| -> models::Result<Tensor> {
            let rows: Vec<u32> = fragments.iter().map(|fragment| fragment.0 as u32).collect();
            Ok(Tensor::from_vec(rows, fragments.len(), device)?)
        };
        let starts = || starts(&self.index, &fragments);
        let total = match &self.lessons {
            Lessons::Labels => loss(&self.embed(&starts())?, Target::Labels(&self.table.labels(&starts())))?,
            Lessons::Pairs => loss(&self.embed(&starts())?, Target::Pairs)?,
            Lessons::Latents(latents) => {
                let targets = latents.index_select(&places(latents.device())?, 0)?;
                loss(&self.embed(&starts())?, Target::Teacher(&targets))?
            }
            Lessons::Distances(lessons) => {
                // Rows are windows here, not fragments of the index.
                let rows: Vec<usize> = fragments.iter().map(|row| row.0).collect();
                let seen = seen_windows(&self.model, &lessons.windows, &rows, &self.table);
                let embeddings = self.model.embed(&seen.map_err(Error::for_trainer)?)?;
                let distances = lessons.distances.between(&places(embeddings.device())?)?;
                loss(&embeddings, Target::Distances { distances: &distances, scale: lessons.metric.scale })?
            }
        };
        Ok(Loss { total, terms: Vec::new() })
    }

    fn evaluate(&self) -> models::Result<BTreeMap<String, f64>> {
        let probe = amortized(&self.model, &self.table, &self.held_out.probe_starts(), self.index.length());
        let (task, phase) = probe.and_then(|probe| quick_nmi(&probe, self.held_out, 0)).map_err(Error::for_trainer)?;
        let mut figures = BTreeMap::from([("nmi_task".to_owned(), task)]);
        figures.extend(phase.map(|phase| ("nmi_phase".to_owned(), phase)));
        if let Lessons::Distances(lessons) = &self.lessons {
            let found = amortized_windows(&self.model, &lessons.watched, &self.table).map_err(Error::for_trainer)?;
            let found = euclidean_distances(&found.values, found.width)?;
            let rho = agreement(&lessons.truth, &found, usize::MAX, 0)?.spearman;
            figures.extend(rho.map(|rho| ("spearman".to_owned(), rho)));
        }
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
    train_amortizer_on(prepared, prepared.training.clone(), settings, teacher, launch)
}

/// The same on some of the training fragments. Its record names all training episodes, so that it is never judged by one.
pub fn train_amortizer_on(
    prepared: &Prepared,
    index: FragmentIndex,
    settings: &AmortizerSettings,
    teacher: Option<&Teacher>,
    launch: Launch<'_>,
) -> Result<Outcome> {
    let objective = AmortizerObjective::on(prepared, index, settings, teacher, launch.seed, launch.device)?;
    let taught_by = teacher.into_iter().flat_map(|teacher| teacher.loaded.record.seen.iter().cloned());
    let record: Record<AmortizerConfig> = Record {
        phase: Phase::Amortizer,
        model: objective.model.config(),
        widths: objective.model.widths(),
        scales: objective.table.scales().clone(),
        batch: settings.batch.0,
        precision: settings.precision_on(launch.device),
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
