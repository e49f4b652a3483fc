//! The world of RecursivePour: cups, a bowl, one hand, and liquid that is never lost from the books.
//!
//! A step lasts half a second and is integrated in 16 parts of Δt = 1/32 s, in each of which, for each cup ℓ of volume
//! v, tilt θ and place p,
//!
//! ```text
//! out   = κ Δt · max(0, v − (1 − θ))              what is above the lip runs out, the faster the more it is
//! catch = max(0, 1 − |p − p_receiver|² / r²)      the part of the stream that meets the receiver's mouth
//! v −= out      v_receiver += catch · out      spilled += (1 − catch) · out
//! ```
//!
//! A cup holds one litre upright and nothing at θ = 1; a cup that is overfilled runs over by the same law. The receiver
//! of cup 1 is the bowl, that of cup ℓ is cup ℓ − 1. Cups keep pouring while the hand is elsewhere: that is why pours
//! nest.
//!
//! The reward of a step is the liquid that reached the bowl in it, over the d litres that the cups could hold, so
//! returns lie in [0, 1].

use rand_chacha::rand_core::RngCore;

use super::{Depth, MAX_DEPTH};
use crate::draw::{Purpose, generator, unit};

/// The numbers of a state: x, y, tilt and volume of four cups; x, y and volume of the bowl; spilled; hand; depth.
pub const STATE_WIDTH: usize = 4 * MAX_DEPTH + 6;

/// The numbers of an action.
pub const ACTION_WIDTH: usize = 4;

/// What the numbers of an action are, each in [−1, 1]: metres along x and y, tilt, and which cup to take.
///
/// `reach` above ½ takes the next inner cup before anything else happens, below −½ the next outer one; the cup that is
/// let go stays where it is, as tilted as it is.
pub const ACTION_NAMES: [&str; ACTION_WIDTH] = ["move.x", "move.y", "turn", "reach"];

/// A command for half a second; see [`ACTION_NAMES`]. What is out of range is clipped, what is no number is 0.
pub type Action = [f32; ACTION_WIDTH];

/// A state as a row of numbers; see [`state_names`].
pub type Observation = [f32; STATE_WIDTH];

/// Parts into which a step is cut.
const SUBSTEPS: u16 = 16;
/// κ Δt, the share of the liquid above the lip that runs out in one part: κ = 8 per second, Δt = 1/32 s.
const OUTFLOW: f32 = 0.25;
/// r², for mouths of 0.1 m.
const MOUTH_SQUARED: f32 = 0.01;
/// The table is a square, this many metres from the middle to each side.
const TABLE: f32 = 1.0;
/// How far from its usual place a thing may stand at the start, in metres along each axis.
const SCATTER: f32 = 0.03;
/// Litres in a cup at the start: from, and how many more at most.
const FILL: (f32, f32) = (0.6, 0.3);
/// The usual places of the cups at the start, around the bowl in the middle.
const HOMES: [(f32, f32); MAX_DEPTH] = [(0.5, 0.0), (0.0, 0.5), (-0.5, 0.0), (0.0, -0.5)];

/// What cannot be poured.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say what each kind and each field is")]
pub enum PourError {
    #[error("there is no pour of depth {found}; choose a depth from 1 to {MAX_DEPTH}")]
    NoSuchDepth { found: usize },
    #[error("`{feature}` of the state is {found}; give {expected}")]
    BadState { feature: String, found: f32, expected: &'static str },
}

/// A cup: where it is, how far it is tilted, and the litres in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cup {
    /// Metres to the right.
    pub x: f32,
    /// Metres away.
    pub y: f32,
    /// 0 is upright, 1 is upside down.
    pub tilt: f32,
    /// Litres.
    pub volume: f32,
}

/// The bowl, which stands still and is large enough.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bowl {
    /// Metres to the right.
    pub x: f32,
    /// Metres away.
    pub y: f32,
    /// Litres.
    pub volume: f32,
}

