//! The comparison: settings are chosen on training episodes, then every operator runs on the same seeds.
//!
//! Each choice of an operator learns from the training episodes less the last one of each task, and is scored on those
//! ([`Prepared::for_tuning`]), with seed 0. [`CRITERION`] decides, the first of equals. The chosen setting then learns from all
//! training episodes, once for each seed, and is scored on the held-out episodes, which nothing has looked at before. Every choice
//! and every seed of an operator is a stage of the run directory, so an interrupted comparison continues where it was.

use std::collections::BTreeMap;
use std::time::Instant;

use candle_core::Device;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::resampled::{Counts, interval};
use super::{Budget, Found, Fragments, Operator};
use crate::error::{Error, Result};
use crate::prepared::HeldOut;
use crate::run_dir::RunDir;
use crate::scores::{Agreement, agreement};

/// What decides between the settings of an operator. It is the same for all of them.
pub const CRITERION: &str = "the mean of NMI against `task_index` and NMI against `phase` on the last training episode of each \
     task, which is held out for that; without phases the first of the two";

/// The seed of the runs that settings are chosen by.
const TUNING_SEED: u64 = 0;

/// How operators are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Seeds 0, 1, … of the chosen setting.
    pub seeds: u64,
    /// Resamples of an interval (paper: 10 000).
    pub resamples: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { seeds: 3, resamples: 10_000 }
    }
}

/// A setting that was tried on training episodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tried {
    /// The setting.
    pub choice: Value,
    /// NMI against `task_index`.
    pub task: f64,
    /// NMI against `phase`, where there are phases.
    pub phase: Option<f64>,
    /// Seconds that it took.
    pub seconds: f64,
}

/// What an operator found with one seed, and how that scores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The seed.
    pub seed: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Classes that occur in the probe.
    pub classes: usize,
    /// Against `task_index`.
    pub task: Agreement,
    /// Against `phase`, where there are phases.
    pub phase: Option<Agreement>,
    /// F1 of boundaries between phases, where there are phases and the operator cuts.
    pub boundary_f1: Option<f64>,
}

/// A figure over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The mean over seeds.
    pub mean: f64,
    /// The standard deviation over seeds (n − 1); none for a single seed.
    pub std: Option<f64>,
    /// The 95 % interval by percentile bootstrap over episodes, for NMI and boundary F1.
    pub interval: Option<(f64, f64)>,
}

/// One operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name.
    pub operator: String,
    /// What it stands for.
    pub source: String,
    /// The chosen setting.
    pub choice: Value,
    /// All settings that were tried.
    pub tried: Vec<Tried>,
    /// One for each seed.
    pub cells: Vec<Cell>,
    /// By name, such as `task.nmi`.
    pub figures: BTreeMap<String, Figure>,
}

/// One of ours less a baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The one of ours.
    pub ours: String,
    /// The baseline.
    pub baseline: String,
    /// `task.nmi`, `phase.nmi` and `boundary_f1`, seeds and episodes paired.
    pub figures: BTreeMap<String, Figure>,
}

/// All operators on one dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The dataset's name.
    pub dataset: String,
    /// What made the visual features.
    pub encoder: Option<String>,
    /// How much operators learned from.
    pub budget: Budget,
    /// Training fragments that were used.
    pub training_fragments: usize,
    /// Fragments of the probe.
    pub fragments: usize,
    /// Held-out episodes.
    pub held_out_episodes: usize,
    /// Classes of operators that cluster vectors: the tasks of the probe.
    pub clusters: usize,
    /// What decided between settings.
    pub criterion: String,
    /// The operators, ours first.
    pub entries: Vec<Entry>,
    /// Ours less each baseline.
    pub differences: Vec<Difference>,
    /// Operators that could not be run, and why.
    pub notes: Vec<String>,
}

/// What a stage of a seed holds.
#[derive(Serialize, Deserialize)]
struct Ran {
    seconds: f64,
    found: Found,
}

