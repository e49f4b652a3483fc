//! Which episodes are trained on, which are held out, and the probe: the held-out fragments that every figure is about.
//!
//! Fragments of one episode overlap and resemble each other, so a split by fragments would test on what was trained on.
//! **Splits are by episode.** There are three ways to make one:
//!
//! - [`Split::last_per_task`]: our sets come in rounds of one episode a task; the last two of six rounds are held out;
//! - [`Split::fraction`]: a share of each task, drawn by a seed, for sets that have no such order;
//! - [`Split::named`]: what `splits` of `meta/info.json` says.
//!
//! The [`probe`] is 1024 fragments (paper §4.4), drawn once: it is a function of the episodes, the length, the stride
//! and the seed alone, never of the training run.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::draw::{Purpose, generator};
use crate::fragment::{FragmentId, FragmentIndex};
use crate::ids::{EpisodeId, EpisodeSpan, TaskId};
use crate::permutation::Permutation;
use crate::sampling_error::SamplingError;

/// The fragments of the paper's probe.
pub const PROBE_SIZE: usize = 1024;

/// Episodes for training and episodes for testing. No episode is in both; both ascend.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// What models are fitted to.
    pub train: Vec<EpisodeId>,
    /// What they are judged by.
    pub held_out: Vec<EpisodeId>,
}

impl Split {
    /// Holds out the last `count` episodes of each task. A task keeps one episode to train on, so one with `count` episodes or
    /// fewer holds out all but its first, and one with a single episode holds out none.
    ///
    /// # Errors
    /// If no task has two episodes, so that nothing could be held out.
    pub fn last_per_task(episodes: &[EpisodeSpan], count: usize) -> Result<Split, SamplingError> {
        let tasks = by_task(episodes);
        let parts = tasks.values().map(|episodes| episodes.split_at(episodes.len() - count.min(episodes.len() - 1)));
        let split = Split::of_parts(parts);
        match split.held_out.is_empty() && count > 0 {
            true => Err(SamplingError::SingleEpisodes { tasks: tasks.len() }),
            false => Ok(split),
        }
    }

    /// The tasks of which [`Split::last_per_task`] holds out fewer than `count` episodes, with the number of their episodes.
    pub fn tasks_with_fewer(episodes: &[EpisodeSpan], count: usize) -> Vec<(TaskId, usize)> {
        let sizes = by_task(episodes).into_iter().map(|(task, episodes)| (task, episodes.len()));
        sizes.filter(|(_, episodes)| *episodes <= count).collect()
    }

    /// Holds out a share of the episodes of each task, drawn by `seed`.
    ///
    /// The number held out of all N episodes is `share`·N, rounded. Each task gives the whole part of `share`·n of its
    /// n episodes, and those with the largest fractions one more, until the number is reached (largest remainder; of
    /// equal fractions the lower task first). A task always keeps an episode to train on, so with few episodes a task
    /// the number may stay below the share. Which episodes of a task are drawn depends on the seed, the task and how
    /// many it has.
    pub fn fraction(episodes: &[EpisodeSpan], share: f64, seed: u64) -> Result<Split, SamplingError> {
        if !(0.0..1.0).contains(&share) {
            return Err(SamplingError::BadShare { share });
        }
        let tasks = by_task(episodes);
        let sizes: Vec<usize> = tasks.values().map(Vec::len).collect();
        let counts = largest_remainder(&sizes, share);
        let parts: Vec<(Vec<EpisodeId>, Vec<EpisodeId>)> = tasks
            .iter()
            .zip(counts)
            .map(|((task, episodes), count)| {
                let mut random = generator(seed, Purpose::HeldOut, [u64::from(task.0), 0]);
                let order: Vec<EpisodeId> = Permutation::new(episodes.len(), &mut random)
                    .first(episodes.len())
                    .map(|at| episodes[at])
                    .collect();
                let (held_out, train) = order.split_at(count);
                (train.to_vec(), held_out.to_vec())
            })
            .collect();
        Ok(Split::of_parts(parts.iter().map(|(train, held_out)| (&train[..], &held_out[..]))))
    }

