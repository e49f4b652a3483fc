//! The matrix of phase C: datasets × modes × seeds, each cell resumable.
//!
//! | mode | phase A | phase C |
//! |---|---|---|
//! | `none` (b) | no contrast | distilled |
//! | `supcon` (b′) | contrast by `task_index` | distilled |
//! | `episode_contrast` | contrast by episodes | distilled |
//! | `episode_contrast_direct` (c) | | contrast by episodes |
//! | `task_index` (a), the bound | | contrast by `task_index` |
//! | `untrained` | first weights | first weights |
//!
//! Phase C is run without and with vision. Each dataset has a run directory and each cell is a stage of it: a finished cell is
//! never computed again, and an interrupted phase resumes from its checkpoint. `raw windows` are scored once per dataset.
//!
//! ```text
//! <out>/<dataset>/{config, raw}.json
//! <out>/<dataset>/<mode>/seed-0/{world-model, amortizer, amortizer-vision}/
//! <out>/<dataset>/<mode>/seed-0/result.json
//! <out>/results.json, <out>/table.md
//! ```

mod table;

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use candle_core::Device;
use models::amortizer::Supervision;
use models::training::checkpoint::{self, MODEL};
use models::training::distributed::Alone;
use models::training::{Outcome, Progress};
use models::world_model::ContrastMode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::amortizer_phase::{Teacher, train_amortizer};
use crate::error::{Error, Result, unless_interrupted};
use crate::prepared::Prepared;
use crate::run_dir::{RunDir, stored};
use crate::scores::Scores;
use crate::settings::{AmortizerSettings, WorldModelSettings};
use crate::summary;
use crate::trained::Launch;
use crate::world_model_phase::train_world_model;

pub(crate) use self::table::statistic;
pub use self::table::{Entry, Matrix, Statistic, matrix};

/// How the embedding comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// First weights.
    Untrained,
    /// (b) Distilled from a world model without contrast.
    None,
    /// (b′) Distilled from one with contrast by labels.
    Supcon,
    /// Distilled from one with contrast by episodes.
    EpisodeContrast,
    /// (c) Contrast by episodes, without a world model.
    EpisodeContrastDirect,
    /// (a) Contrast by labels, without a world model: the bound.
    TaskIndex,
}

impl Mode {
    /// All of them, as in the table.
    pub const ALL: [Mode; 6] = [
        Mode::Untrained,
        Mode::None,
        Mode::Supcon,
        Mode::EpisodeContrast,
        Mode::EpisodeContrastDirect,
        Mode::TaskIndex,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Untrained => "untrained",
            Mode::None => "none",
            Mode::Supcon => "supcon",
            Mode::EpisodeContrast => "episode_contrast",
            Mode::EpisodeContrastDirect => "episode_contrast_direct",
            Mode::TaskIndex => "task_index",
        }
    }

    /// The contrast of its world model, if it has one that is trained.
    pub(crate) fn contrast(self) -> Option<ContrastMode> {
        match self {
            Mode::None => Some(ContrastMode::None),
            Mode::Supcon => Some(ContrastMode::Supcon),
            Mode::EpisodeContrast => Some(ContrastMode::EpisodeContrast),
            Mode::Untrained | Mode::EpisodeContrastDirect | Mode::TaskIndex => None,
        }
    }

    /// What teaches its amortizer.
    pub(crate) fn supervision(self) -> Supervision {
        match self {
            Mode::TaskIndex => Supervision::TaskIndex,
            Mode::EpisodeContrastDirect => Supervision::EpisodeContrast,
            _ => Supervision::Distillation,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Mode, String> {
        let names = || Mode::ALL.map(|mode| format!("`{mode}`")).join(", ");
        Mode::ALL
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| format!("`{text}` is no mode; there are {}", names()))
    }
}

/// The result of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellResult {
    /// The dataset's name.
    pub dataset: String,
    /// The mode.
    pub mode: Mode,
    /// The seed.
    pub seed: u64,
    /// Seconds of this start; a cell that was resumed took more.
    pub seconds: f64,
    /// z_T of the world model, in modes that have one.
    pub world_model: Option<Scores>,
    /// k_χ on states and actions.
    pub amortizer: Scores,
    /// k_χ that sees as well; none for a dataset without cameras.
    pub with_vision: Option<Scores>,
}

/// How all cells are run.
pub struct Plan<'a> {
    /// Where results go.
    pub out: &'a Path,
    /// Of phase A; its contrast is the mode's.
    pub world_model: &'a WorldModelSettings,
    /// Of phase C; its supervision and vision are the mode's.
    pub amortizer: &'a AmortizerSettings,
    /// The preset's name, for the record.
    pub preset: &'a str,
    /// Where cells run.
    pub device: &'a Device,
    /// Set by someone else to stop between or within phases.
    pub stop: Option<&'a AtomicBool>,
}

