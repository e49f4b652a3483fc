//! An arm of seven joints with a gripper in metres, recorded without cameras.

use super::super::kinematics::Axis;
use super::super::robot::{Arm, Column, Finger, Robot, column, joint};
use super::super::script::colours::{BLUE, BROWN, GREEN, GREY, RED, WHITE};
use super::super::script::{Act, Hand, Step, Task, Thing, above, by, cube, fixed, near, step};

const HAND: Hand = Hand::single(1.0);

/// The last joint, which turns what the hand holds.
const TURN: usize = 6;

/// The robot and its tasks.
pub(in super::super) fn robot() -> Robot {
    Robot {
        robot_type: "arm7",
        fps: 30,
        unit: 1.0,
        columns: columns(),
        arms: vec![arm()],
        base: None,
        cameras: Vec::new(),
        rewards: true,
        tasks: vec![
            Task {
                instruction: "pick up the can and place it in the bin",
                things: vec![
                    fixed([0.4, -0.3, 0.02], [0.08, 0.08, 0.02], BROWN),
                    cube([0.48, 0.15, 0.04], 0.08, 0.08, RED),
                ],
                steps: [HAND.pick(1), HAND.put(0, 0.08), HAND.retreat()].concat(),
            },
            Task {
                instruction: "press the red button twice",
                things: vec![Thing { spread: [0.08, 0.12, 0.0], ..fixed([0.48, 0.05, 0.02], [0.03, 0.03, 0.02], RED) }],
                steps: press(),
            },
            Task {
                instruction: "pour the water from the cup into the bowl",
                things: vec![
                    fixed([0.45, -0.2, 0.03], [0.08, 0.08, 0.03], WHITE),
                    cube([0.48, 0.18, 0.05], 0.06, 0.08, BLUE),
                ],
                steps: pour(),
            },
            Task {
                instruction: "open the drawer",
                things: vec![Thing { spread: [0.03, 0.06, 0.0], ..fixed([0.58, 0.1, 0.2], [0.05, 0.08, 0.04], GREY) }],
                steps: open_drawer(),
            },
            Task {
                instruction: "insert the peg into the hole",
                things: vec![
                    fixed([0.42, -0.22, 0.03], [0.05, 0.05, 0.03], GREEN),
                    cube([0.46, 0.16, 0.04], 0.06, 0.03, BLUE),
                ],
                steps: insert(),
            },
        ],
    }
}

fn columns() -> Vec<Column> {
    let homes = [0.0, -0.35, 0.0, 0.75, 0.0, 1.1, 0.0];
    let joints = homes.into_iter().enumerate();
    let joints = joints.map(|(at, home)| column(format!("joint_{}", at + 1), home, (-2.7, 2.7)));
    joints.chain([column("gripper", 0.005, (0.0, 0.08))]).collect()
}

fn arm() -> Arm {
    Arm {
        foot: [0.0; 3],
        turned: 0.0,
        joints: vec![
            joint(0, Axis::Z, [0.0, 0.0, 0.33]),
            joint(1, Axis::Y, [0.0, 0.0, 0.32]),
            joint(2, Axis::Z, [0.0; 3]),
            joint(3, Axis::Y, [0.38, 0.0, 0.0]),
            joint(4, Axis::X, [0.0; 3]),
            joint(5, Axis::Y, [0.09, 0.0, 0.0]),
            joint(6, Axis::X, [0.11, 0.0, 0.0]),
        ],
        first_moved: 0,
        pointing: [0.0, 0.0, -1.0],
        hand: vec![Finger { column: 7, open: 0.075, closed: 0.0 }],
        colour: WHITE,
    }
}

fn press() -> Vec<Step> {
    const BUTTON: usize = 0;
    vec![
        step("reach", 2.6, [above(0, BUTTON, 0.08)]),
        step("press", 1.1, [above(0, BUTTON, 0.015)]),
        step("raise", 1.1, [above(0, BUTTON, 0.08)]),
        step("press", 1.1, [above(0, BUTTON, 0.015)]),
        step("raise", 1.1, [above(0, BUTTON, 0.08)]),
        step("retreat", 2.2, [Act::Home(0)]),
    ]
}

fn pour() -> Vec<Step> {
    const BOWL: usize = 0;
    const CUP: usize = 1;
    let mut steps = HAND.pick(CUP);
    steps.extend([
        step("transport", 2.6, [near(0, BOWL, [0.0, 0.07, 0.2])]),
        step("pour", 2.2, [Act::Joint(TURN, 1.9)]),
        step("upright", 1.6, [Act::JointHome(TURN)]),
        step("transport", 2.6, [near(0, BOWL, [0.02, 0.36, 0.12])]),
        step("place", 1.5, [near(0, BOWL, [0.02, 0.36, 0.02])]),
        step("release", 0.9, [Act::Open(0)]),
    ]);
    steps.extend(HAND.retreat());
    steps
}

fn open_drawer() -> Vec<Step> {
    const DRAWER: usize = 0;
    vec![
        step("reach", 2.8, [near(0, DRAWER, [-0.045, 0.0, 0.01]), Act::Open(0)]),
        step("grasp", 1.0, [Act::Take(0, DRAWER)]),
        step("open_drawer", 2.4, [by(0, [-0.16, 0.0, 0.0])]),
        step("release", 0.9, [Act::Open(0)]),
        step("retreat", 2.2, [Act::Home(0)]),
    ]
}

fn insert() -> Vec<Step> {
    const HOLE: usize = 0;
    const PEG: usize = 1;
    let mut steps = HAND.pick(PEG);
    steps.extend([
        step("transport", 2.8, [above(0, HOLE, 0.12)]),
        step("insert", 2.2, [above(0, HOLE, 0.04)]),
        step("release", 0.9, [Act::Open(0)]),
    ]);
    steps.extend(HAND.retreat());
    steps
}
