//! Segments as calls of skills: the targets of the groups that move, snapped to the grid of the alphabet.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::alphabet::{SkillAlphabet, SkillId};
use crate::episode::{Episode, Motion, Position};
use crate::error::SkillError;

/// A skill with its arguments, on the grid of its alphabet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillCall {
    /// Which skill.
    pub skill: SkillId,
    /// One for each of the skill's groups.
    pub arguments: Vec<Argument>,
}

/// Where the motion of a group ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Argument {
    /// At this position.
    To(Vec<f64>),
    /// So far from the previous target.
    By(Vec<f64>),
}

impl SkillAlphabet {
    /// Where an episode begins, on the grid: what the first distance of a program is counted from.
    pub fn start(&self, episode: &Episode) -> Position {
        self.position_on_grid(&episode.position(0))
    }

    /// A position of the whole robot on the grid.
    pub fn position_on_grid(&self, position: &[Vec<f64>]) -> Position {
        position.iter().enumerate().map(|(group, position)| self.on_grid(group, position)).collect()
    }

    /// An episode as calls, one for each of its segments, with targets as positions wherever the group is anchored. `labels` are
    /// the classes of the segments.
    ///
    /// # Errors
    /// On labels that are not one for each segment, and segments outside the episode. A class that the alphabet does not know
    /// under the segment's gripper commands is written as the nearest skill.
    pub fn encode(
        &self,
        episode: &Episode,
        segments: &[Range<usize>],
        labels: &[i64],
    ) -> Result<Vec<SkillCall>, SkillError> {
        if segments.len() != labels.len() {
            return Err(SkillError::OtherLabels { found: labels.len(), wanted: segments.len() });
        }
        let mut calls = Vec::with_capacity(segments.len());
        let mut position = self.start(episode);
        for (segment, &label) in segments.iter().zip(labels) {
            let motion = episode.motion(segment)?;
            // A segment may combine a class and commands that no segment of the fit did.
            let skill = match self.skill_of(&motion, label) {
                Ok(skill) => skill,
                Err(unknown) => self.nearest(&motion).ok_or(unknown)?,
            };
            let call = self.call(skill, &motion, &position)?;
            self.advance(&mut position, &call)?;
            calls.push(call);
        }
        Ok(calls)
    }

    /// The same skills without a grid: targets stay as they are.
    #[must_use]
    pub fn without_grid(&self) -> SkillAlphabet {
        let grids = self.grids.iter().map(|group| vec![0.0; group.len()]).collect();
        SkillAlphabet { grids, ..self.clone() }
    }

    /// A segment as a call of a skill after earlier calls have led to `position`. What the grid took from the distances of a
    /// group that is not anchored is made up for by the next one.
    fn call(&self, skill: SkillId, motion: &Motion<'_>, position: &[Vec<f64>]) -> Result<SkillCall, SkillError> {
        let end = motion.end();
        let argument = |group: &usize| {
            let target = self.on_grid(*group, &end[*group]);
            if self.layout.groups[*group].anchored() {
                return Argument::To(target);
            }
            Argument::By(self.distance(*group, &target, &position[*group]))
        };
        Ok(SkillCall { skill, arguments: self.skill(skill)?.arguments.iter().map(argument).collect() })
    }

    /// What is left of a call at a row in its segment. A target stays what it is; of a distance the part that is over is taken.
    pub fn rest(
        &self,
        call: &SkillCall,
        episode: &Episode,
        segment: &Range<usize>,
        row: usize,
    ) -> Result<SkillCall, SkillError> {
        let (start, now) = (episode.position(segment.start), episode.position(row));
        let of = |(group, argument): (&usize, &Argument)| match argument {
            Argument::By(distance) if !self.layout.groups[*group].anchored() => {
                let moved = now[*group].iter().zip(&start[*group]).map(|(now, start)| now - start);
                let left: Vec<f64> = distance.iter().zip(moved).map(|(whole, moved)| whole - moved).collect();
                Argument::By(self.on_grid(*group, &left))
            }
            other => other.clone(),
        };
        let arguments = self.skill(call.skill)?.arguments.iter().zip(&call.arguments).map(of).collect();
        Ok(SkillCall { skill: call.skill, arguments })
    }

    /// The same call with every target as a position, as far as its groups are anchored.
    pub fn anchored(&self, call: &SkillCall, position: &[Vec<f64>]) -> Result<SkillCall, SkillError> {
        let mut after = position.to_vec();
        self.advance(&mut after, call)?;
        let of = |(group, argument): (&usize, &Argument)| match argument {
            Argument::By(_) if self.layout.groups[*group].anchored() => Argument::To(after[*group].clone()),
            other => other.clone(),
        };
        let arguments = self.skill(call.skill)?.arguments.iter().zip(&call.arguments).map(of).collect();
        Ok(SkillCall { skill: call.skill, arguments })
    }

    /// Moves a position to where a call leads.
    ///
    /// # Errors
    /// On a call of another alphabet.
    pub fn advance(&self, position: &mut [Vec<f64>], call: &SkillCall) -> Result<(), SkillError> {
        let skill = self.skill(call.skill)?;
        let fits = |(group, argument): (&usize, &Argument)| {
            let (Argument::To(numbers) | Argument::By(numbers)) = argument;
            position.get(*group).is_some_and(|position| position.len() == numbers.len())
        };
        if call.arguments.len() != skill.arguments.len() || !skill.arguments.iter().zip(&call.arguments).all(fits) {
            return Err(SkillError::NotSkill { found: format!("{} {:?}", skill.name, call.arguments) });
        }
        for (group, argument) in skill.arguments.iter().zip(&call.arguments) {
            position[*group] = match argument {
                Argument::To(target) => target.clone(),
                Argument::By(distance) => {
                    let sum: Vec<f64> = position[*group].iter().zip(distance).map(|(from, by)| from + by).collect();
                    self.on_grid(*group, &sum)
                }
            };
        }
        Ok(())
    }

    /// From one position of a group to another, on the grid.
    pub(crate) fn distance(&self, group: usize, to: &[f64], from: &[f64]) -> Vec<f64> {
        let apart: Vec<f64> = to.iter().zip(from).map(|(to, from)| to - from).collect();
        self.on_grid(group, &apart)
    }

    pub(crate) fn skill(&self, id: SkillId) -> Result<&crate::alphabet::Skill, SkillError> {
        self.skills.get(id.0).ok_or(SkillError::UnknownSkill { found: id.0, skills: self.skills.len() })
    }
}
