//! What stands between the products of a layer, on CPUs: each one pass over memory, on all threads.
//!
//! The tensor framework computes these one element and one thread at a time, with a pass for each operation. Here they are
//! loops that the compiler turns into vector instructions of the machine. Sums have a fixed number of
//! lanes and nothing is contracted, so results depend neither on the machine nor on the number of threads. Forward only.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, CustomOp3, InplaceOp1, InplaceOp2, InplaceOp3};
use candle_core::{Layout, Result, Shape, Tensor, bail};
use rayon::prelude::*;

use crate::vectorised::vectorised;

/// Partial sums of a reduction.
const LANES: usize = 16;

/// Rows that a thread takes at once.
const ROWS: usize = 16;

/// LayerNorm over the last dimension.
///
/// # Shapes
/// `x`: `[…, D]`; `weight`, `bias`: `[D]`; the result: as `x`.
pub(super) fn layer_norm(x: &Tensor, weight: &Tensor, bias: &Tensor, eps: f64) -> Result<Tensor> {
    x.apply_op3_no_bwd(weight, bias, &LayerNorm { eps: eps as f32 })
}

/// x ← GELU(x + b), with the exact GELU: y·Φ(y).
///
/// # Shapes
/// `x`: `[…, D]`; `bias`: `[D]`.
pub(super) fn bias_gelu(x: &Tensor, bias: &Tensor) -> Result<()> {
    x.inplace_op2(bias, &BiasGelu)
}

/// x ← x + y + b.
///
/// # Shapes
/// `x`, `y`: `[…, D]`; `bias`: `[D]`.
pub(super) fn add(x: &Tensor, y: &Tensor, bias: &Tensor) -> Result<()> {
    x.inplace_op3(y, bias, &Add)
}

/// Queries, keys and values with their biases, apart and head by head. Queries are scaled by 1/√d.
///
/// # Shapes
/// `qkv`: `[B, N, 3 · D]`; `bias`: `[3 · D]`; the result: `[3, B · heads, N, d]`, d = D / heads.
pub(super) fn split_heads(qkv: &Tensor, bias: &Tensor, heads: usize) -> Result<Tensor> {
    qkv.apply_op2_no_bwd(bias, &SplitHeads { heads })
}

/// Softmax over the last dimension, in place.
pub(super) fn softmax(x: &Tensor) -> Result<()> {
    x.inplace_op1(&Softmax)
}

/// The heads side by side again.
///
/// # Shapes
/// `x`: `[B · heads, N, d]`; the result: `[B, N, D]`, D = heads · d.
pub(super) fn merge_heads(x: &Tensor, heads: usize) -> Result<Tensor> {
    x.apply_op1_no_bwd(&MergeHeads { heads })
}

struct LayerNorm {
    eps: f32,
}

impl CustomOp3 for LayerNorm {
    fn name(&self) -> &'static str {
        "encoder layer norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (x, weight, bias) = (values(x, layout)?, values(weight, weight_layout)?, values(bias, bias_layout)?);
        let width = weight.len();
        let mut out = vec![0.0; x.len()];
        let blocks = out.par_chunks_mut(ROWS * width).zip(x.par_chunks(ROWS * width));
        blocks.for_each(|(out, x)| normalize_rows(out, x, (weight, bias), self.eps));
        Ok((CpuStorage::F32(out), layout.shape().clone()))
    }
}

vectorised! {
    fn normalize_rows<'a>(out: &'a mut [f32], x: &'a [f32], affine: (&'a [f32], &'a [f32]), eps: f32) -> () {
        let ((weight, bias), width) = (affine, affine.0.len());
        for (out, x) in out.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
            let mean = sum(x, |value| value) / width as f32;
            let variance = sum(x, |value| (value - mean) * (value - mean)) / width as f32;
            let scale = 1.0 / (variance + eps).sqrt();
            for (((out, x), weight), bias) in out.iter_mut().zip(x).zip(weight).zip(bias) {
                *out = (x - mean) * scale * weight + bias;
            }
        }
    }
}

