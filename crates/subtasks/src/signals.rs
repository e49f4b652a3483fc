//! What each arm of a robot does, row by row, in quantities that mean the same for every robot.
//!
//! Speeds are shares of the arm's usual speed, openings are shares of the gripper's range. Where a hand moves in space
//! is known of end effectors; of joints only how much they move, and how much of it is the last joint, which turns the hand.
//! Rows are blended with the mean of their segment, because a motion is slow where it starts and where it ends.

use skills::{ActionLayout, Control, Episode, Gripper, Group, ScoredSegment, Space};

/// Seconds on either side of a row over which velocities are averaged.
const SMOOTH: f64 = 0.06;

/// Seconds on either side of a row over which the change of an opening is measured.
const GRIPPING: f64 = 0.1;

/// The share of rows in which an end effector is slower than when it moves fast.
const FAST: f64 = 0.98;

/// A turn of a hand by one radian counts as much as a way of so many metres.
const LEVER: f64 = 0.15;

/// Seconds before and after a gripper moves in which a hand goes down or up.
const BESIDE: f64 = 0.8;

/// The least length of the mean of these motions' directions, each of length 1.
const AGREED: f64 = 0.6;

/// Speeds between these shares of the usual speed of an arm are between standing still and moving.
/// Relative commands carry corrections while an arm stands still, positions do not.
const STILL: [f64; 2] = [0.06, 0.12];
const MOVING: [f64; 2] = [0.25, 0.4];

/// The usual speed of an arm is the one that this share of rows is slower than, but at least `SLOWEST` of a fast motion.
const USUAL: f64 = 0.75;
const SLOWEST: f64 = 0.15;
const DRIVING: f64 = 0.6;

/// What a robot does in an episode.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Signals {
    /// Its arms, at least one.
    pub(crate) arms: Vec<ArmSignals>,
    /// What its base does; none without a base.
    pub(crate) base: Option<ArmSignals>,
    /// Whether legs or torso move, from 0 to 1; empty without them. They move all arms.
    pub(crate) body: Vec<f64>,
    /// Whether any part moves, from 0 to 1.
    pub(crate) moving: Vec<f64>,
}

/// What one arm does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ArmSignals {
    /// Its name for people.
    pub(crate) name: String,
    /// Whether it moves, from 0 to 1.
    pub(crate) moving: Vec<f64>,
    /// The share of its motion that goes up, from −1 to 1; empty if that is not known.
    pub(crate) up: Vec<f64>,
    /// The same of joints, by how they move before and after the gripper closes; empty if it never does.
    pub(crate) guessed_up: Vec<f64>,
    /// The share of its motion that turns the hand, from 0 to 1.
    pub(crate) turning: Vec<f64>,
    /// What its gripper does; empty without a gripper.
    pub(crate) grip: Vec<Grip>,
}

/// What a gripper does in a row; each from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub(crate) struct Grip {
    pub(crate) closed: f64,
    pub(crate) closing: f64,
    pub(crate) opening: f64,
    /// It has been closed since the episode began, so nobody knows whether it holds something.
    pub(crate) unknown: bool,
    /// It is told how far, so that it closes and opens while it is told to.
    pub(crate) graded: bool,
}

/// Whether a robot has a base that drives.
pub fn drives(layout: &ActionLayout) -> bool {
    layout.groups.iter().any(|group| is(&group.name, "base"))
}

impl Signals {
    /// Reads an episode.
    pub(crate) fn new(episode: &Episode, layout: &ActionLayout, segments: &[ScoredSegment], blend: f64) -> Signals {
        let reader = Reader { episode, layout, segments, blend };
        let arms = members(layout).into_iter().map(|member| {
            let grip = match member.gripper {
                Some(Fingers::Gripper(at)) => grip(&layout.grippers[at], &episode.grippers()[at], layout.fps),
                Some(Fingers::Group(at)) => hand(episode, &layout.groups[at], at, layout.fps),
                None => Vec::new(),
            };
            ArmSignals { name: member.name, ..reader.motion(&member.groups, grip) }
        });
        let mut arms: Vec<ArmSignals> = arms.collect();
        let bases: Vec<usize> = (0..layout.groups.len()).filter(|at| is(&layout.groups[*at].name, "base")).collect();
        let base = (!bases.is_empty()).then(|| reader.motion(&bases, Vec::new()));
        let all = |parts: Vec<usize>| {
            let parts = parts.into_iter().map(|at| reader.motion(&[at], Vec::new()).moving);
            parts.reduce(|all, one| all.iter().zip(one).map(|(all, one)| all.max(one)).collect()).unwrap_or_default()
        };
        let is_body = |name: &str| is(name, "leg") || is(name, "torso");
        let body = all((0..layout.groups.len()).filter(|at| is_body(&layout.groups[*at].name)).collect());
        let mut moving = all((0..layout.groups.len()).collect());
        moving.resize(episode.len(), 0.0);
        for arm in &mut arms {
            arm.moving.iter_mut().zip(&body).for_each(|(arm, body)| *arm = arm.max(*body));
        }
        Signals { arms, base, body, moving }
    }
}

