//! Programs of skills back into rows of actions.
//!
//! Each call is its skill's profile over the steps asked for, bent so that the commands on each axis sum to the twist
//! (see [`crate::Profile`]). Commands leave the limits of the layout only where the twist asks for more than the profile's fast parts can
//! give; then the excess moves to the other steps of the call: x_i = clamp(v_i + μ) with the one μ that keeps the sum,
//! which is the nearest row of commands that does. Only a twist beyond one full command a step is lost, and the loss is
//! reported.

use std::ops::Range;

use language::{Event, Signature, TermId, TermStore};

use crate::alphabet::{SkillAlphabet, SkillCall};
use crate::error::SkillError;

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
    /// How many commands were at the limit before they were brought back.
    pub clamped: usize,
    /// Σ over calls and axes of the twist that no command within the limits can give.
    pub lost: f64,
}

impl SkillAlphabet {
    /// The actions of a term, whose library calls are unfolded first.
    ///
    /// # Errors
    /// On terms that are no programs, make other calls than skills, or leave a choice to the world.
    pub fn expand(&self, store: &mut TermStore, signature: &Signature, term: TermId) -> Result<Expansion, SkillError> {
        let calls = self.calls_of_term(store, signature, term)?;
        self.expand_calls(&calls)
    }

    /// The actions of an evaluated program.
    pub fn expand_trace(&self, store: &TermStore, trace: &[Event]) -> Result<Expansion, SkillError> {
        self.expand_calls(&self.calls_of_trace(store, trace)?)
    }

    /// The actions of calls, one after the other.
    pub fn expand_calls(&self, calls: &[SkillCall]) -> Result<Expansion, SkillError> {
        // An alphabet may come from a file, so its layout is looked at once more.
        self.layout.validate()?;
        let width = self.layout.width;
        let mut expansion = Expansion { rows: Vec::new(), width, calls: Vec::new(), clamped: 0, lost: 0.0 };
        for call in calls {
            let skills = self.skills.len();
            let skill =
                self.skills.get(call.skill.0).ok_or(SkillError::UnknownSkill { found: call.skill.0, skills })?;
            let start = expansion.rows.len() / width;
            let steps = usize::try_from(call.steps).ok().filter(|steps| start.saturating_add(*steps) <= MAX_ROWS);
            let steps = steps.ok_or(SkillError::TooLong { limit: MAX_ROWS })?;
            expansion.calls.push(start..start + steps);
            if steps == 0 {
                // A motion of no steps cannot move.
                expansion.lost += call.twist.iter().map(|total| total.abs()).sum::<f64>();
                continue;
            }
            expansion.rows.resize((start + steps) * width, 0.0);
            let rows = &mut expansion.rows[start * width..];
            for (axis, column) in self.layout.axes().into_iter().enumerate().take(6) {
                let mut velocities = skill.profile.steps(axis, call.twist[axis], steps);
                if let Some(limit) = self.layout.limit {
                    expansion.clamped += velocities.iter().filter(|velocity| velocity.abs() > limit).count();
                    expansion.lost += keep_within(&mut velocities, call.twist[axis], limit);
                }
                rows.chunks_exact_mut(width).zip(velocities).for_each(|(row, velocity)| row[column] = velocity);
            }
            if let Some(column) = self.layout.gripper {
                rows.chunks_exact_mut(width).for_each(|row| row[column] = skill.command);
            }
        }
        Ok(expansion)
    }
}

/// Brings velocities within the limit and keeps their sum as far as possible. Returns what is lost of it.
fn keep_within(velocities: &mut [f64], total: f64, limit: f64) -> f64 {
    if velocities.iter().all(|velocity| velocity.abs() <= limit) {
        return 0.0;
    }
    let most = velocities.len() as f64 * limit;
    let wanted = total.clamp(-most, most);
    let sum = |velocities: &[f64], shift: f64| velocities.iter().map(|v| (v + shift).clamp(-limit, limit)).sum::<f64>();
    // The sum rises with the shift, from all at the one limit to all at the other within these bounds.
    let reach = velocities.iter().fold(0.0, |reach: f64, velocity| reach.max(velocity.abs())) + limit;
    let (mut low, mut high) = (-reach, reach);
    for _ in 0..128 {
        let middle = low + (high - low) / 2.0;
        if sum(velocities, middle) < wanted { low = middle } else { high = middle }
    }
    velocities.iter_mut().for_each(|velocity| *velocity = (*velocity + high).clamp(-limit, limit));
    (total - velocities.iter().sum::<f64>()).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_keep_the_sum_where_it_is_within_reach() {
        let mut velocities = [0.2, 1.6, 0.6];
        assert!(keep_within(&mut velocities, 2.4, 1.0) < 1e-12);
        assert_eq!(velocities[1], 1.0);
        assert!((velocities[0] - 0.5).abs() < 1e-9 && (velocities[2] - 0.9).abs() < 1e-9);
        let mut velocities = [2.0, 2.0];
        assert!((keep_within(&mut velocities, 4.0, 1.0) - 2.0).abs() < 1e-12);
        assert_eq!(velocities, [1.0, 1.0]);
    }
}