struct BiasGelu;

impl InplaceOp2 for BiasGelu {
    fn name(&self) -> &'static str {
        "encoder bias + gelu"
    }

    fn cpu_fwd(&self, x: &mut CpuStorage, layout: &Layout, bias: &CpuStorage, bias_layout: &Layout) -> Result<()> {
        let (x, bias) = (values_mut(x, layout)?, values(bias, bias_layout)?);
        x.par_chunks_mut(ROWS * bias.len()).for_each(|rows| gelu_rows(rows, bias));
        Ok(())
    }
}

vectorised! {
    fn gelu_rows<'a>(rows: &'a mut [f32], bias: &'a [f32]) -> () {
        for row in rows.chunks_exact_mut(bias.len()) {
            row.iter_mut().zip(bias).for_each(|(value, bias)| *value = gelu(*value + bias));
        }
    }
}

struct Add;

impl InplaceOp3 for Add {
    fn name(&self) -> &'static str {
        "encoder residual + bias"
    }

    fn cpu_fwd(
        &self,
        x: &mut CpuStorage,
        layout: &Layout,
        y: &CpuStorage,
        y_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<()> {
        let (x, y, bias) = (values_mut(x, layout)?, values(y, y_layout)?, values(bias, bias_layout)?);
        let block = ROWS * bias.len();
        x.par_chunks_mut(block).zip(y.par_chunks(block)).for_each(|(x, y)| add_rows(x, y, bias));
        Ok(())
    }
}

vectorised! {
    fn add_rows<'a>(x: &'a mut [f32], y: &'a [f32], bias: &'a [f32]) -> () {
        for (x, y) in x.chunks_exact_mut(bias.len()).zip(y.chunks_exact(bias.len())) {
            x.iter_mut().zip(y).zip(bias).for_each(|((x, y), bias)| *x += y + bias);
        }
    }
}

struct SplitHeads {
    heads: usize,
}

impl CustomOp2 for SplitHeads {
    fn name(&self) -> &'static str {
        "encoder split of heads"
    }

    fn cpu_fwd(
        &self,
        qkv: &CpuStorage,
        layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (batch, tokens, width) = layout.shape().dims3()?;
        let (qkv, bias) = (values(qkv, layout)?, values(bias, bias_layout)?);
        let head = width / 3 / self.heads;
        let scale = 1.0 / (head as f32).sqrt();
        let mut out = vec![0.0; qkv.len()];
        // One block is a head of one picture: [N, d].
        out.par_chunks_mut(tokens * head).enumerate().for_each(|(at, out)| {
            let (part, picture, own) = (at / (batch * self.heads), at / self.heads % batch, at % self.heads);
            let column = part * width / 3 + own * head;
            let scale = if part == 0 { scale } else { 1.0 };
            let bias = &bias[column..column + head];
            let rows = qkv[picture * tokens * width..(picture + 1) * tokens * width].chunks_exact(width);
            for (out, row) in out.chunks_exact_mut(head).zip(rows) {
                let row = &row[column..column + head];
                for ((out, value), bias) in out.iter_mut().zip(row).zip(bias) {
                    *out = (value + bias) * scale;
                }
            }
        });
        Ok((CpuStorage::F32(out), (3, batch * self.heads, tokens, head).into()))
    }
}

struct Softmax;

impl InplaceOp1 for Softmax {
    fn name(&self) -> &'static str {
        "encoder softmax"
    }

    fn cpu_fwd(&self, x: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let width = layout.shape().dims().last().copied().unwrap_or(1).max(1);
        let x = values_mut(x, layout)?;
        x.par_chunks_mut(ROWS * width).for_each(|rows| softmax_rows(rows, width));
        Ok(())
    }
}

