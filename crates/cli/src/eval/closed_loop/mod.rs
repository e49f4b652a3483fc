//! `eval closed-loop`: a run's policy, or another server, in the LIBERO simulator.
//!
//! The server runs in this process on a loopback port, the simulator in child processes; [`recording`] keeps what the server
//! sees, so that the page can show it.

mod choice;
mod recording;
mod rollouts;
mod simulator;

use std::fs;
use std::path::{Path, PathBuf};

use experiments::closed_loop::parts::Parts;
use experiments::closed_loop::tasks::Suites;
use experiments::closed_loop::{
    Answering, CLOSED_LOOP, Init, LoopReport, LoopSettings, TaskScore, file_hash, fingerprint, markdown,
};
use experiments::policy::{POLICY, PolicyOptions};
use experiments::run_dir::{CONFIG, write_json, write_text};
use models::DeviceChoice;
use report::{Rollout, Rollouts, render_rollouts};
use serde_json::{Value, json};
use server::{Background, Config, Policy as _};

use self::recording::{Recorded, Recordings};
use self::rollouts::{Evaluation, Target};
use self::simulator::Simulator;
use crate::failure::{Failure, Problem};
use crate::files::{self, Destination};
use crate::serve;
use crate::table::{Align, table};
use crate::train::note;
use crate::train::watch::stop_flag_with;

/// LIBERO's fixed start states of each task.
const START_STATES: u64 = 50;

/// Numbers of an action in LIBERO.
const ACTIONS: usize = 7;

/// Control steps per second in LIBERO.
const FPS: f64 = 20.0;

#[derive(Debug, clap::Args)]
pub(crate) struct ClosedLoopArgs {
    /// Directory of a finished run
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// Directory of the simulator: a copy of the LIBERO kit after its `./setup`, or its unpacked bundle
    #[arg(long, value_name = "DIR")]
    pub(crate) simulator: PathBuf,
    /// Suite to evaluate, such as `libero_goal`; may be given several times [default: the suites with an instruction that
    /// the run was trained on]
    #[arg(long, value_name = "SUITE", value_delimiter = ',', conflicts_with = "compose")]
    pub(crate) suite: Vec<String>,
    /// Tasks by number in the suite, or in the file of `--compose`, separated by commas [default: those that the run was
    /// trained on, or all]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) tasks: Vec<usize>,
    /// Execute the compositions of this file instead of single tasks
    #[arg(long, value_name = "FILE")]
    pub(crate) compose: Option<PathBuf>,
    /// What a request contains: `instruction` the whole instruction, `program` the program of a composition, `current` the
    /// instruction of the task that is next (an oracle)
    #[arg(long, value_name = "PROMPT", default_value = "instruction")]
    pub(crate) prompt: Prompt,
    /// Episodes per task, each from another fixed start state
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) episodes: u32,
    /// First start state
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) first: u32,
    /// Where episodes begin: `fixed` the benchmark's start states in their order, `random` drawn as in recordings by `--seed`,
    /// for development without the episodes that are reported
    #[arg(long, value_name = "STATES", default_value = "fixed")]
    pub(crate) init: InitChoice,
    /// Simulators that run at the same time [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) workers: Option<u16>,
    /// Actions executed per request
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) replan: u32,
    /// When programs are written: when all calls of the `plan` have ended, the same and `aim` the remaining calls again after
    /// each one, after each `call`, or at each `request`
    #[arg(long, value_name = "WHEN", default_value = "plan")]
    pub(crate) emit: serve::Emit,
    /// What turns programs into actions: a `controller` without learned weights, which drives the robot to the targets of the
    /// program, or the trained `decoder`; `auto` is the controller where it can be used
    #[arg(long, value_name = "WHAT", default_value = "auto")]
    pub(crate) execute: serve::Execute,
    /// Side of the images in a request, in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) size: u32,
    /// Side of the images that the simulator draws, in pixels; resized to `--size`
    #[arg(long, value_name = "PIXELS", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) camera: u32,
    /// Random seed of the simulator
    #[arg(long, value_name = "SEED", default_value_t = 9_000_000)]
    pub(crate) seed: u32,
    /// Episodes of each task that the page shows
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) videos: u32,
    /// Policy to evaluate, by its folder in the run: `with` (the library), `t1` (without a library), `no_programs` [default:
    /// `with`, or the last one of the loop]
    #[arg(long, value_name = "NAME", conflicts_with = "server")]
    pub(crate) arm: Option<String>,
    /// Evaluate this server, which speaks openpi's protocol, instead of the policy of the run
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["port", "weights", "device"])]
    pub(crate) server: Option<String>,
    /// Port of the policy server on this machine [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Directory of the DINOv2 weights that the run's features were made with [default: $REFACTOR_VLA_WEIGHTS, or the
    /// cache of the Hugging Face Hub]
    #[arg(long, value_name = "DIR")]
    pub(crate) weights: Option<PathBuf>,
    /// Device of the policy: `auto`, `cpu` or `cuda:N`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: DeviceChoice,
    /// Write the results as JSON to this file as well
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a request says about the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Prompt {
    Instruction,
    Program,
    Current,
}

