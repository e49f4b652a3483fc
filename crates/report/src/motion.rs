//! What was found in the demonstrations: skills with pictures, fragments in the plane, episodes as sequences of skills.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json_number;

/// A class of stretches of motion that do the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// Its name; the page puts its number before it.
    pub name: String,
    /// Stretches of motion in it, over all episodes.
    pub size: u64,
    /// Their mean length in frames.
    #[serde(deserialize_with = "json_number::one")]
    pub mean_length: f64,
    /// Share of its frames that have its commonest true phase, 0 to 1; `None` without phases.
    pub purity: Option<f64>,
    /// That phase, as an index into [`Report::phases`](crate::Report::phases).
    pub main_phase: Option<i64>,
    /// Mean displacement of the gripper from first to last frame in metres, in the robot's base frame: x forward, y left,
    /// z up. `None` where states are no positions.
    #[serde(default, deserialize_with = "json_number::place")]
    pub displacement: Option<[f64; 3]>,
    /// Mean change of the gripper's opening in metres, negative when it closes.
    pub gripper: Option<f64>,
    /// Example stretches with pictures, the most typical first. About three of five frames are a good number.
    pub examples: Vec<Example>,
}

/// One stretch of motion in pictures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// [`Episode::index`] of the episode that it is from.
    pub episode: u64,
    /// Its first frame in the episode.
    pub first_frame: u64,
    /// The frame after its last.
    pub end_frame: u64,
    /// Pictures in the order of time; empty where the data has none.
    pub pictures: Vec<Picture>,
}

/// The bytes of a PNG or JPEG file, in JSON as base64. They go into the page as they are: small ones keep it small (a JPEG
/// of 128×128 has about 4 kB).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture(pub Vec<u8>);

impl Picture {
    /// The media type by the first bytes, `None` for what is neither PNG nor JPEG.
    pub fn media_type(&self) -> Option<&'static str> {
        if self.0.starts_with(b"\x89PNG\r\n\x1a\n") {
            Some("image/png")
        } else if self.0.starts_with(&[0xff, 0xd8, 0xff]) {
            Some("image/jpeg")
        } else {
            None
        }
    }

    /// The bytes in base64.
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.0)
    }
}

impl Serialize for Picture {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.serialize_str(&self.base64())
    }
}

impl<'de> Deserialize<'de> for Picture {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Picture, D::Error> {
        let text = String::deserialize(input)?;
        STANDARD.decode(text).map(Picture).map_err(serde::de::Error::custom)
    }
}

/// Fragments in the plane. All vectors have one element for each fragment; `phase` and `task` may be empty instead, where
/// the data has no such labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterMap {
    /// How the plane was made, as a phrase: `the two first principal components of k_χ, 61 % of the variance`.
    pub method: String,
    /// Coordinate to the right, in any unit.
    #[serde(deserialize_with = "json_number::many")]
    pub x: Vec<f64>,
    /// Coordinate upwards, in the same unit.
    #[serde(deserialize_with = "json_number::many")]
    pub y: Vec<f64>,
    /// Index into [`Report::skills`](crate::Report::skills), −1 for noise.
    pub skill: Vec<i64>,
    /// Index into [`Report::phases`](crate::Report::phases), −1 for none.
    pub phase: Vec<i64>,
    /// Index into [`Report::tasks`](crate::Report::tasks), −1 for none.
    pub task: Vec<i64>,
    /// [`Episode::index`] of the fragment's episode.
    pub episode: Vec<u64>,
    /// The fragment's first frame in the episode.
    pub first_frame: Vec<u64>,
    /// The frame after its last.
    pub end_frame: Vec<u64>,
}

/// One demonstration as a sequence of skills.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Episode {
    /// Its number in its dataset.
    pub index: u64,
    /// Index into [`Run::datasets`](crate::Run::datasets).
    pub dataset: u64,
    /// Index into [`Report::tasks`](crate::Report::tasks), −1 for none.
    pub task: i64,
    /// What the robot was told.
    pub instruction: String,
    /// Frames.
    pub frames: u64,
    /// Whether it was kept apart for judging.
    pub held_out: bool,
    /// The skills, in the order of time.
    pub skills: Vec<Span>,
    /// The true phases, in the order of time; empty where there are none.
    pub phases: Vec<Span>,
    /// Its program, written with the library.
    pub program: Option<String>,
}

/// A stretch of an episode with a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// First frame.
    pub first: u64,
    /// The frame after the last.
    pub end: u64,
    /// Index of the skill or phase, −1 for none.
    pub label: i64,
}
