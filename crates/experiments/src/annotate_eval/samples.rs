//! The episodes that annotations are scored on: motions, raw signals and true segments.

use std::ops::Range;

use clustering::Points;
use dataset::{Dataset, EpisodeId};
use skills::{ActionLayout, Control, Episode};
use subtasks::robot::{action_layout, episode};

use super::truth::{ObjectOrder, TrueSegment, true_segments};
use crate::error::{Error, Result};
use crate::prepared::Prepared;

/// The column with the true phases.
const PHASE: &str = "phase";

/// The episodes of one dataset.
#[derive(Clone, Debug)]
pub struct Samples {
    /// The dataset's name.
    pub dataset: String,
    /// Frames per second.
    pub fps: f64,
    /// Which column of an action is what.
    pub layout: ActionLayout,
    /// All episodes of the split.
    pub all: Vec<Sample>,
}

/// One episode.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Which episode of the dataset.
    pub episode: EpisodeId,
    /// Whether it is held out: scored, and not used to choose settings.
    pub held_out: bool,
    /// The instruction of its task.
    pub instruction: String,
    /// Its motions, as the segmentation sees them.
    pub motions: Episode,
    /// Its actions, `[rows, layout.width]`.
    pub actions: Vec<f32>,
    /// Its states, `[rows, any]`.
    pub states: Vec<f32>,
    /// Its true segments, in order, which cover it.
    pub truth: Vec<TrueSegment>,
    /// What baselines see of it.
    pub signals: Signals,
}

/// The numbers of an episode that baselines look at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signals {
    /// Actions with mean 0 and deviation 1 over the training episodes.
    pub actions: Signal,
    /// The same where columns of absolute control are replaced by their change from row to row.
    pub velocities: Signal,
    /// The length of the velocity of all groups, without grippers.
    pub speed: Vec<f64>,
    /// Rows at which a gripper begins to open or to close.
    pub gripper_events: Vec<usize>,
}

/// Rows of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signal {
    /// Values in a row.
    pub width: usize,
    /// `[rows, width]`.
    pub values: Vec<f64>,
}

impl Signal {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.values.len() / self.width.max(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// One row.
    pub fn row(&self, at: usize) -> &[f64] {
        &self.values[at * self.width..(at + 1) * self.width]
    }
}

impl Sample {
    /// Its number of rows.
    pub fn len(&self) -> usize {
        self.motions.len()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.motions.is_empty()
    }

    /// The rows at which a true segment begins, but for the first.
    pub fn true_cuts(&self) -> Vec<usize> {
        self.truth.iter().skip(1).map(|one| one.rows.start).collect()
    }
}

impl Samples {
    /// Reads the episodes of a dataset that has true phases. Without names of its phases their numbers are used.
    ///
    /// # Errors
    /// If the dataset has no column `phase`, or if its columns cannot be read as motions.
    pub fn new(prepared: &Prepared, order: &ObjectOrder) -> Result<Samples> {
        let (dataset, name) = (&prepared.source.dataset, &prepared.source.name);
        let phases = dataset.columns().labels.get(PHASE).ok_or_else(|| {
            Error::Mismatch(format!(
                "`{name}` has no column `{PHASE}` with the true phase of each frame, so there is nothing to score against; use a \
                 dataset of `refactor-vla data synth`, or add the column"
            ))
        })?;
        let names = dataset.label_names(PHASE).unwrap_or_default();
        let layout = action_layout(dataset, prepared.robot())?;
        let mut all = Vec::new();
        for (at, span) in dataset.spans().iter().enumerate() {
            let id = EpisodeId(at as u32);
            let held_out = prepared.split.held_out.binary_search(&id).is_ok();
            if !held_out && prepared.split.train.binary_search(&id).is_err() {
                continue;
            }
            let instruction = dataset.tasks().get(span.task.at()).cloned().unwrap_or_default();
            let truth = true_segments(&phases[span.frames.clone()], &names, &instruction, order.of(name, id));
            all.push(Sample {
                episode: id,
                held_out,
                instruction,
                motions: episode(dataset, &span.frames, &layout)?,
                actions: rows(dataset, &span.frames, true),
                states: rows(dataset, &span.frames, false),
                truth,
                signals: Signals::default(),
            });
        }
        let mut samples = Samples { dataset: name.clone(), fps: dataset.info().fps, layout, all };
        samples.measure();
        Ok(samples)
    }

