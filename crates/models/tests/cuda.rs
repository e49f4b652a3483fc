//! The CUDA forms of the hot operations against the CPU's, which are tested against plain Candle. Needs a GPU: without one,
//! or without `--features cuda`, there is nothing to run here.

#![cfg(feature = "cuda")]
#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(clippy::print_stderr, reason = "says why a test did nothing")]

use candle_core::{DType, Device, Tensor, Var};
use models::decoder::{self, Decoder, DecoderBatch, DecoderConfig, FlowNoise};
use models::emitter::{self, Emitter, EmitterBatch, EmitterConfig, Symbols, token_tensor, word_tensor};
use models::encoder::DinoV2;
use models::layers::EPSILON;
use models::ops::bias_activation::{self, Activation};
use models::ops::{Form, attention, layer_norm};
use models::parameters::Init;
use models::training::{AdamW, AdamWConfig};
use models::transformer::{Transformer, TransformerConfig};
use models::vocabulary::{NumberScales, Piece};
use models::{EyeConfig, Look, Parameters, Precision, Widths, noise};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// bf16 has eight bits of fraction; sums over rows and tokens average the rounding.
const BF16: f64 = 1e-2;
const F32: f64 = 1e-5;

/// A gradient that is smaller than this share of the largest one is rounding.
const NOTHING: f64 = 1e-6;

fn gpu() -> Option<Device> {
    let device = Device::new_cuda(0);
    if let Err(error) = &device {
        eprintln!("skipped: no GPU here ({error})");
    }
    device.ok()
}

/// Numbers that bf16 holds exactly, so that only arithmetic differs.
fn random(shape: &[usize], seed: u64) -> Tensor {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let values = noise::normal(&mut generator, shape.iter().product());
    let exact = Tensor::from_vec(values, shape, &Device::Cpu).unwrap().to_dtype(DType::BF16).unwrap();
    exact.to_dtype(DType::F32).unwrap()
}

fn distance(a: &Tensor, b: &Tensor) -> f64 {
    let flat = |x: &Tensor| {
        let x = x.to_device(&Device::Cpu).unwrap().to_dtype(DType::F64).unwrap();
        x.flatten_all().unwrap().to_vec1::<f64>().unwrap()
    };
    let (a, b) = (flat(a), flat(b));
    assert_eq!(a.len(), b.len());
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    let apart = norm(&mut a.iter().zip(&b).map(|(a, b)| a - b)) / norm(&mut b.iter().copied()).max(1e-30);
    if apart.is_nan() { f64::INFINITY } else { apart }
}

fn near(what: &str, found: &Tensor, wanted: &Tensor, limit: f64) {
    let apart = distance(found, wanted);
    assert!(apart < limit, "{what}: {apart}");
}

fn both() -> [(DType, f64); 2] {
    [(DType::BF16, BF16), (DType::F32, F32)]
}

#[test]
fn layer_norm_is_the_cpus() {
    let Some(gpu) = gpu() else { return };
    for (dtype, limit) in both() {
        for (rows, width) in [(1, 32), (37, 192), (300, 256), (1000, 1024), (70, 1536), (9, 100)] {
            let [x, added, dy, residual] = [1, 2, 3, 4].map(|seed| random(&[rows, width], seed));
            let [added_bias, weight, bias] = [5, 6, 7].map(|seed| random(&[width], seed));
            let there = |x: &Tensor| x.to_device(&gpu).unwrap().to_dtype(dtype).unwrap();
            let vector = |x: &Tensor| x.to_device(&gpu).unwrap();
            let cpu = layer_norm::forward(&x, Some((&added, &added_bias)), (&weight, &bias), EPSILON).unwrap();
            let (w, b) = (vector(&weight), vector(&bias));
            let cuda = layer_norm::forward(&there(&x), Some((&there(&added), &vector(&added_bias))), (&w, &b), EPSILON)
                .unwrap();
            near("sum", &cuda.sum, &cpu.sum, limit);
            near("y", &cuda.y, &cpu.y, limit);
            let plain = layer_norm::forward(&there(&x), None, (&w, &b), EPSILON).unwrap();
            near("plain", &plain.y, &layer_norm::forward(&x, None, (&weight, &bias), EPSILON).unwrap().y, limit);
            let wanted = layer_norm::backward(&cpu, &weight, &dy, Some(&residual)).unwrap();
            let found = layer_norm::backward(&cuda, &w, &there(&dy), Some(&there(&residual))).unwrap();
            near("dx", &found.x, &wanted.x, limit);
            near("dw", &found.weight, &wanted.weight, limit);
            near("db", &found.bias, &wanted.bias, limit);
            near("dadded", &found.added_bias, &wanted.added_bias, limit);
        }
    }
}

