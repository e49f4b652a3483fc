//! Integers for the frames of a dataset: one for each frame, or one for each stretch of frames.
//!
//! What people and programs say about frames holds for stretches of them, so [`Runs`] take memory for each stretch and not
//! for each frame.

use std::ops::Range;

use crate::stats::{FeatureStats, Numbers, Running};

/// An integer for each frame, in the order of the dataset's `index`.
pub trait FrameValues: Sync {
    /// The number of frames.
    fn frames(&self) -> usize;

    /// Calls `each` with the stretches of equal values within some frames, in order; nothing, where there are no such
    /// frames.
    fn runs(&self, frames: Range<usize>, each: &mut dyn FnMut(Range<usize>, i64));
}

impl FrameValues for Vec<i64> {
    fn frames(&self) -> usize {
        self.len()
    }

    fn runs(&self, frames: Range<usize>, each: &mut dyn FnMut(Range<usize>, i64)) {
        let Some(values) = self.get(frames.clone()) else { return };
        let mut start = frames.start;
        for run in values.chunk_by(|one, other| one == other) {
            each(start..start + run.len(), run[0]);
            start += run.len();
        }
    }
}

/// Integers that stay the same over stretches of frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// The first frame after each stretch, and its value.
    ends: Vec<(usize, i64)>,
}

impl Runs {
    /// Adds a stretch after the last one.
    pub fn push(&mut self, frames: usize, value: i64) {
        let end = self.frames() + frames;
        match self.ends.last_mut() {
            _ if frames == 0 => {}
            Some(last) if last.1 == value => last.0 = end,
            _ => self.ends.push((end, value)),
        }
    }

    /// The same stretches with other values.
    pub fn map(&self, value: impl Fn(i64) -> i64) -> Runs {
        let mut mapped = Runs::default();
        for (end, old) in &self.ends {
            mapped.push(end - mapped.frames(), value(*old));
        }
        mapped
    }
}

impl FrameValues for Runs {
    fn frames(&self) -> usize {
        self.ends.last().map_or(0, |(end, _)| *end)
    }

    fn runs(&self, frames: Range<usize>, each: &mut dyn FnMut(Range<usize>, i64)) {
        if frames.end > self.frames() {
            return;
        }
        let mut start = frames.start;
        let first = self.ends.partition_point(|(end, _)| *end <= start);
        for (end, value) in self.ends.get(first..).unwrap_or_default() {
            if start >= frames.end {
                break;
            }
            let end = (*end).min(frames.end);
            each(start..end, *value);
            start = end;
        }
    }
}

/// Whether some frame has a value.
pub(super) fn has(runs: &Runs, value: i64) -> bool {
    runs.ends.iter().any(|(_, known)| *known == value)
}

/// The first frame whose value is outside of a range, and the value.
pub(super) fn outside(runs: &Runs, range: Range<i64>) -> Option<(usize, i64)> {
    let at = runs.ends.iter().position(|(_, value)| !range.contains(value))?;
    let start = at.checked_sub(1).map_or(0, |before| runs.ends[before].0);
    Some((start, runs.ends[at].1))
}

/// The values of some frames; none, where there are no such frames.
pub(super) fn values_of(values: &dyn FrameValues, frames: Range<usize>) -> Vec<i64> {
    let mut found = Vec::with_capacity(frames.len().min(values.frames()));
    values.runs(frames, &mut |run, value| found.extend(std::iter::repeat_n(value, run.len())));
    found
}

/// The statistics of some frames; `None` of none.
pub(super) fn stats_of(values: &dyn FrameValues, frames: Range<usize>) -> Option<FeatureStats> {
    let mut running = Running::new(1);
    let (mut numbers, mut counts) = (Vec::new(), Vec::new());
    let mut add = |numbers: &mut Vec<f64>, counts: &mut Vec<u64>| {
        running.add_counted(counts.iter().sum(), numbers, |which, _| counts[which]);
        numbers.clear();
        counts.clear();
    };
    values.runs(frames, &mut |run, value| {
        numbers.push(value as f64);
        counts.push(run.len() as u64);
        if numbers.len() == BATCH {
            add(&mut numbers, &mut counts);
        }
    });
    add(&mut numbers, &mut counts);
    running.stats(Numbers::Integer, &[1])
}

/// Stretches that are added to statistics at once.
const BATCH: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_give_the_values_of_their_frames() {
        let plain: Vec<i64> = vec![2, 2, 2, -1, 0, 0, 7, 7];
        let mut runs = Runs::default();
        for (frames, value) in [(2, 2), (0, 5), (1, 2), (1, -1), (2, 0), (2, 7)] {
            runs.push(frames, value);
        }
        assert_eq!((runs.frames(), runs.ends.len()), (8, 4));
        for (from, to) in [(0, 8), (1, 4), (3, 3), (4, 7), (7, 8), (8, 8)] {
            let (one, other) = (values_of(&runs, from..to), values_of(&plain, from..to));
            assert_eq!((&one, &other), (&plain[from..to].to_vec(), &plain[from..to].to_vec()));
            assert_eq!(stats_of(&runs, from..to), stats_of(&plain, from..to));
        }
        assert_eq!((values_of(&runs, 5..9), values_of(&plain, 5..9)), (vec![], vec![]));
        let stats = stats_of(&runs, 0..8).unwrap();
        assert_eq!((stats.count, stats.min[0], stats.max[0], stats.mean[0]), (Some(8), -1.0, 7.0, 19.0 / 8.0));
        assert_eq!(values_of(&runs.map(|value| value.max(0)), 2..6), [2, 0, 0, 0]);
    }
}
