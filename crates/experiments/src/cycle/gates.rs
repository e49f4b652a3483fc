//! The three gates of library refactoring (SPEC §7), and the figures that they decide by.
//!
//! | gate | figure | passes |
//! |---|---|---|
//! | soundness | the mean D_φ between the motions that the candidate merges | at most ε_t |
//! | return | V of what calls stand for, against V of what the candidate does instead | equivalent within ε at level α |
//! | length | the drop in description length | more than 4 nats |
//!
//! **What is merged.** In a motion every step of the body stands for one segment at each call; segments at the same step are
//! merged. In a task the calls stand for stretches of demonstrations, and what lies at the same relative time is merged.
//! ε_t is a quantile of D_φ over all pairs of training segments: merged motions must be nearer than that.
//!
//! **What is done instead.** A motion's call is replayed as the expansion of its skills. A task's call means the same as
//! what it replaces, word by word; so here the motion is replaced by that of another demonstration of the same program:
//! whether the program, rather than the recording, brings the return. Returns are divided by the largest in the training data,
//! so that ε is a share of it.
//!
//! Each gate has a switch. Without rewards the second is inactive and says so.

use compression::{Candidate, Place, Verdict};
use models::{FragmentTable, WorldModel};
use serde::{Deserialize, Serialize};

use super::classes::{Classes, pairs, stillness};
use super::corpus::{Corpus, Subject};
use super::demonstrations::{Demonstrations, SegmentId, rows};
use super::equivalence::{Equivalence, equivalence};
use super::verifier::{Trial, values};
use crate::error::Result;
use crate::prepared::Prepared;

/// Pairs of segments that are compared at one step of a body.
const PAIRS: usize = 200;

/// Relative times at which stretches of demonstrations are compared.
const TIMES: usize = 8;

/// What a candidate must pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GateSettings {
    /// Whether merged motions must be near each other.
    pub soundness: bool,
    /// ε_t, as a quantile of D_φ over pairs of training segments.
    pub soundness_quantile: f64,
    /// Whether returns must be preserved.
    pub returns: bool,
    /// ε, as a share of the largest return (paper: 0.05).
    pub return_margin: f64,
    /// α (paper: 0.05).
    pub level: f64,
    /// K_v (paper: 32).
    pub rollouts: usize,
    /// The longest rollout, in steps; longer motions are cut there.
    pub rollout_steps: usize,
    /// Whether the description length must drop.
    pub length: bool,
    /// By more than so many nats (paper: 4).
    pub min_gain: f64,
}

impl Default for GateSettings {
    fn default() -> Self {
        GateSettings {
            soundness: true,
            soundness_quantile: 0.5,
            returns: true,
            return_margin: 0.05,
            level: 0.05,
            rollouts: 32,
            rollout_steps: 64,
            length: true,
            min_gain: 4.0,
        }
    }
}

/// The distances of what is merged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Soundness {
    /// The mean.
    pub mean: f64,
    /// The largest.
    pub worst: f64,
    /// ε_t.
    pub epsilon: f64,
    /// How many pairs were compared.
    pub pairs: usize,
}

/// What the gates found of a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Of the first gate; none if it is off or nothing is merged.
    pub soundness: Option<Soundness>,
    /// Of the second gate; none if it is off or inactive.
    pub returns: Option<Equivalence>,
    /// Of the third gate, in nats.
    pub gain: f64,
    /// Calls in tasks.
    pub task_calls: usize,
    /// Calls in motions.
    pub motion_calls: usize,
    /// Whether it was admitted.
    pub admitted: bool,
    /// Why not, or which gates had nothing to say.
    pub reasons: Vec<String>,
}

/// What the gates look at.
pub struct Gates<'a> {
    /// The data.
    pub prepared: &'a Prepared,
    /// The data on the device, in the world model's scales.
    pub table: &'a FragmentTable,
    /// The episodes.
    pub demonstrations: &'a Demonstrations,
    /// The demonstrations that are learned from.
    pub training: &'a [usize],
    /// What the programs that are refactored are about, one for each, in their order.
    pub subjects: &'a [Subject],
    /// Segments under D_φ.
    pub classes: &'a Classes,
    /// The programs.
    pub corpus: &'a Corpus,
    /// M_φ.
    pub model: &'a WorldModel,
    /// The largest return of the training data; 0 without rewards.
    pub largest_return: f64,
    /// ε_t.
    pub epsilon: f64,
    /// What must be passed.
    pub settings: &'a GateSettings,
    /// Of the rollouts.
    pub seed: u64,
}

