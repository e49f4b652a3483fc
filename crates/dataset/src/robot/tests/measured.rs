//! What numbers say, with names, without them and against them.

use super::*;

#[test]
fn absolute_joints_are_known_by_lag_and_noise() {
    let layout = RobotLayout::of(&joints(6, 30.0, 6, 1).dataset(30.0, Value::Null, Value::Null));
    let all: Vec<usize> = (0..6).collect();
    assert_eq!(shown(&layout), [("arm", GroupKind::Joints, Control::Absolute, all.clone(), all)]);
    // Only whether one of them is a gripper is open.
    assert!(layout.undecided.len() == 1 && layout.undecided[0].contains("`--gripper none`"), "{:?}", layout.undecided);
    let evidence = layout.groups[0].evidence.join(" ");
    assert!(evidence.contains("of the states after 0.1") && evidence.contains("positions to go to"), "{evidence}");
}

#[test]
fn changes_are_known_whatever_their_gains() {
    let (mut rows, mut noise) = (Rows::default(), Noise(2));
    for _ in 0..6 {
        let paths: Vec<Signal> = (0..3).map(|_| noise.target(20.0, 8.0, 1.0)).collect();
        let commands: Vec<Signal> = paths.iter().map(|path| steps(path)).collect();
        let gains = [0.5, 1.0, 2.0];
        let states: Vec<Signal> = commands
            .iter()
            .zip(gains)
            .map(|(command, gain)| {
                let position = integrated(command, gain, 0.3);
                noise.followed(&position, 1, 0.002)
            })
            .collect();
        add(&mut rows, &states, &commands);
    }
    let layout = RobotLayout::of(&rows.dataset(20.0, Value::Null, Value::Null));
    assert_eq!(shown(&layout), [("arm", GroupKind::Joints, Control::Relative, vec![0, 1, 2], vec![0, 1, 2])]);
}

/// An arm of two joints and a base whose state has velocities.
fn mobile() -> Rows {
    let (mut rows, mut noise) = (Rows::default(), Noise(3));
    for _ in 0..6 {
        let targets: Vec<Signal> = (0..2).map(|_| noise.target(30.0, 8.0, 90.0)).collect();
        let drives: Vec<Signal> =
            (0..3).map(|_| steps(&noise.target(30.0, 8.0, 1.0)).iter().map(|step| 30.0 * step).collect()).collect();
        let mut states: Vec<Signal> = targets.iter().map(|target| noise.followed(target, 3, 0.3)).collect();
        states.extend(drives.iter().map(|drive| noise.followed(drive, 2, 0.02)));
        add(&mut rows, &states, &[targets, drives].concat());
    }
    rows
}

#[test]
fn velocities_of_a_base_have_no_position() {
    let names = json!(["arm_shoulder_pan.pos", "arm_elbow_flex.pos", "x.vel", "y.vel", "theta.vel"]);
    let layout = RobotLayout::of(&mobile().dataset(30.0, names.clone(), names));
    let arm = ("arm", GroupKind::Joints, Control::Absolute, vec![0, 1], vec![0, 1]);
    assert_eq!(shown(&layout), [arm, ("base", GroupKind::Base, Control::Velocity, vec![2, 3, 4], vec![2, 3, 4])]);
    assert!(layout.undecided.is_empty(), "{:?}", layout.undecided);
    // Without its states the base has velocities by name.
    let rows = mobile();
    let states = rows.states.iter().map(|row| row[..2].to_vec()).collect();
    let states = Rows { states, ..rows };
    let (two, five) = (
        json!(["arm_shoulder_pan.pos", "arm_elbow_flex.pos"]),
        json!(["arm_shoulder_pan.pos", "arm_elbow_flex.pos", "x.vel", "y.vel", "theta.vel"]),
    );
    let layout = RobotLayout::of(&states.dataset(30.0, two, five));
    assert_eq!(layout.groups[1].control, Control::Velocity);
    assert!(layout.groups[1].states.is_empty());
}

