//! `serve`: a run's policy over the websocket protocol of openpi, with a live page.

use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dataset::Frame;
use experiments::cycle::driver::SKILLS;
use experiments::policy::{Asked, Decision, Emission, Executor, Observation, PolicyOptions, Refusal, RunPolicy};
use models::DeviceChoice;
use server::policy::{ActiveSkill, ClientId};
use server::{Config, Metadata, Notice, Policy, PolicyError, Reply, Request, ServerError, Status, Task, serve};

use crate::failure::{Failure, Problem, drawn_plain};
use crate::files;
use crate::run_directory::{file_of, unfinished};
use crate::train::watch::warn;

/// The environment variable with the key that clients must present.
const API_KEY: &str = "REFACTOR_VLA_API_KEY";

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Directory of a finished run
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// Port to listen on; 0 chooses a free one
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    pub(crate) port: u16,
    /// Address to listen on; `0.0.0.0` accepts clients from other machines
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// Key that clients must send as `Authorization: Api-Key KEY` [default: $REFACTOR_VLA_API_KEY, if it is set]
    #[arg(long, value_name = "KEY")]
    pub(crate) api_key: Option<String>,
    /// Device: `auto`, `cpu` or `cuda:N`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub(crate) device: DeviceChoice,
    /// Directory of the DINOv2 weights that the run's features were made with [default: $REFACTOR_VLA_WEIGHTS, or the
    /// cache of the Hugging Face Hub]
    #[arg(long, value_name = "DIR")]
    pub(crate) weights: Option<PathBuf>,
    /// Actions that clients execute per request, by which the policy measures time
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) replan: u32,
    /// When programs are written: when all calls of the `plan` have ended, the same and `aim` the remaining calls again after
    /// each one, after each `call`, or at each `request`
    #[arg(long, value_name = "WHEN", default_value = "plan")]
    pub(crate) emit: Emit,
    /// What turns programs into actions: a `controller` without learned weights, which drives the robot to the targets of the
    /// program, or the trained `decoder`; `auto` is the controller where it can be used
    #[arg(long, value_name = "WHAT", default_value = "auto")]
    pub(crate) execute: Execute,
    /// Policy to serve, by its folder in the run: `with` (the library), `t1` (without a library), `no_programs` [default:
    /// `with`, or the last one of the loop]
    #[arg(long, value_name = "NAME")]
    pub(crate) arm: Option<String>,
    /// Time in milliseconds that a request waits for other clients to share its batch
    #[arg(long, value_name = "MS", default_value_t = 2, help_heading = "Limits",
          value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) batch_window_ms: u32,
    /// Maximum number of requests in a batch
    #[arg(long, value_name = "N", default_value_t = 64, help_heading = "Limits",
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) max_batch: u32,
    /// Maximum number of clients
    #[arg(long, value_name = "N", default_value_t = 64, help_heading = "Limits",
          value_parser = clap::value_parser!(u32).range(1..=65_000))]
    pub(crate) max_clients: u32,
    /// Maximum size of a request in MiB
    #[arg(long, value_name = "MIB", default_value_t = 16, help_heading = "Limits",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) max_message_mib: u32,
    /// Disconnect clients that send no request for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, help_heading = "Limits",
          value_parser = clap::value_parser!(u32).range(1..=31_536_000))]
    pub(crate) idle_seconds: u32,
    /// Do not report clients that connect and disconnect
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// When programs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Emit {
    Request,
    Call,
    Aim,
    Plan,
}

impl Emit {
    pub(crate) fn emission(self) -> Emission {
        match self {
            Emit::Request => Emission::Request,
            Emit::Call => Emission::Call,
            Emit::Aim => Emission::Aim,
            Emit::Plan => Emission::Plan,
        }
    }
}

/// What turns programs into actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Execute {
    Auto,
    Decoder,
    Controller,
}

impl Execute {
    pub(crate) fn executor(self) -> Executor {
        match self {
            Execute::Auto => Executor::Auto,
            Execute::Decoder => Executor::Decoder,
            Execute::Controller => Executor::Controller,
        }
    }
}

/// Serves the policy of a run until Ctrl-C.
pub(crate) fn run(options: &ServeArgs) -> Result<(), Failure> {
    checked(&options.run)?;
    let config = config(options);
    warn(&config.warnings());
    let served = load(
        &options.run,
        &PolicyOptions {
            device: options.device.open()?,
            weights: options.weights.clone(),
            replan: options.replan as usize,
            emission: options.emit.emission(),
            executor: options.execute.executor(),
            arm: options.arm.clone(),
        },
    )?;
    let run = options.run.display().to_string();
    let quiet = options.quiet;
    let observer = move |notice: Notice| {
        if !quiet {
            tell(&notice.to_string());
        }
    };
    let key = if config.api_key.is_some() { "?key=KEY" } else { "" };
    let mut printed = Ok(());
    let ready = |address: std::net::SocketAddr| {
        let text = format!("serving {run} at ws://{address}\npage:    http://{address}/{key}\n");
        printed = files::print(text.as_bytes());
    };
    serve(Box::new(served), config, observer, ready).map_err(failure)?;
    printed
}

