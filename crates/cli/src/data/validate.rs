//! `data validate`.

use std::io::{self, IsTerminal as _, Write as _};

use dataset::{Checked, Explanation, Progress, Report, Stage, ValidateOptions};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::{counted, overrides, root};
use crate::args::ValidateArgs;
use crate::failure::Failure;
use crate::files;

/// Checks a dataset, and says all that is wrong with it.
pub(crate) fn run(options: &ValidateArgs) -> Result<(), Failure> {
    let root = root(&options.dataset)?;
    let wanted = ValidateOptions { decode: options.decode, ..ValidateOptions::default() };
    let report = watched(|progress| dataset::validate(root, &overrides(&options.keys), &wanted, progress));
    if options.json {
        let faults = report.faults.iter().map(dataset::Fault::explanation).collect();
        let told = Told { dataset: &options.dataset, sound: report.errors() == 0, checked: report.checked, faults };
        files::print(&files::json_bytes(&told)?)?;
        return if report.errors() == 0 { Ok(()) } else { Err(Failure::Told) };
    }
    if report.errors() > 0 {
        let sum = (report.faults.len() > 1).then(|| found(&report, &options.dataset));
        return Err(Failure::Faults(report.faults, sum));
    }
    if !report.faults.is_empty() {
        // Nothing is wrong with the dataset's content, so this is no failure.
        let _ = io::stderr().write_all(format!("{}\n", dataset::explain(&report.faults)).as_bytes());
    }
    files::print(sound(&report, options).as_bytes())
}

/// What programs are told.
#[derive(Serialize)]
struct Told<'a> {
    /// As it was given.
    dataset: &'a str,
    /// Whether there is nothing but warnings.
    sound: bool,
    /// How much was looked at.
    checked: Checked,
    /// Errors first, then warnings.
    faults: Vec<Explanation>,
}

/// What was looked at.
fn sound(report: &Report, options: &ValidateArgs) -> String {
    let checked = &report.checked;
    let warnings = match report.warnings() {
        0 => String::new(),
        count => format!(", with {}", counted(count as u64, "warning", "warnings")),
    };
    let pictures = match (checked.pictures, options.decode) {
        (0, _) => String::new(),
        (count, true) => format!(", {} decoded", counted(count, "picture", "pictures")),
        (count, false) => format!(", {} in place", counted(count, "picture", "pictures")),
    };
    format!(
        "`{}` is sound{warnings}: {}, {} in {}{pictures}\n",
        options.dataset,
        counted(checked.episodes, "episode", "episodes"),
        counted(checked.rows, "row", "rows"),
        counted(checked.files, "file", "files"),
    )
}

/// What was found.
fn found(report: &Report, dataset: &str) -> String {
    let errors = counted(report.errors() as u64, "error", "errors");
    match report.warnings() {
        0 => format!("found {errors} in `{dataset}`"),
        count => format!("found {errors} and {} in `{dataset}`", counted(count as u64, "warning", "warnings")),
    }
}

/// Runs the check, with its progress on stderr if somebody is there to see it.
fn watched<T>(check: impl FnOnce(&(dyn Fn(Progress) + Sync)) -> T) -> T {
    if !io::stderr().is_terminal() {
        return check(&|_| {});
    }
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{elapsed} {bar:40} {pos}/{len} {msg}, {eta} left") {
        bar.set_style(style);
    }
    let done = check(&|progress: Progress| {
        bar.set_length(progress.total.max(progress.done));
        bar.set_position(progress.done);
        bar.set_message(match progress.stage {
            Stage::Rows => "rows",
            Stage::Pictures => "pictures",
        });
    });
    bar.finish_and_clear();
    done
}
