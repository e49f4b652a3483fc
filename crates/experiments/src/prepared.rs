//! A dataset with all that is decided before anything is learned: the split, the probe, the labels.
//!
//! Episodes are held out by task, the last ones of each task in each dataset; the probe is drawn from their fragments at stride 1 by a fixed
//! seed, so every run on a dataset is judged by the same fragments. A fragment's task is that of its episode; its phase is
//! the commonest phase among its frames, the lowest of equally common ones.

use std::collections::{BTreeMap, BTreeSet};

use candle_core::Device;
use dataset::{Dataset, EpisodeId, FragmentId, FragmentIndex, PROBE_SIZE, RobotLayout, Split, probe};
use models::{FragmentTable, Precision, Scales};

use crate::error::{Error, Result};
use crate::source::Source;
use crate::tables::Tables;

/// The column with the true skills.
const PHASE: &str = "phase";

/// The seed of all probes.
const PROBE_SEED: u64 = 0;

/// With at least so many episodes of each task, two are held out, otherwise one.
const ENOUGH: usize = 5;

/// A dataset, split and labelled.
pub struct Prepared {
    /// The dataset and its features.
    pub source: Source,
    /// Which episodes are for what.
    pub split: Split,
    /// The fragments to learn from, at stride 1.
    pub training: FragmentIndex,
    /// What results are judged by.
    pub held_out: HeldOut,
    /// How numbers are standardised: by the training episodes.
    pub scales: Scales,
    /// The dataset on devices.
    tables: Tables,
}

/// Fragments that are not learned from, with labels.
pub struct HeldOut {
    /// All of them, at stride 1.
    pub index: FragmentIndex,
    /// The probe, in ascending order.
    pub probe: Vec<FragmentId>,
    /// `task_index` of the probe.
    pub tasks: Vec<i64>,
    /// Phases of the probe, where the dataset has them.
    pub phases: Option<Vec<i64>>,
    /// The phase of each frame of each held-out episode that has fragments, where the dataset has phases.
    pub episodes: Option<Vec<Vec<i64>>>,
    /// k: how many tasks are in the probe.
    pub clusters: usize,
}

impl Prepared {
    /// Splits and labels; `hold_out` episodes of each task, or as many as suits the dataset.
    pub fn new(source: Source, hold_out: Option<usize>, length: usize) -> Result<Prepared> {
        let split = split(&source, hold_out)?;
        Prepared::with_split(source, split, length)
    }

    /// For choosing settings without looking at the episodes that judge the result: the episodes that [`Prepared::new`] holds
    /// out are set aside, and the last remaining episode of each task is held out instead.
    pub fn for_tuning(source: Source, hold_out: Option<usize>, length: usize) -> Result<Prepared> {
        let (spans, outer) = (source.dataset.spans(), split(&source, hold_out)?);
        let key = |episode: &EpisodeId| (source.origin(*episode).dataset, spans[episode.at()].task);
        let mut of_task: BTreeMap<_, Vec<EpisodeId>> = BTreeMap::new();
        outer.train.iter().for_each(|episode| of_task.entry(key(episode)).or_default().push(*episode));
        // A task with one training episode keeps it.
        let last: BTreeSet<EpisodeId> =
            of_task.values().filter(|episodes| episodes.len() > 1).filter_map(|all| all.last().copied()).collect();
        let (held_out, train): (Vec<EpisodeId>, Vec<EpisodeId>) =
            outer.train.iter().partition(|episode| last.contains(episode));
        let Split { train, held_out } = with_copies_held_out(&source, Split { train, held_out });
        if train.is_empty() || held_out.is_empty() {
            return Err(Error::Mismatch(
                "tuning needs two training episodes of some task, and every task has one; use more episodes or hold out fewer"
                    .to_owned(),
            ));
        }
        Prepared::with_split(source, Split { train, held_out }, length)
    }

    fn with_split(source: Source, split: Split, length: usize) -> Result<Prepared> {
        let spans = source.dataset.spans();
        let training = FragmentIndex::new(spans, &split.train, length, 1)?;
        let index = FragmentIndex::new(spans, &split.held_out, length, 1)?;
        let scales = Scales::over(&source.dataset, &source.caches, &split.train)?;
        let drawn = probe(&index, PROBE_SIZE, PROBE_SEED);
        let columns = source.dataset.columns();
        let tasks: Vec<i64> = drawn.iter().map(|at| i64::from(index.get(*at).task.0)).collect();
        let frames = columns.labels.get(PHASE);
        let phases = phases_of(&source.dataset, &index, &drawn);
        let episodes = frames.map(|phases| {
            index.episodes().iter().map(|episode| phases[spans[episode.at()].frames.clone()].to_vec()).collect()
        });
        let clusters = tasks.iter().collect::<BTreeSet<_>>().len();
        let held_out = HeldOut { probe: drawn, tasks, phases, episodes, clusters, index };
        Ok(Prepared { split, training, held_out, scales, source, tables: Tables::default() })
    }

