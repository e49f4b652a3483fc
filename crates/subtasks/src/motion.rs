//! Names of segments by their motion alone: `move about 10 cm left, gripper open`, `turn shoulder pan and elbow flex`.
//!
//! Distances are rounded, so that a dataset has few names and a name occurs in many episodes.

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

/// The distances that names tell apart, in metres, so that they repeat from episode to episode: each is twice the one before.
const DISTANCES: [f64; 7] = [0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6];

/// Shorter distances are staying in place, in metres.
const STILL: f64 = 0.01;

/// A name for some rows of an episode, from what the robot does in them.
pub fn motion_name(episode: &Episode, layout: &ActionLayout, rows: &Range<usize>) -> String {
    let motion = rounded(motion_of(episode, layout, rows));
    let grips: Vec<Grip> = layout
        .grippers
        .iter()
        .zip(episode.grippers())
        .map(|(gripper, commands)| {
            let closed = |row: usize| commands.get(row).is_some_and(|command| gripper.closed(*command));
            let (before, after) = (closed(rows.start.saturating_sub(1)), closed(rows.end.saturating_sub(1)));
            Grip { name: gripper.name.clone(), before, after }
        })
        .collect();
    name_of(&motion, &grips)
}

/// What a gripper does.
struct Grip {
    name: String,
    /// Whether it is closed before and at the end.
    before: bool,
    after: bool,
}

/// The name of a motion, given what its grippers do.
fn name_of(motion: &SkillMotion, grips: &[Grip]) -> String {
    if let (Some(_), Some(distance)) = (motion.displacement, motion.distance) {
        let words = motion.words().unwrap_or_else(|| STAYING.to_owned());
        let exactly = format!("{} cm", (distance * 100.0).round());
        return words.replacen(&exactly, &format!("about {exactly}"), 1);
    }
    let (bases, parts): (Vec<_>, Vec<_>) =
        motion.parts.iter().cloned().partition(|part| part.split(' ').any(|it| it == "base"));
    let drives = if bases.is_empty() { None } else { Some("drive".to_owned()) };
    let others = SkillMotion { segments: 1, parts, joints: motion.joints.clone(), ..SkillMotion::default() }.words();
    let travel = drives.into_iter().chain(others).collect::<Vec<_>>().join(" and ");
    let travel = Some(travel).filter(|travel| !travel.is_empty());
    if let [_] = grips {
        let gripper =
            SkillMotion { parts: Vec::new(), joints: Vec::new(), ..motion.clone() }.words().unwrap_or_default();
        let changes = gripper.ends_with(" gripper");
        return match travel {
            None if changes => gripper,
            None => format!("{STAYING}, {gripper}"),
            Some(travel) if changes => {
                let doing = if gripper.starts_with("close") { "closing" } else { "opening" };
                format!("{travel} while {doing} the gripper")
            }
            Some(travel) => format!("{travel}, {gripper}"),
        };
    }
    let changed =
        |after: bool| grips.iter().filter(|grip| grip.before != grip.after && grip.after == after).collect::<Vec<_>>();
    let told =
        [(true, ["close", "closing"]), (false, ["open", "opening"])].map(|(after, verbs)| (changed(after), verbs));
    let told = |form: usize, article: &str| {
        let of = |(which, verbs): &(Vec<&Grip>, [&str; 2])| match &which[..] {
            [] => None,
            all if all.len() == grips.len() => Some(format!("{} {article}grippers", verbs[form])),
            [one, ..] if which.len() == 1 => Some(format!("{} {article}{}", verbs[form], one.name)),
            several => {
                let names: Vec<&str> = several.iter().map(|grip| grip.name.as_str()).collect();
                Some(format!("{} {article}{}", verbs[form], names.join(" and ")))
            }
        };
        Some(told.iter().filter_map(of).collect::<Vec<_>>().join(" and ")).filter(|told| !told.is_empty())
    };
    let word = |closed: bool| if closed { "closed" } else { "open" };
    let state = match grips {
        [] => String::new(),
        [first, others @ ..] if others.iter().all(|grip| grip.after == first.after) => {
            format!(", grippers {}", word(first.after))
        }
        _ => grips.iter().map(|grip| format!(", {} {}", grip.name, word(grip.after))).collect(),
    };
    match (travel, told(0, ""), told(1, "the ")) {
        (None, Some(alone), _) => alone,
        (None, None, _) => format!("{STAYING}{state}"),
        (Some(travel), _, Some(meanwhile)) => format!("{travel} while {meanwhile}"),
        (Some(travel), _, None) => format!("{travel}{state}"),
    }
}

