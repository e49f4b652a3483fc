//! Contrastive losses over a batch of vectors of length one.

use candle_core::{D, Tensor};

use crate::error::{Error, Result};

/// Supervised contrast (Khosla et al. 2020, L_out): the mean over anchors i that have a positive of
/// −1/|P(i)| Σ_{p ∈ P(i)} ln softmax_{a ≠ i}(⟨e_i, e_a⟩/τ)_p, with P(i) the others of its label. Zero if no anchor has one.
///
/// # Shapes
/// `embeddings`: `[B, d]`, f32; gives a scalar.
pub fn supcon(embeddings: &Tensor, labels: &[i64], temperature: f64) -> Result<Tensor> {
    let (count, _) = embeddings.dims2()?;
    if labels.len() != count {
        return Err(Error::Config(format!("{count} vectors have {} labels, wanted as many", labels.len())));
    }
    let positives: Vec<usize> =
        labels.iter().map(|label| labels.iter().filter(|other| *other == label).count() - 1).collect();
    let anchors = positives.iter().filter(|others| **others > 0).count();
    let pairs = (0..count).flat_map(|row| (0..count).map(move |column| (row, column)));
    let weight = |(row, column): (usize, usize)| match row != column && labels[row] == labels[column] {
        true => 1.0 / (positives[row] * anchors) as f32,
        false => 0.0,
    };
    let weights: Vec<f32> = pairs.map(weight).collect();
    let selves: Vec<f32> = (0..count * count).map(|at| if at / count == at % count { -1e9 } else { 0.0 }).collect();
    let device = embeddings.device();
    let weights = Tensor::from_vec(weights, (count, count), device)?;
    let selves = Tensor::from_vec(selves, (count, count), device)?;
    let scores = (embeddings.matmul(&embeddings.t()?)? / temperature)?;
    let others = (&scores + selves)?;
    let greatest = others.max_keepdim(D::Minus1)?.detach();
    let normalizer = (others.broadcast_sub(&greatest)?.exp()?.sum_keepdim(D::Minus1)?.log()? + greatest)?;
    let log = scores.broadcast_sub(&normalizer)?;
    Ok((log * weights)?.sum(D::Minus1)?.sum_all()?.neg()?)
}

/// NT-Xent (Chen et al. 2020): [`supcon`] where each has one positive, rows 2i and 2i + 1.
///
/// # Shapes
/// `embeddings`: `[2n, d]`, f32; gives a scalar.
pub fn nt_xent(embeddings: &Tensor, temperature: f64) -> Result<Tensor> {
    let (count, _) = embeddings.dims2()?;
    if !count.is_multiple_of(2) {
        return Err(Error::Config(format!("{count} vectors do not come in pairs")));
    }
    let labels: Vec<i64> = (0..count as i64).map(|row| row / 2).collect();
    supcon(embeddings, &labels, temperature)
}
