//! Skills of held-out demonstrations: against true phases, and against what was recorded.

use std::ops::Range;

use skills::{Episode, PhaseScores, ReplayScores, score_phases, score_replay};

use super::corpus::Corpus;
use super::demonstrations::Demonstrations;
use crate::error::Result;
use crate::prepared::Prepared;
use crate::scores::{Agreement, agreement, tolerance};

/// Classes and cuts of held-out segments against phases, over frames, where the dataset has phases.
pub fn skill_phases(
    prepared: &Prepared,
    demonstrations: &Demonstrations,
    corpus: &Corpus,
) -> Result<Option<PhaseScores>> {
    let Some(phases) = prepared.source.dataset.columns().labels.get("phase") else { return Ok(None) };
    let (held_out, segments) = held_out_segments(demonstrations);
    let truth: Vec<&[i64]> = held_out.iter().map(|at| &phases[demonstrations.all[*at].frames.clone()]).collect();
    let calls = held_out.iter().map(|at| corpus.calls[*at].iter().map(|call| call.skill.0 as i64).collect());
    let classes: Vec<Vec<i64>> = calls.collect();
    Ok(Some(score_phases(&truth, &segments, &classes, tolerance(demonstrations.layout.fps))?))
}

/// Skills of held-out frames against tasks.
pub fn skill_tasks(prepared: &Prepared, demonstrations: &Demonstrations, corpus: &Corpus) -> Result<Agreement> {
    let tasks = &prepared.source.dataset.columns().tasks;
    let (mut truth, mut found) = (Vec::new(), Vec::new());
    for at in demonstrations.which(true) {
        for (frames, call) in demonstrations.all[at].segments.iter().zip(&corpus.calls[at]) {
            truth.extend_from_slice(&tasks[frames.clone()]);
            found.extend(frames.clone().map(|_| call.skill.0 as i64));
        }
    }
    agreement(&truth, &found)
}

/// How near replayed programs are to what was recorded, over held-out demonstrations.
pub fn replay(demonstrations: &Demonstrations, corpus: &Corpus) -> Result<ReplayScores> {
    let (held_out, segments) = held_out_segments(demonstrations);
    let episodes: Vec<Episode> = held_out.iter().map(|at| demonstrations.episodes[*at].clone()).collect();
    let calls: Vec<_> = held_out.iter().map(|at| corpus.calls[*at].clone()).collect();
    Ok(score_replay(&corpus.alphabet, &episodes, &segments, &calls)?)
}

/// Held-out segments, by demonstration, within their episodes.
pub(super) fn held_out_segments(demonstrations: &Demonstrations) -> (Vec<usize>, Vec<Vec<Range<usize>>>) {
    let held_out = demonstrations.which(true);
    let segments = held_out.iter().map(|at| demonstrations.rows_of(*at)).collect();
    (held_out, segments)
}
