//! Imagined against true returns: in a world whose returns are known, and with a tiny world model on the embedded dataset.

use candle_core::{Device, Tensor};
use dataset::normalize::{Normalization, NormalizationKind};
use dataset::{EpisodeId, EpisodeSpan, Matrix, TaskId};
use experiments::cycle::settings::CycleSettings;
use experiments::cycle::verifier::{Starts, Verifier};
use experiments::resolve;
use experiments::returns::{Comparison, Episodes, Kind, ReturnsOptions, ReturnsReport, compare, compare_returns};
use models::FragmentBatch;
use models::kernel::Imagination;
use models::world_model::{Imagined, Start};
use skills::ActionLayout;

use super::tiny::tiny;

const DISCOUNT: f64 = 0.9;
/// Steps of each episode.
const STEPS: usize = 10;
const WINDOWS: usize = 5;

/// The first column of an action is progress, and the task is solved by a progress of 0.95 in all: reward 1 at that step, once.
/// Features are the progress so far. `heeds` is off for a world model that knows only the time: it expects full speed of everyone.
struct Progress {
    so_far: Vec<f32>,
    heeds: bool,
}

impl Starts for Progress {
    fn starts(&self, frames: &[usize]) -> experiments::Result<Start> {
        let values: Vec<f32> = frames.iter().map(|frame| self.so_far[*frame]).collect();
        let features = Tensor::from_vec(values, (frames.len(), 1), &Device::Cpu)?;
        Ok(Start { states: features.clone(), features })
    }
}

impl Imagination for Progress {
    fn latent_width(&self) -> usize {
        1
    }

    fn encode_fragment(&self, fragments: &FragmentBatch) -> models::Result<Tensor> {
        Ok(fragments.actions.mean(1)?)
    }

    fn imagine(&self, start: &Start, actions: &Tensor, _: Option<&Tensor>) -> models::Result<Imagined> {
        let (batch, steps, _) = actions.dims3()?;
        let (starts, actions): (Vec<Vec<f32>>, Vec<Vec<Vec<f32>>>) = (start.features.to_vec2()?, actions.to_vec3()?);
        let (mut progress, mut rewards) = (Vec::new(), Vec::new());
        for (start, actions) in starts.iter().zip(actions) {
            let mut now = start[0];
            for action in actions {
                let next = now + if self.heeds { action[0] } else { 0.1 };
                rewards.push(f32::from(u8::from(now < 0.95 && next >= 0.95)));
                progress.push(next);
                now = next;
            }
        }
        let progress = Tensor::from_vec(progress, (batch, steps, 1), &Device::Cpu)?;
        let zeros = Tensor::zeros_like(&progress)?;
        Ok(Imagined {
            means: progress.clone(),
            deviations: zeros.clone(),
            latents: progress.clone(),
            features: progress.clone(),
            states: progress,
            rewards: Tensor::from_vec(rewards, (batch, steps), &Device::Cpu)?,
            // Windows reach the end of their episode, after which nothing comes.
            returns: zeros.squeeze(2)?,
        })
    }
}

/// Eight episodes of each of two tasks, the last four of which are held out; every second one is slow and fails.
fn compared(heeds: bool) -> Comparison {
    let (mut so_far, mut values, mut rewards, mut spans) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for episode in 0..16 {
        let speed: f32 = if episode % 2 == 0 { 0.1 } else { 0.04 };
        for step in 0..STEPS {
            so_far.push(step as f32 * if heeds { speed } else { 0.1 });
            values.extend([speed, episode as f32]);
            rewards.push(if episode % 2 == 0 && step + 1 == STEPS { 1.0 } else { 0.0 });
        }
        spans.push(EpisodeSpan { frames: episode * STEPS..(episode + 1) * STEPS, task: TaskId(episode as u32 / 8) });
    }
    let held_out: Vec<EpisodeId> = [4, 5, 6, 7, 12, 13, 14, 15].map(EpisodeId).to_vec();
    let train: Vec<EpisodeId> = (0..16).map(EpisodeId).filter(|episode| !held_out.contains(episode)).collect();
    let world = Progress { so_far, heeds };
    let identity = Normalization { kind: NormalizationKind::MeanStd, offset: vec![0.0; 2], scale: vec![1.0; 2] };
    let verifier = Verifier {
        model: &world,
        starts: &world,
        actions: &identity,
        horizon: 4,
        discount: DISCOUNT,
        predicts_returns: true,
    };
    let mut layout = ActionLayout { width: 2, grippers: Vec::new(), ..ActionLayout::libero() };
    layout.groups[0].columns = vec![0, 1];
    let episodes = Episodes {
        spans: &spans,
        held_out: &held_out,
        train: &train,
        actions: &Matrix { width: 2, values },
        rewards: &rewards,
        layout: &layout,
    };
    let cycle = CycleSettings::default();
    compare(&verifier, &episodes, ReturnsOptions { cycle: &cycle, windows: WINDOWS, seed: 1 }).unwrap()
}

