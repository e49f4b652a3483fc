use std::sync::atomic::{AtomicUsize, Ordering};

use candle_core::{DType, Device, Tensor};
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::amortizer::{self, Amortizer, AmortizerConfig, Metric, Target};
use crate::noise;
use crate::ops::Form;
use crate::parameters::{Parameters, Precision};
use crate::training::adamw::{AdamW, AdamWConfig};
use crate::widths::Widths;
use crate::world_model::WorldModelConfig;

const ACTIONS: usize = 2;
const LATENT: usize = 4;
const STEPS: usize = 6;
/// λ of the world below.
const DECAY: f64 = 0.8;
/// B of the world below, `[actions, latent]`.
const EFFECT: [[f64; LATENT]; ACTIONS] = [[1.0, -0.5, 0.0, 0.3], [0.2, 0.7, -1.0, 0.4]];
/// g of the world below.
const WORTH: [f64; LATENT] = [0.5, -1.0, 0.25, 2.0];

/// z₀ = x, z_{t+1} = λz_t + Ba_t + σ(a_t)·ε with σ(a) = 0.2 + 0.1·|a₀|, r_t = ⟨g, z_t⟩ + Σa_t, G_t = ⟨g, z_{t+1}⟩. Everything
/// that the kernel asks of it is known. It counts its rollouts.
#[derive(Default)]
struct LinearWorld {
    rollouts: AtomicUsize,
}

fn deviation(action: &[f64]) -> f64 {
    0.2 + 0.1 * action[0].abs()
}

fn rows(tensor: &Tensor) -> Vec<f64> {
    tensor.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

fn tensor(values: impl IntoIterator<Item = f64>, shape: &[usize]) -> Tensor {
    let values: Vec<f32> = values.into_iter().map(|one| one as f32).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

fn step(z: &[f64], action: &[f64]) -> Vec<f64> {
    (0..LATENT).map(|d| DECAY * z[d] + (0..ACTIONS).map(|a| EFFECT[a][d] * action[a]).sum::<f64>()).collect()
}

fn worth(z: &[f64]) -> f64 {
    z.iter().zip(WORTH).map(|(z, g)| z * g).sum()
}

impl Imagination for LinearWorld {
    fn latent_width(&self) -> usize {
        LATENT
    }

    /// Ba₀: all that there is to know of a fragment whose action never changes.
    fn encode_fragment(&self, fragments: &FragmentBatch) -> Result<Tensor> {
        let (batch, ..) = fragments.actions.dims3()?;
        let actions = rows(&fragments.actions.narrow(1, 0, 1)?);
        let latents = actions.chunks_exact(ACTIONS).flat_map(|action| step(&[0.0; LATENT], action));
        Ok(tensor(latents, &[batch, LATENT]))
    }

    fn imagine(&self, start: &Start, actions: &Tensor, noise: Option<&Tensor>) -> Result<Imagined> {
        let (batch, steps, _) = actions.dims3()?;
        self.rollouts.fetch_add(batch, Ordering::Relaxed);
        let (starts, actions) = (rows(&start.features), rows(actions));
        let noise = noise.map_or(vec![0.0; batch * steps * LATENT], rows);
        let [mut means, mut deviations, mut latents, mut rewards, mut returns] = [const { Vec::new() }; 5];
        for row in 0..batch {
            let mut z = starts[row * LATENT..(row + 1) * LATENT].to_vec();
            for at in row * steps..(row + 1) * steps {
                let action = &actions[at * ACTIONS..(at + 1) * ACTIONS];
                let mean = step(&z, action);
                rewards.push(worth(&z) + action.iter().sum::<f64>());
                z = (0..LATENT).map(|d| mean[d] + deviation(action) * noise[at * LATENT + d]).collect();
                means.extend(mean);
                deviations.extend([deviation(action); LATENT]);
                latents.extend(z.clone());
                returns.push(worth(&z));
            }
        }
        let latent_shape = [batch, steps, LATENT];
        Ok(Imagined {
            means: tensor(means, &latent_shape),
            deviations: tensor(deviations, &latent_shape),
            latents: tensor(latents, &latent_shape),
            features: Tensor::zeros(&latent_shape, DType::F32, &Device::Cpu)?,
            states: Tensor::zeros((batch, steps, 1), DType::F32, &Device::Cpu)?,
            rewards: tensor(rewards, &[batch, steps]),
            returns: tensor(returns, &[batch, steps]),
        })
    }
}

/// Normal features (the latents), states and actions.
fn fragments(count: usize, seed: u64) -> FragmentBatch {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = |width: usize| {
        let values = noise::normal(&mut generator, count * STEPS * width);
        Tensor::from_vec(values, (count, STEPS, width), &Device::Cpu).unwrap()
    };
    FragmentBatch { features: draw(LATENT), states: draw(1), actions: draw(ACTIONS), rewards: None, returns: None }
}

/// Rollouts that follow the means: what they give is known in closed form.
fn config() -> KernelConfig {
    KernelConfig { horizon: 4, starts: 5, samples: 1, ..KernelConfig::default() }
}

fn starts() -> Start {
    visited(&fragments(3, 99), config().starts, 0).unwrap()
}

fn signatures_of(config: KernelConfig, batch: &FragmentBatch) -> Signatures {
    let world = LinearWorld::default();
    MonteCarlo::new(&world, &starts(), config).unwrap().signatures([Ok(batch.clone())]).unwrap()
}

/// Mean of z_k, its variance (the same in every dimension), the last prior's deviation, and V, all in closed form.
fn closed_form(start: &[f64], actions: &[f64], k: usize, discount: f64) -> (Vec<f64>, f64, f64, f64) {
    let (mut z, mut variance, mut last, mut value) = (start.to_vec(), 0.0, 0.0, 0.0);
    for (t, action) in actions.chunks_exact(ACTIONS).take(k).enumerate() {
        value += discount.powi(t as i32) * (worth(&z) + action.iter().sum::<f64>());
        z = step(&z, action);
        last = deviation(action);
        variance = DECAY * DECAY * variance + last * last;
    }
    value += discount.powi(k as i32) * worth(&z);
    (z, variance, last, value)
}

fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|one| one * one).sum::<f64>().sqrt()
}

