//! The results of a run as they are stored.

use compression::{DescriptionLength, EntryKinds, Library, NotProposed, Parameter, PruneReason, Share, StepEnd, Stop};
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
    /// Its parameters, with names and types.
    pub parameters: Vec<Parameter>,
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
    /// Its share of the calls that the programs made.
    pub share: Option<Share>,
    /// Why it went.
    pub reason: PruneReason,
}

/// The description length of the held-out demonstrations' programs under a grammar that was estimated on the training
/// programs, in nats. The library itself is in neither figure: it was paid for in training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldOutDescription {
    /// Held-out demonstrations.
    pub demonstrations: usize,
    /// All programs together, without the library.
    pub without_library: f64,
    /// All programs together, with the library.
    pub with_library: f64,
}

impl HeldOutDescription {
    /// Without the library and with it, for each demonstration.
    pub fn per_demonstration(&self) -> (f64, f64) {
        let count = self.demonstrations.max(1) as f64;
        (self.without_library / count, self.with_library / count)
    }
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
    /// Candidates that the search found and no gate has seen, because they save too few nats.
    pub not_proposed: NotProposed,
    /// What was pruned.
    pub pruned: Vec<PrunedEntry>,
    /// How many entries of each kind F_t has.
    pub kinds: EntryKinds,
    /// What F_t is worth on held-out demonstrations; none without any.
    pub held_out: Option<HeldOutDescription>,
    /// Why it ended.
    pub end: StepEnd,
    /// Why the searches stopped.
    pub search: Stop,
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
