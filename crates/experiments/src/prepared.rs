//! A dataset with all that is decided before anything is learned: the split, the probe, the labels.
//!
//! Episodes are held out by task, the last ones of each task in each dataset. A task with a single episode is trained on and
//! not evaluated by, which the notes say with its instruction. The probe is drawn from their fragments at stride 1 by a fixed
//! seed, so every run on a dataset is judged by the same fragments. A fragment's task is that of its episode; its phase is
//! the commonest phase among its frames, the lowest of equally common ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::Device;
use dataset::features::FeatureCache;
use dataset::{
    Dataset, EpisodeId, FragmentId, FragmentIndex, PROBE_SIZE, RobotLayout, SamplingError, Split, TaskId, probe,
};
use models::{FragmentTable, Precision, Scales};

use crate::error::{Error, Result};
use crate::pictures::Pictures;
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
    /// What a user should know about the datasets and the split, in sentences.
    pub notes: Vec<String>,
    /// What is known of the robot's columns, with the evidence for it.
    robot: RobotLayout,
    /// The dataset on devices.
    tables: Tables,
    /// Its images, once they were needed.
    pictures: Mutex<Option<Arc<Pictures>>>,
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
    /// Frames by which a boundary may be off.
    pub tolerance: usize,
    /// k: how many tasks are in the probe.
    pub clusters: usize,
}

impl Prepared {
    /// Splits and labels; `hold_out` episodes of each task, or as many as suits the dataset. Every task keeps one to train on.
    pub fn new(source: Source, hold_out: Option<usize>, length: usize) -> Result<Prepared> {
        let (split, notes) = split(&source, hold_out)?;
        Prepared::with_split(source, split, length, notes)
    }

    /// For choosing settings without looking at the episodes that judge the result: the episodes that [`Prepared::new`] holds
    /// out are set aside, and the last remaining episode of each task is held out instead.
    pub fn for_tuning(source: Source, hold_out: Option<usize>, length: usize) -> Result<Prepared> {
        let (spans, (outer, notes)) = (source.dataset.spans(), split(&source, hold_out)?);
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
        Prepared::with_split(source, Split { train, held_out }, length, notes)
    }

    fn with_split(source: Source, split: Split, length: usize, notes: Vec<String>) -> Result<Prepared> {
        let notes = source.notes.iter().cloned().chain(notes).collect();
        let spans = source.dataset.spans();
        let training = FragmentIndex::new(spans, &split.train, length, 1)?;
        let index = FragmentIndex::new(spans, &split.held_out, length, 1)?;
        for (fragments, episodes) in [(&training, &split.train), (&index, &split.held_out)] {
            if fragments.is_empty() {
                return Err(SamplingError::NoFragments { too_short: episodes.len(), length }.into());
            }
        }
        let mut scales = Scales::over(&source.dataset, &source.caches, &split.train)?;
        if source.has_pixels() {
            scales.features = scales.features.with_shared_scales(source.caches.iter().map(FeatureCache::width));
        }
        let drawn = probe(&index, PROBE_SIZE, PROBE_SEED);
        let columns = source.dataset.columns();
        let tasks: Vec<i64> = drawn.iter().map(|at| i64::from(index.get(*at).task.0)).collect();
        let frames = columns.labels.get(PHASE);
        let phases = phases_of(&source.dataset, &index, &drawn);
        let episodes = frames.map(|phases| {
            index.episodes().iter().map(|episode| phases[spans[episode.at()].frames.clone()].to_vec()).collect()
        });
        let clusters = tasks.iter().collect::<BTreeSet<_>>().len();
        let held_out = HeldOut {
            tolerance: crate::scores::tolerance(source.dataset.info().fps),
            probe: drawn,
            tasks,
            phases,
            episodes,
            clusters,
            index,
        };
        let robot = RobotLayout::of(&source.dataset);
        Ok(Prepared {
            split,
            training,
            held_out,
            scales,
            notes,
            robot,
            source,
            tables: Tables::default(),
            pictures: Mutex::default(),
        })
    }

