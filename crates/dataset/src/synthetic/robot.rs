//! The description of a robot: columns, arms, base and cameras. Each robot is a value of [`Robot`], and nothing else in
//! this module knows which robot it moves.

use super::kinematics::{Axis, Point};
use super::script::Task;

/// Radians in a degree.
pub(super) const DEGREE: f64 = std::f64::consts::PI / 180.0;

/// A robot with the tasks that it demonstrates.
#[derive(Clone, Debug)]
pub(super) struct Robot {
    /// `robot_type` of the dataset.
    pub(super) robot_type: &'static str,
    /// Frames per second.
    pub(super) fps: u32,
    /// The unit of joints in radians: 1, or [`DEGREE`].
    pub(super) unit: f64,
    /// The columns of states and of actions, which are the same.
    pub(super) columns: Vec<Column>,
    /// The arms, by the numbers that scripts use.
    pub(super) arms: Vec<Arm>,
    /// The base, if it can drive.
    pub(super) base: Option<Base>,
    /// The cameras.
    pub(super) cameras: Vec<Camera>,
    /// Whether the dataset has `next.reward` and `next.done`.
    pub(super) rewards: bool,
    /// What it can do.
    pub(super) tasks: Vec<Task>,
}

/// A column of states and actions.
#[derive(Clone, Debug)]
pub(super) struct Column {
    /// The name in `info.json`.
    pub(super) name: String,
    /// The value at the start of an episode.
    pub(super) home: f64,
    /// The least and the largest value.
    pub(super) range: (f64, f64),
}

/// A chain of joints that ends in a hand.
#[derive(Clone, Debug)]
pub(super) struct Arm {
    /// Where the chain begins, in the frame of the base, in metres.
    pub(super) foot: Point,
    /// The angle by which the chain is turned about the vertical, in radians.
    pub(super) turned: f64,
    /// From the foot to the tip.
    pub(super) joints: Vec<Joint>,
    /// The first joint that reaching moves; those before it (legs, waist) belong to the body.
    pub(super) first_moved: usize,
    /// Where the hand should point when it reaches for things, a unit vector.
    pub(super) pointing: Point,
    /// The joints of the hand.
    pub(super) hand: Vec<Finger>,
    /// The colour in pictures.
    pub(super) colour: Colour,
}

/// A joint and the limb that it carries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joint {
    /// Its column.
    pub(super) column: usize,
    /// What it turns about, in the frame of the limb before.
    pub(super) axis: Axis,
    /// The limb after it, in metres in the frame that the joint turns.
    pub(super) limb: Point,
}

/// A joint of a hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finger {
    /// Its column.
    pub(super) column: usize,
    /// The value with an open hand.
    pub(super) open: f64,
    /// The value with a closed hand.
    pub(super) closed: f64,
}

/// The columns of a driving base: velocities in its own frame, x forward and y left in metres a second, and the angular
/// velocity in joint units a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Base {
    /// The columns of x, y and the angle.
    pub(super) columns: [usize; 3],
    /// Half of the length, width and height of the body, in metres.
    pub(super) half: Point,
    /// The colour in pictures.
    pub(super) colour: Colour,
}

/// Red, green and blue.
pub(super) type Colour = [u8; 3];

/// A camera that projects in parallel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Camera {
    /// Behind `observation.images.`.
    pub(super) name: &'static str,
    /// The frame in which the fields below are.
    pub(super) mount: Mount,
    /// The point in the middle of the picture.
    pub(super) centre: Point,
    /// The direction to the right of the picture, a unit vector.
    pub(super) right: Point,
    /// The direction to the top of the picture, a unit vector.
    pub(super) up: Point,
    /// The width of the picture in metres.
    pub(super) width: f64,
    /// What is seen where nothing is.
    pub(super) background: Colour,
}

/// What a camera is fixed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mount {
    /// The room.
    Room,
    /// The robot's base, x forward, y left, z up.
    Base,
    /// The hand of an arm, x where it points; the arm itself is not seen but for its fingers.
    Hand(usize),
}

impl Robot {
    /// Where every column starts.
    pub(super) fn home(&self) -> Vec<f64> {
        self.columns.iter().map(|column| column.home).collect()
    }

    /// A value within the range of its column.
    pub(super) fn clamped(&self, column: usize, value: f64) -> f64 {
        let (least, most) = self.columns[column].range;
        value.clamp(least, most)
    }
}

/// A column by its parts.
pub(super) fn column(name: impl Into<String>, home: f64, range: (f64, f64)) -> Column {
    Column { name: name.into(), home, range }
}

/// A joint by its parts.
pub(super) fn joint(column: usize, axis: Axis, limb: Point) -> Joint {
    Joint { column, axis, limb }
}

/// A camera on the hand of an arm.
pub(super) fn wrist_camera(name: &'static str, arm: usize, width: f64, background: Colour) -> Camera {
    Camera {
        name,
        mount: Mount::Hand(arm),
        centre: [0.0; 3],
        right: [0.0, -1.0, 0.0],
        up: [0.0, 0.0, 1.0],
        width,
        background,
    }
}
