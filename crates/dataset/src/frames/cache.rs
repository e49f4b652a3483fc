//! Decoded pictures, kept for the next request.

use lru::LruCache;

use super::FrameKey;
use crate::frame::Frame;

/// The pictures that were used last, up to a number of bytes.
pub(super) struct Cache {
    frames: LruCache<FrameKey, Frame>,
    bytes: usize,
    limit: usize,
}

impl Cache {
    pub(super) fn new(limit: usize) -> Cache {
        Cache { frames: LruCache::unbounded(), bytes: 0, limit }
    }

    pub(super) fn get(&mut self, key: &FrameKey) -> Option<Frame> {
        self.frames.get(key).cloned()
    }

    pub(super) fn put(&mut self, key: FrameKey, frame: &Frame) {
        self.bytes += frame.pixels.len();
        if let Some(before) = self.frames.put(key, frame.clone()) {
            self.bytes -= before.pixels.len();
        }
        while self.bytes > self.limit {
            let Some((_, oldest)) = self.frames.pop_lru() else { return };
            self.bytes -= oldest.pixels.len();
        }
    }
}
