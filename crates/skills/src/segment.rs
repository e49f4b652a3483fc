//! Change points: where one motion of an episode ends and the next begins.
//!
//! With x₁ … xₙ the velocities of a stretch in which no gripper is told something else, as shares of the robot's fast motions, the
//! segmentation minimises
//!
//! ```text
//! Σ over segments S of  min over models m  Σ_{t ∈ S} ‖x_t − m(t)‖² Δt   +   penalty · (number of segments − 1)
//! ```
//!
//! where m is a constant (a motion of one velocity, or rest) or a bell c · τ²(1 − τ)² over the segment's own time τ, which is how
//! people and smooth planners move from rest to rest (minimum jerk). That is optimal partitioning (Jackson et al. 2005):
//! exact, no approximation. Bells last at most [`SegmentConfig::longest_bell`] seconds. Candidates that are longer can only be
//! constants, and are pruned as PELT does it (Killick, Fearnhead and Eckley 2012); half a bell is no bell, so shorter ones are not.
//!
//! **Everything is in seconds.** Signals are averaged to about [`RATE`] samples per second, so that settings mean the same at any
//! frame rate. The penalty grows with each signal's noise, which is measured from its second differences: a tremor must not be
//! taken for motions. The cost of a candidate is O(d) from prefix sums, so a stretch of n samples takes O(n · m · d) with m the
//! samples of the longest bell, more where nothing is pruned; an episode of 30 seconds with 14 joints takes about ten milliseconds.
//!
//! A gripper that is told to open or to close always cuts, whatever it costs; one that is told how far moves like an arm. So
//! segments are shorter than the minimum only between two such changes or an end of the episode. Where the direction stays
//! and only the speed changes, axes alone move little; the speed is therefore a column of its own. Departure: the paper cuts
//! windows of a fixed length.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::episode::Episode;
use crate::error::{SkillError, at_least};
use crate::layout::{ActionLayout, Control};

/// Samples per second of what is segmented, about.
pub const RATE: f64 = 20.0;

/// A column whose noise is this share of its power or more is left out.
const MOSTLY: f64 = 0.5;

/// Seconds in which a gripper closes that is told how far, when it is fast.
const CLOSES: f64 = 0.5;

/// What a segment is taken to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// One velocity.
    Constant,
    /// One velocity, or a bell from rest to rest, whichever fits better.
    ConstantOrBell,
}

/// How an episode is cut. The defaults were chosen on the first four rounds of the LIBERO sets (see the CHANGELOG).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SegmentConfig {
    /// What a segment is taken to be.
    pub model: Model,
    /// What a cut must save: seconds at the full speed of one coordinate, squared; 0 cuts wherever it may.
    pub penalty: f64,
    /// What a cut must save in addition, in units of what noise alone would save.
    pub noise: f64,
    /// The least seconds between two cuts.
    pub least: f64,
    /// The most seconds of a bell.
    pub longest_bell: f64,
    /// The weight of the speed as a column of its own; 0 is off.
    pub speed_weight: f64,
    /// Whether changes of a gripper command cut.
    pub gripper_cuts: bool,
    /// Whether candidates that can never win are dropped. Changes nothing but time.
    pub prune: bool,
}

impl Default for SegmentConfig {
    fn default() -> SegmentConfig {
        SegmentConfig {
            model: Model::ConstantOrBell,
            penalty: 0.15,
            noise: 2.0,
            least: 0.3,
            longest_bell: 10.0,
            speed_weight: 1.0,
            gripper_cuts: true,
            prune: true,
        }
    }
}

/// Cuts one episode into segments: ranges of rows, in order, that cover it without overlap. No rows give no segments.
///
/// # Errors
/// On settings that are no magnitudes.
pub fn segment(
    episode: &Episode,
    layout: &ActionLayout,
    config: &SegmentConfig,
) -> Result<Vec<Range<usize>>, SkillError> {
    for (name, value) in [
        ("penalty", config.penalty),
        ("noise", config.noise),
        ("least", config.least),
        ("speed_weight", config.speed_weight),
    ] {
        at_least(name, value, 0.0, "a finite number that is not negative")?;
    }
    at_least("longest_bell", config.longest_bell, 0.0, "a finite number that is not negative")?;
    let (columns, noise) = velocities(episode, layout, config.speed_weight);
    let mut segments = Vec::new();
    for stretch in stretches(episode, layout, config.gripper_cuts) {
        let found = Samples::new(&columns, &stretch, layout.fps).partition(noise, config);
        segments.extend(found.into_iter().map(|part| stretch.start + part.start..stretch.start + part.end));
    }
    Ok(segments)
}

