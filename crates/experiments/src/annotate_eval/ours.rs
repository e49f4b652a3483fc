//! Our own segments and subtasks, as cutters like any other.

use serde::{Deserialize, Serialize};
use skills::{ScoredSegment, SegmentConfig, segment, segment_scored};
use subtasks::{Namer, StepLabel, Subtask};

use super::baselines::Cutter;
use super::naming::Label;
use super::samples::{Sample, Samples};
use super::scores::segments_between;
use crate::error::Result;

/// Our subtasks: adjacent segments of one step are one.
pub const SUBTASKS: &str = "ours, subtasks";
/// Our segments.
pub const SEGMENTS: &str = "ours, segments";
/// Our subtasks where the namer is given the whole episode as one segment.
pub const WITHOUT_SEGMENTS: &str = "ours, names without segments";
/// Our segments with a penalty chosen on training episodes.
pub const TUNED: &str = "ours, segments, tuned";

/// Penalties that are tried for [`TUNED`].
const PENALTIES: [f64; 9] = [0.03, 0.06, 0.09, 0.12, 0.15, 0.18, 0.22, 0.3, 0.4];

/// A stretch with its name, as a report keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Its first row.
    pub start: usize,
    /// The row after its last.
    pub end: usize,
    /// Its name.
    pub name: String,
    /// How sure the boundary at its start is.
    pub boundary_confidence: f64,
    /// How well the name fits.
    pub name_confidence: f64,
}

/// What is known of an episode after naming.
pub(super) struct Naming {
    /// For a report.
    pub(super) subtasks: Vec<Named>,
    /// For scores; what is named by its motion has none.
    pub(super) labels: Vec<Label>,
    /// How well the instruction's steps fit the motion.
    pub(super) score: f64,
}

/// The namer of a dataset.
pub(super) struct Namers<'a> {
    samples: &'a Samples,
    namer: Namer,
}

impl<'a> Namers<'a> {
    /// Builds it once.
    pub(super) fn new(samples: &'a Samples) -> Namers<'a> {
        Namers { samples, namer: Namer::default() }
    }

    /// Our subtasks of an episode.
    pub(super) fn named(&self, sample: &Sample) -> Result<Naming> {
        Ok(self.name(sample, &segment_scored(&sample.motions, &self.samples.layout, &SegmentConfig::subtasks())?))
    }

    /// The labels of an episode that was cut by any cutter. Its boundaries are all equally sure.
    pub(super) fn labels(&self, sample: &Sample, cuts: &[usize]) -> Vec<Label> {
        let segments = segments_between(cuts, sample.len()).into_iter();
        let sure: Vec<ScoredSegment> = segments.map(|rows| ScoredSegment { rows, confidence: 1.0 }).collect();
        self.name(sample, &sure).labels
    }

    fn name(&self, sample: &Sample, segments: &[ScoredSegment]) -> Naming {
        let found = self.namer.name(&sample.instruction, &sample.motions, &self.samples.layout, segments);
        let named = |one: &Subtask| Named {
            start: one.rows.start,
            end: one.rows.end,
            name: one.name.clone(),
            boundary_confidence: one.boundary_confidence,
            name_confidence: one.name_confidence,
        };
        let label = |(one, step): (&Subtask, &Option<StepLabel>)| {
            let step = step.as_ref()?;
            let (object, arm) = (step.object.clone(), step.arm.clone());
            Some(Label { rows: one.rows.clone(), verb: step.phase.clone(), object, arm })
        };
        Naming {
            labels: found.subtasks.iter().zip(&found.steps).filter_map(label).collect(),
            subtasks: found.subtasks.iter().map(named).collect(),
            score: found.score,
        }
    }
}

/// Ours as a cutter.
pub(super) struct Ours<'a> {
    samples: &'a Samples,
    name: &'static str,
    configs: Vec<SegmentConfig>,
    namers: Option<&'a Namers<'a>>,
}

impl<'a> Ours<'a> {
    /// Segments with the default settings.
    pub(super) fn segments(samples: &'a Samples) -> Ours<'a> {
        Ours { samples, name: SEGMENTS, configs: vec![SegmentConfig::subtasks()], namers: None }
    }

    /// Segments with one of several penalties.
    pub(super) fn tuned(samples: &'a Samples) -> Ours<'a> {
        let configs = PENALTIES.map(|penalty| SegmentConfig { penalty, ..SegmentConfig::subtasks() }).to_vec();
        Ours { samples, name: TUNED, configs, namers: None }
    }

    /// Subtasks by the instruction and the motion alone.
    pub(super) fn without_segments(samples: &'a Samples, namers: &'a Namers<'a>) -> Ours<'a> {
        Ours { samples, name: WITHOUT_SEGMENTS, configs: vec![SegmentConfig::subtasks()], namers: Some(namers) }
    }

    /// Subtasks with the default settings.
    pub(super) fn subtasks(samples: &'a Samples, namers: &'a Namers<'a>) -> Ours<'a> {
        Ours { samples, name: SUBTASKS, configs: vec![SegmentConfig::subtasks()], namers: Some(namers) }
    }
}

impl Cutter for Ours<'_> {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn settings(&self) -> Vec<String> {
        self.configs.iter().map(|config| format!("penalty {}", config.penalty)).collect()
    }

    fn cuts(&self, setting: usize, sample: &Sample) -> Result<Vec<usize>> {
        match self.namers {
            Some(namers) => {
                let named = namers.name(sample, &self.scored(setting, sample)?);
                Ok(named.subtasks.iter().skip(1).map(|one| one.start).collect())
            }
            None => {
                let found = segment(&sample.motions, &self.samples.layout, &self.configs[setting])?;
                Ok(found.iter().skip(1).map(|one| one.start).collect())
            }
        }
    }

    /// Our boundaries have confidences, which the namer uses.
    fn labels(&self, setting: usize, sample: &Sample) -> Result<Option<Vec<Label>>> {
        Ok(Some(Namers::new(self.samples).name(sample, &self.scored(setting, sample)?).labels))
    }
}

impl Ours<'_> {
    /// The segments that are named.
    fn scored(&self, setting: usize, sample: &Sample) -> Result<Vec<ScoredSegment>> {
        if self.name == WITHOUT_SEGMENTS {
            return Ok(vec![ScoredSegment { rows: 0..sample.len(), confidence: 1.0 }]);
        }
        Ok(segment_scored(&sample.motions, &self.samples.layout, &self.configs[setting])?)
    }
}