#[test]
fn bias_and_activation_are_the_cpus() {
    let Some(gpu) = gpu() else { return };
    for (dtype, limit) in both() {
        for (rows, columns) in [(1, 8), (65, 256), (1000, 4096), (256, 49152), (77, 768), (5, 7)] {
            for activation in [Activation::None, Activation::GeluTanh, Activation::GeluErf] {
                let (x, dy, bias) = (random(&[rows, columns], 1), random(&[rows, columns], 2), random(&[columns], 3));
                let there = |x: &Tensor| x.to_device(&gpu).unwrap().to_dtype(dtype).unwrap();
                let shift = bias.to_device(&gpu).unwrap();
                let found = bias_activation::forward(&there(&x), &shift, activation).unwrap();
                near("y", &found, &bias_activation::forward(&x, &bias, activation).unwrap(), limit);
                let (dx, db) = bias_activation::backward(&there(&x), &shift, &there(&dy), activation).unwrap();
                let (wanted_dx, wanted_db) = bias_activation::backward(&x, &bias, &dy, activation).unwrap();
                near("dx", &dx, &wanted_dx, limit);
                near("db", &db, &wanted_db, limit);
            }
        }
    }
}

#[test]
fn attention_is_the_cpus() {
    let Some(gpu) = gpu() else { return };
    for (dtype, limit) in both() {
        let shapes = [(2, 48, 16, 64), (3, 16, 8, 32), (1, 5, 2, 16), (2, 33, 3, 64), (1, 100, 2, 64), (2, 12, 2, 128)];
        // Longer than the blocks of some devices.
        let long = [(2, 150, 3, 64), (1, 176, 2, 64), (2, 190, 2, 32), (1, 240, 2, 64)];
        for (batch, tokens, heads, head) in shapes.into_iter().chain(long) {
            for causal in [true, false] {
                let qkv = random(&[batch, tokens, 3, heads, head], 1);
                let (bias, gradient) = (random(&[3 * heads * head], 2), random(&[batch, tokens, heads * head], 3));
                let there = |x: &Tensor| x.to_device(&gpu).unwrap().to_dtype(dtype).unwrap();
                let shift = bias.to_device(&gpu).unwrap();
                let found = attention::forward(&there(&qkv), &shift, causal).unwrap();
                let what = format!("{tokens} tokens, head {head}, causal {causal}");
                near(&what, &found, &attention::forward(&qkv, &bias, causal).unwrap(), limit.max(1e-3) * 2.0);
                let found = attention::backward(&there(&qkv), &shift, &there(&gradient), causal).unwrap();
                let wanted = attention::backward(&qkv, &bias, &gradient, causal).unwrap();
                near(&format!("backward of {what}"), &found, &wanted, limit.max(1e-3) * 2.0);
            }
        }
    }
}

#[test]
fn an_encoder_has_the_cpus_tokens() {
    let Some(gpu) = gpu() else { return };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden/dinov2_tiny");
    let pixels: Vec<u8> = (0..3 * 84 * 84 * 3).map(|at| (at * 31 % 251) as u8).collect();
    let tokens = |device: &Device, precision| {
        DinoV2::load(&folder, device, precision).unwrap().tokens(&pixels, (3, 84, 84)).unwrap()
    };
    let cpu = tokens(&Device::Cpu, DType::F32);
    for (precision, limit) in [(DType::F32, 1e-4), (DType::F16, BF16), (DType::BF16, 5.0 * BF16)] {
        near(&format!("{precision:?}"), &tokens(&gpu, precision), &cpu, limit);
    }
}

