//! A first version by names alone.

use super::{Control, Gripper, Group, GroupKind, RobotLayout, Rotation};
use crate::open::Dataset;

pub(super) fn layout(dataset: &Dataset) -> RobotLayout {
    let names = |key: &str| dataset.info().feature(key).and_then(|feature| feature.dimension_names());
    let state_names = names(&dataset.roles().state).unwrap_or_default();
    let width = dataset.columns().actions.width;
    let action_names =
        names(&dataset.roles().action).unwrap_or_else(|| (0..width).map(|at| format!("joint_{at}")).collect());
    let is_gripper = |name: &String| name.to_ascii_lowercase().contains("gripper");
    let (grippers, rest): (Vec<usize>, Vec<usize>) = (0..width).partition(|&at| is_gripper(&action_names[at]));
    let is_pose = action_names.iter().take(3).map(String::as_str).eq(["x", "y", "z"]);
    let state_of = |at: &usize| state_names.iter().position(|name| *name == action_names[*at]);
    let mut groups = Vec::new();
    if !rest.is_empty() {
        groups.push(Group {
            name: "arm".to_owned(),
            kind: if is_pose { GroupKind::EndEffector } else { GroupKind::Joints },
            states: rest.iter().map(state_of).collect::<Option<Vec<usize>>>().unwrap_or_default(),
            control: if is_pose { Control::Relative } else { Control::Absolute },
            rotation: (is_pose && rest.len() == 6).then_some(Rotation::AxisAngle),
            gains: vec![1.0; rest.len()],
            in_metres: is_pose,
            gripper: None,
            evidence: vec!["names".to_owned()],
            actions: rest,
        });
    }
    let fingers: Vec<usize> = (0..state_names.len()).filter(|&at| is_gripper(&state_names[at])).collect();
    for (at, column) in grippers.iter().enumerate() {
        let states = if grippers.len() == 1 { fingers.clone() } else { fingers.get(at).copied().into_iter().collect() };
        groups.push(Group {
            name: action_names[*column].clone(),
            kind: GroupKind::Gripper,
            actions: vec![*column],
            control: Control::Absolute,
            rotation: None,
            gains: vec![1.0],
            in_metres: false,
            gripper: Some(Gripper {
                threshold: 0.0,
                closes_above: Some(is_pose),
                signs: [1.0, -1.0][..states.len().min(2)].to_vec(),
            }),
            states,
            evidence: vec![format!("action {column} is called `{}`", action_names[*column])],
        });
    }
    groups.sort_by_key(|group| group.actions.first().copied());
    RobotLayout { groups, undecided: Vec::new() }
}
