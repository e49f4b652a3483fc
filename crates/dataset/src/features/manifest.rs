//! What is written beside features, so that they are found without pictures and encoder.
//!
//! ```text
//! <directory>/<pictures>-<encoder>/features.json      camera, encoder, width, frames, and the hashes of all three
//! ```
//! Training needs features, not what they were made from. A machine that trains can so be given the tables and the features
//! of a dataset alone, a hundredth of its bytes. Where the pictures are there, they alone decide: features belong to pictures,
//! and **variants of a dataset that share its pictures share its features**. Where pictures are missing, the numbers of the
//! dataset must be those of a dataset that the features were made for or used with.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cache::no_cache;
use super::{FeatureCache, FrameEncoder, fingerprint};
use crate::fault::Error;
use crate::files::Root;
use crate::ids::CameraId;
use crate::open::Dataset;

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
    /// The numbers of the dataset that the features were made for, as [`numbers_fingerprint`] says.
    pub numbers: String,
    /// Those of other datasets with the same pictures.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub also: BTreeSet<String>,
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
            also: BTreeSet::new(),
            pictures,
            weights: encoder.fingerprint(),
        }
    }

    /// Whether features that are described so are of a dataset with these numbers.
    fn knows(&self, numbers: &str) -> bool {
        self.numbers == numbers || self.also.contains(numbers)
    }

    /// The same for the datasets of another manifest of these features, too.
    fn joined(mut self, known: Manifest) -> Manifest {
        let bare = |of: &Manifest| Manifest { numbers: String::new(), also: BTreeSet::new(), ..of.clone() };
        if bare(&known) == bare(&self) {
            let numbers = std::mem::replace(&mut self.numbers, known.numbers);
            self.also.extend(known.also);
            self.also.insert(numbers);
            self.also.remove(&self.numbers);
        }
        self
    }

    /// Writes it beside its place and renames it, if it is not there. Datasets that a manifest there names stay in it.
    pub(super) fn write(self, folder: &Path) -> Result<(), Error> {
        let place = folder.join(FILE);
        let failed = |error: &std::io::Error| no_cache(folder, error);
        let known = fs::read(&place).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let all = match known {
            Some(known) => self.joined(known),
            None => self,
        };
        let mut text = serde_json::to_vec_pretty(&all).map_err(|error| failed(&error.into()))?;
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
            && match &pictures {
                Some(pictures) => *pictures == manifest.pictures,
                None => manifest.knows(&numbers),
            };
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
