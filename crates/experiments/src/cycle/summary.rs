//! The results of a run as they are stored.

use compression::{DescriptionLength, Library, PruneReason, StepEnd};
use serde::{Deserialize, Serialize};

use super::class_scores::{KernelAgreement, MatchedScores};
use super::gates::Judgement;
use super::wake::Measure;
use crate::scores::Agreement;

/// A candidate, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgedCandidate {
    /// The name that it has or would have had.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub principal_type: String,
    /// Its body.
    pub body: String,
    /// How often it would be called.
    pub uses: u64,
    /// What the gates measured and decided.
    pub judgement: Judgement,
}

/// An entry that was removed again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrunedEntry {
    /// Its name.
    pub name: String,
    /// How often it was called.
    pub uses: u64,
    /// Why it went.
    pub reason: PruneReason,
}

/// What one refactoring came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refactored {
    /// F_t.
    pub library: Library,
    /// The description length before, in nats.
    pub before: DescriptionLength,
    /// After pruning.
    pub after: DescriptionLength,
    /// ε_t.
    pub epsilon: f64,
    /// Every candidate.
    pub candidates: Vec<JudgedCandidate>,
    /// What was pruned.
    pub pruned: Vec<PrunedEntry>,
    /// Why it ended.
    pub end: StepEnd,
    /// The training programs, rewritten.
    pub programs: Vec<String>,
}

/// How programs came out of the grammatical compiler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rewriting {
    /// Demonstrations, held-out ones too.
    pub demonstrations: usize,
    /// Those of which the task or the motion calls the library.
    pub rewritten: usize,
    /// Entries of the library that are called.
    pub entries_used: usize,
    /// Entries of the library.
    pub entries: usize,
}

/// A policy after phase B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyResult {
    /// Which programs it was trained on, such as `with library`.
    pub name: String,
    /// Held-out figures of its heads.
    pub measures: Vec<Measure>,
    /// How programs were rewritten; `None` for a policy without programs.
    pub rewriting: Option<Rewriting>,
    /// The number of tokens that its heads know.
    pub vocabulary: usize,
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSummary {
    /// The dataset's name.
    pub dataset: String,
    /// The labels that training used, in words; `None` if it used none.
    pub labels: Option<String>,
    /// The numbers of training and held-out demonstrations.
    pub demonstrations: (usize, usize),
    /// Segments of the training demonstrations.
    pub segments: usize,
    /// Skills.
    pub skills: usize,
    /// Skills of held-out frames against tasks.
    pub skill_tasks: Agreement,
    /// Skills of held-out frames against phases.
    pub skill_phases: Option<skills::PhaseScores>,
    /// Classes of held-out segments against phases, and those of a matched baseline; `None` without phases.
    pub classes: Option<MatchedScores>,
    /// How well the form of D_φ that the loop uses agrees with Monte Carlo.
    pub kernel: Option<KernelAgreement>,
    /// The error of replayed programs against the recording, over held-out demonstrations.
    pub replay: skills::ReplayScores,
    /// Instructions that the grammar does not know.
    pub unknown_instructions: Vec<String>,
    /// The policy of each iteration t, trained on programs written with F_{t−1}.
    pub policies: Vec<PolicyResult>,
    /// Refactoring, by iteration.
    pub refactor: Vec<Refactored>,
    /// The policies that are compared: with the last library, without a library, without programs. All have the same data,
    /// sizes, start and number of steps.
    pub arms: Vec<PolicyResult>,
}
