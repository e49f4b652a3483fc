//! The shape of a motion: how a class of segments spends its time, whatever its length and distance.
//!
//! Each member is brought to K samples of normalised time. With v_k the commands of a group there (a vector over its
//! coordinates) and d how far it goes in one step on average, the class says
//!
//! ```text
//! v_k(d) = p_k + G_k (d − d̄)
//! ```
//!
//! p is the members' mean, d̄ their mean d, and the matrix G_k says where in the motion more distance goes and how commands
//! become motion: for relative control a command is not the distance that it moves the robot by, and one coordinate pulls at
//! another. G is the least-squares slope of v on d, drawn by a ridge towards the identity in units in which commands and
//! distances are of one size. For absolute control commands are distances, so v averages to d and G_k to the identity: **the
//! commands add up to the distance asked for**, and rounding is taken out. Resampling averages over time and keeps the mean.

use serde::{Deserialize, Serialize};

/// The shape of one group's commands in one class of segments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// p: for each coordinate its K samples, in units of command.
    pub shape: Vec<Vec<f64>>,
    /// G: for each coordinate of commands and each coordinate of distances K samples, in units of command per unit of distance.
    pub gain: Vec<Vec<Vec<f64>>>,
    /// d̄: for each coordinate the mean distance of a step.
    pub pace: Vec<f64>,
}

/// One member: its commands, and how far it goes in one step on average.
pub(crate) struct Member {
    /// For each coordinate its K samples.
    pub(crate) samples: Vec<Vec<f64>>,
    /// For each coordinate.
    pub(crate) pace: Vec<f64>,
}

/// Units that make commands and distances comparable.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Units {
    /// The size of a command, of all coordinates together.
    pub(crate) command: f64,
    /// For each coordinate the distance that a unit of command moves it by.
    pub(crate) reach: Vec<f64>,
}

impl Profile {
    /// Fits the profile of one or more members.
    pub(crate) fn fit(members: &[Member], units: &Units, ridge: f64) -> Profile {
        let dims = units.reach.len();
        let count = members.len().max(1) as f64;
        let samples = members.first().and_then(|one| one.samples.first()).map_or(1, Vec::len);
        let mut shape = vec![vec![0.0; samples]; dims];
        let mut pace = vec![0.0; dims];
        for member in members {
            for dim in 0..dims {
                pace[dim] += member.pace[dim] / count;
                shape[dim].iter_mut().zip(&member.samples[dim]).for_each(|(mean, sample)| *mean += sample / count);
            }
        }
        // Normal equations of v on d, both in units of a command.
        let mut squares = vec![vec![0.0; dims]; dims];
        let mut products = vec![vec![0.0; dims * samples]; dims];
        for member in members {
            let excess: Vec<f64> =
                (0..dims).map(|dim| (member.pace[dim] - pace[dim]) / (units.reach[dim] * units.command)).collect();
            for (row, one) in excess.iter().enumerate() {
                squares[row].iter_mut().zip(&excess).for_each(|(sum, other)| *sum += one * other);
                for dim in 0..dims {
                    for at in 0..samples {
                        let departure = (member.samples[dim][at] - shape[dim][at]) / units.command;
                        products[row][dim * samples + at] += one * departure;
                    }
                }
            }
        }
        // Without a ridge, members that all move alike say nothing about slopes.
        let ridge = ridge.max(1e-9);
        for dim in 0..dims {
            squares[dim][dim] += ridge;
            products[dim][dim * samples..(dim + 1) * samples].iter_mut().for_each(|one| *one += ridge);
        }
        solve(&mut squares, &mut products);
        let of = |to: usize, from: usize| {
            let slopes = &products[from][to * samples..(to + 1) * samples];
            slopes.iter().map(|slope| slope / units.reach[from]).collect()
        };
        let gain = (0..dims).map(|to| (0..dims).map(|from| of(to, from)).collect()).collect();
        Profile { shape, gain, pace }
    }

    /// The commands of each coordinate over `steps` steps that move the group by `distance` in all. With `exact` they add up
    /// to the distance.
    pub(crate) fn steps(&self, distance: &[f64], steps: usize, exact: bool) -> Vec<Vec<f64>> {
        let count = steps as f64;
        let of = |dim: usize| -> Vec<f64> {
            let Some(shape) = self.shape.get(dim).filter(|shape| !shape.is_empty()) else {
                // A profile without this coordinate, which only a file can give, moves at one velocity.
                return vec![distance[dim] / count; steps];
            };
            let mut samples = shape.clone();
            for (from, distance) in distance.iter().enumerate() {
                let excess = distance / count - self.pace.get(from).copied().unwrap_or(0.0);
                let gain = self.gain.get(dim).and_then(|gain| gain.get(from)).map_or(&[][..], Vec::as_slice);
                samples.iter_mut().zip(gain).for_each(|(sample, gain)| *sample += gain * excess);
            }
            let mut commands = resampled(&samples, steps);
            if exact {
                let left = (distance[dim] - commands.iter().sum::<f64>()) / count;
                commands.iter_mut().for_each(|command| *command += left);
            }
            commands
        };
        (0..distance.len()).map(of).collect()
    }
}

