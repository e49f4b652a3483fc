//! One dataset or several, with features.
//!
//! [`Source::open`] opens one dataset, [`Source::join`] makes one source of several: all code below sees one dataset, and
//! [`Source::origin`] says which of them an episode came from. Features are looked for by encoder:
//!
//! | encoder | features |
//! |---|---|
//! | none, for a dataset in the program | those of DINOv2-small, in the program as well |
//! | none, for a directory | those in the cache, if all are by one encoder |
//! | `pixels`, `pixels:SIDE` | made now, and kept in the cache |
//! | a name such as `dinov2-small cls`, or its beginning | those in the cache |
//!
//! Features in a cache are found by what is written beside them: neither videos nor the encoder's weights are needed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use dataset::features::{self, FeatureCache, Filling, FrameEncoder as _, PixelEncoder, numbers_fingerprint};
use dataset::{CameraId, Dataset, EpisodeId, FrameOptions, FrameReader, Joined, Overrides, Root};
use tempfile::TempDir;

use crate::error::{Error, Result};

mod record;

pub use record::{DatasetRecord, SourceRecord};

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
    /// Whether pictures made small ([`FALLBACK`]) serve where no features are found, with a note.
    pub or_pixels: bool,
}

/// The side of pictures made small that serve instead of an encoder's features.
pub const FALLBACK: usize = 8;

/// One dataset or several joined ones, with the features of all cameras.
pub struct Source {
    /// Its name in tables: the last part of a dataset's path, or those of all datasets with ` + ` between them.
    pub name: String,
    /// The dataset, or all of them as one.
    pub dataset: Dataset,
    /// For each camera.
    pub caches: Vec<FeatureCache>,
    /// What made the features; none without cameras.
    pub encoder: Option<String>,
    /// The datasets that it is made of, one or more.
    pub parts: Vec<SourcePart>,
    /// What a user should know about the datasets and how they were joined.
    pub notes: Vec<String>,
    /// A hash of the encoder's weights, where they are known.
    weights: Option<String>,
    /// Directories of features that nobody wants to keep.
    _folders: Vec<TempDir>,
}

/// One of a source's datasets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePart {
    /// The dataset's name, different from all others'.
    pub name: String,
    /// The dataset as the user wrote it.
    pub written: String,
    /// A hash of its numbers.
    pub fingerprint: String,
    /// Its episodes, in those of the source.
    pub episodes: Range<usize>,
    /// Its frames, in those of the source.
    pub frames: Range<usize>,
}

/// Where an episode of a source came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The dataset, by its place in [`Source::parts`].
    pub dataset: usize,
    /// The episode there.
    pub episode: EpisodeId,
}

impl Source {
    /// Opens a dataset: a directory, or `embedded:NAME`. `progress` hears of features that are made now.
    pub fn open(
        written: &str,
        overrides: &Overrides,
        choice: &FeatureChoice,
        progress: &mut dyn FnMut(Filling),
    ) -> Result<Source> {
        Source::without_features(written, overrides)?.with_features(choice, progress)
    }

    /// Opens a dataset and checks every number that training uses, before any work on pictures.
    ///
    /// # Errors
    /// If it cannot be read, or if a state, an action or a reward is not finite or implausible.
    pub fn without_features(written: &str, overrides: &Overrides) -> Result<Source> {
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
        dataset.check_numbers()?;
        let part = SourcePart {
            name: name.clone(),
            written: written.to_owned(),
            fingerprint: numbers_fingerprint(&dataset),
            episodes: 0..dataset.episodes().len(),
            frames: 0..dataset.frames(),
        };
        let mut notes = Vec::new();
        if dataset.roles().cameras.is_empty() {
            notes.push(format!(
                "`{name}` has no cameras: models see states and actions alone, and no features are needed"
            ));
        }
        Ok(Source {
            name,
            dataset,
            caches: Vec::new(),
            encoder: None,
            parts: vec![part],
            notes,
            weights: None,
            _folders: Vec::new(),
        })
    }