/// The parts of one arm.
struct Member {
    name: String,
    groups: Vec<usize>,
    gripper: Option<Fingers>,
}

/// What an arm grasps with.
enum Fingers {
    /// A gripper of the layout.
    Gripper(usize),
    /// A hand with joints, which is a group.
    Group(usize),
}

/// The arms of a robot. Sides are told apart by name; without two sides everything that moves is one arm.
fn members(layout: &ActionLayout) -> Vec<Member> {
    let names: Vec<&str> = layout.groups.iter().map(|group| group.name.as_str()).collect();
    let of = |side: Option<&str>, part: &str| {
        let fits = |name: &str| is(name, part) && side.is_none_or(|side| is(name, side));
        (0..names.len()).filter(|at| fits(names[*at])).collect::<Vec<_>>()
    };
    let fingers = |side: Option<&str>| {
        let gripper = layout.grippers.iter().position(|gripper| side.is_none_or(|side| is(&gripper.name, side)));
        gripper.map(Fingers::Gripper).or_else(|| of(side, "hand").first().copied().map(Fingers::Group))
    };
    let side = |side: &'static str| {
        let (groups, gripper) = (of(Some(side), "arm"), fingers(Some(side)));
        (!groups.is_empty()).then(|| Member { name: format!("{side} arm"), groups, gripper })
    };
    let sides: Vec<Member> = ["left", "right"].into_iter().filter_map(side).collect();
    if sides.len() == 2 {
        return sides;
    }
    let mut groups = of(None, "arm");
    if groups.is_empty() {
        let others = ["base", "leg", "head", "torso", "hand"];
        groups = (0..names.len()).filter(|at| !others.iter().any(|other| is(names[*at], other))).collect();
    }
    vec![Member { name: "arm".to_owned(), groups, gripper: fingers(None) }]
}

/// Whether a name has a word.
fn is(name: &str, word: &str) -> bool {
    name.split(' ').any(|one| one == word)
}

/// What is read of an episode.
struct Reader<'a> {
    episode: &'a Episode,
    layout: &'a ActionLayout,
    segments: &'a [ScoredSegment],
    /// How much of a row's velocity is that of its segment.
    blend: f64,
}

