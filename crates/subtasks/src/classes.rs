//! Classes of segments without labels: what kinds of motions a dataset consists of.
//!
//! A segment is a point: how far each part of the robot moves, how long its way is, for how long, and what its grippers do. The
//! displacements of each part have the same variance over all segments, so that an arm of seven joints does not drown a
//! gripper; a way has the unit of its displacement, twice the time is one unit, and an open and a closed gripper are two
//! units apart. KMeans gives
//! k classes, and k minimises the description length of the points in nats,
//!
//! ```text
//! L(k) = n/2 · ln det(C_k + δ²)  +  n·H(classes)  +  k·(d + 1)/2 · ln n
//! ```
//!
//! with C_k the covariance of points about their centres, δ the precision that they are told apart with, H the entropy of the
//! classes, and d the number of coordinates that spread by more than δ. Points without clusters gain no more by closer centres
//! than naming the centre costs, so they are one class; coordinates that move together count once.
//!
//! Classes are found on a sample of the segments; every other segment gets the nearest centre. Same input, same classes.

use std::ops::Range;

use clustering::{KMeansConfig, Points, kmeans};
use dataset::{Dataset, RobotLayout};
use skills::{ActionLayout, Control, Episode, Group, SkillMotion, Space};

use crate::error::Result;
use crate::motion::{moving, one_second};

/// How classes are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassesConfig {
    /// The most classes.
    pub most: usize,
    /// The most segments that the classes are found on.
    pub points: usize,
    /// Random seed of the clustering.
    pub seed: u64,
}

impl Default for ClassesConfig {
    fn default() -> ClassesConfig {
        ClassesConfig { most: 64, points: 4096, seed: 0 }
    }
}

/// δ: distances between points below this share of the spread of a block are not told apart.
const PRECISION: f64 = 0.1;

/// The search ends after so many numbers of classes that give no shorter description.
const PATIENCE: usize = 8;

/// Samples per second of the way that a part moves along.
const SAMPLES: f64 = 10.0;

/// Classes of segments.
#[derive(Clone, Debug, PartialEq)]
pub struct Classes {
    /// What a segment's numbers are taken off and multiplied by.
    means: Vec<f64>,
    weights: Vec<f64>,
    /// `[count, width]`, in order of the number of members.
    centres: Vec<f64>,
    count: usize,
    /// Description length for 1, 2, … classes, in nats, less that of one class.
    pub lengths: Vec<f64>,
}

impl Classes {
    /// Finds the classes of some segments, each given by its features. No segments give one class.
    ///
    /// # Errors
    /// On features that are not finite.
    pub fn fit(layout: &ActionLayout, features: &[Vec<f64>], config: &ClassesConfig) -> Result<Classes> {
        let every = features.len().div_ceil(config.points.max(1)).max(1);
        let sample: Vec<&Vec<f64>> = features.iter().step_by(every).collect();
        let (means, weights) = scales(layout, &sample);
        let scaled: Vec<f32> =
            sample.iter().flat_map(|one| scaled(one, &means, &weights)).map(|value| value as f32).collect();
        let width = means.len().max(1);
        let n = sample.len();
        let one = Classes { centres: vec![0.0; width], count: 1, lengths: vec![0.0], means, weights };
        if n < 2 {
            return Ok(one);
        }
        let points = Points::new(&scaled, width)?;
        let rows: Vec<f64> = scaled.iter().map(|value| f64::from(*value)).collect();
        let whole = covariance(&rows, width, &vec![0; n], 1);
        let dims: f64 = (0..width).map(|at| whole[at * width + at]).map(|one| one / (one + PRECISION.powi(2))).sum();
        let mut best: Option<(f64, clustering::KMeans)> = None;
        let mut since = 0;
        let mut lengths = Vec::new();
        for clusters in 1..=config.most.min(n) {
            let settings =
                KMeansConfig { clusters, restarts: 4, swaps: 8, seed: config.seed, ..KMeansConfig::default() };
            let found = kmeans(points, &settings)?;
            let within = covariance(&rows, width, &found.labels, clusters);
            let length = description_length(n, clusters, dims, log_det(within, width), &found.labels);
            lengths.push(length);
            since += 1;
            if best.as_ref().is_none_or(|(least, _)| length < *least) {
                (best, since) = (Some((length, found)), 0);
            }
            if since >= PATIENCE {
                break;
            }
        }
        let Some((_, found)) = best else { return Ok(one) };
        let count = found.centres.len() / width;
        let mut members = vec![0_usize; count];
        found.labels.iter().for_each(|label| members[*label as usize] += 1);
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&class| (std::cmp::Reverse(members[class]), class));
        let centre = |class: &usize| found.centres[class * width..(class + 1) * width].iter().map(|it| f64::from(*it));
        let first = lengths[0];
        let lengths = lengths.into_iter().map(|length| length - first).collect();
        Ok(Classes { centres: order.iter().flat_map(centre).collect(), count, lengths, ..one })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The class of a segment, given by its features: the one of the nearest centre, the first of equals.
    pub fn of(&self, features: &[f64]) -> usize {
        let point: Vec<f64> = scaled(features, &self.means, &self.weights).collect();
        let away = |centre: &[f64]| centre.iter().zip(&point).map(|(one, other)| (one - other).powi(2)).sum::<f64>();
        let centres = self.centres.chunks_exact(point.len().max(1)).map(away).enumerate();
        centres.min_by(|one, other| one.1.total_cmp(&other.1)).map_or(0, |(class, _)| class)
    }
}