/// E_s of both parts for a pair of fragments, with W₂ between the laws of z_k, or between last priors.
fn exact_parts(batch: &FragmentBatch, one: usize, other: usize, sampled: bool) -> Parts {
    let (actions, starts) = (rows(&batch.actions), rows(&starts().features));
    let of = |fragment: usize, start: &[f64]| {
        let each = STEPS * ACTIONS;
        closed_form(start, &actions[fragment * each..(fragment + 1) * each], 4, 0.99)
    };
    let mut sums = Parts { value: 0.0, rollout: 0.0 };
    for start in starts.chunks_exact(LATENT) {
        let ((m, variance, last, v), (m2, variance2, last2, v2)) = (of(one, start), of(other, start));
        let spread = if sampled { variance.sqrt() - variance2.sqrt() } else { last - last2 };
        sums.value += (v - v2).abs() / 5.0;
        sums.rollout += norm(m.iter().zip(&m2).map(|(a, b)| a - b).chain([spread; LATENT])) / 5.0;
    }
    sums
}

#[test]
fn following_the_means_gives_the_closed_form() {
    let batch = fragments(4, 1);
    let signatures = signatures_of(config(), &batch);
    for one in 0..4 {
        for other in 0..4 {
            let (found, wanted) = (signatures.parts(one, other), exact_parts(&batch, one, other, false));
            assert!((found.value - wanted.value).abs() < 1e-5, "{found:?} {wanted:?}");
            assert!((found.rollout - wanted.rollout).abs() < 1e-5, "{found:?} {wanted:?}");
        }
    }
}

