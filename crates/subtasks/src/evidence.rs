//! How well a row of an episode agrees with a step: from 0, it cannot be, to 1, it looks exactly like it.
//!
//! | step | gripper | motion |
//! |---|---|---|
//! | reach | open | any, rarely up |
//! | grasp | closes, or has closed | none |
//! | lift, transport, place | closed | up, level, down or none |
//! | release | opens, or has opened | none |
//! | retreat | any | up or level |
//! | open, close, push | any | level |
//! | turn | any | rotation |
//!
//! What is not known of a robot (directions of joints, a gripper that it does not have) counts neither way.

use crate::signals::{ArmSignals, Grip, Signals, ramp};
use crate::steps::Kind;

/// The agreement of a motion whose direction is not known.
const UNKNOWN: f64 = 0.92;

/// The agreement of an arm without a gripper, where a gripper would tell.
const NO_GRIPPER: f64 = 0.7;

/// What takes a step, in an alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hand {
    /// The arm of this number.
    Arm(usize),
    /// All arms together.
    Both,
    /// The whole robot, in steps that are about no arm.
    Body,
}

/// How well a row agrees with a kind of step that is taken by some arm.
pub(crate) fn agreement(kind: Kind, hand: Hand, signals: &Signals, row: usize) -> f64 {
    match hand {
        Hand::Both => {
            let all = signals.arms.iter().map(|arm| of_arm(kind, arm, signals, row));
            all.sum::<f64>() / signals.arms.len().max(1) as f64
        }
        Hand::Body => of_body(kind, signals, row),
        Hand::Arm(at) => {
            let own = of_arm(kind, &signals.arms[at], signals, row);
            // An arm does not take a step while another one does something else.
            let others = signals.arms.iter().enumerate().filter(|(other, _)| *other != at);
            let busiest = others.map(|(_, other)| busy(other, row)).fold(0.0, f64::max);
            own * (1.0 - 0.5 * (busiest - busy(&signals.arms[at], row)).max(0.0))
        }
    }
}

fn busy(arm: &ArmSignals, row: usize) -> f64 {
    let grip = arm.grip.get(row).copied().unwrap_or_default();
    arm.moving[row].max(grip.closing).max(grip.opening)
}

/// Steps that are about no arm: going somewhere, turning around, crouching.
fn of_body(kind: Kind, signals: &Signals, row: usize) -> f64 {
    let moving = 0.3 + 0.7 * signals.moving[row];
    match (kind, &signals.base) {
        (Kind::Go, Some(base)) => 0.1 + 0.9 * base.moving[row] * (1.0 - 0.5 * ramp(base.turning[row], 0.3, 0.7)),
        (Kind::Turn, Some(base)) => moving * (0.4 + 0.6 * base.moving[row] * ramp(base.turning[row], 0.2, 0.6)),
        (Kind::Go, None) => 0.9 * moving,
        _ if !signals.body.is_empty() => 0.4 + 0.55 * signals.body[row],
        _ => 0.9 * moving,
    }
}

