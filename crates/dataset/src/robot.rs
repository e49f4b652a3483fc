//! What is known of a robot's columns: which action is the gripper's, which states are the end effector's position and
//! the fingers.
//!
//! Widths say nothing: seven actions may be six axes and a gripper or seven joints. What is claimed here comes from the
//! names of dimensions in `info.json`, checked by a measurement where one is possible, and each claim carries its
//! evidence. **What neither names nor numbers tell is not known**, and callers say less then.
//!
//! | claim | names | measurement |
//! |---|---|---|
//! | gripper command | the only action with `gripper` in its name | without names, the only action that takes exactly two values |
//! | which command closes | – | the opening that follows a high command is smaller than the one that follows a low one |
//! | position in metres | `x`, `y`, `z`, also with `ee`, `eef`, `tcp`, `pos` | all within a robot's reach |
//! | two fingers | the only two states with `gripper` or `finger` in their names | – |
//!
//! Directions follow REP 103, the convention of ROS: x is forward, y left, z up.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::columns::Matrix;
use crate::open::Dataset;

/// Coordinates of an end effector that are metres lie within this distance of the origin.
const REACH: f32 = 3.0;

/// The least range that coordinates of an end effector have if it moved at all, in metres.
const LEAST_RANGE: f32 = 0.02;

/// Frames after which a gripper has followed its command.
const FOLLOWED: usize = 5;

/// Mean openings differ by this share of their range or more, if the command is what makes the difference.
const LEAST_SHARE: f64 = 0.1;

/// Words that may stand beside the axis in the name of a coordinate.
const POSITION_WORDS: [&str; 8] = ["ee", "eef", "tcp", "pos", "position", "robot0", "end", "effector"];

/// What is known of a robot's columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RobotLayout {
    /// The gripper command among the actions.
    pub gripper: Option<GripperCommand>,
    /// The end effector's position among the states.
    pub position: Option<Position>,
    /// The gripper's fingers among the states.
    pub fingers: Option<Fingers>,
}

/// The column of actions that opens and closes the gripper.
#[derive(Clone, Debug, PartialEq)]
pub struct GripperCommand {
    /// The column.
    pub column: usize,
    /// Half-way between the lowest and the highest command; zero if the command never changes.
    pub threshold: f32,
    /// Whether commands above the threshold close the gripper; unknown without fingers to measure it by.
    pub closes_above: Option<bool>,
    /// How this is known.
    pub evidence: String,
}

/// The columns of states that are the end effector's coordinates in metres: x forward, y left, z up.
#[derive(Clone, Debug, PartialEq)]
pub struct Position {
    /// The columns of x, y and z.
    pub columns: [usize; 3],
    /// How this is known.
    pub evidence: String,
}

/// The columns of states that are the two fingers of a gripper.
#[derive(Clone, Debug, PartialEq)]
pub struct Fingers {
    /// Their columns.
    pub columns: [usize; 2],
    /// For each of them 1 or −1, so that the sum of both with these signs grows as the gripper opens.
    pub signs: [f64; 2],
    /// How this is known.
    pub evidence: String,
}

impl RobotLayout {
    /// Finds out what can be known of a dataset's columns.
    pub fn of(dataset: &Dataset) -> RobotLayout {
        let names = |key: &str| dataset.info().feature(key).and_then(|feature| feature.dimension_names());
        let (states, actions) = (&dataset.columns().states, &dataset.columns().actions);
        let state_names = names(&dataset.roles().state).unwrap_or_default();
        let action_names = names(&dataset.roles().action);
        let fingers = fingers(&state_names, states);
        let mut layout = RobotLayout { gripper: None, position: position(&state_names, states), fingers };
        layout.gripper = gripper(action_names.as_deref(), actions).map(|(column, mut evidence)| {
            let threshold = threshold(actions, column);
            let closes_above = layout.closes_above(dataset, column, threshold);
            if let Some(above) = closes_above {
                let side = if above { "above" } else { "below" };
                evidence.push_str(&format!("; after commands {side} {threshold} the fingers are closer together"));
            }
            GripperCommand { column, threshold, closes_above, evidence }
        });
        layout
    }

    /// How far the end effector moves from the first to the last of some frames, in metres.
    pub fn displacement(&self, dataset: &Dataset, frames: &Range<usize>) -> Option<[f64; 3]> {
        let columns = self.position.as_ref()?.columns;
        let last = frames.end.checked_sub(1).filter(|last| *last >= frames.start)?;
        let states = &dataset.columns().states;
        Some(columns.map(|column| value(states, last, column) - value(states, frames.start, column)))
    }

