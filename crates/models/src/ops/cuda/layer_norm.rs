//! Layer normalisation: a warp for each row.

use candle_core::{CudaDevice, DType, Result, Tensor};

use super::{Arg, Grid, aligned, checked, elementwise, empty, merge_partial, vector};
use crate::ops::layer_norm::{Backward, Normalized};

/// Rows of a block, `WARPS` in elementwise.cu.
const WARPS: u32 = 4;

/// # Shapes
/// As [`layer_norm::forward`](crate::ops::layer_norm::forward).
pub(in crate::ops) fn forward(
    device: &CudaDevice,
    x: &Tensor,
    added: Option<(&Tensor, &Tensor)>,
    (weight, bias): (&Tensor, &Tensor),
    epsilon: f64,
) -> Result<Normalized> {
    let (rows, width) = x.dims2()?;
    let (dtype, shape) = (x.dtype(), [rows, width]);
    let module = elementwise(device, dtype, width)?;
    let sum = if added.is_some() { empty(device, dtype, &shape)? } else { x.clone() };
    let y = empty(device, dtype, &shape)?;
    let (mean, rstd) = (empty(device, DType::F32, &[rows])?, empty(device, DType::F32, &[rows])?);
    let row = |tensor: &Tensor| rows_of(device, tensor, dtype, shape);
    let (more, more_bias) = match added {
        Some((more, bias)) => (row(more)?, checked(device, bias, DType::F32, &[width])?),
        None => (Arg::NONE, Arg::NONE),
    };
    let args = [
        row(x)?,
        more,
        more_bias,
        checked(device, weight, DType::F32, &[width])?,
        checked(device, bias, DType::F32, &[width])?,
        row(&sum)?,
        row(&y)?,
        checked(device, &mean, DType::F32, &[rows])?,
        checked(device, &rstd, DType::F32, &[rows])?,
        Arg::count(rows)?,
        Arg::Float(epsilon as f32),
    ];
    let grid = Grid { blocks: ((rows as u32).div_ceil(WARPS), 1), threads: (32, WARPS), shared: 0 };
    // SAFETY: `layer_norm_forward(x, added, added_bias, weight, bias, sum, y, means, rstds, int, float)`, compiled for this
    // type and width. A warp takes one row below `rows`. Without `added` neither it nor its bias is read and `sum`, which is
    // then `x`, is not written; all other outputs are new.
    unsafe { module.launch("layer_norm_forward", grid, &args) }?;
    Ok(Normalized { sum, y, mean, rstd })
}

/// # Shapes
/// As [`layer_norm::backward`](crate::ops::layer_norm::backward).
pub(in crate::ops) fn backward(
    device: &CudaDevice,
    kept: &Normalized,
    weight: &Tensor,
    dy: &Tensor,
    residual: Option<&Tensor>,
) -> Result<Backward> {
    let (rows, width) = dy.dims2()?;
    let (dtype, shape) = (dy.dtype(), [rows, width]);
    let module = elementwise(device, dtype, width)?;
    // Two blocks fill a multiprocessor's registers.
    let blocks = (rows as u32).div_ceil(WARPS).min(2 * module.processors());
    let dx = empty(device, dtype, &shape)?;
    let partial = empty(device, DType::F32, &[3, blocks as usize, width])?;
    let row = |tensor: &Tensor| rows_of(device, tensor, dtype, shape);
    let args = [
        row(&kept.sum)?,
        checked(device, &kept.mean, DType::F32, &[rows])?,
        checked(device, &kept.rstd, DType::F32, &[rows])?,
        checked(device, weight, DType::F32, &[width])?,
        row(dy)?,
        residual.map_or(Ok(Arg::NONE), row)?,
        row(&dx)?,
        checked(device, &partial, DType::F32, &[3, blocks as usize, width])?,
        Arg::count(rows)?,
    ];
    let grid = Grid { blocks: (blocks, 1), threads: (32, WARPS), shared: 0 };
    // SAFETY: `layer_norm_backward(x, means, rstds, weight, dy, residual, dx, partial, int)`, compiled for this type and
    // width. Warps take rows below `rows`; each block writes its own three rows of `partial`, of which there are three for
    // each block. `residual` may be zero, and `dx` and `partial` are new.
    unsafe { module.launch("layer_norm_backward", grid, &args) }?;
    let sums = merge_partial(&module, &partial)?;
    let part = |which: usize| sums.narrow(0, which, 1)?.squeeze(0);
    Ok(Backward { x: dx, weight: part(0)?, bias: part(1)?, added_bias: part(2)? })
}

/// Rows are loaded as vectors where the width allows it.
fn rows_of(device: &CudaDevice, tensor: &Tensor, dtype: DType, shape: [usize; 2]) -> Result<Arg> {
    let check = if shape[1].is_multiple_of(32 * vector(dtype)) { aligned } else { checked };
    check(device, tensor, dtype, &shape)
}
