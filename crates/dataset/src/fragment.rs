//! Fragments: windows of T steps, the unit that is embedded, compared and clustered (paper §3, τ).
//!
//! An episode of n frames has ⌊(n − T) / stride⌋ + 1 of them if n ≥ T, and none otherwise: a fragment never crosses
//! into the next episode, and none is padded. T is 16 for robots and 4 for RecursivePour.
//!
//! The index stores no fragments. It has one entry an episode, with the number of fragments before it; a fragment is
//! found by bisection, and costs O(log episodes). Two million frames at stride 1 take as much memory as at stride 1000.
//!
//! Fragments are numbered in the order of the dataset, whatever the order in which episodes were chosen, so that a
//! number means the same fragment in every run with the same episodes, length and stride.

use std::fmt;
use std::ops::Range;

use crate::ids::{EpisodeId, EpisodeSpan, TaskId};
use crate::sampling_error::SamplingError;

/// T of the paper: the steps of a robot's fragment.
pub const FRAGMENT_LENGTH: usize = 16;

/// A fragment: its place in a [`FragmentIndex`]. It means nothing in another index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct FragmentId(pub usize);

impl fmt::Display for FragmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a fragment lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The episode that it is cut from.
    pub episode: EpisodeId,
    /// The task of that episode.
    pub task: TaskId,
    /// Its rows in the whole dataset.
    pub frames: Range<usize>,
}

/// All fragments of the chosen episodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentIndex {
    length: usize,
    stride: usize,
    too_short: usize,
    /// The chosen episodes that have fragments, ascending.
    episodes: Vec<EpisodeId>,
    /// For each of `episodes`: its task and its first frame.
    starts: Vec<(TaskId, usize)>,
    /// For each of `episodes` the number of fragments before it, and the number of all at the end.
    firsts: Vec<usize>,
}

impl FragmentIndex {
    /// The windows of `length` steps, `stride` apart, of the chosen episodes.
    pub fn new(
        episodes: &[EpisodeSpan],
        chosen: &[EpisodeId],
        length: usize,
        stride: usize,
    ) -> Result<FragmentIndex, SamplingError> {
        if length == 0 {
            return Err(SamplingError::NoLength);
        }
        if stride == 0 {
            return Err(SamplingError::NoStride);
        }
        let mut chosen = chosen.to_vec();
        chosen.sort_unstable();
        if let Some(pair) = chosen.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(SamplingError::RepeatedEpisode { episode: pair[0] });
        }

