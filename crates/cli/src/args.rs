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
    /// Run the whole loop on the embedded demonstrations, and write a report
    #[command(after_help = "Examples:
  refactor-vla demo
  refactor-vla demo --out runs/demo --resume

It takes several minutes on two cores. Open `report.html` in the directory to see what was found.")]
    Demo(DemoArgs),
    /// Run the whole loop on your datasets: world model, skills, library, policy and report
    #[command(after_help = "Examples:
  refactor-vla run demos/libero_goal --out runs/goal
  refactor-vla run demos/libero_goal --out runs/goal --resume
  refactor-vla run demos/libero_goal demos/libero_10 --cache features \\
      --preset m188 --preset fast-wake --set cycle.iterations=3 --device cuda:0 --out runs/both
  refactor-vla run demos/libero_goal demos/libero_10 --each --out runs

Several datasets are joined into one if their states, actions, cameras and frame rates agree; equal
instructions count as one task.

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

Clients use the websocket protocol of openpi; its Python client is `openpi-client` on PyPI. A
request may contain a `program` instead of a `prompt`. The page at `/` shows what the policy does;
`/healthz` and `/metrics` are for monitoring. Ctrl-C finishes pending requests and exits.")]
    Serve(ServeArgs),
    /// Type-check, evaluate, print and translate programs
    #[command(subcommand)]
    Program(ProgramCommand),
    /// Learn libraries from corpora of programs, and show them
    #[command(subcommand)]
    Library(LibraryCommand),
    /// Inspect, validate, view and generate datasets of robot demonstrations
    #[command(subcommand)]
    Data(DataCommand),
    /// Compute and cache visual features of a dataset
    #[command(after_help = "Examples:
  refactor-vla features
  refactor-vla features demonstrations/libero_goal --encoder pixels:16 --cache features
  refactor-vla features demonstrations/libero_goal --encoder weights/dinov2-small --kind grid4

A weights directory contains `config.json` and `model.safetensors` of a DINOv2 (small, base or
large), as on the Hugging Face Hub.

