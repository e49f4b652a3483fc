//! The behavioural-equivalence kernel D_φ: how differently two fragments would turn out (paper §3.2, equation 1).
//!
//! D_φ(τ, τ') = w_R · E_s |V^τ(s) − V^τ'(s)| + w_E · E_s W₂(P^k(· given s, τ), P^k(· given s, τ')) ,   s from the data,
//!
//! where P^k(· given s, τ) is what the world model expects of the latent after the first k actions of τ from s, and
//! V^τ(s) = Σ_{t<k} γᵗ r̂_t + γᵏ Ĝ_{k−1} the return of doing so. Four ways to it:
//!
//! | form | V and P^k | |
//! |---|---|---|
//! | [`MonteCarlo`] | sampled rollouts of the world model from each s | the reference |
//! | [`Separable`] | an MLP each, from z alone; P^k is a point, so that W₂ is a distance of vectors | |
//! | [`euclidean_distances`] | ‖k_χ(τ) − k_χ(τ')‖ of an amortizer that was trained on D_φ | the default of the loop, one pass for each fragment |
//! | [`cosine_distances`] | 1 − ⟨k_χ(τ), k_χ(τ')⟩ of an amortizer that was trained on z_T | the paper's default |
//!
//! The first two make [`Signatures`], a few numbers for each fragment, so rollouts grow with fragments and only arithmetic
//! with pairs. [`agreement`] says how far two forms order pairs alike. [`DistanceTable`] has signatures on the device, where
//! a training batch takes its distances from.
//!
//! Departures: the paper's text has k = 4, its appendix k = 8; the default is 16, all actions of a fragment, because a
//! distance that ignores the second half of a fragment calls fragments equivalent that end differently. The paper does not
//! say how many rollouts stand for P^k; the default draws 4 from each start. Both are settings.

mod agreement;
mod assignment;
mod distance_table;
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
pub use distance_table::DistanceTable;
pub use distances::{Distances, cosine_distances, euclidean, euclidean_distances};
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

/// The form of D_φ that the loop compares segments by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelForm {
    /// Distances between embeddings of an amortizer that was trained on D_φ: one pass for each segment.
    #[default]
    Amortized,
    /// Equation 1 with a value head and a latent transition.
    Separable,
    /// Equation 1 by sampled rollouts: the reference, which the other two approximate.
    MonteCarlo,
}

impl KernelForm {
    /// Its name in settings and reports.
    pub fn name(self) -> &'static str {
        match self {
            KernelForm::Amortized => "amortized",
            KernelForm::Separable => "separable",
            KernelForm::MonteCarlo => "monte_carlo",
        }
    }
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
    /// w_R, of the difference of returns; 0 switches it off.
    pub w_r: f64,
    /// w_E, of the distance of rollouts; 0 switches it off (paper, ablation A7).
    pub w_e: f64,
    /// k, steps that are imagined, at most those of a fragment. The default is all 16 (paper: 4 in its text, 8 in ablation A8).
    pub horizon: usize,
    /// How many visited states s stand for the expectation.
    pub starts: usize,
    /// Rollouts from each start. Two or more draw noise; one follows the means, which is cheaper and no Monte Carlo. A
    /// fragment costs `starts · samples · horizon` steps of the world model.
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
            w_r: 1.0,
            w_e: 1.0,
            horizon: dataset::FRAGMENT_LENGTH,
            starts: 16,
            samples: 4,
            transport: Transport::default(),
            discount: 0.99,
            seed: 0,
            rollouts: 1024,
        }
    }
}

impl KernelConfig {
    /// Whether both say the same distances of the same world model and data: all but how many rollouts are imagined at once.
    pub fn is_same(&self, other: &KernelConfig) -> bool {
        *self == KernelConfig { rollouts: self.rollouts, ..*other }
    }

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
