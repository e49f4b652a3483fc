//! The gates of library refactoring (SPEC §7), and the figures that they decide by.
//!
//! | gate | value | passes |
//! |---|---|---|
//! | [`Soundness`] | the mean D_φ between the motions that the candidate merges at one step | at most ε_t |
//! | [`Returns`] | the mean size of the change of return, with a confidence bound | bound below ε |
//! | [`Length`] | the drop in description length | more than 4 nats |
//!
//! A [`Gate`] judges a candidate by what it sees in a [`Scene`] and returns a [`Figure`] with everything that it measured. A
//! candidate is admitted if no figure rejects it. All gates judge every candidate, so that all figures are known of the
//! rejected ones too. **A new gate is one file in this folder and one line in [`gates_of`].**
//!
//! Each gate has a switch. A gate that is switched off or cannot judge says so in an inactive figure.

mod length;
mod recorded;
mod returns;
mod scene;
mod settings;
mod soundness;

use compression::Candidate;
use report::{Figure, Verdict};
use serde::{Deserialize, Serialize};

pub use self::length::Length;
pub use self::recorded::RecordedCalls;
pub use self::returns::{Change, Returns};
pub use self::scene::{Calls, Evidence, Merged, Replacement, Scene};
pub use self::settings::GateSettings;
pub use self::soundness::{Soundness, epsilon_between};
use crate::error::Result;

/// Something that a candidate must pass.
pub trait Gate {
    /// Its name in figures, unique among the gates of a run.
    fn name(&self) -> &'static str;

    /// Judges a candidate.
    fn judge(&self, candidate: &Candidate, scene: &Scene<'_>) -> Result<Figure>;
}

/// What all gates together say of a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// One figure of each gate, in their order.
    pub figures: Vec<Figure>,
    /// Calls in tasks.
    pub task_calls: usize,
    /// Calls in motions.
    pub motion_calls: usize,
    /// Whether no gate rejects the candidate.
    pub admitted: bool,
}

impl Judgement {
    /// The figure of a gate, by its name.
    pub fn figure(&self, gate: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.gate == gate)
    }

    /// Why gates reject the candidate or cannot judge it, each as a sentence.
    pub fn reasons(&self) -> Vec<String> {
        let said = self.figures.iter().filter(|figure| !figure.reason.is_empty());
        said.map(|figure| format!("{}: {}", figure.gate, figure.reason)).collect()
    }
}

/// Gates, and what they look at.
pub struct Gates<'a> {
    /// What they look at.
    pub scene: Scene<'a>,
    gates: Vec<Box<dyn Gate>>,
}

/// The gates of a refactoring step that judges at most `max_judged` candidates, in the order of their figures.
pub fn gates_of(settings: &GateSettings, max_judged: usize, seed: u64) -> Vec<Box<dyn Gate>> {
    let gates: Vec<(bool, Box<dyn Gate>)> = vec![
        (settings.length, Box::new(Length { min_gain: settings.min_gain })),
        (settings.soundness, Box::new(Soundness)),
        (settings.returns, Box::new(Returns::new(settings, max_judged, seed))),
    ];
    let switched = |(is_on, gate): (bool, Box<dyn Gate>)| if is_on { gate } else { Box::new(SwitchedOff(gate)) };
    gates.into_iter().map(switched).collect()
}

impl<'a> Gates<'a> {
    /// The gates of the settings, for a step that judges at most `max_judged` candidates.
    pub fn new(scene: Scene<'a>, settings: &GateSettings, max_judged: usize, seed: u64) -> Gates<'a> {
        Gates::of(scene, gates_of(settings, max_judged, seed))
    }

    /// Any gates.
    pub fn of(scene: Scene<'a>, gates: Vec<Box<dyn Gate>>) -> Gates<'a> {
        Gates { scene, gates }
    }

    /// Judges a candidate by all gates.
    pub fn judge(&self, candidate: &Candidate) -> Result<Judgement> {
        let figures: Vec<Figure> =
            self.gates.iter().map(|gate| gate.judge(candidate, &self.scene)).collect::<Result<_>>()?;
        let Calls { tasks: task_calls, motions: motion_calls } = self.scene.evidence.count(candidate);
        let admitted = !figures.iter().any(Figure::rejects);
        Ok(Judgement { figures, task_calls, motion_calls, admitted })
    }
}

/// A gate that the settings switch off: its figures say so.
struct SwitchedOff(Box<dyn Gate>);

impl Gate for SwitchedOff {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn judge(&self, _: &Candidate, _: &Scene<'_>) -> Result<Figure> {
        Ok(Figure::inactive(self.name(), "switched off by the settings"))
    }
}

/// A figure of a gate that passes, to be completed.
fn measured(gate: &str, value: f64, limit: f64, unit: &str) -> Figure {
    Figure {
        verdict: Verdict::Passed,
        value: Some(value),
        limit: Some(limit),
        unit: unit.to_owned(),
        ..Figure::inactive(gate, "")
    }
}
