//! Change points: where one motion of an episode ends and the next begins.
//!
//! With x₁ … xₙ the actions of a stretch under one gripper command, smoothed and scaled, the segmentation minimises
//!
//! ```text
//! Σ over segments S of  min over models m  Σ_{t ∈ S} ‖x_t − m(t)‖²   +   penalty · (number of segments − 1)
//! ```
//!
//! where m is a constant (a motion of one velocity) or a line in time. That is optimal partitioning (Jackson et al. 2005)
//! with the pruning of PELT (Killick, Fearnhead and Eckley 2012): exact, no approximation. The cost of a candidate is
//! O(d) from prefix sums, so a stretch of n rows takes O(n²d) at worst, less where pruning bites; an episode of 600 rows
//! takes about a millisecond. A change of the gripper command always cuts, whatever it costs, so segments are shorter
//! than the minimum only between two such changes or an end of the episode.
//!
//! Where the direction stays and only the speed changes, axes alone move little; the speed is therefore a column of its
//! own. Departure: the paper cuts windows of a fixed length.

use std::ops::Range;

use clustering::Points;
use serde::{Deserialize, Serialize};

use crate::error::{SkillError, at_least};
use crate::layout::ActionLayout;

/// What a segment is taken to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// One velocity.
    Constant,
    /// A velocity that changes linearly in time.
    Linear,
}

/// How columns are made comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scaling {
    /// As commanded: right where commands share one scale, as LIBERO's in [−1, 1].
    Commanded,
    /// By the standard deviation of the column over the episode; a column that never moves stays zero.
    Spread,
}

/// How an episode is cut. The defaults were chosen on the first four rounds of the LIBERO sets (see the CHANGELOG).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SegmentConfig {
    /// What a segment is taken to be.
    pub model: Model,
    /// How columns are made comparable.
    pub scaling: Scaling,
    /// What a cut must save, in squared units of scaled action, summed over rows; 0 cuts wherever it may.
    pub penalty: f64,
    /// The fewest rows between two cuts.
    pub min_length: usize,
    /// Rows on each side that a moving average takes in, within one gripper command; 0 is off.
    pub smoothing: usize,
    /// The weight of the speed, ‖axes‖, as a column of its own; 0 is off.
    pub speed_weight: f64,
    /// The weight of the changes of states, where states are given, in units of their spread; 0 is off.
    pub state_weight: f64,
    /// Whether changes of the gripper command cut.
    pub gripper_cuts: bool,
    /// Whether candidates that can never win are dropped. Changes nothing but time.
    pub prune: bool,
}

impl Default for SegmentConfig {
    fn default() -> SegmentConfig {
        SegmentConfig {
            model: Model::Constant,
            scaling: Scaling::Commanded,
            penalty: 3.0,
            min_length: 6,
            smoothing: 0,
            speed_weight: 1.0,
            state_weight: 0.0,
            gripper_cuts: true,
            prune: true,
        }
    }
}

/// Cuts one episode into segments: ranges of rows, in order, that cover it without overlap.
///
/// # Shapes
/// `actions` is `[n, layout.width]`, `states` `[n, any]`. No rows give no segments.
///
/// # Errors
/// On actions of another width than the layout's, states of another length, and settings that are no magnitudes.
pub fn segment(
    actions: Points<'_>,
    states: Option<Points<'_>>,
    layout: &ActionLayout,
    config: &SegmentConfig,
) -> Result<Vec<Range<usize>>, SkillError> {
    layout.check(actions)?;
    for (name, value) in
        [("penalty", config.penalty), ("speed_weight", config.speed_weight), ("state_weight", config.state_weight)]
    {
        at_least(name, value, 0.0, "a finite number that is not negative")?;
    }
    if config.min_length == 0 {
        return Err(SkillError::BadSetting { name: "min_length", found: "0".to_owned(), wanted: "1 row or more" });
    }
    if let Some(states) = states.filter(|states| states.len() != actions.len()) {
        return Err(SkillError::OtherRows { states: states.len(), actions: actions.len() });
    }
    let columns = columns(actions, states, layout, config);
    let mut segments = Vec::new();
    for stretch in stretches(actions, layout, config.gripper_cuts) {
        let smooth: Vec<Vec<f64>> =
            columns.iter().map(|column| smoothed(&column[stretch.clone()], config.smoothing)).collect();
        let found = partition(&smooth, stretch.len(), config);
        segments.extend(found.into_iter().map(|part| stretch.start + part.start..stretch.start + part.end));
    }
    Ok(segments)
}

/// Rows under one gripper command.
fn stretches(actions: Points<'_>, layout: &ActionLayout, cuts: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for row in 1..=actions.len() {
        let ends =
            row == actions.len() || (cuts && layout.closed(actions.row(row)) != layout.closed(actions.row(row - 1)));
        if ends {
            found.push(start..row);
            start = row;
        }
    }
    found
}

