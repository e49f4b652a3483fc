//! Phases on datasets, and what they are measured by.
//!
//! ```text
//! Source ──► Prepared ──► world_model_phase (A) ──► amortizer_phase (C) ──► scores
//!            split, probe, labels      └── run directories ──┘
//! ```
//! A [`Source`] is a dataset with its features, [`Prepared`] the same with a split, a probe and labels. The phases are
//! objectives for the one trainer of `models`; each leaves a run directory that says how it was made and can be loaded again.
//! On top of them are the experiments, each of which gives a value that can be written as JSON: the [`matrix`] of phase C,
//! [`kernel_agreement`], [`motor_library`], [`returns`] and [`recursive_pour`]. Nothing here prints.

pub mod amortizer_phase;
mod batches;
pub mod cycle;
pub mod embeddings;
pub mod error;
pub mod kernel_agreement;
pub mod matrix;
pub mod motor_library;
pub mod prepared;
pub mod recursive_pour;
pub mod reference;
pub mod returns;
pub mod run;
pub mod run_dir;
pub mod scores;
pub mod separable_phase;
pub mod settings;
pub mod source;
pub mod summary;
mod tables;
pub mod windows;
pub mod world_model_phase;

pub use candle_core::Device;
pub use error::{Error, Result};
pub use prepared::Prepared;
pub use settings::{AmortizerSettings, WorldModelSettings, resolve};
pub use source::{FeatureChoice, Origin, Source};