/// All there is to know: the next state is a function of this and the action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnvState {
    /// How many cups there are.
    pub depth: Depth,
    /// The cup in the hand; 0 is cup 1, which is poured into the bowl.
    pub hand: usize,
    /// The cups, the outermost first. Those past the depth are not there, and all their numbers are 0.
    pub cups: [Cup; MAX_DEPTH],
    /// Where it all should go.
    pub bowl: Bowl,
    /// Litres that went elsewhere.
    pub spilled: f32,
}

impl EnvState {
    /// The start of an episode: a function of the three.
    pub fn start(depth: Depth, seed: u64, episode: u64) -> EnvState {
        let mut random = generator(seed, Purpose::PourStart, [depth.cups() as u64, episode]);
        let bowl = Bowl { x: scatter(&mut random), y: scatter(&mut random), volume: 0.0 };
        let mut cups = [Cup::default(); MAX_DEPTH];
        for (cup, (x, y)) in cups.iter_mut().zip(HOMES).take(depth.cups()) {
            let (x, y) = (x + scatter(&mut random), y + scatter(&mut random));
            *cup = Cup { x, y, tilt: 0.0, volume: FILL.0 + FILL.1 * unit(&mut random) };
        }
        EnvState { depth, hand: 0, cups, bowl, spilled: 0.0 }
    }

    /// The state half a second later, and the reward.
    #[must_use]
    pub fn advance(&self, action: &Action) -> (EnvState, f32) {
        let [move_x, move_y, turn, reach] = action.map(command);
        let mut next = *self;
        if reach > 0.5 {
            next.hand = (self.hand + 1).min(self.depth.cups() - 1);
        } else if reach < -0.5 {
            next.hand = self.hand.saturating_sub(1);
        }
        let from = next.cups[next.hand];
        let mut arrived = 0.0;
        for part in 1..=SUBSTEPS {
            let done = f32::from(part) / f32::from(SUBSTEPS);
            let held = &mut next.cups[next.hand];
            held.x = (from.x + done * move_x).clamp(-TABLE, TABLE);
            held.y = (from.y + done * move_y).clamp(-TABLE, TABLE);
            held.tilt = (from.tilt + done * turn).clamp(0.0, 1.0);
            arrived += next.flow();
        }
        (next, arrived / self.depth.cups() as f32)
    }

    /// R(s, τ): the exact return of executing the actions from this state, whatever the clock says.
    pub fn rollout(&self, actions: &[Action]) -> f32 {
        let mut state = *self;
        let mut total = 0.0;
        for action in actions {
            let (next, reward) = state.advance(action);
            state = next;
            total += reward;
        }
        total
    }

    /// The liquid everywhere, which never changes but for rounding.
    pub fn liquid(&self) -> f32 {
        self.cups.iter().map(|cup| cup.volume).sum::<f32>() + self.bowl.volume + self.spilled
    }

    /// The state as numbers. Nothing is left out or rounded, so [`EnvState::from_observation`] gives the same state.
    pub fn observation(&self) -> Observation {
        let mut row = [0.0; STATE_WIDTH];
        let (cups, rest) = row.split_at_mut(4 * MAX_DEPTH);
        for (row, cup) in cups.chunks_exact_mut(4).zip(&self.cups) {
            row.copy_from_slice(&[cup.x, cup.y, cup.tilt, cup.volume]);
        }
        let Bowl { x, y, volume } = self.bowl;
        rest.copy_from_slice(&[x, y, volume, self.spilled, self.hand as f32, self.depth.cups() as f32]);
        row
    }

