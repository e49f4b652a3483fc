//! Phases on datasets, the loop that joins them, and their evaluation.
//!
//! ```text
//! Source ──► Prepared ──► world_model_phase (A) ──► amortizer_phase (C) ──► scores
//!            split, probe, labels      └── cycle: segments, classes, programs, gates, library, policy ──► report
//! ```
//! A [`Source`] is a dataset with its features, [`Prepared`] the same with a split, a probe and labels. Phases are objectives
//! for the one trainer of `models`; [`run_dir`] stores their results as stages, [`trained`] loads models again. [`cycle`] is
//! the wake/sleep loop. The experiments on top ([`annotate_eval`], [`closed_loop`], [`matrix`], [`kernel_agreement`],
//! [`motor_library`], [`recursive_pour`], [`returns`]) each give a value that can be written as JSON; [`paper`] is the registry
//! of those that repeat the paper's tables. Nothing here prints.

pub mod amortizer_phase;
pub mod annotate_eval;
mod batches;
pub mod briefing;
pub mod closed_loop;
pub mod cycle;
pub mod embeddings;
pub mod error;
pub mod kernel_agreement;
mod landmarks;
pub mod matrix;
pub mod motor_library;
pub mod paper;
pub mod pictures;
pub mod policy;
pub mod prepared;
pub mod presets;
pub mod recursive_pour;
pub mod reference;
pub mod returns;
pub mod run_dir;
pub mod scores;
pub mod separable_phase;
pub mod settings;
pub mod source;
pub mod summary;
mod svg;
mod tables;
pub mod trained;
pub mod windows;
pub mod world_model_phase;

pub use candle_core::Device;
pub use error::{Error, Result};
pub use prepared::Prepared;
pub use settings::{AmortizerSettings, WorldModelSettings, resolve};
pub use source::{FeatureChoice, Origin, Source};
