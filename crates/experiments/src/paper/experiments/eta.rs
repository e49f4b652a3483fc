//! η: the error of imagined returns on RecursivePour, where the true ones are known.

use dataset::recursive_pour::SEED_EVAL;

use super::super::{Bench, Cell, Column, Experiment, Measured, Quoted, Suite};
use crate::cycle::Event;
use crate::error::{Error, Result};
use crate::recursive_pour::{PAPER_BY_DEPTH, PAPER_SUP, PourOptions, recursive_pour};
use crate::settings::{WorldModelSettings, resolve};

/// `eta`.
pub(super) struct Eta;

/// The largest error of a demonstrated pair of state and fragment.
pub(super) const ETA_SUP: &str = "eta_sup";
/// The mean error.
pub(super) const ETA_MEAN: &str = "eta_mean";

/// η_1 … η_4.
const BY_DEPTH: [&str; 4] = ["eta_1", "eta_2", "eta_3", "eta_4"];

const COLUMNS: [Column; 8] = [
    Column::new(ETA_SUP, "η_sup", 3),
    Column::new(BY_DEPTH[0], "η_1", 3),
    Column::new(BY_DEPTH[1], "η_2", 3),
    Column::new(BY_DEPTH[2], "η_3", 3),
    Column::new(BY_DEPTH[3], "η_4", 3),
    Column::new(ETA_MEAN, "mean error", 4),
    Column::new("crossed_sup", "η_sup, crossed", 3),
    Column::new("nmi_role", "NMI role × depth", 3),
];

/// The preset of the world model of RecursivePour, which is no dataset of a robot.
const PRESET: &str = "pour";

impl Experiment for Eta {
    fn name(&self) -> &'static str {
        "eta"
    }

    fn question(&self) -> &'static str {
        "How wrong are imagined returns where the true ones are known"
    }

    fn source(&self) -> &'static str {
        "supplement C, tables `supp_eta_recpour` and `supp_eta_perdepth` (five seeds)"
    }

    fn departures(&self) -> &'static str {
        "Figures are maxima over pairs, so they have a deviation over seeds and no interval. `crossed` has states and \
         fragments of different demonstrations, which is what Lemma 1 speaks of; the paper has none. The world model is that \
         of the preset `pour`; the paper gives no size. `--seeds 5` is the paper's number."
    }

    fn needs_datasets(&self) -> bool {
        false
    }

    fn columns(&self) -> &'static [Column] {
        &COLUMNS
    }

    fn paper(&self, _: Option<Suite>, _: &str, column: &str) -> Option<Quoted> {
        const STD: [f64; 4] = [0.011, 0.025, 0.023, 0.039];
        match BY_DEPTH.iter().position(|name| *name == column) {
            Some(depth) => Quoted::spread(PAPER_BY_DEPTH[depth], STD[depth]),
            None if column == ETA_SUP => Quoted::spread(PAPER_SUP.0, PAPER_SUP.1),
            None => None,
        }
    }

    fn measure(&self, bench: &Bench<'_>, cell: &Cell) -> Result<Vec<Measured>> {
        let paper = &bench.settings.paper;
        let mut settings: WorldModelSettings = resolve(PRESET, &[])?;
        settings.train.steps = paper.pour_steps.unwrap_or(settings.train.steps);
        settings.train.warmup = settings.train.warmup.min(settings.train.steps / 2);
        let options = PourOptions {
            seeds: 1,
            first_seed: cell.seed,
            demos: paper.pour_demos,
            training_demos: paper.pour_demos,
            pairs: paper.pour_pairs,
            judged_on: vec![SEED_EVAL],
            worst: 0,
            ..PourOptions::default()
        };
        let report = recursive_pour(&settings, &options, bench.device, bench.stop, &mut |_, progress| {
            bench.tell(Event::Training(progress));
        })?;
        let report = report.ok_or(Error::Interrupted)?;
        let seed = report.seeds.first().ok_or_else(|| Error::Mismatch("no seed was run".to_owned()))?;
        let mut row = Measured::new(
            "world model",
            [
                (ETA_SUP, seed.demonstrated.sup),
                (ETA_MEAN, seed.demonstrated.mean),
                ("crossed_sup", seed.crossed.sup),
                ("nmi_role", seed.clustering.nmi),
            ],
        );
        for (name, value) in BY_DEPTH.iter().zip(&seed.demonstrated.by_depth) {
            row = row.with(name, *value);
        }
        let constant = (BY_DEPTH.iter().zip(&report.constant.by_depth))
            .fold(Measured::new("mean return of training", []), |row, (name, value)| row.with(name, *value))
            .with(ETA_SUP, report.constant.sup)
            .with(ETA_MEAN, report.constant.mean);
        Ok(vec![row, constant])
    }
}
