//! Rows that are sums of rows: a thread for each vector of the result.

use candle_core::{CudaDevice, DType, Result, Tensor};

use super::{Arg, Grid, aligned, checked, elementwise, empty, vector};

/// Threads of a block.
const THREADS: u32 = 256;

/// # Shapes
/// `x`: `[B, P, C]`, `lists`: `[summands, n]` u32; gives `[B, n, C]`.
pub(in crate::ops) fn gather_rows(device: &CudaDevice, x: &Tensor, lists: &Tensor) -> Result<Tensor> {
    let (samples, places, channels) = x.dims3()?;
    let (summands, rows) = lists.dims2()?;
    let dtype = x.dtype();
    let module = elementwise(device, dtype, channels)?;
    let taken = if channels.is_multiple_of(vector(dtype)) { vector(dtype) } else { 1 };
    let check = if taken > 1 { aligned } else { checked };
    let out = empty(device, dtype, &[samples, rows, channels])?;
    let args = [
        check(device, x, dtype, &[samples, places, channels])?,
        checked(device, lists, DType::U32, &[summands, rows])?,
        check(device, &out, dtype, &[samples, rows, channels])?,
        Arg::count(summands)?,
        Arg::count(rows)?,
        Arg::count(places)?,
    ];
    let blocks = ((rows * channels / taken) as u32).div_ceil(THREADS);
    let grid = Grid { blocks: (blocks, samples as u32), threads: (THREADS, 1), shared: 0 };
    // SAFETY: `gather_rows(x, lists, out, int, int, int)`, compiled for this type and width. A block takes rows of one sample,
    // threads beyond the last row stop, and places beyond the last are not read. `out` is new.
    unsafe { module.launch("gather_rows", grid, &args) }?;
    Ok(out)
}