    /// Two of the dataset's own splits, given as in `meta/info.json`: a name and a range of episodes such as `0:54`.
    ///
    /// Episodes that are in neither stay unused. The two must not share any.
    pub fn named<'a>(
        episodes: &[EpisodeSpan],
        splits: impl IntoIterator<Item = (&'a str, &'a str)>,
        train: &str,
        held_out: &str,
    ) -> Result<Split, SamplingError> {
        let splits: Vec<(&str, &str)> = splits.into_iter().collect();
        let range = |name: &str| match splits.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => parse_range(name, text, episodes.len()),
            None => Err(SamplingError::UnknownSplit {
                name: name.to_owned(),
                names: splits.iter().map(|(name, _)| (*name).to_owned()).collect(),
            }),
        };
        let (trained, tested) = (range(train)?, range(held_out)?);
        let shared = trained.start.max(tested.start)..trained.end.min(tested.end);
        if !shared.is_empty() {
            return Err(SamplingError::SharedEpisode {
                train: train.to_owned(),
                held_out: held_out.to_owned(),
                episode: EpisodeId(shared.start),
            });
        }
        Ok(Split { train: trained.map(EpisodeId).collect(), held_out: tested.map(EpisodeId).collect() })
    }

    fn of_parts<'a>(parts: impl Iterator<Item = (&'a [EpisodeId], &'a [EpisodeId])>) -> Split {
        let mut split = Split::default();
        for (train, held_out) in parts {
            split.train.extend(train);
            split.held_out.extend(held_out);
        }
        split.train.sort_unstable();
        split.held_out.sort_unstable();
        split
    }
}

/// Draws up to `count` fragments without repeats, as many of each task as of any other, ascending.
///
/// A task with fewer fragments than its share gives all, and the others share what is missing; what cannot be shared
/// equally goes to the tasks with the most fragments, of equal ones to the higher task. With fewer fragments than
/// `count` all are drawn: compare the length of the result, and lower the stride if it matters.
///
/// This is a function of `seed` and of what the index was made from (episodes, length, stride), and of nothing else, so
/// every run on a dataset has the same probe.
pub fn probe(index: &FragmentIndex, count: usize, seed: u64) -> Vec<FragmentId> {
    let mut tasks = BTreeMap::<TaskId, Vec<Range<usize>>>::new();
    for (task, range) in index.ranges() {
        tasks.entry(task).or_default().push(range);
    }
    let sizes: Vec<usize> = tasks.values().map(|ranges| ranges.iter().map(Range::len).sum()).collect();
    let mut drawn: Vec<FragmentId> = vec![];
    for (((task, ranges), size), share) in tasks.iter().zip(&sizes).zip(equal_shares(&sizes, count)) {
        let mut random = generator(seed, Purpose::Probe, [u64::from(task.0), 0]);
        // The fragments of a task as one line: where each episode begins on it.
        let mut begins: Vec<usize> = Vec::with_capacity(ranges.len());
        let mut begin = 0;
        for range in ranges {
            begins.push(begin);
            begin += range.len();
        }
        drawn.extend(Permutation::new(*size, &mut random).first(share).map(|at| {
            let slot = begins.partition_point(|&begin| begin <= at) - 1;
            FragmentId(ranges[slot].start + at - begins[slot])
        }));
    }
    drawn.sort_unstable();
    drawn
}

/// The episodes of each task, ascending.
fn by_task(episodes: &[EpisodeSpan]) -> BTreeMap<TaskId, Vec<EpisodeId>> {
    let mut tasks = BTreeMap::<TaskId, Vec<EpisodeId>>::new();
    for (at, span) in episodes.iter().enumerate() {
        tasks.entry(span.task).or_default().push(EpisodeId(at as u32));
    }
    tasks
}

/// How many of each size are `share` of all, at most one less than the size; see [`Split::fraction`].
fn largest_remainder(sizes: &[usize], share: f64) -> Vec<usize> {
    let quotas: Vec<f64> = sizes.iter().map(|&size| size as f64 * share).collect();
    let mut counts: Vec<usize> =
        sizes.iter().zip(&quotas).map(|(&size, quota)| (quota.floor() as usize).min(size - 1)).collect();
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|&a, &b| quotas[b].fract().total_cmp(&quotas[a].fract()).then(a.cmp(&b)));
    let wanted = (sizes.iter().sum::<usize>() as f64 * share).round() as usize;
    let missing = wanted.saturating_sub(counts.iter().sum());
    let can_give_more: Vec<usize> = order.into_iter().filter(|&at| counts[at] + 1 < sizes[at]).take(missing).collect();
    for at in can_give_more {
        counts[at] += 1;
    }
    counts
}

/// `count` shared among tasks that have no more than their size to give, so that the least share is as large as it can
/// be.
///
/// The smallest task takes an equal share of what is left, or all it has; then the next. What a task cannot take is
/// thus shared among the larger ones, and the remainder of the division falls to the last.
fn equal_shares(sizes: &[usize], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&at| (sizes[at], at));
    let mut shares = vec![0; sizes.len()];
    let mut left = count;
    for (done, at) in order.into_iter().enumerate() {
        shares[at] = sizes[at].min(left / (sizes.len() - done));
        left -= shares[at];
    }
    shares
}

