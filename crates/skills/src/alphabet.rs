//! Classes of segments as primitives of the language: `skill_3 : Pose -> Motion`.
//!
//! A call says which class of motion it is and **where it ends**: for each group of the robot that the class moves, the target
//! of that group. A target is the same at every frame of the segment, can be estimated again on the way, and tells when the
//! motion is complete; how long it takes is a property of the class ([`Duration`]). Targets are snapped to a grid, so that **what
//! ends alike is written alike**: equal calls are equal terms, and the compressor sees them so. A target may also be written
//! as the distance from the previous one ([`crate::Argument`]), which is how "lift by 16 cm" stays one term. The class carries
//! the shape of the motion ([`Profile`]).
//!
//! Labels come from outside (clusters of the behavioural-equivalence kernel); nothing here learns them. A class that has
//! segments of several gripper commands becomes as many skills, because a command is not a matter of degree.

use std::collections::BTreeMap;

use clustering::NOISE;
use language::{Signature, TermStore};
use serde::{Deserialize, Serialize};

use crate::duration::Duration;
use crate::episode::Motion;
use crate::error::{SkillError, at_least};
use crate::grid::{grids, snapped};
use crate::layout::{ActionLayout, Control, Space};
use crate::profile::{Member, Profile, Units, resampled};

/// A group is an argument of a skill if at least this share of the class moves it by a step of its grid.
const MOVES: f64 = 0.1;

/// It is one as well if a single segment moves it by so many steps of the grid, so that no motion is lost.
const FAR: f64 = 3.0;

/// How classes become skills.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AlphabetConfig {
    /// The grid of targets, as a share of the largest range of the coordinates that have one unit; the step is the next lower
    /// 1, 2 or 5 times a power of ten. 0 is off.
    pub grid: f64,
    /// The least step of the grid of rotations, in radians.
    pub least_turn: f64,
    /// Samples of normalised time in a profile.
    pub samples: usize,
    /// What draws gains towards the identity.
    pub ridge: f64,
    /// Whether targets are written as distances from the previous target where that is shorter. Off, all targets are positions:
    /// a library finds less, and a policy that writes programs knows from each call where the robot is.
    pub by: bool,
}

impl Default for AlphabetConfig {
    fn default() -> AlphabetConfig {
        AlphabetConfig { grid: 0.03, least_turn: 0.1, samples: 32, ridge: 0.5, by: true }
    }
}

/// A skill of an alphabet, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SkillId(pub usize);

/// One class of motion under one command of each gripper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// The name of the primitive.
    pub name: String,
    /// The label that the class came with.
    pub label: i64,
    /// For each gripper whether it is commanded to close.
    pub closed: Vec<bool>,
    /// For each gripper the command that replay gives: the members' mean.
    pub commands: Vec<f64>,
    /// How many segments it was fitted to.
    pub members: usize,
    /// The groups whose targets are its arguments, by their place in the layout.
    pub arguments: Vec<usize>,
    /// How long it takes.
    pub duration: Duration,
    /// For each group of the layout the shape of its motion.
    pub profiles: Vec<Profile>,
}

/// The skills of a set of demonstrations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillAlphabet {
    /// The columns of actions.
    pub layout: ActionLayout,
    /// How it was made.
    pub config: AlphabetConfig,
    /// For each group and each of its coordinates the step of the grid; 0 is off.
    pub grids: Vec<Vec<f64>>,
    /// For each group and each of its coordinates how far it moves in a step when it moves.
    pub paces: Vec<Vec<f64>>,
    /// For each group the size of its commands.
    pub sizes: Vec<f64>,
    /// The skills, by label, open before closed.
    pub skills: Vec<Skill>,
}

