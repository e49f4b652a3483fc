//! What a run comes to, as it is written.

use compression::{DescriptionLength, Library, PruneReason, StepEnd};
use serde::{Deserialize, Serialize};

use super::gates::Judgement;
use super::wake::WakeScores;
use crate::scores::Agreement;

/// What sleep found: k_χ's clusters of the probe, and classes of segments, against what is true.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SleepScores {
    /// k_χ's clusters of the probe against tasks.
    pub task: Agreement,
    /// The same against phases.
    pub phase: Option<Agreement>,
}

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

/// One wake phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WakeResult {
    /// Held-out figures.
    pub scores: WakeScores,
    /// How programs were rewritten.
    pub rewriting: Rewriting,
    /// Tokens that the models know.
    pub vocabulary: usize,
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSummary {
    /// The dataset's name.
    pub dataset: String,
    /// Demonstrations that were learned from, and held-out ones.
    pub demonstrations: (usize, usize),
    /// Segments of the training demonstrations.
    pub segments: usize,
    /// Skills.
    pub skills: usize,
    /// Skills of held-out frames against tasks.
    pub skill_tasks: Agreement,
    /// Skills of held-out frames against phases.
    pub skill_phases: Option<skills::PhaseScores>,
    /// How near replayed programs are to what was recorded, over held-out demonstrations.
    pub replay: skills::ReplayScores,
    /// Instructions that the grammar does not know.
    pub unknown_instructions: Vec<String>,
    /// Wake, by iteration.
    pub wake: Vec<WakeResult>,
    /// Sleep, by iteration.
    pub sleep: Vec<SleepScores>,
    /// Refactoring, by iteration.
    pub refactor: Vec<Refactored>,
    /// The policy with the last library.
    pub with_library: WakeResult,
    /// The policy without a library, from the same start and as long.
    pub without_library: WakeResult,
}
