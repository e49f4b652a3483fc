//! Bias and activation: a thread for each vector of 16 bytes.

use candle_core::{CudaDevice, DType, Result, Tensor};

use super::{Arg, Grid, aligned, checked, elementwise, empty, merge_partial, vector};
use crate::ops::bias_activation::Activation;

/// Rows that one block sums, `CHUNK` in elementwise.cu.
const CHUNK: usize = 64;

/// Whether the kernels take it: vectors of 16 bytes divide its rows.
pub(in crate::ops) fn fits(x: &Tensor) -> Result<bool> {
    let (_, columns) = x.dims2()?;
    Ok(matches!(x.dtype(), DType::F32 | DType::BF16) && columns.is_multiple_of(vector(x.dtype())))
}

/// # Shapes
/// As [`bias_activation::forward`](crate::ops::bias_activation::forward), for an `x` that [`fits`].
pub(in crate::ops) fn forward(
    device: &CudaDevice,
    x: &Tensor,
    bias: &Tensor,
    activation: Activation,
) -> Result<Tensor> {
    let (rows, columns) = x.dims2()?;
    let (dtype, shape) = (x.dtype(), [rows, columns]);
    let module = elementwise(device, dtype, 1024)?;
    let y = empty(device, dtype, &shape)?;
    let packs = rows * columns / vector(dtype);
    let args = [
        aligned(device, x, dtype, &shape)?,
        checked(device, bias, DType::F32, &[columns])?,
        aligned(device, &y, dtype, &shape)?,
        Arg::Long(packs as i64),
        Arg::count(columns)?,
        kind(activation),
    ];
    let grid = Grid { blocks: ((packs as u32).div_ceil(256), 1), threads: (256, 1), shared: 0 };
    // SAFETY: `bias_activation_forward(x, bias, y, long long, int, int)`, compiled for this type. A thread takes one vector
    // below `packs`, which lies within a row because vectors divide rows (`fits`). `y` is new.
    unsafe { module.launch("bias_activation_forward", grid, &args) }?;
    Ok(y)
}

/// The gradient of x and, in f32, the sum of its rows; without a forward pass the sum of the rows of `dy`.
///
/// # Shapes
/// As [`bias_activation::backward`](crate::ops::bias_activation::backward), for a `dy` that [`fits`].
pub(in crate::ops) fn backward(
    device: &CudaDevice,
    forward: Option<(&Tensor, &Tensor, Activation)>,
    dy: &Tensor,
) -> Result<(Tensor, Tensor)> {
    let (rows, columns) = dy.dims2()?;
    let (dtype, shape) = (dy.dtype(), [rows, columns]);
    let module = elementwise(device, dtype, 1024)?;
    let chunks = rows.div_ceil(CHUNK);
    let partial = empty(device, DType::F32, &[1, chunks, columns])?;
    let (x, bias, activation, dx) = match forward {
        Some((x, bias, activation)) => (
            aligned(device, x, dtype, &shape)?,
            checked(device, bias, DType::F32, &[columns])?,
            activation,
            empty(device, dtype, &shape)?,
        ),
        None => (Arg::NONE, Arg::NONE, Activation::None, dy.clone()),
    };
    let args = [
        x,
        bias,
        aligned(device, dy, dtype, &shape)?,
        aligned(device, &dx, dtype, &shape)?,
        checked(device, &partial, DType::F32, &[1, chunks, columns])?,
        Arg::count(rows)?,
        Arg::count(columns)?,
        kind(activation),
    ];
    let across = (columns as u32).div_ceil(32 * vector(dtype) as u32);
    let grid = Grid { blocks: (across, chunks as u32), threads: (32, 8), shared: 0 };
    // SAFETY: `bias_activation_backward(x, bias, dy, dx, partial, int, int, int)`, compiled for this type. A block takes 32
    // vectors of columns below `columns`, which divide rows (`fits`), and `CHUNK` rows below `rows`, and writes its own row
    // of `partial`. Without `x` neither it nor the bias is read and `dx`, which is then `dy`, is not written.
    unsafe { module.launch("bias_activation_backward", grid, &args) }?;
    Ok((dx, merge_partial(&module, &partial)?.squeeze(0)?))
}

fn kind(activation: Activation) -> Arg {
    Arg::Int(match activation {
        Activation::None => 0,
        Activation::GeluTanh => 1,
        Activation::GeluErf => 2,
    })
}
