//! The commands and their options as they are typed. What they mean is settled in the module of each command.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use compression::Config;
use dataset::ControlChoice;

use crate::config::ConfigCommand;
use crate::eval::EvalCommand;
use crate::library_show::ShowArgs;
use crate::presets::PresetsCommand;
use crate::report_page::ReportArgs;
use crate::run::{DemoArgs, RunArgs};
use crate::serve::ServeArgs;
use crate::train::TrainCommand;

/// The largest multiple of the greedy rounds' steps that the look-ahead may take; more is a slip of the keyboard.
const MAX_LOOKAHEAD: f64 = 1e6;

/// The longest time limit, in seconds: a year.
const MAX_SECONDS: f64 = 31_536_000.0;

/// Learn skills and a library of typed programs from robot demonstrations, and serve a policy that uses them
#[derive(Debug, Parser)]
#[command(
    name = "refactor-vla",
    version,
    about,
    propagate_version = true,
    max_term_width = 100,
    after_help = "Examples:
  refactor-vla demo                                      the whole loop, in some minutes
  refactor-vla annotate demos/kitchen kitchen_subtasks   named subtasks for your dataset
  refactor-vla run demos/kitchen --out runs/kitchen      skills, library and policy from it
  refactor-vla serve runs/kitchen                        the policy, for robots and simulators

Datasets are directories in the LeRobot format v3.0. `--json` prints a result as JSON, and
`--output FILE` writes that to a file. Interrupted runs are resumed by the same command with
`--resume`.

The exit code is 0, or 2 if something was wrong."
)]
pub(crate) struct Args {
    /// Write the result to FILE as JSON, instead of printing it
    #[arg(long, value_name = "FILE", global = true, help_heading = "Global options")]
    pub(crate) output: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the whole loop on a small dataset in the program, and write a report
    #[command(after_help = "Examples:
  refactor-vla demo
  refactor-vla demo --out runs/demo --resume

It takes some minutes on two cores. `report.html` in the directory shows what was found.")]
    Demo(DemoArgs),
    /// Run the whole loop on datasets: world model, skills, library, policy, report
    #[command(after_help = "Examples:
  refactor-vla run demos/libero_goal --out runs/goal
  refactor-vla run demos/libero_goal --out runs/goal --resume
  refactor-vla run demos/libero_goal demos/libero_10 --cache features \\
      --preset m188 --preset fast-wake --set cycle.iterations=3 --device cuda:0 --out runs/both
  refactor-vla run demos/libero_goal demos/libero_10 --each --out runs

Several datasets are learned from together, if their states, actions, cameras and frame rates agree;
equal instructions are one task.

Safe to interrupt at any time; `--resume` continues and gives the same result.")]
    Run(RunArgs),
    /// Write named subtasks into a dataset, from states, actions and instructions
    #[command(after_help = crate::annotate::EXAMPLES)]
    Annotate(crate::annotate::AnnotateArgs),
    /// Regenerate the HTML report of a finished run
    #[command(after_help = "Examples:
  refactor-vla report demo-run
  refactor-vla report runs/goal --out goal.html

The report is rendered from `report.json` in the results directory; nothing is trained or measured.")]
    Report(ReportArgs),
    /// Serve the policy of a finished run to robots and simulators, with a live page
    #[command(after_help = "Examples:
  refactor-vla serve demo-run
  refactor-vla serve runs/goal --weights weights/dinov2-small --device cuda:0
  refactor-vla serve runs/goal --host 0.0.0.0 --port 9000 --api-key KEY

Clients speak the websocket protocol of openpi: its Python client is `openpi-client` on PyPI. A
request may have `program` instead of `prompt`. The page at `/` shows what the policy does;
`/healthz` and `/metrics` are for monitoring. Ctrl-C finishes work in progress and ends.")]
    Serve(ServeArgs),
    /// Check, evaluate and show programs
    #[command(subcommand)]
    Program(ProgramCommand),
    /// Learn libraries from corpora of programs, and look at them
    #[command(subcommand)]
    Library(LibraryCommand),
    /// Inspect, validate, view and generate datasets of robot demonstrations
    #[command(subcommand)]
    Data(DataCommand),
    /// Encode the pictures of a dataset once, and keep their features for all that follows
    #[command(after_help = "Examples:
  refactor-vla features
  refactor-vla features demonstrations/libero_goal --encoder pixels:16 --cache features
  refactor-vla features demonstrations/libero_goal --encoder weights/dinov2-small --kind grid4

A folder of weights has `config.json` and `model.safetensors` of a DINOv2 (small, base or large), as
on the Hugging Face Hub.

Features that are there are not computed again, and a run that was stopped goes on where it was.
Without `--cache` they are in `$REFACTOR_VLA_CACHE`, or in `refactor-vla` where caches of the
user are.")]
    Features(FeaturesArgs),
    /// Train one phase on a dataset
    #[command(subcommand)]
    Train(TrainCommand),
    /// Run an experiment: its table, and its figures as JSON
    #[command(subcommand)]
    Eval(EvalCommand),
    /// List presets of settings, and show what they set
    #[command(subcommand)]
    Presets(PresetsCommand),
    /// Show the settings of a run
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a completion script for a shell
    #[command(after_help = "Example:
  refactor-vla completions bash > ~/.local/share/bash-completion/completions/refactor-vla")]
    Completions {
        /// The shell
        shell: Shell,
    },
}

