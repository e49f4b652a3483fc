//! Principal component analysis in two dimensions, for maps of many-dimensional points.
//!
//! The axes are the two eigenvectors of the covariance XᵀX with the largest eigenvalues, where the rows of X are the
//! centred points. They are found by subspace iteration with Rayleigh–Ritz projection (Halko, Martinsson and Tropp 2011,
//! §4): a block of [`BLOCK`] orthonormal vectors Q is multiplied by XᵀX and turned to the eigenvectors of QᵀXᵀXQ until
//! the residuals of the first two vanish. XᵀX itself is never formed, so the memory is that of the points.

use rayon::prelude::*;

use crate::draw::{Purpose, generator, unit};
use crate::points::Points;

/// Vectors of the iteration. The error shrinks by the ratio of eigenvalues 9 and 2 per round, rather than 3 and 2.
const BLOCK: usize = 8;
/// The most rounds. Only points whose first nine variances are almost equal need more, and any plane suits them.
const ROUNDS: usize = 500;
/// The norm of XᵀXq − λq, relative to the largest eigenvalue, below which an axis is accepted.
const TOLERANCE: f64 = 1e-11;
/// Points that are summed together. Sums do not depend on the number of threads, because chunks do not.
const CHUNK: usize = 256;

/// One vector per column; one row for each coordinate of the points.
type Block = Vec<[f64; BLOCK]>;
type Square = [[f64; BLOCK]; BLOCK];

/// Coordinates of the points on their first two principal axes, and the share of the variance that the plane keeps.
///
/// Axes point to where their largest coefficient is positive, as those of scikit-learn do. Points of one coordinate have
/// 0 as the second; points that are all equal have zeros and a share of 0.
///
/// # Shapes
/// `points` is `[n, d]`; gives n pairs.
pub fn principal_plane(points: Points<'_>) -> (Vec<[f64; 2]>, f64) {
    let mean = mean(points);
    let centred: Vec<f64> =
        points.rows().flat_map(|row| row.iter().zip(&mean).map(|(value, mean)| f64::from(*value) - mean)).collect();
    let variance: f64 = centred.iter().map(|value| value * value).sum();
    if variance == 0.0 {
        return (vec![[0.0; 2]; points.len()], 0.0);
    }
    let axes = axes(&centred, points.width());
    let on_plane = |row: &[f64]| {
        let along = project(row, &axes);
        [along[0], along[1]]
    };
    let plane: Vec<[f64; 2]> = centred.par_chunks(points.width()).map(on_plane).collect();
    let kept: f64 = plane.iter().flatten().map(|value| value * value).sum();
    (plane, (kept / variance).min(1.0))
}

