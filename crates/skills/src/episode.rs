//! An episode as its motions: where every part of the robot is, and what was commanded.

use std::ops::Range;

use clustering::Points;

use crate::error::SkillError;
use crate::layout::{ActionLayout, Control, Group, Space};
use rotation::Orientation;

/// The position of each group of a robot, in the group's coordinates.
pub type Position = Vec<Vec<f64>>;

/// One episode.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    rows: usize,
    paths: Vec<Path>,
    /// For each gripper its commands.
    grippers: Vec<Vec<f32>>,
    /// For each gripper whether it is commanded to close, row by row.
    closed: Vec<Vec<bool>>,
}

/// What one group does.
#[derive(Clone, Debug, PartialEq)]
struct Path {
    dims: usize,
    /// `[rows + 1, dims]`: before each row, and after the last one.
    positions: Vec<f64>,
    /// `[rows, dims]`: changes of the commanded position, or commands as they are.
    commands: Vec<f64>,
}

/// Some rows of an episode: one segment.
#[derive(Clone, Debug)]
pub struct Motion<'a> {
    episode: &'a Episode,
    rows: Range<usize>,
}

impl Episode {
    /// Reads an episode.
    ///
    /// # Shapes
    /// `actions` is `[n, layout.width]`, `states` `[n, any]`.
    ///
    /// # Errors
    /// On actions of another width than the layout's, states of another length, and columns that the states do not have.
    pub fn new(layout: &ActionLayout, actions: Points<'_>, states: Option<Points<'_>>) -> Result<Episode, SkillError> {
        layout.validate()?;
        if actions.width() != layout.width {
            return Err(SkillError::OtherWidth { found: actions.width(), wanted: layout.width });
        }
        if let Some(states) = states.filter(|states| states.len() != actions.len()) {
            return Err(SkillError::OtherRows { states: states.len(), actions: actions.len() });
        }
        let paths: Result<Vec<Path>, SkillError> =
            layout.groups.iter().map(|group| path(group, layout.fps, actions, states)).collect();
        let of = |column: usize| actions.rows().map(move |row| row[column]).collect::<Vec<f32>>();
        let grippers: Vec<Vec<f32>> = layout.grippers.iter().map(|gripper| of(gripper.column)).collect();
        let closed = layout.grippers.iter().zip(&grippers);
        let closed = closed.map(|(gripper, commands)| commands.iter().map(|one| gripper.closed(*one)).collect());
        Ok(Episode { rows: actions.len(), paths: paths?, closed: closed.collect(), grippers })
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Where the robot is before a row.
    pub fn position(&self, row: usize) -> Position {
        self.paths.iter().map(|path| path.position(row.min(self.rows)).to_vec()).collect()
    }

    /// Some of its rows.
    ///
    /// # Errors
    /// On rows that it does not have, or none.
    pub fn motion(&self, rows: &Range<usize>) -> Result<Motion<'_>, SkillError> {
        if rows.end > self.rows {
            return Err(SkillError::NotCovered { found: rows.end, wanted: self.rows });
        }
        if rows.is_empty() {
            return Err(SkillError::EmptySegment { segment: rows.start });
        }
        Ok(Motion { episode: self, rows: rows.clone() })
    }

    /// The commands of one coordinate of a group, row by row.
    pub fn commands(&self, group: usize, dim: usize) -> Vec<f64> {
        let path = &self.paths[group];
        (0..self.rows).map(|row| path.commands[row * path.dims + dim]).collect()
    }

    /// Where one coordinate of a group is before each row.
    pub(crate) fn places(&self, group: usize, dim: usize) -> Vec<f64> {
        let path = &self.paths[group];
        (0..self.rows).map(|row| path.positions[row * path.dims + dim]).collect()
    }

    /// For each gripper whether it is commanded to close, row by row.
    pub(crate) fn closed(&self) -> &[Vec<bool>] {
        &self.closed
    }

    /// What a replay of the same start commands: positions of groups whose position is in the state are not known then, only
    /// commands are.
    pub(crate) fn replayed(
        layout: &ActionLayout,
        actions: Points<'_>,
        recorded: &Episode,
    ) -> Result<Episode, SkillError> {
        let mut blind = layout.clone();
        blind.groups.iter_mut().for_each(|group| group.states.clear());
        let mut episode = Episode::new(&blind, actions, None)?;
        for (path, recorded) in episode.paths.iter_mut().zip(&recorded.paths) {
            path.positions[..path.dims].copy_from_slice(recorded.position(0));
        }
        Ok(episode)
    }

