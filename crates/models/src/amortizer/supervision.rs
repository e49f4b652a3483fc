//! What k_χ is taught by (paper §4.4): (a) labels, (b) and (b′) the latents of a frozen world model, (c) episodes; and
//! beyond the paper (d) the distances of D_φ.

use candle_core::{D, DType, Tensor};
use serde::{Deserialize, Serialize};

use crate::contrast::{TEMPERATURE, normalize, nt_xent, supcon};
use crate::error::{Error, Result};

/// Squared distances below this, in units of the scale, count as this: the gradient of a root is infinite at zero.
const LEAST_SQUARE: f64 = 1e-12;

/// What teaches the amortizer. (b) and (b′) are both `Distillation`: they differ in how their teacher was trained, without
/// or with contrast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Supervision {
    /// (a) SupCon over `task_index`: the upper bound, with labels.
    TaskIndex,
    /// (b), (b′) The unit vector of the world model's z_T is the target.
    Distillation,
    /// (c) Two fragments of one episode belong together.
    EpisodeContrast,
    /// (d) Embedded distances are those of D_φ, which a world model imagines.
    Kernel,
}

/// The target of a batch.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// For [`Supervision::TaskIndex`]: the label of each row.
    Labels(&'a [i64]),
    /// For [`Supervision::Distillation`]: z_T of each row, `[B, embedding]`, of any length.
    Teacher(&'a Tensor),
    /// For [`Supervision::EpisodeContrast`]: rows 2i and 2i+1 are of one episode.
    Pairs,
    /// For [`Supervision::Kernel`].
    Distances {
        /// D_φ between all rows, `[B, B]` in f32; see [`crate::kernel::DistanceTable`].
        distances: &'a Tensor,
        /// The unit in which errors are measured, so that the loss is free of scale; see [`super::Metric`].
        scale: f64,
    },
}

/// The loss of a batch:
///
/// | target | loss |
/// |---|---|
/// | labels | SupCon, τ = 0.1 |
/// | teacher | mean over batch and dimensions of (k_χ(τ) − z_T/‖z_T‖)² |
/// | pairs | NT-Xent, τ = 0.1 |
/// | distances | mean over all pairs of different rows of (‖k_χ(τ) − k_χ(τ')‖ − D_φ(τ, τ'))² / scale² |
///
/// # Shapes
/// `embeddings`: `[B, embedding]` in f32, unit rows but for distances; gives a scalar.
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
        Target::Distances { distances, scale } => {
            let (rows, _) = embeddings.dims2()?;
            if rows < 2 || distances.dims() != [rows, rows] {
                return Err(Error::Config(format!(
                    "distances of {:?} for {rows} embeddings; expected one for each pair of two or more rows",
                    distances.dims()
                )));
            }
            let found = pairwise(&(embeddings / scale)?)?;
            let others = (1.0 - Tensor::eye(rows, DType::F32, embeddings.device())?)?;
            let errors = ((found - (distances.detach() / scale)?)?.sqr()? * others)?;
            Ok((errors.sum_all()? / (rows * (rows - 1)) as f64)?)
        }
    }
}

/// Euclidean distances between all rows, with gradients. Rows are centred first, so that no digits are lost where all of
/// them are far from the origin and close to each other.
///
/// # Shapes
/// `x`: `[B, width]` in f32; gives `[B, B]`.
fn pairwise(x: &Tensor) -> Result<Tensor> {
    let x = x.broadcast_sub(&x.detach().mean_keepdim(0)?)?;
    let squares = x.sqr()?.sum_keepdim(D::Minus1)?; // [B, 1]
    let products = (x.matmul(&x.t()?)? * 2.0)?; // [B, B]
    Ok((squares.broadcast_add(&squares.t()?)? - products)?.maximum(LEAST_SQUARE)?.sqrt()?)
}
