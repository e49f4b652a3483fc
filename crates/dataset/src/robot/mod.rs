//! The parts of a robot and what its actions mean: which columns belong to an arm, a gripper or a base, and whether an
//! action is the position to go to, a change of position or a velocity.
//!
//! LeRobot fixes neither: seven actions may be six axes and a gripper or seven joints, and a joint's action may be an
//! angle or a speed. What is claimed here comes from the names of dimensions in `info.json` and from measurements on the
//! rows themselves, and each claim carries its evidence. **What neither decides is said so**, with the flag that does.
//!
//! | claim | names | measurement |
//! |---|---|---|
//! | parts | sides and words such as `left_shoulder_pan`, `gripper`, `base`, `head` | without names, the columns between grippers |
//! | end effector | `x`, `y`, `z` and rotations, also with `ee`, `eef`, `tcp`, `pos` | – |
//! | state column of an action | the same name, or the same place in the same part | the state that the action predicts best |
//! | control | `delta`, `vel` | whether the action explains the state that follows or the state's change |
//! | velocity of a base | `vel`, `base` | without names, neighbours that states follow and that are zero wherever they rest |
//! | gripper | `gripper`, `jaw`, `claw`, `finger` | two values, two levels with quick changes, or a state that stops short of its command |
//! | hand | `hand`, `thumb`, … | without names, three neighbours or more that move together and are such grippers |
//! | which command closes | `open`, `close` | the end at which the state stops short, or the opening that follows a high command |
//!
//! Numbers decide where they contradict the names. Directions follow REP 103, the convention of ROS: x is forward, y left,
//! z up.

use std::ops::Range;

use serde::Serialize;

use crate::columns::Matrix;
use crate::open::Dataset;

pub(crate) mod choices;
mod context;
mod control;
mod grippers;
mod group;
mod layout;
mod measure;
pub(crate) mod names;
mod parts;
mod states;
mod unnamed;

pub use choices::ControlChoice;
pub use rotation::RotationForm as Rotation;

/// Coordinates of an end effector that are metres lie within this distance of the origin.
const REACH: f32 = 3.0;

/// The least range that coordinates of an end effector have if it moved at all, in metres.
const LEAST_RANGE: f32 = 0.02;

/// What is known of a robot's columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RobotLayout {
    /// The parts of the robot, in the order of their first action column. Every action column belongs to exactly one.
    pub groups: Vec<Group>,
    /// What neither names nor numbers decide, in full sentences that name the flag which decides it.
    pub undecided: Vec<String>,
    /// Flags that the numbers clearly contradict. They stand all the same.
    pub contradicted: Vec<String>,
}

/// A part of the robot with its columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// For people, and unique: `arm`, `left arm`, `gripper`, `base`, `head`.
    pub name: String,
    /// What kind of part it is.
    pub kind: GroupKind,
    /// Its action columns, in ascending order; those of an end effector are x, y, z and then its rotation, and a gripper
    /// has one.
    pub actions: Vec<usize>,
    /// The state column of each action column, or none if the state has none. A rotation that the state has as a
    /// quaternion and the actions as three numbers has four columns here, x, y, z, w. For a gripper: the columns of its
    /// fingers, one or two.
    pub states: Vec<usize>,
    /// What its actions mean.
    pub control: Control,
    /// How the rotation columns of an end effector are written; `None` if it has none.
    pub rotation: Option<Rotation>,
    /// Whether the first three state columns of an end effector are its coordinates in metres.
    pub in_metres: bool,
    /// What is known of a gripper's command; `Some` if and only if this is a gripper.
    pub gripper: Option<Gripper>,
    /// How each claim is known, one sentence each.
    pub evidence: Vec<String>,
}

/// What kind of part a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupKind {
    /// An end effector that is moved by its position x, y, z and perhaps its rotation.
    EndEffector,
    /// Joints, each with a position: arms, heads, torsos, legs and dexterous hands.
    Joints,
    /// A gripper with one command.
    Gripper,
    /// A mobile base.
    Base,
    /// Anything else, such as a mode switch.
    Other,
}

/// What an action means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// The position to go to.
    Absolute,
    /// The change of position in one frame, or proportional to it.
    Relative,
    /// A velocity whose position the state does not have.
    Velocity,
}

/// What is known of a gripper's command.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gripper {
    /// Half-way between the lowest and the highest command; zero if the command never changes.
    pub threshold: f32,
    /// Whether commands above the threshold close the gripper; `None` if there are no fingers to measure it by.
    pub closes_above: Option<bool>,
    /// For each state column of the group 1 or −1, so that the sum with these signs grows as the gripper opens.
    pub signs: Vec<f64>,
}

impl RobotLayout {
    /// Finds out what can be known of a dataset's columns.
    pub fn of(dataset: &Dataset) -> RobotLayout {
        layout::layout(dataset)
    }

    /// What a person should read before anything is trained: flags that the numbers contradict, and what is not decided.
    pub fn notes(&self) -> impl Iterator<Item = &String> {
        self.contradicted.iter().chain(&self.undecided)
    }

    /// The grippers.
    pub fn grippers(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|group| group.kind == GroupKind::Gripper)
    }

    /// The end effectors whose state has their position in metres.
    pub fn arms(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|group| group.kind == GroupKind::EndEffector && group.in_metres)
    }

    /// How far the only end effector with a position in metres moves from the first to the last of some frames.
    pub fn displacement(&self, dataset: &Dataset, frames: &Range<usize>) -> Option<[f64; 3]> {
        let mut arms = self.arms();
        let (arm, None) = (arms.next()?, arms.next()) else { return None };
        let last = frames.end.checked_sub(1).filter(|last| *last >= frames.start)?;
        let states = &dataset.columns().states;
        let &[x, y, z, ..] = &arm.states[..] else { return None };
        Some([x, y, z].map(|column| value(states, last, column) - value(states, frames.start, column)))
    }

    /// How far the only gripper is open in a frame, in the unit of its state columns. Only differences mean something.
    pub fn opening(&self, dataset: &Dataset, frame: usize) -> Option<f64> {
        let mut grippers = self.grippers();
        let (gripper, None) = (grippers.next()?, grippers.next()) else { return None };
        gripper.opening(&dataset.columns().states, frame)
    }
}

impl Group {
    /// How far a gripper is open in a frame, in the unit of its state columns; `None` without such columns.
    pub fn opening(&self, states: &Matrix, frame: usize) -> Option<f64> {
        let gripper = self.gripper.as_ref().filter(|_| !self.states.is_empty())?;
        Some(self.states.iter().zip(&gripper.signs).map(|(column, sign)| sign * value(states, frame, *column)).sum())
    }
}

fn value(matrix: &Matrix, row: usize, column: usize) -> f64 {
    f64::from(matrix.values[row * matrix.width + column])
}

/// Whether the first three of some states can be coordinates in metres.
fn in_metres(columns: &[usize], states: &Matrix) -> bool {
    let Some(columns) = columns.get(..3) else { return false };
    let ranges: Vec<(f32, f32)> = columns.iter().map(|column| range(states, *column)).collect();
    ranges.iter().all(|(least, most)| *least >= -REACH && *most <= REACH)
        && ranges.iter().any(|(least, most)| most - least >= LEAST_RANGE)
}

fn range(matrix: &Matrix, column: usize) -> (f32, f32) {
    let values = matrix.values.chunks_exact(matrix.width.max(1)).map(|row| row[column]);
    values.fold((f32::INFINITY, f32::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)))
}

#[cfg(test)]
mod tests;
