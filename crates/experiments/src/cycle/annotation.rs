//! A run's skills, written into datasets.
//!
//! ```text
//! RUN/config.json       how episodes are cut            ┐
//! RUN/skills.json       the skills                      ├─► the skill of each frame of a dataset, and readable names
//! RUN/annotation.json   names, skills of known episodes ┘
//! ```
//! An episode that the run has seen, known by its contents, gets the skills that the run gave it. Any other episode is cut
//! with the settings of the run, and a [`SegmentLabeller`] says which skill each segment is. [`NearestSkill`] is the one that
//! needs nothing but `skills.json`: the skill that replays the segment's actions best. It knows no world model, so its
//! labels agree with the run's classes only as far as classes differ in how they move.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use dataset::{Dataset, EpisodeId, RobotLayout};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use skills::{ActionLayout, Episode, SegmentConfig, Skill, SkillAlphabet, SkillId, SkillMotion, segment, skill_name};

use super::corpus::Corpus;
use super::demonstrations::Demonstrations;
use super::driver::SKILLS;
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::run_dir::{CONFIG, read_json};
use subtasks::classes::{mean_displacement, opening_range};
use subtasks::robot::episode;

/// The file with names of skills and with the skills of the run's own episodes.
pub const ANNOTATION: &str = "annotation.json";

/// The name of a skill, and the motion that it was made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedSkill {
    /// The primitive of the language.
    pub skill: String,
    /// Its name for people.
    pub name: String,
    /// The mean motion of its segments in training demonstrations.
    pub motion: SkillMotion,
}

/// What a run says about skills and episodes, for datasets to be annotated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunAnnotation {
    /// Frames per second of the run's data.
    pub fps: f64,
    /// Names of the actions' columns, where the data have them.
    pub actions: Option<Vec<String>>,
    /// The skills, in their order.
    pub skills: Vec<NamedSkill>,
    /// For each episode of the run, by a hash of its contents: where each segment ends, counted from the episode's start,
    /// and which skill it is.
    pub episodes: BTreeMap<String, Vec<(usize, usize)>>,
}

impl RunAnnotation {
    /// That of a run.
    pub fn of(prepared: &Prepared, demonstrations: &Demonstrations, corpus: &Corpus) -> RunAnnotation {
        let dataset = &prepared.source.dataset;
        let episodes = demonstrations.all.iter().zip(&corpus.calls).map(|(demonstration, calls)| {
            let ends = demonstration.segments.iter().map(|segment| segment.end - demonstration.frames.start);
            let segments = ends.zip(calls.iter().map(|call| call.skill.0)).collect();
            (dataset.contents(demonstration.episode), segments)
        });
        RunAnnotation {
            fps: dataset.info().fps,
            actions: action_names(dataset),
            skills: named_skills(prepared, demonstrations, corpus),
            episodes: episodes.collect(),
        }
    }
}

/// The skills of a run with their names, from the segments of the training demonstrations.
pub fn named_skills(prepared: &Prepared, demonstrations: &Demonstrations, corpus: &Corpus) -> Vec<NamedSkill> {
    let mut members: Vec<Vec<Range<usize>>> = vec![Vec::new(); corpus.alphabet.skills.len()];
    for at in demonstrations.which(false) {
        for (segment, call) in demonstrations.all[at].segments.iter().zip(&corpus.calls[at]) {
            members[call.skill.0].push(segment.clone());
        }
    }
    named(&prepared.source.dataset, prepared.robot(), &corpus.alphabet, &members)
}

/// Says which skill a segment is that the run has not seen.
pub trait SegmentLabeller {
    /// How it decides, in words for people, such as `the nearest skill`.
    fn method(&self) -> &str;

    /// The skill of each segment of an episode, given by its rows; `None` where no skill fits.
    fn skills(&self, episode: &Episode, segments: &[Range<usize>]) -> Result<Vec<Option<SkillId>>>;
}

/// Labels a segment by the skill that replays its actions best under its gripper command.
pub struct NearestSkill<'a>(pub &'a SkillAlphabet);

impl SegmentLabeller for NearestSkill<'_> {
    fn method(&self) -> &str {
        "the skill that replays its actions best"
    }

    fn skills(&self, episode: &Episode, segments: &[Range<usize>]) -> Result<Vec<Option<SkillId>>> {
        segments.iter().map(|segment| Ok(self.0.nearest(&episode.motion(segment)?))).collect()
    }
}

