//! The images of a dataset in memory, for policies that see images themselves.
//!
//! A policy with an eye learns from images that are varied anew in every step, so cached features cannot serve it. Images are
//! decoded once, resampled to the eye's size and kept as bytes: 9500 frames of two cameras with 128×128 pixels take 0.9 GB.

use std::ops::Range;

use candle_core::{DType, Device, Tensor};
use dataset::features::{FrameEncoder, PixelEncoder};
use dataset::{CameraId, Dataset, Frame, FrameIndex, FrameOptions, FrameReader};
use models::noise::mix;
use models::{EyeConfig, Look};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use crate::error::{Error, Result};

/// All images of a dataset, on the device where they are seen.
pub struct Pictures {
    side: usize,
    cameras: usize,
    /// `[frames · cameras, side · side · 3]` u8
    pixels: Tensor,
}

impl Pictures {
    /// Decodes the images of all cameras.
    ///
    /// # Errors
    /// If an image cannot be read, or is smaller than the eye's.
    pub fn load(dataset: &Dataset, side: usize, device: &Device) -> Result<Pictures> {
        let (cameras, frames) = (dataset.roles().cameras.len(), dataset.frames());
        let bytes = side * side * 3;
        let reader = FrameReader::new(dataset, FrameOptions::default());
        let too_small = |reason: String| {
            Error::Mismatch(format!(
                "{reason}; set `eye.side` of emitter and decoder to the size of the smallest camera or less"
            ))
        };
        // Before memory is asked for, which grows with the side.
        for camera in 0..cameras {
            let first = reader.read(&[(CameraId(camera), FrameIndex(0))])?;
            first.iter().try_for_each(|picture| resampled(picture, side).map(|_| ())).map_err(too_small)?;
        }
        let mut pixels = vec![0; frames * cameras * bytes];
        for camera in 0..cameras {
            let mut wrong = None;
            reader.stream(CameraId(camera), 0..frames, &mut |frame, picture| {
                let place = (frame.0 * cameras + camera) * bytes;
                match resampled(&picture, side) {
                    Ok(resampled) => pixels[place..place + bytes].copy_from_slice(&resampled),
                    Err(reason) => wrong = wrong.take().or(Some(reason)),
                }
                Ok(())
            })?;
            if let Some(reason) = wrong {
                return Err(too_small(reason));
            }
        }
        let pixels = Tensor::from_vec(pixels, (frames * cameras, bytes), &Device::Cpu)?.to_device(device)?;
        Ok(Pictures { side, cameras, pixels })
    }

    /// Pixels on a side.
    pub fn side(&self) -> usize {
        self.side
    }

    /// The settings of an eye for these images.
    pub fn eye(&self, eye: EyeConfig) -> EyeConfig {
        EyeConfig { side: self.side, cameras: self.cameras, ..eye }
    }

    /// What an eye sees at some frames, as a condition has it; each image under its own look, or as it is without looks.
    ///
    /// # Shapes
    /// `looks`: one for each camera of each frame; gives `[B, cameras, patches, numbers]`.
    pub fn seen(&self, eye: &EyeConfig, frames: &[usize], looks: Option<&[Look]>) -> models::Result<Tensor> {
        let images =
            frames.iter().flat_map(|frame| (0..self.cameras).map(move |at| (frame * self.cameras + at) as u32));
        let images: Vec<u32> = images.collect();
        let plain = vec![Look::PLAIN; images.len()];
        eye.images(&self.pixels, &images, looks.unwrap_or(&plain), DType::F32)
    }

    /// Looks for the images of a batch: a function of seed, `step` and the places in the global batch.
    pub fn looks(&self, eye: &EyeConfig, places: Range<usize>, seed: u64, step: u64) -> Vec<Look> {
        let looks = |place: usize| {
            let mut name = b"look".to_vec();
            name.extend(step.to_le_bytes());
            name.extend((place as u64).to_le_bytes());
            let mut generator = ChaCha8Rng::seed_from_u64(mix(seed, &name));
            (0..self.cameras).map(move |_| eye.varied(&mut generator))
        };
        places.flat_map(looks).collect()
    }
}

/// An image as an eye takes it: `side × side × 3` bytes, each the mean of a cell of pixels.
///
/// # Errors
/// In words, if the image is smaller.
pub(crate) fn resampled(picture: &Frame, side: usize) -> std::result::Result<Vec<u8>, String> {
    if (picture.width, picture.height) == (side, side) {
        return Ok(picture.pixels.to_vec());
    }
    if picture.width.min(picture.height) < side {
        return Err(format!("an image has {}×{} pixels, fewer than {side}×{side}", picture.width, picture.height));
    }
    let mut means = vec![0.0; side * side * 3];
    PixelEncoder::new(side).encode(std::slice::from_ref(picture), &mut means)?;
    Ok(means.into_iter().map(|value| (value * 255.0).round() as u8).collect())
}

#[cfg(test)]
mod tests {
    use dataset::{Overrides, embedded};

    use super::*;

    #[test]
    fn images_are_resampled_and_varied_by_seed_step_and_place() {
        let dataset = Dataset::open(embedded("libero_goal_mini").unwrap(), &Overrides::default()).unwrap();
        let pictures = Pictures::load(&dataset, 32, &Device::Cpu).unwrap();
        let eye = pictures.eye(EyeConfig { patch: 4, ..EyeConfig::default() });
        assert_eq!((eye.side, eye.cameras), (32, dataset.roles().cameras.len()));
        let seen = |frames: &[usize], looks: Option<&[Look]>| -> Vec<f32> {
            pictures.seen(&eye, frames, looks).unwrap().flatten_all().unwrap().to_vec1().unwrap()
        };
        let plain = seen(&[3, 40], None);
        let one = eye.cameras * eye.bytes();
        assert_eq!(plain.len(), 2 * one);
        assert_eq!(seen(&[40], None), plain[one..]);
        let looks = pictures.looks(&eye, 8..10, 1, 5);
        let varied = seen(&[3, 40], Some(&looks));
        assert_ne!(varied, plain);
        assert_eq!(looks, pictures.looks(&eye, 8..10, 1, 5));
        // A part of a batch sees what the whole batch would see there.
        assert_eq!(seen(&[40], Some(&pictures.looks(&eye, 9..10, 1, 5))), varied[one..]);
        assert_ne!(pictures.looks(&eye, 8..10, 1, 6), looks);
        // Cameras are varied by themselves.
        assert_ne!(looks[0], looks[1]);
        let error = Pictures::load(&dataset, 4096, &Device::Cpu).err().unwrap().to_string();
        assert!(error.contains("eye.side"), "{error}");
    }
}
