//! Whether numbers are numbers that a robot can have: finite, and of a size that goes with the rest of their column.
//!
//! One rule serves [`Dataset::check_numbers`], which every training asks, and [`validate`](fn@crate::validate):
//!
//! - a value that is NaN or infinite is refused;
//! - a value is refused if its magnitude is at least 2²⁰ (a million) times that of half of the values of its dimension. Values
//!   below 2²⁰ are always accepted, so a gripper that is zero most of the time may well be one;
//! - a value of 2⁶³ or more is refused whatever the others are: its square is close to the end of single precision.
//!
//! Magnitudes are compared as binary exponents. The median of the exponents is exact, needs one pass and little memory, and
//! is not moved by the garbage itself. Reading with the rule costs nothing but reading: as long as all values are below 2²⁰,
//! which is nearly always, one comparison for each value is all that happens ([`Dataset::check_numbers`] measures gigabytes a
//! second, see its test), and exponents are counted only where one is not.

use rayon::prelude::*;

use crate::fault::{Error, Fault};
use crate::open::Dataset;

/// Binary exponent below which every value is accepted, and by which a value may exceed the median of its dimension.
const MARGIN: usize = 20;

/// Binary exponent from which every value is refused.
const MOST: usize = 63;

/// Values that are compared in one go.
const CHUNK: usize = 1 << 14;

/// A value and where it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Found {
    /// The data file, by its place among all.
    pub(crate) file: usize,
    /// The row, in the file.
    pub(crate) row: usize,
    /// The place in the row.
    pub(crate) dimension: usize,
    /// The value.
    pub(crate) value: f64,
    /// In how many rows of the file there is such a value.
    pub(crate) count: usize,
}

impl Dataset {
    /// Checks every number that training uses: states, actions and rewards.
    ///
    /// # Errors
    /// All values that are not finite or implausible, counted for each file and dimension. Of a joined dataset, the parts are
    /// checked and not the whole, whose rows lie in no file.
    pub fn check_numbers(&self) -> Result<(), Error> {
        let mut faults = Vec::new();
        let columns = self.columns();
        let matrices = [(&self.roles().state, &columns.states), (&self.roles().action, &columns.actions)];
        for (key, matrix) in matrices {
            self.check_column(key, &matrix.values, matrix.width, &mut faults);
        }
        if let (Some(key), Some(rewards)) = (&self.roles().reward, &columns.rewards) {
            self.check_column(key, rewards, 1, &mut faults);
        }
        Error::of(faults).map_or(Ok(()), Err)
    }

    fn check_column(&self, key: &str, values: &[f32], width: usize, faults: &mut Vec<Fault>) {
        if all_small(values) {
            return;
        }
        let mut magnitudes = Magnitudes::new(width);
        for (file, rows) in self.files().iter().map(|file| &file.rows).enumerate() {
            let own = &values[rows.start * width..rows.end * width];
            if let Some(found) = not_finite(own.iter().map(|value| f64::from(*value)), width) {
                faults.push(self.fault(key, width, &Found { file, ..found }, None));
            }
            magnitudes.add(own.iter().map(|value| f64::from(*value)), file, 0);
        }
        faults
            .extend(magnitudes.implausible().iter().map(|(found, usual)| self.fault(key, width, found, Some(*usual))));
    }

    fn fault(&self, key: &str, width: usize, found: &Found, usual: Option<f64>) -> Fault {
        let file = &self.files()[found.file];
        let row = file.rows.start + found.row;
        let episode = self.episodes().partition_point(|episode| episode.frames.end <= row);
        let names = self.info().feature(key).and_then(|feature| feature.dimension_names());
        let column = column_name(key, width, found.dimension, names.as_deref());
        fault(file.path.clone(), column, Some(episode), found, usual)
    }
}

/// The fault of a value: of one that is not finite without its usual size, else of one that is implausible beside it.
pub(crate) fn fault(file: String, column: String, episode: Option<usize>, found: &Found, usual: Option<f64>) -> Fault {
    let Found { row, value, count, .. } = *found;
    match usual {
        None => Fault::NotFinite { file, column, row, episode, value, count },
        Some(usual) => Fault::Implausible { file, column, row, episode, value, usual, count },
    }
}

