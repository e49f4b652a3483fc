//! Imagination: what M_φ expects of actions that nobody took.
//!
//! From a real (x_0, s_0): read them with a_0, take ẑ_1 ~ p(z given h_0), decode it to (x̂_1, ŝ_1), read those with a_1, and so
//! on. This is "insert τ at s and roll k steps" of the paper, §3.2.

use candle_core::{DType, Tensor};

use super::gaussian::Gaussian;
use super::model::WorldModel;
use crate::error::{Error, Result};
use crate::transformer::Cache;

/// Where imagination begins; standardised, as in a batch of fragments.
#[derive(Clone, Debug)]
pub struct Start {
    /// x_0, `[B, F]`
    pub features: Tensor,
    /// s_0, `[B, S]`
    pub states: Tensor,
}

/// k imagined steps, f32, without gradients. Place t of latents, features and states is what follows action t; of rewards and
/// returns, what action t brings and what comes after it.
#[derive(Clone, Debug)]
pub struct Imagined {
    /// Means of the prior, `[B, k, d_z]`
    pub means: Tensor,
    /// Its deviations, `[B, k, d_z]`
    pub deviations: Tensor,
    /// ẑ, `[B, k, d_z]`
    pub latents: Tensor,
    /// x̂, `[B, k, F]`
    pub features: Tensor,
    /// ŝ, `[B, k, S]`
    pub states: Tensor,
    /// r̂, `[B, k]`; zeros without a return head
    pub rewards: Tensor,
    /// Ĝ, `[B, k]`; zeros without a return head
    pub returns: Tensor,
}

impl WorldModel {
    /// Imagines k steps with a cache of keys and values; `k` is at most the horizon. Without noise every latent is its mean.
    ///
    /// # Shapes
    /// `actions`: `[B, k, A]`, `noise`: `[B, k, d_z]`.
    pub fn imagine(&self, start: &Start, actions: &Tensor, noise: Option<&Tensor>) -> Result<Imagined> {
        let mut cache = Cache::default();
        self.roll(start, actions, noise, |rows| {
            let step = rows.features.len() - 1;
            let tokens = self.tokens(&rows.features[step], &rows.states[step], &rows.actions[step], step)?;
            self.last(&self.transformer.extend(&tokens, &mut cache)?)
        })
    }

    /// The same by whole passes, one for each step: what the cache is compared with.
    ///
    /// # Shapes
    /// As [`WorldModel::imagine`].
    pub fn imagine_uncached(&self, start: &Start, actions: &Tensor, noise: Option<&Tensor>) -> Result<Imagined> {
        self.roll(start, actions, noise, |rows| {
            let whole = |parts: &[Tensor]| Tensor::cat(parts, 1);
            let tokens = self.tokens(&whole(&rows.features)?, &whole(&rows.states)?, &whole(&rows.actions)?, 0)?;
            self.last(&self.transformer.forward(&tokens)?)
        })
    }

    /// The steps, with h_t from whatever computes it.
    fn roll(
        &self,
        start: &Start,
        actions: &Tensor,
        noise: Option<&Tensor>,
        mut h: impl FnMut(&Rows) -> Result<Tensor>,
    ) -> Result<Imagined> {
        let (fragments, steps, _) = actions.dims3()?;
        if steps == 0 {
            return Err(Error::Config("there is nothing to imagine without an action".into()));
        }
        let mut rows = Rows::default();
        let (mut x, mut s) = (start.features.unsqueeze(1)?, start.states.unsqueeze(1)?);
        let mut priors: Vec<Gaussian> = Vec::new();
        let (mut latents, mut features, mut states) = (Vec::new(), Vec::new(), Vec::new());
        let (mut rewards, mut returns) = (Vec::new(), Vec::new());
        for step in 0..steps {
            rows.features.push(x);
            rows.states.push(s);
            rows.actions.push(actions.narrow(1, step, 1)?);
            let h = h(&rows)?;
            let prior = self.expect(&h)?.detach();
            let latent = match noise {
                None => prior.mean.clone(),
                Some(noise) => prior.sample(&noise.narrow(1, step, 1)?)?,
            };
            let decoded = self.decode(&latent)?;
            (x, s) = (decoded.0.detach(), decoded.1.detach());
            if let Some((reward, after)) = self.returns(&h)? {
                rewards.push(reward.detach());
                returns.push(after.detach());
            }
            priors.push(prior);
            latents.push(latent);
            features.push(x.clone());
            states.push(s.clone());
        }
        let joined = |parts: &[Tensor]| match parts.is_empty() {
            true => Tensor::zeros((fragments, steps), DType::F32, actions.device()),
            false => Tensor::cat(parts, 1),
        };
        Ok(Imagined {
            means: joined(&priors.iter().map(|prior| prior.mean.clone()).collect::<Vec<_>>())?,
            deviations: joined(&priors.into_iter().map(|prior| prior.deviation).collect::<Vec<_>>())?,
            latents: joined(&latents)?,
            features: joined(&features)?,
            states: joined(&states)?,
            rewards: joined(&rewards)?,
            returns: joined(&returns)?,
        })
    }

    /// The output at the last token, which is an action.
    ///
    /// # Shapes
    /// `outputs`: `[B, tokens, width]`; gives `[B, 1, width]`.
    fn last(&self, outputs: &Tensor) -> Result<Tensor> {
        let (_, tokens, _) = outputs.dims3()?;
        Ok(outputs.narrow(1, tokens - 1, 1)?.contiguous()?.detach())
    }
}

/// What was read so far, step by step: `[B, 1, F]`, `[B, 1, S]`, `[B, 1, A]`.
#[derive(Default)]
struct Rows {
    features: Vec<Tensor>,
    states: Vec<Tensor>,
    actions: Vec<Tensor>,
}
