//! The binary as a person uses it: what it prints, what it writes, and how it fails.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails loudly")]

mod annotate;
mod closed_loop;
mod data;
mod errors;
mod eval_annotate;
mod eval_paper;
mod features;
mod findings;
mod help;
mod jobs;
mod library;
mod library_show;
mod links;
mod program;
mod report;
mod run;
mod serve;
mod several_processes;
mod train;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run of the binary left behind.
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    /// Everything, for snapshots.
    fn shown(&self) -> String {
        let mut text = format!("exit {}\n", self.code);
        for (name, stream) in [("stdout", &self.out), ("stderr", &self.err)] {
            if !stream.is_empty() {
                text.push_str(&format!("--- {name}\n{stream}"));
            }
        }
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    /// The JSON of a run that succeeded.
    fn json(&self) -> serde_json::Value {
        assert_eq!(self.code, 0, "{}", self.shown());
        serde_json::from_str(&self.out).unwrap()
    }
}

/// Runs the binary.
fn run(args: &[&str]) -> Ran {
    run_with("", args)
}

/// Runs the binary with something on stdin, in an environment that is the same everywhere.
fn run_with(stdin: &str, args: &[&str]) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_refactor-vla"))
        .args(args)
        .env_clear()
        .env("LC_ALL", "C.UTF-8")
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads no stdin may be gone before it is written.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// What `run` writes before all else, in short.
const LOOP: &str = r#"{"settings": {"world_model": {}, "wake": {}, "cycle": {"iterations": 1}}}"#;

/// A directory with files in it.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

/// What was shown, without the name of the directory.
fn shown(ran: &Ran, folder: &Path) -> String {
    ran.shown().replace(folder.to_str().unwrap(), "RUN")
}
