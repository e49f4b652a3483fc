//! How well an action explains the state that follows it, and how well the state's change.
//!
//! With a lag `ℓ` and a window of `w` frames, the two questions are
//! ```text
//! absolute   s[t + ℓ]             against  a[t]
//! relative   s[t + ℓ + w] − s[t + ℓ]  against  a[t] + … + a[t + w − 1]
//! ```
//! Each is answered by the squared correlation. The window averages out the noise of single frames. Frames are drawn
//! evenly, never across episodes, and put into blocks; the median of the blocks counts, so that a few wrong rows or odd
//! episodes decide nothing. Blocks in which the robot rests are left out.

use crate::columns::Matrix;
use crate::ids::EpisodeSpan;

/// Frames that are looked at, at most.
const FRAMES: usize = 30_000;

/// Frames that are looked at when every action is compared with every state.
const FRAMES_OF_PAIRS: usize = 4_000;

/// Frames that the spread of a column is taken from.
const FRAMES_OF_SPREAD: usize = 500;

/// The longest lag, in seconds, and how many lags are tried.
const LONGEST_LAG: f64 = 0.3;
const LAGS: usize = 7;

/// The window of changes, in seconds.
const WINDOW: f64 = 0.25;

/// The number of blocks, and the fewest frames of a block.
const BLOCKS: usize = 16;
const BLOCK_FRAMES: usize = 64;

/// With fewer episodes than this, blocks are parts of episodes.
const FEW_EPISODES: usize = 4;

/// The fewest frames that a measurement is made of.
const LEAST_FRAMES: usize = 20;

/// A block counts if the values in it spread by this share of the spread of all.
const LEAST_SPREAD: f64 = 0.01;

/// Actions that are so many times larger or smaller than the state are not positions in the state's unit.
const OTHER_UNIT: f64 = 3.0;

/// How many times the usual weight a block has at most.
const MOST_WEIGHT: f64 = 10.0;

/// How well one signal explains another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fit {
    /// The squared correlation, with the sign of the slope.
    pub(super) explained: f64,
    /// The slope of the line of least squares.
    pub(super) slope: f64,
    /// After how many frames.
    pub(super) lag: usize,
    /// The share of the blocks in which both move.
    pub(super) blocks: f64,
}

impl Fit {
    /// The share of the state that the action explains as a position to go to, which has the state's unit.
    pub(super) fn as_position(self) -> f64 {
        if (1.0 / OTHER_UNIT..=OTHER_UNIT).contains(&self.slope) { self.explained } else { 0.0 }
    }
}

/// A frame to measure at.
#[derive(Clone, Copy, Debug)]
struct Start {
    frame: usize,
    /// The end of its episode.
    end: usize,
    block: usize,
}

/// Frames to measure on.
pub(super) struct Samples<'a> {
    pub(super) actions: &'a Matrix,
    pub(super) states: &'a Matrix,
    starts: Vec<Start>,
    blocks: usize,
    lags: Vec<usize>,
    pub(super) window: usize,
}

