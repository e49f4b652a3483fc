//! M_φ against its PyTorch twin (`fixtures/golden/world_model`), and against itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::fragments::FragmentBatch;
use crate::noise;
use crate::ops::Form;
use crate::parameters::{Parameters, Precision};
use crate::training::adamw::{AdamW, AdamWConfig};
use crate::widths::Widths;

const WIDTHS: Widths = Widths { features: 12, states: 5, actions: 3 };
const FORMS: [Form; 2] = [Form::Composed, Form::Fused];

/// The shape of the golden model, with its horizon one step longer than its fragments.
fn golden_config(form: Form) -> WorldModelConfig {
    let (width, layers, heads, horizon, latent, decoder_hidden) = (32, 2, 2, 5, 8, 16);
    let contrast = ContrastMode::Supcon;
    WorldModelConfig {
        width,
        layers,
        heads,
        horizon,
        latent,
        decoder_hidden,
        form,
        contrast,
        ..WorldModelConfig::default()
    }
}

fn golden(name: &str) -> BTreeMap<String, Tensor> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden/world_model");
    let file = folder.join(format!("{name}.safetensors"));
    candle_core::safetensors::load(file, &Device::Cpu).unwrap().into_iter().collect()
}

/// A model with those of the golden weights that it has.
fn golden_model(config: &WorldModelConfig) -> (Parameters, WorldModel) {
    let (parameters, model) = made(config, WIDTHS);
    let weights = golden("weights").into_iter().filter(|(name, _)| parameters.named(name).is_some()).collect();
    parameters.assign(&weights).unwrap();
    (parameters, model)
}

fn made(config: &WorldModelConfig, widths: Widths) -> (Parameters, WorldModel) {
    let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 1);
    let model = WorldModel::new(&mut parameters.root(), config, widths).unwrap();
    (parameters, model)
}

fn golden_batch(fixed: &BTreeMap<String, Tensor>) -> FragmentBatch {
    FragmentBatch {
        features: fixed["features"].clone(),
        states: fixed["states"].clone(),
        actions: fixed["actions"].clone(),
        rewards: Some(fixed["rewards"].clone()),
        returns: Some(fixed["returns"].clone()),
    }
}

fn random(seed: u64, shape: &[usize]) -> Tensor {
    let values = noise::normal(&mut ChaCha8Rng::seed_from_u64(seed), shape.iter().product());
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap()
}

fn random_batch(fragments: usize, steps: usize) -> FragmentBatch {
    let Widths { features, states, actions } = WIDTHS;
    FragmentBatch {
        features: random(1, &[fragments, steps, features]),
        states: random(2, &[fragments, steps, states]),
        actions: random(3, &[fragments, steps, actions]),
        rewards: Some(random(4, &[fragments, steps])),
        returns: Some(random(5, &[fragments, steps])),
    }
}

fn norm(tensor: &Tensor) -> f64 {
    let tensor = tensor.to_dtype(DType::F64).unwrap();
    tensor.sqr().unwrap().sum_all().unwrap().to_scalar::<f64>().unwrap().sqrt()
}

/// ‖found − wanted‖/‖wanted‖.
fn relative(found: &Tensor, wanted: &Tensor) -> f64 {
    norm(&(found - wanted).unwrap()) / norm(wanted)
}

