//! Readable names of skills, from how the robot moved while it did them.
//!
//! `skill_2 · lift 16 cm`, `skill_0 · close gripper`, `skill_5 · move 12 cm forward and up, gripper closed`: the first part
//! is the primitive of the language, so names differ even if motions do not. The second part says what was measured and
//! nothing else: of a robot that is moved by its joints it says which part or joint moves, and it is missing where nothing is known.
//!
//! Directions are those of REP 103: x forward, y left, z up.

use serde::{Deserialize, Serialize};

use crate::alphabet::Skill;

/// Shorter mean distances are staying in place, in metres.
const STILL: f64 = 0.01;

/// A mean change of the gripper's opening of this share of its range is opening or closing.
const GRIPPED: f64 = 0.15;

/// A mean displacement below this share of the mean distance has no direction: segments go different ways.
const DIRECTED: f64 = 0.5;

/// An axis is named if its share of the displacement is this part of the largest one.
const NAMED: f64 = 0.5;

/// The mean motion of a skill's segments, as far as the robot's columns are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillMotion {
    /// How many segments it is the mean of.
    pub segments: usize,
    /// Mean displacement of the end effector in metres: x forward, y left, z up.
    pub displacement: Option<[f64; 3]>,
    /// Mean length of the segments' displacements in metres, at least that of their mean.
    pub distance: Option<f64>,
    /// Mean change of the gripper's opening, in the unit of the fingers' columns; negative when it closes.
    pub opening: Option<f64>,
    /// The same as a share of the range of all openings.
    pub opening_share: Option<f64>,
    /// Whether the gripper is commanded to close, if there is one.
    pub closed: Option<bool>,
    /// The parts of the robot that move, where it is not known by how many metres.
    #[serde(default)]
    pub parts: Vec<String>,
    /// The joints that turn most, where they have names.
    #[serde(default)]
    pub joints: Vec<String>,
    /// Of a robot with several grippers, each with whether it is commanded to close.
    #[serde(default)]
    pub grippers: Vec<(String, bool)>,
}

/// The name of a skill for people: its primitive, and its motion in words where that is known.
pub fn skill_name(skill: &Skill, motion: &SkillMotion) -> String {
    match motion.words() {
        Some(words) => format!("{} · {words}", skill.name),
        None => skill.name.clone(),
    }
}

impl SkillMotion {
    /// The motion in words; nothing where nothing is known of it.
    pub fn words(&self) -> Option<String> {
        if self.segments == 0 {
            return None;
        }
        let moved = self.displacement.zip(self.distance);
        let travel = match moved {
            Some((by, distance)) if distance >= STILL => Some(self.travel(by, distance)),
            None => {
                let told = [("move", &self.parts), ("turn", &self.joints)].into_iter().filter(|(_, of)| !of.is_empty());
                let told = told
                    .map(|(verb, of)| format!("{verb} {}", listed(&of.iter().map(String::as_str).collect::<Vec<_>>())));
                Some(told.collect::<Vec<_>>().join(" and ")).filter(|told| !told.is_empty())
            }
            Some(_) => None,
        };
        let gripping = match self.opening_share {
            Some(share) if share <= -GRIPPED => Some(["close gripper", "closing the gripper"]),
            Some(share) if share >= GRIPPED => Some(["open gripper", "opening the gripper"]),
            _ => None,
        };
        let word = |closed: bool| if closed { "closed" } else { "open" };
        let state = match self.closed {
            Some(closed) => format!(", gripper {}", word(closed)),
            None => self.grippers.iter().map(|(name, closed)| format!(", {name} {}", word(*closed))).collect(),
        };
        Some(match (travel, gripping, moved) {
            (None, Some([alone, _]), _) => alone.to_owned(),
            (Some(travel), Some([_, meanwhile]), _) => format!("{travel} while {meanwhile}"),
            // Something is lifted and lowered with a closed gripper only, so that is said already.
            (Some(travel), None, _) if travel.starts_with('l') => travel,
            (Some(travel), None, _) => format!("{travel}{state}"),
            (None, None, Some(_)) => format!("stay in place{state}"),
            (None, None, None) => state.strip_prefix(", ").filter(|state| !state.is_empty())?.to_owned(),
        })
    }

