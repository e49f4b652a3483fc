//! M_φ, the latent world model (paper §3.1, phase A).
//!
//! A causal Transformer reads a fragment as `[img_0, state_0, action_0, img_1, …]`, 3T tokens, each a linear map of the
//! (standardised) features, state or action of a step plus a learned embedding of modality and step. With h_t the output at
//! action_t, and h₋₁ a learned vector:
//!
//! | | from | |
//! |---|---|---|
//! | posterior q(z_t given x_t, h_{t−1}) | the output at state_t | diagonal Gaussian, σ in (0.1, 1.9) |
//! | prior p(z_t given h_{t−1}) | h_{t−1} | likewise |
//! | decoder (x̂_t, ŝ_t) | z_t alone | one hidden layer |
//! | return head (r̂_t, Ĝ_t) | h_t | the reward of step t, the discounted return after it |
//!
//! [`WorldModel::loss`] is what it learns from, [`WorldModel::encode_fragment`] the vector that stands for a fragment,
//! [`WorldModel::imagine`] what it expects of actions not taken.
//!
//! Departures: the state is a token and so the posterior sees it too; the paper writes x_t only. Its "hierarchical" has no
//! equation and is read as one level of latents.

mod config;
mod gaussian;
mod imagine;
mod loss;
mod model;
#[cfg(test)]
mod tests;

pub use config::{ContrastMode, PRESETS, RETURN_HIDDEN, WorldModelConfig};
pub use gaussian::Gaussian;
pub use imagine::{Imagined, Start};
pub use loss::Losses;
pub use model::{Outputs, WorldModel};