/// What is segmented, column by column, scaled.
fn columns(
    actions: Points<'_>,
    states: Option<Points<'_>>,
    layout: &ActionLayout,
    config: &SegmentConfig,
) -> Vec<Vec<f64>> {
    let mut columns: Vec<Vec<f64>> =
        layout.axes().into_iter().map(|axis| actions.rows().map(|row| f64::from(row[axis])).collect()).collect();
    if config.scaling == Scaling::Spread {
        columns.iter_mut().for_each(|column| by_spread(column, 1.0));
    }
    if config.speed_weight > 0.0 {
        let speed = |row: usize| columns.iter().map(|column| column[row] * column[row]).sum::<f64>().sqrt();
        columns.push((0..actions.len()).map(|row| config.speed_weight * speed(row)).collect());
    }
    if let Some(states) = states.filter(|_| config.state_weight > 0.0) {
        for column in 0..states.width() {
            // The first row has no change of its own and takes that of the second.
            let change = |row: usize| match row {
                0 => 0.0,
                _ => f64::from(states.row(row)[column]) - f64::from(states.row(row - 1)[column]),
            };
            let last = states.len().saturating_sub(1);
            let mut changes: Vec<f64> = (0..states.len()).map(|row| change(row.max(1).min(last))).collect();
            by_spread(&mut changes, config.state_weight);
            columns.push(changes);
        }
    }
    columns
}

/// Divides by the standard deviation and multiplies by a weight.
fn by_spread(column: &mut [f64], weight: f64) {
    let n = column.len().max(1) as f64;
    let mean = column.iter().sum::<f64>() / n;
    let spread = (column.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n).sqrt();
    // Below this a column is rounding noise, which must not be blown up.
    let factor = if spread > 1e-9 { weight / spread } else { 0.0 };
    column.iter_mut().for_each(|value| *value *= factor);
}

/// A centred moving average whose window shrinks towards the ends, so that ends stay where they are.
fn smoothed(values: &[f64], radius: usize) -> Vec<f64> {
    let window = |at: usize| {
        let radius = radius.min(at).min(values.len() - 1 - at);
        &values[at - radius..=at + radius]
    };
    (0..values.len()).map(|at| window(at).iter().sum::<f64>() / window(at).len() as f64).collect()
}

/// Optimal partitioning of one stretch: F(e) = min over s of F(s) + cost(s, e) + penalty.
fn partition(columns: &[Vec<f64>], rows: usize, config: &SegmentConfig) -> Vec<Range<usize>> {
    let least = config.min_length;
    if rows < 2 * least {
        return std::iter::once(0..rows).collect();
    }
    let sums = Sums::new(columns, rows, config.model);
    let mut best = vec![f64::INFINITY; rows + 1];
    let mut from = vec![0; rows + 1];
    best[0] = -config.penalty;
    // Starts that may still win, each with the end from which on it cannot: a start that loses at `end` by the penalty
    // loses to a cut at `end` ever after, but only once a segment that begins there is long enough.
    let mut starts: Vec<(usize, usize)> = Vec::new();
    for end in least..=rows {
        let newest = end - least;
        if best[newest].is_finite() {
            starts.push((newest, usize::MAX));
        }
        starts.retain(|&(_, dead)| end < dead);
        for (start, dead) in &mut starts {
            let without = best[*start] + sums.cost(*start, end);
            if without + config.penalty < best[end] {
                best[end] = without + config.penalty;
                from[end] = *start;
            }
            // `best[end]` only falls further, so what loses now loses then. The margin keeps rounding from deciding.
            if config.prune && *dead == usize::MAX && without > best[end] + 1e-9 {
                *dead = end + least;
            }
        }
    }
    let mut parts = Vec::new();
    let mut end = rows;
    while end > 0 {
        parts.push(from[end]..end);
        end = from[end];
    }
    parts.reverse();
    parts
}

/// Prefix sums: any segment's residual in a few operations.
struct Sums {
    width: usize,
    /// `[rows + 1, width]`: of values.
    values: Vec<f64>,
    /// `[rows + 1, width]`: of value times row; empty unless the model is a line.
    moments: Vec<f64>,
    /// `[rows + 1]`: of squares, over all columns.
    squares: Vec<f64>,
}

impl Sums {
    fn new(columns: &[Vec<f64>], rows: usize, model: Model) -> Sums {
        let width = columns.len();
        let prefix = |of: &dyn Fn(usize, f64) -> f64| {
            let mut sums = vec![0.0; (rows + 1) * width];
            for row in 0..rows {
                for (at, column) in columns.iter().enumerate() {
                    sums[(row + 1) * width + at] = sums[row * width + at] + of(row, column[row]);
                }
            }
            sums
        };
        let mut squares = vec![0.0; rows + 1];
        for row in 0..rows {
            squares[row + 1] = squares[row] + columns.iter().map(|column| column[row] * column[row]).sum::<f64>();
        }
        let moments = match model {
            Model::Linear => prefix(&|row, value| row as f64 * value),
            Model::Constant => Vec::new(),
        };
        Sums { width, values: prefix(&|_, value| value), moments, squares }
    }