/// Rows between jumps of gripper commands.
fn stretches(episode: &Episode, layout: &ActionLayout, cuts: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for row in 1..=episode.len() {
        let mut grippers = layout.grippers.iter().zip(episode.grippers());
        let mut changes = || grippers.any(|(gripper, commands)| gripper.jumps(commands[row - 1], commands[row]));
        if row == episode.len() || (cuts && changes()) {
            found.push(start..row);
            start = row;
        }
    }
    found
}

/// The velocity of every coordinate as a share of its fast motions, and the speed; and the variance of their noise. What is
/// mostly noise is left out: a part of the robot that stands still says nothing about motions.
fn velocities(episode: &Episode, layout: &ActionLayout, speed_weight: f64) -> (Vec<Vec<f64>>, f64) {
    let stride = stride(layout.fps);
    let (mut columns, mut noise) = (Vec::new(), 0.0);
    let mut add = |column: Vec<f64>| {
        let sampled: Vec<f64> =
            column.chunks(stride).map(|rows| rows.iter().sum::<f64>() / rows.len() as f64).collect();
        let own = noise_of(&sampled);
        let power = sampled.iter().map(|value| value * value).sum::<f64>() / sampled.len().max(1) as f64;
        if own < MOSTLY * power {
            noise += own;
            columns.push(column);
        }
    };
    for (at, group) in layout.groups.iter().enumerate() {
        let rate = if group.control == Control::Absolute { layout.fps } else { 1.0 };
        for (dim, fast) in group.fast.iter().enumerate().filter(|(_, fast)| **fast > 1e-9) {
            add(episode.commands(at, dim).into_iter().map(|command| command * rate / fast).collect());
        }
    }
    for (gripper, commands) in layout.grippers.iter().zip(episode.grippers()) {
        let fast = (gripper.limits[1] - gripper.limits[0]) / CLOSES;
        let change = |row: usize| match row {
            0 => 0.0,
            _ if gripper.jumps(commands[row - 1], commands[row]) => 0.0,
            _ => f64::from(commands[row] - commands[row - 1]) * layout.fps / fast.max(1e-9),
        };
        add((0..episode.len()).map(change).collect());
    }
    if speed_weight > 0.0 {
        let speed = |row: usize| columns.iter().map(|column| column[row] * column[row]).sum::<f64>().sqrt();
        let speeds = (0..episode.len()).map(|row| speed_weight * speed(row)).collect();
        columns.push(speeds);
    }
    (columns, noise)
}

/// Rows of one sample.
fn stride(fps: f64) -> usize {
    ((fps / RATE).round() as usize).max(1)
}

/// The variance of a signal's noise, from the median of its second differences.
fn noise_of(values: &[f64]) -> f64 {
    let mut apart: Vec<f64> = values.windows(3).map(|three| (three[1] - (three[0] + three[2]) / 2.0).abs()).collect();
    if apart.is_empty() {
        return 0.0;
    }
    let middle = apart.len() / 2;
    let (_, median, _) = apart.select_nth_unstable_by(middle, f64::total_cmp);
    // The median of |N(0, 1)| is 0.6745, and this difference has 1.5 times the variance of the noise.
    (*median / 0.6745).powi(2) / 1.5
}

/// A stretch, averaged over several rows each, with prefix sums: any segment's residual in a few operations.
struct Samples {
    /// Rows of the stretch, and of one sample.
    rows: usize,
    stride: usize,
    /// Seconds of one sample.
    seconds: f64,
    count: usize,
    width: usize,
    /// `[count + 1, width, 5]`: Σ of value times the sample's number to the powers 0 to 4.
    moments: Vec<[f64; 5]>,
    /// `[count + 1]`: Σ of squares, over all columns.
    squares: Vec<f64>,
}

