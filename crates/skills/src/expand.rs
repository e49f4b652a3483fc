//! Programs of skills back into rows of actions.
//!
//! Each call takes every group from where it is to its target along the skill's profile ([`crate::Profile`]), over as many steps
//! as the skill takes for a way of that length. Groups without an argument stay. Absolute commands end exactly at the
//! target; relative ones and velocities are those that demonstrations needed for such a distance, which no robot was asked
//! about: what they do is for a simulator to say. Commands stay within what was commanded in the data.

use std::ops::Range;

use language::{Signature, TermId, TermStore};

use crate::alphabet::SkillAlphabet;
use crate::encode::SkillCall;
use crate::episode::{Position, written};
use crate::error::SkillError;
use crate::layout::Control;

/// The share of a command's range by which it must be beyond its limits to be counted.
const BEYOND: f64 = 0.05;

/// The most rows of one expansion.
pub const MAX_ROWS: usize = 1 << 20;

/// Actions that a program stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Expansion {
    /// `[n, width]`, row by row, in the layout of the alphabet.
    pub rows: Vec<f64>,
    /// How many columns a row has.
    pub width: usize,
    /// The rows of each call.
    pub calls: Vec<Range<usize>>,
    /// How many commands were beyond their limits before they were brought back.
    pub clamped: usize,
    /// Where the robot is after the last call.
    pub end: Position,
}

impl SkillAlphabet {
    /// The actions of a term from a position on, whose library calls are unfolded first.
    ///
    /// # Errors
    /// On terms that are no programs, make other calls than skills, or leave a choice to the world.
    pub fn expand(
        &self,
        store: &mut TermStore,
        signature: &Signature,
        term: TermId,
        start: &[Vec<f64>],
    ) -> Result<Expansion, SkillError> {
        let calls = self.calls_of_term(store, signature, term)?;
        self.expand_calls(&calls, start)
    }

    /// The actions of calls, one after the other.
    pub fn expand_calls(&self, calls: &[SkillCall], start: &[Vec<f64>]) -> Result<Expansion, SkillError> {
        self.expand_timed(calls, start, |_, steps| steps)
    }

    /// The same, where each call takes as many steps as `timed` says, given its place and the steps that the skill would take.
    pub fn expand_timed(
        &self,
        calls: &[SkillCall],
        start: &[Vec<f64>],
        timed: impl Fn(usize, usize) -> usize,
    ) -> Result<Expansion, SkillError> {
        // An alphabet may come from a file, so its layout is looked at once more.
        self.layout.validate()?;
        let dims: Vec<usize> = self.layout.groups.iter().map(crate::layout::Group::dims).collect();
        if !dims.iter().eq(start.iter().map(Vec::len).collect::<Vec<_>>().iter()) {
            let found = format!("{:?} numbers", start.iter().map(Vec::len).collect::<Vec<_>>());
            return Err(SkillError::BadSetting { name: "start", found, wanted: "a position of every group" });
        }
        let width = self.layout.width;
        let mut expansion = Expansion { rows: Vec::new(), width, calls: Vec::new(), clamped: 0, end: start.to_vec() };
        for (at, call) in calls.iter().enumerate() {
            let skill = self.skill(call.skill)?;
            let from = expansion.end.clone();
            self.advance(&mut expansion.end, call)?;
            let moved = |group: usize| -> Vec<f64> {
                expansion.end[group].iter().zip(&from[group]).map(|(to, from)| to - from).collect()
            };
            let distances: Vec<Vec<f64>> = (0..dims.len()).map(moved).collect();
            let first = expansion.rows.len() / width;
            let own = skill.duration.of(self.travel(|group| distances[group].clone()));
            let steps = timed(at, own);
            if first + steps > MAX_ROWS {
                return Err(SkillError::TooLong { limit: MAX_ROWS });
            }
            expansion.calls.push(first..first + steps);
            expansion.rows.resize((first + steps) * width, 0.0);
            for (group, distance) in distances.iter().enumerate() {
                let rows = &mut expansion.rows[first * width..];
                expansion.clamped += self.write_group(rows, group, skill.profiles.get(group), &from[group], distance);
            }
            for row in expansion.rows[first * width..].chunks_exact_mut(width) {
                let commands = self.layout.grippers.iter().zip(&skill.commands);
                commands.for_each(|(gripper, command)| row[gripper.column] = *command);
            }
        }
        Ok(expansion)
    }

    /// Writes the commands of a group into rows; returns how many were beyond their limits.
    fn write_group(
        &self,
        rows: &mut [f64],
        group: usize,
        profile: Option<&crate::profile::Profile>,
        from: &[f64],
        distance: &[f64],
    ) -> usize {
        let layout = &self.layout.groups[group];
        let width = self.layout.width;
        let exact = layout.control == Control::Absolute;
        let steps = rows.len() / width;
        let commands = match profile {
            Some(profile) => profile.steps(distance, steps, exact),
            None => {
                let rate = if layout.control == Control::Velocity { self.layout.fps } else { 1.0 };
                distance.iter().map(|distance| vec![distance * rate / steps as f64; steps]).collect()
            }
        };
        let middle: Vec<f64> = layout.limits.iter().map(|[least, most]| (least + most) / 2.0).collect();
        let mut position = from.to_vec();
        let mut clamped = 0;
        for (step, row) in rows.chunks_exact_mut(width).enumerate() {
            let values = if exact {
                position.iter_mut().zip(&commands).for_each(|(position, commands)| *position += commands[step]);
                written(&layout.space, &position, &middle)
            } else {
                commands.iter().map(|commands| commands[step]).collect()
            };
            for ((column, [least, most]), value) in layout.columns.iter().zip(&layout.limits).zip(values) {
                // What is beyond by the noise of a joint that stands still was not cut off.
                let margin = BEYOND * (most - least);
                clamped += usize::from(value < least - margin || value > most + margin);
                row[*column] = value.clamp(*least, *most);
            }
        }
        clamped
    }
}
