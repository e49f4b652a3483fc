//! The policy after the whole loop: how well programs and actions are predicted, with a library, without one, and without
//! programs.

use std::sync::Arc;

use models::training::distributed::Alone;
use serde_json::json;

use super::super::{Bench, Cell, Column, Experiment, Measured, Quoted, Suite};
use crate::cycle::driver::arms::WITH;
use crate::cycle::summary::PolicyResult;
use crate::cycle::{Extensions, RunOptions, run};
use crate::error::{Error, Result};

/// `wake`.
pub(super) struct Wake;

const COLUMNS: [Column; 6] = [
    Column::new("token_accuracy", "token accuracy", 3),
    Column::new("velocity_error", "velocity error", 3),
    Column::new("velocity_error_as_run", "velocity error as run", 3),
    Column::new("rewritten", "share of demonstrations rewritten", 3),
    Column::new("entries_used", "entries used", 1),
    Column::new("entries", "entries", 1),
];

/// The measures of heads that are columns here.
const MEASURES: [(&str, &str); 3] = [
    ("token accuracy", "token_accuracy"),
    ("velocity error, oracle programs", "velocity_error"),
    ("velocity error", "velocity_error_as_run"),
];

impl Experiment for Wake {
    fn name(&self) -> &'static str {
        "wake"
    }

    fn question(&self) -> &'static str {
        "How well does the policy predict programs and actions, with a library and without"
    }

    fn source(&self) -> &'static str {
        "sections 3.3 and 4.3"
    }

    fn departures(&self) -> &'static str {
        "No labels. A cell is a whole run of the loop, as `refactor-vla run` makes it; its directory is below `models`. The \
         paper's programs and its definition of the velocity error are not public: ours is the mean square of the flow's \
         velocity given the demonstration's own program (an oracle), and, as the policy runs, given the emitted one. Figures \
         are of held-out frames."
    }

    fn columns(&self) -> &'static [Column] {
        &COLUMNS
    }

    fn paper(&self, suite: Option<Suite>, row: &str, column: &str) -> Option<Quoted> {
        match (row, column) {
            (WITH, "token_accuracy") => Quoted::of_suite(suite, [0.900, 0.904, 0.812, 0.900]),
            (WITH, "velocity_error") => Quoted::of_suite(suite, [0.090, 0.113, 0.097, 0.099]),
            (WITH, "rewritten") if suite? == Suite::Object => Quoted::value(1.0),
            (WITH, "entries_used") if suite? == Suite::Object => Quoted::value(2.0),
            (WITH, "entries") if suite? == Suite::Object => Quoted::value(3.0),
            _ => None,
        }
    }

    fn contrasts(&self) -> &'static [(&'static str, &'static str)] {
        &[("with library", "without library"), ("with library", "no programs")]
    }

    fn measure(&self, bench: &Bench<'_>, cell: &Cell) -> Result<Vec<Measured>> {
        let prepared = bench.dataset(&cell.dataset)?;
        let settings = &bench.settings.run;
        let out = bench.place(prepared, "loop", &json!({ "settings": settings, "seed": cell.seed }))?;
        let summary = bench.observed(|observer| {
            let options = RunOptions {
                out: &out,
                resume: true,
                preset: bench.preset,
                seed: cell.seed,
                device: bench.device,
                transport: Arc::new(Alone::default()),
                stop: bench.stop,
                observer,
                runs_on: bench.runs_on.clone(),
                command: bench.command.clone(),
                extensions: Extensions::default(),
            };
            run(prepared, settings, options)
        })?;
        Ok(summary.ok_or(Error::Interrupted)?.arms.iter().map(row).collect())
    }
}

fn row(arm: &PolicyResult) -> Measured {
    let mut row = Measured::new(arm.name.clone(), []);
    for (name, figure) in MEASURES {
        if let Some(found) = arm.measures.iter().find(|measure| measure.name == name) {
            row = row.with(figure, found.value);
        }
    }
    if let Some(rewriting) = &arm.rewriting {
        let share = rewriting.rewritten as f64 / rewriting.demonstrations.max(1) as f64;
        row = row
            .with("rewritten", share)
            .with("entries_used", rewriting.entries_used as f64)
            .with("entries", rewriting.entries as f64);
    }
    row
}