impl Samples {
    fn new(columns: &[Vec<f64>], stretch: &Range<usize>, fps: f64) -> Samples {
        let stride = stride(fps);
        let (rows, width) = (stretch.len(), columns.len());
        let count = rows.div_ceil(stride);
        let mut moments = vec![[0.0; 5]; (count + 1) * width];
        let mut squares = vec![0.0; count + 1];
        for at in 0..count {
            let own = stretch.start + at * stride..(stretch.start + (at + 1) * stride).min(stretch.end);
            let mut square = 0.0;
            for (column, values) in columns.iter().enumerate() {
                let value = values[own.clone()].iter().sum::<f64>() / own.len() as f64;
                square += value * value;
                let mut power = value;
                let before = moments[at * width + column];
                let after = &mut moments[(at + 1) * width + column];
                for (sum, before) in after.iter_mut().zip(before) {
                    *sum = before + power;
                    power *= at as f64;
                }
            }
            squares[at + 1] = squares[at] + square;
        }
        Samples { rows, stride, seconds: stride as f64 / fps, count, width, moments, squares }
    }

    /// Optimal partitioning: F(e) = min over s of F(s) + cost(s, e) + penalty. Ranges of rows of the stretch.
    fn partition(&self, noise: f64, config: &SegmentConfig) -> Vec<Range<usize>> {
        let samples = |seconds: f64| (seconds / self.seconds).round();
        let least = (samples(config.least) as usize).max(1);
        let longest = match config.model {
            Model::ConstantOrBell => (samples(config.longest_bell) as usize).min(self.count),
            Model::Constant => 0,
        };
        if self.count < 2 * least {
            return std::iter::once(0..self.rows).collect();
        }
        // What the best of `count` cuts saves in noise alone: 2 ln n of the variance, in every column.
        let saved = 2.0 * (self.count as f64).ln() * noise * self.seconds;
        let penalty = config.penalty + config.noise * saved;
        let shapes = Bells::new(longest);
        let mut best = vec![f64::INFINITY; self.count + 1];
        let mut from = vec![0; self.count + 1];
        best[0] = -penalty;
        // Starts that may still win, each with the end from which on it cannot: a start that loses at `end` by the penalty
        // loses to a cut at `end` ever after, but only once a segment that begins there is long enough.
        let mut starts: Vec<(usize, usize)> = Vec::new();
        for end in least..=self.count {
            let newest = end - least;
            if best[newest].is_finite() {
                starts.push((newest, usize::MAX));
            }
            starts.retain(|&(_, dead)| end < dead);
            for (start, dead) in &mut starts {
                let without = best[*start] + self.cost(*start, end, &shapes);
                if without + penalty < best[end] {
                    best[end] = without + penalty;
                    from[end] = *start;
                }
                // `best[end]` only falls further, so what loses now loses then. The margin keeps rounding from deciding.
                if config.prune && end - *start > longest && *dead == usize::MAX && without > best[end] + 1e-9 {
                    *dead = end + least;
                }
            }
        }
        let row = |sample: usize| (sample * self.stride).min(self.rows);
        let mut parts = Vec::new();
        let mut end = self.count;
        while end > 0 {
            parts.push(row(from[end])..row(end));
            end = from[end];
        }
        parts.reverse();
        parts
    }

    /// The squared residual of the best model of `start..end`, times seconds.
    fn cost(&self, start: usize, end: usize, bells: &Bells) -> f64 {
        let (n, width) = ((end - start) as f64, self.width);
        let (before, after) = (&self.moments[start * width..][..width], &self.moments[end * width..][..width]);
        let constant = before.iter().zip(after).map(|(before, after)| (after[0] - before[0]).powi(2)).sum::<f64>() / n;
        let mut explained = constant;
        if let Some(energy) = bells.energy(end - start) {
            let weights = bells.weights(start, end);
            let along = |(before, after): (&[f64; 5], &[f64; 5])| {
                (0..5).map(|power| weights[power] * (after[power] - before[power])).sum::<f64>()
            };
            let bell = before.iter().zip(after).map(|sums| along(sums).powi(2)).sum::<f64>() / energy;
            explained = explained.max(bell);
        }
        (self.squares[end] - self.squares[start] - explained).max(0.0) * self.seconds
    }
}