impl<'a> Samples<'a> {
    /// For measurements of single pairs of columns.
    pub(super) fn new(actions: &'a Matrix, states: &'a Matrix, spans: &[EpisodeSpan], fps: f64) -> Samples<'a> {
        Samples::drawn(actions, states, spans, fps, FRAMES, LAGS)
    }

    /// For measurements of all pairs of columns.
    pub(super) fn coarse(actions: &'a Matrix, states: &'a Matrix, spans: &[EpisodeSpan], fps: f64) -> Samples<'a> {
        Samples::drawn(actions, states, spans, fps, FRAMES_OF_PAIRS, 3)
    }

    fn drawn(
        actions: &'a Matrix,
        states: &'a Matrix,
        spans: &[EpisodeSpan],
        fps: f64,
        limit: usize,
        lags: usize,
    ) -> Samples<'a> {
        let frames = spans.iter().map(|span| span.frames.len()).sum::<usize>();
        let stride = frames.div_ceil(limit).max(1);
        // Blocks are made of whole episodes, unless there are few.
        let blocks = (frames / stride / BLOCK_FRAMES).clamp(1, BLOCKS);
        let first = spans.first().map_or(0, |span| span.frames.start);
        let place = |frame: usize| ((frame - first) * blocks / frames.max(1)).min(blocks - 1);
        let of = |span: &EpisodeSpan| {
            let (start, end) = (span.frames.start, span.frames.end);
            let block = |frame: usize| place(if spans.len() < FEW_EPISODES { frame } else { start });
            (start..end).step_by(stride).map(|frame| Start { frame, end, block: block(frame) }).collect()
        };
        let starts: Vec<Vec<Start>> = spans.iter().map(of).collect();
        let longest = (LONGEST_LAG * fps).round().clamp(1.0, 1e4);
        let mut lags: Vec<usize> =
            (0..lags).map(|at| (longest * at as f64 / (lags - 1).max(1) as f64).round() as usize).collect();
        lags.dedup();
        let window = (WINDOW * fps).round().clamp(1.0, 1e4) as usize;
        Samples { actions, states, starts: starts.concat(), blocks, lags, window }
    }

    /// How well the action explains the state that follows it.
    pub(super) fn level(&self, action: usize, state: impl Fn(usize) -> f64) -> Option<Fit> {
        let commands: Vec<f64> = self.starts.iter().map(|start| self.action(start.frame, action)).collect();
        self.best(&commands, 0, state, true)
    }

    /// How well the action, summed over a window, explains the state's change.
    pub(super) fn change(&self, action: usize, state: impl Fn(usize) -> f64) -> Option<Fit> {
        let window = self.window;
        self.best(&self.sums(action), window, |frame| state(frame + window) - state(frame), false)
    }

    /// As [`Samples::change`], with any measure of the change from one frame to another.
    pub(super) fn motion(&self, action: usize, change: impl Fn(usize, usize) -> f64) -> Option<Fit> {
        self.best(&self.sums(action), self.window, |frame| change(frame, frame + self.window), false)
    }

    /// The value of a state column.
    pub(super) fn state(&self, frame: usize, column: usize) -> f64 {
        super::value(self.states, frame, column)
    }

    /// The values of an action column below which the given shares of the frames lie.
    pub(super) fn action_quantiles(&self, column: usize, shares: [f64; 2]) -> Option<[f64; 2]> {
        quantiles(self.starts.iter().map(|start| self.action(start.frame, column)), shares)
    }

    /// The same of a state column.
    pub(super) fn state_quantiles(&self, column: usize, shares: [f64; 2]) -> Option<[f64; 2]> {
        quantiles(self.starts.iter().map(|start| self.state(start.frame, column)), shares)
    }

    fn action(&self, frame: usize, column: usize) -> f64 {
        super::value(self.actions, frame, column)
    }

    fn sums(&self, action: usize) -> Vec<f64> {
        let sum = |start: &Start| {
            let last = (start.frame + self.window).min(start.end);
            (start.frame..last).map(|frame| self.action(frame, action)).sum()
        };
        self.starts.iter().map(sum).collect()
    }

    /// The best of all lags. `reach` frames after the lag have to be in the episode.
    fn best(&self, given: &[f64], reach: usize, found: impl Fn(usize) -> f64, levels: bool) -> Option<Fit> {
        let spread = |values: &mut dyn Iterator<Item = f64>| {
            quantiles(values, [0.01, 0.99]).map_or(0.0, |[low, high]| high - low)
        };
        let some = given.len().div_ceil(FRAMES_OF_SPREAD).max(1);
        let least_given = LEAST_SPREAD * spread(&mut given.iter().copied().step_by(some));
        let least_found = match levels {
            true => LEAST_SPREAD * spread(&mut self.starts.iter().step_by(some).map(|start| found(start.frame))),
            false => 0.0,
        };
        let of_lag = |lag: usize| {
            let mut sums = vec![Sums::default(); self.blocks];
            for (start, given) in self.starts.iter().zip(given) {
                if start.frame + lag + reach < start.end {
                    sums[start.block].add(*given, found(start.frame + lag));
                }
            }
            let moving: Vec<&Sums> = sums.iter().filter(|sums| sums.moves(least_given, least_found)).collect();
            let blocks = moving.len() as f64 / self.blocks as f64;
            let frames: f64 = moving.iter().map(|sums| sums.count).sum();
            let explained = median(moving.iter().map(|sums| (sums.explained(), 1.0)).collect());
            // Large motions say more about a slope than small ones, but no block says everything.
            let usual = median(moving.iter().map(|sums| (sums.variances().0, 1.0)).collect());
            let weight = |sums: &Sums| sums.variances().0.min(MOST_WEIGHT * usual);
            let slope = median(moving.iter().map(|sums| (sums.slope(), weight(sums))).collect());
            (frames >= LEAST_FRAMES as f64).then_some(Fit { explained, slope, lag, blocks })
        };
        let fits = self.lags.iter().filter_map(|lag| of_lag(*lag));
        fits.reduce(|best, fit| if fit.explained.abs() > best.explained.abs() + 1e-9 { fit } else { best })
    }
}

