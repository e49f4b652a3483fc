//! Layer normalisation, in one pass with the residual connection before it.
//!
//! Forward: s = x + added + bias (if something is added), y = (s − μ)/√(σ² + ε) · w + b. Backward, with x̂ the normalised row:
//! dx = (dy·w − mean(dy·w) − x̂·mean(dy·w·x̂))/√(σ² + ε) + residual, dw = Σ dy·x̂, db = Σ dy, and Σ dx, which is the gradient
//! of the bias that was added. Rows are independent, sums over rows are f32.

use candle_core::{Result, Tensor};

use super::cpu;
#[cfg(feature = "cuda")]
use super::cuda;
use crate::vectorised::vectorised;

/// The result of the forward pass, with what the backward pass needs.
#[derive(Clone, Debug)]
pub struct Normalized {
    /// x + added + bias, or x itself. `[rows, width]`
    pub sum: Tensor,
    /// The result. `[rows, width]`
    pub y: Tensor,
    /// The mean of each row, f32. `[rows]`
    pub(super) mean: Tensor,
    /// 1/√(σ² + ε) of each row, f32. `[rows]`
    pub(super) rstd: Tensor,
}

/// Gradients.
#[derive(Clone, Debug)]
pub struct Backward {
    /// Of x, the residual's included. `[rows, width]`
    pub x: Tensor,
    /// Of w, f32. `[width]`
    pub weight: Tensor,
    /// Of b, f32. `[width]`
    pub bias: Tensor,
    /// Of the bias that was added: the sum of `x` over rows, f32. `[width]`
    pub added_bias: Tensor,
}

/// Normalises rows, after something with a bias was added to them if there is something to add. `affine` is w and b.
///
/// # Shapes
/// `x`, `added`: `[rows, width]`; the bias of `added`, `affine`: `[width]` in f32. All contiguous.
pub fn forward(
    x: &Tensor,
    added: Option<(&Tensor, &Tensor)>,
    affine: (&Tensor, &Tensor),
    epsilon: f64,
) -> Result<Normalized> {
    match x.device() {
        candle_core::Device::Cpu => cpu_forward(x, added, affine, epsilon),
        #[cfg(feature = "cuda")]
        candle_core::Device::Cuda(device) => cuda::layer_norm::forward(device, x, added, affine, epsilon),
        _ => Err(super::not_fused("layer normalisation", x)),
    }
}

/// The gradients of a forward pass.
///
/// # Shapes
/// `dy`, `residual`: `[rows, width]`, contiguous.
pub fn backward(kept: &Normalized, weight: &Tensor, dy: &Tensor, residual: Option<&Tensor>) -> Result<Backward> {
    match dy.device() {
        candle_core::Device::Cpu => cpu_backward(kept, weight, dy, residual),
        #[cfg(feature = "cuda")]
        candle_core::Device::Cuda(device) => cuda::layer_norm::backward(device, kept, weight, dy, residual),
        _ => Err(super::not_fused("layer normalisation", dy)),
    }
}

fn cpu_forward(
    x: &Tensor,
    added: Option<(&Tensor, &Tensor)>,
    (weight, bias): (&Tensor, &Tensor),
    epsilon: f64,
) -> Result<Normalized> {
    use rayon::prelude::*;
    let (rows, width) = x.dims2()?;
    let (more, more_bias) = added.unwrap_or((x, weight));
    let adds = added.is_some();
    cpu::slices([x, more, more_bias, weight, bias], |[x, more, more_bias, weight, bias]| {
        let mut sum = if adds { vec![0.0; x.len()] } else { Vec::new() };
        let mut y = vec![0.0; x.len()];
        let (mut mean, mut rstd) = (vec![0.0; rows], vec![0.0; rows]);
        let piece = cpu::ROWS * width;
        let sums: Vec<&mut [f32]> = if adds {
            sum.chunks_mut(piece).collect()
        } else {
            (0..rows.div_ceil(cpu::ROWS)).map(|_| &mut [][..]).collect()
        };
        let work = (x.par_chunks(piece), more.par_chunks(piece), sums, y.par_chunks_mut(piece));
        let stats = (mean.par_chunks_mut(cpu::ROWS), rstd.par_chunks_mut(cpu::ROWS));
        work.into_par_iter().zip(stats.into_par_iter()).for_each(|((x, more, sum, y), (mean, rstd))| {
            let added = if adds { Some((more, more_bias, sum)) } else { None };
            forward_piece(x, added, (weight, bias, epsilon as f32), y, (mean, rstd));
        });
        let shape = (rows, width);
        let y = cpu::tensor(y, shape)?;
        let sum = if adds { cpu::tensor(sum, shape)? } else { Tensor::clone(&y) };
        Ok(Normalized { sum, y, mean: cpu::tensor(mean, rows)?, rstd: cpu::tensor(rstd, rows)? })
    })
    .map(|found| if adds { found } else { Normalized { sum: x.clone(), ..found } })
}

