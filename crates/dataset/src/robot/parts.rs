//! Action columns, put together into the parts of a robot.

use std::collections::BTreeMap;

use super::names::{Axis, Hint, Part, Tag, words};
use super::{GroupKind, Rotation};

/// A group before anything is measured.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Draft {
    pub(super) kind: GroupKind,
    pub(super) part: Part,
    pub(super) side: Option<String>,
    /// The how-manieth of equal parts, from 0.
    pub(super) instance: usize,
    /// What it is called if nothing else is called the same.
    pub(super) label: String,
    pub(super) actions: Vec<usize>,
    pub(super) rotation: Option<Rotation>,
}

/// Puts columns into groups, given what their names say and which of them are grippers.
pub(super) fn drafts(tags: &[Tag], grippers: &[usize]) -> Vec<Draft> {
    let mut grouped: BTreeMap<(Part, Option<String>, usize, bool), Vec<usize>> = BTreeMap::new();
    for (column, tag) in tags.iter().enumerate() {
        let part = match tag.part {
            _ if grippers.contains(&column) => Part::Gripper,
            _ if tag.effort => Part::Other,
            Part::Gripper => Part::Arm,
            part => part,
        };
        let moving = tag.hint == Some(Hint::Velocity) && !matches!(part, Part::Pose | Part::Gripper | Part::Other);
        let instance = instance(tags, grippers, column, part);
        grouped.entry((part, tag.side.clone(), instance, moving)).or_default().push(column);
    }
    let mut ranks: BTreeMap<(Part, Option<String>, bool), usize> = BTreeMap::new();
    let mut drafts = Vec::new();
    for ((part, side, _, moving), columns) in grouped {
        let rank = ranks.entry((part, side.clone(), moving)).or_default();
        let draft = Draft {
            kind: kind(part),
            part,
            label: label(part, side.as_deref(), &tags[columns[0]].name, columns[0]),
            side,
            instance: *rank,
            actions: columns,
            rotation: None,
        };
        *rank += 1;
        match part {
            Part::Pose => drafts.extend(pose(draft, tags)),
            _ => drafts.push(draft),
        }
    }
    drafts.sort_by_key(|draft| draft.actions.iter().min().copied());
    drafts
}

/// Names for all groups, each of them different.
pub(super) fn unique_names(drafts: &[Draft]) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for draft in drafts {
        let effector = |other: &Draft| other.kind == GroupKind::EndEffector && other.label == draft.label;
        let mut plain = draft.label.clone();
        if draft.kind == GroupKind::Joints && draft.part == Part::Arm && drafts.iter().any(effector) {
            plain.push_str(" joints");
        }
        let mut name = plain.clone();
        let mut number = 2;
        while taken.contains(&name) {
            name = format!("{plain} {number}");
            number += 1;
        }
        taken.push(name);
    }
    taken
}

/// The columns of a rotation that is complete, in the order of its components.
pub(super) fn rotation(columns: &[usize], tags: &[Tag]) -> Option<(Rotation, Vec<usize>)> {
    let find = |axis: Axis| columns.iter().copied().find(|column| tags[*column].axis == Some(axis));
    let all = |count: usize, axis: fn(usize) -> Axis| (0..count).map(|at| find(axis(at))).collect::<Option<Vec<_>>>();
    all(4, Axis::Quaternion)
        .map(|columns| (Rotation::Quaternion, columns))
        .or_else(|| Some((Rotation::AxisAngle, all(3, Axis::RotationVector)?)))
        .or_else(|| Some((Rotation::Euler, all(3, Axis::Euler)?)))
}

/// The columns of x, y and z.
pub(super) fn position(columns: &[usize], tags: &[Tag]) -> Option<Vec<usize>> {
    let find = |at: usize| columns.iter().copied().find(|column| tags[*column].axis == Some(Axis::Position(at)));
    (0..3).map(find).collect()
}

/// The same group without its rotation, and the rotation as a group of joints.
pub(super) fn without_rotation(draft: Draft) -> Vec<Draft> {
    let Some((position, rotation)) = draft.actions.split_at_checked(3) else { return vec![draft] };
    let turned = Draft {
        kind: GroupKind::Joints,
        label: format!("{} rotation", draft.label),
        actions: rotation.to_vec(),
        rotation: None,
        ..draft.clone()
    };
    vec![Draft { actions: position.to_vec(), rotation: None, ..draft }, turned]
}

/// An end effector with a position and perhaps a rotation. Coordinates that are not all there are like joints.
fn pose(draft: Draft, tags: &[Tag]) -> Vec<Draft> {
    let Some(mut actions) = position(&draft.actions, tags) else {
        return vec![Draft { kind: GroupKind::Joints, ..draft }];
    };
    let rotation = rotation(&draft.actions, tags);
    actions.extend(rotation.iter().flat_map(|(_, columns)| columns.clone()));
    let rest: Vec<usize> = draft.actions.iter().copied().filter(|column| !actions.contains(column)).collect();
    let effector = Draft { actions, rotation: rotation.map(|(written, _)| written), ..draft.clone() };
    let label = format!("{} rotation", draft.label);
    let rest = (!rest.is_empty()).then_some(Draft { kind: GroupKind::Joints, label, actions: rest, ..draft });
    std::iter::once(effector).chain(rest).collect()
}

/// Which of several equal parts a column belongs to: a new one begins where a name or a coordinate comes again, or after
/// another gripper.
fn instance(tags: &[Tag], grippers: &[usize], column: usize, part: Part) -> usize {
    let tag = &tags[column];
    let earlier = |same: &dyn Fn(&Tag) -> bool| tags[..column].iter().filter(|other| same(other)).count();
    match part {
        Part::Gripper | Part::Other => column,
        Part::Pose => earlier(&|other| other.part == Part::Pose && (&other.side, other.axis) == (&tag.side, tag.axis)),
        Part::Arm if tag.side.is_none() => {
            let plain = |gripper: &&usize| tags[**gripper].side.is_none();
            let (all, before) =
                (grippers.iter().filter(plain), grippers.iter().filter(plain).filter(|gripper| **gripper < column));
            if all.count() > 1 {
                before.count()
            } else {
                earlier(&|other| !tag.name.is_empty() && other.name == tag.name)
            }
        }
        _ => earlier(&|other| other.name == tag.name),
    }
}

fn kind(part: Part) -> GroupKind {
    match part {
        Part::Pose => GroupKind::EndEffector,
        Part::Gripper => GroupKind::Gripper,
        Part::Base => GroupKind::Base,
        Part::Other => GroupKind::Other,
        Part::Arm | Part::Finger | Part::Hand | Part::Head | Part::Torso | Part::Leg => GroupKind::Joints,
    }
}

/// `left arm`, or `arm 1` if sides are numbers.
fn label(part: Part, side: Option<&str>, name: &str, column: usize) -> String {
    let part = match part {
        Part::Arm | Part::Pose => "arm",
        Part::Gripper => "gripper",
        Part::Hand | Part::Finger => "hand",
        Part::Head => "head",
        Part::Torso => "torso",
        Part::Leg => "leg",
        Part::Base => "base",
        Part::Other => match words(name).join(" ") {
            words if words.is_empty() => return format!("column {column}"),
            words => return words,
        },
    };
    match side {
        Some(number) if number.bytes().all(|letter| letter.is_ascii_digit()) => format!("{part} {number}"),
        Some(side) => format!("{side} {part}"),
        None => part.to_owned(),
    }
}