impl Plan<'_> {
    /// The stage of a cell within the run directory of its dataset.
    fn stage(mode: Mode, seed: u64) -> String {
        format!("{mode}/seed-{seed}/result")
    }

    /// The result of a finished cell.
    pub fn result(&self, dataset: &str, mode: Mode, seed: u64) -> Result<Option<CellResult>> {
        stored(&self.out.join(dataset), &Plan::stage(mode, seed))
    }

    /// The run directory of a dataset. One whose cells were made with other settings, or on other data of the same name, is
    /// refused: their results would be mistaken for these.
    fn open(&self, prepared: &Prepared) -> Result<RunDir> {
        let config = json!({
            "settings": { "world_model": self.world_model, "amortizer": self.amortizer },
            "source": prepared.source.record(),
            "held_out": prepared.split.held_out.iter().map(|episode| episode.at()).collect::<Vec<_>>(),
        });
        RunDir::open(&self.out.join(&prepared.source.name), true, &config, Arc::new(Alone::default()))
    }

    /// Raw windows of a dataset, scored once.
    pub fn raw(&self, prepared: &Prepared) -> Result<Scores> {
        self.open(prepared)?.stage("raw", &(), || summary::raw_windows(prepared))
    }

    /// Computes a cell, or what is missing of it. `None` if the user interrupted it.
    pub fn run(
        &self,
        prepared: &Prepared,
        mode: Mode,
        seed: u64,
        progress: &mut dyn FnMut(&str, &Progress),
    ) -> Result<Option<CellResult>> {
        let run = self.open(prepared)?;
        let cell = run.stage(&Plan::stage(mode, seed), &(), || {
            let started = Instant::now();
            let folder = run.path(&format!("{mode}/seed-{seed}"));
            let sees = !prepared.source.caches.is_empty();
            let (world_model, amortizer, with_vision) = match mode {
                Mode::Untrained => self.untrained(prepared, seed, sees)?,
                _ => self.trained(prepared, mode, seed, &folder, sees, progress)?,
            };
            let (dataset, seconds) = (prepared.source.name.clone(), started.elapsed().as_secs_f64());
            Ok(CellResult { dataset, mode, seed, seconds, world_model, amortizer, with_vision })
        });
        unless_interrupted(cell)
    }

    fn untrained(&self, prepared: &Prepared, seed: u64, sees: bool) -> Result<Columns> {
        let world_model = sees
            .then(|| summary::untrained_world_model_scores(prepared, self.world_model, seed, self.device))
            .transpose()?;
        let of = |vision: bool| {
            let mut settings = self.student(vision, Supervision::TaskIndex);
            // As wide as those that a world model teaches, which most rows are.
            settings.model.embedding = self.world_model.model.latent;
            summary::untrained_amortizer_scores(prepared, &settings, seed, self.device)
        };
        Ok((world_model, of(false)?, sees.then(|| of(true)).transpose()?))
    }

    fn trained(
        &self,
        prepared: &Prepared,
        mode: Mode,
        seed: u64,
        folder: &Path,
        sees: bool,
        progress: &mut dyn FnMut(&str, &Progress),
    ) -> Result<Columns> {
        let mut world_model = None;
        let mut teacher = None;
        if let Some(contrast) = mode.contrast() {
            let run = folder.join("world-model");
            if !run.join(MODEL).exists() {
                let mut settings = self.world_model.clone();
                settings.model.contrast = contrast;
                let mut observer = |reading: &Progress| progress("world model", reading);
                let outcome = train_world_model(prepared, &settings, self.launch(&run, seed, &mut observer))?;
                if matches!(outcome, Outcome::Stopped(_)) {
                    return Err(Error::Interrupted);
                }
                // What a finished phase would go on from is several times its result.
                forget_checkpoints(&run)?;
            }
            world_model = Some(summary::world_model_scores(prepared, &run, self.device)?);
            teacher = Some(Teacher::load(&run, self.device)?);
        }
        let mut scores = Vec::new();
        for vision in [false, true].into_iter().filter(|vision| sees || !vision) {
            let run = folder.join(if vision { "amortizer-vision" } else { "amortizer" });
            if !run.join(MODEL).exists() {
                let settings = self.student(vision, mode.supervision());
                let mut observer = |reading: &Progress| progress("amortizer", reading);
                let launch = self.launch(&run, seed, &mut observer);
                let outcome = train_amortizer(prepared, &settings, teacher.as_ref(), launch)?;
                if matches!(outcome, Outcome::Stopped(_)) {
                    return Err(Error::Interrupted);
                }
                forget_checkpoints(&run)?;
            }
            scores.push(summary::amortizer_scores(prepared, &run, self.device)?);
        }
        Ok((world_model, scores[0], scores.get(1).copied()))
    }

    fn student(&self, vision: bool, supervision: Supervision) -> AmortizerSettings {
        let mut settings = self.amortizer.clone();
        settings.model.vision = vision;
        settings.supervision = supervision;
        settings
    }

    fn launch<'b>(&'b self, run: &'b Path, seed: u64, progress: &'b mut dyn FnMut(&Progress)) -> Launch<'b> {
        Launch {
            run,
            resume: true,
            preset: self.preset,
            seed,
            device: self.device,
            transport: Arc::new(Alone::default()),
            progress,
            stop: self.stop,
        }
    }
}

/// z_T, k_χ, k_χ with vision.
type Columns = (Option<Scores>, Scores, Option<Scores>);

fn forget_checkpoints(run: &Path) -> Result<()> {
    Ok(checkpoint::prune(run, 0)?)
}
