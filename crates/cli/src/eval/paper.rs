//! `eval NAME`, `eval all` and `eval list`: the paper's experiments, as the registry of `experiments::paper` has them.

use std::cell::RefCell;
use std::path::PathBuf;

use clap::{ArgMatches, Args as _, Command, FromArgMatches, Subcommand};
use experiments::Prepared;
use experiments::error::unless_interrupted;
use experiments::paper::{self, Bench, EXPERIMENTS, Experiment, PaperRun, Report};
use serde_json::json;

use crate::args::KeyArgs;
use crate::command_line;
use crate::failure::{Failure, Problem};
use crate::files;
use crate::table::{Align, table};
use crate::train::place::in_words;
use crate::train::{ComputeArgs, FeatureArgs, note, open_source, split, stop_flag, watched};

/// All experiments, one after the other.
const ALL: &str = "all";
/// What there is.
const LIST: &str = "list";

/// One of the experiments, all of them, or their list.
#[derive(Debug)]
pub(crate) struct PaperCommand {
    name: String,
    /// None for the list.
    options: Option<Box<PaperArgs>>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PaperArgs {
    /// Datasets, each evaluated on its own: directories, or `embedded:libero_goal_mini`
    #[arg(value_name = "DATASET", default_value = "embedded:libero_goal_mini")]
    datasets: Vec<String>,
    /// Results directory (created, or resumed if it exists)
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Number of seeds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    #[command(flatten)]
    features: FeatureArgs,
    /// Preset of model sizes and training lengths: `smoke`, `tiny`, `small`, `gpu`, `m188`, `m430`, or a TOML file
    #[arg(long, value_name = "PRESET", default_value = "small")]
    preset: String,
    /// Change a setting, such as `world_model.train.steps=100` or `paper.resamples=1000`; may be given several times
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    sets: Vec<String>,
    #[command(flatten)]
    compute: ComputeArgs,
    #[command(flatten)]
    keys: KeyArgs,
}

impl FromArgMatches for PaperCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<PaperCommand, clap::Error> {
        let Some((name, own)) = matches.subcommand() else {
            return Err(clap::Error::new(clap::error::ErrorKind::MissingSubcommand));
        };
        let options = match name {
            LIST => None,
            _ => Some(Box::new(PaperArgs::from_arg_matches(own)?)),
        };
        Ok(PaperCommand { name: name.to_owned(), options })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = PaperCommand::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for PaperCommand {
    fn augment_subcommands(command: Command) -> Command {
        let of = |name: &'static str, about: &'static str, example: String| {
            let command = PaperArgs::augment_args(Command::new(name));
            command.about(about).after_help(format!(
                "Examples:\n  {example}\n\nResults are `results.json`, `table.md` and `figure.svg` in DIR/NAME. Finished cells \
                 are not run again: the\nsame command continues after an interruption, and more seeds or datasets add to what is \
                 there."
            ))
        };
        let command = EXPERIMENTS.iter().fold(command, |command, one| {
            let name = one.name();
            let data = if one.needs_datasets() { " demos/libero_object demos/libero_goal" } else { "" };
            let example = format!(
                "refactor-vla eval {name} --preset smoke --out runs/smoke\n  refactor-vla eval {name}{data} --features features \
                 \\\n      --preset m188 --device cuda:0 --out runs/paper"
            );
            command.subcommand(of(name, one.question(), example))
        });
        let example = "refactor-vla eval all --preset smoke --seeds 1 --out runs/smoke".to_owned();
        command
            .subcommand(of(ALL, "Run all experiments of the paper, one after the other", example))
            .subcommand(Command::new(LIST).about("List the experiments of the paper with what they ask"))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        PaperCommand::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        name == ALL || name == LIST || paper::experiment(name).is_some()
    }
}

/// Runs one experiment or all of them, or lists them.
pub(crate) fn run(command: &PaperCommand) -> Result<(), Failure> {
    let Some(options) = &command.options else { return files::print(list().as_bytes()) };
    let chosen: Vec<&dyn Experiment> = match paper::experiment(&command.name) {
        Some(one) => vec![one],
        None => EXPERIMENTS.to_vec(),
    };
    let settings = PaperRun::resolve(&options.preset, &options.sets)?;
    let (device, stop) = (options.compute.device.open()?, stop_flag()?);
    let horizon = settings.run.world_model.model.horizon;
    let mut datasets: Vec<Prepared> = Vec::new();
    if chosen.iter().any(|one| one.needs_datasets()) {
        for written in &options.datasets {
            let source = open_source(written, &options.features, &options.keys)?;
            if datasets.iter().any(|other| other.source.name == source.name) {
                return Err(Problem::new(format!("two datasets are called `{}`", source.name))
                    .hint("results are told apart by the last part of a dataset's path; rename one of the directories")
                    .into());
            }
            datasets.push(split(source, &options.features, horizon)?);
        }
        datasets.iter().for_each(|one| note(&one.notes));
    }
    let command = command_line::typed();
    let mut reports = Vec::new();
    for one in chosen {
        let report = watched(|observer| {
            let bench = Bench {
                settings: &settings,
                preset: &options.preset,
                datasets: &datasets,
                out: &options.out,
                device: &device,
                runs_on: in_words(&device),
                command: command.clone(),
                stop: Some(stop),
                observer: RefCell::new(observer),
            };
            unless_interrupted(paper::run(one, &bench, options.seeds))
        })?;
        let report = report.ok_or_else(stopped)?;
        if !options.compute.json {
            files::print(text(&report).as_bytes())?;
        }
        reports.push(report);
    }
    match (options.compute.json, reports.as_slice()) {
        (true, [one]) => files::print(&files::json_bytes(one)?),
        (true, all) => files::print(&files::json_bytes(&json!(all))?),
        (false, _) => Ok(()),
    }
}

fn list() -> String {
    let columns = [("experiment", Align::Left), ("question", Align::Left), ("paper", Align::Left)];
    let row = |one: &&dyn Experiment| vec![one.name().to_owned(), one.question().to_owned(), one.source().to_owned()];
    table(&columns, &EXPERIMENTS.iter().map(row).collect::<Vec<_>>())
}

/// The table of an experiment, its differences and its notes.
fn text(report: &Report) -> String {
    let shown = |(headings, rows): (Vec<String>, Vec<Vec<String>>), words: usize| {
        let align = |at: usize| if at < words { Align::Left } else { Align::Right };
        let columns: Vec<(&str, Align)> =
            headings.iter().enumerate().map(|(at, heading)| (heading.as_str(), align(at))).collect();
        table(&columns, &rows)
    };
    let mut text = format!("{}\n\n{}", report.experiment, shown(report.grid(), 2));
    if !report.differences.is_empty() {
        text += &format!("\nPaired differences\n\n{}", shown(report.differences_grid(), 4));
    }
    for note in report.notes() {
        text += &format!("\n{note}\n");
    }
    text + "\n"
}

fn stopped() -> Failure {
    Problem::new("interrupted; finished cells and checkpoints are kept")
        .hint("the same command continues and gives the same result")
        .into()
}
