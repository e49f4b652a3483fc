//! Optimal partitioning of a stretch.
//!
//! With F(e) the least cost of the samples before e, F(e) = min over s of F(s) + cost(s, e) + penalty. For each e the starts
//! are visited backwards from e, so that the moments of a segment grow by one sample at a time: O(d) for each pair of start
//! and end, O(n · m · d) for n samples, of which m are in the longest shape, and d columns. Starts before that can only be
//! constants, whose cost comes from prefix sums and which are pruned as PELT does it.

use std::ops::Range;

use super::confidence::Evidence;
use super::shapes::{LANES, Lanes, Moments, Shapes, grow, total};
use super::signals::stride;
use super::{Model, SegmentConfig};

/// The speed of a rest, as a share of that of the motions around it.
const STILL: f64 = 0.4;

/// The cosine of the angle between two motions of one direction.
const ALIKE: f64 = 0.9;

/// Samples on either side of a cut.
const MOMENT: usize = 2;

/// A segment of a stretch.
pub(super) struct Part {
    /// Its rows of the stretch.
    pub(super) rows: Range<usize>,
    /// What speaks for the cut that it starts at; none at the start of the stretch.
    pub(super) evidence: Option<Evidence>,
}

/// A stretch, averaged over several rows each.
pub(super) struct Samples {
    /// Rows of the stretch, and of one sample.
    rows: usize,
    stride: usize,
    /// Seconds of one sample.
    seconds: f64,
    count: usize,
    /// Columns, and how many lanes hold them.
    columns: usize,
    width: usize,
    /// `[count, width]`.
    values: Vec<Lanes>,
    /// `[count + 1, width]`: Σ of values before each sample.
    sums: Vec<Lanes>,
    /// `[count + 1]`: Σ of squares, over all columns.
    squares: Vec<f64>,
}

impl Samples {
    pub(super) fn new(columns: &[Vec<f64>], stretch: &Range<usize>, fps: f64) -> Samples {
        let stride = stride(fps);
        let (rows, width) = (stretch.len(), columns.len().div_ceil(LANES));
        let count = rows.div_ceil(stride);
        let mut values = vec![[0.0; LANES]; count * width];
        let mut sums = vec![[0.0; LANES]; (count + 1) * width];
        let mut squares = vec![0.0; count + 1];
        for at in 0..count {
            let own = stretch.start + at * stride..(stretch.start + (at + 1) * stride).min(stretch.end);
            let mut square = 0.0;
            for (column, rows) in columns.iter().enumerate() {
                let (place, lane) = (column / LANES, column % LANES);
                let value = rows[own.clone()].iter().sum::<f64>() / own.len() as f64;
                values[at * width + place][lane] = value;
                sums[(at + 1) * width + place][lane] = sums[at * width + place][lane] + value;
                square += value * value;
            }
            squares[at + 1] = squares[at] + square;
        }
        let seconds = stride as f64 / fps;
        Samples { rows, stride, seconds, count, columns: columns.len(), width, values, sums, squares }
    }

    /// The best segments, given the variance of the noise. Ranges of rows of the stretch.
    pub(super) fn partition(&self, noise: f64, config: &SegmentConfig) -> Vec<Part> {
        let samples = |seconds: f64| (seconds / self.seconds).round();
        let least = (samples(config.least) as usize).max(1);
        if self.count < 2 * least {
            return vec![Part { rows: 0..self.rows, evidence: None }];
        }
        // What the best of `count` cuts saves in noise alone: 2 ln n of the variance, in every column.
        let saved = 2.0 * (self.count as f64).ln() * noise * self.seconds;
        let penalty = config.penalty + config.noise * saved;
        let longest = match config.model {
            Model::ConstantOrBell => (samples(config.longest_bell) as usize).min(self.count),
            Model::Constant => 0,
        };
        let shapes = Shapes::new(longest, config.skew * penalty / self.seconds);
        let cuts = pulp::Arch::new().dispatch(|| self.cuts(penalty, least, &shapes, config.prune));
        let cuts = self.without_hesitations(cuts, config);
        let row = |sample: usize| (sample * self.stride).min(self.rows);
        let evidence = |at: usize| {
            let (before, cut, after) = (cuts[at.checked_sub(1)?], cuts[at], cuts[at + 1]);
            let cost = |start: usize, end: usize| self.cost(start, end, &shapes);
            let (whole, parts) = (cost(before, after), cost(before, cut) + cost(cut, after));
            Some(Evidence {
                rise: (whole - parts) / penalty.max(f64::MIN_POSITIVE),
                left: parts / ((after - before) as f64 * self.seconds),
            })
        };
        let part = |at: usize| Part { rows: row(cuts[at])..row(cuts[at + 1]), evidence: evidence(at) };
        (0..cuts.len() - 1).map(part).collect()
    }

