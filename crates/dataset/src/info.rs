//! `meta/info.json`: the format's version, the totals, the features, and where the files are.
//!
//! Unknown keys are ignored, as newer versions of lerobot add some; a known key with a wrong value is a fault, and all of
//! them are reported at once.

use serde_json::{Map, Value, json};

use crate::fault::{Error, Fault};

/// Where it is in a dataset.
pub const INFO: &str = "meta/info.json";

/// The version that we write, and whose major number we read.
pub const VERSION: &str = "v3.0";

/// What lerobot writes as `data_path`.
pub const DATA_PATH: &str = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet";

/// What lerobot writes as `video_path`.
pub const VIDEO_PATH: &str = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4";

/// A dataset's own description.
#[derive(Clone, Debug, PartialEq)]
pub struct Info {
    /// Such as `v3.0`.
    pub version: String,
    /// Such as `panda`.
    pub robot_type: Option<String>,
    /// The number of episodes.
    pub total_episodes: u64,
    /// The number of frames of all episodes.
    pub total_frames: u64,
    /// The number of tasks.
    pub total_tasks: u64,
    /// The most files in one chunk.
    pub chunks_size: u64,
    /// Frames per second.
    pub fps: f64,
    /// Ranges of episodes by name, such as `train` and `0:54`.
    pub splits: Vec<(String, String)>,
    /// Where data files are, with `{chunk_index:03d}` and `{file_index:03d}`.
    pub data_path: String,
    /// Where videos are, with `{video_key}` besides; absent without videos.
    pub video_path: Option<String>,
    /// The columns and cameras, in the file's order.
    pub features: Vec<(String, Feature)>,
}

/// One column or camera.
#[derive(Clone, Debug, PartialEq)]
pub struct Feature {
    /// What its values are.
    pub dtype: Dtype,
    /// `[8]` for a vector of eight numbers, `[height, width, 3]` for pictures.
    pub shape: Vec<usize>,
    /// Names of the dimensions, in whatever shape the writer chose.
    pub names: Option<Value>,
    /// What the writer notes about videos, and anything else.
    pub info: Option<Value>,
}

/// What the values of a feature are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dtype {
    /// Pictures in mp4 files.
    Video,
    /// Pictures in the data files.
    Image,
    /// 32-bit floating point.
    Float32,
    /// 64-bit floating point.
    Float64,
    /// Signed integers of so many bits.
    Int(u8),
    /// Unsigned integers of so many bits.
    Uint(u8),
    /// True or false.
    Bool,
    /// Text.
    Text,
    /// Anything that we cannot read; such columns are left alone.
    Other(String),
}

impl Dtype {
    fn parse(written: &str) -> Dtype {
        match written {
            "video" => Dtype::Video,
            "image" => Dtype::Image,
            "float32" => Dtype::Float32,
            "float64" => Dtype::Float64,
            "int8" => Dtype::Int(8),
            "int16" => Dtype::Int(16),
            "int32" => Dtype::Int(32),
            "int64" => Dtype::Int(64),
            "uint8" => Dtype::Uint(8),
            "uint16" => Dtype::Uint(16),
            "uint32" => Dtype::Uint(32),
            "uint64" => Dtype::Uint(64),
            "bool" => Dtype::Bool,
            "string" => Dtype::Text,
            other => Dtype::Other(other.to_string()),
        }
    }

    /// As `info.json` has it.
    pub fn name(&self) -> String {
        match self {
            Dtype::Video => "video".to_string(),
            Dtype::Image => "image".to_string(),
            Dtype::Float32 => "float32".to_string(),
            Dtype::Float64 => "float64".to_string(),
            Dtype::Int(bits) => format!("int{bits}"),
            Dtype::Uint(bits) => format!("uint{bits}"),
            Dtype::Bool => "bool".to_string(),
            Dtype::Text => "string".to_string(),
            Dtype::Other(name) => name.clone(),
        }
    }

    /// Whether it is floating point.
    pub fn is_float(&self) -> bool {
        matches!(self, Dtype::Float32 | Dtype::Float64)
    }

    /// Whether it is an integer.
    pub fn is_integer(&self) -> bool {
        matches!(self, Dtype::Int(_) | Dtype::Uint(_))
    }

    /// Whether its values are pictures.
    pub fn is_camera(&self) -> bool {
        matches!(self, Dtype::Video | Dtype::Image)
    }
}

impl Feature {
    /// A column of vectors.
    pub fn new(dtype: Dtype, shape: &[usize]) -> Feature {
        Feature { dtype, shape: shape.to_vec(), names: None, info: None }
    }

