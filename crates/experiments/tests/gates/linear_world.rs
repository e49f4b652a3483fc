//! A linear world in which everything is known, as a verifier and as evidence for gates.
//!
//! z_{t+1} = A·z_t + B·a_t + σ·ε, r_t = ⟨g, z_t⟩ + ⟨h, a_t⟩, and what comes after a step is the return of standing still for ever:
//! G_t = ⟨v, z_{t+1}⟩ with v = Σ γⁱ (Aᵀ)ⁱ g. Features are z itself. V of any actions from any z is a closed form, and it is
//! linear: a change of actions changes it by the same amount from every start.
//!
//! A [`Recording`] is one long demonstration of segments, each of which executes the motion of its class with a little jitter.

use candle_core::{DType, Device, Tensor};
use compression::{Candidate, Place};
use dataset::normalize::{Normalization, NormalizationKind};
use experiments::cycle::gates::{Calls, Evidence, Merged, Replacement, Scene, epsilon_between};
use experiments::cycle::verifier::{Starts, Verifier};
use models::FragmentBatch;
use models::kernel::{Imagination, KernelConfig, MonteCarlo, Signatures};
use models::noise::{mix, normal};
use models::world_model::{Imagined, Start};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// The width of z.
pub(crate) const LATENT: usize = 4;
/// The width of actions.
pub(crate) const ACTIONS: usize = 3;
/// Steps of a segment.
pub(crate) const STEPS: usize = 6;
/// Segments that a call covers.
pub(crate) const BODY: usize = 2;
/// γ.
pub(crate) const DISCOUNT: f64 = 0.95;
/// Steps that are imagined in one go: fewer than a call has, so that rollouts are chained.
const HORIZON: usize = 5;
/// σ.
const DEVIATION: f64 = 0.05;
/// The deviation of recorded actions from the motion of their class.
const JITTER: f64 = 0.05;

/// A, B, g, h and v.
pub(crate) struct LinearWorld {
    transition: [[f64; LATENT]; LATENT],
    effect: [[f64; ACTIONS]; LATENT],
    worth: [f64; LATENT],
    cost: [f64; ACTIONS],
    after: [f64; LATENT],
}

impl LinearWorld {
    /// A world by its seed.
    pub(crate) fn new(seed: u64) -> LinearWorld {
        let mut random = generator(seed, b"world");
        let drawn: [[f64; LATENT]; LATENT] = std::array::from_fn(|_| normals(&mut random));
        // No row of A sums to more than 0.9 in size, so that nothing grows without limit.
        let largest = drawn.iter().map(|row| row.iter().map(|one| one.abs()).sum::<f64>()).fold(0.0, f64::max);
        let transition = drawn.map(|row| row.map(|one| 0.9 * one / largest));
        let effect = std::array::from_fn(|_| normals(&mut random));
        let (worth, cost) = (normals(&mut random), normals(&mut random).map(|one: f64| 0.2 * one));
        let (mut after, mut power): ([f64; LATENT], [f64; LATENT]) = ([0.0; LATENT], worth);
        for _ in 0..400 {
            after = std::array::from_fn(|at| after[at] + power[at]);
            // γ·Aᵀ once more.
            power = std::array::from_fn(|at| {
                DISCOUNT * (0..LATENT).map(|row| transition[row][at] * power[row]).sum::<f64>()
            });
        }
        LinearWorld { transition, effect, worth, cost, after }
    }

    /// The same world, but actions have no effect in it.
    pub(crate) fn without_effects(self) -> LinearWorld {
        LinearWorld { effect: [[0.0; ACTIONS]; LATENT], cost: [0.0; ACTIONS], ..self }
    }

    /// z_{t+1} without noise.
    fn step(&self, z: &[f64; LATENT], action: &[f64]) -> [f64; LATENT] {
        let own = |row: usize| self.transition[row].iter().zip(z).map(|(a, z)| a * z).sum::<f64>();
        let by_action = |row: usize| self.effect[row].iter().zip(action).map(|(b, a)| b * a).sum::<f64>();
        std::array::from_fn(|row| own(row) + by_action(row))
    }

