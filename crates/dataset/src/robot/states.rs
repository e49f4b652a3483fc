//! Which state columns an action steers: by name, by place in the same part, or by the best match of the numbers.

use std::collections::BTreeSet;

use super::measure::{Fit, Samples};
use super::names::{Hint, Part, Tag};
use super::parts::{Draft, position, rotation};
use super::{GroupKind, Rotation};

/// A match by numbers explains at least this.
const LEAST_MATCH: f64 = 0.25;

/// A match by numbers shows in this share of the dataset; what shows less often may be the habit of one task.
const LEAST_BLOCKS: f64 = 0.25;

/// The state of the same place is taken if another one matches better by less than this.
const NEARLY: f64 = 0.03;

/// The state columns of a group, and how they are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Matched {
    pub(super) columns: Vec<usize>,
    /// For each action column its state column, also if only some have one.
    pub(super) of: Vec<Option<usize>>,
    pub(super) evidence: Option<String>,
    /// How a rotation is written in the state, where it has three numbers.
    pub(super) rotation: Option<Rotation>,
    /// Whether an end effector's rotation has no state although its position has.
    pub(super) rotation_missing: bool,
}

/// The state columns by names.
pub(super) fn by_name(draft: &Draft, actions: &[Tag], states: &[Tag], only_one: bool) -> Matched {
    match draft.kind {
        GroupKind::Gripper => fingers(draft, states, only_one),
        GroupKind::EndEffector => pose(draft, states, only_one),
        GroupKind::Other => Matched::default(),
        GroupKind::Joints | GroupKind::Base => joints(draft, actions, states),
    }
}

/// The state columns by numbers, for columns that names have not matched. No state is matched twice.
pub(super) fn by_numbers(draft: &Draft, samples: &Samples<'_>, taken: &BTreeSet<usize>) -> Matched {
    let free: Vec<usize> = (0..samples.states.width).filter(|state| !taken.contains(state)).collect();
    let mut pairs = Vec::new();
    for (place, &action) in draft.actions.iter().enumerate() {
        for &state in &free {
            let value = |frame: usize| samples.state(frame, state);
            let often = |fit: &Fit| fit.blocks >= LEAST_BLOCKS;
            let level = samples.level(action, value).filter(often).map_or(0.0, Fit::as_position);
            let change = samples.change(action, value).filter(often).map_or(0.0, |fit| fit.explained);
            let nearly = if state == action { NEARLY } else { 0.0 };
            let score = level.max(change);
            if score >= LEAST_MATCH {
                pairs.push((score + nearly, place, state, score));
            }
        }
    }
    pairs.sort_by(|one, other| other.0.total_cmp(&one.0).then((one.1, one.2).cmp(&(other.1, other.2))));
    let mut of: Vec<Option<usize>> = vec![None; draft.actions.len()];
    let mut least = 1.0_f64;
    for (_, place, state, score) in pairs {
        if of[place].is_none() && !of.contains(&Some(state)) {
            of[place] = Some(state);
            least = least.min(score);
        }
    }
    let found = of.iter().flatten().count();
    let measured = (found > 0).then(|| {
        format!("States were matched by numbers: each action explains at least {:.0} % of its state.", 100.0 * least)
    });
    Matched { columns: completed(draft, &of, &free), of, evidence: measured, ..Matched::default() }
}

/// All columns if all are matched; columns that never move continue the order of the others.
fn completed(draft: &Draft, of: &[Option<usize>], free: &[usize]) -> Vec<usize> {
    let pairs = || draft.actions.iter().zip(of).filter_map(|(action, state)| Some((*action, (*state)?)));
    let shift = |(action, state): (usize, usize)| state as i64 - action as i64;
    let Some(first) = pairs().next().map(shift) else { return Vec::new() };
    if of.iter().all(Option::is_some) {
        return of.iter().flatten().copied().collect();
    }
    if !pairs().all(|pair| shift(pair) == first) {
        return Vec::new();
    }
    let place = |action: &usize| usize::try_from(*action as i64 + first).ok().filter(|state| free.contains(state));
    draft.actions.iter().map(place).collect::<Option<Vec<usize>>>().unwrap_or_default()
}

