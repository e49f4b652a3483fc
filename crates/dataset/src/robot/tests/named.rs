//! Names as real robots have them.

use super::*;
use crate::robot::names::{flattened, tags, words};
use crate::robot::parts::{drafts, unique_names};

/// The groups that names make, with the number of their columns.
fn groups(names: &[&str]) -> Vec<String> {
    let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    let tags = tags(&names);
    let grippers: Vec<usize> =
        (0..tags.len()).filter(|&at| tags[at].part == crate::robot::names::Part::Gripper).collect();
    let drafts = drafts(&tags, &grippers);
    let shown = drafts.iter().zip(unique_names(&drafts));
    shown.map(|(draft, name)| format!("{name} {:?} {}", draft.kind, draft.actions.len())).collect()
}

fn each(pattern: &str, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| pattern.replace("{}", name)).collect()
}

fn sided(pattern: [&str; 2], names: &[&str]) -> Vec<String> {
    pattern.iter().flat_map(|pattern| each(pattern, names)).collect()
}

fn refs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

#[test]
fn names_are_cut_at_signs_digits_and_capitals() {
    assert_eq!(words("left_shoulder_pan.pos"), ["left", "shoulder", "pan", "pos"]);
    assert_eq!(words("kLeftHandThumb0"), ["k", "left", "hand", "thumb", "0"]);
    assert_eq!(words("LEFT-arm dX"), ["left", "arm", "d", "x"]);
    assert!(words("._").is_empty());
}

#[test]
fn one_arm_with_a_gripper() {
    let so100 = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"];
    for pattern in ["{}.pos", "main_{}", "{}", "follower_{}.pos"] {
        assert_eq!(groups(&refs(&each(pattern, &so100))), ["arm Joints 5", "gripper Gripper 1"], "{pattern}");
    }
    let widowx = ["waist", "shoulder", "elbow", "forearm_roll", "wrist_angle", "wrist_rotate", "gripper"];
    assert_eq!(groups(&widowx), ["arm Joints 6", "gripper Gripper 1"]);
    let ur = ["base", "shoulder", "elbow", "wrist_1", "wrist_2", "wrist_3", "gripper_position"];
    assert_eq!(groups(&ur), ["arm Joints 6", "gripper Gripper 1"]);
    let droid =
        [each("joint_position_{}", &["0", "1", "2", "3", "4", "5", "6"]), each("gripper_position", &[""])].concat();
    assert_eq!(groups(&refs(&droid)), ["arm Joints 7", "gripper Gripper 1"]);
    let panda = ["panda_joint1", "panda_joint2", "panda_finger_joint1", "panda_finger_joint2"];
    assert_eq!(groups(&panda), ["arm Joints 2", "gripper Gripper 1", "gripper 2 Gripper 1"]);
}

/// The names of the SO-100 in simulators. `pitch` was an end effector of its own, `arm 2`.
#[test]
fn a_single_angle_next_to_joints_is_a_joint() {
    let so100_sim = ["rotation", "pitch", "elbow", "wrist_pitch", "wrist_roll", "jaw"];
    for pattern in ["{}", "{}.pos", "main_{}"] {
        assert_eq!(groups(&refs(&each(pattern, &so100_sim))), ["arm Joints 5", "gripper Gripper 1"], "{pattern}");
    }
    let pair = sided(["left_{}", "right_{}"], &so100_sim);
    let arms = groups(&refs(&pair)).iter().filter(|group| group.contains("Joints 5")).count();
    assert_eq!(arms, 2, "{:?}", groups(&refs(&pair)));
    // All angles, or one next to a position, are no joints of an arm.
    assert_eq!(groups(&["elbow", "roll", "pitch", "yaw"])[..].len(), 2);
    let planar = ["arm EndEffector 3", "arm rotation Joints 1", "gripper Gripper 1"];
    assert_eq!(groups(&["x", "y", "z", "yaw", "gripper"]), planar);
}

#[test]
fn end_effectors() {
    let bridge = ["x", "y", "z", "roll", "pitch", "yaw", "pad", "gripper"];
    assert_eq!(groups(&bridge), ["arm EndEffector 6", "pad Other 1", "gripper Gripper 1"]);
    for names in [
        &["delta_x_ee", "delta_y_ee", "delta_z_ee", "gripper_delta"][..],
        &["dx", "dy", "dz", "gripper"],
        &["X", "Y", "Z", "Gripper"],
        &["tcp.x", "tcp.y", "tcp.z", "gripper.pos"],
    ] {
        assert_eq!(groups(names), ["arm EndEffector 3", "gripper Gripper 1"], "{names:?}");
    }
    for rotation in [
        &["rx", "ry", "rz"][..],
        &["r", "p", "y"],
        &["axis_angle1", "axis_angle2", "axis_angle3"],
        &["eef_rot_euler_x_rad", "eef_rot_euler_y_rad", "eef_rot_euler_z_rad"],
        &["qx", "qy", "qz", "qw"],
        &["rx", "ry", "rz", "rw"],
        &["quat_w", "quat_x", "quat_y", "quat_z"],
    ] {
        let names = [&["x", "y", "z"], rotation].concat();
        assert_eq!(groups(&names), [format!("arm EndEffector {}", 3 + rotation.len())], "{rotation:?}");
    }
    assert_eq!(groups(&["vx", "vy", "vz", "wx", "wy", "wz"]), ["arm EndEffector 6"]);
    let cartesian: Vec<String> = (0..6).map(|at| format!("cartesian_position_{at}")).collect();
    assert_eq!(groups(&refs(&cartesian)), ["arm EndEffector 6"]);
    let pose = ["eef_pos_x_m", "eef_pos_y_m", "eef_pos_z_m", "eef_euler_x_rad", "eef_euler_y_rad", "eef_euler_z_rad"];
    let both = sided(["left_{}", "right_{}"], &pose);
    assert_eq!(groups(&refs(&both)), ["left arm EndEffector 6", "right arm EndEffector 6"]);
    // Two arms without sides: coordinates come again.
    let twice = [&bridge[..6], &["gripper"], &bridge[..6], &["gripper"]].concat();
    let found = ["arm EndEffector 6", "gripper Gripper 1", "arm 2 EndEffector 6", "gripper 2 Gripper 1"];
    assert_eq!(groups(&twice), found);
    // Coordinates that are not all there are like joints.
    assert_eq!(groups(&["x", "y"]), ["arm Joints 2"]);
}

