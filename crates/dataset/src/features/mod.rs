//! Visual features: what a frozen encoder makes of each picture, computed once and kept on disk.
//!
//! An encoder is anything that turns pictures into vectors ([`FrameEncoder`]). Its features are filed under the pictures
//! they were made from and the encoder that made them, both by hash, so that features of another video or of other weights
//! are other features, and all phases of all runs share what was computed once.

mod cache;
mod fingerprint;
mod manifest;
mod pixels;

pub use cache::{FeatureCache, Filling};
pub use fingerprint::fingerprint;
pub use manifest::{Manifest, find, numbers_fingerprint};
pub use pixels::PixelEncoder;

use crate::frame::Frame;

/// Turns pictures into vectors of equal width.
pub trait FrameEncoder {
    /// What it is, in words for people, such as `dinov2-small cls`.
    fn name(&self) -> String;

    /// Another one whenever a feature could come out differently: a hash of weights and settings, in hexadecimal.
    fn fingerprint(&self) -> String;

    /// The number of values that a picture becomes.
    fn width(&self) -> usize;

    /// How many pictures it likes to see at once.
    fn batch(&self) -> usize;

    /// Encodes some pictures, or says why it cannot.
    ///
    /// # Shapes
    /// `frames`: B pictures, B at most [`batch`](FrameEncoder::batch); `out`: `[B, width]`.
    fn encode(&mut self, frames: &[Frame], out: &mut [f32]) -> Result<(), String>;
}
