//! How often names fall back to the motion: with the right instruction, which should be rare, and with a wrong one, which
//! should be often.
//!
//! Every episode is named with the instructions of all other tasks of all datasets. **An instruction that asks for the same kinds of
//! steps cannot be contradicted by a motion**: `pick up the milk and place it in the basket` fits an episode with the
//! ketchup as well. Such instructions are counted apart from those that ask for other steps. Texts that are not understood
//! are a third kind of wrong instruction.
//!
//! The threshold on the score of an alignment is chosen on training episodes: the largest one that gives up at most
//! one right instruction in a hundred, over all datasets and levels of noise. Good names that are lost cost more than poor ones that are
//! kept, because every name has a confidence.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use skills::{SegmentConfig, segment_scored};
use subtasks::steps::{Kind, USUAL};
use subtasks::{Namer, NamerConfig, expected, knows_directions};

use super::noise::{self, Level};
use super::samples::{Sample, Samples};
use super::truth::ObjectOrder;
use crate::error::Result;
use crate::prepared::Prepared;

/// Texts that ask for nothing that a robot can do.
const NONSENSE: [&str; 4] = ["", "la vida es sueño", "episode 17 of the second batch", "put it there"];

/// Thresholds that are tried, in hundredths.
const THRESHOLDS: std::ops::RangeInclusive<u32> = 20..=95;

/// The largest share of right instructions of training episodes that may not be used.
const GIVEN_UP: f64 = 0.01;

/// The result for all datasets together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShuffledReport {
    /// The threshold, for robots that are moved by their end effectors and for those that are moved by their joints.
    pub kinds: Vec<Threshold>,
    /// Each dataset and level of noise, held-out episodes only.
    pub held_out: Vec<FallbackRow>,
    /// The same on training episodes.
    pub training: Vec<FallbackRow>,
}

/// The threshold of one kind of robot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// The kind: `end effectors` or `joints`.
    pub robots: String,
    /// The threshold of the program.
    pub used: f64,
    /// The largest threshold that gives up at most 1 % of the right instructions of training episodes.
    pub chosen_on_training: f64,
    /// For each threshold, over training episodes of all datasets and levels: shares of right instructions, and of wrong ones
    /// with other steps, that are not used.
    pub curve: Vec<[f64; 3]>,
}

/// One dataset under one level of noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FallbackRow {
    /// The dataset's name.
    pub dataset: String,
    /// `recorded`, or the level of noise.
    pub level: String,
    /// The right instruction.
    pub right: Share,
    /// Instructions of other tasks with the same kinds of steps.
    pub same_steps: Share,
    /// Instructions of other tasks with other kinds of steps.
    pub other_steps: Share,
    /// Texts that are not understood.
    pub nonsense: Share,
}

/// How many namings fell back to the motion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Those that did.
    pub by_motion: usize,
    /// All.
    pub all: usize,
}

/// The scores of one dataset under one level of noise, by the kind of instruction.
struct Scores {
    dataset: String,
    level: String,
    held_out: bool,
    /// Whether it is known where the hands go.
    directions: bool,
    threshold: f64,
    by_kind: [Vec<f64>; 4],
}

/// Measures all datasets, each with the instructions of all of them.
///
/// # Errors
/// If a dataset has no true phases or cannot be read as motions.
pub fn evaluate_shuffled(prepared: &[Prepared], levels: &[Level], seed: u64) -> Result<ShuffledReport> {
    let samples: Vec<Samples> =
        prepared.iter().map(|one| Samples::new(one, &ObjectOrder::default())).collect::<Result<_>>()?;
    let mut instructions: Vec<&str> =
        samples.iter().flat_map(|one| one.all.iter().map(|sample| sample.instruction.as_str())).collect();
    instructions.sort_unstable();
    instructions.dedup();
    let mut scores = Vec::new();
    for (prepared, recorded) in prepared.iter().zip(&samples) {
        scores.extend(scored(recorded, "recorded", &instructions)?);
        for level in levels {
            let other = noise::disturbed(prepared, recorded, *level, seed)?;
            scores.extend(scored(&other, level.name(), &instructions)?);
        }
    }
    let rows = |held_out: bool| {
        let own = scores.iter().filter(|one| one.held_out == held_out);
        own.map(Scores::row).collect::<Vec<_>>()
    };
    let kinds = [true, false].into_iter().filter_map(|directions| threshold(&scores, directions)).collect();
    Ok(ShuffledReport { kinds, held_out: rows(true), training: rows(false) })
}

