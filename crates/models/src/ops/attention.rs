//! softmax(q kᵀ/√d + mask) v for sequences short enough to be held whole, from one product's output.
//!
//! Queries, keys and values come as `[batch, tokens, 3, heads, d]` without their bias, which is added on the way in. Nothing of
//! the forward pass is kept: the backward pass makes the probabilities again, which costs less than reading them.
//! With P the probabilities and G the gradient of the output: dV = Pᵀ G, dS = P∘(G Vᵀ − rowsum(P∘G Vᵀ))/√d, dQ = dS K, dK = dSᵀ Q.

use std::ops::Range;

use candle_core::{D, DType, Result, Tensor};
use pulp::Simd;

use super::cpu;
#[cfg(feature = "cuda")]
use super::cuda;
use super::small_product::{Factor, product};
use crate::vectorised::vectorised;

/// Attention of each token to all tokens, or to those up to itself. Half precision on the CPU and sequences that are too
/// long for a block of threads run composed.
///
/// # Shapes
/// `qkv`: `[batch, tokens, 3, heads, d]`, contiguous; `bias`: `[3·heads·d]` in f32; gives `[batch, tokens, heads·d]`.
pub fn forward(qkv: &Tensor, bias: &Tensor, causal: bool) -> Result<Tensor> {
    match qkv.device() {
        candle_core::Device::Cpu if qkv.dtype() == DType::F32 => cpu_forward(qkv, bias, causal),
        #[cfg(feature = "cuda")]
        candle_core::Device::Cuda(device) if cuda::attention::fits(device, qkv)? => {
            cuda::attention::forward(device, qkv, bias, causal)
        }
        _ => composed_forward(qkv, bias, causal),
    }
}

/// The gradient of `qkv`, in its shape, from that of the output.
pub fn backward(qkv: &Tensor, bias: &Tensor, gradient: &Tensor, causal: bool) -> Result<Tensor> {
    match qkv.device() {
        candle_core::Device::Cpu if qkv.dtype() == DType::F32 => cpu_backward(qkv, bias, gradient, causal),
        #[cfg(feature = "cuda")]
        candle_core::Device::Cuda(device) if cuda::attention::fits(device, qkv)? => {
            cuda::attention::backward(device, qkv, bias, gradient, causal)
        }
        _ => composed_backward(qkv, bias, gradient, causal),
    }
}

/// softmax(q kᵀ/√d + mask), in f32; the queries are the last tokens of the keys.
///
/// # Shapes
/// `query`: `[batch, heads, queries, d]`, `keys`: `[batch, heads, tokens, d]`; gives `[batch, heads, queries, tokens]`.
pub fn probabilities(query: &Tensor, keys: &Tensor, causal: bool) -> Result<Tensor> {
    let (.., queries, head) = query.dims4()?;
    let (.., tokens, _) = keys.dims4()?;
    let scores = (query.matmul(&keys.transpose(2, 3)?.contiguous()?)?.to_dtype(DType::F32)? / (head as f64).sqrt())?;
    let scores = if causal && queries > 1 {
        let first = tokens - queries;
        let seen = |row: usize, column: usize| if column > first + row { f32::NEG_INFINITY } else { 0.0 };
        let mask: Vec<f32> = (0..queries).flat_map(|row| (0..tokens).map(move |column| seen(row, column))).collect();
        scores.broadcast_add(&Tensor::from_vec(mask, (queries, tokens), query.device())?)?
    } else {
        scores
    };
    let scores = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?.detach())?.exp()?;
    scores.broadcast_div(&scores.sum_keepdim(D::Minus1)?)
}

/// Queries, keys and values with their bias, each `[batch, heads, tokens, d]`.
fn parts(qkv: &Tensor, bias: &Tensor) -> Result<[Tensor; 3]> {
    let (_, _, three, heads, head) = qkv.dims5()?;
    let qkv = qkv.broadcast_add(&bias.to_dtype(qkv.dtype())?.reshape((three, heads, head))?)?;
    let part = |which: usize| qkv.narrow(2, which, 1)?.squeeze(2)?.transpose(1, 2)?.contiguous();
    Ok([part(0)?, part(1)?, part(2)?])
}

fn composed_forward(qkv: &Tensor, bias: &Tensor, causal: bool) -> Result<Tensor> {
    let (batch, tokens, _, heads, head) = qkv.dims5()?;
    let [query, keys, values] = parts(qkv, bias)?;
    let seen = probabilities(&query, &keys, causal)?.to_dtype(qkv.dtype())?.matmul(&values)?;
    seen.transpose(1, 2)?.reshape((batch, tokens, heads * head))
}

