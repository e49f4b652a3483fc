//! Attention: a block for each head of each sequence, which it holds in shared memory.

use candle_core::{CudaDevice, DType, Result, Tensor};

use super::{Arg, Grid, aligned, attention_module, checked, empty, most_shared};

/// Rows of a tile, and the most tiles that a block holds: a lane keeps two rows of scores in its registers.
const TILE: usize = 16;
const MOST: usize = 12;

/// Whether the kernels take it: bf16, heads in whole tiles, and few enough tokens for shared memory. On an H200 that is 176
/// tokens of heads of 64 numbers.
pub(in crate::ops) fn fits(device: &CudaDevice, qkv: &Tensor) -> Result<bool> {
    let (_, tokens, three, _, head) = qkv.dims5()?;
    let whole = three == 3 && head.is_multiple_of(TILE) && (TILE..=128).contains(&head);
    let is_short = (1..=TILE * MOST).contains(&tokens) && grid(1, tokens, head, BACKWARD).shared <= most_shared(device);
    Ok(qkv.dtype() == DType::BF16 && whole && is_short)
}

/// Arrays of rows and of scores in shared memory.
const FORWARD: (usize, usize) = (3, 0);
const BACKWARD: (usize, usize) = (4, 2);

/// # Shapes
/// As [`attention::forward`](crate::ops::attention::forward), for a `qkv` that [`fits`].
pub(in crate::ops) fn forward(device: &CudaDevice, qkv: &Tensor, bias: &Tensor, causal: bool) -> Result<Tensor> {
    let (batch, tokens, three, heads, head) = qkv.dims5()?;
    let module = attention_module(device, tokens.div_ceil(TILE), head, causal)?;
    let out = empty(device, DType::BF16, &[batch, tokens, heads * head])?;
    let args = [
        aligned(device, qkv, DType::BF16, &[batch, tokens, three, heads, head])?,
        checked(device, bias, DType::F32, &[three * heads * head])?,
        aligned(device, &out, DType::BF16, &[batch, tokens, heads * head])?,
        Arg::count(tokens)?,
        Arg::count(heads)?,
        scale(head),
    ];
    // SAFETY: `attention_forward(qkv, bias, out, int, int, float)`, compiled for this many tiles of tokens and this head, with
    // shared memory for queries, keys and values. A block takes one of `batch · heads` heads, and tokens beyond the last
    // are neither read nor written. `out` is new.
    unsafe { module.launch("attention_forward", grid(batch * heads, tokens, head, FORWARD), &args) }?;
    Ok(out)
}

/// # Shapes
/// As [`attention::backward`](crate::ops::attention::backward), for a `qkv` that [`fits`].
pub(in crate::ops) fn backward(
    device: &CudaDevice,
    qkv: &Tensor,
    bias: &Tensor,
    gradient: &Tensor,
    causal: bool,
) -> Result<Tensor> {
    let (batch, tokens, three, heads, head) = qkv.dims5()?;
    let module = attention_module(device, tokens.div_ceil(TILE), head, causal)?;
    let out = empty(device, DType::BF16, &[batch, tokens, three, heads, head])?;
    let args = [
        aligned(device, qkv, DType::BF16, &[batch, tokens, three, heads, head])?,
        checked(device, bias, DType::F32, &[three * heads * head])?,
        aligned(device, gradient, DType::BF16, &[batch, tokens, heads * head])?,
        aligned(device, &out, DType::BF16, &[batch, tokens, three, heads, head])?,
        Arg::count(tokens)?,
        Arg::count(heads)?,
        scale(head),
    ];
    // SAFETY: `attention_backward(qkv, bias, gradient, dqkv, int, int, float)`, compiled and laid out as the forward pass,
    // with shared memory for the gradient and two arrays of scores more. `dqkv` is new.
    unsafe { module.launch("attention_backward", grid(batch * heads, tokens, head, BACKWARD), &args) }?;
    Ok(out)
}

/// A warp for each tile of tokens, with shared memory for `wide` arrays of rows and `square` arrays of scores.
fn grid(blocks: usize, tokens: usize, head: usize, (wide, square): (usize, usize)) -> Grid {
    let tiles = tokens.div_ceil(TILE);
    let rows = tiles * TILE;
    let shared = (2 * rows * (wide * (head + 8) + square * (rows + 8))) as u32;
    Grid { blocks: (blocks as u32, 1), threads: (32 * tiles as u32, 1), shared }
}

fn scale(head: usize) -> Arg {
    Arg::Float(1.0 / (head as f32).sqrt())
}
