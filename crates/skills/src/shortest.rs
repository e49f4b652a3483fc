//! Whether a target is written as a position or as the distance from the previous one: whichever is shorter.
//!
//! The compressor's description length of a literal is the negative logarithm of its share of all literals in its place. A
//! position is short where demonstrations end at the same place (a plate that never moves), a distance where they move by the
//! same amount (lift by 16 cm wherever the bowl stood). Forms are chosen by those shares over the training demonstrations, in
//! turns: shares from forms, forms from shares. The first call that moves a group has a position, because what its distance
//! would be counted from is not in the program. A group that is not anchored has distances only.

use std::collections::BTreeMap;

use crate::alphabet::SkillAlphabet;
use crate::encode::{Argument, SkillCall};
use crate::episode::Position;
use crate::error::SkillError;

/// Turns of choosing; forms hardly change after the second.
const TURNS: usize = 4;

/// What a literal counts that was never seen.
const UNSEEN: f64 = 0.5;

/// The calls of one demonstration, and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// Where it begins, on the grid.
    pub start: Position,
    /// Its calls.
    pub calls: Vec<SkillCall>,
}

/// A literal: its group and its numbers bit by bit.
type Key = (usize, Vec<u64>);

/// How often each literal is written, and how many literals there are.
#[derive(Default)]
struct Shares {
    counts: BTreeMap<Key, f64>,
    all: f64,
}

impl Shares {
    fn add(&mut self, key: &Key) {
        *self.counts.entry(key.clone()).or_default() += 1.0;
        self.all += 1.0;
    }

    /// The nats of a literal among `total` literals of both forms.
    fn nats(&self, key: &Key, total: f64) -> f64 {
        -((self.counts.get(key).copied().unwrap_or(0.0).max(UNSEEN)) / total.max(1.0)).ln()
    }
}

impl SkillAlphabet {
    /// Rewrites the targets of all demonstrations in the shorter form, judged by those of the training demonstrations. Calls
    /// mean the same as before.
    ///
    /// # Errors
    /// On calls of another alphabet.
    pub fn shorten(&self, demonstrations: &mut [Written], training: &[usize]) -> Result<(), SkillError> {
        // For each target that may be written both ways: where it is, and its two forms.
        let mut open: Vec<([usize; 3], [Vec<f64>; 2], usize)> = Vec::new();
        for (at, one) in demonstrations.iter().enumerate() {
            let mut position = one.start.clone();
            let mut mentioned = vec![false; position.len()];
            for (place, call) in one.calls.iter().enumerate() {
                let before = position.clone();
                self.advance(&mut position, call)?;
                for (number, group) in self.skill(call.skill)?.arguments.iter().enumerate() {
                    if std::mem::replace(&mut mentioned[*group], true) && self.layout.groups[*group].anchored() {
                        let by = self.distance(*group, &position[*group], &before[*group]);
                        open.push(([at, place, number], [position[*group].clone(), by], *group));
                    }
                }
            }
        }
        let key =
            |group: usize, numbers: &[f64]| (group, numbers.iter().map(|one| one.to_bits()).collect::<Vec<u64>>());
        let keys: Vec<[Key; 2]> =
            open.iter().map(|(_, forms, group)| [key(*group, &forms[0]), key(*group, &forms[1])]).collect();
        let mut of_training = vec![false; demonstrations.len()];
        training.iter().for_each(|at| of_training.get_mut(*at).into_iter().for_each(|one| *one = true));
        let learned: Vec<bool> = open.iter().map(|([at, ..], ..)| of_training[*at]).collect();
        // At first as if every target were written both ways.
        let mut chosen: Vec<Option<usize>> = vec![None; open.len()];
        for _ in 0..TURNS {
            let mut shares = [Shares::default(), Shares::default()];
            for ((keys, form), _) in keys.iter().zip(&chosen).zip(&learned).filter(|(_, learned)| **learned) {
                (0..2).filter(|one| form.is_none_or(|form| form == *one)).for_each(|one| shares[one].add(&keys[one]));
            }
            let total = shares[0].all + shares[1].all;
            for (form, keys) in chosen.iter_mut().zip(&keys) {
                let [to, by] = [0, 1].map(|one| shares[one].nats(&keys[one], total));
                *form = Some(usize::from(by < to));
            }
        }
        for (([at, place, number], forms, _), form) in open.into_iter().zip(chosen) {
            let [to, by] = forms;
            demonstrations[at].calls[place].arguments[number] =
                if form == Some(1) { Argument::By(by) } else { Argument::To(to) };
        }
        Ok(())
    }
}