    /// The images of the dataset on a device, resampled to a size; `None` without cameras. They are decoded once.
    pub fn pictures(&self, side: usize, device: &Device) -> Result<Option<Arc<Pictures>>> {
        if self.source.dataset.roles().cameras.is_empty() {
            return Ok(None);
        }
        let mut known = self.pictures.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|pictures| pictures.side() != side) {
            *known = Some(Arc::new(Pictures::load(&self.source.dataset, side, device)?));
        }
        Ok(known.clone())
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
    pub fn robot(&self) -> &RobotLayout {
        &self.robot
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

/// Holds out the last episodes of each task in each dataset, and says where it could not. An episode that several datasets
/// have is held out in all of them if one holds it out, so that nothing is judged by what it learned from.
///
/// # Errors
/// If nothing can be held out, in no dataset.
fn split(source: &Source, hold_out: Option<usize>) -> Result<(Split, Vec<String>)> {
    let spans = source.dataset.spans();
    let several = source.parts.len() > 1;
    let (mut whole, mut notes) = (Split::default(), Vec::new());
    for part in &source.parts {
        let own = &spans[part.episodes.clone()];
        let count = hold_out.unwrap_or_else(|| {
            let mut counts = BTreeMap::new();
            own.iter().for_each(|span| *counts.entry(span.task).or_insert(0) += 1);
            // Tasks with a single episode hold out none, and so do not decide how many the others hold out.
            let mut repeated = counts.values().filter(|count| **count > 1);
            if repeated.all(|count| *count >= ENOUGH) { 2 } else { 1 }
        });
        let found = match Split::last_per_task(own, count) {
            // Another dataset may have episodes to evaluate by.
            Err(SamplingError::SingleEpisodes { .. }) if several => {
                Split { train: (0..own.len() as u32).map(EpisodeId).collect(), held_out: Vec::new() }
            }
            found => found?,
        };
        let place = if several { format!("`{}`: ", part.name) } else { String::new() };
        let notes_of = shortages(&Split::tasks_with_fewer(own, count), source.dataset.tasks(), count);
        notes.extend(notes_of.into_iter().map(|note| format!("{place}{note}")));
        let moved = |episode: &EpisodeId| EpisodeId((part.episodes.start + episode.at()) as u32);
        whole.train.extend(found.train.iter().map(moved));
        whole.held_out.extend(found.held_out.iter().map(moved));
    }
    if whole.held_out.is_empty() {
        let tasks: BTreeSet<_> = spans.iter().map(|span| span.task).collect();
        return Err(SamplingError::SingleEpisodes { tasks: tasks.len() }.into());
    }
    Ok((with_copies_held_out(source, whole), notes))
}

/// What is said about tasks of which fewer episodes are held out than wanted, given with the number of their episodes.
fn shortages(tasks: &[(TaskId, usize)], instructions: &[String], wanted: usize) -> Vec<String> {
    let named = |with: &dyn Fn(usize) -> bool| -> Vec<String> {
        let those = tasks.iter().filter(|(_, episodes)| with(*episodes));
        those.map(|(task, _)| instructions.get(task.at()).cloned().unwrap_or_else(|| format!("task {task}"))).collect()
    };
    let (single, few) = (named(&|episodes| episodes == 1), named(&|episodes| episodes > 1));
    let mut notes = Vec::new();
    if !single.is_empty() {
        let tasks = if single.len() == 1 { "1 task has".to_owned() } else { format!("{} tasks have", single.len()) };
        notes.push(format!(
            "{tasks} a single episode, which is used for training and not for evaluation: {}",
            first_few(&single)
        ));
    }
    if !few.is_empty() {
        let tasks = if few.len() == 1 { "1 task has".to_owned() } else { format!("{} tasks have", few.len()) };
        notes.push(format!(
            "{tasks} too few episodes to hold out {wanted}; all but one are held out: {}",
            first_few(&few)
        ));
    }
    notes
}

/// The first of several texts, as a message names them.
pub(crate) fn first_few(texts: &[String]) -> String {
    const MOST: usize = 3;
    let mut shown = texts.iter().take(MOST).map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ");
    if texts.len() > MOST {
        shown.push_str(&format!(" and {} more", texts.len() - MOST));
    }
    shown
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
