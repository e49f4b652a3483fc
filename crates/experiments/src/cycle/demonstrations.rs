//! Episodes cut into segments: the demonstrations that the loop's programs are about.

use std::ops::Range;

use clustering::Points;
use dataset::{Dataset, EpisodeId};
use serde::{Deserialize, Serialize};
use skills::{ActionLayout, SegmentConfig, segment};

use crate::error::{Error, Result};
use crate::prepared::Prepared;

/// The axes of a twist, which is what a skill takes.
const MAX_AXES: usize = 6;

/// One episode, cut at its change points.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demonstration {
    /// Which episode.
    pub episode: EpisodeId,
    /// Its frames in the dataset.
    pub frames: Range<usize>,
    /// The instruction of its task.
    pub instruction: String,
    /// Whether it is held out.
    pub held_out: bool,
    /// Its segments: frames of the dataset, in order, that cover the episode.
    pub segments: Vec<Range<usize>>,
}

/// A segment, by its demonstration and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentId {
    /// The demonstration, by its place among all.
    pub demonstration: usize,
    /// The segment, by its place in the demonstration.
    pub segment: usize,
}

/// All episodes of a dataset, cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Demonstrations {
    /// One for each episode of the split, in their order.
    pub all: Vec<Demonstration>,
    /// Which column of an action is what.
    pub layout: ActionLayout,
}

impl Demonstrations {
    /// Cuts the episodes of a dataset.
    pub fn new(prepared: &Prepared, config: &SegmentConfig) -> Result<Demonstrations> {
        let dataset = &prepared.source.dataset;
        let layout = action_layout(prepared)?;
        let cut = |(at, span): (usize, &dataset::EpisodeSpan)| -> Result<Demonstration> {
            let frames = span.frames.clone();
            let episode = EpisodeId(at as u32);
            Ok(Demonstration {
                episode,
                instruction: dataset.tasks().get(span.task.0 as usize).cloned().unwrap_or_default(),
                held_out: prepared.split.held_out.contains(&episode),
                segments: segments_of(dataset, &frames, &layout, config)?,
                frames,
            })
        };
        let split = &prepared.split;
        let is_used = |at: usize| {
            let episode = EpisodeId(at as u32);
            split.train.binary_search(&episode).is_ok() || split.held_out.binary_search(&episode).is_ok()
        };
        let spans = dataset.spans().iter().enumerate().filter(|(at, _)| is_used(*at));
        let all: Result<Vec<Demonstration>> = spans.map(cut).collect();
        Ok(Demonstrations { all: all?, layout })
    }

    /// The training demonstrations, or the held-out ones.
    pub fn which(&self, held_out: bool) -> Vec<usize> {
        (0..self.all.len()).filter(|at| self.all[*at].held_out == held_out).collect()
    }

    /// All segments of some demonstrations, in order.
    pub fn segments_of(&self, demonstrations: &[usize]) -> Vec<SegmentId> {
        let of = |demonstration: usize| {
            (0..self.all[demonstration].segments.len()).map(move |segment| SegmentId { demonstration, segment })
        };
        demonstrations.iter().flat_map(|at| of(*at)).collect()
    }

    /// The frames of a segment.
    pub fn frames(&self, id: SegmentId) -> Range<usize> {
        self.all[id.demonstration].segments[id.segment].clone()
    }

    /// The segment of a demonstration that a frame lies in.
    pub fn segment_at(&self, demonstration: usize, frame: usize) -> usize {
        let segments = &self.all[demonstration].segments;
        segments.partition_point(|one| one.end <= frame).min(segments.len().saturating_sub(1))
    }
}

/// Rows of actions.
pub(crate) fn rows<'a>(dataset: &'a Dataset, frames: &Range<usize>) -> Result<Points<'a>> {
    let actions = &dataset.columns().actions;
    Ok(Points::new(&actions.values[frames.start * actions.width..frames.end * actions.width], actions.width)?)
}

/// Cuts an episode, given by its frames, into segments of frames of the dataset.
pub fn segments_of(
    dataset: &Dataset,
    frames: &Range<usize>,
    layout: &ActionLayout,
    config: &SegmentConfig,
) -> Result<Vec<Range<usize>>> {
    let states = &dataset.columns().states;
    let states = Points::new(states.rows(frames.clone()), states.width)?;
    let found = segment(rows(dataset, frames)?, Some(states), layout, config)?;
    Ok(found.into_iter().map(|one| frames.start + one.start..frames.start + one.end).collect())
}

/// Which column of an action is what, as far as it is known: without a known gripper all columns are axes. Commands that
/// stay within ±1 are taken to be limited to that.
///
/// # Errors
/// If there are more axes than a skill has arguments for.
pub fn action_layout(prepared: &Prepared) -> Result<ActionLayout> {
    let actions = &prepared.source.dataset.columns().actions;
    let limited = actions.values.iter().all(|value| value.abs() <= 1.0 + 1e-6);
    let robot = prepared.robot();
    let gripper = robot.grippers().next();
    let layout = ActionLayout {
        width: actions.width,
        gripper: gripper.and_then(|group| group.actions.first().copied()),
        closed_above: gripper.and_then(|group| group.gripper.as_ref()).map_or(0.0, |gripper| gripper.threshold),
        limit: if limited { Some(1.0) } else { None },
    };
    let axes = layout.axes().len();
    if axes <= MAX_AXES {
        return Ok(layout);
    }
    let why = match gripper {
        Some(gripper) => gripper.evidence.join("; "),
        None => {
            "none of them is known to be the gripper's: neither is one called `gripper` in `meta/info.json`, nor does \
                 one alone take only two values"
                .to_owned()
        }
    };
    Err(Error::Mismatch(format!(
        "actions of {} columns have {axes} axes, and skills have at most {MAX_AXES}; {why}",
        actions.width
    )))
}