/// A signal in `count` samples, each the mean over its share of time. Keeps the mean; nothing becomes zeros.
pub(crate) fn resampled(values: &[f64], count: usize) -> Vec<f64> {
    if values.is_empty() {
        return vec![0.0; count];
    }
    let (from, to) = (values.len() as f64, count as f64);
    let mut samples = Vec::with_capacity(count);
    for sample in 0..count {
        let (start, end) = (sample as f64 * from / to, (sample + 1) as f64 * from / to);
        let mut sum = 0.0;
        let mut at = start.floor() as usize;
        while at < values.len() && (at as f64) < end {
            let share = ((at + 1) as f64).min(end) - (at as f64).max(start);
            sum += values[at] * share.max(0.0);
            at += 1;
        }
        samples.push(sum / (end - start));
    }
    samples
}

/// Solves `matrix · x = right` for a symmetric positive definite matrix, in place of `right`: Gaussian elimination, which
/// needs no pivots then.
fn solve(matrix: &mut [Vec<f64>], right: &mut [Vec<f64>]) {
    for pivot in 0..matrix.len() {
        for row in 0..matrix.len() {
            if row == pivot {
                continue;
            }
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            subtract(matrix, row, pivot, factor);
            subtract(right, row, pivot, factor);
        }
    }
    for (row, values) in right.iter_mut().enumerate() {
        values.iter_mut().for_each(|value| *value /= matrix[row][row]);
    }
}

/// Subtracts a multiple of one row from another.
fn subtract(matrix: &mut [Vec<f64>], row: usize, pivot: usize, factor: f64) {
    let from = matrix[pivot].clone();
    matrix[row].iter_mut().zip(from).for_each(|(value, other)| *value -= factor * other);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    fn units(dims: usize) -> Units {
        Units { command: 1.0, reach: vec![1.0; dims] }
    }

    /// A member whose commands are distances.
    fn absolute(samples: Vec<Vec<f64>>) -> Member {
        Member { pace: samples.iter().map(|one| mean(one)).collect(), samples }
    }

    #[test]
    fn resampling_keeps_the_mean_and_whole_factors_are_exact() {
        assert_eq!(resampled(&[1.0, 3.0], 4), [1.0, 1.0, 3.0, 3.0]);
        assert_eq!(resampled(&[1.0, 3.0, 5.0, 7.0], 2), [2.0, 6.0]);
        for count in 1..40 {
            let values: Vec<f64> = (0..13).map(|at| (at as f64).sin()).collect();
            assert!((mean(&resampled(&values, count)) - mean(&values)).abs() < 1e-12, "{count}");
        }
    }

    #[test]
    fn gains_follow_where_members_differ_and_keep_distances() {
        // Members differ in their second half alone.
        let members: Vec<_> = [0.2, 0.4, 0.6].map(|late| absolute(vec![vec![0.5, 0.5, late, late]])).into();
        let profile = Profile::fit(&members, &units(1), 0.0);
        let gain = &profile.gain[0][0];
        assert!((mean(gain) - 1.0).abs() < 1e-6 && gain[0].abs() < 1e-6 && (gain[3] - 2.0).abs() < 1e-6, "{gain:?}");
        let shifted = Profile::fit(&members, &units(1), 1e9);
        assert!((shifted.gain[0][0][0] - 1.0).abs() < 1e-6);
        assert!((profile.steps(&[3.0], 7, false)[0].iter().sum::<f64>() - 3.0).abs() < 1e-6);
        assert!((profile.steps(&[3.0], 7, true)[0].iter().sum::<f64>() - 3.0).abs() < 1e-12);
    }

    #[test]
    fn commands_that_are_no_distances_are_learned() {
        // A command of 1 moves by 0.5, and the second coordinate must be pushed back by a quarter of the first.
        let member = |first: f64, second: f64| Member {
            samples: vec![vec![first / 0.5; 4], vec![second / 0.5 - 0.25 * first; 4]],
            pace: vec![first, second],
        };
        let members = [member(0.1, 0.3), member(0.4, -0.2), member(-0.3, 0.1), member(0.2, 0.2)];
        let units = Units { command: 0.5, reach: vec![0.5, 0.5] };
        let profile = Profile::fit(&members, &units, 1e-9);
        let commands = profile.steps(&[2.0, 4.0], 10, false);
        assert!((commands[0][5] - 0.4).abs() < 1e-6 && (commands[1][5] - 0.75).abs() < 1e-6, "{commands:?}");
    }

    #[test]
    fn a_constant_velocity_integrates_exactly() {
        let profile = Profile::fit(&[absolute(vec![vec![0.25; 8]])], &units(1), 0.1);
        assert_eq!(profile.steps(&[3.0], 12, false), [[0.25; 12]]);
        assert!(profile.steps(&[6.0], 12, true)[0].iter().all(|one| (one - 0.5).abs() < 1e-12));
    }
}
