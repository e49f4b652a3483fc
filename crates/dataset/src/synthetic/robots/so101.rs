//! An SO-101 as lerobot records it: joints in degrees from the middle of their ranges, a gripper from 0 to 100.
//!
//! Recordings of such arms have no rewards, so this dataset has none.

use super::super::kinematics::{Axis, Point};
use super::super::robot::{Arm, Camera, Colour, Column, DEGREE, Finger, Mount, Robot, column, joint, wrist_camera};
use super::super::script::colours::{BLUE, BROWN, GREEN, GREY, ORANGE, PURPLE, RED, TABLE, WHITE, YELLOW};
use super::super::script::{Act, Hand, Step, Task, above, by, cube, fixed, near, step};

const HAND: Hand = Hand::single(1.3);
const WRIST_ROLL: usize = 4;

/// The robot and its tasks.
pub(in super::super) fn robot() -> Robot {
    Robot {
        robot_type: "so101_follower",
        fps: 30,
        unit: DEGREE,
        columns: columns(""),
        arms: vec![arm([0.0; 3], [60, 63, 70])],
        base: None,
        cameras: vec![
            Camera {
                name: "front",
                mount: Mount::Room,
                centre: [0.15, 0.0, 0.08],
                right: [0.45, -0.89, 0.0],
                up: [0.45, 0.2, 0.87],
                width: 0.48,
                background: TABLE,
            },
            wrist_camera("wrist", 0, 0.25, TABLE),
        ],
        rewards: false,
        tasks: vec![
            Task {
                instruction: "pick up the red cube and put it in the box",
                things: vec![
                    fixed([0.17, -0.15, 0.01], [0.045, 0.045, 0.01], BROWN),
                    cube([0.2, 0.08, 0.015], 0.045, 0.03, RED),
                ],
                steps: [HAND.pick(1), HAND.put(0, 0.025), HAND.retreat()].concat(),
            },
            Task {
                instruction: "turn the blue block and put it on the green plate",
                things: vec![
                    fixed([0.22, 0.1, 0.003], [0.045, 0.045, 0.003], GREEN),
                    cube([0.19, -0.09, 0.015], 0.04, 0.03, BLUE),
                ],
                steps: [
                    HAND.pick(1),
                    vec![step("turn", 1.6, [Act::Joint(WRIST_ROLL, 85.0)])],
                    HAND.put(0, 0.018),
                    HAND.retreat(),
                ]
                .concat(),
            },
            Task {
                instruction: "put the red cube on the plate and the blue cube in the box",
                things: vec![
                    fixed([0.17, -0.16, 0.01], [0.045, 0.045, 0.01], BROWN),
                    fixed([0.23, 0.13, 0.003], [0.04, 0.04, 0.003], WHITE),
                    cube([0.24, -0.01, 0.015], 0.02, 0.03, RED),
                    cube([0.17, 0.05, 0.015], 0.02, 0.03, BLUE),
                ],
                steps: [HAND.pick(2), HAND.put(1, 0.018), HAND.pick(3), HAND.put(0, 0.025), HAND.retreat()].concat(),
            },
            Task {
                instruction: "open the drawer and put the purple block inside",
                things: vec![
                    fixed([0.32, 0.14, 0.05], [0.03, 0.05, 0.05], GREY),
                    fixed([0.26, 0.14, 0.03], [0.04, 0.04, 0.02], BROWN),
                    cube([0.19, -0.08, 0.0125], 0.035, 0.025, PURPLE),
                ],
                steps: [open_drawer(), HAND.pick(2), HAND.put(1, 0.02), HAND.retreat()].concat(),
            },
            Task {
                instruction: "wipe the table with the sponge",
                things: vec![
                    fixed([0.22, 0.0, 0.001], [0.05, 0.09, 0.001], ORANGE),
                    cube([0.17, 0.13, 0.01], 0.025, 0.03, YELLOW),
                ],
                steps: wipe(),
            },
        ],
    }
}

/// The columns of an arm, with something before their names.
pub(super) fn columns(prefix: &str) -> Vec<Column> {
    let joints: [(&str, f64, f64); 5] = [
        ("shoulder_pan", 0.0, 110.0),
        ("shoulder_lift", -85.0, 105.0),
        ("elbow_flex", 80.0, 100.0),
        ("wrist_flex", 65.0, 105.0),
        ("wrist_roll", 0.0, 160.0),
    ];
    let joints = joints.map(|(name, home, most)| column(format!("{prefix}{name}.pos"), home, (-most, most)));
    joints.into_iter().chain([column(format!("{prefix}gripper.pos"), 4.0, (0.0, 100.0))]).collect()
}

/// An arm on a foot, whose columns are the first six.
pub(super) fn arm(foot: Point, colour: Colour) -> Arm {
    Arm {
        foot,
        turned: 0.0,
        joints: vec![
            joint(0, Axis::Z, [0.03, 0.0, 0.11]),
            joint(1, Axis::Y, [0.0, 0.0, 0.116]),
            joint(2, Axis::Y, [0.135, 0.0, 0.0]),
            joint(3, Axis::Y, [0.03, 0.0, 0.0]),
            joint(4, Axis::X, [0.07, 0.0, 0.0]),
        ],
        first_moved: 0,
        pointing: [0.0, 0.0, -1.0],
        hand: vec![Finger { column: 5, open: 55.0, closed: 3.0 }],
        colour,
    }
}

fn open_drawer() -> Vec<Step> {
    const DRAWER: usize = 1;
    vec![
        step("reach", 3.2, [near(0, DRAWER, [-0.035, 0.0, 0.01]), Act::Open(0)]),
        step("grasp", 1.2, [Act::Take(0, DRAWER)]),
        step("open_drawer", 2.4, [by(0, [-0.08, 0.0, 0.0])]),
        step("release", 1.1, [Act::Open(0)]),
    ]
}

fn wipe() -> Vec<Step> {
    const SPILL: usize = 0;
    const SPONGE: usize = 1;
    let stroke = |phase, x: f64, y: f64| step(phase, 1.7, [near(0, SPILL, [x, y, 0.012])]);
    let mut steps = HAND.pick(SPONGE);
    steps.truncate(2);
    steps.push(step("transport", 2.2, [near(0, SPILL, [-0.02, 0.08, 0.012])]));
    steps.extend([
        stroke("wipe_right", -0.02, -0.08),
        stroke("wipe_left", 0.0, 0.08),
        stroke("wipe_right", 0.0, -0.08),
        stroke("wipe_left", 0.02, 0.08),
    ]);
    steps.push(step("lift", 1.6, [above(0, SPILL, 0.08)]));
    steps.push(step("place", 1.8, [near(0, SPILL, [-0.04, -0.13, 0.012])]));
    steps.push(step("release", 1.1, [Act::Open(0)]));
    steps.extend(HAND.retreat());
    steps
}
