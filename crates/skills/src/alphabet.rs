//! Classes of segments as primitives of the language: `skill_3 : Twist -> Nat -> Motion`.
//!
//! A call says which class of motion, the sum of its commands on each axis (the twist, in units of action times steps)
//! and how many steps it takes. Twist and steps are snapped to a grid, so that **what behaves alike is written alike**:
//! equal calls are equal terms, and the compressor sees them so. The class carries the shape ([`Profile`]).
//!
//! Labels come from outside (clusters of the behavioural-equivalence kernel); nothing here learns them. A class that
//! has segments of both gripper commands becomes two skills, because a command is not a matter of degree.
//!
//! Rotations are summed like translations. That is what is commanded, not the composition of rotations.

use std::collections::BTreeMap;

use clustering::{NOISE, Points};
use language::{Signature, TermStore};
use serde::{Deserialize, Serialize};

use crate::error::{SkillError, at_least};
use crate::layout::ActionLayout;
use crate::profile::{Profile, ProfileKind, resampled};

/// The most steps of one call.
pub const MAX_SKILL_STEPS: u64 = 1 << 16;

/// How classes become skills.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AlphabetConfig {
    /// The grid of the first three axes, in units of action times steps (LIBERO: 1 is 0.05 m); 0 is off.
    pub translation_grid: f64,
    /// The grid of the other axes (LIBERO: 1 is 0.5 rad); 0 is off.
    pub rotation_grid: f64,
    /// The grid of durations, in steps; 1 keeps them. Durations are rounded up, so that a motion at the limit of its
    /// commands stays within it.
    pub step_grid: u64,
    /// Whether what the grid takes from the twist of one segment is given to the next. Then the replayed path is never
    /// further from the recorded one than half a grid on each axis at the end of any segment (for grids that divide the
    /// limit of a command); without it errors add up, but a call is a function of its segment alone.
    pub carry: bool,
    /// Samples of normalised time in a profile.
    pub samples: usize,
    /// What draws gains towards a plain shift, in squared units of action.
    pub ridge: f64,
    /// Mean or medoid; without it whichever replays the members better.
    pub profile: Option<ProfileKind>,
}

impl Default for AlphabetConfig {
    fn default() -> AlphabetConfig {
        AlphabetConfig {
            translation_grid: 0.5,
            rotation_grid: 0.25,
            step_grid: 2,
            carry: true,
            samples: 32,
            ridge: 0.05,
            profile: None,
        }
    }
}

/// A skill of an alphabet, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SkillId(pub usize);

/// One class of motion under one gripper command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skill {
    /// The name of the primitive.
    pub name: String,
    /// The label that the class came with.
    pub label: i64,
    /// Whether the gripper is commanded to close; nothing without a gripper.
    pub closed: Option<bool>,
    /// The gripper command that replay gives: the members' mean.
    pub command: f64,
    /// How many segments it was fitted to.
    pub members: usize,
    /// The shape of the motion.
    pub profile: Profile,
}

/// A skill with its parameters, on the grid of its alphabet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkillCall {
    /// Which skill.
    pub skill: SkillId,
    /// The sum of the commands on each axis; zero where the robot has fewer axes.
    pub twist: [f64; 6],
    /// How many steps it takes.
    pub steps: u64,
}

/// What snapping to the grid moved, over the segments of a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GridError {
    /// Root mean square over the first three axes, in units of action times steps.
    pub translation_rms: f64,
    /// The most on one of them.
    pub translation_max: f64,
    /// Root mean square over the other axes.
    pub rotation_rms: f64,
    /// The most on one of them.
    pub rotation_max: f64,
    /// The most steps that a duration moved.
    pub steps_max: u64,
}

/// The skills of a set of demonstrations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkillAlphabet {
    /// The columns of actions.
    pub layout: ActionLayout,
    /// How it was made.
    pub config: AlphabetConfig,
    /// The skills, by label, open before closed.
    pub skills: Vec<Skill>,
    /// What the grid moved.
    pub grid_error: GridError,
}

