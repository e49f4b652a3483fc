//! Episodes cut into segments: the demonstrations that the loop's programs are about.

use std::ops::Range;

use clustering::Points;
use dataset::{Dataset, EpisodeId};
use serde::{Deserialize, Serialize};
use skills::{ActionLayout, Episode, Position, SegmentConfig, segment};

use crate::error::Result;
use crate::prepared::Prepared;
use subtasks::robot::{action_layout, episode};

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
    /// The motions of each.
    pub episodes: Vec<Episode>,
    /// Which column of an action is what.
    pub layout: ActionLayout,
}

impl Demonstrations {
    /// Cuts the episodes of a dataset.
    pub fn new(prepared: &Prepared, config: &SegmentConfig) -> Result<Demonstrations> {
        let dataset = &prepared.source.dataset;
        let layout = action_layout(dataset, prepared.robot())?;
        let split = &prepared.split;
        let (mut all, mut episodes) = (Vec::new(), Vec::new());
        for (at, span) in dataset.spans().iter().enumerate() {
            let id = EpisodeId(at as u32);
            let held_out = split.held_out.binary_search(&id).is_ok();
            if !held_out && split.train.binary_search(&id).is_err() {
                continue;
            }
            let frames = span.frames.clone();
            let motions = episode(dataset, &frames, &layout)?;
            let found = segment(&motions, &layout, config)?;
            all.push(Demonstration {
                episode: id,
                instruction: dataset.tasks().get(span.task.0 as usize).cloned().unwrap_or_default(),
                held_out,
                segments: found.into_iter().map(|one| frames.start + one.start..frames.start + one.end).collect(),
                frames,
            });
            episodes.push(motions);
        }
        Ok(Demonstrations { all, episodes, layout })
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

    /// Where every group is at a frame; `None` outside the demonstrations.
    pub fn position(&self, frame: usize) -> Option<Position> {
        let at = self.all.iter().position(|one| one.frames.contains(&frame))?;
        Some(self.episodes[at].position(frame - self.all[at].frames.start))
    }

    /// The frames of a segment.
    pub fn frames(&self, id: SegmentId) -> Range<usize> {
        self.all[id.demonstration].segments[id.segment].clone()
    }

    /// The segments of a demonstration as rows of its episode.
    pub fn rows_of(&self, demonstration: usize) -> Vec<Range<usize>> {
        let one = &self.all[demonstration];
        one.segments.iter().map(|part| part.start - one.frames.start..part.end - one.frames.start).collect()
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
