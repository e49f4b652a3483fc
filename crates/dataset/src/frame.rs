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

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frame({}×{})", self.width, self.height)
    }
}
