//! What the first rank writes into the run's directory, and finds there when a run goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::checkpoint::{self, MODEL};
use super::events::Events;
use super::metrics::Metrics;
use super::monitor::Monitor;
use super::run::Progress;
use crate::error::{Error, Result};

/// Held while a process trains, and free again when it ends, however it ends.
const LOCK: &str = "lock";

const WEIGHTS: &str = "weights/";
const MOMENTS: &str = "moments/";
const AVERAGES: &str = "averages/";

/// All that a step leaves to the next.
pub(super) struct Snapshot {
    pub(super) about: About,
    /// By the names of parameters.
    pub(super) weights: BTreeMap<String, Tensor>,
    /// By the optimizer's names.
    pub(super) moments: BTreeMap<String, Tensor>,
    /// By the names of parameters; empty without averages.
    pub(super) averages: BTreeMap<String, Tensor>,
}

/// The part of it that is no tensor.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct About {
    pub(super) step: u64,
    pub(super) monitor: Monitor,
}

/// What a run directory had, and how to write into it.
pub(super) struct Opened {
    pub(super) recorder: Recorder,
    pub(super) snapshot: Option<Snapshot>,
    pub(super) warnings: Vec<String>,
}

/// Writes into a run directory.
pub(super) struct Recorder {
    run: PathBuf,
    config: Value,
    metrics: Metrics,
    events: Events,
    _lock: File,
}

/// Opens a run directory: a new one, or with `resume` one whose settings, `config`, are the same.
pub(super) fn open(run: &Path, config: Value, resume: bool, device: &Device) -> Result<Opened> {
    fs::create_dir_all(run).map_err(|source| Error::File { path: run.to_owned(), source })?;
    let lock = lock(run)?;
    let found = checkpoint::list(run)?;
    if !resume && (!found.is_empty() || run.join(MODEL).exists()) {
        let steps =
            found.first().map_or("a finished model".to_owned(), |(step, _)| format!("checkpoints up to step {step}"));
        let run = run.display();
        return Err(Error::Config(format!("`{run}` has {steps}; pass `--resume` to go on, or another directory")));
    }
    checkpoint::prepare_folder(run)?;
    let (snapshot, warnings) = newest(run, &found, &config, device)?;
    let step = snapshot.as_ref().map_or(0, |snapshot| snapshot.about.step);
    let (metrics, events) = (Metrics::open(run, step)?, Events::create(run, step)?);
    let recorder = Recorder { run: run.to_owned(), config, metrics, events, _lock: lock };
    Ok(Opened { recorder, snapshot, warnings })
}

impl Recorder {
    /// A reading of the loss.
    pub(super) fn progress(&mut self, progress: &Progress, seconds: f64) -> Result<()> {
        let Progress { step, loss, terms, rate, gradient_norm, per_second, unit, .. } = progress;
        let named: serde_json::Map<String, Value> =
            terms.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        self.metrics.add(&json!({
            "step": step,
            "loss": loss,
            "terms": named,
            "rate": rate,
            "gradient_norm": gradient_norm,
            "per_second": per_second,
            "seconds": seconds,
        }))?;
        let speed = format!("train/{unit}_per_second");
        let tags: Vec<String> = terms.iter().map(|(name, _)| format!("train/{name}")).collect();
        let own = [
            ("train/loss", *loss),
            ("train/rate", *rate),
            ("train/gradient_norm", *gradient_norm),
            (speed.as_str(), *per_second),
        ];
        let terms = tags.iter().map(String::as_str).zip(terms.iter().map(|(_, value)| *value));
        self.events.add(*step, own.into_iter().chain(terms))
    }

    /// Whether there are figures of the step that the run goes on from.
    pub(super) fn evaluated(&self) -> bool {
        self.metrics.evaluated()
    }

    /// Figures on held-out data.
    pub(super) fn evaluation(&mut self, step: u64, figures: &BTreeMap<String, f64>) -> Result<()> {
        self.metrics.add(&json!({ "step": step, "evaluation": figures }))?;
        let tags: Vec<String> = figures.keys().map(|name| format!("evaluation/{name}")).collect();
        self.events.add(step, tags.iter().map(String::as_str).zip(figures.values().copied()))
    }

    /// Writes a checkpoint and removes the oldest ones, or returns the name of what is not finite.
    pub(super) fn checkpoint(&self, snapshot: &Snapshot, keep: usize) -> Result<Option<String>> {
        // A checkpoint that is there has all lines up to its step beside it, but for the evaluation, which comes after it.
        self.metrics.sync()?;
        let Snapshot { about, weights, moments, averages } = snapshot;
        let prefixed = |prefix: &'static str, tensors: &BTreeMap<String, Tensor>| {
            let entry = |(name, tensor): (&String, &Tensor)| (format!("{prefix}{name}"), tensor.clone());
            tensors.iter().map(entry).collect::<Vec<_>>()
        };
        let tensors = [prefixed(WEIGHTS, weights), prefixed(MOMENTS, moments), prefixed(AVERAGES, averages)];
        let tensors = tensors.into_iter().flatten().collect();
        let metadata = json!({ "about": about, "config": self.config });
        let bad = checkpoint::save(&checkpoint::path_of(&self.run, about.step), &tensors, &metadata)?;
        if bad.is_none() {
            checkpoint::prune(&self.run, keep)?;
        }
        Ok(bad)
    }

    /// Writes the result.
    pub(super) fn model(&self, step: u64, weights: &BTreeMap<String, Tensor>) -> Result<PathBuf> {
        let path = self.run.join(MODEL);
        let metadata = json!({ "step": step, "config": self.config });
        match checkpoint::save_model(&path, weights, &metadata)? {
            None => Ok(path),
            Some(name) => Err(Error::Diverged { step, reason: format!("`{name}` is not finite") }),
        }
    }
}

