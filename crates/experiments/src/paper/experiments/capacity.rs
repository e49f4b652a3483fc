//! Whether a larger world model gives better clusters, without the contrastive term and with it.

use models::world_model::ContrastMode;

use super::super::{
    BOUNDARY_F1, Bench, Cell, Clusterer, Column, Experiment, Measured, NMI_PHASE, NMI_TASK, Quoted, Suite,
};
use crate::error::Result;

/// `capacity`.
pub(super) struct Capacity;

/// NMI of HDBSCAN against tasks.
const DENSE: &str = "hdbscan_nmi_task";

const COLUMNS: [Column; 4] = [
    Column::new(NMI_TASK, "NMI task", 3),
    Column::new(NMI_PHASE, "NMI phase", 3),
    Column::new(BOUNDARY_F1, "boundary F1", 3),
    Column::new(DENSE, "NMI task, HDBSCAN", 3),
];

impl Experiment for Capacity {
    fn name(&self) -> &'static str {
        "capacity"
    }

    fn question(&self) -> &'static str {
        "Does a larger world model cluster better, without the contrastive term and with it"
    }

    fn source(&self) -> &'static str {
        "section 4.5 and supplement C, table `supp_430m_4suite`"
    }

    fn departures(&self) -> &'static str {
        "`base` is the world model of the preset, `large` that of the preset named by `paper.large` with the same steps, \
         batches and data, at its own rate. `supcon` trains on task labels. The paper says once that its cells with contrast \
         are clustered by HDBSCAN; KMeans is the column that is compared with it, and HDBSCAN (10, 5) stands next to it."
    }

    fn units(&self) -> &'static [&'static str] {
        &["base-none", "large-none", "base-supcon", "large-supcon"]
    }

    fn columns(&self) -> &'static [Column] {
        &COLUMNS
    }

    fn paper(&self, suite: Option<Suite>, row: &str, column: &str) -> Option<Quoted> {
        match (row, column) {
            ("base-none", NMI_TASK) => Quoted::of_suite(suite, [0.285, 0.475, 0.493, 0.736]),
            ("large-none", NMI_TASK) => Quoted::of_suite(suite, [0.245, 0.329, 0.475, 0.646]),
            ("base-supcon", NMI_TASK) => {
                Quoted::spread_of_suite(suite, [(0.462, 0.021), (0.867, 0.025), (0.915, 0.013), (0.754, 0.010)])
            }
            ("large-supcon", NMI_TASK) => {
                Quoted::spread_of_suite(suite, [(0.9207, 0.016), (0.9213, 0.030), (0.934, 0.032), (0.892, 0.034)])
            }
            _ => None,
        }
    }

    fn contrasts(&self) -> &'static [(&'static str, &'static str)] {
        &[("large-none", "base-none"), ("large-supcon", "base-supcon")]
    }

    fn measure(&self, bench: &Bench<'_>, cell: &Cell) -> Result<Vec<Measured>> {
        let prepared = bench.dataset(&cell.dataset)?;
        let (size, contrast) = cell.unit.split_once('-').unwrap_or((&cell.unit, ""));
        let mut settings = match size {
            "large" => bench.settings.large.clone(),
            _ => bench.settings.run.world_model.clone(),
        };
        settings.model.contrast = if contrast == "supcon" { ContrastMode::Supcon } else { ContrastMode::None };
        let run = bench.distilled(prepared, &settings, cell.seed)?;
        let found = bench.embedded(prepared, &run)?;
        let row = bench.judged(prepared, cell.unit.clone(), &found, Clusterer::KMeans, cell.seed)?;
        let dense = bench.judged(prepared, "", &found, Clusterer::Hdbscan(10), cell.seed)?;
        Ok(vec![row.with(DENSE, dense.figures[NMI_TASK])])
    }
}
