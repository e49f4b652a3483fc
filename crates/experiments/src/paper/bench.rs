//! What all experiments work with: settings, datasets, trained models that they share, and scores.
//!
//! Models lie below `OUT/models/<dataset>/`, each in a directory named by a hash of everything that it depends on, so that
//! experiments that need the same model train it once, and models of other settings are never mistaken for it.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use candle_core::Device;
use clustering::{HdbscanConfig, NOISE, Points, hdbscan};
use dataset::{EpisodeId, FragmentIndex};
use models::WorldModelConfig;
use models::amortizer::Supervision;
use models::noise::mix;
use models::training::Outcome;
use models::training::checkpoint::{self, MODEL};
use models::training::distributed::Alone;
use models::world_model::ContrastMode;
use models::{FragmentTable, WorldModel};
use serde::Serialize;
use serde_json::{Value, json};

use super::{BOUNDARY_F1, Measured, NMI_PHASE, NMI_TASK, PaperRun, data_of};
use crate::amortizer_phase::{Teacher, train_amortizer_on};
use crate::cycle::Event;
use crate::embeddings::{Embeddings, activations, amortized, latents};
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::scores::by_kmeans;
use crate::settings::{AmortizerSettings, WorldModelSettings};
use crate::trained::{Launch, Loaded, load_amortizer, load_world_model};
use crate::world_model_phase::train_world_model;

/// What all experiments work with.
pub struct Bench<'a> {
    /// Of phases, loop and experiments.
    pub settings: &'a PaperRun,
    /// The preset's name, for the record.
    pub preset: &'a str,
    /// The datasets, each with its split and its probe.
    pub datasets: &'a [Prepared],
    /// Where results and models go.
    pub out: &'a Path,
    /// Where models run.
    pub device: &'a Device,
    /// The device in words, for the record.
    pub runs_on: String,
    /// The command that makes the results again, for the record.
    pub command: String,
    /// Set by someone else to stop between or within trainings.
    pub stop: Option<&'a AtomicBool>,
    /// Called with the progress.
    pub observer: RefCell<&'a mut dyn FnMut(Event<'_>)>,
}

/// How vectors become clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clusterer {
    /// KMeans with as many clusters as there are tasks.
    KMeans,
    /// HDBSCAN with this smallest size of a cluster; noise is one more class.
    Hdbscan(usize),
}

