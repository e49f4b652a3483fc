//! From which part of an episode the contrastive term takes its pairs, without labels: whole, half, quarter.

use dataset::PositiveWindow;
use models::amortizer::Supervision;

use super::super::{Bench, Cell, Clusterer, Experiment, Measured, NMI_TASK, Quoted, Suite};
use crate::error::Result;

/// `windows`.
pub(super) struct ContrastWindows;

impl Experiment for ContrastWindows {
    fn name(&self) -> &'static str {
        "windows"
    }

    fn question(&self) -> &'static str {
        "From how large a part of an episode should the label-free contrast take its pairs"
    }

    fn source(&self) -> &'static str {
        "mode (c) of table `headline`, and section 5, \"window-conditional positive sampler\""
    }

    fn departures(&self) -> &'static str {
        "No labels. k_χ learns from pairs of fragments of one episode, without a world model. The paper gives quarter \
         windows for `libero_10` alone, and half windows for no suite."
    }

    fn units(&self) -> &'static [&'static str] {
        &["whole", "half", "quarter"]
    }

    fn paper(&self, suite: Option<Suite>, row: &str, column: &str) -> Option<Quoted> {
        match (row, column, suite?) {
            ("whole", NMI_TASK, Suite::Object) => Quoted::spread(0.427, 0.030),
            ("whole", NMI_TASK, Suite::Spatial) => Quoted::spread(0.811, 0.055),
            ("whole", NMI_TASK, Suite::Goal) => Quoted::spread(0.898, 0.030),
            ("whole", NMI_TASK, Suite::Ten) => Quoted::value(0.716),
            ("quarter", NMI_TASK, Suite::Ten) => Quoted::value(0.761),
            _ => None,
        }
    }

    fn contrasts(&self) -> &'static [(&'static str, &'static str)] {
        &[("half", "whole"), ("quarter", "whole")]
    }

    fn measure(&self, bench: &Bench<'_>, cell: &Cell) -> Result<Vec<Measured>> {
        let prepared = bench.dataset(&cell.dataset)?;
        let mut settings = bench.student_settings(Supervision::EpisodeContrast);
        settings.positive_window = match cell.unit.as_str() {
            "half" => PositiveWindow::Half,
            "quarter" => PositiveWindow::Quarter,
            _ => PositiveWindow::Whole,
        };
        let run = bench.amortizer(prepared, &settings, None, cell.seed)?;
        let found = bench.embedded(prepared, &run)?;
        Ok(vec![bench.judged(prepared, cell.unit.clone(), &found, Clusterer::KMeans, cell.seed)?])
    }
}