fn lock(run: &Path) -> Result<File> {
    let path = run.join(LOCK);
    let failed = |source| Error::File { path: path.clone(), source };
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(Error::Config(format!("another process trains into `{}`; choose another directory", run.display())))
        }
        // Not all file systems have locks; training does without.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// The newest checkpoint that is whole, and what was wrong with newer ones.
fn newest(
    run: &Path,
    found: &[(u64, PathBuf)],
    config: &Value,
    device: &Device,
) -> Result<(Option<Snapshot>, Vec<String>)> {
    let mut warnings = Vec::new();
    for (_, path) in found {
        match checkpoint::load(path, device) {
            Ok(stored) => return Ok((Some(restore(run, path, stored, config)?), warnings)),
            Err(error) => warnings.push(format!("skipped a checkpoint: {error}")),
        }
    }
    if found.is_empty() {
        return Ok((None, warnings));
    }
    let wrong = warnings.join("; ");
    Err(Error::Config(format!("no checkpoint of `{}` is whole: {wrong}; remove them to start anew", run.display())))
}

fn restore(run: &Path, path: &Path, stored: checkpoint::Stored, config: &Value) -> Result<Snapshot> {
    let format = |reason: String| Error::Format { path: path.to_owned(), reason };
    let differences = differences(&stored.metadata["config"], config);
    if !differences.is_empty() {
        let list: Vec<String> = differences.iter().map(Difference::to_string).collect();
        let (run, list) = (run.display(), list.join("; "));
        return Err(Error::Config(format!(
            "`{run}` was made with other settings: {list}; use those, or another directory"
        )));
    }
    let about: About = About::deserialize(&stored.metadata["about"])
        .map_err(|error| format(format!("its state cannot be read: {error}")))?;
    let (mut weights, mut moments, mut averages) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (name, tensor) in stored.tensors {
        let groups = [(WEIGHTS, &mut weights), (MOMENTS, &mut moments), (AVERAGES, &mut averages)];
        let place = groups.into_iter().find_map(|(prefix, group)| Some((name.strip_prefix(prefix)?, group)));
        let (rest, group) = place.ok_or_else(|| format(format!("`{name}` is no part of a checkpoint")))?;
        group.insert(rest.to_owned(), tensor);
    }
    Ok(Snapshot { about, weights, moments, averages })
}

/// A place at which two values differ; shown as "`place` was 1, is 2", with long values cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The names on the way to it, with dots between them.
    pub place: String,
    /// The old value, if there is one.
    pub was: Option<Value>,
    /// The new value, if there is one.
    pub is: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 40;
        let text = |value: &Option<Value>| {
            let text = value.as_ref().map_or("absent".to_owned(), Value::to_string);
            match text.char_indices().nth(MOST) {
                None => text,
                Some((end, _)) => format!("{}…", &text[..end]),
            }
        };
        write!(to, "`{}` was {}, is {}", self.place, text(&self.was), text(&self.is))
    }
}

/// The places at which two values differ, in alphabetical order.
pub fn differences(was: &Value, is: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(String::new(), Some(was), Some(is), &mut found);
    found
}

fn compare(place: String, was: Option<&Value>, is: Option<&Value>, found: &mut Vec<Difference>) {
    let fields = |value: Option<&Value>| match value {
        Some(Value::Object(fields)) => Some(fields.keys().cloned().collect::<BTreeSet<String>>()),
        // What is absent has no fields, so that those of the other side are named one by one.
        None => Some(BTreeSet::new()),
        Some(_) => None,
    };
    match (fields(was), fields(is)) {
        (Some(old), Some(new)) if !(old.is_empty() && new.is_empty()) => {
            for name in old.union(&new) {
                let inside = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                compare(inside, was.and_then(|was| was.get(name)), is.and_then(|is| is.get(name)), found);
            }
        }
        _ if was != is => found.push(Difference { place, was: was.cloned(), is: is.cloned() }),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named_by_their_path() {
        let was = json!({ "train": { "rate": 0.1, "steps": 3 }, "metadata": { "seed": 1 } });
        let is = json!({ "train": { "steps": 3, "rate": 0.2 }, "metadata": { "depth": 8 } });
        let wanted =
            ["`metadata.depth` was absent, is 8", "`metadata.seed` was 1, is absent", "`train.rate` was 0.1, is 0.2"];
        let shown = |was: &Value, is: &Value| -> Vec<String> {
            differences(was, is).iter().map(Difference::to_string).collect()
        };
        assert_eq!(shown(&was, &is), wanted);
        // A value in the place of fields is one difference; fields that are absent are named one by one.
        assert_eq!(
            shown(&json!({ "eye": null }), &json!({ "eye": { "size": 8 } })),
            ["`eye` was null, is {\"size\":8}"]
        );
        assert_eq!(shown(&json!({}), &json!({ "eye": { "size": 8 } })), ["`eye.size` was absent, is 8"]);
        assert_eq!(shown(&json!({ "eye": {} }), &json!({})), ["`eye` was {}, is absent"]);
        assert!(differences(&was, &was.clone()).is_empty());
    }
}
