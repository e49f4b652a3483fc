//! From a script to commands: where everything is to be in every frame, before a person's hand shakes.
//!
//! A joint goes from one waypoint to the next along the minimum-jerk curve 10u³ − 15u⁴ + 6u⁵, which starts and ends at
//! rest, as people move; a base drives with constant acceleration, constant velocity and constant deceleration.

use std::ops::Range;

use rand_chacha::rand_core::RngCore;

use super::kinematics::{Axis, Point, about, add, apply, apply_back, forward, reach, subtract};
use super::noise::Noise;
use super::robot::Robot;
use super::script::{Act, Place, Step, Task};
use crate::draw::unit;

/// An episode as it was meant.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// The commands of each frame.
    pub(super) commands: Vec<Vec<f64>>,
    /// x, y and the angle in radians of the base in each frame.
    pub(super) bases: Vec<Point>,
    /// The class of each frame's segment.
    pub(super) phases: Vec<&'static str>,
    /// The frames of each segment.
    pub(super) segments: Vec<Range<usize>>,
    /// Where the things are at the start.
    pub(super) things: Vec<Point>,
    /// What happens to things, in the order of frames.
    pub(super) events: Vec<(usize, Event)>,
    /// Frames in which the hand of an arm is kept open by a thing of some girth.
    pub(super) kept_open: Vec<(usize, Range<usize>, f64)>,
}

/// A change of what holds a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// An arm has taken a thing.
    Taken { arm: usize, thing: usize },
    /// An arm has let go.
    Dropped { arm: usize },
}

/// Plans an episode of a task. All that is random is drawn from `random`.
pub(super) fn plan(robot: &Robot, task: &Task, noise: Noise, random: &mut impl RngCore) -> Plan {
    let mut planner = Planner::new(robot, task, random);
    let tempo = 0.9 + 0.25 * number(random);
    for step in &task.steps {
        planner.step(step, tempo, noise, random);
    }
    planner.plan
}

/// Minimum jerk: 0 to 1 in the time from 0 to 1.
pub(super) fn minimum_jerk(time: f64) -> f64 {
    let u = time.clamp(0.0, 1.0);
    u * u * u * (10.0 + u * (6.0 * u - 15.0))
}

/// A ramp up over a quarter of the time, constant velocity, and a ramp down.
fn trapezoid(time: f64) -> f64 {
    const RAMP: f64 = 0.25;
    let u = time.clamp(0.0, 1.0);
    let distance = |u: f64| if u < RAMP { u * u / (2.0 * RAMP) } else { u - RAMP / 2.0 };
    let covered = if u <= 0.5 { distance(u) } else { 2.0 * distance(0.5) - distance(1.0 - u) };
    covered / (1.0 - RAMP)
}

/// Where everything is after the steps so far.
struct Planner<'a> {
    robot: &'a Robot,
    task: &'a Task,
    home: Vec<f64>,
    values: Vec<f64>,
    base: Point,
    things: Vec<Point>,
    /// For each arm the thing that follows it, and how far from the tip it is.
    held: Vec<Option<(usize, Point)>>,
    /// For each arm from which frame a thing keeps its hand open.
    kept_since: Vec<Option<(usize, f64)>>,
    plan: Plan,
}

