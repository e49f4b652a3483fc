//! Symmetric matrices of distances, and those between embeddings.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::vectorised::vectorised;

/// The distances between all pairs of some things: symmetric with zeros on the diagonal, so only one triangle is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Distances {
    count: usize,
    /// (0,1), (0,2), …, (1,2), …: scipy's condensed form.
    condensed: Vec<f64>,
}

impl Distances {
    /// Asks for each pair once, lower index first. Pairs are shared out among threads; the result does not depend on how.
    pub fn between(count: usize, distance: impl Fn(usize, usize) -> f64 + Sync) -> Distances {
        let rows: Vec<Vec<f64>> = (0..count)
            .into_par_iter()
            .map(|row| (row + 1..count).map(|column| distance(row, column)).collect())
            .collect();
        Distances { count, condensed: rows.concat() }
    }

    /// How many things there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The distance of two of them, in any order.
    ///
    /// # Panics
    /// If one of them is not there, as indexing a slice does.
    pub fn get(&self, one: usize, other: usize) -> f64 {
        let (low, high) = (one.min(other), one.max(other));
        assert!(high < self.count, "thing {high} of {}", self.count);
        if low == high { 0.0 } else { self.condensed[self.place(low, high)] }
    }

    /// The upper triangle, row after row without the diagonal.
    pub fn condensed(&self) -> &[f64] {
        &self.condensed
    }

    /// The whole matrix, row after row.
    pub fn square(&self) -> Vec<f64> {
        (0..self.count * self.count).map(|at| self.get(at / self.count, at % self.count)).collect()
    }

    fn place(&self, low: usize, high: usize) -> usize {
        low * (2 * self.count - low - 1) / 2 + high - low - 1
    }
}

/// `legacy_cosine`: 1 − ⟨e, e'⟩ between rows of unit length, `width` numbers each.
pub fn cosine_distances(embeddings: &[f32], width: usize) -> Result<Distances> {
    if width == 0 || !embeddings.len().is_multiple_of(width) {
        return Err(Error::Config(format!("{} numbers are not rows of {width}", embeddings.len())));
    }
    let row = |at: usize| &embeddings[at * width..(at + 1) * width];
    Ok(Distances::between(embeddings.len() / width, |one, other| {
        let cosine = dot(row(one), row(other));
        // Unit length holds to rounding only; nothing is nearer than the thing itself.
        (1.0 - cosine).max(0.0)
    }))
}

/// `amortized`: ‖e − e'‖ between rows, `width` numbers each. In units of D_φ for an amortizer that was trained on it.
pub fn euclidean_distances(embeddings: &[f32], width: usize) -> Result<Distances> {
    if width == 0 || !embeddings.len().is_multiple_of(width) {
        return Err(Error::Config(format!("{} numbers are not rows of {width}", embeddings.len())));
    }
    let row = |at: usize| &embeddings[at * width..(at + 1) * width];
    Ok(Distances::between(embeddings.len() / width, |one, other| euclidean(row(one), row(other))))
}

/// ‖a − b‖ of two rows of equal length.
pub fn euclidean(a: &[f32], b: &[f32]) -> f64 {
    apart(a, b).sqrt()
}

vectorised! {
    /// Σ (a − b)².
    pub(super) fn apart<'a>(a: &'a [f32], b: &'a [f32]) -> f64 {
        squared_distance(a, b)
    }
}

/// Σ (a − b)², in f64 and in eight sums, which the compiler turns into vectors of whatever width it is inlined for. The sums
/// are the same for all of them, and so is the result.
#[inline(always)]
fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    in_lanes(a, b, |a, b| {
        let difference = f64::from(a) - f64::from(b);
        difference * difference
    })
}

vectorised! {
    fn dot<'a>(a: &'a [f32], b: &'a [f32]) -> f64 {
        in_lanes(a, b, |a, b| f64::from(a) * f64::from(b))
    }
}

#[inline(always)]
fn in_lanes(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f64) -> f64 {
    let mut sums = [0.0; 8];
    let (a_lanes, b_lanes) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a_lanes.remainder().iter().zip(b_lanes.remainder()).map(|(a, b)| term(*a, *b)).sum();
    for (a, b) in a_lanes.zip(b_lanes) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += term(*a, *b);
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_its_place() {
        for count in 0..7 {
            let distances = Distances::between(count, |one, other| (10 * one + other) as f64);
            assert_eq!(distances.len(), count);
            assert_eq!(distances.condensed().len(), count * count.saturating_sub(1) / 2);
            for (at, value) in distances.square().into_iter().enumerate() {
                let (one, other) = (at / count, at % count);
                let wanted = if one == other { 0 } else { 10 * one.min(other) + one.max(other) };
                assert_eq!(value, wanted as f64);
            }
        }
    }

    #[test]
    fn cosine_is_zero_one_and_two_for_the_same_the_orthogonal_and_the_opposite() {
        let rows = [0.6_f32, 0.8, 0.6, 0.8, -0.8, 0.6, -0.6, -0.8];
        let distances = cosine_distances(&rows, 2).unwrap();
        for (one, other, wanted) in [(0, 1, 0.0), (0, 2, 1.0), (0, 3, 2.0)] {
            assert!((distances.get(one, other) - wanted).abs() < 1e-7);
        }
        let distances = euclidean_distances(&rows, 2).unwrap();
        for (one, other, wanted) in [(0, 1, 0.0), (0, 2, 2.0_f64.sqrt()), (0, 3, 2.0)] {
            assert!((distances.get(one, other) - wanted).abs() < 1e-6);
        }
        assert!(euclidean_distances(&rows, 3).is_err() && euclidean_distances(&rows, 0).is_err());
        assert!(cosine_distances(&rows, 3).is_err());
        assert!(cosine_distances(&rows, 0).is_err());
    }

    #[test]
    fn lanes_and_rest_are_both_summed() {
        let a: Vec<f32> = (0..19).map(|at| at as f32).collect();
        let b: Vec<f32> = (0..19).map(|at| (at * at) as f32).collect();
        let wanted: f64 = (0..19).map(|at: i64| ((at - at * at) * (at - at * at)) as f64).sum();
        assert_eq!(squared_distance(&a, &b), wanted);
        assert_eq!(dot(&a, &b), (0..19).map(|at: i64| (at * at * at) as f64).sum::<f64>());
    }
}
