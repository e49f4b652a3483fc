//! `eval …` as it is typed.

use std::path::PathBuf;

use clap::Subcommand;
use experiments::matrix::Mode;

use super::closed_loop::ClosedLoopArgs;
use super::paper::PaperCommand;
use crate::args::KeyArgs;
use crate::train::{ComputeArgs, FeatureArgs, SourceArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum EvalCommand {
    /// Score segments and named subtasks against true phases, next to baselines
    #[command(after_help = "Examples:
  refactor-vla eval annotate embedded:libero_goal_mini
  refactor-vla eval annotate demos/libero_goal demos/libero_10 --peer ruptures.json --objects order.json \\
      --output annotate.json
  refactor-vla eval annotate demos/so101 --noise --plot noise.svg
  refactor-vla eval annotate demos/libero_goal demos/libero_10 --shuffled

Datasets need a column `phase` with the true phase of each frame. Settings of baselines are chosen on
training episodes; the last episodes of each task are scored. With `--noise`, episodes are scored again
as operators of three levels of practice would have recorded them.")]
    Annotate(AnnotateEvalArgs),
    /// Execute tasks in the LIBERO simulator with the policy of a run, and measure the success rate
    #[command(after_help = "Examples:
  refactor-vla eval closed-loop runs/goal --simulator libero-sim
  refactor-vla eval closed-loop runs/goal --simulator libero-sim --tasks 0,7 --episodes 5 --workers 2
  refactor-vla eval closed-loop runs/goal --simulator libero-sim-bundle \\
      --compose libero-sim/compositions.json --prompt program --episodes 10
  refactor-vla eval closed-loop runs/act --simulator libero-sim --suite libero_goal --server 127.0.0.1:8000

The simulator is a copy of the LIBERO kit after its `./setup`, or its unpacked bundle. Results are
written to `closed_loop` in the directory of the run: JSON with every episode, a table in Markdown,
and a page that shows episodes with instruction, program and active skill. Finished episodes of the
same settings are kept: safe to interrupt at any time, and the same command continues.

With `--server`, RUN is only the directory of the results; use one directory per policy, because
a server at the same address is taken for the same policy.")]
    ClosedLoop(Box<ClosedLoopArgs>),
    #[command(flatten)]
    Paper(PaperCommand),
    /// The former spelling of `matrix`: train phases A and C in every mode, in one process or several
    #[command(
        hide = true,
        after_help = "Examples:
  refactor-vla eval phase-c --preset tiny --seeds 1 --out runs/matrix
  refactor-vla eval phase-c --dataset demos/libero_goal --dataset demos/libero_10 --features features \\
      --preset m188 --device cuda:0 --jobs 4 --out runs/matrix
  refactor-vla eval phase-c --modes none,task_index --set world_model.train.steps=2000 --out runs/two

Cells that are finished are not run again: the same command goes on where it was stopped, and a
longer list of modes, seeds or datasets adds to what is there."
    )]
    PhaseC(PhaseCArgs),
    /// Compare the forms of the behavioural kernel: agreement with rollouts, clusters, time per pair
    #[command(after_help = "Examples:
  refactor-vla eval kernel runs/a runs/c --json
  refactor-vla eval kernel runs/a runs/c runs/c-distilled

An amortizer that was trained on the kernel (the default of `train amortizer`) gives the row
`amortized`, one that was distilled from the world model's latents gives `legacy_cosine`.")]
    Kernel(KernelArgs),
    /// Measure the error of imagined returns on RecursivePour, where the true returns are known
    #[command(after_help = "Examples:
  refactor-vla eval recursive-pour
  refactor-vla eval recursive-pour --seeds 1 --set train.steps=300 --json
  refactor-vla eval recursive-pour --judged-on 12,13 --reward-scale fixed --set batches=by_task")]
    RecursivePour(PourArgs),
    /// Look for motor abstractions: token by token as in the paper, and over skills by behaviour
    #[command(after_help = "Examples:
  refactor-vla train world-model --encoder pixels:8 --set model.contrast=none --out runs/a
  refactor-vla eval motor-library --encoder pixels:8 --world-model runs/a
  refactor-vla eval motor-library --dataset demos/libero_goal --world-model runs/goal \\
      --dataset demos/libero_10 --world-model runs/ten --features features --json
  refactor-vla eval motor-library --world-model runs/a --set gates.soundness=false

The world model says which motions turn out alike and what they return; beside it stand classes by
the motions' actions alone, judged by the same gates.")]
    MotorLibrary(MotorArgs),
    /// Compare imagined with true returns on held-out episodes, and measure what the return gate is worth
    #[command(after_help = "Examples:
  refactor-vla eval returns runs/a --encoder pixels:8
  refactor-vla eval returns runs/without runs/with --dataset demos/mixed --features features \\
      --hold-out 10 --plot calibration.svg --json

