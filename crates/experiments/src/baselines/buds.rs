//! BUDS (Zhu, Stone and Zhu 2022): bottom-up discovery of skills.
//!
//! Each demonstration is cut by hierarchical agglomerative clustering of neighbouring frames; the stretches, described by their
//! first, middle and last frame, are then clustered by spectral clustering. BUDS learns the representation of frames from all
//! sensors; here it is the standardised state, action and visual features, each group with the same weight. A held-out
//! stretch belongs to the cluster of the nearest training stretch.

use std::ops::Range;

use candle_core::{Device, Tensor};
use clustering::{Points, SpectralConfig, nearest_centres, spectral, ward_chain};
use models::FragmentBatch;
use serde::Deserialize;
use serde_json::{Value, json};

use super::fragments::Demonstrated;
use super::{Budget, Found, Fragments, Operator, refused, setting};
use crate::embeddings::{Embeddings, gathered};
use crate::error::Result;

/// The most training stretches that spectral clustering is given.
const MOST: usize = 4096;

/// Agglomerated stretches in spectral clusters.
pub struct Buds;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    /// Seconds of a stretch, on average over an episode.
    seconds: f64,
    /// Neighbours of a stretch in the graph.
    neighbours: usize,
}

impl Operator for Buds {
    fn name(&self) -> &'static str {
        "buds"
    }

    fn source(&self) -> &'static str {
        "BUDS: agglomerated stretches in spectral clusters; its learned representation is replaced by standardised states, \
         actions and frozen features"
    }

    fn choices(&self, _budget: &Budget) -> Vec<Value> {
        let all = [(0.75, 10), (0.75, 30), (1.5, 10), (1.5, 30)];
        all.map(|(seconds, neighbours)| json!({ "seconds": seconds, "neighbours": neighbours })).to_vec()
    }

    fn labels(&self, data: &Fragments<'_>, choice: &Value, seed: u64, _device: &Device) -> Result<Found> {
        let Setting { seconds, neighbours } = setting(self.name(), choice)?;
        if !(seconds > 0.0 && seconds.is_finite()) {
            return Err(refused(self.name(), "seconds", seconds, "a positive number"));
        }
        let frames = seconds * data.prepared.source.dataset.info().fps;
        let cut = |episodes: &[Demonstrated]| -> Result<Vec<(Range<usize>, Vec<f32>)>> {
            let all: Result<Vec<_>> = episodes.iter().map(|episode| stretches(data, episode, frames)).collect();
            Ok(all?.concat())
        };
        let mut training = cut(&data.learned)?;
        let every = training.len().div_ceil(MOST);
        training = training.into_iter().step_by(every.max(1)).collect();
        let rows: Vec<f32> = training.iter().flat_map(|(_, row)| row).copied().collect();
        let width = rows.len() / training.len().max(1);
        let points = Points::new(&rows, width)?;
        let config = SpectralConfig { clusters: data.clusters, neighbours: neighbours.min(points.len()), seed };
        let labels = spectral(points, &config)?;
        let classified = data.held_out.iter().map(|episode| -> Result<Vec<(Range<usize>, i64)>> {
            let (ranges, rows): (Vec<Range<usize>>, Vec<Vec<f32>>) =
                stretches(data, episode, frames)?.into_iter().unzip();
            let nearest = nearest_centres(Points::new(&rows.concat(), width)?, points)?;
            Ok(ranges.into_iter().zip(nearest.into_iter().map(|at| labels[at as usize])).collect())
        });
        Ok(data.found_of_stretches(&classified.collect::<Result<Vec<_>>>()?))
    }
}

/// The stretches of an episode in frames of the dataset, each with its first, middle and last frame.
fn stretches(data: &Fragments<'_>, episode: &Demonstrated, frames: f64) -> Result<Vec<(Range<usize>, Vec<f32>)>> {
    let all: Vec<usize> = episode.frames.clone().collect();
    let vectors: Embeddings = gathered(&data.table, &all, 1, weighted)?;
    let count = ((all.len() as f64 / frames).round() as usize).clamp(1, all.len());
    let found = ward_chain(Points::new(&vectors.values, vectors.width)?, count)?;
    let first = episode.frames.start;
    let described = found.into_iter().map(|rows| {
        let of = [rows.start, (rows.start + rows.end) / 2, rows.end - 1];
        (first + rows.start..first + rows.end, vectors.rows(of))
    });
    Ok(described.collect())
}

/// A frame as one vector in which states, actions and features weigh the same, however many numbers they have.
fn weighted(batch: &FragmentBatch) -> models::Result<Tensor> {
    let mut groups = Vec::new();
    for group in [&batch.states, &batch.actions, &batch.features] {
        let (_, _, width) = group.dims3()?;
        if width > 0 {
            groups.push((group.to_dtype(candle_core::DType::F32)? / (width as f64).sqrt())?);
        }
    }
    Ok(Tensor::cat(&groups, 2)?.flatten_from(1)?)
}
