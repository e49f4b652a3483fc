//! Points in the plane, for the map of the report.

use clustering::Points;

/// Coordinates along the two directions of most variance, by power iteration from a fixed start, and their share of it.
pub(super) fn principal_plane(points: Points<'_>) -> (Vec<[f64; 2]>, f64) {
    const ROUNDS: usize = 100;
    let (count, width) = (points.len().max(1) as f64, points.width());
    let mut mean = vec![0.0; width];
    for row in points.rows() {
        mean.iter_mut().zip(row).for_each(|(mean, value)| *mean += f64::from(*value) / count);
    }
    let centred: Vec<Vec<f64>> = points
        .rows()
        .map(|row| row.iter().zip(&mean).map(|(value, mean)| f64::from(*value) - mean).collect())
        .collect();
    let variance: f64 = centred.iter().flatten().map(|value| value * value).sum();
    let dot = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>();
    let mut axes: Vec<Vec<f64>> = Vec::new();
    for axis in 0..2 {
        let mut direction: Vec<f64> = (0..width).map(|at| 1.0 + ((at * 7 + axis * 3) % 11) as f64 / 11.0).collect();
        for _ in 0..ROUNDS {
            let mut next = vec![0.0; width];
            for row in &centred {
                let along = dot(row, &direction);
                next.iter_mut().zip(row).for_each(|(next, value)| *next += along * value);
            }
            for axis in &axes {
                let along = dot(&next, axis);
                next.iter_mut().zip(axis).for_each(|(next, axis)| *next -= along * axis);
            }
            let length = dot(&next, &next).sqrt();
            if length <= f64::MIN_POSITIVE {
                break;
            }
            direction = next.into_iter().map(|value| value / length).collect();
        }
        axes.push(direction);
    }
    let plane: Vec<[f64; 2]> = centred.iter().map(|row| [dot(row, &axes[0]), dot(row, &axes[1])]).collect();
    let kept: f64 = plane.iter().flatten().map(|value| value * value).sum();
    (plane, if variance > 0.0 { (kept / variance).min(1.0) } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_axis_is_that_of_most_variance() {
        // A line along (3, 4, 0) and a little of (0, 0, 1).
        let rows: Vec<f32> = (0..20)
            .flat_map(|at| {
                let along = at as f32 - 9.5;
                [0.6 * along, 0.8 * along, if at % 2 == 0 { 0.5 } else { -0.5 }]
            })
            .collect();
        let (plane, share) = principal_plane(Points::new(&rows, 3).unwrap());
        assert!((share - 1.0).abs() < 1e-9);
        let length = plane.iter().map(|at| at[0].abs()).fold(0.0, f64::max);
        assert!((length - 9.5).abs() < 0.05, "{length}");
        assert!(plane.iter().all(|at| at[1].abs() < 0.7));
        // All alike: everything is at the middle.
        let (plane, share) = principal_plane(Points::new(&[1.0; 12], 3).unwrap());
        assert!(share == 0.0 && plane.iter().flatten().all(|value| *value == 0.0));
    }
}