/// Bells of every length: b(u) = u²(L − u)² / L⁴ at the middles u of L samples.
struct Bells {
    /// Σ b² for each length, from 0 on.
    energies: Vec<f64>,
}

impl Bells {
    fn new(most: usize) -> Bells {
        let energy = |length: usize| {
            let size = length as f64;
            let bell = |at: usize| {
                let share = (at as f64 + 0.5) / size;
                (share * (1.0 - share)).powi(2)
            };
            (0..length).map(|at| bell(at).powi(2)).sum()
        };
        Bells { energies: (0..=most).map(energy).collect() }
    }

    /// Σ b² of a bell over so many samples; `None` if there are no bells of that length. Three samples are no shape.
    fn energy(&self, length: usize) -> Option<f64> {
        self.energies.get(length).copied().filter(|_| length > 3)
    }

    /// b over `start..end` as a polynomial in the sample's number: its five coefficients.
    fn weights(&self, start: usize, end: usize) -> [f64; 5] {
        // With u = t − s: u²(L − u)² = (t² − (2s + L) t + s (s + L))², a square of a polynomial of degree two.
        let (shift, length) = (start as f64 - 0.5, (end - start) as f64);
        let (one, zero) = (-(2.0 * shift + length), shift * (shift + length));
        let scale = length.powi(-4);
        [zero * zero, 2.0 * one * zero, one * one + 2.0 * zero, 2.0 * one, 1.0].map(|weight| weight * scale)
    }
}

#[cfg(test)]
mod tests {
    use clustering::Points;

    use super::*;
    use crate::layout::{Gripper, Group, Space};

    /// One axis of commands at 20 frames per second, and a gripper where `gripper` says so.
    fn layout(control: Control, gripper: bool, fps: f64) -> ActionLayout {
        let group = Group {
            name: "axis".to_owned(),
            space: Space::Joints,
            control,
            columns: vec![0],
            states: Vec::new(),
            limits: vec![[-1e3, 1e3]],
            fast: vec![1.0],
        };
        let grippers = match gripper {
            true => vec![Gripper {
                name: "gripper".to_owned(),
                column: 1,
                threshold: 0.0,
                closes_above: true,
                limits: [-1.0, 1.0],
            }],
            false => Vec::new(),
        };
        ActionLayout { width: 1 + grippers.len(), fps, groups: vec![group], grippers }
    }

    fn cut(values: &[f32], layout: &ActionLayout, config: &SegmentConfig) -> Vec<Range<usize>> {
        let episode = Episode::new(layout, Points::new(values, layout.width).unwrap(), None).unwrap();
        segment(&episode, layout, config).unwrap()
    }

    fn one_axis(values: &[f32], config: &SegmentConfig) -> Vec<Range<usize>> {
        cut(values, &layout(Control::Relative, false, 20.0), config)
    }

    /// A position that goes to each of some places in a bell of `rows` rows.
    fn moves(places: &[f64], rows: usize) -> Vec<f32> {
        let mut at = 0.0;
        let mut path = Vec::new();
        for place in places {
            for row in 1..=rows {
                let share = row as f64 / rows as f64;
                let done = share.powi(3) * (10.0 - 15.0 * share + 6.0 * share * share);
                path.push((at + (place - at) * done) as f32);
            }
            at = *place;
        }
        path
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let step = [vec![0.0; 13], vec![0.9; 20]].concat();
        for model in [Model::Constant, Model::ConstantOrBell] {
            assert_eq!(one_axis(&step, &SegmentConfig { model, ..Default::default() }), [0..13, 13..33]);
        }
    }

