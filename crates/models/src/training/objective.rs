//! The trainer's view of a phase: its weights, its batches and its loss.

use std::collections::{BTreeMap, BTreeSet};

use candle_core::Tensor;

use crate::error::Result;
use crate::parameters::Parameters;

/// A phase that can be trained.
pub trait Objective: Sync {
    /// The part of a micro-batch that another thread prepares ahead of time, without the device.
    type Batch: Send;

    /// The weights of the model.
    fn parameters(&self) -> &Parameters;

    /// The names of the weights that the loss does not train. Every other weight must have a gradient in the first step and
    /// these must have none, or training fails with the name of the weight: a weight that was detached by mistake would
    /// otherwise keep its initial value without anyone noticing.
    fn frozen(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// The micro-batch of a step, counted from zero. It depends only on the objective's seed, the step and the part, so that
    /// a resumed run needs no state. All parts of a step together are the same global batch for every count.
    fn prepare(&self, step: u64, part: Part) -> Result<Self::Batch>;

    /// The mean loss over the micro-batch. The same parameters have a gradient in every step and on all ranks.
    fn loss(&self, batch: Self::Batch) -> Result<Loss>;

    /// Figures on held-out data; only the first rank is asked.
    fn evaluate(&self) -> Result<BTreeMap<String, f64>> {
        Ok(BTreeMap::new())
    }

    /// For throughput: how much a global batch holds, and of what, such as `(16384.0, "tokens")`.
    fn work_per_step(&self) -> (f64, &'static str);
}

/// One of the equal slices of a global batch. Each process takes as many as it accumulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which one.
    pub index: usize,
    /// Of how many.
    pub count: usize,
}

impl Part {
    /// The range of this part in a sequence of `total` items. `total` should be a multiple of the count; otherwise the mean
    /// of the parts is not the mean of the whole.
    pub fn range(self, total: usize) -> std::ops::Range<usize> {
        total * self.index / self.count..total * (self.index + 1) / self.count
    }
}

/// A loss and its terms.
#[derive(Debug)]
pub struct Loss {
    /// A tracked f32 scalar.
    pub total: Tensor,
    /// Detached scalars by name: always the same names in the same order.
    pub terms: Vec<(&'static str, Tensor)>,
}