#[test]
fn a_velocity_whose_position_is_in_the_state_is_a_change() {
    let (mut rows, mut noise) = (Rows::default(), Noise(4));
    for _ in 0..6 {
        let path = noise.target(20.0, 8.0, 2.0);
        let speed: Signal = steps(&path).iter().map(|step| 20.0 * step).collect();
        add(&mut rows, &[noise.followed(&path, 1, 0.002)], &[speed]);
    }
    let layout = RobotLayout::of(&rows.dataset(20.0, json!(["base_x"]), json!(["base_x.vel"])));
    assert_eq!(shown(&layout), [("base", GroupKind::Base, Control::Relative, vec![0], vec![0])]);
}

/// An arm of six joints, and a seventh column.
fn with_seventh(seventh: impl Fn(usize, &mut Noise) -> Signal) -> Rows {
    let mut rows = joints(6, 30.0, 8, 5);
    let (mut start, mut noise) = (0, Noise(6));
    for end in rows.ends.clone() {
        let signal = seventh(end - start, &mut noise);
        let followed = noise.followed(&signal, 4, 0.01);
        for (at, frame) in (start..end).enumerate() {
            rows.actions[frame].push(signal[at]);
            rows.states[frame].push(followed[at]);
        }
        start = end;
    }
    rows
}

#[test]
fn a_column_with_two_values_is_a_gripper() {
    let rows = with_seventh(|frames, _| switched(frames, -1.0, 1.0, &[0.3, 0.8]));
    let layout = RobotLayout::of(&rows.dataset(30.0, Value::Null, Value::Null));
    assert_eq!(layout.groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["arm", "gripper"]);
    let gripper = &layout.groups[1];
    assert_eq!((&gripper.actions[..], gripper.control), (&[6][..], Control::Absolute));
    assert_eq!(gripper.evidence[0], "Action 6 takes only the values -1 and 1.");
    assert_eq!(gripper.gripper.as_ref().unwrap().threshold, 0.0);
}

#[test]
fn a_column_that_saturates_is_a_gripper() {
    // An opening that takes three frames, and is never quite the same.
    let rows = with_seventh(|frames, noise| {
        let levels = switched(frames, 5.0, 95.0, &[0.25, 0.7]);
        let mean = |at: usize| levels[at.saturating_sub(2)..=at].iter().sum::<f32>() / (at.min(2) + 1) as f32;
        (0..frames).map(|at| mean(at) + noise.next()).collect()
    });
    let layout = RobotLayout::of(&rows.dataset(30.0, Value::Null, numbered("motor", 7)));
    let gripper = layout.grippers().next().expect("a gripper");
    assert!(gripper.evidence.iter().any(|why| why.contains("changes quickly between them")), "{gripper:?}");
    assert!((gripper.gripper.as_ref().unwrap().threshold - 50.0).abs() < 3.0);
}

#[test]
fn seven_joints_have_no_gripper() {
    for names in [Value::Null, numbered("joint", 7)] {
        let layout = RobotLayout::of(&joints(7, 30.0, 6, 7).dataset(30.0, names.clone(), names));
        assert_eq!(layout.grippers().count(), 0);
        assert_eq!(layout.groups.len(), 1);
    }
    // A joint that rests at two places for most of the time moves slowly between them.
    let rows = with_seventh(|frames, _| {
        let ramp = |at: usize| ((at as f32 / frames as f32 - 0.5) * 16.0).clamp(-1.0, 1.0);
        (0..frames).map(ramp).collect()
    });
    assert_eq!(RobotLayout::of(&rows.dataset(30.0, Value::Null, Value::Null)).grippers().count(), 0);
    // A name that says something else stands, and the doubt is said.
    let rows = with_seventh(|frames, _| switched(frames, 0.0, 1.0, &[0.5]));
    let names = json!(["j1", "j2", "j3", "j4", "j5", "j6", "wrist_roll"]);
    let layout = RobotLayout::of(&rows.dataset(30.0, names.clone(), names));
    assert_eq!(layout.grippers().count(), 0);
    assert!(layout.undecided.iter().any(|doubt| doubt.contains("`--gripper 'wrist_roll'`")), "{:?}", layout.undecided);
}