    /// How far the gripper is open in a frame, in the unit of the fingers' columns. Only differences mean something.
    pub fn opening(&self, dataset: &Dataset, frame: usize) -> Option<f64> {
        let Fingers { columns, signs, .. } = self.fingers.as_ref()?;
        let states = &dataset.columns().states;
        Some(columns.iter().zip(signs).map(|(column, sign)| sign * value(states, frame, *column)).sum())
    }

    /// Whether high commands are followed by a smaller opening than low ones; `None` if that cannot be seen.
    fn closes_above(&self, dataset: &Dataset, column: usize, threshold: f32) -> Option<bool> {
        self.fingers.as_ref()?;
        let actions = &dataset.columns().actions;
        let (mut sums, mut counts) = ([0.0; 2], [0.0; 2]);
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for span in dataset.spans() {
            for frame in span.frames.clone() {
                let opening = self.opening(dataset, (frame + FOLLOWED).min(span.frames.end - 1))?;
                let high = usize::from(actions.values[frame * actions.width + column] > threshold);
                sums[high] += opening;
                counts[high] += 1.0;
                (least, most) = (least.min(opening), most.max(opening));
            }
        }
        let [low, high] = [sums[0] / counts[0], sums[1] / counts[1]];
        // Without commands on one side the mean is not a number, and nothing is seen.
        ((high - low).abs() > LEAST_SHARE * (most - least)).then_some(high < low)
    }
}

fn value(matrix: &Matrix, row: usize, column: usize) -> f64 {
    f64::from(matrix.values[row * matrix.width + column])
}

/// The column of the gripper command, and how it is known.
fn gripper(names: Option<&[String]>, actions: &Matrix) -> Option<(usize, String)> {
    if let Some(names) = names {
        let named = names.iter().map(|name| name.to_ascii_lowercase().contains("gripper"));
        return match named.enumerate().filter(|(_, is)| *is).map(|(column, _)| column).collect::<Vec<_>>()[..] {
            [column] => Some((column, format!("action {column} is called `{}`", names[column]))),
            _ => None,
        };
    }
    let two: Vec<(usize, [f32; 2])> =
        (0..actions.width).filter_map(|column| Some((column, two_values(actions, column)?))).collect();
    match two[..] {
        [(column, [low, high])] if actions.width > 1 => Some((
            column,
            format!("actions have no names, and action {column} alone takes only the values {low} and {high}"),
        )),
        _ => None,
    }
}

/// The two values of a column that has exactly two, in ascending order.
fn two_values(matrix: &Matrix, column: usize) -> Option<[f32; 2]> {
    let mut known: BTreeSet<u32> = BTreeSet::new();
    for row in matrix.values.chunks_exact(matrix.width.max(1)) {
        // Both zeros are one value.
        known.insert((row[column] + 0.0).to_bits());
        if known.len() > 2 {
            return None;
        }
    }
    let values: Vec<f32> = known.into_iter().map(f32::from_bits).collect();
    match values[..] {
        [one, other] => Some([one.min(other), one.max(other)]),
        _ => None,
    }
}

/// Half-way between the lowest and the highest value.
fn threshold(matrix: &Matrix, column: usize) -> f32 {
    let (least, most) = range(matrix, column);
    if most > least { (least + most) / 2.0 } else { 0.0 }
}

fn range(matrix: &Matrix, column: usize) -> (f32, f32) {
    let values = matrix.values.chunks_exact(matrix.width.max(1)).map(|row| row[column]);
    values.fold((f32::INFINITY, f32::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)))
}

/// Coordinates by their names, if there is one of each axis and they can be metres.
fn position(names: &[String], states: &Matrix) -> Option<Position> {
    let mut columns = [0; 3];
    for (axis, column) in ["x", "y", "z"].iter().zip(&mut columns) {
        let named: Vec<usize> = (0..names.len()).filter(|&at| is_coordinate(&names[at], axis)).collect();
        let [only] = named[..] else { return None };
        *column = only;
    }
    let ranges = columns.map(|column| range(states, column));
    let within = ranges.iter().all(|(least, most)| *least >= -REACH && *most <= REACH);
    let moves = ranges.iter().any(|(least, most)| most - least >= LEAST_RANGE);
    let called = columns.map(|column| format!("`{}`", names[column])).join(", ");
    (within && moves).then(|| Position {
        columns,
        evidence: format!(
            "states are called {called}, and all their values are within {REACH} of 0, as metres would be"
        ),
    })
}