    /// With names for its dimensions.
    pub fn named(mut self, names: &[&str]) -> Feature {
        self.names = Some(json!(names));
        self
    }

    /// The number of values in one row.
    pub fn width(&self) -> usize {
        self.shape.iter().product()
    }

    /// As `float32[8]`.
    pub fn shown(&self) -> String {
        let sides: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        format!("{}[{}]", self.dtype.name(), sides.join("×"))
    }

    /// The names of the dimensions, in whatever shape the writer chose, where there is one for each of them.
    pub fn dimension_names(&self) -> Option<Vec<String>> {
        crate::robot::names::flattened(self.names.as_ref()?, self.width())
    }
}

impl Info {
    /// Reads the file's content.
    pub fn parse(content: &[u8]) -> Result<Info, Error> {
        let (info, faults) = Info::parse_loosely(content)?;
        Error::of(faults).map_or(Ok(info), Err)
    }

    /// As [`Info::parse`], with zeros and empty paths where something is wrong, and what is wrong.
    pub(crate) fn parse_loosely(content: &[u8]) -> Result<(Info, Vec<Fault>), Error> {
        let malformed = |reason: String| Fault::Malformed { file: INFO.to_string(), format: "JSON", reason };
        // Editors on Windows put a mark before the text.
        let content = content.strip_prefix("\u{feff}".as_bytes()).unwrap_or(content);
        let value: Value = serde_json::from_slice(content).map_err(|error| malformed(error.to_string()))?;
        let Value::Object(map) = value else {
            return Err(malformed(format!("it holds {}, not an object", shown(&value))).into());
        };
        let mut keys = Keys { map: &map, faults: Vec::new() };
        let version = keys.version("codebase_version").unwrap_or_default();
        if let Some(fault) = unreadable_version(&version) {
            // The rest of an older file means something else.
            return Err(fault.into());
        }
        let info = Info {
            version,
            robot_type: keys.map.get("robot_type").and_then(Value::as_str).map(String::from),
            total_episodes: keys.count("total_episodes").unwrap_or_default(),
            total_frames: keys.count("total_frames").unwrap_or_default(),
            total_tasks: keys.count("total_tasks").unwrap_or_default(),
            chunks_size: keys.optional_count("chunks_size").unwrap_or(1000),
            fps: keys.rate("fps").unwrap_or_default(),
            splits: keys.splits(),
            data_path: keys.template("data_path", &["chunk_index", "file_index"]).unwrap_or_default(),
            video_path: match keys.map.get("video_path") {
                None | Some(Value::Null) => None,
                Some(_) => keys.template("video_path", &["video_key", "chunk_index", "file_index"]),
            },
            features: keys.features(),
        };
        let mut faults = keys.faults;
        if info.video_path.is_none()
            && faults.is_empty()
            && info.features.iter().any(|(_, it)| it.dtype == Dtype::Video)
        {
            faults.push(bad("video_path", "absent", format!("a path such as `{VIDEO_PATH}`, since there are videos")));
        }
        Ok((info, faults))
    }

    /// A feature by its key.
    pub fn feature(&self, key: &str) -> Option<&Feature> {
        self.features.iter().find(|(name, _)| name == key).map(|(_, feature)| feature)
    }

    /// Where a data file is.
    pub fn data_file(&self, chunk: u64, file: u64) -> String {
        expand(&self.data_path, "", chunk, file)
    }

    /// Where a video is.
    pub fn video_file(&self, key: &str, chunk: u64, file: u64) -> String {
        expand(self.video_path.as_deref().unwrap_or(VIDEO_PATH), key, chunk, file)
    }
}

/// The fault of a version that is not ours to read.
fn unreadable_version(version: &str) -> Option<Fault> {
    let (file, found) = (INFO.to_string(), version.to_string());
    match major(version)? {
        0..3 => Some(Fault::OldVersion { file, found, directory: None }),
        3 => None,
        _ => Some(Fault::NewVersion { file, found }),
    }
}

