//! The images of a dataset in memory, for policies that see images themselves.
//!
//! A policy with an eye learns from images that are varied anew in every step, so cached features cannot serve it. Images are
//! decoded once, resampled to the eye's size and kept as bytes: 9500 frames of two cameras with 128×128 pixels take 0.9 GB.

use dataset::features::{FrameEncoder, PixelEncoder};
use dataset::{CameraId, Dataset, Frame, FrameIndex, FrameOptions, FrameReader};
use models::noise::mix;
use models::{EyeConfig, Look};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::error::{Error, Result};

/// All images of a dataset.
pub struct Pictures {
    side: usize,
    cameras: usize,
    /// `[frames, cameras, side × side × 3]`
    pixels: Vec<u8>,
}

impl Pictures {
    /// Decodes the images of all cameras.
    ///
    /// # Errors
    /// If an image cannot be read, or is smaller than the eye's.
    pub fn load(dataset: &Dataset, side: usize) -> Result<Pictures> {
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

    /// What an eye sees at some frames, as [`EyeConfig::tensor`] takes it; each frame under its own look.
    fn seen(&self, eye: &EyeConfig, frames: &[usize], looks: &[Look]) -> Vec<f32> {
        let bytes = eye.bytes();
        let mut seen = vec![0.0; frames.len() * self.cameras * bytes];
        let rows = seen.par_chunks_exact_mut((self.cameras * bytes).max(1));
        rows.zip(frames).zip(looks).for_each(|((row, frame), look)| {
            let pixels = &self.pixels[frame * self.cameras * bytes..][..self.cameras * bytes];
            for (pixels, out) in pixels.chunks_exact(bytes).zip(row.chunks_exact_mut(bytes)) {
                eye.see(pixels, look, out);
            }
        });
        seen
    }

    /// The images of some frames as they are.
    pub fn plain(&self, eye: &EyeConfig, frames: &[usize]) -> Vec<f32> {
        self.seen(eye, frames, &vec![Look::PLAIN; frames.len()])
    }

    /// The images of some frames, varied: a function of seed, `step` and the places in the global batch.
    pub fn varied(&self, eye: &EyeConfig, frames: &[usize], seed: u64, step: u64, first: usize) -> Vec<f32> {
        let look = |place: usize| {
            let mut name = b"look".to_vec();
            name.extend(step.to_le_bytes());
            name.extend((place as u64).to_le_bytes());
            eye.varied(&mut ChaCha8Rng::seed_from_u64(mix(seed, &name)))
        };
        let looks: Vec<Look> = (first..first + frames.len()).map(look).collect();
        self.seen(eye, frames, &looks)
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
        let pictures = Pictures::load(&dataset, 32).unwrap();
        let eye = pictures.eye(EyeConfig { patch: 4, ..EyeConfig::default() });
        assert_eq!((eye.side, eye.cameras), (32, dataset.roles().cameras.len()));
        let plain = pictures.plain(&eye, &[3, 40]);
        assert_eq!(plain.len(), 2 * eye.cameras * eye.bytes());
        assert_eq!(pictures.plain(&eye, &[40]), plain[eye.cameras * eye.bytes()..]);
        let varied = pictures.varied(&eye, &[3, 40], 1, 5, 8);
        assert_ne!(varied, plain);
        assert_eq!(varied, pictures.varied(&eye, &[3, 40], 1, 5, 8));
        // A part of a batch sees what the whole batch would see there.
        assert_eq!(pictures.varied(&eye, &[40], 1, 5, 9), varied[eye.cameras * eye.bytes()..]);
        assert_ne!(pictures.varied(&eye, &[3, 40], 1, 6, 8), varied);
        let error = Pictures::load(&dataset, 4096).err().unwrap().to_string();
        assert!(error.contains("eye.side"), "{error}");
    }
}
