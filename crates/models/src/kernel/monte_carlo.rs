//! The Monte-Carlo reference: D_φ from real rollouts of the world model.
//!
//! Each fragment's first k actions are imagined from the same |s| starts, m times from each. From a start the rollouts give
//! V^τ(s), their mean return, and P^k(· given s, τ), either as the diagonal Gaussian with the moments of the m last priors,
//! mean = E m_i and variance = E σ_i² + Var m_i, or as the m last latents themselves. **m ≥ 2 rollouts draw noise. m = 1 does
//! not**: the rollout follows the means and P^k is its last prior, a deterministic stand-in that has to be asked for.
//!
//! **The noise is the same for every fragment.** Only then does a fragment have distance zero from its copy with finitely
//! many samples, and differences between fragments are not buried under differences between draws.
//!
//! N fragments cost N·|s|·m rollouts; pairs cost arithmetic.

use candle_core::{DType, Tensor};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use super::distances::Distances;
use super::draw::distinct;
use super::separable::Targets;
use super::signatures::Signatures;
use super::{Imagination, KernelConfig, Transport};
use crate::error::{Error, Result};
use crate::fragments::FragmentBatch;
use crate::noise;
use crate::world_model::{Imagined, Start};

/// A world model, the starts and the noise.
pub struct MonteCarlo<'a, M: ?Sized> {
    model: &'a M,
    config: KernelConfig,
    /// How many starts there are.
    starts: usize,
    /// Each start as often as there are samples, `[starts · samples, F]` and `[starts · samples, S]`.
    repeated: Start,
    /// `[starts · samples, k, d_z]`, with more than one sample.
    noise: Option<Tensor>,
}

/// States that were visited, drawn without repetition from all steps of some fragments; all of them if there are fewer.
///
/// # Shapes
/// Gives `[count, F]` and `[count, S]`.
pub fn visited(fragments: &FragmentBatch, count: usize, seed: u64) -> Result<Start> {
    let (batch, steps, states) = fragments.states.dims3()?;
    let (_, _, features) = fragments.features.dims3()?;
    let frames = batch * steps;
    let drawn: Vec<u32> = distinct(seed, b"kernel starts", frames, count).into_iter().map(|at| at as u32).collect();
    let rows = |x: &Tensor, width: usize| -> Result<Tensor> {
        let drawn = Tensor::from_slice(&drawn, drawn.len(), x.device())?;
        Ok(x.reshape((frames, width))?.index_select(&drawn, 0)?)
    };
    Ok(Start { features: rows(&fragments.features, features)?, states: rows(&fragments.states, states)? })
}

