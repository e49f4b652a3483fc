//! y = activation(x + bias) in one pass, and its backward with the bias's gradient in one pass more.

use candle_core::{DType, Device, Result, Tensor, Var};
use serde::{Deserialize, Serialize};

use super::cpu;
#[cfg(feature = "cuda")]
use super::cuda;
use crate::vectorised::vectorised;

/// What follows a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// Nothing.
    None,
    /// GELU by tanh, as our models have it.
    GeluTanh,
    /// GELU by erf, as DINOv2 has it.
    GeluErf,
}

/// activation(x + bias). Types and widths for which there is no fused form run composed.
///
/// # Shapes
/// `x`: `[rows, columns]`, `bias`: `[columns]` in f32; gives `[rows, columns]`.
pub fn forward(x: &Tensor, bias: &Tensor, activation: Activation) -> Result<Tensor> {
    match x.device() {
        Device::Cpu if x.dtype() == DType::F32 => cpu_forward(x, bias, activation),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) if cuda::bias_activation::fits(x)? => {
            cuda::bias_activation::forward(device, x, bias, activation)
        }
        _ => composed(x, bias, activation),
    }
}

/// The gradients of x and, in f32, of the bias.
pub fn backward(x: &Tensor, bias: &Tensor, dy: &Tensor, activation: Activation) -> Result<(Tensor, Tensor)> {
    match x.device() {
        _ if activation == Activation::None => Ok((dy.clone(), column_sum(dy)?)),
        Device::Cpu if x.dtype() == DType::F32 => cpu_backward(x, bias, dy, activation),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) if cuda::bias_activation::fits(dy)? => {
            cuda::bias_activation::backward(device, Some((x, bias, activation)), dy)
        }
        _ => composed_backward(x, bias, dy, activation),
    }
}

/// Σ over rows, in f32: the gradient of a bias.
///
/// # Shapes
/// `x`: `[rows, columns]`; gives `[columns]`.
pub fn column_sum(x: &Tensor) -> Result<Tensor> {
    match x.device() {
        Device::Cpu if x.dtype() == DType::F32 => cpu_column_sum(x),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) if cuda::bias_activation::fits(x)? => {
            Ok(cuda::bias_activation::backward(device, None, x)?.1)
        }
        _ => x.to_dtype(DType::F32)?.sum(0),
    }
}

fn composed(x: &Tensor, bias: &Tensor, activation: Activation) -> Result<Tensor> {
    let sum = x.broadcast_add(&bias.to_dtype(x.dtype())?)?;
    match activation {
        Activation::None => Ok(sum),
        Activation::GeluTanh => sum.gelu(),
        Activation::GeluErf => sum.gelu_erf(),
    }
}

fn composed_backward(x: &Tensor, bias: &Tensor, dy: &Tensor, activation: Activation) -> Result<(Tensor, Tensor)> {
    let sum = Var::from_tensor(&x.to_dtype(DType::F32)?.broadcast_add(bias)?)?;
    let y = composed(&sum, &bias.zeros_like()?, activation)?;
    let found = (y * dy.to_dtype(DType::F32)?)?.sum_all()?.backward()?;
    let dx = found.get(&sum).map_or_else(|| sum.zeros_like(), |dx| Ok(dx.clone()))?;
    Ok((dx.to_dtype(dy.dtype())?, dx.sum(0)?))
}

fn cpu_forward(x: &Tensor, bias: &Tensor, activation: Activation) -> Result<Tensor> {
    use rayon::prelude::*;
    let (rows, columns) = x.dims2()?;
    cpu::slices([x, bias], |[x, bias]| {
        let mut y = vec![0.0_f32; rows * columns];
        let pieces = y.par_chunks_mut(cpu::ROWS * columns).zip(x.par_chunks(cpu::ROWS * columns));
        pieces.for_each(|(y, x)| forward_piece(y, x, bias, activation));
        cpu::tensor(y, (rows, columns))
    })
}

vectorised! {
    fn forward_piece<'a>(y: &'a mut [f32], x: &'a [f32], bias: &'a [f32], activation: Activation) -> () {
        for (y, x) in y.chunks_exact_mut(bias.len()).zip(x.chunks_exact(bias.len())) {
            match activation {
                Activation::None => each(y, x, bias, |value| value),
                Activation::GeluTanh => each(y, x, bias, gelu_tanh),
                Activation::GeluErf => each(y, x, bias, gelu_erf),
            }
        }
    }
}

#[inline(always)]
fn each(y: &mut [f32], x: &[f32], bias: &[f32], of: impl Fn(f32) -> f32) {
    for ((y, x), bias) in y.iter_mut().zip(x).zip(bias) {
        *y = of(x + bias);
    }
}

