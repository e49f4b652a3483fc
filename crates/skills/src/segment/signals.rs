//! What is segmented: velocities relative to the speed of the moment, and their noise.

use std::ops::Range;

use super::{RATE, SegmentConfig};
use crate::episode::Episode;
use crate::layout::{ActionLayout, Control};

/// A column whose noise is this share of its power or more is left out.
const MOSTLY: f64 = 0.5;

/// The least speed of a moment that velocities are measured by, as a share of fast motions: what is slower is rest.
const SLOW: f64 = 0.2;

/// Seconds in which a gripper closes that is told how far, when it is fast.
const CLOSES: f64 = 0.5;

/// Rows between jumps of gripper commands.
pub(super) fn stretches(episode: &Episode, layout: &ActionLayout, cuts: bool) -> Vec<Range<usize>> {
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

/// The velocity of every coordinate as a share of its fast motions and then of the speed of the moment, and the speed; and the
/// variance of their noise. What is mostly noise is left out: a part of the robot that stands still says nothing about motions.
pub(super) fn velocities(episode: &Episode, layout: &ActionLayout, config: &SegmentConfig) -> (Vec<Vec<f64>>, f64) {
    let speed_weight = config.speed_weight;
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
    if config.state_weight > 0.0 {
        for column in measured(episode, layout) {
            add(column.into_iter().map(|value| value * config.state_weight).collect());
        }
    }
    noise *= relative_to_the_moment(&mut columns, config.moment * layout.fps);
    if speed_weight > 0.0 {
        let speed = |row: usize| columns.iter().map(|column| column[row] * column[row]).sum::<f64>().sqrt();
        let speeds = (0..episode.len()).map(|row| speed_weight * speed(row)).collect();
        columns.push(speeds);
    }
    (columns, noise)
}

/// Divides velocities by the speed of the moment: its root mean square over some rows around each row, or [`SLOW`] if that is
/// more. Motor noise and the care that people take grow and shrink with the speed (Harris and Wolpert 1998), so a change
/// counts by its share of the speed around it; a slow insertion has boundaries as a fast transport has. Returns by how much
/// that changes the variance of noise, on average.
fn relative_to_the_moment(columns: &mut [Vec<f64>], rows: f64) -> f64 {
    let count = columns.first().map_or(0, Vec::len);
    let half = (rows / 2.0).round() as usize;
    if half == 0 || count == 0 {
        return 1.0;
    }
    let power = |row: usize| columns.iter().map(|column| column[row] * column[row]).sum::<f64>();
    let sums: Vec<f64> = std::iter::once(0.0)
        .chain((0..count).scan(0.0, |sum, row| {
            *sum += power(row);
            Some(*sum)
        }))
        .collect();
    let gain = |row: usize| {
        let own = row.saturating_sub(half)..(row + half + 1).min(count);
        1.0 / ((sums[own.end] - sums[own.start]) / own.len() as f64).sqrt().max(SLOW)
    };
    let gains: Vec<f64> = (0..count).map(gain).collect();
    for column in columns {
        column.iter_mut().zip(&gains).for_each(|(value, gain)| *value *= gain);
    }
    gains.iter().map(|gain| gain * gain).sum::<f64>() / count as f64
}

/// Measured velocities in units of commands, for groups whose commands are changes and whose positions are in the state.
fn measured(episode: &Episode, layout: &ActionLayout) -> Vec<Vec<f64>> {
    let mut found = Vec::new();
    for (at, group) in layout.groups.iter().enumerate() {
        if group.control != Control::Relative || !group.anchored() {
            continue;
        }
        let mut dim = 0;
        while dim < group.dims() {
            let block = group.block(dim);
            dim = block.end;
            let velocity = |dim: usize| -> Vec<f64> {
                let places = episode.places(at, dim);
                let last = places.len().saturating_sub(1);
                let change = |row: usize| (places[(row + 1).min(last)] - places[row.saturating_sub(1)]) / 2.0;
                (0..places.len()).map(change).collect()
            };
            let velocities: Vec<Vec<f64>> = block.clone().map(velocity).collect();
            let power = |columns: &[Vec<f64>]| columns.iter().flatten().map(|one| one * one).sum::<f64>();
            let commands: Vec<Vec<f64>> = block.clone().map(|dim| episode.commands(at, dim)).collect();
            let (own, commanded) = (power(&velocities), power(&commands));
            let fast = group.fast[block.start];
            if own > 0.0 && fast > 1e-9 {
                let gain = (commanded / own).sqrt() / fast;
                found.extend(velocities.into_iter().map(|one| one.into_iter().map(|v| v * gain).collect::<Vec<f64>>()));
            }
        }
    }
    found
}

/// Rows of one sample.
pub(super) fn stride(fps: f64) -> usize {
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
