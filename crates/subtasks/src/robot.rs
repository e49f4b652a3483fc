//! The columns of a dataset as the groups that skills move.

use std::ops::Range;

use clustering::Points;
use dataset::{Dataset, GroupKind, RobotLayout};
use skills::{ActionLayout, Control, Episode, Gripper, Group, Orientation, RotationForm, Space};

use crate::error::Result;

/// The most columns of one group: those that one literal of the language holds.
const MOST: usize = language::JointVector::MAX;

/// Which column of an action is what, given the groups of the robot, with limits and speeds as the data have them.
pub fn action_layout(dataset: &Dataset, robot: &RobotLayout) -> Result<ActionLayout> {
    let width = dataset.columns().actions.width;
    let mut layout = ActionLayout { width, fps: dataset.info().fps, groups: Vec::new(), grippers: Vec::new() };
    for group in &robot.groups {
        match (group.kind, &group.gripper, &group.actions[..]) {
            (GroupKind::Gripper, Some(gripper), &[column]) => layout.grippers.push(Gripper {
                name: group.name.clone(),
                column,
                threshold: gripper.threshold,
                closes_above: gripper.closes_above.unwrap_or(true),
                limits: usual_range(dataset, column),
            }),
            (GroupKind::EndEffector, ..) => match end_effector(dataset, group) {
                Some(found) => layout.groups.push(found),
                None => layout.groups.extend(joints(dataset, group)),
            },
            _ => layout.groups.extend(joints(dataset, group)),
        }
    }
    let episodes: Result<Vec<Episode>> =
        dataset.spans().iter().map(|span| episode(dataset, &span.frames, &layout)).collect();
    layout.measure_fast(&episodes?);
    Ok(layout)
}

/// The motions of an episode, given by its frames.
pub fn episode(dataset: &Dataset, frames: &Range<usize>, layout: &ActionLayout) -> Result<Episode> {
    let states = &dataset.columns().states;
    let states = Points::new(states.rows(frames.clone()), states.width)?;
    let actions = &dataset.columns().actions;
    let actions = Points::new(actions.rows(frames.clone()), actions.width)?;
    Ok(Episode::new(layout, actions, Some(states))?)
}

/// The columns that an operator moves, one part for each unit, as [`dataset::synthetic::human::disturb`] takes them.
pub fn moved_parts(robot: &RobotLayout) -> Vec<dataset::synthetic::human::Part> {
    let moved = robot.groups.iter().filter(|group| !matches!(group.kind, GroupKind::Gripper | GroupKind::Other));
    let of = |group: &dataset::Group| {
        // A place and a rotation have different units; one state column for each action column, or none.
        let place = if group.kind == GroupKind::EndEffector { 3 } else { group.actions.len() };
        let states = if group.states.len() == group.actions.len() { &group.states[..] } else { &[] };
        let cut = |columns: &[usize]| {
            let (first, second) = columns.split_at(place.min(columns.len()));
            [first.to_vec(), second.to_vec()]
        };
        let both = cut(&group.actions).into_iter().zip(cut(states));
        let control = group.control;
        both.filter(|(actions, _)| !actions.is_empty())
            .map(move |(actions, states)| dataset::synthetic::human::Part { control, actions, states })
            .collect::<Vec<_>>()
    };
    moved.flat_map(of).collect()
}

/// A group whose coordinates are a pose; `None` if its columns are not three of a place, or these and a whole rotation.
fn end_effector(dataset: &Dataset, group: &dataset::Group) -> Option<Group> {
    let control = control(group.control);
    let form = |columns: usize| match (group.rotation?, columns) {
        (_, 7) => Some(RotationForm::Quaternion),
        (form @ (RotationForm::AxisAngle | RotationForm::Euler), 6) => Some(form),
        _ => None,
    };
    let columns = group.actions.len();
    let space = if columns == 3 {
        Space::Pose(None)
    } else {
        // Positions of absolute control are commands, those of relative control are states.
        let (matrix, places) = match control {
            Control::Absolute => (&dataset.columns().actions, &group.actions),
            Control::Relative | Control::Velocity => (&dataset.columns().states, &group.states),
        };
        if control != Control::Absolute && columns != 6 {
            return None;
        }
        let turns = places.get(3..)?.to_vec();
        let rows = (0..dataset.frames()).map(|row| {
            turns.iter().map(|column| f64::from(matrix.values[row * matrix.width + column])).collect::<Vec<f64>>()
        });
        match form(places.len()) {
            Some(form) => {
                // No rotation is more than a turn in radians.
                let degrees = rows.clone().flatten().any(|angle| angle.abs() > std::f64::consts::TAU);
                let radians = if degrees { std::f64::consts::PI / 180.0 } else { 1.0 };
                Space::Pose(Some(Orientation::around(form, radians, rows)))
            }
            None => return None,
        }
    };
    let dims = if columns == 3 { 3 } else { 6 };
    Some(Group {
        name: group.name.clone(),
        space,
        control,
        states: group.states.clone(),
        limits: limits(dataset, &group.actions),
        columns: group.actions.clone(),
        names: Vec::new(),
        fast: vec![1.0; dims],
    })
}

