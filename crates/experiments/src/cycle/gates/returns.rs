//! The return gate: what a candidate does instead must return as much as what was recorded (SPEC §7 ii).
//!
//! Both are imagined from the same frames under the same noise, and the size of the difference of their values is tested for
//! equivalence (see [`crate::cycle::equivalence`]). Returns are divided by the largest in the training data, so that ε is a
//! share of it.
//!
//! **What the verifier can see.** A world model that ignores actions would judge every return as preserved. So each candidate has
//! a control: standing still at the same calls for as long. The candidate may change returns by a share (half, by default) of
//! what the control changes, however large ε is.
//!
//! K_v counts rollouts, as in the paper. With more calls than that, calls are taken evenly from all of them; with fewer, each is
//! rolled out several times under other noise. The confidence bound is over calls in both cases.

use compression::Candidate;
use models::noise::mix;
use report::{Figure, Verdict};

use super::scene::{Replacement, Scene};
use super::settings::GateSettings;
use super::{Gate, measured};
use crate::cycle::equivalence::{Equivalence, Test, corrected, equivalence};
use crate::cycle::verifier::{Trial, Verifier};
use crate::error::Result;

/// Tests the size of the change of return.
#[derive(Clone, Debug)]
pub struct Returns {
    settings: GateSettings,
    /// The level of the test of one candidate.
    level: f64,
    seed: u64,
}

/// What replacements change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The test, with ε as far as the control allows.
    pub test: Equivalence,
    /// How much standing still at the same calls changes returns: the mean size.
    pub control: f64,
    /// Whether the verifier does not notice standing still, where it must.
    pub is_blind: bool,
}

impl Returns {
    /// The gate of a step that judges at most `max_judged` candidates.
    pub fn new(settings: &GateSettings, max_judged: usize, seed: u64) -> Returns {
        let level = if settings.correct_level { corrected(settings.level, max_judged) } else { settings.level };
        Returns { settings: settings.clone(), level, seed }
    }

    /// Rolls out replacements and tests the change of return, as a share of the largest one. `None` without replacements.
    pub fn change(
        &self,
        replacements: &[Replacement],
        verifier: &Verifier<'_>,
        largest_return: f64,
    ) -> Result<Option<Change>> {
        if replacements.is_empty() {
            return Ok(None);
        }
        let wanted = self.settings.rollouts.max(1);
        let calls = replacements.len();
        let chosen: Vec<usize> =
            (0..wanted).map(|at| if calls >= wanted { at * calls / wanted } else { at % calls }).collect();
        let values = |of: &dyn Fn(&Replacement) -> &Vec<f32>| -> Result<Vec<f64>> {
            let trial = |at: &usize| Trial { frame: replacements[*at].frame, actions: of(&replacements[*at]).clone() };
            let trials: Vec<Trial> = chosen.iter().map(trial).collect();
            verifier.values(&trials, self.settings.rollout_steps, self.seed)
        };
        let recorded = values(&|one| &one.recorded)?;
        let by_call = |values: Vec<f64>| -> Vec<Vec<f64>> {
            let mut found = vec![Vec::new(); calls];
            for ((at, other), own) in chosen.iter().zip(values).zip(&recorded) {
                found[*at].push((other - own) / largest_return);
            }
            found.retain(|call| !call.is_empty());
            found
        };
        let still: Vec<f64> = by_call(values(&|one| &one.still)?).concat();
        let control = still.iter().map(|one| one.abs()).sum::<f64>() / still.len() as f64;
        let test = Test {
            margin: self.margin(control),
            level: self.level,
            min_calls: self.settings.min_calls,
            seed: mix(self.seed, b"resamples"),
        };
        let test = equivalence(&by_call(values(&|one| &one.instead)?), &test)?;
        Ok(Some(Change { test, control, is_blind: self.settings.control_share > 0.0 && control == 0.0 }))
    }

    /// What the gate says of a change.
    pub fn figure(&self, Change { test, control, is_blind }: &Change) -> Figure {
        let mut figure = measured(self.name(), test.size, test.margin, "of the largest return");
        (figure.low, figure.high) = (test.low, test.bound);
        let details = [
            ("mean", test.mean),
            ("control", *control),
            ("calls", test.calls as f64),
            ("rollouts", test.rollouts as f64),
            ("level", test.level),
        ];
        figure.details.extend(details.map(|(name, value)| (name.to_owned(), value)));
        let reason = match test.bound {
            _ if *is_blind => {
                "the world model does not notice standing still at these calls, so it cannot judge them".to_owned()
            }
            None => format!(
                "{} calls are too few to judge returns, {} or more are required",
                test.calls, self.settings.min_calls
            ),
            Some(bound) if !test.equivalent => format!(
                "returns change by {:.3} on average and by up to {bound:.3} at level {:.2e}; less than {:.3} is required",
                test.size, test.level, test.margin
            ),
            Some(_) => return figure,
        };
        figure.verdict = Verdict::Failed;
        figure.reason = reason;
        figure
    }

    /// ε, as a share of the largest return: the smaller one of the setting and the control's share.
    fn margin(&self, control: f64) -> f64 {
        let GateSettings { return_margin, control_share, .. } = self.settings;
        let share = control_share * control;
        if share > 0.0 { return_margin.min(share) } else { return_margin }
    }
}

impl Gate for Returns {
    fn name(&self) -> &'static str {
        "returns"
    }

    fn judge(&self, candidate: &Candidate, scene: &Scene<'_>) -> Result<Figure> {
        if scene.largest_return <= 0.0 {
            return Ok(Figure::inactive(self.name(), "the dataset has no reward"));
        }
        if !scene.verifier.predicts_returns {
            return Ok(Figure::inactive(self.name(), "the world model was trained without returns"));
        }
        let change = self.change(&scene.evidence.replacements(candidate)?, &scene.verifier, scene.largest_return)?;
        Ok(match change {
            Some(change) => self.figure(&change),
            None => Figure {
                verdict: Verdict::Failed,
                ..Figure::inactive(self.name(), "no call can be executed in another way to compare with")
            },
        })
    }
}
