//! The three gates of library refactoring (SPEC §7), and the figures that they decide by.
//!
//! | gate | figure | passes |
//! |---|---|---|
//! | soundness | the mean D_φ between the motions that the candidate merges | at most ε_t |
//! | return | how much V of what calls stand for differs from V of what the candidate does instead | less than ε at level α |
//! | length | the drop in description length | more than 4 nats |
//!
//! **What is merged.** In a motion every step of the body stands for one segment at each call; segments at the same step are
//! merged. In a task the calls stand for stretches of demonstrations, which may take their time: each pair of them is
//! aligned, segment by segment, and what is aligned is merged. ε_t is the distance that as many pairs of training segments
//! are within as there are pairs of one class: merged motions must be as near as motions of one class are.
//!
//! **What is done instead.** A motion's call is replayed as the expansion of its skills. A task's call means the same as
//! what it replaces, word by word; so here the motion is replaced by that of another demonstration of the same program:
//! whether the program, rather than the recording, brings the return. Returns are divided by the largest in the training data,
//! so that ε is a share of it.
//!
//! **What the verifier can see.** A world model that hardly hears actions finds every return preserved. So each candidate
//! has a control: standing still at the same calls for as long. It may change returns by half as much as that does, however
//! large ε is.
//!
//! Each gate has a switch. Without rewards the second is inactive and says so.
//!
//! Departures. SPEC wants merged motions within ε_t of each other; here it is their mean distance, because one odd pair among
//! hundreds would refuse every entry (the largest distance is in the figures). K_v counts rollouts, as in the paper: where an
//! entry has fewer calls, they come again under other noise, and the bound speaks of these calls, not of calls to come.

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

/// Pairs of stretches of demonstrations that are aligned.
const ALIGNED: usize = 100;

/// What a candidate must pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GateSettings {
    /// Whether merged motions must be near each other.
    pub soundness: bool,
    /// ε_t, as a quantile of D_φ over pairs of training segments; 0 takes the share of pairs that are of one class.
    pub soundness_quantile: f64,
    /// Whether returns must be preserved.
    pub returns: bool,
    /// ε, as a share of the largest return (paper: 0.05).
    pub return_margin: f64,
    /// ε is also at most this share of what standing still at the same calls changes; 0 lets ε be as it is.
    pub control_share: f64,
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
            soundness_quantile: 0.0,
            returns: true,
            return_margin: 0.05,
            control_share: 0.5,
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
    /// How much standing still at the same calls changes returns: the mean size.
    pub control: Option<f64>,
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
#[derive(Clone, Copy)]
pub struct Scene<'a> {
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
}

/// The gates, with what they compare to.
pub struct Gates<'a> {
    pub(super) scene: Scene<'a>,
    pub(super) settings: &'a GateSettings,
    seed: u64,
    /// The largest return of the training data; 0 without rewards.
    largest_return: f64,
    /// ε_t.
    pub(super) epsilon: f64,
}