/// Groups of one number for each column; a part with more columns than one literal holds becomes several.
fn joints(dataset: &Dataset, group: &dataset::Group) -> Vec<Group> {
    let columns = &group.actions;
    let parts = columns.len().div_ceil(MOST);
    let size = columns.len().div_ceil(parts.max(1)).max(1);
    // States that are not one for each action, such as a quaternion, are not the position of these columns.
    let states = if group.states.len() == columns.len() { &group.states[..] } else { &[] };
    let named = joint_names(dataset, group);
    let part = |(at, own): (usize, &[usize])| Group {
        name: if parts > 1 { format!("{} {}", group.name, at + 1) } else { group.name.clone() },
        space: Space::Joints,
        control: control(group.control),
        columns: own.to_vec(),
        names: named.get(at * size..at * size + own.len()).unwrap_or_default().to_vec(),
        states: states.get(at * size..at * size + own.len()).unwrap_or_default().to_vec(),
        limits: limits(dataset, own),
        fast: vec![1.0; own.len()],
    };
    columns.chunks(size).enumerate().map(part).collect()
}

/// What people call the joints of a group, by the names of its action columns; none where a column has no words.
fn joint_names(dataset: &Dataset, group: &dataset::Group) -> Vec<String> {
    // The velocities of a base and the fingers of a hand say less than the name of the part.
    let told = group.kind == GroupKind::Joints && !group.name.split(' ').any(|word| word == "hand");
    let names = dataset.info().feature(&dataset.roles().action).and_then(dataset::Feature::dimension_names);
    let name = |column: &usize| names.as_ref()?.get(*column).and_then(|name| joint_name(name));
    let found: Option<Vec<String>> = group.actions.iter().map(name).collect();
    found.filter(|_| told).unwrap_or_default()
}

/// The words of a column's name: `shoulder pan` of `shoulder_pan.pos`, `left hip pitch` of `kLeftHipPitch`.
fn joint_name(column: &str) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for letter in column.chars() {
        let starts = !before.is_alphanumeric() || (before.is_lowercase() && letter.is_uppercase());
        if letter.is_alphanumeric() {
            if starts {
                words.push(String::new());
            }
            words.last_mut()?.extend(letter.to_lowercase());
        }
        before = letter;
    }
    // What the number means is no part of the joint's name, nor is the letter that starts the names of constants.
    words.retain(|word| !matches!(word.as_str(), "pos" | "position" | "target" | "action" | "k" | "main"));
    let name = words.join(" ");
    name.chars().any(char::is_alphabetic).then_some(name)
}

fn control(control: dataset::Control) -> Control {
    match control {
        dataset::Control::Absolute => Control::Absolute,
        dataset::Control::Relative => Control::Relative,
        dataset::Control::Velocity => Control::Velocity,
    }
}

/// The range of a gripper's commands but for one in a hundred at either end, so that an outlier does not hide its jumps.
fn usual_range(dataset: &Dataset, column: usize) -> [f64; 2] {
    let actions = &dataset.columns().actions;
    let mut values: Vec<f32> = actions.values.chunks_exact(actions.width.max(1)).map(|row| row[column]).collect();
    values.sort_unstable_by(f32::total_cmp);
    let at = |share: f64| values.get((share * values.len().saturating_sub(1) as f64).round() as usize).copied();
    let [least, most] = [0.01, 0.99].map(|share| f64::from(at(share).unwrap_or(0.0)));
    // A gripper that moves in few frames still has its whole range.
    let whole = limits(dataset, &[column])[0];
    if most > least { [least, most] } else { whole }
}

/// The least and the largest command of some columns.
fn limits(dataset: &Dataset, columns: &[usize]) -> Vec<[f64; 2]> {
    let actions = &dataset.columns().actions;
    let of = |column: &usize| {
        let values = actions.values.chunks_exact(actions.width.max(1)).map(|row| f64::from(row[*column]));
        let range =
            values.fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], value| [least.min(value), most.max(value)]);
        if range[0] <= range[1] { range } else { [0.0, 0.0] }
    };
    columns.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joints_are_called_by_the_words_of_their_columns() {
        let called = |column: &str| joint_name(column).unwrap_or_default();
        assert_eq!(called("shoulder_pan.pos"), "shoulder pan");
        assert_eq!(called("kLeftHipPitch"), "left hip pitch");
        assert_eq!(called("left_wrist_angle"), "left wrist angle");
        assert_eq!(called("joint_1"), "joint 1");
        assert_eq!(joint_name("3"), None);
        assert_eq!(joint_name(".pos"), None);
    }
}