fn composed_backward(qkv: &Tensor, bias: &Tensor, gradient: &Tensor, causal: bool) -> Result<Tensor> {
    let (batch, tokens, _, heads, head) = qkv.dims5()?;
    let [query, keys, values] = parts(qkv, bias)?;
    let gradient = gradient.reshape((batch, tokens, heads, head))?.transpose(1, 2)?.contiguous()?;
    let found = probabilities(&query, &keys, causal)?;
    let slopes = gradient.matmul(&values.transpose(2, 3)?.contiguous()?)?.to_dtype(DType::F32)?;
    let delta = (&found * &slopes)?.sum_keepdim(D::Minus1)?;
    let scores = ((&found * slopes.broadcast_sub(&delta)?)? / (head as f64).sqrt())?.to_dtype(qkv.dtype())?;
    let transposed = |x: &Tensor| x.transpose(2, 3)?.contiguous();
    let d_query = scores.matmul(&keys)?;
    let d_keys = transposed(&scores)?.matmul(&query)?;
    let d_values = transposed(&found.to_dtype(qkv.dtype())?)?.matmul(&gradient)?;
    // [3, batch, heads, tokens, d] to [batch, tokens, 3, heads, d].
    Tensor::stack(&[d_query, d_keys, d_values], 0)?.permute((1, 3, 0, 2, 4))?.contiguous()
}

/// One head of one sequence on the CPU: everything contiguous, keys and values transposed too, so that all inner loops run
/// along rows.
struct Head {
    tokens: usize,
    width: usize,
    /// Queries, keys, values, each `[tokens, width]`.
    qkv: [Vec<f32>; 3],
    /// Keys and values, each `[width, tokens]`.
    transposed: [Vec<f32>; 2],
    /// The gradient of the output, `[tokens, width]`.
    gradient: Vec<f32>,
    /// Probabilities, and the gradient of the scores, each `[tokens, tokens]`.
    probabilities: Vec<f32>,
    slopes: Vec<f32>,
}

impl Head {
    fn new(tokens: usize, width: usize) -> Head {
        let (wide, square) = (|| vec![0.0; tokens * width], || vec![0.0; tokens * tokens]);
        Head {
            tokens,
            width,
            qkv: [wide(), wide(), wide()],
            transposed: [wide(), wide()],
            gradient: wide(),
            probabilities: square(),
            slopes: square(),
        }
    }

    #[inline(always)]
    fn load(&mut self, qkv: &[f32], bias: &[f32], head: usize, heads: usize) {
        let (tokens, width, row) = (self.tokens, self.width, heads * self.width);
        for (which, part) in self.qkv.iter_mut().enumerate() {
            let offset = which * row + head * width;
            for token in 0..tokens {
                let start = token * 3 * row + offset;
                for at in 0..width {
                    part[token * width + at] = qkv[start + at] + bias[offset + at];
                }
            }
        }
        for (part, target) in self.qkv[1..].iter().zip(&mut self.transposed) {
            for token in 0..tokens {
                for at in 0..width {
                    target[at * tokens + token] = part[token * width + at];
                }
            }
        }
    }

    /// The probabilities of all rows; zero for the tokens that a row does not see.
    #[inline(always)]
    fn attend<S: Simd>(&mut self, simd: S, causal: bool) {
        let (tokens, width) = (self.tokens, self.width);
        let scale = 1.0 / (width as f32).sqrt();
        let query = Factor { values: &self.qkv[0], row: width, column: 1 };
        let keys = (self.transposed[0].as_slice(), tokens);
        scores(simd, &mut self.probabilities, tokens, query, keys, width, causal);
        for (row, scores) in self.probabilities.chunks_exact_mut(tokens).enumerate() {
            let seen = if causal { row + 1 } else { tokens };
            let most = cpu::largest(&scores[..seen]);
            scores[..seen].iter_mut().for_each(|score| *score = cpu::exp((*score - most) * scale));
            scores[seen..].fill(0.0);
            let share = 1.0 / cpu::total(scores[..seen].iter().copied(), seen);
            scores[..seen].iter_mut().for_each(|score| *score *= share);
        }
    }
}

