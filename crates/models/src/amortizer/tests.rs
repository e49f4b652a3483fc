use std::cell::RefCell;
use std::collections::BTreeMap;

use candle_core::{Device, Tensor};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde::Deserialize;

use super::*;
use crate::kernel::KernelConfig;
use crate::noise;
use crate::ops::Form;
use crate::parameters::{Parameters, Precision};
use crate::training::adamw::{AdamW, AdamWConfig};
use crate::widths::Widths;

/// Those of LIBERO, with five features.
const WIDTHS: Widths = Widths { features: 5, states: 8, actions: 7 };

fn build(config: AmortizerConfig, precision: Precision) -> (Parameters, Amortizer) {
    build_for(WIDTHS, config, precision)
}

fn build_for(widths: Widths, config: AmortizerConfig, precision: Precision) -> (Parameters, Amortizer) {
    let mut parameters = Parameters::new(&Device::Cpu, precision, 7);
    let amortizer = Amortizer::new(&mut parameters.root(), config, widths).unwrap();
    (parameters, amortizer)
}

fn tiny() -> AmortizerConfig {
    AmortizerConfig { width: 32, embedding: 8, ..AmortizerConfig::preset("tiny").unwrap() }
}

/// Random fragments of 16 steps with five features a step.
fn fragments(count: usize, seed: u64) -> FragmentBatch {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = |width: usize| {
        let values = noise::normal(&mut generator, count * 16 * width);
        Tensor::from_vec(values, (count, 16, width), &Device::Cpu).unwrap()
    };
    FragmentBatch { features: draw(5), states: draw(8), actions: draw(7), rewards: None, returns: None }
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

#[derive(Deserialize)]
struct Golden {
    features: Vec<f32>,
    states: Vec<f32>,
    actions: Vec<f32>,
    weights: Vec<f32>,
    embeddings: Vec<f64>,
    gradients: BTreeMap<String, Vec<f64>>,
}

#[test]
fn embeddings_and_gradients_equal_pytorch() {
    let golden: Golden = serde_json::from_str(include_str!("../../fixtures/golden/amortizer/golden.json")).unwrap();
    let weights = include_bytes!("../../fixtures/golden/amortizer/weights.safetensors");
    let weights = candle_core::safetensors::load_buffer(weights, &Device::Cpu).unwrap().into_iter().collect();
    let tensor = |values: &[f32], width: usize| Tensor::from_slice(values, (3, 5, width), &Device::Cpu).unwrap();
    let batch = FragmentBatch {
        features: tensor(&golden.features, 5),
        states: tensor(&golden.states, 3),
        actions: tensor(&golden.actions, 2),
        rewards: None,
        returns: None,
    };
    for form in [Form::Composed, Form::Fused] {
        let tiny =
            AmortizerConfig { width: 16, layers: 2, heads: 4, embedding: 8, horizon: 6, ..AmortizerConfig::default() };
        let config = AmortizerConfig { vision: true, form, ..tiny };
        let widths = Widths { features: 5, states: 3, actions: 2 };
        let (parameters, amortizer) = build_for(widths, config, Precision::F32);
        parameters.assign(&weights).unwrap();
        let embeddings = amortizer.embed(&batch).unwrap();
        for (ours, theirs) in values(&embeddings).iter().zip(&golden.embeddings) {
            assert!((f64::from(*ours) - theirs).abs() < 2e-6, "{form:?}: {ours} {theirs}");
        }
        let loss = (embeddings * Tensor::from_slice(&golden.weights, (3, 8), &Device::Cpu).unwrap()).unwrap();
        let gradients = parameters.gradients(&loss.sum_all().unwrap().backward().unwrap()).unwrap();
        for (parameter, gradient) in parameters.iter().zip(gradients) {
            let theirs = &golden.gradients[parameter.name()];
            let scale = theirs.iter().fold(0.0_f64, |most, one| most.max(one.abs()));
            for (ours, theirs) in values(&gradient.unwrap()).iter().zip(theirs) {
                // Candle writes the constants of GELU's derivative with six digits. Key biases have no gradient at all,
                // as a softmax does not see them, so its scale is that of all biases of queries, keys and values.
                let error = (f64::from(*ours) - theirs).abs();
                assert!(error < 2e-5 * scale.max(1e-2), "{form:?} {}: {ours} {theirs}", parameter.name());
            }
        }
    }
}

#[test]
fn the_default_has_the_papers_number_of_weights() {
    let (parameters, _) = build(AmortizerConfig::default(), Precision::F32);
    assert_eq!(parameters.count(), 2_394_432);
    assert!((parameters.count() as f64 / 2.4e6 - 1.0).abs() < 0.02);
    let (small, _) = build(AmortizerConfig::preset("small").unwrap(), Precision::F32);
    assert_eq!(small.count(), 409_152);
    let (tiny, _) = build(AmortizerConfig::preset("tiny").unwrap(), Precision::F32);
    assert_eq!(tiny.count(), 56_320);
}

#[test]
fn presets_are_differences_and_unknown_keys_are_errors() {
    for (name, _) in PRESETS {
        let preset = AmortizerConfig::preset(name).unwrap();
        preset.validate().unwrap();
        assert_eq!((preset.embedding, preset.horizon), (64, 16), "{name} keeps what it does not name");
    }
    assert_eq!(AmortizerConfig::preset("default").unwrap(), AmortizerConfig::default());
    let unknown = AmortizerConfig::preset("huge").unwrap_err().to_string();
    assert!(unknown.contains("`small`") && unknown.contains("`tiny`"), "{unknown}");
    assert!(toml::from_str::<AmortizerConfig>("widht = 3").is_err());
    let wrong = AmortizerConfig { layers: 0, heads: 3, ..AmortizerConfig::default() };
    let wrong = wrong.validate().unwrap_err().to_string();
    assert!(wrong.contains("`layers` is 0") && wrong.contains("3 heads"), "{wrong}");
}

#[test]
fn supervision_is_named_as_in_the_configuration() {
    let all = [
        ("task_index", Supervision::TaskIndex),
        ("distillation", Supervision::Distillation),
        ("episode_contrast", Supervision::EpisodeContrast),
        ("kernel", Supervision::Kernel),
    ];
    for (name, supervision) in all {
        assert_eq!(serde_json::to_value(supervision).unwrap(), serde_json::json!(name));
        assert_eq!(serde_json::from_value::<Supervision>(serde_json::json!(name)).unwrap(), supervision);
    }
    assert!(serde_json::from_str::<Supervision>("\"labels\"").is_err());
}

#[test]
fn with_a_metric_embeddings_are_actions_in_units_of_the_kernel() {
    let metric = |scale| Some(Metric { kernel: KernelConfig::default(), scale });
    let batch = fragments(3, 1);
    let (_, one) = build(AmortizerConfig { metric: metric(1.0), ..tiny() }, Precision::F32);
    let (_, fifty) = build(AmortizerConfig { metric: metric(50.0), ..tiny() }, Precision::F32);
    let (small, large) = (values(&one.embed(&batch).unwrap()), values(&fifty.embed(&batch).unwrap()));
    let lengths: Vec<f32> = small.chunks_exact(8).map(|row| row.iter().map(|one| one * one).sum()).collect();
    assert!(lengths.iter().all(|length| (length - 1.0).abs() > 1e-3), "not of unit length: {lengths:?}");
    assert!(small.iter().zip(&large).all(|(small, large)| (small * 50.0 - large).abs() < 1e-4 * large.abs().max(1.0)));
    // States are not read, nor have they to be there.
    let none = Tensor::zeros((3, 16, 0), candle_core::DType::F32, &Device::Cpu).unwrap();
    let blind = FragmentBatch { states: none, ..batch };
    assert_eq!(values(&one.embed(&blind).unwrap()), small);
    let short = FragmentBatch { actions: blind.actions.narrow(1, 0, 9).unwrap(), ..blind };
    let refused = one.embed(&short).unwrap_err().to_string();
    assert!(refused.contains("windows of 9 steps"), "{refused}");
    let (_, without) = build(AmortizerConfig { metric: metric(1.0), linear: false, ..tiny() }, Precision::F32);
    assert!(without.embed(&short).is_ok());
    let wrong = AmortizerConfig { metric: metric(0.0), ..tiny() }.validate().unwrap_err().to_string();
    assert!(wrong.contains("`metric.scale` is 0"), "{wrong}");
}

#[test]
fn the_distance_loss_is_the_mean_squared_error_in_units_of_the_scale() {
    // Distances 3, 4 and 5 of a right triangle, far from the origin.
    let corners = [[100.0_f32, 0.0], [103.0, 0.0], [100.0, 4.0]];
    let embeddings = candle_core::Var::new(&corners, &Device::Cpu).unwrap();
    let distances = Tensor::new(&[[9.0_f32, 3.0, 4.0], [3.0, 9.0, 7.0], [4.0, 7.0, 9.0]], &Device::Cpu).unwrap();
    for scale in [1.0, 10.0] {
        let found = loss(embeddings.as_tensor(), Target::Distances { distances: &distances, scale }).unwrap();
        // One pair of three is off by two; the diagonal does not count.
        let wanted = 4.0 / 3.0 / (scale * scale);
        assert!((f64::from(found.to_scalar::<f32>().unwrap()) - wanted).abs() < 1e-3 * wanted);
        // Copies in a batch have no direction to be pushed to, and no gradient that is not a number.
        let same = candle_core::Var::new(&[[1.0_f32, 2.0], [1.0, 2.0]], &Device::Cpu).unwrap();
        let apart = Tensor::new(&[[0.0_f32, 1.0], [1.0, 0.0]], &Device::Cpu).unwrap();
        let gradients =
            loss(same.as_tensor(), Target::Distances { distances: &apart, scale }).unwrap().backward().unwrap();
        assert!(values(gradients.get(&same).unwrap()).iter().all(|one| one.is_finite()));
    }
    assert!(
        loss(embeddings.as_tensor(), Target::Distances { distances: &distances.narrow(0, 0, 2).unwrap(), scale: 1.0 })
            .is_err()
    );
}

#[test]
fn embeddings_are_unit_rows_in_both_precisions() {
    let batch = fragments(4, 1);
    let exact = values(&build(tiny(), Precision::F32).1.embed(&batch).unwrap());
    let half = values(&build(tiny(), Precision::Bf16).1.embed(&batch).unwrap());
    for rows in [&exact, &half] {
        for row in rows.chunks_exact(8) {
            let length: f32 = row.iter().map(|one| one * one).sum();
            assert!((length - 1.0).abs() < 1e-5);
        }
    }
    for (exact, half) in exact.chunks_exact(8).zip(half.chunks_exact(8)) {
        let cosine: f32 = exact.iter().zip(half).map(|(one, other)| one * other).sum();
        assert!(cosine > 0.999, "bfloat16 turned an embedding: {cosine}");
    }
}

#[test]
fn a_blind_amortizer_does_not_see_and_a_seeing_one_does() {
    let batch = fragments(2, 1);
    let other = FragmentBatch { features: fragments(2, 2).features, ..batch.clone() };
    let (_, blind) = build(tiny(), Precision::F32);
    assert_eq!(values(&blind.embed(&batch).unwrap()), values(&blind.embed(&other).unwrap()));
    let (_, seeing) = build(AmortizerConfig { vision: true, ..tiny() }, Precision::F32);
    assert_ne!(values(&seeing.embed(&batch).unwrap()), values(&seeing.embed(&other).unwrap()));
    let wider = Widths { features: 6, ..WIDTHS };
    assert!(build_for(wider, AmortizerConfig { vision: true, ..tiny() }, Precision::F32).1.embed(&batch).is_err());
    assert!(build_for(wider, tiny(), Precision::F32).1.embed(&batch).is_ok(), "a blind one does not look");
    let nothing = Widths { features: 0, ..WIDTHS };
    let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 7);
    let refused = Amortizer::new(&mut parameters.root(), AmortizerConfig { vision: true, ..tiny() }, nothing);
    assert!(refused.is_err_and(|error| error.to_string().contains("`vision` needs features")));
}