impl Reader<'_> {
    /// How some groups move.
    fn motion(&self, groups: &[usize], grip: Vec<Grip>) -> ArmSignals {
        let rows = self.episode.len();
        // Speeds of places or joints, and of rotations.
        let (mut travel, mut turn) = (vec![0.0_f64; rows], vec![0.0_f64; rows]);
        let mut up = Vec::new();
        let mut joints = Vec::new();
        for &at in groups {
            let pose = matches!(self.layout.groups[at].space, Space::Pose(_));
            let dims = self.layout.groups[at].dims();
            for (dim, velocity) in self.velocities(at) {
                // The last joint of an arm turns the hand, the last velocity of a base turns the base.
                let turns = if pose { dim >= 3 } else { dim + 1 == dims && dim >= 2 };
                let sum = if turns { &mut turn } else { &mut travel };
                sum.iter_mut().zip(&velocity).for_each(|(sum, one)| *sum += one * one);
                match pose {
                    true if dim == 2 && up.is_empty() => up = velocity,
                    true => {}
                    false => joints.push(velocity),
                }
            }
        }
        travel.iter_mut().chain(&mut turn).for_each(|square| *square = square.sqrt());
        let speeds: Vec<f64> = travel.iter().zip(&turn).map(|(travel, turn)| travel.max(*turn)).collect();
        let mut sorted = speeds.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        // A base stands most of the time, so its usual speed says little.
        let drives = groups.iter().any(|at| self.layout.groups[*at].control == Control::Velocity);
        let slowest = if drives { DRIVING } else { SLOWEST };
        let usual = sorted.get((USUAL * rows as f64) as usize).map_or(slowest, |speed| speed.clamp(slowest, 1.0));
        let steady = groups.iter().all(|at| self.layout.groups[*at].control == Control::Absolute);
        let [still, moving] = [STILL, MOVING].map(|shares| shares[usize::from(!steady)] * usual);
        let moving = speeds.iter().map(|speed| ramp(*speed, still, moving)).collect();
        let turning = travel.iter().zip(&turn).map(|(travel, turn)| turn / (travel + turn + 0.05 * usual)).collect();
        let share = |(up, travel): (&f64, &f64)| (up / (travel + 1e-3)).clamp(-1.0, 1.0);
        let up = up.iter().zip(&travel).map(share).collect();
        let guessed_up = if joints.is_empty() { Vec::new() } else { guessed_up(&joints, &grip, self.layout.fps) };
        ArmSignals { name: String::new(), moving, up, guessed_up, turning, grip }
    }

    /// The velocities of a group's coordinates, as shares of fast motions.
    fn velocities(&self, at: usize) -> Vec<(usize, Vec<f64>)> {
        let group = &self.layout.groups[at];
        let seen = group.control == Control::Relative && group.anchored() && matches!(group.space, Space::Pose(_));
        let (raw, scales) = if seen { self.seen(at) } else { self.commanded(at) };
        let around = (SMOOTH * self.layout.fps).round() as usize;
        let dims = raw.into_iter().zip(scales).enumerate().filter(|(_, (_, scale))| *scale > 1e-9);
        dims.map(|(dim, (mut raw, scale))| {
            raw.iter_mut().for_each(|value| *value /= scale);
            (dim, blend(smooth(&raw, around), self.segments, self.blend))
        })
        .collect()
    }

    /// The commands of each coordinate, with what a fast one is.
    fn commanded(&self, at: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
        let group = &self.layout.groups[at];
        let scale = |dim: usize| match group.control {
            Control::Absolute => group.fast[dim] / self.layout.fps,
            Control::Relative => group.fast[dim],
            // A base drives in metres and turns in angles per second, which have no scale in common.
            Control::Velocity => {
                let last = group.limits.len().saturating_sub(1);
                let alike = if dim == last { &group.limits[last..] } else { &group.limits[..last] };
                alike.iter().flatten().fold(0.0, |most: f64, limit| most.max(limit.abs()))
            }
        };
        let dims = 0..group.dims();
        (dims.clone().map(|dim| self.episode.commands(at, dim)).collect(), dims.map(scale).collect())
    }

    /// Where an end effector went: commands also push against what does not move.
    fn seen(&self, at: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
        let places: Vec<Vec<f64>> =
            (0..=self.episode.len()).map(|row| self.episode.position(row).swap_remove(at)).collect();
        let dims = self.layout.groups[at].dims();
        let raw: Vec<Vec<f64>> =
            (0..dims).map(|dim| places.windows(2).map(|two| two[1][dim] - two[0][dim]).collect()).collect();
        let mut speeds: Vec<f64> =
            places.windows(2).map(|two| norm(two[1].iter().zip(&two[0]).take(3).map(|(to, from)| to - from))).collect();
        speeds.sort_unstable_by(f64::total_cmp);
        let fast = speeds.get((FAST * speeds.len() as f64) as usize).copied().unwrap_or(0.0);
        (raw, (0..dims).map(|dim| if dim < 3 { fast } else { fast / LEVER }).collect())
    }
}

/// The share of an arm's motion that goes up, guessed from its joints: hands go down before they close and up afterwards, they
/// go down before they open, too. The mean direction of these motions is taken for the vertical one.
fn guessed_up(joints: &[Vec<f64>], grip: &[Grip], fps: f64) -> Vec<f64> {
    let window = (BESIDE * fps).round() as usize;
    let (mut axis, mut motions) = (vec![0.0; joints.len()], 0.0);
    let mut add = |rows: std::ops::Range<usize>, weight: f64| {
        let sums: Vec<f64> = joints.iter().map(|joint| joint[rows.clone()].iter().sum()).collect();
        let length = norm(sums.iter().copied());
        if length > 1e-9 {
            motions += 1.0;
            axis.iter_mut().zip(sums).for_each(|(axis, sum)| *axis += weight * sum / length);
        }
    };
    let rows = grip.len();
    let busy = |row: usize| grip[row].closing.max(grip[row].opening) > 0.1;
    for row in 1..rows {
        let (before, after) = (grip[row - 1], grip[row]);
        let closes = before.closed < 0.5 && after.closed >= 0.5;
        let opens = before.closed >= 0.5 && after.closed < 0.5 && !before.unknown;
        if closes || opens {
            let start = (0..row).rev().find(|row| !busy(*row)).map_or(0, |row| row + 1);
            let end = (row..rows).find(|row| !busy(*row)).unwrap_or(rows);
            add(start.saturating_sub(window)..start, -1.0);
            if closes {
                add(end..(end + window).min(rows), 1.0);
            }
        }
    }
    let length = norm(axis.iter().copied());
    // Motions in different directions are not all vertical.
    if length < AGREED * motions || motions < 1.0 {
        return Vec::new();
    }
    let share = |row: usize| {
        let along: f64 = joints.iter().zip(&axis).map(|(joint, axis)| joint[row] * axis / length).sum();
        (along / (norm(joints.iter().map(|joint| joint[row])) + 1e-3)).clamp(-1.0, 1.0)
    };
    (0..rows).map(share).collect()
}

fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|value| value * value).sum::<f64>().sqrt()
}

/// What a gripper does, from its commands.
fn grip(gripper: &Gripper, commands: &[f32], fps: f64) -> Vec<Grip> {
    let [least, most] = gripper.limits;
    if most - least <= 0.0 {
        return Vec::new();
    }
    let open: Vec<f64> = commands
        .iter()
        .map(|command| ((f64::from(*command) - least) / (most - least)).clamp(0.0, 1.0))
        .map(|share| if gripper.closes_above { 1.0 - share } else { share })
        .collect();
    grips(&open, fps, |row| gripper.jumps(commands[row], commands[row + 1]))
}

/// What a hand with joints does. It is taken to be open when the episode begins, and closed as far from there as it goes.
fn hand(episode: &Episode, group: &Group, at: usize, fps: f64) -> Vec<Grip> {
    let ranges: Vec<f64> = group.limits.iter().map(|limits| limits[1] - limits[0]).collect();
    let first = episode.position(0).swap_remove(at);
    let open = |row: usize| {
        let now = episode.position(row + 1).swap_remove(at);
        let moved = now.iter().zip(&first).zip(&ranges).filter(|(_, range)| **range > 1e-9);
        let shares: Vec<f64> = moved.map(|((now, first), range)| (now - first).abs() / range).collect();
        1.0 - (shares.iter().sum::<f64>() / shares.len().max(1) as f64).min(1.0)
    };
    grips(&(0..episode.len()).map(open).collect::<Vec<f64>>(), fps, |_| false)
}

/// What a gripper does, from how far it is open; a command that jumps takes effect at once and has no rate.
fn grips(open: &[f64], fps: f64, jumps: impl Fn(usize) -> bool) -> Vec<Grip> {
    let around = ((GRIPPING * fps).round() as usize).max(1);
    let graded = !(0..open.len().saturating_sub(1)).any(&jumps);
    let mut unknown = true;
    let row = |at: usize| {
        let (from, to) = (at.saturating_sub(around), (at + around).min(open.len() - 1));
        let seconds = (to - from).max(1) as f64 / fps;
        let rate = if (from..to).any(&jumps) { 0.0 } else { (open[to] - open[from]) / seconds };
        unknown &= open[at] < 0.5 && rate < 0.2;
        // A gripper takes a second for its range, or less.
        let [closing, opening] = [-rate, rate].map(|rate| ramp(rate, 0.15, 0.6));
        Grip { closed: ramp(1.0 - open[at], 0.35, 0.65), closing, opening, unknown, graded }
    };
    (0..open.len()).map(row).collect()
}

/// 0 below the first bound, 1 above the second, linear between them.
pub(crate) fn ramp(value: f64, from: f64, to: f64) -> f64 {
    ((value - from) / (to - from)).clamp(0.0, 1.0)
}

/// Means over some rows on either side.
fn smooth(values: &[f64], around: usize) -> Vec<f64> {
    let mut sums = vec![0.0];
    values.iter().for_each(|value| sums.push(sums[sums.len() - 1] + value));
    let mean = |at: usize| {
        let (from, to) = (at.saturating_sub(around), (at + around + 1).min(values.len()));
        (sums[to] - sums[from]) / (to - from) as f64
    };
    (0..values.len()).map(mean).collect()
}

/// Values drawn towards the mean of their segment.
fn blend(mut values: Vec<f64>, segments: &[ScoredSegment], share: f64) -> Vec<f64> {
    for segment in segments {
        let Some(own) = values.get_mut(segment.rows.clone()).filter(|own| !own.is_empty()) else { continue };
        let mean = own.iter().sum::<f64>() / own.len() as f64;
        own.iter_mut().for_each(|value| *value += share * (mean - *value));
    }
    values
}