/// What a robot does that does nothing.
const STAYING: &str = "stay in place";

/// A motion over the nearest of a few distances, in proportion.
fn rounded(mut motion: SkillMotion) -> SkillMotion {
    if let (Some(by), Some(distance)) = (&mut motion.displacement, &mut motion.distance)
        && *distance >= STILL
    {
        let away = |one: &f64| (one / *distance).ln().abs();
        let nearest = DISTANCES.into_iter().min_by(|one, other| away(one).total_cmp(&away(other))).unwrap_or(*distance);
        let scale = nearest / *distance;
        by.iter_mut().for_each(|part| *part *= scale);
        *distance = nearest;
    }
    motion
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
    fn grippers_are_named_where_they_move_and_bases_drive() {
        let grip = |name: &str, before, after| Grip { name: format!("{name} gripper"), before, after };
        let two =
            |left: [bool; 2], right: [bool; 2]| [grip("left", left[0], left[1]), grip("right", right[0], right[1])];
        let still = SkillMotion { segments: 1, ..SkillMotion::default() };
        let (stays, closes, opens) = ([true; 2], [false, true], [true, false]);
        assert_eq!(name_of(&still, &two(closes, stays)), "close left gripper");
        assert_eq!(name_of(&still, &two(closes, closes)), "close grippers");
        assert_eq!(name_of(&still, &two(closes, opens)), "close left gripper and open right gripper");
        assert_eq!(name_of(&still, &two(stays, stays)), "stay in place, grippers closed");
        assert_eq!(name_of(&still, &[]), "stay in place");
        let parts =
            |parts: &[&str]| SkillMotion { parts: parts.iter().map(|it| (*it).to_owned()).collect(), ..still.clone() };
        assert_eq!(
            name_of(&parts(&["base"]), &two([false; 2], stays)),
            "drive, left gripper open, right gripper closed"
        );
        assert_eq!(
            name_of(&parts(&["base", "left arm"]), &two(opens, stays)),
            "drive and move left arm while opening the left gripper"
        );
        // A single gripper says how far it goes.
        let one = |share: f64| SkillMotion { closed: Some(true), opening_share: Some(share), ..parts(&["base"]) };
        assert_eq!(name_of(&one(0.0), &[grip("", true, true)]), "drive, gripper closed");
        assert_eq!(name_of(&one(-0.5), &[grip("", false, true)]), "drive while closing the gripper");
        let alone = SkillMotion { parts: Vec::new(), ..one(0.0) };
        assert_eq!(name_of(&alone, &[grip("", true, true)]), "stay in place, gripper closed");
        assert_eq!(
            name_of(&SkillMotion { opening_share: Some(-0.5), ..alone }, &[grip("", false, true)]),
            "close gripper"
        );
    }

    #[test]
    fn distances_are_rounded_so_that_names_repeat() {
        let moved = |by: [f64; 3], closed: bool| {
            let distance = by.iter().map(|part| part * part).sum::<f64>().sqrt();
            let motion = SkillMotion {
                segments: 1,
                displacement: Some(by),
                distance: Some(distance),
                closed: Some(closed),
                ..SkillMotion::default()
            };
            name_of(&rounded(motion), &[])
        };
        assert_eq!(moved([0.0, 0.12, 0.0], false), "move about 10 cm left, gripper open");
        assert_eq!(moved([0.0, 0.08, 0.0], false), moved([0.0, 0.13, 0.0], false));
        assert_eq!(moved([0.0, 0.0, 0.16], true), "lift about 20 cm");
        assert_eq!(moved([0.09, 0.09, 0.0], true), "move about 10 cm forward and left, gripper closed");
        assert_eq!(moved([0.002, 0.0, 0.0], true), "stay in place, gripper closed");
        assert_eq!(moved([9.0, 0.0, 0.0], true), "move about 160 cm forward, gripper closed");
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