impl<'a, M: Imagination + ?Sized> MonteCarlo<'a, M> {
    /// Takes all the starts that it is given, which may be fewer or more than `config.starts`.
    ///
    /// # Shapes
    /// `starts`: `[|s|, F]` and `[|s|, S]`.
    pub fn new(model: &'a M, starts: &Start, config: KernelConfig) -> Result<MonteCarlo<'a, M>> {
        config.validate()?;
        let KernelConfig { horizon, samples, seed, .. } = config;
        let (count, _) = starts.states.dims2()?;
        if count == 0 || starts.features.dims2()?.0 != count {
            return Err(Error::Config(format!(
                "starts are features {:?} and states {:?}; wanted as many of both, one at least",
                starts.features.dims(),
                starts.states.dims()
            )));
        }
        let repeated = Start {
            features: each_repeated(&starts.features, samples)?,
            states: each_repeated(&starts.states, samples)?,
        };
        let noise = if samples > 1 {
            let shape = (count * samples, horizon, model.latent_width());
            let mut generator = ChaCha8Rng::seed_from_u64(noise::mix(seed, b"kernel rollouts"));
            let values = noise::normal(&mut generator, shape.0 * shape.1 * shape.2);
            Some(Tensor::from_vec(values, shape, starts.states.device())?)
        } else {
            None
        };
        Ok(MonteCarlo { model, config, starts: count, repeated, noise })
    }

    /// What follows from each fragment. Batches are taken one at a time, and imagined `config.rollouts` rollouts at once.
    pub fn signatures(&self, batches: impl IntoIterator<Item = Result<FragmentBatch>>) -> Result<Signatures> {
        let latent = self.model.latent_width();
        let (samples, starts) = (self.config.samples, self.starts);
        let mut signatures = match self.config.transport {
            Transport::Gaussian => Signatures::new(starts, 1, 2 * latent)?,
            Transport::Assignment => Signatures::new(starts, samples, latent)?,
        };
        for batch in batches {
            self.roll(&batch?, |imagined, values| {
                let last = self.config.horizon - 1;
                let at_last = |x: &Tensor| -> Result<Vec<f32>> {
                    Ok(x.narrow(1, last, 1)?.flatten_all()?.to_dtype(DType::F32)?.to_vec1()?)
                };
                let clouds = match self.config.transport {
                    Transport::Gaussian => {
                        moments(&at_last(&imagined.means)?, &at_last(&imagined.deviations)?, samples, latent)
                    }
                    Transport::Assignment => at_last(&imagined.latents)?,
                };
                signatures.push(&means_of(&values.to_vec1::<f32>()?, samples), &clouds)
            })?;
        }
        Ok(signatures)
    }

    /// D_φ between all pairs, with this configuration's weights.
    pub fn distances(&self, signatures: &Signatures) -> Distances {
        signatures.distances(self.config.w_r, self.config.w_e)
    }

    /// What [`super::Separable`] learns: expected latents after each step, and returns, averaged over starts and samples.
    pub fn targets(&self, fragments: &FragmentBatch) -> Result<Targets> {
        let (mut latents, mut values) = (Vec::new(), Vec::new());
        self.roll(fragments, |imagined, returns| {
            let (rows, steps, latent) = imagined.means.dims3()?;
            let each = self.starts * self.config.samples;
            latents.push(imagined.means.reshape((rows / each, each, steps, latent))?.mean(1)?);
            values.push(returns.reshape((rows / each, each))?.mean(1)?);
            Ok(())
        })?;
        Ok(Targets { latents: Tensor::cat(&latents, 0)?.detach(), values: Tensor::cat(&values, 0)?.detach() })
    }

    /// Imagines a batch in parts of whole fragments, rows ordered by fragment, start, sample; hands on each part with V^τ(s)
    /// of its rows, `[rows]`.
    fn roll(&self, fragments: &FragmentBatch, mut each: impl FnMut(&Imagined, &Tensor) -> Result<()>) -> Result<()> {
        let KernelConfig { horizon, samples, rollouts, .. } = self.config;
        let (batch, steps, _) = fragments.actions.dims3()?;
        if steps < horizon {
            return Err(Error::Config(format!(
                "fragments of {steps} steps cannot be rolled for {horizon}; set the kernel's `horizon` to {steps} or less"
            )));
        }
        let rows = self.starts * samples;
        let at_once = (rollouts / rows).max(1);
        for first in (0..batch).step_by(at_once) {
            let count = at_once.min(batch - first);
            let actions = fragments.actions.narrow(0, first, count)?.narrow(1, 0, horizon)?.contiguous()?;
            let start = Start {
                features: self.repeated.features.repeat((count, 1))?,
                states: self.repeated.states.repeat((count, 1))?,
            };
            let noise = self.noise.as_ref().map(|noise| noise.repeat((count, 1, 1))).transpose()?;
            let imagined = self.model.imagine(&start, &each_repeated(&actions, rows)?, noise.as_ref())?;
            each(&imagined, &self.value(&imagined)?)?;
        }
        Ok(())
    }

    /// Σ_{t<k} γᵗ r̂_t + γᵏ Ĝ_{k−1}: Ĝ_t is what comes after step t.
    ///
    /// # Shapes
    /// Gives `[rows]`, f32.
    fn value(&self, imagined: &Imagined) -> Result<Tensor> {
        let KernelConfig { horizon, discount, .. } = self.config;
        let powers: Vec<f32> = (0..horizon).map(|step| discount.powf(step as f64) as f32).collect();
        let powers = Tensor::from_vec(powers, (1, horizon), imagined.rewards.device())?;
        let rewards = imagined.rewards.to_dtype(DType::F32)?.broadcast_mul(&powers)?.sum(1)?;
        let after = imagined.returns.narrow(1, horizon - 1, 1)?.squeeze(1)?.to_dtype(DType::F32)?;
        Ok((rewards + (after * discount.powf(horizon as f64))?)?)
    }
}

/// Each row `times` times in a row: a, a, b, b, …
fn each_repeated(x: &Tensor, times: usize) -> Result<Tensor> {
    let rows = x.dims().first().copied().unwrap_or_default();
    let indices: Vec<u32> = (0..rows * times).map(|at| (at / times) as u32).collect();
    Ok(x.contiguous()?.index_select(&Tensor::from_vec(indices, rows * times, x.device())?, 0)?)
}

/// Means of `size` numbers each.
fn means_of(values: &[f32], size: usize) -> Vec<f64> {
    values.chunks_exact(size).map(|some| some.iter().map(|one| f64::from(*one)).sum::<f64>() / size as f64).collect()
}

/// The Gaussians with the moments of equal mixtures of `samples` diagonal Gaussians: means, then deviations, for each.
///
/// # Shapes
/// `means`, `deviations`: `[groups, samples, width]`; gives `[groups, 2 · width]`.
fn moments(means: &[f32], deviations: &[f32], samples: usize, width: usize) -> Vec<f32> {
    let group = samples * width;
    let mut points = Vec::with_capacity(2 * means.len() / samples);
    for (means, deviations) in means.chunks_exact(group).zip(deviations.chunks_exact(group)) {
        let over = |values: &dyn Fn(usize) -> f64, place: usize| -> f64 {
            (0..samples).map(|sample| values(sample * width + place)).sum::<f64>() / samples as f64
        };
        let mean = |place: usize| over(&|at| f64::from(means[at]), place);
        points.extend((0..width).map(|place| mean(place) as f32));
        points.extend((0..width).map(|place| {
            let centre = mean(place);
            let within = over(&|at| f64::from(deviations[at]).powi(2), place);
            let between = over(&|at| (f64::from(means[at]) - centre).powi(2), place);
            (within + between).sqrt() as f32
        }));
    }
    points
}
