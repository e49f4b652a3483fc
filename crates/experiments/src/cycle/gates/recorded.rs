//! The calls of candidates in demonstrations: from places of programs to segments and frames.
//!
//! **What is merged.** In a motion every step of the body stands for one segment at each call; segments at the same step are
//! merged. In a task the calls stand for stretches of demonstrations, which may differ in speed: each pair of them is
//! aligned, segment by segment, and what is aligned is merged.
//!
//! **What is done instead.** A motion's call is replayed as the expansion of its skills, each as long as it was recorded: a
//! program says where motions end and not when, so a difference of durations is no difference of programs. A task's call means the same as
//! what it replaces, word by word; so here the motion is replaced by that of another demonstration of the same program:
//! whether the program, rather than the recording, brings the return.

use std::ops::Range;

use compression::{Candidate, Place};
use models::{FragmentTable, WorldModel};

use super::scene::{Calls, Evidence, Merged, Replacement, Scene};
use super::settings::GateSettings;
use crate::cycle::classes::Classes;
use crate::cycle::corpus::{Corpus, Subject};
use crate::cycle::demonstrations::{Demonstrations, SegmentId, rows};
use crate::cycle::verifier::Verifier;
use crate::error::Result;
use crate::prepared::Prepared;

/// Demonstrations with their programs and the classes of their segments.
#[derive(Clone, Copy)]
pub struct RecordedCalls<'a> {
    /// The data.
    pub prepared: &'a Prepared,
    /// The episodes.
    pub demonstrations: &'a Demonstrations,
    /// The demonstrations that are learned from.
    pub training: &'a [usize],
    /// What each program that is refactored is about, in the order of the programs.
    pub subjects: &'a [Subject],
    /// Segments under D_φ.
    pub classes: &'a Classes,
    /// The programs.
    pub corpus: &'a Corpus,
}

impl<'a> RecordedCalls<'a> {
    /// The scene that gates look at; measures ε_t and the largest return of the training data.
    pub fn scene(&'a self, table: &'a FragmentTable, model: &'a WorldModel, settings: &GateSettings) -> Scene<'a> {
        let config = model.config();
        Scene {
            evidence: self,
            epsilon: self.classes.epsilon(self.training, settings.soundness_quantile),
            largest_return: self.largest_return(config.discount),
            verifier: Verifier {
                model,
                starts: table,
                actions: &table.scales().actions,
                horizon: config.horizon,
                discount: config.discount,
                predicts_returns: config.returns,
            },
        }
    }

    /// The largest return to go of a frame of the training demonstrations; 0 without rewards.
    fn largest_return(&self, discount: f64) -> f64 {
        let dataset = &self.prepared.source.dataset;
        let Some(rewards) = models::fragments::rewards_of(dataset) else { return 0.0 };
        let returns = models::fragments::returns_to_go(&rewards, dataset.spans(), discount);
        let of = |at: &usize| self.demonstrations.all[*at].frames.clone();
        self.training.iter().flat_map(of).map(|frame| f64::from(returns[frame])).fold(0.0, f64::max)
    }

    /// The calls of a candidate, each with what its program is about.
    fn calls<'c>(&'c self, candidate: &'c Candidate) -> impl Iterator<Item = (Subject, &'c Place)> {
        candidate.places.iter().map(|place| (self.subjects[place.program], place))
    }

    /// The numbers of the segments that some frames of a demonstration lie in.
    fn within(&self, demonstration: usize, frames: &Range<usize>) -> Vec<usize> {
        let first = self.demonstrations.segment_at(demonstration, frames.start);
        let last = self.demonstrations.segment_at(demonstration, frames.end - 1);
        (first..=last).filter_map(|segment| self.classes.place(SegmentId { demonstration, segment })).collect()
    }

    /// A motion's call: what was recorded, and the expansion of its skills.
    fn expanded(&self, demonstration: usize, place: &Place) -> Result<Option<Replacement>> {
        let Some(steps) = place.steps.clone().filter(|steps| !steps.is_empty()) else { return Ok(None) };
        let segments = &self.demonstrations.all[demonstration].segments;
        let (Some(first), Some(last)) = (segments.get(steps.start), segments.get(steps.end - 1)) else {
            return Ok(None);
        };
        let start = &self.corpus.positions[demonstration][steps.start];
        let calls = &self.corpus.calls[demonstration][steps.clone()];
        let recorded = |at: usize, own: usize| segments.get(steps.start + at).map_or(own, Range::len);
        let expansion = self.corpus.alphabet.expand_timed(calls, start, recorded)?;
        let instead: Vec<f32> = expansion.rows.iter().map(|value| *value as f32).collect();
        self.replacement(first.start..last.end, instead).map(Some)
    }

