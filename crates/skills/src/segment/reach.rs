//! Reaches: an empty hand on its way to a grasp.
//!
//! Manipulation is planned in phases that contacts delimit (Flanagan, Bowman and Johansson 2006): reach until the fingers touch,
//! lift, carry, put down. A hand that holds nothing may take a detour on its way, such as above a thing and then down to
//! it, and slow down on the last centimetres; it has one purpose as long as it comes nearer to where it closes. While it
//! carries something, the same detours are phases: what is lifted, carried and put down makes and breaks contacts.
//!
//! With g the place where a gripper is next commanded to close and no gripper closed until then, let
//!
//! ```text
//! f(t) = ‖x_t − g‖ + NEARER · (way from the start to x_t)
//! ```
//!
//! which falls as long as a hand moves towards g by more than that share of its way. A reach is the longest stretch of rows
//! before the grasp on which f never rises by more than DETOUR of the largest distance from g.

use std::ops::Range;

use crate::episode::Episode;
use crate::layout::{ActionLayout, Space};

/// The share of its way by which a hand on a reach comes nearer.
const NEARER: f64 = 0.2;

/// How far a hand may stray, as a share of its largest distance.
const DETOUR: f64 = 0.1;

/// Seconds over which places are averaged, so that a tremor is no way.
const SMOOTH: f64 = 0.2;

/// The share of its travel by which a gripper has begun to close.
const BEGUN: f64 = 0.05;

/// Seconds that a reach may begin before or after the place where a hand comes nearer.
const MARGIN: f64 = 0.4;

/// For each reach the rows at which an episode is not cut.
pub(super) fn reaches(episode: &Episode, layout: &ActionLayout) -> Vec<Range<usize>> {
    let closed = |row: usize| episode.closed().iter().any(|gripper| gripper[row]);
    let mut found = Vec::new();
    let (mut opened, mut paths) = (None, None);
    for row in 0..episode.len() {
        match (closed(row), opened) {
            (false, None) => opened = Some(row),
            (true, Some(start)) => {
                let paths = paths.get_or_insert_with(|| hand(episode, layout));
                let until = (0..episode.closed().len())
                    .filter(|gripper| episode.closed()[*gripper][row])
                    .map(|gripper| begins(&episode.grippers()[gripper], start..row));
                let until = until.min().unwrap_or(row);
                found.extend(reach(paths, start..row, until, layout.fps));
                opened = None;
            }
            _ => (),
        }
    }
    found
}

/// The reach that ends with a grasp after `rows`, in which no gripper is closed; it begins to close at `until`.
fn reach(paths: &[Vec<f64>], rows: Range<usize>, until: usize, fps: f64) -> Option<Range<usize>> {
    let apart =
        |one: usize, other: usize| paths.iter().map(|path| (path[one] - path[other]).powi(2)).sum::<f64>().sqrt();
    let distances: Vec<f64> = rows.clone().map(|row| apart(row, rows.end)).collect();
    let most = distances.iter().copied().fold(0.0, f64::max);
    let mut way = 0.0;
    let falling: Vec<f64> = (rows.clone().zip(&distances))
        .map(|(row, distance)| {
            way += if row > rows.start { apart(row - 1, row) } else { 0.0 };
            distance + NEARER * way
        })
        .collect();
    let (mut first, mut highest) = (distances.len().checked_sub(1)?, f64::NEG_INFINITY);
    for (at, value) in falling.iter().enumerate().rev() {
        if highest - value > DETOUR * most {
            break;
        }
        if *value > highest {
            (first, highest) = (at, *value);
        }
    }
    let margin = (MARGIN * fps).round() as usize;
    // Only another motion before it makes the start of a reach uncertain.
    let first = if first <= margin { 0 } else { first + margin };
    // A command that says how far begins slowly.
    let until = if until < rows.end { until.saturating_sub(margin) } else { until };
    (rows.start + first < until).then_some(rows.start + first..until)
}

/// The row at which a gripper begins to close that is closed after `rows`: at once, or on the way of a command that says how far.
fn begins(commands: &[f32], rows: Range<usize>) -> usize {
    let (closed, own) = (commands[rows.end], &commands[rows.clone()]);
    let travel = |command: f32| f64::from((command - closed).abs());
    let widest = own.iter().map(|command| travel(*command)).fold(0.0, f64::max);
    own.iter()
        .rposition(|command| travel(*command) >= (1.0 - BEGUN) * widest)
        .map_or(rows.end, |at| rows.start + at + 1)
}

