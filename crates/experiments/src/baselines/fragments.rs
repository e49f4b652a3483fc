//! What all operators are given: fragments, episodes with the signals of their robot, and words.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use candle_core::Device;
use clustering::{KMeansConfig, Points, kmeans, nearest_centres};
use dataset::EpisodeId;
use language::instruction::read;
use models::{FragmentTable, Precision};
use subtasks::robot::action_layout;

use super::{Budget, Found};
use crate::cycle::settings::CycleSettings;
use crate::embeddings::Embeddings;
use crate::error::Result;
use crate::prepared::{Prepared, commonest};
use crate::scores::frame_labels;
use crate::settings::{AmortizerSettings, WorldModelSettings};

/// How models are trained that operators need.
#[derive(Clone, Debug)]
pub struct Trainings<'a> {
    /// Phase A of ours.
    pub world_model: WorldModelSettings,
    /// Phase C of ours; the budget says how long and on how many fragments.
    pub amortizer: AmortizerSettings,
    /// How ours cuts episodes, and its D_φ.
    pub cycle: CycleSettings,
    /// The preset's name, for the record.
    pub preset: String,
    /// Where models are kept that several choices or operators share.
    pub folder: PathBuf,
    /// Set by someone else to stop within a training.
    pub stop: Option<&'a AtomicBool>,
}

/// A dataset as operators see it.
pub struct Fragments<'a> {
    /// The dataset, its split, its probe.
    pub prepared: &'a Prepared,
    /// How much may be learned from, and for how long.
    pub budget: Budget,
    /// Standardised states, actions and features on the device.
    pub table: FragmentTable,
    /// Frames of a fragment.
    pub length: usize,
    /// First frames of the training fragments that the budget allows, in ascending order.
    pub training: Vec<usize>,
    /// The training episodes that have fragments.
    pub learned: Vec<Demonstrated>,
    /// The held-out episodes that have fragments, in the order of their index.
    pub held_out: Vec<Demonstrated>,
    /// How many classes vectors are clustered into: the tasks of the probe.
    pub clusters: usize,
    /// How models are trained.
    pub trainings: Trainings<'a>,
}

/// One episode, with what its robot did and what it was told.
#[derive(Clone, Debug, PartialEq)]
pub struct Demonstrated {
    /// Which one.
    pub episode: EpisodeId,
    /// Its frames in the dataset.
    pub frames: Range<usize>,
    /// The verb phrases of its instruction, in order, one for each thing that is acted on.
    pub verbs: Vec<String>,
    /// Which grippers are told to close in each frame, one bit each.
    pub closed: Vec<u8>,
    /// How far the first gripper is open in each frame, from 0 to 1 of what the training episodes have; empty if the states
    /// do not say.
    pub opening: Vec<f64>,
    /// Where the first end effector is in each frame, in metres; empty if the states do not say.
    pub place: Vec<[f64; 3]>,
}

impl<'a> Fragments<'a> {
    /// Reads what operators need from a dataset.
    pub fn new(
        prepared: &'a Prepared,
        budget: Budget,
        trainings: Trainings<'a>,
        device: &Device,
    ) -> Result<Fragments<'a>> {
        let table = prepared.table(prepared.scales.clone(), device, Precision::F32, 1.0)?;
        let all: Vec<usize> = prepared.training.iter().map(|(_, fragment)| fragment.frames.start).collect();
        let step = all.len().div_ceil(budget.fragments.max(1)).max(1);
        let episodes = |ids: &[EpisodeId]| ids.iter().map(|id| demonstrated(prepared, *id)).collect::<Result<Vec<_>>>();
        let (mut learned, mut held_out) =
            (episodes(prepared.training.episodes())?, episodes(prepared.held_out.index.episodes())?);
        scale_openings(&mut learned, &mut held_out);
        Ok(Fragments {
            budget,
            table,
            length: prepared.training.length(),
            training: all.into_iter().step_by(step).collect(),
            learned,
            held_out,
            clusters: prepared.held_out.clusters,
            trainings,
            prepared,
        })
    }

    /// KMeans as all experiments use it, into `clusters` classes.
    pub fn kmeans(&self, seed: u64) -> KMeansConfig {
        KMeansConfig { clusters: self.clusters, seed, ..KMeansConfig::default() }
    }

    /// The first frames of all held-out fragments.
    pub fn all_starts(&self) -> Vec<usize> {
        self.prepared.held_out.all_starts()
    }

    /// From one vector for each held-out fragment: KMeans on those of the probe. Every other fragment belongs to the nearest
    /// centre, and an episode is cut where the class of its frames changes.
    pub fn found_by_clustering(&self, vectors: &Embeddings, seed: u64) -> Result<Found> {
        let probe = vectors.rows(self.prepared.held_out.probe.iter().map(|at| at.0));
        let found = kmeans(Points::new(&probe, vectors.width)?, &self.kmeans(seed))?;
        let centres = Points::new(&found.centres, vectors.width)?;
        let all = nearest_centres(Points::new(&vectors.values, vectors.width)?, centres)?;
        Ok(Found { probe: found.labels, cuts: self.found_of_windows(&all).cuts })
    }

    /// From one class for each held-out fragment.
    pub fn found_of_windows(&self, classes: &[i64]) -> Found {
        let held_out = &self.prepared.held_out;
        let cuts = frame_labels(classes, held_out).iter().map(|frames| changes(frames)).collect();
        Found { probe: held_out.probe.iter().map(|at| classes[at.0]).collect(), cuts: Some(cuts) }
    }

    /// From stretches of each held-out episode, in frames of the dataset, with their classes: a fragment has the class of most
    /// of its frames, as it has the phase of most of them.
    pub fn found_of_stretches(&self, stretches: &[Vec<(Range<usize>, i64)>]) -> Found {
        let mut classes = vec![-1; self.prepared.source.dataset.frames()];
        for (frames, class) in stretches.iter().flatten() {
            classes[frames.clone()].fill(*class);
        }
        let index = &self.prepared.held_out.index;
        let probe = self.prepared.held_out.probe.iter().map(|at| commonest(&classes[index.get(*at).frames]));
        let cuts = self.held_out.iter().zip(stretches).map(|(episode, stretches)| {
            stretches.iter().skip(1).map(|(frames, _)| frames.start - episode.frames.start).collect()
        });
        Found { probe: probe.collect(), cuts: Some(cuts.collect()) }
    }

    /// Whether the interruption was asked for.
    pub fn stopped(&self) -> bool {
        self.trainings.stop.is_some_and(|stop| stop.load(std::sync::atomic::Ordering::Relaxed))
    }
}