#[test]
fn two_arms() {
    let aloha = ["waist", "shoulder", "elbow", "forearm_roll", "wrist_angle", "wrist_rotate", "gripper"];
    let found = ["left arm Joints 6", "left gripper Gripper 1", "right arm Joints 6", "right gripper Gripper 1"];
    assert_eq!(groups(&refs(&sided(["left_{}", "right_{}"], &aloha))), found);
    let rad: Vec<String> = (1..7).map(|at| format!("arm_joint_{at}_rad")).chain(["gripper_open".to_owned()]).collect();
    assert_eq!(groups(&refs(&sided(["left_{}", "right_{}"], &refs(&rad)))), found);
    let robots = sided(["robot0_{}", "robot1_{}"], &["joint_1", "joint_2", "gripper"]);
    assert_eq!(
        groups(&refs(&robots)),
        ["arm 0 Joints 2", "gripper 0 Gripper 1", "arm 1 Joints 2", "gripper 1 Gripper 1"]
    );
}

#[test]
fn humanoids_have_arms_hands_heads_torsos_and_legs() {
    let arm = ["ShoulderPitch", "ShoulderRoll", "ShoulderYaw", "Elbow", "WristRoll", "WristPitch", "Wristyaw"];
    let hand = ["Thumb0", "Thumb1", "Thumb2", "Middle0", "Middle1", "Index0", "Index1"];
    let leg = ["HipPitch", "HipRoll", "HipYaw", "Knee", "AnklePitch", "AnkleRoll"];
    let names = [
        sided(["kLeft{}", "kRight{}"], &arm),
        sided(["kLeftHand{}", "kRightHand{}"], &hand),
        each("kWaist{}", &["Yaw", "Roll", "Pitch"]),
        each("kHead{}", &["Yaw", "Pitch"]),
        sided(["kLeft{}", "kRight{}"], &leg),
    ]
    .concat();
    let found = [
        "left arm Joints 7",
        "right arm Joints 7",
        "left hand Joints 7",
        "right hand Joints 7",
        "torso Joints 3",
        "head Joints 2",
        "left leg Joints 6",
        "right leg Joints 6",
    ];
    assert_eq!(groups(&refs(&names)), found);
    let fourier =
        ["l_hip_roll", "r_knee_pitch", "joint_waist_yaw", "joint_head_pitch", "l_shoulder_pitch", "l_elbow_pitch"];
    let found = ["left leg Joints 1", "right leg Joints 1", "torso Joints 1", "head Joints 1", "left arm Joints 2"];
    assert_eq!(groups(&fourier), found);
    assert_eq!(groups(&["kLeftElbow", "kLeftHandRoll", "left_hand"]), ["left arm Joints 2", "left gripper Gripper 1"]);
}

#[test]
fn bases() {
    let arm = each("arm_{}.pos", &["shoulder_pan", "elbow_flex", "gripper"]);
    let lekiwi = [arm, each("{}.vel", &["x", "y", "theta"])].concat();
    assert_eq!(groups(&refs(&lekiwi)), ["arm Joints 2", "gripper Gripper 1", "base Base 3"]);
    assert_eq!(groups(&["vx", "vy", "wz"]), ["base Base 3"]);
    assert_eq!(groups(&["linear_vel", "angular_vel"]), ["base Base 2"]);
    assert_eq!(groups(&["left_wheel_velocity", "right_wheel_velocity"]), ["left base Base 1", "right base Base 1"]);
    let robocasa = [
        each("base_motion_{}", &["0", "1", "2", "3"]),
        each("control_mode", &[""]),
        each("end_effector_position_{}", &["0", "1", "2"]),
        each("end_effector_rotation_{}", &["0", "1", "2"]),
        each("gripper_close", &[""]),
    ]
    .concat();
    let found = ["base Base 4", "control mode Other 1", "arm EndEffector 6", "gripper Gripper 1"];
    assert_eq!(groups(&refs(&robocasa)), found);
}

#[test]
fn names_may_be_nested() {
    let flat = |names: Value, width: usize| flattened(&names, width);
    let list = |names: &[&str]| Some(names.iter().map(|name| name.to_string()).collect::<Vec<_>>());
    assert_eq!(flat(json!({"motors": ["a", "b"]}), 2), list(&["a", "b"]));
    assert_eq!(flat(json!([["a", "b"], ["c"]]), 3), list(&["a", "b", "c"]));
    assert_eq!(flat(json!({"left": ["a", "b"], "right": ["a"]}), 3), list(&["left_a", "left_b", "right_a"]));
    assert_eq!(flat(json!({"b": 1, "a": 0}), 2), list(&["a", "b"]));
    assert_eq!(flat(json!({"arm": {"left": ["a"], "right": ["a"]}}), 2), list(&["left_a", "right_a"]));
    assert_eq!(flat(json!({"motors": ["x", "y", "z"]}), 39), None);
    assert_eq!(flat(json!([1, 2]), 2), None);
}