/// Says what is wrong with the directory of a run before anything is loaded.
pub(crate) fn checked(run: &Path) -> Result<(), Failure> {
    file_of(run, SKILLS)?.ok_or_else(|| unfinished(run, SKILLS))?;
    Ok(())
}

/// Loads the policy of a run, and warns about what a user should know.
pub(crate) fn load(run: &Path, options: &PolicyOptions) -> Result<Served, Failure> {
    let policy = RunPolicy::load(run, options)?;
    warn(&policy.about().notes);
    Ok(Served { policy, run: run.display().to_string() })
}

fn config(options: &ServeArgs) -> Config {
    let from_environment = || std::env::var(API_KEY).ok().filter(|key| !key.is_empty());
    Config {
        host: options.host,
        port: options.port,
        api_key: options.api_key.clone().filter(|key| !key.is_empty()).or_else(from_environment),
        batch_window: Duration::from_millis(options.batch_window_ms.into()),
        max_batch: options.max_batch as usize,
        max_clients: options.max_clients as usize,
        max_message: (options.max_message_mib as usize) << 20,
        idle: Duration::from_secs(options.idle_seconds.into()),
        ..Config::default()
    }
}

fn tell(line: &str) {
    // Without stderr there is nobody to tell.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

pub(crate) fn failure(error: ServerError) -> Failure {
    Problem::new(error.to_string()).into()
}

/// A run's policy as the server sees it.
pub(crate) struct Served {
    policy: RunPolicy,
    run: String,
}

impl Policy for Served {
    fn metadata(&self) -> Metadata {
        let about = self.policy.about().clone();
        Metadata {
            run: self.run.clone(),
            action_horizon: about.chunk,
            action_dim: about.widths.actions,
            action_names: about.record.action_names,
            cameras: about.cameras,
            state_key: about.record.state_key,
            state_dim: about.widths.states,
            state_names: about.record.state_names,
            fps: about.record.fps,
            library_size: about.library,
            encoder: about.encoder,
            notes: about.notes,
        }
    }

    fn infer(&mut self, batch: &[Request]) -> Vec<Result<Reply, PolicyError>> {
        let observations: Vec<Observation> = batch.iter().map(observation).collect();
        let decisions = self.policy.act(&observations);
        decisions.into_iter().map(|decided| decided.map(reply).map_err(refusal)).collect()
    }

    fn forget(&mut self, client: ClientId) {
        self.policy.forget(client.0);
    }
}

fn observation(request: &Request) -> Observation {
    let frame = |picture: &server::Picture| Frame {
        width: picture.width,
        height: picture.height,
        pixels: picture.pixels.as_ref().into(),
    };
    Observation {
        client: request.client.0,
        images: request.pictures.iter().map(frame).collect(),
        state: request.state.clone(),
        asked: match &request.task {
            Task::Prompt(text) => Asked::Prompt(text.clone()),
            Task::Program(text) => Asked::Program(text.clone()),
        },
        restart: request.restart,
    }
}

fn reply(decision: Decision) -> Reply {
    let skill = decision.skill.map(|[name, readable, call]| ActiveSkill { name, readable, call });
    Reply {
        actions: decision.actions,
        status: Status {
            program: decision.program,
            active: decision.active,
            task: decision.task,
            library: decision.library,
            skill,
            progress: decision.progress,
            step: decision.step,
            estimated_return: decision.estimated_return,
            rewritten: decision.rewritten,
        },
        stages: decision.stages,
    }
}

fn refusal(refusal: Refusal) -> PolicyError {
    match refusal {
        // As `program check` prints it.
        Refusal::Program(report) => PolicyError::Refused(drawn_plain(&report.into())),
        Refusal::Other(reason) => PolicyError::Refused(reason),
    }
}

#[cfg(test)]
mod tests {
    use language::{Signature, TermStore, read};

    use super::*;

    #[test]
    fn type_errors_look_as_program_check_prints_them() {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        let Err(report) = read(&mut store, &signature, "seq[pick left]", None) else { panic!("well-typed") };
        let PolicyError::Refused(text) = refusal(Refusal::Program(report)) else { panic!("not refused") };
        assert!(text.contains("1 │ seq[pick left]") && text.contains("this is Pose"), "{text}");
        assert!(!text.contains('\u{1b}'), "no colours");
    }
}
