//! The trainer on a tiny regression: what it learns, what survives a kill, what several processes give.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should say where")]

mod failures;
mod processes;
mod regression;
mod resume;