/// Where labels change, without the first frame.
fn changes(labels: &[i64]) -> Vec<usize> {
    labels.windows(2).enumerate().filter(|(_, pair)| pair[0] != pair[1]).map(|(at, _)| at + 1).collect()
}

/// The stretches between places at which an episode is cut, given by rows of it, in frames of the dataset.
pub(super) fn stretches_between(cuts: &[usize], frames: &Range<usize>) -> Vec<Range<usize>> {
    let inner = cuts.iter().map(|cut| frames.start + cut).filter(|cut| *cut > frames.start && *cut < frames.end);
    let mut bounds: Vec<usize> = [frames.start].into_iter().chain(inner).chain([frames.end]).collect();
    bounds.dedup();
    bounds.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

fn demonstrated(prepared: &Prepared, episode: EpisodeId) -> Result<Demonstrated> {
    let dataset = &prepared.source.dataset;
    let span = &dataset.spans()[episode.at()];
    let (frames, robot) = (span.frames.clone(), prepared.robot());
    let layout = action_layout(dataset, robot)?;
    let columns = dataset.columns();
    let bits = |frame: usize| {
        let closed = layout.closed(columns.actions.rows(frame..frame + 1));
        closed.into_iter().take(8).enumerate().fold(0, |bits, (at, closed)| bits | u8::from(closed) << at)
    };
    let gripper = robot.grippers().next();
    let opening: Option<Vec<f64>> =
        gripper.and_then(|gripper| frames.clone().map(|frame| gripper.opening(&columns.states, frame)).collect());
    let place = robot.arms().next().and_then(|arm| <[usize; 3]>::try_from(arm.states.get(..3)?).ok()).map(|arm| {
        let at = |frame: usize| arm.map(|column| f64::from(columns.states.rows(frame..frame + 1)[column]));
        frames.clone().map(at).collect()
    });
    Ok(Demonstrated {
        episode,
        verbs: verbs(dataset.tasks().get(span.task.at()).map_or("", String::as_str)),
        closed: frames.clone().map(bits).collect(),
        opening: opening.unwrap_or_default(),
        place: place.unwrap_or_default(),
        frames,
    })
}

/// The verb phrases of an instruction, without what is acted on, which would name the task; one for each thing acted on.
fn verbs(instruction: &str) -> Vec<String> {
    let Ok(found) = read(instruction) else { return Vec::new() };
    let clauses = found.instruction.clauses.iter();
    clauses
        .flat_map(|clause| {
            // `both moka pots` and `twice` are the same verb again.
            let times = clause.objects.len().max(1) * clause.times.max(1) as usize;
            std::iter::repeat_n(clause.name.clone(), times)
        })
        .collect()
}

/// Openings as shares of the range that the training episodes have.
fn scale_openings(learned: &mut [Demonstrated], held_out: &mut [Demonstrated]) {
    let all = learned.iter().flat_map(|episode| &episode.opening);
    let (least, most) = all.fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(*value), most.max(*value)));
    let range = most - least;
    for opening in learned.iter_mut().chain(held_out).flat_map(|episode| &mut episode.opening) {
        *opening = if range > 0.0 { (*opening - least) / range } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verb_phrases_do_not_name_what_is_acted_on() {
        let of = |text: &str| verbs(text).join(", ");
        assert_eq!(of("put the bowl on the stove"), of("put the wine bottle on the rack"));
        assert_ne!(of("open the middle drawer of the cabinet"), of("push the plate to the front of the stove"));
        assert_eq!(verbs("turn on the stove and put the moka pot on it").len(), 2);
        assert_eq!(verbs("put both the alphabet soup and the tomato sauce in the basket").len(), 2);
        assert!(verbs("xyzzy").is_empty());
    }

    #[test]
    fn stretches_cover_an_episode() {
        assert_eq!(stretches_between(&[3, 3, 5], &(10..20)), [10..13, 13..15, 15..20]);
        assert_eq!(stretches_between(&[0, 10, 40], &(10..20)), [10..20]);
        assert_eq!(changes(&[1, 1, 2, 2, 1]), [2, 4]);
    }
}
