//! Images as an eye sees them: a thread for each number.

use candle_core::{CudaDevice, DType, Result, Tensor};

use super::{Arg, Grid, checked, elementwise, empty};

/// Threads of a block.
const THREADS: u32 = 256;

/// # Shapes
/// `pixels`: `[images, side · side · 3]` u8; `rows`: `[n]` u32, each below `images`; `looks`: `[n, 6]` f32; gives
/// `[n, patches, patch · patch · 3]`.
pub(in crate::ops) fn see(
    device: &CudaDevice,
    pixels: &Tensor,
    (rows, looks): (&Tensor, &Tensor),
    (side, patch): (usize, usize),
    dtype: DType,
) -> Result<Tensor> {
    let (all, count, numbers) = (pixels.dims2()?.0, rows.dims1()?, patch * patch * 3);
    let module = elementwise(device, dtype, numbers)?;
    let bytes = side * side * 3;
    let out = empty(device, dtype, &[count, bytes / numbers, numbers])?;
    let args = [
        checked(device, pixels, DType::U8, &[all, bytes])?,
        checked(device, rows, DType::U32, &[count])?,
        checked(device, looks, DType::F32, &[count, 6])?,
        checked(device, &out, dtype, &[count, bytes / numbers, numbers])?,
        Arg::count(side)?,
        Arg::count(patch)?,
    ];
    let grid = Grid { blocks: ((bytes as u32).div_ceil(THREADS), count as u32), threads: (THREADS, 1), shared: 0 };
    // SAFETY: `see(pixels, rows, looks, out, int, int)`, compiled for this type and for patches of this many numbers. A block
    // takes numbers of one image, threads beyond the last stop, and places are clamped to the image. The caller has checked
    // that rows are below the number of images. `out` is new.
    unsafe { module.launch("see", grid, &args) }?;
    Ok(out)
}
