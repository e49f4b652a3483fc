//! The motion in the demonstrations: skills with pictures, segments in the plane, episodes as sequences of skills.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json_number;

/// A skill: a class of behaviourally equivalent segments, together with a gripper command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// Its name in programs, such as `skill_2`.
    pub name: String,
    /// A name that describes the motion, such as `lift 16 cm`, where one was derived.
    pub readable: Option<String>,
    /// Its segments, over all episodes.
    pub size: u64,
    /// Their mean length in frames.
    #[serde(deserialize_with = "json_number::one")]
    pub mean_length: f64,
    /// Share of its frames that have its most common true phase, 0 to 1; `None` without phases.
    pub purity: Option<f64>,
    /// That phase, as an index into [`Report::phases`](crate::Report::phases).
    pub main_phase: Option<i64>,
    /// Mean displacement of the gripper from first to last frame in metres, in the robot's base frame: x forward, y left,
    /// z up. `None` where no columns are known to hold its position, as for a robot that is commanded by joints.
    #[serde(default, deserialize_with = "json_number::place")]
    pub displacement: Option<[f64; 3]>,
    /// Mean change of the gripper's opening as a share of its range, negative when it closes.
    pub gripper: Option<f64>,
    /// Example segments with pictures, the most typical first. Three examples of five pictures each fit the page well.
    pub examples: Vec<Example>,
}

impl Skill {
    /// Its name with the readable one: `skill_2 · lift 16 cm`.
    pub fn title(&self) -> String {
        match &self.readable {
            Some(readable) => format!("{} · {readable}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Short labels of skills for small places, in their order. They repeat the number in the name and the first letters of the
/// words behind it, so that `2` is `skill_2`, `2c` is `skill_2_closed` and `2lo` is `skill_2_left_open`; if any skill has
/// another kind of name, or two labels would be the same, all are numbered from 0.
pub(crate) fn badges(skills: &[Skill]) -> Vec<String> {
    let named: Option<Vec<String>> = skills.iter().map(|skill| badge(&skill.name)).collect();
    let is_unique = |badges: &Vec<String>| badges.iter().collect::<BTreeSet<_>>().len() == badges.len();
    named.filter(is_unique).unwrap_or_else(|| (0..skills.len()).map(|index| index.to_string()).collect())
}

/// The most letters behind the number of a badge, which has little room.
const MAX_SUFFIX: usize = 4;

fn badge(name: &str) -> Option<String> {
    let rest = name.strip_prefix("skill_")?;
    let (number, words) = rest.split_once('_').unwrap_or((rest, ""));
    let suffix: String = words.split('_').filter_map(|word| word.chars().next()).take(MAX_SUFFIX).collect();
    let is_number = (1..=3).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    match number {
        "noise" => Some(format!("n{suffix}")),
        _ if is_number => Some(format!("{number}{suffix}")),
        _ => None,
    }
}

/// One segment in pictures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// Index into [`Run::datasets`](crate::Run::datasets).
    pub dataset: u64,
    /// [`Episode::index`] of its episode.
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

/// Segments in the plane. All vectors have one element for each segment; `phase` and `task` may be empty instead, where
/// the data has no such labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterMap {
    /// How the plane was made, as a phrase: `the first two principal components of D_φ, 61 % of the variance`.
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
    /// Index into [`Run::datasets`](crate::Run::datasets).
    pub dataset: Vec<u64>,
    /// [`Episode::index`] of the segment's episode.
    pub episode: Vec<u64>,
    /// The segment's first frame in the episode.
    pub first_frame: Vec<u64>,
    /// The frame after its last.
    pub end_frame: Vec<u64>,
}

/// The kernel that segments were clustered with, and how well it agrees with the Monte-Carlo kernel, its reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelAgreement {
    /// Its name, such as `monte_carlo` or `amortized`.
    pub kernel: String,
    /// Rollouts that the Monte-Carlo kernel draws from each start; 1 follows the means and samples nothing.
    pub samples: u64,
    /// Spearman's ρ between both kernels over held-out pairs; `None` where the Monte-Carlo kernel itself was used or
    /// nothing was compared.
    pub spearman: Option<f64>,
    /// Pairs that ρ is computed over.
    pub pairs: Option<u64>,
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
    /// The instruction.
    pub instruction: String,
    /// Frames.
    pub frames: u64,
    /// Whether it is a held-out episode.
    pub held_out: bool,
    /// The skills, in the order of time.
    pub skills: Vec<Span>,
    /// The true phases, in the order of time; empty where there are none.
    pub phases: Vec<Span>,
    /// Its program, written with the library.
    pub program: Option<String>,
}

/// A range of frames with a label.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn skills(names: &[&str]) -> Vec<Skill> {
        let skill = |name: &&str| Skill {
            name: (*name).to_owned(),
            readable: None,
            size: 0,
            mean_length: 0.0,
            purity: None,
            main_phase: None,
            displacement: None,
            gripper: None,
            examples: Vec::new(),
        };
        names.iter().map(skill).collect()
    }

    #[test]
    fn finding_9_badges_repeat_the_number_in_the_name() {
        assert_eq!(
            badges(&skills(&["skill_0", "skill_2_open", "skill_2_closed", "skill_noise"])),
            ["0", "2o", "2c", "n"]
        );
        // Robots with two grippers, and skills of which the first is missing.
        let two = ["skill_1_left_open_right_closed", "skill_1_left_closed_right_open", "skill_3", "skill_noise_open"];
        assert_eq!(badges(&skills(&two)), ["1lorc", "1lcro", "3", "no"]);
    }

    #[test]
    fn skills_with_other_names_are_numbered_from_0() {
        assert_eq!(badges(&skills(&["skill_4", "lift"])), ["0", "1"]);
        assert_eq!(badges(&skills(&["skill_4", "skill_4"])), ["0", "1"]);
        assert_eq!(badges(&skills(&["skill_4_up", "skill_123456"])), ["0", "1"]);
    }

    #[test]
    fn titles_have_both_names() {
        let mut skill = skills(&["skill_2"]).remove(0);
        assert_eq!(skill.title(), "skill_2");
        skill.readable = Some("lift 16 cm".to_owned());
        assert_eq!(skill.title(), "skill_2 · lift 16 cm");
    }
}