#[test]
fn frozen_weights_are_those_without_a_gradient() {
    let whole = |form| WorldModelConfig { returns: true, projection: Some(6), ..golden_config(form) };
    let labels = [0, 0, 1, 1];
    let (batch, noise) = (random_batch(4, 4), random(6, &[4, 4, 8]));
    for form in FORMS {
        let cases = [
            (whole(form), 0),
            (WorldModelConfig { contrast: ContrastMode::None, ..whole(form) }, 2),
            (WorldModelConfig { contrast_weight: 0.0, ..whole(form) }, 2),
            (WorldModelConfig { return_weight: 0.0, ..whole(form) }, 4),
            (WorldModelConfig { kl_weight: 0.0, ..whole(form) }, 3),
            (WorldModelConfig { balance: 0.0, ..whole(form) }, 3),
            (WorldModelConfig { state_weight: 0.0, ..whole(form) }, 2),
            (WorldModelConfig { recon_weight: 0.0, state_weight: 0.0, ..whole(form) }, 6),
        ];
        for (config, count) in cases {
            let (parameters, model) = made(&config, WIDTHS);
            let found = model.loss(&batch, &noise, &labels).unwrap().total.backward().unwrap();
            let gradients = parameters.gradients(&found).unwrap();
            let without = parameters.iter().zip(gradients).filter(|(_, gradient)| gradient.is_none());
            let without: BTreeSet<String> = without.map(|(parameter, _)| parameter.name().to_owned()).collect();
            assert_eq!(model.frozen(), without, "{config:?}");
            assert_eq!(without.len(), count, "{config:?}");
        }
    }
}

#[test]
fn losses_and_gradients_are_those_of_pytorch() {
    use ContrastMode::{EpisodeContrast, None as Without, Supcon};
    let cases = [
        ("none", Without, false, None),
        ("none_returns", Without, true, None),
        ("supcon", Supcon, false, None),
        ("supcon_returns", Supcon, true, None),
        ("supcon_projection", Supcon, false, Some(6)),
        ("episode_contrast", EpisodeContrast, false, None),
        ("episode_contrast_returns", EpisodeContrast, true, None),
    ];
    let fixed = golden("batch");
    let labels: Vec<i64> = fixed["labels"].to_vec1().unwrap();
    for form in FORMS {
        for (case, contrast, returns, projection) in cases {
            let config = WorldModelConfig { contrast, returns, projection, ..golden_config(form) };
            let (parameters, model) = golden_model(&config);
            let wanted = golden(case);
            let batch = golden_batch(&fixed);
            let loss = model.loss(&batch, &fixed["noise"], &labels).unwrap();
            assert!(relative(&loss.total, &wanted["total"]) < 1e-5, "{case} {form:?}: total");
            let terms = wanted.keys().filter(|name| name.starts_with("term.")).count();
            assert_eq!(loss.terms.len(), terms, "{case} {form:?}");
            for (name, term) in &loss.terms {
                assert!(relative(term, &wanted[&format!("term.{name}")]) < 1e-5, "{case} {form:?}: {name}");
            }
            let gradients = parameters.gradients(&loss.total.backward().unwrap()).unwrap();
            for (parameter, gradient) in parameters.iter().zip(gradients) {
                let name = parameter.name();
                let gradient = gradient.unwrap_or_else(|| panic!("{case} {form:?}: {name} has no gradient"));
                let error = relative(&gradient, &wanted[&format!("gradient.{name}")]);
                assert!(error <= 1e-4, "{case} {form:?}: the gradient of {name} is off by {error}");
            }
            let fragment = model.encode_fragment(&batch).unwrap();
            assert!(relative(&fragment, &wanted["fragment"]) < 1e-5, "{case} {form:?}: encode_fragment");
        }
    }
}