impl SkillAlphabet {
    /// Fits the skills of labelled segments.
    ///
    /// # Errors
    /// On no segments, labels that are not one for each, and settings that are no magnitudes.
    pub fn fit(
        segments: &[Motion<'_>],
        labels: &[i64],
        layout: ActionLayout,
        config: &AlphabetConfig,
    ) -> Result<SkillAlphabet, SkillError> {
        check(config)?;
        layout.validate()?;
        if segments.len() != labels.len() {
            return Err(SkillError::OtherLabels { found: labels.len(), wanted: segments.len() });
        }
        if segments.is_empty() {
            return Err(SkillError::NoSegments);
        }
        let mut classes: BTreeMap<(i64, Vec<bool>), Vec<&Motion<'_>>> = BTreeMap::new();
        for (motion, &label) in segments.iter().zip(labels) {
            classes.entry((label, motion.closed())).or_default().push(motion);
        }
        let units: Vec<Units> = (0..layout.groups.len()).map(|group| units(&layout, segments, group)).collect();
        let paces = units.iter().map(|units| units.reach.iter().map(|reach| reach * units.command).collect()).collect();
        let sizes = units.iter().map(|units| units.command).collect();
        let grids = grids(&layout, segments, config);
        let mut alphabet = SkillAlphabet { layout, config: config.clone(), grids, paces, sizes, skills: Vec::new() };
        for ((label, closed), members) in &classes {
            let mixed = classes.keys().filter(|(other, _)| other == label).count() > 1;
            let suffix = if mixed { alphabet.suffix(closed) } else { String::new() };
            let name = if *label == NOISE { format!("skill_noise{suffix}") } else { format!("skill_{label}{suffix}") };
            alphabet.skills.push(alphabet.fit_skill(name, *label, closed.clone(), members, &units));
        }
        Ok(alphabet)
    }

    /// Adds the skills to a signature, with the words that their arguments are written with.
    pub fn declare(&self, store: &mut TermStore, signature: &mut Signature) -> Result<(), SkillError> {
        signature.declare(store, BY, "Twist -> Pose", "the previous target, moved and turned by this")?;
        signature.declare(store, BY_JOINTS, "Joints -> Joints", "the previous target, changed by this")?;
        for skill in &self.skills {
            let targets = skill.arguments.iter().map(|group| match self.layout.groups[*group].space {
                Space::Pose(_) => "Pose -> ",
                Space::Joints => "Joints -> ",
            });
            let type_text = format!("{}Motion", targets.collect::<String>());
            signature.declare(store, &skill.name, &type_text, &self.meaning(skill))?;
        }
        Ok(())
    }

    /// The skill of a class under the gripper commands of a segment.
    pub fn skill_of(&self, motion: &Motion<'_>, label: i64) -> Result<SkillId, SkillError> {
        let closed = motion.closed();
        let found = self.skills.iter().position(|skill| skill.label == label && skill.closed == closed);
        found.map(SkillId).ok_or_else(|| SkillError::UnknownClass { label, gripper: self.gripper_words(&closed) })
    }

    /// The skill that replays a segment best under its gripper commands, for segments without a label. If no skill has those
    /// commands, as few as possible of them differ. `None` only of an alphabet without skills.
    pub fn nearest(&self, motion: &Motion<'_>) -> Option<SkillId> {
        let closed = motion.closed();
        let differs =
            |skill: usize| self.skills[skill].closed.iter().zip(&closed).filter(|(one, other)| one != other).count();
        let least = (0..self.skills.len()).map(differs).min()?;
        let fitting = (0..self.skills.len()).filter(|&skill| differs(skill) == least);
        let error = |skill: usize| self.replay_error(&self.skills[skill], motion);
        fitting.min_by(|&left, &right| error(left).total_cmp(&error(right))).map(SkillId)
    }

    /// What a skill does, in words.
    fn meaning(&self, skill: &Skill) -> String {
        let names: Vec<&str> = skill.arguments.iter().map(|group| self.layout.groups[*group].name.as_str()).collect();
        let what = match names[..] {
            [] => "stay".to_owned(),
            _ => format!("bring {} there", names.join(" and ")),
        };
        let gripper = match self.layout.grippers.is_empty() {
            true => String::new(),
            false => format!(", {}", self.gripper_words(&skill.closed)),
        };
        format!("{what} as class {} does{gripper}", skill.label)
    }

    /// `gripper closed`, `left gripper open, right gripper closed`.
    fn gripper_words(&self, closed: &[bool]) -> String {
        let words = self.layout.grippers.iter().zip(closed);
        let words =
            words.map(|(gripper, closed)| format!("{} {}", gripper.name, if *closed { "closed" } else { "open" }));
        words.collect::<Vec<_>>().join(", ")
    }

    /// `_open`, `_closed`, or one after the other for each gripper.
    fn suffix(&self, closed: &[bool]) -> String {
        closed.iter().map(|closed| if *closed { "_closed" } else { "_open" }).collect()
    }

    fn fit_skill(
        &self,
        name: String,
        label: i64,
        closed: Vec<bool>,
        members: &[&Motion<'_>],
        units: &[Units],
    ) -> Skill {
        let groups = 0..self.layout.groups.len();
        let moves = |group: usize| {
            let steps = |motion: &&&Motion<'_>| {
                let moved = motion.displacement(group).into_iter().zip(&self.grids[group]);
                moved.map(|(moved, grid)| moved.abs() / grid.max(1e-9)).fold(0.0, f64::max)
            };
            let far = members.iter().filter(|motion| steps(motion) >= 1.0).count();
            far as f64 >= MOVES * members.len() as f64 || members.iter().any(|motion| steps(&motion) >= FAR)
        };
        let count = members.len() as f64;
        let mut commands = vec![0.0; self.layout.grippers.len()];
        for motion in members {
            commands.iter_mut().zip(motion.gripper_commands()).for_each(|(mean, one)| *mean += one / count);
        }
        let travel = |motion: &Motion<'_>| (self.travel(|group| motion.displacement(group)), motion.len());
        Skill {
            name,
            label,
            closed,
            commands,
            members: members.len(),
            arguments: groups.clone().filter(|group| moves(*group)).collect(),
            duration: Duration::fit(&members.iter().map(|motion| travel(motion)).collect::<Vec<_>>()),
            profiles: groups.map(|group| self.profile(group, members, &units[group])).collect(),
        }
    }

    fn profile(&self, group: usize, members: &[&Motion<'_>], units: &Units) -> Profile {
        let dims = self.layout.groups[group].dims();
        let member = |motion: &&Motion<'_>| Member {
            samples: (0..dims).map(|dim| resampled(&motion.commands(group, dim), self.config.samples)).collect(),
            pace: motion.displacement(group).into_iter().map(|moved| moved / motion.len() as f64).collect(),
        };
        Profile::fit(&members.iter().map(member).collect::<Vec<_>>(), units, self.config.ridge)
    }

    /// How long a way is, in steps at the pace of the robot: the longest of all coordinates.
    pub(crate) fn travel(&self, displacement: impl Fn(usize) -> Vec<f64>) -> f64 {
        let of = |group: usize| {
            let steps = displacement(group).into_iter().zip(&self.paces[group]);
            steps.map(|(moved, pace)| moved.abs() / pace).fold(0.0, f64::max)
        };
        (0..self.layout.groups.len()).map(of).fold(0.0, f64::max)
    }

    /// Σ of squared differences between commands and their replay off the grid, each group in units of its command.
    fn replay_error(&self, skill: &Skill, motion: &Motion<'_>) -> f64 {
        let mut error = 0.0;
        for (at, group) in self.layout.groups.iter().enumerate() {
            let exact = group.control == Control::Absolute;
            let replayed = skill.profiles[at].steps(&motion.displacement(at), motion.len(), exact);
            for (dim, replayed) in replayed.iter().enumerate() {
                let recorded = motion.commands(at, dim);
                let squares = recorded.iter().zip(replayed).map(|(recorded, replayed)| (recorded - replayed).powi(2));
                error += squares.sum::<f64>() / self.sizes[at].powi(2);
            }
        }
        error
    }

    /// A position on the grid of its group.
    pub(crate) fn on_grid(&self, group: usize, position: &[f64]) -> Vec<f64> {
        position.iter().zip(&self.grids[group]).map(|(value, grid)| snapped(*value, *grid)).collect()
    }
}

/// `by twist[…]`: the previous target, moved by this.
pub(crate) const BY: &str = "by";

/// `by_joints joints[…]`: the previous target, changed by this.
pub(crate) const BY_JOINTS: &str = "by_joints";

fn check(config: &AlphabetConfig) -> Result<(), SkillError> {
    let wanted = "a finite number that is not negative";
    at_least("grid", config.grid, 0.0, wanted)?;
    at_least("least_turn", config.least_turn, 0.0, wanted)?;
    at_least("ridge", config.ridge, 0.0, wanted)?;
    at_least("samples", config.samples as f64, 1.0, "1 sample or more")
}

/// The size of a group's commands, and what distance one of them makes, coordinates of one unit together.
fn units(layout: &ActionLayout, segments: &[Motion<'_>], group: usize) -> Units {
    let dims = layout.groups[group].dims();
    let (mut commands, mut paces) = (vec![0.0; dims], vec![0.0; dims]);
    let mut rows = 0.0;
    for motion in segments {
        let steps = motion.len() as f64;
        rows += steps;
        for (dim, moved) in motion.displacement(group).into_iter().enumerate() {
            let mean = motion.commands(group, dim).iter().sum::<f64>() / steps;
            commands[dim] += mean * mean * steps;
            paces[dim] += (moved / steps).powi(2) * steps;
        }
    }
    let root = |sum: f64| (sum / f64::max(rows, 1.0)).sqrt();
    let reach = (0..dims).map(|dim| {
        let block = layout.groups[group].block(dim);
        let (command, pace) = (root(commands[block.clone()].iter().sum()), root(paces[block].iter().sum()));
        // What never moves has no ratio.
        if command > 1e-12 && pace > 1e-12 { pace / command } else { 1.0 }
    });
    let reach = reach.collect();
    Units { command: root(commands.iter().sum()).max(1e-9), reach }
}
