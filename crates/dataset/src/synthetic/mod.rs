//! Synthetic robots: small datasets whose segments are known.
//!
//! A recorded dataset does not say where one motion ends and the next begins, so nobody can tell from it whether a
//! segmentation is right. Here scripts move simulated robots, and every frame has its true segment class in the column
//! `phase`, as in our LIBERO sets.
//!
//! | name | actions | frames a second | cameras | rewards |
//! |---|---|---|---|---|
//! | `so101` | 6 absolute joints in degrees, gripper 0–100 | 30 | 2 | no |
//! | `aloha` | two arms of 6 absolute joints in radians, each with a gripper | 50 | 3 | yes |
//! | `humanoid` | 34 absolute joints in radians: legs, waist, neck, arms, hands of six joints | 30 | 1 | yes |
//! | `mobile` | 6 absolute joints in degrees and the velocities of a base, whose position is not observed | 30 | 2 | yes |
//! | `state-only` | 7 absolute joints in radians and a gripper | 30 | 0 | yes |
//!
//! # From a script to a dataset
//!
//! ```text
//! Task: things on a table, steps     "reach", 3 s: tip of arm 0 at the cube      robots/*.rs, data only
//!   plan    → commands               minimum-jerk between solutions of inverse kinematics
//!   unsteady→ commands as recorded   tremor, hesitations, joints that do not start together
//!   record  → states, pictures       states follow commands 2 to 5 frames later, with sensor noise
//!   write   → a LeRobot v3.0 dataset
//! ```
//!
//! A segment is a step of the script: a motion with one purpose, which a person would give one name. Consecutive strokes
//! of wiping or waving are segments of their own, because each has a target of its own.
//!
//! # What is simplified
//!
//! Nothing has mass and nothing collides. A thing that a hand has taken follows the hand, and a gripper that closes on a
//! thing stops at its girth while the command goes on, as a real one does. Pictures are parallel projections: limbs are
//! lines, things are rectangles.
//!
//! Sines are computed with `+ − × ÷` alone, so the same seed gives the same bytes on every machine.

pub mod human;
mod kinematics;
mod noise;
mod picture;
mod plan;
mod record;
mod robot;
mod robots;
mod script;
mod written;

pub use noise::Noise;
pub use written::{Options, TaskSegments, Written, write};

/// A robot of which datasets can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Synthetic {
    /// An arm of six joints in degrees, two cameras, no rewards.
    So101,
    /// Two arms of seven columns each, three cameras.
    Aloha,
    /// 34 columns from ankles to fingers, one camera.
    Humanoid,
    /// A base with velocities and an arm, two cameras.
    Mobile,
    /// An arm of seven joints without cameras.
    StateOnly,
}

impl Synthetic {
    /// All of them.
    pub const ALL: [Synthetic; 5] =
        [Synthetic::So101, Synthetic::Aloha, Synthetic::Humanoid, Synthetic::Mobile, Synthetic::StateOnly];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Synthetic::So101 => "so101",
            Synthetic::Aloha => "aloha",
            Synthetic::Humanoid => "humanoid",
            Synthetic::Mobile => "mobile",
            Synthetic::StateOnly => "state-only",
        }
    }

    /// The description of the robot with its tasks.
    fn robot(self) -> robot::Robot {
        match self {
            Synthetic::So101 => robots::so101::robot(),
            Synthetic::Aloha => robots::aloha::robot(),
            Synthetic::Humanoid => robots::humanoid::robot(),
            Synthetic::Mobile => robots::mobile::robot(),
            Synthetic::StateOnly => robots::state_only::robot(),
        }
    }
}
