//! What a writer is told about a dataset, whether it can be, and `meta/info.json`, which says it again.

use serde_json::{Map, Value, json};

use crate::fault::{Error, Fault};
use crate::info::{DATA_PATH, Dtype, Feature, INFO, VERSION, VIDEO_PATH};
use crate::roles::AUTOMATIC;

/// What a dataset is to be.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Frames per second.
    pub fps: u32,
    /// Such as `panda`.
    pub robot_type: Option<String>,
    /// The columns and cameras, in order, without those that every dataset has (`timestamp`, `frame_index`,
    /// `episode_index`, `index`, `task_index`).
    pub features: Vec<(String, Feature)>,
    /// A data file is ended before it passes this size, in MiB; an episode is never divided.
    pub data_file_mb: u32,
    /// The most files in one chunk.
    pub chunks_size: u32,
}

impl WriteOptions {
    /// With lerobot's sizes of files.
    pub fn new(fps: u32, features: Vec<(String, Feature)>) -> WriteOptions {
        WriteOptions { fps, robot_type: None, features, data_file_mb: 100, chunks_size: 1000 }
    }

    /// What cannot be written, all of it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut faults = Vec::new();
        for (key, value) in [("fps", self.fps), ("data_file_mb", self.data_file_mb), ("chunks_size", self.chunks_size)]
        {
            if value == 0 {
                faults.push(bad(key, "0".to_string(), "1 or more"));
            }
        }
        if self.features.is_empty() {
            faults.push(bad("features", "empty".to_string(), "a feature such as `action`"));
        }
        for (at, (key, feature)) in self.features.iter().enumerate() {
            let place = format!("features.{key}");
            if key.is_empty() || key.contains('/') {
                faults.push(bad("features", format!("a feature `{key}`"), "a key without `/`, such as `action`"));
            }
            if AUTOMATIC.contains(&key.as_str()) || self.features[..at].iter().any(|(other, _)| other == key) {
                faults.push(bad(&place, "there twice".to_string(), "once; `index` and the like are written anyway"));
            }
            if let Some(expected) = unwritable_feature(feature) {
                faults.push(bad(&place, feature.shown(), expected));
            }
        }
        Error::of(faults).map_or(Ok(()), Err)
    }

    /// The features with those that every dataset has.
    pub(crate) fn all_features(&self) -> Vec<(String, Feature)> {
        let mut features = self.features.clone();
        for (_, feature) in &mut features {
            if feature.dtype == Dtype::Image && feature.names.is_none() {
                // lerobot's policies look here for the order of the axes.
                feature.names = Some(json!(["height", "width", "channels"]));
            }
        }
        features.extend(AUTOMATIC.map(|key| {
            let dtype = if key == "timestamp" { Dtype::Float32 } else { Dtype::Int(64) };
            (key.to_string(), Feature::new(dtype, &[1]))
        }));
        features
    }

    /// `meta/info.json` of the whole dataset.
    pub(crate) fn info(&self, episodes: u64, frames: u64, tasks: u64) -> Value {
        let features = self.all_features();
        let videos = features.iter().any(|(_, feature)| feature.dtype == Dtype::Video);
        let described: Map<String, Value> =
            features.iter().map(|(key, feature)| (key.clone(), describe_feature(feature))).collect();
        json!({
            "codebase_version": VERSION,
            "robot_type": self.robot_type,
            "total_episodes": episodes,
            "total_frames": frames,
            "total_tasks": tasks,
            "chunks_size": self.chunks_size,
            "data_files_size_in_mb": self.data_file_mb,
            "video_files_size_in_mb": 200,
            "fps": self.fps,
            "splits": {"train": format!("0:{episodes}")},
            "data_path": DATA_PATH,
            "video_path": videos.then_some(VIDEO_PATH),
            "features": described,
        })
    }
}

/// A feature as `info.json` has it.
pub(crate) fn describe_feature(feature: &Feature) -> Value {
    let mut described = json!({"dtype": feature.dtype.name(), "shape": feature.shape, "names": feature.names});
    if let (Some(info), Value::Object(fields)) = (&feature.info, &mut described) {
        fields.insert("info".to_string(), info.clone());
    }
    described
}

/// What a feature should be instead, if it cannot be written.
fn unwritable_feature(feature: &Feature) -> Option<&'static str> {
    const MAX_AXES: usize = 5;
    const MAX_WIDTH: usize = 1 << 24;
    let width = feature.shape.iter().try_fold(1usize, |width, side| width.checked_mul(*side)).unwrap_or(usize::MAX);
    match &feature.dtype {
        Dtype::Video => Some("`image`: videos are not encoded"),
        Dtype::Other(_) => Some("a type such as `float32`, `int64`, `bool`, `string` or `image`"),
        Dtype::Image if width == 0 || !matches!(feature.shape[..], [_, _, 3]) => {
            Some("pictures of shape [height, width, 3]")
        }
        Dtype::Text if feature.shape != [1] => Some("one text in a row, with shape [1]"),
        Dtype::Int(bits) | Dtype::Uint(bits) if !matches!(bits, 8 | 16 | 32 | 64) => {
            Some("integers of 8, 16, 32 or 64 bits")
        }
        _ if feature.shape.is_empty() || feature.shape.len() > MAX_AXES => Some("1 to 5 axes"),
        _ if width == 0 || width > MAX_WIDTH => Some("1 to 16777216 values in a row"),
        _ => None,
    }
}

fn bad(key: &str, found: String, expected: &str) -> Fault {
    Fault::BadInfo { file: INFO.to_string(), key: key.to_string(), found, expected: expected.to_string() }
}
