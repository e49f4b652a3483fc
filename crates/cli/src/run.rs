//! `run` and `demo`: the whole loop, with a report. `--resume` on a finished run writes its page again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use experiments::briefing::briefing;
use experiments::cycle::class_scores::KernelAgreement;
use experiments::cycle::driver::SUMMARY;
use experiments::cycle::summary::{PolicyResult, Rewriting};
use experiments::cycle::wake::value_of;
use experiments::cycle::{RunSettings, RunSummary, run as run_loop};
use serde_json::json;

use crate::args::KeyArgs;
use crate::command_line;
use crate::failure::{Failure, Problem};
use crate::files;
use crate::table::{Align, table};
use crate::train::{
    FeatureArgs, HowArgs, Place, PresetArgs, SourceArgs, brief, interrupted, of_sections, quietly_prepared, watched,
};

/// What the demo is made from.
pub(crate) const DEMO_DATASET: &str = "embedded:libero_goal_mini";

#[derive(Debug, clap::Args)]
#[command(mut_arg("sets", of_sections))]
pub(crate) struct RunArgs {
    /// Datasets to learn one library and one policy from: directories, or `embedded:libero_goal_mini`
    #[arg(value_name = "DATASET", required_unless_present = "dataset")]
    positional: Vec<String>,
    /// The same as an option, which it was once.
    #[arg(long, value_name = "DATASET", num_args = 1.., conflicts_with = "positional", hide = true)]
    dataset: Vec<String>,
    /// Make one run per dataset instead, each in a subdirectory of RUN
    #[arg(long)]
    pub(crate) each: bool,
    #[command(flatten)]
    pub(crate) features: FeatureArgs,
    /// Directory for settings, models, library and report (created, or resumed with `--resume`)
    #[arg(long, value_name = "RUN")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) presets: PresetArgs,
    #[command(flatten)]
    pub(crate) how: HowArgs,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

impl RunArgs {
    /// The datasets, whichever way they were given.
    pub(crate) fn datasets(&self) -> Vec<String> {
        self.positional.iter().chain(&self.dataset).cloned().collect()
    }
}

#[derive(Debug, clap::Args)]
#[command(mut_arg("sets", of_sections))]
pub(crate) struct DemoArgs {
    /// Directory for the results (created, or resumed with `--resume`)
    #[arg(long, value_name = "RUN", default_value = "demo-run")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// The whole loop on datasets of the user: once on all of them, or once on each.
pub(crate) fn run(options: &RunArgs) -> Result<(), Failure> {
    let preset = &options.presets.joined();
    let settings = RunSettings::resolve(preset, &options.how.sets)?;
    let datasets = options.datasets();
    let runs: Vec<(Vec<String>, PathBuf)> = match options.each {
        true => outs(&datasets, &options.out)?
            .into_iter()
            .zip(&datasets)
            .map(|(out, one)| (vec![one.clone()], out))
            .collect(),
        false => vec![(datasets, options.out.clone())],
    };
    let place = Place::open(&options.how.compute)?;
    let mut made = Vec::new();
    for (dataset, out) in runs {
        let source = SourceArgs { dataset, features: options.features.clone() };
        let summary = one(&source, &options.keys, &settings, preset, &out, &options.how, &place)?;
        // Print each summary immediately so that a later failure does not lose it.
        if !options.how.compute.json && place.is_first() {
            let gap = if made.is_empty() { "" } else { "\n" };
            files::print(format!("{gap}{}", in_words(&out, &summary)).as_bytes())?;
        }
        made.push((out, summary));
    }
    if options.how.compute.json && place.is_first() { print_json(&made) } else { Ok(()) }
}

/// The whole loop on the dataset in the program.
pub(crate) fn demo(options: &DemoArgs) -> Result<(), Failure> {
    let settings = RunSettings::resolve("demo", &options.how.sets)?;
    let source = SourceArgs { dataset: vec![DEMO_DATASET.to_owned()], features: FeatureArgs::default() };
    let place = Place::open(&options.how.compute)?;
    let summary = one(&source, &KeyArgs::default(), &settings, "demo", &options.out, &options.how, &place)?;
    match options.how.compute.json {
        _ if !place.is_first() => Ok(()),
        true => print_json(&[(options.out.clone(), summary)]),
        false => files::print(in_words(&options.out, &summary).as_bytes()),
    }
}

fn one(
    source: &SourceArgs,
    keys: &KeyArgs,
    settings: &RunSettings,
    preset: &str,
    out: &Path,
    how: &HowArgs,
    place: &Place,
) -> Result<RunSummary, Failure> {
    let prepared = quietly_prepared(source, keys, settings.world_model.model.horizon)?;
    if place.is_first() {
        brief(&briefing(&prepared));
    }
    let made = watched(|observer| {
        let command = command_line::again(source, keys, preset, out, how);
        run_loop(&prepared, settings, place.options(out, preset, how, command, observer))
    });
    made?.ok_or_else(|| interrupted(out))
}

/// The directory of each dataset's run, in `out`.
///
/// # Errors
/// If two would be the same, or one would not lie in `out`.
fn outs(datasets: &[String], out: &Path) -> Result<Vec<PathBuf>, Failure> {
    let names: Vec<String> = datasets.iter().map(|dataset| name_of(dataset)).collect();
    let mut problems = Vec::new();
    for (at, (dataset, name)) in datasets.iter().zip(&names).enumerate() {
        if let "" | "." | ".." = name.as_str() {
            problems.push(format!("`{dataset}` does not end with a name"));
        } else if let Some(before) = names[..at].iter().position(|other| other == name) {
            problems.push(format!("`{}` and `{dataset}` both end with `{name}`", datasets[before]));
        }
    }
    if problems.is_empty() {
        return Ok(names.iter().map(|name| out.join(name)).collect());
    }
    Err(Problem::new("cannot choose a directory for the run of each dataset")
        .fact("expected", format!("a different name at the end of each path, for directories in `{}`", out.display()))
        .list(problems)
        .hint("write paths that end with a name, or run each dataset separately with its own `--out`")
        .into())
}

/// The last part of a dataset's path or name.
fn name_of(dataset: &str) -> String {
    let last = dataset.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or(dataset);
    last.to_owned()
}

fn print_json(made: &[(PathBuf, RunSummary)]) -> Result<(), Failure> {
    let all: Vec<_> = made.iter().map(|(out, summary)| json!({ "run": out, "summary": summary })).collect();
    files::print(&files::json_bytes(&all)?)
}

/// The summary of a run for a terminal.
fn in_words(out: &Path, summary: &RunSummary) -> String {
    let (learned, held_out) = summary.demonstrations;
    let library = summary.refactor.last().map(|last| &last.library);
    let entries = library.map_or(0, compression::Library::len);
    let judged: usize = summary.refactor.iter().map(|one| one.candidates.len()).sum();
    let labels = summary.labels.as_deref().unwrap_or("no labels were used");
    let mut text = format!(
        "{}: trained on {learned} demonstrations, evaluated on {held_out} held-out ones; {labels}\n\n\
         Skills: {} segments of motion form {} skills.\n",
        summary.dataset, summary.segments, summary.skills
    );
    if let Some(phases) = &summary.skill_phases {
        let _ = writeln!(
            text,
            "Agreement with the true phases on held-out frames: purity {:.3}, NMI {:.3}; F1 of the cuts {:.3}.",
            phases.purity, phases.nmi, phases.boundary_f1
        );
    }
    if let Some(matched) = &summary.classes {
        let (ours, theirs) = (matched.kernel.nmi, matched.actions.nmi);
        let _ = writeln!(
            text,
            "Classes under the kernel: NMI {ours:.3}; classes by the actions of the same segments: {theirs:.3}."
        );
    }
    if let Some(KernelAgreement { form, spearman: Some(spearman), pairs, .. }) = &summary.kernel {
        let name = form.name();
        let _ = writeln!(
            text,
            "The {name} kernel agrees with Monte Carlo at ρ = {spearman:.3} over {pairs} held-out pairs."
        );
    }
    if let (Some(first), Some(last)) = (summary.refactor.first(), summary.refactor.last()) {
        let _ = writeln!(
            text,
            "\nLibrary: {judged} candidates were judged, and the library has {entries} {}. All programs together take {:.0} nats \
             instead of {:.0}, of which the library itself takes {:.0}.",
            if entries == 1 { "entry" } else { "entries" },
            last.after.total(),
            first.before.total(),
            last.after.library
        );
    }
    if let Some(found) = summary.refactor.last().and_then(|last| last.held_out) {
        let (without, with) = found.per_demonstration();
        let _ = writeln!(
            text,
            "A held-out demonstration takes {with:.1} nats with the library and {without:.1} without it."
        );
    }
    for entry in library.iter().flat_map(|library| library.entries()) {
        let _ =
            writeln!(text, "  {} : {}   {} uses, {:.1} nats", entry.name, entry.principal_type, entry.uses, entry.gain);
        let _ = writeln!(text, "    {}", entry.body);
    }
    let _ = write!(text, "\nPolicies on held-out frames:\n\n{}", policies(&summary.arms));
    let _ = writeln!(text, "\nreport: {}  (open it in a browser)", out.join("report.html").display());
    let _ = writeln!(text, "figures: {}", out.join(SUMMARY).display());
    text
}

/// Held-out figures of policies, one column each.
pub(crate) fn policies(arms: &[PolicyResult]) -> String {
    let mut columns = vec![("", Align::Left), ("", Align::Left)];
    columns.extend(arms.iter().map(|arm| (arm.name.as_str(), Align::Right)));
    let mut names: Vec<(&str, &str)> = Vec::new();
    for one in arms.iter().flat_map(|arm| &arm.measures) {
        if !names.contains(&(&one.group, &one.name)) {
            names.push((&one.group, &one.name));
        }
    }
    let mut rows = Vec::new();
    let mut last = "";
    for (group, name) in names {
        let shown = if group == last { String::new() } else { group.to_owned() };
        last = group;
        let value = |arm: &PolicyResult| {
            value_of(&arm.measures, group, name).map_or("-".to_owned(), |value| format!("{value:.3}"))
        };
        rows.push([shown, name.to_owned()].into_iter().chain(arms.iter().map(value)).collect());
    }
    let count = |of: &dyn Fn(&Rewriting) -> String| -> Vec<String> {
        arms.iter().map(|arm| arm.rewriting.as_ref().map_or("-".to_owned(), of)).collect()
    };
    let rewritten = count(&|one| format!("{}/{}", one.rewritten, one.demonstrations));
    let used = count(&|one| format!("{}/{}", one.entries_used, one.entries));
    rows.push(["library".to_owned(), "demonstrations rewritten".to_owned()].into_iter().chain(rewritten).collect());
    rows.push([String::new(), "entries used".to_owned()].into_iter().chain(used).collect());
    table(&columns, &rows)
}
