//! Readings as lines of JSON.
//!
//! ```text
//! {"step":20,"loss":0.91,"terms":{"flow":0.7},"rate":3e-5,"gradient_norm":1.2,"per_second":5.1e4,"seconds":3.4}
//! {"step":400,"evaluation":{"probe_r2":0.62}}
//! ```
//! `per_second` and `seconds` are measured; everything else is the same for an unbroken run and one that was killed and
//! resumed, because lines past the resumed step are cut off.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Error, Result};

/// The name of the file in the run's directory.
pub const FILE: &str = "metrics.jsonl";

/// A file of lines that is only ever appended to, or cut at its end.
pub struct Metrics {
    path: PathBuf,
    file: File,
    evaluated: bool,
}

impl Metrics {
    /// Opens the file of a run that goes on after `step`, 0 for a new one. Lines of later steps are cut off, and so is
    /// a line that was not finished.
    pub fn open(run: &Path, step: u64) -> Result<Metrics> {
        let path = run.join(FILE);
        let failed = |source| Error::File { path: path.clone(), source };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(error)),
        };
        let (mut kept, mut evaluated) = (0, false);
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let Some((found, evaluation)) = step_of(line).filter(|(found, _)| *found <= step) else { break };
            kept += line.len();
            evaluated = evaluation && found == step;
        }
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
        file.set_len(kept as u64).map_err(failed)?;
        Ok(Metrics { path, file, evaluated })
    }

    /// Whether the last line that was kept is the evaluation of the step that the run goes on from.
    pub fn evaluated(&self) -> bool {
        self.evaluated
    }

    /// Adds a line.
    pub fn add(&mut self, line: &Value) -> Result<()> {
        let text = format!("{line}\n");
        self.file.write_all(text.as_bytes()).map_err(|source| self.failed(source))
    }

    /// Waits until all lines are on the disk.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|source| self.failed(source))
    }

    fn failed(&self, source: std::io::Error) -> Error {
        Error::File { path: self.path.clone(), source }
    }
}

/// The step of a whole line, and whether it is an evaluation.
fn step_of(line: &[u8]) -> Option<(u64, bool)> {
    let line: Value = serde_json::from_slice(line.strip_suffix(b"\n")?).ok()?;
    Some((line.get("step")?.as_u64()?, line.get("evaluation").is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn later_and_unfinished_lines_are_cut_off() {
        let run = tempfile::tempdir().unwrap();
        let mut metrics = Metrics::open(run.path(), 0).unwrap();
        for step in [10, 20, 20, 30] {
            metrics.add(&json!({ "step": step })).unwrap();
        }
        metrics.file.write_all(b"{\"step\":4").unwrap();
        let text = || fs::read_to_string(run.path().join(FILE)).unwrap();
        Metrics::open(run.path(), 40).unwrap();
        assert_eq!(text().lines().count(), 4);
        let mut metrics = Metrics::open(run.path(), 20).unwrap();
        metrics.add(&json!({ "step": 25 })).unwrap();
        assert_eq!(text(), "{\"step\":10}\n{\"step\":20}\n{\"step\":20}\n{\"step\":25}\n");
        Metrics::open(run.path(), 0).unwrap();
        assert_eq!(text(), "");
    }

    #[test]
    fn an_evaluation_is_known_by_its_step() {
        let run = tempfile::tempdir().unwrap();
        let mut metrics = Metrics::open(run.path(), 0).unwrap();
        for line in [json!({ "step": 10, "loss": 1 }), json!({ "step": 10, "evaluation": {} }), json!({ "step": 20 })] {
            metrics.add(&line).unwrap();
        }
        for (step, known) in [(20, false), (15, false), (10, true), (0, false)] {
            assert_eq!(Metrics::open(run.path(), step).unwrap().evaluated(), known, "{step}");
        }
    }
}
