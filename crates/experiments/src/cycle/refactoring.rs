//! One step of sleep: programs of demonstrations, candidates through the gates, then pruning.
//!
//! Programs stay terms from one iteration to the next ([`Grown::programs`]); text is written into the summary alone, and read
//! from there by [`read`] when a run is resumed.

use std::sync::atomic::{AtomicBool, Ordering};

use compression::{
    Candidate, EntryKinds, Library, PosteriorConfig, Programs, PruneConfig, RefactorConfig, Strategy, Verdict,
    held_out_length, posterior, prune, refactor,
};

use super::corpus::{Corpus, Subject};
use super::demonstrations::Demonstrations;
use super::gates::{GateSettings, Gates, Judgement, RecordedCalls};
use super::settings::{CycleSettings, RefactorSettings};
use super::summary::{HeldOutDescription, JudgedCandidate, PrunedEntry, Refactored};
use crate::error::Result;

/// F_t, and the programs that call it.
pub struct Grown {
    /// The result as it is stored.
    pub summary: Refactored,
    /// The training programs, rewritten with F_t.
    pub programs: Programs,
}

/// F_t from the programs as F_{t−1} left them, those that the calls are about; `last` is `None` for F_0, which is empty.
/// `None` if the user interrupted it.
pub fn grown(
    calls: &RecordedCalls<'_>,
    gates: &Gates<'_>,
    last: Option<&Programs>,
    settings: &CycleSettings,
    iteration: u32,
    stop: Option<&AtomicBool>,
    judged: &mut dyn FnMut(&Candidate, &Judgement),
) -> Result<Option<Grown>> {
    let first = match last {
        Some(_) => None,
        None => Some(calls.corpus.bound(&Library::new(), calls.subjects)?),
    };
    let Some(programs) = last.or(first.as_ref()) else { return Ok(None) };
    let is_stopped = || stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
    let mut failed = None;
    let step = refactor(programs, &config(&settings.refactor, &settings.gates, iteration), |candidate, _| {
        let verdict = if failed.is_some() || is_stopped() { Ok(None) } else { gates.judge(candidate).map(Some) };
        match verdict {
            Ok(Some(judgement)) => {
                judged(candidate, &judgement);
                Verdict { admitted: judgement.admitted, figures: Some(judgement) }
            }
            Ok(None) => Verdict { admitted: false, figures: None },
            Err(error) => {
                failed = Some(error);
                Verdict { admitted: false, figures: None }
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    if is_stopped() {
        return Ok(None);
    }
    let min_probability = settings.refactor.min_probability;
    let pruning = prune(&step.programs, PruneConfig { min_probability, ..PruneConfig::default() })?;
    let shares = posterior(&pruning.programs, PosteriorConfig::default())?;
    let programs = pruning.programs.annotated(&shares);
    let removed = pruning.removed.into_iter();
    let summary = Refactored {
        library: programs.library().clone(),
        before: step.before,
        after: pruning.after,
        epsilon: gates.scene.epsilon,
        candidates: step.judged.into_iter().filter_map(judged_candidate).collect(),
        not_proposed: step.not_proposed,
        pruned: removed
            .map(|entry| PrunedEntry {
                name: entry.name,
                uses: entry.uses,
                share: Some(entry.share),
                reason: entry.reason,
            })
            .collect(),
        kinds: EntryKinds::of(&programs),
        held_out: held_out(calls.corpus, calls.demonstrations, calls.subjects, &programs)?,
        end: step.end,
        search: step.stop,
        programs: programs.texts(),
    };
    Ok(Some(Grown { summary, programs }))
}

/// The programs of a refactoring that was written before.
pub fn read(corpus: &Corpus, written: &Refactored) -> Result<Programs> {
    Ok(Programs::read(&corpus.store, &corpus.base, &written.library, &written.programs)?)
}

/// The description length of the held-out demonstrations' programs with the library of the training programs and without it.
/// Held-out programs are about what training programs are about: motions, or tasks and motions. `None` if nothing is held out.
///
/// The cheapest rewriting is measured, whatever the strategy of the compiler is: a description length is that of the
/// shortest description.
pub fn held_out(
    corpus: &Corpus,
    demonstrations: &Demonstrations,
    subjects: &[Subject],
    training: &Programs,
) -> Result<Option<HeldOutDescription>> {
    let is_about = |wanted: &Subject| {
        let kind = std::mem::discriminant(wanted);
        subjects.iter().any(|subject| std::mem::discriminant(subject) == kind)
    };
    let which = demonstrations.which(true);
    let held_out: Vec<Subject> = Corpus::subjects(&which).into_iter().filter(is_about).collect();
    if held_out.is_empty() {
        return Ok(None);
    }
    let found = held_out_length(training, &corpus.programs(&held_out), Strategy::Cheapest)?;
    let (without_library, with_library) = found.totals();
    Ok(Some(HeldOutDescription { demonstrations: which.len(), without_library, with_library }))
}

/// How candidates are looked for. The one place that says so.
fn config(settings: &RefactorSettings, gates: &GateSettings, iteration: u32) -> RefactorConfig {
    RefactorConfig {
        iteration,
        max_admitted: settings.max_admitted,
        max_judged: settings.max_judged,
        min_gain: if gates.length { gates.min_gain } else { 0.0 },
        max_arity: settings.max_arity,
        threads: rayon::current_num_threads(),
        max_steps: Some(settings.max_steps),
        ..RefactorConfig::default()
    }
}

fn judged_candidate(one: compression::Judged<Option<Judgement>>) -> Option<JudgedCandidate> {
    let Candidate { name, body, principal_type, parameters, uses, .. } = one.candidate;
    Some(JudgedCandidate { name, body, principal_type, parameters, uses, judgement: one.verdict.figures? })
}