/// All of a finished run that an annotation needs.
pub struct RunSkills {
    /// The skills.
    pub alphabet: SkillAlphabet,
    /// How episodes are cut.
    pub segments: SegmentConfig,
    /// Names and known episodes; runs of earlier versions have none.
    pub annotation: Option<RunAnnotation>,
}

/// The skills of a dataset's frames.
#[derive(Clone, Debug, PartialEq)]
pub struct AnnotatedFrames {
    /// The names of the skills, in their order.
    pub names: Vec<String>,
    /// For each frame the place of its skill in the names, or −1 for none.
    pub values: Vec<i64>,
    /// Segments of each skill.
    pub segments: Vec<usize>,
    /// Episodes that the run has seen, whose skills are those of the run.
    pub seen: usize,
    /// Episodes whose segments were labelled anew.
    pub labelled: usize,
    /// What a user should know.
    pub notes: Vec<String>,
}

impl RunSkills {
    /// Reads a finished run.
    ///
    /// # Errors
    /// If a file is missing or damaged, or if an earlier version with other skills made the run.
    pub fn load(run: &Path) -> Result<RunSkills> {
        let path = run.join(CONFIG);
        let config: Value = read_json(&path)?;
        let alphabet = load_alphabet(&run.join(SKILLS))?;
        let segments = serde_json::from_value(config["settings"]["cycle"]["segments"].clone()).map_err(|error| {
            let reason = format!("`settings.cycle.segments` does not say how episodes are cut: {error}");
            Error::Format { path, reason }
        })?;
        let annotation = run.join(ANNOTATION);
        let annotation: Option<RunAnnotation> = if annotation.is_file() { Some(read_json(&annotation)?) } else { None };
        if let Some(named) =
            annotation.as_ref().map(|one| one.skills.len()).filter(|count| *count != alphabet.skills.len())
        {
            let reason =
                format!("names {named} skills, and `{SKILLS}` has {}; make the run again", alphabet.skills.len());
            return Err(Error::Format { path: run.join(ANNOTATION), reason });
        }
        Ok(RunSkills { alphabet, segments, annotation })
    }

    /// Finds the skill of each frame of a dataset.
    ///
    /// # Errors
    /// If the dataset's actions are not those that the run's skills are made of.
    pub fn annotate(&self, dataset: &Dataset, labeller: &dyn SegmentLabeller) -> Result<AnnotatedFrames> {
        self.check(dataset)?;
        let skills = &self.alphabet.skills;
        // Seconds are those of the dataset.
        let layout = ActionLayout { fps: dataset.info().fps, ..self.alphabet.layout.clone() };
        let mut members: Vec<Vec<Range<usize>>> = vec![Vec::new(); skills.len()];
        let (mut seen, mut labelled) = (0, 0);
        for (at, span) in dataset.spans().iter().enumerate() {
            let known =
                self.annotation.as_ref().and_then(|run| run.episodes.get(&dataset.contents(EpisodeId(at as u32))));
            let found = match known {
                Some(known) => {
                    seen += 1;
                    placed(known, &span.frames)
                }
                None => {
                    labelled += 1;
                    let motions = episode(dataset, &span.frames, &layout)?;
                    let segments = segment(&motions, &layout, &self.segments)?;
                    let found = labeller.skills(&motions, &segments)?;
                    let first = span.frames.start;
                    let placed = |(rows, skill): (Range<usize>, Option<SkillId>)| {
                        Some((first + rows.start..first + rows.end, skill?.0))
                    };
                    segments.into_iter().zip(found).filter_map(placed).collect()
                }
            };
            for (frames, skill) in found {
                if let Some(members) = members.get_mut(skill) {
                    members.push(frames);
                }
            }
        }
        let mut values = vec![-1; dataset.frames()];
        for (skill, members) in members.iter().enumerate() {
            members.iter().for_each(|frames| values[frames.clone()].fill(skill as i64));
        }
        let mut notes = Vec::new();
        let named = match &self.annotation {
            Some(run) => run.skills.clone(),
            None => {
                notes.push("the run does not name its skills, so names are made from this dataset".to_owned());
                named(dataset, &RobotLayout::of(dataset), &self.alphabet, &members)
            }
        };
        notes.extend(self.other_rate(dataset));
        let names = named.into_iter().map(|skill| skill.name).collect();
        Ok(AnnotatedFrames { names, values, segments: members.iter().map(Vec::len).collect(), seen, labelled, notes })
    }

