//! The ablations A1 and A3 to A8. (A2 and A9 to A12 are open in the paper.)

use clustering::{KMeansConfig, Points, kmeans};
use models::world_model::ContrastMode;

use super::super::{
    BOUNDARY_F1, Bench, Cell, Clusterer, Column, Experiment, Measured, NMI_PHASE, NMI_TASK, Quoted, Suite,
};
use super::dynamics::{Actions, coordinates, imagined_places, kernel, signatures};
use super::lang::{instructions, learned};
use super::programs::syntactic;
use crate::error::Result;
use crate::prepared::Prepared;

/// `ablate`.
pub(super) struct Ablate;

const COLUMNS: [Column; 5] = [
    Column::new(NMI_TASK, "NMI task", 3),
    Column::new(NMI_PHASE, "NMI phase", 3),
    Column::new(BOUNDARY_F1, "boundary F1", 3),
    Column::new("entries", "entries", 1),
    Column::new("relative_length", "nats, relative to the full system", 2),
];

/// The full system.
const FULL: &str = "k_χ, full";

/// D_φ itself at the paper's default horizon, which A6 and A7 are compared with.
const KERNEL: &str = "A8: D_φ, k = 8";

/// The horizons of A8.
const HORIZONS: [(usize, &str); 4] =
    [(1, "A8: D_φ, k = 1"), (4, "A8: D_φ, k = 4"), (8, KERNEL), (16, "A8: D_φ, k = 16")];

/// What an entry must gain, in nats, with the gate on (paper: 4).
const GATE: f64 = 4.0;

/// The gate off. The search itself proposes nothing that makes programs and library longer.
const NO_GATE: f64 = 0.0;

impl Experiment for Ablate {
    fn name(&self) -> &'static str {
        "ablate"
    }

    fn question(&self) -> &'static str {
        "Which parts of the system carry its results"
    }

    fn source(&self) -> &'static str {
        "supplement D, A1 and A3 to A8"
    }

    fn departures(&self) -> &'static str {
        "World models train on task labels (`supcon`), as the paper's baseline of 0.462 does. A6 to A8 cluster D_φ itself by \
         rollouts; the paper clusters a trained head, and gives two baselines for A7 (0.285 and 0.462). A6 imagines one \
         action of another fragment, drawn at random. A3 and A4 measure the library of instructions; A4 has no return gate to \
         drop, because instructions have no returns, and our search, unlike the paper's parser, proposes nothing that makes \
         programs and library longer, so without the gate it admits what saves anything at all. The paper's 1.8 is relative \
         to its library with the gate. NMI of A6 \
         to A8 is over the fragments that are imagined (`paper.imagined`). The paper's values of A5 for goal and 10 are its \
         baseline less the gap that it gives."
    }

    fn units(&self) -> &'static [&'static str] {
        &["full-and-a5", "a1", "a3-and-a4", "a6", "a7-and-a8"]
    }

    fn columns(&self) -> &'static [Column] {
        &COLUMNS
    }

    fn paper(&self, suite: Option<Suite>, row: &str, column: &str) -> Option<Quoted> {
        let suite = suite?;
        match (row, column, suite) {
            (FULL, NMI_TASK, _) => {
                Quoted::spread_of_suite(Some(suite), [(0.462, 0.021), (0.867, 0.025), (0.915, 0.013), (0.754, 0.010)])
            }
            ("A1: syntactic distance", NMI_TASK, Suite::Object) => Quoted::spread(0.013, 0.004),
            ("A3: with parser" | "A4: with gate", "entries", Suite::Object) => Quoted::value(3.0),
            ("A3: without parser", "entries", _) => Quoted::value(0.0),
            ("A4: without gate", "entries", Suite::Object) => Quoted::value(47.0),
            ("A4: without gate", "relative_length", Suite::Object) => Quoted::value(1.8),
            ("A5: z_T, no amortizer", NMI_TASK, _) => Quoted::of_suite(Some(suite), [0.391, 0.875, 0.807, 0.715]),
            ("A6: random one-step", NMI_TASK, Suite::Object) => Quoted::value(0.089),
            ("A6: random one-step", NMI_TASK, Suite::Ten) => Quoted::value(0.357),
            ("A7: w_E = 0", NMI_TASK, Suite::Object) => Quoted::value(0.110),
            (_, NMI_TASK, Suite::Object) => {
                let place = HORIZONS.iter().position(|(_, name)| *name == row)?;
                Quoted::value([0.089, 0.418, 0.462, 0.451][place])
            }
            _ => None,
        }
    }

    fn contrasts(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("A1: syntactic distance", FULL),
            ("A5: z_T, no amortizer", FULL),
            ("A6: random one-step", KERNEL),
            ("A7: w_E = 0", KERNEL),
        ]
    }

    fn measure(&self, bench: &Bench<'_>, cell: &Cell) -> Result<Vec<Measured>> {
        let (prepared, seed) = (bench.dataset(&cell.dataset)?, cell.seed);
        let world = bench.world_settings(ContrastMode::Supcon);
        let judged = |row: &str, found: &_| bench.judged(prepared, row, found, Clusterer::KMeans, seed);
        Ok(match cell.unit.as_str() {
            "a1" => vec![judged("A1: syntactic distance", &syntactic(prepared)?)?],
            "a3-and-a4" => libraries(bench, prepared)?,
            "a6" => vec![kernel_row(bench, prepared, "A6: random one-step", (1, Actions::Random), 1.0, seed)?],
            "a7-and-a8" => {
                let mut rows = Vec::new();
                for (horizon, name) in HORIZONS {
                    rows.push(kernel_row(bench, prepared, name, (horizon, Actions::Own), 1.0, seed)?);
                }
                rows.push(kernel_row(bench, prepared, "A7: w_E = 0", (8, Actions::Own), 0.0, seed)?);
                rows
            }
            _ => {
                let (teacher, student) =
                    (bench.world_model(prepared, &world, seed)?, bench.distilled(prepared, &world, seed)?);
                let latents = bench.latents(prepared, &teacher, &prepared.held_out.all_starts())?;
                vec![judged(FULL, &bench.embedded(prepared, &student)?)?, judged("A5: z_T, no amortizer", &latents)?]
            }
        })
    }
}

