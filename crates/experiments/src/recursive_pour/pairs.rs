//! The pairs of a state and a fragment over which returns are compared.

use std::collections::{BTreeMap, BTreeSet};

use dataset::recursive_pour::{Action, Demo, Depth, EnvState, FRAGMENT_STEPS, FRAGMENT_STRIDE, RewardScale};
use models::noise::mix;

use crate::error::{Error, Result};

/// Demonstrations on which a model is evaluated, with the place of each in the dataset of its seed.
pub(super) struct Judged {
    /// The seed of the demonstrations.
    pub(super) seed: u64,
    /// The number of the episode among the demonstrations of its seed.
    pub(super) episode: usize,
    /// The demonstration.
    pub(super) demo: Demo,
}

/// A state, the actions that are executed from it, and the exact return.
pub(super) struct Pair {
    pub(super) state: EnvState,
    pub(super) actions: Vec<Action>,
    pub(super) truth: f64,
    /// The seed and the episode that the actions are from.
    pub(super) of: (u64, usize),
    /// The step of that episode with which the actions begin.
    pub(super) start: usize,
}

impl Pair {
    fn new(from: &Judged, step: usize, of: &Judged, first: usize, scale: RewardScale) -> Result<Pair> {
        let state = from
            .demo
            .state(step)
            .map_err(|error| Error::Mismatch(format!("a state of a demo that the world does not know: {error}")))?;
        let actions = of.demo.actions[first..first + FRAGMENT_STEPS].to_vec();
        let truth = f64::from(scale.convert(state.depth, state.rollout(&actions)));
        Ok(Pair { state, actions, truth, of: (of.seed, of.episode), start: first })
    }
}

/// Every fragment from the state in which it was demonstrated.
pub(super) fn demonstrated(judged: &[Judged], scale: RewardScale) -> Result<Vec<Pair>> {
    let firsts = |one: &Judged| (0..one.demo.steps() + 1 - FRAGMENT_STEPS).step_by(FRAGMENT_STRIDE);
    judged.iter().flat_map(|one| firsts(one).map(move |first| Pair::new(one, first, one, first, scale))).collect()
}

/// Pairs of each depth: a state of any demonstration and the actions of a fragment of any demonstration of that depth.
pub(super) fn crossed(judged: &[Judged], count: usize, scale: RewardScale) -> Result<Vec<Pair>> {
    let mut found = Vec::new();
    for depth in Depth::ALL {
        let of: Vec<&Judged> = judged.iter().filter(|one| one.demo.depth == depth).collect();
        let per_demo = (depth.steps(), depth.steps() + 1 - FRAGMENT_STEPS);
        let fragments = of.len() * per_demo.1;
        let all = of.len() * per_demo.0 * fragments;
        // Draws without repetition; all pairs where there are no more than asked for.
        let mut drawn = BTreeSet::new();
        let mut draw = 0_u64;
        while drawn.len() < count.min(all) {
            let mut text = b"pour pairs".to_vec();
            text.extend((depth.cups() as u64).to_le_bytes());
            text.extend(draw.to_le_bytes());
            drawn.insert((mix(0, &text) % all as u64) as usize);
            draw += 1;
        }
        for at in drawn {
            let (state, fragment) = (at / fragments, at % fragments);
            let (from, step) = (of[state / per_demo.0], state % per_demo.0);
            let (of, first) = (of[fragment / per_demo.1], fragment % per_demo.1);
            found.push(Pair::new(from, step, of, first, scale)?);
        }
    }
    Ok(found)
}

/// A prediction without a model for demonstrated pairs: the mean return of the training fragments of the same depth that
/// begin with the same step. A model that does no better has not learned what distinguishes one episode from another.
pub(super) fn constant(training: &[Demo], pairs: &[Pair]) -> Vec<f64> {
    let mut sums = BTreeMap::<(usize, usize), (f64, f64)>::new();
    for demo in training {
        for (start, rewards) in demo.rewards.windows(FRAGMENT_STEPS).enumerate() {
            let (sum, count) = sums.entry((demo.depth.cups(), start)).or_default();
            *sum += rewards.iter().copied().map(f64::from).sum::<f64>();
            *count += 1.0;
        }
    }
    let mean = |pair: &Pair| sums.get(&(pair.state.depth.cups(), pair.start)).map_or(0.0, |(sum, count)| sum / count);
    pairs.iter().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use dataset::recursive_pour::{self, DEMOS_PER_DEPTH, SEED_EVAL};

    use super::super::judged;
    use super::*;

    #[test]
    fn crossed_pairs_are_distinct_states_and_fragments_with_their_exact_returns() {
        let judged = judged(2, &[SEED_EVAL]);
        let found = crossed(&judged, 10_000, RewardScale::Depth).unwrap();
        // 2 demos of depth d have 2·4d states and 2·(4d − 3) fragments: all pairs are fewer than asked for.
        let all: usize = (1..=4).map(|d| 2 * 4 * d * 2 * (4 * d - 3)).sum();
        assert_eq!(found.len(), all);
        assert!(found.iter().any(|pair| pair.truth > 0.0));
        assert_eq!(crossed(&judged, 10, RewardScale::Depth).unwrap().len(), 40, "ten of each depth");
    }

    #[test]
    fn demonstrated_pairs_are_the_papers_1400_with_the_recorded_returns() {
        let judged = judged(DEMOS_PER_DEPTH, &[SEED_EVAL]);
        let found = demonstrated(&judged, RewardScale::Depth).unwrap();
        assert_eq!(found.len(), 1400);
        let recorded = judged.iter().flat_map(|one| one.demo.rewards.windows(FRAGMENT_STEPS));
        for (pair, rewards) in found.iter().zip(recorded) {
            assert_eq!(pair.truth, f64::from(rewards.iter().fold(0.0, |total, reward| total + reward)));
        }
    }

    #[test]
    fn pairs_say_where_their_fragment_is_and_follow_the_reward_scale() {
        let judged = judged(2, &[12, 13]);
        assert_eq!(judged.len(), 16);
        let [depth, fixed] = RewardScale::ALL.map(|scale| demonstrated(&judged, scale).unwrap());
        for (one, other) in depth.iter().zip(&fixed) {
            let demo = &recursive_pour::demos(2, one.of.0)[one.of.1];
            assert_eq!(demo.actions[one.start..one.start + FRAGMENT_STEPS], one.actions);
            assert_eq!(demo.states[one.start], one.state.observation());
            let cups = one.state.depth.cups() as f64;
            assert!((one.truth * cups - other.truth * 4.0).abs() < 1e-5);
        }
    }

    #[test]
    fn the_constant_prediction_is_the_mean_of_the_training_fragments() {
        let pairs = demonstrated(&judged(1, &[12]), RewardScale::Depth).unwrap();
        let training = recursive_pour::demos(3, 11);
        let found = constant(&training, &pairs);
        let of_depth_1: f32 = training.iter().filter(|demo| demo.depth.cups() == 1).map(Demo::total_return).sum();
        assert!((found[0] - f64::from(of_depth_1) / 3.0).abs() < 1e-6, "a demo of depth 1 is one fragment");
        let own = demonstrated(&judged(1, &[11]), RewardScale::Depth).unwrap();
        let exact = constant(&recursive_pour::demos(1, 11), &own);
        assert!(own.iter().zip(exact).all(|(pair, found)| (pair.truth - found).abs() < 1e-6));
    }
}