    /// What a group is judged by, row by row: commands, or with absolute control how far positions are from the first one.
    pub(crate) fn signal(&self, group: &Group, at: usize, dim: usize) -> Vec<f64> {
        match group.control {
            Control::Relative | Control::Velocity => self.commands(at, dim),
            Control::Absolute => {
                let path = &self.paths[at];
                let position = |row: usize| path.positions[row * path.dims + dim];
                (1..=self.rows).map(|row| position(row) - position(0)).collect()
            }
        }
    }

    /// For each gripper its commands, row by row.
    pub fn grippers(&self) -> &[Vec<f32>] {
        &self.grippers
    }
}

impl Path {
    fn position(&self, row: usize) -> &[f64] {
        &self.positions[row * self.dims..(row + 1) * self.dims]
    }
}

impl Motion<'_> {
    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it has no rows, which it always has.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Where the robot is when it ends.
    pub fn end(&self) -> Position {
        self.episode.position(self.rows.end)
    }

    /// How far a group moves.
    pub fn displacement(&self, group: usize) -> Vec<f64> {
        let path = &self.episode.paths[group];
        let ends = path.position(self.rows.end).iter().zip(path.position(self.rows.start));
        ends.map(|(end, start)| end - start).collect()
    }

    /// The commands of one coordinate of a group, row by row.
    pub(crate) fn commands(&self, group: usize, dim: usize) -> Vec<f64> {
        let path = &self.episode.paths[group];
        self.rows.clone().map(|row| path.commands[row * path.dims + dim]).collect()
    }

    /// For each gripper whether it is commanded to close when the motion ends.
    pub fn closed(&self) -> Vec<bool> {
        self.episode.closed.iter().map(|closed| closed[self.rows.end - 1]).collect()
    }

    /// For each gripper the command when the motion ends.
    pub(crate) fn gripper_commands(&self) -> Vec<f64> {
        self.episode.grippers.iter().map(|commands| f64::from(commands[self.rows.end - 1])).collect()
    }
}

fn path(group: &Group, fps: f64, actions: Points<'_>, states: Option<Points<'_>>) -> Result<Path, SkillError> {
    let (rows, dims) = (actions.len(), group.dims());
    let picked =
        |row: &[f32], columns: &[usize]| columns.iter().map(|column| f64::from(row[*column])).collect::<Vec<_>>();
    let raw = || actions.rows().flat_map(|row| picked(row, &group.columns)).collect::<Vec<f64>>();
    if let Some(column) = group.states.iter().find(|column| states.is_some_and(|states| **column >= states.width())) {
        let found = format!("`{}`: state column {column}", group.name);
        return Err(SkillError::BadSetting { name: "a group of the layout", found, wanted: "columns of the states" });
    }
    let state = |row: usize| states.map(|states| coordinates(group, &picked(states.row(row), &group.states)));
    let needs_states = group.control == Control::Relative && group.anchored();
    if needs_states && states.is_none() {
        return Err(SkillError::OtherRows { states: 0, actions: rows });
    }
    let mut positions: Vec<f64> = Vec::with_capacity((rows + 1) * dims);
    match group.control {
        Control::Absolute => {
            let commanded: Vec<Vec<f64>> =
                actions.rows().map(|row| coordinates(group, &picked(row, &group.columns))).collect();
            // Nothing was commanded before the first row: then the robot is where it is seen.
            let seen = if group.states.is_empty() || rows == 0 { None } else { state(0) };
            let first = seen.filter(|seen| seen.len() == dims).or_else(|| commanded.first().cloned());
            positions.extend(first.unwrap_or_else(|| vec![0.0; dims]));
            positions.extend(commanded.into_iter().flatten());
        }
        Control::Relative if needs_states => {
            (0..rows).for_each(|row| positions.extend(state(row).unwrap_or_default()));
            // Where the last command leads is not recorded.
            let last = rows.checked_sub(1).and_then(state);
            positions.extend(last.unwrap_or_else(|| vec![0.0; dims]));
        }
        Control::Relative | Control::Velocity => {
            let duration = if group.control == Control::Velocity { 1.0 / fps } else { 1.0 };
            positions.extend(std::iter::repeat_n(0.0, dims));
            for (at, value) in raw().into_iter().enumerate() {
                positions.push(positions[at] + value * duration);
            }
        }
    }
    let commands = match group.control {
        Control::Absolute => (0..rows * dims).map(|at| positions[at + dims] - positions[at]).collect(),
        Control::Relative | Control::Velocity => raw(),
    };
    Ok(Path { dims, positions, commands })
}