/// What a segment is, as numbers: for each place, rotation and set of joints its displacement and the length of its way, then the
/// logarithm of its seconds, then for each gripper whether it is closed before and at the end.
pub fn features(layout: &ActionLayout, episode: &Episode, rows: &Range<usize>) -> Result<Vec<f64>> {
    let motion = episode.motion(rows)?;
    let stride = ((layout.fps / SAMPLES).round() as usize).max(1);
    let parts: Vec<Vec<Range<usize>>> = layout.groups.iter().map(parts).collect();
    let mut ways: Vec<Vec<f64>> = parts.iter().map(|parts| vec![0.0; parts.len()]).collect();
    let mut before = episode.position(rows.start);
    for row in (rows.start + stride..rows.end).step_by(stride).chain([rows.end]) {
        let here = episode.position(row);
        for (group, parts) in parts.iter().enumerate() {
            for (way, part) in ways[group].iter_mut().zip(parts) {
                let (here, before) = (&here[group][part.clone()], &before[group][part.clone()]);
                *way += here.iter().zip(before).map(|(one, other)| (one - other).powi(2)).sum::<f64>().sqrt();
            }
        }
        before = here;
    }
    let mut found = Vec::new();
    for (group, parts) in parts.iter().enumerate() {
        let displacement = motion.displacement(group);
        for (part, way) in parts.iter().zip(&ways[group]) {
            found.extend_from_slice(&displacement[part.clone()]);
            found.push(*way);
        }
    }
    found.push((rows.len() as f64 / layout.fps).ln());
    let first = episode.motion(&(rows.start..rows.start + 1))?.closed();
    for (first, last) in first.into_iter().zip(motion.closed()) {
        found.extend([f64::from(u8::from(first)), f64::from(u8::from(last))]);
    }
    Ok(found)
}

/// A segment with its class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its frames of the dataset.
    pub frames: Range<usize>,
    /// Its class.
    pub class: usize,
    /// For each gripper whether it is closed at the end.
    pub closed: Vec<bool>,
}

/// Names of classes: the number, and the mean motion of their segments in words where it is known.
pub fn class_names(
    dataset: &Dataset,
    robot: &RobotLayout,
    layout: &ActionLayout,
    classes: usize,
    segments: &[Member],
) -> Vec<String> {
    let range = opening_range(dataset, robot);
    let name = |class: usize| {
        let members: Vec<&Member> = segments.iter().filter(|one| one.class == class).collect();
        match mean_motion(dataset, robot, layout, &members, range).words() {
            Some(words) => format!("class_{class} · {words}"),
            None => format!("class_{class}"),
        }
    };
    (0..classes).map(name).collect()
}