fn cpu_backward(x: &Tensor, bias: &Tensor, dy: &Tensor, activation: Activation) -> Result<(Tensor, Tensor)> {
    use rayon::prelude::*;
    let (rows, columns) = x.dims2()?;
    cpu::slices([x, bias, dy], |[x, bias, dy]| {
        let mut dx = vec![0.0_f32; rows * columns];
        let piece = cpu::ROWS * columns;
        let places: Vec<std::sync::Mutex<&mut [f32]>> = dx.par_chunks_mut(piece).map(std::sync::Mutex::new).collect();
        let sums = cpu::sum_over_pieces(rows.div_ceil(cpu::ROWS), columns, |at, sums| {
            let mut dx = places[at].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let part = at * piece..(at * piece + dx.len());
            backward_piece(&mut dx, (&x[part.clone()], bias), &dy[part], sums, activation);
        });
        drop(places);
        Ok((cpu::tensor(dx, (rows, columns))?, cpu::tensor(sums, columns)?))
    })
}

vectorised! {
    fn backward_piece<'a>(
        dx: &'a mut [f32],
        seen: (&'a [f32], &'a [f32]),
        dy: &'a [f32],
        sums: &'a mut [f32],
        activation: Activation,
    ) -> () {
        let ((x, bias), columns) = (seen, sums.len());
        for ((dx, x), dy) in dx.chunks_exact_mut(columns).zip(x.chunks_exact(columns)).zip(dy.chunks_exact(columns)) {
            match activation {
                Activation::GeluErf => each_slope(dx, x, bias, dy, sums, gelu_erf_slope),
                _ => each_slope(dx, x, bias, dy, sums, gelu_tanh_slope),
            }
        }
    }
}

#[inline(always)]
fn each_slope(dx: &mut [f32], x: &[f32], bias: &[f32], dy: &[f32], sums: &mut [f32], slope: impl Fn(f32) -> f32) {
    for ((((dx, x), bias), dy), sum) in dx.iter_mut().zip(x).zip(bias).zip(dy).zip(sums) {
        let gradient = dy * slope(x + bias);
        *dx = gradient;
        *sum += gradient;
    }
}

fn cpu_column_sum(x: &Tensor) -> Result<Tensor> {
    let (rows, columns) = x.dims2()?;
    cpu::slice(x, |x| {
        let piece = cpu::ROWS * columns;
        let sums = cpu::sum_over_pieces(rows.div_ceil(cpu::ROWS), columns, |at, sums| {
            let part = &x[at * piece..x.len().min((at + 1) * piece)];
            sum_rows(sums, part);
        });
        cpu::tensor(sums, columns)
    })
}

vectorised! {
    fn sum_rows<'a>(sums: &'a mut [f32], rows: &'a [f32]) -> () {
        for row in rows.chunks_exact(sums.len()) {
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
    }
}

/// √(2/π)
const ROOT: f32 = 0.797_884_6;
const CUBE: f32 = 0.044_715;

#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    0.5 * x * (1.0 + cpu::tanh(ROOT * (x + CUBE * x * x * x)))
}

#[inline(always)]
fn gelu_tanh_slope(x: f32) -> f32 {
    let bend = cpu::tanh(ROOT * (x + CUBE * x * x * x));
    0.5 * (1.0 + bend) + 0.5 * x * (1.0 - bend * bend) * ROOT * (1.0 + 3.0 * CUBE * x * x)
}

#[inline(always)]
fn gelu_erf(x: f32) -> f32 {
    0.5 * x * (1.0 + cpu::erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

#[inline(always)]
fn gelu_erf_slope(x: f32) -> f32 {
    // 1/√(2π)
    const DENSITY: f32 = 0.398_942_3;
    0.5 * (1.0 + cpu::erf(x * std::f32::consts::FRAC_1_SQRT_2)) + x * DENSITY * cpu::exp(-0.5 * x * x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{distance, random};

    /// What Candle finds: values and gradients.
    fn by_candle(x: &Tensor, bias: &Tensor, dy: &Tensor, activation: Activation) -> (Tensor, Tensor, Tensor) {
        let (x, bias) = (Var::from_tensor(x).unwrap(), Var::from_tensor(bias).unwrap());
        let sum = x.broadcast_add(&bias).unwrap();
        let y = match activation {
            Activation::None => sum,
            Activation::GeluTanh => sum.gelu().unwrap(),
            Activation::GeluErf => sum.gelu_erf().unwrap(),
        };
        let found = (&y * dy).unwrap().sum_all().unwrap().backward().unwrap();
        (y.detach(), found.get(&x).unwrap().clone(), found.get(&bias).unwrap().clone())
    }

    #[test]
    fn fused_equals_composed() {
        for (rows, columns) in [(1, 1), (7, 13), (33, 64), (100, 192)] {
            for activation in [Activation::None, Activation::GeluTanh, Activation::GeluErf] {
                let x = (random(&[rows, columns], 1) * 2.0).unwrap();
                let (bias, dy) = (random(&[columns], 2), random(&[rows, columns], 3));
                let (y, dx, db) = by_candle(&x, &bias, &dy, activation);
                let (found_dx, found_db) = backward(&x, &bias, &dy, activation).unwrap();
                assert!(
                    distance(&forward(&x, &bias, activation).unwrap(), &y) < 1e-6,
                    "{activation:?} {rows} {columns}"
                );
                assert!(
                    distance(&found_dx, &dx) < 2e-6,
                    "{activation:?} {rows} {columns}: {}",
                    distance(&found_dx, &dx)
                );
                assert!(distance(&found_db, &db) < 2e-6, "{activation:?} {rows} {columns}");
            }
        }
    }
}
