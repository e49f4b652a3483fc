//! How far two kernels agree: whether they order pairs of fragments alike.
//!
//! Spearman's ρ is the correlation of ranks, so kernels of different scales compare: 1 if every pair that is farther for one
//! is farther for the other. Equal numbers share the mean of their ranks.

use super::distances::Distances;
use super::draw::distinct;
use crate::error::{Error, Result};

/// How two matrices of distances order pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Spearman's ρ; none where one of them is the same for all pairs.
    pub spearman: Option<f64>,
    /// Over how many pairs.
    pub pairs: usize,
}

/// Compares two kernels on the same fragments, on all pairs or on so many, drawn without repetition.
pub fn agreement(one: &Distances, other: &Distances, pairs: usize, seed: u64) -> Result<Agreement> {
    if one.len() != other.len() {
        return Err(Error::Config(format!(
            "distances between {} fragments cannot be held against those between {}",
            one.len(),
            other.len()
        )));
    }
    let all = one.condensed().len();
    if pairs >= all {
        return Ok(Agreement { spearman: spearman(one.condensed(), other.condensed()), pairs: all });
    }
    let drawn = distinct(seed, b"kernel agreement", all, pairs);
    let chosen = |distances: &Distances| drawn.iter().map(|at| distances.condensed()[*at]).collect::<Vec<_>>();
    Ok(Agreement { spearman: spearman(&chosen(one), &chosen(other)), pairs })
}

/// Spearman's ρ of paired numbers; none for fewer than two of them, for constants and for lists of different lengths.
pub fn spearman(one: &[f64], other: &[f64]) -> Option<f64> {
    if one.len() != other.len() || one.len() < 2 {
        return None;
    }
    let (one, other) = (ranks(one), ranks(other));
    // Ranks have the same mean whatever the ties.
    let mean = (one.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let scale = (product(&one, &one) * product(&other, &other)).sqrt();
    (scale > 0.0).then(|| product(&one, &other) / scale)
}

/// 1 for the least; equal numbers share the mean of the ranks that they take up.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|one, other| values[*one] == values[*other]) {
        let shared = first as f64 + (equal.len() as f64 + 1.0) / 2.0;
        equal.iter().for_each(|at| ranks[*at] = shared);
        first += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Case {
        name: String,
        one: Vec<f64>,
        other: Vec<f64>,
        spearman: f64,
    }

    #[test]
    fn rank_correlations_equal_scipy() {
        let golden = include_str!("../../fixtures/golden/spearman/golden.json");
        let cases: Vec<Case> = serde_json::from_str(golden).unwrap();
        assert!(cases.len() >= 4);
        for case in cases {
            let found = spearman(&case.one, &case.other).unwrap();
            assert!((found - case.spearman).abs() < 1e-12, "{}: {found} {}", case.name, case.spearman);
        }
    }

    #[test]
    fn what_has_no_order_has_no_correlation() {
        assert_eq!(spearman(&[1.0], &[1.0]), None);
        assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(spearman(&[1.0, 2.0], &[1.0, 2.0, 3.0]), None);
    }

    #[test]
    fn a_monotone_change_of_scale_is_full_agreement() {
        let one = Distances::between(20, |one, other| ((one * 31 + other * 17) % 101) as f64);
        let other = Distances::between(20, |row, column| one.get(row, column).powi(3) + 5.0);
        let whole = agreement(&one, &other, usize::MAX, 0).unwrap();
        assert_eq!(whole.pairs, 190);
        assert!((whole.spearman.unwrap() - 1.0).abs() < 1e-12);
        let some = agreement(&one, &other, 50, 0).unwrap();
        assert_eq!(some.pairs, 50);
        assert!((some.spearman.unwrap() - 1.0).abs() < 1e-12);
        assert!(agreement(&one, &Distances::between(19, |_, _| 1.0), 5, 0).is_err());
    }

    #[test]
    fn drawn_pairs_are_a_function_of_the_seed() {
        let one = Distances::between(30, |one, other| ((one * 31 + other * 17) % 101) as f64);
        let other = Distances::between(30, |one, other| ((one * 13 + other * 57) % 97) as f64);
        let drawn = |seed| agreement(&one, &other, 40, seed).unwrap();
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }
}