/// Clusters D_φ at a horizon; `w_e` multiplies its rollout side.
fn kernel_row(
    bench: &Bench<'_>,
    prepared: &Prepared,
    row: &str,
    (horizon, actions): (usize, Actions),
    w_e: f64,
    seed: u64,
) -> Result<Measured> {
    let run = bench.world_model(prepared, &bench.world_settings(ContrastMode::Supcon), seed)?;
    let (config, places) = (kernel(bench, prepared, horizon, seed), imagined_places(bench, prepared));
    let found = signatures(bench, prepared, &run, (config, actions), &places)?;
    let points = coordinates(&found, config.w_r, config.w_e * w_e)?;
    // A model without returns expects the same of all fragments when rollouts do not count: one cluster.
    let labels = match points.values.chunks(points.width).all(|row| row == points.row(0)) {
        true => vec![0; places.len()],
        false => {
            let clusters = prepared.held_out.clusters.min(places.len());
            let config = KMeansConfig { clusters, seed, ..KMeansConfig::default() };
            kmeans(Points::new(&points.values, points.width)?, &config)?.labels
        }
    };
    bench.judged_some(prepared, row, &places, &labels)
}

/// A3 and A4: libraries of the instructions.
fn libraries(bench: &Bench<'_>, prepared: &Prepared) -> Result<Vec<Measured>> {
    let (parsed, whole) = (instructions(bench, prepared, true)?, instructions(bench, prepared, false)?);
    let (full, free, unparsed) = (learned(&parsed, GATE)?, learned(&parsed, NO_GATE)?, learned(&whole, GATE)?);
    let row = |name: &str, entries: usize| Measured::new(name, [("entries", entries as f64)]);
    Ok(vec![
        row("A3: with parser", full.admitted),
        row("A3: without parser", unparsed.admitted),
        row("A4: with gate", full.admitted).with("relative_length", 1.0),
        row("A4: without gate", free.admitted).with("relative_length", free.ratio / full.ratio),
    ])
}