    fn travel(&self, by: [f64; 3], distance: f64) -> String {
        let centimetres = (distance * 100.0).round();
        let length = by.iter().map(|part| part * part).sum::<f64>().sqrt();
        if length < DIRECTED * distance {
            return format!("move {centimetres} cm in different directions");
        }
        let most = by.iter().fold(0.0_f64, |most, part| most.max(part.abs()));
        let words = [["forward", "back"], ["left", "right"], ["up", "down"]];
        let named: Vec<&str> = by
            .iter()
            .zip(words)
            .filter(|(part, _)| part.abs() >= NAMED * most)
            .map(|(part, [positive, negative])| if *part > 0.0 { positive } else { negative })
            .collect();
        match (&named[..], self.closed) {
            (["up"], Some(true)) => format!("lift {centimetres} cm"),
            (["down"], Some(true)) => format!("lower {centimetres} cm"),
            _ => format!("move {centimetres} cm {}", listed(&named)),
        }
    }
}

/// `forward`, `forward and up`, `forward, left and up`.
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn motion(by: [f64; 3], opening_share: f64, closed: bool) -> SkillMotion {
        let distance = by.iter().map(|part| part * part).sum::<f64>().sqrt();
        SkillMotion {
            segments: 3,
            displacement: Some(by),
            distance: Some(distance),
            opening: Some(opening_share * 0.08),
            opening_share: Some(opening_share),
            closed: Some(closed),
            ..SkillMotion::default()
        }
    }

    #[test]
    fn motions_have_words() {
        let words = |by, share, closed| motion(by, share, closed).words().unwrap();
        assert_eq!(words([0.01, 0.0, 0.16], 0.0, true), "lift 16 cm");
        assert_eq!(words([0.0, 0.02, -0.1], 0.02, true), "lower 10 cm");
        assert_eq!(words([0.0, 0.02, 0.1], 0.0, false), "move 10 cm up, gripper open");
        assert_eq!(words([0.001, 0.0, 0.0], -0.6, true), "close gripper");
        assert_eq!(words([0.0; 3], 0.6, false), "open gripper");
        assert_eq!(words([0.0; 3], 0.0, true), "stay in place, gripper closed");
        assert_eq!(words([0.12, 0.0, 0.0], 0.0, true), "move 12 cm forward, gripper closed");
        assert_eq!(words([-0.1, -0.1, -0.1], 0.0, false), "move 17 cm back, right and down, gripper open");
        assert_eq!(words([0.03, 0.04, 0.0], -0.3, true), "move 5 cm forward and left while closing the gripper");
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        let known = motion([0.1, 0.0, 0.0], 0.0, true);
        let without = SkillMotion { closed: None, opening_share: None, ..known.clone() };
        assert_eq!(without.words().unwrap(), "move 10 cm forward");
        let still = SkillMotion { displacement: None, distance: None, ..known.clone() };
        assert_eq!(still.words().unwrap(), "gripper closed");
        assert_eq!(SkillMotion { closed: None, ..still.clone() }.words(), None);
        assert_eq!(SkillMotion { segments: 0, ..known.clone() }.words(), None);
        // A robot that is moved by its joints: which part, and what its grippers do.
        let arms = SkillMotion {
            parts: vec!["left arm".to_owned(), "right arm".to_owned()],
            grippers: vec![("left gripper".to_owned(), true), ("right gripper".to_owned(), false)],
            segments: 2,
            ..SkillMotion::default()
        };
        let words = "move left arm and right arm, left gripper closed, right gripper open";
        assert_eq!(arms.words().unwrap(), words);
        let joints = SkillMotion { joints: vec!["shoulder pan".to_owned(), "elbow flex".to_owned()], ..still.clone() };
        assert_eq!(joints.words().unwrap(), "turn shoulder pan and elbow flex, gripper closed");
        let driving = SkillMotion { parts: vec!["base".to_owned()], ..joints };
        assert_eq!(driving.words().unwrap(), "move base and turn shoulder pan and elbow flex, gripper closed");
        // Segments that go different ways have no direction in the mean.
        let spread = SkillMotion { distance: Some(0.3), ..known };
        assert_eq!(spread.words().unwrap(), "move 30 cm in different directions, gripper closed");
    }
}