impl<'a> Planner<'a> {
    fn new(robot: &'a Robot, task: &'a Task, random: &mut impl RngCore) -> Planner<'a> {
        let either_way = |random: &mut _| 2.0 * number(random) - 1.0;
        let things: Vec<Point> = task
            .things
            .iter()
            .map(|thing| std::array::from_fn(|at| thing.at[at] + thing.spread[at] * either_way(random)))
            .collect();
        let mut home = robot.home();
        // Nobody starts twice in the same posture.
        for arm in &robot.arms {
            for joint in &arm.joints[arm.first_moved..] {
                let (least, most) = robot.columns[joint.column].range;
                home[joint.column] = robot.clamped(
                    joint.column,
                    robot.columns[joint.column].home + 0.01 * (most - least) * either_way(random),
                );
            }
        }
        Planner {
            robot,
            task,
            values: home.clone(),
            home,
            base: [0.0; 3],
            plan: Plan { things: things.clone(), ..Plan::default() },
            things,
            held: vec![None; robot.arms.len()],
            kept_since: vec![None; robot.arms.len()],
        }
    }

    /// Appends the frames of a step, and goes to its end.
    fn step(&mut self, step: &Step, tempo: f64, noise: Noise, random: &mut impl RngCore) {
        let from = self.plan.commands.len();
        let (values, base) = self.goal(step);
        let seconds = step.seconds * tempo * (0.9 + 0.2 * number(random));
        let moves = step.acts.iter().any(|act| matches!(act, Act::Tip(..) | Act::Home(_) | Act::DriveTo(..)));
        let times = times(seconds * f64::from(self.robot.fps), moves, noise, random);
        let early: Vec<f64> = values.iter().map(|_| noise.stagger() * number(random)).collect();
        let mut covered = 0.0;
        for time in times {
            let mut row: Vec<f64> = Vec::with_capacity(values.len());
            for (column, goal) in values.iter().enumerate() {
                let start = self.values[column];
                row.push(start + (goal - start) * minimum_jerk(time * (1.0 + early[column])));
            }
            let part = trapezoid(time);
            self.velocities(&mut row, base, part - covered);
            covered = part;
            let moved = subtract(base, self.base);
            self.plan.bases.push(std::array::from_fn(|at| self.base[at] + part * moved[at]));
            self.plan.commands.push(row);
            self.plan.phases.push(step.phase);
        }
        let frames = from..self.plan.commands.len();
        self.hands(step, &values, base, &frames);
        (self.values, self.base) = (values, base);
        for (arm, held) in self.held.iter().enumerate() {
            if let Some((thing, offset)) = held {
                let tip = forward(self.robot, &self.robot.arms[arm], &self.values, self.base).tip();
                self.things[*thing] = add(tip, *offset);
            }
        }
        self.plan.segments.push(frames);
    }

    /// The values of columns and the place of the base at the end of a step.
    fn goal(&self, step: &Step) -> (Vec<f64>, Point) {
        let (mut values, mut base) = (self.values.clone(), self.base);
        for act in &step.acts {
            match *act {
                Act::Joint(column, value) => values[column] = self.robot.clamped(column, value),
                Act::JointHome(column) => values[column] = self.home[column],
                Act::DriveTo(thing, [forward, left]) => {
                    let place = apply(&about(Axis::Z, base[2]), [forward, left, 0.0]);
                    (base[0], base[1]) = (self.things[thing][0] - place[0], self.things[thing][1] - place[1]);
                }
                Act::Turn(angle) => base[2] += angle * self.robot.unit,
                Act::Tip(..) | Act::Home(_) | Act::Take(..) | Act::Open(_) => {}
            }
        }
        // Arms last: where they can reach depends on waist, legs and base.
        for act in &step.acts {
            match *act {
                Act::Tip(arm, place) => {
                    let target = self.target(arm, place, base);
                    values = reach(self.robot, &self.robot.arms[arm], &values, base, target);
                }
                Act::Home(arm) => {
                    let arm = &self.robot.arms[arm];
                    for joint in &arm.joints[arm.first_moved..] {
                        values[joint.column] = self.home[joint.column];
                    }
                }
                Act::Take(arm, _) => {
                    self.robot.arms[arm].hand.iter().for_each(|finger| values[finger.column] = finger.closed);
                }
                Act::Open(arm) => {
                    self.robot.arms[arm].hand.iter().for_each(|finger| values[finger.column] = finger.open);
                }
                Act::Joint(..) | Act::JointHome(_) | Act::DriveTo(..) | Act::Turn(_) => {}
            }
        }
        (values, base)
    }

    fn target(&self, arm: usize, place: Place, base: Point) -> Point {
        match place {
            Place::At(thing, offset) => add(self.things[thing], offset),
            Place::By(vector) => {
                let tip = forward(self.robot, &self.robot.arms[arm], &self.values, self.base).tip();
                add(tip, apply(&about(Axis::Z, base[2]), vector))
            }
            Place::Point(point) => add([base[0], base[1], 0.0], apply(&about(Axis::Z, base[2]), point)),
        }
    }

    /// Writes the velocities with which the base covers a part of its way in one frame.
    fn velocities(&self, row: &mut [f64], goal: Point, part: f64) {
        let Some(base) = self.robot.base else { return };
        let way = subtract(goal, self.base);
        let ahead = apply_back(&about(Axis::Z, self.base[2]), [way[0], way[1], 0.0]);
        let rate = part * f64::from(self.robot.fps);
        for (column, distance) in base.columns.into_iter().zip([ahead[0], ahead[1], way[2] / self.robot.unit]) {
            row[column] = distance * rate;
        }
    }

    /// What the hands take and drop in a step.
    fn hands(&mut self, step: &Step, values: &[f64], base: Point, frames: &Range<usize>) {
        for act in &step.acts {
            match *act {
                Act::Take(arm, thing) => {
                    let tip = forward(self.robot, &self.robot.arms[arm], values, base).tip();
                    for held in &mut self.held {
                        // What is handed over follows the hand that took it last.
                        *held = held.filter(|(other, _)| *other != thing);
                    }
                    self.held[arm] = Some((thing, subtract(self.things[thing], tip)));
                    self.kept_since[arm] = Some((frames.start, self.task.things[thing].girth));
                    self.plan.events.push((frames.end, Event::Taken { arm, thing }));
                }
                Act::Open(arm) => {
                    self.held[arm] = None;
                    if let Some((since, girth)) = self.kept_since[arm].take() {
                        self.plan.kept_open.push((arm, since..frames.end, girth));
                    }
                    self.plan.events.push((frames.start, Event::Dropped { arm }));
                }
                _ => {}
            }
        }
        // A hand that never opens again keeps what it has to the end.
        self.plan.kept_open.retain(|(_, frames, _)| frames.end != usize::MAX);
        for (arm, since) in self.kept_since.iter().enumerate() {
            if let Some((since, girth)) = since {
                self.plan.kept_open.push((arm, *since..usize::MAX, *girth));
            }
        }
    }
}

