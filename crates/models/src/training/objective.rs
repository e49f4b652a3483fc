//! What a phase is to the trainer.

use std::collections::BTreeMap;

use candle_core::Tensor;

use crate::error::Result;
use crate::parameters::Parameters;

/// What a phase is to the trainer.
pub trait Objective: Sync {
    /// Everything of one micro-batch that can be made without the device, on another thread, ahead of time.
    type Batch: Send;

    /// The weights that are trained.
    fn parameters(&self) -> &Parameters;

    /// The micro-batch of a step, counted from zero. A function of the objective's own seed, the step and the part
    /// alone, so that a resumed run needs no state; all parts of a step together are the same global batch for every
    /// count.
    fn prepare(&self, step: u64, part: Part) -> Result<Self::Batch>;

    /// The mean loss over the micro-batch. Parameters that have a gradient are the same on all ranks.
    fn loss(&self, batch: Self::Batch) -> Result<Loss>;

    /// Figures on held-out data; asked of the first rank alone.
    fn evaluate(&self) -> Result<BTreeMap<String, f64>> {
        Ok(BTreeMap::new())
    }

    /// For throughput: how much a global batch holds, and of what, such as `(16384.0, "tokens")`.
    fn work_per_step(&self) -> (f64, &'static str);
}

/// One of the equal slices of a global batch: each process takes as many as it accumulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which one.
    pub index: usize,
    /// Of how many.
    pub count: usize,
}

impl Part {
    /// What this part takes of `total` things in a row; `total` should be a multiple of the count, or means over parts
    /// are not the mean over the whole.
    pub fn range(self, total: usize) -> std::ops::Range<usize> {
        total * self.index / self.count..total * (self.index + 1) / self.count
    }
}

/// A loss and what it is made of.
#[derive(Debug)]
pub struct Loss {
    /// A tracked f32 scalar.
    pub total: Tensor,
    /// Detached scalars by name: always the same names in the same order.
    pub terms: Vec<(&'static str, Tensor)>,
}
