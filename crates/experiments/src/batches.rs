//! Which fragments a step sees, for both phases.

use dataset::{ClassBalanced, EpisodePairs, FragmentId, FragmentIndex, PositiveWindow, Shuffled};
use models::training::Part;

use crate::error::Result;

/// The order of fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// All of them, once an epoch.
    Shuffled,
    /// Tasks equally often.
    Balanced,
    /// Rows 2i and 2i + 1 from one episode.
    Pairs(PositiveWindow),
}

/// Batches as functions of the step.
pub(crate) struct Batches {
    sampler: Sampler,
    batch: usize,
}

enum Sampler {
    Shuffled(Shuffled),
    Balanced(ClassBalanced),
    Pairs(EpisodePairs),
}

impl Batches {
    pub(crate) fn new(index: &FragmentIndex, order: Order, batch: usize, seed: u64) -> Result<Batches> {
        let sampler = match order {
            Order::Shuffled => Sampler::Shuffled(Shuffled::new(index, batch, seed)?),
            Order::Balanced => Sampler::Balanced(ClassBalanced::by_task(index, batch, seed)?),
            Order::Pairs(window) => Sampler::Pairs(EpisodePairs::new(index, window, batch / 2, seed)?),
        };
        Ok(Batches { sampler, batch })
    }

    /// Fragments of a part with their places in the global batch.
    pub(crate) fn part(&self, step: u64, part: Part) -> models::Result<Vec<(usize, FragmentId)>> {
        let whole: Vec<FragmentId> = match &self.sampler {
            Sampler::Shuffled(sampler) => sampler.batch(step),
            Sampler::Balanced(sampler) => sampler.batch(step),
            Sampler::Pairs(sampler) => sampler.batch(step).into_iter().flat_map(|(one, other)| [one, other]).collect(),
        };
        let group = if matches!(self.sampler, Sampler::Pairs(_)) { 2 } else { 1 };
        if !self.batch.is_multiple_of(group * part.count) {
            let of = if group == 2 { "pairs" } else { "fragments" };
            return Err(models::Error::Config(format!(
                "a batch of {} cannot be cut into {} equal parts of whole {of}; make `batch` a multiple of {}",
                self.batch,
                part.count,
                group * part.count
            )));
        }
        let range = part.range(whole.len() / group);
        Ok((range.start * group..range.end * group).map(|place| (place, whole[place])).collect())
    }

    /// Fragments in a step.
    pub(crate) fn size(&self) -> usize {
        self.batch
    }
}
