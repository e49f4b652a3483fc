//! Neighbourhoods of a grid as rows, so that a convolution is one product.
//!
//! A square grid of P = side² places with C numbers each becomes Q·K rows: for each of the Q places of the output the K
//! places of its neighbourhood, zeros beyond the edge. Both directions are gathers by fixed indices: the gradient of a place
//! is the sum over the few neighbourhoods that it is part of, in a fixed order, so **results do not depend on threads**. CPUs
//! gather samples in parallel and GPUs have a kernel; elsewhere the framework's own gather does it.

use std::sync::Arc;

use candle_core::{DType, Device, Tensor};
use rayon::prelude::*;

use crate::error::Result;
use crate::ops::cpu;
#[cfg(feature = "cuda")]
use crate::ops::{Form, cuda};

/// The neighbourhoods of a square grid.
#[derive(Clone, Debug)]
pub(crate) struct Unfold {
    /// Places of the output on a side.
    pub(crate) side: usize,
    /// Places of a neighbourhood.
    pub(crate) taps: usize,
    /// For each place of the output and each tap the place of the input.
    gather: Gather,
    /// For each place of the input where it is used.
    spread: Gather,
}

/// Rows that are sums of rows.
#[derive(Clone, Debug)]
struct Gather {
    /// One list for each summand, with an index for each row of the result; the index behind the last row is a zero.
    lists: Arc<Vec<Vec<u32>>>,
    /// The same on the device, `[summands, rows]` u32.
    on_device: Tensor,
}

impl Unfold {
    /// Neighbourhoods of `kernel × kernel` places, `dilation` apart, around every `stride`-th place of a side; `kernel` is odd.
    pub(crate) fn new(side: usize, kernel: usize, stride: usize, dilation: usize, device: &Device) -> Result<Unfold> {
        let (out, half) = (side.div_ceil(stride), kernel / 2);
        let taps = kernel * kernel;
        let mut gather = Vec::with_capacity(out * out * taps);
        let mut uses: Vec<Vec<u32>> = vec![Vec::new(); side * side];
        let inside = |centre: usize, tap: usize| {
            (centre * stride + tap * dilation).checked_sub(half * dilation).filter(|place| *place < side)
        };
        for (row, column) in (0..out).flat_map(|row| (0..out).map(move |column| (row, column))) {
            for (down, right) in (0..kernel).flat_map(|down| (0..kernel).map(move |right| (down, right))) {
                let place = inside(row, down).zip(inside(column, right)).map(|(row, column)| row * side + column);
                if let Some(place) = place {
                    uses[place].push(gather.len() as u32);
                }
                gather.push(place.unwrap_or(side * side) as u32);
            }
        }
        let most = uses.iter().map(Vec::len).max().unwrap_or(0);
        let nowhere = gather.len() as u32;
        let spread = (0..most).map(|at| uses.iter().map(|own| own.get(at).copied().unwrap_or(nowhere)).collect());
        let spread = Gather::new(spread.collect(), device)?;
        Ok(Unfold { side: out, taps, gather: Gather::new(vec![gather], device)?, spread })
    }

    /// For each place of the output and each tap the place of the input, or their number beyond the edge.
    pub(crate) fn places(&self) -> &[u32] {
        self.gather.lists.first().map_or(&[], Vec::as_slice)
    }

    /// The neighbourhood of each place of the output.
    ///
    /// # Shapes
    /// `x`: `[B, P, C]`, contiguous; gives `[B · Q, K · C]`.
    pub(crate) fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (samples, _, channels) = x.dims3()?;
        let rows = self.gather.apply(x)?;
        Ok(rows.reshape((samples * self.side * self.side, self.taps * channels))?)
    }

    /// The gradient of the input, given that of the rows.
    ///
    /// # Shapes
    /// `dy`: `[B · Q, K · C]`, contiguous; gives `[B, P, C]`.
    pub(crate) fn backward(&self, dy: &Tensor) -> Result<Tensor> {
        let (rows, width) = dy.dims2()?;
        let places = self.side * self.side;
        self.spread.apply(&dy.reshape((rows / places.max(1), places * self.taps, width / self.taps.max(1)))?)
    }
}

impl Gather {
    fn new(lists: Vec<Vec<u32>>, device: &Device) -> Result<Gather> {
        let rows = lists.first().map_or(0, Vec::len);
        let on_device = Tensor::from_vec(lists.concat(), (lists.len(), rows), device)?;
        Ok(Gather { lists: Arc::new(lists), on_device })
    }

