//! Dynamic time warping: the least cost of walking two sequences from start to end together, each step forward in one
//! of them or in both, where a pair of steps costs its Euclidean distance.
//!
//! ```text
//! D(i, j) = ‖x_i − y_j‖ + min(D(i−1, j−1), D(i−1, j), D(i, j−1))
//! ```
//!
//! The Sakoe–Chiba band allows only |i − j| ≤ r. For sequences of different lengths r is at least the difference, or no
//! path would reach the end. The distance keeps two rows of D; a path keeps a byte for each pair in the band.

use crate::error::ClusteringError;
use crate::points::{Points, exact_square};

/// Two sequences laid over each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Alignment {
    /// What the path costs.
    pub distance: f64,
    /// Pairs of steps from `(0, 0)` to the ends of both.
    pub path: Vec<(usize, usize)>,
}

/// The cost of the cheapest path. `band` is the Sakoe–Chiba radius in steps; `None` allows every path.
///
/// # Shapes
/// `left` is `[n, d]`, `right` `[m, d]`; memory is O(m).
///
/// # Errors
/// On empty sequences and different widths.
pub fn dtw(left: Points<'_>, right: Points<'_>, band: Option<usize>) -> Result<f64, ClusteringError> {
    let radius = radius(left, right, band)?;
    Ok(fill(left, right, radius, |_, _, _| ()))
}

/// The cheapest path. Of equal ones it prefers both forward, then left forward, seen from the end.
///
/// # Shapes
/// `left` is `[n, d]`, `right` `[m, d]`; memory is O(n · min(m, 2r + 1)).
///
/// # Errors
/// On empty sequences and different widths.
pub fn dtw_path(left: Points<'_>, right: Points<'_>, band: Option<usize>) -> Result<Alignment, ClusteringError> {
    let radius = radius(left, right, band)?;
    let start = |row: usize| row.saturating_sub(radius);
    let stride = right.len().min(radius.saturating_mul(2).saturating_add(1));
    let mut moves = vec![Move::Both; left.len() * stride];
    let distance = fill(left, right, radius, |row, column, step| moves[row * stride + (column - start(row))] = step);
    let (mut row, mut column) = (left.len() - 1, right.len() - 1);
    let mut path = vec![(row, column)];
    while (row, column) != (0, 0) {
        match moves[row * stride + (column - start(row))] {
            Move::Both => (row, column) = (row - 1, column - 1),
            Move::Left => row -= 1,
            Move::Right => column -= 1,
        }
        path.push((row, column));
    }
    path.reverse();
    Ok(Alignment { distance, path })
}

/// The costs of the pairs along the cheapest path between two sequences of anything, from their first to their last pair:
/// `cost(row, column)` is what a pair costs. Of equally cheap paths it takes the one that [`dtw_path`] prefers. It returns
/// nothing if one of the sequences is empty.
///
/// # Shapes
/// `rows` and `columns` are the lengths of the sequences; memory is O(rows · columns).
pub fn dtw_path_costs(rows: usize, columns: usize, cost: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    if rows == 0 || columns == 0 {
        return Vec::new();
    }
    // D(i, j) row by row, and the cost of each pair.
    let (mut until, mut costs) = (vec![0.0; rows * columns], vec![0.0; rows * columns]);
    let before = |until: &[f64], row: usize, column: usize| {
        let neighbours = [(1, 1), (1, 0), (0, 1)].into_iter();
        let inside = neighbours.filter_map(move |(up, left)| Some((row.checked_sub(up)?, column.checked_sub(left)?)));
        inside.min_by(|a, b| until[a.0 * columns + a.1].total_cmp(&until[b.0 * columns + b.1]))
    };
    for row in 0..rows {
        for column in 0..columns {
            let at = row * columns + column;
            let least = before(&until, row, column).map_or(0.0, |(row, column)| until[row * columns + column]);
            costs[at] = cost(row, column);
            until[at] = least + costs[at];
        }
    }
    let mut along = Vec::with_capacity(rows.max(columns));
    let mut pair = Some((rows - 1, columns - 1));
    while let Some((row, column)) = pair {
        along.push(costs[row * columns + column]);
        pair = before(&until, row, column);
    }
    along.reverse();
    along
}

/// Which sequence went forward to reach a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    Both,
    Left,
    Right,
}

fn radius(left: Points<'_>, right: Points<'_>, band: Option<usize>) -> Result<usize, ClusteringError> {
    if left.width() != right.width() {
        return Err(ClusteringError::OtherWidth { found: right.width(), wanted: left.width() });
    }
    if left.is_empty() || right.is_empty() {
        return Err(ClusteringError::EmptySequence);
    }
    let least = left.len().abs_diff(right.len());
    Ok(band.map_or(left.len().max(right.len()), |band| band.max(least)))
}