Cached features are not computed again, and an interrupted command continues where it stopped. The
default cache is `$REFACTOR_VLA_CACHE`, or `refactor-vla` in the user's cache directory.")]
    Features(FeaturesArgs),
    /// Train a single phase
    #[command(subcommand)]
    Train(TrainCommand),
    /// Evaluate models and methods, with tables of results
    #[command(subcommand)]
    Eval(EvalCommand),
    /// List the presets of settings, and show what they set
    #[command(subcommand)]
    Presets(PresetsCommand),
    /// Show the settings of a run
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a completion script for a shell
    #[command(after_help = "Example:
  refactor-vla completions bash > ~/.local/share/bash-completion/completions/refactor-vla")]
    Completions {
        /// Shell to print the script for
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
    /// Infer the type of a program, or report all of its errors with their positions
    #[command(after_help = r#"Examples:
  refactor-vla program check 'seq[pick "bowl", place "bowl" (on "plate")]'
  refactor-vla program check '\x. \p. seq[pick x, place x p]'
  refactor-vla program check @skill.txt --json"#)]
    Check(ProgramArgs),
    /// Print the sequence of primitive calls that a program executes
    #[command(after_help = r#"Examples:
  refactor-vla program eval 'repeat(seq[move x_pos, grip grip_close], 3)'
  refactor-vla program eval --library library.json 'fn_0 "milk"'
  echo '(\x. seq[open x, close x]) "drawer"' | refactor-vla program eval -"#)]
    Eval {
        #[command(flatten)]
        program: ProgramArgs,
        /// Maximum number of calls that the program may execute
        #[arg(long, value_name = "N", default_value_t = 100_000)]
        max_calls: usize,
    },
    /// Print a formatted program with its type and size
    #[command(after_help = r#"Example:
  refactor-vla program show 'seq[pick (at "bowl" left), open "tray"]' --width 24"#)]
    Show {
        #[command(flatten)]
        program: ProgramArgs,
        /// Maximum line width in characters
        #[arg(long, value_name = "N", default_value_t = 80)]
        width: usize,
    },
    /// Translate an instruction into a program
    #[command(after_help = r#"Examples:
  refactor-vla program from-instruction "pick up the milk and place it in the basket"
  refactor-vla program from-instruction turn on the stove --json"#)]
    FromInstruction {
        /// Instruction in English; `-` reads stdin, `@FILE` reads a file
        #[arg(required = true, value_name = "TEXT")]
        words: Vec<String>,
        /// Print JSON, including errors
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct ProgramArgs {
    /// Program; `-` reads stdin, `@FILE` reads a file
    #[arg(value_name = "EXPR")]
    pub(crate) source: String,
    /// Library whose entries the program may call: a JSON file written by `library compress --output FILE`
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
    /// Print JSON, including errors
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Show the contents of a dataset: episodes, tasks, features, and the ranges of its signals
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
    /// Dataset: a directory, or `embedded:libero_goal_mini`
    #[arg(value_name = "DIR", default_value = "embedded:libero_goal_mini")]
    pub(crate) dataset: String,
    /// Print JSON, including errors
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) keys: KeyArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ValidateArgs {
    /// Dataset: a directory, or `embedded:libero_goal_mini`
    #[arg(value_name = "DIR")]
    pub(crate) dataset: String,
    /// Decode every image, instead of checking only sizes and timestamps
    #[arg(long)]
    pub(crate) decode: bool,
    /// Print JSON instead of messages
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
    /// Dataset: a directory, or `embedded:libero_goal_mini`
    #[arg(value_name = "DIR", default_value = "embedded:libero_goal_mini")]
    pub(crate) dataset: String,
    /// Encoder: `pixels`, a downsampled image (20×20), `pixels:SIDE`, or a directory with the weights of a DINOv2
    #[arg(long, value_name = "ENCODER", default_value = "pixels")]
    pub(crate) encoder: String,
    /// Which features of a DINOv2 to keep [default: cls]
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<Kind>,
    /// Device for a DINOv2: `auto`, `cpu` or `cuda:N`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: models::DeviceChoice,
    /// Directory of cached features [default: the user's cache directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Memory limit for decoded images, in MiB
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
    /// Column of states [default: detected]
    #[arg(long, value_name = "KEY")]
    pub(crate) state_key: Option<String>,
    /// Column of actions [default: detected]
    #[arg(long, value_name = "KEY")]
    pub(crate) action_key: Option<String>,
    /// Camera to use; may be given several times [default: all]
    #[arg(long, value_name = "KEY")]
    pub(crate) camera_key: Vec<String>,
    /// Column of rewards [default: `next.reward`, if there is one]
    #[arg(long, value_name = "KEY")]
    pub(crate) reward_key: Option<String>,
    /// Column of labels; may be given several times [default: all columns of a single integer]
    #[arg(long, value_name = "KEY")]
    pub(crate) label_key: Vec<String>,
    /// Meaning of actions: `absolute` positions, `relative` changes or `velocity`, for all groups, for one, or for action
    /// columns that form one, as in `--control 'left arm=absolute'` or `--control 6-8=velocity`; may be given several times
    /// [default: measured]
    #[arg(long, value_name = "[GROUP|COLUMNS=]CONTROL")]
    pub(crate) control: Vec<ControlChoice>,
    /// Action dimension of a gripper, by name or number, or `none`; append `=opens` or `=closes` to say what a high
    /// command does; may be given several times [default: detected]
    #[arg(long, value_name = "COLUMN[=opens|=closes]|none")]
    pub(crate) gripper: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SynthCommand {
    /// RecursivePour: pours that refill each other, nested one to four levels deep, with exact returns
    #[command(after_help = "Examples:
  refactor-vla data synth recursive-pour pour
  refactor-vla data synth recursive-pour pour-eval --seed 999")]
    RecursivePour {
        /// Directory to create; must not exist, or be empty
        out: PathBuf,
        /// Number of demonstrations per depth
        #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        demos: u32,
        /// Random seed; the same seed gives the same files
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
    /// Random seed for object positions, durations and noise; the same seed gives the same files
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
    /// With a file: write only the column and the names, and keep existing subtasks
    #[arg(long)]
    pub(crate) no_subtasks: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LibraryCommand {
    /// Find the abstractions that shorten a corpus most, and rewrite the corpus with them
    #[command(after_help = "Examples:
  refactor-vla library compress
  refactor-vla library compress embedded:libero --verify --output library.json
  refactor-vla library compress corpus.json --cost stitch --max-arity 3 --rounds 10 --threads 1

A corpus is a JSON array of strings: s-expressions as Stitch reads them, such as \"(f (lam $0))\",
programs of our language, or instructions in English.")]
    Compress(CompressArgs),
    /// Show the library of a run or of a file
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
    /// Corpus: a JSON file, `-` for stdin, `embedded:libero_object` (10 tasks × 20 episodes) or
    /// `embedded:libero` (40 tasks × 20 episodes)
    #[arg(default_value = "embedded:libero_object")]
    pub(crate) corpus: String,
    /// Syntax of the corpus
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    pub(crate) format: Format,

    /// Cost to minimise, over programs and library together
    #[arg(long, value_enum, default_value_t = Cost::Nats, help_heading = "Objective")]
    pub(crate) cost: Cost,
    /// Minimum gain of an abstraction [default: 4 nats, or 0 for stitch]
    #[arg(long, value_name = "G", value_parser = nonnegative, allow_negative_numbers = true, help_heading = "Objective")]
    pub(crate) min_gain: Option<f64>,
    /// Maximum arity of an abstraction
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Objective")]
    pub(crate) max_arity: usize,
    /// Maximum number of rounds
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Objective")]
    pub(crate) rounds: usize,
    /// Maximum number of abstractions admitted per round
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Objective")]
    pub(crate) per_round: u16,

    /// Search steps for look-ahead across rounds, as a multiple of the steps of the greedy rounds; 0 is greedy
    #[arg(
        long,
        value_name = "F",
        default_value_t = Config::default().lookahead,
        value_parser = multiple,
        allow_negative_numbers = true,
        help_heading = "Search"
    )]
    pub(crate) lookahead: f64,
    /// Maximum number of steps per search [default: unlimited; each search continues until its result is optimal]
    #[arg(long, value_name = "N", help_heading = "Search")]
    pub(crate) max_steps: Option<u64>,
    /// Memory limit for the queue of a search, in MiB; a search that reaches it stops with the best result so far
    #[arg(
        long,
        value_name = "MIB",
        default_value_t = compression::DEFAULT_MAX_MEMORY >> 20,
        value_parser = clap::value_parser!(u64).range(1..=1 << 24),
        help_heading = "Search"
    )]
    pub(crate) max_memory: u64,
    /// Time limit in seconds; the result then depends on the machine
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true, help_heading = "Search")]
    pub(crate) time_limit: Option<Duration>,
    /// Number of threads; does not change the result [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Search")]
    pub(crate) threads: Option<u16>,
    /// Disable a pruning rule of the search; may be given several times
    #[arg(long, value_enum, value_name = "RULE", help_heading = "Search")]
    pub(crate) without: Vec<Rule>,
    /// Enable a pruning rule that is disabled by default
    #[arg(long, value_enum, value_name = "RULE", hide_possible_values = true, help_heading = "Search")]
    pub(crate) with: Vec<Rule>,

    /// Verify that inlining the library reproduces every program
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
    /// Class token
    Cls,
    /// Mean of the patch tokens
    Mean,
    /// Means of the patch tokens in 4×4 cells, which keep spatial information
    Grid4,
}

