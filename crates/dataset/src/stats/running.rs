//! Statistics of a stream of rows, in one pass and bounded memory.
//!
//! Moments are added up in `f64` around the mean of each batch and joined by Chan's rule, so a large mean costs no
//! digits.
//!
//! For quantiles, the distinct values are kept with their numbers. Up to [`MAX_DISTINCT`] of them in a place of the
//! vector the quantiles are exact; then neighbours are joined by dropping the lowest bits of all values, as few as
//! suffice. Values of 32 bits keep about 15 significant bits then, which is a relative error of 2⁻¹⁶. Pictures,
//! integers of few values and episodes shorter than that are always exact.

use super::{FeatureStats, Numbers, QUANTILES};

/// The most distinct values kept for one place of a vector: 1 MiB, and as much again for those not yet sorted.
pub const MAX_DISTINCT: usize = 1 << 16;

/// The statistics so far.
#[derive(Clone, Debug)]
pub struct Running {
    frames: u64,
    places: Vec<Place>,
}

/// The statistics of one place of the vector.
#[derive(Clone, Debug)]
struct Place {
    count: u64,
    mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
    min: f64,
    max: f64,
    distribution: Distribution,
}

/// Values with their numbers.
#[derive(Clone, Debug, Default)]
struct Distribution {
    /// How many low bits of all keys are zero.
    dropped_bits: u32,
    /// In order of key, each once.
    sorted: Vec<(u64, u64)>,
    /// In order of arrival.
    pending: Vec<(u64, u64)>,
}

impl Running {
    /// Nothing yet, of vectors of a width.
    pub fn new(width: usize) -> Running {
        let place = Place {
            count: 0,
            mean: 0.0,
            squares: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            distribution: Distribution::default(),
        };
        Running { frames: 0, places: vec![place; width] }
    }

    /// The length of its vectors.
    pub fn width(&self) -> usize {
        self.places.len()
    }

    /// Adds rows of `f32` that follow each other. What does not fill a row is left out.
    pub fn add_f32(&mut self, rows: &[f32]) {
        let count = rows.len() / self.width().max(1);
        let width = self.width();
        self.add(count as u64, count, |row, place| f64::from(rows[row * width + place]));
    }

    /// Adds rows that stand for a number of frames; `value` gives the number in a row and place.
    pub fn add(&mut self, frames: u64, rows: usize, value: impl Fn(usize, usize) -> f64) {
        self.frames += frames;
        for (at, place) in self.places.iter_mut().enumerate() {
            place.add(rows, |row| (value(row, at), 1));
        }
    }

    /// Adds values with their numbers, the same list of values for all places. For pictures, whose values are few.
    pub fn add_counted(&mut self, frames: u64, values: &[f64], number: impl Fn(usize, usize) -> u64) {
        self.frames += frames;
        for (at, place) in self.places.iter_mut().enumerate() {
            place.add(values.len(), |which| (values[which], number(which, at)));
        }
    }

    /// Adds all that another one has seen. The widths must agree; places that one of them does not have are left out.
    pub fn merge(&mut self, other: &Running) {
        self.frames += other.frames;
        for (place, other) in self.places.iter_mut().zip(&other.places) {
            place.join(other.count, other.mean, other.squares);
            place.min = place.min.min(other.min);
            place.max = place.max.max(other.max);
            place.distribution.merge(&other.distribution);
        }
    }

    /// The statistics; none without a row.
    pub fn stats(&mut self, numbers: Numbers, shape: &[usize]) -> Option<FeatureStats> {
        if self.frames == 0 || self.places.iter().any(|place| place.count == 0) {
            return None;
        }
        let of = |number: fn(&Place) -> f64| self.places.iter().map(number).collect::<Vec<f64>>();
        let (min, max, mean) = (of(|place| place.min), of(|place| place.max), of(|place| place.mean));
        let std = of(|place| (place.squares / place.count as f64).sqrt());
        let quantiles =
            QUANTILES.map(|(_, part)| Some(self.places.iter_mut().map(|place| place.quantile(part)).collect()));
        Some(FeatureStats { numbers, shape: shape.to_vec(), count: Some(self.frames), min, max, mean, std, quantiles })
    }
}

