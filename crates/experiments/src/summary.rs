//! What a phase reached, beside what was there before it: raw windows, and the same model untrained.

use candle_core::Device;
use serde::{Deserialize, Serialize};

use crate::amortizer_phase::AmortizerObjective;
use crate::embeddings::{amortized, latents, windows};
use crate::error::Result;
use crate::prepared::Prepared;
use crate::run::{load_amortizer, load_world_model};
use crate::scores::{Scores, scores};
use crate::settings::{AmortizerSettings, Mode, WorldModelSettings};
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
pub fn world_model_scores(prepared: &Prepared, run: &std::path::Path, device: &Device) -> Result<Scores> {
    let loaded = load_world_model(run, device)?;
    loaded.check(prepared)?;
    let record = &loaded.record;
    let table = prepared.table(record.scales.clone(), device, loaded.parameters.precision(), record.model.discount)?;
    let held_out = &prepared.held_out;
    let found = latents(&loaded.model, &table, &held_out.all_starts(), held_out.index.length())?;
    scores(&found, held_out, CLUSTER_SEED)
}

/// The finished run of phase C in a directory.
pub fn amortizer_scores(prepared: &Prepared, run: &std::path::Path, device: &Device) -> Result<Scores> {
    let loaded = load_amortizer(run, device)?;
    loaded.check(prepared)?;
    let table = prepared.table(loaded.record.scales.clone(), device, loaded.parameters.precision(), 1.0)?;
    let held_out = &prepared.held_out;
    let found = amortized(&loaded.model, &table, &held_out.all_starts(), held_out.index.length())?;
    scores(&found, held_out, CLUSTER_SEED)
}

/// M_φ with its first weights.
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

/// k_χ with its first weights.
pub fn untrained_amortizer_scores(
    prepared: &Prepared,
    settings: &AmortizerSettings,
    seed: u64,
    device: &Device,
) -> Result<Scores> {
    // The first weights do not depend on what will teach it.
    let settings = AmortizerSettings { supervision: Mode::TaskIndex, ..settings.clone() };
    let objective = AmortizerObjective::new(prepared, &settings, None, seed, device)?;
    let held_out = &prepared.held_out;
    let found = amortized(objective.model(), objective.table(), &held_out.all_starts(), held_out.index.length())?;
    scores(&found, held_out, CLUSTER_SEED)
}

/// The three rows of a finished phase.
pub fn rows(raw: Scores, untrained: Scores, trained: Scores) -> Vec<Row> {
    [("raw windows", raw), ("untrained", untrained), ("trained", trained)]
        .map(|(vectors, scores)| Row { vectors: vectors.to_owned(), scores })
        .to_vec()
}
