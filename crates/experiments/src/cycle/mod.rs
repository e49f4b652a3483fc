//! The wake/sleep loop: a library of typed motor programs from demonstrations, and a policy that is driven by it (SPEC §7–§9).
//!
//! ```text
//! episodes ─ demonstrations ─► segments ─ classes (D_φ) ─► skills ─ corpus ─► programs
//!                                                                                │
//!     library F_t ◄── gates (equivalence, verifier) ◄── candidates ◄─────────────┤  sleep
//!         └──────► samples ─► heads (emitter, decoder) ─► held-out figures ◄──────┘  wake
//! ```
//! [`driver`] runs it, [`refactoring`] is its step from one library to the next, [`settings`] are its settings, [`summary`] what
//! it comes to, and `report` fills the report's page, one module for each section.

pub mod annotation;
pub mod class_scores;
pub mod classes;
pub mod corpus;
pub mod demonstrations;
pub(crate) mod distances;
pub mod driver;
pub mod equivalence;
pub mod gates;
pub mod phases;
pub(crate) mod plan;
pub mod programs;
pub mod refactoring;
mod report;
pub mod run_cutter;
pub mod segment_kernel;
pub mod session;
pub mod settings;
pub mod skill_scores;
pub mod summary;
pub mod verifier;
pub mod wake;

pub use driver::run;
pub use session::{Event, Extensions, RunOptions};
pub use settings::RunSettings;
pub use summary::RunSummary;
pub use wake::{DecoderShape, EmitterShape};
