//! The paper's experiments: a registry of which each entry is one file.
//!
//! ```text
//! Experiment ── units × datasets × seeds ──► cells ── measure ──► rows of figures ──► Report: table, JSON, SVG
//!                                             each a stage of OUT/NAME, models shared below OUT/models
//! ```
//! An [`Experiment`] says what it asks, which table of the paper it repeats, and how one cell is measured. Everything else is
//! here and in the modules below: [`Bench`] trains models once for all experiments and scores vectors against tasks **and**
//! phases, [`statistics`] has means over seeds, intervals over episodes and paired differences, [`Report`] puts the paper's
//! value next to ours. A cell that is finished is never computed again, and an interrupted one resumes from its checkpoint.
//!
//! To add an experiment, write a file below `experiments/` and add it to [`EXPERIMENTS`]; CONTRIBUTING has the recipe.

mod bench;
mod experiments;
mod figure;
mod report;
mod settings;
pub mod statistics;

use std::collections::BTreeMap;
use std::sync::Arc;

use models::training::distributed::Alone;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::bench::{Bench, Clusterer};
pub use self::experiments::EXPERIMENTS;
pub use self::report::{DataNote, Difference, Entry, Report, Row};
pub use self::settings::{PaperRun, PaperSettings};
use crate::cycle::Event;
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::run_dir::{RunDir, write_json, write_text};

/// The name of the dataset of experiments that make their own.
pub const OWN_DATA: &str = "recursive_pour";

/// One experiment of the paper.
pub trait Experiment: Sync {
    /// As it is written on the command line, and the name of its directory.
    fn name(&self) -> &'static str;

    /// What it asks, as a line of help.
    fn question(&self) -> &'static str;

    /// The table or section of the paper that it repeats.
    fn source(&self) -> &'static str;

    /// Where it departs from the paper and why, which rows use labels, and what a reader must know.
    fn departures(&self) -> &'static str;

    /// Whether it is run on datasets; if not, it makes its own data.
    fn needs_datasets(&self) -> bool {
        true
    }

    /// What is measured separately for each dataset and seed; also names of directories.
    fn units(&self) -> &'static [&'static str] {
        &["all"]
    }

    /// The columns of its table.
    fn columns(&self) -> &'static [Column] {
        &CLUSTERS
    }

    /// The paper's value of a figure, where it has one.
    fn paper(&self, _suite: Option<Suite>, _row: &str, _column: &str) -> Option<Quoted> {
        None
    }

    /// Pairs of rows, each the first minus the second, whose difference is a claim of the paper.
    fn contrasts(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Measures one cell: one or more rows of the table.
    ///
    /// # Errors
    /// `Interrupted` if training was stopped; everything that is finished is kept.
    fn measure(&self, bench: &Bench<'_>, cell: &Cell) -> Result<Vec<Measured>>;
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The figure's name.
    pub key: &'static str,
    /// Its heading.
    pub heading: &'static str,
    /// Digits after the point.
    pub digits: usize,
}

impl Column {
    const fn new(key: &'static str, heading: &'static str, digits: usize) -> Column {
        Column { key, heading, digits }
    }
}

/// Agreement with `task_index`, the paper's.
pub const NMI_TASK: &str = "nmi_task";
/// Agreement with the true phases: skills.
pub const NMI_PHASE: &str = "nmi_phase";
/// Changes of cluster against changes of phase.
pub const BOUNDARY_F1: &str = "boundary_f1";

/// Both questions of every clustering, and the boundaries.
pub const CLUSTERS: [Column; 3] = [
    Column::new(NMI_TASK, "NMI task", 3),
    Column::new(NMI_PHASE, "NMI phase", 3),
    Column::new(BOUNDARY_F1, "boundary F1", 3),
];

/// A value of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quoted {
    /// The value, or its mean.
    pub mean: f64,
    /// Its standard deviation over seeds, where the paper has one.
    pub std: Option<f64>,
}

impl Quoted {
    /// A value without a deviation.
    pub fn value(mean: f64) -> Option<Quoted> {
        Some(Quoted { mean, std: None })
    }

    /// A mean with its deviation over seeds.
    pub fn spread(mean: f64, std: f64) -> Option<Quoted> {
        Some(Quoted { mean, std: Some(std) })
    }

    /// The value of a suite from those of object, spatial, goal and 10.
    pub fn of_suite(suite: Option<Suite>, values: [f64; 4]) -> Option<Quoted> {
        Quoted::value(values[suite? as usize])
    }

    /// The same with deviations.
    pub fn spread_of_suite(suite: Option<Suite>, values: [(f64, f64); 4]) -> Option<Quoted> {
        let (mean, std) = values[suite? as usize];
        Quoted::spread(mean, std)
    }
}

/// The paper's suites, in the order of its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// `libero_object`.
    Object,
    /// `libero_spatial`.
    Spatial,
    /// `libero_goal`.
    Goal,
    /// `libero_10`.
    Ten,
}

impl Suite {
    /// The suite that a dataset is of, by its name.
    pub fn of(dataset: &str) -> Option<Suite> {
        [("object", Suite::Object), ("spatial", Suite::Spatial), ("goal", Suite::Goal), ("libero_10", Suite::Ten)]
            .into_iter()
            .find_map(|(part, suite)| dataset.contains(part).then_some(suite))
    }
}

/// What is measured at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The dataset's name.
    pub dataset: String,
    /// The unit.
    pub unit: String,
    /// The seed of models, batches, noise and clusters.
    pub seed: u64,
}

impl Cell {
    fn stage(&self) -> String {
        format!("{}/{}/seed-{}", self.dataset, self.unit, self.seed)
    }
}

