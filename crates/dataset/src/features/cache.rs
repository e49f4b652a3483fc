//! Features on disk, in half precision, filled shard by shard.
//!
//! ```text
//! <directory>/<pictures>-<encoder>/<first frame>.safetensors      one tensor `features`, f16 [frames, width]
//!                                  features.json                  what they are, once all are there
//! ```
//! `pictures` and `encoder` are the first 16 digits of the two fingerprints. A shard is written beside its place and
//! renamed, so a shard that is there is whole, and filling that was stopped goes on with the first one that is not. Reading
//! takes the wanted rows from the files: nothing is loaded whole, whatever the width.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::Path;

use half::f16;
use half::slice::HalfFloatSliceExt as _;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorView};

use super::manifest::Manifest;
use super::{FrameEncoder, fingerprint};
use crate::fault::{Error, Fault};
use crate::files::{Blob, Root, reason, unreadable};
use crate::frame::Frame;
use crate::frames::{FrameOptions, FrameReader};
use crate::ids::CameraId;
use crate::open::Dataset;

/// The fewest frames in a file: what a stopped run can lose.
const SHARD: usize = 512;

/// The most files of a camera, all of which are open while it is read.
const MAX_FILES: usize = 128;

/// The name of the tensor in each file.
const TENSOR: &str = "features";

/// No header of ours is longer, in bytes.
const MAX_HEADER: u64 = 1 << 16;

/// Digits of a fingerprint in a path.
const DIGITS: usize = 16;

/// The features of one camera's pictures, all of them there.
#[derive(Clone, Debug)]
pub struct FeatureCache {
    folder: String,
    width: usize,
    frames: usize,
    /// How many frames [`FeatureCache::fill`] had to encode.
    encoded: usize,
    /// The files, in the order of their frames.
    shards: Vec<Shard>,
}

/// One file.
#[derive(Clone, Debug)]
struct Shard {
    /// The frames that it holds.
    frames: Range<usize>,
    file: String,
    blob: Blob,
    /// Where the values start.
    offset: u64,
}

/// How far filling has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filling {
    /// Frames that are done, those of earlier runs included.
    pub done: usize,
    /// Frames in all.
    pub frames: usize,
}

impl FeatureCache {
    /// The features that a directory or the program has, or `None` if any are missing.
    pub fn open(
        dataset: &Dataset,
        camera: CameraId,
        encoder: &dyn FrameEncoder,
        cache: &Root,
    ) -> Result<Option<FeatureCache>, Error> {
        FeatureCache::open_named(dataset, camera, &encoder.fingerprint(), encoder.width(), cache)
    }

    /// The same without the encoder at hand: by its fingerprint, and the width of what it makes. For features whose weights
    /// are elsewhere, such as those that are [part of the program](super::embedded).
    pub fn open_named(
        dataset: &Dataset,
        camera: CameraId,
        encoder: &str,
        width: usize,
        cache: &Root,
    ) -> Result<Option<FeatureCache>, Error> {
        let folder = folder(&fingerprint(dataset, camera)?, encoder);
        let frames = dataset.frames();
        let shards: Option<Vec<Shard>> = ranges(frames).map(|frames| shard(cache, &folder, &frames, width)).collect();
        Ok(shards.map(|shards| FeatureCache { folder, width, frames, encoded: 0, shards }))
    }

