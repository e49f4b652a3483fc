//! What the return gate rejects, where it is known what it should reject.

use dataset::EpisodeId;
use models::noise::mix;
use serde::{Deserialize, Serialize};

use super::{Episodes, ReturnsOptions, Window};
use crate::cycle::gates::{Replacement, Returns};
use crate::cycle::verifier::Verifier;
use crate::error::Result;

/// What the calls of successful episodes are replaced by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Standing still: must be rejected.
    Stillness,
    /// The actions of a failed episode of the same task, at the same share of its length: must be rejected.
    FailedEpisode,
    /// The actions of another successful episode of the same task, at the same share of its length: should be admitted.
    SuccessfulEpisode,
}

/// What the gate says of one kind of replacement. Calls of one task are one candidate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Worth {
    /// What calls are replaced by.
    pub replacement: Kind,
    /// How many candidates there are: tasks with successful held-out episodes and with such a replacement.
    pub candidates: usize,
    /// How many of them the gate rejects.
    pub rejected: usize,
    /// How many of them it would reject by ε alone, without the control.
    pub rejected_by_margin: usize,
    /// Calls of all candidates.
    pub calls: usize,
    /// The mean size of the change of return over candidates, as a share of the largest return; `None` without candidates.
    pub change: Option<f64>,
    /// The mean change that standing still makes at the same calls; `None` without candidates.
    pub control: Option<f64>,
}

/// Judges all kinds of replacement.
pub(super) fn worth(
    verifier: &Verifier<'_>,
    episodes: &Episodes<'_>,
    options: ReturnsOptions<'_>,
    largest_return: f64,
) -> Result<Vec<Worth>> {
    let gates = &options.cycle.gates;
    let gate = Returns::new(gates, options.cycle.refactor.max_judged, mix(options.seed, b"worth"));
    let windows = episodes.windows(options.windows);
    let mut tasks: Vec<u32> = episodes.spans.iter().map(|span| span.task.0).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let mut found = Vec::new();
    for replacement in [Kind::Stillness, Kind::FailedEpisode, Kind::SuccessfulEpisode] {
        let mut worth = Worth {
            replacement,
            candidates: 0,
            rejected: 0,
            rejected_by_margin: 0,
            calls: 0,
            change: None,
            control: None,
        };
        for task in &tasks {
            let of_task =
                |window: &&Window| episodes.spans[window.episode].task.0 == *task && episodes.succeeds(window.episode);
            let calls = windows.iter().filter(of_task).enumerate();
            let replaced: Vec<Replacement> = calls
                .filter_map(|(call, window)| episodes.replaced(window, call, replacement, gates.rollout_steps))
                .collect();
            let Some(change) = gate.change(&replaced, verifier, largest_return)? else { continue };
            worth.candidates += 1;
            worth.calls += replaced.len();
            worth.rejected += usize::from(gate.figure(&change).rejects());
            let by_margin = change.test.bound.is_none_or(|bound| bound >= gates.return_margin);
            worth.rejected_by_margin += usize::from(by_margin);
            worth.change = Some(worth.change.unwrap_or(0.0) + change.test.size);
            worth.control = Some(worth.control.unwrap_or(0.0) + change.control);
        }
        let mean = |sum: f64| sum / worth.candidates as f64;
        (worth.change, worth.control) = (worth.change.map(mean), worth.control.map(mean));
        found.push(worth);
    }
    Ok(found)
}

impl Episodes<'_> {
    /// A call with its replacement, `steps` long at most; `None` where the task has no episode of that kind. Calls take turns
    /// among the episodes that could replace them, held-out ones first.
    fn replaced(&self, window: &Window, call: usize, kind: Kind, steps: usize) -> Option<Replacement> {
        let frames = window.frames.start..window.frames.end.min(window.frames.start + steps);
        let recorded = self.actions.rows(frames.clone()).to_vec();
        let still = self.layout.stillness(&recorded[..self.actions.width]).repeat(frames.len());
        let instead = match kind {
            Kind::Stillness => still.clone(),
            Kind::FailedEpisode => self.taken_from_another(window, call, steps, false)?,
            Kind::SuccessfulEpisode => self.taken_from_another(window, call, steps, true)?,
        };
        Some(Replacement { frame: frames.start, recorded, instead, still })
    }

    /// Actions of another episode of the same task and a given outcome, from the same share of its length on.
    fn taken_from_another(&self, window: &Window, call: usize, steps: usize, success: bool) -> Option<Vec<f32>> {
        let own = &self.spans[window.episode];
        let fits =
            |at: &usize| *at != window.episode && self.spans[*at].task == own.task && self.succeeds(*at) == success;
        let those = |of: &[EpisodeId]| -> Vec<usize> { of.iter().map(|episode| episode.at()).filter(fits).collect() };
        let held_out = those(self.held_out);
        let others = if held_out.is_empty() { those(self.train) } else { held_out };
        let other = &self.spans[*others.get(call % others.len().max(1))?].frames;
        let share = (window.frames.start - own.frames.start) * other.len() / own.frames.len().max(1);
        let start = other.start + share.min(other.len().saturating_sub(1));
        Some(self.actions.rows(start..other.end.min(start + steps)).to_vec())
    }
}