    fn check(&self, dataset: &Dataset) -> Result<()> {
        let (found, wanted) = (dataset.columns().actions.width, self.alphabet.layout.width);
        if found != wanted {
            return Err(Error::Mismatch(format!(
                "the dataset's actions have {found} columns, those of the run's skills {wanted}; annotate a dataset of the \
                 same robot"
            )));
        }
        let wanted = self.annotation.as_ref().and_then(|run| run.actions.as_ref());
        if let (Some(found), Some(wanted)) = (action_names(dataset), wanted)
            && let Some(column) = (0..found.len()).find(|&column| wanted.get(column) != Some(&found[column]))
        {
            let wanted = wanted.get(column).map_or("", String::as_str);
            return Err(Error::Mismatch(format!(
                "column {column} of the dataset's actions is `{}`, in those of the run's skills it is `{wanted}`; annotate \
                 a dataset of the same robot",
                found[column]
            )));
        }
        Ok(())
    }

    fn other_rate(&self, dataset: &Dataset) -> Option<String> {
        let (found, wanted) = (dataset.info().fps, self.annotation.as_ref()?.fps);
        ((found - wanted).abs() > 1e-6 * wanted).then(|| {
            format!(
                "the dataset has {found} frames per second, the run {wanted}: segments and commands may differ in scale"
            )
        })
    }
}

/// Reads the skills of a run. Those of earlier versions had distances as arguments and one arm, and cannot be converted.
fn load_alphabet(path: &Path) -> Result<SkillAlphabet> {
    let found: Value = read_json(path)?;
    let reason = match found["layout"].is_object() && found["layout"]["groups"].is_null() {
        true => {
            "written by an earlier version, whose skills have neither groups nor targets; make the run again".to_owned()
        }
        false => match serde_json::from_value(found) {
            Ok(alphabet) => return Ok(alphabet),
            Err(error) => error.to_string(),
        },
    };
    Err(Error::Format { path: path.to_owned(), reason })
}

/// The segments of an episode that the run has seen, as frames of the dataset, with their skills.
fn placed(known: &[(usize, usize)], frames: &Range<usize>) -> Vec<(Range<usize>, usize)> {
    let starts = std::iter::once(0).chain(known.iter().map(|(end, _)| *end));
    let segments = starts.zip(known).map(|(start, (end, skill))| (frames.start + start..frames.start + end, *skill));
    segments.filter(|(segment, _)| segment.end <= frames.end).collect()
}

/// Names of skills from the motion of their segments.
fn named(
    dataset: &Dataset,
    robot: &RobotLayout,
    alphabet: &SkillAlphabet,
    members: &[Vec<Range<usize>>],
) -> Vec<NamedSkill> {
    let range = opening_range(dataset, robot);
    // A command that closes above or below a threshold says so where there is one gripper.
    let mut of_groups = robot.grippers().filter_map(|group| group.gripper.as_ref());
    let closes_above = of_groups.next().filter(|_| of_groups.next().is_none()).and_then(|gripper| gripper.closes_above);
    let one = |(skill, members): (&Skill, &Vec<Range<usize>>)| {
        let layout = &alphabet.layout;
        let parts = skill.arguments.iter().map(|group| layout.groups[*group].name.clone()).collect();
        let grippers = layout.grippers.iter().zip(&skill.closed).map(|(one, closed)| (one.name.clone(), *closed));
        let motion = SkillMotion {
            grippers: if skill.closed.len() > 1 { grippers.collect() } else { Vec::new() },
            closed: closes_above.and(skill.closed.first().copied()),
            ..mean_displacement(dataset, robot, members, range)
        };
        let parts = if motion.displacement.is_some() { Vec::new() } else { parts };
        let motion = SkillMotion { parts, ..motion };
        NamedSkill { skill: skill.name.clone(), name: skill_name(skill, &motion), motion }
    };
    alphabet.skills.iter().zip(members).map(one).collect()
}

fn action_names(dataset: &Dataset) -> Option<Vec<String>> {
    dataset.info().feature(&dataset.roles().action).and_then(|feature| feature.dimension_names())
}
