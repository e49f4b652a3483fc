//! Where the limbs of an arm are, and which joint angles bring its tip to a point.
//!
//! Forward: along the chain, each joint turns the frame and each limb moves the point. Inverse: damped least squares on
//! the distance of the tip and, at a lower weight, on the direction of the hand,
//!
//! ```text
//! (JᵀJ + λ1) Δq = Jᵀr + μ (q_start − q)
//! ```
//!
//! with J by differences. The last term keeps joints that are not needed where they are. There are many more columns than points in a script, so this is never slow.

use super::robot::{Arm, Robot};

/// A point or a vector, x, y and z in metres.
pub(super) type Point = [f64; 3];

/// A rotation as the rows of its matrix.
pub(super) type Rotation = [Point; 3];

/// An axis of a frame: x forward, y left, z up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    /// Forward: rolls.
    X,
    /// Left: a positive angle lowers what is in front.
    Y,
    /// Right: a positive angle raises what is in front.
    BackY,
    /// Up: a positive angle turns to the left.
    Z,
}

/// Where an arm is.
#[derive(Clone, Debug)]
pub(super) struct Posture {
    /// The foot, the ends of all limbs, and last the tip.
    pub(super) points: Vec<Point>,
    /// The frame of the hand.
    pub(super) hand: Rotation,
}

impl Posture {
    /// The end of the hand.
    pub(super) fn tip(&self) -> Point {
        self.points.last().copied().unwrap_or_default()
    }

    /// Where the hand points.
    fn pointing(&self) -> Point {
        [self.hand[0][0], self.hand[1][0], self.hand[2][0]]
    }
}

/// The posture of an arm with these values of columns, on a base at x, y and an angle in radians.
pub(super) fn forward(robot: &Robot, arm: &Arm, values: &[f64], base: Point) -> Posture {
    let turned = about(Axis::Z, base[2]);
    let mut point = add([base[0], base[1], 0.0], apply(&turned, arm.foot));
    let mut frame = product(&turned, &about(Axis::Z, arm.turned));
    let mut points = vec![point];
    for joint in &arm.joints {
        frame = product(&frame, &about(joint.axis, robot.unit * values[joint.column]));
        if joint.limb != [0.0; 3] {
            point = add(point, apply(&frame, joint.limb));
            points.push(point);
        }
    }
    Posture { points, hand: frame }
}

/// The values of columns with which the tip of an arm is at the target, or as near as it can be; only joints that
/// reaching moves change.
pub(super) fn reach(robot: &Robot, arm: &Arm, from: &[f64], base: Point, target: Point) -> Vec<f64> {
    /// Metres by which a tip may miss.
    const NEAR: f64 = 0.002;
    let missed = |values: &[f64]| {
        let apart = subtract(forward(robot, arm, values, base).tip(), target);
        dot(apart, apart)
    };
    let near = descend(robot, arm, from, base, target);
    if missed(&near) < NEAR * NEAR {
        return near;
    }
    // A folded arm may be stuck at the end of a joint's range; one that is stretched forward is not.
    let mut ready = from.to_vec();
    arm.joints[arm.first_moved..].iter().for_each(|joint| ready[joint.column] = robot.clamped(joint.column, 0.0));
    let other = descend(robot, arm, &ready, base, target);
    if missed(&other) < missed(&near) { other } else { near }
}

/// Damped least squares from one posture. A joint at the end of its range that would leave it stays there.
fn descend(robot: &Robot, arm: &Arm, from: &[f64], base: Point, target: Point) -> Vec<f64> {
    /// Metres that a wrong direction of the hand is worth.
    const POINTING: f64 = 0.03;
    const DAMPING: f64 = 1e-4;
    const REST: f64 = 2e-4;
    /// The largest change of a joint in one round, in radians.
    const MOST: f64 = 0.25;
    const ROUNDS: usize = 90;
    /// In the last rounds the distance alone counts.
    const EXACT: usize = 30;

    let mut values = from.to_vec();
    let moved: Vec<usize> = arm.joints[arm.first_moved..].iter().map(|joint| joint.column).collect();
    let wanted = apply(&about(Axis::Z, base[2]), arm.pointing);
    for round in 0..ROUNDS {
        let (weight, rest) = if round + EXACT < ROUNDS { (POINTING, REST) } else { (0.0, 0.0) };
        let residual = |values: &[f64]| {
            let posture = forward(robot, arm, values, base);
            let (tip, pointing) = (posture.tip(), posture.pointing());
            let mut residual = [0.0; 6];
            for at in 0..3 {
                residual[at] = target[at] - tip[at];
                residual[3 + at] = weight * (wanted[at] - pointing[at]);
            }
            residual
        };
        let now = residual(&values);
        let gradient = |column: &usize| {
            const STEP: f64 = 1e-5;
            let mut nudged = values.clone();
            nudged[*column] += STEP / robot.unit;
            let then = residual(&nudged);
            std::array::from_fn::<f64, 6, _>(|at| (now[at] - then[at]) / STEP)
        };
        let inner = |one: &[f64; 6], other: &[f64; 6]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
        let free: Vec<(usize, [f64; 6], f64)> = moved
            .iter()
            .map(|column| (*column, gradient(column)))
            .map(|(column, gradient)| {
                let pull = rest * robot.unit * (from[column] - values[column]);
                (column, gradient, inner(&gradient, &now) + pull)
            })
            .filter(|(column, _, push)| {
                let (least, most) = robot.columns[*column].range;
                !(values[*column] >= most && *push > 0.0 || values[*column] <= least && *push < 0.0)
            })
            .collect();
        let equation = |(row, (_, gradient, push)): (usize, &(usize, [f64; 6], f64))| {
            let mut equation: Vec<f64> = free.iter().map(|(_, other, _)| inner(gradient, other)).collect();
            equation[row] += DAMPING + rest;
            equation.push(*push);
            equation
        };
        let mut system: Vec<Vec<f64>> = free.iter().enumerate().map(equation).collect();
        let changes = solved(&mut system);
        let largest = changes.iter().fold(0.0, |largest: f64, change| largest.max(change.abs()));
        let scale = (MOST / largest.max(MOST)) / robot.unit;
        for ((column, ..), change) in free.iter().zip(changes) {
            values[*column] = robot.clamped(*column, values[*column] + scale * change);
        }
    }
    values
}

