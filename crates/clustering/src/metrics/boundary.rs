//! Whether a segmentation changes where the truth changes.
//!
//! A boundary is a step whose label differs from the step before. Within an episode, boundaries of both sides are
//! matched one to one if they are at most `tolerance` steps apart, as many as possible. Precision, recall and F1 are of
//! the counts over all episodes.

use crate::error::ClusteringError;

/// How well boundaries were found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundaryScore {
    /// The share of predicted boundaries that are true ones; 1 if there are none.
    pub precision: f64,
    /// The share of true boundaries that were predicted; 1 if there are none.
    pub recall: f64,
    /// The harmonic mean of both: 1 if neither side has a boundary, 0 if only one of them has.
    pub f1: f64,
}

/// Scores the boundaries of predicted labels against those of true ones, for episodes of steps.
///
/// # Errors
/// On different numbers of episodes, or of steps in one.
pub fn boundary_f1<S: AsRef<[i64]>, T: AsRef<[i64]>>(
    truth: &[S],
    predicted: &[T],
    tolerance: usize,
) -> Result<BoundaryScore, ClusteringError> {
    if truth.len() != predicted.len() {
        return Err(ClusteringError::OtherEpisodes { truth: truth.len(), predicted: predicted.len() });
    }
    let (mut matched, mut wanted, mut found) = (0, 0, 0);
    for (truth, predicted) in truth.iter().zip(predicted) {
        let (truth, predicted) = (truth.as_ref(), predicted.as_ref());
        if truth.len() != predicted.len() {
            return Err(ClusteringError::OtherLength { truth: truth.len(), predicted: predicted.len() });
        }
        let (truth, predicted) = (boundaries(truth), boundaries(predicted));
        matched += matches(&truth, &predicted, tolerance);
        wanted += truth.len();
        found += predicted.len();
    }
    let share = |of: usize| if of == 0 { 1.0 } else { matched as f64 / of as f64 };
    let f1 = if wanted + found == 0 { 1.0 } else { 2.0 * matched as f64 / (wanted + found) as f64 };
    Ok(BoundaryScore { precision: share(found), recall: share(wanted), f1 })
}

fn boundaries(labels: &[i64]) -> Vec<usize> {
    labels.windows(2).enumerate().filter(|(_, pair)| pair[0] != pair[1]).map(|(at, _)| at + 1).collect()
}

/// The most pairs of boundaries that can be matched one to one, each at most `tolerance` steps apart. Both sides ascend.
pub fn matched_boundaries(truth: &[usize], predicted: &[usize], tolerance: usize) -> usize {
    matches(truth, predicted, tolerance)
}

/// The most pairs that can be matched. Taking the earliest that fits never costs a later pair, as both sides are
/// sorted.
fn matches(truth: &[usize], predicted: &[usize], tolerance: usize) -> usize {
    let (mut truth, mut predicted) = (truth.iter().peekable(), predicted.iter().peekable());
    let mut matched = 0;
    while let (Some(&&wanted), Some(&&found)) = (truth.peek(), predicted.peek()) {
        matched += usize::from(wanted.abs_diff(found) <= tolerance);
        if wanted.abs_diff(found) <= tolerance || wanted < found {
            truth.next();
        }
        if wanted.abs_diff(found) <= tolerance || found < wanted {
            predicted.next();
        }
    }
    matched
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The most pairs, by trying everything: the first truth is matched with any prediction, or with none.
    fn brute_force(truth: &[usize], predicted: &[usize], tolerance: usize) -> usize {
        let Some((first, others)) = truth.split_first() else { return 0 };
        let near = (0..predicted.len()).filter(|at| predicted[*at].abs_diff(*first) <= tolerance);
        let with =
            near.map(|at| 1 + brute_force(others, &[&predicted[..at], &predicted[at + 1..]].concat(), tolerance));
        with.max().unwrap_or(0).max(brute_force(others, predicted, tolerance))
    }

    proptest! {
        #[test]
        fn matching_is_that_of_brute_force(
            truth in proptest::collection::btree_set(0usize..30, 0..6),
            predicted in proptest::collection::btree_set(0usize..30, 0..6),
            tolerance in 0usize..6,
        ) {
            let (truth, predicted): (Vec<_>, Vec<_>) = (truth.into_iter().collect(), predicted.into_iter().collect());
            let best = brute_force(&truth, &predicted, tolerance);
            prop_assert_eq!(matched_boundaries(&truth, &predicted, tolerance), best);
            prop_assert_eq!(matched_boundaries(&predicted, &truth, tolerance), best);
        }
    }

    fn score(truth: &[i64], predicted: &[i64], tolerance: usize) -> (f64, f64, f64) {
        let score = boundary_f1(&[truth], &[predicted], tolerance).unwrap();
        (score.precision, score.recall, score.f1)
    }

    #[test]
    fn boundaries_count_within_the_tolerance_and_once() {
        let truth = [0, 0, 0, 1, 1, 1, 2, 2];
        assert_eq!(score(&truth, &[4, 4, 4, 5, 5, 5, 4, 4], 0), (1.0, 1.0, 1.0));
        assert_eq!(score(&truth, &[0, 0, 1, 1, 1, 1, 1, 1], 0), (0.0, 0.0, 0.0));
        assert_eq!(score(&truth, &[0, 0, 1, 1, 1, 1, 1, 1], 1), (1.0, 0.5, 2.0 / 3.0));
        // Two predictions near one truth: only one of them is right.
        assert_eq!(score(&[0, 0, 0, 1, 1, 1], &[0, 0, 1, 2, 2, 2], 1), (0.5, 1.0, 2.0 / 3.0));
    }

    #[test]
    fn no_boundary_on_both_sides_is_full_agreement() {
        assert_eq!(score(&[1, 1], &[2, 2], 0), (1.0, 1.0, 1.0));
        assert_eq!(score(&[1, 1], &[1, 2], 0), (0.0, 1.0, 0.0));
        assert_eq!(score(&[], &[], 3), (1.0, 1.0, 1.0));
    }

    #[test]
    fn matching_is_as_large_as_possible() {
        // The nearest pair first would leave 5 and 0 over; all three can be matched.
        assert_eq!(matches(&[0, 3, 6], &[2, 5, 8], 2), 3);
        assert_eq!(matches(&[0, 10], &[5], 4), 0);
    }

    #[test]
    fn episodes_are_counted_together_and_do_not_touch() {
        let score = boundary_f1(&[vec![0, 0], vec![1, 2]], &[vec![0, 0], vec![1, 1]], 5).unwrap();
        assert_eq!((score.precision, score.recall, score.f1), (1.0, 0.0, 0.0));
        let other = boundary_f1(&[vec![0, 0]], &[vec![0]], 0);
        assert_eq!(other, Err(ClusteringError::OtherLength { truth: 2, predicted: 1 }));
        assert!(boundary_f1(&[vec![0]], &[[0i64; 1]; 0], 0).is_err());
    }
}
