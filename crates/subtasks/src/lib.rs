//! Named subtasks for any LeRobot dataset, from states and actions alone.
//!
//! An episode is cut into segments (crate `skills`), the segments are aligned with the steps that its instruction asks for,
//! and each stretch gets a name that a person would write, with a confidence. No training, no images, no labels.

pub mod align;
pub mod annotate;
pub mod classes;
pub mod error;
mod evidence;
mod explained;
mod motion;
mod namer;
pub mod names_file;
mod phrase;
mod reading;
pub mod robot;
pub mod segments_file;
mod signals;
pub mod steps;
pub mod subtask;
mod verbs;

pub use error::{Error, Result};
pub use motion::motion_name;
pub use namer::{Named, Namer, NamerConfig, StepLabel, knows_directions};
pub use reading::expected;
pub use signals::drives;
pub use subtask::{NameSource, Subtask};
