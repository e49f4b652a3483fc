//! Names of segments by their motion alone: `move 12 cm left, gripper open`, `turn shoulder pan and elbow flex`.

use std::ops::Range;

use skills::{ActionLayout, Episode, SkillMotion, Space};

/// Coordinates that are metres lie within this distance of the origin.
const REACH: f64 = 3.0;

/// A part of the robot is named if it moves at least this share of the part that moves most.
const NAMED: f64 = 0.5;

/// The least motion of a part that is named, as seconds at its fast speed.
const LEAST: f64 = 0.05;

/// The most joints that a name lists.
const JOINTS: usize = 2;

/// A name for some rows of an episode, from what the robot does in them.
pub fn motion_name(episode: &Episode, layout: &ActionLayout, rows: &Range<usize>) -> String {
    motion_of(episode, layout, rows).words().unwrap_or_else(|| "move".to_owned())
}

fn motion_of(episode: &Episode, layout: &ActionLayout, rows: &Range<usize>) -> SkillMotion {
    let Ok(motion) = episode.motion(rows) else { return SkillMotion::default() };
    let mut found = SkillMotion { segments: 1, ..SkillMotion::default() };
    let poses: Vec<usize> =
        (0..layout.groups.len()).filter(|at| matches!(layout.groups[*at].space, Space::Pose(_))).collect();
    if let ([pose], true) = (&poses[..], layout.groups.len() == 1) {
        let ends = [rows.start, rows.end].map(|row| episode.position(row)[*pose].clone());
        let metres = layout.groups[*pose].anchored() && ends.iter().flatten().take(3).all(|one| one.abs() <= REACH);
        if let (true, &[x, y, z, ..]) = (metres, &motion.displacement(*pose)[..]) {
            found.displacement = Some([x, y, z]);
            found.distance = Some((x * x + y * y + z * z).sqrt());
        }
    }
    if found.displacement.is_none() {
        (found.parts, found.joints) = moving(layout, |at, dim| moved(episode, layout, at, dim, rows));
    }
    let grippers = layout.grippers.iter().zip(episode.grippers());
    let states: Vec<(String, bool)> =
        grippers.map(|(gripper, commands)| (gripper.name.clone(), gripper.closed(commands[rows.end - 1]))).collect();
    if let ([(_, closed)], [gripper], [commands]) = (&states[..], &layout.grippers[..], episode.grippers()) {
        let range = gripper.limits[1] - gripper.limits[0];
        let before = commands[rows.start.saturating_sub(1)];
        let change = f64::from(commands[rows.end - 1] - before) / range.max(1e-9);
        let opening = if gripper.closes_above { -change } else { change };
        found.closed = Some(*closed);
        found.opening = Some(opening);
        found.opening_share = Some(opening);
    } else {
        found.grippers = states;
    }
    found
}

/// How far a coordinate of a group goes in some rows, as seconds at its fast speed.
fn moved(episode: &Episode, layout: &ActionLayout, at: usize, dim: usize, rows: &Range<usize>) -> f64 {
    episode.commands(at, dim)[rows.clone()].iter().sum::<f64>().abs() / one_second(layout, at, dim)
}

/// The sum of the commands of a second at the fast speed of a coordinate; infinite if it never moves.
pub(crate) fn one_second(layout: &ActionLayout, at: usize, dim: usize) -> f64 {
    let group = &layout.groups[at];
    let rate = if group.control == skills::Control::Absolute { 1.0 } else { layout.fps };
    if group.fast[dim] > 1e-9 { group.fast[dim] * rate } else { f64::INFINITY }
}

/// The groups that move most, and of those whose joints have names the joints that do; `moved` says how far a coordinate of a
/// group goes, as seconds at its fast speed.
pub(crate) fn moving(layout: &ActionLayout, moved: impl Fn(usize, usize) -> f64) -> (Vec<String>, Vec<String>) {
    let amounts: Vec<Vec<f64>> = layout
        .groups
        .iter()
        .enumerate()
        .map(|(at, group)| (0..group.fast.len()).map(|dim| moved(at, dim)).collect())
        .collect();
    let largest = |amounts: &[f64]| amounts.iter().copied().fold(0.0, f64::max);
    let most = amounts.iter().map(|own| largest(own)).fold(0.0, f64::max);
    let named = |amount: f64| amount >= LEAST && amount >= NAMED * most;
    let (mut parts, mut joints) = (Vec::new(), Vec::new());
    for (group, own) in layout.groups.iter().zip(&amounts).filter(|(_, own)| named(largest(own))) {
        if group.names.is_empty() {
            parts.push(group.name.clone());
            continue;
        }
        let told = group.names.iter().zip(own).filter(|(_, amount)| named(**amount));
        joints.extend(told.map(|(name, amount)| (name.clone(), *amount)));
    }
    // The joints that move most, in the order of the robot.
    let mut ranked: Vec<f64> = joints.iter().map(|(_, amount)| *amount).collect();
    ranked.sort_by(|one, other| other.total_cmp(one));
    let least = ranked.get(JOINTS - 1).copied().unwrap_or(0.0);
    let joints = joints.into_iter().filter(|(_, amount)| *amount >= least).take(JOINTS).map(|(name, _)| name);
    (parts, joints.collect())
}

#[cfg(test)]
mod tests {
    use skills::{Control, Group};

    use super::*;

    fn layout() -> ActionLayout {
        let arm = Group {
            name: "arm".to_owned(),
            space: Space::Joints,
            control: Control::Absolute,
            columns: vec![0, 1, 2],
            names: ["shoulder pan", "shoulder lift", "elbow flex"].map(str::to_owned).to_vec(),
            states: Vec::new(),
            limits: vec![[-90.0, 90.0]; 3],
            fast: vec![50.0; 3],
        };
        let base = Group { name: "base".to_owned(), columns: vec![3], names: Vec::new(), ..arm.clone() };
        ActionLayout { width: 4, fps: 20.0, groups: vec![arm, base], grippers: Vec::new() }
    }

    #[test]
    fn joints_that_move_most_are_named_in_the_order_of_the_robot() {
        let told = |arm: [f64; 3], base: f64| moving(&layout(), |at, dim| if at == 0 { arm[dim] } else { base });
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(told([0.6, 0.1, 0.9], 0.0), (names(&[]), names(&["shoulder pan", "elbow flex"])));
        assert_eq!(told([0.6, 0.8, 0.9], 0.0), (names(&[]), names(&["shoulder lift", "elbow flex"])));
        assert_eq!(told([0.0, 0.8, 0.0], 0.9), (names(&["base"]), names(&["shoulder lift"])));
        assert_eq!(told([0.01, 0.0, 0.02], 0.0), (names(&[]), names(&[])));
    }

    #[test]
    fn amounts_are_seconds_of_fast_motion() {
        let mut layout = layout();
        assert!((one_second(&layout, 0, 1) - 50.0).abs() < 1e-9);
        layout.groups[0].control = Control::Relative;
        assert!((one_second(&layout, 0, 1) - 1000.0).abs() < 1e-9);
        layout.groups[0].fast[1] = 0.0;
        assert!(one_second(&layout, 0, 1).is_infinite());
    }
}
