//! LeRobot v3 datasets: read, check, window, write.

pub mod fault;
pub mod files;
mod frame;
mod ids;

pub use fault::{Error, Fault};
pub use files::{Blob, Root};
pub use frame::Frame;
pub use ids::{CameraId, EpisodeId, EpisodeSpan, FrameIndex, TaskId};