#[test]
fn a_transformer_has_the_cpus_gradients() {
    let Some(gpu) = gpu() else { return };
    for (precision, limit) in [(Precision::F32, 1e-3), (Precision::Bf16, 3e-2)] {
        let run = |device: &Device, precision: Precision| {
            let mut parameters = Parameters::new(device, precision, 3);
            let config = TransformerConfig { width: 256, layers: 3, heads: 4, causal: true, form: Form::Fused };
            let model = Transformer::new(&mut parameters.root(), config).unwrap();
            let x = random(&[5, 48, 256], 1).to_device(device).unwrap().to_dtype(precision.dtype()).unwrap();
            let x = Var::from_tensor(&x).unwrap();
            let dy = random(&[5, 48, 256], 2).to_device(device).unwrap();
            let y = model.forward(&x).unwrap().to_dtype(DType::F32).unwrap();
            let found = (&y * &dy).unwrap().sum_all().unwrap().backward().unwrap();
            let names: Vec<String> = parameters.iter().map(|one| one.name().to_owned()).collect();
            let gradients: Vec<Tensor> =
                parameters.gradients(&found).unwrap().into_iter().map(Option::unwrap).collect();
            (y.detach(), found.get(&x).unwrap().clone(), names.into_iter().zip(gradients).collect::<Vec<_>>())
        };
        let (cpu, cuda) = (run(&Device::Cpu, Precision::F32), run(&gpu, precision));
        near("y", &cuda.0, &cpu.0, limit);
        near("dx", &cuda.1, &cpu.1, limit);
        let largest = cpu.2.iter().map(|(_, wanted)| norm(wanted)).fold(0.0, f64::max);
        for ((name, found), (_, wanted)) in cuda.2.iter().zip(&cpu.2) {
            // The gradient of a bias before a softmax over places is zero but for rounding, and has no relative error.
            if norm(wanted) < NOTHING * largest {
                assert!(norm(found) < limit * largest, "{name}: {} where there is no gradient", norm(found));
            } else {
                near(name, found, wanted, limit);
            }
        }
    }
}

fn norm(x: &Tensor) -> f64 {
    let x = x.to_device(&Device::Cpu).unwrap().to_dtype(DType::F64).unwrap();
    x.sqr().unwrap().sum_all().unwrap().to_scalar::<f64>().unwrap().sqrt()
}

const WIDTHS: Widths = Widths { features: 32, states: 5, actions: 7 };

/// A loss, what else a pass gives, and the gradients by name.
type Pass = (Tensor, Tensor, Vec<(String, Tensor)>);

fn compare(run: impl Fn(&Device, Precision) -> Pass) {
    let Some(gpu) = gpu() else { return };
    let cpu = run(&Device::Cpu, Precision::F32);
    for (precision, limit) in [(Precision::F32, 1e-3), (Precision::Bf16, 5e-2)] {
        let cuda = run(&gpu, precision);
        near("the loss", &cuda.0, &cpu.0, limit);
        near("the result", &cuda.1, &cpu.1, limit);
        let largest = cpu.2.iter().map(|(_, wanted)| norm(wanted)).fold(0.0, f64::max);
        for ((name, found), (_, wanted)) in cuda.2.iter().zip(&cpu.2) {
            // The gradient of a bias before a softmax over places is zero but for rounding, and has no relative error.
            if norm(wanted) < NOTHING * largest {
                assert!(norm(found) < limit * largest, "{name}: {} where there is no gradient", norm(found));
            } else {
                near(name, found, wanted, limit);
            }
        }
    }
}

