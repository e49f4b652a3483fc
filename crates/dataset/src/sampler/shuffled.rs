//! All fragments in a new random order each epoch.

use crate::draw::{Purpose, generator};
use crate::fragment::{FragmentId, FragmentIndex};
use crate::permutation::Permutation;
use crate::sampling_error::SamplingError;

/// Each fragment once an epoch, in an order that is new each epoch.
///
/// Epochs follow each other without a gap: draw number j is fragment j mod n of epoch ⌊j / n⌋, and batch k is draws kB
/// to (k + 1)B. So no fragment is dropped where n is no multiple of B, and the batch over the end of an epoch may hold
/// a fragment twice.
#[derive(Clone, Debug)]
pub struct Shuffled {
    fragments: usize,
    batch: usize,
    seed: u64,
}

impl Shuffled {
    /// Batches of `batch` fragments of the index.
    pub fn new(index: &FragmentIndex, batch: usize, seed: u64) -> Result<Shuffled, SamplingError> {
        super::check(index, batch)?;
        Ok(Shuffled { fragments: index.len(), batch, seed })
    }

    /// The epoch in which a step begins: how often all fragments have been seen before it.
    pub fn epoch(&self, step: u64) -> u64 {
        self.place(step, 0).0
    }

    /// The fragments of a step.
    pub fn batch(&self, step: u64) -> Vec<FragmentId> {
        let (mut epoch, mut place) = self.place(step, 0);
        let mut order = self.order(epoch);
        let mut batch = Vec::with_capacity(self.batch);
        while batch.len() < self.batch {
            if place == self.fragments {
                (epoch, place) = self.place(step, batch.len());
                order = self.order(epoch);
            }
            batch.push(FragmentId(order.at(place)));
            place += 1;
        }
        batch
    }

    /// The epoch of a draw, and its place in it. Draws are counted in 128 bits, which no step can overflow.
    fn place(&self, step: u64, drawn: usize) -> (u64, usize) {
        let draw = u128::from(step) * self.batch as u128 + drawn as u128;
        let fragments = self.fragments as u128;
        ((draw / fragments) as u64, (draw % fragments) as usize)
    }

    fn order(&self, epoch: u64) -> Permutation {
        Permutation::new(self.fragments, &mut generator(self.seed, Purpose::Epoch, [epoch, 0]))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fragment::tests::spans;

    fn index(fragments: usize) -> FragmentIndex {
        FragmentIndex::of_all(&spans(&[(fragments + 3, 0)]), 4, 1).unwrap()
    }

    #[test]
    fn batches_are_the_same_for_ever() {
        let sampler = Shuffled::new(&index(100), 8, 1).unwrap();
        assert_eq!(sampler.batch(0), [93, 36, 40, 72, 38, 12, 68, 1].map(FragmentId));
        assert_eq!(sampler.batch(12), [47, 29, 49, 25, 2, 53, 46, 26].map(FragmentId));
        assert_eq!((sampler.epoch(12), sampler.epoch(13)), (0, 1));
    }

    #[test]
    fn the_last_step_there_can_be() {
        let sampler = Shuffled::new(&index(3), 8, 1).unwrap();
        assert_eq!(sampler.batch(u64::MAX).len(), 8);
    }

    proptest! {
        #[test]
        fn each_fragment_once_an_epoch(fragments in 1usize..60, batch in 1usize..90, seed: u64) {
            let sampler = Shuffled::new(&index(fragments), batch, seed).unwrap();
            let steps = (3 * fragments).div_ceil(batch) as u64;
            let drawn: Vec<FragmentId> = (0..steps).flat_map(|step| sampler.batch(step)).collect();
            for epoch in drawn.chunks_exact(fragments) {
                let mut epoch = epoch.to_vec();
                epoch.sort_unstable();
                prop_assert!(epoch.into_iter().eq((0..fragments).map(FragmentId)));
            }
        }

        #[test]
        fn a_resumed_run_goes_on_as_an_unbroken_one(fragments in 1usize..60, batch in 1usize..20, step in 0u64..50) {
            let unbroken = Shuffled::new(&index(fragments), batch, 9).unwrap();
            let sequence: Vec<Vec<FragmentId>> = (0..=step).map(|step| unbroken.batch(step)).collect();
            let resumed = Shuffled::new(&index(fragments), batch, 9).unwrap();
            prop_assert_eq!(Some(&resumed.batch(step)), sequence.last());
        }
    }
}
