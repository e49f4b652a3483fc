//! Clusters of points, and how good they are.
//!
//! Everything takes plain slices and gives plain vectors: no IO, no tensors, no panic on input. Points are [`Points`],
//! a view of a row-major `[n, d]` matrix that was looked at once; labels are `i64`, with [`NOISE`] for points outside
//! all clusters. Results are functions of input and seed: they do not depend on the number of threads.
//!
//! ```
//! use clustering::{KMeansConfig, Points, kmeans, nmi};
//!
//! let values = [0.0, 0.1, 0.1, 0.0, 9.0, 9.1, 9.1, 9.0];
//! let points = Points::new(&values, 2)?;
//! let found = kmeans(points, &KMeansConfig { clusters: 2, ..KMeansConfig::default() })?;
//! assert_eq!(nmi(&[7, 7, 3, 3], &found.labels)?, 1.0);
//! # Ok::<(), clustering::ClusteringError>(())
//! ```

mod bootstrap;
mod dp_means;
mod draw;
mod dtw;
mod error;
mod hdbscan;
mod kmeans;
mod metrics;
mod panels;
mod points;
mod principal_plane;
mod wilson;

pub use bootstrap::{BootstrapConfig, Interval, bootstrap, bootstrap_mean, quantile};
pub use dp_means::{DpMeans, DpMeansConfig, dp_means, lambda_for_clusters};
pub use dtw::{Alignment, dtw, dtw_path, dtw_path_costs};
pub use error::{ClusteringError, MAX_MAGNITUDE};
pub use hdbscan::{Hdbscan, HdbscanConfig, hdbscan};
pub use kmeans::{
    KMeans, KMeansConfig, MiniBatchConfig, MiniBatchKMeans, Stopped, kmeans, mini_batch_kmeans, nearest_centres,
};
pub use metrics::{
    BoundaryScore, Contingency, ami, ari, boundary_f1, matched_boundaries, matched_segments, nmi, overlap, purity,
    silhouette,
};
pub use points::{MAX_POINTS, NOISE, Points};
pub use principal_plane::principal_plane;
pub use wilson::wilson_interval;
