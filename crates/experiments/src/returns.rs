//! Imagined against true returns on held-out episodes, and what the return gate is worth with a verifier.
//!
//! **Calibration.** Every held-out episode has windows that start at even places. The recorded actions of a window are imagined
//! from its first frame, and V̂ = Σ_{t<T} γᵗ r̂_t + γᵀ Ĝ_{T−1} is compared with the discounted return to go that was recorded. An
//! episode is successful if one of its rewards is above 0; V̂ should tell successful episodes from failed ones (AUC), and be as
//! large as the true return on average where it has a certain size (reliability, expected calibration error).
//!
//! **Worth.** The gate exists to reject replacements that change returns. Its calls are the windows of successful held-out episodes,
//! those of one task together are a candidate, and [`Kind`] is what they are replaced by. A good verifier rejects standing still and
//! the actions of failed episodes, and admits the actions of other successful ones.

mod calibration;
mod plot;
mod worth;

use std::ops::Range;

use candle_core::Device;
use dataset::{EpisodeId, EpisodeSpan, Matrix};
use models::fragments::{returns_to_go, rewards_of};
use serde::{Deserialize, Serialize};
use skills::ActionLayout;

pub use self::calibration::{Bin, Calibration, Errors, auc};
pub use self::plot::calibration_plot;
pub use self::worth::{Kind, Worth};
use crate::amortizer_phase::Teacher;
use crate::cycle::settings::CycleSettings;
use crate::cycle::verifier::{Trial, Verifier};
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use subtasks::robot::action_layout;

/// How returns are compared.
#[derive(Clone, Copy)]
pub struct ReturnsOptions<'a> {
    /// The gate whose worth is measured, and how long rollouts are.
    pub cycle: &'a CycleSettings,
    /// Windows of each episode.
    pub windows: usize,
    /// Seed of rollouts and resamples.
    pub seed: u64,
}

/// Recorded episodes as plain numbers.
#[derive(Clone, Copy)]
pub struct Episodes<'a> {
    /// The frames and the task of each.
    pub spans: &'a [EpisodeSpan],
    /// Those that the verifier has not learned from.
    pub held_out: &'a [EpisodeId],
    /// The training episodes; episodes in neither list are set aside.
    pub train: &'a [EpisodeId],
    /// Actions of all frames.
    pub actions: &'a Matrix,
    /// The reward of each frame.
    pub rewards: &'a [f32],
    /// Which column of an action is what.
    pub layout: &'a ActionLayout,
}

/// Held-out episodes of one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// How many episodes.
    pub episodes: usize,
    /// Imagined against true returns of their windows; `None` without windows.
    pub errors: Option<Errors>,
}

/// The comparison for one verifier on one dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReturnsReport {
    /// The dataset's name.
    pub dataset: String,
    /// The name of the dataset that the world model was trained on.
    pub trained_on: String,
    /// The hash of the world model's weights.
    pub world_model: String,
    /// What was measured.
    pub found: Comparison,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// γ.
    pub discount: f64,
    /// The largest return of the training episodes.
    pub largest_return: f64,
    /// Successful and failed training episodes of the dataset.
    pub training: (usize, usize),
    /// Windows of each episode.
    pub windows: usize,
    /// The most steps that are imagined from a window's first frame.
    pub rollout_steps: usize,
    /// Successful held-out episodes.
    pub successes: Outcome,
    /// Failed held-out episodes.
    pub failures: Outcome,
    /// Windows of all held-out episodes.
    pub calibration: Calibration,
    /// AUC of V̂ for telling windows of successful episodes from those of failed ones; `None` without either.
    pub auc_windows: Option<f64>,
    /// The same for episodes, by the mean V̂ of their windows.
    pub auc_episodes: Option<f64>,
    /// The same for windows at each place of an episode, from its start to its end.
    pub auc_by_place: Vec<Option<f64>>,
    /// What the return gate rejects.
    pub worth: Vec<Worth>,
}

/// Compares a world model's imagined returns with those of a dataset.
///
/// # Errors
/// On a world model of other features, one that has learned from what is held out or that predicts no returns, and on a dataset
/// without rewards.
pub fn compare_returns(
    prepared: &Prepared,
    teacher: &Teacher,
    options: ReturnsOptions<'_>,
    device: &Device,
) -> Result<ReturnsReport> {
    let loaded = &teacher.loaded;
    loaded.check(prepared)?;
    let record = &loaded.record;
    if !record.model.returns {
        return Err(Error::Mismatch(
            "the world model predicts no returns; train one on a dataset with rewards, with `model.returns=true`"
                .to_owned(),
        ));
    }
    let dataset = &prepared.source.dataset;
    let Some(rewards) = rewards_of(dataset) else {
        return Err(Error::Mismatch(format!(
            "`{}` has neither rewards nor successes, so there are no true returns to compare with; expected a column \
             `next.reward` or `next.success`",
            prepared.source.name
        )));
    };
    let table = prepared.table(record.scales.clone(), device, loaded.parameters.precision(), record.model.discount)?;
    let verifier = Verifier {
        model: &loaded.model,
        starts: &table,
        actions: &table.scales().actions,
        horizon: record.model.horizon,
        discount: record.model.discount,
        predicts_returns: true,
    };
    let layout = action_layout(&prepared.source.dataset, prepared.robot())?;
    let episodes = Episodes {
        spans: dataset.spans(),
        held_out: &prepared.split.held_out,
        train: &prepared.split.train,
        actions: &dataset.columns().actions,
        rewards: &rewards,
        layout: &layout,
    };
    Ok(ReturnsReport {
        dataset: prepared.source.name.clone(),
        trained_on: record.source.name.clone(),
        world_model: teacher.hash.clone(),
        found: compare(&verifier, &episodes, options)?,
    })
}

