//! Which pictures a dataset has, as a hash.

use crate::fault::Error;
use crate::files::Root;
use crate::ids::CameraId;
use crate::info::Dtype;
use crate::open::Dataset;

/// Bytes that are read at both ends of a file.
const ENDS: u64 = 64 << 10;

/// A hash of all that a camera's features depend on: which picture belongs to which frame, and the files with the
/// pictures. Those can be of any size, so their length and both their ends stand for them: the head or the tail of an mp4
/// file holds the sizes of all its pictures, the tail of a parquet file those of all its pages, so a file that was made
/// again does not pass for the old one. Columns that are added to a dataset change nothing.
pub fn fingerprint(dataset: &Dataset, camera: CameraId) -> Result<String, Error> {
    let mut hasher = blake3::Hasher::new();
    let key = dataset.roles().cameras.get(camera.0).map_or("", String::as_str);
    let is_video = dataset.info().feature(key).is_some_and(|feature| feature.dtype == Dtype::Video);
    let place = dataset.roles().cameras[..camera.0.min(dataset.roles().cameras.len())]
        .iter()
        .filter(|key| dataset.info().feature(key).is_some_and(|feature| feature.dtype == Dtype::Video))
        .count();
    hasher.update(format!("refactor-vla pictures 1 {key} {}", dataset.info().fps).as_bytes());
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
        hash_ends(&mut hasher, dataset.root(), &file)?;
    }
    Ok(hasher.finalize().to_hex().to_string())
}

fn hash_ends(hasher: &mut blake3::Hasher, root: &Root, file: &str) -> Result<(), Error> {
    let blob = root.open(file)?;
    let length = blob.length();
    hasher.update(&length.to_le_bytes());
    let ends = ENDS.min(length);
    for start in [0, length - ends] {
        let bytes = blob.read_at(start, ends as usize).map_err(|error| crate::files::unreadable(file, &error))?;
        hasher.update(&bytes);
    }
    Ok(())
}
