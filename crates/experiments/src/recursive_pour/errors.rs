//! How far imagined returns are from the true ones, and where they are farthest.

use candle_core::{Device, Tensor};
use dataset::recursive_pour::{Depth, FRAGMENT_STEPS, RewardScale};
use models::world_model::Start;
use models::{Scales, WorldModel};
use serde::{Deserialize, Serialize};

use super::pairs::Pair;
use crate::error::Result;

/// Rollouts that are imagined at once.
const CHUNK: usize = 512;

/// |R̂ − R| over some pairs; `T` is a number, or a number over seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Errors<T> {
    /// η_1 … η_4.
    pub by_depth: Vec<T>,
    /// Their maximum.
    pub sup: T,
    /// The mean.
    pub mean: T,
}

/// A fragment whose imagined return is far from the true one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorstFragment {
    /// The seed of the demonstrations that it is from.
    pub demos: u64,
    /// Its episode in the dataset of that seed (`data synth recursive-pour --seed`).
    pub episode: usize,
    /// The depth of the episode.
    pub depth: usize,
    /// The step of the episode with which it begins.
    pub start: usize,
    /// R̂, the return that the world model imagines.
    pub imagined: f64,
    /// R, the true return.
    pub truth: f64,
    /// |R̂ − R|.
    pub error: f64,
    /// The same in litres, which do not depend on the reward scale.
    pub litres: f64,
}

/// R̂ of each pair, every latent of the imagination at its mean.
pub(super) fn imagined(model: &WorldModel, scales: &Scales, pairs: &[Pair], device: &Device) -> Result<Vec<f64>> {
    let mut found = Vec::with_capacity(pairs.len());
    for chunk in pairs.chunks(CHUNK) {
        let mut states: Vec<f32> = chunk.iter().flat_map(|pair| pair.state.observation()).collect();
        let mut actions: Vec<f32> = chunk.iter().flat_map(|pair| pair.actions.iter().flatten().copied()).collect();
        scales.states.apply(&mut states);
        scales.actions.apply(&mut actions);
        let states = Tensor::from_vec(states, (chunk.len(), scales.states.width()), device)?;
        let actions = Tensor::from_vec(actions, (chunk.len(), FRAGMENT_STEPS, scales.actions.width()), device)?;
        let start = Start { features: states.clone(), states };
        let imagined = models::ops::without_gradients(|| model.imagine(&start, &actions, None))?;
        found.extend(imagined.rewards.sum(1)?.to_vec1::<f32>()?.into_iter().map(f64::from));
    }
    Ok(found)
}

/// |R̂ − R| over pairs, where an error at depth d is multiplied by `unit(d)`.
pub(super) fn errors(pairs: &[Pair], imagined: &[f64], unit: impl Fn(Depth) -> f64) -> Errors<f64> {
    let all: Vec<(Depth, f64)> = pairs
        .iter()
        .zip(imagined)
        .map(|(pair, found)| (pair.state.depth, (found - pair.truth).abs() * unit(pair.state.depth)))
        .collect();
    let sup = |holds: &dyn Fn(Depth) -> bool| {
        all.iter().filter(|(depth, _)| holds(*depth)).map(|(_, error)| *error).fold(0.0, f64::max)
    };
    Errors {
        by_depth: Depth::ALL.map(|depth| sup(&|of| of == depth)).to_vec(),
        sup: sup(&|_| true),
        mean: all.iter().map(|(_, error)| error).sum::<f64>() / all.len().max(1) as f64,
    }
}

/// The pairs with the largest errors, the largest first; equal errors in the order of the pairs.
pub(super) fn worst(pairs: &[Pair], imagined: &[f64], count: usize, scale: RewardScale) -> Vec<WorstFragment> {
    let one = |(pair, imagined): (&Pair, &f64)| {
        let error = (imagined - pair.truth).abs();
        WorstFragment {
            demos: pair.of.0,
            episode: pair.of.1,
            depth: pair.state.depth.cups(),
            start: pair.start,
            imagined: *imagined,
            truth: pair.truth,
            error,
            litres: error * f64::from(scale.litres(pair.state.depth)),
        }
    };
    let mut all: Vec<WorstFragment> = pairs.iter().zip(imagined).map(one).collect();
    all.sort_by(|one, other| other.error.total_cmp(&one.error));
    all.truncate(count);
    all
}

#[cfg(test)]
mod tests {
    use super::super::judged;
    use super::super::pairs::demonstrated;
    use super::*;

    #[test]
    fn the_worst_fragments_are_sorted_and_begin_with_the_supremum() {
        let scale = RewardScale::Fixed;
        let pairs = demonstrated(&judged(3, &[12]), scale).unwrap();
        // Errors in no order, of both signs, some of them equal.
        let wrong = |at: usize| ((at * 37) % 23) as f64 / 100.0 * if at.is_multiple_of(2) { 1.0 } else { -1.0 };
        let imagined: Vec<f64> = pairs.iter().enumerate().map(|(at, pair)| pair.truth + wrong(at)).collect();
        let errors = errors(&pairs, &imagined, |_| 1.0);
        let all = worst(&pairs, &imagined, usize::MAX, scale);
        assert_eq!((all.len(), worst(&pairs, &imagined, 5, scale)), (pairs.len(), all[..5].to_vec()));
        assert_eq!(all[0].error, errors.sup);
        assert!(all.is_sorted_by(|one, next| one.error >= next.error));
        for (at, sup) in errors.by_depth.iter().enumerate() {
            let first = all.iter().find(|one| one.depth == at + 1).unwrap();
            assert_eq!(first.error, *sup, "η_{} is the error of the worst fragment of that depth", at + 1);
        }
        for one in &all {
            assert_eq!(one.error, (one.imagined - one.truth).abs());
            assert!((one.litres - 4.0 * one.error).abs() < 1e-12);
        }
        let mean = all.iter().map(|one| one.error).sum::<f64>() / all.len() as f64;
        assert!((mean - errors.mean).abs() < 1e-12);
    }
}
