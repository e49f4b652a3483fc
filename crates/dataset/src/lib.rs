//! LeRobot v3 datasets: read, check, window, write.

mod columns;
mod episodes;
pub mod fault;
pub mod files;
mod frame;
mod guard;
mod ids;
pub mod info;
mod open;
mod pages;
mod roles;
mod table;
mod tasks;
pub mod video;

pub use columns::{Columns, Matrix};
pub use episodes::{Episode, VideoSpan};
pub use fault::{Error, Fault};
pub use files::{Blob, Root};
pub use frame::Frame;
pub use ids::{CameraId, EpisodeId, EpisodeSpan, FrameIndex, TaskId};
pub use info::{Dtype, Feature, Info};
pub use open::{Dataset, Window};
pub use roles::{Overrides, Roles};