fn fields(imagined: &Imagined) -> [(&'static str, &Tensor); 7] {
    [
        ("means", &imagined.means),
        ("deviations", &imagined.deviations),
        ("latents", &imagined.latents),
        ("features", &imagined.features),
        ("states", &imagined.states),
        ("rewards", &imagined.rewards),
        ("returns", &imagined.returns),
    ]
}

#[test]
fn imagination_is_that_of_pytorch() {
    let (fixed, wanted) = (golden("batch"), golden("imagined"));
    let first = |name: &str| fixed[name].narrow(1, 0, 1).unwrap().squeeze(1).unwrap();
    let start = Start { features: first("features"), states: first("states") };
    for form in FORMS {
        let (_, model) = golden_model(&WorldModelConfig { returns: true, projection: Some(6), ..golden_config(form) });
        for (kind, noise) in [("mean", None), ("drawn", Some(&fixed["imagined_noise"]))] {
            let imagined = model.imagine(&start, &fixed["imagined_actions"], noise).unwrap();
            for (name, found) in fields(&imagined) {
                let error = relative(found, &wanted[&format!("{kind}.{name}")]);
                assert!(error < 1e-5, "{form:?}: {kind} {name} is off by {error}");
            }
        }
    }
}

#[test]
fn imagination_with_a_cache_equals_whole_passes() {
    let start = Start { features: random(6, &[4, 12]), states: random(7, &[4, 5]) };
    let (actions, noise) = (random(8, &[4, 5, 3]), random(9, &[4, 5, 8]));
    for (form, returns) in FORMS.into_iter().flat_map(|form| [(form, false), (form, true)]) {
        let config = WorldModelConfig { returns, ..golden_config(form) };
        let (_, model) = golden_model(&config);
        for noise in [None, Some(&noise)] {
            let cached = model.imagine(&start, &actions, noise).unwrap();
            let whole = model.imagine_uncached(&start, &actions, noise).unwrap();
            for ((name, cached), (_, whole)) in fields(&cached).into_iter().zip(fields(&whole)) {
                assert_eq!(cached.dims()[..2], [4, 5], "{name}");
                let apart = (cached - whole).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
                assert!(apart <= 1e-5, "{form:?}: {name} differ by {apart}");
            }
            assert_eq!(norm(&cached.rewards) > 0.0, returns);
        }
    }
}

#[test]
fn bf16_runs_the_same_code() {
    let fixed = golden("batch");
    let labels: Vec<i64> = fixed["labels"].to_vec1().unwrap();
    let config = WorldModelConfig { returns: true, projection: Some(6), ..golden_config(Form::Composed) };
    let mut parameters = Parameters::new(&Device::Cpu, Precision::Bf16, 1);
    let model = WorldModel::new(&mut parameters.root(), &config, WIDTHS).unwrap();
    parameters.assign(&golden("weights")).unwrap();
    let batch = golden_batch(&fixed);
    let batch = FragmentBatch { features: batch.features.to_dtype(DType::BF16).unwrap(), ..batch };
    let loss = model.loss(&batch, &fixed["noise"], &labels).unwrap();
    let (_, exact) = golden_model(&config);
    let wanted = exact.loss(&golden_batch(&fixed), &fixed["noise"], &labels).unwrap();
    for ((name, found), (_, wanted)) in loss.terms.iter().zip(&wanted.terms) {
        assert_eq!(found.dtype(), DType::F32, "{name}");
        // Eight bits of a number are kept.
        assert!(relative(found, wanted) < 0.02, "{name}: {}", relative(found, wanted));
    }
    let gradients = parameters.gradients(&loss.total.backward().unwrap()).unwrap();
    assert!(gradients.iter().all(Option::is_some));
    let first = |tensor: &Tensor| tensor.narrow(1, 0, 1).unwrap().squeeze(1).unwrap();
    let start = Start { features: first(&batch.features), states: first(&batch.states) };
    let imagined = model.imagine(&start, &fixed["imagined_actions"], Some(&fixed["imagined_noise"])).unwrap();
    assert!(fields(&imagined).iter().all(|(_, tensor)| tensor.dtype() == DType::F32));
    assert_eq!(model.encode_fragment(&batch).unwrap().dtype(), DType::F32);
}

#[test]
fn more_steps_than_the_horizon_are_refused() {
    let (_, model) = made(&golden_config(Form::default()), WIDTHS);
    let start = Start { features: random(6, &[2, 12]), states: random(7, &[2, 5]) };
    let error = model.imagine(&start, &random(8, &[2, 6, 3]), None).unwrap_err().to_string();
    assert!(error.starts_with("6 steps are more than the world model's `horizon` of 5"), "{error}");
    assert!(model.encode_fragment(&random_batch(2, 6)).is_err());
}

#[test]
fn an_embedding_depends_on_all_but_the_last_action() {
    let steps = 4;
    let (_, model) = golden_model(&golden_config(Form::default()));
    let batch = random_batch(2, steps);
    let before = model.encode_fragment(&batch).unwrap();
    assert_eq!(before.dims(), [2, 8]);
    for step in 0..steps {
        for modality in 0..3 {
            let mut shift = vec![0.0_f32; steps];
            shift[step] = 0.5;
            let shift = Tensor::from_vec(shift, (1, steps, 1), &Device::Cpu).unwrap();
            let mut changed = batch.clone();
            let target = match modality {
                0 => &mut changed.features,
                1 => &mut changed.states,
                _ => &mut changed.actions,
            };
            *target = target.broadcast_add(&shift).unwrap();
            let moved = norm(&(model.encode_fragment(&changed).unwrap() - &before).unwrap());
            let hidden = modality == 2 && step == steps - 1;
            assert_eq!(moved > 1e-4, !hidden, "step {step}, modality {modality}: moved by {moved}");
            assert!(!hidden || moved == 0.0);
        }
    }
}

#[test]
fn sizes_are_those_of_the_formula() {
    let with = |name: &str| WorldModelConfig::preset(name).unwrap();
    let configs = [
        with("tiny"),
        with("small"),
        WorldModelConfig { returns: true, projection: Some(24), horizon: 7, ..with("tiny") },
        WorldModelConfig { frequencies: 3, ..with("tiny") },
    ];
    for config in configs {
        for widths in [WIDTHS, Widths { features: 768, states: 8, actions: 7 }] {
            assert_eq!(made(&config, widths).0.count(), config.parameters(widths));
        }
    }
}

#[test]
fn a_dataset_without_cameras_is_read_by_states_and_actions_alone() {
    let blind = Widths { features: 0, ..WIDTHS };
    let config = WorldModelConfig { returns: true, imagined_share: 0.5, ..golden_config(Form::default()) };
    let (parameters, model) = made(&config, blind);
    assert_eq!(parameters.count(), config.parameters(blind));
    let nothing = |rows: usize, steps: usize| Tensor::zeros((rows, steps, 0), DType::F32, &Device::Cpu).unwrap();
    let batch = FragmentBatch { features: nothing(4, 4), ..random_batch(4, 4) };
    let loss = model.loss(&batch, &random(1, &[4, 4, 8]), &[0, 0, 1, 1]).unwrap();
    assert!(loss.terms.iter().all(|(name, _)| *name != "recon"), "there is nothing else to reconstruct than states");
    let gradients = parameters.gradients(&loss.total.backward().unwrap()).unwrap();
    assert!(gradients.iter().all(Option::is_some), "everything is trained");
    assert_eq!(model.encode_fragment(&batch).unwrap().dims(), [4, 8]);

    // It imagines from visited states, with a cache and without one, and the kernel compares what it imagined.
    let start = crate::kernel::visited(&batch, 3, 5).unwrap();
    let actions = random(8, &[3, 5, 3]);
    let (cached, whole) =
        (model.imagine(&start, &actions, None).unwrap(), model.imagine_uncached(&start, &actions, None).unwrap());
    assert_eq!((cached.features.dims(), cached.states.dims()), (&[3, 5, 0][..], &[3, 5, 5][..]));
    assert!(relative(&cached.states, &whole.states) < 1e-5);
    let kernel = crate::kernel::KernelConfig { horizon: 4, samples: 2, ..Default::default() };
    let signatures = crate::kernel::MonteCarlo::new(&model, &start, kernel).unwrap().signatures([Ok(batch)]).unwrap();
    assert_eq!(signatures.len(), 4);

    let nowhere = Widths { states: 0, ..blind };
    let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 1);
    let error = WorldModel::new(&mut parameters.root(), &config, nowhere).unwrap_err();
    assert!(error.to_string().starts_with("the world model needs states"), "{error}");
}

