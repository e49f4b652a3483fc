//! Whole robots, the findings of users, and choices.

use proptest::prelude::*;

use super::*;
use crate::fault::Fault;

#[test]
fn libero_is_known_by_its_names_and_numbers() {
    let dataset = embedded();
    let layout = RobotLayout::of(&dataset);
    let all: Vec<usize> = (0..6).collect();
    let arm = ("arm", GroupKind::EndEffector, Control::Relative, all.clone(), all);
    assert_eq!(shown(&layout), [arm, ("gripper", GroupKind::Gripper, Control::Absolute, vec![6], vec![6, 7])]);
    assert!(layout.undecided.is_empty(), "{:?}", layout.undecided);
    let [arm, gripper] = &layout.groups[..] else { panic!("{layout:?}") };
    assert_eq!((arm.rotation, arm.in_metres), (Some(Rotation::AxisAngle), true));
    let details = gripper.gripper.as_ref().unwrap();
    assert_eq!((details.threshold, details.closes_above, &details.signs[..]), (0.0, Some(true), &[1.0, -1.0][..]));
    assert!(gripper.evidence.contains(&"After commands above 0 the fingers are closer together.".to_owned()));
    let moved = layout.displacement(&dataset, &(0..10)).unwrap();
    let states = &dataset.columns().states.values;
    assert_eq!(moved[2], f64::from(states[9 * 8 + 2]) - f64::from(states[2]));
    assert!(layout.opening(&dataset, 0).unwrap() > 0.02);
}

#[test]
fn libero_without_names_keeps_what_is_measured() {
    let mut dataset = embedded();
    dataset.info.features.iter_mut().for_each(|(_, feature)| feature.names = None);
    let layout = RobotLayout::of(&dataset);
    let [arm, gripper] = &layout.groups[..] else { panic!("{layout:?}") };
    assert_eq!(
        (arm.kind, arm.control, &arm.actions[..]),
        (GroupKind::Joints, Control::Relative, &[0, 1, 2, 3, 4, 5][..])
    );
    assert_eq!((&gripper.actions[..], gripper.gripper.as_ref().unwrap().closes_above), (&[6][..], None));
    assert_eq!(gripper.evidence[0], "Action 6 takes only the values -1 and 1.");
    assert_eq!((layout.displacement(&dataset, &(0..10)), layout.opening(&dataset, 0)), (None, None));
}

#[test]
fn coordinates_beyond_reach_are_not_metres() {
    let mut dataset = embedded();
    dataset.columns.states.values.iter_mut().for_each(|value| *value *= 1000.0);
    let layout = RobotLayout::of(&dataset);
    assert_eq!((layout.arms().count(), layout.displacement(&dataset, &(0..10))), (0, None));
    assert_eq!(layout.groups[0].kind, GroupKind::EndEffector);
}

#[test]
fn rotations_that_the_state_has_as_quaternions() {
    let mut dataset = embedded();
    let names = ["x", "y", "z", "qw", "qx", "qy", "qz", "gripper"];
    let state = dataset.roles.state.clone();
    let feature = dataset.info.features.iter_mut().find(|(key, _)| *key == state).unwrap();
    feature.1.names = Some(json!(names));
    let layout = RobotLayout::of(&dataset);
    let arm = &layout.groups[0];
    assert_eq!((&arm.states[..], arm.rotation), (&[0, 1, 2, 4, 5, 6, 3][..], Some(Rotation::AxisAngle)));
    assert_eq!(arm.actions.len(), 6);
    // A state without a rotation: the rotation is a group of its own.
    let feature = dataset.info.features.iter_mut().find(|(key, _)| *key == state).unwrap();
    feature.1.names = Some(json!(["x", "y", "z", "a1", "a2", "a3", "gripper1", "gripper2"]));
    let layout = RobotLayout::of(&dataset);
    let names: Vec<&str> = layout.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["arm", "arm rotation", "gripper"]);
    assert_eq!((layout.groups[0].rotation, &layout.groups[0].states[..]), (None, &[0, 1, 2][..]));
}

/// The names of a humanoid's 34 columns.
fn humanoid() -> Vec<String> {
    let arm = ["ShoulderPitch", "ShoulderRoll", "ShoulderYaw", "Elbow", "WristRoll", "WristPitch", "WristYaw"];
    let hand = ["Thumb0", "Thumb1", "Thumb2", "Middle0", "Middle1", "Index0", "Index1"];
    let sides = |part: &str, names: &[&str]| -> Vec<String> {
        ["Left", "Right"].iter().flat_map(|side| names.iter().map(move |name| format!("k{side}{part}{name}"))).collect()
    };
    let rest = ["kWaistYaw", "kWaistRoll", "kWaistPitch", "kHeadYaw", "kHeadPitch", "kHeadRoll"];
    [sides("", &arm), sides("Hand", &hand), rest.map(String::from).to_vec()].concat()
}

