//! Cuts that make every segment nearly straight.
//!
//! A call says where a motion ends, not which way it takes, and a controller goes there in a straight line. A demonstration
//! that carries something in an arc over the rim of a bowl is then carried into the rim. So a segment whose path leaves the
//! straight line between its ends is cut where it is farthest from it, again and again, as Douglas and Peucker (1973) simplify
//! lines. Coordinates that share a unit are compared with the range of their motion in the episode.

use std::ops::Range;

use crate::episode::Episode;
use crate::layout::{ActionLayout, Space};

/// Rotations may always be so far from straight, in radians: the range of an episode that hardly turns is mostly noise.
const LEAST_TURN: f64 = 0.1;

/// The coordinates of one unit with the distance from a straight line that they may have.
struct Block {
    group: usize,
    dims: Range<usize>,
    tolerance: f64,
}

/// Where a path is cut so that every part is nearly straight.
pub(super) struct Straightener {
    /// `[rows + 1][groups][dims]`.
    path: Vec<Vec<Vec<f64>>>,
    blocks: Vec<Block>,
    least: usize,
}

impl Straightener {
    /// `share` is the distance from a straight line, as a share of the range of motion in the episode; parts have `least` rows
    /// or more.
    pub(super) fn new(episode: &Episode, layout: &ActionLayout, share: f64, least: usize) -> Straightener {
        let path: Vec<Vec<Vec<f64>>> = (0..=episode.len()).map(|row| episode.position(row)).collect();
        let mut blocks = Vec::new();
        for (at, group) in layout.groups.iter().enumerate().filter(|(_, group)| group.anchored()) {
            let mut dim = 0;
            while dim < group.dims() {
                let dims = group.block(dim);
                dim = dims.end;
                let range = |dim: usize| {
                    let values = path.iter().map(|position| position[at][dim]);
                    let (least, most) =
                        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), x| (least.min(x), most.max(x)));
                    most - least
                };
                let range = dims.clone().map(range).fold(0.0, f64::max);
                let turns = matches!(group.space, Space::Pose(Some(_))) && dims.start >= 3;
                let tolerance = if turns { (share * range).max(LEAST_TURN) } else { share * range };
                blocks.push(Block { group: at, dims, tolerance });
            }
        }
        Straightener { path, blocks, least: least.max(1) }
    }

    /// The rows inside a segment at which it is cut, in order.
    pub(super) fn cuts(&self, segment: &Range<usize>) -> Vec<usize> {
        let mut cuts = Vec::new();
        self.cut(segment.clone(), &mut cuts);
        cuts
    }

    fn cut(&self, segment: Range<usize>, cuts: &mut Vec<usize>) {
        let inside = segment.start + self.least..(segment.end + 1).saturating_sub(self.least);
        let mut farthest = (1.0, None);
        for row in inside {
            let off = self.blocks.iter().map(|block| self.off(block, &segment, row)).fold(0.0, f64::max);
            farthest = if off > farthest.0 { (off, Some(row)) } else { farthest };
        }
        let Some(row) = farthest.1 else { return };
        self.cut(segment.start..row, cuts);
        cuts.push(row);
        self.cut(row..segment.end, cuts);
    }

    /// How far a row is from the straight line between the ends of a segment, in tolerances.
    fn off(&self, block: &Block, segment: &Range<usize>, row: usize) -> f64 {
        let at = |row: usize| &self.path[row][block.group][block.dims.clone()];
        let (start, end, now) = (at(segment.start), at(segment.end), at(row));
        let along: Vec<f64> = end.iter().zip(start).map(|(end, start)| end - start).collect();
        let way: Vec<f64> = now.iter().zip(start).map(|(now, start)| now - start).collect();
        let dot = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
        let length = dot(&along, &along);
        let share = if length > 0.0 { (dot(&along, &way) / length).clamp(0.0, 1.0) } else { 0.0 };
        let beside: Vec<f64> = way.iter().zip(&along).map(|(way, along)| way - share * along).collect();
        let off = dot(&beside, &beside).sqrt();
        if block.tolerance > 0.0 { off / block.tolerance } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use clustering::Points;

    use super::*;
    use crate::layout::{Control, Group};

    /// An episode that goes to these places of a plane, one a row.
    fn plane(places: &[[f64; 2]]) -> (Episode, ActionLayout) {
        let group = Group {
            name: "arm".to_owned(),
            space: Space::Pose(None),
            control: Control::Absolute,
            columns: vec![0, 1],
            names: Vec::new(),
            states: Vec::new(),
            limits: vec![[-10.0, 10.0]; 2],
            fast: vec![1.0; 2],
        };
        let layout = ActionLayout { width: 2, fps: 20.0, groups: vec![group], grippers: Vec::new() };
        let values: Vec<f32> = places.iter().flatten().map(|value| *value as f32).collect();
        (Episode::new(&layout, Points::new(&values, 2).unwrap(), None).unwrap(), layout)
    }

    fn cuts(places: &[[f64; 2]], share: f64, least: usize) -> Vec<usize> {
        let (episode, layout) = plane(places);
        Straightener::new(&episode, &layout, share, least).cuts(&(0..places.len()))
    }

    #[test]
    fn an_arc_is_cut_until_every_part_is_nearly_straight() {
        let arc: Vec<[f64; 2]> =
            (0..40).map(|row| f64::from(row) / 39.0 * 1.57).map(|turn| [turn.sin(), turn.cos()]).collect();
        let found = cuts(&arc, 0.05, 3);
        assert!(!found.is_empty());
        let ends: Vec<usize> = [vec![0], found, vec![arc.len() - 1]].concat();
        for part in ends.windows(2) {
            let [from, to] = [arc[part[0]], arc[part[1]]];
            let along = [to[0] - from[0], to[1] - from[1]];
            let length = along[0].hypot(along[1]);
            let off = |at: &[f64; 2]| ((at[0] - from[0]) * along[1] - (at[1] - from[1]) * along[0]).abs() / length;
            let most = arc[part[0]..part[1]].iter().map(off).fold(0.0, f64::max);
            assert!(most <= 0.06, "{part:?} is {most} off");
        }
        assert!(cuts(&arc, 0.01, 3).len() > cuts(&arc, 0.1, 3).len());
        assert!(
            cuts(&arc, 0.01, 10).windows(2).all(|pair| pair[1] - pair[0] >= 10),
            "parts are not shorter than asked for"
        );
    }

    #[test]
    fn a_straight_motion_is_not_cut_however_its_speed_changes() {
        let line: Vec<[f64; 2]> = (0..40).map(|row| (f64::from(row) / 39.0).powi(2)).map(|at| [at, 2.0 * at]).collect();
        assert_eq!(cuts(&line, 0.01, 3), Vec::<usize>::new());
        assert_eq!(cuts(&[[1.0, 1.0]; 9], 0.01, 1), Vec::<usize>::new(), "nor is a rest");
    }
}