    /// The squared residual of the best model of `start..end`.
    fn cost(&self, start: usize, end: usize) -> f64 {
        let (n, width) = ((end - start) as f64, self.width);
        let (before, after) = (&self.values[start * width..][..width], &self.values[end * width..][..width]);
        let explained = before.iter().zip(after).map(|(before, after)| (after - before).powi(2)).sum::<f64>() / n;
        let mut cost = self.squares[end] - self.squares[start] - explained;
        if !self.moments.is_empty() && end - start > 1 {
            let middle = (start + end - 1) as f64 / 2.0;
            let (from, to) = (&self.moments[start * width..][..width], &self.moments[end * width..][..width]);
            let slopes = from.iter().zip(to).zip(before.iter().zip(after));
            let covariances = slopes.map(|((from, to), (before, after))| to - from - middle * (after - before));
            cost -= covariances.map(|covariance| covariance * covariance).sum::<f64>() / (n * (n * n - 1.0) / 12.0);
        }
        cost.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_axis(values: &[f32], config: &SegmentConfig) -> Vec<Range<usize>> {
        let layout = ActionLayout { width: 1, gripper: None, closed_above: 0.0, limit: None };
        segment(Points::new(values, 1).unwrap(), None, &layout, config).unwrap()
    }

    #[test]
    fn a_step_is_found_where_it_is_and_a_ramp_by_lines() {
        let step = [vec![0.0; 13], vec![0.9; 20]].concat();
        assert_eq!(one_axis(&step, &SegmentConfig::default()), [0..13, 13..33]);
        let rise: Vec<f32> = (0..20).map(|row| row as f32 / 20.0).collect();
        let roof = [rise.clone(), rise.into_iter().rev().collect()].concat();
        let lines = SegmentConfig { model: Model::Linear, penalty: 0.1, ..SegmentConfig::default() };
        assert_eq!(one_axis(&roof, &lines), [0..20, 20..40]);
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
        let layout = ActionLayout { width: 2, gripper: Some(0), closed_above: 0.0, limit: None };
        let rows: Vec<f32> = (0..20).flat_map(|row| [if row < 3 { -1.0 } else { 1.0 }, 0.2]).collect();
        let actions = Points::new(&rows, 2).unwrap();
        let config = SegmentConfig::default();
        assert_eq!(segment(actions, None, &layout, &config), Ok(vec![0..3, 3..20]));
        let off = SegmentConfig { gripper_cuts: false, ..config };
        assert_eq!(segment(actions, None, &layout, &off), Ok(std::iter::once(0..20).collect()));
    }

    #[test]
    fn states_cut_where_actions_do_not() {
        let layout = ActionLayout { width: 1, gripper: None, closed_above: 0.0, limit: None };
        let (actions, states) = (vec![0.5; 30], (0..30).map(|row| row.min(14) as f32).collect::<Vec<f32>>());
        let (actions, states) = (Points::new(&actions, 1).unwrap(), Points::new(&states, 1).unwrap());
        let off = SegmentConfig::default();
        assert_eq!(segment(actions, Some(states), &layout, &off).map(|found| found.len()), Ok(1));
        let on = SegmentConfig { state_weight: 1.0, ..off };
        assert_eq!(segment(actions, Some(states), &layout, &on), Ok(vec![0..15, 15..30]));
    }

    #[test]
    fn bad_input_is_refused() {
        let layout = ActionLayout::default();
        let actions = Points::new(&[0.0; 12], 6).unwrap();
        let found = segment(actions, None, &layout, &SegmentConfig::default());
        assert_eq!(found, Err(SkillError::OtherWidth { found: 6, wanted: 7 }));
        let layout = ActionLayout { width: 6, gripper: None, ..layout };
        let bad = SegmentConfig { penalty: f64::NAN, ..SegmentConfig::default() };
        assert!(matches!(segment(actions, None, &layout, &bad), Err(SkillError::BadSetting { name: "penalty", .. })));
        let bad = SegmentConfig { min_length: 0, ..SegmentConfig::default() };
        assert!(segment(actions, None, &layout, &bad).is_err());
        let states = Points::new(&[0.0; 3], 1).unwrap();
        let found = segment(actions, Some(states), &layout, &SegmentConfig::default());
        assert_eq!(found, Err(SkillError::OtherRows { states: 3, actions: 2 }));
        let layout = ActionLayout { width: 6, gripper: Some(6), closed_above: 0.0, limit: None };
        assert!(segment(actions, None, &layout, &SegmentConfig::default()).is_err());
    }
}