vectorised! {
    fn softmax_rows<'a>(rows: &'a mut [f32], width: usize) -> () {
        for row in rows.chunks_exact_mut(width) {
            let largest = max(row);
            row.iter_mut().for_each(|value| *value = exp(*value - largest));
            let scale = 1.0 / sum(row, |value| value);
            row.iter_mut().for_each(|value| *value *= scale);
        }
    }
}

struct MergeHeads {
    heads: usize,
}

impl CustomOp1 for MergeHeads {
    fn name(&self) -> &'static str {
        "encoder merge of heads"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (blocks, tokens, head) = layout.shape().dims3()?;
        let x = values(x, layout)?;
        let width = self.heads * head;
        let mut out = vec![0.0; x.len()];
        let pictures = out.par_chunks_mut(tokens * width).zip(x.par_chunks(tokens * width));
        pictures.for_each(|(out, x)| {
            for (own, x) in x.chunks_exact(tokens * head).enumerate() {
                for (row, x) in out.chunks_exact_mut(width).zip(x.chunks_exact(head)) {
                    row[own * head..(own + 1) * head].copy_from_slice(x);
                }
            }
        });
        Ok((CpuStorage::F32(out), (blocks / self.heads, tokens, width).into()))
    }
}

/// The values of a tensor that lies in memory as its shape says.
fn values<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((start, end))) => Ok(&values[start..end]),
        _ => bail!("the encoder's own operations want contiguous f32"),
    }
}

fn values_mut<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((start, end))) => Ok(&mut values[start..end]),
        _ => bail!("the encoder's own operations want contiguous f32"),
    }
}

/// Σ f(x), in lanes.
#[inline(always)]
fn sum(values: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += f(*value));
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, value)| *lane += f(*value));
    lanes.iter().sum()
}

#[inline(always)]
fn max(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane = larger(*value, *lane));
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, value)| *lane = larger(*value, *lane));
    lanes.into_iter().fold(f32::NEG_INFINITY, larger)
}

/// eˣ = 2ⁿ · eʳ with |r| ≤ ln 2 / 2, by its series. Below −87 it is as at −87, which no sum of ours can tell from 0.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Added to a small number, it leaves the nearest integer in the lowest bits of the sum.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts, the first of which is exact when multiplied by a small integer.
    const LN_2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);
    let x = if x < -87.0 { -87.0 } else { x };
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = x - n * LN_2.0 - n * LN_2.1;
    let series = 1.0 / 5040.0;
    let series = series * r + 1.0 / 720.0;
    let series = series * r + 1.0 / 120.0;
    let series = series * r + 1.0 / 24.0;
    let series = series * r + 1.0 / 6.0;
    let series = series * r + 0.5;
    let series = series * r + 1.0;
    let series = series * r + 1.0;
    let power = rounded.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    series * f32::from_bits(power)
}

