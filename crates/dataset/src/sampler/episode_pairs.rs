//! Two views of one episode, for contrast without labels (paper §4.4 (c), and its supplement).

use std::ops::Range;

use rand_chacha::ChaCha8Rng;

use crate::draw::{Purpose, below, generator};
use crate::fragment::{FragmentId, FragmentIndex};
use crate::permutation::Permutation;
use crate::sampling_error::SamplingError;

/// How much of an episode the two fragments of a pair may be apart.
///
/// The paper's premise is that fragments of one episode do the same thing. That is less true the longer the episode, so
/// a narrower window trades easy positives for true ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PositiveWindow {
    /// Anywhere in the episode.
    #[default]
    Whole,
    /// Within half of its fragments.
    Half,
    /// Within a quarter of its fragments.
    Quarter,
}

/// For each of B episodes an anchor and a positive: NT-Xent pulls the two together and pushes all others away.
///
/// An episode of n fragments gets a window of ⌈n⌉, ⌈n/2⌉ or ⌈n/4⌉ of them, two at least, at a random place; the pair is
/// two different fragments of it, all such pairs equally likely. An episode with a single fragment is paired with
/// itself.
///
/// The episodes of a batch are distinct, since a second pair of an episode would be pushed away from the first; only a
/// batch larger than the number of episodes has some of them twice, as evenly as possible. Every episode is as likely
/// as any other, however long it is.
#[derive(Clone, Debug)]
pub struct EpisodePairs {
    episodes: Vec<Range<usize>>,
    window: PositiveWindow,
    batch: usize,
    seed: u64,
}

impl EpisodePairs {
    /// Batches of `batch` pairs.
    pub fn new(
        index: &FragmentIndex,
        window: PositiveWindow,
        batch: usize,
        seed: u64,
    ) -> Result<EpisodePairs, SamplingError> {
        super::check(index, batch)?;
        Ok(EpisodePairs { episodes: index.ranges().map(|(_, range)| range).collect(), window, batch, seed })
    }

    /// The number of episodes that have a single fragment, and so no second view.
    pub fn without_second_view(&self) -> usize {
        self.episodes.iter().filter(|episode| episode.len() == 1).count()
    }

    /// The pairs of a step: anchor and positive.
    pub fn batch(&self, step: u64) -> Vec<(FragmentId, FragmentId)> {
        let mut random = generator(self.seed, Purpose::Pairs, [step, 0]);
        let mut batch = Vec::with_capacity(self.batch);
        while batch.len() < self.batch {
            let order = Permutation::new(self.episodes.len(), &mut random);
            for slot in order.first(self.batch - batch.len()) {
                batch.push(self.window.pair(&self.episodes[slot], &mut random));
            }
        }
        batch
    }
}

impl PositiveWindow {
    /// The number of fragments in the window of an episode that has `fragments`.
    fn size(self, fragments: usize) -> usize {
        let size = match self {
            PositiveWindow::Whole => fragments,
            PositiveWindow::Half => fragments.div_ceil(2),
            PositiveWindow::Quarter => fragments.div_ceil(4),
        };
        size.max(2).min(fragments)
    }

    fn pair(self, episode: &Range<usize>, random: &mut ChaCha8Rng) -> (FragmentId, FragmentId) {
        let mut draw = |count: usize| below(random, count as u64) as usize;
        let size = self.size(episode.len());
        let from = episode.start + draw(episode.len() - size + 1);
        let anchor = draw(size);
        // One of the others: those from the anchor on move up by one.
        let other = draw(size - 1);
        let positive = if size == 1 { anchor } else { other + usize::from(other >= anchor) };
        (FragmentId(from + anchor), FragmentId(from + positive))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fragment::tests::spans;

    fn index(sizes: &[usize]) -> FragmentIndex {
        let episodes: Vec<(usize, u32)> = sizes.iter().map(|size| (size + 3, 0)).collect();
        FragmentIndex::of_all(&spans(&episodes), 4, 1).unwrap()
    }

    #[test]
    fn batches_are_the_same_for_ever() {
        let sampler = EpisodePairs::new(&index(&[50, 5, 20]), PositiveWindow::Quarter, 3, 1).unwrap();
        let batch = |step| sampler.batch(step).into_iter().map(|(anchor, positive)| (anchor.0, positive.0));
        assert!(batch(0).eq([(39, 42), (52, 51), (61, 60)]));
        assert!(batch(1).eq([(54, 53), (71, 69), (43, 35)]));
    }

    #[test]
    fn all_pairs_of_an_episode_are_equally_likely() {
        let sampler = EpisodePairs::new(&index(&[4]), PositiveWindow::Whole, 12_000, 0).unwrap();
        let mut counts = [[0; 4]; 4];
        sampler.batch(0).into_iter().for_each(|(anchor, positive)| counts[anchor.0][positive.0] += 1);
        for (anchor, row) in counts.iter().enumerate() {
            for (positive, count) in row.iter().enumerate() {
                let wanted = if anchor == positive { 0..1 } else { 870..1130 };
                assert!(wanted.contains(count), "{counts:?}");
            }
        }
    }

    #[test]
    fn a_single_fragment_is_its_own_positive() {
        let sampler = EpisodePairs::new(&index(&[1, 2]), PositiveWindow::Quarter, 2, 0).unwrap();
        assert_eq!(sampler.without_second_view(), 1);
        for (anchor, positive) in sampler.batch(5) {
            assert_eq!(anchor == positive, anchor.0 == 0);
        }
    }

    proptest! {
        #[test]
        fn pairs_keep_to_their_episode_and_window(
            sizes in prop::collection::vec(1usize..50, 1..9),
            batch in 1usize..20,
            window in prop::sample::select(vec![PositiveWindow::Whole, PositiveWindow::Half, PositiveWindow::Quarter]),
            seed: u64,
        ) {
            let index = index(&sizes);
            let sampler = EpisodePairs::new(&index, window, batch, seed).unwrap();
            for step in 0..10 {
                let pairs = sampler.batch(step);
                prop_assert_eq!(&pairs, &EpisodePairs::new(&index, window, batch, seed).unwrap().batch(step));
                let mut uses = vec![0; sizes.len()];
                for (anchor, positive) in pairs {
                    let episode = index.get(anchor).episode;
                    let size = sizes[episode.at()];
                    prop_assert_eq!(episode, index.get(positive).episode);
                    prop_assert!(anchor != positive || size == 1);
                    prop_assert!(anchor.0.abs_diff(positive.0) < window.size(size));
                    uses[episode.at()] += 1;
                }
                let (least, most) = (uses.iter().min().unwrap(), uses.iter().max().unwrap());
                prop_assert!(most - least <= 1, "{uses:?}");
            }
        }
    }
}