    /// # Shapes
    /// `x`: `[B, P, C]`, contiguous; gives `[B, n, C]` for lists of n indices.
    fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let (samples, places, channels) = x.dims3()?;
        let (summands, count) = self.on_device.dims2()?;
        if x.device().is_cpu() && x.dtype() == DType::F32 {
            return Ok(cpu::slice(x, |x| {
                let mut rows = vec![0.0; samples * count * channels];
                let parts =
                    rows.par_chunks_mut((count * channels).max(1)).zip(x.par_chunks((places * channels).max(1)));
                parts.for_each(|(rows, x)| sum_rows(&self.lists, x, rows, channels));
                cpu::tensor(rows, (samples, count, channels))
            })?);
        }
        #[cfg(feature = "cuda")]
        if let Device::Cuda(device) = x.device()
            && Form::Fused.is_fused_for(x)
        {
            return Ok(cuda::gather::gather_rows(device, x, &self.on_device)?);
        }
        let zeros = Tensor::zeros((samples, 1, channels), x.dtype(), x.device())?;
        let padded = Tensor::cat(&[x, &zeros], 1)?.contiguous()?;
        let mut sum = Tensor::zeros((samples, count, channels), x.dtype(), x.device())?;
        for summand in 0..summands {
            sum = (sum + padded.index_select(&self.on_device.get(summand)?.contiguous()?, 1)?)?;
        }
        Ok(sum)
    }
}

/// Adds the rows of one sample that the lists name.
fn sum_rows(lists: &[Vec<u32>], x: &[f32], rows: &mut [f32], channels: usize) {
    for (at, list) in lists.iter().enumerate() {
        for (row, index) in rows.chunks_exact_mut(channels.max(1)).zip(list) {
            let Some(from) = x.get(*index as usize * channels..(*index as usize + 1) * channels) else { continue };
            match at {
                0 => row.copy_from_slice(from),
                _ => row.iter_mut().zip(from).for_each(|(row, from)| *row += from),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Var;

    use super::*;
    use crate::ops::testing::{distance, random};

    /// Candle's own convolution of the same grid: value, and gradients of grid and kernel for a weighted sum.
    fn reference(grid: &Var, kernel: &Var, stride: usize, dilation: usize, weights: &Tensor) -> (Tensor, [Tensor; 2]) {
        let (samples, places, channels) = grid.dims3().unwrap();
        let side = places.isqrt();
        let (outputs, _) = kernel.dims2().unwrap();
        let image = grid.reshape((samples, side, side, channels)).unwrap().permute((0, 3, 1, 2)).unwrap();
        let filter = kernel.reshape((outputs, 3, 3, channels)).unwrap().permute((0, 3, 1, 2)).unwrap();
        let (image, filter) = (image.contiguous().unwrap(), filter.contiguous().unwrap());
        let found = image.conv2d(&filter, dilation, stride, dilation, 1).unwrap();
        let found = found.flatten_from(2).unwrap().transpose(1, 2).unwrap().contiguous().unwrap();
        let sum = (&found * weights).unwrap().sum_all().unwrap();
        let gradients = sum.backward().unwrap();
        (found.detach(), [gradients.get(grid).unwrap().clone(), gradients.get(kernel).unwrap().clone()])
    }

    #[test]
    fn rows_times_a_kernel_are_a_convolution_with_its_gradients() {
        for (stride, dilation, out) in [(1, 1, 36), (2, 1, 9), (1, 2, 36)] {
            let grid = Var::from_tensor(&random(&[2, 36, 3], 1)).unwrap();
            let kernel = Var::from_tensor(&random(&[5, 27], 2)).unwrap();
            let weights = random(&[2, out, 5], 3);
            let unfold = Unfold::new(6, 3, stride, dilation, &Device::Cpu).unwrap();
            let rows = unfold.forward(&grid).unwrap();
            let found = rows.matmul(&kernel.t().unwrap()).unwrap().reshape((2, out, 5)).unwrap();
            let (wanted, [d_grid, d_kernel]) = reference(&grid, &kernel, stride, dilation, &weights);
            assert!(distance(&found, &wanted) < 1e-5, "stride {stride}, dilation {dilation}");
            let dy = weights.reshape((2 * out, 5)).unwrap();
            assert!(distance(&dy.t().unwrap().matmul(&rows).unwrap(), &d_kernel) < 1e-5);
            let d_rows = dy.matmul(&kernel).unwrap();
            assert!(distance(&unfold.backward(&d_rows).unwrap(), &d_grid) < 1e-5);
        }
    }
}