    /// Computes the features that are not there yet.
    pub fn fill(
        dataset: &Dataset,
        camera: CameraId,
        encoder: &mut dyn FrameEncoder,
        directory: &Path,
        options: FrameOptions,
        progress: &mut dyn FnMut(Filling),
    ) -> Result<FeatureCache, Error> {
        let cache = Root::Directory(directory.to_path_buf());
        let pictures = fingerprint(dataset, camera)?;
        let folder = folder(&pictures, &encoder.fingerprint());
        let width = encoder.width();
        let place = directory.join(&folder);
        fs::create_dir_all(&place).map_err(|error| no_cache(directory, &error))?;
        let reader = FrameReader::new(dataset, options);
        let mut shards = Vec::new();
        let mut encoded = 0;
        for frames in ranges(dataset.frames()) {
            let known = |done| Filling { done, frames: dataset.frames() };
            let shard = match shard(&cache, &folder, &frames, width) {
                Some(shard) => shard,
                None => {
                    let mut count = |done| progress(known(frames.start + done));
                    let values = encode(&reader, camera, frames.clone(), encoder, &mut count)?;
                    encoded += frames.len();
                    write(&place, &name(&frames), &values, width, &encoder.name())?;
                    let written = self::shard(&cache, &folder, &frames, width);
                    written.ok_or_else(|| lost(&format!("{folder}/{}", name(&frames))))?
                }
            };
            progress(known(frames.end));
            shards.push(shard);
        }
        Manifest::new(dataset, camera, encoder, pictures).write(&place)?;
        let frames = dataset.frames();
        Ok(FeatureCache { folder, width, frames, encoded, shards })
    }

    /// Those of a folder that says what they are; `None` if any are missing.
    pub(super) fn at(cache: &Root, folder: String, manifest: &Manifest) -> Option<FeatureCache> {
        let Manifest { width, frames, .. } = *manifest;
        let shards = ranges(frames).map(|frames| shard(cache, &folder, &frames, width)).collect::<Option<Vec<_>>>()?;
        Some(FeatureCache { folder, width, frames, encoded: 0, shards })
    }

    /// The features of one camera in several datasets as those of a [joined](Dataset::join) one; `None` if there are none,
    /// or if their widths differ.
    pub fn join(caches: &[FeatureCache]) -> Option<FeatureCache> {
        let width = caches.first()?.width;
        if caches.iter().any(|cache| cache.width != width) {
            return None;
        }
        let (mut shards, mut frames) = (Vec::new(), 0);
        for cache in caches {
            shards.extend(
                cache
                    .shards
                    .iter()
                    .cloned()
                    .map(|shard| Shard { frames: frames + shard.frames.start..frames + shard.frames.end, ..shard }),
            );
            frames += cache.frames;
        }
        let folder = caches.iter().map(|cache| cache.folder.as_str()).collect::<Vec<_>>().join(" + ");
        let encoded = caches.iter().map(|cache| cache.encoded).sum();
        Some(FeatureCache { folder, width, frames, encoded, shards })
    }

    /// Where it is, below the directory or root of the cache.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// How many frames were encoded when it was filled; the others were there.
    pub fn encoded(&self) -> usize {
        self.encoded
    }

    /// The number of values for each frame.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of frames.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Reads the features of some frames.
    ///
    /// # Shapes
    /// `out`: `[frames, width]`.
    pub fn read(&self, frames: Range<usize>, out: &mut [f32]) -> Result<(), Error> {
        if frames.end > self.frames {
            return Err(Fault::NoFrame { frame: frames.end - 1, frames: self.frames }.into());
        }
        let mut out = out;
        let mut start = frames.start;
        while start < frames.end {
            let shard = &self.shards[self.shards.partition_point(|shard| shard.frames.end <= start)];
            let end = frames.end.min(shard.frames.end);
            let (part, rest) = out.split_at_mut((end - start) * self.width);
            let at = shard.offset + ((start - shard.frames.start) * self.width * size_of::<f16>()) as u64;
            let bytes = shard
                .blob
                .read_at(at, part.len() * size_of::<f16>())
                .map_err(|error| unreadable(&shard.file, &error))?;
            let halves: Vec<f16> = bytes.chunks_exact(2).map(|pair| f16::from_le_bytes([pair[0], pair[1]])).collect();
            halves.convert_to_f32_slice(part);
            out = rest;
            start = end;
        }
        Ok(())
    }
}

/// The frames of each file.
fn ranges(frames: usize) -> impl Iterator<Item = Range<usize>> {
    let shard = shard_length(frames);
    (0..frames.div_ceil(shard)).map(move |at| at * shard..((at + 1) * shard).min(frames))
}

/// Frames in a file: few, so that little is lost when filling is stopped, but not so few that there are too many files.
fn shard_length(frames: usize) -> usize {
    SHARD * frames.div_ceil(SHARD * MAX_FILES).max(1)
}

