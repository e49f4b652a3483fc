//! Rollouts that are longer than the world model's horizon: imagined window by window, each from where the last one ended.
//!
//! The verifier knows a world model by the trait [`Imagination`] and a dataset by the trait [`Starts`], so that both can be
//! replaced by a world in which everything is known.

use candle_core::{DType, Device, Tensor};
use dataset::normalize::Normalization;
use models::kernel::Imagination;
use models::world_model::Start;
use models::{FragmentTable, noise};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use crate::error::Result;

/// Rollouts that are imagined at once: memory for speed, not a change of results.
const AT_ONCE: usize = 512;

/// Where rollouts begin.
pub trait Starts {
    /// What is seen at some frames, `[frames, F]` and `[frames, S]`, standardised.
    fn starts(&self, frames: &[usize]) -> Result<Start>;
}

impl Starts for FragmentTable {
    fn starts(&self, frames: &[usize]) -> Result<Start> {
        let seen = self.gather(frames, 1)?;
        Ok(Start { features: seen.features.squeeze(1)?, states: seen.states.squeeze(1)? })
    }
}

/// A world model as the judge of what actions return.
#[derive(Clone, Copy)]
pub struct Verifier<'a> {
    /// M_φ.
    pub model: &'a dyn Imagination,
    /// The frames that rollouts begin at.
    pub starts: &'a dyn Starts,
    /// How actions are standardised for the model.
    pub actions: &'a Normalization,
    /// The most steps that the model imagines in one go.
    pub horizon: usize,
    /// γ of the returns that the model predicts.
    pub discount: f64,
    /// Whether the model predicts rewards and returns.
    pub predicts_returns: bool,
}

/// Actions to be executed from a frame of the dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The frame that it starts at.
    pub frame: usize,
    /// Rows of actions as they were recorded, row by row.
    pub actions: Vec<f32>,
}

impl Verifier<'_> {
    /// V = Σ_{t<T} γᵗ r̂_t + γᵀ Ĝ_{T−1} of each trial. T is the trial's own length, at most `steps`. Trial i draws noise i, so
    /// that two lists of trials can be compared pair by pair.
    pub fn values(&self, trials: &[Trial], steps: usize, seed: u64) -> Result<Vec<f64>> {
        let mut values = Vec::with_capacity(trials.len());
        for (chunk, some) in trials.chunks(AT_ONCE).enumerate() {
            values.extend(self.chunk(some, steps, (chunk * AT_ONCE, seed))?);
        }
        Ok(values)
    }

    /// The values of some trials, the first of which draws noise `first`.
    fn chunk(&self, trials: &[Trial], steps: usize, (first_trial, seed): (usize, u64)) -> Result<Vec<f64>> {
        let width = self.actions.offset.len().max(1);
        let standardised: Vec<Vec<f32>> = trials
            .iter()
            .map(|trial| {
                let mut rows = trial.actions[..trial.actions.len().min(steps * width)].to_vec();
                self.actions.apply(&mut rows);
                rows
            })
            .collect();
        let lengths: Vec<usize> = standardised.iter().map(|rows| rows.len() / width).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let frames: Vec<usize> = trials.iter().map(|trial| trial.frame).collect();
        let mut start = self.starts.starts(&frames)?;
        let device = start.states.device().clone();
        let (mut sums, mut powers) = (vec![0.0; trials.len()], vec![1.0; trials.len()]);
        for first in (0..longest).step_by(self.horizon.max(1)) {
            let steps = self.horizon.max(1).min(longest - first);
            let actions = window(&standardised, first, steps, width, &device)?;
            let named = (first_trial..first_trial + trials.len(), first);
            let noise = draws(named, steps, self.model.latent_width(), seed, &device)?;
            let imagined = self.model.imagine(&start, &actions, Some(&noise))?;
            let (rewards, returns) = (rows(&imagined.rewards)?, rows(&imagined.returns)?);
            for (at, own) in lengths.iter().enumerate() {
                for step in 0..steps.min(own.saturating_sub(first)) {
                    sums[at] += powers[at] * f64::from(rewards[at][step]);
                    powers[at] *= self.discount;
                    if first + step + 1 == *own {
                        sums[at] += powers[at] * f64::from(returns[at][step]);
                    }
                }
            }
            let last = |x: &Tensor| -> Result<Tensor> { Ok(x.narrow(1, steps - 1, 1)?.squeeze(1)?.contiguous()?) };
            start = Start { features: last(&imagined.features)?, states: last(&imagined.states)? };
        }
        Ok(sums)
    }
}

/// Rows `first..first + steps` of all trials; the last row again where a trial is over, which is not used.
fn window(trials: &[Vec<f32>], first: usize, steps: usize, width: usize, device: &Device) -> Result<Tensor> {
    let mut values = Vec::with_capacity(trials.len() * steps * width);
    let nothing = vec![0.0; width];
    for trial in trials {
        let last = (trial.len() / width).saturating_sub(1);
        for step in first..first + steps {
            let at = step.min(last) * width;
            values.extend_from_slice(trial.get(at..at + width).unwrap_or(&nothing));
        }
    }
    Ok(Tensor::from_vec(values, (trials.len(), steps, width), &Device::Cpu)?.to_device(device)?)
}

/// Noise by trial and step alone: a trial's noise does not depend on the other trials.
fn draws(
    (trials, first): (std::ops::Range<usize>, usize),
    steps: usize,
    latent: usize,
    seed: u64,
    device: &Device,
) -> Result<Tensor> {
    let count = trials.len();
    let mut values = Vec::with_capacity(count * steps * latent);
    for trial in trials {
        let mut name = b"verifier".to_vec();
        name.extend((trial as u64).to_le_bytes());
        name.extend((first as u64).to_le_bytes());
        let mut generator = ChaCha8Rng::seed_from_u64(noise::mix(seed, &name));
        values.extend(noise::normal(&mut generator, steps * latent));
    }
    Ok(Tensor::from_vec(values, (count, steps, latent), &Device::Cpu)?.to_device(device)?)
}

fn rows(x: &Tensor) -> Result<Vec<Vec<f32>>> {
    Ok(x.to_dtype(DType::F32)?.to_vec2()?)
}
