//! Landmarks: what a still camera sees at the start of an episode that tells where targets are.
//!
//! An emitter learns from a few demonstrations which skills a task needs and about where they lead, but not how a target moves
//! with an object: a network that remembers its demonstrations explains their targets as well as one that looks. Landmarks
//! measure what it must not guess. All images of one task at the start of an episode show nearly the same scene, so that each
//! [window](windows) of it can be found again in another one, to a fraction of a pixel. Then
//!
//! ```text
//! target here = target there + J · (displacement of the target's window, in pixels)
//! ```
//! with one matrix J, the camera's, for all targets of a dataset: two numbers for each coordinate, learned from all
//! demonstrations together ([`fit`]). Which window belongs to a target is what predicts it best when each demonstration is left
//! out in turn, near the place where the camera sees targets (a linear map, learned from the clearest ones). No label and no
//! calibration is used, and a target that no window predicts stays as the emitter wrote it.

mod alignment;
mod fit;
mod windows;

use std::path::Path;

use dataset::{CameraId, Frame, FrameIndex, FrameOptions, FrameReader};
use serde::{Deserialize, Serialize};
use skills::{ActionLayout, Argument, Skill, SkillCall, Space};

use self::alignment::aligned;
use self::fit::{Fitted, Shown, fit};
use self::windows::{Found, Picture, SIDE, Window};
use crate::cycle::corpus::Corpus;
use crate::cycle::demonstrations::Demonstrations;
use crate::cycle::plan::anchored;
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::run_dir::{read_json, write_json, write_text};

/// The file in the directory of a run, and the images that belong to it.
const FILE: &str = "landmarks.json";
const IMAGES: &str = "landmarks.rgb";

/// A window of which more is different, as a share of its contrast, shows something else.
const OTHER: f32 = 0.5;

/// Predictions count by how near they are to what the emitter wrote, with a deviation of so many spreads of a target.
const NEAR: f64 = 2.0;

/// The least that the predictions of all demonstrations must count together.
const ENOUGH: f64 = 0.1;

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
    /// The tasks; each has an image of its own.
    tasks: Vec<TaskRecord>,
}

/// A task and its demonstrations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskRecord {
    instruction: String,
    /// The program of the task.
    program: String,
    /// The windows that are looked at.
    windows: Vec<usize>,
    demonstrations: Vec<DemonstrationRecord>,
}

/// A demonstration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DemonstrationRecord {
    targets: Vec<Place>,
    /// For each target the windows that it moves with, by their places among those of the task; none if nothing predicts it.
    followed: Vec<Vec<usize>>,
    /// How far each window of the task is from its place in the task's image.
    shifts: Vec<[f32; 2]>,
}

/// The landmarks of a dataset.
pub(crate) struct Landmarks {
    record: Record,
    /// The images of tasks, `[tasks, SIDE · SIDE · 3]`.
    images: Vec<Vec<u8>>,
    /// The windows of each task.
    windows: Vec<Vec<Window>>,
}

