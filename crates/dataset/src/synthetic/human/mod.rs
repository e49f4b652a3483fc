//! Demonstrations of a scripted expert as a person would have teleoperated them.
//!
//! Scripted experts are clean: they never stop to look, never overshoot and never tremble. [`disturb`] takes a recorded
//! episode and gives the episode that an operator of some [`Level`] might have recorded on the same path, with its labels.
//! Actions, states and labels share one operator: the same warp of time, the same hesitations, the same corrections and
//! the same tremor.
//!
//! | | practised | ordinary | beginner | after |
//! |---|---|---|---|---|
//! | speed varies by, standard deviation over knots a second apart | 10 % | 20 % | 30 % | Mandlekar et al. 2021, robomimic's operators |
//! | hesitations a second, each of | 0.03, 0.2–0.4 s | 0.10, 0.2–0.7 s | 0.25, 0.3–1.0 s | pauses between submovements: Milner 1992 |
//! | motion ends with a correction | 10 % | 25 % | 50 % | Woodworth 1899; Meyer et al. 1988 |
//! | overshoot, share of the way of the last second | 5 % | 10 % | 20 % | Meyer et al. 1988, endpoint spread of a first submovement |
//! | tremor, share of a fast motion's speed (root mean square) | 2 % | 5 % | 10 % | kinetic tremor of 4–12 Hz: Marsden 1984; Elble and Koller 1990 |
//! | states lag behind commands by a further | 0.03 s | 0.08 s | 0.15 s | Sheridan 1993; delays of common teleoperation rigs |
//!
//! A path is warped, not a column: relative commands and velocities are summed, warped as positions and differenced
//! again, so that the same places are reached. What a command cannot reach in a frame, because the data have no larger
//! one, it reaches in the next ones. An insertion of time (a hesitation, a correction) belongs to the label of the frame
//! that it interrupts, so that **labels keep their order and their number**.
//!
//! The same seed and episode give the same bytes on every machine.

use crate::columns::Matrix;
use crate::robot::Control;

mod schedule;
mod signals;

use schedule::Schedule;

/// How practised an operator is; the table of this module has the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// An operator with many hours on this robot.
    Practised,
    /// An operator with some practice: the middle level.
    Ordinary,
    /// A first-time operator.
    Beginner,
}

impl Level {
    /// All levels, from the least disturbance to the largest.
    pub const ALL: [Level; 3] = [Level::Practised, Level::Ordinary, Level::Beginner];

    /// The name on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Level::Practised => "practised",
            Level::Ordinary => "ordinary",
            Level::Beginner => "beginner",
        }
    }

    fn operator(self) -> Operator {
        let at = self as usize;
        Operator {
            speed: [0.1, 0.2, 0.3][at],
            hesitations: [0.03, 0.1, 0.25][at],
            pause: [[0.2, 0.4], [0.2, 0.7], [0.3, 1.0]][at],
            corrections: [0.1, 0.25, 0.5][at],
            overshoot: [0.05, 0.1, 0.2][at],
            tremor: [0.02, 0.05, 0.1][at],
            latency: [0.03, 0.08, 0.15][at],
        }
    }
}

/// The numbers of a level.
#[derive(Clone, Copy, Debug)]
struct Operator {
    /// Standard deviation of the speed.
    speed: f64,
    /// Hesitations in a second, and the least and the most seconds of one.
    hesitations: f64,
    pause: [f64; 2],
    /// The probability that a motion ends with a correction, and the overshoot as a share of the way of the last second.
    corrections: f64,
    overshoot: f64,
    /// Root mean square of the tremor's velocity, as a share of a fast motion's.
    tremor: f64,
    /// Seconds by which states are later than recorded.
    latency: f64,
}

/// One episode: its numbers, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Frames per second.
    pub fps: f64,
    /// `[rows, any]`.
    pub actions: Matrix,
    /// `[rows, any]`.
    pub states: Matrix,
    /// The true label of each row, such as its phase.
    pub labels: Vec<i64>,
}

/// Columns of one unit that an operator moves together: the joints of an arm, the place of an end effector, its rotation, a
/// base. Columns in no part, such as grippers and fingers, follow the operator's time but neither tremble nor overshoot.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What its actions mean.
    pub control: Control,
    /// Its action columns.
    pub actions: Vec<usize>,
    /// Its state columns: one for each action column, or none if the states do not have them.
    pub states: Vec<usize>,
}

/// An episode as an operator would have recorded it.
#[derive(Clone, Debug, PartialEq)]
pub struct Disturbed {
    /// Its numbers and labels. It has more rows or fewer than the recorded one.
    pub recording: Recording,
    /// For each of its rows the recorded row that it is at, in ascending order: where pictures and other columns are taken
    /// from.
    pub source: Vec<usize>,
}

/// Why an episode cannot be disturbed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DisturbError {
    /// Actions, states and labels have different numbers of rows.
    #[error("found {actions} rows of actions, {states} of states and {labels} labels, expected equally many")]
    OtherRows {
        /// Rows of actions.
        actions: usize,
        /// Rows of states.
        states: usize,
        /// Labels.
        labels: usize,
    },
    /// A part has a column that is not there.
    #[error("found column {column} in a part, expected columns below {width}, which is the width of the {matrix}")]
    NoColumn {
        /// The column.
        column: usize,
        /// The columns that there are.
        width: usize,
        /// `actions` or `states`.
        matrix: &'static str,
    },
    /// Frames per second that are no rate.
    #[error("found {0} frames per second, expected a finite number above 0")]
    BadRate(f64),
}

/// The episode that an operator of some level records where an expert recorded `recorded`. `episode` is its number, so that
/// the episodes of a dataset differ with one seed.
///
/// # Errors
/// On different numbers of rows, columns that are not there, and a rate that is none.
pub fn disturb(
    recorded: &Recording,
    parts: &[Part],
    level: Level,
    seed: u64,
    episode: u64,
) -> Result<Disturbed, DisturbError> {
    check(recorded, parts)?;
    Ok(by_operator(recorded, parts, &level.operator(), seed, episode))
}

fn by_operator(recorded: &Recording, parts: &[Part], operator: &Operator, seed: u64, episode: u64) -> Disturbed {
    let rows = recorded.labels.len();
    let schedule = Schedule::draw(recorded, parts, operator, seed, episode);
    let last = rows.saturating_sub(1);
    let source: Vec<usize> = schedule.times.iter().map(|time| (*time as usize).min(last)).collect();
    let (actions, states) = signals::disturbed(recorded, parts, operator, &schedule, seed, episode);
    let labels = source.iter().map(|row| recorded.labels[*row]).collect();
    Disturbed { recording: Recording { fps: recorded.fps, actions, states, labels }, source }
}

fn check(recorded: &Recording, parts: &[Part]) -> Result<(), DisturbError> {
    let rows = |matrix: &Matrix| matrix.values.len() / matrix.width.max(1);
    let (actions, states, labels) = (rows(&recorded.actions), rows(&recorded.states), recorded.labels.len());
    let stateless = recorded.states.width == 0;
    if actions != labels || (states != labels && !stateless) {
        return Err(DisturbError::OtherRows { actions, states, labels });
    }
    if !(recorded.fps.is_finite() && recorded.fps > 0.0) {
        return Err(DisturbError::BadRate(recorded.fps));
    }
    for part in parts {
        let both = [("actions", &part.actions, &recorded.actions), ("states", &part.states, &recorded.states)];
        for (matrix, columns, found) in both {
            if let Some(&column) = columns.iter().find(|column| **column >= found.width) {
                return Err(DisturbError::NoColumn { column, width: found.width, matrix });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
