//! Position embeddings for another grid of patches than they were trained for.
//!
//! Bicubic interpolation as PyTorch does it for `interpolate(mode="bicubic", align_corners=False)` with a size: the centres
//! of cells are aligned, the kernel has A = −0.75, neighbours beyond the edge are those on the edge, and nothing is smoothed
//! when the grid becomes smaller.

/// The sharpness of PyTorch's kernel.
const A: f64 = -0.75;

/// Interpolates a square grid of vectors.
///
/// # Shapes
/// `table`: `[side · side, width]`; the result: `[rows · columns, width]`.
pub(super) fn interpolate(table: &[f32], side: usize, width: usize, (rows, columns): (usize, usize)) -> Vec<f32> {
    let vertical: Vec<_> = (0..rows).map(|row| taps(row, side, rows)).collect();
    let horizontal: Vec<_> = (0..columns).map(|column| taps(column, side, columns)).collect();
    let mut out = Vec::with_capacity(rows * columns * width);
    let mut sums = vec![0.0; width];
    for down in &vertical {
        for across in &horizontal {
            sums.fill(0.0);
            for (y, weight_y) in down {
                for (x, weight_x) in across {
                    let vector = &table[(y * side + x) * width..][..width];
                    let weight = weight_y * weight_x;
                    sums.iter_mut().zip(vector).for_each(|(sum, value)| *sum += weight * f64::from(*value));
                }
            }
            out.extend(sums.iter().map(|sum| *sum as f32));
        }
    }
    out
}

/// The four cells that a cell of the new grid is made of, each with its weight.
fn taps(at: usize, from: usize, to: usize) -> [(usize, f64); 4] {
    let centre = (at as f64 + 0.5) * from as f64 / to as f64 - 0.5;
    let first = centre.floor();
    let t = centre - first;
    let last = from as i64 - 1;
    let cell = |step: i64| (first as i64 + step).clamp(0, last) as usize;
    [(cell(-1), far(t + 1.0)), (cell(0), near(t)), (cell(1), near(1.0 - t)), (cell(2), far(2.0 - t))]
}

/// The kernel at distances up to 1.
fn near(x: f64) -> f64 {
    ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
}

/// The kernel at distances from 1 to 2.
fn far(x: f64) -> f64 {
    ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_grid_is_left_as_it_is() {
        let table: Vec<f32> = (0..5 * 5 * 3).map(|at| (at as f32 * 0.7).sin()).collect();
        assert_eq!(interpolate(&table, 5, 3, (5, 5)), table);
    }

    #[test]
    fn weights_add_up_to_one() {
        for (from, to) in [(37, 16), (5, 4), (4, 9), (1, 3)] {
            for at in 0..to {
                let sum: f64 = taps(at, from, to).iter().map(|(_, weight)| weight).sum();
                assert!((sum - 1.0).abs() < 1e-12, "{at} of {from} → {to}: {sum}");
            }
        }
    }
}