    /// The samples at which the best segments begin, and the end.
    #[inline(always)]
    fn cuts(&self, penalty: f64, least: usize, shapes: &Shapes, prune: bool) -> Vec<usize> {
        let mut best = vec![f64::INFINITY; self.count + 1];
        let mut from = vec![0; self.count + 1];
        best[0] = -penalty;
        // Starts of segments that are longer than a shape, each with the end from which on it cannot win: a start that loses
        // at `end` by the penalty loses to a cut at `end` ever after, but only once a segment that begins there is long
        // enough.
        let mut starts: Vec<(usize, usize)> = Vec::new();
        let mut moments: Vec<Moments> = vec![[[0.0; LANES]; 5]; self.width];
        for end in least..=self.count {
            let shaped = end.saturating_sub(shapes.longest().max(least - 1));
            if let Some(passed) = shaped.checked_sub(1).filter(|start| best[*start].is_finite()) {
                starts.push((passed, usize::MAX));
            }
            starts.retain(|&(_, dead)| end < dead);
            let mut winner = (f64::INFINITY, 0);
            for &(start, _) in &starts {
                let total = best[start] + self.constant(start, end) + penalty;
                winner = if total < winner.0 { (total, start) } else { winner };
            }
            moments.fill([[0.0; LANES]; 5]);
            for start in (shaped..end).rev() {
                if shapes.longest() > 0 {
                    grow(&mut moments, &self.values[start * self.width..][..self.width], end - 1 - start);
                }
                if end - start < least || !best[start].is_finite() {
                    continue;
                }
                let shape = shapes.explained(end - start, &moments);
                let constant = self.constant(start, end);
                let energy = self.squares[end] - self.squares[start];
                let total = best[start] + constant.min((energy - shape).max(0.0) * self.seconds) + penalty;
                winner = if total <= winner.0 { (total, start) } else { winner };
            }
            (best[end], from[end]) = winner;
            if prune {
                // `best[end]` is final, so what loses now loses then. The margin keeps rounding from deciding.
                for (start, dead) in starts.iter_mut().filter(|(_, dead)| *dead == usize::MAX) {
                    if best[*start] + self.constant(*start, end) > best[end] + 1e-9 {
                        *dead = end + least;
                    }
                }
            }
        }
        let mut cuts = vec![self.count];
        while let Some(&end) = cuts.last().filter(|end| **end > 0) {
            cuts.push(from[end]);
        }
        cuts.reverse();
        cuts
    }

    /// Drops cuts at which a motion comes to rest and goes on in the same direction: those around a short rest, and those in
    /// one that is too short to be a segment.
    fn without_hesitations(&self, cuts: Vec<usize>, config: &SegmentConfig) -> Vec<usize> {
        if config.hesitation == 0.0 {
            return cuts;
        }
        let axes = self.columns - usize::from(config.speed_weight > 0.0);
        let mean = |range: Range<usize>| -> Vec<f64> {
            let (before, after) = (&self.sums[range.start * self.width..], &self.sums[range.end * self.width..]);
            let of = |sums: &[Lanes], column: usize| sums[column / LANES][column % LANES];
            (0..axes).map(|column| (of(after, column) - of(before, column)) / range.len() as f64).collect()
        };
        let dot = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
        let goes_on = |motion: Range<usize>, rest: Range<usize>, next: Range<usize>| {
            let (motion, rest, next) = (mean(motion), mean(rest), mean(next));
            let size = dot(&motion, &motion).sqrt() * dot(&next, &next).sqrt();
            dot(&rest, &rest) < STILL * STILL * size && dot(&motion, &next) > ALIKE * size
        };
        let around = |cut: usize| cut.saturating_sub(MOMENT)..(cut + MOMENT).min(self.count);
        let mut kept: Vec<usize> = Vec::with_capacity(cuts.len());
        for (at, &cut) in cuts.iter().enumerate() {
            let Some(&end) = cuts.get(at + 1) else {
                kept.push(cut);
                break;
            };
            match kept[..] {
                [.., before] if goes_on(before..cut, around(cut), cut..end) => continue,
                [.., before, rest]
                    if (cut - rest) as f64 * self.seconds <= config.hesitation
                        && goes_on(before..rest, rest..cut, cut..end) =>
                {
                    kept.pop();
                }
                _ => kept.push(cut),
            }
        }
        kept
    }

    /// The squared residual of one velocity, times seconds.
    #[inline(always)]
    fn constant(&self, start: usize, end: usize) -> f64 {
        let (before, after) = (&self.sums[start * self.width..], &self.sums[end * self.width..][..self.width]);
        let mut explained = [0.0; LANES];
        for (before, after) in before.iter().zip(after) {
            for lane in 0..LANES {
                let sum = after[lane] - before[lane];
                explained[lane] += sum * sum;
            }
        }
        let explained = total(explained);
        (self.squares[end] - self.squares[start] - explained / (end - start) as f64).max(0.0) * self.seconds
    }

    /// The squared residual of the best profile, times seconds.
    fn cost(&self, start: usize, end: usize, shapes: &Shapes) -> f64 {
        if end - start > shapes.longest() {
            return self.constant(start, end);
        }
        let mut moments: Vec<Moments> = vec![[[0.0; LANES]; 5]; self.width];
        for at in (start..end).rev() {
            grow(&mut moments, &self.values[at * self.width..][..self.width], end - 1 - at);
        }
        let left = self.squares[end] - self.squares[start] - shapes.explained(end - start, &moments);
        self.constant(start, end).min(left.max(0.0) * self.seconds)
    }
}
