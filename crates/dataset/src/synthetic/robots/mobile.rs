//! A LeKiwi: the arm of an SO-101 on a base that drives in any direction. The base is commanded and measured as
//! velocities only, so a dataset does not say where it is.

use super::super::robot::{Base, Camera, DEGREE, Mount, Robot, column, wrist_camera};
use super::super::script::colours::{BLUE, BROWN, DARK, FLOOR, GREEN, GREY, ORANGE, RED, WHITE};
use super::super::script::{Act, Hand, Step, Task, Thing, above, cube, fixed, near, step};
use super::so101::{arm, columns};

const HAND: Hand = Hand::single(1.1);

/// Where a thing is in the frame of the base when the arm can take it.
const IN_REACH: [f64; 2] = [0.3, 0.0];

/// The robot and its tasks.
pub(in super::super) fn robot() -> Robot {
    let mut columns = columns("arm_");
    let first = columns.len();
    columns.extend([
        column("x.vel", 0.0, (-0.4, 0.4)),
        column("y.vel", 0.0, (-0.4, 0.4)),
        column("theta.vel", 0.0, (-90.0, 90.0)),
    ]);
    Robot {
        robot_type: "lekiwi",
        fps: 30,
        unit: DEGREE,
        columns,
        arms: vec![arm([0.07, 0.0, 0.1], [60, 63, 70])],
        base: Some(Base { columns: [first, first + 1, first + 2], half: [0.1, 0.1, 0.05], colour: DARK }),
        cameras: vec![
            Camera {
                name: "front",
                mount: Mount::Base,
                centre: [0.45, 0.0, 0.1],
                right: [0.0, -1.0, 0.0],
                up: [0.8, 0.0, 0.6],
                width: 1.3,
                background: FLOOR,
            },
            wrist_camera("wrist", 0, 0.35, FLOOR),
        ],
        rewards: true,
        tasks: vec![
            Task {
                instruction: "drive to the table and pick up the red cube",
                things: vec![stand([1.1, 0.15]), cube([1.1, 0.15, 0.12], 0.1, 0.03, RED)],
                steps: [vec![drive(4.0, 1)], HAND.pick(1), vec![step("retreat", 2.2, [Act::Home(0)])]].concat(),
            },
            Task {
                instruction: "bring the blue can from the shelf to the basket",
                things: vec![
                    stand([0.95, -0.25]),
                    fixed([0.65, 0.75, 0.06], [0.1, 0.1, 0.06], BROWN),
                    cube([0.95, -0.25, 0.12], 0.08, 0.03, BLUE),
                ],
                steps: bring(),
            },
            Task {
                instruction: "push the orange ball to the goal",
                things: vec![
                    fixed([1.5, 0.0, 0.002], [0.12, 0.2, 0.002], GREEN),
                    cube([0.75, 0.1, 0.06], 0.08, 0.06, ORANGE),
                ],
                steps: push(),
            },
            Task {
                instruction: "turn around, drive to the desk and press the button",
                things: vec![
                    fixed([-1.15, 0.0, 0.07], [0.12, 0.35, 0.07], WHITE),
                    Thing { spread: [0.05, 0.15, 0.0], ..fixed([-1.1, 0.0, 0.16], [0.012, 0.02, 0.02], RED) },
                ],
                steps: press(),
            },
        ],
    }
}

fn stand(at: [f64; 2]) -> Thing {
    fixed([at[0], at[1], 0.05], [0.15, 0.2, 0.05], GREY)
}

fn drive(seconds: f64, thing: usize) -> Step {
    step("drive", seconds, [Act::DriveTo(thing, IN_REACH)])
}

fn bring() -> Vec<Step> {
    const BASKET: usize = 1;
    let put = HAND.put(BASKET, 0.09);
    let mut steps = vec![drive(3.6, 2)];
    steps.extend(HAND.pick(2));
    steps.push(step("turn", 2.6, [Act::Turn(90.0)]));
    steps.push(drive(3.8, BASKET));
    // Driving has brought the hand near the basket, so nothing needs to be carried further.
    steps.extend(put.into_iter().skip(1));
    steps.push(step("retreat", 2.2, [Act::Home(0)]));
    steps
}

fn push() -> Vec<Step> {
    const GOAL: usize = 0;
    const BALL: usize = 1;
    vec![
        step("drive", 3.0, [Act::DriveTo(BALL, [0.36, 0.0])]),
        step("reach", 2.2, [near(0, BALL, [-0.04, 0.0, 0.02])]),
        step("grasp", 1.0, [Act::Take(0, BALL)]),
        step("push", 3.4, [Act::DriveTo(GOAL, [0.36, 0.0])]),
        step("release", 1.0, [Act::Open(0)]),
        step("back_off", 2.4, [Act::DriveTo(GOAL, [0.66, 0.0])]),
        step("retreat", 2.0, [Act::Home(0)]),
    ]
}

fn press() -> Vec<Step> {
    const BUTTON: usize = 1;
    vec![
        step("turn", 3.6, [Act::Turn(180.0)]),
        step("drive", 3.6, [Act::DriveTo(BUTTON, [0.36, 0.0])]),
        step("reach", 2.4, [above(0, BUTTON, 0.04)]),
        step("press", 1.0, [above(0, BUTTON, 0.0)]),
        step("raise", 1.0, [above(0, BUTTON, 0.05)]),
        step("retreat", 2.0, [Act::Home(0)]),
    ]
}
