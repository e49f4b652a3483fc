//! The hot operations, each in two forms that compute the same function.
//!
//! `Composed` is plain Candle: the reference, and the off-switch. `Fused` is ours: one pass over memory on the CPU (rayon,
//! SIMD chosen at run time) and on CUDA (source compiled by NVRTC at start), with a backward pass of its own.

use serde::{Deserialize, Serialize};

/// Which implementation of the hot operations runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Ours: one pass each, with its own backward.
    #[default]
    Fused,
    /// Plain Candle operations.
    Composed,
}
