//! Stretches of motion as tokens of the typed language (SPEC §7, motor library).
//!
//! Run-length tokens over 17 symbols keep a direction and lose everything else: what they share is mostly syntax
//! ([`strict_sweep`] measures it). Here an episode is cut at change points ([`segment()`]), classes of segments are the
//! tokens, and what is continuous becomes their arguments ([`SkillAlphabet`]): `skill_3 twist[…] 12`. Programs go back to
//! actions ([`SkillAlphabet::expand`]), and both directions are measured ([`score_phases`], [`score_replay`]).
//!
//! Everything is pure: no IO, no tensors, no randomness, no panic on input. Classes come from outside.
//!
//! ```
//! use clustering::Points;
//! use language::{Signature, TermStore, print};
//! use skills::{ActionLayout, AlphabetConfig, SegmentConfig, SkillAlphabet, rows_of, segment};
//!
//! // Forward for ten steps, then up for ten, with the gripper open.
//! let forward = [0.5, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0].repeat(10);
//! let up = [0.0, 0.0, 0.75, 0.0, 0.0, 0.0, -1.0].repeat(10);
//! let episode = [forward, up].concat();
//! let layout = ActionLayout::default();
//! let cuts = segment(Points::new(&episode, 7)?, None, &layout, &SegmentConfig::default())?;
//! assert_eq!(cuts, [0..10, 10..20]);
//!
//! let episode = Points::new(&episode, 7)?;
//! let segments = [rows_of(episode, &cuts[0])?, rows_of(episode, &cuts[1])?];
//! let alphabet = SkillAlphabet::fit(&segments, &[0, 1], layout, &AlphabetConfig::default())?;
//! let calls = alphabet.encode(episode, &cuts, &[0, 1])?;
//!
//! let mut store = TermStore::new();
//! let mut signature = Signature::standard(&mut store);
//! alphabet.declare(&mut store, &mut signature)?;
//! let program = alphabet.program(&mut store, &calls)?;
//! assert_eq!(
//!     print(&store, program),
//!     "seq[skill_0 twist[5, 0, 0, 0, 0, 0] 10, skill_1 twist[0, 0, 7.5, 0, 0, 0] 10]"
//! );
//! let replayed = alphabet.expand(&mut store, &signature, program)?;
//! assert!(replayed.rows.iter().zip(episode.values()).all(|(replayed, &row)| (replayed - f64::from(row)).abs() < 1e-9));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod align;
mod alphabet;
mod encode;
mod error;
mod expand;
mod layout;
mod library;
mod naming;
mod profile;
mod program;
mod score;
mod segment;
mod strict;

pub use align::align_to_medoids;
pub use alphabet::{AlphabetConfig, GridError, MAX_SKILL_STEPS, Skill, SkillAlphabet, SkillCall, SkillId};
pub use encode::rows_of;
pub use error::SkillError;
pub use expand::{Expansion, MAX_ROWS};
pub use layout::ActionLayout;
pub use library::{adopt, motions_in, motor_config, motor_refactor_config};
pub use naming::{SkillMotion, skill_name};
pub use profile::{Profile, ProfileKind};
pub use score::{PhaseScores, ReplayScores, frame_labels, score_phases, score_replay};
pub use segment::{Model, Scaling, SegmentConfig, segment};
pub use strict::{StrictAbstraction, StrictCell, StrictConfig, StrictRun, strict_sweep};