/// The coordinates of all hands, as shares of their range: places of poses, and all joints.
fn hand(episode: &Episode, layout: &ActionLayout) -> Vec<Vec<f64>> {
    let mut paths = Vec::new();
    for (at, group) in layout.groups.iter().enumerate() {
        let dims = if matches!(group.space, Space::Pose(_)) { group.dims().min(3) } else { group.dims() };
        let own: Vec<Vec<f64>> = (0..dims).map(|dim| episode.places(at, dim)).collect();
        let range = |path: &Vec<f64>| {
            let ends = path.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[a, b], one| [a.min(*one), b.max(*one)]);
            ends[1] - ends[0]
        };
        let most = own.iter().map(range).fold(0.0, f64::max);
        if most > 0.0 {
            paths.extend(own.iter().map(|path| smooth(path, most, layout.fps)));
        }
    }
    paths
}

/// The way from the first place as a share of a range, averaged over a moment around each row.
fn smooth(path: &[f64], range: f64, fps: f64) -> Vec<f64> {
    let half = (SMOOTH * fps / 2.0).round() as usize;
    let sums: Vec<f64> = std::iter::once(0.0)
        .chain(path.iter().scan(0.0, |sum, one| {
            *sum += (one - path[0]) / range;
            Some(*sum)
        }))
        .collect();
    let mean = |row: usize| {
        let own = row.saturating_sub(half)..(row + half + 1).min(path.len());
        (sums[own.end] - sums[own.start]) / own.len() as f64
    };
    (0..path.len()).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use clustering::Points;

    use super::*;
    use crate::layout::{Control, Gripper, Group};
    use crate::{SegmentConfig, segment};

    /// Two axes of velocities at 20 frames per second, sideways and up, and a gripper.
    fn layout() -> ActionLayout {
        let group = Group {
            name: "hand".to_owned(),
            space: Space::Joints,
            control: Control::Relative,
            columns: vec![0, 1],
            names: Vec::new(),
            states: Vec::new(),
            limits: vec![[-1.0, 1.0]; 2],
            fast: vec![1.0; 2],
        };
        let gripper =
            Gripper { name: "gripper".to_owned(), column: 2, threshold: 0.0, closes_above: true, limits: [-1.0, 1.0] };
        ActionLayout { width: 3, fps: 20.0, groups: vec![group], grippers: vec![gripper] }
    }

    /// Rows of some motions: how many, sideways, up, and the gripper's command.
    fn cut(motions: &[(usize, f32, f32, f32)], config: &SegmentConfig) -> Vec<Range<usize>> {
        let rows: Vec<f32> = motions.iter().flat_map(|(rows, x, z, grip)| [*x, *z, *grip].repeat(*rows)).collect();
        let layout = layout();
        let episode = Episode::new(&layout, Points::new(&rows, 3).unwrap(), None).unwrap();
        segment(&episode, &layout, config).unwrap()
    }

    #[test]
    fn above_a_thing_and_down_to_it_is_one_reach_but_not_with_something_in_the_hand() {
        let config = SegmentConfig::subtasks();
        let reach = [(20, 0.8, 0.0, -1.0), (15, 0.0, -0.8, -1.0), (10, 0.0, 0.0, 1.0)];
        assert_eq!(cut(&reach, &config), [0..35, 35..45]);
        let off = SegmentConfig { whole_reach: false, ..config.clone() };
        assert_eq!(cut(&reach, &off), [0..20, 20..35, 35..45]);
        // The same way with a closed gripper, which then opens.
        let place = reach.map(|(rows, x, z, grip)| (rows, x, z, -grip));
        assert_eq!(cut(&place, &config), [0..20, 20..35, 35..45]);
        // An open hand that never closes does not reach for anything.
        let waves = [(20, 0.8, 0.0, -1.0), (15, 0.0, -0.8, -1.0)];
        assert_eq!(cut(&waves, &config), [0..20, 20..35]);
    }

    #[test]
    fn a_hand_that_first_moves_away_does_not_reach_yet() {
        let retreat = [(12, 0.0, 0.8, -1.0), (30, 0.8, 0.0, -1.0), (24, 0.0, -0.8, -1.0), (10, 0.0, 0.0, 1.0)];
        assert_eq!(cut(&retreat, &SegmentConfig::subtasks()), [0..12, 12..66, 66..76]);
    }

    #[test]
    fn a_gripper_that_closes_slowly_ends_a_reach_when_it_begins() {
        let commands: Vec<f32> = [vec![-1.0; 20], (0..20).map(|row| row as f32 / 10.0 - 0.9).collect()].concat();
        assert_eq!(begins(&commands, 0..30), 20);
        // At once.
        assert_eq!(begins(&[-1.0, -1.0, -1.0, 1.0], 0..3), 3);
    }
}
