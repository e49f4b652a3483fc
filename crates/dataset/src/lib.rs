//! LeRobot v3 datasets: read, check, window, write.

mod columns;
mod draw;
mod episodes;
pub mod fault;
pub mod files;
mod fragment;
mod frame;
mod guard;
mod ids;
pub mod info;
mod open;
mod pages;
mod permutation;
mod roles;
mod sampler;
mod sampling_error;
mod split;
pub mod stats;
mod table;
mod tasks;
pub mod video;
pub mod write;

pub use columns::{Columns, Matrix};
pub use episodes::{Episode, VideoSpan};
pub use fault::{Error, Fault};
pub use files::{Blob, Root};
pub use fragment::{FRAGMENT_LENGTH, Fragment, FragmentId, FragmentIndex};
pub use frame::Frame;
pub use ids::{CameraId, EpisodeId, EpisodeSpan, FrameIndex, TaskId};
pub use info::{Dtype, Feature, Info};
pub use open::{Dataset, Window};
pub use roles::{Overrides, Roles};
pub use sampler::{ClassBalanced, EpisodePairs, PositiveWindow, Shuffled};
pub use sampling_error::{MAX_BATCH, SamplingError};
pub use split::{PROBE_SIZE, Split, probe};
