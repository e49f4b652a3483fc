//! Subtasks as labels of frames: a verb and an object.

use std::ops::Range;

use super::truth::sided;

/// What a stretch of an episode is said to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its rows of the episode.
    pub rows: Range<usize>,
    /// The verb of its phase, such as `reach`.
    pub verb: String,
    /// The object that it names.
    pub object: Option<String>,
    /// The arm that it names, of a robot with several, such as `left arm`.
    pub arm: Option<String>,
}

impl Label {
    /// Whether its verb is that of a true phase, and its arm the one of the phase if that has a side. The noun of a phase such
    /// as `open_drawer` is not compared: objects are compared by themselves.
    pub fn is_phase(&self, phase: &str) -> bool {
        let (side, verb) = sided(phase);
        let arm_fits = side.is_none_or(|side| self.arm.as_ref().is_some_and(|arm| arm.starts_with(side)));
        arm_fits && (self.verb == verb || Some(self.verb.as_str()) == verb.split('_').next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_is_compared_without_its_noun_and_with_its_arm() {
        let label = |verb: &str, arm: Option<&str>| Label {
            rows: 0..1,
            verb: verb.to_owned(),
            object: None,
            arm: arm.map(str::to_owned),
        };
        assert!(label("reach", Some("left arm")).is_phase("left_reach"));
        assert!(
            !label("reach", Some("right arm")).is_phase("left_reach") && !label("reach", None).is_phase("left_reach")
        );
        assert!(label("open", None).is_phase("open_drawer") && label("turn_knob", None).is_phase("turn_knob"));
        assert!(!label("place", None).is_phase("release"));
    }
}
