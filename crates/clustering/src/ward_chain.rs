//! Agglomerative clustering of a sequence: only neighbours may be joined, so that the clusters are stretches.
//!
//! It begins with one stretch for each point and joins, again and again, the two neighbours whose union costs least by
//! Ward's criterion, the rise of the sum of squared distances to the centres:
//!
//! ```text
//! Δ(a, b) = |a| |b| / (|a| + |b|) · ‖c_a − c_b‖²
//! ```
//!
//! This is scikit-learn's `AgglomerativeClustering(linkage="ward")` with a chain as its connectivity. Of equal costs the
//! earliest in the sequence is taken.

use std::ops::Range;

use crate::error::ClusteringError;
use crate::points::Points;

/// Cuts a sequence of points into `stretches` stretches.
///
/// # Shapes
/// `points` is `[n, d]` in the order of the sequence; gives stretches in order that cover `0..n`.
///
/// # Errors
/// On no stretches, and on fewer points than stretches.
pub fn ward_chain(points: Points<'_>, stretches: usize) -> Result<Vec<Range<usize>>, ClusteringError> {
    if stretches == 0 {
        return Err(ClusteringError::BadSetting { name: "stretches", found: "0".to_owned(), wanted: "1 or more" });
    }
    if points.len() < stretches {
        return Err(ClusteringError::TooFewPoints { found: points.len(), wanted: stretches });
    }
    let mut all: Vec<Stretch> = points.rows().enumerate().map(|(at, row)| Stretch::of(at, row)).collect();
    let mut costs: Vec<f64> = all.windows(2).map(|pair| pair[0].cost(&pair[1])).collect();
    while all.len() > stretches {
        let least = (1..costs.len()).fold(0, |least, at| if costs[at] < costs[least] { at } else { least });
        let right = all.remove(least + 1);
        all[least].join(&right);
        costs.remove(least);
        if least < costs.len() {
            costs[least] = all[least].cost(&all[least + 1]);
        }
        if least > 0 {
            costs[least - 1] = all[least - 1].cost(&all[least]);
        }
    }
    Ok(all.into_iter().map(|stretch| stretch.points).collect())
}

/// Some consecutive points with the mean of them.
struct Stretch {
    points: Range<usize>,
    centre: Vec<f64>,
}

impl Stretch {
    fn of(at: usize, row: &[f32]) -> Stretch {
        Stretch { points: at..at + 1, centre: row.iter().map(|value| f64::from(*value)).collect() }
    }

    /// What joining costs.
    fn cost(&self, other: &Stretch) -> f64 {
        let (own, theirs) = (self.points.len() as f64, other.points.len() as f64);
        let square: f64 = self.centre.iter().zip(&other.centre).map(|(one, other)| (one - other).powi(2)).sum();
        own * theirs / (own + theirs) * square
    }

    fn join(&mut self, right: &Stretch) {
        let (own, theirs) = (self.points.len() as f64, right.points.len() as f64);
        for (one, other) in self.centre.iter_mut().zip(&right.centre) {
            *one = (*one * own + other * theirs) / (own + theirs);
        }
        self.points.end = right.points.end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_cut_where_they_change() {
        let values = [0.0, 0.1, 0.0, 5.0, 5.1, 0.0, 0.1];
        let points = Points::new(&values, 1).unwrap();
        assert_eq!(ward_chain(points, 3).unwrap(), [0..3, 3..5, 5..7]);
        assert_eq!(ward_chain(points, 1).unwrap(), [0..7]);
        assert_eq!(ward_chain(points, 7).unwrap().len(), 7);
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        let points = Points::new(&[1.0, 2.0], 1).unwrap();
        assert!(ward_chain(points, 0).is_err());
        assert!(ward_chain(points, 3).is_err());
    }
}