    /// The state that was observed, such as a row of a dataset.
    pub fn from_observation(row: &Observation) -> Result<EnvState, PourError> {
        let check = |at: usize, holds: bool, expected| match holds {
            true => Ok(row[at]),
            false => Err(PourError::BadState { feature: state_names().swap_remove(at), found: row[at], expected }),
        };
        let place = |at: usize| check(at, row[at].abs() <= TABLE, "a place on the table, -1 to 1");
        let volume = |at: usize| check(at, row[at] >= 0.0 && row[at].is_finite(), "litres, 0 or more");
        let whole = |at: usize, least: usize, most: usize, expected| {
            let found = (least..=most).find(|&number| number as f32 == row[at]);
            check(at, found.is_some(), expected).map(|_| found.unwrap_or(least))
        };

        let bowl = 4 * MAX_DEPTH;
        let depth = Depth(whole(bowl + 5, 1, MAX_DEPTH, "a number of cups, 1 to 4")?);
        let hand = whole(bowl + 4, 0, depth.cups() - 1, "a cup that is there, counted from 0")?;
        let mut cups = [Cup::default(); MAX_DEPTH];
        for (at, cup) in cups.iter_mut().enumerate() {
            let from = 4 * at;
            if at >= depth.cups() {
                (from..from + 4)
                    .try_for_each(|at| check(at, row[at] == 0.0, "0, as there is no such cup").map(drop))?;
                continue;
            }
            let tilt = check(from + 2, (0.0..=1.0).contains(&row[from + 2]), "a tilt, 0 to 1")?;
            *cup = Cup { x: place(from)?, y: place(from + 1)?, tilt, volume: volume(from + 3)? };
        }
        let bowl_state = Bowl { x: place(bowl)?, y: place(bowl + 1)?, volume: volume(bowl + 2)? };
        Ok(EnvState { depth, hand, cups, bowl: bowl_state, spilled: volume(bowl + 3)? })
    }

    /// Lets the liquid run for Δt, from all cups at once, and gives what reached the bowl.
    fn flow(&mut self) -> f32 {
        let mut streams = [(0.0, 0.0); MAX_DEPTH];
        for (level, stream) in streams.iter_mut().enumerate().take(self.depth.cups()) {
            let Cup { x, y, tilt, volume } = self.cups[level];
            let out = OUTFLOW * (volume - (1.0 - tilt)).max(0.0);
            let (receiver_x, receiver_y) = match level {
                0 => (self.bowl.x, self.bowl.y),
                level => (self.cups[level - 1].x, self.cups[level - 1].y),
            };
            let (dx, dy) = (x - receiver_x, y - receiver_y);
            *stream = (out, out * (1.0 - (dx * dx + dy * dy) / MOUTH_SQUARED).max(0.0));
        }
        for (level, (out, caught)) in streams.into_iter().enumerate() {
            self.cups[level].volume -= out;
            self.spilled += out - caught;
            match level {
                0 => self.bowl.volume += caught,
                level => self.cups[level - 1].volume += caught,
            }
        }
        streams[0].1
    }
}

/// What the numbers of a state are called, in their order.
pub fn state_names() -> Vec<String> {
    let cups = (1..=MAX_DEPTH).flat_map(|cup| ["x", "y", "tilt", "volume"].map(|part| format!("cup{cup}.{part}")));
    cups.chain(["bowl.x", "bowl.y", "bowl.volume", "spilled", "hand", "depth"].map(str::to_owned)).collect()
}

/// What a step gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The state after it.
    pub observation: Observation,
    /// What arrived in the bowl during it.
    pub reward: f32,
    /// Whether it was the last of the episode, or past it.
    pub done: bool,
}

/// The world with a clock: episodes of 4d steps, each from a new start.
#[derive(Clone, Debug)]
pub struct RecursivePourEnv {
    depth: Depth,
    seed: u64,
    next_episode: u64,
    state: EnvState,
    clock: usize,
}

impl RecursivePourEnv {
    /// A world at the start of its first episode.
    pub fn new(depth: Depth, seed: u64) -> RecursivePourEnv {
        RecursivePourEnv { depth, seed, next_episode: 0, state: EnvState::start(depth, seed, 0), clock: 0 }
    }

