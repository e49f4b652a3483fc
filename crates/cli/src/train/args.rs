//! `train …` as it is typed.

use std::path::PathBuf;

use clap::{Arg, Subcommand};
use experiments::presets::AND;
use models::DeviceChoice;

use crate::args::KeyArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum TrainCommand {
    /// Phase A: train a world model
    #[command(after_help = "Examples:
  refactor-vla train world-model --out runs/a
  refactor-vla train world-model --out runs/a --resume
  refactor-vla train world-model demos/libero_goal --cache features --preset m188 \\
      --set world_model.model.contrast=episode_contrast --device cuda:0 --out runs/a

Safe to interrupt at any time; `--resume` continues and gives the same result. The model is in
RUN/world_model, where `run --out RUN --resume` finds it. Several processes train together when
`torchrun` or `srun` starts them.")]
    WorldModel(WorldModelArgs),
    /// Phase C: train an amortizer, an embedding that places behaviourally equivalent fragments close together
    #[command(after_help = "Examples:
  refactor-vla train amortizer --teacher runs/a --out runs/c
  refactor-vla train amortizer --teacher runs/a --vision --out runs/c-vision
  refactor-vla train amortizer --set amortizer.supervision=task_index --out runs/bound

It learns from the world model that `--teacher` names: the distances of its behavioural kernel, or
its latents with `--set amortizer.supervision=distillation`. With `task_index` or
`episode_contrast` as the supervision it learns without a world model.")]
    Amortizer(AmortizerArgs),
    /// Phase B: train the policy (emitter and decoder), with a library or without
    #[command(after_help = "Examples:
  refactor-vla train world-model --out runs/a
  refactor-vla train wake --world-model runs/a --out runs/b
  refactor-vla train wake --preset demo --world-model demo-run --library demo-run \\
      --set wake.emitter.train.steps=600 --out runs/longer

Programs are written with the skills that the world model gives, and with the library if there is
one. A library of motions goes with the world model, the seed and the settings of `cycle` that it
was learned with; of a run, all of them are in its directory.")]
    Wake(WakeArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct WorldModelArgs {
    #[command(flatten)]
    pub(crate) phase: PhaseArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AmortizerArgs {
    /// Run of the world model to learn from
    #[arg(long, value_name = "RUN")]
    pub(crate) teacher: Option<PathBuf>,
    /// Use the visual features in addition to states and actions
    #[arg(long)]
    pub(crate) vision: bool,
    #[command(flatten)]
    pub(crate) phase: PhaseArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WakeArgs {
    /// Run of the world model whose distances define the skills, or a run of the whole loop
    #[arg(long, value_name = "RUN")]
    pub(crate) world_model: PathBuf,
    /// Library to write programs with: a JSON file or the directory of a run [default: none]
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
    /// Train the decoder on instructions instead of programs, and no emitter
    #[arg(long, conflicts_with = "library")]
    pub(crate) no_programs: bool,
    #[command(flatten)]
    pub(crate) phase: PhaseArgs,
}

/// What all phases take.
#[derive(Debug, clap::Args)]
#[command(mut_arg("sets", of_sections))]
pub(crate) struct PhaseArgs {
    /// Datasets to learn from, joined into one: directories, or `embedded:libero_goal_mini`
    #[arg(value_name = "DATASET", default_value = EMBEDDED_SET)]
    datasets: Vec<String>,
    /// The same as an option, which it was once.
    #[arg(long, value_name = "DATASET", num_args = 1.., conflicts_with = "datasets", hide = true)]
    dataset: Vec<String>,
    /// Run directory for checkpoints, metrics and the model (created, or resumed with `--resume`)
    #[arg(long, value_name = "RUN")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) features: FeatureArgs,
    #[command(flatten)]
    pub(crate) presets: PresetArgs,
    #[command(flatten)]
    pub(crate) how: HowArgs,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

impl PhaseArgs {
    /// The datasets with their features.
    pub(crate) fn data(&self) -> SourceArgs {
        let dataset = if self.dataset.is_empty() { &self.datasets } else { &self.dataset };
        SourceArgs { dataset: dataset.clone(), features: self.features.clone() }
    }
}

/// Presets, which compose from left to right.
#[derive(Debug, clap::Args)]
pub(crate) struct PresetArgs {
    /// Preset of model sizes and training lengths, by name (see `refactor-vla presets list`) or as a TOML file; several
    /// compose from left to right
    #[arg(long = "preset", value_name = "PRESET", default_value = "small")]
    presets: Vec<String>,
}

impl PresetArgs {
    /// All of them as one name.
    pub(crate) fn joined(&self) -> String {
        self.presets.join(&AND.to_string())
    }
}

/// How models are trained, in a single phase or in the loop.
#[derive(Debug, clap::Args)]
pub(crate) struct HowArgs {
    /// Change a setting, such as `train.steps=100` or `model.layers=2`; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Resume the run in the output directory
    #[arg(long)]
    pub(crate) resume: bool,
    /// Random seed for weights, batches and noise
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) compute: ComputeArgs,
}

/// Where a command computes, and how it prints its result.
#[derive(Debug, clap::Args)]
pub(crate) struct ComputeArgs {
    /// `auto`, `cpu` or `cuda:N`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: DeviceChoice,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// The dataset that is a part of the program.
const EMBEDDED_SET: &str = "embedded:libero_goal_mini";

/// The help of `--set` where a preset's sections are named.
pub(crate) fn of_sections(sets: Arg) -> Arg {
    sets.value_name("SECTION.KEY=VALUE").help(
        "Change a setting, such as `cycle.classes.classes=12` or `wake.emitter.train.steps=100`; may be given several times",
    )
}

/// Datasets with their features, in commands that have other things first.
#[derive(Debug, clap::Args)]
pub(crate) struct SourceArgs {
    /// Datasets to learn from, joined into one: directories, or `embedded:libero_goal_mini`
    #[arg(long, value_name = "DIR", num_args = 1.., default_value = EMBEDDED_SET)]
    pub(crate) dataset: Vec<String>,
    #[command(flatten)]
    pub(crate) features: FeatureArgs,
}

/// Where features come from.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct FeatureArgs {
    /// Encoder whose cached features to use, such as `dinov2-small cls`, or `pixels:SIDE`, which needs no weights
    /// [default: auto-detected if there is exactly one, or `pixels:8` if there is none and no `--features`]
    #[arg(long, value_name = "ENCODER")]
    pub(crate) encoder: Option<String>,
    /// Directory of cached features [default: that of `refactor-vla features`]
    #[arg(long, value_name = "DIR", alias = "features")]
    pub(crate) cache: Option<PathBuf>,
    /// Held-out episodes per task; every task keeps one to train on [default: 2, or 1 if there are fewer than 5]
    #[arg(long, value_name = "N", value_parser = held_out)]
    pub(crate) hold_out: Option<std::num::NonZeroUsize>,
    /// Choose settings without looking at the held-out episodes: set them aside, and hold out the last remaining episode of
    /// each task instead
    #[arg(long)]
    pub(crate) tuning: bool,
}

/// Reads the number of held-out episodes.
fn held_out(written: &str) -> Result<std::num::NonZeroUsize, String> {
    let count: usize = written.parse().map_err(|_| "expected a number of episodes, such as 1".to_owned())?;
    std::num::NonZeroUsize::new(count).ok_or_else(|| {
        "gates, figures and report need held-out episodes; `--hold-out 1` holds out the fewest, and tasks with a single episode \
         are always used for training"
            .to_owned()
    })
}
