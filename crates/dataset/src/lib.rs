//! LeRobot v3 datasets: read, check, window, write.
//!
//! ```
//! use dataset::{CameraId, Dataset, FRAGMENT_LENGTH, FrameIndex, FrameOptions, FrameReader, FragmentIndex, Overrides};
//! use dataset::{PROBE_SIZE, Shuffled, Split, embedded, probe};
//!
//! let root = embedded("libero_goal_mini").ok_or("it is part of the program")?;
//! let dataset = Dataset::open(root, &Overrides::default())?;
//! assert_eq!((dataset.tasks().len(), dataset.episodes().len(), dataset.frames()), (9, 36, 2226));
//!
//! // Windows of 16 steps, never across episodes; one episode of each task is kept for evaluation.
//! let split = Split::last_per_task(dataset.spans(), 1)?;
//! let training = FragmentIndex::new(dataset.spans(), &split.train, FRAGMENT_LENGTH, 1)?;
//! let held_out = FragmentIndex::new(dataset.spans(), &split.held_out, FRAGMENT_LENGTH, 1)?;
//! let evaluation = probe(&held_out, PROBE_SIZE, 0);
//!
//! // A batch is a function of seed and step; its windows are slices of the dataset's columns.
//! let batch = Shuffled::new(&training, 32, 7)?.batch(0);
//! let fragment = training.get(batch[0]);
//! let window = dataset.window(fragment.frames.clone());
//! assert_eq!((window.states.len(), window.actions.len()), (16 * 8, 16 * 7));
//!
//! // Pictures are decoded when they are wanted.
//! let reader = FrameReader::new(&dataset, FrameOptions::default());
//! let frame = &reader.read(&[(CameraId(0), FrameIndex(fragment.frames.start))])?[0];
//! assert_eq!((frame.width, frame.height), (128, 128));
//! # assert!(!evaluation.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! From here: [`Dataset`] is a dataset in memory but for its pictures, [`FrameReader`] gives those, [`features`] are what an
//! encoder makes of them. [`validate`](fn@validate) says all that is wrong with a dataset, as [`Fault`]s. [`write`](mod@write)
//! makes datasets, [`recursive_pour`] and [`synthetic`] have some to make.

mod columns;
mod draw;
mod embedded;
mod episodes;
mod explain;
pub mod fault;
pub mod features;
pub mod files;
mod fragment;
mod frame;
mod frames;
mod guard;
mod ids;
pub mod info;
mod inspect;
mod join;
pub mod normalize;
mod numbers;
mod open;
mod pages;
mod permutation;
mod picture;
mod plausible;
pub mod recursive_pour;
mod robot;
mod roles;
mod sampler;
mod sampling_error;
mod split;
pub mod stats;
mod stream;
mod subtasks;
pub mod synthetic;
mod table;
mod tasks;
mod validate;
pub mod video;
pub mod whole_file;
pub mod write;

pub use columns::{Columns, Matrix};
pub use embedded::{NAMES as EMBEDDED_NAMES, embedded, embedded_features};
pub use episodes::{Episode, VideoSpan};
pub use explain::{Explanation, Severity, explain, printable};
pub use fault::{Error, Fault};
pub use files::{Blob, Root};
pub use fragment::{FRAGMENT_LENGTH, Fragment, FragmentId, FragmentIndex};
pub use frame::Frame;
pub use frames::{FrameKey, FrameOptions, FrameReader};
pub use ids::{CameraId, EpisodeId, EpisodeSpan, FrameIndex, TaskId};
pub use info::{Dtype, Feature, Info};
pub use inspect::{
    FeatureSummary, Inspection, Label, LabelValue, Lengths, Signal, TaskSummary, Video, inspect, sparkline,
};
pub use join::{Joined, Part};
pub use open::{Dataset, Window};
pub use picture::decode_picture;
pub use robot::{Control, ControlChoice, Gripper, Group, GroupKind, RobotLayout, Rotation};
pub use roles::{Overrides, Roles};
pub use sampler::{ClassBalanced, EpisodePairs, PositiveWindow, Shuffled};
pub use sampling_error::{MAX_BATCH, SamplingError};
pub use split::{PROBE_SIZE, Split, probe};
pub use stream::Stream;
pub use subtasks::FrameSubtasks;
pub use validate::{Checked, Progress, Report, Stage, ValidateOptions, validate};