#[test]
fn shorter_fragments_are_embedded_and_longer_ones_refused() {
    let batch = fragments(2, 1);
    let cut = |steps| FragmentBatch {
        states: batch.states.narrow(1, 0, steps).unwrap(),
        actions: batch.actions.narrow(1, 0, steps).unwrap(),
        ..batch.clone()
    };
    let (_, amortizer) = build(tiny(), Precision::F32);
    assert_eq!(amortizer.embed(&cut(4)).unwrap().dims(), [2, 8]);
    let (_, short) = build(AmortizerConfig { horizon: 4, ..tiny() }, Precision::F32);
    let error = short.embed(&batch).unwrap_err().to_string();
    assert!(error.contains("16 steps for an amortizer of 4"), "{error}");
}

#[test]
fn a_stream_takes_a_batch_only_after_the_last_was_handed_on() {
    let (_, amortizer) = build(tiny(), Precision::F32);
    let whole = values(&amortizer.embed(&fragments(3, 0)).unwrap());
    let events = RefCell::new(Vec::new());
    let batches = (0..4).map(|at| {
        events.borrow_mut().push(format!("take {at}"));
        Ok(fragments(3, at))
    });
    let mut seen = 0;
    let mut rows = Vec::new();
    amortizer
        .embed_stream(batches, &mut |batch| {
            events.borrow_mut().push(format!("hand on {seen}"));
            seen += 1;
            rows.extend_from_slice(batch);
            Ok(())
        })
        .unwrap();
    let wanted: Vec<String> = (0..4).flat_map(|at| [format!("take {at}"), format!("hand on {at}")]).collect();
    assert_eq!(events.into_inner(), wanted);
    assert_eq!(rows.len(), 4 * 3 * 8);
    assert_eq!(rows[..24], whole);
}

