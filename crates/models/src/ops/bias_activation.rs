//! y = activation(x + bias) in one pass, and its backward with the bias's gradient in one pass more.

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use super::cpu;
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

/// # Shapes
/// `x`: `[rows, columns]`, `bias`: `[columns]` in f32; gives `[rows, columns]`.
pub fn forward(x: &Tensor, bias: &Tensor, activation: Activation) -> Result<Tensor> {
    match x.device() {
        candle_core::Device::Cpu => cpu_forward(x, bias, activation),
        #[cfg(feature = "cuda")]
        candle_core::Device::Cuda(device) => on_cuda::forward(device, x, bias, activation),
        _ => Err(super::not_fused("bias and activation", x)),
    }
}

/// The gradients of x and, in f32, of the bias.
pub fn backward(x: &Tensor, bias: &Tensor, dy: &Tensor, activation: Activation) -> Result<(Tensor, Tensor)> {
    match x.device() {
        _ if activation == Activation::None => Ok((dy.clone(), column_sum(dy)?)),
        candle_core::Device::Cpu => cpu_backward(x, bias, dy, activation),
        #[cfg(feature = "cuda")]
        candle_core::Device::Cuda(device) => on_cuda::backward(device, Some((x, bias, activation)), dy),
        _ => Err(super::not_fused("bias and activation", x)),
    }
}

/// Σ over rows, in f32: the gradient of a bias.
///
/// # Shapes
/// `x`: `[rows, columns]`; gives `[columns]`.
pub fn column_sum(x: &Tensor) -> Result<Tensor> {
    match x.device() {
        candle_core::Device::Cpu => cpu_column_sum(x),
        #[cfg(feature = "cuda")]
        candle_core::Device::Cuda(device) => Ok(on_cuda::backward(device, None, x)?.1),
        _ => Err(super::not_fused("column sum", x)),
    }
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

#[cfg(feature = "cuda")]
mod on_cuda {
    use candle_core::{CudaDevice, DType, Result, Tensor};

    use super::Activation;
    use crate::ops::cuda::{Arg, Grid, elementwise, empty, merge_partial, pointer};

    /// Rows that one block sums.
    const CHUNK: usize = 64;

    /// The kernels take vectors of 16 bytes.
    fn vector(dtype: DType) -> usize {
        16 / dtype.size_in_bytes()
    }

    fn kind(activation: Activation) -> Arg {
        Arg::Int(match activation {
            Activation::None => 0,
            Activation::GeluTanh => 1,
            Activation::GeluErf => 2,
        })
    }

    pub(super) fn forward(device: &CudaDevice, x: &Tensor, bias: &Tensor, activation: Activation) -> Result<Tensor> {
        let (rows, columns) = x.dims2()?;
        let vector = vector(x.dtype());
        if columns % vector != 0 {
            return composed(x, bias, activation);
        }
        let module = elementwise(device, x.dtype(), 1024)?;
        let y = empty(device, x.dtype(), &[rows, columns])?;
        let packs = rows * columns / vector;
        let args = [
            Arg::Pointer(pointer(x)?),
            Arg::Pointer(pointer(bias)?),
            Arg::Pointer(pointer(&y)?),
            Arg::Long(packs as i64),
            Arg::Int(columns as i32),
            kind(activation),
        ];
        let grid = Grid { blocks: ((packs as u32).div_ceil(256), 1), threads: (256, 1), shared: 0 };
        module.launch("bias_activation_forward", grid, &args)?;
        Ok(y)
    }

    pub(super) fn backward(
        device: &CudaDevice,
        forward: Option<(&Tensor, &Tensor, Activation)>,
        dy: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        let (rows, columns) = dy.dims2()?;
        let vector = vector(dy.dtype());
        if columns % vector != 0 {
            return match forward {
                None => Ok((dy.clone(), dy.to_dtype(DType::F32)?.sum(0)?)),
                Some((x, bias, activation)) => composed_backward(x, bias, dy, activation),
            };
        }
        let module = elementwise(device, dy.dtype(), 1024)?;
        let chunks = rows.div_ceil(CHUNK);
        let partial = empty(device, DType::F32, &[1, chunks, columns])?;
        let (x, bias, activation, dx) = match forward {
            Some((x, bias, activation)) => {
                (pointer(x)?, pointer(bias)?, activation, empty(device, dy.dtype(), &[rows, columns])?)
            }
            None => (0, 0, Activation::None, dy.clone()),
        };
        let args = [
            Arg::Pointer(x),
            Arg::Pointer(bias),
            Arg::Pointer(pointer(dy)?),
            Arg::Pointer(pointer(&dx)?),
            Arg::Pointer(pointer(&partial)?),
            Arg::Int(rows as i32),
            Arg::Int(columns as i32),
            kind(activation),
        ];
        let across = (columns as u32).div_ceil(32 * vector as u32);
        let grid = Grid { blocks: (across, chunks as u32), threads: (32, 8), shared: 0 };
        module.launch("bias_activation_backward", grid, &args)?;
        Ok((dx, merge_partial(&module, &partial)?.squeeze(0)?))
    }

    /// For widths that vectors do not divide: a handful of columns.
    fn composed(x: &Tensor, bias: &Tensor, activation: Activation) -> Result<Tensor> {
        let sum = x.broadcast_add(&bias.to_dtype(x.dtype())?)?;
        match activation {
            Activation::None => Ok(sum),
            Activation::GeluTanh => sum.gelu(),
            Activation::GeluErf => sum.gelu_erf(),
        }
    }

    fn composed_backward(x: &Tensor, bias: &Tensor, dy: &Tensor, activation: Activation) -> Result<(Tensor, Tensor)> {
        let sum = candle_core::Var::from_tensor(&x.to_dtype(DType::F32)?.broadcast_add(bias)?)?;
        let y = composed(&sum, &bias.zeros_like()?, activation)?;
        let found = (y * dy.to_dtype(DType::F32)?)?.sum_all()?.backward()?;
        let dx = found.get(&sum).map_or_else(|| sum.zeros_like(), |dx| Ok(dx.clone()))?;
        Ok((dx.to_dtype(dy.dtype())?, dx.sum(0)?))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Var;

    use super::*;
    use crate::ops::testing::{distance, random};

    /// The composed form and its gradients.
    fn composed(x: &Tensor, bias: &Tensor, dy: &Tensor, activation: Activation) -> (Tensor, Tensor, Tensor) {
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
                let (y, dx, db) = composed(&x, &bias, &dy, activation);
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
