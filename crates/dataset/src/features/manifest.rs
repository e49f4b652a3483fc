//! What is written beside features, so that they are found without pictures and encoder.
//!
//! ```text
//! <directory>/<pictures>-<encoder>/features.json      camera, encoder, width, frames, and the hashes of all three
//! ```
//! Training needs features, not what they were made from. A machine that trains can so be given the tables and the features
//! of a dataset alone, a hundredth of its bytes. Where the pictures are there, features of other pictures are refused; where
//! they are not, the numbers of the dataset must be those that the features were made beside.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{FeatureCache, FrameEncoder, fingerprint};
use crate::fault::Error;
use crate::files::Root;
use crate::ids::CameraId;
use crate::open::Dataset;
use crate::write::unwritable;

/// The name of the file.
pub(super) const FILE: &str = "features.json";

/// No such file is longer, in bytes.
const MAX_BYTES: u64 = 1 << 16;

/// What some features are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The camera's key.
    pub camera: String,
    /// The encoder in words, such as `dinov2-small cls`.
    pub encoder: String,
    /// Numbers for each frame.
    pub width: usize,
    /// How many frames.
    pub frames: usize,
    /// The dataset's numbers, as [`numbers_fingerprint`] says.
    pub numbers: String,
    /// The pictures, as [`fingerprint`] says.
    pub pictures: String,
    /// The encoder, as [`FrameEncoder::fingerprint`] says.
    pub weights: String,
}

/// A hash of lengths, times, states and actions: all of a dataset but its pictures and labels.
pub fn numbers_fingerprint(dataset: &Dataset) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(format!("refactor-vla numbers 1 {}", dataset.info().fps).as_bytes());
    for episode in dataset.episodes() {
        hasher.update(&(episode.frames.len() as u64).to_le_bytes());
    }
    let columns = dataset.columns();
    for values in [&columns.timestamps, &columns.states.values, &columns.actions.values] {
        hasher.update(&(values.len() as u64).to_le_bytes());
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        hasher.update(&bytes);
    }
    hasher.finalize().to_hex().to_string()
}

impl Manifest {
    /// That of an encoder's features of a camera.
    pub(super) fn new(dataset: &Dataset, camera: CameraId, encoder: &dyn FrameEncoder, pictures: String) -> Manifest {
        Manifest {
            camera: key(dataset, camera).to_owned(),
            encoder: encoder.name(),
            width: encoder.width(),
            frames: dataset.frames(),
            numbers: numbers_fingerprint(dataset),
            pictures,
            weights: encoder.fingerprint(),
        }
    }

    /// Writes it beside its place and renames it, if it is not there.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Error> {
        let place = folder.join(FILE);
        let failed = |error: &std::io::Error| unwritable(&place.display().to_string(), error);
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| failed(&error.into()))?;
        text.push(b'\n');
        if fs::read(&place).is_ok_and(|found| found == text) {
            return Ok(());
        }
        let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
            file.write_all(&text)?;
            file.as_file().sync_all()?;
            file.persist(&place).map_err(|error| error.error)
        });
        written.map(drop).map_err(|error| failed(&error))
    }
}

/// All whole features of a camera that a directory or the program has, by any encoder, ordered by its name.
pub fn find(dataset: &Dataset, camera: CameraId, cache: &Root) -> Vec<(Manifest, FeatureCache)> {
    let numbers = numbers_fingerprint(dataset);
    // Pictures that are not there cannot be other pictures.
    let pictures = fingerprint(dataset, camera).ok();
    let mut found = Vec::new();
    for folder in folders(cache) {
        let Ok(text) = cache.read(&format!("{folder}/{FILE}"), MAX_BYTES) else { continue };
        let Ok(manifest) = serde_json::from_slice::<Manifest>(&text) else { continue };
        let same = manifest.camera == key(dataset, camera)
            && manifest.frames == dataset.frames()
            && manifest.numbers == numbers
            && pictures.as_ref().is_none_or(|pictures| *pictures == manifest.pictures);
        if let Some(features) = same.then(|| FeatureCache::at(cache, folder, &manifest)).flatten() {
            found.push((manifest, features));
        }
    }
    found.sort_by(|(one, _), (other, _)| (&one.encoder, &one.weights).cmp(&(&other.encoder, &other.weights)));
    found
}

fn key(dataset: &Dataset, camera: CameraId) -> &str {
    dataset.roles().cameras.get(camera.0).map_or("", String::as_str)
}

/// Folders with such a file.
fn folders(cache: &Root) -> Vec<String> {
    let mut found: Vec<String> = match cache {
        Root::Directory(path) => {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            let inside = entries.filter(|entry| entry.path().join(FILE).is_file());
            inside.filter_map(|entry| entry.file_name().into_string().ok()).collect()
        }
        Root::Memory { files, .. } => {
            files.keys().filter_map(|file| file.strip_suffix(FILE)?.strip_suffix('/')).map(str::to_owned).collect()
        }
    };
    found.sort();
    found
}
