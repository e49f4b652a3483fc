//! `eval recursive-pour`: the error of imagined returns, as a table and JSON.

use experiments::matrix::Statistic;
use experiments::recursive_pour::{
    Errors, PAPER_BY_DEPTH, PAPER_SUP, PourOptions, PourReport, WorstFragment, recursive_pour,
};
use experiments::{WorldModelSettings, resolve};

use super::args::PourArgs;
use super::stopped;
use crate::failure::Failure;
use crate::files;
use crate::table::{Align, table};
use crate::train::{stop_flag, training};

/// Trains, evaluates and prints.
pub(super) fn run(options: &PourArgs) -> Result<(), Failure> {
    let settings: WorldModelSettings = resolve(&options.preset, &options.sets)?;
    let device = options.compute.device.open()?;
    let stop = stop_flag()?;
    let wanted = PourOptions {
        seeds: options.seeds,
        first_seed: 0,
        demos: options.demos as usize,
        training_demos: options.training_demos.unwrap_or(options.demos) as usize,
        pairs: options.pairs as usize,
        judged_on: options.judged_on.clone(),
        reward_scale: options.reward_scale,
        worst: options.worst as usize,
    };
    let report = training("recursive pour", settings.train.steps * options.seeds, |progress| {
        recursive_pour(&settings, &wanted, &device, Some(stop), &mut |seed, event| {
            let mut event = event.clone();
            event.step += seed * event.steps;
            event.eta_seconds *= 1.0 + (options.seeds - 1 - seed) as f64;
            progress(&event);
        })
    })?;
    let report = report.ok_or_else(stopped)?;
    match options.compute.json {
        true => files::print(&files::json_bytes(&report)?),
        false => files::print(text(&report, wanted.worst).as_bytes()),
    }
}

fn text(report: &PourReport, worst: usize) -> String {
    let PourReport { demonstrated, litres, constant, crossed, pairs, largest_return, .. } = report;
    let columns = [
        ("|R̂ − R|", Align::Left),
        ("demonstrated", Align::Right),
        ("paper", Align::Right),
        ("in litres", Align::Right),
        ("constant", Align::Right),
        ("crossed", Align::Right),
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: String, paper: String, constant: f64, of: &dyn Fn(&Errors<Statistic>) -> Statistic| {
        let [own, litres, crossed] = [demonstrated, litres, crossed].map(|errors| shown(&of(errors)));
        rows.push(vec![name, own, paper, litres, format!("{constant:.3}"), crossed]);
    };
    for (at, (paper, constant)) in PAPER_BY_DEPTH.into_iter().zip(&constant.by_depth).enumerate() {
        row(format!("η_{}", at + 1), format!("{paper:.3}"), *constant, &|errors| errors.by_depth[at]);
    }
    let paper = format!("{:.3} ± {:.3}", PAPER_SUP.0, PAPER_SUP.1);
    row("η_sup".to_owned(), paper, constant.sup, &|errors| errors.sup);
    row("mean".to_owned(), "-".to_owned(), constant.mean, &|errors| errors.mean);
    let nmi = report.seeds.iter().map(|seed| seed.clustering.nmi).sum::<f64>() / report.seeds.len().max(1) as f64;
    let judged_on = report.judged_on.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "{}\n{} seeds of the model, evaluated on demonstrations of seed {judged_on}, reward scale `{}`; {} demonstrated pairs \
         with returns up to {:.3}, {} crossed pairs with returns up to {:.3}; NMI of z_T against role × depth, k = 16: {nmi:.3}\n`constant` \
         predicts the mean return of training fragments of the same depth and first step.\n",
        table(&columns, &rows),
        report.seeds.len(),
        report.reward_scale.name(),
        pairs.0,
        largest_return.0,
        pairs.1,
        largest_return.1,
    );
    if worst > 0 {
        text.push_str(&format!(
            "\nThe demonstrated fragments with the largest errors:\n{}",
            worst_table(report, worst)
        ));
    }
    text
}

/// The worst fragments of all seeds of the model, the largest error first.
fn worst_table(report: &PourReport, count: usize) -> String {
    let columns = ["model", "demos", "episode", "depth", "start", "imagined", "true", "error", "litres"]
        .map(|heading| (heading, Align::Right));
    let mut all: Vec<(u64, &WorstFragment)> =
        report.seeds.iter().flat_map(|seed| seed.worst.iter().map(|one| (seed.seed, one))).collect();
    all.sort_by(|(_, one), (_, other)| other.error.total_cmp(&one.error));
    let row = |(seed, one): &(u64, &WorstFragment)| {
        let places = [*seed, one.demos, one.episode as u64, one.depth as u64, one.start as u64];
        let values = [one.imagined, one.truth, one.error, one.litres];
        places.iter().map(u64::to_string).chain(values.iter().map(|value| format!("{value:.3}"))).collect()
    };
    table(&columns, &all.iter().take(count).map(row).collect::<Vec<_>>())
}

fn shown(it: &Statistic) -> String {
    match it.std {
        None => format!("{:.3}", it.mean),
        Some(std) => format!("{:.3} ± {std:.3}", it.mean),
    }
}

#[cfg(test)]
mod tests {
    use dataset::recursive_pour::RewardScale;
    use experiments::recursive_pour::PourSeed;
    use experiments::scores::Agreement;

    use super::*;

    fn worst(episode: usize, error: f64) -> WorstFragment {
        let truth = 0.5;
        WorstFragment {
            demos: 12,
            episode,
            depth: 2,
            start: 3,
            imagined: truth + error,
            truth,
            error,
            litres: 2.0 * error,
        }
    }

    #[test]
    fn the_worst_fragments_of_all_seeds_are_listed_by_their_errors() {
        let numbers = || Errors { by_depth: vec![0.1, 0.3, 0.0, 0.0], sup: 0.3, mean: 0.1 };
        let statistics = || {
            let one = |mean: f64| Statistic { n: 2, mean, std: None, interval: (mean, mean) };
            Errors { by_depth: vec![one(0.1), one(0.3), one(0.0), one(0.0)], sup: one(0.3), mean: one(0.1) }
        };
        let seed = |seed: u64, worst: Vec<WorstFragment>| PourSeed {
            seed,
            demonstrated: numbers(),
            litres: numbers(),
            crossed: numbers(),
            clustering: Agreement { nmi: 0.5, ami: 0.5, ari: 0.5, purity: 0.5 },
            worst,
        };
        let report = PourReport {
            judged_on: vec![12],
            training_demos: 50,
            reward_scale: RewardScale::Depth,
            settings: WorldModelSettings::default(),
            demonstrated: statistics(),
            litres: statistics(),
            constant: numbers(),
            crossed: statistics(),
            pairs: (1400, 1),
            largest_return: (1.0, 1.0),
            seeds: vec![seed(0, vec![worst(7, 0.2), worst(8, 0.1)]), seed(1, vec![worst(9, 0.3), worst(10, 0.15)])],
        };
        let wanted = [
            "  model  demos  episode  depth  start  imagined   true  error  litres\n",
            "      1     12        9      2      3     0.800  0.500  0.300   0.600\n",
            "      0     12        7      2      3     0.700  0.500  0.200   0.400\n",
            "      1     12       10      2      3     0.650  0.500  0.150   0.300\n",
        ];
        assert_eq!(worst_table(&report, 3), wanted.concat());
        let all = text(&report, 3);
        assert!(all.contains("reward scale `depth`") && all.contains("η_2"), "{all}");
        assert!(!text(&report, 0).contains("largest errors"));
    }
}