#[test]
fn an_axis_that_is_only_pushed_one_way_is_no_gripper() {
    let (mut rows, mut noise) = (Rows::default(), Noise(8));
    for _ in 0..6 {
        let push = switched(160, 0.0, 1.0, &[0.1, 0.3, 0.6, 0.8]);
        let other = noise.target(20.0, 8.0, 1.0);
        let position = integrated(&push, 0.01, 0.0);
        let commands = [steps(&other), push];
        add(&mut rows, &[noise.followed(&other, 1, 0.001), noise.followed(&position, 1, 0.001)], &commands);
    }
    let layout = RobotLayout::of(&rows.dataset(20.0, Value::Null, Value::Null));
    assert_eq!(shown(&layout), [("arm", GroupKind::Joints, Control::Relative, vec![0, 1], vec![0, 1])]);
}

#[test]
fn names_that_lie_are_found_out() {
    let changes = numbered("delta_joint", 4);
    let layout = RobotLayout::of(&joints(4, 30.0, 6, 9).dataset(30.0, numbered("joint", 4), changes));
    assert_eq!(layout.groups[0].control, Control::Absolute);
    let [doubt] = &layout.undecided[..] else { panic!("{:?}", layout.undecided) };
    assert!(doubt.contains("named as changes") && doubt.contains("`--control 'arm=relative'`"), "{doubt}");

    let (mut rows, mut noise) = (Rows::default(), Noise(10));
    for _ in 0..6 {
        let path = noise.target(20.0, 8.0, 1.0);
        add(&mut rows, &[noise.followed(&path, 1, 0.001)], &[steps(&path)]);
    }
    let names = json!(["shoulder_pan.pos"]);
    let layout = RobotLayout::of(&rows.dataset(20.0, names.clone(), names));
    assert_eq!(layout.groups[0].control, Control::Relative);
    assert!(layout.undecided[0].contains("named as positions"), "{:?}", layout.undecided);

    // States in another order than their names say.
    let mut rows = joints(3, 30.0, 6, 11);
    rows.states.iter_mut().for_each(|row| row.rotate_left(1));
    let names = json!(["shoulder", "elbow", "wrist"]);
    let layout = RobotLayout::of(&rows.dataset(30.0, names.clone(), names));
    assert_eq!(layout.groups[0].states, [2, 0, 1]);
    assert!(layout.groups[0].evidence.join(" ").contains("do not follow the actions"));
}

#[test]
fn states_in_another_order_are_matched_by_name() {
    let mut rows = joints(4, 30.0, 4, 12);
    rows.states.iter_mut().for_each(|row| row.reverse());
    let names = json!(["left_elbow", "right_elbow", "left_wrist", "right_wrist"]);
    let turned = json!(["right_wrist", "left_wrist", "right_elbow", "left_elbow"]);
    let layout = RobotLayout::of(&rows.dataset(30.0, turned, names));
    let arms = |name, actions, states| (name, GroupKind::Joints, Control::Absolute, actions, states);
    assert_eq!(shown(&layout), [arms("left arm", vec![0, 2], vec![3, 1]), arms("right arm", vec![1, 3], vec![2, 0])]);
}

