//! Two ViperX arms that face each other across a table, as ALOHA records them: joints in radians, grippers from 0 to 1.

use std::f64::consts::PI;

use super::super::kinematics::Axis;
use super::super::robot::{Arm, Camera, Column, Finger, Mount, Robot, column, joint, wrist_camera};
use super::super::script::colours::{BLUE, BROWN, GREEN, GREY, RED, TABLE, WHITE, YELLOW};
use super::super::script::{Act, Hand, Step, Task, at_point, by, cube, fixed, near, step, to};

const LEFT: usize = 0;
const RIGHT: usize = 1;
const LEFT_HAND: Hand = Hand::left(LEFT, 1.0);
const RIGHT_HAND: Hand = Hand::right(RIGHT, 1.0);

/// The columns of one arm.
const WIDTH: usize = 7;

/// The robot and its tasks.
pub(in super::super) fn robot() -> Robot {
    Robot {
        robot_type: "aloha",
        fps: 50,
        unit: 1.0,
        columns: ["left", "right"].into_iter().flat_map(columns).collect(),
        arms: vec![arm(LEFT), arm(RIGHT)],
        base: None,
        cameras: vec![
            Camera {
                name: "cam_high",
                mount: Mount::Room,
                centre: [0.0, 0.03, 0.12],
                right: [1.0, 0.0, 0.0],
                up: [0.0, 0.7, 0.714],
                width: 1.1,
                background: TABLE,
            },
            wrist_camera("cam_left_wrist", LEFT, 0.4, TABLE),
            wrist_camera("cam_right_wrist", RIGHT, 0.4, TABLE),
        ],
        rewards: true,
        tasks: vec![
            Task {
                instruction: "pick up the red cube with the right arm and place it on the plate",
                things: vec![
                    fixed([0.08, -0.17, 0.005], [0.07, 0.07, 0.005], WHITE),
                    cube([0.12, 0.1, 0.025], 0.06, 0.05, RED),
                ],
                steps: [RIGHT_HAND.pick(1), RIGHT_HAND.put(0, 0.03), RIGHT_HAND.retreat()].concat(),
            },
            Task {
                instruction: "hand the blue block over from the left arm to the right arm and put it in the tray",
                things: vec![
                    fixed([0.17, -0.15, 0.01], [0.08, 0.08, 0.01], BROWN),
                    cube([-0.13, 0.08, 0.025], 0.05, 0.05, BLUE),
                ],
                steps: hand_over(),
            },
            Task {
                instruction: "lift the tray with both arms and set it down on the mat",
                things: vec![
                    fixed([0.0, 0.14, 0.002], [0.15, 0.08, 0.002], GREEN),
                    super::super::script::Thing {
                        spread: [0.03, 0.04, 0.0],
                        girth: 0.15,
                        ..fixed([0.0, -0.09, 0.02], [0.13, 0.06, 0.01], GREY)
                    },
                ],
                steps: lift_tray(),
            },
            Task {
                instruction: "put the yellow cube and the green cube in the bowl, one with each arm",
                things: vec![
                    fixed([0.0, -0.12, 0.01], [0.08, 0.07, 0.01], BROWN),
                    cube([-0.14, 0.1, 0.025], 0.04, 0.05, YELLOW),
                    cube([0.14, 0.1, 0.025], 0.04, 0.05, GREEN),
                ],
                steps: [
                    LEFT_HAND.pick(1),
                    LEFT_HAND.put_near(0, [-0.03, 0.0, 0.035]),
                    LEFT_HAND.retreat(),
                    RIGHT_HAND.pick(2),
                    RIGHT_HAND.put_near(0, [0.03, 0.0, 0.035]),
                    RIGHT_HAND.retreat(),
                ]
                .concat(),
            },
        ],
    }
}

