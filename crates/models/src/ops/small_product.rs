//! Products of matrices that fit into a cache, such as those of one head of attention.
//!
//! A general product packs its factors first, which here costs as much as the product itself. This one reads them where they
//! lie and keeps eight vectors of sums in registers, enough to hide the latency of multiply-add. It is written with vectors,
//! not left to the compiler: whether that keeps 64 sums in registers changes with code elsewhere in the crate.

use std::ops::Range;

use pulp::Simd;

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
/// `out`: `shape` with `stride` from row to row; `right`: its values and its width, columns side by side. If there is room for
/// them within the width, a few columns more than asked for are made.
#[inline(always)]
pub(super) fn product<S: Simd>(
    simd: S,
    out: &mut [f32],
    stride: usize,
    (rows, columns): (usize, usize),
    left: Factor<'_>,
    right: (&[f32], usize),
    over: impl Fn(Range<usize>) -> Range<usize>,
) {
    let columns = columns.next_multiple_of(S::F32_LANES).min(right.1);
    let mut row = 0;
    while row < rows {
        let left = Factor { values: &left.values[row * left.row..], ..left };
        let out = &mut out[row * stride..];
        if rows - row >= 8 {
            strip::<S, 8>(simd, out, stride, columns, left, right, over(row..row + 8));
            row += 8;
        } else {
            strip::<S, 1>(simd, out, stride, columns, left, right, over(row..row + 1));
            row += 1;
        }
    }
}

/// `R` rows of a product, over all columns.
#[inline(always)]
fn strip<S: Simd, const R: usize>(
    simd: S,
    out: &mut [f32],
    stride: usize,
    columns: usize,
    left: Factor<'_>,
    (right, width): (&[f32], usize),
    over: Range<usize>,
) {
    let lanes = S::F32_LANES;
    let whole = columns / lanes * lanes;
    for column in (0..whole).step_by(lanes) {
        let mut sums = [simd.splat_f32s(0.0); R];
        for k in over.clone() {
            let start = k * width + column;
            let right = S::as_simd_f32s(&right[start..start + lanes]).0[0];
            for (row, sum) in sums.iter_mut().enumerate() {
                let factor = simd.splat_f32s(left.values[row * left.row + k * left.column]);
                *sum = simd.mul_add_e_f32s(factor, right, *sum);
            }
        }
        for (row, sum) in sums.iter().enumerate() {
            let start = row * stride + column;
            S::as_mut_simd_f32s(&mut out[start..start + lanes]).0[0] = *sum;
        }
    }
    for column in whole..columns {
        for row in 0..R {
            let term = |k: usize| left.values[row * left.row + k * left.column] * right[k * width + column];
            out[row * stride + column] = over.clone().map(term).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectorised::vectorised;

    vectorised! {
        fn multiply<'a, S>(
            simd,
            out: &'a mut [f32],
            shape: (usize, usize, usize),
            left: Factor<'a>,
            right: (&'a [f32], usize),
            depth: usize,
        ) -> () {
            product(simd, out, shape.0, (shape.1, shape.2), left, right, |_| 0..depth);
        }
    }

    #[test]
    fn a_product_is_the_sum_of_its_terms() {
        let number = |at: usize| ((at * 37 % 23) as f32 - 11.0) / 7.0;
        for (rows, depth, columns) in [(1, 1, 1), (3, 5, 7), (4, 8, 16), (9, 17, 37), (48, 32, 48)] {
            let left: Vec<f32> = (0..rows * depth).map(number).collect();
            let right: Vec<f32> = (0..depth * columns).map(|at| number(at + 5)).collect();
            for turned in [false, true] {
                let factor = match turned {
                    false => Factor { values: &left, row: depth, column: 1 },
                    true => Factor { values: &left, row: 1, column: rows },
                };
                let stride = columns + 3;
                let mut out = vec![f32::NAN; rows * stride];
                multiply(&mut out, (stride, rows, columns), factor, (&right, columns), depth);
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
