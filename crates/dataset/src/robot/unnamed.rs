//! What the numbers of columns say about the parts of a robot where names do not: grippers, hands and velocities.

use std::collections::BTreeSet;

use super::grippers;
use super::layout::{Found, Look};
use super::measure::{Fit, quantiles};
use super::names::{Part, is_joint, says_joint, words};
use super::parts::Draft;
use super::{GroupKind, choices};
use crate::columns::Matrix;
use crate::ids::EpisodeSpan;

/// So many neighbours that a gripper's numbers fit to are the fingers of a hand.
const FINGERS: usize = 3;

/// A state follows a command if the command explains this share of it.
const FOLLOWS: f64 = 0.25;

/// Velocities, as shares of their largest value: what is zero, and what is motion.
const ZERO: f64 = 0.03;
const MOTION: f64 = 0.1;

/// Velocities change by more than this share while something moves, within this many seconds.
const STEADY: f64 = 0.01;
const STEADY_SECONDS: f64 = 0.3;

/// The least share of zeros of a velocity and of what may be one, the least share of moving frames, and the largest share
/// of those that are steady.
const LEAST_ZERO: f64 = 0.3;
const POSSIBLY_ZERO: f64 = 0.15;
const LEAST_MOTION: f64 = 0.02;
const MOST_STEADY: f64 = 0.3;

/// The share of the episodes that start and end with a velocity of zero.
const STARTS_AND_ENDS: f64 = 0.9;

