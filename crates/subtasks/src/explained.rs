//! What a motion does that no step of the instruction accounts for.
//!
//! An alignment always finds the least bad step for every row, so its costs alone hardly notice that the instruction is that of
//! another task. Two facts contradict an instruction more clearly than costs do:
//!
//! - **A gripper closes or opens, and no step grasps or releases there.** An episode that moves two objects does not belong to an
//!   instruction that moves one, nor to one that names none of them.
//! - **What should slide goes up or down.** A drawer does not leave its rails.
//!
//! Both lower the score of the alignment, and change no boundary.

use crate::align::Alignment;
use crate::evidence::Hand;
use crate::signals::{ArmSignals, Signals, ramp};
use crate::steps::{Kind, Step};

/// Seconds by which a gripper may close before or after the step that grasps.
const NEAR: f64 = 0.3;

/// Motions whose vertical share is between these are between sliding and being lifted.
const STEEP: [f64; 2] = [0.5, 0.85];

/// The share of a motion that an alignment accounts for, from 0 to 1.
pub(crate) fn explained(
    found: &Alignment,
    steps: &[Step],
    states: &[(usize, Hand)],
    signals: &Signals,
    fps: f64,
) -> f64 {
    let taken: Vec<Taken<'_>> = found
        .stretches
        .iter()
        .map(|(state, rows)| {
            let step = &steps[states[*state].0];
            let takes = |one: &Step| one.handling == step.handling && one.kind == Kind::Grasp;
            Taken { step, hand: states[*state].1, rows: rows.clone(), takes: steps.iter().any(takes) }
        })
        .collect();
    let near = (NEAR * fps).round() as usize;
    let (mut all, mut right) = (0, 0);
    for (at, arm) in signals.arms.iter().enumerate() {
        let events = events(arm);
        for (place, event) in events.iter().enumerate() {
            all += 1;
            let (first, last) = (place == 0, place + 1 == events.len());
            right += usize::from(taken.iter().any(|one| one.accounts_for(at, *event, near, first, last)));
        }
    }
    let events = if all == 0 { 1.0 } else { f64::from(right as u32) / f64::from(all as u32) };
    events * slides(&taken, signals)
}

/// A step with the rows in which it is taken.
struct Taken<'a> {
    step: &'a Step,
    hand: Hand,
    rows: std::ops::Range<usize>,
    /// Whether something is taken in the hand for it.
    takes: bool,
}

/// A gripper closes or opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    row: usize,
    closes: bool,
}

impl Taken<'_> {
    fn accounts_for(&self, arm: usize, event: Event, near: usize, first: bool, last: bool) -> bool {
        if !matches!(self.hand, Hand::Both | Hand::Body) && self.hand != Hand::Arm(arm) {
            return false;
        }
        let inside = self.rows.contains(&event.row);
        let beside = self.rows.start <= event.row + near && event.row < self.rows.end + near;
        match (self.step.kind, event.closes) {
            (Kind::Grasp, true) | (Kind::Release, false) => beside,
            // Hands open on their way to an object, and close again when they have gone away.
            (Kind::Reach, false) => inside,
            (Kind::Retreat, true) => inside && last,
            // Nothing is taken in the hand to tidy up a table: what is handled there, the instruction does not name. A cloth that it
            // does not name either is taken once.
            (Kind::Act, true) if !self.takes => beside && first && self.step.with_tool,
            (Kind::Act, false) if !self.takes => beside && last && self.step.with_tool,
            // Folding may take several grasps, pressing is done with a closed hand, and a knob or a drawer may be turned or pulled
            // in one motion with its grasp.
            (Kind::Act | Kind::Touch | Kind::Turn | Kind::Slide, _) => beside,
            _ => false,
        }
    }
}

/// How often grippers close.
pub(crate) fn closings(signals: &Signals) -> usize {
    signals.arms.iter().flat_map(events).filter(|event| event.closes).count()
}

/// The rows at which the gripper of an arm closes or opens.
fn events(arm: &ArmSignals) -> Vec<Event> {
    let closed = |row: usize| arm.grip[row].closed >= 0.5;
    let changes = (1..arm.grip.len()).filter(|row| closed(*row) != closed(row - 1));
    changes.map(|row| Event { row, closes: closed(row) }).collect()
}

/// How level the motions are in which something slides.
fn slides(taken: &[Taken<'_>], signals: &Signals) -> f64 {
    let (mut moving, mut level) = (0.0, 0.0);
    for one in taken.iter().filter(|one| one.step.kind == Kind::Slide) {
        let Hand::Arm(at) = one.hand else { continue };
        let arm = &signals.arms[at];
        for row in one.rows.clone() {
            let Some(up) = arm.up.get(row) else { continue };
            moving += arm.moving[row];
            level += arm.moving[row] * (1.0 - ramp(up.abs(), STEEP[0], STEEP[1]));
        }
    }
    if moving > 0.0 { level / moving } else { 1.0 }
}
