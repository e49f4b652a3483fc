//! One picture of a camera.

use std::sync::Arc;

/// A decoded picture: 8 bits for each of red, green and blue, rows from the top, pixels from the left.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    /// In pixels.
    pub width: usize,
    /// In pixels.
    pub height: usize,
    /// `height × width × 3` bytes. Shared, so that a copy of a frame costs nothing.
    pub pixels: Arc<[u8]>,
}

impl Frame {
    /// The picture as a JPEG file of a quality from 1 to 100; nothing for a picture without pixels.
    pub fn jpeg(&self, quality: u8) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        let mut encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut content, quality.clamp(1, 100));
        let (width, height) = (u32::try_from(self.width).ok()?, u32::try_from(self.height).ok()?);
        encoder.encode(&self.pixels, width, height, image::ExtendedColorType::Rgb8).ok()?;
        Some(content)
    }
}

impl Frame {
    /// The picture with its longer side at most so long: each pixel is the mean of a box of pixels. One that is no longer stays
    /// as it is.
    pub fn shrunk(&self, side: usize) -> Frame {
        let longest = self.width.max(self.height);
        if longest <= side || side == 0 {
            return self.clone();
        }
        let scaled = |length: usize| (length * side).div_ceil(longest).max(1);
        let (width, height) = (scaled(self.width), scaled(self.height));
        let mut pixels = Vec::with_capacity(width * height * 3);
        for y in 0..height {
            let rows = y * self.height / height..((y + 1) * self.height).div_ceil(height);
            for x in 0..width {
                let columns = x * self.width / width..((x + 1) * self.width).div_ceil(width);
                let count = (rows.len() * columns.len()).max(1);
                for colour in 0..3 {
                    let value = |row: usize, column: usize| {
                        self.pixels.get((row * self.width + column) * 3 + colour).copied().map_or(0, usize::from)
                    };
                    let sum: usize =
                        rows.clone().map(|row| columns.clone().map(|column| value(row, column)).sum::<usize>()).sum();
                    pixels.push((sum / count) as u8);
                }
            }
        }
        Frame { width, height, pixels: pixels.into() }
    }
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frame({}×{})", self.width, self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_picture_has_the_means_of_its_boxes() {
        let pixels: Vec<u8> = (0..4 * 2).flat_map(|at| [at * 10, 0, 255]).collect();
        let frame = Frame { width: 4, height: 2, pixels: pixels.into() };
        let small = frame.shrunk(2);
        assert_eq!((small.width, small.height), (2, 1));
        // Columns 0 and 1 of both rows, then columns 2 and 3.
        assert_eq!(small.pixels[..], [25, 0, 255, 45, 0, 255]);
        assert_eq!(frame.shrunk(4), frame);
        assert_eq!(frame.shrunk(3).width, 3);
    }
}