impl Command {
    /// Whether it has an `--output` that is written besides what is printed.
    pub(crate) fn has_file(&self) -> bool {
        matches!(self, Command::Eval(EvalCommand::Annotate(_) | EvalCommand::ClosedLoop(_)))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProgramCommand {
    /// Infer the type of a program, or report all its errors at their places
    #[command(after_help = r#"Examples:
  refactor-vla program check 'seq[pick "bowl", place "bowl" (on "plate")]'
  refactor-vla program check '\x. \p. seq[pick x, place x p]'
  refactor-vla program check @skill.txt --json"#)]
    Check(ProgramArgs),
    /// Print the sequence of primitive calls that a program makes
    #[command(after_help = r#"Examples:
  refactor-vla program eval 'repeat(seq[move x_pos, grip grip_close], 3)'
  refactor-vla program eval --library library.json 'fn_0 "milk"'
  echo '(\x. seq[open x, close x]) "drawer"' | refactor-vla program eval -"#)]
    Eval {
        #[command(flatten)]
        program: ProgramArgs,
        /// The most calls that the program may make
        #[arg(long, value_name = "N", default_value_t = 100_000)]
        max_calls: usize,
    },
    /// Print a program laid out over lines, with its type and size
    #[command(after_help = r#"Example:
  refactor-vla program show 'seq[pick (at "bowl" left), open "tray"]' --width 24"#)]
    Show {
        #[command(flatten)]
        program: ProgramArgs,
        /// The widest line, in characters
        #[arg(long, value_name = "N", default_value_t = 80)]
        width: usize,
    },
    /// Translate an instruction into a program
    #[command(after_help = r#"Examples:
  refactor-vla program from-instruction "pick up the milk and place it in the basket"
  refactor-vla program from-instruction turn on the stove --json"#)]
    FromInstruction {
        /// The instruction in English; `-` reads stdin, `@FILE` a file
        #[arg(required = true, value_name = "TEXT")]
        words: Vec<String>,
        /// Print JSON, errors included
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct ProgramArgs {
    /// The program; `-` reads stdin, `@FILE` a file
    #[arg(value_name = "EXPR")]
    pub(crate) source: String,
    /// Make the entries of a library callable: a JSON file that `library compress --output FILE` wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
    /// Print JSON, errors included
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Show what a dataset holds: episodes, tasks, features, and how its signals move
    #[command(after_help = "Examples:
  refactor-vla data inspect
  refactor-vla data inspect demonstrations/libero_goal
  refactor-vla data inspect demonstrations/aloha --state-key observation.qpos --json

Datasets are directories in the LeRobot format v3.0.")]
    Inspect(InspectArgs),
    /// Report all problems of a dataset, with what was expected and how to fix each
    #[command(after_help = "Examples:
  refactor-vla data validate demonstrations/libero_goal
  refactor-vla data validate demonstrations/libero_goal --decode
  refactor-vla data validate demonstrations/libero_goal --json | jq '.faults[].kind'

The exit code is 0 if the dataset is sound, also with warnings, and 2 if it is not.")]
    Validate(ValidateArgs),
    /// Generate a synthetic dataset whose segments or returns are known
    #[command(subcommand)]
    Synth(SynthCommand),
    /// Show episodes as film strips with their subtasks, as an HTML page
    #[command(after_help = "Examples:
  refactor-vla data view demos/kitchen_subtasks
  refactor-vla data view demos/kitchen preview.html --episodes 100

The page contains its pictures and loads nothing. Of a dataset without subtasks it shows those that
`annotate` would write.")]
    View(ViewArgs),
    /// Write the skills of a run, or labels from a JSON file, into a copy of a dataset
    #[command(after_help = r#"Examples:
  refactor-vla data annotate runs/goal demos/libero_goal demos/libero_goal_skills
  refactor-vla data annotate labels.json demos/libero_goal demos/libero_goal_labels

With a run, this is `refactor-vla annotate DATASET OUT --run RUN`, which has more options. To find
subtasks without a run, use `refactor-vla annotate DATASET OUT`.

With a file, the copy has the column of the file, the names in `meta`, and both again as lerobot's
subtasks. The file is such as
  {
    "feature": "skill",
    "names": ["reach", "grasp"],
    "episodes": [
      {"episode": 0, "skills": [
        {"from": 0, "to": 12, "skill": 0},
        {"from": 12, "to": 20, "skill": 1}
      ]}
    ]
  }
Frames count from 0 in each episode; `to` is the first frame after the skill. Frames without a
skill get -1, and `feature` is the name of the column."#)]
    Annotate(AnnotateArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct InspectArgs {
    /// The dataset: a directory, or `embedded:libero_goal_mini`
    #[arg(value_name = "DIR", default_value = "embedded:libero_goal_mini")]
    pub(crate) dataset: String,
    /// Print JSON, errors included
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ValidateArgs {
    /// The dataset: a directory, or `embedded:libero_goal_mini`
    #[arg(value_name = "DIR")]
    pub(crate) dataset: String,
    /// Decode every picture, rather than look at sizes and times only
    #[arg(long)]
    pub(crate) decode: bool,
    /// Print what was found as a JSON list
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ViewArgs {
    /// Dataset: a directory, or `embedded:libero_goal_mini`
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// HTML file to write
    #[arg(value_name = "OUT", default_value = "subtasks.html")]
    pub(crate) out: PathBuf,
    /// Maximum number of episodes, evenly spread over tasks and dataset
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) episodes: u32,
    /// Pictures per episode; 0 for none
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(0..=64))]
    pub(crate) pictures: u32,
    /// Print JSON instead of the path
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FeaturesArgs {
    /// The dataset: a directory, or `embedded:libero_goal_mini`
    #[arg(value_name = "DIR", default_value = "embedded:libero_goal_mini")]
    pub(crate) dataset: String,
    /// What encodes: `pixels`, the picture made small (20×20), `pixels:SIDE`, or a folder with the weights of a DINOv2
    #[arg(long, value_name = "ENCODER", default_value = "pixels")]
    pub(crate) encoder: String,
    /// What is kept of the tokens of a DINOv2 [default: cls]
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<Kind>,
    /// Where a DINOv2 computes: `auto`, `cpu` or `cuda:N`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: models::DeviceChoice,
    /// The directory that keeps features
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// How much memory decoded pictures may take, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) memory: u32,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

/// Which column is what.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Columns")]
pub(crate) struct KeyArgs {
    /// The column of states [default: detected]
    #[arg(long, value_name = "KEY")]
    pub(crate) state_key: Option<String>,
    /// The column of actions [default: detected]
    #[arg(long, value_name = "KEY")]
    pub(crate) action_key: Option<String>,
    /// A camera; may be given several times [default: all]
    #[arg(long, value_name = "KEY")]
    pub(crate) camera_key: Vec<String>,
    /// The column of rewards [default: `next.reward`, if there is one]
    #[arg(long, value_name = "KEY")]
    pub(crate) reward_key: Option<String>,
    /// A column of labels; may be given several times [default: all columns of one integer]
    #[arg(long, value_name = "KEY")]
    pub(crate) label_key: Vec<String>,
    /// What actions mean: `absolute` positions, `relative` changes or `velocity`, of all groups, of one, or of action columns
    /// that form one, as in `--control 'left arm=absolute'` or `--control 6-8=velocity`; may be given several times
    /// [default: measured]
    #[arg(long, value_name = "[GROUP|COLUMNS=]CONTROL")]
    pub(crate) control: Vec<ControlChoice>,
    /// A gripper among the action's dimensions, by name or number, or `none`; `=opens` or `=closes` says what a high command
    /// does; may be given several times [default: detected]
    #[arg(long, value_name = "COLUMN[=opens|=closes]|none")]
    pub(crate) gripper: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SynthCommand {
    /// Pours that refill each other, nested one to four deep, with exact returns
    #[command(after_help = "Examples:
  refactor-vla data synth recursive-pour pour
  refactor-vla data synth recursive-pour pour-eval --seed 999")]
    RecursivePour {
        /// The directory to make; it must not exist, or be empty
        out: PathBuf,
        /// Demonstrations of each depth
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        demos: u32,
        /// What the demonstrations are drawn from: the same seed gives the same files
        #[arg(long, value_name = "SEED", default_value_t = 11)]
        seed: u64,
    },
    /// SO-101: 6 absolute joints in degrees, 30 fps, two cameras, no rewards
    #[command(after_help = "Examples:
  refactor-vla data synth so101 demos/so101
  refactor-vla data synth so101 demos/so101-rough --noise 3 --episodes 10 --seed 2

The column `phase` has the true segment class of each frame.")]
    So101(SynthRobotArgs),
    /// ALOHA: two arms, 14 absolute joints in radians, 50 fps, three cameras
    #[command(after_help = "Example:
  refactor-vla data synth aloha demos/aloha

The column `phase` has the true segment class of each frame.")]
    Aloha(SynthRobotArgs),
    /// Humanoid: 34 absolute joints in radians, 30 fps, one camera
    #[command(after_help = "Example:
  refactor-vla data synth humanoid demos/humanoid

The column `phase` has the true segment class of each frame.")]
    Humanoid(SynthRobotArgs),
    /// Mobile manipulator: base velocities and 6 absolute joints in degrees, 30 fps, two cameras
    #[command(after_help = "Example:
  refactor-vla data synth mobile demos/mobile

The column `phase` has the true segment class of each frame.")]
    Mobile(SynthRobotArgs),
    /// Arm without cameras: 7 absolute joints in radians and a gripper, 30 fps
    #[command(after_help = "Example:
  refactor-vla data synth state-only demos/arm

The column `phase` has the true segment class of each frame.")]
    StateOnly(SynthRobotArgs),
}

/// A dataset of a synthetic robot.
#[derive(Debug, clap::Args)]
pub(crate) struct SynthRobotArgs {
    /// Directory to create; must not exist, or be empty
    pub(crate) out: PathBuf,
    /// Episodes per task
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) episodes: u32,
    /// Random seed for places of things, durations and noise; the same seed gives the same files
    #[arg(long, value_name = "SEED", default_value_t = 11)]
    pub(crate) seed: u64,
    /// Tremor, hesitations and sensor noise: 0 (none) to 3 (severe)
    #[arg(long, value_name = "LEVEL", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=3))]
    pub(crate) noise: u8,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AnnotateArgs {
    /// Directory of a run, or a JSON file of labels (`-` for stdin)
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// Dataset: a directory, or `embedded:libero_goal_mini`
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// Directory to create; must not exist, or be empty
    pub(crate) out: PathBuf,
    /// With a file: write the column and the names only, not lerobot's subtasks; subtasks that are there are kept
    #[arg(long)]
    pub(crate) no_subtasks: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LibraryCommand {
    /// Find the abstractions that make a corpus shortest, and rewrite it with them
    #[command(after_help = "Examples:
  refactor-vla library compress
  refactor-vla library compress embedded:libero --verify --output library.json
  refactor-vla library compress corpus.json --cost stitch --max-arity 3 --rounds 10 --threads 1

A corpus is a JSON array of strings: s-expressions as Stitch reads them, such as \"(f (lam $0))\",
programs of our language, or instructions in English.")]
    Compress(CompressArgs),
    /// Show the library of a run, or of a file
    #[command(after_help = "Examples:
  refactor-vla library show demo-run
  refactor-vla library show runs/goal --json
  refactor-vla library compress --output library.json
  refactor-vla library show library.json

Of a run that is not finished it shows the library of the newest iteration. The share of calls is a
mean with its 95 % interval; what is not known is `-`.")]
    Show(ShowArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompressArgs {
    /// The corpus: a JSON file, `-` for stdin, `embedded:libero_object` (10 tasks × 20 episodes) or
    /// `embedded:libero` (40 tasks × 20 episodes)
    #[arg(default_value = "embedded:libero_object")]
    pub(crate) corpus: String,
    /// How the strings of the corpus are read
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    pub(crate) format: Format,

    /// What is minimised, for programs and library together
    #[arg(long, value_enum, default_value_t = Cost::Nats, help_heading = "Objective")]
    pub(crate) cost: Cost,
    /// The least gain that admits an abstraction [default: 4 nats, or 0 for stitch]
    #[arg(long, value_name = "G", value_parser = nonnegative, allow_negative_numbers = true, help_heading = "Objective")]
    pub(crate) min_gain: Option<f64>,
    /// The most arguments of an abstraction
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Objective")]
    pub(crate) max_arity: usize,
    /// The most rounds
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Objective")]
    pub(crate) rounds: usize,
    /// The most abstractions admitted in one round
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Objective")]
    pub(crate) per_round: u16,

    /// The steps of looking ahead across rounds, as a multiple of those of the greedy rounds; 0 is greedy
    #[arg(
        long,
        value_name = "F",
        default_value_t = Config::default().lookahead,
        value_parser = multiple,
        allow_negative_numbers = true,
        help_heading = "Search"
    )]
    pub(crate) lookahead: f64,
    /// The most steps of one search; without it, each goes on until its result is optimal
    #[arg(long, value_name = "N", help_heading = "Search")]
    pub(crate) max_steps: Option<u64>,
    /// Memory limit for the queue of one search, in MiB; a search that reaches it ends with the best result so far
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = compression::DEFAULT_MAX_MEMORY >> 20,
        value_parser = clap::value_parser!(u64).range(1..=1 << 24),
        help_heading = "Search"
    )]
    pub(crate) max_memory: u64,
    /// The longest time, in seconds; makes the result depend on the machine
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true, help_heading = "Search")]
    pub(crate) time_limit: Option<Duration>,
    /// The number of threads [default: all cores]; the result is the same for any number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Search")]
    pub(crate) threads: Option<u16>,
    /// Switch a pruning rule of the search off; may be given several times
    #[arg(long, value_enum, value_name = "RULE", help_heading = "Search")]
    pub(crate) without: Vec<Rule>,
    /// Switch a pruning rule on that is off by default
    #[arg(long, value_enum, value_name = "RULE", hide_possible_values = true, help_heading = "Search")]
    pub(crate) with: Vec<Rule>,

    /// Check that inlining the library gives back every program
    #[arg(long, help_heading = "Output")]
    pub(crate) verify: bool,
    /// Print the library and the rewritten corpus as JSON instead of a table
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Catches `--json FILE`, as it was once.
    #[arg(hide = true)]
    pub(crate) extra: Option<PathBuf>,
}

/// What is kept of a picture's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// The class token
    Cls,
    /// The mean of the patches
    Mean,
    /// The means of the patches in 4×4 cells, which know where things are
    Grid4,
}

/// How the strings of a corpus are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Whatever most of the strings look like
    Auto,
    /// S-expressions as Stitch reads them
    Sexpr,
    /// Programs of our language
    Program,
    /// Instructions in English
    Instruction,
}

/// What programs cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cost {
    /// 100 for each terminal, 1 for each application and lambda
    Stitch,
    /// Description length under a typed grammar whose probabilities are estimated from use
    Nats,
    /// Description length with all productions of a type equally probable
    UniformNats,
}

/// A pruning rule of the search; all are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rule {
    /// An argument that is the same at every call goes into the body
    ArgumentCapture,
    /// Two parameters that agree at every call are one
    RedundantArgument,
    /// What matches at one place only is abstracted without parameters
    SinglePlace,
    /// Matches whose saving is used up by their arguments are dropped
    SpentRows,
    /// A tighter bound once all parameters are used
    ExhaustedArity,
    /// A bound that counts overlapping matches once; off by default, as it costs more time than it saves
    Overlap,
}

fn nonnegative(written: &str) -> Result<f64, String> {
    match written.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("wanted a number of 0 or more, such as `4` or `0.5`".to_string()),
    }
}

fn multiple(written: &str) -> Result<f64, String> {
    match nonnegative(written) {
        Ok(value) if value <= MAX_LOOKAHEAD => Ok(value),
        _ => Err(format!("wanted a number from 0 to {MAX_LOOKAHEAD}, such as `1.25`")),
    }
}

fn seconds(written: &str) -> Result<Duration, String> {
    match nonnegative(written) {
        Ok(value) if value <= MAX_SECONDS => Ok(Duration::from_secs_f64(value)),
        _ => Err(format!("wanted seconds from 0 to {MAX_SECONDS}")),
    }
}