    /// Begins the next episode; the first call begins the first. Episode k is a function of depth, seed and k.
    pub fn reset(&mut self) -> Observation {
        let start = EnvState::start(self.depth, self.seed, self.next_episode);
        self.next_episode += 1;
        self.reset_to(start)
    }

    /// Begins an episode in a given state. Its depth is that of the state.
    pub fn reset_to(&mut self, state: EnvState) -> Observation {
        (self.state, self.clock) = (state, 0);
        state.observation()
    }

    /// Acts for half a second. The world goes on after the last step of an episode, and stays done.
    pub fn step(&mut self, action: &Action) -> Step {
        let (state, reward) = self.state.advance(action);
        self.state = state;
        self.clock += 1;
        Step { observation: state.observation(), reward, done: self.clock >= state.depth.steps() }
    }

    /// The state now.
    pub fn state(&self) -> &EnvState {
        &self.state
    }
}

/// A command in its range; what is no number is no command.
fn command(value: f32) -> f32 {
    if value.is_nan() { 0.0 } else { value.clamp(-1.0, 1.0) }
}

fn scatter(random: &mut impl RngCore) -> f32 {
    SCATTER * (2.0 * unit(random) - 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_start() -> impl Strategy<Value = EnvState> {
        (prop::sample::select(Depth::ALL.to_vec()), any::<u64>(), any::<u64>())
            .prop_map(|(depth, seed, episode)| EnvState::start(depth, seed, episode))
    }

    /// Actions of any numbers at all, most of them in range.
    fn any_actions() -> impl Strategy<Value = Vec<Action>> {
        let number = prop_oneof![4 => -1.0f32..1.0, 1 => any::<f32>()];
        prop::collection::vec(prop::array::uniform4(number), 0..40)
    }

    fn run(start: &EnvState, actions: &[Action]) -> Vec<(EnvState, f32)> {
        let mut state = *start;
        let step = |action: &Action| {
            let (next, reward) = state.advance(action);
            state = next;
            (next, reward)
        };
        actions.iter().map(step).collect()
    }

    proptest! {
        #[test]
        fn liquid_is_conserved_and_all_numbers_stay_in_range(start in any_start(), actions in any_actions()) {
            for (state, reward) in run(&start, &actions) {
                prop_assert!((state.liquid() - start.liquid()).abs() < 1e-4);
                prop_assert!((0.0..=1.0).contains(&reward));
                // Which also checks that every number is finite and within its limits.
                prop_assert_eq!(EnvState::from_observation(&state.observation()), Ok(state));
            }
        }

        #[test]
        fn returns_are_at_most_1_and_the_bowl_holds_them(start in any_start(), actions in any_actions()) {
            let total = start.rollout(&actions);
            let end = run(&start, &actions).last().map_or(start, |(state, _)| *state);
            prop_assert!((0.0..=1.0).contains(&total));
            prop_assert!((total * start.depth.cups() as f32 - end.bowl.volume).abs() < 1e-4);
        }

        #[test]
        fn returns_add_up_over_a_cut(start in any_start(), actions in any_actions(), cut: prop::sample::Index) {
            let (before, after) = actions.split_at(if actions.is_empty() { 0 } else { cut.index(actions.len()) });
            let middle = run(&start, before).last().map_or(start, |(state, _)| *state);
            let total = start.rollout(before) + middle.rollout(after);
            prop_assert!((total - start.rollout(&actions)).abs() < 1e-5);
        }
    }

    /// Σ (1 − κΔt)ᵏ in closed form: a cup at rest over the bowl, upside down, keeps 0.75¹⁶ of what it had.
    #[test]
    fn a_cup_empties_as_a_linear_reservoir_does() {
        let mut state = EnvState::start(Depth::ALL[0], 0, 0);
        state.cups[0] = Cup { x: state.bowl.x, y: state.bowl.y, tilt: 1.0, volume: 0.8 };
        let (next, reward) = state.advance(&[0.0; 4]);
        let kept = 0.8 * 0.75f32.powi(16);
        assert!((next.cups[0].volume - kept).abs() < 1e-6 && (reward - (0.8 - kept)).abs() < 1e-6);
        assert_eq!(next.spilled, 0.0);
    }

    #[test]
    fn a_stream_beside_the_mouth_is_spilled() {
        let mut state = EnvState::start(Depth::ALL[0], 0, 0);
        state.cups[0] = Cup { x: state.bowl.x + 0.2, y: state.bowl.y, tilt: 1.0, volume: 0.8 };
        let (next, reward) = state.advance(&[0.0; 4]);
        assert_eq!((reward, next.bowl.volume), (0.0, 0.0));
        assert!(next.spilled > 0.79);
    }

    #[test]
    fn a_cup_that_is_let_go_pours_on() {
        let mut state = EnvState::start(Depth::ALL[1], 0, 0);
        state.cups[0] = Cup { x: state.bowl.x, y: state.bowl.y, tilt: 0.6, volume: 0.9 };
        let (next, reward) = state.advance(&[0.0, 0.0, 0.0, 1.0]);
        assert_eq!((next.hand, next.cups[0].tilt), (1, 0.6));
        assert!(reward > 0.2, "{reward}");
    }

    #[test]
    fn the_hand_stays_among_the_cups() {
        let state = EnvState::start(Depth::ALL[1], 0, 0);
        let hands: Vec<usize> = run(&state, &[[0.0, 0.0, 0.0, 1.0]; 3]).iter().map(|(state, _)| state.hand).collect();
        assert_eq!(hands, [1, 1, 1]);
        assert_eq!(state.advance(&[0.0, 0.0, 0.0, -1.0]).0.hand, 0);
    }

    #[test]
    fn episodes_end_after_four_steps_a_level_and_differ() {
        for depth in Depth::ALL {
            let mut env = RecursivePourEnv::new(depth, 5);
            let first = env.reset();
            assert_eq!(first, RecursivePourEnv::new(depth, 5).state().observation());
            let ends: Vec<bool> = (0..4 * depth.cups()).map(|_| env.step(&[0.0; 4]).done).collect();
            assert!(ends.iter().rev().enumerate().all(|(from_end, done)| *done == (from_end == 0)));
            assert_ne!(first, env.reset());
        }
    }

    #[test]
    fn states_that_cannot_be_say_why() {
        let good = EnvState::start(Depth::ALL[1], 0, 0).observation();
        let names = state_names();
        assert_eq!(names.len(), STATE_WIDTH);
        let broken = [("cup1.x", f32::NAN), ("cup2.tilt", 1.5), ("cup3.volume", 0.1), ("spilled", -1.0), ("hand", 2.0)];
        let messages: Vec<String> = [broken.as_slice(), &[("depth", 2.5), ("bowl.volume", f32::INFINITY)]]
            .concat()
            .into_iter()
            .map(|(name, value)| {
                let mut row = good;
                row[names.iter().position(|known| known == name).unwrap()] = value;
                EnvState::from_observation(&row).unwrap_err().to_string()
            })
            .chain([Depth::new(5).unwrap_err().to_string()])
            .collect();
        insta::assert_snapshot!(messages.join("\n"), @"
        `cup1.x` of the state is NaN; give a place on the table, -1 to 1
        `cup2.tilt` of the state is 1.5; give a tilt, 0 to 1
        `cup3.volume` of the state is 0.1; give 0, as there is no such cup
        `spilled` of the state is -1; give litres, 0 or more
        `hand` of the state is 2; give a cup that is there, counted from 0
        `depth` of the state is 2.5; give a number of cups, 1 to 4
        `bowl.volume` of the state is inf; give litres, 0 or more
        there is no pour of depth 5; choose a depth from 1 to 4
        ");
    }
}
