//! How well vectors of held-out fragments fall into tasks, and into phases.
//!
//! KMeans with k = the number of tasks (ten restarts) and HDBSCAN (10, 5; its noise is one more class) cluster the probe;
//! NMI, AMI, ARI and purity compare the clusters with tasks and with phases. The boundary F1 asks where an episode changes:
//! every fragment of it goes to the nearest centre of KMeans, a frame has the cluster of the fragment around it, and changes
//! of cluster are matched with changes of phase at most [`TOLERANCE`] seconds away.

use clustering::{
    Contingency, HdbscanConfig, KMeansConfig, Points, boundary_f1, hdbscan, kmeans, nearest_centres, silhouette,
};
use serde::{Deserialize, Serialize};

use crate::embeddings::Embeddings;
use crate::error::Result;
use crate::prepared::HeldOut;

/// Seconds by which a boundary may be off.
pub const TOLERANCE: f64 = 0.2;

/// Frames by which a boundary may be off at a rate of frames per second.
pub fn tolerance(fps: f64) -> usize {
    ((TOLERANCE * fps).round() as usize).max(1)
}

/// Clusters against labels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agreement {
    /// Normalised mutual information, by the arithmetic mean.
    pub nmi: f64,
    /// The same, less what chance gives.
    pub ami: f64,
    /// Adjusted Rand index.
    pub ari: f64,
    /// The share of fragments with the commonest label of their cluster.
    pub purity: f64,
}

/// One clustering of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clustered {
    /// How many clusters, noise not counted.
    pub clusters: usize,
    /// Against `task_index`.
    pub task: Agreement,
    /// Against phases, where there are any.
    pub phase: Option<Agreement>,
    /// The F1 of boundaries between phases, for KMeans.
    pub boundary_f1: Option<f64>,
    /// How much nearer a fragment is to its own cluster than to the next; none for a single cluster.
    pub silhouette: Option<f64>,
}

/// Both clusterings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scores {
    /// Fragments in the probe.
    pub fragments: usize,
    /// KMeans.
    pub kmeans: Clustered,
    /// HDBSCAN.
    pub hdbscan: Clustered,
}

/// Clusters and scores the vectors of all held-out fragments; the probe is among them.
pub fn scores(embeddings: &Embeddings, held_out: &HeldOut, seed: u64) -> Result<Scores> {
    let probe = embeddings.rows(held_out.probe.iter().map(|at| at.0));
    let points = Points::new(&probe, embeddings.width)?;
    let (labels, boundary_f1) = by_kmeans(embeddings, held_out, seed)?;
    let mut by_kmeans = clustered(points, &labels, held_out.clusters, held_out)?;
    by_kmeans.boundary_f1 = boundary_f1;
    let dense = hdbscan(points, &HdbscanConfig::default())?;
    let by_hdbscan = clustered(points, &dense.labels, dense.clusters, held_out)?;
    Ok(Scores { fragments: points.len(), kmeans: by_kmeans, hdbscan: by_hdbscan })
}

/// The clusters of the probe by KMeans on the vectors of all held-out fragments, and the F1 of boundaries between phases,
/// where the dataset has phases.
pub(crate) fn by_kmeans(embeddings: &Embeddings, held_out: &HeldOut, seed: u64) -> Result<(Vec<i64>, Option<f64>)> {
    let probe = embeddings.rows(held_out.probe.iter().map(|at| at.0));
    let config = KMeansConfig { clusters: held_out.clusters, seed, ..KMeansConfig::default() };
    let found = kmeans(Points::new(&probe, embeddings.width)?, &config)?;
    let Some(phases) = &held_out.episodes else { return Ok((found.labels, None)) };
    let centres = Points::new(&found.centres, embeddings.width)?;
    let labels = nearest_centres(Points::new(&embeddings.values, embeddings.width)?, centres)?;
    let boundaries = boundary_f1(phases, &frames(&labels, held_out), held_out.tolerance)?;
    Ok((found.labels, Some(boundaries.f1)))
}

/// NMI of KMeans on vectors of the probe alone, against tasks and phases: cheap enough to watch training by.
pub fn quick_nmi(probe: &Embeddings, held_out: &HeldOut, seed: u64) -> Result<(f64, Option<f64>)> {
    let points = Points::new(&probe.values, probe.width)?;
    let config = KMeansConfig { clusters: held_out.clusters, seed, ..KMeansConfig::default() };
    let found = kmeans(points, &config)?;
    let nmi = |labels: &[i64]| clustering::nmi(labels, &found.labels);
    Ok((nmi(&held_out.tasks)?, held_out.phases.as_deref().map(nmi).transpose()?))
}

fn clustered(points: Points<'_>, labels: &[i64], clusters: usize, held_out: &HeldOut) -> Result<Clustered> {
    let phase = held_out.phases.as_deref().map(|phases| agreement(phases, labels)).transpose()?;
    let silhouette = silhouette(points, labels).ok();
    Ok(Clustered { clusters, task: agreement(&held_out.tasks, labels)?, phase, boundary_f1: None, silhouette })
}

/// Clusters against labels.
pub fn agreement(truth: &[i64], found: &[i64]) -> Result<Agreement> {
    let table = Contingency::new(truth, found)?;
    Ok(Agreement { nmi: table.nmi(), ami: table.ami(), ari: table.ari(), purity: table.purity() })
}

/// The cluster of each frame of each episode: that of the fragment whose middle it is, and at the ends of the nearest one.
fn frames(labels: &[i64], held_out: &HeldOut) -> Vec<Vec<i64>> {
    let index = &held_out.index;
    let middle = index.length() / 2;
    let episode = |episode: &dataset::EpisodeId| {
        let fragments = &labels[index.of_episode(*episode)];
        let count = fragments.len() + index.length() - 1;
        (0..count).map(|frame| fragments[frame.saturating_sub(middle).min(fragments.len() - 1)]).collect()
    };
    index.episodes().iter().map(episode).collect()
}
