//! Calls as actions from where the robot is: what drives it to their targets, step by step.
//!
//! [`expand`](crate::SkillAlphabet::expand) writes down a whole program as demonstrations would have moved, whatever happens on the
//! way. [`SkillAlphabet::follow`] is asked again and again, and always starts from where the robot is:
//!
//! ```text
//! command = distance to the target · λ / reach        not faster than the skill usually moves
//! ```
//! `reach` is how far a command moves a coordinate in a step, as measured in demonstrations, and λ the share of the distance that
//! one step covers. A call is over when the robot is [`near`](SkillAlphabet::near) its target, and its usual time has passed if it
//! begins there or tells a gripper to open or to close. The next call follows within the same rows, unless a gripper opens or closes
//! with it: then the robot waits at the target until it is asked again, and is seen there.

use crate::alphabet::{Skill, SkillAlphabet};
use crate::encode::{Argument, SkillCall};
use crate::episode::{Position, coordinates, written};
use crate::error::SkillError;
use crate::layout::{Control, Group};

/// λ.
const SHARE: f64 = 0.2;

/// A target is reached within so many steps of its grid.
pub const REACHED: f64 = 0.6;

/// A robot moves at most so many times faster than the skill does on average: motions are slow at both ends.
const HASTE: f64 = 1.5;

/// The slowest limit of a command, as a share of the size of the group's commands.
const SLOWEST: f64 = 0.4;

/// A call that is under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnderWay {
    /// Steps since it began.
    pub steps: f64,
    /// Whether it takes its usual time: the robot was at its target when it began, or it changes what a gripper does.
    pub timed: bool,
}

/// Actions that carry out calls, and where they lead.
#[derive(Clone, Debug, PartialEq)]
pub struct Followed {
    /// `[rows, width]`, row by row, in the layout of the alphabet.
    pub rows: Vec<f64>,
    /// How many calls are over after the rows that will be executed.
    pub over: usize,
    /// How far the next one is then.
    pub under_way: UnderWay,
}

impl SkillAlphabet {
    /// Whether all that the skills move can be followed: where it is must be known, and a target must be a position.
    pub fn can_follow(&self) -> bool {
        let moved = self.skills.iter().flat_map(|skill| &skill.arguments);
        moved.into_iter().all(|group| {
            let group = &self.layout.groups[*group];
            !group.states.is_empty() && group.control != Control::Velocity
        })
    }

    /// How far a robot is from the target of a call: the most of all coordinates, in steps of the grid. `None` if the call has no
    /// target whose distance can be seen.
    pub fn left(&self, call: &SkillCall, position: &[Vec<f64>]) -> Option<f64> {
        let skill = self.skills.get(call.skill.0)?;
        let mut most = None;
        for (group, argument) in skill.arguments.iter().zip(&call.arguments) {
            let layout = &self.layout.groups[*group];
            let Argument::To(target) = argument else { continue };
            if layout.states.is_empty() || layout.control == Control::Velocity {
                continue;
            }
            let places = target.iter().zip(&position[*group]).zip(&self.grids[*group]);
            let steps =
                places.filter(|(_, grid)| **grid > 0.0).map(|((target, now), grid)| (target - now).abs() / grid);
            most = Some(steps.fold(most.unwrap_or(0.0), f64::max));
        }
        most
    }

    /// Whether a robot is at the target of a call, or the call has none.
    pub fn near(&self, call: &SkillCall, position: &[Vec<f64>]) -> bool {
        self.left(call, position).is_none_or(|left| left <= REACHED)
    }

    /// How a call begins after another one.
    pub fn begun(&self, before: Option<&SkillCall>, call: &SkillCall, position: &[Vec<f64>]) -> UnderWay {
        let changes = before.is_some_and(|before| self.changes_gripper(before, call));
        UnderWay { steps: 0.0, timed: changes || self.near(call, position) }
    }

    /// Whether a gripper is told something else by the second call than by the first.
    fn changes_gripper(&self, before: &SkillCall, call: &SkillCall) -> bool {
        let closed = |call: &SkillCall| self.skills.get(call.skill.0).map(|skill| skill.closed.as_slice());
        closed(before) != closed(call)
    }