/// The 3 of `v3.0`.
fn major(version: &str) -> Option<u32> {
    let digits = version.strip_prefix('v').unwrap_or(version).split('.').next()?;
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn bad(key: &str, found: impl Into<String>, expected: impl Into<String>) -> Fault {
    Fault::BadInfo { file: INFO.to_string(), key: key.to_string(), found: found.into(), expected: expected.into() }
}

/// A value in a message, cut short.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

/// Fills `{video_key}`, `{chunk_index:03d}` and `{file_index:03d}` in.
fn expand(template: &str, key: &str, chunk: u64, file: u64) -> String {
    let mut path = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        path.push_str(before);
        let Some((field, tail)) = after.split_once('}') else {
            path.push('{');
            rest = after;
            break;
        };
        let (name, format) = field.split_once(':').unwrap_or((field, ""));
        let width: usize = format.trim_end_matches('d').parse().unwrap_or(0).min(MAX_DIGITS);
        match name {
            "video_key" => path.push_str(key),
            "chunk_index" => path.push_str(&format!("{chunk:0width$}")),
            "file_index" => path.push_str(&format!("{file:0width$}")),
            _ => path.push_str(&format!("{{{field}}}")),
        }
        rest = tail;
    }
    path.push_str(rest);
    path
}

/// No number in a path is padded wider.
const MAX_DIGITS: usize = 20;

/// The file's keys, and what is wrong with those that were read.
struct Keys<'a> {
    map: &'a Map<String, Value>,
    faults: Vec<Fault>,
}

impl Keys<'_> {
    fn wrong<T>(&mut self, key: &str, expected: &str) -> Option<T> {
        let found = self.map.get(key).map_or("absent".to_string(), shown);
        self.faults.push(bad(key, found, expected));
        None
    }

    fn text(&mut self, key: &str, expected: &str) -> Option<String> {
        match self.map.get(key).and_then(Value::as_str) {
            Some(text) => Some(text.to_string()),
            None => self.wrong(key, expected),
        }
    }

    fn version(&mut self, key: &str) -> Option<String> {
        let expected = "a version such as `v3.0`";
        let version = self.text(key, expected)?;
        if major(&version).is_some() { Some(version) } else { self.wrong(key, expected) }
    }

    fn count(&mut self, key: &str) -> Option<u64> {
        match self.map.get(key).and_then(Value::as_u64) {
            Some(count) => Some(count),
            None => self.wrong(key, "a number of 0 or more"),
        }
    }

    fn optional_count(&mut self, key: &str) -> Option<u64> {
        match self.map.get(key) {
            None | Some(Value::Null) => None,
            Some(_) => self.count(key),
        }
    }

    fn rate(&mut self, key: &str) -> Option<f64> {
        match self.map.get(key).and_then(Value::as_f64) {
            Some(rate) if (1e-6..=1e6).contains(&rate) => Some(rate),
            _ => self.wrong(key, "frames per second, from a millionth to a million"),
        }
    }

    fn splits(&self) -> Vec<(String, String)> {
        let Some(Value::Object(splits)) = self.map.get("splits") else { return Vec::new() };
        splits.iter().filter_map(|(name, range)| Some((name.clone(), range.as_str()?.to_string()))).collect()
    }

    fn template(&mut self, key: &str, fields: &[&str]) -> Option<String> {
        let template = self.text(key, "a path with `{chunk_index:03d}` and `{file_index:03d}`")?;
        if !crate::files::stays_inside(&expand(&template, "key", 0, 0)) {
            self.faults.push(Fault::EscapingPath { file: INFO.to_string(), template });
            return None;
        }
        match fields.iter().find(|field| !template.contains(&format!("{{{field}"))) {
            None => Some(template),
            Some(field) => {
                self.faults.push(bad(key, format!("`{template}`"), format!("a path with `{{{field}}}` in it")));
                None
            }
        }
    }

    fn features(&mut self) -> Vec<(String, Feature)> {
        let Some(Value::Object(features)) = self.map.get("features") else {
            return self.wrong("features", "an object of features by key").unwrap_or_default();
        };
        let mut read = Vec::new();
        for (key, value) in features {
            match feature(value) {
                Ok(feature) => read.push((key.clone(), feature)),
                Err((field, found, expected)) => {
                    self.faults.push(bad(&format!("features.{key}{field}"), found, expected));
                }
            }
        }
        read
    }
}