fn cpu_forward(qkv: &Tensor, bias: &Tensor, causal: bool) -> Result<Tensor> {
    use rayon::prelude::*;
    let (batch, tokens, _, heads, width) = qkv.dims5()?;
    let row = heads * width;
    cpu::slices([qkv, bias], |[qkv, bias]| {
        let mut out = vec![0.0_f32; batch * tokens * row];
        if batch >= rayon::current_num_threads() {
            let sequences = out.par_chunks_mut(tokens * row).zip(qkv.par_chunks(tokens * 3 * row));
            sequences.for_each_init(
                || Head::new(tokens, width),
                |one, (out, qkv)| {
                    for head in 0..heads {
                        forward_head(one, (qkv, bias), (&mut out[head * width..], row), (head, heads), causal);
                    }
                },
            );
            return cpu::tensor(out, (batch, tokens, row));
        }
        // With few sequences each head is a piece of work; the numbers are the same. [batch, heads, tokens, width]
        let mut apart = vec![0.0_f32; batch * tokens * row];
        apart.par_chunks_mut(tokens * width).enumerate().for_each_init(
            || Head::new(tokens, width),
            |one, (at, out)| {
                let qkv = &qkv[at / heads * tokens * 3 * row..][..tokens * 3 * row];
                forward_head(one, (qkv, bias), (out, width), (at % heads, heads), causal);
            },
        );
        for (at, head) in apart.chunks_exact(tokens * width).enumerate() {
            let out = &mut out[at / heads * tokens * row..][..tokens * row];
            for (out, head) in out.chunks_exact_mut(row).zip(head.chunks_exact(width)) {
                out[at % heads * width..][..width].copy_from_slice(head);
            }
        }
        cpu::tensor(out, (batch, tokens, row))
    })
}

vectorised! {
    /// One head of one sequence; `out` has a step from row to row.
    fn forward_head<'a, S>(
        simd,
        one: &'a mut Head,
        seen: (&'a [f32], &'a [f32]),
        out: (&'a mut [f32], usize),
        head: (usize, usize),
        causal: bool,
    ) -> () {
        let (tokens, width) = (one.tokens, one.width);
        one.load(seen.0, seen.1, head.0, head.1);
        one.attend(simd, causal);
        let found = Factor { values: &one.probabilities, row: tokens, column: 1 };
        let values = (one.qkv[2].as_slice(), width);
        product(simd, out.0, out.1, (tokens, width), found, values, |rows| seen_by(rows, tokens, causal));
    }
}

fn cpu_backward(qkv: &Tensor, bias: &Tensor, gradient: &Tensor, causal: bool) -> Result<Tensor> {
    use rayon::prelude::*;
    let (batch, tokens, three, heads, width) = qkv.dims5()?;
    let row = heads * width;
    cpu::slices([qkv, bias, gradient], |[qkv, bias, gradient]| {
        let mut out = vec![0.0_f32; batch * tokens * 3 * row];
        let sequences = out.par_chunks_mut(tokens * 3 * row).zip(qkv.par_chunks(tokens * 3 * row));
        let sequences = sequences.zip(gradient.par_chunks(tokens * row));
        sequences.for_each_init(
            || Head::new(tokens, width),
            |one, ((out, qkv), gradient)| backward_sequence(one, (qkv, bias), gradient, out, (heads, causal)),
        );
        cpu::tensor(out, (batch, tokens, three, heads, width))
    })
}

vectorised! {
    /// All heads of one sequence.
    fn backward_sequence<'a, S>(
        simd,
        one: &'a mut Head,
        seen: (&'a [f32], &'a [f32]),
        gradient: &'a [f32],
        out: &'a mut [f32],
        shape: (usize, bool),
    ) -> () {
        let ((qkv, bias), (heads, causal), (tokens, width)) = (seen, shape, (one.tokens, one.width));
        let row = heads * width;
        for head in 0..heads {
            one.load(qkv, bias, head, heads);
            for token in 0..tokens {
                let start = token * row + head * width;
                one.gradient[token * width..(token + 1) * width].copy_from_slice(&gradient[start..start + width]);
            }
            backward_head(simd, one, out, (head, row), causal);
        }
    }
}

