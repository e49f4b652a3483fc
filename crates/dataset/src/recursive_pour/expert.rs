//! The expert of RecursivePour: a plan that is a recursion, and a hand that shakes a little.

use rand_chacha::ChaCha8Rng;

use super::env::{Action, EnvState};
use super::{Depth, MAX_DEPTH, Role};
use crate::draw::{Purpose, bell, generator};

/// How far a cup is tilted before its sub-pour: enough to start the stream, and to keep it running while it is
/// refilled.
const HALF_TILT: f32 = 0.6;
/// Standard deviation of where the hand takes a cup, in metres along each axis.
const AIM_ERROR: f32 = 0.025;
/// Standard deviation of how far it tilts a cup.
const TILT_ERROR: f32 = 0.04;

/// A step of a plan: what is done, to which cup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What is done.
    pub role: Role,
    /// The cup, 0 for the outermost.
    pub level: usize,
}

/// The steps of a pour: approach, tilt, the pour inside it if there is one, drain, return.
pub fn plan(depth: Depth) -> Vec<Phase> {
    fn pour(level: usize, depth: Depth, plan: &mut Vec<Phase>) {
        plan.extend([Role::Approach, Role::Tilt].map(|role| Phase { role, level }));
        if level + 1 < depth.cups() {
            pour(level + 1, depth, plan);
        }
        plan.extend([Role::Drain, Role::Return].map(|role| Phase { role, level }));
    }
    let mut plan = Vec::with_capacity(depth.steps());
    pour(0, depth, &mut plan);
    plan
}

/// A policy that follows the plan by what it sees. It remembers only where the cups stood at first.
#[derive(Clone, Debug)]
pub struct Expert {
    homes: [(f32, f32); MAX_DEPTH],
    /// What makes the hand shake; without it the hand is steady.
    shake: Option<ChaCha8Rng>,
}

impl Expert {
    /// An expert that makes no errors, for an episode from `start`.
    pub fn steady(start: &EnvState) -> Expert {
        Expert { homes: start.cups.map(|cup| (cup.x, cup.y)), shake: None }
    }

    /// An expert whose errors are a function of the seed and the number of the episode.
    pub fn unsteady(start: &EnvState, seed: u64, episode: u64) -> Expert {
        let shake = generator(seed, Purpose::PourExpert, [start.depth.cups() as u64, episode]);
        Expert { shake: Some(shake), ..Expert::steady(start) }
    }

    /// What to do in a phase, seeing the state. Within the range of actions.
    pub fn action(&mut self, phase: Phase, state: &EnvState) -> Action {
        let Phase { role, level } = phase;
        let cup = state.cups[level];
        let (to_x, to_y, tilt) = match role {
            Role::Approach => {
                let (x, y) = match level {
                    0 => (state.bowl.x, state.bowl.y),
                    level => (state.cups[level - 1].x, state.cups[level - 1].y),
                };
                (x + self.error(AIM_ERROR), y + self.error(AIM_ERROR), 0.0)
            }
            Role::Tilt => (cup.x, cup.y, HALF_TILT + self.error(TILT_ERROR)),
            Role::Drain => (cup.x, cup.y, 1.0 - self.error(TILT_ERROR).abs()),
            Role::Return => {
                let (x, y) = self.homes[level];
                (x + self.error(AIM_ERROR), y + self.error(AIM_ERROR), 0.0)
            }
        };
        let reach = match level {
            inner if inner > state.hand => 1.0,
            outer if outer < state.hand => -1.0,
            _ => 0.0,
        };
        [to_x - cup.x, to_y - cup.y, tilt - cup.tilt, reach].map(|command| command.clamp(-1.0, 1.0))
    }

    fn error(&mut self, deviation: f32) -> f32 {
        self.shake.as_mut().map_or(0.0, |random| deviation * bell(random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plan as words: `a` for approach and so on, with the number of the cup.
    fn words(depth: Depth) -> String {
        let word = |phase: &Phase| format!("{}{}", &phase.role.name()[..1], phase.level + 1);
        plan(depth).iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn pours_nest() {
        insta::assert_snapshot!(Depth::ALL.map(words).join("\n"), @"
        a1 t1 d1 r1
        a1 t1 a2 t2 d2 r2 d1 r1
        a1 t1 a2 t2 a3 t3 d3 r3 d2 r2 d1 r1
        a1 t1 a2 t2 a3 t3 a4 t4 d4 r4 d3 r3 d2 r2 d1 r1
        ");
    }

    /// The plan moves by one cup at a time, which is as far as the hand can reach in a step.
    #[test]
    fn the_hand_always_holds_the_cup_of_the_plan() {
        for depth in Depth::ALL {
            let mut state = EnvState::start(depth, 1, 2);
            let mut expert = Expert::unsteady(&state, 1, 2);
            for phase in plan(depth) {
                state = state.advance(&expert.action(phase, &state)).0;
                assert_eq!(state.hand, phase.level);
            }
        }
    }

    #[test]
    fn a_steady_hand_beats_a_shaking_one() {
        for depth in Depth::ALL {
            let mut returns = [0.0; 2];
            for episode in 0..50 {
                let start = EnvState::start(depth, 3, episode);
                let experts = [Expert::steady(&start), Expert::unsteady(&start, 3, episode)];
                for (total, mut expert) in returns.iter_mut().zip(experts) {
                    let mut state = start;
                    for phase in plan(depth) {
                        let (next, reward) = state.advance(&expert.action(phase, &state));
                        state = next;
                        *total += reward / 50.0;
                    }
                }
            }
            assert!(returns[0] > returns[1] + 0.005 && returns[0] > 0.5, "{depth:?}: {returns:?}");
        }
    }
}
