//! The whole report, what was run, and the table of held-out figures; reading and writing it as JSON.

use serde::{Deserialize, Serialize};

use crate::json_number;
use crate::learning::{Iteration, TrainingPhase};
use crate::motion::{ClusterMap, Episode, Skill};
use crate::programs::{Candidate, Entry};

/// The version of the format that this crate writes and reads. It grows when a field changes its meaning or goes.
pub const SCHEMA: u32 = 2;

/// Everything that the page shows of one run of the wake/sleep loop.
///
/// Whatever is not known is empty or `None`; the page then says so in words. Numbers that are not finite are allowed and
/// shown as missing. Labels are indices into [`skills`](Report::skills), [`phases`](Report::phases) and
/// [`tasks`](Report::tasks), −1 for none (noise, or a frame without a label).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Version of the format: [`SCHEMA`].
    pub schema: u32,
    /// What was run, and how to run it again.
    pub run: Run,
    /// Names of the tasks, usually their instructions; the labels of `task` refer to them.
    pub tasks: Vec<String>,
    /// Names of the true phases; empty where the data has no such labels.
    pub phases: Vec<String>,
    /// Figures after each outer iteration, by ascending `t`. A first one with `t = 0` is the state before the loop.
    pub iterations: Vec<Iteration>,
    /// Loss curves, one element for each training that took place.
    pub training: Vec<TrainingPhase>,
    /// The skills of the last iteration; labels of `skill` refer to them.
    pub skills: Vec<Skill>,
    /// Fragments in the plane; `None` where nothing was projected.
    pub map: Option<ClusterMap>,
    /// Episodes with their skills and phases, in the order in which they are to be shown.
    pub episodes: Vec<Episode>,
    /// The library after the last iteration.
    pub library: Vec<Entry>,
    /// Every candidate that the gates judged, admitted or not, by ascending iteration.
    pub candidates: Vec<Candidate>,
    /// Figures on held-out episodes.
    pub metrics: Vec<Metric>,
    /// What a reader must know to read the figures rightly: departures, small numbers, what failed. Sentences.
    pub notes: Vec<String>,
}

/// What was run, and what is needed to run it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// What the page is headed with, such as `libero_goal, three iterations`.
    pub title: String,
    /// The datasets, in the order in which they were given.
    pub datasets: Vec<DatasetInfo>,
    /// Names of the presets, in the order in which they were composed.
    pub presets: Vec<String>,
    /// The seed that everything random came from.
    pub seed: u64,
    /// Version of the program.
    pub version: String,
    /// Revision of the source, where known.
    pub revision: Option<String>,
    /// What it ran on, such as `cpu, 2 threads`.
    pub device: String,
    /// When it began, as text to be shown; `None` keeps the page a function of the run alone.
    pub started: Option<String>,
    /// Wall-clock time of the whole run in seconds.
    #[serde(deserialize_with = "json_number::one")]
    pub seconds: f64,
    /// The command that gives this run again.
    pub command: String,
    /// Hash of the resolved configuration, in hexadecimal.
    pub config_hash: String,
    /// The resolved configuration as TOML, where it is to be shown.
    pub config: Option<String>,
}

/// One dataset of demonstrations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetInfo {
    /// Its name or path as it was given.
    pub name: String,
    /// Episodes that were learned from.
    pub episodes: u64,
    /// Episodes that were kept apart for judging.
    pub held_out_episodes: u64,
    /// Frames of all episodes.
    pub frames: u64,
    /// Different tasks.
    pub tasks: u64,
    /// Frames per second.
    #[serde(deserialize_with = "json_number::one")]
    pub fps: f64,
    /// Whether it has reward. Without it the return gate cannot judge.
    pub reward: bool,
    /// Whether it has pictures.
    pub pictures: bool,
}

/// One row of the table of held-out figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Heading under which the row stands, such as `emitter`; rows of a group follow each other.
    pub group: String,
    /// What is measured, such as `exact match`.
    pub name: String,
    /// Unit, empty for a plain number.
    pub unit: String,
    /// Whether more or less is better.
    pub better: Better,
    /// With the learned library.
    pub with_library: Option<Estimate>,
    /// The same without it; `None` where that makes no sense.
    pub without_library: Option<Estimate>,
    /// The paper's value as it prints it (`0.900`, `0.090–0.113`); `None` where nothing is comparable.
    pub paper: Option<String>,
    /// What differs from the paper's setting, or how it was measured. May be empty.
    pub note: String,
}

/// A figure with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The figure itself, in the unit of its row.
    #[serde(deserialize_with = "json_number::one")]
    pub mean: f64,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub high: Option<f64>,
}

/// Which direction of a figure is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better: accuracies, agreement.
    Higher,
    /// Less is better: errors, description lengths.
    Lower,
    /// The figure describes, it does not judge.
    Neither,
}

/// Why a report could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The text is no report.
    #[error("not a report: {0}")]
    Json(#[from] serde_json::Error),
    /// It was written by another version of this program.
    #[error(
        "the report has schema {found}, this program reads {SCHEMA}; `refactor-vla run … --resume` writes it again"
    )]
    Schema {
        /// The version that the text names.
        found: u64,
    },
}

impl Report {
    /// Reads a report that [`to_json`](Report::to_json) wrote. The version is looked at first, so that a report of
    /// another version is not answered with the name of some field.
    ///
    /// # Errors
    /// [`ReportError::Json`] if the text is no report, [`ReportError::Schema`] if it is one of another version.
    pub fn from_json(text: &str) -> Result<Report, ReportError> {
        #[derive(Deserialize)]
        #[serde(expecting = "an object with `schema`")]
        struct Version {
            schema: u64,
        }
        let Version { schema } = serde_json::from_str(text)?;
        if schema != u64::from(SCHEMA) {
            return Err(ReportError::Schema { found: schema });
        }
        Ok(serde_json::from_str(text)?)
    }

    /// Writes the report as JSON. Numbers that are not finite become `null`.
    ///
    /// # Errors
    /// [`ReportError::Json`] if the serialiser refuses, which no report makes it do.
    pub fn to_json(&self) -> Result<String, ReportError> {
        Ok(serde_json::to_string(self)?)
    }
}