    fn reward(&self, z: &[f64; LATENT], action: &[f64]) -> f64 {
        dot(&self.worth, z) + dot(&self.cost, action)
    }

    /// V of some rows of actions from z, without noise: its expectation.
    pub(crate) fn value(&self, z: [f64; LATENT], actions: &[f32]) -> f64 {
        let (mut z, mut sum, mut power) = (z, 0.0, 1.0);
        for action in actions.chunks_exact(ACTIONS) {
            let action: Vec<f64> = action.iter().map(|one| f64::from(*one)).collect();
            sum += power * self.reward(&z, &action);
            power *= DISCOUNT;
            z = self.step(&z, &action);
        }
        sum + power * dot(&self.after, &z)
    }

    /// How much V changes if one is added to each place of all actions of a call: exact from every start.
    pub(crate) fn sensitivity(&self) -> [f64; ACTIONS] {
        std::array::from_fn(|place| {
            let mut rows = vec![0.0; BODY * STEPS * ACTIONS];
            rows.chunks_exact_mut(ACTIONS).for_each(|row| row[place] = 1.0);
            self.value([0.0; LATENT], &rows) - self.value([0.0; LATENT], &vec![0.0; rows.len()])
        })
    }
}

impl Imagination for LinearWorld {
    fn latent_width(&self) -> usize {
        LATENT
    }

    fn encode_fragment(&self, fragments: &FragmentBatch) -> models::Result<Tensor> {
        Ok(fragments.actions.mean(1)?)
    }

    fn imagine(&self, start: &Start, actions: &Tensor, noise: Option<&Tensor>) -> models::Result<Imagined> {
        let (batch, steps, _) = actions.dims3()?;
        let (starts, actions) = (numbers(&start.features)?, numbers(actions)?);
        let noise = noise.map_or_else(|| Ok(vec![0.0; batch * steps * LATENT]), numbers)?;
        let [mut means, mut latents, mut rewards, mut returns] = [const { Vec::<f32>::new() }; 4];
        for row in 0..batch {
            let mut z: [f64; LATENT] = std::array::from_fn(|at| starts[row * LATENT + at]);
            for at in row * steps..(row + 1) * steps {
                let action = &actions[at * ACTIONS..(at + 1) * ACTIONS];
                let mean = self.step(&z, action);
                rewards.push(self.reward(&z, action) as f32);
                z = std::array::from_fn(|place| mean[place] + DEVIATION * noise[at * LATENT + place]);
                means.extend(mean.map(|one| one as f32));
                latents.extend(z.map(|one| one as f32));
                returns.push(dot(&self.after, &z) as f32);
            }
        }
        let wide = |values: Vec<f32>| Tensor::from_vec(values, (batch, steps, LATENT), &Device::Cpu);
        let latents = wide(latents)?;
        Ok(Imagined {
            means: wide(means)?,
            deviations: wide(vec![DEVIATION as f32; batch * steps * LATENT])?,
            features: latents.clone(),
            states: latents.narrow(2, 0, 1)?.contiguous()?,
            latents,
            rewards: Tensor::from_vec(rewards, (batch, steps), &Device::Cpu)?,
            returns: Tensor::from_vec(returns, (batch, steps), &Device::Cpu)?,
        })
    }
}

/// One long demonstration: pairs of segments, each a motion of a class.
pub(crate) struct Recording {
    /// The world that it was recorded in.
    pub(crate) world: LinearWorld,
    /// The class of each segment.
    pub(crate) classes: Vec<usize>,
    /// The action of each class.
    pub(crate) motions: Vec<[f64; ACTIONS]>,
    /// z at each frame.
    latents: Vec<[f64; LATENT]>,
    /// Rows of actions.
    actions: Vec<f32>,
    signatures: Signatures,
    identity: Normalization,
}