/// Where episodes begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum InitChoice {
    Fixed,
    Random,
}

impl InitChoice {
    fn init(self) -> Init {
        match self {
            InitChoice::Fixed => Init::Fixed,
            InitChoice::Random => Init::Random,
        }
    }
}

impl Prompt {
    fn name(self) -> &'static str {
        match self {
            Prompt::Instruction => "instruction",
            Prompt::Program => "program",
            Prompt::Current => "current",
        }
    }
}

/// Evaluates each suite, writes the results into the run, and prints them.
pub(super) fn run(options: &ClosedLoopArgs) -> Result<(), Failure> {
    let simulator = Simulator::open(&options.simulator)?;
    let suites = Suites::read(&simulator.kit.join("tasks.json"))?;
    if options.server.is_none() {
        serve::checked(&options.run)?;
    }
    let chosen = choice::chosen(options, &suites)?;
    let output = options.output.as_deref().map(|path| Destination::new(path, "closed_loop.json")).transpose()?;
    let folder = options.run.join(CLOSED_LOOP);
    fs::create_dir_all(&folder).map_err(|source| experiments::Error::Write { path: folder.clone(), source })?;
    let last = u64::from(options.first) + u64::from(options.episodes);
    if options.init == InitChoice::Fixed && last > START_STATES {
        note(&[format!("LIBERO has {START_STATES} start states per task; from {START_STATES} on they are repeated")]);
    }
    let mut server = Server { options, target: None, running: None };
    let answering = match &options.server {
        Some(address) => Answering::Server(address.clone()),
        None => {
            let folder = options.arm.as_ref().map_or_else(|| options.run.clone(), |arm| options.run.join(arm));
            Answering::Run(fingerprint(&folder)?)
        }
    };
    let program = match (&options.server, std::env::current_exe()) {
        (None, Ok(program)) => Some(file_hash(&program)?),
        _ => None,
    };
    let stop = stop_flag_with("stopping the simulator; finished episodes are kept")?;
    let compose = options.compose.as_ref().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let mut reports = Vec::new();
    for (name, chosen) in &chosen {
        let settings = LoopSettings {
            suite: chosen.suite.clone(),
            compose: compose.as_deref().map(file_hash).transpose()?,
            init: options.init.init(),
            prompt: options.prompt.name().to_owned(),
            replan: options.replan,
            size: options.size,
            camera: options.camera,
            seed: options.seed.into(),
            emission: options.server.is_none().then(|| options.emit.emission()),
            executor: options.server.is_none().then(|| options.execute.executor()),
            policy: answering.clone(),
            program: program.clone(),
        };
        let evaluation = Evaluation {
            name,
            simulator: &simulator,
            settings: &settings,
            chosen,
            compose: compose.as_deref(),
            starts: options.first.into()..last,
            workers: options.workers.map_or_else(cores, usize::from),
            videos: options.videos.into(),
            stop,
        };
        let mut parts = Parts::open(&folder.join("parts"), &settings)?;
        if !evaluation.missing(&parts).is_empty() {
            evaluation.run(&mut parts, server.target(evaluation.workers)?)?;
        }
        let report = summed_up(options, &evaluation, &parts)?;
        write_json(&folder.join(format!("{name}.json")), &report)?;
        write_text(&folder.join(format!("{name}.md")), markdown(std::slice::from_ref(&report)).as_bytes())?;
        if let Some(page) = page(&evaluation, &report, &parts) {
            write_text(&folder.join(format!("{name}.html")), page.as_bytes())?;
        }
        reports.push(report);
    }
    drop(server);
    if let Some(output) = output {
        output.write(&files::json_bytes(&reports)?)?;
    }
    match options.json {
        true => files::print(&files::json_bytes(&reports)?),
        false => {
            files::print(reports.iter().map(|report| text(report, &folder)).collect::<Vec<_>>().join("\n").as_bytes())
        }
    }
}

/// The server, which is started when it is first needed.
struct Server<'a> {
    options: &'a ClosedLoopArgs,
    target: Option<Target>,
    running: Option<Background>,
}

impl Server<'_> {
    fn target(&mut self, workers: usize) -> Result<&Target, Failure> {
        if self.target.is_none() {
            self.target = Some(self.start(workers)?);
        }
        self.target.as_ref().ok_or_else(|| Problem::new("internal error: the server has no address").into())
    }

    fn start(&mut self, workers: usize) -> Result<Target, Failure> {
        let ClosedLoopArgs { run, device, weights, replan, port, server, arm, emit, execute, .. } = self.options;
        if let Some(address) = server {
            let (host, port) = choice::address(address)?;
            return Ok(Target { host, port, recordings: None });
        }
        let options = PolicyOptions {
            device: device.open()?,
            weights: weights.clone(),
            replan: *replan as usize,
            emission: emit.emission(),
            executor: execute.executor(),
            arm: arm.clone(),
        };
        let policy = serve::load(run, &options)?;
        let about = policy.metadata();
        if about.action_dim != ACTIONS {
            return Err(Problem::new("the policy is for another robot")
                .fact("found", format!("{} numbers of an action", about.action_dim))
                .fact("expected", format!("{ACTIONS}, as in LIBERO"))
                .into());
        }
        if about.action_horizon < *replan as usize {
            return Err(Problem::new(format!("`--replan {replan}` is more than the policy returns"))
                .fact("found", format!("{} actions per reply", about.action_horizon))
                .hint(format!("give `--replan {}` or less", about.action_horizon))
                .into());
        }
        let recordings = Recordings::default();
        let policy = Recorded { policy: Box::new(policy), recordings: recordings.clone() };
        let most = Config::default().max_clients.max(2 * workers);
        let config = Config { port: *port, max_clients: most, ..Config::default() };
        let running = Background::start(Box::new(policy), config, |_| {}).map_err(serve::failure)?;
        let target = Target::here(running.address(), recordings);
        self.running = Some(running);
        Ok(target)
    }
}