/// A dimension of a column in words: by its name, or by its place where there is none.
pub(crate) fn column_name(key: &str, width: usize, dimension: usize, names: Option<&[String]>) -> String {
    match names.and_then(|names| names.get(dimension)) {
        Some(name) if width > 1 || name != key => format!("{key}.{name}"),
        None if width > 1 => format!("{key}[{dimension}]"),
        _ => key.to_owned(),
    }
}

/// Whether all values are finite and below 2²⁰.
fn all_small(values: &[f32]) -> bool {
    // Without their signs, bits of floating-point numbers are ordered as the numbers are, with NaN above all. The largest of
    // integers is found for many of them at once, and without stopping.
    const MAGNITUDE: i32 = i32::MAX;
    const SMALL: i32 = ((127 + MARGIN) << 23) as i32;
    let bits = |value: &f32| (value.to_bits() as i32) & MAGNITUDE;
    let largest = |chunk: &[f32]| chunk.iter().map(bits).fold(0, i32::max);
    values.par_chunks(CHUNK).all(|chunk| largest(chunk) < SMALL)
}

/// The first value that is not finite, and in how many rows there is one. Its file is 0.
pub(crate) fn not_finite(values: impl Iterator<Item = f64>, width: usize) -> Option<Found> {
    let width = width.max(1);
    let mut first: Option<Found> = None;
    let mut last_row = 0;
    for (at, value) in values.enumerate().filter(|(_, value)| !value.is_finite()) {
        let (row, dimension) = (at / width, at % width);
        match &mut first {
            None => first = Some(Found { file: 0, row, dimension, value, count: 1 }),
            Some(found) if row != last_row => found.count += 1,
            Some(_) => {}
        }
        last_row = row;
    }
    first
}

/// How often each magnitude occurs in each dimension of a column, and where it occurs first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Magnitudes {
    dimensions: Vec<Dimension>,
}

#[derive(Clone, Debug, PartialEq)]
struct Dimension {
    /// How many values there are with each binary exponent: those below 1 at 0, those of [1, 2) at 1, and so on.
    counts: [u64; MOST + 2],
    /// Values of at least 2²⁰, by file and exponent: the first of them and how many there are.
    large: Vec<(usize, Found)>,
}

impl Default for Dimension {
    fn default() -> Dimension {
        Dimension { counts: [0; MOST + 2], large: Vec::new() }
    }
}

impl Magnitudes {
    /// Those of no rows.
    pub(crate) fn new(width: usize) -> Magnitudes {
        Magnitudes { dimensions: vec![Dimension::default(); width.max(1)] }
    }

    /// Adds rows of a file, of which the first has the number `first_row`. Values that are not finite are left out.
    pub(crate) fn add(&mut self, values: impl Iterator<Item = f64>, file: usize, first_row: usize) {
        let width = self.dimensions.len();
        for (at, value) in values.enumerate().filter(|(_, value)| value.is_finite()) {
            let place = exponent(value);
            let dimension = &mut self.dimensions[at % width];
            dimension.counts[place] += 1;
            if place > MARGIN {
                let found = Found { file, row: first_row + at / width, dimension: at % width, value, count: 1 };
                dimension.note(place, found);
            }
        }
    }

    /// Adds those of other rows; nothing happens if their widths differ.
    pub(crate) fn merge(&mut self, more: &Magnitudes) {
        if self.dimensions.len() != more.dimensions.len() {
            return;
        }
        for (own, more) in self.dimensions.iter_mut().zip(&more.dimensions) {
            own.counts.iter_mut().zip(&more.counts).for_each(|(own, more)| *own += more);
            more.large.iter().for_each(|(place, found)| own.note(*place, *found));
        }
    }

    /// The values that the rule refuses, for each file and dimension the first of them with a count, and the power of two that
    /// half of the values of its dimension stay below.
    pub(crate) fn implausible(&self) -> Vec<(Found, f64)> {
        let mut all = Vec::new();
        for dimension in &self.dimensions {
            let median = dimension.median();
            let limit = (median + MARGIN).min(MOST);
            let mut refused: Vec<Found> = Vec::new();
            for (_, found) in dimension.large.iter().filter(|(place, _)| *place > limit) {
                match refused.iter_mut().find(|known| known.file == found.file) {
                    Some(known) => {
                        let count = known.count + found.count;
                        *known = Found { count, ..if found.row < known.row { *found } else { *known } };
                    }
                    None => refused.push(*found),
                }
            }
            all.extend(refused.into_iter().map(|found| (found, 2_f64.powi(median as i32))));
        }
        all.sort_by_key(|(found, _)| (found.file, found.row, found.dimension));
        all
    }
}