impl Gates<'_> {
    /// Judges a candidate.
    pub fn judge(&self, candidate: &Candidate) -> Result<Verdict<Figures>> {
        let settings = self.settings;
        let subjects: Vec<(Subject, &Place)> =
            candidate.places.iter().map(|place| (self.subjects[place.program], place)).collect();
        let motions = subjects.iter().filter(|(subject, _)| matches!(subject, Subject::Motion(_))).count();
        let mut figures = Figures {
            soundness: None,
            returns: None,
            gain: candidate.gain,
            task_calls: subjects.len() - motions,
            motion_calls: motions,
            admitted: true,
            reasons: Vec::new(),
        };
        if settings.length && candidate.gain <= settings.min_gain {
            refuse(&mut figures, format!("gains {:.2} nats, wanted more than {}", candidate.gain, settings.min_gain));
        }
        if settings.soundness {
            figures.soundness = self.soundness(&subjects);
            match figures.soundness {
                Some(found) if found.mean > found.epsilon => refuse(
                    &mut figures,
                    format!("merges motions {:.3} apart on average, wanted at most {:.3}", found.mean, found.epsilon),
                ),
                None => figures.reasons.push("merges no motions that could be compared".to_owned()),
                Some(_) => {}
            }
        }
        if settings.returns {
            if self.largest_return <= 0.0 {
                figures.reasons.push("the return gate is inactive: the dataset has no reward".to_owned());
            } else {
                figures.returns = self.returns(&subjects)?;
                match figures.returns {
                    Some(found) if !found.equivalent => refuse(
                        &mut figures,
                        format!(
                            "changes the return by {:.3} to {:.3}, wanted within ±{}",
                            found.low, found.high, found.margin
                        ),
                    ),
                    None => figures.reasons.push(
                        "the return gate is inactive: no call can be done in another way to compare with".to_owned(),
                    ),
                    Some(_) => {}
                }
            }
        }
        Ok(Verdict { admitted: figures.admitted, figures })
    }

    /// D_φ over pairs of merged segments.
    fn soundness(&self, subjects: &[(Subject, &Place)]) -> Option<Soundness> {
        // For each step of the body, or relative time, the segments there.
        let mut merged: Vec<Vec<usize>> = Vec::new();
        let mut add = |step: usize, id: SegmentId| {
            if merged.len() <= step {
                merged.resize(step + 1, Vec::new());
            }
            merged[step].extend(self.classes.place(id));
        };
        for (subject, place) in subjects {
            match *subject {
                Subject::Motion(demonstration) => {
                    for (step, segment) in place.own.iter().cloned().flatten().enumerate() {
                        add(step, SegmentId { demonstration, segment });
                    }
                }
                Subject::Task(demonstration) => {
                    let Some(frames) = self.stretch(demonstration, place) else { continue };
                    for time in 0..TIMES {
                        let frame = frames.start + (2 * time + 1) * frames.len() / (2 * TIMES);
                        let segment = self.demonstrations.segment_at(demonstration, frame);
                        add(TASK_STEPS + time, SegmentId { demonstration, segment });
                    }
                }
            }
        }
        let distances: Vec<f64> = merged
            .iter()
            .flat_map(|places| pairs(places, PAIRS))
            .map(|(one, other)| if one == other { 0.0 } else { self.classes.distance(one, other) })
            .collect();
        if distances.is_empty() {
            return None;
        }
        Some(Soundness {
            mean: distances.iter().sum::<f64>() / distances.len() as f64,
            worst: distances.iter().copied().fold(0.0, f64::max),
            epsilon: self.epsilon,
            pairs: distances.len(),
        })
    }

    /// V of both ways from the same frames under the same noise.
    fn returns(&self, subjects: &[(Subject, &Place)]) -> Result<Option<Equivalence>> {
        let mut ways = Vec::new();
        for (subject, place) in subjects {
            ways.extend(match *subject {
                Subject::Motion(demonstration) => self.expanded(demonstration, place)?,
                Subject::Task(demonstration) => self.done_by_another(demonstration, place)?,
            });
        }
        self.compared(&ways)
    }

    /// What the second gate says of standing still in place of two segments at a time. A verifier that finds no difference
    /// there cannot refuse anything, and what it admits means little.
    pub fn stillness(&self) -> Result<Option<Equivalence>> {
        let mut ways = Vec::new();
        if self.largest_return > 0.0 {
            for at in self.training {
                for two in self.demonstrations.all[*at].segments.windows(2) {
                    let frames = two[0].start..two[1].end;
                    let recorded = self.recorded(frames.clone())?;
                    let layout = &self.demonstrations.layout;
                    let held = stillness(layout, &recorded[..layout.width]).repeat(frames.len());
                    ways.push((frames.start, recorded, held));
                }
            }
        }
        self.compared(&ways)
    }

    /// Tests the differences of returns over some of the ways.
    fn compared(&self, ways: &[Way]) -> Result<Option<Equivalence>> {
        if ways.is_empty() {
            return Ok(None);
        }
        // Evenly over all calls; where there are fewer calls than rollouts, again with other noise.
        let wanted = self.settings.rollouts;
        let chosen =
            (0..wanted).map(|at| if ways.len() >= wanted { at * ways.len() / wanted } else { at % ways.len() });
        let (mut recorded, mut instead) = (Vec::new(), Vec::new());
        for at in chosen {
            let (frame, one, other) = &ways[at];
            recorded.push(self.trial(*frame, one));
            instead.push(self.trial(*frame, other));
        }
        let recorded = values(self.model, self.table, &recorded, self.seed)?;
        let instead = values(self.model, self.table, &instead, self.seed)?;
        let differences: Vec<f64> =
            recorded.iter().zip(&instead).map(|(one, other)| (other - one) / self.largest_return).collect();
        equivalence(&differences, self.settings.return_margin, self.settings.level).map(Some)
    }

    /// A motion's call: what was recorded, and the expansion of its skills.
    fn expanded(&self, demonstration: usize, place: &Place) -> Result<Option<Way>> {
        let Some(steps) = place.steps.clone().filter(|steps| !steps.is_empty()) else { return Ok(None) };
        let segments = &self.demonstrations.all[demonstration].segments;
        let (Some(first), Some(last)) = (segments.get(steps.start), segments.get(steps.end - 1)) else {
            return Ok(None);
        };
        let calls = &self.corpus.calls[demonstration][steps];
        let expansion = self.corpus.alphabet.expand_calls(calls)?;
        let rows: Vec<f32> = expansion.rows.iter().map(|value| *value as f32).collect();
        Ok(Some((first.start, self.recorded(first.start..last.end)?, rows)))
    }

    /// A task's call: what was recorded, and what another demonstration of the same task did there.
    fn done_by_another(&self, demonstration: usize, place: &Place) -> Result<Option<Way>> {
        let task = self.corpus.tasks[demonstration];
        let others: Vec<usize> = self
            .training
            .iter()
            .copied()
            .filter(|other| *other != demonstration && self.corpus.tasks[*other] == task)
            .collect();
        let next = others.iter().find(|other| **other > demonstration).or(others.first());
        let (Some(own), Some(other)) = (self.stretch(demonstration, place), next) else { return Ok(None) };
        let Some(theirs) = self.stretch(*other, place) else { return Ok(None) };
        Ok(Some((own.start, self.recorded(own)?, self.recorded(theirs)?)))
    }

    /// The frames of a demonstration that a task's call stands for: its share of the task's steps.
    fn stretch(&self, demonstration: usize, place: &Place) -> Option<std::ops::Range<usize>> {
        let steps = place.steps.clone()?;
        let all = self.corpus.task_steps[demonstration];
        let frames = &self.demonstrations.all[demonstration].frames;
        let at = |step: usize| frames.start + step * frames.len() / all.max(1);
        let stretch = at(steps.start)..at(steps.end.max(steps.start + 1).min(all)).min(frames.end);
        if stretch.is_empty() { None } else { Some(stretch) }
    }

    fn recorded(&self, frames: std::ops::Range<usize>) -> Result<Vec<f32>> {
        Ok(rows(&self.prepared.source.dataset, &frames)?.values().to_vec())
    }

    /// Raw actions as a trial: cut at the limit and standardised.
    fn trial(&self, frame: usize, actions: &[f32]) -> Trial {
        let most = self.settings.rollout_steps * self.demonstrations.layout.width;
        let mut actions = actions[..actions.len().min(most)].to_vec();
        self.table.scales().actions.apply(&mut actions);
        Trial { frame, actions }
    }
}

/// A frame, the actions that were recorded from it, and those that are done instead.
type Way = (usize, Vec<f32>, Vec<f32>);

/// Steps of bodies come before relative times in the list of what is merged; no body has more.
const TASK_STEPS: usize = 1024;

fn refuse(figures: &mut Figures, reason: String) {
    figures.admitted = false;
    figures.reasons.push(reason);
}