vectorised! {
    /// Rows of the forward pass; what is added to them is the same number of rows, a bias, and the place for the sum.
    fn forward_piece<'a>(
        x: &'a [f32],
        added: Option<(&'a [f32], &'a [f32], &'a mut [f32])>,
        affine: (&'a [f32], &'a [f32], f32),
        y: &'a mut [f32],
        stats: (&'a mut [f32], &'a mut [f32]),
    ) -> () {
        let ((mean, rstd), width) = (stats, affine.0.len());
        y.copy_from_slice(x);
        if let Some((more, bias, sum)) = added {
            for (y, more) in y.chunks_exact_mut(width).zip(more.chunks_exact(width)) {
                add(y, more, bias);
            }
            sum.copy_from_slice(y);
        }
        for (row, y) in y.chunks_exact_mut(width).enumerate() {
            (mean[row], rstd[row]) = normalize(y, affine);
        }
    }
}

#[inline(always)]
fn add(y: &mut [f32], more: &[f32], bias: &[f32]) {
    for ((y, more), bias) in y.iter_mut().zip(more).zip(bias) {
        *y += more + bias;
    }
}

/// Normalises a row in place; returns its mean and 1/√(σ² + ε).
#[inline(always)]
fn normalize(y: &mut [f32], (weight, bias, epsilon): (&[f32], &[f32], f32)) -> (f32, f32) {
    let width = y.len() as f32;
    let mean = cpu::total(y.iter().copied(), y.len()) / width;
    let variance = cpu::total(y.iter().map(|value| (value - mean) * (value - mean)), y.len()) / width;
    let rstd = 1.0 / (variance + epsilon).sqrt();
    for ((y, weight), bias) in y.iter_mut().zip(weight).zip(bias) {
        *y = (*y - mean) * rstd * weight + bias;
    }
    (mean, rstd)
}

fn cpu_backward(kept: &Normalized, weight: &Tensor, dy: &Tensor, residual: Option<&Tensor>) -> Result<Backward> {
    use rayon::prelude::*;
    let (rows, width) = dy.dims2()?;
    let adds = residual.is_some();
    let tensors = [&kept.sum, &kept.mean, &kept.rstd, weight, dy, residual.unwrap_or(dy)];
    cpu::slices(tensors, |[x, mean, rstd, weight, dy, residual]| {
        let mut dx = vec![0.0_f32; rows * width];
        let pieces = rows.div_ceil(cpu::ROWS);
        let places: Vec<std::sync::Mutex<&mut [f32]>> =
            dx.par_chunks_mut(cpu::ROWS * width).map(std::sync::Mutex::new).collect();
        let sums = cpu::sum_over_pieces(pieces, 3 * width, |piece, sums| {
            let mut place = places[piece].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let (dw, rest) = sums.split_at_mut(width);
            let (db, dsum) = rest.split_at_mut(width);
            let rows = piece * cpu::ROWS..rows.min((piece + 1) * cpu::ROWS);
            let at = rows.start * width..rows.end * width;
            let residual = if adds { Some(&residual[at.clone()]) } else { None };
            let seen = (&x[at.clone()], &mean[rows.clone()], &rstd[rows]);
            backward_piece(seen, weight, &dy[at], residual, &mut place, [dw, db, dsum]);
        });
        drop(places);
        let part = |which: usize| cpu::tensor(sums[which * width..(which + 1) * width].to_vec(), width);
        Ok(Backward { x: cpu::tensor(dx, (rows, width))?, weight: part(0)?, bias: part(1)?, added_bias: part(2)? })
    })
}

