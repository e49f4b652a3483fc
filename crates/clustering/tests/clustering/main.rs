//! Clustering held against reference implementations, and against its own laws.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod golden;
mod laws;
