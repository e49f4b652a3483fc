//! The one loop that everything here spends its time in: squared distances between rows and packed points.
//!
//! ‖x − y‖² is summed as differences, not expanded into ‖x‖² − 2x·y + ‖y‖²: the expansion cancels when points are close
//! together and far from the origin, and on processors that add and multiply in different units the subtraction is free.
//!
//! Points are packed into panels of [`PANEL`] points, coordinate by coordinate: a panel is `[d, PANEL]`, so that a vector
//! holds one coordinate of several points and no sum ever runs across a vector. A block of four rows is held against a
//! panel at a time, which keeps eight sums of two AVX2 vectors in flight. The vector instructions are those of the
//! processor that the program runs on, found at run time by `pulp`; there is no `unsafe` here.
//!
//! For one coordinate type the relative error of a distance is at most [`margin`].

use pulp::{Arch, Simd, WithSimd};

/// Points in a panel.
pub(crate) const PANEL: usize = 16;

/// Rows that are held against a panel together.
const ROWS: usize = 4;

/// Points packed for distances: `[panels, width, PANEL]`. Places past the last point hold infinity, so that their distance
/// to anything is infinite.
#[derive(Clone, Debug)]
pub(crate) struct Panels<T> {
    values: Vec<T>,
    width: usize,
}

impl<T: Real> Panels<T> {
    /// Packs points, row by row `[n, width]`.
    pub(crate) fn new(rows: &[T], width: usize) -> Panels<T> {
        let count = rows.len() / width;
        let mut values = vec![T::INFINITY; count.div_ceil(PANEL) * PANEL * width];
        for (panel, rows) in values.chunks_exact_mut(PANEL * width).zip(rows.chunks(PANEL * width)) {
            for (lane, row) in rows.chunks_exact(width).enumerate() {
                for (at, &value) in row.iter().enumerate() {
                    panel[at * PANEL + lane] = value;
                }
            }
        }
        Panels { values, width }
    }

    /// How many panels there are.
    pub(crate) fn count(&self) -> usize {
        self.values.len() / (PANEL * self.width)
    }

    /// One panel, `[width, PANEL]`.
    pub(crate) fn panel(&self, at: usize) -> &[T] {
        let size = PANEL * self.width;
        &self.values[at * size..][..size]
    }

    /// Puts the point at place `from` where the point at place `to` was; `from` then holds infinity.
    pub(crate) fn move_point(&mut self, from: usize, to: usize) {
        let size = PANEL * self.width;
        let (source, target) = (from / PANEL * size + from % PANEL, to / PANEL * size + to % PANEL);
        for at in 0..self.width {
            self.values[target + at * PANEL] = self.values[source + at * PANEL];
            self.values[source + at * PANEL] = T::INFINITY;
        }
    }

    /// Calls `visit` with row, panel and the squared distances between them, panel by panel and in it row by row.
    ///
    /// Rows should be few enough to stay in the cache, 32 to 256, as they are read again for every panel.
    ///
    /// # Shapes
    /// `rows` is `[m, width]`.
    pub(crate) fn distances(&self, rows: &[T], visit: impl FnMut(usize, usize, &[T; PANEL])) {
        Arch::new().dispatch(Pass { rows, panels: self, count: self.count(), wanted: |_| true, visit });
    }

    /// Calls `visit` with panel and the squared distances of one row to it, for those of the first `count` panels that are
    /// `wanted` when their turn comes.
    pub(crate) fn distances_from(
        &self,
        row: &[T],
        count: usize,
        wanted: impl FnMut(usize) -> bool,
        mut visit: impl FnMut(usize, &[T; PANEL]),
    ) {
        let visit = |_, panel, lanes: &[T; PANEL]| visit(panel, lanes);
        Arch::new().dispatch(Pass { rows: row, panels: self, count: count.min(self.count()), wanted, visit });
    }
}

/// The relative error that a squared distance of `width` coordinates can have in single precision, generously.
pub(crate) fn margin(width: usize) -> f32 {
    (width as f32 + 8.0) * f32::EPSILON
}

/// What the loop needs of a type of coordinate.
pub(crate) trait Real: Copy + Send + Sync + 'static {
    /// Not a point.
    const INFINITY: Self;
    /// Zero.
    const ZERO: Self;
    /// A vector of them.
    type Vector<S: Simd>: Copy;
    fn vectors<S: Simd>(values: &[Self]) -> &[Self::Vector<S>];
    fn vectors_mut<S: Simd>(values: &mut [Self]) -> &mut [Self::Vector<S>];
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    /// (a − b)² + sum.
    fn add_square<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>, sum: Self::Vector<S>) -> Self::Vector<S>;
}

macro_rules! real {
    ($type:ident, $vector:ident, $view:ident, $view_mut:ident, $splat:ident, $sub:ident, $mul_add:ident) => {
        impl Real for $type {
            const INFINITY: $type = $type::INFINITY;
            const ZERO: $type = 0.0;
            type Vector<S: Simd> = S::$vector;
            #[inline(always)]
            fn vectors<S: Simd>(values: &[$type]) -> &[S::$vector] {
                S::$view(values).0
            }
            #[inline(always)]
            fn vectors_mut<S: Simd>(values: &mut [$type]) -> &mut [S::$vector] {
                S::$view_mut(values).0
            }
            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: $type) -> S::$vector {
                simd.$splat(value)
            }
            #[inline(always)]
            fn add_square<S: Simd>(simd: S, a: S::$vector, b: S::$vector, sum: S::$vector) -> S::$vector {
                let difference = simd.$sub(a, b);
                simd.$mul_add(difference, difference, sum)
            }
        }
    };
}