#[test]
fn moments_of_many_samples_approach_the_closed_form() {
    let batch = fragments(3, 1);
    let signatures = signatures_of(KernelConfig { samples: 1000, ..config() }, &batch);
    let (starts, actions) = (rows(&starts().features), rows(&batch.actions));
    for fragment in 0..3 {
        let actions = &actions[fragment * STEPS * ACTIONS..(fragment + 1) * STEPS * ACTIONS];
        for (start, point) in starts.chunks_exact(LATENT).zip(signatures.clouds(fragment)) {
            let (mean, variance, ..) = closed_form(start, actions, 4, 0.99);
            for d in 0..LATENT {
                // The mean of 1000 draws is within four of its own deviations.
                assert!((f64::from(point[d]) - mean[d]).abs() < 4.0 * (variance / 1000.0).sqrt());
                assert!((f64::from(point[LATENT + d]) / variance.sqrt() - 1.0).abs() < 0.08);
            }
        }
    }
    let (found, wanted) = (signatures.parts(0, 1), exact_parts(&batch, 0, 1, true));
    assert!((found.rollout / wanted.rollout - 1.0).abs() < 0.02, "{found:?} {wanted:?}");
    assert!((found.value / wanted.value - 1.0).abs() < 0.05, "{found:?} {wanted:?}");
}

#[test]
fn a_shifted_cloud_is_as_far_as_it_was_shifted() {
    // Fragments that differ in a₁ alone have the same noise, so their clouds are translates of each other, and no assignment
    // beats the translation.
    let batch = fragments(1, 5);
    let shift = Tensor::new(&[[[0.0_f32, 0.7]]], &Device::Cpu).unwrap();
    let shifted = batch.actions.broadcast_add(&shift).unwrap();
    let both = FragmentBatch {
        features: Tensor::cat(&[&batch.features, &batch.features], 0).unwrap(),
        states: Tensor::cat(&[&batch.states, &batch.states], 0).unwrap(),
        actions: Tensor::cat(&[&batch.actions, &shifted], 0).unwrap(),
        ..batch
    };
    let wanted = norm(EFFECT[1].iter().map(|b| b * 0.7 * (0..4).map(|t| DECAY.powi(t)).sum::<f64>()));
    for samples in [1, 8, 32] {
        for transport in [Transport::Gaussian, Transport::Assignment] {
            let signatures = signatures_of(KernelConfig { samples, transport, ..config() }, &both);
            let found = signatures.parts(0, 1).rollout;
            assert!((found - wanted).abs() < 1e-5, "{transport:?} {samples}: {found} {wanted}");
        }
    }
}

#[test]
fn rollouts_grow_with_fragments_and_not_with_pairs() {
    let world = LinearWorld::default();
    for (samples, rollouts) in [(1, 1), (1, 1024), (3, 40)] {
        let config = KernelConfig { samples, rollouts, ..config() };
        let kernel = MonteCarlo::new(&world, &starts(), config).unwrap();
        world.rollouts.store(0, Ordering::Relaxed);
        let signatures = kernel.signatures([Ok(fragments(7, 1)), Ok(fragments(4, 2))]).unwrap();
        kernel.distances(&signatures);
        assert_eq!(world.rollouts.load(Ordering::Relaxed), 11 * 5 * samples);
        // The same numbers however they are cut.
        let whole = signatures_of(KernelConfig { samples, ..config }, &fragments(7, 1));
        assert_eq!(signatures.values(6), whole.values(6));
        assert!(signatures.clouds(6).eq(whole.clouds(6)));
    }
}

#[test]
fn the_reference_samples_unless_it_is_asked_not_to() {
    let batch = fragments(3, 1);
    let by_default = KernelConfig { horizon: 4, starts: 5, ..KernelConfig::default() };
    assert!(by_default.samples > 1);
    let with = |samples, seed| signatures_of(KernelConfig { samples, seed, ..by_default }, &batch);
    let (one, other) = (with(by_default.samples, 1), with(by_default.samples, 2));
    assert_ne!(one.values(0), other.values(0), "noise is drawn by the seed");
    assert_eq!(one, with(by_default.samples, 1), "and by nothing else");
    assert_eq!(with(1, 1), with(1, 2), "one rollout follows the means");
    assert_ne!(one.values(0), with(1, 1).values(0));
    // The default takes all actions of a fragment: the last one counts.
    assert_eq!(by_default.horizon.max(dataset::FRAGMENT_LENGTH), KernelConfig::default().horizon);
}