    /// A task's call: what was recorded, and what another demonstration of the same task did there.
    fn done_by_another(&self, demonstration: usize, place: &Place) -> Result<Option<Replacement>> {
        let RecordedCalls { corpus, training, .. } = self;
        let same = |other: &usize| *other != demonstration && corpus.tasks[*other] == corpus.tasks[demonstration];
        let others: Vec<usize> = training.iter().copied().filter(same).collect();
        let next = others.iter().find(|other| **other > demonstration).or(others.first());
        let (Some(own), Some(other)) = (self.stretch(demonstration, place), next) else { return Ok(None) };
        let Some(theirs) = self.stretch(*other, place) else { return Ok(None) };
        let instead = self.recorded(&theirs)?;
        self.replacement(own, instead).map(Some)
    }

    fn replacement(&self, frames: Range<usize>, instead: Vec<f32>) -> Result<Replacement> {
        let layout = &self.demonstrations.layout;
        let recorded = self.recorded(&frames)?;
        let still = layout.stillness(recorded.get(..layout.width).unwrap_or_default()).repeat(frames.len());
        Ok(Replacement { frame: frames.start, recorded, instead, still })
    }

    /// The frames of a demonstration that a task's call stands for.
    fn stretch(&self, demonstration: usize, place: &Place) -> Option<Range<usize>> {
        let frames = &self.demonstrations.all[demonstration].frames;
        share_of(frames, place.steps.clone()?, self.corpus.task_steps[demonstration])
    }

    fn recorded(&self, frames: &Range<usize>) -> Result<Vec<f32>> {
        Ok(rows(&self.prepared.source.dataset, frames)?.values().to_vec())
    }
}

impl Evidence for RecordedCalls<'_> {
    fn count(&self, candidate: &Candidate) -> Calls {
        let motions = self.calls(candidate).filter(|(subject, _)| matches!(subject, Subject::Motion(_))).count();
        Calls { tasks: candidate.places.len() - motions, motions }
    }

    fn merged(&self, candidate: &Candidate) -> Merged {
        let mut merged = Merged::default();
        for (subject, place) in self.calls(candidate) {
            match subject {
                Subject::Motion(demonstration) => {
                    let number = |segment| self.classes.place(SegmentId { demonstration, segment });
                    merged.add_motion(place, number);
                }
                Subject::Task(demonstration) => {
                    let stretch = self.stretch(demonstration, place);
                    merged.stretches.extend(stretch.map(|frames| self.within(demonstration, &frames)));
                }
            }
        }
        merged
    }

    fn distance(&self, one: usize, other: usize) -> f64 {
        self.classes.distance(one, other)
    }

    fn replacements(&self, candidate: &Candidate) -> Result<Vec<Replacement>> {
        let mut found = Vec::new();
        for (subject, place) in self.calls(candidate) {
            found.extend(match subject {
                Subject::Motion(demonstration) => self.expanded(demonstration, place)?,
                Subject::Task(demonstration) => self.done_by_another(demonstration, place)?,
            });
        }
        Ok(found)
    }
}

/// The share of some frames that steps of a task stand for, if the task's steps divide the frames evenly; `None` if that is no
/// frame at all.
fn share_of(frames: &Range<usize>, steps: Range<usize>, all: usize) -> Option<Range<usize>> {
    let at = |step: usize| frames.start + step * frames.len() / all.max(1);
    let share = at(steps.start)..at(steps.end.max(steps.start + 1).min(all)).min(frames.end);
    if share.is_empty() { None } else { Some(share) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_a_task_divide_its_frames_evenly() {
        let frames = 100..140;
        assert_eq!(share_of(&frames, 0..2, 4), Some(100..120));
        assert_eq!(share_of(&frames, 2..4, 4), Some(120..140));
        // A call that is part of an argument stands for the step of its primitive.
        assert_eq!(share_of(&frames, 3..3, 4), Some(130..140));
        assert_eq!(share_of(&frames, 4..5, 4), None);
        assert_eq!(share_of(&(100..100), 0..1, 4), None);
    }
}