real!(f32, f32s, as_simd_f32s, as_mut_simd_f32s, splat_f32s, sub_f32s, mul_add_e_f32s);
real!(f64, f64s, as_simd_f64s, as_mut_simd_f64s, splat_f64s, sub_f64s, mul_add_e_f64s);

struct Pass<'a, T, W, F> {
    rows: &'a [T],
    panels: &'a Panels<T>,
    count: usize,
    wanted: W,
    visit: F,
}

impl<T: Real, W: FnMut(usize) -> bool, F: FnMut(usize, usize, &[T; PANEL])> WithSimd for Pass<'_, T, W, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // The number of vectors in a panel is a property of the processor; the blocks keep their sums in registers.
        match PANEL / (size_of::<T::Vector<S>>() / size_of::<T>()) {
            1 => self.run::<S, 1, 8>(simd),
            2 => self.run::<S, 2, ROWS>(simd),
            4 => self.run::<S, 4, 2>(simd),
            8 => self.run::<S, 8, 1>(simd),
            _ => self.run::<S, PANEL, 1>(simd),
        }
    }
}

impl<T: Real, W: FnMut(usize) -> bool, F: FnMut(usize, usize, &[T; PANEL])> Pass<'_, T, W, F> {
    #[inline(always)]
    fn run<S: Simd, const VECTORS: usize, const ROWS: usize>(mut self, simd: S) {
        let width = self.panels.width;
        let count = self.rows.len() / width;
        for at in 0..self.count {
            if !(self.wanted)(at) {
                continue;
            }
            let panel = self.panels.panel(at);
            let mut row = 0;
            while row + ROWS <= count {
                let rows = std::array::from_fn(|ahead| &self.rows[(row + ahead) * width..][..width]);
                let sums = block::<S, T, VECTORS, ROWS>(simd, rows, panel);
                for (ahead, sums) in sums.iter().enumerate() {
                    (self.visit)(row + ahead, at, sums);
                }
                row += ROWS;
            }
            for row in row..count {
                let [sums] = block::<S, T, VECTORS, 1>(simd, [&self.rows[row * width..][..width]], panel);
                (self.visit)(row, at, &sums);
            }
        }
    }
}

/// The squared distances of a few rows to the points of one panel.
#[inline(always)]
fn block<S: Simd, T: Real, const VECTORS: usize, const ROWS: usize>(
    simd: S,
    rows: [&[T]; ROWS],
    panel: &[T],
) -> [[T; PANEL]; ROWS] {
    let (panel, _) = T::vectors::<S>(panel).as_chunks::<VECTORS>();
    let mut sums = [[T::splat(simd, T::ZERO); VECTORS]; ROWS];
    let width = panel.len();
    let rows = rows.map(|row| &row[..width]);
    for at in 0..width {
        let point = &panel[at];
        for (sums, row) in sums.iter_mut().zip(&rows) {
            let value = T::splat(simd, row[at]);
            for (sum, point) in sums.iter_mut().zip(point) {
                *sum = T::add_square(simd, value, *point, *sum);
            }
        }
    }
    let mut out = [[T::ZERO; PANEL]; ROWS];
    for (out, sums) in out.iter_mut().zip(&sums) {
        T::vectors_mut::<S>(out).copy_from_slice(sums);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::points::exact_square;

    proptest! {
        #[test]
        fn distances_are_those_of_the_plain_sum(
            width in 1usize..40,
            rows in 0usize..11,
            points in 0usize..50,
            values in prop::collection::vec(-3.0f32..3.0, 61 * 40),
        ) {
            let (rows, rest) = values.split_at(rows * width);
            let points = &rest[..points * width];
            let panels = Panels::new(points, width);
            let mut seen = vec![0; rows.len() / width * panels.count()];
            panels.distances(rows, |row, panel, lanes| {
                seen[row * panels.count() + panel] += 1;
                for (lane, &found) in lanes.iter().enumerate() {
                    let place = panel * PANEL + lane;
                    if place < points.len() / width {
                        let wanted = exact_square(&rows[row * width..][..width], &points[place * width..][..width]);
                        assert!((f64::from(found) - wanted).abs() <= f64::from(margin(width)) * wanted);
                    } else {
                        assert_eq!(found, f32::INFINITY);
                    }
                }
            });
            prop_assert!(seen.iter().all(|&times| times == 1));
            let double: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
            Panels::new(&double[..points.len()], width).distances(&double[..rows.len()], |row, panel, lanes| {
                for (lane, &found) in lanes.iter().enumerate().take(points.len() / width - (panel * PANEL)) {
                    let (a, b) = (&values[row * width..], &values[(panel * PANEL + lane) * width..]);
                    let wanted = exact_square(&a[..width], &b[..width]);
                    assert!((found - wanted).abs() <= 1e-13 * wanted, "{found} {wanted}");
                }
            });
        }
    }

    #[test]
    fn a_moved_point_takes_the_place_of_another() {
        let rows: Vec<f32> = (0..40).map(|value| value as f32).collect();
        let mut panels = Panels::new(&rows, 2);
        panels.move_point(19, 3);
        panels.distances(&[38.0, 39.0], |_, panel, lanes| {
            let place = if panel == 0 { 3 } else { 19 - PANEL };
            assert_eq!(lanes[place], if panel == 0 { 0.0 } else { f32::INFINITY });
        });
    }
}