fn columns(side: &str) -> Vec<Column> {
    let joints: [(&str, f64, (f64, f64)); WIDTH] = [
        ("waist", 0.0, (-1.6, 1.6)),
        ("shoulder", -0.96, (-1.85, 1.25)),
        ("elbow", 1.16, (-1.76, 1.6)),
        ("forearm_roll", 0.0, (-1.6, 1.6)),
        ("wrist_angle", 0.3, (-1.86, 2.1)),
        ("wrist_rotate", 0.0, (-1.6, 1.6)),
        ("gripper", 0.05, (0.0, 1.0)),
    ];
    joints.into_iter().map(|(name, home, range)| column(format!("{side}_{name}"), home, range)).collect()
}

fn arm(side: usize) -> Arm {
    let away = if side == LEFT { 1.0 } else { -1.0 };
    let at = |column: usize| side * WIDTH + column;
    Arm {
        foot: [-0.46 * away, 0.0, 0.0],
        turned: if side == LEFT { 0.0 } else { PI },
        joints: vec![
            joint(at(0), Axis::Z, [0.0, 0.0, 0.127]),
            joint(at(1), Axis::Y, [0.06, 0.0, 0.3]),
            joint(at(2), Axis::Y, [0.2, 0.0, 0.0]),
            joint(at(3), Axis::X, [0.1, 0.0, 0.0]),
            joint(at(4), Axis::Y, [0.07, 0.0, 0.0]),
            joint(at(5), Axis::X, [0.13, 0.0, 0.0]),
        ],
        first_moved: 0,
        pointing: [0.6 * away, 0.0, -0.8],
        hand: vec![Finger { column: at(6), open: 0.9, closed: 0.02 }],
        colour: if side == LEFT { [52, 73, 94] } else { [94, 60, 70] },
    }
}

fn hand_over() -> Vec<Step> {
    const BLOCK: usize = 1;
    const TRAY: usize = 0;
    let mut steps = LEFT_HAND.pick(BLOCK);
    steps.push(step("left_transport", 2.0, [at_point(LEFT, [-0.02, 0.0, 0.22])]));
    steps.push(step("right_reach", 2.4, [to(RIGHT, BLOCK), Act::Open(RIGHT)]));
    steps.push(step("right_grasp", 1.0, [Act::Take(RIGHT, BLOCK)]));
    steps.push(step("left_release", 0.9, [Act::Open(LEFT)]));
    let mut put = RIGHT_HAND.put(TRAY, 0.035);
    // The left arm goes home while the right one carries the block away.
    put[0].acts.push(Act::Home(LEFT));
    steps.extend(put);
    steps.extend(RIGHT_HAND.retreat());
    steps
}

fn lift_tray() -> Vec<Step> {
    const TRAY: usize = 1;
    let both = |acts: [Act; 2]| acts;
    vec![
        step(
            "both_reach",
            2.8,
            [
                near(LEFT, TRAY, [-0.12, 0.0, 0.0]),
                near(RIGHT, TRAY, [0.12, 0.0, 0.0]),
                Act::Open(LEFT),
                Act::Open(RIGHT),
            ],
        ),
        step("both_grasp", 1.1, both([Act::Take(LEFT, TRAY), Act::Take(RIGHT, TRAY)])),
        step("both_lift", 1.8, both([by(LEFT, [0.0, 0.0, 0.14]), by(RIGHT, [0.0, 0.0, 0.14])])),
        step("both_transport", 2.4, both([near(LEFT, 0, [-0.12, 0.0, 0.16]), near(RIGHT, 0, [0.12, 0.0, 0.16])])),
        step("both_place", 1.8, both([near(LEFT, 0, [-0.12, 0.0, 0.02]), near(RIGHT, 0, [0.12, 0.0, 0.02])])),
        step("both_release", 1.0, both([Act::Open(LEFT), Act::Open(RIGHT)])),
        step("both_retreat", 2.4, both([Act::Home(LEFT), Act::Home(RIGHT)])),
    ]
}