/// Labels of the same fragments of one episode, by two sources.
pub type LabelPair = (Vec<i64>, Vec<i64>);

/// One row of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The row's name.
    pub row: String,
    /// Figures by name.
    pub figures: BTreeMap<String, f64>,
    /// For figures that are mean NMIs: the pairs of labellings of the probe, so that episodes can be drawn again.
    pub agreements: BTreeMap<String, Vec<LabelPair>>,
    /// The episode of each fragment of the probe, if there are agreements.
    pub episodes: Vec<u32>,
    /// Anything else that is worth keeping.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

impl Measured {
    /// A row of plain figures.
    pub fn new(row: impl Into<String>, figures: impl IntoIterator<Item = (&'static str, f64)>) -> Measured {
        let figures = figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Measured { row: row.into(), figures, ..Measured::default() }
    }

    /// The same with one figure more.
    pub fn with(mut self, name: &str, value: f64) -> Measured {
        self.figures.insert(name.to_owned(), value);
        self
    }
}

/// An experiment by its name.
pub fn experiment(name: &str) -> Option<&'static dyn Experiment> {
    EXPERIMENTS.into_iter().find(|one| one.name() == name)
}

/// Runs what is missing of an experiment, and writes `results.json`, `table.md` and `figure.svg` into its directory.
///
/// # Errors
/// `Interrupted` if the user stopped it; the same call continues.
pub fn run(experiment: &dyn Experiment, bench: &Bench<'_>, seeds: u64) -> Result<Report> {
    let names: Vec<String> = match experiment.needs_datasets() {
        true => bench.datasets.iter().map(|one| one.source.name.clone()).collect(),
        false => vec![OWN_DATA.to_owned()],
    };
    let mut measured: Vec<(Cell, Vec<Measured>)> = Vec::new();
    for dataset in &names {
        for (unit, seed) in experiment.units().iter().flat_map(|unit| (0..seeds).map(move |seed| (*unit, seed))) {
            let cell = Cell { dataset: dataset.clone(), unit: unit.to_owned(), seed };
            let rows = cell_of(experiment, bench, &cell)?;
            measured.push((cell, rows));
        }
    }
    let report = Report::new(experiment, bench, seeds, measured)?;
    let folder = bench.out.join(experiment.name());
    write_json(&folder.join("results.json"), &report)?;
    write_text(&folder.join("table.md"), report.markdown().as_bytes())?;
    write_text(&folder.join("figure.svg"), figure::figure(&report).as_bytes())?;
    Ok(report)
}

/// The rows of a cell: the stored ones, or those that are measured now.
pub(crate) fn cell_of(experiment: &dyn Experiment, bench: &Bench<'_>, cell: &Cell) -> Result<Vec<Measured>> {
    bench.check_stop()?;
    let config = json!({ "experiment": experiment.name(), "settings": bench.settings.of_cells() });
    let run = RunDir::open(&bench.out.join(experiment.name()), true, &config, Arc::new(Alone::default()))?;
    let inputs = match experiment.needs_datasets() {
        true => json!({ "cell": cell, "data": data_of(bench.dataset(&cell.dataset)?) }),
        false => json!({ "cell": cell }),
    };
    let (name, done) = (cell.stage(), run.is_done(&cell.stage())?);
    bench.tell(Event::Stage { name: &format!("{} {name}", experiment.name()), done });
    run.stage(&name, &inputs, || {
        let rows = experiment.measure(bench, cell)?;
        for (row, (figure, value)) in rows.iter().flat_map(|row| row.figures.iter().map(move |one| (&row.row, one))) {
            if !value.is_finite() {
                return Err(Error::Mismatch(format!(
                    "{}: the figure `{figure}` of `{row}` is {value} on {} with seed {}; this is a fault of the program",
                    experiment.name(),
                    cell.dataset,
                    cell.seed
                )));
            }
        }
        Ok(rows)
    })
}

/// What identifies the data of a cell, wherever it lies.
fn data_of(prepared: &Prepared) -> Value {
    let record = prepared.source.record();
    json!({
        "fingerprint": record.fingerprint,
        "encoder": record.encoder,
        "cameras": record.cameras,
        "held_out": prepared.split.held_out.iter().map(|episode| episode.at()).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_every_experiment_says_what_it_is() {
        let names: BTreeSet<&str> = EXPERIMENTS.iter().map(|one| one.name()).collect();
        assert_eq!(names.len(), EXPERIMENTS.len());
        for one in EXPERIMENTS {
            assert!(experiment(one.name()).is_some_and(|found| found.question() == one.question()));
            assert!(!one.question().is_empty() && !one.source().is_empty() && !one.departures().is_empty());
            assert!(!one.columns().is_empty() && !one.units().is_empty(), "{}", one.name());
            assert!(one.units().iter().all(|unit| !unit.contains(['/', ' '])), "units are names of directories");
            let clusters = one.columns().iter().any(|column| column.key == NMI_TASK);
            let skills = one.columns().iter().any(|column| column.key == NMI_PHASE);
            assert!(!clusters || skills, "{} answers one question of two", one.name());
        }
        assert!(experiment("phase-c").is_none());
    }

    #[test]
    fn suites_are_known_by_the_names_of_datasets() {
        assert_eq!(Suite::of("libero_object_image"), Some(Suite::Object));
        assert_eq!(Suite::of("libero_10"), Some(Suite::Ten));
        assert_eq!(Suite::of("aloha"), None);
        assert_eq!(Quoted::of_suite(Some(Suite::Goal), [1.0, 2.0, 3.0, 4.0]), Quoted::value(3.0));
        assert_eq!(Quoted::of_suite(None, [1.0; 4]), None);
    }
}
