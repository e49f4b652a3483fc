//! The numbers by which features, states and actions are standardised.

use std::ops::Range;

use dataset::features::FeatureCache;
use dataset::normalize::{Normalization, NormalizationKind};
use dataset::stats::{FeatureStats, Numbers};
use dataset::{Dataset, EpisodeId};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::widths::Widths;

/// Frames whose features are read at once.
const CHUNK: usize = 4096;

/// How features, states and actions are standardised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scales {
    /// Of the features of all cameras, side by side; of width zero without cameras.
    pub features: Normalization,
    /// Of states.
    pub states: Normalization,
    /// Of actions.
    pub actions: Normalization,
}

impl Scales {
    /// Those of some episodes, such as the ones that a model is trained on; one cache for each camera.
    pub fn over(dataset: &Dataset, caches: &[FeatureCache], episodes: &[EpisodeId]) -> Result<Scales> {
        check_caches(dataset, caches)?;
        let (states, actions) = dataset.normalizations_over(episodes, NormalizationKind::MeanStd)?;
        let mut moments = Moments::new(caches.iter().map(FeatureCache::width).sum());
        for span in episodes.iter().filter_map(|episode| dataset.spans().get(episode.at())) {
            each_chunk(caches, span.frames.clone(), |_, rows| {
                moments.add(rows);
                Ok(())
            })?;
        }
        Ok(Scales { features: moments.normalization()?, states, actions })
    }

    /// The widths that they are for.
    pub fn widths(&self) -> Widths {
        Widths { features: self.features.width(), states: self.states.width(), actions: self.actions.width() }
    }
}

/// Features of another dataset are refused.
pub(super) fn check_caches(dataset: &Dataset, caches: &[FeatureCache]) -> Result<()> {
    match caches.iter().find(|cache| cache.frames() != dataset.frames()) {
        None => Ok(()),
        Some(cache) => Err(Error::Config(format!(
            "features of {} frames do not belong to a dataset of {}; make them again",
            cache.frames(),
            dataset.frames()
        ))),
    }
}

/// Reads features in parts, those of all cameras side by side.
///
/// # Shapes
/// `see` is given the frames and their rows, `[frames, F]`.
pub(super) fn each_chunk(
    caches: &[FeatureCache],
    frames: Range<usize>,
    mut see: impl FnMut(Range<usize>, &mut [f32]) -> Result<()>,
) -> Result<()> {
    let width: usize = caches.iter().map(FeatureCache::width).sum();
    if width == 0 {
        return Ok(());
    }
    let mut rows = vec![0.0; CHUNK.min(frames.len()) * width];
    let mut one = Vec::new();
    for start in frames.clone().step_by(CHUNK) {
        let chunk = start..frames.end.min(start + CHUNK);
        let rows = &mut rows[..chunk.len() * width];
        let mut place = 0;
        for cache in caches {
            one.resize(chunk.len() * cache.width(), 0.0);
            cache.read(chunk.clone(), &mut one)?;
            for (row, from) in rows.chunks_exact_mut(width).zip(one.chunks_exact(cache.width().max(1))) {
                row[place..place + cache.width()].copy_from_slice(from);
            }
            place += cache.width();
        }
        see(chunk, rows)?;
    }
    Ok(())
}

/// Sums of rows and of their squares, both less the first row, so that nothing is lost when a mean is far from zero.
struct Moments {
    first: Vec<f64>,
    sums: Vec<f64>,
    squares: Vec<f64>,
    count: u64,
}

impl Moments {
    fn new(width: usize) -> Moments {
        Moments { first: vec![0.0; width], sums: vec![0.0; width], squares: vec![0.0; width], count: 0 }
    }

    fn add(&mut self, rows: &[f32]) {
        for row in rows.chunks_exact(self.first.len().max(1)) {
            if self.count == 0 {
                self.first = row.iter().map(|value| f64::from(*value)).collect();
            }
            let places = self.first.iter().zip(&mut self.sums).zip(&mut self.squares);
            for (((first, sum), square), value) in places.zip(row) {
                let off = f64::from(*value) - first;
                *sum += off;
                *square += off * off;
            }
            self.count += 1;
        }
    }

    fn normalization(&self) -> Result<Normalization> {
        let width = self.first.len();
        if width == 0 {
            return Ok(Normalization::identity(0));
        }
        let count = self.count.max(1) as f64;
        let mean = self.first.iter().zip(&self.sums).map(|(first, sum)| first + sum / count).collect();
        let variance = self.sums.iter().zip(&self.squares).map(|(sum, square)| square / count - (sum / count).powi(2));
        let std = variance.map(|variance| variance.max(0.0).sqrt()).collect();
        // Which places never change is decided where it is decided for states and actions.
        let stats = FeatureStats {
            numbers: Numbers::Float,
            shape: vec![width],
            count: Some(self.count),
            min: Vec::new(),
            max: Vec::new(),
            mean,
            std,
            quantiles: Default::default(),
        };
        Ok(Normalization::from_stats(NormalizationKind::MeanStd, "features", &stats)?)
    }
}
