//! What the emitter learns from: the nats of each token, given those before it.

use candle_core::{D, DType, Tensor};

use super::model::{Emitter, EmitterBatch};
use crate::error::Result;
use crate::ops::{Form, graft, without_gradients};
use crate::training::Loss;
use crate::vocabulary::PAD;

/// How each token of a batch was predicted from those before it, `[B, N]` each, f32.
#[derive(Clone, Debug)]
pub struct TokenScores {
    /// −ln p of the token.
    pub nats: Tensor,
    /// One where the most likely token is the right one.
    pub correct: Tensor,
    /// One where there is a token, zero for padding.
    pub counted: Tensor,
}

impl Emitter {
    /// The mean of −ln p over all tokens of a batch, `<separator>` and `<eos>` counted, padding not; beside it the share of
    /// tokens that are the most likely one (teacher forcing).
    pub fn loss(&self, batch: &EmitterBatch) -> Result<Loss> {
        let (inputs, targets, counted) = parts(batch)?;
        let scores = self.scores(&batch.condition, &inputs)?;
        let total = cross_entropy(&scores, &targets, &counted, self.config.form)?;
        let right = (correct(&scores, &targets)? * share(&counted)?)?.sum_all()?;
        Ok(Loss { terms: vec![("cross_entropy", total.detach()), ("accuracy", right)], total })
    }

    /// The same for each token, without gradients: what held-out figures are made of.
    pub fn token_scores(&self, batch: &EmitterBatch) -> Result<TokenScores> {
        let (inputs, targets, counted) = parts(batch)?;
        let scores = without_gradients(|| self.scores(&batch.condition, &inputs))?.detach();
        let shape = inputs.shape();
        Ok(TokenScores {
            nats: (nats(&scores, &targets)?.0 * &counted)?.reshape(shape)?,
            correct: (correct(&scores, &targets)? * &counted)?.reshape(shape)?,
            counted: counted.reshape(shape)?,
        })
    }
}

/// Inputs `[B, N]`, targets `[B·N]`, and which of these count `[B·N]`.
fn parts(batch: &EmitterBatch) -> Result<(Tensor, Tensor, Tensor)> {
    let (_, tokens) = batch.tokens.dims2()?;
    let inputs = batch.tokens.narrow(1, 0, tokens - 1)?.contiguous()?;
    let targets = batch.tokens.narrow(1, 1, tokens - 1)?.contiguous()?.flatten_all()?;
    let counted = targets.ne(PAD)?.to_dtype(DType::F32)?;
    Ok((inputs, targets, counted))
}

/// What each token counts in a mean over those that count.
fn share(counted: &Tensor) -> Result<Tensor> {
    Ok(counted.broadcast_div(&counted.sum_all()?.maximum(1_f32)?)?)
}

/// Σ counted·(−ln softmax(scores)[target]) / Σ counted, in f32.
///
/// # Shapes
/// `scores`: `[rows, symbols]`, f32; `targets`: `[rows]` u32; `counted`: `[rows]`; gives a scalar.
pub(super) fn cross_entropy(scores: &Tensor, targets: &Tensor, counted: &Tensor, form: Form) -> Result<Tensor> {
    let share = share(counted)?;
    if !form.is_fused_for(scores) {
        return Ok((nats(scores, targets)?.0 * share)?.sum_all()?);
    }
    // The gradient is softmax(scores) − one-hot(target), known without a graph of six operations over all scores.
    let (nats, Exponentials { values, sums }) = nats(&scores.detach(), targets)?;
    let value = (nats * &share)?.sum_all()?;
    let (targets, share) = (targets.unsqueeze(1)?, share.unsqueeze(1)?);
    graft(scores, value, move |dy| {
        let scale = share.broadcast_mul(dy)?; // [rows, 1]
        let gradient = values.broadcast_mul(&(&scale / &sums)?)?;
        Ok(Some(gradient.scatter_add(&targets, &scale.neg()?, 1)?))
    })
}

/// exp(score − the row's most), `[rows, symbols]`, and its sums over rows, `[rows, 1]`.
struct Exponentials {
    values: Tensor,
    sums: Tensor,
}

/// −ln softmax(scores)[target], `[rows]`, and what it was made of.
fn nats(scores: &Tensor, targets: &Tensor) -> Result<(Tensor, Exponentials)> {
    let most = scores.max_keepdim(D::Minus1)?.detach();
    let values = scores.broadcast_sub(&most)?.exp()?;
    let sums = values.sum_keepdim(D::Minus1)?;
    let chosen = scores.gather(&targets.unsqueeze(1)?, 1)?;
    let nats = (sums.log()? + (most - chosen)?)?.squeeze(1)?;
    Ok((nats, Exponentials { values, sums }))
}

/// One where the most likely symbol is the target, `[rows]`.
fn correct(scores: &Tensor, targets: &Tensor) -> Result<Tensor> {
    Ok(scores.detach().argmax(D::Minus1)?.eq(targets)?.to_dtype(DType::F32)?)
}