/// Compares imagined returns with recorded ones.
///
/// # Errors
/// If no episode is held out, and if no training episode has a return.
pub fn compare(verifier: &Verifier<'_>, episodes: &Episodes<'_>, options: ReturnsOptions<'_>) -> Result<Comparison> {
    let rollout_steps = options.cycle.gates.rollout_steps;
    let returns = returns_to_go(episodes.rewards, episodes.spans, verifier.discount);
    let training: Vec<usize> = episodes.train.iter().map(|episode| episode.at()).collect();
    let frames = training.iter().flat_map(|at| episodes.spans[*at].frames.clone());
    let largest_return = frames.map(|frame| f64::from(returns[frame])).fold(0.0, f64::max);
    let windows = episodes.windows(options.windows);
    if windows.is_empty() || largest_return <= 0.0 {
        return Err(Error::Mismatch(format!(
            "{} windows of held-out episodes, and the largest return of the training episodes is {largest_return}; expected \
             held-out episodes, and a return above 0 in one training episode at least",
            windows.len()
        )));
    }
    let trials: Vec<Trial> = windows.iter().map(|window| episodes.trial(window.frames.clone())).collect();
    let imagined = verifier.values(&trials, rollout_steps, options.seed)?;
    let truth = |window: &Window| {
        let frame = window.frames.start;
        f64::from(episodes.rewards[frame]) + verifier.discount * f64::from(returns[frame])
    };
    let pairs: Vec<(f64, f64)> = imagined.iter().zip(&windows).map(|(value, window)| (*value, truth(window))).collect();
    let of = |success: bool| -> Vec<usize> {
        (0..windows.len()).filter(|at| episodes.succeeds(windows[*at].episode) == success).collect()
    };
    let outcome = |success: bool| Outcome {
        episodes: episodes.held_out.iter().filter(|episode| episodes.succeeds(episode.at()) == success).count(),
        errors: Errors::of(&of(success).into_iter().map(|at| pairs[at]).collect::<Vec<_>>()),
    };
    let values = |success: bool, place: Option<usize>| -> Vec<f64> {
        let chosen = of(success).into_iter().filter(|at| place.is_none_or(|place| windows[*at].place == place));
        chosen.map(|at| imagined[at]).collect()
    };
    let means = |success: bool| -> Vec<f64> {
        let chosen = of(success);
        let by_episode = chosen.chunk_by(|one, other| windows[*one].episode == windows[*other].episode);
        by_episode.map(|some| some.iter().map(|at| imagined[*at]).sum::<f64>() / some.len() as f64).collect()
    };
    Ok(Comparison {
        discount: verifier.discount,
        largest_return,
        training: (
            training.iter().filter(|at| episodes.succeeds(**at)).count(),
            training.iter().filter(|at| !episodes.succeeds(**at)).count(),
        ),
        windows: options.windows,
        rollout_steps,
        successes: outcome(true),
        failures: outcome(false),
        calibration: Calibration::of(&pairs)?,
        auc_windows: auc(&values(true, None), &values(false, None)),
        auc_episodes: auc(&means(true), &means(false)),
        auc_by_place: (0..options.windows)
            .map(|place| auc(&values(true, Some(place)), &values(false, Some(place))))
            .collect(),
        worth: worth::worth(verifier, episodes, options, largest_return)?,
    })
}

/// A stretch of an episode, from one of its even places to its end.
struct Window {
    /// The episode, by its number in the dataset.
    episode: usize,
    /// The window's number within the episode.
    place: usize,
    /// Its frames.
    frames: Range<usize>,
}

impl Episodes<'_> {
    /// Windows of all held-out episodes at even places.
    fn windows(&self, count: usize) -> Vec<Window> {
        let of = |episode: &EpisodeId| {
            let frames = self.spans[episode.at()].frames.clone();
            let episode = episode.at();
            let window = move |place: usize| Window {
                episode,
                place,
                frames: frames.start + place * frames.len() / count.max(1)..frames.end,
            };
            (0..count).map(window).filter(|window| !window.frames.is_empty())
        };
        self.held_out.iter().flat_map(of).collect()
    }

    /// Whether an episode, by its number, is rewarded.
    fn succeeds(&self, episode: usize) -> bool {
        self.rewards[self.spans[episode].frames.clone()].iter().any(|reward| *reward > 0.0)
    }

    fn trial(&self, frames: Range<usize>) -> Trial {
        Trial { frame: frames.start, actions: self.actions.rows(frames).to_vec() }
    }
}
