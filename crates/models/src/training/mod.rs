//! One trainer for all phases.

pub mod adamw;
