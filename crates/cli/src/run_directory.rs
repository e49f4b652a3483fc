//! Directories that `run` and `demo` made, as other commands find them.

use std::fs;
use std::path::{Path, PathBuf};

use experiments::run_dir::CONFIG;
use serde_json::Value;

use crate::failure::{Failure, Problem};
use crate::files::shown;

/// A file of a run; none if the run has not got that far.
///
/// # Errors
/// If the directory is no run of the loop.
pub(crate) fn file_of(run: &Path, name: &str) -> Result<Option<PathBuf>, Failure> {
    let path = run.join(name);
    if path.is_file() {
        return Ok(Some(path));
    }
    match phase_of(run) {
        Some(Made::Loop) => Ok(None),
        Some(Made::Phase(phase)) => Err(Problem::new(format!("{} is a run of the single phase {phase}", shown(run)))
            .fact("expected", "a directory created by `run` or `demo`")
            .into()),
        None => Err(not_a_run(run)),
    }
}

/// A run that something is missing from.
pub(crate) fn unfinished(run: &Path, missing: &str) -> Problem {
    Problem::new(format!("the run in {} is not finished", shown(run)))
        .fact("missing", missing)
        .hint("continue it: add `--resume` to the command that started it")
}

/// What made a directory.
enum Made {
    Loop,
    Phase(String),
}

fn phase_of(run: &Path) -> Option<Made> {
    let config: Value = serde_json::from_slice(&fs::read(run.join(CONFIG)).ok()?).ok()?;
    if let Some(phase) = config["run"]["phase"].as_str() {
        return Some(Made::Phase(format!("`{phase}`")));
    }
    let sections: Vec<&String> = config["settings"].as_object()?.keys().collect();
    let is_loop = ["world_model", "wake", "cycle"].iter().all(|name| sections.iter().any(|section| section == name));
    match is_loop {
        true => Some(Made::Loop),
        false => sections.first().map(|section| Made::Phase(format!("`{section}`"))),
    }
}

/// The error for a directory that is not a run.
pub(crate) fn not_a_run(run: &Path) -> Failure {
    if !run.exists() {
        return Problem::new(format!("there is no directory {}", shown(run)))
            .hint("check the path, and the directory that you are in")
            .into();
    }
    let problem = Problem::new(format!("{} is not a run", shown(run)));
    if run.is_file() {
        return problem.fact("found", "a file").fact("expected", "a directory created by `run` or `demo`").into();
    }
    // Several datasets make a run each, in directories of their own.
    let inner = runs_in(run);
    let problem = problem.fact("expected", "a directory created by `run` or `demo`");
    match inner.first() {
        Some(first) => problem
            .hint(format!("it contains {} runs; give one of them, such as `{}`", inner.len(), first.display()))
            .into(),
        None => problem.hint("`refactor-vla demo` creates one in `demo-run`").into(),
    }
}

fn runs_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_loop(path)).collect();
    found.sort();
    found
}

/// Whether a directory was made by the whole loop.
pub(crate) fn is_loop(path: &Path) -> bool {
    matches!(phase_of(path), Some(Made::Loop))
}
