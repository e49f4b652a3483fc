//! Datasets that are broken in one way each: what a person is told, as a snapshot; and bytes that nobody wrote.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails loudly")]

mod data_files;
mod description;
mod hostile;
mod metadata;
mod pictures;
mod set;
mod sound;

use set::Set;

/// What the command line prints about a dataset, with the directory's name left out.
fn told(set: &Set) -> String {
    told_with(set, &dataset::ValidateOptions::default())
}

fn told_with(set: &Set, options: &dataset::ValidateOptions) -> String {
    let report = dataset::validate(set.root(), &dataset::Overrides::default(), options, &|_| {});
    assert!(!report.faults.is_empty(), "nothing was found");
    dataset::explain(&report.faults).replace(&set.path().display().to_string(), "<dir>")
}