#[test]
fn rewards_are_asked_for_when_there_is_a_return_head() {
    let (_, model) = made(&WorldModelConfig { returns: true, ..golden_config(Form::default()) }, WIDTHS);
    let batch = FragmentBatch { rewards: None, returns: None, ..random_batch(2, 4) };
    assert!(model.loss(&batch, &random(1, &[2, 4, 8]), &[0, 0]).unwrap_err().to_string().contains("needs rewards"));
}

#[test]
fn a_tiny_model_overfits_one_batch() {
    // Random numbers have nothing to predict each other by: the latent must be free to hold them.
    let config =
        WorldModelConfig { returns: true, latent: 24, kl_weight: 1e-4, ..WorldModelConfig::preset("tiny").unwrap() };
    let config = WorldModelConfig { contrast: ContrastMode::Supcon, ..config };
    let (parameters, model) = made(&config, WIDTHS);
    let batch = random_batch(4, 3);
    let labels = [0, 1, 0, 1];
    let mut optimizer = AdamW::new(&parameters, AdamWConfig { weight_decay: 0.0, ..AdamWConfig::default() }).unwrap();
    let mut generator = ChaCha8Rng::seed_from_u64(11);
    let term = |losses: &Losses, name: &str| -> f32 {
        losses.terms.iter().find(|(known, _)| *known == name).unwrap().1.to_scalar().unwrap()
    };
    let mut ends = Vec::new();
    for step in 0..400 {
        let noise = Tensor::from_vec(noise::normal(&mut generator, 4 * 3 * 24), (4, 3, 24), &Device::Cpu).unwrap();
        let loss = model.loss(&batch, &noise, &labels).unwrap();
        let gradients = parameters.gradients(&loss.total.backward().unwrap()).unwrap();
        let rate = 3e-3 * (1.0 - f64::from(step) / 400.0);
        optimizer.step(&parameters, &gradients, rate).unwrap();
        if step == 0 || step == 399 {
            ends.push(["recon", "state", "return", "infonce"].map(|name| term(&loss, name)));
        }
    }
    for (name, (first, last)) in ["recon", "state", "return", "infonce"].iter().zip(ends[0].iter().zip(ends[1])) {
        assert!(last < 0.1 * first, "{name}: {first} at first, {last} at last");
    }
}