impl Place {
    fn add(&mut self, rows: usize, value: impl Fn(usize) -> (f64, u64)) {
        let (mut count, mut sum) = (0, 0.0);
        for row in 0..rows {
            let (value, number) = value(row);
            if number == 0 {
                continue;
            }
            count += number;
            sum += value * number as f64;
            self.min = self.min.min(value);
            self.max = self.max.max(value);
            self.distribution.push(value, number);
        }
        if count == 0 {
            return;
        }
        let mean = sum / count as f64;
        let (mut squares, mut rest) = (0.0, 0.0);
        for row in 0..rows {
            let (value, number) = value(row);
            let distance = value - mean;
            squares += distance * distance * number as f64;
            rest += distance * number as f64;
        }
        // What rounding left of the mean.
        self.join(count, mean + rest / count as f64, (squares - rest * rest / count as f64).max(0.0));
    }

    /// Chan's rule.
    fn join(&mut self, count: u64, mean: f64, squares: f64) {
        if count == 0 {
            return;
        }
        let together = (self.count + count) as f64;
        let distance = mean - self.mean;
        self.mean += distance * (count as f64 / together);
        self.squares += squares + distance * distance * (self.count as f64 * count as f64 / together);
        self.count += count;
    }

    /// As numpy's `linear`: between the neighbours of place `part × (count − 1)`.
    fn quantile(&mut self, part: f64) -> f64 {
        self.distribution.settle();
        let place = part * (self.count - 1) as f64;
        let below = place.floor() as u64;
        let mut passed = 0;
        let mut at = 0;
        let sorted = &self.distribution.sorted;
        while at + 1 < sorted.len() && passed + sorted[at].1 <= below {
            passed += sorted[at].1;
            at += 1;
        }
        let Some((key, number)) = sorted.get(at) else { return self.mean };
        // Joined values stand for the middle of their range, but none lies outside all values.
        let value = |key: u64| value_of(key + ((1 << self.distribution.dropped_bits) >> 1)).clamp(self.min, self.max);
        let low = value(*key);
        let high = match sorted.get(at + 1) {
            Some((next, _)) if passed + number <= below + 1 => value(*next),
            _ => low,
        };
        low + (high - low) * (place - below as f64)
    }
}

impl Distribution {
    fn push(&mut self, value: f64, number: u64) {
        let key = key_of(value) >> self.dropped_bits << self.dropped_bits;
        match self.pending.last_mut() {
            Some((last, count)) if *last == key => *count += number,
            _ => self.pending.push((key, number)),
        }
        if self.pending.len() >= MAX_DISTINCT {
            self.settle();
        }
    }

    fn merge(&mut self, other: &Distribution) {
        if other.dropped_bits > self.dropped_bits {
            self.settle();
            self.drop_bits(other.dropped_bits);
        }
        let bits = self.dropped_bits;
        for (key, number) in other.sorted.iter().chain(&other.pending) {
            self.pending.push((key >> bits << bits, *number));
            if self.pending.len() >= MAX_DISTINCT {
                self.settle();
            }
        }
    }

    /// Sorts what is pending in; joins neighbours as long as there are too many values.
    fn settle(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let bits = self.dropped_bits;
        for (key, _) in &mut self.pending {
            *key = *key >> bits << bits;
        }
        self.pending.sort_unstable();
        let old = std::mem::take(&mut self.sorted);
        let mut old = old.into_iter().peekable();
        let mut new = std::mem::take(&mut self.pending).into_iter().peekable();
        loop {
            let next = match (old.peek(), new.peek()) {
                (Some(one), Some(other)) if one.0 <= other.0 => old.next(),
                (_, Some(_)) => new.next(),
                (_, None) => old.next(),
            };
            let Some((key, number)) = next else { break };
            match self.sorted.last_mut() {
                Some((last, count)) if *last == key => *count += number,
                _ => self.sorted.push((key, number)),
            }
        }
        while self.sorted.len() > MAX_DISTINCT {
            self.drop_bits(self.dropped_bits + 1);
        }
    }

    fn drop_bits(&mut self, bits: u32) {
        self.dropped_bits = bits;
        for (key, _) in &mut self.sorted {
            *key = *key >> bits << bits;
        }
        self.sorted.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
    }
}

const SIGN: u64 = 1 << 63;

/// A number whose order is that of the values.
fn key_of(value: f64) -> u64 {
    // Minus zero is zero.
    let bits = (value + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn value_of(key: u64) -> f64 {
    f64::from_bits(if key & SIGN == 0 { !key } else { key & !SIGN })
}