    /// The dataset on a device. It is laid out once for each device, precision and scales, however often it is asked for.
    pub fn table(&self, scales: Scales, device: &Device, precision: Precision, discount: f64) -> Result<FragmentTable> {
        self.tables.get(&self.source, scales, device, precision, discount)
    }

    /// How often the dataset was standardised and uploaded.
    pub fn tables_laid_out(&self) -> usize {
        self.tables.count()
    }

    /// The phases of some fragments of an index, where the dataset has phases.
    pub fn phases_of(&self, index: &FragmentIndex, fragments: &[FragmentId]) -> Option<Vec<i64>> {
        phases_of(&self.source.dataset, index, fragments)
    }

    /// Hashes of episodes by what is in them, states and actions: the same in any dataset that has the episode.
    pub fn contents(&self, episodes: &[EpisodeId]) -> Vec<String> {
        episodes.iter().map(|episode| self.source.dataset.contents(*episode)).collect()
    }

    /// What is known of the robot's columns, with the evidence for it.
    pub fn robot(&self) -> RobotLayout {
        RobotLayout::of(&self.source.dataset)
    }

    /// Whether it has rewards, so that returns can be learned.
    pub fn has_rewards(&self) -> bool {
        let columns = self.source.dataset.columns();
        columns.rewards.is_some() || columns.success.is_some()
    }
}

impl HeldOut {
    /// The first frames of the probe.
    pub fn probe_starts(&self) -> Vec<usize> {
        starts(&self.index, &self.probe)
    }

    /// The first frames of all fragments.
    pub fn all_starts(&self) -> Vec<usize> {
        self.index.iter().map(|(_, fragment)| fragment.frames.start).collect()
    }
}

/// Holds out the last episodes of each task in each dataset. An episode that several datasets have is held out in all of
/// them if one holds it out, so that nothing is judged by what it learned from.
fn split(source: &Source, hold_out: Option<usize>) -> Result<Split> {
    let spans = source.dataset.spans();
    let several = source.parts.len() > 1;
    let mut whole = Split::default();
    for part in &source.parts {
        let own = &spans[part.episodes.clone()];
        let count = hold_out.unwrap_or_else(|| {
            let mut counts = BTreeMap::new();
            own.iter().for_each(|span| *counts.entry(span.task).or_insert(0) += 1);
            if counts.values().all(|count| *count >= ENOUGH) { 2 } else { 1 }
        });
        let found = Split::last_per_task(own, count).map_err(|error| match several {
            true => Error::Mismatch(format!("`{}`: {error}", part.name)),
            false => Error::from(error),
        })?;
        let moved = |episode: &EpisodeId| EpisodeId((part.episodes.start + episode.at()) as u32);
        whole.train.extend(found.train.iter().map(moved));
        whole.held_out.extend(found.held_out.iter().map(moved));
    }
    Ok(with_copies_held_out(source, whole))
}

/// The same split, but an episode that several datasets have is held out in all of them if one holds it out.
fn with_copies_held_out(source: &Source, mut split: Split) -> Split {
    if source.parts.len() > 1 {
        let contents = |episode: &EpisodeId| source.dataset.contents(*episode);
        let held_out: BTreeSet<String> = split.held_out.iter().map(contents).collect();
        let (copies, train) = split.train.iter().partition(|episode| held_out.contains(&contents(episode)));
        split.train = train;
        split.held_out.extend::<Vec<EpisodeId>>(copies);
        split.held_out.sort_unstable();
    }
    split
}

/// The first frames of some fragments.
pub(crate) fn starts(index: &FragmentIndex, fragments: &[FragmentId]) -> Vec<usize> {
    fragments.iter().map(|at| index.get(*at).frames.start).collect()
}

fn phases_of(dataset: &Dataset, index: &FragmentIndex, fragments: &[FragmentId]) -> Option<Vec<i64>> {
    let phases = dataset.columns().labels.get(PHASE)?;
    Some(fragments.iter().map(|at| commonest(&phases[index.get(*at).frames])).collect())
}

/// The commonest, and of equally common ones the lowest.
pub(crate) fn commonest(values: &[i64]) -> i64 {
    let mut counts = BTreeMap::new();
    values.iter().for_each(|value| *counts.entry(*value).or_insert(0_usize) += 1);
    counts.into_iter().max_by_key(|(value, count)| (*count, -value)).map_or(-1, |(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_to_the_lowest_phase() {
        assert_eq!(commonest(&[3, 1, 1, 3, 2]), 1);
        assert_eq!(commonest(&[3, 3, 1]), 3);
        assert_eq!(commonest(&[]), -1);
    }
}