impl Dimension {
    /// Counts a large value.
    fn note(&mut self, place: usize, found: Found) {
        match self.large.iter_mut().find(|(known, it)| *known == place && it.file == found.file) {
            Some((_, known)) => {
                let count = known.count + found.count;
                *known = Found { count, ..if found.row < known.row { found } else { *known } };
            }
            None => self.large.push((place, found)),
        }
    }

    /// The place of the median among the counts.
    fn median(&self) -> usize {
        let half = self.counts.iter().sum::<u64>().div_ceil(2);
        let mut sum = 0;
        let reached = |count: &u64| {
            sum += count;
            sum >= half
        };
        self.counts.iter().position(reached).unwrap_or(0)
    }
}

/// The place of a value among the counts: 0 below 1, then one more for each doubling.
fn exponent(value: f64) -> usize {
    // The biased exponent of 1.0 is 1023.
    let biased = (value.abs().to_bits() >> 52) as usize;
    biased.saturating_sub(1022).min(MOST + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn magnitudes(width: usize, values: &[f64]) -> Vec<(Found, f64)> {
        let mut found = Magnitudes::new(width);
        found.add(values.iter().copied(), 0, 0);
        found.implausible()
    }

    #[test]
    fn a_value_is_compared_with_its_own_dimension() {
        // A gripper that is mostly zero, and encoder ticks beside it.
        let mut values: Vec<f64> = (0..100).flat_map(|row| [f64::from(row == 7), 2e6 + f64::from(row)]).collect();
        assert_eq!(magnitudes(2, &values), []);
        values[2 * 60] = -6.6e22;
        values[2 * 61] = 3e6;
        values[2 * 62 + 1] = 3e11;
        let found = magnitudes(2, &values);
        assert_eq!(found.len(), 1, "{found:?}");
        let (Found { row, dimension, value, count, .. }, usual) = found[0];
        assert_eq!((row, dimension, value, count, usual), (60, 0, -6.6e22, 2, 1.0));
        values[2 * 63 + 1] = 3e13;
        assert_eq!(magnitudes(2, &values)[1].0.dimension, 1);
    }

    #[test]
    fn nothing_is_plausible_near_the_end_of_single_precision() {
        let values = vec![1e19; 10];
        assert_eq!(magnitudes(1, &values)[0].0.count, 10);
        assert_eq!(magnitudes(1, &[1e18; 10]), [], "nanoseconds are odd, but they are what the column has");
    }

    #[test]
    fn files_are_counted_each_by_itself() {
        let mut all = Magnitudes::new(1);
        for file in 0..3 {
            let mut own = Magnitudes::new(1);
            own.add([0.5, 0.1, if file == 1 { 1e9 } else { 0.0 }].into_iter(), file, 40);
            all.merge(&own);
        }
        let found = all.implausible();
        assert_eq!(found.iter().map(|(it, _)| (it.file, it.row, it.count)).collect::<Vec<_>>(), [(1, 42, 1)]);
    }

    #[test]
    fn rows_that_are_not_finite_are_counted_once() {
        let values = [0.0, 1.0, f64::NAN, f64::NEG_INFINITY, 2.0, 3.0, 4.0, f64::INFINITY];
        let found = not_finite(values.into_iter(), 2).unwrap();
        assert_eq!((found.row, found.dimension, found.count), (1, 0, 2));
        assert!(found.value.is_nan() && not_finite([1.0].into_iter(), 1).is_none());
    }

    #[test]
    fn small_values_take_one_comparison_each() {
        let mut values = vec![-0.5_f32; 3 * CHUNK + 5];
        assert!(all_small(&values) && all_small(&[]));
        for bad in [f32::NAN, f32::INFINITY, -2e6] {
            values[3 * CHUNK + 4] = bad;
            assert!(!all_small(&values));
        }
    }
}
