//! Points as everything in this crate takes them: a borrowed row-major matrix `[n, d]` that is known to be sound.

use crate::error::{ClusteringError, MAX_MAGNITUDE};

/// The label of a point that belongs to no cluster.
pub const NOISE: i64 = -1;

/// The most points of one clustering: indices are stored in 32 bits.
pub const MAX_POINTS: usize = u32::MAX as usize;

/// A view of `[n, d]` points, row by row. Every coordinate is finite and within [`MAX_MAGNITUDE`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Points<'a> {
    values: &'a [f32],
    width: usize,
}

impl<'a> Points<'a> {
    /// Looks at every value once.
    ///
    /// # Shapes
    /// `values` is `[n, width]`, row by row; n may be 0.
    ///
    /// # Errors
    /// On a width of 0, a last row that is not whole, more than [`MAX_POINTS`] rows, and values that are not finite.
    pub fn new(values: &'a [f32], width: usize) -> Result<Points<'a>, ClusteringError> {
        if width == 0 {
            return Err(ClusteringError::NoWidth);
        }
        if !values.len().is_multiple_of(width) {
            return Err(ClusteringError::RaggedPoints { found: values.len(), width });
        }
        if values.len() / width > MAX_POINTS {
            return Err(ClusteringError::TooManyPoints { found: values.len() / width, limit: MAX_POINTS });
        }
        // A whole block is tested without leaving it early, which the compiler turns into vector comparisons; NaN fails
        // the comparison as well.
        let sound = |block: &[f32]| block.iter().fold(true, |sound, value| sound & (value.abs() <= MAX_MAGNITUDE));
        if values.chunks(4096).all(sound) {
            return Ok(Points { values, width });
        }
        let found = values.iter().position(|value| !sound(&[*value])).unwrap_or_default();
        Err(ClusteringError::BadValue { point: found / width, coordinate: found % width, value: values[found] })
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        self.values.len() / self.width
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// How many coordinates each has.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All coordinates, row by row.
    pub fn values(&self) -> &'a [f32] {
        self.values
    }

    /// One point.
    pub fn row(&self, point: usize) -> &'a [f32] {
        &self.values[point * self.width..][..self.width]
    }

    /// The points one by one.
    pub fn rows(&self) -> std::slice::ChunksExact<'a, f32> {
        self.values.chunks_exact(self.width)
    }
}

/// ‖a − b‖², summed in double precision and in order, as reference implementations do.
pub(crate) fn exact_square(a: &[f32], b: &[f32]) -> f64 {
    let mut sum = 0.0;
    for (&a, &b) in a.iter().zip(b) {
        let difference = f64::from(a) - f64::from(b);
        sum += difference * difference;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_matrix_is_refused() {
        assert_eq!(Points::new(&[1.0], 0), Err(ClusteringError::NoWidth));
        assert_eq!(Points::new(&[1.0; 5], 2), Err(ClusteringError::RaggedPoints { found: 5, width: 2 }));
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e16] {
            let values = [0.0, 1.0, 2.0, bad];
            let found = Points::new(&values, 2);
            assert!(matches!(found, Err(ClusteringError::BadValue { point: 1, coordinate: 1, .. })), "{found:?}");
        }
    }

    #[test]
    fn rows_are_slices_of_the_values() {
        let values = [1.0, 2.0, 3.0, 4.0];
        let points = Points { values: &values, width: 2 };
        assert_eq!((points.len(), points.row(1)), (2, &values[2..]));
        assert!(points.rows().eq([&values[..2], &values[2..]]));
        assert!(Points::new(&[], 3).is_ok_and(|points| points.is_empty()));
    }
}
