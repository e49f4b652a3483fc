//! Landmarks: what a still camera sees at the start of an episode that tells where targets are.
//!
//! From a few demonstrations an emitter learns which skills a task needs and about where they lead, but not how a target moves
//! with an object: a network that remembers its demonstrations explains their targets as well as one that looks. Landmarks
//! measure what such a network would have to guess. At the start of an episode, a window of a demonstration's image shows the same thing as some
//! window of the image now, which is found to a fraction of a pixel. Then
//!
//! ```text
//! target now = target there + J · (displacement of the target's window, in pixels)
//! ```
//! with one matrix J, the camera's, for all targets of a dataset: two numbers for each coordinate, learned from all pairs of
//! demonstrations of a task together ([`fit`]). Which windows belong to a target is what predicts it best in the other
//! demonstrations, near the place where the camera sees targets (a linear map, learned from the clearest ones). Neither labels
//! nor a calibrated camera are needed.
//!
//! [`Landmarks::plan`] takes the program of the demonstration that looks most like the image now and moves its targets. Where
//! nothing looks alike, or the task is new, the emitter writes the program.

mod alignment;
mod fit;
mod windows;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dataset::{CameraId, Frame, FrameIndex, FrameOptions, FrameReader};
use language::print;
use serde::{Deserialize, Serialize};
use skills::{ActionLayout, Argument, Skill, SkillCall, Space};

use self::alignment::aligned;
use self::fit::{Fitted, Shown, fit};
use self::windows::{Found, Picture, SIDE, WINDOWS, Window};
use crate::cycle::corpus::{Corpus, Written};
use crate::cycle::demonstrations::Demonstrations;
use crate::cycle::plan::anchored;
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::run_dir::{read_json, write_json, write_text};

/// The file in the directory of a policy, and the images that belong to it.
const FILE: &str = "landmarks.json";
const IMAGES: &str = "landmarks.rgb";

/// The files of the landmarks.
pub(crate) const LANDMARKS: [&str; 2] = [FILE, IMAGES];

/// A window shows something else if more than this share of its contrast is unexplained.
const OTHER: f32 = 0.5;

/// The deviation, in spreads of a target, with which predictions of other demonstrations count by how near they are.
const NEAR: f64 = 1.0;

/// Where something is.
pub(crate) type Place = [f64; 3];

fn distance(one: &Place, other: &Place) -> f64 {
    one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum::<f64>().sqrt()
}

/// `landmarks.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    /// The camera, by its place among all.
    camera: usize,
    /// The arm, by its place among the groups of the robot.
    group: usize,
    /// By how much a target moves with a pixel to the right and with one down, for each coordinate.
    jacobian: [[f64; 2]; 3],
    /// How far apart the same target is in two demonstrations.
    spread: f64,
    tasks: Vec<TaskRecord>,
}

/// A task and its demonstrations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskRecord {
    instruction: String,
    /// The program of the task.
    program: String,
    demonstrations: Vec<DemonstrationRecord>,
}

/// A demonstration. `landmarks.rgb` has one image for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DemonstrationRecord {
    /// Its motion as a program, with the library and on its grid.
    motion: String,
    /// The same as calls with exact targets.
    calls: Vec<SkillCall>,
    /// Where calls lead the arm: the call, its argument, and the place.
    targets: Vec<Target>,
    /// For each target the windows that it moves with; none if nothing predicts it.
    followed: Vec<Vec<usize>>,
}

/// A place that a call leads the arm to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    call: usize,
    argument: usize,
    place: Place,
}

/// What to do about what an image shows.
pub(crate) struct SeenPlan<'a> {
    /// The program of the task.
    pub(crate) task: &'a str,
    /// The program of a demonstration's motion, with its own targets.
    pub(crate) motion: &'a str,
    /// Its calls, with targets where the image shows them.
    pub(crate) calls: Vec<SkillCall>,
}

/// The landmarks of a dataset.
pub(crate) struct Landmarks {
    record: Record,
    /// The images of all demonstrations, task by task.
    images: Vec<Vec<u8>>,
    /// For each task and demonstration the windows that its targets move with.
    windows: Vec<Vec<BTreeMap<usize, Window>>>,
}