#[test]
fn a_verifier_that_is_right_is_calibrated_and_its_gate_rejects_failures_alone() {
    let found = compared(true);
    assert_eq!((found.training, found.successes.episodes, found.failures.episodes), ((4, 4), 4, 4));
    assert_eq!(found.largest_return, 1.0);
    // Windows start at steps 0, 2, 4, 6 and 8 of ten, and the reward comes with the last step.
    let truth = (0..WINDOWS).map(|at| DISCOUNT.powi(9 - 2 * at as i32)).sum::<f64>() / WINDOWS as f64;
    let won = found.successes.errors.unwrap();
    assert!((won.truth - truth).abs() < 1e-6 && won.mean_absolute_error < 1e-6 && won.count == 4 * WINDOWS);
    let lost = found.failures.errors.unwrap();
    assert_eq!((lost.truth, lost.imagined), (0.0, 0.0));
    assert!(found.calibration.expected_calibration_error < 1e-6 && found.calibration.pearson.unwrap() > 0.999_999);
    assert_eq!((found.auc_windows, found.auc_episodes), (Some(1.0), Some(1.0)));
    assert_eq!(found.auc_by_place, [Some(1.0); WINDOWS]);
    let rejected: Vec<(Kind, usize, usize, usize)> = found
        .worth
        .iter()
        .map(|worth| (worth.replacement, worth.candidates, worth.rejected, worth.rejected_by_margin))
        .collect();
    assert_eq!(
        rejected,
        [(Kind::Stillness, 2, 2, 2), (Kind::FailedEpisode, 2, 2, 2), (Kind::SuccessfulEpisode, 2, 0, 0)]
    );
    assert_eq!((found.worth[0].calls, found.worth[2].change), (2 * 2 * WINDOWS, Some(0.0)));
}

/// It expects success of everyone, so it is right about successes, wrong about failures, and its gate sees no difference.
#[test]
fn a_verifier_that_ignores_actions_is_found_out() {
    let found = compared(false);
    assert!(found.successes.errors.unwrap().mean_absolute_error < 1e-6);
    assert!(found.failures.errors.unwrap().mean_error > 0.6, "{found:?}");
    assert_eq!(found.auc_windows, Some(0.5));
    assert!(found.calibration.expected_calibration_error > 0.1, "{found:?}");
    for worth in &found.worth {
        assert_eq!((worth.rejected_by_margin, worth.change), (0, Some(0.0)), "{worth:?}");
        // The control notices that this verifier cannot judge.
        assert_eq!((worth.rejected, worth.control), (worth.candidates, Some(0.0)), "{worth:?}");
    }
}

#[test]
fn a_world_model_is_compared_on_a_dataset_and_written_as_json() {
    let (prepared, teacher) = tiny();
    let sets = ["gates.rollouts=4", "gates.rollout_steps=12"].map(str::to_owned);
    let cycle: CycleSettings = resolve("tiny", &sets).unwrap();
    let options = ReturnsOptions { cycle: &cycle, windows: 3, seed: 2 };
    let report = compare_returns(&prepared, &teacher, options, &Device::Cpu).unwrap();
    let found = &report.found;
    assert_eq!((report.trained_on.as_str(), found.rollout_steps), ("libero_goal_mini", 12));
    // All of its episodes succeed, so nothing can be told apart.
    assert_eq!((found.successes.episodes, found.failures.episodes), (9, 0));
    assert_eq!((found.auc_windows, found.failures.errors), (None, None));
    assert_eq!(found.calibration.errors.count, 27);
    assert_eq!(found.worth.iter().map(|worth| worth.candidates).collect::<Vec<_>>(), [9, 0, 9]);
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<ReturnsReport>(&text).unwrap(), report);
    assert_eq!(compare_returns(&prepared, &teacher, options, &Device::Cpu).unwrap(), report);
}