/// The solution of a positive definite system, each row with its right side last.
fn solved(system: &mut [Vec<f64>]) -> Vec<f64> {
    let count = system.len();
    for pivot in 0..count {
        let (above, below) = system.split_at_mut(pivot + 1);
        let row = &above[pivot];
        for other in below {
            let factor = other[pivot] / row[pivot];
            for (value, from) in other.iter_mut().zip(row).skip(pivot) {
                *value -= factor * from;
            }
        }
    }
    let mut solution = vec![0.0; count];
    for row in (0..count).rev() {
        let known: f64 = (row + 1..count).map(|at| system[row][at] * solution[at]).sum();
        solution[row] = (system[row][count] - known) / system[row][row];
    }
    solution
}

/// The sum of two vectors.
pub(super) fn add(one: Point, other: Point) -> Point {
    [one[0] + other[0], one[1] + other[1], one[2] + other[2]]
}

/// What is left of a vector without another.
pub(super) fn subtract(one: Point, other: Point) -> Point {
    [one[0] - other[0], one[1] - other[1], one[2] - other[2]]
}

/// The scalar product.
pub(super) fn dot(one: Point, other: Point) -> f64 {
    one[0] * other[0] + one[1] * other[1] + one[2] * other[2]
}

/// A vector, turned.
pub(super) fn apply(rotation: &Rotation, vector: Point) -> Point {
    [dot(rotation[0], vector), dot(rotation[1], vector), dot(rotation[2], vector)]
}

/// A vector, turned back.
pub(super) fn apply_back(rotation: &Rotation, vector: Point) -> Point {
    std::array::from_fn(|column| (0..3).map(|row| rotation[row][column] * vector[row]).sum())
}

/// The rotation about an axis by an angle in radians.
pub(super) fn about(axis: Axis, angle: f64) -> Rotation {
    let (sin, cos) = (sine(angle), sine(angle + std::f64::consts::FRAC_PI_2));
    match axis {
        Axis::X => [[1.0, 0.0, 0.0], [0.0, cos, -sin], [0.0, sin, cos]],
        Axis::Y => [[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]],
        Axis::BackY => [[cos, 0.0, -sin], [0.0, 1.0, 0.0], [sin, 0.0, cos]],
        Axis::Z => [[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]],
    }
}

fn product(one: &Rotation, other: &Rotation) -> Rotation {
    std::array::from_fn(|row| std::array::from_fn(|column| (0..3).map(|at| one[row][at] * other[at][column]).sum()))
}

/// The sine by its series, which is the same on every machine; the standard library's is not.
pub(super) fn sine(angle: f64) -> f64 {
    use std::f64::consts::TAU;
    let x = angle - TAU * (angle / TAU).round();
    let mut term = x;
    let mut sum = x;
    for k in 1..14 {
        let n = f64::from(2 * k);
        term *= -x * x / (n * (n + 1.0));
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::Synthetic;
    use super::*;

    #[test]
    fn sines_are_sines() {
        for step in -700..700 {
            let angle = f64::from(step) / 70.0;
            assert!((sine(angle) - angle.sin()).abs() < 1e-12, "{angle}");
        }
    }

    #[test]
    fn an_so101_at_rest_is_folded() {
        let robot = Synthetic::So101.robot();
        let posture = forward(&robot, &robot.arms[0], &[0.0, -100.0, 95.0, 70.0, 0.0, 0.0], [0.0; 3]);
        let [x, y, z] = posture.tip();
        assert!((0.0..0.15).contains(&x) && y.abs() < 1e-9 && (0.0..0.12).contains(&z), "{x} {y} {z}");
    }

    #[test]
    fn turning_back_undoes_turning() {
        let turn = product(&about(Axis::X, 0.3), &product(&about(Axis::Y, -1.1), &about(Axis::Z, 2.0)));
        let back = apply_back(&turn, apply(&turn, [0.1, -0.2, 0.3]));
        assert!(back.iter().zip([0.1, -0.2, 0.3]).all(|(one, other)| (one - other).abs() < 1e-12));
    }

    #[test]
    fn arms_reach_what_is_within_their_reach() {
        for synthetic in Synthetic::ALL {
            let robot = synthetic.robot();
            for arm in &robot.arms {
                let start = forward(&robot, arm, &robot.home(), [0.0; 3]).tip();
                let target = add(start, [-0.01, 0.02, -0.03]);
                let values = reach(&robot, arm, &robot.home(), [0.0; 3], target);
                let missed = subtract(forward(&robot, arm, &values, [0.0; 3]).tip(), target);
                assert!(dot(missed, missed) < 1e-6, "{}: {missed:?}", synthetic.name());
            }
        }
    }
}
