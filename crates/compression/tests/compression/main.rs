//! The compressor as its users see it: whole corpora in, libraries and rewritten programs out.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails loudly")]

mod basic;
mod brute_force;
mod corpora;
mod description;
mod determinism;
mod golden;
mod held_out;
mod inputs;
mod libraries;
mod meaning;
mod pruning;
mod refactoring;
mod rules;
mod savings;
mod shape;
mod tampering;
mod worlds;