fn norm(x: &Tensor) -> f64 {
    let x = x.to_device(&Device::Cpu).unwrap().to_dtype(DType::F64).unwrap();
    x.sqr().unwrap().sum_all().unwrap().to_scalar::<f64>().unwrap().sqrt()
}

fn gradients(parameters: &Parameters, loss: &Tensor) -> Vec<(String, Tensor)> {
    let found = parameters.gradients(&loss.backward().unwrap()).unwrap();
    parameters.iter().zip(found).map(|(one, gradient)| (one.name().to_owned(), gradient.unwrap())).collect()
}

#[test]
fn an_emitter_has_the_cpus_loss_and_gradients() {
    compare(|device, precision| {
        let mut parameters = Parameters::new(device, precision, 3);
        let config = EmitterConfig { tied: true, ..EmitterConfig::preset("tiny").unwrap() };
        let symbols = Symbols { words: 20, tokens: 50 };
        let emitter = Emitter::new(&mut parameters.root(), &config, WIDTHS, symbols, &NumberScales::default()).unwrap();
        let there = |x: Tensor| Some(x.to_device(device).unwrap());
        let ids =
            |from: usize, count: usize| (from..from + count).map(|at| Piece::plain(5 + (7 * at % 45) as u32)).collect();
        let targets: Vec<Vec<Piece>> = (0..6).map(|at| ids(at, 4 + 3 * at)).collect();
        let words: Vec<Vec<u32>> = (0..6).map(|at| vec![1 + at, 19 - at]).collect();
        let condition = emitter::Condition {
            words: word_tensor(&words, config.words, device).unwrap(),
            features: there(random(&[6, 32], 1)),
            states: there(random(&[6, 5], 2)),
            images: None,
        };
        let batch = EmitterBatch { condition, tokens: token_tensor(&targets, device).unwrap() };
        let nats = emitter.token_scores(&batch).unwrap().nats;
        let loss = emitter.loss(&batch).unwrap().total;
        (loss.detach(), nats, gradients(&parameters, &loss))
    });
}

#[test]
fn an_emitter_with_an_eye_has_the_cpus_images_loss_and_gradients() {
    compare(|device, precision| {
        let eye = EyeConfig {
            side: 32,
            width: 16,
            stages: 2,
            blocks: 1,
            grid: 2,
            keypoints: 8,
            cameras: 2,
            ..EyeConfig::default()
        };
        let bytes: Vec<u8> = (0..4 * eye.bytes()).map(|at| (at * at % 251) as u8).collect();
        let pixels = Tensor::from_vec(bytes, (4, eye.bytes()), &Device::Cpu).unwrap().to_device(device).unwrap();
        let look = Look { shift: [2, -3], gain: 1.125, offset: [0.0, 0.125, -0.125] };
        let looks = [Look::PLAIN, look, look, Look::PLAIN];
        let images = eye.images(&pixels, &[0, 3, 2, 1], &looks, DType::F32).unwrap();

        let mut parameters = Parameters::new(device, precision, 3);
        let config = EmitterConfig { eye: Some(eye), ..EmitterConfig::preset("tiny").unwrap() };
        let symbols = Symbols { words: 20, tokens: 50 };
        let emitter = Emitter::new(&mut parameters.root(), &config, WIDTHS, symbols, &NumberScales::default()).unwrap();
        let targets: Vec<Vec<Piece>> = [4, 9].map(|count| (5..5 + count).map(Piece::plain).collect()).to_vec();
        let condition = emitter::Condition {
            words: word_tensor(&[vec![1, 19], vec![2, 18]], config.words, device).unwrap(),
            features: None,
            states: Some(random(&[2, 5], 2).to_device(device).unwrap()),
            images: Some(images.clone()),
        };
        let batch = EmitterBatch { condition, tokens: token_tensor(&targets, device).unwrap() };
        let loss = emitter.loss(&batch).unwrap().total;
        (loss.detach(), images, gradients(&parameters, &loss))
    });
}

