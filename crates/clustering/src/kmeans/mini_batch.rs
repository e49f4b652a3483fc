//! KMeans over a stream (Sculley 2010): each batch moves the centres, and centres that have seen much move little.
//!
//! After a batch, centre c with n points so far and the batch's points B of its own is the mean of all points it was ever
//! given: c ← (n c + Σ_B x) / (n + |B|). Memory is one batch and the centres; a point is looked at once, and several passes
//! are a stream that repeats. Centres that get hardly any points move to the batch's farthest points, so that a poor start
//! is not for ever.

use super::{KMeansConfig, kmeans, lloyd};
use crate::error::ClusteringError;
use crate::panels::Panels;
use crate::points::Points;

/// How KMeans over a stream runs.
#[derive(Clone, Debug, PartialEq)]
pub struct MiniBatchConfig {
    /// k, the number of clusters.
    pub clusters: usize,
    /// Points that are gathered from the head of the stream for the first centres, which are those of KMeans on them; k at
    /// least.
    pub seeding_points: usize,
    /// A centre with less than this share of the points of the largest cluster moves to a far point; 0 switches it off.
    pub reassignment: f64,
    /// Decides the first centres.
    pub seed: u64,
}

impl Default for MiniBatchConfig {
    fn default() -> MiniBatchConfig {
        MiniBatchConfig { clusters: 8, seeding_points: 4096, reassignment: 0.01, seed: 0 }
    }
}

/// What KMeans found in a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct MiniBatchKMeans {
    /// `[k, d]`, row by row.
    pub centres: Vec<f32>,
    /// The points that each centre is the mean of; a centre that was moved starts with those of the smallest other one.
    pub counts: Vec<u64>,
    /// Σ of squared distances between the points and their centres, each measured before its batch moved them.
    pub inertia: f64,
    /// How many points the stream had.
    pub points: u64,
}

/// Clusters a stream of batches around k centres. The batches may be of any sizes.
///
/// # Shapes
/// Each batch is `[m, width]`, row by row; the centres are `[k, width]`.
///
/// # Errors
/// On a stream of fewer points than clusters, on batches that are no points, and settings out of range.
pub fn mini_batch_kmeans<B: AsRef<[f32]>>(
    batches: impl IntoIterator<Item = B>,
    width: usize,
    config: &MiniBatchConfig,
) -> Result<MiniBatchKMeans, ClusteringError> {
    if !(0.0..1.0).contains(&config.reassignment) {
        let (found, wanted) = (config.reassignment.to_string(), "a share of at least 0 and less than 1, such as 0.01");
        return Err(ClusteringError::BadSetting { name: "reassignment", found, wanted });
    }
    let mut batches = batches.into_iter();
    let mut head = Vec::new();
    while head.len() < config.seeding_points.max(config.clusters) * width {
        let Some(batch) = batches.next() else { break };
        head.extend_from_slice(Points::new(batch.as_ref(), width)?.values());
    }
    let seeding = KMeansConfig { clusters: config.clusters, restarts: 3, seed: config.seed, ..KMeansConfig::default() };
    let centres = kmeans(Points::new(&head, width)?, &seeding)?.centres;
    let counts = vec![0; config.clusters];
    let mut state = MiniBatchKMeans { centres, counts, inertia: 0.0, points: 0 };
    state.update(Points::new(&head, width)?, config.reassignment);
    drop(head);
    for batch in batches {
        state.update(Points::new(batch.as_ref(), width)?, config.reassignment);
    }
    Ok(state)
}

impl MiniBatchKMeans {
    fn update(&mut self, batch: Points<'_>, reassignment: f64) {
        let width = batch.width();
        let (labels, distances) = lloyd::assigned(batch, &Panels::new(&self.centres, width));
        let mut sums = vec![0.0f64; self.centres.len()];
        let mut counts = vec![0u64; self.counts.len()];
        for (row, &label) in batch.rows().zip(&labels) {
            let sum = &mut sums[label as usize * width..][..width];
            sum.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
            counts[label as usize] += 1;
        }
        let centres = self.centres.chunks_exact_mut(width).zip(sums.chunks_exact(width));
        for ((centre, sums), (total, &count)) in centres.zip(self.counts.iter_mut().zip(&counts)) {
            if count > 0 {
                *total += count;
                let (share, total) = (count as f64, *total as f64);
                for (centre, sum) in centre.iter_mut().zip(sums) {
                    let old = f64::from(*centre);
                    *centre = (old + (sum - share * old) / total) as f32;
                }
            }
        }
        self.inertia += distances.iter().map(|&distance| f64::from(distance)).sum::<f64>();
        self.points += batch.len() as u64;
        self.reassign(batch, &distances, reassignment);
    }

    /// Moves centres that hardly get points to the batch's farthest points, at most to half of them.
    fn reassign(&mut self, batch: Points<'_>, distances: &[f32], reassignment: f64) {
        let width = batch.width();
        let most = self.counts.iter().copied().max().unwrap_or_default();
        let poor = |count: u64| (count as f64) < reassignment * most as f64;
        let starved: Vec<usize> = (0..self.counts.len()).filter(|&cluster| poor(self.counts[cluster])).collect();
        if starved.is_empty() {
            return;
        }
        // What a moved centre counts as: little, but not so little that it moves again at once.
        let fresh = self.counts.iter().copied().filter(|&count| !poor(count)).min().unwrap_or(most);
        let mut farthest: Vec<usize> = (0..batch.len()).collect();
        farthest.sort_unstable_by(|a, b| distances[*b].total_cmp(&distances[*a]).then(a.cmp(b)));
        for (cluster, point) in starved.into_iter().zip(farthest.into_iter().take(batch.len() / 2)) {
            self.centres[cluster * width..][..width].copy_from_slice(batch.row(point));
            self.counts[cluster] = fresh;
        }
    }
}
