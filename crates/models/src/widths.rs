//! The widths of the data that a model reads.

use serde::{Deserialize, Serialize};

/// The widths of a dataset's columns. They are not settings, but every model is built for one set of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Widths {
    /// F, the features of all cameras together.
    pub features: usize,
    /// S, the numbers of a state.
    pub states: usize,
    /// A, the numbers of an action.
    pub actions: usize,
}
