//! Windows of demonstrations as tensors.

use candle_core::Tensor;

/// B fragments of T steps, normalised as the model wants them.
#[derive(Clone, Debug)]
pub struct FragmentBatch {
    /// `[B, T, F]`: visual features of each frame.
    pub features: Tensor,
    /// `[B, T, S]`
    pub states: Tensor,
    /// `[B, T, A]`
    pub actions: Tensor,
    /// `[B, T]`, where the dataset has rewards.
    pub rewards: Option<Tensor>,
    /// `[B, T]`, where the dataset has rewards.
    pub returns: Option<Tensor>,
}