Each run is a verifier: the run of a world model, or a run of the whole loop. The dataset should hold
out failed episodes as well (episodes whose reward stays 0), or there is nothing to tell apart.")]
    Returns(ReturnsArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct AnnotateEvalArgs {
    /// Datasets with true phases: directories, or `embedded:libero_goal_mini`
    #[arg(value_name = "DATASET", required = true)]
    pub(crate) datasets: Vec<String>,
    /// A file with the cuts of another program, as the scripts in results/annotate write it; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) peer: Vec<PathBuf>,
    /// A file with the order in which objects were handled, where it is not that of the instruction
    #[arg(long, value_name = "FILE")]
    pub(crate) objects: Option<PathBuf>,
    /// Score disturbed episodes as well, at three levels of human noise
    #[arg(long)]
    pub(crate) noise: bool,
    /// Instead of scoring cuts, measure how often a wrong instruction is noticed: every episode is named with the
    /// instructions of all other tasks of all datasets
    #[arg(long, conflicts_with_all = ["peer", "objects", "plot"])]
    pub(crate) shuffled: bool,
    /// Held-out episodes per task [default: 2 if every task has 5 or more, otherwise 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) hold_out: Option<u32>,
    /// Random seed of clusters, noise and resamples
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Write the results as JSON, with the segments of every held-out episode
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write a plot of F1 against noise as SVG
    #[arg(long, value_name = "FILE", requires = "noise")]
    pub(crate) plot: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PhaseCArgs {
    /// A dataset: a directory, or `embedded:libero_goal_mini`; may be given several times
    #[arg(long, value_name = "DIR", default_value = "embedded:libero_goal_mini")]
    pub(crate) dataset: Vec<String>,
    /// The directory of results, made or gone on with
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Which modes: `untrained`, `none`, `supcon`, `episode_contrast`, `episode_contrast_direct`,
    /// `task_index` [default: all]
    #[arg(long, value_name = "MODE", value_delimiter = ',')]
    pub(crate) modes: Vec<Mode>,
    /// How many seeds of each cell
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,
    #[command(flatten)]
    pub(crate) features: FeatureArgs,
    /// Sizes and lengths: `tiny`, `pour`, `small`, `m188`, `m430`, or a TOML file of differences
    #[arg(long, value_name = "PRESET", default_value = "small")]
    pub(crate) preset: String,
    /// Change a setting, such as `world_model.train.steps=100` or `amortizer.batch=64`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// How many cells at once, each in a process of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) jobs: u16,
    #[command(flatten)]
    pub(crate) compute: ComputeArgs,
    /// Run one cell and print nothing: what this command starts for `--jobs`
    #[arg(long, value_name = "MODE:SEED", hide = true)]
    pub(crate) cell: Option<String>,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct KernelArgs {
    /// The run of a world model
    pub(crate) world_model: PathBuf,
    /// Runs of amortizers that it taught
    #[arg(required = true)]
    pub(crate) amortizers: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) data: SourceArgs,
    /// Held-out fragments, compared in pairs; at least as many as there are tasks
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(3..=4096))]
    pub(crate) fragments: u32,
    /// Training fragments that the separable form learns from, besides the segments of demonstrations
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) lessons: u32,
    /// Steps of the separable form's training
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: u64,
    /// k, actions that are imagined [default: that of the amortizer, or all of a fragment]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) horizon: Option<u32>,
    /// Visited states from which fragments are imagined [default: that of the amortizer, or 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) starts: Option<u32>,
    /// Rollouts drawn from each start [default: that of the amortizer, or 4]; 1 follows the means
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) samples: Option<u32>,
    #[command(flatten)]
    pub(crate) compute: ComputeArgs,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MotorArgs {
    /// A dataset: a directory, or `embedded:libero_goal_mini`; may be given several times
    #[arg(long, value_name = "DIR", default_value = "embedded:libero_goal_mini")]
    pub(crate) dataset: Vec<String>,
    /// The run of a world model of the dataset; one for each, in the same order
    #[arg(long, value_name = "RUN", required = true)]
    pub(crate) world_model: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) features: FeatureArgs,
    /// Settings of the loop: a preset's name, or a TOML file of differences
    #[arg(long, value_name = "PRESET", default_value = "small")]
    pub(crate) preset: String,
    /// Change a setting of the loop, such as `classes.classes=12` or `gates.min_gain=10`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Of clusters and rollouts
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) compute: ComputeArgs,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReturnsArgs {
    /// Runs of world models, or of the whole loop; each is compared
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) data: SourceArgs,
    /// Windows of each held-out episode, at even places
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) windows: u32,
    /// Write a calibration plot as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Settings of the loop: a preset's name, or a TOML file of differences
    #[arg(long, value_name = "PRESET", default_value = "small")]
    pub(crate) preset: String,
    /// Change a setting of the loop, such as `gates.return_margin=0.1` or `gates.rollout_steps=100`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Random seed of rollouts and resamples
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) compute: ComputeArgs,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PourArgs {
    /// How many seeds of the model
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,
    /// Demonstrations of each depth
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) demos: u32,
    /// Demonstrations of each depth for training [default: as many as `--demos`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) training_demos: Option<u32>,
    /// Crossed pairs: a state and a fragment of another demonstration, of each depth
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pairs: u32,
    /// Seeds of the demonstrations for evaluation, separated by commas; choose settings on other seeds than 999
    #[arg(long, value_name = "SEEDS", value_delimiter = ',', default_values_t = [dataset::recursive_pour::SEED_EVAL])]
    pub(crate) judged_on: Vec<u64>,
    /// Unit of rewards: `depth`, the d litres of the cups, or `fixed`, four litres at every depth
    #[arg(long, value_name = "SCALE", default_value = "depth")]
    pub(crate) reward_scale: dataset::recursive_pour::RewardScale,
    /// Fragments to list, those with the largest errors
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub(crate) worst: u32,
    /// Sizes and lengths: a preset's name, or a TOML file of differences
    #[arg(long, value_name = "PRESET", default_value = "pour")]
    pub(crate) preset: String,
    /// Change a setting, such as `train.steps=300`; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    #[command(flatten)]
    pub(crate) compute: ComputeArgs,
}
