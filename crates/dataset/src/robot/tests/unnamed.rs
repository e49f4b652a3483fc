//! Datasets whose columns have no names, and flags that contradict each other or the numbers.

use super::*;
use crate::fault::Fault;
use crate::synthetic::{Options, Synthetic, write};

/// A synthetic dataset; with `bare`, without the names of its dimensions.
fn synthetic(robot: Synthetic, bare: bool, overrides: Overrides) -> Dataset {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("data");
    write(&directory, robot, &Options::default()).unwrap();
    let path = directory.join("meta/info.json");
    let mut info: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for key in ["action", "observation.state"] {
        if bare {
            info["features"][key]["names"] = Value::Null;
        }
    }
    std::fs::write(&path, info.to_string()).unwrap();
    Dataset::open(crate::files::Root::Directory(directory), &overrides).unwrap()
}

fn bare(robot: Synthetic) -> RobotLayout {
    RobotLayout::of(&synthetic(robot, true, Overrides::default()))
}

/// Name, kind, control and columns of each group.
fn groups(layout: &RobotLayout) -> Vec<(&str, GroupKind, Control, Vec<usize>)> {
    layout.groups.iter().map(|group| (group.name.as_str(), group.kind, group.control, group.actions.clone())).collect()
}

const JOINTS: GroupKind = GroupKind::Joints;
const GRIPPER: GroupKind = GroupKind::Gripper;
const ABSOLUTE: Control = Control::Absolute;

#[test]
fn a_gripper_without_a_name_is_found_by_the_objects_that_it_stops_at() {
    let layout = bare(Synthetic::So101);
    let arm = ("arm", JOINTS, ABSOLUTE, (0..5).collect());
    assert_eq!(groups(&layout), [arm, ("gripper", GRIPPER, ABSOLUTE, vec![5])], "{layout:?}");
    let gripper = &layout.groups[1];
    assert_eq!((&gripper.states[..], gripper.gripper.as_ref().unwrap().closes_above), (&[5][..], Some(false)));
    let evidence = gripper.evidence.join(" ");
    assert!(evidence.contains("stops short of low commands"), "{evidence}");
    assert!(layout.undecided.is_empty(), "{:?}", layout.undecided);

    let layout = bare(Synthetic::Aloha);
    let columns: Vec<(&str, Vec<usize>)> =
        layout.groups.iter().map(|group| (group.name.as_str(), group.actions.clone())).collect();
    let expected = [
        ("arm", (0..6).collect()),
        ("gripper", vec![6]),
        ("arm 2", (7..13).collect::<Vec<_>>()),
        ("gripper 2", vec![13]),
    ];
    assert_eq!(columns, expected, "{layout:?}");
    // A joint that goes home to zero may be a velocity as far as numbers tell, which is asked and not assumed.
    assert!(
        layout.undecided.iter().all(|doubt| doubt.contains("=velocity'` says otherwise")),
        "{:?}",
        layout.undecided
    );
}

#[test]
fn velocities_of_a_base_without_a_name_are_not_positions() {
    let layout = bare(Synthetic::Mobile);
    let expected = [
        ("arm", JOINTS, ABSOLUTE, (0..5).collect()),
        ("gripper", GRIPPER, ABSOLUTE, vec![5]),
        ("base", GroupKind::Base, Control::Velocity, vec![6, 7, 8]),
    ];
    assert_eq!(groups(&layout), expected, "{layout:?}");
    // States follow velocities as they follow positions, so that it is said, with the flag that decides.
    let asks =
        |doubt: &String| doubt.contains("velocities or positions") && doubt.contains("`--control 'base=absolute'`");
    assert!(layout.undecided.iter().any(asks), "{:?}", layout.undecided);
}

#[test]
fn fingers_without_names_are_hands_and_not_grippers() {
    let layout = bare(Synthetic::Humanoid);
    assert_eq!(layout.grippers().count(), 0, "{layout:?}");
    let hands: Vec<Vec<usize>> = layout
        .groups
        .iter()
        .filter(|group| group.name.starts_with("hand"))
        .map(|group| group.actions.clone())
        .collect();
    assert_eq!(hands, [(22..28).collect::<Vec<_>>(), (28..34).collect()], "{layout:?}");
}

#[test]
fn names_and_numbers_agree_on_synthetic_robots() {
    for robot in [Synthetic::So101, Synthetic::Aloha, Synthetic::Mobile] {
        let named = RobotLayout::of(&synthetic(robot, false, Overrides::default()));
        let of = |layout: &RobotLayout| -> Vec<(GroupKind, Control, Vec<usize>)> {
            let mut all: Vec<_> =
                layout.groups.iter().map(|group| (group.kind, group.control, group.actions.clone())).collect();
            all.sort_by_key(|group| group.2.clone());
            all
        };
        assert_eq!(of(&named), of(&bare(robot)), "{}", robot.name());
        assert!(named.undecided.is_empty() && named.contradicted.is_empty(), "{:?}", named.undecided);
    }
}

