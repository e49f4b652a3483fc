//! Products of matrices that fit into a cache, such as those of one head of attention.
//!
//! A general product packs its factors first, which here costs as much as the product itself. This one reads them where they
//! lie and keeps blocks of 4 × 16 sums in registers: eight vectors of AVX2, enough to hide the latency of multiply-add.

use std::ops::Range;

/// The left factor of a product, with the steps from row to row and from column to column.
#[derive(Clone, Copy)]
pub(super) struct Factor<'v> {
    pub(super) values: &'v [f32],
    pub(super) row: usize,
    pub(super) column: usize,
}

/// `out[r, c] = Σ left[r, k] · right[k, c]` for k in `over(rows of the block)`, which may leave out terms that are zero.
///
/// # Shapes
/// `out`: `shape` with `stride` from row to row; `right`: its values, and its columns, which lie side by side.
#[inline(always)]
pub(super) fn product(
    out: &mut [f32],
    stride: usize,
    (rows, columns): (usize, usize),
    left: Factor<'_>,
    right: (&[f32], usize),
    over: impl Fn(Range<usize>) -> Range<usize>,
) {
    let mut row = 0;
    while row < rows {
        let left = Factor { values: &left.values[row * left.row..], ..left };
        let out = &mut out[row * stride..];
        if rows - row >= 4 {
            strip::<4>(out, stride, columns, left, right, over(row..row + 4));
            row += 4;
        } else {
            strip::<1>(out, stride, columns, left, right, over(row..row + 1));
            row += 1;
        }
    }
}

/// `R` rows of a product, over all columns.
#[inline(always)]
fn strip<const R: usize>(
    out: &mut [f32],
    stride: usize,
    columns: usize,
    left: Factor<'_>,
    (right, width): (&[f32], usize),
    over: Range<usize>,
) {
    let mut column = 0;
    while column < columns {
        let (out, right, over) = (&mut out[column..], &right[column..], over.clone());
        column += match columns - column {
            16.. => block::<R, 16>(out, stride, left, (right, width), over),
            4.. => block::<R, 4>(out, stride, left, (right, width), over),
            _ => block::<R, 1>(out, stride, left, (right, width), over),
        };
    }
}

#[inline(always)]
fn block<const R: usize, const C: usize>(
    out: &mut [f32],
    stride: usize,
    left: Factor<'_>,
    (right, width): (&[f32], usize),
    over: Range<usize>,
) -> usize {
    let mut sums = [[0.0_f32; C]; R];
    for k in over {
        let right = &right[k * width..k * width + C];
        for row in 0..R {
            let factor = left.values[row * left.row + k * left.column];
            for column in 0..C {
                sums[row][column] = factor.mul_add(right[column], sums[row][column]);
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        out[row * stride..row * stride + C].copy_from_slice(sums);
    }
    C
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_the_sum_of_its_terms() {
        let number = |at: usize| ((at * 37 % 23) as f32 - 11.0) / 7.0;
        for (rows, depth, columns) in [(1, 1, 1), (3, 5, 7), (4, 8, 16), (9, 17, 37)] {
            let left: Vec<f32> = (0..rows * depth).map(number).collect();
            let right: Vec<f32> = (0..depth * columns).map(|at| number(at + 5)).collect();
            for turned in [false, true] {
                let factor = match turned {
                    false => Factor { values: &left, row: depth, column: 1 },
                    true => Factor { values: &left, row: 1, column: rows },
                };
                let stride = columns + 3;
                let mut out = vec![f32::NAN; rows * stride];
                product(&mut out, stride, (rows, columns), factor, (&right, columns), |_| 0..depth);
                for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                    let term = |k: usize| left[row * factor.row + k * factor.column] * right[k * columns + column];
                    let wanted: f32 = (0..depth).map(term).sum();
                    assert!((out[row * stride + column] - wanted).abs() < 1e-4, "{rows} {depth} {columns} {turned}");
                }
                assert!(out[columns].is_nan(), "what lies between the rows is left alone");
            }
        }
    }
}
