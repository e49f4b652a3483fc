//! The encoder that needs no weights: a picture made small.

use super::FrameEncoder;
use crate::frame::Frame;

/// Averages a picture over a grid of `side × side` cells; three values in [0, 1] for each cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelEncoder {
    side: usize,
}

impl PixelEncoder {
    /// A grid of `side × side` cells, at least one.
    pub fn new(side: usize) -> PixelEncoder {
        PixelEncoder { side: side.max(1) }
    }
}

impl Default for PixelEncoder {
    /// As in the comparison of DINOv2 features with plain pixels: 20 × 20.
    fn default() -> PixelEncoder {
        PixelEncoder::new(20)
    }
}

impl FrameEncoder for PixelEncoder {
    fn name(&self) -> String {
        format!("pixels {0}×{0}", self.side)
    }

    fn fingerprint(&self) -> String {
        blake3::hash(format!("pixels, mean over cells, version 1, side {}", self.side).as_bytes()).to_hex().to_string()
    }

    fn width(&self) -> usize {
        self.side * self.side * 3
    }

    fn batch(&self) -> usize {
        64
    }

    fn encode(&mut self, frames: &[Frame], out: &mut [f32]) -> Result<(), String> {
        for (frame, out) in frames.iter().zip(out.chunks_exact_mut(self.width())) {
            if frame.width < self.side || frame.height < self.side {
                let (width, height, side) = (frame.width, frame.height, self.side);
                return Err(format!("a picture of {width}×{height} has no {side}×{side} cells"));
            }
            for (cell, out) in out.chunks_exact_mut(3).enumerate() {
                out.copy_from_slice(&self.mean(frame, cell / self.side, cell % self.side));
            }
        }
        Ok(())
    }
}

impl PixelEncoder {
    /// The mean colour of a cell. Cells of a picture whose side is no multiple of theirs differ by a pixel.
    fn mean(&self, frame: &Frame, row: usize, column: usize) -> [f32; 3] {
        let (top, bottom) = (row * frame.height / self.side, (row + 1) * frame.height / self.side);
        let (left, right) = (column * frame.width / self.side, (column + 1) * frame.width / self.side);
        let mut sums = [0_u32; 3];
        for y in top..bottom {
            let line = &frame.pixels[(y * frame.width + left) * 3..(y * frame.width + right) * 3];
            for pixel in line.chunks_exact(3) {
                sums.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += u32::from(*value));
            }
        }
        let count = ((bottom - top) * (right - left)) as f32 * 255.0;
        sums.map(|sum| sum as f32 / count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_means() {
        let pixels: Vec<u8> = (0..5 * 4).flat_map(|at| [if at % 5 < 2 { 0 } else { 255 }, 51, 255]).collect();
        let frame = Frame { width: 5, height: 4, pixels: pixels.into() };
        let mut out = [0.0; 12];
        PixelEncoder::new(2).encode(std::slice::from_ref(&frame), &mut out).unwrap();
        assert_eq!(out, [0.0, 0.2, 1.0, 1.0, 0.2, 1.0, 0.0, 0.2, 1.0, 1.0, 0.2, 1.0]);
        assert!(PixelEncoder::new(6).encode(&[frame], &mut [0.0; 108]).is_err());
    }
}
