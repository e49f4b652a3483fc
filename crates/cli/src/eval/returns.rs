//! `eval returns`: imagined against true returns, and what the return gate is worth.

use experiments::amortizer_phase::Teacher;
use experiments::cycle::settings::CycleSettings;
use experiments::resolve;
use experiments::returns::{
    Calibration, Comparison, Errors, Kind, ReturnsOptions, ReturnsReport, Worth, calibration_plot, compare_returns,
};
use experiments::run_dir::write_text;

use super::args::ReturnsArgs;
use crate::failure::Failure;
use crate::files;
use crate::table::{Align, table};
use crate::train::prepared;

/// Compares each verifier, prints all results, and draws them if asked to.
pub(super) fn run(options: &ReturnsArgs) -> Result<(), Failure> {
    let cycle: CycleSettings = resolve(&options.preset, &options.sets)?;
    let device = options.compute.device.open()?;
    let wanted = ReturnsOptions { cycle: &cycle, windows: options.windows as usize, seed: options.seed };
    let mut reports = Vec::new();
    for run in &options.runs {
        let teacher = Teacher::load(run, &device)?;
        let prepared = prepared(&options.data, &options.keys, teacher.loaded.record.model.horizon)?;
        reports.push((files::shown(run), compare_returns(&prepared, &teacher, wanted, &device)?));
    }
    if let Some(path) = &options.plot {
        let found: Vec<(&str, &Calibration)> =
            reports.iter().map(|(run, report)| (run.as_str(), &report.found.calibration)).collect();
        write_text(path, calibration_plot(&found).as_bytes())?;
    }
    match options.compute.json {
        true => {
            let reports: Vec<&ReturnsReport> = reports.iter().map(|(_, report)| report).collect();
            files::print(&files::json_bytes(&reports)?)
        }
        false => {
            let texts: Vec<String> = reports.iter().map(|(run, report)| text(run, report)).collect();
            files::print(texts.join("\n").as_bytes())
        }
    }
}

fn text(run: &str, report: &ReturnsReport) -> String {
    let Comparison { training, windows, rollout_steps, discount, largest_return, calibration, .. } = &report.found;
    let mut text = format!(
        "{run}, trained on {}, evaluated on {} (whose training episodes are {} successful and {} failed ones): {windows} windows \
         of each held-out episode, at most {rollout_steps} steps imagined, γ {discount}, largest return {largest_return:.3}\n\n",
        report.trained_on, report.dataset, training.0, training.1
    );
    text += &outcomes(&report.found);
    text += &format!(
        "\nPearson {}, Spearman {}, expected calibration error {:.3}; AUC of successful against failed: windows {}, episodes \
         {}, by place {}\n\n",
        maybe(calibration.pearson),
        maybe(calibration.spearman),
        calibration.expected_calibration_error,
        maybe(report.found.auc_windows),
        maybe(report.found.auc_episodes),
        report.found.auc_by_place.iter().map(|auc| maybe(*auc)).collect::<Vec<_>>().join(" ")
    );
    text += &format!("Reliability\n\n{}\nReturn gate\n\n{}", reliability(calibration), worth(&report.found.worth));
    text
}

fn outcomes(found: &Comparison) -> String {
    let columns = [
        ("episodes", Align::Left),
        ("held out", Align::Right),
        ("windows", Align::Right),
        ("mean imagined", Align::Right),
        ("mean true", Align::Right),
        ("mean error", Align::Right),
        ("mean |error|", Align::Right),
    ];
    let row = |name: &str, episodes: usize, errors: Option<Errors>| {
        let number = |of: &dyn Fn(&Errors) -> f64| maybe(errors.as_ref().map(of));
        vec![
            name.to_owned(),
            episodes.to_string(),
            errors.map_or(0, |errors| errors.count).to_string(),
            number(&|errors| errors.imagined),
            number(&|errors| errors.truth),
            number(&|errors| errors.mean_error),
            number(&|errors| errors.mean_absolute_error),
        ]
    };
    let (won, lost) = (&found.successes, &found.failures);
    let rows = [
        row("successful", won.episodes, won.errors),
        row("failed", lost.episodes, lost.errors),
        row("all", won.episodes + lost.episodes, Some(found.calibration.errors)),
    ];
    table(&columns, &rows)
}

fn reliability(calibration: &Calibration) -> String {
    let columns = [
        ("imagined", Align::Left),
        ("windows", Align::Right),
        ("mean imagined", Align::Right),
        ("mean true", Align::Right),
    ];
    let rows: Vec<Vec<String>> = calibration
        .bins
        .iter()
        .map(|bin| {
            let range = format!("{:.3} to {:.3}", bin.from, bin.to);
            vec![range, bin.count.to_string(), maybe(bin.imagined), maybe(bin.truth)]
        })
        .collect();
    table(&columns, &rows)
}

fn worth(found: &[Worth]) -> String {
    let columns = [
        ("calls replaced by", Align::Left),
        ("candidates", Align::Right),
        ("calls", Align::Right),
        ("rejected", Align::Right),
        ("rejected by ε alone", Align::Right),
        ("change of return", Align::Right),
        ("standing still", Align::Right),
    ];
    let named = |kind: Kind| match kind {
        Kind::Stillness => "standing still",
        Kind::FailedEpisode => "a failed episode",
        Kind::SuccessfulEpisode => "another successful episode",
    };
    let row = |worth: &Worth| {
        vec![
            named(worth.replacement).to_owned(),
            worth.candidates.to_string(),
            worth.calls.to_string(),
            worth.rejected.to_string(),
            worth.rejected_by_margin.to_string(),
            maybe(worth.change),
            maybe(worth.control),
        ]
    };
    table(&columns, &found.iter().map(row).collect::<Vec<_>>())
}

fn maybe(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.3}"))
}
