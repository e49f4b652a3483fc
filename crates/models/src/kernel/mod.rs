//! The behavioural-equivalence kernel D_φ: how differently two fragments would turn out (paper §3.2, equation 1).
//!
//! D_φ(τ, τ') = w_R · E_s |V^τ(s) − V^τ'(s)| + w_E · E_s W₂(P^k(· given s, τ), P^k(· given s, τ')) ,   s from the data,
//!
//! where P^k(· given s, τ) is what the world model expects of the latent after the first k actions of τ from s, and
//! V^τ(s) = Σ_{t<k} γᵗ r̂_t + γᵏ Ĝ_{k−1} the return of doing so. Three ways to it:
//!
//! | mode | V and P^k | |
//! |---|---|---|
//! | [`MonteCarlo`] | imagined by the world model from each s | the reference |
//! | [`Separable`] | an MLP each, from z alone; P^k is a point, so that W₂ is a distance of vectors | |
//! | [`cosine_distances`] | 1 − ⟨k_χ(τ), k_χ(τ')⟩ | the default, one pass for each fragment |
//!
//! The first two make [`Signatures`], a few numbers for each fragment, so rollouts grow with fragments and only arithmetic
//! with pairs. [`agreement`] says how far two modes order pairs alike.
//!
//! Departure: the paper's text has k = 4, its appendix k = 8 for the headline; the default is 8.

mod agreement;
mod assignment;
mod distances;
mod draw;
mod monte_carlo;
mod separable;
mod signatures;
#[cfg(test)]
mod tests;

use candle_core::Tensor;
use serde::{Deserialize, Serialize};

pub use agreement::{Agreement, agreement, spearman};
pub use assignment::assign;
pub use distances::{Distances, cosine_distances};
pub use monte_carlo::{MonteCarlo, visited};
pub use separable::{Separable, SeparableConfig, SeparableLosses, Targets};
pub use signatures::{Parts, Signatures};

use crate::error::{Error, Result};
use crate::fragments::FragmentBatch;
use crate::ops::without_gradients;
use crate::world_model::{Imagined, Start, WorldModel};

/// What the kernel asks of a world model.
pub trait Imagination {
    /// d_z.
    fn latent_width(&self) -> usize;

    /// The vector that stands for a fragment, `[B, d_z]` in f32, without gradients.
    fn encode_fragment(&self, fragments: &FragmentBatch) -> Result<Tensor>;

    /// What follows from each start under its actions `[B, k, A]`, as [`WorldModel::imagine`] says; without noise
    /// (`[B, k, d_z]`) every latent is its mean.
    fn imagine(&self, start: &Start, actions: &Tensor, noise: Option<&Tensor>) -> Result<Imagined>;
}

impl Imagination for WorldModel {
    fn latent_width(&self) -> usize {
        self.config().latent
    }

    fn encode_fragment(&self, fragments: &FragmentBatch) -> Result<Tensor> {
        without_gradients(|| WorldModel::encode_fragment(self, fragments))
    }

    fn imagine(&self, start: &Start, actions: &Tensor, noise: Option<&Tensor>) -> Result<Imagined> {
        without_gradients(|| WorldModel::imagine(self, start, actions, noise))
    }
}

/// Which of the three is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelMode {
    /// Cosine distance of the amortizer's embeddings.
    #[default]
    LegacyCosine,
    /// Equation 1 with a value head and a latent transition.
    SeparableVpk,
    /// Equation 1 by imagination.
    Mc,
}

/// How W₂ is found in the Monte-Carlo reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// In closed form, between diagonal Gaussians with the moments of the rollouts.
    #[default]
    Gaussian,
    /// Exactly, by optimal assignment between as many sampled latents.
    Assignment,
}

/// The settings of D_φ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KernelConfig {
    /// Which kernel (paper §3.2: `legacy_cosine`).
    pub mode: KernelMode,
    /// w_R, of the difference of returns; 0 switches it off.
    pub w_r: f64,
    /// w_E, of the distance of rollouts; 0 switches it off (paper, ablation A7).
    pub w_e: f64,
    /// k, steps that are imagined, at most those of a fragment (paper, ablation A8: 8).
    pub horizon: usize,
    /// How many visited states s stand for the expectation.
    pub starts: usize,
    /// Rollouts from each; one follows the means, more draw noise.
    pub samples: usize,
    /// How W₂ is found.
    pub transport: Transport,
    /// γ; that of the returns that the world model learned.
    pub discount: f64,
    /// Of the noise and of the drawn states.
    pub seed: u64,
    /// How many rollouts are imagined at once, in whole fragments: memory for speed, not a change of results.
    pub rollouts: usize,
}

impl Default for KernelConfig {
    fn default() -> Self {
        KernelConfig {
            mode: KernelMode::default(),
            w_r: 1.0,
            w_e: 1.0,
            horizon: 8,
            starts: 16,
            samples: 1,
            transport: Transport::default(),
            discount: 0.99,
            seed: 0,
            rollouts: 1024,
        }
    }
}

impl KernelConfig {
    /// Everything that is wrong with it.
    pub fn validate(&self) -> Result<()> {
        let KernelConfig { w_r, w_e, horizon, starts, samples, discount, rollouts, .. } = *self;
        let mut wrong = Vec::new();
        for (name, weight) in [("w_r", w_r), ("w_e", w_e)] {
            if !(weight >= 0.0 && weight.is_finite()) {
                wrong.push(format!("`{name}` is {weight}, not a weight of 0 or more"));
            }
        }
        let counts = [("horizon", horizon), ("starts", starts), ("samples", samples), ("rollouts", rollouts)];
        wrong.extend(counts.iter().filter(|(_, count)| *count == 0).map(|(name, _)| format!("`{name}` is 0")));
        if !(0.0..=1.0).contains(&discount) {
            wrong.push(format!("`discount` is {discount}, not between 0 and 1"));
        }
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(Error::Config(format!("the kernel's settings: {}", wrong.join("; "))))
        }
    }
}
