//! Whether the benefit of the contrastive term depends on the clusterer: KMeans, and HDBSCAN with three smallest sizes.

use models::world_model::ContrastMode;

use super::super::{
    BOUNDARY_F1, Bench, Cell, Clusterer, Column, Experiment, Measured, NMI_PHASE, NMI_TASK, Quoted, Suite,
};
use crate::error::Result;

/// `clusterer`.
pub(super) struct ClustererSensitivity;

const COLUMNS: [Column; 5] = [
    Column::new(NMI_TASK, "NMI task", 3),
    Column::new(NMI_PHASE, "NMI phase", 3),
    Column::new(BOUNDARY_F1, "boundary F1", 3),
    Column::new("clusters", "clusters", 1),
    Column::new("noise", "noise", 3),
];

impl Experiment for ClustererSensitivity {
    fn name(&self) -> &'static str {
        "clusterer"
    }

    fn question(&self) -> &'static str {
        "Does the benefit of the contrastive term depend on the clusterer"
    }

    fn source(&self) -> &'static str {
        "supplement F, tables `supp_hdbscan_8cell` and `supp_hdbscan_lift`"
    }

    fn departures(&self) -> &'static str {
        "`supcon` trains on task labels. Noise of HDBSCAN is one more class, as in the paper. The paper's sizes 5 and 20 have \
         no table. HDBSCAN has no centres, so it gives no class to fragments outside the probe and no boundary F1."
    }

    fn units(&self) -> &'static [&'static str] {
        &["none", "supcon"]
    }

    fn columns(&self) -> &'static [Column] {
        &COLUMNS
    }

    fn paper(&self, suite: Option<Suite>, row: &str, column: &str) -> Option<Quoted> {
        match (row, column) {
            ("none, KMeans", NMI_TASK) => Quoted::of_suite(suite, [0.285, 0.475, 0.493, 0.736]),
            ("supcon, KMeans", NMI_TASK) => Quoted::of_suite(suite, [0.445, 0.861, 0.895, 0.784]),
            ("none, HDBSCAN 10", NMI_TASK) => Quoted::of_suite(suite, [0.266, 0.179, 0.471, 0.722]),
            ("supcon, HDBSCAN 10", NMI_TASK) => Quoted::of_suite(suite, [0.384, 0.862, 0.905, 0.746]),
            ("none, HDBSCAN 10", "clusters") => Quoted::of_suite(suite, [11.0, 4.0, 15.0, 15.0]),
            ("supcon, HDBSCAN 10", "clusters") => Quoted::of_suite(suite, [4.0, 10.0, 12.0, 9.0]),
            ("none, HDBSCAN 10", "noise") => Quoted::of_suite(suite, [0.470, 0.074, 0.357, 0.161]),
            ("supcon, HDBSCAN 10", "noise") => Quoted::of_suite(suite, [0.062, 0.070, 0.073, 0.111]),
            _ => None,
        }
    }

    fn contrasts(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("supcon, KMeans", "none, KMeans"),
            ("supcon, HDBSCAN 5", "none, HDBSCAN 5"),
            ("supcon, HDBSCAN 10", "none, HDBSCAN 10"),
            ("supcon, HDBSCAN 20", "none, HDBSCAN 20"),
        ]
    }

    fn measure(&self, bench: &Bench<'_>, cell: &Cell) -> Result<Vec<Measured>> {
        let prepared = bench.dataset(&cell.dataset)?;
        let contrast = if cell.unit == "supcon" { ContrastMode::Supcon } else { ContrastMode::None };
        let run = bench.distilled(prepared, &bench.world_settings(contrast), cell.seed)?;
        let found = bench.embedded(prepared, &run)?;
        let clusterers = [
            ("KMeans", Clusterer::KMeans),
            ("HDBSCAN 5", Clusterer::Hdbscan(5)),
            ("HDBSCAN 10", Clusterer::Hdbscan(10)),
            ("HDBSCAN 20", Clusterer::Hdbscan(20)),
        ];
        let judged = |(name, clusterer): (&str, Clusterer)| {
            bench.judged(prepared, format!("{}, {name}", cell.unit), &found, clusterer, cell.seed)
        };
        clusterers.into_iter().map(judged).collect()
    }
}