/// The values below which the given shares of all finite values lie.
pub(super) fn quantiles(values: impl Iterator<Item = f64>, shares: [f64; 2]) -> Option<[f64; 2]> {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(shares.map(|share| values[(share * last as f64).round() as usize]))
}

/// The value in the middle of values with weights; 0 of none.
fn median(mut weighted: Vec<(f64, f64)>) -> f64 {
    weighted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let half = weighted.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut below = 0.0;
    for (at, (value, weight)) in weighted.iter().enumerate() {
        below += weight;
        match weighted.get(at + 1) {
            Some((next, _)) if below == half => return (value + next) / 2.0,
            _ if below >= half => return *value,
            _ => {}
        }
    }
    0.0
}

/// Sums for a line of least squares, about the first values so that nothing cancels.
#[derive(Clone, Debug, Default)]
struct Sums {
    count: f64,
    first: (f64, f64),
    x: f64,
    y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Sums {
    fn add(&mut self, x: f64, y: f64) {
        if !x.is_finite() || !y.is_finite() {
            return;
        }
        if self.count == 0.0 {
            self.first = (x, y);
        }
        let (x, y) = (x - self.first.0, y - self.first.1);
        self.count += 1.0;
        (self.x, self.y) = (self.x + x, self.y + y);
        (self.xx, self.yy, self.xy) = (self.xx + x * x, self.yy + y * y, self.xy + x * y);
    }

    fn variances(&self) -> (f64, f64, f64) {
        let n = self.count.max(1.0);
        let (x, y) = (self.x / n, self.y / n);
        (self.xx / n - x * x, self.yy / n - y * y, self.xy / n - x * y)
    }

    fn moves(&self, least_x: f64, least_y: f64) -> bool {
        let (x, y, _) = self.variances();
        self.count >= 8.0 && x > (least_x * least_x).max(1e-18) && y > (least_y * least_y).max(1e-18)
    }

    fn explained(&self) -> f64 {
        let (x, y, xy) = self.variances();
        (xy * xy.abs() / (x * y)).clamp(-1.0, 1.0)
    }

    fn slope(&self) -> f64 {
        let (x, _, xy) = self.variances();
        xy / x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_whatever_its_offset() {
        let mut sums = Sums::default();
        (0..100).for_each(|at| sums.add(1e6 + f64::from(at), 3e6 - 2.0 * f64::from(at)));
        assert!((sums.slope() + 2.0).abs() < 1e-9 && (sums.explained() + 1.0).abs() < 1e-9, "{sums:?}");
        sums.add(f64::NAN, 1.0);
        assert_eq!(sums.count, 100.0);
    }

    #[test]
    fn quantiles_leave_out_what_is_no_number() {
        let values = (0..=100).map(f64::from).chain([f64::NAN, f64::INFINITY]);
        assert_eq!(quantiles(values, [0.05, 0.5]), Some([5.0, 50.0]));
        assert_eq!(quantiles([f64::NAN].into_iter(), [0.0, 1.0]), None);
        assert_eq!((median(vec![(3.0, 1.0), (1.0, 1.0)]), median(vec![])), (2.0, 0.0));
        assert_eq!(median(vec![(1.0, 1.0), (5.0, 4.0), (2.0, 1.0)]), 5.0);
    }
}