/// x·Φ(x). The tail ½·erfc(a) for a = |x|/√2 is ½·t·e^(−a²)·Q(t), t = 1/(1 + 0.4·a); Q is the polynomial through
/// erfcx(a)/t at Chebyshev's nodes for a in [0, 10], which is off by less than 1e-7 of it.
#[inline(always)]
fn gelu(x: f32) -> f32 {
    const Q: [f32; 9] = [
        0.038_508_51,
        -0.127_446_43,
        0.058_450_89,
        0.115_858_614,
        0.061_465_688,
        0.200_742_54,
        0.200_125_26,
        0.226_673_26,
        0.225_621_7,
    ];
    let t = 1.0 / (1.0 + 0.4 * std::f32::consts::FRAC_1_SQRT_2 * x.abs());
    let mut q = Q[0];
    for coefficient in &Q[1..] {
        q = q * t + coefficient;
    }
    let tail = 0.5 * t * q * exp(-0.5 * x * x);
    x * if x < 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    fn wave(shape: &[usize], speed: f32) -> Tensor {
        let count = shape.iter().product::<usize>();
        let values: Vec<f32> = (0..count).map(|at| (at as f32 * speed).sin() * 3.0).collect();
        Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
    }

    fn furthest(found: &Tensor, expected: &Tensor) -> f32 {
        assert_eq!(found.dims(), expected.dims());
        (found - expected).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap()
    }

    #[test]
    fn exp_and_gelu_are_exact_to_rounding() {
        for at in -40_000..=40_000 {
            let x = at as f32 / 2000.0;
            let off = f64::from(exp(x)) / f64::from(x).exp() - 1.0;
            assert!(off.abs() < 3e-7, "exp({x}) is off by {off}");
        }
        assert!(exp(-1000.0) < 1e-37 && exp(0.0) == 1.0);
        // 50-digit values of x·Φ(x), rounded.
        let known = [
            (-6.0, -5.919_525_9e-9_f64),
            (-3.0, -0.004_049_694_095_1),
            (-1.0, -0.158_655_253_93),
            (0.0, 0.0),
            (0.5, 0.345_731_230_64),
            (2.0, 1.954_499_736_1),
            (20.0, 20.0),
        ];
        for (x, expected) in known {
            let off = f64::from(gelu(x)) - expected;
            assert!(off.abs() <= 3e-7 * expected.abs().max(1e-3) + 1e-6 * expected.abs(), "gelu({x}) is off by {off}");
        }
    }

    #[test]
    fn passes_equal_the_composed_operations() {
        let (x, y) = (wave(&[2, 5, 24], 0.7), wave(&[2, 5, 24], 1.3));
        let (weight, bias) = (wave(&[24], 0.9), wave(&[24], 0.4));
        let centred = x.broadcast_sub(&x.mean_keepdim(2).unwrap()).unwrap();
        let deviation = (centred.sqr().unwrap().mean_keepdim(2).unwrap() + 1e-6).unwrap().sqrt().unwrap();
        let norm = centred.broadcast_div(&deviation).unwrap().broadcast_mul(&weight).unwrap();
        let norm = norm.broadcast_add(&bias).unwrap();
        assert!(furthest(&layer_norm(&x, &weight, &bias, 1e-6).unwrap(), &norm) < 1e-5);

        let expected = x.broadcast_add(&bias).unwrap().gelu_erf().unwrap();
        let found = x.copy().unwrap();
        bias_gelu(&found, &bias).unwrap();
        assert!(furthest(&found, &expected) < 2e-6);

        let expected = (&x + &y).unwrap().broadcast_add(&bias).unwrap();
        let found = x.copy().unwrap();
        add(&found, &y, &bias).unwrap();
        assert!(furthest(&found, &expected) < 1e-6);

        let exps = x.broadcast_sub(&x.max_keepdim(2).unwrap()).unwrap().exp().unwrap();
        let expected = exps.broadcast_div(&exps.sum_keepdim(2).unwrap()).unwrap();
        let found = x.copy().unwrap();
        softmax(&found).unwrap();
        assert!(furthest(&found, &expected) < 1e-6);
    }

    #[test]
    fn heads_are_split_and_merged() {
        let qkv = wave(&[2, 5, 24], 0.7);
        let bias = wave(&[24], 0.4);
        let split = split_heads(&qkv, &bias, 2).unwrap();
        let apart = qkv.broadcast_add(&bias).unwrap().reshape((2, 5, 3, 2, 4)).unwrap();
        let apart = apart.permute([2, 0, 3, 1, 4]).unwrap().reshape((3, 4, 5, 4)).unwrap();
        assert!(furthest(&(split.get(0).unwrap() * 2.0).unwrap(), &apart.get(0).unwrap()) < 1e-6);
        assert!(furthest(&split.narrow(0, 1, 2).unwrap(), &apart.narrow(0, 1, 2).unwrap()) < 1e-6);
        let values = qkv.broadcast_add(&bias).unwrap().narrow(2, 16, 8).unwrap();
        assert!(furthest(&merge_heads(&split.get(2).unwrap(), 2).unwrap(), &values) < 1e-6);
    }
}
