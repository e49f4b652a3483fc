//! The report of a run: `report.json`, from which `report.html` is rendered.
//!
//! One module fills one section of the page. Everything comes from the summary, from the run's directory or from the dataset,
//! so a report can be written again at any time. Sections that need the summary alone are functions of it and tested as such.

mod candidates;
mod episodes;
#[cfg(test)]
mod fixture;
mod iterations;
mod library;
mod map;
mod metrics;
mod notes;
mod overview;
mod skills;
mod training;

use std::path::Path;

use compression::Library;
use report::{Report, SCHEMA};

use super::driver::World;
use super::settings::RunSettings;
use super::summary::RunSummary;
use crate::error::Result;
use crate::prepared::Prepared;

/// What a report is made from.
pub(super) struct ReportContext<'a> {
    /// The data.
    pub(super) prepared: &'a Prepared,
    /// The resolved settings.
    pub(super) settings: &'a RunSettings,
    /// Segments, classes and programs.
    pub(super) world: &'a World,
    /// The figures of the run.
    pub(super) summary: &'a RunSummary,
    /// The last library.
    pub(super) library: &'a Library,
    /// The directory of the run.
    pub(super) out: &'a Path,
    /// The name or path of the preset.
    pub(super) preset: &'a str,
    /// The random seed.
    pub(super) seed: u64,
    /// The device, in words.
    pub(super) device: &'a str,
    /// Wall-clock time of the run in seconds.
    pub(super) seconds: f64,
    /// The command that reproduces the run.
    pub(super) command: &'a str,
}

/// Fills the report of a finished run.
pub(super) fn report(context: &ReportContext<'_>) -> Result<Report> {
    let ReportContext { prepared, settings, world, summary, library, .. } = context;
    let metrics = metrics::metrics(summary);
    let (skills, no_pictures) = skills::skills(prepared, world)?;
    let mut notes = notes::notes(summary);
    notes.extend(no_pictures.map(|why| format!("Skills are shown without pictures: {why}.")));
    Ok(Report {
        schema: SCHEMA,
        run: overview::run(context),
        tasks: prepared.source.dataset.tasks().to_vec(),
        phases: overview::phase_names(prepared),
        iterations: iterations::iterations(summary),
        training: training::trainings(context.out, settings.cycle.iterations)?,
        skills,
        map: Some(map::map(prepared, world)?),
        kernel: map::kernel(summary),
        episodes: episodes::episodes(prepared, world, library, settings)?,
        library: library::entries(world, library, summary)?,
        candidates: candidates::candidates(summary),
        arms: metrics::arms_of(&metrics),
        metrics,
        notes,
    })
}
