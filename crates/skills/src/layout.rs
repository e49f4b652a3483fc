//! Which column of an action is what: the parts of a robot, and what a command to each of them means.
//!
//! A [`Group`] is a part that moves as one: an arm, a base, a head. Where it is, is its *position*, in coordinates of its own:
//!
//! | control | a command is | position |
//! |---|---|---|
//! | absolute | the position to go to | the last command |
//! | relative, position in the state | a change of position | the state |
//! | relative, position not in the state; velocity | a change of position or its rate | the sum of all commands so far |
//!
//! Positions of the last row are counted from the start of the episode and seen by nobody: such a group is not *anchored*, and its
//! motions are written as distances only. Grippers are no groups: they have two commands, which are part of what a skill is.

use serde::{Deserialize, Serialize};

use crate::error::SkillError;
use rotation::Orientation;

/// The share of a gripper's range that a command jumps by.
const JUMP: f64 = 0.5;

/// The columns of a robot's actions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionLayout {
    /// How many columns an action has.
    pub width: usize,
    /// Frames per second.
    pub fps: f64,
    /// The parts that move.
    pub groups: Vec<Group>,
    /// The grippers.
    pub grippers: Vec<Gripper>,
}

/// A part of a robot that moves as one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name for people, such as `left arm`.
    pub name: String,
    /// What its coordinates are.
    pub space: Space,
    /// What its commands mean.
    pub control: Control,
    /// Its columns of the action.
    pub columns: Vec<usize>,
    /// For each column its name for people, such as `shoulder pan`; empty if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The columns of the state that are its position; empty if the state does not have it.
    pub states: Vec<usize>,
    /// For each column the least and the largest command.
    pub limits: Vec<[f64; 2]>,
    /// For each coordinate the velocity of a fast motion: a command, or with absolute control the change of a second. Motions are
    /// cut by their velocities as shares of it.
    pub fast: Vec<f64>,
}

/// The coordinates of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Space {
    /// An end effector: up to three coordinates of its place, then three of its rotation if there is an orientation.
    Pose(Option<Orientation>),
    /// A number for each column.
    Joints,
}

/// What a command means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// The position to go to.
    Absolute,
    /// A change of position, in units of its own.
    Relative,
    /// A velocity, in units of position per second.
    Velocity,
}

/// A gripper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gripper {
    /// Its name for people, such as `left gripper`.
    pub name: String,
    /// Its column of the action.
    pub column: usize,
    /// Commands on one side of this close it.
    pub threshold: f32,
    /// Whether those above the threshold do.
    pub closes_above: bool,
    /// The least and the largest command.
    pub limits: [f64; 2],
}

impl Gripper {
    /// Whether a command closes it.
    pub fn closed(&self, command: f32) -> bool {
        (command > self.threshold) == self.closes_above
    }

    /// Whether a command follows another at once, as that of a gripper does which is told to open or to close. Others are
    /// told how far, and move as an arm does.
    pub fn jumps(&self, from: f32, to: f32) -> bool {
        let range = self.limits[1] - self.limits[0];
        range > 0.0 && f64::from((to - from).abs()) >= JUMP * range
    }
}

impl Group {
    /// How many coordinates a position has.
    pub fn dims(&self) -> usize {
        match &self.space {
            Space::Pose(Some(_)) => 6,
            Space::Pose(None) | Space::Joints => self.columns.len(),
        }
    }

    /// Whether a position means the same in every episode, so that it can be a target.
    pub fn anchored(&self) -> bool {
        match self.control {
            Control::Absolute => true,
            Control::Relative => !self.states.is_empty(),
            Control::Velocity => false,
        }
    }

    /// The coordinates that share a unit with one of them: all joints, or all of a place, or all of a rotation.
    pub(crate) fn block(&self, dim: usize) -> std::ops::Range<usize> {
        match &self.space {
            Space::Pose(Some(_)) if dim < 3 => 0..3,
            Space::Pose(Some(_)) => 3..6,
            Space::Pose(None) | Space::Joints => 0..self.dims(),
        }
    }

    fn check(&self, width: usize) -> Result<(), SkillError> {
        let wrong = |found: String, wanted: &'static str| {
            Err(SkillError::BadSetting {
                name: "a group of the layout",
                found: format!("`{}`: {found}", self.name),
                wanted,
            })
        };
        let columns = self.columns.len();
        if columns == 0 || self.columns.iter().any(|column| *column >= width) {
            return wrong(format!("columns {:?} of {width}", self.columns), "columns of the actions, from 0");
        }
        let most = match self.space {
            Space::Pose(None) => 3,
            // A place and a rotation, whose form may take four numbers.
            Space::Pose(Some(_)) => 7,
            Space::Joints => language::JointVector::MAX,
        };
        if columns > most || (matches!(self.space, Space::Pose(Some(_))) && columns < 6) {
            return wrong(format!("{columns} columns"), "as many columns as its coordinates need; split larger groups");
        }
        if self.control != Control::Absolute && self.dims() != columns {
            return wrong(
                format!("{columns} columns for {} coordinates", self.dims()),
                "one command for each coordinate",
            );
        }
        if self.fast.len() != self.dims() || self.fast.iter().any(|one| !(one.is_finite() && *one >= 0.0)) {
            return wrong(format!("fast velocities {:?}", self.fast), "one for each coordinate, none below 0");
        }
        let bad = |limit: &[f64; 2]| !(limit[0].is_finite() && limit[1].is_finite() && limit[0] <= limit[1]);
        if self.limits.len() != columns || self.limits.iter().any(bad) {
            return wrong(format!("limits {:?}", self.limits), "the least and the largest command of each column");
        }
        Ok(())
    }
}