/// Whether a name such as `x`, `ee.x` or `eef_pos_x` is that of a coordinate on an axis.
fn is_coordinate(name: &str, axis: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> =
        name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|it| !it.is_empty()).collect();
    let axes = words.iter().filter(|word| **word == axis).count();
    axes == 1 && words.iter().all(|word| *word == axis || POSITION_WORDS.contains(word))
}

/// Two fingers by their names. A finger that moves below zero opens downwards.
fn fingers(names: &[String], states: &Matrix) -> Option<Fingers> {
    let is_finger = |name: &String| ["gripper", "finger"].iter().any(|word| name.to_ascii_lowercase().contains(word));
    let named: Vec<usize> = (0..names.len()).filter(|&at| is_finger(&names[at])).collect();
    let [one, other] = named[..] else { return None };
    let columns = [one, other];
    let signs = columns.map(|column| {
        let (least, most) = range(states, column);
        if least + most < 0.0 { -1.0 } else { 1.0 }
    });
    Some(Fingers { columns, signs, evidence: format!("states are called `{}` and `{}`", names[one], names[other]) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::Overrides;

    fn embedded() -> Dataset {
        Dataset::open(crate::embedded("libero_goal_mini").unwrap(), &Overrides::default()).unwrap()
    }

    /// The same without names of states and actions.
    fn nameless() -> Dataset {
        let mut dataset = embedded();
        dataset.info.features.iter_mut().for_each(|(_, feature)| feature.names = None);
        dataset
    }

    #[test]
    fn libero_is_known_by_its_names() {
        let layout = RobotLayout::of(&embedded());
        let gripper = layout.gripper.as_ref().unwrap();
        assert_eq!((gripper.column, gripper.threshold, gripper.closes_above), (6, 0.0, Some(true)));
        assert!(gripper.evidence.starts_with("action 6 is called `gripper`; after commands above 0"), "{gripper:?}");
        assert_eq!(layout.position.as_ref().unwrap().columns, [0, 1, 2]);
        let fingers = layout.fingers.as_ref().unwrap();
        assert_eq!((fingers.columns, fingers.signs), ([6, 7], [1.0, -1.0]));
        let dataset = embedded();
        let moved = layout.displacement(&dataset, &(0..10)).unwrap();
        let states = &dataset.columns().states.values;
        assert_eq!(moved[2], f64::from(states[9 * 8 + 2]) - f64::from(states[2]));
        assert!(layout.opening(&dataset, 0).unwrap() > 0.02);
    }

    #[test]
    fn without_names_only_what_is_measured_is_known() {
        let layout = RobotLayout::of(&nameless());
        let gripper = layout.gripper.unwrap();
        assert_eq!((gripper.column, gripper.closes_above), (6, None));
        assert!(gripper.evidence.contains("takes only the values -1 and 1"), "{}", gripper.evidence);
        assert_eq!((layout.position, layout.fingers), (None, None));

        // A gripper that can stop half-way cannot be told from an axis.
        let mut dataset = nameless();
        dataset.columns.actions.values[6] = 0.25;
        assert_eq!(RobotLayout::of(&dataset), RobotLayout::default());
    }

    #[test]
    fn names_of_something_else_claim_nothing() {
        let joints = |key: &str| -> Vec<String> { (0..key.len()).map(|at| format!("joint_{at}")).collect() };
        let mut dataset = embedded();
        for (key, feature) in &mut dataset.info.features {
            let width = feature.width();
            if key == "observation.state" || key == "action" {
                feature.names = Some(serde_json::json!(joints(&"j".repeat(width))));
            }
        }
        assert_eq!(RobotLayout::of(&dataset), RobotLayout::default());
        assert!(is_coordinate("ee.x", "x") && is_coordinate("eef_pos_z", "z") && is_coordinate("X", "x"));
        assert!(!is_coordinate("axis_x", "x") && !is_coordinate("qx", "x") && !is_coordinate("x_y", "x"));
    }

    #[test]
    fn coordinates_beyond_reach_are_not_metres() {
        let mut dataset = embedded();
        dataset.columns.states.values.iter_mut().for_each(|value| *value *= 1000.0);
        assert_eq!(RobotLayout::of(&dataset).position, None);
    }
}
