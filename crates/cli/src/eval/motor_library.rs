//! `eval motor-library`: the paper's empty cell beside a library of skills.

use experiments::amortizer_phase::Teacher;
use experiments::cycle::settings::CycleSettings;
use experiments::motor_library::{MotorEntry, MotorOptions, MotorReport, SkillLibrary, Tokens, motor_library};
use experiments::resolve;

use super::args::MotorArgs;
use super::stopped;
use crate::failure::{Failure, Problem};
use crate::files;
use crate::table::{Align, table};
use crate::train::{SourceArgs, prepared, stop_flag, watched};

/// Runs the experiment on each dataset with its own world model, and prints all results.
pub(super) fn run(options: &MotorArgs) -> Result<(), Failure> {
    let (datasets, models) = (options.dataset.len(), options.world_model.len());
    if datasets != models {
        return Err(Problem::new(format!("{datasets} datasets and {models} world models"))
            .hint("give one `--world-model` for each `--dataset`, in the same order")
            .into());
    }
    let cycle: CycleSettings = resolve(&options.preset, &options.sets)?;
    let (device, stop) = (options.compute.device.open()?, stop_flag()?);
    let mut reports = Vec::new();
    for (dataset, run) in options.dataset.iter().zip(&options.world_model) {
        let teacher = Teacher::load(run, &device)?;
        let source = SourceArgs { dataset: vec![dataset.clone()], features: options.features.clone() };
        let prepared = prepared(&source, &options.keys, teacher.loaded.record.model.horizon)?;
        let report = watched(|observer| {
            let (seed, stop) = (options.seed, Some(stop));
            let wanted = MotorOptions { cycle: &cycle, seed, device: &device, stop, observer };
            motor_library(&prepared, &teacher, wanted)
        });
        reports.push(report?.ok_or_else(stopped)?);
    }
    match options.compute.json {
        true => files::print(&files::json_bytes(&reports)?),
        false => files::print(reports.iter().map(text).collect::<Vec<_>>().join("\n").as_bytes()),
    }
}

fn text(report: &MotorReport) -> String {
    let MotorReport { dataset, demonstrations, segments, strict, .. } = report;
    let mut text = format!(
        "{dataset}: {} training demonstrations ({} segments), {} held out ({} segments)\n\n",
        demonstrations.0, segments.0, demonstrations.1, segments.1
    );
    text += &format!(
        "Strict tokens: abstractions admitted from {} windows of {} steps; DTW within {} clusters of windows\n\n{}\n",
        strict.fragments,
        strict.length,
        strict.clusters,
        strict_table(report)
    );
    text += &format!("Skills: refactoring of the training motions through all gates\n\n{}", skills_table(report));
    for library in &report.skills {
        if !library.entries.is_empty() {
            text += &format!("\nEntries of skills by {}\n\n{}", named(library.tokens), entries_table(library));
        }
    }
    text
}

fn strict_table(report: &MotorReport) -> String {
    let columns = [
        ("threshold, nats", Align::Right),
        ("DTW", Align::Left),
        ("per emitted token (paper)", Align::Right),
        ("per call token", Align::Right),
        ("in all", Align::Right),
        ("with a motor symbol", Align::Right),
    ];
    let mut rows = Vec::new();
    for run in &report.strict.runs {
        for cell in &run.cells {
            rows.push(vec![
                cell.threshold.to_string(),
                if run.aligned { "yes" } else { "no" }.to_owned(),
                cell.per_emitted_token.to_string(),
                cell.per_call_token.to_string(),
                cell.total.to_string(),
                cell.total_with_symbols.to_string(),
            ]);
        }
    }
    table(&columns, &rows)
}

fn skills_table(report: &MotorReport) -> String {
    let columns = [
        ("classes by", Align::Left),
        ("skills", Align::Right),
        ("judged", Align::Right),
        ("admitted", Align::Right),
        ("of several motions", Align::Right),
        ("nats", Align::Left),
        ("held-out motions calling it", Align::Right),
        ("purity", Align::Right),
        ("NMI phase", Align::Right),
        ("boundary F1", Align::Right),
        ("replay error", Align::Right),
    ];
    let row = |library: &SkillLibrary| {
        let phases = library.phases;
        let (before, after) = (library.refactored.before.total(), library.refactored.after.total());
        vec![
            named(library.tokens).to_owned(),
            library.skills.to_string(),
            library.refactored.candidates.len().to_string(),
            library.entries.len().to_string(),
            library.of_several_motions.to_string(),
            format!("{before:.0} → {after:.0}"),
            format!("{} of {}", library.rewritten.1, report.demonstrations.1),
            maybe(phases.map(|phases| phases.purity)),
            maybe(phases.map(|phases| phases.nmi)),
            maybe(phases.map(|phases| phases.boundary_f1)),
            format!("{:.3}", library.replay.action_error),
        ]
    };
    table(&columns, &report.skills.iter().map(row).collect::<Vec<_>>())
}

fn entries_table(library: &SkillLibrary) -> String {
    let columns = [
        ("entry", Align::Left),
        ("motions", Align::Right),
        ("uses", Align::Right),
        ("nats", Align::Right),
        ("mean D_φ", Align::Right),
        ("ε_t", Align::Right),
        ("change of return", Align::Right),
        ("at most", Align::Right),
        ("standing still", Align::Right),
        ("body", Align::Left),
    ];
    let row = |MotorEntry { entry, motions, judgement }: &MotorEntry| {
        let figure = |gate: &str| judgement.as_ref().and_then(|judgement| judgement.figure(gate));
        let (soundness, returns) = (figure("soundness"), figure("returns"));
        vec![
            entry.name.clone(),
            motions.to_string(),
            entry.uses.to_string(),
            format!("{:.1}", entry.gain),
            maybe(soundness.and_then(|found| found.value)),
            maybe(soundness.and_then(|found| found.limit)),
            maybe(returns.and_then(|found| found.value)),
            maybe(returns.and_then(|found| found.high)),
            maybe(returns.and_then(|found| found.details.get("control").copied())),
            entry.body.clone(),
        ]
    };
    table(&columns, &library.entries.iter().map(row).collect::<Vec<_>>())
}

fn maybe(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.3}"))
}

fn named(tokens: Tokens) -> &'static str {
    match tokens {
        Tokens::Behaviour => "behaviour (D_φ)",
        Tokens::Actions => "actions",
    }
}