#[test]
fn finding_1_more_than_six_columns_are_groups_of_a_humanoid() {
    let names = humanoid();
    assert_eq!(names.len(), 34);
    let layout = RobotLayout::of(&joints(34, 30.0, 4, 21).dataset(30.0, json!(names), json!(names)));
    let found: Vec<(&str, usize)> =
        layout.groups.iter().map(|group| (group.name.as_str(), group.actions.len())).collect();
    let expected = [("left arm", 7), ("right arm", 7), ("left hand", 7), ("right hand", 7), ("torso", 3), ("head", 3)];
    assert_eq!(found, expected);
    assert!(layout.groups.iter().all(|group| group.control == Control::Absolute && group.states == group.actions));
    assert!(layout.undecided.is_empty(), "{:?}", layout.undecided);
}

#[test]
fn finding_2_absolute_joint_targets_are_not_velocities() {
    let so101 = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"];
    let so101 = json!(so101.map(|name| format!("{name}.pos")));
    for names in [so101, Value::Null] {
        let layout = RobotLayout::of(&joints(6, 30.0, 5, 22).dataset(30.0, names.clone(), names.clone()));
        assert!(layout.groups.iter().all(|group| group.control == Control::Absolute), "{layout:?}");
        let grippers: Vec<&[usize]> = layout.grippers().map(|group| &group.actions[..]).collect();
        // The gripper is known by its name, never by the number of columns.
        let expected: &[&[usize]] = if names.is_null() { &[] } else { &[&[5]] };
        assert_eq!(grippers, expected);
        // These joints move at random, so that only a flag says which one is a gripper, or which way it closes.
        let [doubt] = &layout.undecided[..] else { panic!("{:?}", layout.undecided) };
        let flag = if names.is_null() { "`--gripper none`" } else { "`--gripper 'gripper.pos=closes'`" };
        assert!(doubt.contains(flag), "{doubt}");
    }
    let layout = RobotLayout::of(&joints(7, 30.0, 5, 23).dataset(30.0, Value::Null, Value::Null));
    assert_eq!((layout.groups.len(), layout.grippers().count()), (1, 0), "seven joints and no gripper");
}

#[test]
fn two_arms_have_two_grippers() {
    let arm = ["waist", "shoulder", "elbow", "forearm_roll", "wrist_angle", "wrist_rotate", "gripper"];
    let names: Vec<String> =
        ["left", "right"].iter().flat_map(|side| arm.iter().map(move |name| format!("{side}_{name}"))).collect();
    let dataset = joints(14, 50.0, 3, 24).dataset(50.0, json!({"motors": names}), json!({"motors": names}));
    let layout = RobotLayout::of(&dataset);
    let grippers: Vec<(&str, &[usize], &[usize])> =
        layout.grippers().map(|group| (group.name.as_str(), &group.actions[..], &group.states[..])).collect();
    assert_eq!(grippers, [("left gripper", &[6][..], &[6][..]), ("right gripper", &[13], &[13])]);
    assert_eq!(layout.opening(&dataset, 0), None, "there are two");
}

#[test]
fn choices_stand_against_names_and_numbers() {
    let mut dataset = joints(4, 30.0, 4, 25).dataset(30.0, numbered("joint", 4), numbered("joint", 4));
    dataset.overrides.control = vec!["relative".parse().unwrap(), "arm=velocity".parse().unwrap()];
    dataset.overrides.grippers = Some(vec!["joint_3".to_owned()]);
    let layout = RobotLayout::of(&dataset);
    let found: Vec<(&str, Control)> = layout.groups.iter().map(|group| (group.name.as_str(), group.control)).collect();
    assert_eq!(found, [("arm", Control::Velocity), ("gripper", Control::Absolute)]);
    assert!(layout.groups[1].evidence.contains(&"`--gripper` names it.".to_owned()));
    // Its state follows it, and is taken to be the opening.
    assert_eq!(layout.groups[1].gripper.as_ref().unwrap().closes_above, Some(false));
    let asks = |layout: &RobotLayout| layout.undecided.iter().any(|doubt| doubt.contains("`--gripper 'joint_3="));
    assert!(asks(&layout), "{:?}", layout.undecided);
    // What a high command does can be said too, which settles the question.
    for (key, closes) in [("joint_3=opens", false), ("3=closes", true)] {
        dataset.overrides.grippers = Some(vec![key.to_owned()]);
        let layout = RobotLayout::of(&dataset);
        assert_eq!(layout.groups[1].gripper.as_ref().unwrap().closes_above, Some(closes));
        assert!(!asks(&layout), "{:?}", layout.undecided);
    }
    // None at all: its column belongs to the arm.
    let mut libero = embedded();
    libero.overrides.grippers = Some(Vec::new());
    let layout = RobotLayout::of(&libero);
    assert_eq!(layout.grippers().count(), 0);
    assert_eq!(layout.groups.iter().map(|group| group.actions.len()).sum::<usize>(), 7);
}