fn mean(points: Points<'_>) -> Vec<f64> {
    let mut sum = vec![0.0; points.width()];
    for row in points.rows() {
        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    sum.into_iter().map(|sum| sum / points.len().max(1) as f64).collect()
}

/// Orthonormal vectors, of which the first two are the principal axes; columns beyond the width are zero.
fn axes(centred: &[f64], width: usize) -> Block {
    let mut random = generator(0, Purpose::Axes, 0);
    let mut block: Block = (0..width).map(|_| std::array::from_fn(|_| unit(&mut random) - 0.5)).collect();
    orthonormalise(&mut block);
    for _ in 0..ROUNDS {
        let mut image = multiply(centred, &block);
        let (values, vectors) = eigen(inner(&block, &image));
        turn(&mut block, &vectors);
        turn(&mut image, &vectors);
        let residual = |at: usize| -> f64 {
            let difference = |(image, axis): (&[f64; BLOCK], &[f64; BLOCK])| image[at] - values[at] * axis[at];
            image.iter().zip(&block).map(|rows| difference(rows).powi(2)).sum::<f64>().sqrt()
        };
        if residual(0).max(residual(1)) <= TOLERANCE * values[0] {
            break;
        }
        block = image;
        orthonormalise(&mut block);
    }
    for at in 0..2 {
        let largest = block
            .iter()
            .map(|row| row[at])
            .fold(0.0, |most: f64, next| if next.abs() > most.abs() { next } else { most });
        if largest < 0.0 {
            block.iter_mut().for_each(|row| row[at] = -row[at]);
        }
    }
    block
}

/// XᵀX times the vectors.
fn multiply(centred: &[f64], block: &Block) -> Block {
    let width = block.len();
    let parts: Vec<Block> = centred
        .par_chunks(CHUNK * width)
        .map(|rows| {
            let mut sum = vec![[0.0; BLOCK]; width];
            for row in rows.chunks_exact(width) {
                let along = project(row, block);
                for (sum, value) in sum.iter_mut().zip(row) {
                    (0..BLOCK).for_each(|at| sum[at] += along[at] * value);
                }
            }
            sum
        })
        .collect();
    let mut sum = vec![[0.0; BLOCK]; width];
    for part in parts {
        sum.iter_mut().zip(part).for_each(|(sum, part)| (0..BLOCK).for_each(|at| sum[at] += part[at]));
    }
    sum
}

/// A row times the vectors.
fn project(row: &[f64], block: &Block) -> [f64; BLOCK] {
    let mut along = [0.0; BLOCK];
    for (value, coefficients) in row.iter().zip(block) {
        (0..BLOCK).for_each(|at| along[at] += value * coefficients[at]);
    }
    along
}

/// All inner products of the vectors of two blocks.
fn inner(one: &Block, other: &Block) -> Square {
    let mut products = [[0.0; BLOCK]; BLOCK];
    for (one, other) in one.iter().zip(other) {
        for (row, one) in products.iter_mut().zip(one) {
            (0..BLOCK).for_each(|at| row[at] += one * other[at]);
        }
    }
    products
}

/// Replaces the vectors by their combinations with the columns of a matrix.
fn turn(block: &mut Block, by: &Square) {
    for row in block {
        let old = *row;
        *row = std::array::from_fn(|at| (0..BLOCK).map(|from| old[from] * by[from][at]).sum());
    }
}

/// Gram–Schmidt, twice, which is enough for full precision. A vector that depends on those before it becomes zero.
fn orthonormalise(block: &mut Block) {
    let dot = |block: &Block, one: usize, other: usize| block.iter().map(|row| row[one] * row[other]).sum::<f64>();
    for at in 0..BLOCK {
        let before = dot(block, at, at);
        for _ in 0..2 {
            for earlier in 0..at {
                let along = dot(block, earlier, at);
                block.iter_mut().for_each(|row| row[at] -= along * row[earlier]);
            }
        }
        let square = dot(block, at, at);
        let scale = if square > before * 1e-24 && square > 0.0 { square.sqrt().recip() } else { 0.0 };
        block.iter_mut().for_each(|row| row[at] *= scale);
    }
}

/// Eigenvalues of a symmetric matrix in decreasing order, and its eigenvectors as columns, by Jacobi's rotations.
fn eigen(mut matrix: Square) -> ([f64; BLOCK], Square) {
    const SWEEPS: usize = 30;
    let mut vectors: Square =
        std::array::from_fn(|row| std::array::from_fn(|column| f64::from(u8::from(row == column))));
    for _ in 0..SWEEPS {
        let outside: f64 = (0..BLOCK)
            .flat_map(|row| (0..row).map(move |column| (row, column)))
            .map(|(row, column)| matrix[row][column].powi(2))
            .sum();
        let inside: f64 = (0..BLOCK).map(|at| matrix[at][at].powi(2)).sum();
        if outside <= inside * f64::EPSILON.powi(2) * 1e-4 {
            break;
        }
        for p in 0..BLOCK {
            for q in p + 1..BLOCK {
                rotate(&mut matrix, &mut vectors, p, q);
            }
        }
    }
    let mut order: [usize; BLOCK] = std::array::from_fn(|at| at);
    order.sort_by(|one, other| matrix[*other][*other].total_cmp(&matrix[*one][*one]).then(one.cmp(other)));
    let values = order.map(|at| matrix[at][at]);
    (values, vectors.map(|row| order.map(|at| row[at])))
}

/// One Jacobi rotation, which makes the element (p, q) zero.
fn rotate(matrix: &mut Square, vectors: &mut Square, p: usize, q: usize) {
    let element = f64::midpoint(matrix[p][q], matrix[q][p]);
    if element == 0.0 {
        return;
    }
    let theta = (matrix[q][q] - matrix[p][p]) / (2.0 * element);
    let tangent = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let cosine = tangent.hypot(1.0).recip();
    let sine = tangent * cosine;
    for row in matrix.iter_mut().chain(vectors) {
        (row[p], row[q]) = (cosine * row[p] - sine * row[q], sine * row[p] + cosine * row[q]);
    }
    let (upper, lower) = (matrix[p], matrix[q]);
    matrix[p] = std::array::from_fn(|at| cosine * upper[at] - sine * lower[at]);
    matrix[q] = std::array::from_fn(|at| sine * upper[at] + cosine * lower[at]);
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
        assert!((plane[19][0] - 9.5).abs() < 0.05, "{:?}", plane[19]);
        assert!(plane.iter().all(|at| at[1].abs() < 0.7));
    }

    #[test]
    fn equal_points_lines_and_no_points_have_planes() {
        let (plane, share) = principal_plane(Points::new(&[1.0; 12], 3).unwrap());
        assert!(share == 0.0 && plane == [[0.0; 2]; 4]);
        let (plane, share) = principal_plane(Points::new(&[1.0, 2.0, 6.0], 1).unwrap());
        assert_eq!((plane, share), (vec![[-2.0, 0.0], [-1.0, 0.0], [3.0, 0.0]], 1.0));
        assert_eq!(principal_plane(Points::new(&[], 3).unwrap()), (Vec::new(), 0.0));
    }
}
