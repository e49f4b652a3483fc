//! Images as an eye sees them, from the bytes of a whole dataset: on GPUs by a kernel, so that no image crosses over from the
//! host in training.

use candle_core::{CpuStorage, DType, Device, Storage, Tensor};
use rayon::prelude::*;

#[cfg(feature = "cuda")]
use super::cuda;
use crate::error::{Error, Result};
use crate::eye::{EyeConfig, Look};

/// Some images, each under its own look.
///
/// # Shapes
/// `pixels`: `[images, side · side · 3]` u8, contiguous; gives `[n, patches, patch · patch · 3]`; on CPUs in f32.
pub(crate) fn see(pixels: &Tensor, images: &[u32], looks: &[Look], eye: &EyeConfig, dtype: DType) -> Result<Tensor> {
    let (all, bytes) = pixels.dims2()?;
    if bytes != eye.bytes() || images.len() != looks.len() || images.iter().any(|image| *image as usize >= all) {
        return Err(Error::Config(format!(
            "{} images under {} looks, of {all} with {bytes} bytes, for an eye of {} bytes",
            images.len(),
            looks.len(),
            eye.bytes()
        )));
    }
    let numbers = eye.patch * eye.patch * 3;
    match pixels.device() {
        Device::Cpu => {
            let (storage, layout) = pixels.storage_and_layout();
            let (Storage::Cpu(CpuStorage::U8(values)), Some((start, _))) = (&*storage, layout.contiguous_offsets())
            else {
                return Err(Error::Config("images are bytes in one piece".to_owned()));
            };
            let mut seen = vec![0.0_f32; images.len() * bytes];
            let rows = seen.par_chunks_exact_mut(bytes.max(1)).zip(images).zip(looks);
            rows.for_each(|((out, image), look)| {
                eye.see(&values[start + *image as usize * bytes..][..bytes], look, out);
            });
            Ok(Tensor::from_vec(seen, (images.len(), bytes / numbers, numbers), &Device::Cpu)?.to_dtype(dtype)?)
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => {
            let rows = Tensor::new(images, pixels.device())?;
            let numbers = looks.iter().flat_map(Look::numbers).collect::<Vec<f32>>();
            let looks = Tensor::from_vec(numbers, (looks.len(), 6), pixels.device())?;
            Ok(cuda::see::see(device, pixels, (&rows, &looks), (eye.side, eye.patch), dtype)?)
        }
        other => Err(Error::Config(format!("images cannot be seen on {:?}", other.location()))),
    }
}
