//! What the emitter learns from: the nats of each token, given those before it, and of the number that it carries.

use candle_core::{D, DType, Tensor};

use super::model::{Emitter, EmitterBatch};
use crate::error::Result;
use crate::ops::{Form, graft, without_gradients};
use crate::training::Loss;
use crate::vocabulary::{PAD, PieceTensor};

/// How each token of a batch was predicted from those before it, `[B, N]` each, f32.
#[derive(Clone, Debug)]
pub struct TokenScores {
    /// −ln p of the token, and of the number that it carries.
    pub nats: Tensor,
    /// One where the most likely token is the right one.
    pub correct: Tensor,
    /// One where there is a token, zero for padding.
    pub counted: Tensor,
    /// How far the most likely number is from the right one, in deviations of the training numbers; zero where the token
    /// carries none.
    pub errors: Tensor,
}

impl Emitter {
    /// The mean of −ln p over all tokens of a batch, `<separator>` and `<eos>` counted, padding not, and the same of the
    /// numbers that they carry, weighted; also the share of tokens that are the most likely one (teacher forcing).
    pub fn loss(&self, batch: &EmitterBatch) -> Result<Loss> {
        let Parts { inputs, targets, numbers, counted } = parts(batch)?;
        let seen = self.seen(&batch.condition, &inputs)?;
        let scores = self.score(&seen)?;
        let mut total = cross_entropy(&scores, &targets, &counted, self.config.form)?;
        let right = (correct(&scores, &targets)? * share(&counted)?)?.sum_all()?;
        let mut terms = vec![("cross_entropy", total.detach()), ("accuracy", right)];
        if let Some(writer) = self.writer() {
            let nats = (writer.scores(&seen, &targets, &numbers)?.nats * share(&counted)?)?.sum_all()?;
            terms.push(("numbers", nats.detach()));
            total = (total + (nats * self.config.number_weight)?)?;
        }
        Ok(Loss { terms, total })
    }

    /// The same for each token, without gradients: what held-out figures are made of.
    pub fn token_scores(&self, batch: &EmitterBatch) -> Result<TokenScores> {
        let Parts { inputs, targets, numbers, counted } = parts(batch)?;
        let seen = without_gradients(|| self.seen(&batch.condition, &inputs))?.detach();
        let scores = without_gradients(|| self.score(&seen))?.detach();
        let mut nats = (nats(&scores, &targets)?.0 * &counted)?;
        let mut errors = counted.zeros_like()?;
        if let Some(writer) = self.writer() {
            let own = writer.scores(&seen, &targets, &numbers)?;
            (nats, errors) = ((nats + own.nats.detach())?, own.errors);
        }
        let shape = inputs.ids.shape();
        Ok(TokenScores {
            nats: nats.reshape(shape)?,
            correct: (correct(&scores, &targets)? * &counted)?.reshape(shape)?,
            counted: counted.reshape(shape)?,
            errors: errors.reshape(shape)?,
        })
    }
}

/// A batch as inputs `[B, N]` and what comes after each, `[B·N]`.
struct Parts {
    inputs: PieceTensor,
    targets: Tensor,
    /// The numbers that the targets carry.
    numbers: Tensor,
    /// One where there is a target, zero for padding.
    counted: Tensor,
}

fn parts(batch: &EmitterBatch) -> Result<Parts> {
    let (_, tokens) = batch.tokens.ids.dims2()?;
    let PieceTensor { ids, numbers } = batch.tokens.columns(1, tokens - 1)?;
    let (targets, numbers) = (ids.flatten_all()?, numbers.flatten_all()?);
    let counted = targets.ne(PAD)?.to_dtype(DType::F32)?;
    Ok(Parts { inputs: batch.tokens.columns(0, tokens - 1)?, targets, numbers, counted })
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