/// The range of all openings of the gripper; not above 0 where there are none.
pub fn opening_range(dataset: &Dataset, robot: &RobotLayout) -> f64 {
    let openings = || (0..dataset.frames()).filter_map(|frame| robot.opening(dataset, frame));
    openings().fold(f64::NEG_INFINITY, f64::max) - openings().fold(f64::INFINITY, f64::min)
}

/// How far end effector and gripper go in some segments, in the mean; `range` is [`opening_range`]. What the commands are is
/// left open.
pub fn mean_displacement(dataset: &Dataset, robot: &RobotLayout, segments: &[Range<usize>], range: f64) -> SkillMotion {
    let count = segments.len() as f64;
    let moved: Option<Vec<[f64; 3]>> = segments.iter().map(|frames| robot.displacement(dataset, frames)).collect();
    let moved = moved.filter(|moved| !moved.is_empty());
    let length = |by: &[f64; 3]| by.iter().map(|part| part * part).sum::<f64>().sqrt();
    let change = |frames: &Range<usize>| {
        Some(robot.opening(dataset, frames.end.checked_sub(1)?)? - robot.opening(dataset, frames.start)?)
    };
    let opened: Option<Vec<f64>> = segments.iter().map(change).collect();
    let opening = opened.filter(|opened| !opened.is_empty()).map(|opened| opened.iter().sum::<f64>() / count);
    SkillMotion {
        segments: segments.len(),
        displacement: moved
            .as_ref()
            .map(|moved| [0, 1, 2].map(|axis| moved.iter().map(|by| by[axis]).sum::<f64>() / count)),
        distance: moved.as_ref().map(|moved| moved.iter().map(length).sum::<f64>() / count),
        opening,
        opening_share: opening.filter(|_| range > 0.0).map(|opening| opening / range),
        ..SkillMotion::default()
    }
}

/// The mean motion of some segments; `range` is that of all openings of the gripper.
fn mean_motion(
    dataset: &Dataset,
    robot: &RobotLayout,
    layout: &ActionLayout,
    members: &[&Member],
    range: f64,
) -> SkillMotion {
    let frames: Vec<Range<usize>> = members.iter().map(|one| one.frames.clone()).collect();
    let displaced = mean_displacement(dataset, robot, &frames, range);
    // What most segments end with.
    let closed = |gripper: usize| {
        let closed = members.iter().filter(|one| one.closed.get(gripper).copied().unwrap_or(false)).count();
        2 * closed > members.len()
    };
    let grippers = layout.grippers.iter().enumerate().map(|(at, gripper)| (gripper.name.clone(), closed(at)));
    let several = layout.grippers.len() > 1;
    let (parts, joints) = match displaced.displacement {
        Some(_) => (Vec::new(), Vec::new()),
        None => moving(layout, |at, dim| mean_moved(dataset, layout, members, at, dim)),
    };
    SkillMotion {
        closed: (layout.grippers.len() == 1).then(|| closed(0)),
        parts,
        joints,
        grippers: if several { grippers.collect() } else { Vec::new() },
        ..displaced
    }
}

/// How far a coordinate of a group goes in a segment, as seconds at its fast speed: the mean of some segments.
fn mean_moved(dataset: &Dataset, layout: &ActionLayout, members: &[&Member], at: usize, dim: usize) -> f64 {
    let group = &layout.groups[at];
    // A rotation in another form than its columns has no column of its own.
    let Some(column) = group.columns.get(dim).copied().filter(|_| group.columns.len() == group.fast.len()) else {
        return 0.0;
    };
    let actions = &dataset.columns().actions;
    let action = |frame: usize| f64::from(actions.values[frame * actions.width + column]);
    let sum = |one: &&Member| match group.control {
        Control::Absolute => action(one.frames.end - 1) - action(one.frames.start),
        Control::Relative | Control::Velocity => one.frames.clone().map(action).sum(),
    };
    let total: f64 = members.iter().filter(|one| !one.frames.is_empty()).map(|one| sum(one).abs()).sum();
    total / members.len().max(1) as f64 / one_second(layout, at, dim)
}

/// The coordinates of a group that share a unit: a place, a rotation, or joints.
fn parts(group: &Group) -> Vec<Range<usize>> {
    let width = if matches!(group.space, Space::Pose(Some(_))) { 3 } else { group.dims().max(1) };
    (0..group.dims()).step_by(width).map(|start| start..start + width).collect()
}

