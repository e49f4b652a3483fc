//! The whole report and what was run; reading and writing it as JSON.

use serde::{Deserialize, Serialize};

use crate::json_number;
use crate::learning::{Iteration, TrainingPhase};
use crate::metrics::{Arm, Metric};
use crate::motion::{ClusterMap, Episode, KernelAgreement, Skill};
use crate::programs::{Candidate, Entry};

/// The version of the format that this crate writes and reads. It is raised when a field is added, removed or changes its
/// meaning.
pub const SCHEMA: u32 = 3;

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
    /// Figures of each outer iteration, by ascending `t`. A first one with `t = 0` is the state before the loop.
    pub iterations: Vec<Iteration>,
    /// Loss curves, one element for each training that took place.
    pub training: Vec<TrainingPhase>,
    /// The skills of the last iteration; labels of `skill` refer to them.
    pub skills: Vec<Skill>,
    /// Segments in the plane; `None` where nothing was projected.
    pub map: Option<ClusterMap>,
    /// The kernel that segments were clustered with; `None` where it is not known.
    pub kernel: Option<KernelAgreement>,
    /// Episodes with their skills and phases, in the order in which they are to be shown.
    pub episodes: Vec<Episode>,
    /// The library after the last iteration.
    pub library: Vec<Entry>,
    /// Every candidate that the gates judged, admitted or not, by ascending iteration.
    pub candidates: Vec<Candidate>,
    /// The arms of the comparisons, in the order of their columns. The first arm of a group is the one that the head of the
    /// page shows.
    pub arms: Vec<Arm>,
    /// Figures on held-out episodes.
    pub metrics: Vec<Metric>,
    /// What a reader must know to interpret the figures: departures, small numbers, failures. Sentences.
    pub notes: Vec<String>,
}

/// What was run, and what is needed to run it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The heading of the page, such as `libero_goal, three iterations`.
    pub title: String,
    /// The datasets, in the order in which they were given.
    pub datasets: Vec<DatasetInfo>,
    /// Names of the presets, in the order in which they were composed.
    pub presets: Vec<String>,
    /// The random seed.
    pub seed: u64,
    /// Version of the program.
    pub version: String,
    /// The device of the run, such as `cpu, 2 threads`.
    pub device: String,
    /// Which labels were used in training, as a phrase: `no labels were used`, or `trained with task_index labels (supcon)`.
    pub labels: String,
    /// Wall-clock time of the whole run in seconds.
    #[serde(deserialize_with = "json_number::one")]
    pub seconds: f64,
    /// The command that reproduces this run.
    pub command: String,
    /// Hash of the resolved configuration, in hexadecimal.
    pub config_hash: String,
    /// The resolved configuration as TOML; `None` leaves it out of the page.
    pub config: Option<String>,
}

/// One dataset of demonstrations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetInfo {
    /// Its name or path as it was given.
    pub name: String,
    /// Training episodes.
    pub episodes: u64,
    /// Held-out episodes.
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

/// Why a report could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The text is not a report.
    #[error("not a report: {0}")]
    Json(#[from] serde_json::Error),
    /// It was written by another version of this program.
    #[error(
        "the report has schema {found}, this program reads {SCHEMA}; run `refactor-vla run … --resume` to write it again"
    )]
    Schema {
        /// The version that the text names.
        found: u64,
    },
}

impl Report {
    /// Reads a report that [`to_json`](Report::to_json) wrote. The version is checked first, so that the error about a
    /// report of another version names the version and not some field.
    ///
    /// # Errors
    /// [`ReportError::Json`] if the text is not a report, [`ReportError::Schema`] if its version is another one.
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
    /// [`ReportError::Json`] if serialising fails, which does not happen for any report.
    pub fn to_json(&self) -> Result<String, ReportError> {
        Ok(serde_json::to_string(self)?)
    }
}

/// A report of nothing, for tests.
#[cfg(test)]
pub(crate) fn empty() -> Report {
    let run = Run {
        title: String::new(),
        datasets: Vec::new(),
        presets: Vec::new(),
        seed: 0,
        version: String::new(),
        device: String::new(),
        labels: String::new(),
        seconds: 0.0,
        command: String::new(),
        config_hash: String::new(),
        config: None,
    };
    Report {
        schema: SCHEMA,
        run,
        tasks: Vec::new(),
        phases: Vec::new(),
        iterations: Vec::new(),
        training: Vec::new(),
        skills: Vec::new(),
        map: None,
        kernel: None,
        episodes: Vec::new(),
        library: Vec::new(),
        candidates: Vec::new(),
        arms: Vec::new(),
        metrics: Vec::new(),
        notes: Vec::new(),
    }
}