impl Look<'_> {
    /// The gripper columns, each with how it is known: those that the user names, else by name, else by their numbers.
    pub(super) fn gripper_columns(&self, undecided: &mut Vec<String>) -> Found {
        if let Some(chosen) = &self.dataset.overrides.grippers {
            let names = self.names();
            let columns: BTreeSet<usize> = chosen.iter().filter_map(|key| choices::column(key, &names)).collect();
            let why = columns.iter().map(|column| (*column, "`--gripper` names it.".to_owned())).collect();
            return Found { grippers: columns.into_iter().collect(), why, ..Found::default() };
        }
        let named: Vec<usize> =
            (0..self.actions.len()).filter(|&column| self.actions[column].part == Part::Gripper).collect();
        let has_hand = self.actions.iter().any(|tag| tag.part == Part::Hand);
        // Where grippers or hands are named, no other column is one.
        let open = named.is_empty() && !has_hand && self.actions.len() > 1;
        let mut found = Found { grippers: named, ..Found::default() };
        let mut stopped = Vec::new();
        for column in 0..self.actions.len() {
            let tag = &self.actions[column];
            let fits = matches!(tag.part, Part::Arm | Part::Pose | Part::Head | Part::Torso);
            let is_switch = grippers::is_switch(self.samples.actions, column);
            let unclear = tag.generic || (is_switch && tag.part == Part::Arm && !says_joint(&tag.name));
            let named_switch = is_switch && unclear && !tag.name.is_empty();
            if !fits || found.grippers.contains(&column) || !(open || named_switch) {
                continue;
            }
            let (spans, fps) = (self.dataset.spans(), self.dataset.info().fps);
            let levels = grippers::levels(self.samples.actions, column, spans, fps);
            let Some(why) = levels.filter(|_| !self.moves_something(column)) else {
                if open && unclear && self.stops(column).is_some() {
                    stopped.push(column);
                }
                continue;
            };
            match (unclear, open) {
                (true, true) => found.add(column, format!("{} {why}.", self.capital(column))),
                // A name that says something else stands, and a switch besides named grippers is not a joint.
                (unclear, _) => {
                    if unclear {
                        found.switches.push(column);
                    }
                    undecided.push(format!(
                        "{} {why}, as the command of a gripper does, but is not named as one. `--gripper '{}'` says that \
                         it is.",
                        self.capital(column),
                        tag.name,
                    ));
                }
            }
        }
        self.fingers(&stopped, &mut found);
        if found.grippers.is_empty() && found.hands.is_empty() && open && self.actions.iter().all(|tag| tag.generic) {
            undecided.push(
                "No action is known to command a gripper: none has two values or two levels, and no state stops short of \
                 its command. `--gripper COLUMN` names one, and `--gripper none` says that there is none."
                    .to_owned(),
            );
        }
        found
    }

    /// Sorts columns whose states stop short of them into hands, which have several that move together, and grippers.
    fn fingers(&self, stopped: &[usize], found: &mut Found) {
        let mut runs: Vec<Vec<usize>> = Vec::new();
        for &column in stopped {
            match runs.last_mut() {
                Some(run)
                    if run.last().is_some_and(|last| {
                        last + 1 == column && grippers::together(self.samples.actions, *last, column)
                    }) =>
                {
                    run.push(column);
                }
                _ => runs.push(vec![column]),
            }
        }
        for run in runs {
            if run.len() >= FINGERS {
                found.hands.push(run);
                continue;
            }
            for column in run {
                let state = "has a state that stops short of it at one end, as fingers on an object do";
                found.add(column, format!("{} {state}.", self.capital(column)));
            }
        }
        found.grippers.sort_unstable();
    }

    /// Where the state of a column stops short of it.
    fn stops(&self, column: usize) -> Option<grippers::Stopped> {
        let spans = (self.dataset.spans(), self.dataset.info().fps);
        let state = self.follower(column)?;
        grippers::stopped((self.samples.actions, column), (self.samples.states, state), spans)
    }

    /// The state that follows a column as a position: that of the same place, else the best.
    pub(super) fn follower(&self, column: usize) -> Option<usize> {
        let follows = |state: usize| {
            let fit = self.coarse.level(column, |frame| self.coarse.state(frame, state));
            fit.map(Fit::as_position).filter(|share| *share >= FOLLOWS)
        };
        let width = self.coarse.states.width;
        if column < width && width == self.actions.len() && follows(column).is_some() {
            return Some(column);
        }
        let all = (0..width).filter_map(|state| Some((state, follows(state)?)));
        all.max_by(|one, other| one.1.total_cmp(&other.1).then(other.0.cmp(&one.0))).map(|(state, _)| state)
    }

    /// Whether some state changes as a column commands, which is an axis rather than a gripper.
    fn moves_something(&self, column: usize) -> bool {
        (0..self.coarse.states.width).any(|state| {
            let value = |frame: usize| self.coarse.state(frame, state);
            let share = |fit: Option<Fit>| fit.map(|fit| fit.explained.abs());
            let both = share(self.coarse.change(column, value)).zip(share(self.coarse.level(column, value)));
            both.is_some_and(|(change, level)| change > 0.5 && change > level)
        })
    }

    /// Hands, switches and columns that the user sets apart, taken out of the groups that names gave them.
    pub(super) fn set_apart(&self, mut drafts: Vec<Draft>, found: &Found) -> Vec<Draft> {
        for hand in &found.hands {
            drafts = apart(drafts, hand, GroupKind::Joints, Part::Hand, "hand".to_owned());
        }
        for &switch in &found.switches {
            let label = words(&self.actions[switch].name).join(" ");
            drafts = apart(drafts, &[switch], GroupKind::Other, Part::Other, label);
        }
        let (known, names) = (super::parts::unique_names(&drafts), self.names());
        for choice in &self.dataset.overrides.control {
            let Some(key) = choice.group.as_ref().filter(|key| !known.contains(key)) else { continue };
            let Some(columns) = choices::columns(key, &names) else { continue };
            if drafts.iter().any(|draft| draft.actions == columns) {
                continue;
            }
            let label = match &columns[..] {
                [first, .., last] => format!("columns {first} to {last}"),
                [one] if names[*one].is_empty() => format!("column {one}"),
                _ => key.clone(),
            };
            let unnamed = columns.iter().all(|column| self.actions[*column].generic);
            let is_base = choice.control == super::Control::Velocity && unnamed;
            let (kind, part) = if is_base { (GroupKind::Base, Part::Base) } else { (GroupKind::Joints, Part::Arm) };
            drafts = apart(drafts, &columns, kind, part, label);
        }
        drafts
    }

    /// Which of some columns without names may be velocities, as far as numbers tell: neighbours that are zero wherever they
    /// rest, and whether they surely are, as far as one of them tells. One alone may be a joint that goes back and forth.
    pub(super) fn velocities(&self, columns: &[usize]) -> Vec<(Vec<usize>, bool)> {
        let (spans, fps) = (self.dataset.spans(), self.dataset.info().fps);
        let mut runs: Vec<(Vec<usize>, bool)> = Vec::new();
        for &column in columns.iter().filter(|column| !is_joint(&self.actions[**column].name)) {
            let Some(sure) = rests_at_zero(self.samples.actions, column, spans, fps) else { continue };
            match runs.last_mut() {
                Some((run, known)) if run.last().is_some_and(|last| last + 1 == column) => {
                    run.push(column);
                    *known |= sure;
                }
                _ => runs.push((vec![column], sure)),
            }
        }
        for (run, sure) in &mut runs {
            *sure &= run.len() > 1;
        }
        runs
    }
}