    /// `rows` actions that carry out some calls, the first of which is under way; targets are positions. The first `executed` rows
    /// will be executed.
    ///
    /// # Errors
    /// On calls of another alphabet.
    pub fn follow(
        &self,
        calls: &[SkillCall],
        position: &[Vec<f64>],
        mut under_way: UnderWay,
        rows: usize,
        executed: usize,
    ) -> Result<Followed, SkillError> {
        let width = self.layout.width;
        let mut position: Position = position.to_vec();
        let mut actions = Vec::with_capacity(rows * width);
        let mut at = 0;
        let mut after = (0, under_way);
        for step in 0..rows {
            while let (Some(call), true) = (calls.get(at), at + 1 < calls.len()) {
                let usual = self.skill(call.skill)?.duration.steps;
                if !self.near(call, &position) || (under_way.timed && under_way.steps < usual) {
                    break;
                }
                // A robot lags behind these rows. What it holds would fall beside its place, so it must be seen there first.
                if step > 0 && self.changes_gripper(call, &calls[at + 1]) {
                    break;
                }
                at += 1;
                under_way = self.begun(Some(call), &calls[at], &position);
            }
            let row = match calls.get(at) {
                Some(call) => self.step(self.skill(call.skill)?, call, &mut position),
                None => self.still(&position),
            };
            actions.extend(row);
            under_way.steps += 1.0;
            if step < executed {
                after = (at, under_way);
            }
        }
        Ok(Followed { rows: actions, over: after.0, under_way: after.1 })
    }

    /// Where actions lead a robot: where it is, and where it is after each of them if it moves as in demonstrations. Groups whose
    /// commands do not tell stay where they are.
    ///
    /// # Shapes
    /// `actions`: `[rows, layout.width]`, row by row.
    pub fn led(&self, position: &[Vec<f64>], actions: &[f32]) -> Vec<Position> {
        let mut path = vec![position.to_vec()];
        let mut now: Position = position.to_vec();
        for row in actions.chunks_exact(self.layout.width.max(1)) {
            for (at, (group, now)) in self.layout.groups.iter().zip(&mut now).enumerate() {
                let commands: Vec<f64> = group.columns.iter().map(|column| f64::from(row[*column])).collect();
                match group.control {
                    Control::Absolute => *now = coordinates(group, &commands),
                    Control::Relative if group.dims() == commands.len() => {
                        let reach = self.paces[at].iter().map(|pace| pace / self.sizes[at]);
                        now.iter_mut().zip(commands).zip(reach).for_each(|((now, one), reach)| *now += one * reach);
                    }
                    Control::Relative | Control::Velocity => {}
                }
            }
            path.push(now.clone());
        }
        path
    }

    /// An action that moves nothing; grippers are as at the middle of their range, which a call changes.
    fn still(&self, position: &[Vec<f64>]) -> Vec<f64> {
        let mut row = vec![0.0; self.layout.width];
        for (group, position) in self.layout.groups.iter().zip(position) {
            self.write(&mut row, group, position, &vec![0.0; position.len()]);
        }
        row
    }

    /// The next action of a call; the position becomes that after it.
    fn step(&self, skill: &Skill, call: &SkillCall, position: &mut Position) -> Vec<f64> {
        let mut row = self.still(position);
        for (group, argument) in skill.arguments.iter().zip(&call.arguments) {
            let (Argument::To(target), Some(now)) = (argument, position.get_mut(*group)) else { continue };
            let distance: Vec<f64> = target.iter().zip(now.iter()).map(|(target, now)| target - now).collect();
            let fastest = self.fastest(skill, *group);
            let wanted: Vec<f64> = distance
                .iter()
                .zip(&self.paces[*group])
                .map(|(distance, pace)| distance * SHARE / if *pace > 0.0 { pace / self.sizes[*group] } else { 1.0 })
                .collect();
            // All coordinates of a unit slow down together, so that the way is straight.
            let slowed = |dim: usize| {
                let most = self.layout.groups[*group].block(dim).map(|other| wanted[other].abs()).fold(0.0, f64::max);
                wanted[dim] * if most > fastest { fastest / most } else { 1.0 }
            };
            let commands: Vec<f64> = (0..wanted.len()).map(slowed).collect();
            for (dim, (now, command)) in now.iter_mut().zip(&commands).enumerate() {
                *now += command * self.paces[*group][dim] / self.sizes[*group];
            }
            self.write(&mut row, &self.layout.groups[*group], now, &commands);
        }
        let commands = self.layout.grippers.iter().zip(&skill.commands);
        commands.for_each(|(gripper, command)| row[gripper.column] = *command);
        row
    }

    /// The largest command that a skill gives a group.
    fn fastest(&self, skill: &Skill, group: usize) -> f64 {
        // A way is counted in steps at the robot's pace, that of commands of the group's size.
        let mean = skill.duration.way / skill.duration.steps.max(1.0);
        self.sizes[group] * (HASTE * mean).max(SLOWEST)
    }

    /// Writes the commands of a group into an action, within their limits.
    fn write(&self, row: &mut [f64], group: &Group, position: &[f64], commands: &[f64]) {
        let middle: Vec<f64> = group.limits.iter().map(|[least, most]| (least + most) / 2.0).collect();
        let values = match group.control {
            Control::Absolute => written(&group.space, position, &middle),
            Control::Relative | Control::Velocity => commands.to_vec(),
        };
        for ((column, [least, most]), value) in group.columns.iter().zip(&group.limits).zip(values) {
            row[*column] = value.clamp(*least, *most);
        }
    }
}
