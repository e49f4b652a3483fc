//! The matrix of phase C: how fragments cluster in every mode of supervision. The modes are those of [`crate::matrix`].

use models::amortizer::Supervision;

use super::super::{Bench, Cell, Clusterer, Experiment, Measured, NMI_TASK, Quoted, Suite};
use crate::amortizer_phase::AmortizerObjective;
use crate::embeddings::{Embeddings, amortized, latents, windows};
use crate::error::{Error, Result};
use crate::matrix::Mode;
use crate::prepared::Prepared;
use crate::world_model_phase::untrained;

/// `matrix`.
pub(super) struct Matrix;

/// The unit without any model.
const RAW: &str = "raw";

impl Experiment for Matrix {
    fn name(&self) -> &'static str {
        "matrix"
    }

    fn question(&self) -> &'static str {
        "How do held-out fragments cluster after phases A and C, by mode of supervision"
    }

    fn source(&self) -> &'static str {
        "table `headline`, section 4.4"
    }

    fn departures(&self) -> &'static str {
        "`supcon` and `task_index` train on task labels; the other rows use none. `untrained` models and raw windows show what \
         is there before anything is learned. The paper has no column for phases; its k_χ sees no images, so the rows with \
         vision are ours. k is the number of tasks in the probe."
    }

    fn units(&self) -> &'static [&'static str] {
        &[RAW, "untrained", "none", "supcon", "episode_contrast", "episode_contrast_direct", "task_index"]
    }

    fn paper(&self, suite: Option<Suite>, row: &str, column: &str) -> Option<Quoted> {
        if column != NMI_TASK {
            return None;
        }
        match row {
            "task_index k_χ" => Quoted::of_suite(suite, [0.928, 0.880, 0.931, 0.904]),
            "none k_χ" => Quoted::of_suite(suite, [0.285, 0.475, 0.493, 0.719]),
            "supcon k_χ" => {
                Quoted::spread_of_suite(suite, [(0.462, 0.021), (0.867, 0.025), (0.915, 0.013), (0.754, 0.010)])
            }
            "episode_contrast_direct k_χ" => match suite? {
                Suite::Ten => Quoted::value(0.716),
                _ => Quoted::spread_of_suite(suite, [(0.427, 0.030), (0.811, 0.055), (0.898, 0.030), (0.0, 0.0)]),
            },
            _ => None,
        }
    }

    fn contrasts(&self) -> &'static [(&'static str, &'static str)] {
        &[("supcon k_χ", "none k_χ"), ("none k_χ", "raw windows"), ("episode_contrast k_χ", "none k_χ")]
    }

    fn measure(&self, bench: &Bench<'_>, cell: &Cell) -> Result<Vec<Measured>> {
        let prepared = bench.dataset(&cell.dataset)?;
        let judged = |row: String, found: &Embeddings| bench.judged(prepared, row, found, Clusterer::KMeans, cell.seed);
        if cell.unit == RAW {
            return Ok(vec![judged("raw windows".to_owned(), &raw_windows(prepared)?)?]);
        }
        let mode: Mode = cell.unit.parse().map_err(Error::Mismatch)?;
        let vectors = match mode {
            Mode::Untrained => first_weights(bench, prepared, cell.seed)?,
            _ => trained(bench, prepared, mode, cell.seed)?,
        };
        vectors.iter().map(|(kind, found)| judged(format!("{mode} {kind}"), found)).collect()
    }
}

/// Standardised states and actions of all held-out fragments.
pub(super) fn raw_windows(prepared: &Prepared) -> Result<Embeddings> {
    let cpu = candle_core::Device::Cpu;
    let table = prepared.table(prepared.scales.clone(), &cpu, models::Precision::F32, 1.0)?;
    let held_out = &prepared.held_out;
    windows(&table, &held_out.all_starts(), held_out.index.length())
}

/// Vectors of all held-out fragments, with their names.
type Vectors = Vec<(&'static str, Embeddings)>;

fn trained(bench: &Bench<'_>, prepared: &Prepared, mode: Mode, seed: u64) -> Result<Vectors> {
    let mut found = Vec::new();
    let teacher = match mode.contrast() {
        None => None,
        Some(contrast) => {
            let run = bench.world_model(prepared, &bench.world_settings(contrast), seed)?;
            found.push(("z_T", bench.latents(prepared, &run, &prepared.held_out.all_starts())?));
            Some(run)
        }
    };
    for (kind, vision) in kinds(prepared) {
        let mut settings = bench.student_settings(mode.supervision());
        settings.model.vision = vision;
        let run = bench.amortizer(prepared, &settings, teacher.as_deref(), seed)?;
        found.push((kind, bench.embedded(prepared, &run)?));
    }
    Ok(found)
}

/// The same models with their first weights.
fn first_weights(bench: &Bench<'_>, prepared: &Prepared, seed: u64) -> Result<Vectors> {
    let (starts, length) = (prepared.held_out.all_starts(), prepared.held_out.index.length());
    let world_model = untrained(prepared, &bench.settings.run.world_model, seed, bench.device)?;
    let mut found = vec![("z_T", latents(world_model.model(), world_model.table(), &starts, length)?)];
    for (kind, vision) in kinds(prepared) {
        // The first weights do not depend on what will teach it, but on how wide it is: as wide as a taught one.
        let mut settings = bench.student_settings(Supervision::TaskIndex);
        settings.model.vision = vision;
        settings.model.embedding = bench.settings.run.world_model.model.latent;
        let objective = AmortizerObjective::new(prepared, &settings, None, seed, bench.device)?;
        found.push((kind, amortized(objective.model(), objective.table(), &starts, length)?));
    }
    Ok(found)
}

/// The amortizers of a dataset: without vision, and with it if there are features.
fn kinds(prepared: &Prepared) -> Vec<(&'static str, bool)> {
    let all = [("k_χ", false), ("k_χ + vision", true)];
    all.into_iter().filter(|(_, vision)| !vision || !prepared.source.caches.is_empty()).collect()
}
