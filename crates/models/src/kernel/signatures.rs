//! What is kept of a fragment for D_φ: from each start a return and a cloud of points.
//!
//! W₂ between two clouds of n equally likely points is √(min over permutations π of 1/n · Σ ‖x_i − y_π(i)‖²). One point is
//! enough for a diagonal Gaussian: W₂² = ‖m − m'‖² + ‖σ − σ'‖², so the Gaussian is the point (m, σ).

use super::assignment::assign;
use super::distances::{Distances, apart};
use super::draw::distinct;
use crate::error::{Error, Result};

/// N fragments as what follows from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Signatures {
    starts: usize,
    points: usize,
    width: usize,
    /// `[N, starts]`
    values: Vec<f64>,
    /// `[N, starts, points, width]`
    clouds: Vec<f32>,
}

/// The two sides of D_φ before their weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// E_s |V^τ(s) − V^τ'(s)|
    pub value: f64,
    /// E_s W₂(P^k(· given s, τ), P^k(· given s, τ'))
    pub rollout: f64,
}

impl Signatures {
    /// None yet; each will have clouds of `points` points of `width` numbers from each of `starts`.
    pub fn new(starts: usize, points: usize, width: usize) -> Result<Signatures> {
        if starts * points * width == 0 {
            let shape = format!("{starts} starts, {points} points and {width} numbers");
            return Err(Error::Config(format!("signatures of {shape}: none of them can be 0")));
        }
        Ok(Signatures { starts, points, width, values: Vec::new(), clouds: Vec::new() })
    }

    /// Adds fragments.
    ///
    /// # Shapes
    /// `values`: `[fragments, starts]`, `clouds`: `[fragments, starts, points, width]`.
    pub fn push(&mut self, values: &[f64], clouds: &[f32]) -> Result<()> {
        let fragments = values.len() / self.starts;
        let wanted = fragments * self.starts * self.points * self.width;
        if !values.len().is_multiple_of(self.starts) || clouds.len() != wanted {
            return Err(Error::Config(format!(
                "{} returns and {} coordinates are no whole fragments of {} starts, {} points and {} numbers",
                values.len(),
                clouds.len(),
                self.starts,
                self.points,
                self.width
            )));
        }
        if values.iter().any(|one| !one.is_finite()) || clouds.iter().any(|one| !one.is_finite()) {
            return Err(Error::Config(
                "an imagined return or latent is not a finite number; look at the world model's training".into(),
            ));
        }
        self.values.extend_from_slice(values);
        self.clouds.extend_from_slice(clouds);
        Ok(())
    }

    /// How many fragments.
    pub fn len(&self) -> usize {
        self.values.len() / self.starts
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// V^τ(s) of one fragment from each start.
    pub fn values(&self, fragment: usize) -> &[f64] {
        &self.values[fragment * self.starts..(fragment + 1) * self.starts]
    }

    /// Its cloud from each start.
    pub fn clouds(&self, fragment: usize) -> impl ExactSizeIterator<Item = &[f32]> {
        let one = self.points * self.width;
        self.clouds[fragment * self.starts * one..(fragment + 1) * self.starts * one].chunks_exact(one)
    }

    /// Both sides of D_φ for a pair.
    pub fn parts(&self, one: usize, other: usize) -> Parts {
        Parts { value: self.value_part(one, other), rollout: self.rollout_part(one, other) }
    }

    /// D_φ between all pairs. A side with weight 0 is not computed.
    pub fn distances(&self, w_r: f64, w_e: f64) -> Distances {
        Distances::between(self.len(), |one, other| self.distance((one, other), w_r, w_e))
    }

    /// D_φ of one pair. A side with weight 0 is not computed.
    pub fn distance(&self, (one, other): (usize, usize), w_r: f64, w_e: f64) -> f64 {
        let value = if w_r == 0.0 { 0.0 } else { w_r * self.value_part(one, other) };
        let rollout = if w_e == 0.0 { 0.0 } else { w_e * self.rollout_part(one, other) };
        value + rollout
    }

    /// The mean of D_φ over pairs of different fragments, drawn without repetition; zero for fewer than two fragments.
    pub fn mean_distance(&self, w_r: f64, w_e: f64, pairs: usize, seed: u64) -> f64 {
        let count = self.len();
        let drawn = distinct(seed, b"kernel scale", count * count, pairs).into_iter();
        let drawn: Vec<(usize, usize)> =
            drawn.map(|at| (at / count, at % count)).filter(|(one, other)| one != other).collect();
        let sum: f64 = drawn.iter().map(|pair| self.distance(*pair, w_r, w_e)).sum();
        sum / drawn.len().max(1) as f64
    }

    /// How many starts a fragment was imagined from, and how many points and numbers its clouds have.
    pub(super) fn shape(&self) -> (usize, usize, usize) {
        (self.starts, self.points, self.width)
    }

    /// Coordinates for algorithms that want points, such as KMeans: rows whose squared Euclidean distance is
    /// w_R²·E_s|ΔV|² + w_E²·E_s W₂². Root mean squares stand where D_φ has means, so D_φ ≤ √2 · that distance. Only where a
    /// cloud is one point; W₂ between samples has no such coordinates.
    ///
    /// # Shapes
    /// Gives `[N, starts · (1 + width)]` and the width of a row.
    pub fn coordinates(&self, w_r: f64, w_e: f64) -> Result<(Vec<f32>, usize)> {
        if self.points != 1 {
            return Err(Error::Config(format!(
                "clouds of {} sampled points have no coordinates; set `transport` to `gaussian`",
                self.points
            )));
        }
        let share = 1.0 / (self.starts as f64).sqrt();
        let row = |fragment: usize| {
            let values = self.values(fragment).iter().map(move |value| (value * w_r * share) as f32);
            values.chain(self.clouds(fragment).flatten().map(move |one| (f64::from(*one) * w_e * share) as f32))
        };
        Ok(((0..self.len()).flat_map(row).collect(), self.starts * (1 + self.width)))
    }

    fn value_part(&self, one: usize, other: usize) -> f64 {
        let differences = self.values(one).iter().zip(self.values(other)).map(|(one, other)| (one - other).abs());
        differences.sum::<f64>() / self.starts as f64
    }

    fn rollout_part(&self, one: usize, other: usize) -> f64 {
        let clouds = self.clouds(one).zip(self.clouds(other));
        clouds.map(|(one, other)| wasserstein(one, other, self.width)).sum::<f64>() / self.starts as f64
    }
}

/// W₂ between two clouds of as many points, `width` numbers each.
pub(super) fn wasserstein(one: &[f32], other: &[f32], width: usize) -> f64 {
    let points = one.len() / width;
    if points == 1 {
        return apart(one, other).sqrt();
    }
    let mut costs = vec![0.0; points * points];
    for (point, costs) in one.chunks_exact(width).zip(costs.chunks_exact_mut(points)) {
        for (target, cost) in other.chunks_exact(width).zip(costs) {
            *cost = apart(point, target);
        }
    }
    let columns = assign(&costs, points);
    let sum: f64 = columns.iter().enumerate().map(|(row, column)| costs[row * points + column]).sum();
    (sum / points as f64).sqrt()
}