impl SkillAlphabet {
    /// Fits the skills of labelled segments, each given by its rows of actions.
    ///
    /// # Errors
    /// On no segments or empty ones, more than six axes, and settings that are no magnitudes.
    pub fn fit(
        segments: &[Points<'_>],
        labels: &[i64],
        layout: ActionLayout,
        config: &AlphabetConfig,
    ) -> Result<SkillAlphabet, SkillError> {
        check(config)?;
        if segments.len() != labels.len() {
            return Err(SkillError::OtherLabels { found: labels.len(), wanted: segments.len() });
        }
        if segments.is_empty() {
            return Err(SkillError::NoSegments);
        }
        let axes = layout.axes().len();
        if axes > 6 {
            return Err(SkillError::TooManyAxes { found: axes });
        }
        let mut classes: BTreeMap<(i64, Option<bool>), Vec<Points<'_>>> = BTreeMap::new();
        for (at, (&rows, &label)) in segments.iter().zip(labels).enumerate() {
            layout.check(rows)?;
            if rows.is_empty() {
                return Err(SkillError::EmptySegment { segment: at });
            }
            classes.entry((label, closed(rows, &layout))).or_default().push(rows);
        }
        let mut alphabet =
            SkillAlphabet { layout, config: config.clone(), skills: Vec::new(), grid_error: GridError::default() };
        let keys: Vec<(i64, Option<bool>)> = classes.keys().copied().collect();
        for (&(label, closed), members) in &classes {
            let mixed = keys.iter().filter(|(other, _)| *other == label).count() > 1;
            let name = name(label, closed.filter(|_| mixed));
            let profile = alphabet.fit_profile(members);
            let command = command(members, &layout);
            alphabet.skills.push(Skill { name, label, closed, command, members: members.len(), profile });
        }
        alphabet.grid_error = alphabet.measure_grid(segments);
        Ok(alphabet)
    }

    /// Adds the skills to a signature.
    pub fn declare(&self, store: &mut TermStore, signature: &mut Signature) -> Result<(), SkillError> {
        for skill in &self.skills {
            let gripper = match skill.closed {
                Some(true) => ", gripper closed",
                Some(false) => ", gripper open",
                None => "",
            };
            let doc = format!("move by this twist over so many steps, as class {} does{gripper}", skill.label);
            signature.declare(store, &skill.name, "Twist -> Nat -> Motion", &doc)?;
        }
        Ok(())
    }

    /// The skill of a class under the gripper command of these rows.
    pub fn skill_of(&self, rows: Points<'_>, label: i64) -> Result<SkillId, SkillError> {
        self.layout.check(rows)?;
        let closed = closed(rows, &self.layout);
        let found = self.skills.iter().position(|skill| (skill.label, skill.closed) == (label, closed));
        let gripper = match closed {
            Some(true) => "closed",
            Some(false) => "open",
            None => "unknown",
        };
        found.map(SkillId).ok_or(SkillError::UnknownClass { label, gripper })
    }

    /// The skill that replays these rows best under their gripper command, for segments without a label; `None` if no
    /// skill has that command.
    pub fn nearest(&self, rows: Points<'_>) -> Result<Option<SkillId>, SkillError> {
        self.layout.check(rows)?;
        let closed = closed(rows, &self.layout);
        let fitting = (0..self.skills.len()).filter(|&skill| self.skills[skill].closed == closed);
        let error = |skill: usize| self.profile_error(&self.skills[skill].profile, rows);
        Ok(fitting.min_by(|&left, &right| error(left).total_cmp(&error(right))).map(SkillId))
    }

    fn fit_profile(&self, members: &[Points<'_>]) -> Profile {
        let normal: Vec<Vec<Vec<f64>>> = members
            .iter()
            .map(|&rows| self.axes(rows).iter().map(|axis| resampled(axis, self.config.samples)).collect())
            .collect();
        let fit = |kind| Profile::fit(&normal, kind, self.config.ridge);
        if let Some(kind) = self.config.profile {
            return fit(kind);
        }
        let error = |profile: &Profile| members.iter().map(|&rows| self.profile_error(profile, rows)).sum::<f64>();
        let (mean, medoid) = (fit(ProfileKind::Mean), fit(ProfileKind::Medoid));
        if error(&medoid) < error(&mean) { medoid } else { mean }
    }

    /// Σ of squared differences between rows and their replay off the grid.
    fn profile_error(&self, profile: &Profile, rows: Points<'_>) -> f64 {
        let mut error = 0.0;
        for (axis, values) in self.axes(rows).iter().enumerate() {
            let replayed = profile.steps(axis, values.iter().sum(), values.len());
            error += values.iter().zip(replayed).map(|(value, replayed)| (value - replayed).powi(2)).sum::<f64>();
        }
        error
    }

    /// The rows, axis by axis.
    fn axes(&self, rows: Points<'_>) -> Vec<Vec<f64>> {
        let column = |column: usize| rows.rows().map(|row| f64::from(row[column])).collect();
        self.layout.axes().into_iter().map(column).collect()
    }

    fn measure_grid(&self, segments: &[Points<'_>]) -> GridError {
        let mut error = GridError::default();
        let mut squares = [0.0; 2];
        let mut count = [0.0; 2];
        for &rows in segments {
            let Ok(call) = self.call(SkillId(0), rows) else { continue };
            error.steps_max = error.steps_max.max(call.steps.abs_diff(rows.len() as u64));
            let exact = self.net_twist(rows);
            for (axis, exact) in exact.iter().enumerate().take(self.layout.axes().len()) {
                let moved = (call.twist[axis] - exact).abs();
                let (group, most) = match axis {
                    0..3 => (0, &mut error.translation_max),
                    _ => (1, &mut error.rotation_max),
                };
                *most = most.max(moved);
                squares[group] += moved * moved;
                count[group] += 1.0;
            }
        }
        let rms = |group: usize| (squares[group] / f64::max(count[group], 1.0)).sqrt();
        GridError { translation_rms: rms(0), rotation_rms: rms(1), ..error }
    }
}

fn check(config: &AlphabetConfig) -> Result<(), SkillError> {
    let wanted = "a finite number that is not negative";
    at_least("translation_grid", config.translation_grid, 0.0, wanted)?;
    at_least("rotation_grid", config.rotation_grid, 0.0, wanted)?;
    at_least("ridge", config.ridge, 0.0, wanted)?;
    at_least("step_grid", config.step_grid as f64, 1.0, "1 step or more")?;
    at_least("samples", config.samples as f64, 1.0, "1 sample or more")
}

/// What most of the rows command; closed in a tie.
fn closed(rows: Points<'_>, layout: &ActionLayout) -> Option<bool> {
    layout.gripper?;
    let closing = rows.rows().filter(|row| layout.closed(row) == Some(true)).count();
    Some(2 * closing >= rows.len())
}

fn command(members: &[Points<'_>], layout: &ActionLayout) -> f64 {
    let Some(column) = layout.gripper else { return 0.0 };
    let rows: usize = members.iter().map(Points::len).sum();
    let sum: f64 = members.iter().flat_map(|member| member.rows()).map(|row| f64::from(row[column])).sum();
    sum / rows.max(1) as f64
}

/// `skill_3`, or `skill_3_open` and `skill_3_closed` where a class has both commands.
fn name(label: i64, closed: Option<bool>) -> String {
    let class = match label {
        NOISE => "noise".to_owned(),
        label if label < 0 => format!("minus_{}", label.unsigned_abs()),
        label => label.to_string(),
    };
    match closed {
        None => format!("skill_{class}"),
        Some(true) => format!("skill_{class}_closed"),
        Some(false) => format!("skill_{class}_open"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_both_commands_are_two_skills() {
        let (open, shut) = ([0.1, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0], [0.0, 0.1, 0.0, 0.0, 0.0, 0.0, 1.0]);
        let (open, shut) = (Points::new(&open, 7).unwrap(), Points::new(&shut, 7).unwrap());
        let layout = ActionLayout::default();
        let alphabet =
            SkillAlphabet::fit(&[open, shut, open], &[2, 2, NOISE], layout, &AlphabetConfig::default()).unwrap();
        let names: Vec<&str> = alphabet.skills.iter().map(|skill| skill.name.as_str()).collect();
        assert_eq!(names, ["skill_noise", "skill_2_open", "skill_2_closed"]);
        assert_eq!(alphabet.skills[2].command, 1.0);
        assert_eq!(alphabet.skill_of(open, 2), Ok(SkillId(1)));
        assert_eq!(alphabet.skill_of(shut, NOISE).map_err(|error| error.to_string()).unwrap_err().len(), 81);
        assert_eq!(alphabet.nearest(shut), Ok(Some(SkillId(2))));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let wide = Points::new(&[0.0; 8], 8).unwrap();
        let layout = ActionLayout { width: 8, ..ActionLayout::default() };
        let fit = |segments: &[Points<'_>], labels: &[i64]| {
            SkillAlphabet::fit(segments, labels, layout, &AlphabetConfig::default()).unwrap_err()
        };
        assert_eq!(fit(&[wide], &[0]), SkillError::TooManyAxes { found: 7 });
        assert_eq!(fit(&[], &[]), SkillError::NoSegments);
        assert_eq!(fit(&[wide], &[]), SkillError::OtherLabels { found: 0, wanted: 1 });
        let bad = AlphabetConfig { step_grid: 0, ..AlphabetConfig::default() };
        assert!(matches!(
            SkillAlphabet::fit(&[], &[], layout, &bad),
            Err(SkillError::BadSetting { name: "step_grid", .. })
        ));
    }
}
