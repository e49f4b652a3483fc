//! All eigenvalues and eigenvectors of a dense symmetric matrix: Householder's reduction to three diagonals, then implicit
//! QL steps (Bowdler, Martin, Reinsch and Wilkinson 1968, the procedures `tred2` and `tql2`).
//!
//! Time is cubic in the order. It is for matrices of up to a few thousand rows whose leading eigenvalues lie so close
//! together that iterations on a few vectors converge slowly, as those of graphs do.

/// Steps after which an eigenvalue is accepted as it is; three are usual.
const MOST_STEPS: usize = 60;

/// Eigenvalues in ascending order, and the eigenvectors as columns of a row-major matrix.
///
/// # Shapes
/// `matrix` is `[n, n]`, symmetric; gives n values and `[n, n]`.
pub(crate) fn symmetric_eigen(matrix: Vec<f64>, n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut vectors = matrix;
    let (mut diagonal, mut beside) = tridiagonal(&mut vectors, n);
    diagonalise(&mut diagonal, &mut beside, &mut vectors, n);
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|one, other| diagonal[*one].total_cmp(&diagonal[*other]));
    let values = order.iter().map(|at| diagonal[*at]).collect();
    // Rows are eigenvectors until here.
    let columns = (0..n).flat_map(|row| order.iter().map(move |at| (row, *at))).map(|(row, at)| vectors[at * n + row]);
    (values, columns.collect())
}

/// Reduces to three diagonals: the middle one and the one beside it, whose first entry is zero. The matrix becomes the
/// transformation, one vector in each row.
fn tridiagonal(matrix: &mut [f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut diagonal, mut beside) = (vec![0.0; n], vec![0.0; n]);
    // Householder vectors with the factors of their reflections, to be applied to the identity afterwards.
    let mut reflections: Vec<(usize, Vec<f64>, f64)> = Vec::new();
    for last in (2..n).rev() {
        // The row left of the diagonal is to become zero but for its last entry.
        let row = &matrix[last * n..last * n + last];
        let norm = row.iter().map(|value| value * value).sum::<f64>().sqrt();
        let rest = row[..last - 1].iter().map(|value| value * value).sum::<f64>();
        if rest == 0.0 {
            beside[last] = row[last - 1];
            continue;
        }
        let mut vector = row.to_vec();
        let alpha = if vector[last - 1] > 0.0 { -norm } else { norm };
        vector[last - 1] -= alpha;
        let factor = 2.0 / vector.iter().map(|value| value * value).sum::<f64>();
        // A ← (1 − f v vᵀ) A (1 − f v vᵀ), on the block before this row.
        let mut image: Vec<f64> = (0..last)
            .map(|at| factor * matrix[at * n..at * n + last].iter().zip(&vector).map(|(a, v)| a * v).sum::<f64>())
            .collect();
        let half = 0.5 * factor * image.iter().zip(&vector).map(|(p, v)| p * v).sum::<f64>();
        image.iter_mut().zip(&vector).for_each(|(p, v)| *p -= half * v);
        for at in 0..last {
            let (own, along) = (vector[at], image[at]);
            let row = &mut matrix[at * n..at * n + last];
            for ((a, v), p) in row.iter_mut().zip(&vector).zip(&image) {
                *a -= own * p + along * v;
            }
        }
        beside[last] = alpha;
        reflections.push((last, vector, factor));
    }
    for at in 0..n {
        diagonal[at] = matrix[at * n + at];
    }
    if n > 1 {
        beside[1] = matrix[n];
    }
    matrix.fill(0.0);
    (0..n).for_each(|at| matrix[at * n + at] = 1.0);
    // The transformation is H_{n−1} … H_2; each row of the transpose is multiplied from the right.
    for (last, vector, factor) in reflections.iter().rev() {
        for at in 0..n {
            let row = &mut matrix[at * n..at * n + last];
            let along = factor * row.iter().zip(vector).map(|(a, v)| a * v).sum::<f64>();
            row.iter_mut().zip(vector).for_each(|(a, v)| *a -= along * v);
        }
    }
    (diagonal, beside)
}