impl Recording {
    /// Records segments of some classes; classes are numbered from 0.
    pub(crate) fn new(seed: u64, classes: Vec<usize>) -> models::Result<Recording> {
        let world = LinearWorld::new(seed);
        let mut random = generator(seed, b"motions");
        let count = classes.iter().max().map_or(0, |most| most + 1);
        let motions: Vec<[f64; ACTIONS]> = (0..count).map(|_| normals(&mut random)).collect();
        let mut random = generator(seed, b"recording");
        let (mut z, mut latents, mut actions) = ([0.0; LATENT], Vec::new(), Vec::new());
        for class in &classes {
            for _ in 0..STEPS {
                let jitter: [f64; ACTIONS] = normals(&mut random);
                let action: [f64; ACTIONS] = std::array::from_fn(|at| motions[*class][at] + JITTER * jitter[at]);
                let noise: [f64; LATENT] = normals(&mut random);
                latents.push(z);
                actions.extend(action.map(|one| one as f32));
                let next = world.step(&z, &action);
                z = std::array::from_fn(|at| next[at] + DEVIATION * noise[at]);
            }
        }
        let signatures = signatures(&world, &latents, &actions, seed)?;
        let identity =
            Normalization { kind: NormalizationKind::MeanStd, offset: vec![0.0; ACTIONS], scale: vec![1.0; ACTIONS] };
        Ok(Recording { world, classes, motions, latents, actions, signatures, identity })
    }

    /// z at a frame.
    pub(crate) fn latent(&self, frame: usize) -> [f64; LATENT] {
        self.latents[frame]
    }

    /// The recorded actions of some segments.
    pub(crate) fn rows(&self, segments: std::ops::Range<usize>) -> &[f32] {
        &self.actions[segments.start * STEPS * ACTIONS..segments.end * STEPS * ACTIONS]
    }

    /// The motions of some classes, without jitter.
    pub(crate) fn motion(&self, classes: &[usize]) -> Vec<f32> {
        let of = |class: &usize| self.motions[*class].map(|one| one as f32).repeat(STEPS);
        classes.iter().flat_map(of).collect()
    }

    /// D_φ of two segments, exactly as the loop defines it.
    fn distance(&self, one: usize, other: usize) -> f64 {
        let parts = self.signatures.parts(one, other);
        parts.value + parts.rollout
    }

    /// ε_t, as the loop chooses it.
    fn epsilon(&self) -> f64 {
        let count = self.classes.len();
        let pairs = || (0..count).flat_map(move |one| (one + 1..count).map(move |other| (one, other)));
        let alike = pairs().filter(|(one, other)| self.classes[*one] == self.classes[*other]).count();
        let mut distances: Vec<f64> = pairs().map(|(one, other)| self.distance(one, other)).collect();
        distances.sort_by(f64::total_cmp);
        epsilon_between(&distances, alike)
    }

    /// The largest return of a frame, in size: what changes of return are divided by.
    pub(crate) fn largest_return(&self) -> f64 {
        let values = (0..self.classes.len())
            .map(|segment| self.world.value(self.latents[segment * STEPS], self.rows(segment..segment + 1)).abs());
        values.fold(0.0, f64::max)
    }
}

impl Starts for Recording {
    fn starts(&self, frames: &[usize]) -> experiments::Result<Start> {
        let values: Vec<f32> = frames.iter().flat_map(|frame| self.latents[*frame].map(|one| one as f32)).collect();
        let features = Tensor::from_vec(values, (frames.len(), LATENT), &Device::Cpu)?;
        Ok(Start { states: features.narrow(1, 0, 1)?.contiguous()?, features })
    }
}

/// The calls of a candidate in a recording. `instead` gives the actions that replace those of a call, by the number of the
/// call and its first segment.
pub(crate) struct LinearEvidence<'a> {
    /// The recording.
    pub(crate) recording: &'a Recording,
    /// What is done instead at a call.
    pub(crate) instead: Box<dyn Fn(usize, usize) -> Vec<f32> + 'a>,
}