    /// The same dataset with the features of its cameras, found or made; a dataset without cameras stays as it is.
    pub fn with_features(mut self, choice: &FeatureChoice, progress: &mut dyn FnMut(Filling)) -> Result<Source> {
        if self.dataset.roles().cameras.is_empty() {
            return Ok(self);
        }
        let written = self.parts.first().map_or(self.name.clone(), |part| part.written.clone());
        match (pixels(choice.encoder.as_deref())?, &choice.encoder) {
            (Some(side), _) => self.make(side, choice, progress)?,
            (None, encoder) => {
                let own = written.strip_prefix(EMBEDDED).and_then(dataset::embedded_features);
                let cache = choice.cache.clone().map(Root::Directory);
                // What is in the program is there without a directory; one is looked into for another encoder.
                let found = match own.filter(|_| encoder.is_none() || cache.is_none()).or(cache) {
                    Some(cache) => self.find(&written, encoder.as_deref(), &cache),
                    None => Err(Error::NoFeatures {
                        reason: format!("there is no directory in which the features of `{written}` could be"),
                        advice: "name one with `--features DIR`".to_owned(),
                    }),
                };
                match found {
                    Err(Error::NoFeatures { .. }) if choice.or_pixels => {
                        self.make(FALLBACK, choice, progress)?;
                        self.notes.push(format!(
                            "there are no features of `{written}`, so models see its pictures as {FALLBACK}×{FALLBACK} pixels \
                             (`--encoder pixels:{FALLBACK}`); `refactor-vla features {written} --encoder WEIGHTS` makes \
                             features by DINOv2, which show more"
                        ));
                    }
                    other => other?,
                }
            }
        }
        Ok(self)
    }

    /// Refuses datasets that cannot be joined, such as those of different robots, before features of them are looked for.
    pub fn check_joinable(sources: &[Source]) -> Result<()> {
        let names = different_names(sources);
        let named: Vec<(&str, &Dataset)> =
            names.iter().map(String::as_str).zip(sources.iter().map(|source| &source.dataset)).collect();
        Ok(Dataset::check_joinable(&named)?)
    }

    /// Why there are no pictures to show, in words; `None` if there are. Pictures of the first camera are what a report shows.
    pub fn missing_pictures(&self) -> Option<String> {
        if self.dataset.roles().cameras.is_empty() {
            return Some("the dataset has no cameras".to_owned());
        }
        let missing = FrameReader::new(&self.dataset, FrameOptions::default()).missing(CameraId(0))?;
        Some(missing.to_string())
    }

    /// Makes one source of several. One alone stays as it is.
    ///
    /// # Errors
    /// If there is none, if columns, cameras or frame rates differ, or if features are by different encoders.
    pub fn join(sources: Vec<Source>) -> Result<Source> {
        let mut sources = sources;
        if sources.len() <= 1 {
            return sources.pop().ok_or_else(|| Error::Mismatch("no dataset was given; name one or more".to_owned()));
        }
        // What datasets are is looked at before what encoded them: features of other cameras are other features anyway.
        let names = different_names(&sources);
        let encoders: Vec<(Option<String>, Option<String>)> =
            sources.iter().map(|source| (source.encoder.clone(), source.weights.clone())).collect();
        let (mut named, mut caches, mut folders, mut written) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut own_notes = Vec::new();
        for (source, name) in sources.into_iter().zip(&names) {
            let cameras = source.dataset.roles().cameras.clone();
            caches.push(cameras.into_iter().zip(source.caches).collect::<BTreeMap<String, FeatureCache>>());
            folders.extend(source._folders);
            own_notes.extend(source.notes);
            written.extend(source.parts.into_iter().map(|part| (part.written, part.fingerprint)));
            named.push((name.clone(), source.dataset));
        }
        let Joined { dataset, parts, repeated, mut notes } = Dataset::join(named)?;
        refuse_other_encoders(&names, &encoders)?;
        notes.splice(0..0, own_notes);
        if repeated > 0 {
            notes.push(format!("{repeated} episodes occur in more than one of the datasets"));
        }
        let parts: Vec<SourcePart> = parts
            .into_iter()
            .zip(written)
            .map(|(part, (written, fingerprint))| SourcePart {
                name: part.name,
                written,
                fingerprint,
                episodes: part.episodes,
                frames: part.frames,
            })
            .collect();
        let of_camera = |key: &String| -> Result<FeatureCache> {
            let all: Vec<FeatureCache> = caches.iter().filter_map(|of| of.get(key).cloned()).collect();
            FeatureCache::join(&all)
                .ok_or_else(|| Error::Mismatch(format!("features of `{key}` have different widths")))
        };
        let has_features = caches.iter().all(|of| !of.is_empty());
        let cameras = if has_features { dataset.roles().cameras.as_slice() } else { &[] };
        let caches = cameras.iter().map(of_camera).collect::<Result<Vec<_>>>()?;
        let (encoder, weights) = encoders.into_iter().next().unwrap_or_default();
        let name = names.join(" + ");
        Ok(Source { name, dataset, caches, encoder, parts, notes, weights, _folders: folders })
    }