#[test]
fn a_dataset_without_names_and_without_a_gripper_says_so() {
    let mut dataset = joints(6, 30.0, 5, 31).dataset(30.0, Value::Null, Value::Null);
    let doubt = |layout: &RobotLayout| layout.undecided.iter().any(|doubt| doubt.contains("`--gripper none`"));
    assert!(doubt(&RobotLayout::of(&dataset)));
    dataset.overrides.grippers = Some(Vec::new());
    assert!(!doubt(&RobotLayout::of(&dataset)), "the flag decides it");
}

#[test]
fn a_column_that_is_zero_wherever_it_rests_is_asked_about() {
    let mut rows = joints(3, 30.0, 5, 32);
    let mut noise = Noise(33);
    let mut start = 0;
    for end in rows.ends.clone() {
        let speed: Signal =
            steps(&noise.target(30.0, (end - start) as f32 / 30.0, 1.0)).iter().map(|by| 30.0 * by).collect();
        for (at, frame) in (start..end).enumerate() {
            rows.actions[frame].push(speed[at]);
            rows.states[frame].push(speed[at.saturating_sub(2)]);
        }
        start = end;
    }
    let mut dataset = rows.dataset(30.0, Value::Null, Value::Null);
    let asks = |layout: &RobotLayout| layout.undecided.iter().any(|doubt| doubt.contains("`--control '3=velocity'`"));
    let layout = RobotLayout::of(&dataset);
    assert!(layout.groups.len() == 1 && asks(&layout), "{layout:?}");
    dataset.overrides.control = vec!["3=velocity".parse().unwrap()];
    let layout = RobotLayout::of(&dataset);
    let last = layout.groups.last().unwrap();
    assert_eq!((last.name.as_str(), last.kind, last.control), ("column 3", GroupKind::Base, Control::Velocity));
    assert!(!asks(&layout) && layout.contradicted.is_empty(), "{layout:?}");
}

#[test]
fn columns_can_be_set_apart_by_a_range() {
    let control = vec!["6-8=velocity".parse().unwrap()];
    let overrides = Overrides { control, grippers: Some(vec!["5=opens".to_owned()]), ..Overrides::default() };
    let layout = RobotLayout::of(&synthetic(Synthetic::Mobile, true, overrides));
    let found = groups(&layout);
    assert_eq!(found[2], ("columns 6 to 8", GroupKind::Base, Control::Velocity, vec![6, 7, 8]), "{layout:?}");
    assert!(layout.undecided.is_empty(), "{:?}", layout.undecided);
}

#[test]
fn contradicting_flags_are_refused() {
    let open = |control: &[&str], grippers: &[&str]| {
        let overrides = Overrides {
            control: control.iter().map(|choice| choice.parse().unwrap()).collect(),
            grippers: Some(grippers.iter().map(|key| (*key).to_owned()).collect())
                .filter(|keys: &Vec<_>| !keys.is_empty()),
            ..Overrides::default()
        };
        let opened = Dataset::open(crate::embedded("libero_goal_mini").unwrap(), &overrides);
        opened.err().map(|error| error.faults().to_vec())
    };
    let contradiction =
        |one: &str, other: &str| Some(vec![Fault::Contradiction { one: one.to_owned(), other: other.to_owned() }]);
    assert_eq!(
        open(&["arm=absolute", "arm=relative"], &[]),
        contradiction("--control 'arm=absolute'", "--control 'arm=relative'")
    );
    assert_eq!(
        open(&["0-2=absolute", "x=relative"], &[]),
        contradiction("--control '0-2=absolute'", "--control 'x=relative'")
    );
    assert_eq!(open(&["absolute", "relative"], &[]), contradiction("--control 'absolute'", "--control 'relative'"));
    assert_eq!(
        open(&[], &["6=opens", "gripper=closes"]),
        contradiction("--gripper '6=opens'", "--gripper 'gripper=closes'")
    );
    assert_eq!(open(&["4-6=absolute"], &["6"]), contradiction("--control '4-6=absolute'", "--gripper '6'"));
    assert_eq!(open(&[], &["none", "6"]), contradiction("--gripper 'none'", "--gripper '6'"));
    // The same twice, and one group other than all.
    assert_eq!(open(&["arm=relative", "arm=relative"], &["6", "gripper"]), None);
    assert_eq!(open(&["absolute", "arm=relative"], &[]), None);
    let unknown = open(&["7-9=absolute"], &[]).unwrap();
    assert!(matches!(&unknown[..], [Fault::UnknownPart { what: "group", .. }]), "{unknown:?}");
}

