//! A humanoid with the names of Unitree's G1: legs, waist, neck, two arms of seven joints and two hands of six.
//!
//! An arm's chain begins at the ankle, so that bent knees lower the hands and a turned waist turns them.

use super::super::kinematics::Axis;
use super::super::robot::{Arm, Camera, Column, Finger, Joint, Mount, Robot, column, joint};
use super::super::script::colours::{BLUE, BROWN, FLOOR, GREEN, GREY, ORANGE, RED, WHITE, YELLOW};
use super::super::script::{Act, Hand, Step, Task, Thing, at_point, by, cube, fixed, near, step, to};

const LEFT: usize = 0;
const RIGHT: usize = 1;
const LEFT_HAND: Hand = Hand::left(LEFT, 1.0);
const RIGHT_HAND: Hand = Hand::right(RIGHT, 1.0);

const WAIST: usize = 6;
const NECK: usize = 7;
const ARMS: usize = 8;
const HANDS: usize = 22;

/// The height of things on the table.
const ON_TABLE: f64 = 0.78;

/// The robot and its tasks.
pub(in super::super) fn robot() -> Robot {
    Robot {
        robot_type: "unitree_g1",
        fps: 30,
        unit: 1.0,
        columns: columns(),
        arms: vec![arm(LEFT), arm(RIGHT)],
        base: None,
        cameras: vec![Camera {
            name: "front",
            mount: Mount::Room,
            centre: [0.15, 0.0, 0.68],
            right: [0.6, -0.8, 0.0],
            up: [0.25, 0.0, 0.97],
            width: 1.35,
            background: FLOOR,
        }],
        rewards: true,
        tasks: vec![
            Task {
                instruction: "pick up the red cup and place it on the tray",
                things: vec![
                    table(),
                    fixed([0.33, 0.02, 0.75], [0.08, 0.08, 0.01], GREEN),
                    cube([0.32, -0.22, ON_TABLE], 0.05, 0.07, RED),
                ],
                steps: looking([RIGHT_HAND.pick(2), RIGHT_HAND.put(1, 0.045), RIGHT_HAND.retreat()].concat()),
            },
            Task {
                instruction: "lift the box with both hands and put it on the shelf on the left",
                things: vec![
                    table(),
                    fixed([0.21, 0.31, 0.72], [0.14, 0.12, 0.01], GREY),
                    Thing {
                        spread: [0.02, 0.03, 0.0],
                        girth: 0.6,
                        ..fixed([0.33, 0.0, 0.81], [0.08, 0.1, 0.06], YELLOW)
                    },
                ],
                steps: lift_box(),
            },
            Task {
                instruction: "crouch down, pick up the ball from the stool and put it on the table",
                things: vec![
                    fixed([0.28, -0.16, 0.12], [0.1, 0.1, 0.12], WHITE),
                    fixed([0.33, -0.02, 0.72], [0.15, 0.12, 0.02], BROWN),
                    cube([0.28, -0.16, 0.275], 0.04, 0.07, ORANGE),
                ],
                steps: crouch_and_pick(),
            },
            Task { instruction: "wave to the visitor with the left hand", things: vec![table()], steps: wave() },
            Task {
                instruction: "pass the bottle from the left hand to the right hand and put it on the tray",
                things: vec![
                    table(),
                    fixed([0.33, -0.22, 0.75], [0.08, 0.08, 0.01], GREEN),
                    cube([0.32, 0.2, ON_TABLE], 0.04, 0.07, BLUE),
                ],
                steps: pass_bottle(),
            },
        ],
    }
}

fn table() -> Thing {
    fixed([0.36, 0.0, 0.72], [0.16, 0.35, 0.02], BROWN)
}

fn columns() -> Vec<Column> {
    let sides = ["Left", "Right"];
    let legs = sides.into_iter().flat_map(|side| {
        [
            column(format!("k{side}HipPitch"), -0.1, (-2.5, 2.5)),
            column(format!("k{side}Knee"), 0.2, (-0.1, 2.8)),
            column(format!("k{side}AnklePitch"), -0.1, (-1.3, 0.6)),
        ]
    });
    let trunk = [column("kWaistYaw", 0.0, (-2.6, 2.6)), column("kNeckPitch", 0.0, (-0.6, 0.9))];
    let arms = sides.into_iter().flat_map(|side| {
        let outward = if side == "Left" { 0.1 } else { -0.1 };
        [
            ("ShoulderPitch", 0.2, 2.6),
            ("ShoulderRoll", outward, 2.2),
            ("ShoulderYaw", 0.0, 2.4),
            ("Elbow", 0.5, 2.0),
            ("WristRoll", 0.0, 1.9),
            ("WristPitch", 0.0, 1.6),
            ("WristYaw", 0.0, 1.6),
        ]
        .map(|(name, home, most)| column(format!("k{side}{name}"), home, (-most, most)))
    });
    let hands = sides.into_iter().flat_map(|side| {
        ["Pinky", "Ring", "Middle", "Index", "ThumbBend", "ThumbRotation"]
            .map(|name| column(format!("k{side}Hand{name}"), 0.05, (0.0, 1.6)))
    });
    legs.chain(trunk).chain(arms).chain(hands).collect()
}

