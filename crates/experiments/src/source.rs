//! A dataset with its features.
//!
//! | encoder | features |
//! |---|---|
//! | none, for a dataset in the program | those of DINOv2-small, in the program as well |
//! | none, for a directory | those in the cache, if all are by one encoder |
//! | `pixels`, `pixels:SIDE` | made now, and kept in the cache |
//! | a name such as `dinov2-small cls`, or its beginning | those in the cache |
//!
//! Features in a cache are found by what is written beside them: neither videos nor the encoder's weights are needed.

use std::path::PathBuf;

use dataset::features::{self, FeatureCache, Filling, FrameEncoder as _, PixelEncoder, numbers_fingerprint};
use dataset::{CameraId, Dataset, FrameOptions, Overrides, Root};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::error::{Error, Result};

/// How a dataset in the program itself is addressed.
pub const EMBEDDED: &str = "embedded:";

/// The side of `pixels`, as in the command that fills caches.
const PIXELS_SIDE: usize = 20;

/// How much memory decoded pictures may take, in bytes.
const STREAM_BYTES: usize = 64 << 20;

/// Which features, and where they are.
#[derive(Clone, Debug, Default)]
pub struct FeatureChoice {
    /// The encoder; see the table of this module.
    pub encoder: Option<String>,
    /// The directory of caches. Without one, features that are made now are forgotten again.
    pub cache: Option<PathBuf>,
}

/// A dataset with the features of all its cameras.
pub struct Source {
    /// Its name in tables: the last part of its path.
    pub name: String,
    /// The dataset.
    pub dataset: Dataset,
    /// For each camera.
    pub caches: Vec<FeatureCache>,
    /// What made the features; none without cameras.
    pub encoder: Option<String>,
    /// Where features are that nobody wants to keep.
    _folder: Option<TempDir>,
}

/// What a run says about its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceRecord {
    /// The dataset's name.
    pub name: String,
    /// A hash of its numbers.
    pub fingerprint: String,
    /// How many frames it has.
    pub frames: usize,
    /// Its cameras.
    pub cameras: Vec<String>,
    /// What made the features.
    pub encoder: Option<String>,
}

impl Source {
    /// Opens a dataset: a directory, or `embedded:NAME`. `progress` hears of features that are made now.
    pub fn open(
        written: &str,
        overrides: &Overrides,
        choice: &FeatureChoice,
        progress: &mut dyn FnMut(Filling),
    ) -> Result<Source> {
        let (root, name) = match written.strip_prefix(EMBEDDED) {
            Some(name) => (dataset::embedded(name), name.to_owned()),
            None => {
                let path = PathBuf::from(written);
                let name = path.file_name().map_or(written.to_owned(), |name| name.to_string_lossy().into_owned());
                (path.is_dir().then_some(Root::Directory(path)), name)
            }
        };
        let root = root.ok_or_else(|| Error::NoDataset { written: written.to_owned() })?;
        let dataset = Dataset::open(root, overrides)?;
        let mut source = Source { name, dataset, caches: Vec::new(), encoder: None, _folder: None };
        if source.dataset.roles().cameras.is_empty() {
            return Ok(source);
        }
        match (pixels(choice.encoder.as_deref())?, &choice.encoder) {
            (Some(side), _) => source.make(side, choice, progress)?,
            (None, encoder) => {
                let own = written.strip_prefix(EMBEDDED).and_then(dataset::embedded_features);
                let cache = choice.cache.clone().map(Root::Directory);
                // What is in the program is there without a directory; one is looked into for another encoder.
                match own.filter(|_| encoder.is_none() || cache.is_none()).or(cache) {
                    Some(cache) => source.find(written, encoder.as_deref(), &cache)?,
                    None => {
                        return Err(Error::NoFeatures {
                            reason: format!("there is no directory in which the features of `{written}` could be"),
                            advice: "name one with `--features DIR`".to_owned(),
                        });
                    }
                }
            }
        }
        Ok(source)
    }

    /// What a run should say about it.
    pub fn record(&self) -> SourceRecord {
        SourceRecord {
            name: self.name.clone(),
            fingerprint: numbers_fingerprint(&self.dataset),
            frames: self.dataset.frames(),
            cameras: self.dataset.roles().cameras.clone(),
            encoder: self.encoder.clone(),
        }
    }