/// The coordinates of a position that is given as the dataset writes it.
pub(crate) fn coordinates(group: &Group, numbers: &[f64]) -> Vec<f64> {
    match &group.space {
        Space::Joints | Space::Pose(None) => numbers.to_vec(),
        Space::Pose(Some(orientation)) => {
            let (place, rotation) = numbers.split_at(numbers.len().min(3));
            [place, &orientation.coordinates(rotation)].concat()
        }
    }
}

/// A position as the dataset writes it, from its coordinates; `near` are commands that the data have.
pub(crate) fn written(space: &Space, coordinates: &[f64], near: &[f64]) -> Vec<f64> {
    let turns = near.get(3..).unwrap_or_default();
    let rotated =
        |orientation: &Orientation| [&coordinates[..3], &orientation.written(&coordinates[3..], turns)].concat();
    match space {
        Space::Pose(Some(orientation)) if coordinates.len() == 6 => rotated(orientation),
        _ => coordinates.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Gripper;

    fn layout(control: Control, states: Vec<usize>) -> ActionLayout {
        let group = Group {
            name: "arm".to_owned(),
            space: Space::Joints,
            control,
            columns: vec![0, 1],
            names: Vec::new(),
            states,
            limits: vec![[-10.0, 10.0]; 2],
            fast: vec![1.0; 2],
        };
        let gripper =
            Gripper { name: "gripper".to_owned(), column: 2, threshold: 0.5, closes_above: false, limits: [0.0, 1.0] };
        ActionLayout { width: 3, fps: 10.0, groups: vec![group], grippers: vec![gripper] }
    }

    const ACTIONS: [f32; 9] = [1.0, 2.0, 0.0, 2.0, 4.0, 0.0, 4.0, 8.0, 1.0];
    const STATES: [f32; 6] = [0.5, 1.0, 1.0, 2.0, 2.0, 4.0];

    fn read(layout: &ActionLayout) -> Episode {
        let states = Points::new(&STATES, 2).unwrap();
        Episode::new(layout, Points::new(&ACTIONS, 3).unwrap(), Some(states)).unwrap()
    }

    #[test]
    fn commanded_positions_are_those_of_absolute_control() {
        let episode = read(&layout(Control::Absolute, vec![0, 1]));
        let positions: Vec<Position> = (0..4).map(|row| episode.position(row)).collect();
        assert_eq!(positions, [[[0.5, 1.0]], [[1.0, 2.0]], [[2.0, 4.0]], [[4.0, 8.0]]]);
        let motion = episode.motion(&(1..3)).unwrap();
        assert_eq!((motion.displacement(0), motion.commands(0, 0)), (vec![3.0, 6.0], vec![1.0, 2.0]));
        // The gripper closes at low commands here, and what counts is where a motion ends.
        assert_eq!((motion.closed(), motion.gripper_commands()), (vec![false], vec![1.0]));
        assert_eq!(episode.motion(&(0..2)).unwrap().closed(), [true]);
        // Without a state the robot starts where the first command leads.
        let blind = read(&layout(Control::Absolute, vec![]));
        assert_eq!(blind.position(0), [[1.0, 2.0]]);
    }

    #[test]
    fn states_are_the_positions_of_relative_control_and_sums_those_of_velocities() {
        let episode = read(&layout(Control::Relative, vec![0, 1]));
        assert_eq!((episode.position(0), episode.position(3)), (vec![vec![0.5, 1.0]], vec![vec![2.0, 4.0]]));
        let summed = read(&layout(Control::Relative, vec![]));
        assert_eq!((summed.position(0), summed.position(3)), (vec![vec![0.0, 0.0]], vec![vec![7.0, 14.0]]));
        let driven = read(&layout(Control::Velocity, vec![]));
        assert!((driven.position(3)[0][0] - 0.7).abs() < 1e-12);
        assert_eq!(driven.motion(&(0..3)).unwrap().commands(0, 1), [2.0, 4.0, 8.0]);
    }

    #[test]
    fn rows_that_are_not_there_are_refused() {
        let episode = read(&layout(Control::Absolute, vec![]));
        assert!(episode.motion(&(2..4)).is_err() && episode.motion(&(2..2)).is_err());
        let relative = layout(Control::Relative, vec![0, 5]);
        let (actions, states) = (Points::new(&ACTIONS, 3).unwrap(), Points::new(&STATES, 2).unwrap());
        assert!(Episode::new(&relative, actions, Some(states)).is_err());
        let relative = layout(Control::Relative, vec![0, 1]);
        assert!(Episode::new(&relative, actions, None).is_err());
        assert!(Episode::new(&relative, Points::new(&[], 3).unwrap(), None).is_err());
    }
}