fn arm(side: usize) -> Arm {
    let outward = if side == LEFT { 1.0 } else { -1.0 };
    let leg = |at: usize| 3 * side + at;
    let own = |at: usize| ARMS + 7 * side + at;
    let body: [Joint; 4] = [
        joint(leg(2), Axis::BackY, [0.0, 0.0, 0.3]),
        joint(leg(1), Axis::BackY, [0.0, 0.0, 0.3]),
        joint(leg(0), Axis::BackY, [0.0, -0.09 * outward, 0.05]),
        joint(WAIST, Axis::Z, [0.0, 0.16 * outward, 0.32]),
    ];
    let limbs: [Joint; 7] = [
        joint(own(0), Axis::Y, [0.0; 3]),
        joint(own(1), Axis::X, [0.0; 3]),
        joint(own(2), Axis::Z, [0.0, 0.0, -0.22]),
        joint(own(3), Axis::Y, [0.22, 0.0, 0.0]),
        joint(own(4), Axis::X, [0.0; 3]),
        joint(own(5), Axis::Y, [0.04, 0.0, 0.0]),
        joint(own(6), Axis::Z, [0.1, 0.0, 0.0]),
    ];
    let closed = [1.4, 1.4, 1.4, 1.4, 0.6, 0.9];
    let finger = |(at, closed)| Finger { column: HANDS + 6 * side + at, open: 0.05, closed };
    Arm {
        foot: [0.0, 0.09 * outward, 0.05],
        turned: 0.0,
        joints: body.into_iter().chain(limbs).collect(),
        first_moved: body.len(),
        pointing: [0.9, 0.0, -0.43],
        hand: closed.into_iter().enumerate().map(finger).collect(),
        colour: if side == LEFT { [44, 62, 80] } else { [86, 60, 92] },
    }
}

/// The head looks down while the first step is done, and up again in the last.
fn looking(mut steps: Vec<Step>) -> Vec<Step> {
    if let Some(first) = steps.first_mut() {
        first.acts.push(Act::Joint(NECK, 0.45));
    }
    if let Some(last) = steps.last_mut() {
        last.acts.push(Act::JointHome(NECK));
    }
    steps
}

fn lift_box() -> Vec<Step> {
    const BOX: usize = 2;
    let both = |act: fn(usize) -> Act| [act(LEFT), act(RIGHT)];
    let turned = [Act::Home(LEFT), Act::Home(RIGHT), Act::JointHome(WAIST)];
    looking(vec![
        step("both_reach", 2.6, [near(LEFT, BOX, [-0.02, 0.1, 0.0]), near(RIGHT, BOX, [-0.02, -0.1, 0.0])]),
        step("both_grasp", 1.1, [Act::Take(RIGHT, BOX), Act::Take(LEFT, BOX)]),
        step("both_lift", 1.7, both(|arm| by(arm, [0.0, 0.0, 0.1]))),
        step("turn_waist", 2.2, [Act::Joint(WAIST, 0.9)]),
        step("both_place", 1.7, both(|arm| by(arm, [0.0, 0.0, -0.11]))),
        step("both_release", 1.0, both(Act::Open)),
        step("both_retreat", 2.6, turned),
    ])
}

fn crouch_and_pick() -> Vec<Step> {
    const BALL: usize = 2;
    let bend = |angle: f64| [(0, -angle), (1, 2.0 * angle), (2, -angle), (3, -angle), (4, 2.0 * angle), (5, -angle)];
    let bend = |angle: f64| bend(angle).map(|(column, value)| Act::Joint(column, value));
    let mut steps = vec![step("crouch", 2.4, bend(1.15))];
    let mut pick = RIGHT_HAND.pick(BALL);
    pick.truncate(2);
    steps.extend(pick);
    steps.push(step("stand_up", 2.4, bend(0.1)));
    steps.extend(RIGHT_HAND.put(1, 0.06));
    steps.extend(RIGHT_HAND.retreat());
    looking(steps)
}

fn wave() -> Vec<Step> {
    let stroke = |phase, y: f64| step(phase, 1.1, [by(LEFT, [0.0, y, 0.0])]);
    vec![
        step("left_raise", 2.2, [at_point(LEFT, [0.2, 0.28, 1.18])]),
        stroke("wave_out", 0.12),
        stroke("wave_in", -0.2),
        stroke("wave_out", 0.2),
        stroke("wave_in", -0.2),
        stroke("wave_out", 0.2),
        step("left_retreat", 2.2, [Act::Home(LEFT)]),
    ]
}

fn pass_bottle() -> Vec<Step> {
    const BOTTLE: usize = 2;
    let mut steps = LEFT_HAND.pick(BOTTLE);
    steps.push(step("left_transport", 2.0, [at_point(LEFT, [0.3, 0.02, 0.92])]));
    steps.push(step("right_reach", 2.2, [to(RIGHT, BOTTLE)]));
    steps.push(step("right_grasp", 1.0, [Act::Take(RIGHT, BOTTLE)]));
    steps.push(step("left_release", 0.9, [Act::Open(LEFT)]));
    let mut put = RIGHT_HAND.put(1, 0.045);
    // The left arm goes home while the right one carries the bottle away.
    put[0].acts.push(Act::Home(LEFT));
    steps.extend(put);
    steps.extend(RIGHT_HAND.retreat());
    looking(steps)
}