#[test]
fn a_batch_has_the_distances_of_its_signatures() {
    let batch = fragments(9, 1);
    // Far from the origin, where products of f32 would lose what distances are made of.
    let batch = FragmentBatch { actions: (batch.actions * 0.1).unwrap(), ..batch };
    let far = Start { features: (starts().features + 30.0).unwrap(), states: starts().states };
    let world = LinearWorld::default();
    let kernel = MonteCarlo::new(&world, &far, KernelConfig { samples: 3, ..config() }).unwrap();
    let signatures = kernel.signatures([Ok(batch)]).unwrap();
    let chosen = [7_u32, 2, 2, 0, 5];
    for (w_r, w_e) in [(1.0, 0.0), (0.0, 1.0), (0.5, 2.0)] {
        let table = DistanceTable::new(&signatures, w_r, w_e, &Device::Cpu).unwrap();
        assert_eq!(table.len(), 9);
        let found = table.between(&Tensor::new(&chosen, &Device::Cpu).unwrap()).unwrap();
        let found: Vec<Vec<f32>> = found.to_vec2().unwrap();
        let exact = signatures.distances(w_r, w_e);
        let mean = exact.condensed().iter().sum::<f64>() / 36.0;
        for (row, one) in chosen.iter().enumerate() {
            for (column, other) in chosen.iter().enumerate() {
                let wanted = exact.get(*one as usize, *other as usize);
                let error = (f64::from(found[row][column]) - wanted).abs();
                assert!(error < 2e-3 * mean, "{one} {other}: {} {wanted}", found[row][column]);
            }
        }
        let drawn = signatures.mean_distance(w_r, w_e, usize::MAX, 0);
        assert!((drawn / mean - 1.0).abs() < 1e-9, "{drawn} {mean}");
    }
    let sampled = KernelConfig { samples: 3, transport: Transport::Assignment, ..config() };
    assert!(DistanceTable::new(&signatures_of(sampled, &fragments(2, 1)), 1.0, 1.0, &Device::Cpu).is_err());
}

#[test]
fn an_amortizer_learns_the_distances_of_the_kernel() {
    let kernel = KernelConfig { samples: 4, ..config() };
    let (lessons, held_out) = (fragments(256, 11), fragments(64, 12));
    let signatures = signatures_of(kernel, &lessons);
    let scale = signatures.mean_distance(kernel.w_r, kernel.w_e, 2000, 0);
    let table = DistanceTable::new(&signatures, kernel.w_r, kernel.w_e, &Device::Cpu).unwrap();
    let shape = AmortizerConfig {
        width: 32,
        layers: 1,
        heads: 2,
        embedding: 16,
        horizon: kernel.horizon,
        metric: Some(Metric { kernel, scale }),
        ..AmortizerConfig::default()
    };
    let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 3);
    let widths = Widths { features: LATENT, states: 1, actions: ACTIONS };
    let amortizer = Amortizer::new(&mut parameters.root(), shape, widths).unwrap();
    let mut optimizer = AdamW::new(&parameters, AdamWConfig::default()).unwrap();
    // D_φ does not look at states or features, and neither does its student.
    let windows = |actions: &Tensor| {
        let actions = actions.narrow(1, 0, kernel.horizon).unwrap();
        let nothing = Tensor::zeros((actions.dims()[0], kernel.horizon, 0), DType::F32, &Device::Cpu).unwrap();
        FragmentBatch { features: nothing.clone(), states: nothing, actions, rewards: None, returns: None }
    };
    for at in 0..200_u32 {
        // Odd strides, so that a batch has no row twice, and batches differ.
        let rows: Vec<u32> = (0..64).map(|row| (row * (2 * (at % 16) + 1) + at * 7) % 256).collect();
        let rows = Tensor::from_vec(rows, 64, &Device::Cpu).unwrap();
        let batch = windows(&lessons.actions.index_select(&rows, 0).unwrap());
        let distances = table.between(&rows).unwrap();
        let target = Target::Distances { distances: &distances, scale };
        let loss = amortizer::loss(&amortizer.embed(&batch).unwrap(), target).unwrap();
        let gradients = parameters.gradients(&loss.backward().unwrap()).unwrap();
        optimizer.step(&parameters, &gradients, 3e-3 * (1.0 - f64::from(at) / 200.0)).unwrap();
    }
    let truth = signatures_of(kernel, &held_out).distances(kernel.w_r, kernel.w_e);
    let embedded: Vec<f32> =
        amortizer.embed(&windows(&held_out.actions)).unwrap().flatten_all().unwrap().to_vec1().unwrap();
    let found = euclidean_distances(&embedded, 16).unwrap();
    let rho = agreement(&truth, &found, usize::MAX, 0).unwrap().spearman.unwrap();
    assert!(rho > 0.9, "{rho}");
    // In units of D_φ: no factor has to be found again.
    let mean = |distances: &Distances| distances.condensed().iter().sum::<f64>() / distances.condensed().len() as f64;
    assert!((mean(&found) / mean(&truth) - 1.0).abs() < 0.1, "{} {}", mean(&found), mean(&truth));
}

