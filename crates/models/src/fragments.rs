//! Fragments on the device: a dataset laid out once, and batches gathered from it.
//!
//! A [`FragmentTable`] has one row for each frame of a dataset: standardised features of all cameras side by side, states and
//! actions, rewards, and returns to go G_t = r_{t+1} + γ·G_{t+1}, what follows after step t of its episode. A batch is then
//! a list of first frames and a few gathers, with nothing computed or copied on the host.
//!
//! Standardisation is (x − mean)/deviation over the frames of the training episodes. [`Scales`] are the numbers of it; a
//! checkpoint carries them, so that a model sees other data through the same scales.

mod scales;

use candle_core::{DType, Device, Tensor};
use dataset::features::FeatureCache;
use dataset::normalize::Normalization;
use dataset::{Dataset, EpisodeSpan, Matrix};

pub use self::scales::Scales;
use self::scales::{check_caches, each_chunk};
use crate::error::{Error, Result};
use crate::parameters::Precision;
use crate::widths::Widths;

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
        Ok(FragmentTable {
            features,
            states: table(&columns.states, &scales.states)?,
            actions: table(&columns.actions, &scales.actions)?,
            returns: returns_on(dataset, *discount, device)?,
            labels: columns.tasks.clone(),
            spans: dataset.spans().to_vec(),
            scales,
        })
    }

    /// The same data with returns to go under another discount. Everything else is shared, not copied.
    pub fn with_discount(&self, dataset: &Dataset, discount: f64) -> Result<FragmentTable> {
        let returns = returns_on(dataset, discount, self.states.device())?;
        Ok(FragmentTable { returns, ..self.clone() })
    }

    /// The same with states in the place of features, for a dataset without cameras whose states are all there is to see.
    pub fn with_states_as_features(mut self, precision: Precision) -> Result<FragmentTable> {
        self.features = Some(self.states.to_dtype(precision.dtype())?);
        self.scales.features = self.scales.states.clone();
        Ok(self)
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

    /// The next `length` actions from each frame, `[B, length, A]`, and which of them count, `[B, length]` in f32: those beyond
    /// the end of the episode are the last one again and count nothing.
    pub fn chunks(&self, frames: &[usize], length: usize) -> Result<(Tensor, Tensor)> {
        if let Some(frame) = frames.iter().find(|frame| self.left(**frame) == 0) {
            let all = self.frames();
            return Err(Error::Config(format!("there is no frame {frame}; the dataset has {all}")));
        }
        let device = self.states.device();
        let (mut rows, mut counted) = (Vec::new(), Vec::new());
        for frame in frames {
            let left = self.left(*frame);
            rows.extend((0..length).map(|step| (frame + step.min(left - 1)) as u32));
            counted.extend((0..length).map(|step| f32::from(u8::from(step < left))));
        }
        let shape = (frames.len(), length);
        let rows = Tensor::from_vec(rows, frames.len() * length, device)?;
        let actions = self.actions.index_select(&rows, 0)?.reshape((shape.0, length, self.actions.dims2()?.1))?;
        Ok((actions, Tensor::from_vec(counted, shape, &Device::Cpu)?.to_device(device)?))
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

/// Rewards and returns to go of all frames on a device, where the dataset has rewards.
fn returns_on(dataset: &Dataset, discount: f64, device: &Device) -> Result<Option<(Tensor, Tensor)>> {
    let Some(rewards) = rewards_of(dataset) else { return Ok(None) };
    let after = returns_to_go(&rewards, dataset.spans(), discount);
    Ok(Some((on(device, rewards)?, on(device, after)?)))
}

/// The reward of each frame, where the dataset has rewards, or a success to make them of.
pub fn rewards_of(dataset: &Dataset) -> Option<Vec<f32>> {
    let columns = dataset.columns();
    let successes = || columns.success.as_ref().map(|won| first_successes(won, dataset.spans()));
    columns.rewards.clone().or_else(successes)
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

#[cfg(test)]
mod tests {
    use dataset::features::PixelEncoder;
    use dataset::{CameraId, EpisodeId, FrameOptions, Overrides, Root, Split, TaskId, embedded, recursive_pour};

    use super::*;

    const CPU: TableOptions = TableOptions { device: Device::Cpu, precision: Precision::F32, discount: 0.5 };

    fn spans(lengths: &[usize]) -> Vec<EpisodeSpan> {
        let mut start = 0;
        let span = |length: &usize| {
            start += length;
            EpisodeSpan { frames: start - length..start, task: TaskId(0) }
        };
        lengths.iter().map(span).collect()
    }

    #[test]
    fn returns_are_what_follows_within_the_episode() {
        let rewards = [1.0, 2.0, 4.0, 8.0, 0.0, 16.0];
        assert_eq!(returns_to_go(&rewards, &spans(&[3, 1, 2]), 0.5), [4.0, 4.0, 0.0, 0.0, 16.0, 0.0]);
    }

    #[test]
    fn a_success_is_rewarded_once() {
        let success = [false, true, true, false, false, true];
        assert_eq!(first_successes(&success, &spans(&[3, 2, 1])), [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn pictures_states_and_actions_come_standardised_by_the_training_episodes() {
        let root = embedded("libero_goal_mini").unwrap();
        let dataset = Dataset::open(root, &Overrides::default()).unwrap();
        let split = Split::last_per_task(dataset.spans(), 1).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let cache = |side: usize| {
            let (encoder, options) = (&mut PixelEncoder::new(side), FrameOptions::default());
            FeatureCache::fill(&dataset, CameraId(0), encoder, folder.path(), options, &mut |_| {}).unwrap()
        };
        let caches = [cache(2), cache(1)];
        let scales = Scales::over(&dataset, &caches, &split.train).unwrap();
        assert_eq!(scales.widths(), Widths { features: 15, states: 8, actions: 7 });
        let text = serde_json::to_string(&scales).unwrap();
        assert_eq!(serde_json::from_str::<Scales>(&text).unwrap(), scales);
        let table = FragmentTable::new(&dataset, &caches, scales.clone(), &CPU).unwrap();
        assert_eq!(table.has_returns(), dataset.columns().rewards.is_some());

        // The mean of each place over the training frames is 0, the deviation 1.
        let rows: Vec<u32> = split
            .train
            .iter()
            .flat_map(|episode| dataset.spans()[episode.at()].frames.clone())
            .map(|frame| frame as u32)
            .collect();
        let count = rows.len() as f64;
        let rows = Tensor::new(rows, &Device::Cpu).unwrap();
        let features = table.features.as_ref().unwrap().index_select(&rows, 0).unwrap();
        let mean: Vec<f32> = features.mean(0).unwrap().to_vec1().unwrap();
        let square: Vec<f32> = (features.sqr().unwrap().sum(0).unwrap() / count).unwrap().to_vec1().unwrap();
        assert!(mean.iter().all(|mean| mean.abs() < 1e-4), "{mean:?}");
        assert!(square.iter().all(|square| (square - 1.0).abs() < 1e-3), "{square:?}");

        // A chunk goes on with the last action beyond the end of its episode, which does not count.
        let last = dataset.spans()[0].frames.end - 1;
        let (actions, counted) = table.chunks(&[0, last - 1], 3).unwrap();
        assert_eq!(counted.to_vec2::<f32>().unwrap(), [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]);
        let actions: Vec<Vec<Vec<f32>>> = actions.to_vec3().unwrap();
        assert_eq!(actions[1][1], actions[1][2]);
        assert!(table.chunks(&[dataset.frames()], 3).is_err());

        // A fragment is what the columns and the caches say, scaled.
        let start = dataset.spans()[5].frames.start + 3;
        let batch = table.gather(&[0, start], 16).unwrap();
        assert_eq!((batch.features.dims(), batch.actions.dims()), (&[2, 16, 15][..], &[2, 16, 7][..]));
        let mut wanted = dataset.window(start..start + 16).states.to_vec();
        scales.states.apply(&mut wanted);
        let found = batch.states.get(1).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(found, wanted);
        let mut wanted = vec![0.0; 15];
        caches[0].read(start..start + 1, &mut wanted[..12]).unwrap();
        caches[1].read(start..start + 1, &mut wanted[12..]).unwrap();
        scales.features.apply(&mut wanted);
        assert_eq!(batch.features.get(1).unwrap().get(0).unwrap().to_vec1::<f32>().unwrap(), wanted);
        assert_eq!(table.labels(&[0, start]), [dataset.columns().tasks[0], dataset.columns().tasks[start]]);

        // Fragments end with their episode, and scales fit their data.
        let end = dataset.spans()[0].frames.end;
        assert!(table.gather(&[end - 16], 16).is_ok());
        let error = table.gather(&[end - 15], 16).unwrap_err().to_string();
        assert!(error.ends_with("leaves its episode, which has 15 more"), "{error}");
        assert!(table.gather(&[dataset.frames()], 1).is_err());
        assert!(FragmentTable::new(&dataset, &caches[..1], scales, &CPU).is_err());
    }

    #[test]
    fn a_dataset_without_cameras_has_fragments_without_features() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("pour");
        recursive_pour::write(&place, 2, 11).unwrap();
        let dataset = Dataset::open(Root::Directory(place), &Overrides::default()).unwrap();
        let all: Vec<EpisodeId> = (0..dataset.episodes().len() as u32).map(EpisodeId).collect();
        let scales = Scales::over(&dataset, &[], &all).unwrap();
        let table = FragmentTable::new(&dataset, &[], scales, &CPU).unwrap();
        let span = dataset.spans()[7].frames.clone();
        let batch = table.gather(&[span.start], span.len()).unwrap();
        assert_eq!(batch.features.dims(), [1, span.len(), 0]);
        let seeing = table.clone().with_states_as_features(Precision::F32).unwrap();
        assert_eq!(seeing.widths().features, seeing.widths().states);
        let seen = seeing.gather(&[span.start], span.len()).unwrap().features.flatten_all().unwrap();
        assert_eq!(seen.to_vec1::<f32>().unwrap(), batch.states.flatten_all().unwrap().to_vec1::<f32>().unwrap());
        let rewards = batch.rewards.unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let returns = batch.returns.unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(rewards, dataset.columns().rewards.as_ref().unwrap()[span.clone()]);
        assert_eq!(returns.last(), Some(&0.0));
        assert!(rewards.iter().any(|reward| *reward != 0.0), "or nothing was tested");
        for step in 0..span.len() - 1 {
            assert!((returns[step] - (rewards[step + 1] + 0.5 * returns[step + 1])).abs() < 1e-6);
        }
    }
}