/// Some features, and the unit that they are measured in.
enum Unit {
    /// Displacements with a way at the end: their spread, at least this.
    Spread(f64),
    /// A number.
    Fixed(f64),
}

/// Blocks of features with their units.
fn blocks(layout: &ActionLayout) -> Vec<(Range<usize>, Unit)> {
    let mut blocks = Vec::new();
    let mut at = 0;
    let mut block = |width: usize, unit: Unit| {
        blocks.push((at..at + width, unit));
        at += width;
    };
    for group in &layout.groups {
        // Millimetres and small turns are noise, also where nothing larger occurs.
        let pose = matches!(group.space, Space::Pose(_));
        for (which, part) in parts(group).iter().enumerate() {
            let least = if !pose { 1e-6 } else { [0.01, 0.1][which.min(1)] };
            block(part.len() + 1, Unit::Spread(least));
        }
    }
    block(1, Unit::Fixed(std::f64::consts::LN_2));
    layout.grippers.iter().for_each(|_| block(2, Unit::Fixed(0.5)));
    blocks
}

/// The mean of each feature, and what it is multiplied by.
fn scales(layout: &ActionLayout, sample: &[&Vec<f64>]) -> (Vec<f64>, Vec<f64>) {
    let (blocks, count) = (blocks(layout), sample.len().max(1) as f64);
    let width = blocks.last().map_or(0, |(block, _)| block.end);
    let means: Vec<f64> = (0..width).map(|at| sample.iter().map(|one| one[at]).sum::<f64>() / count).collect();
    let mut weights = vec![0.0; width];
    for (block, unit) in blocks {
        let square = |at: usize| sample.iter().map(|one| (one[at] - means[at]).powi(2)).sum::<f64>() / count;
        let unit = match unit {
            Unit::Spread(least) => (block.start..block.end - 1).map(square).sum::<f64>().sqrt().max(least),
            Unit::Fixed(unit) => unit,
        };
        weights[block].fill(1.0 / unit);
    }
    (means, weights)
}

fn scaled<'a>(features: &'a [f64], means: &'a [f64], weights: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
    features.iter().zip(means).zip(weights).map(|((value, mean), weight)| (value - mean) * weight)
}

/// `[width, width]`: the covariance of points about the means of their classes.
fn covariance(rows: &[f64], width: usize, labels: &[i64], classes: usize) -> Vec<f64> {
    let (mut means, mut counts) = (vec![0.0; classes * width], vec![0.0_f64; classes]);
    for (row, label) in rows.chunks_exact(width).zip(labels) {
        let class = *label as usize;
        counts[class] += 1.0;
        means[class * width..][..width].iter_mut().zip(row).for_each(|(mean, value)| *mean += value);
    }
    for (mean, count) in means.chunks_exact_mut(width).zip(&counts) {
        mean.iter_mut().for_each(|value| *value /= count.max(1.0));
    }
    let mut found = vec![0.0; width * width];
    let mut apart = vec![0.0; width];
    for (row, label) in rows.chunks_exact(width).zip(labels) {
        let mean = &means[*label as usize * width..][..width];
        apart.iter_mut().zip(row.iter().zip(mean)).for_each(|(apart, (value, mean))| *apart = value - mean);
        for (one, line) in apart.iter().zip(found.chunks_exact_mut(width)) {
            line.iter_mut().zip(&apart).for_each(|(sum, other)| *sum += one * other);
        }
    }
    found.iter_mut().for_each(|sum| *sum /= labels.len().max(1) as f64);
    found
}

/// ln det(C + δ²), by Cholesky's factors.
fn log_det(mut matrix: Vec<f64>, width: usize) -> f64 {
    let mut sum = 0.0;
    for at in 0..width {
        let before: f64 = (0..at).map(|other| matrix[at * width + other].powi(2)).sum();
        // Rounding aside, no pivot is below δ².
        let pivot = (matrix[at * width + at] + PRECISION.powi(2) - before).max(PRECISION.powi(2) / 2.0).sqrt();
        matrix[at * width + at] = pivot;
        for below in at + 1..width {
            let before: f64 = (0..at).map(|other| matrix[at * width + other] * matrix[below * width + other]).sum();
            matrix[below * width + at] = (matrix[below * width + at] - before) / pivot;
        }
        sum += 2.0 * pivot.ln();
    }
    sum
}