impl Landmarks {
    /// Those of the demonstrations that a policy learns from, whose programs are `written`; `None` if the robot has no arm with
    /// positions or more than one, if no camera sees what targets depend on, or if images are too small.
    pub(crate) fn of(
        prepared: &Prepared,
        demonstrations: &Demonstrations,
        corpus: &Corpus,
        written: &Written,
        with_held_out: bool,
    ) -> Result<Option<Landmarks>> {
        let dataset = &prepared.source.dataset;
        let Some(group) = arm(&demonstrations.layout) else { return Ok(None) };
        let chosen: Vec<usize> =
            (0..demonstrations.all.len()).filter(|at| with_held_out || !demonstrations.all[*at].held_out).collect();
        let reader = FrameReader::new(dataset, FrameOptions::default());
        let mut best: Option<(usize, Fitted)> = None;
        for camera in 0..dataset.roles().cameras.len() {
            let start = |at: &usize| (CameraId(camera), FrameIndex(demonstrations.all[*at].frames.start));
            let starts: Vec<(CameraId, FrameIndex)> = chosen.iter().map(start).collect();
            let frames = reader.read(&starts)?;
            if frames.iter().any(|frame| frame.width.min(frame.height) < SIDE) {
                continue;
            }
            let mut shown = Vec::with_capacity(chosen.len());
            for (at, frame) in chosen.iter().zip(&frames) {
                let start = corpus.alphabet.start(&demonstrations.episodes[*at]);
                let calls = anchored(&corpus.alphabet, &corpus.exact[*at], &start)?;
                let motion = written.now[*at].first().map(|term| print(&written.store, *term));
                shown.push(Shown {
                    instruction: demonstrations.all[*at].instruction.clone(),
                    program: print(&corpus.store, corpus.tasks[*at]),
                    motion: motion.unwrap_or_default(),
                    image: Picture::of(frame),
                    targets: targets(&corpus.alphabet.skills, &calls, group),
                    calls,
                });
            }
            let fitted = fit(&shown).filter(|own| best.as_ref().is_none_or(|(_, best)| own.score < best.score));
            if let Some(fitted) = fitted {
                best = Some((camera, fitted));
            }
        }
        let Some((camera, Fitted { jacobian, spread, tasks, images, .. })) = best else { return Ok(None) };
        Landmarks::new(Record { camera, group, jacobian, spread, tasks }, images).map(Some)
    }

    /// # Errors
    /// If images or windows do not fit.
    fn new(record: Record, images: Vec<Vec<u8>>) -> Result<Landmarks> {
        let wrong =
            |reason: &str| Error::Mismatch(format!("the landmarks of the run are damaged: {reason}; train it again"));
        if images.len() != record.tasks.iter().map(|task| task.demonstrations.len()).sum::<usize>() {
            return Err(wrong("there is not one image for each demonstration"));
        }
        let mut own = images.iter();
        let mut windows = Vec::with_capacity(record.tasks.len());
        for task in &record.tasks {
            let mut of_task = Vec::with_capacity(task.demonstrations.len());
            for (one, image) in task.demonstrations.iter().zip(&mut own) {
                let picture = Picture::of_bytes(image).ok_or_else(|| wrong("an image has another size"))?;
                if !one.is_whole() {
                    return Err(wrong("a target or a window of a demonstration is not valid"));
                }
                let used: BTreeSet<usize> = one.followed.iter().flatten().copied().collect();
                of_task.push(used.into_iter().map(|number| (number, Window::new(&picture, number))).collect());
            }
            windows.push(of_task);
        }
        Ok(Landmarks { record, images, windows })
    }

    /// Writes them into the directory of a policy.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        write_text(&folder.join(IMAGES), &self.images.concat())?;
        write_json(&folder.join(FILE), &self.record)
    }

    /// Those of a policy, if it has any.
    pub(crate) fn load(folder: &Path) -> Result<Option<Landmarks>> {
        if !folder.join(FILE).is_file() {
            return Ok(None);
        }
        let record: Record = read_json(&folder.join(FILE))?;
        let path = folder.join(IMAGES);
        let bytes = std::fs::read(&path).map_err(|source| Error::File { path, source })?;
        let images = bytes.chunks(SIDE * SIDE * 3).map(<[u8]>::to_vec).collect();
        Landmarks::new(record, images).map(Some)
    }

    /// What a user should know about it.
    pub(crate) fn note(&self) -> String {
        let demonstrations = self.record.tasks.iter().flat_map(|task| &task.demonstrations);
        let (targets, followed) = demonstrations.fold((0, 0), |(targets, followed), one| {
            (targets + one.targets.len(), followed + one.followed.iter().filter(|windows| !windows.is_empty()).count())
        });
        format!(
            "an episode of a known task begins with the program of the demonstration that looks most alike; camera {} tells where \
             {followed} of {targets} targets of demonstrations are",
            self.record.camera
        )
    }

    /// What to do about what the cameras show when an episode begins; `None` if the instruction is new, or if nothing looks like
    /// any demonstration of it. Case and punctuation of instructions do not matter.
    pub(crate) fn plan(&self, instruction: &str, images: &[Frame]) -> Option<SeenPlan<'_>> {
        let task = self.record.tasks.iter().position(|task| same_words(&task.instruction, instruction))?;
        let image = images.get(self.record.camera).filter(|image| image.width.min(image.height) >= SIDE)?;
        let picture = Picture::new(&Picture::of(image));
        let TaskRecord { program, demonstrations, .. } = &self.record.tasks[task];
        let found: Vec<Vec<Seen>> = demonstrations
            .iter()
            .zip(&self.windows[task])
            .map(|(one, windows)| {
                let found: BTreeMap<usize, Found> =
                    windows.iter().map(|(number, window)| (*number, window.find(&picture))).collect();
                one.seen(&found, &self.record.jacobian)
            })
            .collect();
        let likeness = |at: &usize| unlike(&found[*at]).unwrap_or(f64::INFINITY);
        let known = (0..found.len()).filter(|at| unlike(&found[*at]).is_some());
        let best = known.min_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
        let own: Vec<Place> = found[best].iter().map(|seen| seen.place).collect();
        // What other demonstrations say about the same target counts by how near it is.
        let mut sums: Vec<(f64, Place)> = own.iter().map(|place| (1.0, *place)).collect();
        let others = found.iter().enumerate().filter(|(other, _)| *other != best);
        for (_, other) in others {
            let places: Vec<Place> = other.iter().map(|seen| seen.place).collect();
            let matched = aligned(&own, &places, fit::skip(&places));
            for ((at, seen), (count, sum)) in matched.into_iter().zip(&found[best]).zip(&mut sums) {
                // A place that did not move says nothing about one that did.
                if seen.is_seen && !other[at].is_seen {
                    continue;
                }
                let near = (-0.5 * (distance(&places[at], &seen.place) / (NEAR * self.record.spread)).powi(2)).exp();
                *count += near;
                sum.iter_mut().zip(places[at]).for_each(|(sum, place)| *sum += near * place);
            }
        }
        let one = &demonstrations[best];
        let mut calls = one.calls.clone();
        for (Target { call, argument, .. }, (count, sum)) in one.targets.iter().zip(sums) {
            if let Argument::To(numbers) = &mut calls[*call].arguments[*argument] {
                numbers.iter_mut().zip(sum).for_each(|(number, sum)| *number = sum / count);
            }
        }
        Some(SeenPlan { task: program, motion: &one.motion, calls })
    }
}

