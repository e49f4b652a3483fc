//! `run` and `demo`: the whole loop, with a report. `--resume` on a finished run writes its page again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use experiments::cycle::driver::SUMMARY;
use experiments::cycle::summary::WakeResult;
use experiments::cycle::{RunOptions, RunSettings, RunSummary, run as run_loop};
use serde_json::json;

use crate::args::KeyArgs;
use crate::command_line;
use crate::failure::{Failure, Problem};
use crate::files;
use crate::table::{Align, table};
use crate::train::{FeatureArgs, HowArgs, SourceArgs, Stages, of_sections, prepared, stop_flag};

/// What the demo is made from.
pub(crate) const DEMO_DATASET: &str = "embedded:libero_goal_mini";

#[derive(Debug, clap::Args)]
#[command(mut_arg("sets", of_sections))]
pub(crate) struct RunArgs {
    /// Datasets to learn one library and one policy from: directories, or `embedded:libero_goal_mini`
    #[arg(value_name = "DATASET", required_unless_present = "dataset")]
    positional: Vec<String>,
    /// The same as an option
    #[arg(long, value_name = "DATASET", num_args = 1.., conflicts_with = "positional", hide = true)]
    dataset: Vec<String>,
    /// Make one run per dataset instead, each in a subdirectory of RUN
    #[arg(long)]
    pub(crate) each: bool,
    #[command(flatten)]
    pub(crate) features: FeatureArgs,
    /// The directory to make: settings, models, library, report
    #[arg(long, value_name = "RUN")]
    pub(crate) out: PathBuf,
    /// Sizes and lengths: `demo`, `tiny`, `small`, `m188`, `m430`, or a TOML file of differences
    #[arg(long, value_name = "PRESET", default_value = "small")]
    pub(crate) preset: String,
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
    /// The directory to make
    #[arg(long, value_name = "RUN", default_value = "demo-run")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// The whole loop on datasets of the user: once on all of them, or once on each.
pub(crate) fn run(options: &RunArgs) -> Result<(), Failure> {
    let settings = RunSettings::resolve(&options.preset, &options.how.sets)?;
    let datasets = options.datasets();
    let runs: Vec<(Vec<String>, PathBuf)> = match options.each {
        true => outs(&datasets, &options.out)?
            .into_iter()
            .zip(&datasets)
            .map(|(out, one)| (vec![one.clone()], out))
            .collect(),
        false => vec![(datasets, options.out.clone())],
    };
    let mut made = Vec::new();
    for (dataset, out) in runs {
        let source = SourceArgs { dataset, features: options.features.clone() };
        let summary = one(&source, &options.keys, &settings, &options.preset, &out, &options.how)?;
        // Print each summary immediately so that a later failure does not lose it.
        if !options.how.compute.json {
            let gap = if made.is_empty() { "" } else { "\n" };
            files::print(format!("{gap}{}", story(&out, &summary)).as_bytes())?;
        }
        made.push((out, summary));
    }
    if options.how.compute.json { print_json(&made) } else { Ok(()) }
}

/// The whole loop on the dataset in the program.
pub(crate) fn demo(options: &DemoArgs) -> Result<(), Failure> {
    let settings = RunSettings::resolve("demo", &options.how.sets)?;
    let source = SourceArgs { dataset: vec![DEMO_DATASET.to_owned()], features: FeatureArgs::default() };
    let summary = one(&source, &KeyArgs::default(), &settings, "demo", &options.out, &options.how)?;
    match options.how.compute.json {
        true => print_json(&[(options.out.clone(), summary)]),
        false => files::print(story(&options.out, &summary).as_bytes()),
    }
}

fn one(
    source: &SourceArgs,
    keys: &KeyArgs,
    settings: &RunSettings,
    preset: &str,
    out: &Path,
    how: &HowArgs,
) -> Result<RunSummary, Failure> {
    let (device, stop) = (how.compute.device.open()?, stop_flag()?);
    let prepared = prepared(source, keys, settings.world_model.model.horizon)?;
    let mut stages = Stages::new();
    let made = run_loop(
        &prepared,
        settings,
        RunOptions {
            out,
            resume: how.resume,
            preset,
            seed: how.seed,
            device: &device,
            stop: Some(stop),
            tell: &mut |told| stages.told(&told),
            runs_on: on(&device),
            command: command_line::again(source, keys, preset, out, how),
        },
    );
    stages.finish();
    made?.ok_or_else(|| stopped(out))
}

/// It was told to stop.
pub(crate) fn stopped(out: &Path) -> Failure {
    Problem::new("stopped; what is done is kept")
        .fact("run", out.display())
        .hint("the same command with `--resume` goes on where it stopped")
        .into()
}

fn on(device: &experiments::Device) -> String {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    if device.is_cpu() { format!("cpu, {threads} threads") } else { "cuda".to_owned() }
}

/// The directory of each dataset's run: `out`, or one in it for each if there are several.
///
/// # Errors
/// If two would be the same, or one would not lie in `out`.
fn outs(datasets: &[String], out: &Path) -> Result<Vec<PathBuf>, Failure> {
    if let [_] = datasets {
        return Ok(vec![out.to_owned()]);
    }
    let names: Vec<String> = datasets.iter().map(|dataset| name_of(dataset)).collect();
    let mut problems = Vec::new();
    for (at, (dataset, name)) in datasets.iter().zip(&names).enumerate() {
        if let "" | "." | ".." = name.as_str() {
            problems.push(format!("`{dataset}` ends with no name"));
        } else if let Some(before) = names[..at].iter().position(|other| other == name) {
            problems.push(format!("`{}` and `{dataset}` are both called `{name}`", datasets[before]));
        }
    }
    if problems.is_empty() {
        return Ok(names.iter().map(|name| out.join(name)).collect());
    }
    Err(Problem::new("the runs of these datasets cannot have directories of their own")
        .fact("expected", format!("a different name at the end of each path, for directories in `{}`", out.display()))
        .list(problems)
        .hint("write paths that end with a name, or run each dataset by itself with an `--out` of its own")
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

/// A run in words.
fn story(out: &Path, summary: &RunSummary) -> String {
    let (learned, held_out) = summary.demonstrations;
    let library = summary.refactor.last().map(|last| &last.library);
    let entries = library.map_or(0, compression::Library::len);
    let judged: usize = summary.refactor.iter().map(|one| one.candidates.len()).sum();
    let mut text = format!(
        "{}: learned from {learned} demonstrations, judged on {held_out} others\n\n\
         Skills: {} stretches of motion fall into {} classes that do the same thing.\n",
        summary.dataset, summary.segments, summary.skills
    );
    if let Some(phases) = &summary.skill_phases {
        let _ = writeln!(
            text,
            "On held-out frames they agree with the true phases: purity {:.3}, NMI {:.3}; F1 of the cuts {:.3}.",
            phases.purity, phases.nmi, phases.boundary_f1
        );
    }
    if let (Some(first), Some(last)) = (summary.refactor.first(), summary.refactor.last()) {
        let _ = writeln!(
            text,
            "\nLibrary: of {judged} candidate programs {entries} passed the gates and are used. All programs together take {:.0} nats \
             instead of {:.0}, {:.0} of them the library itself.",
            last.after.total(),
            first.before.total(),
            last.after.library
        );
    }
    for entry in library.iter().flat_map(|library| library.entries()) {
        let _ =
            writeln!(text, "  {} : {}   {} uses, {:.1} nats", entry.name, entry.principal_type, entry.uses, entry.gain);
        let _ = writeln!(text, "    {}", entry.body);
    }
    let rows = [("with the library", &summary.with_library), ("without", &summary.without_library)];
    let _ = write!(
        text,
        "\nPolicy on held-out frames: what it writes rightly, and the error of its actions\n\n{}",
        policies(&rows)
    );
    let _ = writeln!(text, "\nreport: {}  (open it in a browser)", out.join("report.html").display());
    let _ = writeln!(text, "figures: {}", out.join(SUMMARY).display());
    text
}

/// Held-out figures of policies, by name.
pub(crate) fn policies(named: &[(&str, &WakeResult)]) -> String {
    let columns = [
        ("policy", Align::Left),
        ("tasks", Align::Right),
        ("skills", Align::Right),
        ("numbers", Align::Right),
        ("all tokens", Align::Right),
        ("whole programs", Align::Right),
        ("velocity error", Align::Right),
        ("rewritten", Align::Right),
        ("entries used", Align::Right),
    ];
    let row = |(name, WakeResult { scores, rewriting, .. }): &(&str, &WakeResult)| {
        vec![
            (*name).to_owned(),
            format!("{:.3}", scores.task_accuracy),
            format!("{:.3}", scores.structure_accuracy),
            format!("{:.3}", scores.number_accuracy),
            format!("{:.3}", scores.token_accuracy),
            format!("{:.3}", scores.exact),
            format!("{:.3}", scores.velocity),
            format!("{}/{}", rewriting.rewritten, rewriting.demonstrations),
            format!("{}/{}", rewriting.entries_used, rewriting.entries),
        ]
    };
    table(&columns, &named.iter().map(row).collect::<Vec<_>>())
}
