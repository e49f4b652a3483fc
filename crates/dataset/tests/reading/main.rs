//! Whole datasets: what is read is what was written, by us or by lerobot.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests, and what they skip is told")]

mod features;
mod frames;
mod goldens;
mod joining;
mod scales;
mod shared_sets;

use std::path::PathBuf;

/// The demonstrations that lie beside a developer's checkout. They are not part of the repository: without them, the tests
/// that need them say so and pass.
pub(crate) fn shared_set(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if path.join("meta/info.json").is_file() {
        return Some(path);
    }
    eprintln!("skipped: `../shared/data/{name}` is not there");
    None
}
