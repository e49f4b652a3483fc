//! HDBSCAN (Campello, Moulavi and Sander 2013): clusters are what stays together over the longest range of densities.
//!
//! 1. `neighbours`: the core distance of a point is that to its `min_samples`-th neighbour, itself the first.
//! 2. `spanning_tree`: a minimum spanning tree under mutual reachability, max(core(a), core(b), ‖a − b‖), by Prim.
//! 3. `condense`: the tree read from its longest edge down; splits that leave fewer than `min_cluster_size` points are points
//!    falling out. Of the clusters that remain, the selection of greatest excess of mass is taken.
//!
//! Distances that decide anything are in double precision, summed in order, so that labels are those of the reference
//! implementations; single precision only rules out what cannot matter. Time is O(n² d) at worst, memory O(n d).
//!
//! Two conventions are about. Here, as in scikit-learn, `min_samples` counts the point itself; the hdbscan package does not,
//! and its `min_samples = m` is `m + 1` here. Edges of equal length are taken in the order in which Prim, started at point 0,
//! finds them; the reference implementations sort them unstably, so that a point on such an edge can be labelled differently.

mod condense;
mod neighbours;
mod spanning_tree;

use crate::error::ClusteringError;
use crate::panels::Panels;
use crate::points::{NOISE, Points};

/// How HDBSCAN runs. `Default` is the paper's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HdbscanConfig {
    /// The fewest points of a cluster.
    pub min_cluster_size: usize,
    /// Which neighbour the core distance reaches to, the point itself being the first.
    pub min_samples: usize,
    /// Whether all points together may be a cluster.
    pub allow_single_cluster: bool,
}

impl Default for HdbscanConfig {
    fn default() -> HdbscanConfig {
        HdbscanConfig { min_cluster_size: 10, min_samples: 5, allow_single_cluster: false }
    }
}

/// What HDBSCAN found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hdbscan {
    /// The cluster of each point, or [`NOISE`].
    pub labels: Vec<i64>,
    /// How many clusters there are.
    pub clusters: usize,
}

/// Clusters points by density.
///
/// # Shapes
/// `points` is `[n, d]`, the labels `[n]`.
///
/// # Errors
/// On settings out of range, and fewer points than `min_samples`.
pub fn hdbscan(points: Points<'_>, config: &HdbscanConfig) -> Result<Hdbscan, ClusteringError> {
    let &HdbscanConfig { min_cluster_size, min_samples, allow_single_cluster } = config;
    if min_cluster_size < 2 {
        let (found, wanted) = (min_cluster_size.to_string(), "2 or more");
        return Err(ClusteringError::BadSetting { name: "min_cluster_size", found, wanted });
    }
    if min_samples == 0 || min_samples > points.len().max(1) {
        let (found, wanted) = (min_samples.to_string(), "at least 1 and at most the number of points");
        return Err(ClusteringError::BadSetting { name: "min_samples", found, wanted });
    }
    if points.len() < 2 {
        return Ok(Hdbscan { labels: vec![NOISE; points.len()], clusters: 0 });
    }
    let core = {
        let panels = Panels::new(points.values(), points.width());
        neighbours::core_distances(points, &panels, min_samples)
    };
    let tree = spanning_tree::minimum_spanning_tree(points, &core);
    let (labels, clusters) = condense::labels(tree, min_cluster_size, allow_single_cluster);
    Ok(Hdbscan { labels, clusters })
}
