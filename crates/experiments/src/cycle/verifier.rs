//! Rollouts that are longer than the world model's horizon: imagined window by window, each from where the last one ended.

use candle_core::{DType, Device, Tensor};
use models::kernel::Imagination;
use models::world_model::Start;
use models::{FragmentTable, WorldModel, noise};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use crate::error::Result;

/// Actions to be done from a frame of the dataset.
pub(super) struct Trial {
    /// Where it starts.
    pub(super) frame: usize,
    /// Rows of actions, standardised, row by row.
    pub(super) actions: Vec<f32>,
}

/// V = Σ_{t<T} γᵗ r̂_t + γᵀ Ĝ_{T−1} of each trial, T being its own length. Trial i draws noise i, so that two lists of trials
/// can be compared pair by pair.
pub(super) fn values(model: &WorldModel, table: &FragmentTable, trials: &[Trial], seed: u64) -> Result<Vec<f64>> {
    let Some(longest) = trials.iter().map(|trial| length(trial, table)).max() else { return Ok(Vec::new()) };
    let (config, width, device) = (model.config(), table.widths().actions, table.device());
    let frames: Vec<usize> = trials.iter().map(|trial| trial.frame).collect();
    let seen = table.gather(&frames, 1)?;
    let mut start = Start { features: seen.features.squeeze(1)?, states: seen.states.squeeze(1)? };
    let (mut sums, mut powers) = (vec![0.0; trials.len()], vec![1.0; trials.len()]);
    for first in (0..longest).step_by(config.horizon) {
        let steps = config.horizon.min(longest - first);
        let actions = window(trials, first, steps, width, device)?;
        let noise = draws(trials.len(), (first, steps), config.latent, seed, device)?;
        let imagined = Imagination::imagine(model, &start, &actions, Some(&noise))?;
        let (rewards, returns) = (rows(&imagined.rewards)?, rows(&imagined.returns)?);
        for (at, trial) in trials.iter().enumerate() {
            let own = length(trial, table);
            for step in 0..steps.min(own.saturating_sub(first)) {
                sums[at] += powers[at] * f64::from(rewards[at][step]);
                powers[at] *= config.discount;
                if first + step + 1 == own {
                    sums[at] += powers[at] * f64::from(returns[at][step]);
                }
            }
        }
        let last = |x: &Tensor| -> Result<Tensor> { Ok(x.narrow(1, steps - 1, 1)?.squeeze(1)?.contiguous()?) };
        start = Start { features: last(&imagined.features)?, states: last(&imagined.states)? };
    }
    Ok(sums)
}

fn length(trial: &Trial, table: &FragmentTable) -> usize {
    trial.actions.len() / table.widths().actions.max(1)
}

/// Rows `first..first + steps` of all trials; the last row again where a trial is over, which nothing looks at.
fn window(trials: &[Trial], first: usize, steps: usize, width: usize, device: &Device) -> Result<Tensor> {
    let mut values = Vec::with_capacity(trials.len() * steps * width);
    for trial in trials {
        let last = (trial.actions.len() / width).saturating_sub(1);
        for step in first..first + steps {
            let at = step.min(last) * width;
            values.extend_from_slice(&trial.actions[at..at + width]);
        }
    }
    Ok(Tensor::from_vec(values, (trials.len(), steps, width), &Device::Cpu)?.to_device(device)?)
}

/// Noise by trial and step alone: what else is rolled beside a trial changes nothing for it.
fn draws(trials: usize, (first, steps): (usize, usize), latent: usize, seed: u64, device: &Device) -> Result<Tensor> {
    let mut values = Vec::with_capacity(trials * steps * latent);
    for trial in 0..trials {
        let mut name = b"verifier".to_vec();
        name.extend((trial as u64).to_le_bytes());
        name.extend((first as u64).to_le_bytes());
        let mut generator = ChaCha8Rng::seed_from_u64(noise::mix(seed, &name));
        values.extend(noise::normal(&mut generator, steps * latent));
    }
    Ok(Tensor::from_vec(values, (trials, steps, latent), &Device::Cpu)?.to_device(device)?)
}

fn rows(x: &Tensor) -> Result<Vec<Vec<f32>>> {
    Ok(x.to_dtype(DType::F32)?.to_vec2()?)
}