/// Fills D row by row, tells every move, and returns D at the ends.
fn fill(left: Points<'_>, right: Points<'_>, radius: usize, mut tell: impl FnMut(usize, usize, Move)) -> f64 {
    let mut above = vec![f64::INFINITY; right.len()];
    let mut here = above.clone();
    for (row, step) in left.rows().enumerate() {
        let start = row.saturating_sub(radius);
        let end = row.saturating_add(radius).saturating_add(1).min(right.len());
        here[..start].fill(f64::INFINITY);
        for column in start..end {
            let cost = exact_square(step, right.row(column)).sqrt();
            let before = |condition: bool, value: &dyn Fn() -> f64| if condition { value() } else { f64::INFINITY };
            let both = before(row > 0 && column > 0, &|| above[column - 1]);
            let by_left = before(row > 0, &|| above[column]);
            let by_right = before(column > start, &|| here[column - 1]);
            let (best, step) = if both <= by_left && both <= by_right {
                (both, Move::Both)
            } else if by_left <= by_right {
                (by_left, Move::Left)
            } else {
                (by_right, Move::Right)
            };
            here[column] = if row == 0 && column == 0 { cost } else { best + cost };
            tell(row, column, step);
        }
        here[end..].fill(f64::INFINITY);
        std::mem::swap(&mut above, &mut here);
    }
    above[right.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[f32]) -> Points<'_> {
        Points::new(values, 1).unwrap()
    }

    #[test]
    fn a_held_step_costs_nothing() {
        let (slow, fast) = ([0.0, 1.0, 1.0, 1.0, 2.0], [0.0, 1.0, 2.0]);
        assert_eq!(dtw(line(&slow), line(&fast), None), Ok(0.0));
        let path = dtw_path(line(&slow), line(&fast), None).unwrap().path;
        assert_eq!(path, [(0, 0), (1, 1), (2, 1), (3, 1), (4, 2)]);
    }

    #[test]
    fn a_band_of_0_is_the_sum_of_distances() {
        let (a, b) = ([0.0, 3.0, 1.0], [1.0, 0.0, 3.0]);
        assert_eq!(dtw(line(&a), line(&b), Some(0)), Ok(6.0));
        assert!(dtw(line(&a), line(&b), None).unwrap() < 6.0);
    }

    #[test]
    fn a_band_narrower_than_the_difference_is_widened() {
        let (a, b) = ([0.0; 9], [0.0; 2]);
        assert_eq!(dtw(line(&a), line(&b), Some(0)), Ok(0.0));
        assert_eq!(dtw_path(line(&b), line(&a), Some(0)).unwrap().path.len(), 9);
    }

    #[test]
    fn nothing_cannot_be_aligned() {
        assert_eq!(dtw(line(&[]), line(&[1.0]), None), Err(ClusteringError::EmptySequence));
        let wide = Points::new(&[1.0, 2.0], 2).unwrap();
        assert_eq!(dtw(line(&[1.0]), wide, None), Err(ClusteringError::OtherWidth { found: 2, wanted: 1 }));
    }

    #[test]
    fn anything_with_a_cost_is_aligned_at_the_least_cost() {
        let along = |ones: &[usize], others: &[usize]| {
            dtw_path_costs(ones.len(), others.len(), |row, column| ones[row].abs_diff(others[column]) as f64)
        };
        assert_eq!(along(&[1, 2, 5], &[1, 2, 5]), [0.0; 3]);
        // One of them is slower.
        assert_eq!(along(&[1, 2, 5], &[1, 1, 2, 2, 5]), [0.0; 5]);
        assert_eq!(along(&[1, 4], &[1, 3, 4]).iter().sum::<f64>(), 1.0);
        // Both ends are met, even where they are far apart.
        assert_eq!(along(&[1, 2], &[9, 2]), [8.0, 0.0]);
        assert!(along(&[], &[1]).is_empty() && along(&[1], &[]).is_empty());
    }

    #[test]
    fn costs_of_distances_are_those_of_the_path() {
        let (a, b) = ([0.0, 3.0, 1.0, 4.0], [1.0, 0.0, 3.5]);
        let alignment = dtw_path(line(&a), line(&b), None).unwrap();
        let costs = dtw_path_costs(a.len(), b.len(), |row, column| f64::from((a[row] - b[column]).abs()));
        let wanted: Vec<f64> =
            alignment.path.iter().map(|(row, column)| f64::from((a[*row] - b[*column]).abs())).collect();
        assert_eq!(costs, wanted);
        assert!((costs.iter().sum::<f64>() - alignment.distance).abs() < 1e-12);
    }
}