/// Reads a range of episodes such as `0:54`: from the first to the one before the second.
fn parse_range(name: &str, text: &str, episodes: usize) -> Result<Range<u32>, SamplingError> {
    let bad = |reason| SamplingError::BadSplit { name: name.to_owned(), found: text.to_owned(), reason };
    let (from, to) = text.split_once(':').ok_or_else(|| bad("there is no colon"))?;
    let from: u32 = from.trim().parse().map_err(|_| bad("its start is no episode number"))?;
    let to: u32 = to.trim().parse().map_err(|_| bad("its end is no episode number"))?;
    if from > to {
        return Err(bad("it ends before it starts"));
    }
    if to as usize > episodes {
        return Err(SamplingError::SplitPastEnd { name: name.to_owned(), found: text.to_owned(), episodes });
    }
    Ok(from..to)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fragment::tests::spans;

    fn ids(numbers: impl IntoIterator<Item = u32>) -> Vec<EpisodeId> {
        numbers.into_iter().map(EpisodeId).collect()
    }

    /// Six rounds of nine tasks, as in `libero_goal`.
    fn rounds() -> Vec<EpisodeSpan> {
        let episodes: Vec<(usize, u32)> = (0..54).map(|at| (100 + at % 7, at as u32 % 9)).collect();
        spans(&episodes)
    }

    #[test]
    fn the_last_two_of_six_rounds_are_held_out() {
        let split = Split::last_per_task(&rounds(), 2).unwrap();
        assert_eq!((split.train, split.held_out), (ids(0..36), ids(36..54)));
    }

    #[test]
    fn a_task_keeps_an_episode_to_train_on() {
        let episodes = spans(&[(9, 0), (9, 1), (9, 1), (9, 2), (9, 2), (9, 2), (9, 2)]);
        let split = Split::last_per_task(&episodes, 2).unwrap();
        assert_eq!((split.train, split.held_out), (ids([0, 1, 3, 4]), ids([2, 5, 6])));
        assert_eq!(Split::tasks_with_fewer(&episodes, 2), [(TaskId(0), 1), (TaskId(1), 2)]);
        assert_eq!(
            Split::last_per_task(&spans(&[(9, 0), (9, 1), (9, 2)]), 1).unwrap_err().to_string(),
            "each of the 3 tasks has a single episode, so none can be held out to evaluate by; record a second episode of at \
             least one task, or give episodes of the same task the same instruction in `meta/tasks.parquet`"
        );
    }

    #[test]
    fn a_fifth_of_each_task_is_held_out() {
        let episodes: Vec<(usize, u32)> = (0..200).map(|at| (16, at % 4)).collect();
        let split = Split::fraction(&spans(&episodes), 0.2, 11).unwrap();
        for task in 0..4 {
            assert_eq!(split.held_out.iter().filter(|episode| episode.0 % 4 == task).count(), 10);
        }
        assert_ne!(split, Split::fraction(&spans(&episodes), 0.2, 12).unwrap());
    }

    #[test]
    fn remainders_go_to_the_largest_fractions_and_one_always_stays() {
        // Quotas 1.2, 0.9, 0.6, 0.3: ten episodes, three held out, and the last task must keep its only one.
        assert_eq!(largest_remainder(&[4, 3, 2, 1], 0.3), [1, 1, 1, 0]);
        assert_eq!(largest_remainder(&[1, 1, 1], 0.9), [0, 0, 0]);
        assert_eq!(largest_remainder(&[100], 0.29), [29]);
        assert_eq!(largest_remainder(&[], 0.5), [0; 0]);
    }

    #[test]
    fn named_splits_are_ranges_of_episodes() {
        let named = |train, test| Split::named(&rounds(), [("train", train), ("test", test)], "train", "test");
        let split = named("0:45", "45:54").unwrap();
        assert_eq!((split.train, split.held_out), (ids(0..45), ids(45..54)));
        let errors: Vec<String> = ["0-45", "a:45", "0:", "9:3", "0:55", "0:46", ":", "0:99999999999"]
            .map(|train| named(train, "45:54").unwrap_err().to_string())
            .into_iter()
            .chain([
                Split::named(&rounds(), [("train", "0:54")], "train", "test").unwrap_err().to_string(),
                Split::named(&rounds(), [], "train", "test").unwrap_err().to_string(),
            ])
            .collect();
        insta::assert_snapshot!(errors.join("\n"), @"
        split `train` is `0-45`: there is no colon; write first and end, such as `0:54`
        split `train` is `a:45`: its start is no episode number; write first and end, such as `0:54`
        split `train` is `0:`: its end is no episode number; write first and end, such as `0:54`
        split `train` is `9:3`: it ends before it starts; write first and end, such as `0:54`
        split `train` is `0:55`, there are 54 episodes; end it at 54 or before
        splits `train` and `test` share episode 45; an episode can be in one of them only
        split `train` is `:`: its start is no episode number; write first and end, such as `0:54`
        split `train` is `0:99999999999`: its end is no episode number; write first and end, such as `0:54`
        there is no split `test`; choose from `train`
        there is no split `train`; the dataset names none, so split it by rounds or by share
        ");
    }

    #[test]
    fn shares_that_are_none() {
        for share in [-0.1, 1.0, f64::NAN, f64::INFINITY] {
            let error = Split::fraction(&rounds(), share, 0).unwrap_err();
            assert!(matches!(error, SamplingError::BadShare { .. }), "{error}");
        }
    }

    #[test]
    fn shortages_are_shared() {
        assert_eq!(equal_shares(&[100, 100, 100], 9), [3, 3, 3]);
        assert_eq!(equal_shares(&[100, 100, 100], 11), [3, 4, 4]);
        assert_eq!(equal_shares(&[100, 1, 100], 9), [4, 1, 4]);
        assert_eq!(equal_shares(&[2, 2, 2], 5), [1, 2, 2]);
        assert_eq!(equal_shares(&[2, 1, 3], 99), [2, 1, 3]);
        assert_eq!(equal_shares(&[], 5), [0; 0]);
    }

    #[test]
    fn the_probe_is_stratified_and_always_the_same() {
        let episodes = rounds();
        let split = Split::last_per_task(&episodes, 2).unwrap();
        let index = FragmentIndex::new(&episodes, &split.held_out, 16, 1).unwrap();
        let drawn = probe(&index, PROBE_SIZE, 0);
        let mut counts = [0; 9];
        drawn.iter().for_each(|fragment| counts[index.get(*fragment).task.at()] += 1);
        assert_eq!(drawn.len(), 1024);
        assert!(counts.iter().all(|count| (113..=114).contains(count)), "{counts:?}");
        assert!(drawn.iter().all(|fragment| split.held_out.contains(&index.get(*fragment).episode)));
        let some: Vec<usize> = drawn.iter().step_by(100).map(|fragment| fragment.0).collect();
        assert_eq!(some, [0, 161, 315, 486, 630, 790, 938, 1096, 1240, 1400, 1550]);

        let sparse = FragmentIndex::new(&episodes, &split.held_out, 16, 8).unwrap();
        assert_eq!(probe(&sparse, PROBE_SIZE, 0).len(), sparse.len(), "fewer than asked for: all");
    }

    /// Episodes of up to five tasks, in any order.
    fn any_episodes() -> impl Strategy<Value = Vec<EpisodeSpan>> {
        prop::collection::vec((0usize..40, 0u32..5), 1..40).prop_map(|episodes| spans(&episodes))
    }

    fn is_partition(split: &Split, episodes: usize) -> bool {
        let mut all = [&split.train[..], &split.held_out[..]].concat();
        all.sort_unstable();
        all == ids(0..episodes as u32)
    }

    proptest! {
        #[test]
        fn splits_are_disjoint_complete_and_deterministic(
            episodes in any_episodes(), share in 0.0..0.999, count in 0usize..4, seed: u64,
        ) {
            let split = Split::fraction(&episodes, share, seed).unwrap();
            prop_assert!(is_partition(&split, episodes.len()));
            prop_assert_eq!(&split, &Split::fraction(&episodes, share, seed).unwrap());
            prop_assert!(split.held_out.len() <= (episodes.len() as f64 * share).round() as usize);
            for span in &episodes {
                prop_assert!(split.train.iter().any(|episode| episodes[episode.at()].task == span.task));
            }
            if let Ok(split) = Split::last_per_task(&episodes, count) {
                prop_assert!(is_partition(&split, episodes.len()));
                for span in &episodes {
                    prop_assert!(split.train.iter().any(|episode| episodes[episode.at()].task == span.task));
                }
            }
        }

        #[test]
        fn probes_have_no_repeats_and_equal_shares(episodes in any_episodes(), count in 0usize..300, seed: u64) {
            let index = FragmentIndex::of_all(&episodes, 5, 1).unwrap();
            let drawn = probe(&index, count, seed);
            prop_assert_eq!(drawn.len(), count.min(index.len()));
            prop_assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(drawn.iter().all(|fragment| fragment.0 < index.len()));
            prop_assert_eq!(&drawn, &probe(&index, count, seed));

            let mut tasks = BTreeMap::<TaskId, (usize, usize)>::new();
            index.iter().for_each(|(_, fragment)| tasks.entry(fragment.task).or_default().0 += 1);
            drawn.iter().for_each(|id| tasks.entry(index.get(*id).task).or_default().1 += 1);
            let most = tasks.values().map(|(_, taken)| *taken).max().unwrap_or(0);
            for (size, taken) in tasks.into_values() {
                prop_assert!(taken == size || taken + 1 >= most, "{taken} of {size} while another gave {most}");
            }
        }

        #[test]
        fn any_text_is_a_range_or_an_error(text in ".{0,12}") {
            if let Ok(range) = parse_range("train", &text, 54) {
                prop_assert!(range.start <= range.end && range.end <= 54);
            }
        }
    }
}