fn shown(columns: &[usize], tags: &[Tag]) -> String {
    let names: Vec<String> = columns.iter().map(|column| format!("`{}`", tags[*column].name)).collect();
    match &names[..] {
        [first, .., last] if names.len() > 3 => format!("{first} to {last}"),
        _ => names.join(", "),
    }
}

fn matched(columns: Vec<usize>, evidence: String) -> Matched {
    Matched { of: columns.iter().copied().map(Some).collect(), columns, evidence: Some(evidence), ..Matched::default() }
}

/// Places of states of a part that are positions, or of any if there is no such.
fn of_part(part: Part, side: Option<&Option<String>>, states: &[Tag]) -> Vec<usize> {
    let fits = |tag: &Tag| tag.part == part && !tag.effort && side.is_none_or(|side| tag.side == *side);
    let all: Vec<usize> = (0..states.len()).filter(|&at| fits(&states[at])).collect();
    let positions: Vec<usize> = all.iter().copied().filter(|&at| states[at].hint != Some(Hint::Velocity)).collect();
    if positions.is_empty() { all } else { positions }
}

fn fingers(draft: &Draft, states: &[Tag], only_one: bool) -> Matched {
    let of_side = of_part(Part::Gripper, Some(&draft.side), states);
    let found = match (only_one, of_side.len()) {
        (true, _) => of_part(Part::Gripper, None, states),
        (false, 1) => of_side,
        // Two grippers without a side, and as many states: each has its own.
        (false, _) if draft.side.is_none() => of_side.get(draft.instance).copied().into_iter().collect(),
        (false, _) => of_side,
    };
    match found.len() {
        1 | 2 => {
            let evidence = format!("Its states are called {}.", shown(&found, states));
            matched(found, evidence)
        }
        _ => Matched::default(),
    }
}

fn pose(draft: &Draft, states: &[Tag], only_one: bool) -> Matched {
    let mut of_side = of_part(Part::Pose, Some(&draft.side), states);
    if of_side.is_empty() && only_one {
        of_side = of_part(Part::Pose, None, states);
    }
    // Equal coordinates come again for each arm without a side.
    let mut own: Vec<usize> = Vec::new();
    for &state in &of_side {
        let before = of_side.iter().filter(|&&other| other < state && states[other].axis == states[state].axis).count();
        if before == draft.instance {
            own.push(state);
        }
    }
    let Some(mut columns) = position(&own, states) else { return Matched::default() };
    let mut found = Matched::default();
    match (draft.rotation, rotation(&own, states)) {
        (None, _) => {}
        (Some(Rotation::Quaternion), Some((Rotation::Quaternion, turned))) => columns.extend(turned),
        (Some(Rotation::Quaternion), _) | (_, None) => found.rotation_missing = true,
        (Some(_), Some((written, turned))) => {
            columns.extend(turned);
            found.rotation = Some(written).filter(|written| *written != Rotation::Quaternion);
        }
    }
    let evidence = format!("Its states are called {}.", shown(&columns, states));
    Matched { rotation: found.rotation, rotation_missing: found.rotation_missing, ..matched(columns, evidence) }
}

fn joints(draft: &Draft, actions: &[Tag], states: &[Tag]) -> Matched {
    let own = of_part(draft.part, Some(&draft.side), states);
    let key = |action: &usize| {
        let same = |state: &usize| states[*state].key == actions[*action].key;
        let mut found = own.iter().copied().filter(same);
        // Names that come again belong to further parts.
        found.nth(draft.instance).or_else(|| own.iter().copied().find(same))
    };
    let named: Option<Vec<usize>> = draft.actions.iter().map(key).collect();
    let distinct = |columns: &Vec<usize>| columns.iter().collect::<BTreeSet<_>>().len() == columns.len();
    if let Some(columns) = named.filter(distinct) {
        let evidence = format!("Its states have the same names: {}.", shown(&columns, states));
        return matched(columns, evidence);
    }
    let any_side = of_part(draft.part, None, states);
    let in_order = [own, any_side].into_iter().find(|columns| columns.len() == draft.actions.len());
    match in_order.filter(|_| draft.instance == 0) {
        Some(columns) => {
            let evidence = format!("Its states are those of the same part, in order: {}.", shown(&columns, states));
            matched(columns, evidence)
        }
        None => Matched::default(),
    }
}