/// Takes columns out of all groups and makes them one.
pub(super) fn apart(drafts: Vec<Draft>, columns: &[usize], kind: GroupKind, part: Part, label: String) -> Vec<Draft> {
    let mut kept: Vec<Draft> = Vec::new();
    for mut draft in drafts {
        let before = draft.actions.len();
        draft.actions.retain(|column| !columns.contains(column));
        if draft.actions.len() < before && draft.kind == GroupKind::EndEffector {
            // A pose that loses columns is a group of joints.
            (draft.kind, draft.rotation) = (GroupKind::Joints, None);
        }
        if !draft.actions.is_empty() {
            kept.push(draft);
        }
    }
    kept.push(Draft { kind, part, side: None, instance: 1, label, actions: columns.to_vec(), rotation: None });
    kept.sort_by_key(|draft| draft.actions.iter().min().copied());
    kept
}

/// Whether a column is zero at the start and end of episodes and wherever else it rests, as a velocity is and a position
/// is not. `Some(false)` is a column that only rests at zero, in fewer frames or in episodes that are cut off.
fn rests_at_zero(actions: &Matrix, column: usize, spans: &[EpisodeSpan], fps: f64) -> Option<bool> {
    let all = spans.iter().flat_map(|span| span.frames.clone()).map(|frame| super::value(actions, frame, column));
    let [low, high] = quantiles(all, [0.002, 0.998])?;
    let largest = low.abs().max(high.abs());
    if largest <= 0.0 {
        return None;
    }
    let value = |frame: usize| super::value(actions, frame, column) / largest;
    let is_zero = |frame: usize| value(frame).abs() <= ZERO;
    let window = (STEADY_SECONDS * fps).round().max(1.0) as usize;
    let (mut frames, mut zeros, mut moving, mut steady, mut framed) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for span in spans.iter().filter(|span| !span.frames.is_empty()) {
        framed += f64::from(u8::from(is_zero(span.frames.start) && is_zero(span.frames.end - 1)));
        for frame in span.frames.clone() {
            frames += 1.0;
            zeros += f64::from(u8::from(is_zero(frame)));
            if value(frame).abs() > MOTION && frame >= span.frames.start + window {
                moving += 1.0;
                steady += f64::from(u8::from((value(frame) - value(frame - window)).abs() <= STEADY));
            }
        }
    }
    let possible = zeros >= POSSIBLY_ZERO * frames && moving >= LEAST_MOTION * frames && steady <= MOST_STEADY * moving;
    possible.then_some(framed >= STARTS_AND_ENDS * spans.len() as f64 && zeros >= LEAST_ZERO * frames)
}
