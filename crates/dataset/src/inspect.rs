//! What a dataset holds, in numbers and small pictures of letters.
//!
//! A person wants to see at a glance whether this is the data that was meant: how much there is, of what, and how the
//! signals move. Sparklines show the mean of a signal over all episodes, each stretched to the same length, so that what
//! episodes have in common shows.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::columns::Matrix;
use crate::fault::Error;
use crate::files::Root;
use crate::open::Dataset;
use crate::robot::RobotLayout;
use crate::video::VideoFile;

/// The letters of a sparkline, from low to high.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The letters of a sparkline of a signal.
const SPARK_WIDTH: usize = 32;

/// The bars of a histogram of lengths.
const LENGTH_BARS: usize = 16;

/// No file of names that we know is longer, in bytes.
const MAX_NAMES: u64 = 1 << 20;

/// What a dataset holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// Where it is.
    pub dataset: String,
    /// Such as `v3.0`.
    pub version: String,
    /// Such as `panda`.
    pub robot_type: Option<String>,
    /// The number of episodes.
    pub episodes: usize,
    /// The number of frames.
    pub frames: usize,
    /// Frames per second.
    pub fps: f64,
    /// Seconds of all episodes together.
    pub duration_s: f64,
    /// In order of `task_index`.
    pub tasks: Vec<TaskSummary>,
    /// In the order of `info.json`.
    pub features: Vec<FeatureSummary>,
    /// Of the episodes, in frames.
    pub lengths: Lengths,
    /// Each dimension of state and action, and the reward.
    pub signals: Vec<Signal>,
    /// The parts of the robot and what their actions mean.
    pub robot: RobotLayout,
    /// Integer columns.
    pub labels: Vec<Label>,
    /// Cameras that are videos.
    pub videos: Vec<Video>,
}

/// A task and how much of it there is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskSummary {
    /// In words.
    pub task: String,
    /// Episodes that start with it.
    pub episodes: usize,
    /// Their frames.
    pub frames: usize,
}

/// A column or camera.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FeatureSummary {
    /// Its name.
    pub key: String,
    /// Such as `float32`.
    pub dtype: String,
    /// Such as `[8]`.
    pub shape: Vec<usize>,
    /// What it is used as.
    pub role: Option<&'static str>,
    /// Names of its dimensions.
    pub names: Option<Vec<String>>,
}

/// How long episodes are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lengths {
    /// The shortest.
    pub min: usize,
    /// Half are shorter.
    pub median: f64,
    /// The longest.
    pub max: usize,
    /// The mean.
    pub mean: f64,
    /// How many there are of each length, from shortest to longest.
    pub histogram: String,
}

/// One dimension of a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Signal {
    /// The column.
    pub key: String,
    /// Which of its dimensions.
    pub dimension: usize,
    /// What it is called.
    pub name: Option<String>,
    /// The least value.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The greatest value.
    pub max: f64,
    /// The standard deviation.
    pub std: f64,
    /// The mean over all episodes, from their start to their end.
    pub sparkline: String,
}

/// An integer column and its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Label {
    /// The column.
    pub key: String,
    /// In order of value.
    pub values: Vec<LabelValue>,
}

/// A value of a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LabelValue {
    /// The number.
    pub value: i64,
    /// What it is called, where a file such as `meta/phases.json` says it.
    pub name: Option<String>,
    /// Frames with this value.
    pub frames: usize,
}

/// A camera that is a video.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Video {
    /// The camera.
    pub key: String,
    /// How it is encoded.
    pub codec: String,
    /// In pixels.
    pub width: usize,
    /// In pixels.
    pub height: usize,
    /// The number of files.
    pub files: usize,
    /// Pictures of all files.
    pub pictures: usize,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Looks at a dataset. Pictures are not decoded, but videos have to be there.