#[test]
fn a_flag_against_the_numbers_stands_and_is_noted() {
    let mut dataset = joints(4, 30.0, 4, 34).dataset(30.0, numbered("joint", 4), numbered("joint", 4));
    dataset.overrides.control = vec!["arm=relative".parse().unwrap()];
    let layout = RobotLayout::of(&dataset);
    assert_eq!(layout.groups[0].control, Control::Relative);
    let [note] = &layout.contradicted[..] else { panic!("{layout:?}") };
    assert!(note.contains("`--control 'arm=relative'`") && note.contains("as positions to go to do"), "{note}");
    assert!(layout.notes().any(|other| other == note));
    dataset.overrides.control = vec!["arm=absolute".parse().unwrap()];
    assert!(RobotLayout::of(&dataset).contradicted.is_empty());
}

#[test]
fn a_chosen_control_has_no_evidence_against_it() {
    let mut dataset = embedded();
    dataset.overrides.control = vec!["arm=absolute".parse().unwrap()];
    let evidence = RobotLayout::of(&dataset).groups[0].evidence.join(" ");
    assert!(
        evidence.contains("`--control 'arm=absolute'` says that its actions are positions to go to."),
        "{evidence}"
    );
    assert!(!evidence.contains("changes of position") && !evidence.contains("of the turns"), "{evidence}");
}

#[test]
fn a_guessed_polarity_is_said_and_a_flag_decides_it() {
    let names = json!(["shoulder", "elbow", "gripper"]);
    let mut dataset = joints(3, 30.0, 4, 35).dataset(30.0, names.clone(), names);
    let layout = RobotLayout::of(&dataset);
    let gripper = |layout: &RobotLayout| layout.grippers().next().unwrap().gripper.clone().unwrap();
    assert_eq!(gripper(&layout).closes_above, Some(false));
    let asks =
        |layout: &RobotLayout| layout.undecided.iter().any(|doubt| doubt.contains("`--gripper 'gripper=closes'`"));
    assert!(asks(&layout), "{:?}", layout.undecided);
    let before = layout.opening(&dataset, 9).unwrap();
    dataset.overrides.grippers = Some(vec!["gripper=closes".to_owned()]);
    let layout = RobotLayout::of(&dataset);
    assert_eq!(gripper(&layout).closes_above, Some(true));
    assert_eq!(layout.opening(&dataset, 9), Some(-before), "the state grows as the gripper closes");
    assert!(!asks(&layout));
    let evidence = layout.grippers().next().unwrap().evidence.join(" ");
    assert!(!evidence.contains("taken to be the opening") && !evidence.contains("After commands"), "{evidence}");
}

#[test]
fn a_switch_without_gripper_in_its_name_is_not_an_odd_group() {
    let mut rows = joints(3, 30.0, 6, 36);
    let mut start = 0;
    for end in rows.ends.clone() {
        let signal = switched(end - start, 0.0, 1.0, &[0.3, 0.7]);
        for (at, frame) in (start..end).enumerate() {
            rows.actions[frame].push(signal[at]);
        }
        start = end;
    }
    let states = json!(["shoulder", "elbow", "wrist"]);
    let copy =
        |rows: &Rows| Rows { states: rows.states.clone(), actions: rows.actions.clone(), ends: rows.ends.clone() };
    for name in ["suction", "arm_vacuum", "tool_on"] {
        let layout =
            RobotLayout::of(&copy(&rows).dataset(30.0, states.clone(), json!(["shoulder", "elbow", "wrist", name])));
        let kinds: Vec<GroupKind> = layout.groups.iter().map(|group| group.kind).collect();
        assert_eq!(kinds, [JOINTS, GRIPPER], "{name}: {layout:?}");
    }
    // Where a gripper is named, another switch is neither a gripper nor a joint, and that is said.
    let names = json!(["shoulder", "elbow", "gripper", "suction"]);
    let layout = RobotLayout::of(&rows.dataset(30.0, json!(["shoulder", "elbow", "gripper"]), names));
    let found: Vec<(&str, GroupKind)> = layout.groups.iter().map(|group| (group.name.as_str(), group.kind)).collect();
    assert_eq!(found, [("arm", JOINTS), ("gripper", GRIPPER), ("suction", GroupKind::Other)], "{layout:?}");
    assert!(layout.undecided.iter().any(|doubt| doubt.contains("`--gripper 'suction'`")), "{:?}", layout.undecided);
}