vectorised! {
    /// Rows of the backward pass; sums over them are added to `sums`: of weight, of bias, of the gradient itself.
    fn backward_piece<'a>(
        seen: (&'a [f32], &'a [f32], &'a [f32]),
        weight: &'a [f32],
        dy: &'a [f32],
        residual: Option<&'a [f32]>,
        dx: &'a mut [f32],
        sums: [&'a mut [f32]; 3],
    ) -> () {
        let ((x, mean, rstd), [dw, db, dsum], width) = (seen, sums, weight.len());
        for row in 0..mean.len() {
            let at = row * width..(row + 1) * width;
            let (x, dy, dx) = (&x[at.clone()], &dy[at.clone()], &mut dx[at.clone()]);
            let residual = residual.map(|residual| &residual[at]);
            backward_row((x, mean[row], rstd[row]), weight, dy, residual, dx, [dw, db, dsum]);
        }
    }
}

#[inline(always)]
fn backward_row(
    (x, mean, rstd): (&[f32], f32, f32),
    weight: &[f32],
    dy: &[f32],
    residual: Option<&[f32]>,
    dx: &mut [f32],
    [dw, db, dsum]: [&mut [f32]; 3],
) {
    let width = x.len();
    let hat = |x: f32| (x - mean) * rstd;
    let scaled = cpu::total(dy.iter().zip(weight).map(|(dy, weight)| dy * weight), width) / width as f32;
    let projected = dy.iter().zip(weight).zip(x).map(|((dy, weight), x)| dy * weight * hat(*x));
    let projected = cpu::total(projected, width) / width as f32;
    for at in 0..width {
        let hat = hat(x[at]);
        dw[at] += dy[at] * hat;
        db[at] += dy[at];
        dx[at] = rstd * (dy[at] * weight[at] - scaled - hat * projected);
    }
    if let Some(residual) = residual {
        dx.iter_mut().zip(residual).for_each(|(dx, residual)| *dx += residual);
    }
    dsum.iter_mut().zip(&*dx).for_each(|(sum, dx)| *sum += dx);
}

#[cfg(test)]
mod tests {
    use candle_core::{D, Var};

    use super::*;
    use crate::ops::testing::{distance, random};

    #[test]
    fn fused_equals_composed() {
        for (rows, width) in [(1, 1), (5, 20), (70, 64), (40, 192)] {
            let vars =
                [(1, rows), (2, rows)].map(|(seed, rows)| Var::from_tensor(&random(&[rows, width], seed)).unwrap());
            let vectors = [3, 4, 5].map(|seed| Var::from_tensor(&random(&[width], seed)).unwrap());
            let ([x, added], [added_bias, weight, bias]) = (&vars, &vectors);
            let sum = (x.as_tensor() + added.as_tensor()).unwrap().broadcast_add(added_bias).unwrap();
            let centred = sum.broadcast_sub(&sum.mean_keepdim(D::Minus1).unwrap()).unwrap();
            let variance = centred.sqr().unwrap().mean_keepdim(D::Minus1).unwrap();
            let normal = centred.broadcast_div(&(variance + 1e-3).unwrap().sqrt().unwrap()).unwrap();
            let y = normal.broadcast_mul(weight).unwrap().broadcast_add(bias).unwrap();
            // The residual is what else the sum is used for.
            let (dy, residual) = (random(&[rows, width], 6), random(&[rows, width], 7));
            let loss =
                ((&y * &dy).unwrap().sum_all().unwrap() + (&sum * &residual).unwrap().sum_all().unwrap()).unwrap();
            let found = loss.backward().unwrap();

            let kept = forward(x, Some((added, added_bias)), (weight, bias), 1e-3).unwrap();
            assert!(distance(&kept.sum, &sum) < 1e-6 && distance(&kept.y, &y) < 1e-5, "{rows} {width}");
            let back = backward(&kept, weight, &dy, Some(&residual)).unwrap();
            for (name, fused, composed) in [
                ("x", &back.x, x),
                ("added bias", &back.added_bias, added_bias),
                ("weight", &back.weight, weight),
                ("bias", &back.bias, bias),
            ] {
                let apart = distance(fused, found.get(composed).unwrap());
                // A single column is normalised to zero: its gradient is rounding.
                assert!(apart < 1e-5 || width == 1, "{name} at {rows} {width}: {apart}");
            }
        }
    }
}
