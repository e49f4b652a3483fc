//! From commands to a recording: the tremor of the hand that commands, the lag of the robot that follows, the noise of
//! its sensors, and what the cameras see.

use rand_chacha::rand_core::RngCore;
use rayon::prelude::*;

use super::kinematics::{Point, add, forward, subtract};
use super::noise::{Noise, Tremor};
use super::picture::{Scene, picture};
use super::plan::{Event, Plan, plan};
use super::robot::Robot;
use super::script::Task;
use crate::draw::bell;
use crate::frame::Frame;

/// An episode as a dataset has it.
#[derive(Clone, Debug)]
pub(super) struct Recording {
    /// `observation.state`, row by row.
    pub(super) states: Vec<f32>,
    /// `action`, row by row.
    pub(super) actions: Vec<f32>,
    /// The class of each frame's segment.
    pub(super) phases: Vec<&'static str>,
    /// The number of segments.
    pub(super) segments: usize,
    /// The pictures of each camera.
    pub(super) pictures: Vec<Vec<Frame>>,
}

/// Records an episode of a task.
pub(super) fn record(robot: &Robot, task: &Task, noise: Noise, random: &mut impl RngCore) -> Recording {
    let plan = plan(robot, task, noise, random);
    let lag = noise.lag(random);
    let commands = shaken(robot, &plan, noise, random);
    let followed = followed(robot, &plan, &commands, lag);
    let scenes = scenes(robot, &plan, &followed, lag);
    let pictures = robot.cameras.iter().map(|camera| {
        let seen = scenes.par_iter().map(|scene| picture(robot, task, scene, camera));
        seen.collect()
    });
    let pictures = pictures.collect();
    let mut states = Vec::with_capacity(followed.len() * robot.columns.len());
    for row in &followed {
        for (value, column) in row.iter().zip(&robot.columns) {
            let (least, most) = column.range;
            states.push((value + noise.sensor() * (most - least) * f64::from(bell(random))) as f32);
        }
    }
    Recording {
        states,
        actions: commands.iter().flatten().map(|value| *value as f32).collect(),
        phases: plan.phases,
        segments: plan.segments.len(),
        pictures,
    }
}

/// The commands as a hand gives them. Arms shake, and hands less; a base is driven by keys, so it is still when it is
/// not driven; legs, waist and neck are moved by the robot itself.
fn shaken(robot: &Robot, plan: &Plan, noise: Noise, random: &mut impl RngCore) -> Vec<Vec<f64>> {
    let mut amounts = vec![0.0; robot.columns.len()];
    for arm in &robot.arms {
        arm.joints[arm.first_moved..].iter().for_each(|joint| amounts[joint.column] = 1.0);
        arm.hand.iter().for_each(|finger| amounts[finger.column] = 0.4);
    }
    let driven = robot.base.map(|base| base.columns).unwrap_or_default();
    let mut commands = plan.commands.clone();
    for (column, amount) in amounts.iter().enumerate() {
        let is_driven = robot.base.is_some() && driven.contains(&column);
        let amount = if is_driven { 4.0 } else { *amount };
        let (least, most) = robot.columns[column].range;
        let mut tremor = Tremor::new();
        for row in &mut commands {
            let shake = amount * noise.tremor() * (most - least) * tremor.next(random);
            if !is_driven || row[column] != 0.0 {
                row[column] = robot.clamped(column, row[column] + shake);
            }
        }
    }
    commands
}

/// What the robot makes of its commands, some frames later; a hand that holds a thing does not close further.
fn followed(robot: &Robot, plan: &Plan, commands: &[Vec<f64>], lag: usize) -> Vec<Vec<f64>> {
    let last = commands.len().saturating_sub(1);
    let at = |frame: usize, earlier: usize| frame.saturating_sub(earlier).min(last);
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(commands.len());
    for frame in 0..commands.len() {
        let [before, now, after] = [lag + 1, lag, lag - 1].map(|earlier| &commands[at(frame, earlier)]);
        let smooth = before.iter().zip(now).zip(after).map(|((before, now), after)| (before + 2.0 * now + after) / 4.0);
        let mut row: Vec<f64> = smooth.collect();
        for (arm, frames, girth) in &plan.kept_open {
            if frames.contains(&at(frame, lag)) {
                for finger in &robot.arms[*arm].hand {
                    let opening = (row[finger.column] - finger.closed) / (finger.open - finger.closed);
                    row[finger.column] = finger.closed + opening.max(*girth) * (finger.open - finger.closed);
                }
            }
        }
        rows.push(row);
    }
    rows
}