pub fn inspect(dataset: &Dataset) -> Result<Inspection, Error> {
    let info = dataset.info();
    let columns = dataset.columns();
    let roles = dataset.roles();
    let mut signals = signals_of(dataset, &roles.state, &columns.states);
    signals.extend(signals_of(dataset, &roles.action, &columns.actions));
    if let (Some(key), Some(rewards)) = (&roles.reward, &columns.rewards) {
        signals.push(signal(dataset, key, 0, None, |frame| rewards[frame]));
    }
    Ok(Inspection {
        dataset: dataset.root().shown(),
        version: info.version.clone(),
        robot_type: info.robot_type.clone(),
        episodes: dataset.episodes().len(),
        frames: dataset.frames(),
        fps: info.fps,
        duration_s: dataset.frames() as f64 / info.fps,
        tasks: tasks_of(dataset),
        features: features_of(dataset),
        lengths: lengths_of(dataset),
        signals,
        robot: RobotLayout::of(dataset),
        labels: columns.labels.iter().map(|(key, values)| label(dataset.root(), key, values)).collect(),
        videos: videos_of(dataset)?,
    })
}

/// Values as a line of small bars, the lowest as `▁` and the highest as `█`. A line that never changes is low.
pub fn sparkline(values: &[f64]) -> String {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let top = (BLOCKS.len() - 1) as f64;
    let bar = |value: &f64| match value.is_finite() {
        true if high > low => BLOCKS[((value - low) / (high - low) * top).round() as usize],
        true => BLOCKS[0],
        false => ' ',
    };
    values.iter().map(bar).collect()
}

fn tasks_of(dataset: &Dataset) -> Vec<TaskSummary> {
    let mut tasks: Vec<TaskSummary> =
        dataset.tasks().iter().map(|task| TaskSummary { task: task.clone(), episodes: 0, frames: 0 }).collect();
    for span in dataset.spans() {
        if let Some(task) = tasks.get_mut(span.task.at()) {
            task.episodes += 1;
            task.frames += span.frames.len();
        }
    }
    tasks
}

fn features_of(dataset: &Dataset) -> Vec<FeatureSummary> {
    let roles = dataset.roles();
    let role = |key: &String| match Some(key) {
        _ if *key == roles.state => Some("state"),
        _ if *key == roles.action => Some("action"),
        _ if roles.cameras.contains(key) => Some("camera"),
        _ if roles.labels.contains(key) => Some("label"),
        key if key == roles.reward.as_ref() => Some("reward"),
        key if key == roles.done.as_ref() => Some("done"),
        key if key == roles.success.as_ref() => Some("success"),
        _ => None,
    };
    let summary = |(key, feature): &(String, crate::info::Feature)| FeatureSummary {
        key: key.clone(),
        dtype: feature.dtype.name(),
        shape: feature.shape.clone(),
        role: role(key),
        names: feature.dimension_names(),
    };
    dataset.info().features.iter().map(summary).collect()
}

fn lengths_of(dataset: &Dataset) -> Lengths {
    let mut lengths: Vec<usize> = dataset.episodes().iter().map(|episode| episode.frames.len()).collect();
    lengths.sort_unstable();
    let (min, max) = (lengths.first().copied().unwrap_or(0), lengths.last().copied().unwrap_or(0));
    let middle = lengths.len() / 2;
    let median = match lengths.len() % 2 {
        0 if middle > 0 => (lengths[middle - 1] + lengths[middle]) as f64 / 2.0,
        _ => lengths.get(middle).map_or(0.0, |length| *length as f64),
    };
    let bars = LENGTH_BARS.min(max - min + 1);
    let mut counts = vec![0.0; bars];
    lengths.iter().for_each(|length| counts[(length - min) * bars / (max - min + 1)] += 1.0);
    let mean = lengths.iter().sum::<usize>() as f64 / lengths.len().max(1) as f64;
    Lengths { min, median, max, mean, histogram: if min == max { String::new() } else { histogram(&counts) } }
}

/// As a sparkline, but nothing is a space and a bar's height says how many from 0.
fn histogram(counts: &[f64]) -> String {
    let most = counts.iter().copied().fold(0.0, f64::max);
    let bar = |count: &f64| match *count {
        0.0 => ' ',
        count => BLOCKS[((count / most * BLOCKS.len() as f64).ceil() as usize).clamp(1, BLOCKS.len()) - 1],
    };
    counts.iter().map(bar).collect()
}