#[test]
fn choices_of_what_is_not_there_name_what_is() {
    let open = |overrides: Overrides| {
        let error = Dataset::open(crate::embedded("libero_goal_mini").unwrap(), &overrides).unwrap_err();
        let [Fault::UnknownPart { what, candidates, .. }] = error.faults() else { panic!("{error}") };
        (*what, candidates.join(" "))
    };
    let control = vec!["left arm=absolute".parse().unwrap()];
    assert_eq!(open(Overrides { control, ..Overrides::default() }), ("group", "arm gripper".to_owned()));
    let grippers = Some(vec!["7".to_owned()]);
    let names = "x y z axis_angle1 axis_angle2 axis_angle3 gripper".to_owned();
    assert_eq!(open(Overrides { grippers, ..Overrides::default() }), ("action column", names));
    assert!("arm=fast".parse::<ControlChoice>().is_err());
    let chosen = Overrides { grippers: Some(vec!["6".to_owned()]), ..Overrides::default() };
    assert!(Dataset::open(crate::embedded("libero_goal_mini").unwrap(), &chosen).is_ok());
}

#[test]
fn joined_datasets_keep_choices() {
    let mut one = embedded();
    one.overrides.control = vec!["arm=absolute".parse().unwrap()];
    let joined = Dataset::join(vec![("one".to_owned(), one), ("other".to_owned(), embedded())]).unwrap();
    assert_eq!(RobotLayout::of(&joined.dataset).groups[0].control, Control::Absolute);
}

/// Words that names are made of, some of them of no meaning.
const WORDS: [&str; 24] = [
    "left", "right", "x", "y", "z", "roll", "pitch", "qw", "gripper", "finger", "hand", "thumb", "base", "vel",
    "delta", "head", "waist", "elbow", "joint", "robot", "0", "1", "ee", "foo",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_action_column_is_in_exactly_one_group(
        names in prop::collection::vec(prop::collection::vec(0..WORDS.len(), 0..4), 1..12),
        states in 1_usize..9,
        seed in 0_u64..1000,
        kind in 0_u8..3,
        named in any::<[bool; 2]>(),
    ) {
        let spelt = |words: &Vec<usize>| words.iter().map(|at| WORDS[*at]).collect::<Vec<_>>().join("_");
        let names: Vec<String> = names.iter().map(spelt).collect();
        let (mut rows, mut noise) = (Rows::default(), Noise(seed));
        for frames in [40, 1, 90] {
            let mut column = |at: usize| match (kind, at % 3) {
                (0, _) => vec![1.0; frames],
                (1, 0) => switched(frames, 0.0, 1.0, &[0.3, 0.6]),
                _ => (0..frames).map(|_| noise.next()).collect(),
            };
            let actions: Vec<Signal> = (0..names.len()).map(&mut column).collect();
            let states: Vec<Signal> = (0..states).map(|at| actions.get(at).cloned().unwrap_or_else(|| column(at))).collect();
            add(&mut rows, &states, &actions);
        }
        let state_names: Vec<String> = (0..states).map(|at| names.get(at).cloned().unwrap_or("z".to_owned())).collect();
        let [of_states, of_actions] = [(named[0], state_names), (named[1], names.clone())]
            .map(|(is, names)| if is { json!(names) } else { Value::Null });
        let layout = RobotLayout::of(&rows.dataset(20.0, of_states, of_actions));
        let mut columns: Vec<usize> = layout.groups.iter().flat_map(|group| group.actions.clone()).collect();
        let firsts: Vec<Option<usize>> = layout.groups.iter().map(|group| group.actions.iter().min().copied()).collect();
        prop_assert!(firsts.is_sorted(), "{layout:?}");
        columns.sort_unstable();
        prop_assert_eq!(columns, (0..names.len()).collect::<Vec<_>>());
        let mut unique: Vec<&str> = layout.groups.iter().map(|group| group.name.as_str()).collect();
        unique.sort_unstable();
        unique.dedup();
        prop_assert_eq!(unique.len(), layout.groups.len());
        for group in &layout.groups {
            prop_assert!(group.states.iter().all(|state| *state < states));
            prop_assert_eq!(group.gripper.is_some(), group.kind == GroupKind::Gripper);
            let wanted = match group.kind {
                GroupKind::Gripper => group.states.len(),
                GroupKind::EndEffector if group.actions.len() == 6 && group.states.len() == 7 => 7,
                _ => group.actions.len(),
            };
            prop_assert!(group.states.is_empty() || group.states.len() == wanted, "{group:?}");
            if let Some(gripper) = &group.gripper {
                prop_assert!(group.actions.len() == 1 && gripper.signs.len() == group.states.len() && group.states.len() < 3);
            }
            prop_assert!(group.kind != GroupKind::EndEffector || group.actions.len() >= 3);
        }
    }
}