#[test]
fn weights_switch_the_parts_off() {
    let signatures = signatures_of(config(), &fragments(3, 1));
    let Parts { value, rollout } = signatures.parts(0, 2);
    assert!(value > 0.0 && rollout > 0.0);
    assert_eq!(signatures.distances(1.0, 0.0).get(0, 2), value);
    assert_eq!(signatures.distances(0.0, 1.0).get(2, 0), rollout);
    assert_eq!(signatures.distances(0.5, 2.0).get(0, 2), 0.5 * value + 2.0 * rollout);
    assert_eq!(signatures.distances(0.0, 0.0).get(0, 2), 0.0);
}

#[test]
fn a_fragment_is_at_no_distance_from_its_copy() {
    let batch = fragments(2, 1);
    let twice = |x: &Tensor| Tensor::cat(&[x, x], 0).unwrap();
    let copies = FragmentBatch {
        features: twice(&batch.features),
        states: twice(&batch.states),
        actions: twice(&batch.actions),
        ..batch
    };
    for (samples, transport) in [(1, Transport::Gaussian), (6, Transport::Gaussian), (6, Transport::Assignment)] {
        let signatures = signatures_of(KernelConfig { samples, transport, rollouts: 1, ..config() }, &copies);
        let distances = signatures.distances(1.0, 1.0);
        assert_eq!((distances.get(0, 2), distances.get(1, 3)), (0.0, 0.0));
        assert!(distances.get(0, 1) > 0.0);
    }
}

#[test]
fn what_cannot_be_rolled_is_refused() {
    let world = LinearWorld::default();
    let long = KernelConfig { horizon: STEPS + 1, ..config() };
    let error = MonteCarlo::new(&world, &starts(), long).unwrap().signatures([Ok(fragments(1, 0))]);
    assert!(error.is_err_and(|error| error.to_string().contains("`horizon` to 6 or less")));
    let wrong = KernelConfig { w_e: -1.0, samples: 0, discount: 1.5, ..config() };
    let error = wrong.validate().unwrap_err().to_string();
    assert!(["`w_e` is -1", "`samples` is 0", "`discount` is 1.5"].iter().all(|part| error.contains(part)), "{error}");
    let mut signatures = Signatures::new(1, 1, 2).unwrap();
    assert!(signatures.push(&[f64::NAN], &[0.0, 0.0]).is_err());
    assert!(signatures.push(&[0.0], &[0.0, f32::INFINITY]).is_err());
    assert!(signatures.push(&[0.0], &[0.0]).is_err());
    assert!(signatures.is_empty());
    assert!(toml::from_str::<KernelConfig>("w_x = 1").is_err());
}

#[test]
fn distances_do_not_depend_on_threads() {
    let signatures =
        signatures_of(KernelConfig { samples: 8, transport: Transport::Assignment, ..config() }, &fragments(12, 1));
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| signatures.distances(1.0, 1.0))
    };
    assert_eq!(with(1), with(4));
}

#[test]
fn visited_states_are_rows_of_the_fragments() {
    let batch = fragments(3, 1);
    let all = rows(&batch.features);
    let drawn = visited(&batch, 10, 4).unwrap();
    assert_eq!((drawn.features.dims(), drawn.states.dims()), (&[10, LATENT][..], &[10, 1][..]));
    let (features, states) = (rows(&drawn.features), rows(&drawn.states));
    for (x, s) in features.chunks_exact(LATENT).zip(states) {
        let at = all.chunks_exact(LATENT).position(|row| row == x).unwrap();
        assert_eq!(rows(&batch.states)[at], s, "features and states of one frame");
    }
    assert_eq!(visited(&batch, 1000, 4).unwrap().states.dims(), [3 * STEPS, 1]);
}

