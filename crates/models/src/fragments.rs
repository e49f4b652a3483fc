//! Fragments on the device: a dataset laid out once, and batches gathered from it.
//!
//! A [`FragmentTable`] has one row for each frame of a dataset: standardised features of all cameras side by side, states and
//! actions, rewards, and returns to go G_t = r_{t+1} + γ·G_{t+1}, what follows after step t of its episode. A batch is then
//! a list of first frames and a few gathers, with nothing computed or copied on the host.
//!
//! Standardisation is (x − mean)/deviation over the frames of the training episodes. [`Scales`] are the numbers of it; a
//! checkpoint carries them, so that a model sees other data through the same scales.

use std::ops::Range;

use candle_core::{DType, Device, Tensor};
use dataset::features::FeatureCache;
use dataset::normalize::{Normalization, NormalizationKind};
use dataset::stats::{FeatureStats, Numbers};
use dataset::{Dataset, EpisodeId, EpisodeSpan, Matrix};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::parameters::Precision;
use crate::world_model::Widths;

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

/// Where a table lies and what its returns are.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// The device.
    pub device: Device,
    /// The precision of products, in which features are kept.
    pub precision: Precision,
    /// γ of the returns to go.
    pub discount: f64,
}

/// A dataset on the device.
#[derive(Clone, Debug)]
pub struct FragmentTable {
    /// `[frames, F]`, in the precision of products; none without cameras.
    features: Option<Tensor>,
    /// `[frames, S]`, f32.
    states: Tensor,
    /// `[frames, A]`, f32.
    actions: Tensor,
    /// Rewards and returns to go, `[frames]` each, f32.
    returns: Option<(Tensor, Tensor)>,
    labels: Vec<i64>,
    spans: Vec<EpisodeSpan>,
    scales: Scales,
}

/// B fragments of T steps.
#[derive(Clone, Debug)]
pub struct FragmentBatch {
    /// x, `[B, T, F]`, in the precision of products. Without cameras F is zero, and the tensor is on the CPU.
    pub features: Tensor,
    /// s, `[B, T, S]`, f32.
    pub states: Tensor,
    /// a, `[B, T, A]`, f32.
    pub actions: Tensor,
    /// r, `[B, T]`, f32, where the dataset has rewards.
    pub rewards: Option<Tensor>,
    /// G, `[B, T]`, f32, where the dataset has rewards.
    pub returns: Option<Tensor>,
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

impl FragmentTable {
    /// Lays out a dataset; one cache for each camera, in the order in which the scales were made. Labels are `task_index`.
    /// Without rewards but with `next.success`, the reward is one at the step that first succeeds.
    pub fn new(
        dataset: &Dataset,
        caches: &[FeatureCache],
        scales: Scales,
        options: &TableOptions,
    ) -> Result<FragmentTable> {
        check_caches(dataset, caches)?;
        let columns = dataset.columns();
        let found = Widths {
            features: caches.iter().map(FeatureCache::width).sum(),
            states: columns.states.width,
            actions: columns.actions.width,
        };
        if found != scales.widths() {
            let Widths { features, states, actions } = scales.widths();
            return Err(Error::Config(format!(
                "the dataset has features, states and actions of {}, {} and {} numbers, the scales are for {features}, \
                 {states} and {actions}; use the dataset, cameras and encoder that they were made with",
                found.features, found.states, found.actions
            )));
        }
        let TableOptions { device, precision, discount } = options;
        let table = |matrix: &Matrix, scale: &Normalization| -> Result<Tensor> {
            let mut rows = matrix.values.clone();
            scale.apply(&mut rows);
            Ok(Tensor::from_vec(rows, (dataset.frames(), matrix.width), &Device::Cpu)?.to_device(device)?)
        };
        let features = match found.features {
            0 => None,
            width => {
                let whole = Tensor::zeros((dataset.frames(), width), precision.dtype(), device)?;
                each_chunk(caches, 0..dataset.frames(), |frames, rows| {
                    scales.features.apply(rows);
                    let rows = Tensor::from_slice(rows, (frames.len(), width), &Device::Cpu)?.to_device(device)?;
                    Ok(whole.slice_set(&rows.to_dtype(precision.dtype())?, 0, frames.start)?)
                })?;
                Some(whole)
            }
        };
        let rewards = columns.rewards.clone();
        let rewards = rewards.or_else(|| columns.success.as_ref().map(|won| first_successes(won, dataset.spans())));
        let returns = rewards.map(|rewards| -> Result<(Tensor, Tensor)> {
            let after = returns_to_go(&rewards, dataset.spans(), *discount);
            Ok((on(device, rewards)?, on(device, after)?))
        });
        Ok(FragmentTable {
            features,
            states: table(&columns.states, &scales.states)?,
            actions: table(&columns.actions, &scales.actions)?,
            returns: returns.transpose()?,
            labels: columns.tasks.clone(),
            spans: dataset.spans().to_vec(),
            scales,
        })
    }