    /// A hash of the weights of the encoder that made the features, where they are known.
    pub fn weights(&self) -> Option<&str> {
        self.weights.as_deref()
    }

    /// Whether the features are small images, so that all features of a camera are in one unit.
    pub(crate) fn has_pixels(&self) -> bool {
        self.encoder.as_deref().is_some_and(|name| name.starts_with("pixels "))
    }

    /// Where an episode came from.
    pub fn origin(&self, episode: EpisodeId) -> Origin {
        let dataset = self.parts.partition_point(|part| part.episodes.end <= episode.at());
        let dataset = dataset.min(self.parts.len().saturating_sub(1));
        let first = self.parts.get(dataset).map_or(0, |part| part.episodes.start);
        Origin { dataset, episode: EpisodeId(episode.at().saturating_sub(first) as u32) }
    }

    /// Pictures made small, by now or before.
    fn make(&mut self, side: usize, choice: &FeatureChoice, progress: &mut dyn FnMut(Filling)) -> Result<()> {
        let directory = match &choice.cache {
            Some(directory) => directory.clone(),
            None => {
                let folder = tempfile::tempdir().map_err(Error::write(&std::env::temp_dir()))?;
                let path = folder.path().to_owned();
                self._folders.push(folder);
                path
            }
        };
        let mut encoder = PixelEncoder::new(side);
        let memory = FrameOptions { cache_bytes: 0, stream_bytes: STREAM_BYTES };
        for camera in 0..self.dataset.roles().cameras.len() {
            let camera = CameraId(camera);
            self.caches.push(FeatureCache::fill(&self.dataset, camera, &mut encoder, &directory, memory, progress)?);
        }
        (self.encoder, self.weights) = (Some(encoder.name()), Some(encoder.fingerprint()));
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
                (self.encoder, self.weights) = (Some(name.clone()), Some(weights.clone()));
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

/// Different names of datasets: their paths where two would be called the same, and a count where even those agree.
fn different_names(sources: &[Source]) -> Vec<String> {
    let same = |name: &str| sources.iter().filter(|other| other.name == name).count() > 1;
    let path = |source: &Source| source.parts.first().map_or(source.name.clone(), |part| part.written.clone());
    let mut names: Vec<String> = Vec::new();
    for source in sources {
        let name = if same(&source.name) { path(source) } else { source.name.clone() };
        let numbered = (2..).map(|count| format!("{name} ({count})"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !names.contains(name));
        names.push(free.unwrap_or(name));
    }
    names
}

/// Features by different encoders, or by different weights of one, mean different things.
fn refuse_other_encoders(names: &[String], encoders: &[(Option<String>, Option<String>)]) -> Result<()> {
    if encoders.iter().all(|of| *of == encoders[0]) {
        return Ok(());
    }
    let say = |(name, (encoder, weights)): (&String, &(Option<String>, Option<String>))| {
        let weights = weights.as_deref().unwrap_or_default();
        let short: String = weights.chars().take(8).collect();
        format!("`{name}` by {} ({short})", encoder.as_deref().unwrap_or("no encoder"))
    };
    let found: Vec<String> = names.iter().zip(encoders).map(say).collect();
    Err(Error::NoFeatures {
        reason: format!("features are by different encoders: {}", found.join(", ")),
        advice: "choose one with `--encoder`, and make its features of all datasets with `refactor-vla features`"
            .to_owned(),
    })
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
