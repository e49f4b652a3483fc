//! Stretches of motion as tokens of the typed language (SPEC §7, motor library).
//!
//! Run-length tokens over 17 symbols keep a direction and lose everything else: what they share is mostly syntax
//! ([`strict_sweep`] measures it). Here an episode is cut at change points ([`segment()`]), classes of segments are the
//! tokens, and where a motion ends is their argument ([`SkillAlphabet`]): `skill_3 pose[…]`. Programs go back to actions
//! ([`SkillAlphabet::expand`]), and both directions are measured ([`score_phases`], [`score_replay`]).
//!
//! A robot is any number of groups of columns, with commands that are positions, changes or velocities ([`ActionLayout`]).
//! Everything is pure: no IO, no tensors, no randomness, no panic on input. Classes come from outside.
//!
//! ```
//! use clustering::Points;
//! use language::{Signature, TermStore, print};
//! use skills::{ActionLayout, AlphabetConfig, Control, Episode, Group, SegmentConfig, SkillAlphabet, Space, segment};
//!
//! // Two joints with absolute commands at 20 frames per second: the first one turns by 62 degrees, then the second by 64. Both
//! // motions have as many rows as a profile has samples, so that replay is exact.
//! let layout = ActionLayout {
//!     width: 2,
//!     fps: 20.0,
//!     groups: vec![Group {
//!         name: "arm".to_owned(),
//!         space: Space::Joints,
//!         control: Control::Absolute,
//!         columns: vec![0, 1],
//!         names: vec![],
//!         states: vec![],
//!         limits: vec![[-90.0, 90.0]; 2],
//!         fast: vec![40.0; 2],
//!     }],
//!     grippers: vec![],
//! };
//! let first = (0..32).flat_map(|row| [2.0 * row as f32, 0.0]);
//! let second = (1..=32).flat_map(|row| [62.0, 2.0 * row as f32]);
//! let actions: Vec<f32> = first.chain(second).collect();
//! let episode = Episode::new(&layout, Points::new(&actions, 2)?, None)?;
//! let cuts = segment(&episode, &layout, &SegmentConfig::default())?;
//! assert_eq!(cuts, [0..32, 32..64]);
//!
//! let segments = [episode.motion(&cuts[0])?, episode.motion(&cuts[1])?];
//! let alphabet = SkillAlphabet::fit(&segments, &[0, 1], layout, &AlphabetConfig::default())?;
//! let calls = alphabet.encode(&episode, &cuts, &[0, 1])?;
//!
//! let mut store = TermStore::new();
//! let mut signature = Signature::standard(&mut store);
//! alphabet.declare(&mut store, &mut signature)?;
//! let program = alphabet.program(&mut store, &calls)?;
//! assert_eq!(print(&store, program), "seq[skill_0 joints[62, 0], skill_1 joints[62, 64]]");
//! let replayed = alphabet.expand(&mut store, &signature, program, &alphabet.start(&episode))?;
//! assert_eq!(replayed.end, [[62.0, 64.0]]);
//! assert!(replayed.rows.iter().zip(&actions).all(|(replayed, &row)| (replayed - f64::from(row)).abs() < 1e-4));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod align;
mod alphabet;
mod duration;
mod encode;
mod episode;
mod error;
mod expand;
mod fast;
mod follow;
mod grid;
mod layout;
mod library;
mod naming;
mod profile;
mod program;
mod score;
mod segment;
mod shortest;
mod strict;

pub use align::align_to_medoids;
pub use alphabet::{AlphabetConfig, Skill, SkillAlphabet, SkillId};
pub use duration::Duration;
pub use encode::{Argument, SkillCall};
pub use episode::{Episode, Motion, Position};
pub use error::SkillError;
pub use expand::{Expansion, MAX_ROWS};
pub use follow::{Followed, REACHED, UnderWay};
pub use layout::{ActionLayout, Control, Gripper, Group, Space};
pub use library::{adopt, motions_in, motor_config, motor_refactor_config};
pub use naming::{SkillMotion, skill_name};
pub use profile::Profile;
pub use rotation::{Orientation, RotationForm};
pub use score::{PhaseScores, ReplayScores, frame_labels, score_phases, score_replay};
pub use segment::{Model, RATE, ScoredSegment, SegmentConfig, segment, segment_scored};
pub use shortest::Written;
pub use strict::{StrictAbstraction, StrictCell, StrictConfig, StrictRun, strict_sweep};
