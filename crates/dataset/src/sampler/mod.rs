//! What each training step is fed: fragments in random order, classes in equal parts, or pairs from one episode.
//!
//! Every sampler is a **function of the seed and the step**. `batch(k)` is the same whether or not batches 0 to k − 1
//! were drawn, by this process or another, so a resumed run goes on exactly where it was killed and several loaders can
//! work ahead of the trainer without sharing anything. There is no state to save: `batch` takes `&self`.
//!
//! That rests on `Permutation`, an order that is computed instead of stored; a batch costs
//! O(batch · log fragments) however large the dataset is.
//!
//! | sampler | for | a batch |
//! | --- | --- | --- |
//! | [`Shuffled`] | reconstruction, distillation | every fragment once an epoch |
//! | [`ClassBalanced`] | supervised contrast (`supcon`) | every class equally often |
//! | [`EpisodePairs`] | label-free contrast (`episode_contrast`) | two fragments of each of B episodes |

mod class_balanced;
mod episode_pairs;
mod shuffled;

pub use class_balanced::ClassBalanced;
pub use episode_pairs::{EpisodePairs, PositiveWindow};
pub use shuffled::Shuffled;

use crate::fragment::FragmentIndex;
use crate::sampling_error::{MAX_BATCH, SamplingError};

/// What every sampler needs: something to sample, and a size that a batch can have.
fn check(index: &FragmentIndex, batch: usize) -> Result<(), SamplingError> {
    if index.is_empty() {
        return Err(SamplingError::NoFragments { too_short: index.too_short(), length: index.length() });
    }
    match batch {
        0 => Err(SamplingError::NoBatch),
        1..=MAX_BATCH => Ok(()),
        found => Err(SamplingError::LargeBatch { found }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragment::tests::spans;

    #[test]
    fn impossible_samplers_say_what_to_do() {
        let index = FragmentIndex::of_all(&spans(&[(20, 0)]), 16, 1).unwrap();
        let short = FragmentIndex::of_all(&spans(&[(20, 0), (9, 1)]), 64, 1).unwrap();
        let errors = [
            Shuffled::new(&short, 32, 0).err(),
            Shuffled::new(&index, 0, 0).err(),
            ClassBalanced::by_task(&short, 32, 0).err(),
            ClassBalanced::by_task(&index, usize::MAX, 0).err(),
            EpisodePairs::new(&short, PositiveWindow::Half, 32, 0).err(),
            EpisodePairs::new(&index, PositiveWindow::Half, 0, 0).err(),
        ];
        insta::assert_snapshot!(errors.map(|error| error.unwrap().to_string()).join("\n"), @"
        there is no fragment to sample: 2 episodes are shorter than 64 steps; take a shorter length or more episodes
        a batch cannot be empty; give a batch size of 1 or more
        there is no fragment to sample: 2 episodes are shorter than 64 steps; take a shorter length or more episodes
        a batch of 18446744073709551615 is too large; give a batch size of 1048576 or less
        there is no fragment to sample: 2 episodes are shorter than 64 steps; take a shorter length or more episodes
        a batch cannot be empty; give a batch size of 1 or more
        ");
    }
}