    /// Pictures made small, by now or before.
    fn make(&mut self, side: usize, choice: &FeatureChoice, progress: &mut dyn FnMut(Filling)) -> Result<()> {
        let directory = match &choice.cache {
            Some(directory) => directory.clone(),
            None => {
                let made = tempfile::tempdir();
                let folder = made.map_err(Error::file(&std::env::temp_dir()))?;
                self._folder.insert(folder).path().to_owned()
            }
        };
        let mut encoder = PixelEncoder::new(side);
        let memory = FrameOptions { cache_bytes: 0, stream_bytes: STREAM_BYTES };
        for camera in 0..self.dataset.roles().cameras.len() {
            let camera = CameraId(camera);
            self.caches.push(FeatureCache::fill(&self.dataset, camera, &mut encoder, &directory, memory, progress)?);
        }
        self.encoder = Some(encoder.name());
        Ok(())
    }

    /// Those of a cache.
    fn find(&mut self, written: &str, wanted: Option<&str>, cache: &Root) -> Result<()> {
        let place = match cache {
            Root::Directory(directory) => directory.display().to_string(),
            Root::Memory { name, .. } => name.clone(),
        };
        let cameras = self.dataset.roles().cameras.len();
        let mut found: Vec<_> =
            (0..cameras).map(|camera| features::find(&self.dataset, CameraId(camera), cache)).collect();
        // Those by encoders that saw all cameras.
        let mut encoders: Vec<(String, String)> =
            found[0].iter().map(|(it, _)| (it.encoder.clone(), it.weights.clone())).collect();
        encoders.retain(|(_, weights)| found.iter().all(|of| of.iter().any(|(it, _)| it.weights == *weights)));
        let all: Vec<String> = encoders.iter().map(|(name, _)| format!("`{name}`")).collect();
        let exact: Vec<_> = encoders.iter().filter(|(name, _)| Some(name.as_str()) == wanted).cloned().collect();
        let begins = |name: &str| wanted.is_none_or(|wanted| name.starts_with(wanted));
        let matching =
            if exact.is_empty() { encoders.into_iter().filter(|(name, _)| begins(name)).collect() } else { exact };
        let command = format!("`refactor-vla features {written} --encoder … --cache {place}`");
        match &matching[..] {
            [(name, weights)] => {
                for of in &mut found {
                    let place = of.iter().position(|(it, _)| it.weights == *weights);
                    self.caches.extend(place.map(|place| of.swap_remove(place).1));
                }
                self.encoder = Some(name.clone());
                Ok(())
            }
            [] => {
                let by = wanted.map(|wanted| format!(" by `{wanted}`")).unwrap_or_default();
                let has = match all.is_empty() {
                    true => "no features of it".to_owned(),
                    false => format!("features by {}", all.join(", ")),
                };
                Err(Error::NoFeatures {
                    reason: format!("there are no features of `{written}`{by}: `{place}` has {has}"),
                    advice: format!("{command} makes them; `--encoder pixels:8` does without weights"),
                })
            }
            several => {
                let names: Vec<String> = several.iter().map(|(name, _)| format!("`{name}`")).collect();
                Err(Error::NoFeatures {
                    reason: format!("`{written}` has features by {}", names.join(", ")),
                    advice: "choose with `--encoder`".to_owned(),
                })
            }
        }
    }
}

/// The side of a grid, if the encoder is one.
fn pixels(encoder: Option<&str>) -> Result<Option<usize>> {
    match encoder {
        Some("pixels") => Ok(Some(PIXELS_SIDE)),
        Some(other) => match other.strip_prefix("pixels:").map(|side| side.parse::<usize>()) {
            None => Ok(None),
            Some(Ok(side)) if (1..=256).contains(&side) => Ok(Some(side)),
            Some(_) => Err(Error::NoFeatures {
                reason: format!("there is no encoder `{other}`"),
                advice: "`pixels:SIDE` wants a side from 1 to 256".to_owned(),
            }),
        },
        None => Ok(None),
    }
}
