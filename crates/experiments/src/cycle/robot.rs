//! The columns of a dataset as the groups that skills move.

use std::ops::Range;

use clustering::Points;
use dataset::{Dataset, GroupKind, RobotLayout, Rotation};
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
    Ok(Episode::new(layout, super::demonstrations::rows(dataset, frames)?, Some(states))?)
}

/// A group whose coordinates are a pose; `None` if its columns are not three of a place, or these and a whole rotation.
fn end_effector(dataset: &Dataset, group: &dataset::Group) -> Option<Group> {
    let control = control(group.control);
    let form = |columns: usize| match (group.rotation?, columns) {
        (_, 7) => Some(RotationForm::Quaternion),
        (Rotation::AxisAngle, 6) => Some(RotationForm::AxisAngle),
        (Rotation::Euler, 6) => Some(RotationForm::Euler),
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
    let part = |(at, own): (usize, &[usize])| Group {
        name: if parts > 1 { format!("{} {}", group.name, at + 1) } else { group.name.clone() },
        space: Space::Joints,
        control: control(group.control),
        columns: own.to_vec(),
        states: states.get(at * size..at * size + own.len()).unwrap_or_default().to_vec(),
        limits: limits(dataset, own),
        fast: vec![1.0; own.len()],
    };
    columns.chunks(size).enumerate().map(part).collect()
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