#[test]
fn the_separable_kernel_learns_the_order_of_the_reference() {
    // Fragments whose action never changes, so that z says all.
    let batch = fragments(48, 1);
    let held = batch.actions.narrow(1, 0, 1).unwrap().repeat((1, STEPS, 1)).unwrap();
    let batch = FragmentBatch { actions: held, ..batch };
    let world = LinearWorld::default();
    let kernel = MonteCarlo::new(&world, &starts(), config()).unwrap();
    let (targets, z) = (kernel.targets(&batch).unwrap(), world.encode_fragment(&batch).unwrap());
    assert_eq!((targets.latents.dims(), targets.values.dims()), (&[48, 4, LATENT][..], &[48][..]));

    let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 3);
    let shape = SeparableConfig { latent: LATENT, hidden: 48, form: Form::default() };
    let separable = Separable::new(&mut parameters.root(), shape).unwrap();
    let z_again = separable.rollout(&z, 3).unwrap().narrow(1, 2, 1).unwrap();
    assert_eq!(rows(&z_again), rows(&z), "the transition starts as the identity");
    let mut optimizer = AdamW::new(&parameters, AdamWConfig { weight_decay: 0.0, ..AdamWConfig::default() }).unwrap();
    let mut found = Vec::new();
    for at in 0..300 {
        let losses = separable.loss(&z, &targets).unwrap();
        let gradients = parameters.gradients(&losses.total.backward().unwrap()).unwrap();
        optimizer.step(&parameters, &gradients, 1e-2 * (1.0 - f64::from(at) / 300.0)).unwrap();
        found.push(losses.total.to_scalar::<f32>().unwrap());
    }
    assert!(found[299] < found[0] / 50.0, "{} → {}", found[0], found[299]);

    let reference = kernel.signatures([Ok(batch)]).unwrap();
    let learned = separable.signatures([Ok(z)], 4).unwrap();
    for (w_r, w_e) in [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
        let (one, other) = (reference.distances(w_r, w_e), learned.distances(w_r, w_e));
        let rho = agreement(&one, &other, usize::MAX, 0).unwrap().spearman.unwrap();
        assert!(rho > 0.95, "w_R {w_r}, w_E {w_e}: {rho}");
    }
}

#[test]
fn targets_are_averages_over_starts() {
    let batch = fragments(3, 1);
    let world = LinearWorld::default();
    let one_by_one = KernelConfig { rollouts: 1, ..config() };
    let targets = MonteCarlo::new(&world, &starts(), one_by_one).unwrap().targets(&batch).unwrap();
    let (latents, values, actions) = (rows(&targets.latents), rows(&targets.values), rows(&batch.actions));
    for fragment in 0..3 {
        let actions = &actions[fragment * STEPS * ACTIONS..(fragment + 1) * STEPS * ACTIONS];
        let all: Vec<_> =
            rows(&starts().features).chunks_exact(LATENT).map(|start| closed_form(start, actions, 4, 0.99)).collect();
        let value: f64 = all.iter().map(|(.., value)| value / 5.0).sum();
        assert!((values[fragment] - value).abs() < 1e-5);
        for d in 0..LATENT {
            let mean: f64 = all.iter().map(|(mean, ..)| mean[d] / 5.0).sum();
            assert!((latents[(fragment * 4 + 3) * LATENT + d] - mean).abs() < 1e-5);
        }
    }
}