    /// The same episodes with other rows, such as disturbed ones: limits stay, speeds and scales are measured anew.
    ///
    /// # Errors
    /// If rows do not fit the layout.
    pub fn with_rows(&self, rows: Vec<Rows>) -> Result<Samples> {
        let mut samples = self.clone();
        for (sample, Rows { actions, states, truth }) in samples.all.iter_mut().zip(rows) {
            let width = states.len() / (actions.len() / self.layout.width.max(1)).max(1);
            let points = Points::new(&states, width)?;
            sample.motions = Episode::new(&self.layout, Points::new(&actions, self.layout.width)?, Some(points))?;
            (sample.actions, sample.states, sample.truth) = (actions, states, truth);
        }
        let motions: Vec<Episode> = samples.all.iter().map(|sample| sample.motions.clone()).collect();
        samples.layout.measure_fast(&motions);
        samples.measure();
        Ok(samples)
    }

    /// The held-out episodes, or those for training.
    pub fn which(&self, held_out: bool) -> Vec<&Sample> {
        self.all.iter().filter(|sample| sample.held_out == held_out).collect()
    }

    /// Whether some part of the robot is told where to go, so that velocities are not the actions themselves.
    pub fn is_absolute(&self) -> bool {
        self.layout.groups.iter().any(|group| group.control == Control::Absolute)
    }

    /// Fills in the signals of all episodes, scaled by those for training.
    fn measure(&mut self) {
        let raw: Vec<(Signal, Signal)> = self.all.iter().map(|sample| raw(sample, &self.layout)).collect();
        let training: Vec<usize> = (0..self.all.len()).filter(|at| !self.all[*at].held_out).collect();
        let scale = |of: &dyn Fn(&(Signal, Signal)) -> &Signal| {
            Scale::of(training.iter().map(|at| of(&raw[*at])), self.layout.width)
        };
        let (actions, velocities) = (scale(&|both| &both.0), scale(&|both| &both.1));
        let moving: Vec<usize> = self.layout.groups.iter().flat_map(|group| group.columns.iter().copied()).collect();
        for (sample, (own, own_velocities)) in self.all.iter_mut().zip(&raw) {
            // Rest stays at zero: a speed is a length, not a deviation from the mean velocity.
            let speed = |row: usize| {
                let part = |column: &usize| own_velocities.row(row)[*column] / velocities.deviations[*column];
                moving.iter().map(|column| part(column).powi(2)).sum::<f64>().sqrt()
            };
            sample.signals = Signals {
                speed: (0..own.len()).map(speed).collect(),
                actions: actions.apply(own),
                velocities: velocities.apply(own_velocities),
                gripper_events: gripper_events(&self.layout, &sample.actions),
            };
        }
    }
}

/// Rows that an episode may have instead of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// `[rows, width of actions]`.
    pub actions: Vec<f32>,
    /// `[rows, width of states]`.
    pub states: Vec<f32>,
    /// The true segments, which cover the rows.
    pub truth: Vec<TrueSegment>,
}

/// Means and deviations of columns.
struct Scale {
    means: Vec<f64>,
    deviations: Vec<f64>,
}

impl Scale {
    fn of<'a>(signals: impl Iterator<Item = &'a Signal>, width: usize) -> Scale {
        let (mut count, mut sums, mut squares) = (0.0_f64, vec![0.0; width], vec![0.0; width]);
        for signal in signals {
            for at in 0..signal.len() {
                count += 1.0;
                for ((value, sum), square) in signal.row(at).iter().zip(&mut sums).zip(&mut squares) {
                    *sum += value;
                    *square += value * value;
                }
            }
        }
        let means: Vec<f64> = sums.iter().map(|sum| sum / count.max(1.0)).collect();
        let deviation = |(square, mean): (&f64, &f64)| (square / count.max(1.0) - mean * mean).max(0.0).sqrt();
        // A column that never changes stays as it is.
        let deviations = squares.iter().zip(&means).map(deviation).map(|one| if one > 1e-9 { one } else { 1.0 });
        Scale { deviations: deviations.collect(), means }
    }

    fn apply(&self, signal: &Signal) -> Signal {
        let scaled =
            |(at, value): (usize, &f64)| (value - self.means[at % signal.width]) / self.deviations[at % signal.width];
        Signal { width: signal.width, values: signal.values.iter().enumerate().map(scaled).collect() }
    }
}

