//! BLADE (Liu et al. 2024): skills are operators with conditions before and after, as a planner has them.
//!
//! BLADE cuts demonstrations where contact changes, and a language model writes the conditions of each piece. Here the
//! conditions are read from the robot's signals ([`super::symbols`]), which is what the model is asked to name. A class is a
//! set of conditions before, of conditions after, and with `vertical` of the direction. Conditions that occur in one training
//! stretch only are no operator; such stretches belong to the operator that differs in the fewest predicates.

use std::collections::BTreeMap;
use std::ops::Range;

use candle_core::Device;
use serde::Deserialize;
use serde_json::{Value, json};

use super::fragments::Demonstrated;
use super::symbols::{Conditions, Direction, Oracle, Symbols};
use super::{Budget, Found, Fragments, Operator, refused, setting};
use crate::error::Result;

/// How often an operator must occur in the training episodes.
const OFTEN: usize = 2;

/// Operators by symbolic conditions.
pub struct Blade;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cutting {
    /// Whether a change of direction cuts too.
    pub(super) vertical: bool,
    /// The least seconds of a stretch.
    pub(super) least: f64,
}

/// The conditions of an operator.
pub(super) type Signature = (Conditions, Conditions, Option<Direction>);

impl Cutting {
    /// The stretches of an episode by rows, with their conditions.
    pub(super) fn cut(&self, oracle: &Oracle, episode: &Demonstrated, fps: f64) -> Vec<(Range<usize>, Signature)> {
        let symbols: Symbols = oracle.read(episode);
        let least = ((self.least * fps).round() as usize).max(1);
        let signature = |rows: &Range<usize>| {
            let (before, after) = symbols.around(rows);
            (before, after, self.vertical.then(|| symbols.direction(rows)))
        };
        symbols.stretches(self.vertical, least).into_iter().map(|rows| (rows.clone(), signature(&rows))).collect()
    }

    pub(super) fn check(&self, operator: &str) -> Result<()> {
        match self.least > 0.0 && self.least.is_finite() {
            true => Ok(()),
            false => Err(refused(operator, "least", self.least, "a positive number of seconds")),
        }
    }
}

/// In how many predicates two operators differ.
pub(super) fn differing(one: &Signature, other: &Signature) -> u32 {
    one.0.differing(other.0) + one.1.differing(other.1) + u32::from(one.2 != other.2)
}

/// Gripper commands are the least that conditions are made of.
pub(super) fn missing(data: &Fragments<'_>) -> Option<String> {
    (data.prepared.robot().grippers().count() == 0).then(|| "a gripper, which the conditions are about".to_owned())
}

impl Operator for Blade {
    fn name(&self) -> &'static str {
        "blade"
    }

    fn source(&self) -> &'static str {
        "BLADE: operators by conditions before and after; the language model that writes the conditions is replaced by a \
         deterministic oracle over gripper commands, fingers, height and direction"
    }

    fn choices(&self, _budget: &Budget) -> Vec<Value> {
        let all = [(false, 0.15), (false, 0.4), (true, 0.15), (true, 0.4)];
        all.map(|(vertical, least)| json!({ "vertical": vertical, "least": least })).to_vec()
    }

    fn missing(&self, data: &Fragments<'_>) -> Option<String> {
        missing(data)
    }

    fn labels(&self, data: &Fragments<'_>, choice: &Value, _seed: u64, _device: &Device) -> Result<Found> {
        let cutting: Cutting = setting(self.name(), choice)?;
        cutting.check(self.name())?;
        let fps = data.prepared.source.dataset.info().fps;
        let oracle = Oracle::of(&data.learned, fps);
        let mut counts = BTreeMap::<Signature, usize>::new();
        for (_, signature) in data.learned.iter().flat_map(|episode| cutting.cut(&oracle, episode, fps)) {
            *counts.entry(signature).or_default() += 1;
        }
        let mut operators: Vec<Signature> =
            counts.iter().filter(|(_, count)| **count >= OFTEN).map(|(signature, _)| *signature).collect();
        if operators.is_empty() {
            operators = counts.into_keys().collect();
        }
        // The first of equally near ones.
        let class = |signature: &Signature| {
            (0..operators.len()).min_by_key(|at| differing(&operators[*at], signature)).map_or(-1, |at| at as i64)
        };
        let stretches: Vec<Vec<(Range<usize>, i64)>> = data
            .held_out
            .iter()
            .map(|episode| {
                let first = episode.frames.start;
                let found = cutting.cut(&oracle, episode, fps).into_iter();
                found.map(|(rows, signature)| (first + rows.start..first + rows.end, class(&signature))).collect()
            })
            .collect();
        Ok(data.found_of_stretches(&stretches))
    }
}
