//! What holds for all episodes, and skills in a library.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod follow;
mod laws;
mod library;