    #[test]
    fn a_smooth_motion_is_one_segment_at_any_frame_rate() {
        for fps in [20.0, 30.0, 50.0, 100.0] {
            let rows = (1.5 * fps) as usize;
            // Speeds are per second, so that the fastest is 1.875 · 0.8 / 1.5 = 1.
            let path = moves(&[0.8, 0.0, 0.8, 1.6], rows);
            let layout = layout(Control::Absolute, false, fps);
            let found = cut(&path, &layout, &SegmentConfig::default());
            assert_eq!(found.len(), 4, "{fps}: {found:?}");
            for (at, part) in found.iter().enumerate() {
                assert!(part.start.abs_diff(at * rows) as f64 <= 0.11 * fps, "{fps}: {found:?}");
            }
            // Constants cut the same motions into pieces.
            let constants = SegmentConfig { model: Model::Constant, penalty: 0.03, ..SegmentConfig::default() };
            assert!(cut(&path, &layout, &constants).len() > 4);
        }
    }

    #[test]
    fn a_tremor_is_no_motion() {
        let mut seed = 1u32;
        let mut random = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(seed >> 8) / f64::from(1u32 << 24) - 0.5
        };
        let mut shaken = |velocity: f64| -> Vec<f32> { (0..300).map(|_| (velocity + random()) as f32).collect() };
        let ignorant = SegmentConfig { noise: 0.0, penalty: 0.02, ..SegmentConfig::default() };
        // A motion that is larger than its noise: the penalty grows with the noise.
        let moving = shaken(0.4);
        assert_eq!(one_axis(&moving, &SegmentConfig::default()).len(), 1);
        assert!(one_axis(&moving, &ignorant).len() > 3);
        // A column that is mostly noise is left out, whatever the penalty.
        let resting = shaken(0.2);
        assert_eq!((one_axis(&resting, &SegmentConfig::default()).len(), one_axis(&resting, &ignorant).len()), (1, 1));
    }

    #[test]
    fn a_penalty_beyond_the_residual_leaves_one_segment() {
        let step = [vec![0.0; 13], vec![0.9; 20]].concat();
        let dear = SegmentConfig { penalty: 1e6, ..SegmentConfig::default() };
        assert_eq!(one_axis(&step, &dear).as_slice(), std::slice::from_ref(&(0..33)));
        assert!(one_axis(&[], &SegmentConfig::default()).is_empty());
        assert_eq!(one_axis(&[1.0], &SegmentConfig::default()).as_slice(), std::slice::from_ref(&(0..1)));
    }

    #[test]
    fn the_gripper_cuts_unless_it_is_switched_off() {
        let layout = layout(Control::Relative, true, 20.0);
        let rows: Vec<f32> = (0..20).flat_map(|row| [0.2, if row < 3 { -1.0 } else { 1.0 }]).collect();
        let config = SegmentConfig::default();
        assert_eq!(cut(&rows, &layout, &config), [0..3, 3..20]);
        let off = SegmentConfig { gripper_cuts: false, ..config };
        assert_eq!(cut(&rows, &layout, &off).as_slice(), std::slice::from_ref(&(0..20)));
    }

    #[test]
    fn bells_are_polynomials() {
        let bells = Bells::new(40);
        for (start, end) in [(0, 10), (7, 33), (100, 140)] {
            let weights = bells.weights(start, end);
            let mut energy = 0.0;
            for at in start..end {
                let share = (at as f64 - start as f64 + 0.5) / (end - start) as f64;
                let exact = (share * (1.0 - share)).powi(2);
                let t = at as f64;
                let found: f64 = weights.iter().enumerate().map(|(power, weight)| weight * t.powi(power as i32)).sum();
                assert!((found - exact).abs() < 1e-8, "{start} {end} {at}: {found} {exact}");
                energy += exact * exact;
            }
            assert!((energy - bells.energy(end - start).unwrap()).abs() < 1e-12);
        }
        assert_eq!((bells.energy(3), bells.energy(41)), (None, None));
    }

    #[test]
    fn settings_that_are_no_magnitudes_are_refused() {
        let layout = layout(Control::Relative, false, 20.0);
        let episode = Episode::new(&layout, Points::new(&[0.0; 12], 1).unwrap(), None).unwrap();
        let bad = [
            SegmentConfig { penalty: f64::NAN, ..SegmentConfig::default() },
            SegmentConfig { least: -1.0, ..SegmentConfig::default() },
            SegmentConfig { longest_bell: f64::INFINITY, ..SegmentConfig::default() },
        ];
        for config in bad {
            assert!(matches!(segment(&episode, &layout, &config), Err(SkillError::BadSetting { .. })));
        }
    }
}
