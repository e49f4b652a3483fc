//! Pictures of a joined dataset: each of the datasets that it was made of reads its own.

use std::ops::Range;

use super::{FrameKey, FrameOptions, FrameReader};
use crate::fault::{Error, Fault};
use crate::frame::Frame;
use crate::ids::{CameraId, FrameIndex};
use crate::open::Dataset;

/// A reader of one of several joined datasets.
pub(super) struct PieceReader<'d> {
    reader: FrameReader<'d>,
    /// Its frames, in those of all.
    frames: Range<usize>,
    /// For each camera of all the same camera here.
    cameras: &'d [CameraId],
}

/// Readers of the datasets that a joined one was made of; none for any other dataset.
pub(super) fn readers(dataset: &Dataset, options: FrameOptions) -> Vec<PieceReader<'_>> {
    let pieces = dataset.pieces.iter().flat_map(|joined| &joined.pieces);
    // Decoded pictures are cached by the reader of the joined dataset alone.
    let options = FrameOptions { cache_bytes: 0, ..options };
    pieces
        .map(|piece| PieceReader {
            reader: FrameReader::new(&piece.dataset, options),
            frames: piece.frames.clone(),
            cameras: &piece.cameras,
        })
        .collect()
}

impl<'d> FrameReader<'d> {
    /// The reader of the dataset that a frame of a joined one came from.
    pub(super) fn piece_of(&self, frame: usize) -> Option<&PieceReader<'d>> {
        self.pieces.iter().find(|piece| piece.frames.contains(&frame))
    }

    /// Decodes pictures of a joined dataset, given in ascending order without repeats; gives them back in that order.
    pub(super) fn decode_pieces(&self, keys: &[FrameKey]) -> Result<Vec<(FrameKey, Frame)>, Error> {
        if let Some((_, frame)) = keys.iter().find(|(_, frame)| self.piece_of(frame.0).is_none()) {
            return Err(Fault::NoFrame { frame: frame.0, frames: self.dataset.frames() }.into());
        }
        let mut frames = Vec::with_capacity(keys.len());
        for piece in &self.pieces {
            // Cameras may have another order there, so each key is paired with the one that the piece knows it by.
            let mut own: Vec<(FrameKey, FrameKey)> = Vec::new();
            for &(camera, frame) in keys.iter().filter(|(_, frame)| piece.frames.contains(&frame.0)) {
                let there = (piece.camera(camera)?, FrameIndex(frame.0 - piece.frames.start));
                own.push((there, (camera, frame)));
            }
            own.sort_unstable();
            let wanted: Vec<FrameKey> = own.iter().map(|(there, _)| *there).collect();
            let decoded = piece.reader.decode(&wanted)?;
            frames.extend(own.iter().zip(decoded).map(|((_, here), (_, frame))| (*here, frame)));
        }
        frames.sort_unstable_by_key(|(key, _)| *key);
        Ok(frames)
    }
}

impl PieceReader<'_> {
    /// Why pictures of a camera of the joined dataset cannot be read here.
    pub(super) fn missing(&self, camera: CameraId) -> Option<Error> {
        self.camera(camera).map_or_else(Some, |camera| self.reader.missing(camera))
    }

    /// Decodes a stretch of the joined dataset as far as it lies in this one, which it begins in.
    pub(super) fn stretch(
        &self,
        camera: CameraId,
        frames: Range<usize>,
        end: usize,
    ) -> Result<Vec<(FrameKey, Frame)>, Error> {
        let start = self.frames.start;
        let own = frames.start - start..frames.end.min(self.frames.end) - start;
        let decoded = self.reader.stretch(self.camera(camera)?, own, end.min(self.frames.end) - start)?;
        Ok(decoded.into_iter().map(|((_, frame), it)| ((camera, FrameIndex(start + frame.0)), it)).collect())
    }

    /// The camera here that is the given one of the joined dataset.
    fn camera(&self, camera: CameraId) -> Result<CameraId, Error> {
        let wrong = || Fault::UnknownKey { key: format!("camera {}", camera.0), candidates: self.reader.camera_keys() };
        Ok(*self.cameras.get(camera.0).ok_or_else(wrong)?)
    }
}