#[test]
fn a_decoder_has_the_cpus_loss_gradients_and_chunks() {
    compare(|device, precision| {
        let mut parameters = Parameters::new(device, precision, 3);
        let config = DecoderConfig::preset("tiny").unwrap();
        let decoder = Decoder::new(&mut parameters.root(), &config, WIDTHS, 50, &NumberScales::default()).unwrap();
        let there = |x: Tensor| x.to_device(device).unwrap();
        let piece = |token: u32, at: u32| Piece::plain(5 + (token + at) % 45);
        let terms: Vec<Vec<Piece>> =
            (0..6_u32).map(|at| (0..3 + 2 * at).map(|token| piece(token, at)).collect()).collect();
        let condition = decoder::Condition {
            terms: decoder::term_tensor(&terms, config.tokens, device).unwrap(),
            features: Some(there(random(&[6, 32], 1))),
            states: Some(there(random(&[6, 5], 2))),
            images: None,
        };
        let counted: Vec<f32> = (0..6 * 16).map(|at| if at % 16 < 16 - at / 16 { 1.0 } else { 0.0 }).collect();
        let counted = there(Tensor::from_vec(counted, (6, 16), &Device::Cpu).unwrap());
        let batch = DecoderBatch { condition, actions: there(random(&[6, 16, 7], 3)), counted };
        let times = there(Tensor::new(&[0_f32, 0.125, 0.25, 0.5, 0.75, 0.875], &Device::Cpu).unwrap());
        let noise = FlowNoise { start: there(random(&[6, 16, 7], 4)), times };
        let chunks = decoder.sample(&batch.condition, &noise.start).unwrap();
        let loss = decoder.loss(&batch, &noise).unwrap().total;
        (loss.detach(), chunks, gradients(&parameters, &loss))
    });
}

#[test]
fn adamw_is_the_cpus() {
    let Some(gpu) = gpu() else { return };
    for precision in [Precision::F32, Precision::Bf16] {
        let run = |device: &Device, precision: Precision| {
            let mut parameters = Parameters::new(device, precision, 5);
            for (name, shape) in [("a", vec![300, 70]), ("b", vec![7]), ("c", vec![20000])] {
                parameters.root().weight(name, &shape, Init::Normal(1.0)).unwrap();
            }
            let mut optimizer = AdamW::new(&parameters, AdamWConfig::default()).unwrap();
            let mut norms = Vec::new();
            for step in 0..4_u64 {
                let scale = 10.0_f64.powi(-(step as i32));
                let draw = |(at, one): (usize, &models::Parameter)| {
                    let drawn = (random(one.master().dims(), 10 * step + at as u64) * scale).unwrap();
                    // What bf16 holds on both sides.
                    let drawn = drawn.to_dtype(DType::BF16).unwrap().to_dtype(precision.dtype()).unwrap();
                    Some(drawn.to_device(device).unwrap())
                };
                let gradients: Vec<Option<Tensor>> = parameters.iter().enumerate().map(draw).collect();
                norms.push(optimizer.step(&parameters, &gradients, 1e-2).unwrap().to_scalar::<f32>().unwrap());
            }
            for parameter in parameters.iter() {
                let largest = parameter.master().abs().unwrap().flatten_all().unwrap().max(0).unwrap();
                let (error, largest) = (parameter.copy_error().unwrap(), largest.to_scalar::<f32>().unwrap());
                // Half a unit of the last of bf16's eight digits.
                assert!(error <= largest / 256.0, "the copy of `{}` is off by {error}", parameter.name());
            }
            (parameters.masters(), norms)
        };
        let (cpu, cuda) = (run(&Device::Cpu, Precision::F32), run(&gpu, precision));
        for (name, wanted) in &cpu.0 {
            near(name, &cuda.0[name], wanted, 1e-5);
        }
        for (found, wanted) in cuda.1.iter().zip(&cpu.1) {
            assert!((found / wanted - 1.0).abs() < 1e-4, "{found} {wanted}");
        }
    }
}