/// Compares operators. `judged` has the held-out episodes that count, `tuning` those that settings are chosen by
/// ([`Prepared::for_tuning`](crate::Prepared::for_tuning)). `observer` hears what begins.
///
/// # Errors
/// Those of the operators, and [`Error::Interrupted`] where the user stopped; finished stages are kept.
pub fn compare(
    judged: &Fragments<'_>,
    tuning: &Fragments<'_>,
    operators: &[Box<dyn Operator>],
    settings: &Settings,
    run: &RunDir,
    device: &Device,
    observer: &mut dyn FnMut(&str),
) -> Result<Comparison> {
    if settings.seeds == 0 {
        return Err(Error::Settings(vec!["`seeds` is 0, wanted 1 or more".to_owned()]));
    }
    let held_out = &judged.prepared.held_out;
    let (mut entries, mut counts, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for operator in operators {
        let name = operator.name();
        if let Some(what) = operator.missing(judged) {
            notes.push(format!("`{name}` was left out: the dataset has no {what}"));
            continue;
        }
        let tried = tried(tuning, operator.as_ref(), run, device, observer)?;
        let choice = best(&tried).ok_or_else(|| Error::Settings(vec![format!("`{name}` has no settings")]))?;
        let (mut cells, mut own) = (Vec::new(), Vec::new());
        for seed in 0..settings.seeds {
            let inputs = json!({ "budget": judged.budget, "choice": choice, "seed": seed });
            observer(&format!("{name}, seed {seed}"));
            let ran: Ran = run.stage(&format!("{name}/seed-{seed}"), &inputs, || {
                timed(judged, operator.as_ref(), &choice, seed, device)
            })?;
            cells.push(cell(&ran, seed, held_out)?);
            own.push(counted(&ran.found, held_out));
        }
        let figures = figures(&cells, &own, settings.resamples)?;
        let (operator, source) = (name.to_owned(), operator.source().to_owned());
        entries.push(Entry { operator, source, choice, tried, cells, figures });
        counts.push(own);
    }
    observer("paired differences");
    Ok(Comparison {
        dataset: judged.prepared.source.name.clone(),
        encoder: judged.prepared.source.record().encoder,
        budget: judged.budget.clone(),
        training_fragments: judged.training.len(),
        fragments: held_out.probe.len(),
        held_out_episodes: judged.held_out.len(),
        clusters: judged.clusters,
        criterion: CRITERION.to_owned(),
        differences: differences(&entries, &counts, settings.resamples)?,
        entries,
        notes,
    })
}

/// All settings of an operator on training episodes.
fn tried(
    data: &Fragments<'_>,
    operator: &dyn Operator,
    run: &RunDir,
    device: &Device,
    observer: &mut dyn FnMut(&str),
) -> Result<Vec<Tried>> {
    let (name, held_out) = (operator.name(), &data.prepared.held_out);
    let choices = operator.choices(&data.budget).into_iter().enumerate();
    let tried = choices.map(|(at, choice)| {
        let inputs = json!({ "budget": data.budget, "choice": choice, "seed": TUNING_SEED });
        observer(&format!("{name}, choosing: {choice}"));
        run.stage(&format!("{name}/tuning-{at}"), &inputs, || {
            let Ran { seconds, found } = timed(data, operator, &choice, TUNING_SEED, device)?;
            let task = agreement(&held_out.tasks, &found.probe)?.nmi;
            let phase = held_out.phases.as_deref().map(|phases| agreement(phases, &found.probe)).transpose()?;
            Ok(Tried { choice: choice.clone(), task, phase: phase.map(|phase| phase.nmi), seconds })
        })
    });
    tried.collect()
}

/// The choice that [`CRITERION`] prefers, the first of equals.
fn best(tried: &[Tried]) -> Option<Value> {
    let value = |tried: &Tried| tried.phase.map_or(tried.task, |phase| 0.5 * (tried.task + phase));
    let better = |best: &'_ Tried, next: &'_ Tried| value(next) > value(best);
    let chosen = tried.iter().reduce(|best, next| if better(best, next) { next } else { best })?;
    Some(chosen.choice.clone())
}

fn timed(data: &Fragments<'_>, operator: &dyn Operator, choice: &Value, seed: u64, device: &Device) -> Result<Ran> {
    if data.stopped() {
        return Err(Error::Interrupted);
    }
    let started = Instant::now();
    let found = operator.labels(data, choice, seed, device)?;
    let (wanted, given) = (data.prepared.held_out.probe.len(), found.probe.len());
    if given != wanted {
        return Err(Error::Mismatch(format!(
            "`{}` gave {given} classes for {wanted} fragments of the probe; an operator gives one for each",
            operator.name()
        )));
    }
    Ok(Ran { seconds: started.elapsed().as_secs_f64(), found })
}

fn cell(ran: &Ran, seed: u64, held_out: &HeldOut) -> Result<Cell> {
    let found = &ran.found;
    let classes = found.probe.iter().collect::<std::collections::BTreeSet<_>>().len();
    let boundaries = Counts::boundaries(found, held_out);
    let everything: Vec<u32> = (0..boundaries.as_ref().map_or(0, Counts::episodes) as u32).collect();
    Ok(Cell {
        seed,
        seconds: ran.seconds,
        classes,
        task: agreement(&held_out.tasks, &found.probe)?,
        phase: held_out.phases.as_deref().map(|phases| agreement(phases, &found.probe)).transpose()?,
        boundary_f1: boundaries.map(|counts| counts.score(&everything)),
    })
}

/// The scores with intervals, by name.
type Counted = BTreeMap<&'static str, Counts>;

fn counted(found: &Found, held_out: &HeldOut) -> Counted {
    let mut counts = BTreeMap::from([("task.nmi", Counts::information(&held_out.tasks, &found.probe, held_out))]);
    if let Some(phases) = &held_out.phases {
        counts.insert("phase.nmi", Counts::information(phases, &found.probe, held_out));
    }
    counts.extend(Counts::boundaries(found, held_out).map(|counts| ("boundary_f1", counts)));
    counts
}

fn figures(cells: &[Cell], counts: &[Counted], resamples: usize) -> Result<BTreeMap<String, Figure>> {
    let mut values = BTreeMap::<String, Vec<f64>>::new();
    for cell in cells {
        let mut add = |name: String, value: f64| values.entry(name).or_default().push(value);
        for (against, agreement) in [("task", Some(cell.task)), ("phase", cell.phase)] {
            let Some(Agreement { nmi, ami, ari, purity }) = agreement else { continue };
            for (name, value) in [("nmi", nmi), ("ami", ami), ("ari", ari), ("purity", purity)] {
                add(format!("{against}.{name}"), value);
            }
        }
        add("classes".to_owned(), cell.classes as f64);
        cell.boundary_f1.into_iter().for_each(|value| add("boundary_f1".to_owned(), value));
    }
    let figure = |(name, values): (String, Vec<f64>)| {
        let of: Vec<&Counts> = counts.iter().filter_map(|counts| counts.get(name.as_str())).collect();
        let interval = if of.is_empty() { None } else { Some(interval(&of, None, resamples)?) };
        Ok((name, with_spread(&values, interval)))
    };
    values.into_iter().map(figure).collect()
}

fn differences(entries: &[Entry], counts: &[Vec<Counted>], resamples: usize) -> Result<Vec<Difference>> {
    let is_ours = |entry: &Entry| entry.operator.starts_with("ours");
    let mut found = Vec::new();
    for (ours, own) in entries.iter().zip(counts).filter(|(entry, _)| is_ours(entry)) {
        for (baseline, theirs) in entries.iter().zip(counts).filter(|(entry, _)| !is_ours(entry)) {
            let mut figures = BTreeMap::new();
            for name in ["task.nmi", "phase.nmi", "boundary_f1"] {
                let of = |all: &[Counted]| -> Vec<usize> {
                    (0..all.len()).filter(|at| all[*at].contains_key(name)).collect()
                };
                if of(own).len() != own.len() || of(theirs).len() != theirs.len() {
                    continue;
                }
                let (one, other): (Vec<&Counts>, Vec<&Counts>) =
                    own.iter().zip(theirs).map(|(one, other)| (&one[name], &other[name])).unzip();
                let everything: Vec<u32> = (0..one.first().map_or(0, |counts| counts.episodes()) as u32).collect();
                let values: Vec<f64> = one
                    .iter()
                    .zip(&other)
                    .map(|(one, other)| one.score(&everything) - other.score(&everything))
                    .collect();
                let interval = interval(&one, Some(&other), resamples)?;
                figures.insert(name.to_owned(), with_spread(&values, Some(interval)));
            }
            let (ours, baseline) = (ours.operator.clone(), baseline.operator.clone());
            found.push(Difference { ours, baseline, figures });
        }
    }
    Ok(found)
}

fn with_spread(values: &[f64], interval: Option<(f64, f64)>) -> Figure {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n.max(1) as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    Figure { mean, std: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()), interval }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equally_good_settings_is_chosen() {
        let tried = |name: &str, task, phase| Tried { choice: json!(name), task, phase, seconds: 0.0 };
        let all = [tried("a", 0.2, Some(0.6)), tried("b", 0.6, Some(0.3)), tried("c", 0.3, Some(0.6))];
        assert_eq!(best(&all).unwrap(), json!("b"));
        assert_eq!(best(&[tried("a", 0.5, None), tried("b", 0.5, None)]).unwrap(), json!("a"));
        assert!(best(&[]).is_none());
    }
}
