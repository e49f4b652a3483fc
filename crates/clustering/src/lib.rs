//! Clusters of points, and how good they are.