#[test]
fn chosen_fragments_are_read_as_an_imagination_reads_them() {
    let with = |imagined_share: f64| {
        golden_model(&WorldModelConfig { returns: true, imagined_share, ..golden_config(Form::default()) }).1
    };
    let (fragments, steps) = (64, 4);
    let (batch, noise) = (random_batch(fragments, steps), random(6, &[fragments, steps, 8]));
    assert!(with(0.0).partly_imagined(&batch, &noise).unwrap().is_none(), "the default reads fragments as they are");
    let rows = |tensor: &Tensor| -> Vec<Vec<Vec<f32>>> { tensor.to_vec3().unwrap() };

    // All of them: the first observation is true, the others are those of an imagination from it.
    let model = with(1.0);
    let all = model.partly_imagined(&batch, &noise).unwrap().unwrap();
    let first = |tensor: &Tensor| tensor.narrow(1, 0, 1).unwrap().squeeze(1).unwrap();
    let start = Start { features: first(&batch.features), states: first(&batch.states) };
    let imagined = model.imagine(&start, &batch.actions, None).unwrap();
    for (read, truth, imagined) in
        [(&all.features, &batch.features, &imagined.features), (&all.states, &batch.states, &imagined.states)]
    {
        for ((read, truth), imagined) in rows(read).iter().zip(rows(truth)).zip(rows(imagined)) {
            assert_eq!(read[0], truth[0]);
            for step in 1..steps {
                let apart = read[step].iter().zip(&imagined[step - 1]).map(|(one, other)| (one - other).abs());
                assert!(apart.fold(0.0, f32::max) < 1e-5);
            }
        }
    }

    // Half of them: about half, whole fragments, the same ones however the batch is divided.
    let model = with(0.5);
    let some = model.partly_imagined(&batch, &noise).unwrap().unwrap();
    let kept: Vec<bool> =
        rows(&some.states).iter().zip(rows(&batch.states)).map(|(read, truth)| *read == truth).collect();
    let count = kept.iter().filter(|kept| **kept).count();
    assert!((20..=44).contains(&count), "{count} of {fragments}");
    let half = |tensor: &Tensor| tensor.narrow(0, fragments / 2, fragments / 2).unwrap().contiguous().unwrap();
    let part = FragmentBatch {
        features: half(&batch.features),
        states: half(&batch.states),
        actions: half(&batch.actions),
        rewards: None,
        returns: None,
    };
    let read = model.partly_imagined(&part, &half(&noise)).unwrap().unwrap();
    let again: Vec<bool> =
        rows(&read.states).iter().zip(rows(&part.states)).map(|(read, truth)| *read == truth).collect();
    assert_eq!(again, kept[fragments / 2..]);
    let without = noise.zeros_like().unwrap();
    assert_eq!(rows(&model.partly_imagined(&batch, &without).unwrap().unwrap().states), rows(&batch.states));

    // Every weight still learns, and the targets are the true ones.
    let config = WorldModelConfig {
        returns: true,
        imagined_share: 1.0,
        contrast: ContrastMode::None,
        ..golden_config(Form::default())
    };
    let (parameters, model) = golden_model(&config);
    let loss = model.loss(&batch, &noise, &[]).unwrap();
    let seen = model.forward(&all, &noise).unwrap();
    let state = (seen.states - &batch.states).unwrap().sqr().unwrap().mean_all().unwrap();
    let term = &loss.terms.iter().find(|(name, _)| *name == "state").unwrap().1;
    assert!(relative(term, &state) < 1e-5);
    let gradients = parameters.gradients(&loss.total.backward().unwrap()).unwrap();
    assert!(gradients.iter().all(Option::is_some));
}