/// The times of a step's frames, from just above 0 to 1. With a hesitation time nearly stops for a moment.
fn times(frames: f64, moves: bool, noise: Noise, random: &mut impl RngCore) -> Vec<f64> {
    const SLOWED: f64 = 0.15;
    let count = frames.round().max(3.0);
    let (whether, place, length) = (number(random), 0.3 + 0.35 * number(random), number(random));
    let hesitates = moves && count > 40.0 && whether < noise.hesitation();
    // A fifth to two fifths of a motion of one second and a half.
    let mut slow_frames = if hesitates { (6.0 + 6.0 * length).round() } else { 0.0 };
    let mut time = 0.0;
    let mut times = Vec::new();
    while time < 1.0 - 0.5 / count {
        let slowed = time >= place && slow_frames > 0.0;
        if slowed {
            slow_frames -= 1.0;
        }
        time += if slowed { SLOWED } else { 1.0 } / count;
        times.push(time.min(1.0));
    }
    if let Some(last) = times.last_mut() {
        *last = 1.0;
    }
    times
}

/// A number in `[0, 1)`.
fn number(random: &mut impl RngCore) -> f64 {
    f64::from(unit(random))
}

#[cfg(test)]
mod tests {
    use super::super::Synthetic;
    use super::super::kinematics::dot;
    use super::*;
    use crate::draw::{Purpose, generator};

    #[test]
    fn curves_go_from_0_to_1_and_start_and_end_at_rest() {
        for curve in [minimum_jerk, trapezoid] {
            assert!(curve(0.0).abs() < 1e-12 && (curve(1.0) - 1.0).abs() < 1e-12 && (curve(0.5) - 0.5).abs() < 1e-12);
            assert!(curve(0.01) < 1e-3 && curve(0.99) > 1.0 - 1e-3);
            assert!((1..=100).all(|at| curve(f64::from(at) / 100.0) >= curve(f64::from(at - 1) / 100.0)));
        }
    }

    #[test]
    fn a_hesitation_makes_a_motion_longer_and_nothing_else() {
        let mut random = generator(3, Purpose::SyntheticRobot, [0, 0]);
        let lengths: Vec<usize> = (0..40)
            .map(|_| {
                let times = times(60.0, true, Noise::Severe, &mut random);
                assert!(times.windows(2).all(|pair| pair[0] < pair[1]) && times.last() == Some(&1.0));
                times.len()
            })
            .collect();
        assert!(lengths.contains(&60) && lengths.iter().any(|length| *length > 64), "{lengths:?}");
        assert_eq!(times(60.0, true, Noise::None, &mut random).len(), 60);
    }

    /// A script whose hand does not come to the thing that it takes shows something else than it says.
    #[test]
    fn hands_are_at_the_things_that_they_take() {
        for synthetic in Synthetic::ALL {
            let robot = synthetic.robot();
            for (number, task) in robot.tasks.iter().enumerate() {
                for episode in 0..6 {
                    let mut random = generator(1, Purpose::SyntheticRobot, [number as u64, episode]);
                    let mut planner = Planner::new(&robot, task, &mut random);
                    for step in &task.steps {
                        for act in &step.acts {
                            let Act::Take(arm, thing) = *act else { continue };
                            let tip = forward(&robot, &robot.arms[arm], &planner.values, planner.base).tip();
                            let missed = subtract(planner.things[thing], tip);
                            let outside: Point =
                                std::array::from_fn(|at| (missed[at].abs() - task.things[thing].half[at]).max(0.0));
                            let place = format!("{}: {}: {}", synthetic.name(), task.instruction, step.phase);
                            assert!(dot(outside, outside) < 0.015 * 0.015, "{place}: {missed:?}");
                        }
                        planner.step(step, 1.0, Noise::None, &mut random);
                    }
                    assert!(planner.held.iter().all(Option::is_none) || planner.robot.base.is_some());
                }
            }
        }
    }
}