/// Actions, and actions with changes instead of positions.
fn raw(sample: &Sample, layout: &ActionLayout) -> (Signal, Signal) {
    let width = layout.width;
    let actions = Signal { width, values: sample.actions.iter().map(|value| f64::from(*value)).collect() };
    let mut velocities = actions.clone();
    for group in layout.groups.iter().filter(|group| group.control == Control::Absolute) {
        for column in &group.columns {
            for row in 0..actions.len() {
                let before = actions.row(row.saturating_sub(1))[*column];
                velocities.values[row * width + column] = (actions.row(row)[*column] - before) * layout.fps;
            }
        }
    }
    (actions, velocities)
}

/// A gripper moves if its command changes by more than this share of its range in a second.
const MOVES: f64 = 0.25;

/// Seconds over which that change is measured, and that a motion lasts at least.
const OVER: f64 = 0.2;

/// Rows at which a gripper begins to open or to close, in order. One that is told to open or to close does so at once; one
/// that is told how far begins where its command leaves rest.
fn gripper_events(layout: &ActionLayout, actions: &[f32]) -> Vec<usize> {
    let rows = actions.len() / layout.width.max(1);
    let mut events = Vec::new();
    for gripper in &layout.grippers {
        let command = |row: usize| f64::from(actions[row.min(rows - 1) * layout.width + gripper.column]);
        let range = (gripper.limits[1] - gripper.limits[0]).max(1e-9);
        let jumps = |row: usize| row > 0 && (command(row) - command(row - 1)).abs() >= 0.5 * range;
        let half = ((OVER * layout.fps / 2.0).round() as usize).max(1);
        let moves = |row: usize| {
            let near = row.saturating_sub(half)..=row + half;
            let change = (command(row + half) - command(row.saturating_sub(half))).abs();
            !near.into_iter().any(|row| row < rows && jumps(row)) && change > MOVES * OVER * range
        };
        let mut since = None;
        for row in 0..rows {
            if jumps(row) {
                events.push(row);
            }
            match (moves(row), since) {
                (true, None) => since = Some(row),
                (true, Some(start)) if row - start == 2 * half => events.push(start),
                (false, _) => since = None,
                _ => {}
            }
        }
    }
    // Row 0 is the start of the episode, not a change.
    events.retain(|row| *row > 0);
    events.sort_unstable();
    events.dedup();
    events
}

fn rows(dataset: &Dataset, frames: &Range<usize>, actions: bool) -> Vec<f32> {
    let columns = dataset.columns();
    let matrix = if actions { &columns.actions } else { &columns.states };
    matrix.rows(frames.clone()).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gripper_event_is_a_jump_or_the_start_of_a_motion() {
        let mut layout = ActionLayout::libero();
        let rows = |commands: &[f32]| -> Vec<f32> {
            commands.iter().flat_map(|command| [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, *command]).collect()
        };
        let jump: Vec<f32> = (0..40).map(|row| if (10..30).contains(&row) { 1.0 } else { -1.0 }).collect();
        assert_eq!(gripper_events(&layout, &rows(&jump)), [10, 30]);
        // At 20 frames a second, a gripper that closes within a second from row 10 on.
        let slow: Vec<f32> = (0..40).map(|row| (row as f32 - 10.0).clamp(0.0, 20.0) / 10.0 - 1.0).collect();
        let events = gripper_events(&layout, &rows(&slow));
        assert!(events.len() == 1 && events[0].abs_diff(10) <= 2, "{events:?}");
        // A tremor is no motion.
        let still: Vec<f32> = (0..40).map(|row| if row % 2 == 0 { 0.01 } else { 0.0 }).collect();
        assert_eq!(gripper_events(&layout, &rows(&still)), [0; 0]);
        layout.grippers.clear();
        assert_eq!(gripper_events(&layout, &rows(&jump)), [0; 0]);
    }
}
