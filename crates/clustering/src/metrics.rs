//! How well labels agree with others, with the geometry of the points, and with where a sequence changes.
//!
//! Labels are any integers; they are only compared for being equal. Noise ([`NOISE`](crate::NOISE)) is one more class.
//! Agreement of two labellings of n things is a function of their [`Contingency`] table alone, so that one table serves
//! all scores. Values are those of scikit-learn to 1e-9, the corner cases included: no things, or one class on both
//! sides, agree fully.

mod boundary;
mod contingency;
mod segments;
mod silhouette;

pub use boundary::{BoundaryScore, boundary_f1, matched_boundaries};
pub use contingency::Contingency;
pub use segments::{matched_segments, overlap};
pub use silhouette::silhouette;

use crate::error::ClusteringError;

/// Normalised mutual information, I(U; V) over the mean of H(U) and H(V), in `[0, 1]`.
///
/// # Errors
/// On labellings of different lengths.
pub fn nmi(truth: &[i64], predicted: &[i64]) -> Result<f64, ClusteringError> {
    Ok(Contingency::new(truth, predicted)?.nmi())
}

/// Adjusted mutual information: NMI less what chance gives, 0 for independent labels on average.
///
/// # Errors
/// On labellings of different lengths.
pub fn ami(truth: &[i64], predicted: &[i64]) -> Result<f64, ClusteringError> {
    Ok(Contingency::new(truth, predicted)?.ami())
}

/// Adjusted Rand index: the share of pairs on which both sides agree, less what chance gives.
///
/// # Errors
/// On labellings of different lengths.
pub fn ari(truth: &[i64], predicted: &[i64]) -> Result<f64, ClusteringError> {
    Ok(Contingency::new(truth, predicted)?.ari())
}

/// Purity: the share of things that are of the commonest class of their cluster; 1 for no things.
///
/// # Errors
/// On labellings of different lengths.
pub fn purity(truth: &[i64], predicted: &[i64]) -> Result<f64, ClusteringError> {
    Ok(Contingency::new(truth, predicted)?.purity())
}
