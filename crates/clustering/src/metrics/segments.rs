//! Whether a segmentation has the segments of the truth.
//!
//! Two segments overlap by their intersection over their union (IoU), in steps. A predicted and a true segment may be
//! matched if they overlap by at least a threshold; segments are matched one to one, as many as possible. A threshold of
//! 0.5 asks for roughly the same segment, 0.75 for nearly the same. Unlike the F1 of boundaries, this counts a segment
//! only if both of its ends are about right, and is relative to its length.

use std::ops::Range;

/// Intersection over union of two segments, in [0, 1]; 0 if both are empty.
pub fn overlap(one: &Range<usize>, other: &Range<usize>) -> f64 {
    let shared = one.end.min(other.end).saturating_sub(one.start.max(other.start));
    let union = one.len() + other.len() - shared;
    if union == 0 { 0.0 } else { shared as f64 / union as f64 }
}

/// The most pairs of segments that can be matched one to one, each overlapping by `least` or more. On either side segments
/// are in order and do not overlap each other.
///
/// Pairs never cross: of two true segments, the earlier one cannot overlap a later prediction than the later one does. The
/// largest matching is therefore a longest common subsequence.
pub fn matched_segments(truth: &[Range<usize>], predicted: &[Range<usize>], least: f64) -> usize {
    let mut row = vec![0; predicted.len() + 1];
    for wanted in truth {
        // What the row above has one place to the left.
        let mut diagonal = 0;
        for (at, found) in predicted.iter().enumerate() {
            let above = row[at + 1];
            // Segments that do not touch are never the same, whatever the threshold.
            let shared = overlap(wanted, found);
            let with = diagonal + usize::from(shared > 0.0 && shared >= least);
            row[at + 1] = above.max(row[at]).max(with);
            diagonal = above;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The most pairs, by trying everything: the first true segment is matched with any prediction, or with none.
    fn brute_force(truth: &[Range<usize>], predicted: &[Range<usize>], least: f64) -> usize {
        let Some((first, others)) = truth.split_first() else { return 0 };
        let fits = |at: &usize| overlap(first, &predicted[*at]) > 0.0 && overlap(first, &predicted[*at]) >= least;
        let with = (0..predicted.len())
            .filter(fits)
            .map(|at| 1 + brute_force(others, &[&predicted[..at], &predicted[at + 1..]].concat(), least));
        with.max().unwrap_or(0).max(brute_force(others, predicted, least))
    }

    /// Segments between some cuts, some of them left out.
    fn segments() -> impl Strategy<Value = Vec<Range<usize>>> {
        let cuts = proptest::collection::btree_set(0usize..24, 0..7);
        (cuts, any::<u8>()).prop_map(|(cuts, kept)| {
            let cuts: Vec<usize> = cuts.into_iter().collect();
            let all = cuts.windows(2).map(|two| two[0]..two[1]);
            all.enumerate().filter(|(at, _)| kept >> at & 1 == 1 || kept < 64).map(|(_, one)| one).collect()
        })
    }

    proptest! {
        #[test]
        fn matching_is_that_of_brute_force(truth in segments(), predicted in segments(), tenths in 0u8..=10) {
            let least = f64::from(tenths) / 10.0;
            let best = brute_force(&truth, &predicted, least);
            prop_assert_eq!(matched_segments(&truth, &predicted, least), best);
            prop_assert_eq!(matched_segments(&predicted, &truth, least), best);
        }
    }

    #[test]
    fn overlaps_by_hand() {
        assert_eq!(overlap(&(0..10), &(0..10)), 1.0);
        assert_eq!(overlap(&(0..10), &(5..15)), 5.0 / 15.0);
        assert_eq!(overlap(&(0..10), &(2..6)), 0.4);
        assert_eq!(overlap(&(0..10), &(10..20)), 0.0);
        assert_eq!(overlap(&(3..3), &(3..3)), 0.0);
    }

    #[test]
    fn segments_match_by_hand() {
        let truth = [0..10, 10..20, 20..40];
        // 0..8 has an overlap of 0.8, 8..20 one of 10/12, 20..30 and 30..40 one of 0.5 each: only one of them counts.
        let found = [0..8, 8..20, 20..30, 30..40];
        assert_eq!(matched_segments(&truth, &found, 0.5), 3);
        assert_eq!(matched_segments(&truth, &found, 0.75), 2);
        assert_eq!(matched_segments(&truth, &found, 0.81), 1);
        assert_eq!(matched_segments(&truth, &truth, 1.0), 3);
        assert_eq!(matched_segments(&truth, &[], 0.5), 0);
        assert_eq!(matched_segments(&[], &[], 0.5), 0);
    }

    #[test]
    fn segments_that_do_not_touch_never_match() {
        assert_eq!(matched_segments(&[0..5, 5..9], &[9..20, 20..30], 0.0), 0);
    }
}