fn summed_up(options: &ClosedLoopArgs, evaluation: &Evaluation<'_>, parts: &Parts) -> Result<LoopReport, Failure> {
    let tasks = evaluation.tasks();
    let run = match options.server {
        Some(_) => Value::Null,
        None => {
            let file =
                |name: &str| -> Option<Value> { serde_json::from_slice(&fs::read(options.run.join(name)).ok()?).ok() };
            json!({ "directory": options.run, "config": file(CONFIG), "policy": file(POLICY) })
        }
    };
    let starts = (options.first.into(), options.episodes.into());
    let (settings, played) = (evaluation.settings.clone(), parts.among(&tasks, evaluation.starts.clone()));
    Ok(LoopReport::new(evaluation.name, settings, run, evaluation.chosen, starts, evaluation.workers, played))
}

/// The page with the filmed episodes; none if nothing was filmed.
fn page(evaluation: &Evaluation<'_>, report: &LoopReport, parts: &Parts) -> Option<String> {
    let tasks = evaluation.tasks();
    let first = evaluation.starts.start;
    let filmed = parts.among(&tasks, first..first + evaluation.videos).filter_map(|one| {
        let score = report.tasks.iter().find(|score| score.task == one.episode.task)?;
        Some(Rollout {
            task: one.episode.task as u64,
            instruction: score.instruction.clone(),
            start: one.episode.start,
            success: one.episode.success,
            steps: one.episode.steps,
            of_task: (score.successes, score.episodes),
            moments: one.film.clone()?,
        })
    });
    let episodes: Vec<Rollout> = filmed.collect();
    let total = &report.total;
    let lead = vec![
        format!(
            "{} of {} episodes succeeded; mean over {} tasks {:.1} %.",
            total.successes,
            total.episodes,
            report.tasks.len(),
            100.0 * total.mean_over_tasks
        ),
        "Each moment is an observation on which the policy decided; the program's active call is marked.".to_owned(),
    ];
    let (title, stride) = (evaluation.name.to_owned(), evaluation.settings.replan.into());
    (!episodes.is_empty()).then(|| render_rollouts(&Rollouts { title, lead, fps: FPS, stride, episodes }))
}

fn text(report: &LoopReport, folder: &Path) -> String {
    let columns = [
        ("task", Align::Right),
        ("success", Align::Right),
        ("rate", Align::Right),
        ("95 % interval", Align::Right),
        ("steps", Align::Right),
        ("instruction", Align::Left),
    ];
    let percent = |rate: f64| format!("{:.1} %", 100.0 * rate);
    let span = |(low, high): (f64, f64)| format!("{:.1} to {:.1} %", 100.0 * low, 100.0 * high);
    let row = |score: &TaskScore| {
        let done = score.mean_done.map_or(String::new(), |done| format!(" ({done:.1} done)"));
        vec![
            score.task.to_string(),
            format!("{}/{}", score.successes, score.episodes),
            percent(score.rate),
            span(score.interval),
            format!("{:.1}", score.mean_steps),
            format!("{}{done}", score.instruction),
        ]
    };
    let total = &report.total;
    let mut rows: Vec<Vec<String>> = report.tasks.iter().map(row).collect();
    rows.push(vec![
        "all".to_owned(),
        format!("{}/{}", total.successes, total.episodes),
        percent(total.successes as f64 / total.episodes.max(1) as f64),
        span(total.interval),
        format!("{:.1}", total.mean_steps),
        format!("mean over tasks {}", percent(total.mean_over_tasks)),
    ]);
    let mut text = format!("{}\n\n{}", report.name, table(&columns, &rows));
    if let Some(latency) = total.client_latency_ms {
        text += &format!("latency: {latency:.1} ms per request (mean, measured by the simulator)\n");
    }
    if !report.latency_ms.is_empty() {
        let stages = report.latency_ms.iter().map(|(stage, time)| format!("{stage} {:.1}", time.p50));
        text += &format!("server p50 in ms: {}\n", stages.collect::<Vec<_>>().join(", "));
    }
    let base = folder.join(&report.name);
    text += &format!("results: {}.json\n", base.display());
    let page = base.with_file_name(format!("{}.html", report.name));
    if page.is_file() {
        text += &format!("page:    {}\n", page.display());
    }
    text
}