impl<'a> LinearEvidence<'a> {
    /// The scene that gates look at.
    pub(crate) fn scene(&'a self) -> Scene<'a> {
        let recording = self.recording;
        Scene {
            evidence: self,
            epsilon: recording.epsilon(),
            largest_return: recording.largest_return(),
            verifier: Verifier {
                model: &recording.world,
                starts: recording,
                actions: &recording.identity,
                horizon: HORIZON,
                discount: DISCOUNT,
                predicts_returns: true,
            },
        }
    }
}

impl Evidence for LinearEvidence<'_> {
    fn count(&self, candidate: &Candidate) -> Calls {
        Calls { tasks: 0, motions: candidate.places.len() }
    }

    fn merged(&self, candidate: &Candidate) -> Merged {
        let mut merged = Merged::default();
        candidate.places.iter().for_each(|place| merged.add_motion(place, Some));
        merged
    }

    fn distance(&self, one: usize, other: usize) -> f64 {
        self.recording.distance(one, other)
    }

    fn replacements(&self, candidate: &Candidate) -> experiments::Result<Vec<Replacement>> {
        let of = |(call, place): (usize, &Place)| {
            let segments = place.steps.clone()?;
            let recorded = self.recording.rows(segments.clone()).to_vec();
            let still = vec![0.0; recorded.len()];
            let instead = (self.instead)(call, segments.start);
            Some(Replacement { frame: segments.start * STEPS, recorded, instead, still })
        };
        Ok(candidate.places.iter().enumerate().filter_map(of).collect())
    }
}

/// A candidate whose calls cover [`BODY`] segments each, from these ones on.
pub(crate) fn candidate(first_segments: &[usize], gain: f64) -> Candidate {
    let term = language::TermStore::new().text("a call");
    let place = |first: &usize| Place {
        program: 0,
        arguments: Vec::new(),
        expansion: term,
        steps: Some(*first..first + BODY),
        own: std::iter::once(*first..first + BODY).collect(),
    };
    Candidate {
        name: "fn_0".to_owned(),
        arity: 0,
        term,
        body: "seq[a, b]".to_owned(),
        parameters: Vec::new(),
        principal_type: "Motion".to_owned(),
        gain,
        uses: first_segments.len() as u64,
        places: first_segments.iter().map(place).collect(),
        unplaced: Vec::new(),
    }
}

/// A generator by a seed and a purpose.
pub(crate) fn generator(seed: u64, purpose: &[u8]) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(mix(seed, purpose))
}

/// Standard normal numbers.
pub(crate) fn normals<const N: usize>(random: &mut ChaCha8Rng) -> [f64; N] {
    let values = normal(random, N);
    std::array::from_fn(|at| f64::from(values[at]))
}

/// What follows from each segment, from a few visited states and with sampled noise.
fn signatures(
    world: &LinearWorld,
    latents: &[[f64; LATENT]],
    actions: &[f32],
    seed: u64,
) -> models::Result<Signatures> {
    let starts = 8;
    let visited: Vec<f32> =
        (0..starts).flat_map(|at| latents[at * latents.len() / starts].map(|one| one as f32)).collect();
    let features = Tensor::from_vec(visited, (starts, LATENT), &Device::Cpu)?;
    let start = Start { states: features.narrow(1, 0, 1)?.contiguous()?, features };
    let config =
        KernelConfig { horizon: STEPS, starts, samples: 2, discount: DISCOUNT, seed, ..KernelConfig::default() };
    let count = actions.len() / (STEPS * ACTIONS);
    let rows = Tensor::from_slice(actions, (count, STEPS, ACTIONS), &Device::Cpu)?;
    let nothing = Tensor::zeros((count, STEPS, 0), DType::F32, &Device::Cpu)?;
    let batch =
        FragmentBatch { features: nothing.clone(), states: nothing, actions: rows, rewards: None, returns: None };
    MonteCarlo::new(world, &start, config)?.signatures([Ok(batch)])
}

fn numbers(tensor: &Tensor) -> models::Result<Vec<f64>> {
    Ok(tensor.to_dtype(DType::F64)?.flatten_all()?.to_vec1()?)
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}