impl Landmarks {
    /// Those of the demonstrations that a policy learns from; `None` if the robot has no arm with positions, if no camera sees
    /// what targets depend on, or if images are too small.
    pub(crate) fn of(
        prepared: &Prepared,
        demonstrations: &Demonstrations,
        corpus: &Corpus,
        with_held_out: bool,
    ) -> Result<Option<Landmarks>> {
        let dataset = &prepared.source.dataset;
        let Some(group) = arm(&demonstrations.layout) else { return Ok(None) };
        let chosen: Vec<usize> =
            (0..demonstrations.all.len()).filter(|at| with_held_out || !demonstrations.all[*at].held_out).collect();
        let reader = FrameReader::new(dataset, FrameOptions::default());
        let mut best: Option<(usize, Fitted)> = None;
        for camera in 0..dataset.roles().cameras.len() {
            let starts: Vec<(CameraId, FrameIndex)> = chosen
                .iter()
                .map(|at| (CameraId(camera), FrameIndex(demonstrations.all[*at].frames.start)))
                .collect();
            let frames = reader.read(&starts)?;
            if frames.iter().any(|frame| frame.width.min(frame.height) < SIDE) {
                continue;
            }
            let mut shown = Vec::with_capacity(chosen.len());
            for (at, frame) in chosen.iter().zip(&frames) {
                let one = &demonstrations.all[*at];
                let start = corpus.alphabet.start(&demonstrations.episodes[*at]);
                let calls = anchored(&corpus.alphabet, &corpus.exact[*at], &start)?;
                let targets = targets(&corpus.alphabet.skills, &calls, group);
                shown.push(Shown {
                    instruction: one.instruction.clone(),
                    program: language::print(&corpus.store, corpus.tasks[*at]),
                    picture: Picture::new(frame),
                    targets: targets.into_iter().map(|(_, place)| place).collect(),
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
        let wrong = |reason: &str| Error::Mismatch(format!("the landmarks of the run are damaged: {reason}; train it again"));
        if images.len() != record.tasks.len() {
            return Err(wrong("there is not one image for each task"));
        }
        let mut windows = Vec::with_capacity(images.len());
        for (task, image) in record.tasks.iter().zip(&images) {
            let picture = Picture::of_bytes(image).ok_or_else(|| wrong("an image has another size"))?;
            if !task.is_whole() {
                return Err(wrong("a demonstration refers to windows that are not there"));
            }
            windows.push(task.windows.iter().map(|number| Window::new(&picture, *number)).collect());
        }
        Ok(Landmarks { record, images, windows })
    }

    /// Writes them into the directory of a run.
    pub(crate) fn write(&self, run: &Path) -> Result<()> {
        write_text(&run.join(IMAGES), &self.images.concat())?;
        write_json(&run.join(FILE), &self.record)
    }

    /// Those of a run, if it has any.
    pub(crate) fn load(run: &Path) -> Result<Option<Landmarks>> {
        if !run.join(FILE).is_file() {
            return Ok(None);
        }
        let record: Record = read_json(&run.join(FILE))?;
        let path = run.join(IMAGES);
        let bytes = std::fs::read(&path).map_err(|source| Error::File { path, source })?;
        let images = bytes.chunks(SIDE * SIDE * 3).map(<[u8]>::to_vec).collect();
        Landmarks::new(record, images).map(Some)
    }

    /// The calls of a plan that begins where demonstrations begin, with targets where the images show them. Targets about which
    /// the images say nothing stay.
    pub(crate) fn corrected(
        &self,
        skills: &[Skill],
        instruction: &str,
        program: &str,
        images: &[Frame],
        calls: &[SkillCall],
    ) -> Vec<SkillCall> {
        let mut corrected = calls.to_vec();
        let tasks = &self.record.tasks;
        let known = tasks.iter().position(|task| task.instruction == instruction);
        let task = known.or_else(|| tasks.iter().position(|task| task.program == program));
        let (Some(task), Some(image)) = (task, images.get(self.record.camera)) else { return corrected };
        let written = targets(skills, calls, self.record.group);
        let places: Vec<Place> = written.iter().map(|(_, place)| *place).collect();
        let seen = self.seen(task, image, &places);
        if std::env::var("LM_DEBUG").is_ok() { eprintln!("LM {:?} {:?} {:?}", instruction, places, seen); }
        for (((call, argument), _), seen) in written.iter().zip(seen) {
            if let (Some(seen), Argument::To(numbers)) = (seen, &mut corrected[*call].arguments[*argument]) {
                numbers.iter_mut().zip(seen).for_each(|(number, seen)| *number = seen);
            }
        }
        corrected
    }

    /// Where the targets of a motion are by an image; `None` for those about which it says nothing.
    fn seen(&self, task: usize, image: &Frame, written: &[Place]) -> Vec<Option<Place>> {
        let picture = Picture::new(image);
        let found: Vec<Found> = self.windows[task].iter().map(|window| window.find(&picture)).collect();
        let Record { jacobian, spread, tasks, .. } = &self.record;
        let mut sums = vec![(0.0, [0.0; 3]); written.len()];
        for one in &tasks[task].demonstrations {
            let matched = aligned(written, &one.targets, fit::skip(&one.targets));
            for ((at, own), (count, sum)) in matched.into_iter().zip(written).zip(&mut sums) {
                let moved = one.followed[at].iter().filter(|window| found[**window].left < OTHER).map(|window| {
                    let (now, then) = (found[*window].shift, one.shifts[*window]);
                    [0, 1].map(|axis| f64::from(now[axis] - then[axis]))
                });
                let moved: Vec<[f64; 2]> = moved.collect();
                let Some(moved) = fit::mean(&moved) else { continue };
                let there = fit::led(jacobian, &one.targets[at], moved);
                let near = (-0.5 * (distance(&there, own) / (NEAR * spread)).powi(2)).exp();
                *count += near;
                sum.iter_mut().zip(there).for_each(|(sum, there)| *sum += near * there);
            }
        }
        sums.into_iter().map(|(count, sum)| (count > ENOUGH).then(|| sum.map(|sum| sum / count))).collect()
    }
}

impl TaskRecord {
    /// Whether everything that demonstrations refer to is there.
    fn is_whole(&self) -> bool {
        self.windows.iter().all(|window| *window < windows::WINDOWS)
            && self.demonstrations.iter().all(|one| {
                one.shifts.len() == self.windows.len()
                    && one.followed.len() == one.targets.len()
                    && one.followed.iter().flatten().all(|window| *window < self.windows.len())
            })
    }
}

/// The one group of the robot whose targets are places; `None` if there is none or more than one.
fn arm(layout: &ActionLayout) -> Option<usize> {
    let mut arms = (0..layout.groups.len()).filter(|at| matches!(layout.groups[*at].space, Space::Pose(_)));
    arms.next().filter(|at| arms.next().is_none() && layout.groups[*at].dims() >= 3)
}

/// The places that calls lead a group to, each with its call and its argument.
fn targets(skills: &[Skill], calls: &[SkillCall], group: usize) -> Vec<((usize, usize), Place)> {
    let mut found = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let groups = skills.get(call.skill.0).map_or(&[][..], |skill| &skill.arguments);
        for (argument, (of, value)) in groups.iter().zip(&call.arguments).enumerate() {
            match value {
                Argument::To(numbers) if *of == group && numbers.len() >= 3 => {
                    found.push(((at, argument), [numbers[0], numbers[1], numbers[2]]));
                }
                _ => {}
            }
        }
    }
    found
}