/// Where everything is in each frame.
fn scenes(robot: &Robot, plan: &Plan, followed: &[Vec<f64>], lag: usize) -> Vec<Scene> {
    let mut things = plan.things.clone();
    let mut held: Vec<Option<(usize, Point)>> = vec![None; robot.arms.len()];
    let mut events = plan.events.iter().peekable();
    let mut scenes = Vec::with_capacity(followed.len());
    for (frame, row) in followed.iter().enumerate() {
        let base = plan.bases[frame.saturating_sub(lag)];
        let postures: Vec<_> = robot.arms.iter().map(|arm| forward(robot, arm, row, base)).collect();
        for (thing, offset, tip) in held.iter().zip(&postures).filter_map(|(held, posture)| {
            let (thing, offset) = (*held)?;
            Some((thing, offset, posture.tip()))
        }) {
            things[thing] = add(tip, offset);
        }
        while let Some((_, event)) = events.next_if(|(at, _)| at + lag <= frame) {
            match *event {
                Event::Taken { arm, thing } => {
                    held.iter_mut().for_each(|held| *held = held.filter(|(other, _)| *other != thing));
                    held[arm] = Some((thing, subtract(things[thing], postures[arm].tip())));
                }
                Event::Dropped { arm } => held[arm] = None,
            }
        }
        let opening = |hand: &[super::robot::Finger]| {
            let part =
                |finger: &super::robot::Finger| (row[finger.column] - finger.closed) / (finger.open - finger.closed);
            hand.iter().map(part).sum::<f64>() / (hand.len().max(1) as f64)
        };
        let openings = robot.arms.iter().map(|arm| opening(&arm.hand).clamp(0.0, 1.0)).collect();
        scenes.push(Scene { postures, openings, things: things.clone(), base });
    }
    scenes
}

#[cfg(test)]
mod tests {
    use super::super::Synthetic;
    use super::*;
    use crate::draw::{Purpose, generator};

    fn recorded(synthetic: Synthetic, task: usize, noise: Noise) -> (Robot, Recording) {
        let mut robot = synthetic.robot();
        robot.cameras.clear();
        let mut random = generator(5, Purpose::SyntheticRobot, [0, task as u64]);
        let recording = record(&robot, &robot.tasks[task], noise, &mut random);
        (robot, recording)
    }

    /// The mean distance of states from the actions so many frames before.
    fn distance(robot: &Robot, recording: &Recording, column: usize, lag: usize) -> f64 {
        let width = robot.columns.len();
        let rows = recording.phases.len();
        let value = |values: &[f32], row: usize| f64::from(values[row * width + column]);
        let apart = |row: usize| (value(&recording.states, row) - value(&recording.actions, row - lag)).abs();
        (10..rows).map(apart).sum::<f64>() / (rows - 10) as f64
    }

    #[test]
    fn states_follow_commands_two_to_five_frames_later() {
        for synthetic in Synthetic::ALL {
            let (robot, recording) = recorded(synthetic, 0, Noise::Mild);
            let arm = &robot.arms[robot.arms.len() - 1];
            let column = arm.joints[arm.first_moved].column;
            let nearest = (0..10).min_by(|one, other| {
                distance(&robot, &recording, column, *one).total_cmp(&distance(&robot, &recording, column, *other))
            });
            assert!(nearest.is_some_and(|lag| (2..=5).contains(&lag)), "{}: {nearest:?}", synthetic.name());
        }
    }

    #[test]
    fn a_gripper_stops_at_what_it_holds_while_its_command_goes_on() {
        let (robot, recording) = recorded(Synthetic::So101, 0, Noise::None);
        let finger = robot.arms[0].hand[0];
        let lifted = recording.phases.iter().rposition(|phase| *phase == "lift").unwrap();
        let at = lifted * robot.columns.len() + finger.column;
        let opening = |value: f32| (f64::from(value) - finger.closed) / (finger.open - finger.closed);
        assert!(opening(recording.actions[at]) < 0.01, "{}", recording.actions[at]);
        assert!((opening(recording.states[at]) - robot.tasks[0].things[1].girth).abs() < 0.02);
    }

    #[test]
    fn a_base_is_still_when_it_is_not_driven() {
        let (robot, recording) = recorded(Synthetic::Mobile, 0, Noise::Mild);
        let base = robot.base.unwrap();
        let width = robot.columns.len();
        let (mut driven, mut still) = (0, 0);
        for (row, phase) in recording.phases.iter().enumerate() {
            let moves = base.columns.iter().any(|column| recording.actions[row * width + column] != 0.0);
            if phase.contains("drive") || phase.contains("turn") {
                driven += usize::from(moves);
            } else {
                assert!(!moves, "row {row} of {phase}");
                still += 1;
            }
        }
        assert!(driven > 30 && still > 30, "{driven} {still}");
    }

    #[test]
    fn more_noise_is_seen_in_commands_and_states() {
        let roughness = |noise| {
            let (robot, recording) = recorded(Synthetic::Aloha, 0, noise);
            let width = robot.columns.len();
            let second = |values: &[f32], row: usize| {
                let value = |row: usize| f64::from(values[row * width]);
                (value(row + 1) - 2.0 * value(row) + value(row - 1)).powi(2)
            };
            let rows = recording.phases.len() - 1;
            let mean = |values: &[f32]| (1..rows).map(|row| second(values, row)).sum::<f64>() / rows as f64;
            (mean(&recording.actions), mean(&recording.states))
        };
        let levels = Noise::ALL.map(roughness);
        assert!(levels.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1), "{levels:?}");
    }
}
