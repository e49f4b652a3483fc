//! Library learning: task language, motor symbols token by token, and skills by behaviour.

use models::world_model::ContrastMode;

use super::super::{Bench, Cell, Column, Experiment, Measured, Quoted, Suite};
use super::lang::{instructions, learned};
use crate::amortizer_phase::Teacher;
use crate::error::{Error, Result};
use crate::motor_library::{MotorOptions, Tokens, motor_library};

/// `library`.
pub(super) struct LibraryLearning;

const COLUMNS: [Column; 4] = [
    Column::new("entries", "entries", 1),
    Column::new("nats", "nats saved", 1),
    Column::new("entries_at_half", "entries at 0.5 nats", 1),
    Column::new("held_out", "held-out programs calling it", 2),
];

/// What an entry must gain, in nats.
const GATE: f64 = 4.0;

impl Experiment for LibraryLearning {
    fn name(&self) -> &'static str {
        "library"
    }

    fn question(&self) -> &'static str {
        "Which libraries grow from task language, from motor symbols and from skills"
    }

    fn source(&self) -> &'static str {
        "section 4.6 and supplement H"
    }

    fn departures(&self) -> &'static str {
        "No labels. The paper's Lang cell has 200 episodes; ours has as many programs as the dataset has demonstrations, and \
         `library compress embedded:libero_object --cost nats` has its 200 (results/README.md). Our grammar writes an \
         instruction as `seq[pick x, place x (in y)]`, so one entry does what the paper's three do. Strict motor tokens are \
         counted at 4 nats per emitted token, and at 0.5, the lowest of the sweep. Skills are ours, the paper has none: \
         classes under D_φ, and classes by the segments' actions, both through all gates."
    }

    fn units(&self) -> &'static [&'static str] {
        &["language", "motor"]
    }

    fn columns(&self) -> &'static [Column] {
        &COLUMNS
    }

    fn paper(&self, suite: Option<Suite>, row: &str, column: &str) -> Option<Quoted> {
        match (row, column) {
            ("task language", "entries") if suite? == Suite::Object => Quoted::value(3.0),
            ("task language", "nats") if suite? == Suite::Object => Quoted::value(1211.0),
            ("motor symbols" | "motor symbols, DTW", "entries" | "entries_at_half") => Quoted::value(0.0),
            _ => None,
        }
    }

    fn measure(&self, bench: &Bench<'_>, cell: &Cell) -> Result<Vec<Measured>> {
        let (prepared, seed) = (bench.dataset(&cell.dataset)?, cell.seed);
        if cell.unit == "language" {
            let found = learned(&instructions(bench, prepared, true)?, GATE)?;
            let figures =
                [("entries", found.admitted as f64), ("nats", found.nats), ("programs", found.programs as f64)];
            return Ok(vec![Measured::new("task language", figures)]);
        }
        let run = bench.world_model(prepared, &bench.world_settings(ContrastMode::None), seed)?;
        let teacher = Teacher::load(&run, bench.device)?;
        let report = bench.observed(|observer| {
            let (cycle, device, stop) = (&bench.settings.run.cycle, bench.device, bench.stop);
            motor_library(prepared, &teacher, MotorOptions { cycle, seed, device, stop, observer })
        })?;
        let report = report.ok_or(Error::Interrupted)?;
        let mut rows = Vec::new();
        for run in &report.strict.runs {
            let at = |threshold: f64| {
                let cell = run.cells.iter().find(|cell| cell.threshold == threshold);
                cell.map_or(0.0, |cell| cell.per_emitted_token as f64)
            };
            let name = if run.aligned { "motor symbols, DTW" } else { "motor symbols" };
            rows.push(Measured::new(name, [("entries", at(4.0)), ("entries_at_half", at(0.5))]));
        }
        for library in &report.skills {
            let name = match library.tokens {
                Tokens::Behaviour => "skills under D_φ",
                Tokens::Actions => "skills by actions",
            };
            let saved = library.refactored.before.total() - library.refactored.after.total();
            let calling = library.rewritten.1 as f64 / (report.demonstrations.1.max(1)) as f64;
            let figures = [("entries", library.entries.len() as f64), ("nats", saved), ("held_out", calling)];
            rows.push(Measured::new(name, figures));
        }
        Ok(rows)
    }
}
