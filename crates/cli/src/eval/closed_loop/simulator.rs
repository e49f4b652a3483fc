//! The simulator kit on disk, and its processes.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Problem};
use crate::files::shown;

/// What runs `rollout.py`.
const DRIVER: &str = include_str!("drive.py");

/// Lines of an error that are kept.
const KEPT: usize = 12;

/// How long processes may take to end by themselves.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often they are looked at meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// A usable kit.
pub(super) struct Simulator {
    kind: Kind,
    /// The folder with `rollout.py` and `tasks.json`.
    pub(super) kit: PathBuf,
}

enum Kind {
    /// A kit after its `setup`, by the Python of its environment.
    Installed(PathBuf),
    /// An unpacked bundle, by its `run`.
    Bundle(PathBuf),
}

impl Simulator {
    /// Finds out what a directory is.
    pub(super) fn open(folder: &Path) -> Result<Simulator, Failure> {
        let folder = &std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let (run, python) = (folder.join("run"), folder.join(".venv/bin/python"));
        if run.is_file() && folder.join("kit/tasks.json").is_file() {
            return Ok(Simulator { kind: Kind::Bundle(run), kit: folder.join("kit") });
        }
        let is_kit = folder.join("rollout.py").is_file() && folder.join("tasks.json").is_file();
        if is_kit && python.is_file() {
            return Ok(Simulator { kind: Kind::Installed(python), kit: folder.clone() });
        }
        let place = folder.display();
        if is_kit {
            return Err(Problem::new(format!("the simulator in {} is not installed", shown(folder)))
                .fact("missing", ".venv/bin/python")
                .hint(format!("run `cd {place} && ./setup`"))
                .into());
        }
        let problem = Problem::new(match folder.is_dir() {
            true => format!("{} is not a simulator", shown(folder)),
            false => format!("there is no directory {}", shown(folder)),
        });
        let problem = problem.fact("expected", "a copy of the LIBERO kit after its `./setup`, or its unpacked bundle");
        let archive = "libero-sim-bundle.tar.xz";
        Err(match () {
            () if folder.join("libero-sim-bundle/run").is_file() => {
                problem.hint(format!("give `--simulator {place}/libero-sim-bundle`"))
            }
            () if folder.join(archive).is_file() => problem.hint(format!(
                "run `tar -xJf {place}/{archive} -C {place}` and give `--simulator {place}/libero-sim-bundle`"
            )),
            () => problem.hint("copy the kit, run `./setup` in the copy, and give its path"),
        }
        .into())
    }

    /// A bundle unpacks its assets when it is first used. This does it once, before several processes would at the same time.
    pub(super) fn prepare(&self) -> Result<(), Failure> {
        let Kind::Bundle(run) = &self.kind else { return Ok(()) };
        if run.with_file_name("data").join("config.yaml").is_file() {
            return Ok(());
        }
        let mut command = Command::new(run);
        command.args(["rollout.py", "--help"]).stdin(Stdio::null());
        let failed = |reason: String| {
            Problem::new(format!("the simulator in {} does not start", shown(run))).fact("reason", reason)
        };
        let ran = command.output().map_err(|error| failed(error.to_string()))?;
        match ran.status.success() {
            true => Ok(()),
            false => Err(failed(ran.status.to_string()).list(tail(&ran.stderr[..])).into()),
        }
    }

    /// Starts `rollout.py` with arguments. `work` is a folder for the driver; with `mark`, requests name their episodes.
    pub(super) fn start(&self, work: &Path, arguments: Vec<OsString>, mark: bool) -> Result<Process, Failure> {
        let driver = work.join("drive.py");
        let failed = |what: &str, error: std::io::Error| Problem::new(format!("cannot {what}: {error}"));
        if !driver.is_file() {
            fs::write(&driver, DRIVER).map_err(|error| failed("write a temporary file", error))?;
        }
        let mut command = match &self.kind {
            Kind::Installed(python) => {
                let mut command = Command::new(python);
                command.arg(&driver);
                command
            }
            Kind::Bundle(run) => {
                // It looks for scripts in its own folder: from there to the root, and down again.
                let mut command = Command::new(run);
                command.arg(format!("{}{}", "../".repeat(64), driver.display().to_string().trim_start_matches('/')));
                command
            }
        };
        command.args(arguments).current_dir(work).env("REFACTOR_VLA_KIT", &self.kit).env_remove("REFACTOR_VLA_MARK");
        if mark {
            command.env("REFACTOR_VLA_MARK", "1");
        }
        // A group of its own: Ctrl-C reaches this program alone, which then ends the whole group.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed("start the simulator", error))?;
        let errors = child.stderr.take().map(|errors| thread::spawn(|| tail(errors)));
        Ok(Process { child, errors, over: false })
    }
}

/// A process of the simulator with all that it started. Dropping it ends them.
pub(super) struct Process {
    child: Child,
    errors: Option<JoinHandle<Vec<String>>>,
    /// Whether everything has ended.
    over: bool,
}

impl Process {
    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> std::io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// The last lines that it wrote to stderr. Only for one that has ended.
    pub(super) fn said(mut self) -> Vec<String> {
        // What it started may still have the pipe.
        self.end();
        self.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default()
    }

    /// Asks it to end, without waiting.
    pub(super) fn ask_to_end(&mut self) {
        drop(self.child.stdin.take());
    }

    fn end(&mut self) {
        self.ask_to_end();
        let until = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(LOOK);
        }
        // Whatever is left of the group.
        #[cfg(unix)]
        let _ = Command::new("sh")
            .args(["-c", &format!("kill -s KILL -- -{}", self.child.id())])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.over = true;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.over {
            self.end();
        }
    }
}

fn tail(from: impl Read) -> Vec<String> {
    let mut kept = VecDeque::new();
    for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        if !line.is_empty() {
            kept.push_back(line);
        }
        if kept.len() > KEPT {
            kept.pop_front();
        }
    }
    kept.into()
}
