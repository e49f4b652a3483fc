//! `eval baselines`: equivalence operators of other systems next to ours.

use std::path::PathBuf;
use std::sync::Arc;

use experiments::baselines::{
    Budget, Comparison, Fragments, Settings as Compared, Trainings, compare, operators_named,
};
use experiments::cycle::settings::CycleSettings;
use experiments::run_dir::{RunDir, write_json, write_text};
use experiments::settings::{Settings, by_section};
use experiments::{AmortizerSettings, Error, Prepared, Source, WorldModelSettings, resolve};
use models::training::distributed::Alone;
use serde_json::json;

use crate::args::KeyArgs;
use crate::failure::{Failure, Problem};
use crate::files;
use crate::train::{ComputeArgs, FeatureArgs, note, open_source, say, stop_flag_with};

#[derive(Debug, clap::Args)]
pub(crate) struct BaselinesArgs {
    /// Datasets, each compared on its own: directories, or `embedded:libero_goal_mini`
    #[arg(value_name = "DATASET", required = true)]
    datasets: Vec<String>,
    /// Results directory (created, or resumed if it exists)
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Operators to compare, such as `ours_segments,blade` [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    operators: Vec<String>,
    /// How much operators learn from: `paper` (4096 fragments, 500 steps) or `converged` (all fragments, 4000 steps)
    #[arg(long, value_name = "BUDGET", default_value = "paper")]
    budget: String,
    /// Steps of all trainings, instead of the budget's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// Number of seeds of the chosen settings
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    #[command(flatten)]
    features: FeatureArgs,
    /// Preset of our model sizes: a preset's name, or a TOML file of differences; the budget sets the steps
    #[arg(long, value_name = "PRESET", default_value = "small")]
    preset: String,
    /// Change a setting of ours, such as `world_model.batch=16` or `cycle.classes.starts=4`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    #[command(flatten)]
    compute: ComputeArgs,
    #[command(flatten)]
    keys: KeyArgs,
}

/// Compares on each dataset, and prints all comparisons.
pub(super) fn run(options: &BaselinesArgs) -> Result<(), Failure> {
    if options.features.tuning {
        return Err(Problem::new("`--tuning` is always on here: settings are chosen on training episodes")
            .hint("leave it out")
            .into());
    }
    let sections = [WorldModelSettings::SECTION, AmortizerSettings::SECTION, CycleSettings::SECTION];
    let sets = by_section(&options.sets, &sections)?;
    let world_model: WorldModelSettings = resolve(&options.preset, &sets[0])?;
    let amortizer: AmortizerSettings = resolve(&options.preset, &sets[1])?;
    let cycle: CycleSettings = resolve(&options.preset, &sets[2])?;
    let mut budget = Budget::named(&options.budget)?;
    if let Some(steps) = options.steps {
        budget = Budget { name: format!("{}, {steps} steps", budget.name), steps, ..budget };
    }
    let operators = operators_named(&options.operators)?;
    let stop = stop_flag_with("stopping; press Ctrl-C again to end at once")?;
    let device = options.compute.device.open()?;
    let length = world_model.model.horizon.min(dataset::FRAGMENT_LENGTH);
    let hold_out = options.features.hold_out.map(std::num::NonZeroUsize::get);
    let mut comparisons = Vec::new();
    for written in &options.datasets {
        let open = || -> Result<Source, Failure> { open_source(written, &options.features, &options.keys) };
        let judged = Prepared::new(open()?, hold_out, length)?;
        note(&judged.notes);
        let tuning = Prepared::for_tuning(open()?, hold_out, length)?;
        let config = json!({
            "settings": { "world_model": world_model, "amortizer": amortizer, "cycle": cycle, "budget": budget },
            "source": judged.source.record(),
            "held_out": judged.split.held_out.iter().map(|episode| episode.at()).collect::<Vec<_>>(),
        });
        let run = RunDir::open(&options.out.join(&judged.source.name), true, &config, Arc::new(Alone::default()))?;
        let trainings = |name: &str| Trainings {
            world_model: world_model.clone(),
            amortizer: amortizer.clone(),
            cycle: cycle.clone(),
            preset: options.preset.clone(),
            folder: run.path(&format!("models/{name}")),
            stop: Some(stop),
        };
        let judged_data = Fragments::new(&judged, budget.clone(), trainings("judged"), &device)?;
        let tuning_data = Fragments::new(&tuning, budget.clone(), trainings("tuning"), &device)?;
        let settings = Compared { seeds: options.seeds, ..Compared::default() };
        let name = judged.source.name.clone();
        let mut observer = |what: &str| say(&format!("{name}: {what}"));
        let compared = compare(&judged_data, &tuning_data, &operators, &settings, &run, &device, &mut observer);
        let compared = compared.map_err(|error| match error {
            Error::Interrupted => stopped(),
            other => other.into(),
        })?;
        write_json(&run.path("comparison.json"), &compared)?;
        write_text(&run.path("comparison.md"), compared.markdown().as_bytes())?;
        comparisons.push(compared);
    }
    match options.compute.json {
        true => files::print(&files::json_bytes(&comparisons)?),
        false => files::print(comparisons.iter().map(Comparison::markdown).collect::<Vec<_>>().join("\n").as_bytes()),
    }
}

fn stopped() -> Failure {
    Problem::new("stopped; finished operators and seeds are kept").hint("the same command continues").into()
}