impl Bench<'_> {
    /// A dataset by its name.
    pub fn dataset(&self, name: &str) -> Result<&Prepared> {
        self.datasets.iter().find(|one| one.source.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.datasets.iter().map(|one| one.source.name.as_str()).collect();
            Error::Mismatch(format!("there is no dataset `{name}` in this evaluation; there are {}", names.join(", ")))
        })
    }

    /// Reports progress.
    pub(super) fn tell(&self, event: Event<'_>) {
        (self.observer.borrow_mut())(event);
    }

    /// Calls with the observer, for parts that report progress themselves.
    pub(super) fn observed<T>(&self, work: impl FnOnce(&mut dyn FnMut(Event<'_>)) -> T) -> T {
        work(&mut **self.observer.borrow_mut())
    }

    /// Ends the work if the user interrupted it.
    pub(super) fn check_stop(&self) -> Result<()> {
        match self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }

    /// Settings of phase A with a contrast.
    pub fn world_settings(&self, contrast: ContrastMode) -> WorldModelSettings {
        let mut settings = self.settings.run.world_model.clone();
        settings.model.contrast = contrast;
        settings
    }

    /// Settings of phase C with a supervision, without vision.
    pub fn student_settings(&self, supervision: Supervision) -> AmortizerSettings {
        let mut settings = self.settings.run.amortizer.clone();
        settings.supervision = supervision;
        settings.model.vision = false;
        settings
    }

    /// The directory of a world model, which is trained if it is not there.
    pub fn world_model(&self, prepared: &Prepared, settings: &WorldModelSettings, seed: u64) -> Result<PathBuf> {
        self.trained(prepared, "world-model", &json!(settings), seed, |launch| {
            train_world_model(prepared, settings, launch)
        })
    }

    /// The directory of an amortizer, which is trained if it is not there.
    pub fn amortizer(
        &self,
        prepared: &Prepared,
        settings: &AmortizerSettings,
        teacher: Option<&Path>,
        seed: u64,
    ) -> Result<PathBuf> {
        self.amortizer_on(prepared, &prepared.split.train, settings, teacher, seed)
    }

    /// The same of some of the training episodes.
    pub fn amortizer_on(
        &self,
        prepared: &Prepared,
        episodes: &[EpisodeId],
        settings: &AmortizerSettings,
        teacher: Option<&Path>,
        seed: u64,
    ) -> Result<PathBuf> {
        let numbers: Vec<usize> = episodes.iter().map(|episode| episode.at()).collect();
        let name = teacher.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let key = json!({ "settings": settings, "teacher": name, "episodes": numbers });
        self.trained(prepared, "amortizer", &key, seed, |launch| {
            let teacher = teacher.map(|run| Teacher::load(run, self.device)).transpose()?;
            let teacher = teacher.map(|teacher| teacher.with_distances(&self.settings.run.cycle));
            let index = FragmentIndex::new(prepared.source.dataset.spans(), episodes, prepared.training.length(), 1)?;
            train_amortizer_on(prepared, index, settings, teacher.as_ref(), launch)
        })
    }

    /// The amortizer that a world model with a contrast taught by distillation: modes (b) and (b′) of the paper.
    pub fn distilled(&self, prepared: &Prepared, world_model: &WorldModelSettings, seed: u64) -> Result<PathBuf> {
        let teacher = self.world_model(prepared, world_model, seed)?;
        self.amortizer(prepared, &self.student_settings(Supervision::Distillation), Some(&teacher), seed)
    }

    /// The directory of a model, trained if it has none yet. `what` is its kind and `key` all that it depends on.
    fn trained(
        &self,
        prepared: &Prepared,
        what: &str,
        key: &Value,
        seed: u64,
        train: impl FnOnce(Launch<'_>) -> Result<Outcome>,
    ) -> Result<PathBuf> {
        let run = self.place(prepared, what, &json!({ "key": key, "seed": seed }))?;
        if run.join(MODEL).is_file() {
            return Ok(run);
        }
        self.tell(Event::Stage { name: &format!("  {what}, {}, seed {seed}", prepared.source.name), done: false });
        let outcome = train(Launch {
            run: &run,
            resume: true,
            preset: self.preset,
            seed,
            device: self.device,
            transport: Arc::new(Alone::default()),
            progress: &mut |progress| self.tell(Event::Training(progress)),
            stop: self.stop,
        })?;
        if matches!(outcome, Outcome::Stopped(_)) {
            return Err(Error::Interrupted);
        }
        // A finished training is not resumed, and its checkpoint is several times its result.
        checkpoint::prune(&run, 0)?;
        Ok(run)
    }

    /// The directory of something that depends on a dataset and on `key` alone.
    pub(super) fn place(&self, prepared: &Prepared, what: &str, key: &impl Serialize) -> Result<PathBuf> {
        let key = serde_json::to_vec(&json!({ "key": key, "data": data_of(prepared) }))
            .map_err(|error| Error::Mismatch(error.to_string()))?;
        let name = format!("{what}-{:016x}", mix(0, &key));
        Ok(self.out.join("models").join(&prepared.source.name).join(name))
    }

    /// A world model with the table of what it sees.
    pub fn loaded(
        &self,
        prepared: &Prepared,
        run: &Path,
    ) -> Result<(Loaded<WorldModel, WorldModelConfig>, FragmentTable)> {
        let loaded = load_world_model(run, self.device)?;
        loaded.check(prepared)?;
        let (scales, precision) = (loaded.record.scales.clone(), loaded.parameters.precision());
        let table = prepared.table(scales, self.device, precision, loaded.record.model.discount)?;
        Ok((loaded, table))
    }

    /// z_T of fragments by their first frames.
    pub fn latents(&self, prepared: &Prepared, run: &Path, starts: &[usize]) -> Result<Embeddings> {
        let (loaded, table) = self.loaded(prepared, run)?;
        latents(&loaded.model, &table, starts, prepared.training.length())
    }

    /// The activations of a world model before its bottleneck.
    pub fn activations(&self, prepared: &Prepared, run: &Path, starts: &[usize]) -> Result<Embeddings> {
        let (loaded, table) = self.loaded(prepared, run)?;
        activations(&loaded.model, &table, starts, prepared.training.length())
    }

    /// k_χ of all held-out fragments.
    pub fn embedded(&self, prepared: &Prepared, run: &Path) -> Result<Embeddings> {
        let loaded = load_amortizer(run, self.device)?;
        loaded.check(prepared)?;
        let table = prepared.table(loaded.record.scales.clone(), self.device, loaded.parameters.precision(), 1.0)?;
        let held_out = &prepared.held_out;
        amortized(&loaded.model, &table, &held_out.all_starts(), held_out.index.length())
    }

    /// Clusters the vectors of all held-out fragments and compares the probe's clusters with tasks and phases.
    pub fn judged(
        &self,
        prepared: &Prepared,
        row: impl Into<String>,
        embeddings: &Embeddings,
        clusterer: Clusterer,
        seed: u64,
    ) -> Result<Measured> {
        let held_out = &prepared.held_out;
        match clusterer {
            Clusterer::KMeans => {
                let (labels, boundary_f1) = by_kmeans(embeddings, held_out, seed)?;
                let row = self.judged_labels(prepared, row, &labels)?;
                Ok(boundary_f1.into_iter().fold(row, |row, value| row.with(BOUNDARY_F1, value)))
            }
            Clusterer::Hdbscan(min_cluster_size) => {
                let probe = embeddings.rows(held_out.probe.iter().map(|at| at.0));
                let config = HdbscanConfig { min_cluster_size, ..HdbscanConfig::default() };
                let found = hdbscan(Points::new(&probe, embeddings.width)?, &config)?;
                let noise = found.labels.iter().filter(|label| **label == NOISE).count();
                let row = self.judged_labels(prepared, row, &found.labels)?;
                Ok(row
                    .with("clusters", found.clusters as f64)
                    .with("noise", noise as f64 / found.labels.len().max(1) as f64))
            }
        }
    }

    /// Compares classes of the probe's fragments with tasks and phases, whatever found them.
    ///
    /// # Errors
    /// If there is not one class for each fragment of the probe.
    pub fn judged_labels(&self, prepared: &Prepared, row: impl Into<String>, labels: &[i64]) -> Result<Measured> {
        let all: Vec<usize> = (0..prepared.held_out.probe.len()).collect();
        self.judged_some(prepared, row, &all, labels)
    }

    /// The same of some fragments, by their places in the probe.
    pub fn judged_some(
        &self,
        prepared: &Prepared,
        row: impl Into<String>,
        places: &[usize],
        labels: &[i64],
    ) -> Result<Measured> {
        let held_out = &prepared.held_out;
        let mut measured = Measured::new(row, []);
        let truths = [(NMI_TASK, Some(&held_out.tasks)), (NMI_PHASE, held_out.phases.as_ref())];
        for (figure, truth) in truths.into_iter().filter_map(|(figure, truth)| Some((figure, truth?))) {
            let truth: Vec<i64> = places.iter().map(|at| truth[*at]).collect();
            measured = measured.with(figure, clustering::nmi(&truth, labels)?);
            measured = measured.with(&figure.replace("nmi", "ari"), clustering::ari(&truth, labels)?);
            measured.agreements.insert(figure.to_owned(), vec![(truth, labels.to_vec())]);
        }
        let of = |at: &usize| held_out.index.get(held_out.probe[*at]).episode.at() as u32;
        measured.episodes = places.iter().map(of).collect();
        Ok(measured)
    }
}
