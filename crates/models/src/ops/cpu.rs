//! What the CPU forms share: slices of tensors, SIMD chosen at run time, work cut the same way for any number of threads.

use candle_core::{CpuStorage, Device, Result, Storage, Tensor};
use rayon::prelude::*;

use crate::vectorised::vectorised;

/// Rows in a piece of work. Sums over rows are made within pieces first, so it is part of the result.
pub(super) const ROWS: usize = 32;

/// Runs `with` on the numbers of an f32 tensor.
pub(super) fn slice<T>(tensor: &Tensor, with: impl FnOnce(&[f32]) -> Result<T>) -> Result<T> {
    slices([tensor], |[values]| with(values))
}

/// Runs `with` on the numbers of f32 tensors, each contiguous.
pub(super) fn slices<T, const N: usize>(
    tensors: [&Tensor; N],
    with: impl FnOnce([&[f32]; N]) -> Result<T>,
) -> Result<T> {
    let contiguous: Result<Vec<Tensor>> = tensors.iter().map(|tensor| tensor.contiguous()).collect();
    let contiguous = contiguous?;
    let held: Vec<_> = contiguous.iter().map(Tensor::storage_and_layout).collect();
    let mut found: [&[f32]; N] = [&[]; N];
    for (found, (storage, layout)) in found.iter_mut().zip(&held) {
        *found = match (&**storage, layout.contiguous_offsets()) {
            (Storage::Cpu(CpuStorage::F32(values)), Some((start, end))) => &values[start..end],
            _ => return Err(candle_core::Error::Msg("wanted f32 on the CPU".into())),
        };
    }
    with(found)
}

/// A tensor on the CPU.
pub(super) fn tensor(values: Vec<f32>, shape: impl Into<candle_core::Shape>) -> Result<Tensor> {
    Tensor::from_vec(values, shape, &Device::Cpu)
}

/// Runs `each` on pieces of rows in parallel, and sums what each returns, piece by piece in order.
pub(super) fn sum_over_pieces(pieces: usize, sums: usize, each: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f32> {
    let mut partial = vec![0.0_f32; pieces * sums];
    partial.par_chunks_mut(sums.max(1)).enumerate().for_each(|(piece, sums)| each(piece, sums));
    let mut total = vec![0.0_f32; sums];
    for part in partial.chunks(sums.max(1)) {
        add_to(&mut total, part);
    }
    total
}

vectorised! {
    fn add_to<'a>(total: &'a mut [f32], part: &'a [f32]) -> () {
        total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
    }
}

/// A sum in sixteen lanes, which is what lets it be SIMD.
#[inline(always)]
pub(super) fn total(values: impl Iterator<Item = f32>, count: usize) -> f32 {
    let mut lanes = [0.0_f32; 16];
    let mut values = values;
    for _ in 0..count / 16 {
        for lane in &mut lanes {
            *lane += values.next().unwrap_or_default();
        }
    }
    let rest: f32 = values.sum();
    lanes.iter().sum::<f32>() + rest
}

/// The largest value, in sixteen lanes. Only for numbers: what it gives for NaN is not said.
#[inline(always)]
pub(super) fn largest(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; 16];
    let chunks = values.chunks_exact(16);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = if *value > *lane { *value } else { *lane };
        }
    }
    lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max)
}

/// eˣ to one part in ten million, in a form that compilers turn into SIMD within [`vectorised!`](vectorised). Below −87 it is zero.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    const MAGIC: f32 = 12_582_912.0; // 1.5·2²³: adding it rounds to the nearest integer.
    let x = x.clamp(-87.3, 88.0);
    let scaled = x.mul_add(std::f32::consts::LOG2_E, MAGIC);
    let whole = scaled - MAGIC;
    // x − whole·ln 2, with ln 2 in two parts.
    let rest = whole.mul_add(-0.693_359_4, x);
    let rest = whole.mul_add(2.121_944_4e-4, rest);
    let series = 1.987_569_2e-4_f32;
    let series = series.mul_add(rest, 1.398_2e-3);
    let series = series.mul_add(rest, 8.333_452e-3);
    let series = series.mul_add(rest, 4.166_579_6e-2);
    let series = series.mul_add(rest, 1.666_666_5e-1);
    let series = series.mul_add(rest, 0.5);
    let series = (series * rest).mul_add(rest, rest + 1.0);
    let power = f32::from_bits(((scaled.to_bits().wrapping_add(127)) << 23) & 0x7f80_0000);
    series * power
}

/// tanh through [`exp`].
#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    1.0 - 2.0 / (exp(2.0 * x) + 1.0)
}

/// erf by Abramowitz and Stegun's 7.1.26, to 1.5·10⁻⁷.
#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let series = ((((1.061_405_4 * t - 1.453_152) * t + 1.421_413_7) * t - 0.284_496_74) * t + 0.254_829_6) * t;
    (1.0 - series * exp(-x * x)).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_those_of_the_standard_library() {
        for at in -8_700..8_800 {
            let x = at as f32 / 100.0;
            assert!((exp(x) / x.exp() - 1.0).abs() < 3e-7, "{x}: {} against {}", exp(x), x.exp());
        }
        assert!(exp(-1e30) < 1e-37 && exp(f32::NEG_INFINITY) < 1e-37);
    }

    #[test]
    fn tanh_and_erf_keep_to_their_errors() {
        for at in -1000..1000 {
            let x = at as f32 / 100.0;
            assert!((tanh(x) - x.tanh()).abs() < 3e-7, "{x}");
        }
        for (x, wanted) in
            [(0.0, 0.0), (0.5, 0.520_499_9), (1.0, 0.842_700_8), (-1.5, -0.966_105_1), (3.0, 0.999_977_9)]
        {
            assert!((erf(x) - wanted).abs() < 5e-7, "{x}: {}", erf(x));
        }
    }
}
