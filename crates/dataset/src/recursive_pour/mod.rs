//! RecursivePour: a synthetic world with known recursion and exact returns (the paper's supplement; SPEC §10).
//!
//! A set of demonstrations cannot say how wrong a world model's returns are, because nobody knows the true ones. Here
//! they are known: the world is deterministic, its whole state is observed, and the return R(s, τ) of executing a
//! fragment τ from **any** state s is a matter of stepping ([`EnvState::rollout`]). So the sup-norm error of a model,
//!
//! ```text
//! η = sup over s, τ of | R̂_φ(s, τ) − R(s, τ) |        η_d = the same over τ from demos of depth d
//! ```
//!
//! can be measured, on this set alone of all that the paper has.
//!
//! # The task
//!
//! Cup 1 is poured into a bowl, and while it is being poured it is refilled from cup 2, which is refilled from cup 3: a
//! pour of depth d has d cups, and the receiver of each is the cup of the pour around it, wherever that one stands now.
//!
//! ```text
//! pour(ℓ)  =  approach ℓ · tilt ℓ · pour(ℓ+1) · drain ℓ · return ℓ                         4 steps a level, 4d in all
//!
//! d = 1    approach₁ tilt₁ drain₁ return₁
//! d = 2    approach₁ tilt₁ [approach₂ tilt₂ drain₂ return₂] drain₁ return₁
//! ```
//!
//! Fragments are windows of 4 steps at stride 1, so a demo of depth d has 4d − 3, a set of four demos has
//! 1 + 5 + 9 + 13 = 28, and 50 sets have the paper's N = 1400.
//!
//! The state a fragment was recorded in is a row of its demo, so its value there or anywhere else is a line:
//!
//! ```
//! use dataset::recursive_pour::{Demo, Depth, PourError, SEED_TRAIN};
//!
//! let demo = Demo::record(Depth::new(2)?, SEED_TRAIN, 0);
//! let inner_pour = &demo.actions[2..6];
//! assert_eq!(demo.state(2)?.rollout(inner_pour), demo.rewards[2..6].iter().sum::<f32>());
//! assert_eq!(demo.state(0)?.rollout(inner_pour), 0.0, "nothing reaches the bowl while cup 1 stands at home");
//! # Ok::<(), PourError>(())
//! ```
//!
//! # Labels
//!
//! A fragment's label is the role of its **first** step × the depth of its demo: what it sets out to do, and how deeply
//! nested the pour is. A demo of depth 1 has a single fragment, so depth 1 has a single label: this is the degenerate
//! cell that the paper reports as 0.0000. In a dataset the labels are a column, and a fragment's is that of its first
//! row.
//!
//! # Departures, and where the paper is silent
//!
//! - The paper names three roles, approach, tilt and return. The counts need four steps a level, because the sub-pour
//!   splits the tilt in two: the part before it stays `tilt`, the part after it is `drain`. Four roles at four depths
//!   also are the 16 of the paper's k = 16, which three would not be. Twelve of them occur as labels.
//! - The paper gives no dynamics, no widths and no reward. Ours are in [`EnvState`]: a linear reservoir for each cup,
//!   and as reward the share of the liquid that arrives in the bowl. Its unit is a choice: [`RewardScale`].
//! - Randomness is in where things stand, in how full the cups are, and in the expert's hand; never in the dynamics.
//!   With random dynamics R(s, τ) would be an expectation, and η would contain the sampling error of the reference.
//! - Only `+ − × ÷` are used, in `f32`, so the same seed gives the same bits on every machine.

mod demos;
mod env;
mod expert;
mod reward;
mod written;

pub use demos::{
    Demo, FPS, FRAGMENT_STEPS, FRAGMENT_STRIDE, LABELS, Rows, demos, fragment_labels, label, label_name, spans,
    task_name,
};
pub use env::{
    ACTION_NAMES, ACTION_WIDTH, Action, Bowl, Cup, EnvState, Observation, PourError, RecursivePourEnv, STATE_WIDTH,
    Step, state_names,
};
pub use expert::{Expert, Phase, plan};
pub use reward::RewardScale;
pub use written::{write, write_demos};

/// The seed of the demonstrations that models are trained on.
pub const SEED_TRAIN: u64 = 11;

/// The seed of those that they are evaluated on.
pub const SEED_EVAL: u64 = 999;

/// The paper's number of demonstrations of each depth.
pub const DEMOS_PER_DEPTH: usize = 50;

/// The most cups of a pour.
pub const MAX_DEPTH: usize = 4;

/// The number of nested pours: 1 to [`MAX_DEPTH`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Depth(usize);

impl Depth {
    /// All depths, ascending.
    pub const ALL: [Depth; MAX_DEPTH] = [Depth(1), Depth(2), Depth(3), Depth(4)];

    /// A depth, if there is one of that many cups.
    pub fn new(cups: usize) -> Result<Depth, PourError> {
        match cups {
            1..=MAX_DEPTH => Ok(Depth(cups)),
            found => Err(PourError::NoSuchDepth { found }),
        }
    }

    /// The number of cups.
    pub fn cups(self) -> usize {
        self.0
    }

    /// The steps of an episode.
    pub fn steps(self) -> usize {
        Role::ALL.len() * self.0
    }
}

/// What a step is for. Each cup goes through all of them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The hand takes the cup and carries it over its receiver.
    Approach,
    /// It tilts the cup half, which starts the stream, and leaves it so.
    Tilt,
    /// After the sub-pour it tilts the cup all the way.
    Drain,
    /// It sets the cup upright and carries it home.
    Return,
}

impl Role {
    /// All roles in the order in which a cup goes through them.
    pub const ALL: [Role; 4] = [Role::Approach, Role::Tilt, Role::Drain, Role::Return];

    /// Its name in datasets and reports.
    pub fn name(self) -> &'static str {
        match self {
            Role::Approach => "approach",
            Role::Tilt => "tilt",
            Role::Drain => "drain",
            Role::Return => "return",
        }
    }

    /// Its place in [`Role::ALL`].
    pub fn at(self) -> usize {
        self as usize
    }
}