#[test]
fn the_world_model_itself_can_be_asked() {
    let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 5);
    let shape = WorldModelConfig {
        width: 32,
        layers: 1,
        heads: 2,
        latent: 8,
        decoder_hidden: 16,
        returns: true,
        ..WorldModelConfig::default()
    };
    let widths = Widths { features: LATENT, states: 1, actions: ACTIONS };
    let model = WorldModel::new(&mut parameters.root(), &shape, widths).unwrap();
    for (samples, transport) in [(1, Transport::Gaussian), (4, Transport::Gaussian), (4, Transport::Assignment)] {
        let config = KernelConfig { samples, transport, ..config() };
        let kernel = MonteCarlo::new(&model, &starts(), config).unwrap();
        let signatures = kernel.signatures([Ok(fragments(3, 1)), Ok(fragments(3, 1))]).unwrap();
        let distances = kernel.distances(&signatures);
        for fragment in 0..3 {
            assert!(distances.get(fragment, fragment + 3) < 1e-5, "a copy in another batch is the same fragment");
        }
        let parts = signatures.parts(0, 1);
        assert!(parts.value > 1e-4 && parts.rollout > 1e-4, "untrained, but not blind to actions: {parts:?}");
        assert_eq!(kernel.targets(&fragments(2, 1)).unwrap().latents.dims(), [2, 4, 8]);
    }
}

/// Three fragments of two starts; `points` points of three numbers each.
fn any_signatures(points: usize) -> impl Strategy<Value = Signatures> {
    let numbers = prop::collection::vec(-5.0_f32..5.0, 3 * 2 * points * 3);
    (prop::collection::vec(-5.0..5.0, 3 * 2), numbers).prop_map(move |(values, clouds)| {
        let mut signatures = Signatures::new(2, points, 3).unwrap();
        signatures.push(&values, &clouds).unwrap();
        signatures
    })
}

proptest! {
    #[test]
    fn both_parts_are_metrics(signatures in (1_usize..6).prop_flat_map(any_signatures)) {
        let parts = |one, other| signatures.parts(one, other);
        for one in 0..3 {
            prop_assert_eq!(parts(one, one), Parts { value: 0.0, rollout: 0.0 });
            for other in 0..3 {
                prop_assert_eq!(parts(one, other).value, parts(other, one).value);
                prop_assert!((parts(one, other).rollout - parts(other, one).rollout).abs() < 1e-9);
            }
        }
        for (a, b, c) in [(0, 1, 2), (1, 2, 0), (2, 0, 1)] {
            prop_assert!(parts(a, c).rollout <= parts(a, b).rollout + parts(b, c).rollout + 1e-9);
            prop_assert!(parts(a, c).value <= parts(a, b).value + parts(b, c).value + 1e-9);
        }
    }

    #[test]
    fn coordinates_bound_the_kernel(signatures in any_signatures(1), w_r in 0.0..2.0, w_e in 0.0..2.0) {
        let (rows, width) = signatures.coordinates(w_r, w_e).unwrap();
        prop_assert_eq!((rows.len(), width), (3 * 8, 8));
        let row = |at: usize| &rows[at * width..(at + 1) * width];
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            let euclid = norm(row(one).iter().zip(row(other)).map(|(a, b)| f64::from(a - b)));
            let Parts { value, rollout } = signatures.parts(one, other);
            prop_assert!(w_r * value + w_e * rollout <= 2.0_f64.sqrt() * euclid + 1e-4);
        }
    }

    #[test]
    fn gaussians_in_one_dimension_have_their_quantiles_distance(
        m in -3.0..3.0, s in 0.1..2.0, m2 in -3.0..3.0, s2 in 0.1..2.0
    ) {
        // W₂² is the integral of the squared difference of quantile functions; here by 64 equally likely quantiles of a
        // symmetric law scaled and shifted, for which the closed form holds exactly: E(m + sq − m' − s'q)² = Δm² + Δs²·E q².
        let quantiles: Vec<f64> = (0..64).map(|at| (f64::from(at) - 31.5) / 18.0).collect();
        let square = quantiles.iter().map(|q| q * q).sum::<f64>() / 64.0;
        let cloud = |m: f64, s: f64| quantiles.iter().map(|q| (m + s * q) as f32).collect::<Vec<_>>();
        let found = super::signatures::wasserstein(&cloud(m, s), &cloud(m2, s2), 1);
        let wanted = ((m - m2).powi(2) + (s - s2).powi(2) * square).sqrt();
        prop_assert!((found - wanted).abs() < 1e-5);
    }
}

#[test]
fn sampled_clouds_have_no_coordinates() {
    let mut signatures = Signatures::new(1, 2, 1).unwrap();
    signatures.push(&[0.0], &[0.0, 1.0]).unwrap();
    assert!(signatures.coordinates(1.0, 1.0).is_err());
}