#[test]
fn a_stream_stops_at_the_first_error() {
    let (_, amortizer) = build(tiny(), Precision::F32);
    let wrong = || Err(Error::Config("a broken batch".into()));
    let mut handed_on = 0;
    let result = amortizer.embed_stream([Ok(fragments(1, 0)), wrong(), Ok(fragments(1, 1))], &mut |_| {
        handed_on += 1;
        Ok(())
    });
    assert!(result.is_err_and(|error| error.to_string() == "a broken batch"));
    assert_eq!(handed_on, 1);
    let full = amortizer.embed_stream([Ok(fragments(1, 0))], &mut |_| Err(Error::Config("the disk is full".into())));
    assert!(full.is_err_and(|error| error.to_string() == "the disk is full"));
}

#[test]
fn the_teacher_is_held_against_unit_vectors_and_must_fit() {
    let embeddings = Tensor::new(&[[1.0_f32, 0.0], [0.0, 1.0]], &Device::Cpu).unwrap();
    let teacher = Tensor::new(&[[5.0_f32, 0.0], [0.0, -3.0]], &Device::Cpu).unwrap();
    // The first row agrees whatever its length; the second is opposite: (2² + 0)/4.
    let found = loss(&embeddings, Target::Teacher(&teacher)).unwrap().to_scalar::<f32>().unwrap();
    assert!((found - 1.0).abs() < 1e-6, "{found}");
    let narrow = Tensor::new(&[[5.0_f32], [1.0]], &Device::Cpu).unwrap();
    assert!(loss(&embeddings, Target::Teacher(&narrow)).is_err());
}

#[test]
fn one_batch_can_be_learned_by_heart_in_every_mode() {
    let batch = fragments(8, 3);
    let labels = [0, 1, 0, 1, 2, 3, 2, 3];
    let teacher = fragments(8, 4).states.narrow(1, 0, 1).unwrap().squeeze(1).unwrap(); // [8, 8]
    // The least SupCon and NT-Xent can be is not zero; with classes far apart it is near it.
    for (target, least) in [(Target::Labels(&labels), 0.1), (Target::Teacher(&teacher), 0.005), (Target::Pairs, 0.1)] {
        let (parameters, amortizer) = build(tiny(), Precision::F32);
        let mut optimizer = AdamW::new(&parameters, AdamWConfig::default()).unwrap();
        let mut found = Vec::new();
        for _ in 0..80 {
            let loss = loss(&amortizer.embed(&batch).unwrap(), target).unwrap();
            let gradients = parameters.gradients(&loss.backward().unwrap()).unwrap();
            optimizer.step(&parameters, &gradients, 3e-3).unwrap();
            found.push(loss.to_scalar::<f32>().unwrap());
        }
        let (first, last) = (found[0], found[found.len() - 1]);
        assert!(last < least && last < first / 10.0, "{target:?}: {first} → {last}");
    }
}