fn signals_of(dataset: &Dataset, key: &str, matrix: &Matrix) -> Vec<Signal> {
    let names = dataset.info().feature(key).and_then(|feature| feature.dimension_names());
    let name = |dimension: usize| names.as_ref().and_then(|names| names.get(dimension)).cloned();
    let width = matrix.width;
    let one = |dimension: usize| {
        signal(dataset, key, dimension, name(dimension), |frame| matrix.values[frame * width + dimension])
    };
    (0..width).map(one).collect()
}

fn signal(
    dataset: &Dataset,
    key: &str,
    dimension: usize,
    name: Option<String>,
    value: impl Fn(usize) -> f32,
) -> Signal {
    let frames = dataset.frames();
    let values = || (0..frames).map(|frame| f64::from(value(frame)));
    let mean = values().sum::<f64>() / frames.max(1) as f64;
    let square = values().map(|value| (value - mean).powi(2)).sum::<f64>() / frames.max(1) as f64;
    // Each episode gives each of the letters the mean of its frames there, or of the nearest one.
    let mut sums = [0.0; SPARK_WIDTH];
    for episode in dataset.episodes() {
        let (start, length) = (episode.frames.start, episode.frames.len());
        for (at, sum) in sums.iter_mut().enumerate() {
            let from = at * length / SPARK_WIDTH;
            let to = ((at + 1) * length / SPARK_WIDTH).max(from + 1);
            let part = (from..to).map(|frame| f64::from(value(start + frame))).sum::<f64>();
            *sum += part / (to - from) as f64;
        }
    }
    Signal {
        key: key.to_string(),
        dimension,
        name,
        min: values().fold(f64::INFINITY, f64::min),
        mean,
        max: values().fold(f64::NEG_INFINITY, f64::max),
        std: square.sqrt(),
        sparkline: sparkline(&sums),
    }
}

fn label(root: &Root, key: &str, values: &[i64]) -> Label {
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    values.iter().for_each(|value| *counts.entry(*value).or_default() += 1);
    let names = names_of(root, key);
    let name = |value: i64| names.as_ref().and_then(|names| names.get(usize::try_from(value).ok()?)).cloned();
    let values = counts.into_iter().map(|(value, frames)| LabelValue { value, name: name(value), frames });
    Label { key: key.to_string(), values: values.collect() }
}

/// The names of a label's values, from a file of `meta` that says which column it is about.
pub(crate) fn names_of(root: &Root, key: &str) -> Option<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct Names {
        feature: String,
        names: Vec<String>,
    }
    // Such a file is a courtesy: one that cannot be read is as good as none.
    let content = root.read(&crate::write::vocabulary_file(key), MAX_NAMES).ok()?;
    let read: Names = serde_json::from_slice(&content).ok()?;
    (read.feature == key).then_some(read.names)
}

fn videos_of(dataset: &Dataset) -> Result<Vec<Video>, Error> {
    let keys = crate::open::video_keys(dataset.info(), dataset.roles());
    let mut videos = Vec::new();
    for (place, key) in keys.iter().enumerate() {
        let mut files: Vec<(u32, u32)> = dataset
            .episodes()
            .iter()
            .map(|episode| (episode.videos[place].chunk, episode.videos[place].file))
            .collect();
        files.sort_unstable();
        files.dedup();
        let mut video: Option<Video> = None;
        for (chunk, file) in &files {
            let file = dataset.info().video_file(key, (*chunk).into(), (*file).into());
            let blob = dataset.root().open(&file)?;
            let bytes = blob.length();
            let opened = VideoFile::open(blob, &file)?;
            let (width, height) = opened.size();
            let empty = || Video {
                key: key.clone(),
                codec: opened.codec().to_string(),
                width,
                height,
                files: files.len(),
                pictures: 0,
                bytes: 0,
            };
            let so_far = video.get_or_insert_with(empty);
            so_far.pictures += opened.frames();
            so_far.bytes += bytes;
        }
        videos.extend(video);
    }
    Ok(videos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparklines_go_from_low_to_high() {
        assert_eq!(sparkline(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&[3.0; 4]), "▁▁▁▁");
        assert_eq!(sparkline(&[1.0, f64::NAN, 2.0]), "▁ █");
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn histograms_tell_nothing_from_little() {
        assert_eq!(histogram(&[0.0, 1.0, 80.0, 40.0]), " ▁█▄");
    }
}
