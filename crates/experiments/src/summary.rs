//! What a phase reached, beside what was there before it: raw windows, and the same model untrained.

use std::path::Path;

use candle_core::Device;
use models::amortizer::{Amortizer, AmortizerConfig, Supervision};
use models::{WorldModel, WorldModelConfig};
use serde::{Deserialize, Serialize};

use crate::amortizer_phase::AmortizerObjective;
use crate::embeddings::{amortized, latents, windows};
use crate::error::Result;
use crate::prepared::Prepared;
use crate::scores::{Scores, scores};
use crate::settings::{AmortizerSettings, WorldModelSettings};
use crate::trained::{Loaded, Weights, load_amortizer_with, load_world_model_with};
use crate::world_model_phase::untrained;

/// One row of a table of scores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Whose vectors: `raw windows`, `untrained`, `trained`.
    pub vectors: String,
    /// How they score.
    pub scores: Scores,
}

/// The seed of clusterings that stand for a run.
const CLUSTER_SEED: u64 = 0;

/// KMeans and HDBSCAN on standardised (state, action) windows: what no learning at all reaches.
pub fn raw_windows(prepared: &Prepared) -> Result<Scores> {
    let table = prepared.table(prepared.scales.clone(), &Device::Cpu, models::Precision::F32, 1.0)?;
    let held_out = &prepared.held_out;
    scores(&windows(&table, &held_out.all_starts(), held_out.index.length())?, held_out, CLUSTER_SEED)
}

/// The finished run of phase A in a directory.
pub fn world_model_scores(prepared: &Prepared, run: &Path, device: &Device) -> Result<Scores> {
    of_world_model(prepared, &load_world_model_with(Weights::Learned, run, device)?, device)
}

/// The finished run of phase C in a directory.
pub fn amortizer_scores(prepared: &Prepared, run: &Path, device: &Device) -> Result<Scores> {
    of_amortizer(prepared, &load_amortizer_with(Weights::Learned, run, device)?, device)
}

/// The finished run of phase A beside raw windows and its untrained twin.
pub fn world_model_rows(prepared: &Prepared, run: &Path, device: &Device) -> Result<Vec<Row>> {
    let twin = of_world_model(prepared, &load_world_model_with(Weights::First, run, device)?, device)?;
    Ok(rows(raw_windows(prepared)?, twin, world_model_scores(prepared, run, device)?))
}

/// The finished run of phase C beside raw windows and its untrained twin, which sees through the same scales and is as wide.
pub fn amortizer_rows(prepared: &Prepared, run: &Path, device: &Device) -> Result<Vec<Row>> {
    let twin = of_amortizer(prepared, &load_amortizer_with(Weights::First, run, device)?, device)?;
    Ok(rows(raw_windows(prepared)?, twin, amortizer_scores(prepared, run, device)?))
}

fn of_world_model(
    prepared: &Prepared,
    loaded: &Loaded<WorldModel, WorldModelConfig>,
    device: &Device,
) -> Result<Scores> {
    loaded.check(prepared)?;
    let record = &loaded.record;
    let table = prepared.table(record.scales.clone(), device, loaded.parameters.precision(), record.model.discount)?;
    let held_out = &prepared.held_out;
    let found = latents(&loaded.model, &table, &held_out.all_starts(), held_out.index.length())?;
    scores(&found, held_out, CLUSTER_SEED)
}

fn of_amortizer(prepared: &Prepared, loaded: &Loaded<Amortizer, AmortizerConfig>, device: &Device) -> Result<Scores> {
    loaded.check(prepared)?;
    let table = prepared.table(loaded.record.scales.clone(), device, loaded.parameters.precision(), 1.0)?;
    let held_out = &prepared.held_out;
    let found = amortized(&loaded.model, &table, &held_out.all_starts(), held_out.index.length())?;
    scores(&found, held_out, CLUSTER_SEED)
}

/// M_φ with its first weights, without a run.
pub fn untrained_world_model_scores(
    prepared: &Prepared,
    settings: &WorldModelSettings,
    seed: u64,
    device: &Device,
) -> Result<Scores> {
    let objective = untrained(prepared, settings, seed, device)?;
    let held_out = &prepared.held_out;
    let found = latents(objective.model(), objective.table(), &held_out.all_starts(), held_out.index.length())?;
    scores(&found, held_out, CLUSTER_SEED)
}

/// k_χ with its first weights, without a run.
pub fn untrained_amortizer_scores(
    prepared: &Prepared,
    settings: &AmortizerSettings,
    seed: u64,
    device: &Device,
) -> Result<Scores> {
    // The first weights do not depend on what will teach it.
    let settings = AmortizerSettings { supervision: Supervision::TaskIndex, ..settings.clone() };
    let objective = AmortizerObjective::new(prepared, &settings, None, seed, device)?;
    let held_out = &prepared.held_out;
    let found = amortized(objective.model(), objective.table(), &held_out.all_starts(), held_out.index.length())?;
    scores(&found, held_out, CLUSTER_SEED)
}

/// The three rows of a finished phase.
fn rows(raw: Scores, untrained: Scores, trained: Scores) -> Vec<Row> {
    [("raw windows", raw), ("untrained", untrained), ("trained", trained)]
        .map(|(vectors, scores)| Row { vectors: vectors.to_owned(), scores })
        .to_vec()
}
