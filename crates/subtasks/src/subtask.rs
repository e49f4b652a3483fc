//! What an annotated episode consists of.

use std::ops::Range;

/// A stretch of an episode with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Subtask {
    /// The rows of the episode, counted from its start.
    pub rows: Range<usize>,
    /// What the robot does in them, such as `lift the black bowl`.
    pub name: String,
    /// Where the name comes from.
    pub named_by: NameSource,
    /// The class of its motion among all segments of the dataset, found without labels.
    pub class: Option<usize>,
    /// How sure the boundary at its start is, from 0 to 1; 1 for the first one of an episode.
    pub boundary_confidence: f64,
    /// How well the name fits the motion, from 0 to 1.
    pub name_confidence: f64,
}

/// Where a name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameSource {
    /// A step of the instruction, aligned with the motion.
    Instruction,
    /// The motion alone, since the instruction is not understood or does not fit it.
    Motion,
    /// An entry of a run's library, whose skills follow each other here.
    Library,
    /// A person wrote it.
    Person,
}