impl<'a> Gates<'a> {
    /// Measures ε_t.
    pub fn new(scene: Scene<'a>, settings: &'a GateSettings, seed: u64) -> Gates<'a> {
        let Scene { prepared, demonstrations, training, classes, model, .. } = scene;
        Gates {
            scene,
            settings,
            seed,
            largest_return: largest_return(prepared, demonstrations, training, model.config().discount),
            epsilon: classes.epsilon(training, settings.soundness_quantile),
        }
    }

    /// Judges a candidate.
    pub fn judge(&self, candidate: &Candidate) -> Result<Verdict<Figures>> {
        let settings = self.settings;
        let subjects: Vec<(Subject, &Place)> =
            candidate.places.iter().map(|place| (self.scene.subjects[place.program], place)).collect();
        let motions = subjects.iter().filter(|(subject, _)| matches!(subject, Subject::Motion(_))).count();
        let mut figures = Figures {
            soundness: None,
            returns: None,
            control: None,
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
            } else if !self.scene.model.config().returns {
                figures
                    .reasons
                    .push("the return gate is inactive: the world model was trained without returns".to_owned());
            } else {
                (figures.returns, figures.control) = self.returns(&subjects)?.unzip();
                match figures.returns {
                    Some(_) if self.is_deaf(figures.control) => refuse(
                        &mut figures,
                        "the world model does not notice standing still at these calls, so it cannot tell".to_owned(),
                    ),
                    Some(found) if !found.equivalent => refuse(
                        &mut figures,
                        format!(
                            "changes returns by {:.3} on average, at most {:.3}; wanted less than {:.3}",
                            found.size, found.bound, found.margin
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
        let mut distances = Vec::new();
        // For each step of the body the segments there; for each task's call those of its stretch.
        let (mut steps, mut stretches): (Vec<Vec<usize>>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
        for (subject, place) in subjects {
            match *subject {
                Subject::Motion(demonstration) => {
                    for (step, segment) in place.own.iter().cloned().flatten().enumerate() {
                        if steps.len() <= step {
                            steps.resize(step + 1, Vec::new());
                        }
                        steps[step].extend(self.scene.classes.place(SegmentId { demonstration, segment }));
                    }
                }
                Subject::Task(demonstration) => {
                    stretches
                        .extend(self.stretch(demonstration, place).map(|frames| self.within(demonstration, &frames)));
                }
            }
        }
        let distance =
            |one: usize, other: usize| if one == other { 0.0 } else { self.scene.classes.distance(one, other) };
        for merged in &steps {
            distances.extend(pairs(merged, PAIRS).map(|(one, other)| distance(one, other)));
        }
        for (one, other) in pairs(&(0..stretches.len()).collect::<Vec<_>>(), ALIGNED) {
            distances.extend(aligned(&stretches[one], &stretches[other], &distance));
        }
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

    /// The places of the segments that some frames of a demonstration lie in.
    fn within(&self, demonstration: usize, frames: &std::ops::Range<usize>) -> Vec<usize> {
        let Scene { demonstrations, classes, .. } = self.scene;
        let first = demonstrations.segment_at(demonstration, frames.start);
        let last = demonstrations.segment_at(demonstration, frames.end - 1);
        (first..=last).filter_map(|segment| classes.place(SegmentId { demonstration, segment })).collect()
    }

    /// V of both ways from the same frames under the same noise, and how much standing still there changes it.
    fn returns(&self, subjects: &[(Subject, &Place)]) -> Result<Option<(Equivalence, f64)>> {
        let mut ways = Vec::new();
        for (subject, place) in subjects {
            ways.extend(match *subject {
                Subject::Motion(demonstration) => self.expanded(demonstration, place)?,
                Subject::Task(demonstration) => self.done_by_another(demonstration, place)?,
            });
        }
        if ways.is_empty() {
            return Ok(None);
        }
        // Evenly over all calls; where there are fewer calls than rollouts, again with other noise.
        let wanted = self.settings.rollouts;
        let chosen =
            (0..wanted).map(|at| if ways.len() >= wanted { at * ways.len() / wanted } else { at % ways.len() });
        let layout = &self.scene.demonstrations.layout;
        let (mut recorded, mut instead, mut still) = (Vec::new(), Vec::new(), Vec::new());
        for at in chosen {
            let (frame, one, other) = &ways[at];
            let held = stillness(layout, &one[..layout.width]).repeat(one.len() / layout.width);
            recorded.push(self.trial(*frame, one));
            instead.push(self.trial(*frame, other));
            still.push(self.trial(*frame, &held));
        }
        let Scene { model, table, .. } = self.scene;
        let [recorded, instead, still] =
            [recorded, instead, still].map(|trials| values(model, table, &trials, self.seed));
        let recorded = recorded?;
        let differences = |values: Vec<f64>| -> Vec<f64> {
            recorded.iter().zip(values).map(|(one, other)| (other - one) / self.largest_return).collect()
        };
        let (instead, still) = (differences(instead?), differences(still?));
        let control = still.iter().map(|one| one.abs()).sum::<f64>() / still.len() as f64;
        let mut found = equivalence(&instead, self.margin(control), self.settings.level)?;
        found.equivalent &= !self.is_deaf(Some(control));
        Ok(Some((found, control)))
    }

    /// Whether not even standing still makes a difference, where it must.
    fn is_deaf(&self, control: Option<f64>) -> bool {
        self.settings.control_share > 0.0 && control == Some(0.0)
    }

    /// ε, as a share of the largest return: the smaller one of the setting and the control's share.
    fn margin(&self, control: f64) -> f64 {
        let GateSettings { return_margin, control_share, .. } = *self.settings;
        let share = control_share * control;
        if share > 0.0 { return_margin.min(share) } else { return_margin }
    }

    /// A motion's call: what was recorded, and the expansion of its skills.
    fn expanded(&self, demonstration: usize, place: &Place) -> Result<Option<Way>> {
        let Some(steps) = place.steps.clone().filter(|steps| !steps.is_empty()) else { return Ok(None) };
        let segments = &self.scene.demonstrations.all[demonstration].segments;
        let (Some(first), Some(last)) = (segments.get(steps.start), segments.get(steps.end - 1)) else {
            return Ok(None);
        };
        let corpus = self.scene.corpus;
        let calls = &corpus.calls[demonstration][steps];
        let expansion = corpus.alphabet.expand_calls(calls)?;
        let rows: Vec<f32> = expansion.rows.iter().map(|value| *value as f32).collect();
        Ok(Some((first.start, self.recorded(first.start..last.end)?, rows)))
    }

    /// A task's call: what was recorded, and what another demonstration of the same task did there.
    fn done_by_another(&self, demonstration: usize, place: &Place) -> Result<Option<Way>> {
        let Scene { corpus, training, .. } = self.scene;
        let same = |other: &usize| *other != demonstration && corpus.tasks[*other] == corpus.tasks[demonstration];
        let others: Vec<usize> = training.iter().copied().filter(same).collect();
        let next = others.iter().find(|other| **other > demonstration).or(others.first());
        let (Some(own), Some(other)) = (self.stretch(demonstration, place), next) else { return Ok(None) };
        let Some(theirs) = self.stretch(*other, place) else { return Ok(None) };
        Ok(Some((own.start, self.recorded(own)?, self.recorded(theirs)?)))
    }

    /// The frames of a demonstration that a task's call stands for: its share of the task's steps.
    fn stretch(&self, demonstration: usize, place: &Place) -> Option<std::ops::Range<usize>> {
        let steps = place.steps.clone()?;
        let all = self.scene.corpus.task_steps[demonstration];
        let frames = &self.scene.demonstrations.all[demonstration].frames;
        let at = |step: usize| frames.start + step * frames.len() / all.max(1);
        let stretch = at(steps.start)..at(steps.end.max(steps.start + 1).min(all)).min(frames.end);
        if stretch.is_empty() { None } else { Some(stretch) }
    }

    fn recorded(&self, frames: std::ops::Range<usize>) -> Result<Vec<f32>> {
        Ok(rows(&self.scene.prepared.source.dataset, &frames)?.values().to_vec())
    }

    /// Raw actions as a trial: cut at the limit and standardised.
    fn trial(&self, frame: usize, actions: &[f32]) -> Trial {
        let most = self.settings.rollout_steps * self.scene.demonstrations.layout.width;
        let mut actions = actions[..actions.len().min(most)].to_vec();
        self.scene.table.scales().actions.apply(&mut actions);
        Trial { frame, actions }
    }
}

/// A frame, the actions that were recorded from it, and those that are done instead.
type Way = (usize, Vec<f32>, Vec<f32>);

/// Distances of two rows of segments along their cheapest alignment: the first with the first, the last with the last, and
/// never backwards. Nothing if one is empty.
fn aligned(ones: &[usize], others: &[usize], distance: &dyn Fn(usize, usize) -> f64) -> Vec<f64> {
    if ones.is_empty() || others.is_empty() {
        return Vec::new();
    }
    let between: Vec<Vec<f64>> =
        ones.iter().map(|one| others.iter().map(|other| distance(*one, *other)).collect()).collect();
    // The cheapest way to each pair, and from which of its three neighbours it comes.
    let mut costs = vec![vec![f64::INFINITY; others.len()]; ones.len()];
    let before = |costs: &[Vec<f64>], row: usize, column: usize| {
        let neighbours = [(1, 1), (1, 0), (0, 1)].into_iter();
        let inside = neighbours.filter_map(move |(up, left)| Some((row.checked_sub(up)?, column.checked_sub(left)?)));
        inside.min_by(|a, b| costs[a.0][a.1].total_cmp(&costs[b.0][b.1]))
    };
    for row in 0..ones.len() {
        for column in 0..others.len() {
            let until = before(&costs, row, column).map_or(0.0, |(row, column)| costs[row][column]);
            costs[row][column] = until + between[row][column];
        }
    }
    let mut along = Vec::new();
    let mut at = Some((ones.len() - 1, others.len() - 1));
    while let Some((row, column)) = at {
        along.push(between[row][column]);
        at = before(&costs, row, column);
    }
    along
}

/// The largest return that a frame of these demonstrations has before it; 0 without rewards.
fn largest_return(prepared: &Prepared, demonstrations: &Demonstrations, which: &[usize], discount: f64) -> f64 {
    let dataset = &prepared.source.dataset;
    let Some(rewards) = models::fragments::rewards_of(dataset) else { return 0.0 };
    let returns = models::fragments::returns_to_go(&rewards, dataset.spans(), discount);
    let of = |at: &usize| demonstrations.all[*at].frames.clone();
    which.iter().flat_map(of).map(|frame| f64::from(returns[frame])).fold(0.0, f64::max)
}

fn refuse(figures: &mut Figures, reason: String) {
    figures.admitted = false;
    figures.reasons.push(reason);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_aligned_at_the_least_cost() {
        let distance = |one: usize, other: usize| one.abs_diff(other) as f64;
        assert_eq!(aligned(&[1, 2, 5], &[1, 2, 5], &distance), [0.0; 3]);
        // One of them takes its time.
        assert_eq!(aligned(&[1, 2, 5], &[1, 1, 2, 2, 5], &distance), [0.0; 5]);
        assert_eq!(aligned(&[1, 4], &[1, 3, 4], &distance).iter().sum::<f64>(), 1.0);
        // Both ends are met, even where they are far apart.
        assert_eq!(aligned(&[1, 2], &[9, 2], &distance), [0.0, 8.0]);
        assert!(aligned(&[], &[1], &distance).is_empty());
    }
}
