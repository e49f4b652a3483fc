//! Columns as paths: warped, displaced and differenced again.

use super::schedule::Schedule;
use super::{Operator, Part, Recording};
use crate::columns::Matrix;
use crate::draw::{Purpose, generator, unit};
use crate::robot::Control;
use crate::synthetic::kinematics::sine;

/// The band of a tremor in hertz, and the share of the frame rate that it must stay below to be seen.
const BAND: [f64; 2] = [4.0, 12.0];
const SEEN: f64 = 0.45;

/// Sines of a tremor.
const WAVES: usize = 3;

/// The share of a tremor's amplitude that an arm follows.
const FOLLOWED: f64 = 0.5;

/// Seconds of the way that an overshoot is a share of.
const WAY: f64 = 1.0;

/// Neighbouring rows that differ by this share of a column's range are not interpolated: a gripper that is commanded to
/// close, or a rotation that is written in another way.
const JUMP: f64 = 0.25;

/// The share of a path's samples that are slower than a fast motion.
const FAST: f64 = 0.95;

/// The paths of all parts, in units of each part's fast motions.
pub(super) struct Paths {
    /// For each part its columns as positions, with the velocity of a fast motion in units a second.
    parts: Vec<(Vec<Vec<f64>>, f64)>,
    fps: f64,
}

impl Paths {
    pub(super) fn of_actions(recorded: &Recording, parts: &[Part]) -> Paths {
        let of = |part: &Part| {
            let columns: Vec<Vec<f64>> = part
                .actions
                .iter()
                .map(|column| path(&recorded.actions, *column, part.control, recorded.fps))
                .collect();
            let fast = fast(&columns, recorded.fps);
            (columns, fast)
        };
        Paths { parts: parts.iter().map(of).collect(), fps: recorded.fps }
    }

    /// The mean speed between two rows, as a share of a fast motion's, of the part that is the fastest.
    pub(super) fn speed(&self, start: usize, end: usize) -> f64 {
        let of = |(columns, fast): &(Vec<Vec<f64>>, f64)| {
            let moved = |column: &Vec<f64>| (at(column, end as f64) - at(column, start as f64)).powi(2);
            let way = columns.iter().map(moved).sum::<f64>().sqrt();
            way * self.fps / ((end - start).max(1) as f64 * fast.max(f64::MIN_POSITIVE))
        };
        self.parts.iter().filter(|(_, fast)| *fast > 0.0).map(of).fold(0.0, f64::max)
    }
}

/// Actions and states at the times of a schedule.
pub(super) fn disturbed(
    recorded: &Recording,
    parts: &[Part],
    operator: &Operator,
    schedule: &Schedule,
    seed: u64,
    episode: u64,
) -> (Matrix, Matrix) {
    let rows = schedule.times.len();
    let late = operator.latency * recorded.fps;
    let mut actions = sampled(&recorded.actions, rows, |row| schedule.times[row]);
    let mut states = sampled(&recorded.states, rows, |row| schedule.time(row as f64 - late));
    for (at_part, part) in parts.iter().enumerate() {
        let paths: Vec<Vec<f64>> =
            part.actions.iter().map(|column| path(&recorded.actions, *column, part.control, recorded.fps)).collect();
        let speed = operator.tremor * fast(&paths, recorded.fps);
        let own: Vec<Vec<f64>> =
            part.states.iter().map(|column| path(&recorded.states, *column, Control::Absolute, recorded.fps)).collect();
        let own_speed = FOLLOWED * operator.tremor * fast(&own, recorded.fps);
        for (place, (column, path)) in part.actions.iter().zip(&paths).enumerate() {
            let shaken = Tremor::draw(recorded.fps, seed, episode, [at_part, place]);
            let displaced =
                |row: f64| offset(path, row, recorded.fps, operator, schedule) + speed * shaken.at(row / recorded.fps);
            write(&mut actions, *column, part.control, recorded, |row| displaced(row as f64), path, schedule);
            if let (Some(state), Some(path)) = (part.states.get(place), own.get(place)) {
                for row in 0..rows {
                    let then = (row as f64 - late).max(0.0);
                    let moved = offset(path, then, recorded.fps, operator, schedule);
                    let value = &mut states.values[row * states.width + state];
                    *value += (moved + own_speed * shaken.at(then / recorded.fps)) as f32;
                }
            }
        }
    }
    (actions, states)
}

/// Writes a column of actions: the path at the operator's times plus a displacement for each new frame, as what commands mean.
fn write(
    actions: &mut Matrix,
    column: usize,
    control: Control,
    recorded: &Recording,
    displaced: impl Fn(usize) -> f64,
    path: &[f64],
    schedule: &Schedule,
) {
    let (rows, width) = (schedule.times.len(), actions.width);
    if control == Control::Absolute {
        for row in 0..rows {
            actions.values[row * width + column] += displaced(row) as f32;
        }
        return;
    }
    let rate = if control == Control::Velocity { recorded.fps } else { 1.0 };
    let values = recorded.actions.values.iter().skip(column).step_by(width).map(|value| f64::from(*value));
    let [least, most] = values.fold([0.0_f64; 2], |[least, most], value| [least.min(value), most.max(value)]);
    let position = |row: usize| {
        let time = schedule.times.get(row).copied().unwrap_or(recorded.labels.len() as f64);
        at(path, time) + displaced(row)
    };
    let mut reached = position(0);
    for row in 0..rows {
        let wanted = (position(row + 1) - reached) * rate;
        // A command within the limits of the recorded ones; later commands make up for the rest.
        let command = wanted.clamp(least.min(-most), most.max(-least));
        reached += command / rate;
        actions.values[row * width + column] = command as f32;
    }
}