fn folder(pictures: &str, encoder: &str) -> String {
    let short = |hash: &str| hash.chars().filter(char::is_ascii_alphanumeric).take(DIGITS).collect::<String>();
    format!("{}-{}", short(pictures), short(encoder))
}

fn name(frames: &Range<usize>) -> String {
    format!("{:09}.safetensors", frames.start)
}

/// A file of the cache, if it is there and whole. One that is not is made again: it is a cache.
fn shard(cache: &Root, folder: &str, frames: &Range<usize>, width: usize) -> Option<Shard> {
    let file = format!("{folder}/{}", name(frames));
    let blob = cache.open(&file).ok()?;
    let length = u64::from_le_bytes(blob.read_at(0, 8).ok()?.as_ref().try_into().ok()?);
    let header = blob.read_at(8, usize::try_from(length).ok().filter(|_| length <= MAX_HEADER)?).ok()?;
    let metadata: Metadata = serde_json::from_slice(&header).ok()?;
    let tensor = metadata.info(TENSOR)?;
    let (start, end) = tensor.data_offsets;
    let whole = tensor.dtype == Dtype::F16
        && tensor.shape == [frames.len(), width]
        && end.checked_sub(start) == Some(frames.len() * width * size_of::<f16>())
        && blob.length() == 8 + length + end as u64;
    whole.then(|| Shard { frames: frames.clone(), file, offset: 8 + length + start as u64, blob })
}

/// Decodes and encodes the frames of a shard.
fn encode(
    reader: &FrameReader<'_>,
    camera: CameraId,
    frames: Range<usize>,
    encoder: &mut dyn FrameEncoder,
    done: &mut dyn FnMut(usize),
) -> Result<Vec<f16>, Error> {
    let width = encoder.width();
    let mut values = Vec::with_capacity(frames.len() * width);
    let mut batch: Vec<Frame> = Vec::with_capacity(encoder.batch());
    let mut out = vec![0.0; encoder.batch().max(1) * width];
    let mut flush = |batch: &mut Vec<Frame>| {
        let out = &mut out[..batch.len() * width];
        encoder.encode(batch, out).map_err(|reason| Fault::NoFeatures { encoder: encoder.name(), reason })?;
        values.extend(out.iter().map(|value| f16::from_f32(*value)));
        batch.clear();
        done(values.len() / width.max(1));
        Ok::<(), Error>(())
    };
    let full = batch.capacity().max(1);
    reader.stream(camera, frames, &mut |_, frame| {
        batch.push(frame);
        if batch.len() == full { flush(&mut batch) } else { Ok(()) }
    })?;
    if !batch.is_empty() {
        flush(&mut batch)?;
    }
    Ok(values)
}

/// Writes a shard beside its place and renames it.
fn write(folder: &Path, name: &str, values: &[f16], width: usize, encoder: &str) -> Result<(), Error> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let place = folder.join(name);
    let shown = place.display().to_string();
    let failed = |reason: String| Error::from(Fault::Unwritable { file: shown.clone(), reason });
    let view = TensorView::new(Dtype::F16, vec![values.len() / width.max(1), width], &bytes);
    let view = view.map_err(|error| failed(error.to_string()))?;
    let metadata = HashMap::from([("encoder".to_string(), encoder.to_string())]);
    let content =
        safetensors::serialize([(TENSOR, view)], Some(metadata)).map_err(|error| failed(error.to_string()))?;
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
        file.write_all(&content)?;
        file.as_file().sync_all()?;
        file.persist(&place).map_err(|error| error.error)
    });
    written.map(drop).map_err(|error| no_cache(folder, &error))
}

/// A directory that features cannot be written to.
pub(super) fn no_cache(directory: &Path, error: &io::Error) -> Error {
    Fault::NoCache { directory: directory.display().to_string(), reason: reason(error) }.into()
}

fn lost(file: &str) -> Error {
    Fault::Unreadable { file: file.to_string(), reason: "it was written and is not there".to_string() }.into()
}