/// The threshold of one kind of robot; `None` without such a robot.
fn threshold(scores: &[Scores], directions: bool) -> Option<Threshold> {
    let training: Vec<&Scores> = scores.iter().filter(|one| !one.held_out && one.directions == directions).collect();
    let used = training.first()?.threshold;
    let share = |kind: usize, threshold: f64| {
        let all: Vec<Share> = training.iter().map(|one| one.share(kind, threshold)).collect();
        let count = all.iter().map(|one| one.all).sum::<usize>().max(1);
        all.iter().map(|one| one.by_motion).sum::<usize>() as f64 / count as f64
    };
    let at = |hundredths: u32| f64::from(hundredths) / 100.0;
    let curve: Vec<[f64; 3]> = THRESHOLDS.map(at).map(|one| [one, share(0, one), share(2, one)]).collect();
    let chosen_on_training = curve.iter().rfind(|one| one[1] <= GIVEN_UP).map_or(0.0, |one| one[0]);
    let robots = if directions { "end effectors" } else { "joints" }.to_owned();
    Some(Threshold { robots, used, chosen_on_training, curve })
}

impl Scores {
    fn share(&self, kind: usize, threshold: f64) -> Share {
        let own = &self.by_kind[kind];
        Share { by_motion: own.iter().filter(|score| **score < threshold).count(), all: own.len() }
    }

    fn row(&self) -> FallbackRow {
        let [right, same_steps, other_steps, nonsense] = [0, 1, 2, 3].map(|kind| self.share(kind, self.threshold));
        FallbackRow {
            dataset: self.dataset.clone(),
            level: self.level.clone(),
            right,
            same_steps,
            other_steps,
            nonsense,
        }
    }
}

/// The scores of training episodes and of held-out ones.
fn scored(samples: &Samples, level: &str, instructions: &[&str]) -> Result<[Scores; 2]> {
    let namer = Namer::default();
    let drives = subtasks::drives(&samples.layout);
    let steps: Vec<Vec<Kind>> = instructions.iter().map(|text| kinds(text, drives)).collect();
    let one = |sample: &Sample| -> Result<[Vec<f64>; 4]> {
        let segments = segment_scored(&sample.motions, &samples.layout, &SegmentConfig::subtasks())?;
        let own = kinds(&sample.instruction, drives);
        let mut found = [const { Vec::new() }; 4];
        let mut add = |kind: usize, text: &str| {
            found[kind].push(namer.name(text, &sample.motions, &samples.layout, &segments).score);
        };
        add(0, &sample.instruction);
        for (text, steps) in instructions.iter().zip(&steps).filter(|(text, _)| **text != sample.instruction) {
            add(if *steps == own { 1 } else { 2 }, text);
        }
        NONSENSE.iter().for_each(|text| add(3, text));
        Ok(found)
    };
    let of = |held_out: bool| -> Result<Scores> {
        let found = samples.which(held_out).par_iter().map(|sample| one(sample)).collect::<Result<Vec<_>>>()?;
        let mut by_kind = [const { Vec::new() }; 4];
        found.into_iter().for_each(|own| by_kind.iter_mut().zip(own).for_each(|(all, own)| all.extend(own)));
        let (dataset, level) = (samples.dataset.clone(), level.to_owned());
        let threshold = NamerConfig::default().threshold(&samples.layout);
        Ok(Scores { dataset, level, held_out, directions: knows_directions(&samples.layout), threshold, by_kind })
    };
    Ok([of(false)?, of(true)?])
}

/// The kinds of the steps that an instruction asks for and that a robot hardly leaves out.
fn kinds(instruction: &str, drives: bool) -> Vec<Kind> {
    let steps = expected(instruction, drives, 1).into_iter().filter(|step| step.skip >= USUAL);
    steps.map(|step| step.kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_objects_are_the_same_steps_and_other_verbs_are_not() {
        let milk = kinds("pick up the milk and place it in the basket", false);
        assert_eq!(milk, kinds("put the ketchup on the plate", false));
        assert_ne!(milk, kinds("open the top drawer", false));
        assert!(NONSENSE.iter().all(|text| kinds(text, false).is_empty()));
    }
}
