//! Clusters of windows: a cut wherever the cluster of what the robot does changes.

use clustering::{KMeansConfig, Points, kmeans, nearest_centres};
use rayon::prelude::*;

use super::{Cutter, rows};
use crate::annotate_eval::samples::{Sample, Samples, Signal};
use crate::error::Result;
use crate::prepared::commonest;

/// Numbers of clusters, and seconds of a window: each with each.
const CLUSTERS: [usize; 3] = [4, 8, 12];
const SECONDS: [f64; 4] = [0.15, 0.25, 0.5, 1.0];

/// Rows that are kept of a window, at even distances.
const KEPT: usize = 5;

/// KMeans on the windows around the rows of training episodes. Windows are of velocities, which are the actions themselves
/// where these are not positions.
pub struct WindowClusters {
    fps: f64,
    /// For each setting the centres.
    centres: Vec<Vec<f32>>,
}

impl WindowClusters {
    /// Clusters the windows of the training episodes, once for each setting.
    ///
    /// # Errors
    /// If there are fewer windows than clusters.
    pub fn new(samples: &Samples, seed: u64) -> Result<WindowClusters> {
        let fps = samples.fps;
        let training = samples.which(false);
        let fit = |setting: usize| -> Result<Vec<f32>> {
            let (clusters, seconds) = of(setting);
            let all: Vec<f32> =
                training.iter().flat_map(|sample| windows(&sample.signals.velocities, rows(seconds, fps))).collect();
            let config = KMeansConfig { clusters, restarts: 3, seed, ..KMeansConfig::default() };
            Ok(kmeans(Points::new(&all, KEPT * samples.layout.width)?, &config)?.centres)
        };
        let centres = (0..CLUSTERS.len() * SECONDS.len()).into_par_iter().map(fit).collect::<Result<_>>()?;
        Ok(WindowClusters { fps, centres })
    }
}

impl Cutter for WindowClusters {
    fn name(&self) -> String {
        "KMeans on windows".to_owned()
    }

    fn settings(&self) -> Vec<String> {
        (0..self.centres.len())
            .map(|at| {
                let (clusters, seconds) = of(at);
                format!("{clusters} clusters of windows of {seconds} s")
            })
            .collect()
    }

    fn cuts(&self, setting: usize, sample: &Sample) -> Result<Vec<usize>> {
        let length = rows(of(setting).1, self.fps);
        let signal = &sample.signals.velocities;
        let width = KEPT * signal.width;
        let own = windows(signal, length);
        let labels = nearest_centres(Points::new(&own, width)?, Points::new(&self.centres[setting], width)?)?;
        Ok(changes(&settled(&labels, length / 2)))
    }
}

/// The clusters and seconds of a setting.
fn of(setting: usize) -> (usize, f64) {
    (CLUSTERS[setting / SECONDS.len() % CLUSTERS.len()], SECONDS[setting % SECONDS.len()])
}

/// The windows around all rows, `[rows, KEPT · width]`. At the ends, the first or last row is repeated.
fn windows(signal: &Signal, length: usize) -> Vec<f32> {
    let last = signal.len().saturating_sub(1);
    let mut all = Vec::with_capacity(signal.len() * KEPT * signal.width);
    for row in 0..signal.len() {
        for at in 0..KEPT {
            let place = (row + at * length / (KEPT - 1)).saturating_sub(length / 2).min(last);
            all.extend(signal.row(place).iter().map(|value| *value as f32));
        }
    }
    all
}

/// Each label replaced by the commonest one around it, so that a single row makes no segment.
fn settled(labels: &[i64], reach: usize) -> Vec<i64> {
    let near = |at: usize| &labels[at.saturating_sub(reach)..(at + reach + 1).min(labels.len())];
    (0..labels.len()).map(|at| commonest(near(at))).collect()
}

fn changes(labels: &[i64]) -> Vec<usize> {
    (1..labels.len()).filter(|at| labels[*at] != labels[at - 1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_repeat_the_ends_and_single_rows_settle() {
        let signal = Signal { width: 1, values: vec![0.0, 1.0, 2.0, 3.0] };
        assert_eq!(windows(&signal, 4)[..KEPT], [0.0, 0.0, 0.0, 1.0, 2.0]);
        assert_eq!(windows(&signal, 4)[3 * KEPT..], [1.0, 2.0, 3.0, 3.0, 3.0]);
        assert_eq!(changes(&settled(&[0, 0, 0, 7, 0, 0, 5, 5, 5, 5], 1)), [6]);
    }
}
