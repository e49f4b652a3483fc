//! Finds everything that is wrong with a dataset, not only the first thing.
//!
//! Reading stops where it cannot go on; this goes on. Each file is looked at for itself, so that a missing one does not
//! hide a NaN in another, and every feature that `meta/info.json` lists is checked, whether or not it has a role. Where the
//! same thing is wrong in many rows of a file, one fault counts them. The order of the faults is that of the dataset:
//! description, tasks, episodes, data files, videos, statistics; errors before warnings.

mod images;
mod notes;
mod rows;
mod statistics;
mod totals;
mod videos;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::episodes::{self, EpisodeTable};
use crate::explain::Severity;
use crate::fault::Fault;
use crate::files::Root;
use crate::info::{Dtype, Info};
use crate::open::{read_info_loosely, recognised};
use crate::roles::{Overrides, Roles, roles};
use crate::tasks;

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidateOptions {
    /// Decode every picture, rather than look at sizes and times only.
    pub decode: bool,
    /// Hold `meta/stats.json` against the data.
    pub stats: bool,
}

impl Default for ValidateOptions {
    fn default() -> ValidateOptions {
        ValidateOptions { decode: false, stats: true }
    }
}

/// What is being looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Rows of data files.
    Rows,
    /// Pictures of videos.
    Pictures,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being counted.
    pub stage: Stage,
    /// How many are done.
    pub done: u64,
    /// How many there are, as the metadata have it.
    pub total: u64,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Errors first, then warnings.
    pub faults: Vec<Fault>,
    /// What was looked at.
    pub checked: Checked,
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Data files and videos that could be opened.
    pub files: u64,
    /// Episodes of the metadata.
    pub episodes: u64,
    /// Rows of data files.
    pub rows: u64,
    /// Pictures: found at their times, or decoded if that was asked for.
    pub pictures: u64,
}

impl Report {
    /// The number of faults that keep the dataset from being read rightly.
    pub fn errors(&self) -> usize {
        self.faults.iter().filter(|fault| fault.severity() == Severity::Error).count()
    }

    /// The number of the other faults.
    pub fn warnings(&self) -> usize {
        self.faults.len() - self.errors()
    }
}

/// Looks at a whole dataset.
pub fn validate(
    root: Root,
    overrides: &Overrides,
    options: &ValidateOptions,
    progress: &(dyn Fn(Progress) + Sync),
) -> Report {
    let mut report = Report::default();
    match read_info_loosely(&root) {
        Err(error) => report.faults = error.into_faults(),
        Ok((info, faults)) => {
            let known = faults.is_empty();
            report.faults = faults;
            // Without a path there is nowhere to look, and without features nothing to look for.
            if !info.data_path.is_empty() && !info.features.is_empty() {
                Validation { root: &root, info: &info, overrides, options, progress }.run(known, &mut report);
            }
        }
    }
    report.faults = recognised(&root, report.faults);
    report.faults.sort_by_key(Fault::severity);
    report
}

/// What all parts of a check need.
struct Validation<'a> {
    root: &'a Root,
    info: &'a Info,
    overrides: &'a Overrides,
    options: &'a ValidateOptions,
    progress: &'a (dyn Fn(Progress) + Sync),
}

impl Validation<'_> {
    /// `known` says whether the description is as it should be.
    fn run(&self, known: bool, report: &mut Report) {
        let roles = match roles(self.info, self.overrides) {
            Ok(roles) => Some(roles),
            Err(error) => {
                // A feature that could not be read would be missed here a second time.
                report.faults.extend(error.into_faults().into_iter().filter(|_| known));
                None
            }
        };
        let cameras = self.cameras(roles.as_ref());
        let videos: Vec<String> = cameras.iter().filter(|key| self.is(key, &Dtype::Video)).cloned().collect();
        let images: Vec<String> = cameras.iter().filter(|key| self.is(key, &Dtype::Image)).cloned().collect();

        let faults = &mut report.faults;
        let before = faults.len();
        let tasks = tasks::read_numbered(self.root, faults).map_err(|error| faults.extend(error.into_faults())).ok();
        let sure = faults.len() == before;
        let before = faults.len();
        let table = episodes::read(self.root, self.info, &videos, faults)
            .map_err(|error| faults.extend(error.into_faults()))
            .ok()
            .filter(|table| !table.episodes.is_empty());
        let whole = faults.len() == before;
        if table.is_none() && whole {
            faults.push(Fault::NoFrames);
        }
        report.checked.episodes = table.as_ref().map_or(0, |table| table.episodes.len() as u64);
        totals::check(self, known, table.as_ref().filter(|_| whole), tasks.as_ref().filter(|_| sure), faults);

        let known_tasks: Option<BTreeSet<i64>> = tasks.map(|tasks| tasks.into_keys().collect());
        let rows = rows::check(self, table.as_ref(), known_tasks.as_ref(), roles.as_ref(), &images, report);
        if !known {
            // What the description could not say is not a column too many.
            report.faults.retain(|fault| !matches!(fault, Fault::ExtraColumn { .. }));
        }
        if let Some(table) = &table {
            videos::check(self, table, &videos, report);
        }
        // What is not read in full says nothing about the whole.
        let complete = table.is_some() && whole && rows.complete;
        if self.options.stats {
            statistics::check(self, complete.then_some(&rows.moments), &mut report.faults);
        }
        if let Some(table) = table.as_ref().filter(|_| whole && known) {
            totals::leftovers(self, table, &videos, &mut report.faults);
        }
    }

    fn cameras(&self, roles: Option<&Roles>) -> Vec<String> {
        match roles {
            Some(roles) => roles.cameras.clone(),
            None => {
                let cameras = self.info.features.iter().filter(|(_, feature)| feature.dtype.is_camera());
                cameras.map(|(key, _)| key.clone()).collect()
            }
        }
    }

    fn is(&self, key: &str, dtype: &Dtype) -> bool {
        self.info.feature(key).is_some_and(|feature| feature.dtype == *dtype)
    }

    /// A counter that tells how far a stage is.
    fn meter(&self, stage: Stage, total: u64) -> Meter<'_> {
        Meter { progress: self.progress, stage, total, done: AtomicU64::new(0) }
    }
}

/// Counts over all threads.
struct Meter<'a> {
    progress: &'a (dyn Fn(Progress) + Sync),
    stage: Stage,
    total: u64,
    done: AtomicU64,
}

impl Meter<'_> {
    fn add(&self, count: usize) {
        let done = self.done.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
        (self.progress)(Progress { stage: self.stage, done, total: self.total });
    }
}

/// The frames that the episodes should have, all together.
fn frames_of(table: &EpisodeTable) -> u64 {
    table.episodes.iter().map(|episode| episode.frames.len() as u64).fold(0, u64::saturating_add)
}
