//! Segments as calls of skills: net twist and length, snapped to the grid of the alphabet.

use std::ops::Range;

use clustering::Points;

use crate::alphabet::{MAX_SKILL_STEPS, SkillAlphabet, SkillCall, SkillId};
use crate::error::SkillError;

impl SkillAlphabet {
    /// A segment as a call of a skill: its net twist and its length, on the grid.
    pub fn call(&self, skill: SkillId, rows: Points<'_>) -> Result<SkillCall, SkillError> {
        self.call_after(skill, rows, &mut [0.0; 6])
    }

    /// An episode as calls, one for each of its segments. `labels` are the classes of the segments.
    ///
    /// # Errors
    /// On labels that are not one for each segment, segments outside the episode, and classes that the alphabet does
    /// not know under the segment's gripper command.
    pub fn encode(
        &self,
        episode: Points<'_>,
        segments: &[Range<usize>],
        labels: &[i64],
    ) -> Result<Vec<SkillCall>, SkillError> {
        if segments.len() != labels.len() {
            return Err(SkillError::OtherLabels { found: labels.len(), wanted: segments.len() });
        }
        let mut calls = Vec::with_capacity(segments.len());
        // What the grid has taken from the segments so far.
        let mut carry = [0.0; 6];
        for (segment, &label) in segments.iter().zip(labels) {
            let rows = rows_of(episode, segment)?;
            calls.push(self.call_after(self.skill_of(rows, label)?, rows, &mut carry)?);
            if !self.config.carry {
                carry = [0.0; 6];
            }
        }
        Ok(calls)
    }

    fn call_after(&self, skill: SkillId, rows: Points<'_>, carry: &mut [f64; 6]) -> Result<SkillCall, SkillError> {
        self.layout.check(rows)?;
        if rows.is_empty() {
            return Err(SkillError::EmptySegment { segment: 0 });
        }
        let steps = self.steps_on_grid(rows.len());
        let mut twist = self.net_twist(rows);
        for (axis, value) in twist.iter_mut().enumerate() {
            let wanted = *value + carry[axis];
            *value = self.on_grid(axis, wanted, steps);
            carry[axis] = wanted - *value;
        }
        Ok(SkillCall { skill, twist, steps })
    }

    /// What is left of a call once the rows in `done` are over and `left` are still to come: the rest of its twist and of its
    /// steps, on the grid. With nothing done it is the call itself.
    ///
    /// The rest is counted to where the call leads, what the grid carried from segment to segment included. It is written with
    /// the same skill, whose profile is that of whole segments.
    pub fn rest(&self, call: &SkillCall, done: Points<'_>, left: usize) -> Result<SkillCall, SkillError> {
        self.layout.check(done)?;
        if done.is_empty() {
            return Ok(*call);
        }
        let steps = self.steps_on_grid(left);
        let mut twist = self.net_twist(done);
        for (axis, value) in twist.iter_mut().enumerate() {
            *value = self.on_grid(axis, call.twist[axis] - *value, steps);
        }
        Ok(SkillCall { skill: call.skill, twist, steps })
    }

    fn steps_on_grid(&self, rows: usize) -> u64 {
        let grid = self.config.step_grid.max(1);
        (rows as u64).div_ceil(grid).saturating_mul(grid).min(MAX_SKILL_STEPS)
    }

    /// A displacement on the grid of its axis. The grid and what was carried may ask for more than the steps can give; then it
    /// is as much as they can give.
    fn on_grid(&self, axis: usize, wanted: f64, steps: u64) -> f64 {
        let grid = self.grid(axis);
        let value = snapped(wanted, grid);
        let Some(most) = self.layout.limit.map(|limit| limit * steps as f64).filter(|&most| value.abs() > most) else {
            return value;
        };
        let within = if grid > 0.0 { snapped((most / grid).floor() * grid, grid) } else { most };
        within.copysign(value) + 0.0
    }

    /// The sum of the commands on each axis.
    pub fn net_twist(&self, rows: Points<'_>) -> [f64; 6] {
        let mut twist = [0.0; 6];
        for (sum, column) in twist.iter_mut().zip(self.layout.axes()) {
            *sum = rows.rows().map(|row| f64::from(row[column])).sum();
        }
        twist
    }

    fn grid(&self, axis: usize) -> f64 {
        if axis < 3 { self.config.translation_grid } else { self.config.rotation_grid }
    }
}

/// The rows of a segment of an episode.
///
/// # Errors
/// On a segment that is not within the episode.
pub fn rows_of<'a>(episode: Points<'a>, segment: &Range<usize>) -> Result<Points<'a>, SkillError> {
    let width = episode.width();
    let values = episode.values().get(segment.start.saturating_mul(width)..segment.end.saturating_mul(width));
    let values = values.ok_or(SkillError::NotCovered { found: segment.end, wanted: episode.len() })?;
    Ok(Points::new(values, width)?)
}

/// The nearest multiple of the grid; as it is with a grid of 0. There is one zero.
pub(crate) fn snapped(value: f64, grid: f64) -> f64 {
    if grid == 0.0 {
        return value + 0.0;
    }
    let count = (value / grid).round();
    // Dividing by a whole number gives the double nearest to the decimal, so that 0.3 is written `0.3`.
    let whole = (1.0 / grid).round();
    let exact = (whole * grid - 1.0).abs() < 1e-12;
    (if exact { count / whole } else { count * grid }) + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_has_one_zero_and_writes_decimals() {
        assert_eq!(snapped(0.31, 0.1).to_string(), "0.3");
        assert_eq!(snapped(-0.04, 0.1).to_bits(), 0.0f64.to_bits());
        assert_eq!((snapped(0.7, 0.0), snapped(1.3, 0.5), snapped(5.0, 3.0)), (0.7, 1.5, 6.0));
    }
}
