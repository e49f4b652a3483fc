//! Numbers that mean something: which episode, which task, which frame, which camera.

use std::fmt;
use std::ops::Range;

/// An episode: its place in [`Dataset::episodes`](crate::Dataset), which is its `episode_index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct EpisodeId(pub u32);

/// A task: its place in [`Dataset::tasks`](crate::Dataset), which is its `task_index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub u32);

/// A frame: its row in the whole dataset, which is its `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct FrameIndex(pub usize);

/// A camera: its place in the dataset's list of cameras.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct CameraId(pub usize);

impl EpisodeId {
    /// The place in a list of all episodes.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

impl TaskId {
    /// The place in a list of all tasks.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for EpisodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What sampling needs to know of an episode: its frames and its task. Spans of a dataset follow each other without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpisodeSpan {
    /// The rows of the whole dataset that are its frames.
    pub frames: Range<usize>,
    /// The task of its first frame.
    pub task: TaskId,
}