/// A column as positions: `rows + 1` for changes and velocities, which are summed, `rows` for positions, whose jumps are
/// left out.
fn path(matrix: &Matrix, column: usize, control: Control, fps: f64) -> Vec<f64> {
    let values = matrix.values.iter().skip(column).step_by(matrix.width.max(1)).map(|value| f64::from(*value));
    let summed = |sum: &mut f64, change: f64| {
        *sum += change;
        Some(*sum)
    };
    match control {
        Control::Absolute => {
            let values: Vec<f64> = values.collect();
            let [least, most] =
                values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], value| [a.min(*value), b.max(*value)]);
            let change = |two: &[f64]| Some(two[1] - two[0]).filter(|step| step.abs() <= JUMP * (most - least));
            let changes = values.windows(2).map(|two| change(two).unwrap_or(0.0));
            values.first().copied().into_iter().chain(changes).scan(0.0, summed).collect()
        }
        Control::Relative | Control::Velocity => {
            let duration = if control == Control::Velocity { 1.0 / fps } else { 1.0 };
            std::iter::once(0.0).chain(values.map(|value| value * duration)).scan(0.0, summed).collect()
        }
    }
}

/// The velocity of a fast motion along some paths, in units a second: that of the fastest column, but for one in twenty rows.
fn fast(paths: &[Vec<f64>], fps: f64) -> f64 {
    let rows = paths.first().map_or(0, Vec::len);
    let change = |path: &Vec<f64>, row: usize| (path[row] - path[row - 1]).abs();
    let mut speeds: Vec<f64> =
        (1..rows).map(|row| paths.iter().map(|path| change(path, row)).fold(0.0, f64::max) * fps).collect();
    if speeds.is_empty() {
        return 0.0;
    }
    let place = ((speeds.len() - 1) as f64 * FAST).round() as usize;
    *speeds.select_nth_unstable_by(place, f64::total_cmp).1
}

/// A path between its rows.
fn at(path: &[f64], time: f64) -> f64 {
    let last = path.len().saturating_sub(1);
    let first = (time.max(0.0) as usize).min(last);
    let second = (first + 1).min(last);
    let share = (time - first as f64).clamp(0.0, 1.0);
    path.get(first).map_or(0.0, |value| value + share * (path[second] - value))
}

/// How far corrections displace a path at a new frame.
fn offset(path: &[f64], frame: f64, fps: f64, operator: &Operator, schedule: &Schedule) -> f64 {
    let of = |one: &super::schedule::Correction| {
        let share = (frame - one.start as f64) / one.frames as f64;
        if !(0.0..1.0).contains(&share) {
            return 0.0;
        }
        let way = at(path, one.at) - at(path, one.at - WAY * fps);
        operator.overshoot * way * 16.0 * (share * (1.0 - share)).powi(2)
    };
    schedule.corrections.iter().map(of).sum()
}

/// Rows of a matrix at some times. Between rows values are interpolated, except where a column jumps.
fn sampled(matrix: &Matrix, rows: usize, time: impl Fn(usize) -> f64) -> Matrix {
    let width = matrix.width;
    let count = matrix.values.len() / width.max(1);
    let range = |column: usize| {
        let values = matrix.values.iter().skip(column).step_by(width);
        let [least, most] = values
            .fold([f32::INFINITY, f32::NEG_INFINITY], |[least, most], value| [least.min(*value), most.max(*value)]);
        most - least
    };
    let ranges: Vec<f32> = (0..width).map(range).collect();
    let mut values = Vec::with_capacity(rows * width);
    for row in 0..rows {
        let now = time(row);
        let first = (now as usize).min(count.saturating_sub(1));
        let second = (first + 1).min(count.saturating_sub(1));
        let share = (now - first as f64).clamp(0.0, 1.0);
        for (column, range) in ranges.iter().enumerate() {
            let [one, other] = [first, second].map(|row| matrix.values[row * width + column]);
            let jumps = f64::from((other - one).abs()) > JUMP * f64::from(*range);
            values.push(if jumps { one } else { one + share as f32 * (other - one) });
        }
    }
    Matrix { width, values }
}

/// A tremor of one column: a few sines of its band, whose velocity has a root mean square of 1.
struct Tremor {
    /// Frequency, amplitude and phase.
    waves: Vec<[f64; 3]>,
}

impl Tremor {
    fn draw(fps: f64, seed: u64, episode: u64, column: [usize; 2]) -> Tremor {
        use std::f64::consts::TAU;
        let place = 4 + ((column[0] as u64) << 32) + column[1] as u64;
        let mut random = generator(seed, Purpose::Operator, [episode, place]);
        let highest = BAND[1].min(SEEN * fps);
        if highest <= BAND[0] {
            return Tremor { waves: Vec::new() };
        }
        let mut wave = || {
            let [frequency, phase] = [(); 2].map(|()| f64::from(unit(&mut random)));
            let frequency = BAND[0] + (highest - BAND[0]) * frequency;
            [frequency, (2.0 / WAVES as f64).sqrt() / (TAU * frequency), TAU * phase]
        };
        Tremor { waves: (0..WAVES).map(|_| wave()).collect() }
    }

    fn at(&self, seconds: f64) -> f64 {
        use std::f64::consts::TAU;
        self.waves.iter().map(|[frequency, size, phase]| size * sine(TAU * frequency * seconds + phase)).sum()
    }
}
