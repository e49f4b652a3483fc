//! Episodes of a dataset with their subtasks, to be shown as film strips.

use crate::motion::Picture;

/// Some episodes of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Strips {
    /// The name of the dataset.
    pub title: String,
    /// What is shown, as full sentences.
    pub lead: Vec<String>,
    /// Frames per second.
    pub fps: f64,
    /// The names of subtasks.
    pub names: Vec<String>,
    /// The episodes in their order.
    pub episodes: Vec<Strip>,
    /// How many episodes are not shown.
    pub left_out: u64,
}

/// One episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Strip {
    /// Its number in the dataset.
    pub episode: u64,
    /// What the robot was told.
    pub instruction: String,
    /// How many frames it has.
    pub frames: u64,
    /// Pictures at equal distances, in the order of time; empty where the data has none.
    pub pictures: Vec<Picture>,
    /// Its subtasks in order; they cover it.
    pub parts: Vec<Part>,
}

/// A subtask of an episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its first frame in the episode.
    pub first: u64,
    /// The frame after its last.
    pub end: u64,
    /// Index into [`Strips::names`].
    pub name: usize,
    /// What else is known of it, in a few words.
    pub note: Option<String>,
}
