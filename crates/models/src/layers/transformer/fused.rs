//! All blocks as one node of the graph: the forward pass keeps what the backward pass needs, and that hands over gradients
//! block by block, the last block's first, so that processes can exchange them while it goes on.
//!
//! Everything between the products is fused: a residual connection, the bias before it and the norm after it are one pass, the
//! bias of queries, keys and values is added inside attention, and sums over rows come with passes that are made anyway.

use candle_core::Tensor;

use super::{Block, Transformer};
use crate::error::Result;
use crate::layers::{EPSILON, LayerNorm, Linear};
use crate::ops::bias_activation::{self, Activation, column_sum};
use crate::ops::layer_norm::{self, Normalized};
use crate::ops::{attention, gradients_wanted, graft};

/// What a block keeps. `rows` = batch · tokens.
struct Kept {
    /// The residual stream before the block, and its norm. `[rows, width]`
    first: Normalized,
    /// `[batch, tokens, 3, heads, d]`, without bias
    qkv: Tensor,
    /// `[rows, width]`
    seen: Tensor,
    /// The residual stream after attention, and its norm. `[rows, width]`
    second: Normalized,
    /// Before bias and activation. `[rows, 4·width]`
    up: Tensor,
    /// After them. `[rows, 4·width]`
    hidden: Tensor,
}

/// # Shapes
/// `x`: `[batch, tokens, width]`, and so is the result.
pub(super) fn forward(model: &Transformer, x: &Tensor) -> Result<Tensor> {
    let (batch, tokens, width) = x.dims3()?;
    let keep = gradients_wanted();
    let mut stream = x.detach().contiguous()?.reshape((batch * tokens, width))?;
    // What the block before adds to the stream, with the bias that goes with it.
    let mut added: Option<(Tensor, &Linear)> = None;
    let mut kept = Vec::new();
    for block in &model.blocks {
        let (state, down) = block_forward(block, model, &stream, added, (batch, tokens))?;
        stream = state.second.sum.clone();
        added = Some((down, &block.down));
        if keep {
            kept.push(state);
        }
    }
    let last = norm_forward(&model.norm, &stream, added)?;
    let y = last.y.reshape((batch, tokens, width))?;
    if !keep {
        return Ok(y);
    }
    let model = model.clone();
    model.each_parameter(|parameter| parameter.expect_gradient());
    let (tracked, anchor) = (x.track_op(), model.norm.bias.clone());
    let anchor = if tracked { x } else { anchor.master().as_tensor() };
    graft(anchor, y, move |dy| {
        let dy = dy.contiguous()?.reshape((batch * tokens, width))?;
        let dx = backward(&model, &kept, &last, &dy, (batch, tokens))?;
        Ok(if tracked { Some(dx.reshape((batch, tokens, width))?) } else { None })
    })
}

fn norm_forward(norm: &LayerNorm, stream: &Tensor, added: Option<(Tensor, &Linear)>) -> Result<Normalized> {
    let bias = added.as_ref().map(|(_, linear)| linear.bias.vector());
    let added = added.as_ref().zip(bias.as_ref()).map(|((added, _), bias)| (added, bias));
    Ok(layer_norm::forward(stream, added, (&norm.weight.vector(), &norm.bias.vector()), EPSILON)?)
}

fn block_forward(
    block: &Block,
    model: &Transformer,
    stream: &Tensor,
    added: Option<(Tensor, &Linear)>,
    (batch, tokens): (usize, usize),
) -> Result<(Kept, Tensor)> {
    let (rows, width) = stream.dims2()?;
    let heads = model.config.heads;
    let first = norm_forward(&block.norm_1, stream, added)?;
    let qkv = first.y.matmul(&block.qkv.weight.working().t()?)?.reshape((batch, tokens, 3, heads, width / heads))?;
    let seen = attention::forward(&qkv, &block.qkv.bias.vector(), model.config.causal)?.reshape((rows, width))?;
    let out = seen.matmul(&block.out.weight.working().t()?)?;
    let second = norm_forward(&block.norm_2, &first.sum, Some((out, &block.out)))?;
    let up = second.y.matmul(&block.up.weight.working().t()?)?;
    let hidden = bias_activation::forward(&up, &block.up.bias.vector(), Activation::GeluTanh)?;
    let down = hidden.matmul(&block.down.weight.working().t()?)?;
    Ok((Kept { first, qkv, seen, second, up, hidden }, down))
}

/// # Shapes
/// `dy`: `[rows, width]`; gives the gradient of the input, `[rows, width]`.
fn backward(
    model: &Transformer,
    kept: &[Kept],
    last: &Normalized,
    dy: &Tensor,
    (batch, tokens): (usize, usize),
) -> Result<Tensor> {
    // The gradient of the residual stream, on its way down.
    let mut stream = norm_backward(&model.norm, last, dy, None, model.blocks.last().map(|block| &block.down))?;
    for (at, (block, kept)) in model.blocks.iter().zip(kept).enumerate().rev() {
        let hidden = linear_backward(&block.down, &kept.hidden, &stream)?;
        let (up, bias) = bias_activation::backward(&kept.up, &block.up.bias.vector(), &hidden, Activation::GeluTanh)?;
        block.up.bias.add_gradient(bias)?;
        let normal = linear_backward(&block.up, &kept.second.y, &up)?;
        stream = norm_backward(&block.norm_2, &kept.second, &normal, Some(&stream), Some(&block.out))?;
        let seen = linear_backward(&block.out, &kept.seen, &stream)?;
        let (rows, width) = seen.dims2()?;
        let seen = seen.reshape((batch, tokens, width))?;
        let qkv = attention::backward(&kept.qkv, &block.qkv.bias.vector(), &seen, model.config.causal)?;
        let qkv = qkv.reshape((rows, 3 * width))?;
        block.qkv.bias.add_gradient(column_sum(&qkv)?)?;
        let normal = linear_backward(&block.qkv, &kept.first.y, &qkv)?;
        let before = at.checked_sub(1).map(|before| &model.blocks[before].down);
        stream = norm_backward(&block.norm_1, &kept.first, &normal, Some(&stream), before)?;
    }
    Ok(stream)
}

/// The gradient of a linear layer's input; its weight's is handed over, its bias's comes with the norm's pass or the activation's.
fn linear_backward(linear: &Linear, x: &Tensor, dy: &Tensor) -> Result<Tensor> {
    linear.weight.add_gradient(dy.t()?.matmul(x)?)?;
    Ok(dy.matmul(linear.weight.working())?)
}

/// The gradient of the stream that went into a norm; `added` is the layer whose output was added to it there.
fn norm_backward(
    norm: &LayerNorm,
    kept: &Normalized,
    dy: &Tensor,
    residual: Option<&Tensor>,
    added: Option<&Linear>,
) -> Result<Tensor> {
    let found = layer_norm::backward(kept, &norm.weight.vector(), dy, residual)?;
    norm.weight.add_gradient(found.weight)?;
    norm.bias.add_gradient(found.bias)?;
    if let Some(added) = added {
        added.bias.add_gradient(found.added_bias)?;
    }
    Ok(found.x)
}