    /// Fragments by their first frames, all of one length and each within an episode.
    pub fn gather(&self, starts: &[usize], length: usize) -> Result<FragmentBatch> {
        if starts.is_empty() || length == 0 {
            return Err(Error::Config(format!("{} fragments of {length} steps are no batch", starts.len())));
        }
        if let Some(start) = starts.iter().find(|start| self.left(**start) < length) {
            let left = self.left(*start);
            return Err(Error::Config(format!(
                "a fragment of {length} steps from frame {start} leaves its episode, which has {left} more"
            )));
        }
        let rows: Vec<u32> =
            starts.iter().flat_map(|start| (0..length).map(move |step| (start + step) as u32)).collect();
        let rows = Tensor::from_vec(rows, starts.len() * length, self.states.device())?;
        let matrix = |table: &Tensor| -> Result<Tensor> {
            let (_, width) = table.dims2()?;
            Ok(table.index_select(&rows, 0)?.reshape((starts.len(), length, width))?)
        };
        let vector =
            |table: &Tensor| -> Result<Tensor> { Ok(table.index_select(&rows, 0)?.reshape((starts.len(), length))?) };
        Ok(FragmentBatch {
            features: match &self.features {
                None => Tensor::zeros((starts.len(), length, 0), DType::F32, &Device::Cpu)?,
                Some(features) => matrix(features)?,
            },
            states: matrix(&self.states)?,
            actions: matrix(&self.actions)?,
            rewards: self.returns.as_ref().map(|(rewards, _)| vector(rewards)).transpose()?,
            returns: self.returns.as_ref().map(|(_, returns)| vector(returns)).transpose()?,
        })
    }

    /// The labels of fragments, by their first frames: `task_index`, and −1 for a frame that is not there.
    pub fn labels(&self, starts: &[usize]) -> Vec<i64> {
        starts.iter().map(|start| self.labels.get(*start).copied().unwrap_or(-1)).collect()
    }

    /// The number of frames.
    pub fn frames(&self) -> usize {
        self.labels.len()
    }

    /// Whether it has rewards, and so returns.
    pub fn has_returns(&self) -> bool {
        self.returns.is_some()
    }

    /// How its numbers were standardised.
    pub fn scales(&self) -> &Scales {
        &self.scales
    }

    /// The widths of what it has.
    pub fn widths(&self) -> Widths {
        self.scales.widths()
    }

    /// Its episodes.
    pub fn spans(&self) -> &[EpisodeSpan] {
        &self.spans
    }

    /// Where it lies.
    pub fn device(&self) -> &Device {
        self.states.device()
    }

    /// The frames from this one to the end of its episode.
    fn left(&self, frame: usize) -> usize {
        let episode = self.spans.partition_point(|span| span.frames.end <= frame);
        self.spans.get(episode).map_or(0, |span| span.frames.end - frame)
    }
}

/// G_t = r_{t+1} + γ·G_{t+1}, and zero at the end of an episode.
pub fn returns_to_go(rewards: &[f32], spans: &[EpisodeSpan], discount: f64) -> Vec<f32> {
    let mut returns = vec![0.0; rewards.len()];
    for span in spans {
        let mut after = 0.0;
        for frame in span.frames.clone().rev().filter(|frame| *frame < rewards.len()) {
            returns[frame] = after as f32;
            after = f64::from(rewards[frame]) + discount * after;
        }
    }
    returns
}

/// One at the first frame of each episode in which the task is solved, zero elsewhere.
fn first_successes(success: &[bool], spans: &[EpisodeSpan]) -> Vec<f32> {
    let mut rewards = vec![0.0; success.len()];
    for span in spans {
        if let Some(frame) = span.frames.clone().find(|frame| success.get(*frame) == Some(&true)) {
            rewards[frame] = 1.0;
        }
    }
    rewards
}

fn on(device: &Device, values: Vec<f32>) -> Result<Tensor> {
    let count = values.len();
    Ok(Tensor::from_vec(values, count, &Device::Cpu)?.to_device(device)?)
}

fn check_caches(dataset: &Dataset, caches: &[FeatureCache]) -> Result<()> {
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
fn each_chunk(
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