        let mut index =
            FragmentIndex { length, stride, too_short: 0, episodes: vec![], starts: vec![], firsts: vec![0] };
        let mut count = 0usize;
        for episode in chosen {
            let span = episodes
                .get(episode.at())
                .ok_or(SamplingError::UnknownEpisode { episode, episodes: episodes.len() })?;
            if span.frames.len() < length {
                index.too_short += 1;
                continue;
            }
            let more = (span.frames.len() - length) / stride + 1;
            count = count
                .checked_add(more)
                .ok_or(SamplingError::TooManyFragments { found: count as u128 + more as u128, limit: usize::MAX })?;
            index.episodes.push(episode);
            index.starts.push((span.task, span.frames.start));
            index.firsts.push(count);
        }
        Ok(index)
    }

    /// The windows of all episodes.
    pub fn of_all(episodes: &[EpisodeSpan], length: usize, stride: usize) -> Result<FragmentIndex, SamplingError> {
        let all: Vec<EpisodeId> = (0..episodes.len()).map(|at| EpisodeId(at as u32)).collect();
        FragmentIndex::new(episodes, &all, length, stride)
    }

    /// The number of fragments.
    pub fn len(&self) -> usize {
        self.firsts.last().copied().unwrap_or(0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The steps of a fragment.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The steps from one fragment of an episode to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The number of chosen episodes that are shorter than one fragment and so have none.
    pub fn too_short(&self) -> usize {
        self.too_short
    }

    /// The chosen episodes that have fragments, ascending.
    pub fn episodes(&self) -> &[EpisodeId] {
        &self.episodes
    }

    /// Where a fragment lies.
    ///
    /// # Panics
    /// As an array does, if the fragment is not one of this index.
    pub fn get(&self, fragment: FragmentId) -> Fragment {
        assert!(fragment.0 < self.len(), "fragment {fragment} of an index of {}", self.len());
        let slot = self.firsts.partition_point(|&first| first <= fragment.0) - 1;
        self.fragment(slot, fragment.0)
    }

    /// All fragments in order.
    pub fn iter(&self) -> impl Iterator<Item = (FragmentId, Fragment)> + '_ {
        (0..self.episodes.len())
            .flat_map(move |slot| self.range(slot).map(move |number| (FragmentId(number), self.fragment(slot, number))))
    }

    /// The numbers of the fragments of an episode, in order of time; empty if it has none or was not chosen.
    pub fn of_episode(&self, episode: EpisodeId) -> Range<usize> {
        match self.episodes.binary_search(&episode) {
            Ok(slot) => self.range(slot),
            Err(_) => 0..0,
        }
    }

    /// The fragments of each episode with its task, in the order of [`FragmentIndex::episodes`].
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (TaskId, Range<usize>)> + '_ {
        self.starts.iter().enumerate().map(|(slot, (task, _))| (*task, self.range(slot)))
    }

    fn range(&self, slot: usize) -> Range<usize> {
        self.firsts[slot]..self.firsts[slot + 1]
    }

    fn fragment(&self, slot: usize, number: usize) -> Fragment {
        let (task, start) = self.starts[slot];
        let from = start + (number - self.firsts[slot]) * self.stride;
        Fragment { episode: self.episodes[slot], task, frames: from..from + self.length }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Episodes of the given lengths and tasks, one after the other.
    pub(crate) fn spans(episodes: &[(usize, u32)]) -> Vec<EpisodeSpan> {
        let mut start = 0;
        let span = |&(length, task): &(usize, u32)| {
            let frames = start..start + length;
            start = frames.end;
            EpisodeSpan { frames, task: TaskId(task) }
        };
        episodes.iter().map(span).collect()
    }

    #[test]
    fn windows_stay_within_their_episode() {
        let spans = spans(&[(7, 0), (3, 1), (4, 2), (6, 0)]);
        let index = FragmentIndex::of_all(&spans, 4, 2).unwrap();
        let frames: Vec<(u32, Range<usize>)> =
            index.iter().map(|(_, fragment)| (fragment.episode.0, fragment.frames)).collect();
        assert_eq!(frames, [(0, 0..4), (0, 2..6), (2, 10..14), (3, 14..18), (3, 16..20)]);
        assert_eq!((index.len(), index.too_short()), (5, 1));
        assert_eq!(index.episodes(), [EpisodeId(0), EpisodeId(2), EpisodeId(3)]);
        assert_eq!(index.of_episode(EpisodeId(3)), 3..5);
        assert!(index.of_episode(EpisodeId(1)).is_empty() && index.of_episode(EpisodeId(9)).is_empty());
    }

    #[test]
    fn the_order_of_choice_does_not_matter() {
        let spans = spans(&[(20, 0), (30, 1), (40, 2)]);
        let index = |chosen: &[u32]| {
            let chosen: Vec<EpisodeId> = chosen.iter().copied().map(EpisodeId).collect();
            FragmentIndex::new(&spans, &chosen, 16, 1).unwrap()
        };
        assert_eq!(index(&[2, 0]), index(&[0, 2]));
    }

    #[test]
    fn two_million_frames_cost_as_much_as_their_episodes() {
        let spans = spans(&vec![(200, 0); 10_000]);
        let index = FragmentIndex::of_all(&spans, 16, 1).unwrap();
        assert_eq!(index.len(), 10_000 * 185);
        assert_eq!(index.firsts.len(), 10_001);
        assert_eq!(index.get(FragmentId(index.len() - 1)).frames, 1_999_984..2_000_000);
    }

    #[test]
    fn impossible_indices_say_what_to_do() {
        let spans = spans(&[(20, 0), (30, 1)]);
        let error = |chosen: &[u32], length, stride| {
            let chosen: Vec<EpisodeId> = chosen.iter().copied().map(EpisodeId).collect();
            FragmentIndex::new(&spans, &chosen, length, stride).unwrap_err().to_string()
        };
        insta::assert_snapshot!(
            [error(&[0], 0, 1), error(&[0], 16, 0), error(&[0, 2], 16, 1), error(&[1, 0, 1], 16, 1)].join("\n"),
            @"
            a fragment cannot have 0 steps; give a length of 1 or more, such as 16
            fragments cannot follow each other at a stride of 0; give a stride of 1 or more
            there is no episode 2; choose from the 2 there are, counted from 0
            episode 1 is chosen twice; name each episode once
            "
        );
        let huge = EpisodeSpan { frames: 0..usize::MAX, task: TaskId(0) };
        let overlapping = FragmentIndex::of_all(&[huge.clone(), huge], 1, 1);
        assert!(matches!(overlapping, Err(SamplingError::TooManyFragments { .. })), "{overlapping:?}");
    }

    proptest! {
        #[test]
        fn the_index_is_what_a_loop_would_list(
            episodes in prop::collection::vec((0usize..40, 0u32..4), 0..12),
            length in 1usize..20,
            stride in 1usize..20,
        ) {
            let spans = spans(&episodes);
            let mut listed = vec![];
            for (episode, span) in spans.iter().enumerate() {
                let mut from = span.frames.start;
                while from + length <= span.frames.end {
                    let frames = from..from + length;
                    listed.push(Fragment { episode: EpisodeId(episode as u32), task: span.task, frames });
                    from += stride;
                }
            }
            let index = FragmentIndex::of_all(&spans, length, stride).unwrap();
            prop_assert_eq!(index.len(), listed.len());
            prop_assert_eq!(index.too_short(), spans.iter().filter(|span| span.frames.len() < length).count());
            for (number, fragment) in listed.iter().enumerate() {
                prop_assert_eq!(&index.get(FragmentId(number)), fragment);
                prop_assert!(index.of_episode(fragment.episode).contains(&number));
            }
            let numbered: Vec<(FragmentId, Fragment)> =
                listed.into_iter().enumerate().map(|(number, fragment)| (FragmentId(number), fragment)).collect();
            prop_assert_eq!(index.iter().collect::<Vec<_>>(), numbered);
        }
    }
}