#[inline(always)]
fn backward_head<S: Simd>(simd: S, one: &mut Head, out: &mut [f32], (head, row): (usize, usize), causal: bool) {
    let (tokens, width) = (one.tokens, one.width);
    let scale = 1.0 / (width as f32).sqrt();
    one.attend(simd, causal);
    let gradient = Factor { values: &one.gradient, row: width, column: 1 };
    scores(simd, &mut one.slopes, tokens, gradient, (&one.transposed[1], tokens), width, causal);
    for (row, (found, slopes)) in
        one.probabilities.chunks_exact(tokens).zip(one.slopes.chunks_exact_mut(tokens)).enumerate()
    {
        let seen = if causal { row + 1 } else { tokens };
        let delta = cpu::total(found.iter().zip(&*slopes).map(|(found, slope)| found * slope).take(seen), seen);
        // What the mask hides may hold anything; its probability is zero, but zero times infinity is not.
        slopes[seen..].fill(0.0);
        slopes[..seen].iter_mut().zip(found).for_each(|(slope, found)| *slope = found * (*slope - delta) * scale);
    }
    let (slopes, found) = (one.slopes.as_slice(), one.probabilities.as_slice());
    let (shape, place) = ((tokens, width), |which: usize| which * row + head * width);
    // Rows of the transposed are columns; only later queries see a key, if the mask is causal.
    let upright = |values| Factor { values, row: tokens, column: 1 };
    let turned = |values| Factor { values, row: 1, column: tokens };
    let seen = |rows: Range<usize>| seen_by(rows, tokens, causal);
    let seeing = |rows: Range<usize>| if causal { rows.start..tokens } else { 0..tokens };
    product(simd, &mut out[place(0)..], 3 * row, shape, upright(slopes), (&one.qkv[1], width), seen);
    product(simd, &mut out[place(1)..], 3 * row, shape, turned(slopes), (&one.qkv[0], width), seeing);
    product(simd, &mut out[place(2)..], 3 * row, shape, turned(found), (&one.gradient, width), seeing);
}

/// Products of all rows with the columns that they see, eight rows at a time.
#[inline(always)]
fn scores<S: Simd>(
    simd: S,
    out: &mut [f32],
    tokens: usize,
    left: Factor<'_>,
    right: (&[f32], usize),
    width: usize,
    causal: bool,
) {
    for start in (0..tokens).step_by(8) {
        let rows = 8.min(tokens - start);
        let columns = if causal { start + rows } else { tokens };
        let left = Factor { values: &left.values[start * left.row..], ..left };
        product(simd, &mut out[start * tokens..], tokens, (rows, columns), left, right, |_| 0..width);
    }
}

/// The tokens that at least one of the rows sees.
#[inline(always)]
fn seen_by(rows: Range<usize>, tokens: usize, causal: bool) -> Range<usize> {
    if causal { 0..rows.end } else { 0..tokens }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{distance, random};

    #[test]
    fn fused_equals_composed() {
        for (batch, tokens, heads, head) in [(1, 1, 1, 1), (2, 5, 3, 7), (3, 48, 2, 32), (1, 17, 4, 16)] {
            for causal in [true, false] {
                let qkv = random(&[batch, tokens, 3, heads, head], 1);
                let (bias, gradient) = (random(&[3 * heads * head], 2), random(&[batch, tokens, heads * head], 3));
                let y = composed_forward(&qkv, &bias, causal).unwrap();
                assert!(distance(&forward(&qkv, &bias, causal).unwrap(), &y) < 1e-6);
                let wanted = composed_backward(&qkv, &bias, &gradient, causal).unwrap();
                let apart = distance(&backward(&qkv, &bias, &gradient, causal).unwrap(), &wanted);
                assert!(apart < 1e-5, "{batch} {tokens} {heads} {head} {causal}: {apart}");
            }
        }
    }

    #[test]
    fn few_sequences_give_the_numbers_of_many() {
        let (qkv, bias) = (random(&[3, 19, 3, 4, 8], 1), random(&[96], 2));
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| forward(&qkv, &bias, false)).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap()
        };
        // One thread takes whole sequences, five take the heads of each.
        assert_eq!(with(1), with(5));
    }

    #[test]
    fn the_composed_backward_is_what_candle_finds() {
        let qkv = candle_core::Var::from_tensor(&random(&[2, 6, 3, 2, 8], 1)).unwrap();
        let (bias, gradient) = (random(&[48], 2), random(&[2, 6, 16], 3));
        let loss = (composed_forward(&qkv, &bias, true).unwrap() * &gradient).unwrap().sum_all().unwrap();
        let found = loss.backward().unwrap();
        let by_hand = composed_backward(&qkv, &bias, &gradient, true).unwrap();
        assert!(distance(&by_hand, found.get(&qkv).unwrap()) < 1e-5);
    }
}