/// A feature, or which field of it is wrong, what it is, and what it should be.
fn feature(value: &Value) -> Result<Feature, (&'static str, String, String)> {
    let Value::Object(fields) = value else {
        return Err(("", shown(value), "an object with `dtype` and `shape`".to_string()));
    };
    let found = |key: &str| fields.get(key).map_or("absent".to_string(), shown);
    let Some(dtype) = fields.get("dtype").and_then(Value::as_str) else {
        return Err((".dtype", found("dtype"), "a type such as `float32`".to_string()));
    };
    let side = |side: &Value| side.as_u64().filter(|side| *side <= MAX_SIDE).map(|side| side as usize);
    let shape: Option<Vec<usize>> =
        fields.get("shape").and_then(Value::as_array).and_then(|shape| shape.iter().map(side).collect());
    let width = |shape: &[usize]| shape.iter().try_fold(1_usize, |width, side| width.checked_mul(*side));
    let Some(shape) = shape.filter(|shape| width(shape).is_some_and(|width| width <= MAX_WIDTH)) else {
        return Err((".shape", found("shape"), format!("a list of sizes, at most {MAX_WIDTH} values in all")));
    };
    let dtype = Dtype::parse(dtype);
    if dtype.is_camera() && shape.len() != 3 {
        return Err((".shape", found("shape"), "`[height, width, channels]`".to_string()));
    }
    let other = |key: &str| fields.get(key).filter(|value| !value.is_null()).cloned();
    Ok(Feature { dtype, shape, names: other("names"), info: other("info") })
}

/// No side of a feature is longer.
const MAX_SIDE: u64 = 1 << 16;

/// No row of a feature has more values.
const MAX_WIDTH: usize = 1 << 28;

#[cfg(test)]
mod tests {
    use super::*;

    fn minimal() -> Value {
        json!({
            "codebase_version": "v3.0", "total_episodes": 1, "total_frames": 2, "total_tasks": 1, "fps": 20,
            "data_path": DATA_PATH, "unknown": {"key": []},
            "features": {"action": {"dtype": "float32", "shape": [7], "names": {"motors": ["a", "b"]}}},
        })
    }

    #[test]
    fn unknown_keys_are_ignored_and_order_is_kept() {
        let mut value = minimal();
        value["features"]["a.first"] = json!({"dtype": "complex", "shape": []});
        let info = Info::parse(value.to_string().as_bytes()).unwrap();
        let keys: Vec<&str> = info.features.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["action", "a.first"]);
        assert_eq!(info.feature("a.first").unwrap().dtype, Dtype::Other("complex".to_string()));
        assert_eq!(info.chunks_size, 1000);
    }

    #[test]
    fn paths_are_expanded() {
        let info = Info::parse(minimal().to_string().as_bytes()).unwrap();
        assert_eq!(info.data_file(2, 1234), "data/chunk-002/file-1234.parquet");
        assert_eq!(expand("v/{video_key}/{chunk_index:d}-{file_index}.mp4", "cam", 3, 4), "v/cam/3-4.mp4");
        assert_eq!(expand("{other}/{chunk_index:099999999999d}", "", 1, 2).len(), "{other}/".len() + MAX_DIGITS);
    }

    #[test]
    fn all_faults_are_told() {
        let mut value = minimal();
        value["fps"] = json!(0);
        value["total_frames"] = json!(-3);
        value["data_path"] = json!("../../{chunk_index}/{file_index}");
        value["features"]["action"]["shape"] = json!([1e12]);
        value["features"]["state"] = json!("float32");
        let error = Info::parse(value.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.faults().len(), 5, "{error}");
    }

    #[test]
    fn other_versions_are_named() {
        for (version, old) in [("v2.1", true), ("v2.0", true), ("v4.0", false)] {
            let error = Info::parse(json!({"codebase_version": version}).to_string().as_bytes()).unwrap_err();
            assert_eq!(matches!(error.faults(), [Fault::OldVersion { .. }]), old);
            assert_eq!(matches!(error.faults(), [Fault::NewVersion { .. }]), !old);
        }
    }

    #[test]
    fn a_version_that_is_none_is_told() {
        for version in ["banana", "", "v", "v+3.0", "version 3", "v99999999999.0"] {
            let mut value = minimal();
            value["codebase_version"] = json!(version);
            let error = Info::parse(value.to_string().as_bytes()).unwrap_err();
            let [Fault::BadInfo { key, expected, .. }] = error.faults() else { panic!("`{version}`: {error}") };
            assert_eq!((key.as_str(), expected.as_str()), ("codebase_version", "a version such as `v3.0`"));
        }
    }

    #[test]
    fn a_mark_of_byte_order_is_no_content() {
        let content = format!("\u{feff}{}", minimal());
        assert_eq!(Info::parse(content.as_bytes()).unwrap(), Info::parse(minimal().to_string().as_bytes()).unwrap());
    }

    #[test]
    fn a_rate_of_next_to_nothing_is_told() {
        for rate in [1e-300, 1e-7, -1.0, 1e7] {
            let mut value = minimal();
            value["fps"] = json!(rate);
            assert!(Info::parse(value.to_string().as_bytes()).is_err(), "{rate}");
        }
    }
}
