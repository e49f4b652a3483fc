//! One step of sleep: programs of demonstrations, candidates through the gates, then pruning.

use std::sync::atomic::{AtomicBool, Ordering};

use compression::{
    Candidate, Library, PosteriorConfig, PruneConfig, RefactorConfig, Verdict, posterior, prune, refactor,
};
use language::{TermId, TermStore, parse};

use super::corpus::Corpus;
use super::gates::{GateSettings, Gates, Judgement, RecordedCalls};
use super::settings::{CycleSettings, RefactorSettings};
use super::summary::{JudgedCandidate, PrunedEntry, Refactored};
use crate::error::{Error, Result};

/// F_t from F_{t−1} and the programs as that left them, those that the calls are about. `None` if it was stopped.
pub fn grown(
    calls: &RecordedCalls<'_>,
    gates: &Gates<'_>,
    last: Option<&Refactored>,
    settings: &CycleSettings,
    iteration: u32,
    stop: Option<&AtomicBool>,
    tell: &mut dyn FnMut(&Candidate, &Judgement),
) -> Result<Option<Refactored>> {
    let corpus = calls.corpus;
    let told = || stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
    let nothing = Library::new();
    let library = last.map_or(&nothing, |last| &last.library);
    let (store, programs) = match last {
        Some(last) => parsed(corpus, library, &last.programs)?,
        None => (corpus.store.clone(), corpus.programs(calls.subjects)),
    };
    let mut failed = None;
    let config = config(&settings.refactor, &settings.gates, iteration);
    let step = refactor(&store, &corpus.base, library, &programs, &config, |candidate| {
        let verdict = if failed.is_some() || told() { Ok(None) } else { gates.judge(candidate).map(Some) };
        match verdict {
            Ok(Some(judgement)) => {
                tell(candidate, &judgement);
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
    if told() {
        return Ok(None);
    }
    let (store, programs) = parsed(corpus, &step.library, &step.programs)?;
    let pruning = PruneConfig { min_uses: settings.refactor.min_uses, ..PruneConfig::default() };
    let pruning = prune(&store, &corpus.base, &step.library, &programs, pruning)?;
    let (store, programs) = parsed(corpus, &pruning.library, &pruning.programs)?;
    let shares = posterior(&store, &corpus.base, &pruning.library, &programs, PosteriorConfig::default())?;
    let removed = pruning.removed.into_iter();
    Ok(Some(Refactored {
        library: shares.annotate(&pruning.library),
        before: step.before,
        after: pruning.after,
        epsilon: gates.scene.epsilon,
        candidates: step.judged.into_iter().filter_map(judged).collect(),
        pruned: removed.map(|entry| PrunedEntry { name: entry.name, uses: entry.uses, reason: entry.reason }).collect(),
        end: step.end,
        programs: pruning.programs,
    }))
}

/// Programs in concrete syntax as terms, in a store that extends the corpus's.
pub(super) fn parsed(corpus: &Corpus, library: &Library, programs: &[String]) -> Result<(TermStore, Vec<TermId>)> {
    let mut store = corpus.store.clone();
    let signature = library.define(&mut store, &corpus.base)?;
    let mut terms = Vec::with_capacity(programs.len());
    for text in programs {
        let parsed = parse(&mut store, &signature, text);
        let refused = |error| Error::Mismatch(format!("a rewritten program does not parse: {error:?}"));
        terms.push(parsed.map_err(refused)?.term);
    }
    Ok((store, terms))
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

fn judged(one: compression::Judged<Option<Judgement>>) -> Option<JudgedCandidate> {
    let Candidate { name, body, principal_type, uses, .. } = one.candidate;
    Some(JudgedCandidate { name, body, principal_type, uses, judgement: one.verdict.figures? })
}