/// Turns three diagonals into one, and the vectors with them.
fn diagonalise(diagonal: &mut [f64], beside: &mut [f64], vectors: &mut [f64], n: usize) {
    beside.rotate_left(1.min(n));
    if let Some(last) = beside.last_mut() {
        *last = 0.0;
    }
    for low in 0..n {
        for _ in 0..MOST_STEPS {
            let small = |at: usize| beside[at].abs() <= f64::EPSILON * (diagonal[at].abs() + diagonal[at + 1].abs());
            let high = (low..n - 1).find(|at| small(*at)).unwrap_or(n - 1);
            if high == low {
                break;
            }
            let mut g = (diagonal[low + 1] - diagonal[low]) / (2.0 * beside[low]);
            let r = g.hypot(1.0);
            g = diagonal[high] - diagonal[low] + beside[low] / (g + if g < 0.0 { -r } else { r });
            let (mut sine, mut cosine, mut shift) = (1.0, 1.0, 0.0);
            let mut split = false;
            for at in (low..high).rev() {
                let (f, b) = (sine * beside[at], cosine * beside[at]);
                let r = f.hypot(g);
                beside[at + 1] = r;
                if r == 0.0 {
                    diagonal[at + 1] -= shift;
                    beside[high] = 0.0;
                    split = true;
                    break;
                }
                (sine, cosine) = (f / r, g / r);
                let g_of = diagonal[at + 1] - shift;
                let r = (diagonal[at] - g_of) * sine + 2.0 * cosine * b;
                shift = sine * r;
                diagonal[at + 1] = g_of + shift;
                g = cosine * r - b;
                let (before, after) = vectors.split_at_mut((at + 1) * n);
                for (one, next) in before[at * n..].iter_mut().zip(&mut after[..n]) {
                    let kept = *next;
                    *next = sine * *one + cosine * kept;
                    *one = cosine * *one - sine * kept;
                }
            }
            if !split {
                diagonal[low] -= shift;
                beside[low] = g;
                beside[high] = 0.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::{Purpose, generator, unit};

    #[test]
    fn eigenvectors_rebuild_the_matrix() {
        for n in [1, 2, 3, 7, 40] {
            let mut random = generator(n as u64, Purpose::Axes, 0);
            let mut matrix = vec![0.0; n * n];
            for row in 0..n {
                for column in 0..=row {
                    // Some zeros, so that rows that need no reflection occur.
                    let drawn = unit(&mut random) - 0.5;
                    let value = if drawn > 0.3 { 0.0 } else { drawn };
                    (matrix[row * n + column], matrix[column * n + row]) = (value, value);
                }
            }
            let (values, vectors) = symmetric_eigen(matrix.clone(), n);
            assert!(values.is_sorted());
            for row in 0..n {
                for column in 0..n {
                    let of = |at: usize| vectors[row * n + at] * vectors[column * n + at];
                    let rebuilt: f64 = (0..n).map(|at| values[at] * of(at)).sum();
                    assert!((rebuilt - matrix[row * n + column]).abs() < 1e-12, "order {n}");
                    let identity: f64 = (0..n).map(of).sum();
                    assert!((identity - f64::from(u8::from(row == column))).abs() < 1e-12, "order {n}");
                }
            }
        }
    }

    #[test]
    fn equal_eigenvalues_are_found_as_often_as_they_occur() {
        // Two separate triangles: the Laplacian has 0 twice and 3 four times.
        let mut matrix = vec![0.0; 36];
        for block in [0, 3] {
            for row in block..block + 3 {
                for column in block..block + 3 {
                    matrix[row * 6 + column] = if row == column { 2.0 } else { -1.0 };
                }
            }
        }
        let (values, _) = symmetric_eigen(matrix, 6);
        for (found, wanted) in values.iter().zip([0.0, 0.0, 3.0, 3.0, 3.0, 3.0]) {
            assert!((found - wanted).abs() < 1e-12, "{values:?}");
        }
    }
}