fn of_arm(kind: Kind, arm: &ArmSignals, signals: &Signals, row: usize) -> f64 {
    let grip = arm.grip.get(row);
    let moving = arm.moving[row];
    let base = signals.base.as_ref().map_or(0.0, |base| base.moving[row]);
    let anything = moving.max(base);
    let up = arm.up.get(row).copied();
    let along = |known: fn(f64) -> f64| up.map_or(UNKNOWN, known);
    // Joints do not move straight up, so a guess is judged less strictly, and counts less.
    let guess = arm.guessed_up.get(row).copied();
    let guessed = |known: fn(f64) -> f64, likely: fn(f64) -> f64| match (up, guess) {
        (Some(up), _) => 0.1 + 0.9 * known(up),
        (None, Some(guess)) => UNKNOWN + 0.6 * (likely(guess) - UNKNOWN),
        (None, None) => UNKNOWN,
    };
    let straight = 0.5 + 0.5 * (1.0 - ramp(arm.turning[row], 0.5, 0.9));
    // What an arm does while the base stands.
    let alone = 1.0 - 0.6 * base;
    let moves = |least: f64, moving: f64| least + (1.0 - least) * moving;
    let stands = 1.0 - 0.85 * anything * (1.0 - 0.8 * rate(grip));
    match kind {
        Kind::Reach => open(grip) * alone * moves(0.55, moving) * along(|up| 1.0 - 0.25 * ramp(up, 0.5, 0.9)),
        Kind::Grasp => closing(grip) * stands,
        Kind::Lift => {
            let upwards = guessed(|up| ramp(up, 0.5, 0.95), |up| ramp(up, 0.4, 0.75));
            let starts = if up.is_some() { 0.15 } else { 0.3 };
            closed(grip) * alone * straight * (moving * upwards + (1.0 - moving) * starts)
        }
        Kind::Transport => {
            // A hand hovers before it lowers what it holds.
            let hovers = if up.is_some() { 0.65 } else { 0.3 };
            let along = guessed(|up| ramp(level(up), 0.15, 0.6), |up| 1.0 - ramp(up.abs(), 0.5, 0.8));
            closed(grip) * straight * (anything * along + (1.0 - anything) * hovers)
        }
        Kind::Place => {
            // What stands on its target presses against it.
            let rests = if up.is_some() { 0.6 } else { 0.3 };
            let down = guessed(|up| ramp(-up, 0.2, 0.9), |up| ramp(-up, 0.4, 0.75));
            closed(grip) * alone * straight * (moving * down + (1.0 - moving) * rests)
        }
        Kind::Release => opened(grip) * stands,
        Kind::Retreat => {
            (0.4 + 0.6 * open(grip)) * moves(0.15, anything) * along(|up| 0.35 + 0.65 * ramp(up, -0.5, 0.5))
        }
        Kind::Slide => {
            (0.8 + 0.2 * closed(grip)) * moves(0.15, anything) * along(|up| 0.4 + 0.6 * ramp(level(up), 0.3, 0.8))
        }
        Kind::Turn => (0.3 + 0.7 * ramp(arm.turning[row], 0.2, 0.6)) * moves(0.3, anything),
        Kind::Touch => {
            // A hand that has closed around something carries it.
            let empty = grip.map_or(1.0, |grip| if grip.unknown { 1.0 } else { 1.0 - 0.5 * grip.closed });
            0.85 * empty * moves(0.3, moving) * alone * along(|up| 0.6 + 0.4 * ramp(-up, 0.0, 0.7))
        }
        Kind::Go => 0.8 * moves(0.3, anything),
        Kind::Act => 0.95 * moves(0.4, signals.moving[row]),
    }
}

/// The share of a motion that is level, given the share that goes up.
fn level(up: f64) -> f64 {
    (1.0 - up * up).max(0.0).sqrt()
}

/// How fast the gripper moves.
fn rate(grip: Option<&Grip>) -> f64 {
    grip.map_or(0.0, |grip| grip.closing.max(grip.opening))
}

fn closed(grip: Option<&Grip>) -> f64 {
    match grip {
        None => NO_GRIPPER,
        Some(grip) if grip.unknown => 0.5,
        Some(grip) => grip.closed * (1.0 - 0.7 * rate(Some(grip))),
    }
}

fn open(grip: Option<&Grip>) -> f64 {
    match grip {
        None => NO_GRIPPER,
        Some(grip) if grip.unknown => 0.9,
        Some(grip) => (1.0 - grip.closed).max(grip.opening) * (1.0 - grip.closing),
    }
}

fn closing(grip: Option<&Grip>) -> f64 {
    match grip {
        None => NO_GRIPPER * 0.5,
        Some(grip) if grip.unknown => 0.4,
        Some(grip) => grip.closing.max(grip.closed * (1.0 - grip.opening) * at_once(grip)),
    }
}

fn opened(grip: Option<&Grip>) -> f64 {
    match grip {
        None => NO_GRIPPER * 0.5,
        Some(grip) => grip.opening.max((1.0 - grip.closed) * (1.0 - grip.closing) * at_once(grip)),
    }
}

/// Whether a gripper that has its position may still be on the way: only if it was told at once.
fn at_once(grip: &Grip) -> f64 {
    if grip.graded { 0.4 } else { 1.0 }
}
