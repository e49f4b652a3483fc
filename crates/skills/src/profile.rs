//! The shape of a motion: how a class of segments spends its time, whatever its length and displacement.
//!
//! Each member is brought to K samples of normalised time. With v_k its velocity there and τ = mean of v_k its mean
//! velocity, the class says for each axis
//!
//! ```text
//! v_k(τ) = p_k + g_k (τ − p̄)        p̄ = mean of p_k,  mean of g_k = 1
//! ```
//!
//! p is the profile (the members' mean, or the member nearest to it), and the gain g says where in the motion more
//! displacement goes: g = 1 shifts, g = p / p̄ scales. It is the least-squares slope of v_k on τ, drawn towards 1 by a
//! ridge; since v averages to τ, slopes average to 1, so **a profile always integrates to the displacement asked for**.
//! Both ways of resampling average over time and so keep the mean.

use serde::{Deserialize, Serialize};

/// Where a profile comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileKind {
    /// The mean of the members.
    Mean,
    /// The member of least squared distance to all others, which is the one nearest to the mean.
    Medoid,
}

/// The shape of one class of segments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Mean or medoid.
    pub kind: ProfileKind,
    /// p: for each axis its K samples, in units of action.
    pub shape: Vec<Vec<f64>>,
    /// g: for each axis its K samples.
    pub gain: Vec<Vec<f64>>,
}

impl Profile {
    /// Fits the profile of members, each a list of axes of K samples. There is at least one member.
    pub(crate) fn fit(members: &[Vec<Vec<f64>>], kind: ProfileKind, ridge: f64) -> Profile {
        let centre = mean_shape(members);
        let shape = match kind {
            ProfileKind::Mean => centre.clone(),
            ProfileKind::Medoid => members
                .iter()
                .min_by(|left, right| distance(left, &centre).total_cmp(&distance(right, &centre)))
                .cloned()
                .unwrap_or_else(|| centre.clone()),
        };
        let gain = (0..centre.len()).map(|axis| gains(members, &centre[axis], axis, ridge)).collect();
        Profile { kind, shape, gain }
    }

    /// The velocities of one axis over `steps` steps that move it by `total` in all.
    pub(crate) fn steps(&self, axis: usize, total: f64, steps: usize) -> Vec<f64> {
        let of = |samples: &'_ [Vec<f64>]| samples.get(axis).filter(|samples| !samples.is_empty()).cloned();
        // A profile without this axis, which only a file can give, moves at one velocity.
        let (Some(shape), Some(gain)) = (of(&self.shape), of(&self.gain)) else {
            return vec![total / steps as f64; steps];
        };
        let excess = total / steps as f64 - mean(&shape);
        let samples: Vec<f64> = shape.iter().zip(&gain).map(|(shape, gain)| shape + gain * excess).collect();
        let mut velocities = resampled(&samples, steps);
        // What is left is rounding.
        let left = (total - velocities.iter().sum::<f64>()) / steps as f64;
        velocities.iter_mut().for_each(|velocity| *velocity += left);
        velocities
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

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn mean_shape(members: &[Vec<Vec<f64>>]) -> Vec<Vec<f64>> {
    let mut centre = members.first().cloned().unwrap_or_default();
    for (axis, samples) in centre.iter_mut().enumerate() {
        for (at, sample) in samples.iter_mut().enumerate() {
            *sample = members.iter().map(|member| member[axis][at]).sum::<f64>() / members.len() as f64;
        }
    }
    centre
}

fn distance(left: &[Vec<f64>], right: &[Vec<f64>]) -> f64 {
    left.iter().flatten().zip(right.iter().flatten()).map(|(left, right)| (left - right).powi(2)).sum()
}

/// The slope of each sample on the mean velocity.
fn gains(members: &[Vec<Vec<f64>>], centre: &[f64], axis: usize, ridge: f64) -> Vec<f64> {
    let middle = mean(centre);
    let (mut variance, mut covariances) = (ridge, vec![ridge; centre.len()]);
    for member in members {
        let excess = mean(&member[axis]) - middle;
        variance += excess * excess;
        for ((covariance, sample), centre) in covariances.iter_mut().zip(&member[axis]).zip(centre) {
            *covariance += excess * (sample - centre);
        }
    }
    // Without a ridge, members that all move alike say nothing about slopes.
    if variance > 1e-12 {
        covariances.iter_mut().for_each(|covariance| *covariance /= variance);
    } else {
        covariances.fill(1.0);
    }
    covariances
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn gains_average_to_one_and_follow_where_members_differ() {
        // Members differ in their second half alone.
        let members: Vec<_> = [0.2, 0.4, 0.6].map(|late| vec![vec![0.5, 0.5, late, late]]).into();
        let profile = Profile::fit(&members, ProfileKind::Mean, 0.0);
        let gain = &profile.gain[0];
        assert!((mean(gain) - 1.0).abs() < 1e-12 && gain[0].abs() < 1e-12 && (gain[3] - 2.0).abs() < 1e-12);
        let shifted = Profile::fit(&members, ProfileKind::Mean, 1e9);
        assert!((shifted.gain[0][0] - 1.0).abs() < 1e-6);
        assert_eq!(Profile::fit(&members[..1], ProfileKind::Medoid, 0.0).gain, [[1.0; 4]]);
    }

    #[test]
    fn a_constant_velocity_integrates_exactly() {
        let profile = Profile::fit(&[vec![vec![0.25; 8]]], ProfileKind::Mean, 0.1);
        assert_eq!(profile.steps(0, 3.0, 12), [0.25; 12]);
        assert_eq!(profile.steps(0, 6.0, 12), [0.5; 12]);
        assert!((profile.steps(0, 1.1, 7).iter().sum::<f64>() - 1.1).abs() < 1e-12);
    }
}