#[test]
fn states_are_read_as_waves_only_where_the_settings_say_so() {
    assert_eq!(WorldModelConfig::default().frequencies, 0);
    let with = |frequencies: usize| made(&WorldModelConfig { frequencies, ..golden_config(Form::default()) }, WIDTHS).1;
    let values = Tensor::new(&[[[0.5_f32, -1.25]]], &Device::Cpu).unwrap();
    let read =
        |frequencies: usize| with(frequencies).waves(&values).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
    assert_eq!(read(0), [0.5, -1.25]);
    let wanted = [0.5, -1.25, 1_f32.sin(), (-2.5_f32).sin(), 1_f32.cos(), (-2.5_f32).cos()];
    let wanted = [&wanted[..], &[2_f32.sin(), (-5_f32).sin(), 2_f32.cos(), (-5_f32).cos()]].concat();
    for (found, wanted) in read(2).into_iter().zip(wanted) {
        assert!((found - wanted).abs() < 1e-6, "{found} {wanted}");
    }
    // It trains and imagines like any other.
    let config = WorldModelConfig { frequencies: 2, contrast: ContrastMode::None, ..golden_config(Form::default()) };
    let (parameters, model) = made(&config, WIDTHS);
    let loss = model.loss(&random_batch(4, 4), &random(6, &[4, 4, 8]), &[]).unwrap();
    assert!(parameters.gradients(&loss.total.backward().unwrap()).unwrap().iter().all(Option::is_some));
    let start = Start { features: random(6, &[4, 12]), states: random(7, &[4, 5]) };
    let (cached, whole) = (
        model.imagine(&start, &random(8, &[4, 5, 3]), None).unwrap(),
        model.imagine_uncached(&start, &random(8, &[4, 5, 3]), None).unwrap(),
    );
    assert!(relative(&cached.states, &whole.states) < 1e-4);
    let error = WorldModelConfig { frequencies: 17, ..WorldModelConfig::default() }.validate().unwrap_err().to_string();
    assert!(error.contains("`frequencies` is 17, wanted 16 or fewer"), "{error}");
}