/// How the strings of a corpus are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Detect the syntax of most strings
    Auto,
    /// S-expressions in Stitch's syntax
    Sexpr,
    /// Programs in the language of `refactor-vla program`
    Program,
    /// Instructions in English
    Instruction,
}

/// What programs cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cost {
    /// 100 per terminal, 1 per application or lambda
    Stitch,
    /// Description length under a typed grammar whose probabilities are estimated from use
    Nats,
    /// Description length with all productions of a type equally probable
    UniformNats,
}

/// A pruning rule of the search; all are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rule {
    /// Move an argument that is the same at every call into the body
    ArgumentCapture,
    /// Merge two parameters that are equal at every call
    RedundantArgument,
    /// Abstract a match at a single place without parameters
    SinglePlace,
    /// Drop matches whose arguments cost as much as they save
    SpentRows,
    /// Use a tighter bound once all parameters are used
    ExhaustedArity,
    /// Count overlapping matches once in the bound; disabled by default, since it takes more time than it saves
    Overlap,
}

fn nonnegative(written: &str) -> Result<f64, String> {
    match written.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("expected a number of 0 or more, such as `4` or `0.5`".to_string()),
    }
}

fn multiple(written: &str) -> Result<f64, String> {
    match nonnegative(written) {
        Ok(value) if value <= MAX_LOOKAHEAD => Ok(value),
        _ => Err(format!("expected a number from 0 to {MAX_LOOKAHEAD}, such as `1.25`")),
    }
}

fn seconds(written: &str) -> Result<Duration, String> {
    match nonnegative(written) {
        Ok(value) if value <= MAX_SECONDS => Ok(Duration::from_secs_f64(value)),
        _ => Err(format!("expected seconds from 0 to {MAX_SECONDS}")),
    }
}