#[test]
fn what_cannot_be_decided_is_said() {
    // Two frames, a constant, and actions without any relation to states.
    let short = || {
        let mut rows = Rows::default();
        add(&mut rows, &[vec![0.1, 0.2]], &[vec![0.1, 0.2]]);
        rows
    };
    let constant = || {
        let mut rows = Rows::default();
        add(&mut rows, &[vec![3.0; 100]], &[vec![0.0; 100]]);
        rows
    };
    let unrelated = || {
        let (mut rows, mut noise) = (Rows::default(), Noise(13));
        let mut random = |size: f32| (0..400).map(|_| size * noise.next()).collect();
        add(&mut rows, &[random(1.0)], &[random(5.0)]);
        rows
    };
    for (rows, expected) in
        [(short(), Control::Absolute), (constant(), Control::Relative), (unrelated(), Control::Relative)]
    {
        let layout = RobotLayout::of(&rows.dataset(20.0, json!(["elbow"]), json!(["elbow"])));
        assert_eq!(layout.groups[0].control, expected);
        let [doubt] = &layout.undecided[..] else { panic!("{:?}", layout.undecided) };
        assert!(doubt.starts_with("It is not known what the actions of the arm mean"), "{doubt}");
        assert!(doubt.contains("`--control 'arm="), "{doubt}");
    }
}

#[test]
fn a_few_wrong_rows_decide_nothing() {
    let mut rows = joints(3, 30.0, 8, 14);
    rows.actions[100][1] = 6.6e22;
    rows.states[700][2] = f32::NAN;
    rows.actions[900][0] = f32::INFINITY;
    let layout = RobotLayout::of(&rows.dataset(30.0, Value::Null, Value::Null));
    assert_eq!(shown(&layout), [("arm", GroupKind::Joints, Control::Absolute, vec![0, 1, 2], vec![0, 1, 2])]);
}

#[test]
fn columns_without_names_are_split_by_what_they_are() {
    let layout = RobotLayout::of(&mobile().dataset(30.0, Value::Null, Value::Null));
    // Velocities that the state has too cannot be told from positions where episodes end while something moves.
    assert_eq!(layout.groups.len(), 1);
    let asks = |doubt: &String| doubt.contains("`--control '2-4=velocity'`");
    assert!(layout.undecided.iter().any(asks), "{:?}", layout.undecided);
    let mut rows = mobile();
    let drives: Vec<f32> = rows.actions.iter().map(|row| row[4]).collect();
    let path = integrated(&drives, 1.0 / 30.0, 0.0);
    rows.states.iter_mut().zip(path).for_each(|(row, place)| row[4] = place);
    let layout = RobotLayout::of(&rows.dataset(30.0, Value::Null, Value::Null));
    let controls: Vec<(Control, Vec<usize>)> =
        layout.groups.iter().map(|group| (group.control, group.actions.clone())).collect();
    assert_eq!(controls, [(Control::Absolute, vec![0, 1, 2, 3]), (Control::Relative, vec![4])]);
}

#[test]
fn joints_that_never_move_are_like_the_others() {
    let mut rows = joints(4, 30.0, 4, 15);
    for row in rows.states.iter_mut().chain(&mut rows.actions) {
        (row[2], row[3]) = (0.25, -1.0);
    }
    let names = json!(["left_elbow", "left_wrist", "neck_yaw", "neck_pitch"]);
    let layout = RobotLayout::of(&rows.dataset(30.0, names.clone(), names));
    assert_eq!(layout.groups.iter().map(|group| group.control).collect::<Vec<_>>(), [Control::Absolute; 2]);
    assert!(layout.undecided.is_empty(), "{:?}", layout.undecided);
    assert!(layout.groups[1].evidence.join(" ").contains("as the other joints are"));
}

#[test]
fn actions_without_names_have_those_of_states_that_they_steer() {
    let names = json!(["left_elbow", "left_gripper", "right_elbow", "right_gripper"]);
    let layout = RobotLayout::of(&joints(4, 30.0, 4, 16).dataset(30.0, names.clone(), Value::Null));
    let found: Vec<&str> = layout.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(found, ["left arm", "left gripper", "right arm", "right gripper"]);
    // As many states of something else give no names.
    let mut rows = joints(4, 30.0, 4, 17);
    rows.states.iter_mut().for_each(|row| row.rotate_left(1));
    let layout = RobotLayout::of(&rows.dataset(30.0, names, Value::Null));
    assert_eq!(layout.groups.len(), 1);
    assert_eq!(layout.groups[0].states, [3, 0, 1, 2]);
}