impl ActionLayout {
    /// LIBERO's: the change of an end effector's pose in [−1, 1], and a gripper that −1 opens and 1 closes.
    pub fn libero() -> ActionLayout {
        let orientation = Orientation::about_x();
        let arm = Group {
            name: "arm".to_owned(),
            space: Space::Pose(Some(orientation)),
            control: Control::Relative,
            columns: (0..6).collect(),
            names: Vec::new(),
            states: (0..6).collect(),
            limits: vec![[-1.0, 1.0]; 6],
            fast: vec![1.0; 6],
        };
        let gripper =
            Gripper { name: "gripper".to_owned(), column: 6, threshold: 0.0, closes_above: true, limits: [-1.0, 1.0] };
        ActionLayout { width: 7, fps: 20.0, groups: vec![arm], grippers: vec![gripper] }
    }

    /// Which grippers a row commands to close.
    pub fn closed(&self, row: &[f32]) -> Vec<bool> {
        self.grippers.iter().map(|gripper| row.get(gripper.column).is_some_and(|one| gripper.closed(*one))).collect()
    }

    /// The action that keeps the robot where a row of actions brought it: positions are commanded again, changes are zero.
    pub fn stillness(&self, row: &[f32]) -> Vec<f32> {
        let mut still = row.to_vec();
        for group in self.groups.iter().filter(|group| group.control != Control::Absolute) {
            for column in &group.columns {
                still.get_mut(*column).into_iter().for_each(|command| *command = 0.0);
            }
        }
        still
    }

    /// Checks that groups and grippers are within the actions and no column has two meanings.
    pub fn validate(&self) -> Result<(), SkillError> {
        if self.width == 0 {
            return Err(SkillError::BadSetting { name: "width", found: "0".to_owned(), wanted: "1 column or more" });
        }
        if !(self.fps.is_finite() && self.fps > 0.0) {
            let found = self.fps.to_string();
            return Err(SkillError::BadSetting { name: "fps", found, wanted: "a finite number above 0" });
        }
        self.groups.iter().try_for_each(|group| group.check(self.width))?;
        let mut used = vec![false; self.width];
        let grippers = self.grippers.iter().map(|gripper| gripper.column);
        for column in self.groups.iter().flat_map(|group| group.columns.iter().copied()).chain(grippers) {
            if column >= self.width || std::mem::replace(&mut used[column], true) {
                let found = format!("column {column} of {}", self.width);
                let wanted = "columns of the actions, each in one group or gripper";
                return Err(SkillError::BadSetting { name: "a column of the layout", found, wanted });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_that_do_not_fit_are_refused() {
        assert_eq!(ActionLayout::libero().validate(), Ok(()));
        let broken: [fn(&mut ActionLayout); 8] = [
            |layout| layout.width = 0,
            |layout| layout.width = 6,
            |layout| layout.fps = 0.0,
            |layout| layout.grippers[0].column = 2,
            |layout| layout.groups[0].columns.truncate(5),
            |layout| layout.groups[0].limits[1] = [1.0, -1.0],
            |layout| layout.groups[0].columns.push(7),
            |layout| layout.groups[0].columns.clear(),
        ];
        for change in broken {
            let mut layout = ActionLayout::libero();
            change(&mut layout);
            assert!(matches!(layout.validate(), Err(SkillError::BadSetting { .. })), "{layout:?}");
        }
    }

    #[test]
    fn a_gripper_that_never_changes_never_jumps() {
        let mut gripper = ActionLayout::libero().grippers.remove(0);
        assert!(gripper.jumps(-1.0, 1.0) && !gripper.jumps(1.0, 1.0) && !gripper.jumps(0.0, 0.5));
        gripper.limits = [1.0, 1.0];
        assert!(!gripper.jumps(1.0, 1.0));
    }

    #[test]
    fn standing_still_is_a_command_again_or_no_change() {
        let mut layout = ActionLayout::libero();
        let row = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0];
        assert_eq!(layout.stillness(&row), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        layout.groups[0].control = Control::Absolute;
        assert_eq!(layout.stillness(&row), row);
    }
}
