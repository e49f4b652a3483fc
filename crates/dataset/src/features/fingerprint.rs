//! Which pictures a dataset has, as a hash.

use crate::fault::Error;
use crate::files::{Root, unreadable};
use crate::ids::CameraId;
use crate::info::Dtype;
use crate::open::Dataset;

/// A file of at most so many bytes is hashed whole.
const WHOLE: u64 = 64 << 20;

/// Of a longer one, so many blocks are, evenly spread from its first byte to its last.
const BLOCKS: u64 = 4096;

/// Bytes in a block.
const BLOCK: u64 = 4096;

/// A hash of all that a camera's features depend on: which picture belongs to which frame, and the files with the
/// pictures. Long files are sampled, so that a dataset of any size is hashed in a moment: one that was made again differs
/// in its tables at the head or the tail, but a few bytes changed in the middle of a long file can go unnoticed. Columns
/// that are added to a dataset with videos change nothing.
pub fn fingerprint(dataset: &Dataset, camera: CameraId) -> Result<String, Error> {
    let mut hasher = blake3::Hasher::new();
    let key = dataset.roles().cameras.get(camera.0).map_or("", String::as_str);
    let is_video = dataset.info().feature(key).is_some_and(|feature| feature.dtype == Dtype::Video);
    let place = dataset.roles().cameras[..camera.0.min(dataset.roles().cameras.len())]
        .iter()
        .filter(|key| dataset.info().feature(key).is_some_and(|feature| feature.dtype == Dtype::Video))
        .count();
    hasher.update(format!("refactor-vla pictures 2 {key} {}", dataset.info().fps).as_bytes());
    let mut files = Vec::new();
    for episode in dataset.episodes() {
        hasher.update(&(episode.frames.len() as u64).to_le_bytes());
        if is_video {
            let span = episode.videos[place];
            hasher.update(&span.from.to_le_bytes());
            files.push(dataset.info().video_file(key, span.chunk.into(), span.file.into()));
        } else {
            files.push(dataset.files()[episode.file as usize].path.clone());
        }
    }
    for timestamp in &dataset.columns().timestamps {
        hasher.update(&timestamp.to_le_bytes());
    }
    files.dedup();
    for file in files {
        hasher.update(file.as_bytes());
        hash_file(&mut hasher, dataset.root(), &file)?;
    }
    Ok(hasher.finalize().to_hex().to_string())
}

fn hash_file(hasher: &mut blake3::Hasher, root: &Root, file: &str) -> Result<(), Error> {
    let blob = root.open(file)?;
    let length = blob.length();
    hasher.update(&length.to_le_bytes());
    let (block, starts): (u64, Vec<u64>) = match length <= WHOLE {
        true => (MEBIBYTE, (0..length).step_by(MEBIBYTE as usize).collect()),
        false => (BLOCK, (0..BLOCKS).map(|at| (length - BLOCK) / (BLOCKS - 1) * at).chain([length - BLOCK]).collect()),
    };
    for start in starts {
        let bytes =
            blob.read_at(start, block.min(length - start) as usize).map_err(|error| unreadable(file, &error))?;
        hasher.update(&bytes);
    }
    Ok(())
}

/// What is read at once of a file that is hashed whole.
const MEBIBYTE: u64 = 1 << 20;
