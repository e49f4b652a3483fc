//! What k_χ is taught by (paper §4.4): (a) labels, (b) and (b′) a frozen world model, (c) episodes.

use candle_core::{DType, Tensor};
use dataset::PositiveWindow;
use serde::{Deserialize, Serialize};

use crate::contrast::{TEMPERATURE, normalize, nt_xent, supcon};
use crate::error::{Error, Result};

/// The mode. (b) and (b′) are both `Distillation`: they differ in how their teacher was trained, without or with contrast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case", deny_unknown_fields)]
pub enum Supervision {
    /// (a) SupCon over `task_index`: the upper bound, with labels.
    TaskIndex,
    /// (b), (b′) The unit vector of the world model's z_T is the target.
    #[default]
    Distillation,
    /// (c) Two fragments of one episode belong together.
    EpisodeContrast {
        /// How far apart the two may be.
        #[serde(default)]
        window: PositiveWindow,
    },
}

/// What a batch is held against.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// For [`Supervision::TaskIndex`]: the label of each row.
    Labels(&'a [i64]),
    /// For [`Supervision::Distillation`]: z_T of each row, `[B, embedding]`, of any length.
    Teacher(&'a Tensor),
    /// For [`Supervision::EpisodeContrast`]: rows 2i and 2i+1 are of one episode.
    Pairs,
}

/// The loss of a batch in any mode:
///
/// | target | loss |
/// |---|---|
/// | labels | SupCon, τ = 0.1 |
/// | teacher | mean over batch and dimensions of (k_χ(τ) − z_T/‖z_T‖)² |
/// | pairs | NT-Xent, τ = 0.1 |
///
/// # Shapes
/// `embeddings`: `[B, embedding]`, unit rows in f32; gives a scalar.
pub fn loss(embeddings: &Tensor, target: Target<'_>) -> Result<Tensor> {
    match target {
        Target::Labels(labels) => supcon(embeddings, labels, TEMPERATURE),
        Target::Teacher(latents) => {
            if latents.dims() != embeddings.dims() {
                return Err(Error::Config(format!(
                    "the teacher's latents are {:?}, the embeddings {:?}; set the amortizer's `embedding` to the world \
                     model's latent width",
                    latents.dims(),
                    embeddings.dims()
                )));
            }
            let target = normalize(&latents.detach().to_dtype(DType::F32)?)?;
            Ok((embeddings - target)?.sqr()?.mean_all()?)
        }
        Target::Pairs => nt_xent(embeddings, TEMPERATURE),
    }
}