/// How different a demonstration's windows look now, in the mean; `None` if fewer than half of its targets that have windows are
/// found.
fn unlike(found: &[Seen]) -> Option<f64> {
    let looked: Vec<f64> = found.iter().filter_map(|seen| seen.unlike).collect();
    let seen = found.iter().filter(|seen| seen.is_seen).count();
    (seen > 0 && 2 * seen >= looked.len()).then(|| looked.iter().sum::<f64>() / looked.len() as f64)
}

/// What an image says about a target of a demonstration.
struct Seen {
    /// Where it is now.
    place: Place,
    /// Whether a window of it was found.
    is_seen: bool,
    /// How different its windows look, in the mean; `None` if it has none.
    unlike: Option<f64>,
}

impl DemonstrationRecord {
    /// Whether its lists have matching lengths, and its targets and windows exist.
    fn is_whole(&self) -> bool {
        let is_there = |target: &Target| {
            let argument = self.calls.get(target.call).and_then(|call| call.arguments.get(target.argument));
            matches!(argument, Some(Argument::To(numbers)) if numbers.len() >= 3)
        };
        self.followed.len() == self.targets.len()
            && self.targets.iter().all(is_there)
            && self.followed.iter().flatten().all(|window| *window < WINDOWS)
    }

    /// Its targets in an image in which its windows were found. One without windows stays where it is.
    fn seen(&self, found: &BTreeMap<usize, Found>, jacobian: &[[f64; 2]; 3]) -> Vec<Seen> {
        let of = |(target, followed): (&Target, &Vec<usize>)| {
            let there = target.place;
            let own: Vec<&Found> = followed.iter().filter_map(|window| found.get(window)).collect();
            let sum: f64 = own.iter().map(|found| found.unlike()).sum();
            let unlike = (!own.is_empty()).then(|| sum / own.len() as f64);
            let seen = own.iter().filter(|found| found.left < OTHER).map(|found| found.shift.map(f64::from));
            match fit::mean(&seen.collect::<Vec<_>>()) {
                Some(moved) => Seen { place: fit::led(jacobian, &there, moved), is_seen: true, unlike },
                None => Seen { place: there, is_seen: false, unlike },
            }
        };
        self.targets.iter().zip(&self.followed).map(of).collect()
    }
}

fn same_words(one: &str, other: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let parts = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
        parts.map(str::to_lowercase).collect()
    };
    words(one) == words(other)
}

/// The one group of the robot whose targets are places; `None` if there is none or more than one.
fn arm(layout: &ActionLayout) -> Option<usize> {
    let mut arms = (0..layout.groups.len()).filter(|at| matches!(layout.groups[*at].space, Space::Pose(_)));
    arms.next().filter(|at| arms.next().is_none() && layout.groups[*at].dims() >= 3)
}

/// The places that calls lead a group to.
fn targets(skills: &[Skill], calls: &[SkillCall], group: usize) -> Vec<Target> {
    let mut found = Vec::new();
    for (call, made) in calls.iter().enumerate() {
        let groups = skills.get(made.skill.0).map_or(&[][..], |skill| &skill.arguments);
        for (argument, (of, value)) in groups.iter().zip(&made.arguments).enumerate() {
            match value {
                Argument::To(numbers) if *of == group && numbers.len() >= 3 => {
                    found.push(Target { call, argument, place: [numbers[0], numbers[1], numbers[2]] });
                }
                _ => {}
            }
        }
    }
    found
}
