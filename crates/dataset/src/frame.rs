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

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frame({}×{})", self.width, self.height)
    }
}