fn description_length(n: usize, clusters: usize, dims: f64, log_det: f64, labels: &[i64]) -> f64 {
    let (count, k) = (n as f64, clusters as f64);
    let mut members = vec![0_usize; clusters];
    labels.iter().for_each(|label| members[*label as usize] += 1);
    let entropy: f64 =
        members.iter().filter(|it| **it > 0).map(|&it| -(it as f64 / count) * (it as f64 / count).ln()).sum();
    count / 2.0 * log_det + count * entropy + k * (dims + 1.0) / 2.0 * count.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two joints; a segment is a displacement of both, the way, and a second.
    fn points(count: usize, centres: &[[f64; 2]], noise: f64) -> Vec<Vec<f64>> {
        let mut state = 1_u64;
        let mut draw = || {
            // Twelve uniform numbers make a normal one.
            let mut sum = -6.0;
            for _ in 0..12 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                sum += (state >> 11) as f64 / (1_u64 << 53) as f64;
            }
            sum * noise
        };
        let one = |at: usize| {
            let [x, y] = centres[at % centres.len()];
            let (x, y) = (x + draw(), y + draw());
            vec![x, y, x.hypot(y), 0.0]
        };
        (0..count).map(one).collect()
    }

    fn layout() -> ActionLayout {
        let mut layout = ActionLayout::libero();
        layout.groups[0].space = Space::Joints;
        layout.groups[0].columns.truncate(2);
        layout.grippers.clear();
        layout
    }

    #[test]
    fn the_number_of_classes_is_that_of_the_clusters() {
        for wanted in [1, 2, 3, 5] {
            let centres = [[9.0, 0.0], [-9.0, 1.0], [0.0, 8.0], [1.0, -8.0], [20.0, 20.0]];
            let points = points(600, &centres[..wanted], 0.5);
            let classes = Classes::fit(&layout(), &points, &ClassesConfig::default()).unwrap();
            assert_eq!(classes.count(), wanted, "{:?}", classes.lengths);
            let labels: Vec<usize> = points.iter().map(|point| classes.of(point)).collect();
            assert!(labels.iter().enumerate().all(|(at, label)| *label == labels[at % wanted]));
        }
    }

    #[test]
    fn the_determinant_is_that_of_the_matrix() {
        // Without a spread there is δ alone; a diagonal is a product; coordinates that move together count once.
        let alone = 2.0 * (PRECISION.powi(2)).ln();
        assert!((log_det(vec![0.0; 4], 2) - alone).abs() < 1e-9);
        let wanted = (4.0_f64 + PRECISION.powi(2)).ln() + (9.0_f64 + PRECISION.powi(2)).ln();
        assert!((log_det(vec![4.0, 0.0, 0.0, 9.0], 2) - wanted).abs() < 1e-9);
        let together = ((4.0_f64 + PRECISION.powi(2)).powi(2) - 16.0).ln();
        assert!((log_det(vec![4.0, 4.0, 4.0, 4.0], 2) - together).abs() < 1e-6);
    }

    #[test]
    fn few_segments_and_equal_ones_are_one_class() {
        let config = ClassesConfig::default();
        for points in [vec![], vec![vec![1.0, 2.0, 3.0, 0.0]], vec![vec![1.0, 2.0, 3.0, 0.0]; 50]] {
            let classes = Classes::fit(&layout(), &points, &config).unwrap();
            assert_eq!(classes.count(), 1, "{:?}", classes.lengths);
            assert!(points.iter().all(|point| classes.of(point) == 0));
        }
    }

    #[test]
    fn classes_of_many_segments_are_found_on_a_sample() {
        // Every 51st, so that both kinds occur.
        let points = points(5001, &[[9.0, 0.0], [-9.0, 1.0]], 0.5);
        let config = ClassesConfig { points: 100, ..ClassesConfig::default() };
        assert_eq!(Classes::fit(&layout(), &points, &config).unwrap().count(), 2);
    }
}
