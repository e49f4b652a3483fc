//! The wake/sleep loop: a library of typed motor programs from demonstrations, and a policy that is driven by it (SPEC §7–§9).
//!
//! ```text
//! episodes ─ demonstrations ─► segments ─ classes (D_φ) ─► skills ─ corpus ─► programs
//!                                                                                │
//!     library F_t ◄── gates (equivalence, verifier) ◄── candidates ◄─────────────┤  sleep
//!         └──────► samples ─► emitter_phase, decoder_phase ─► wake scores ◄──────┘  wake
//! ```
//! [`driver`] runs it, [`refactoring`] is its step from one library to the next, [`settings`] are its settings, [`summary`] what
//! it comes to, and `report` fills the report's page, one module for each section.

pub mod classes;
pub mod corpus;
mod decoder_phase;
pub mod demonstrations;
pub mod driver;
mod emitter_phase;
pub mod equivalence;
pub mod gates;
mod plane;
pub mod refactoring;
mod report;
pub mod samples;
pub mod settings;
pub mod skill_scores;
pub mod summary;
mod verifier;
pub mod wake;
pub mod wake_phase;

pub use decoder_phase::DecoderShape;
pub use driver::{RunOptions, Told, run};
pub use emitter_phase::EmitterShape;
pub use settings::RunSettings;
pub use summary::RunSummary;
