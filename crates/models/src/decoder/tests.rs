//! The decoder against its PyTorch twin (`fixtures/golden/wake`), and against itself.

use std::collections::BTreeMap;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::embedding;
use crate::noise;
use crate::ops::Form;
use crate::ops::testing::{distance, random};
use crate::parameters::{Parameters, Precision};
use crate::training::adamw::{AdamW, AdamWConfig};
use crate::vocabulary::{NumberScales, Piece, PieceTensor};
use crate::widths::Widths;

const WIDTHS: Widths = Widths { features: 12, states: 5, actions: 3 };
const FORMS: [Form; 2] = [Form::Composed, Form::Fused];

fn golden(name: &str) -> BTreeMap<String, Tensor> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden/wake");
    let file = folder.join(format!("decoder_{name}.safetensors"));
    candle_core::safetensors::load(file, &Device::Cpu).unwrap().into_iter().collect()
}

fn golden_config(form: Form) -> DecoderConfig {
    DecoderConfig {
        width: 32,
        layers: 2,
        heads: 2,
        chunk: 6,
        steps: 10,
        time_hidden: 24,
        term_width: 16,
        term_layers: 2,
        term_heads: 2,
        summaries: 3,
        tokens: 8,
        feature_tokens: 2,
        eye: None,
        blind: false,
        positions: true,
        form,
    }
}

fn made(config: &DecoderConfig, widths: Widths, symbols: usize, precision: Precision) -> (Parameters, Decoder) {
    let mut parameters = Parameters::new(&Device::Cpu, precision, 1);
    let decoder = Decoder::new(&mut parameters.root(), config, widths, symbols, &NumberScales::default()).unwrap();
    (parameters, decoder)
}

/// A model with those of the golden weights that it has.
fn golden_model(form: Form, widths: Widths, precision: Precision) -> (Parameters, Decoder) {
    let (parameters, decoder) = made(&golden_config(form), widths, 17, precision);
    let mut weights = golden("weights");
    weights.retain(|name, _| parameters.named(name).is_some());
    let places = parameters.named("place").unwrap().master().dims()[0];
    weights.insert("place".to_owned(), weights["place"].narrow(0, 0, places).unwrap());
    parameters.assign(&weights).unwrap();
    (parameters, decoder)
}

fn golden_batch() -> (DecoderBatch, FlowNoise) {
    let fixed = golden("batch");
    let one = |name: &str| fixed[name].clone();
    let terms = PieceTensor::plain(one("terms")).unwrap();
    let condition = Condition { terms, features: Some(one("features")), states: Some(one("states")), images: None };
    let batch = DecoderBatch { condition, actions: one("actions"), counted: one("counted") };
    (batch, FlowNoise { start: one("start"), times: one("times") })
}

fn scalar(x: &Tensor) -> f32 {
    x.to_scalar().unwrap()
}

#[test]
fn losses_gradients_and_chunks_are_those_of_pytorch() {
    let blind = Widths { features: 0, ..WIDTHS };
    let cases = [("whole", WIDTHS), ("blind", blind), ("term_alone", Widths { states: 0, ..blind })];
    let (batch, noise) = golden_batch();
    let mut worst = [0.0_f64; 3];
    for form in FORMS {
        for (case, widths) in cases {
            let (parameters, decoder) = golden_model(form, widths, Precision::F32);
            let wanted = golden(case);
            let mut near = |which: usize, what: &str, found: &Tensor, wanted: &Tensor, limit: f64| {
                let error = distance(found, wanted);
                assert!(error <= limit, "{case} {form:?}: {what} is off by {error}");
                worst[which] = worst[which].max(error);
            };
            let loss = decoder.loss(&batch, &noise).unwrap();
            near(0, "the loss", &loss.total, &wanted["total"], 1e-5);
            let gradients = parameters.gradients(&loss.total.backward().unwrap()).unwrap();
            for (parameter, gradient) in parameters.iter().zip(gradients) {
                let name = parameter.name();
                let gradient = gradient.unwrap_or_else(|| panic!("{case} {form:?}: {name} has no gradient"));
                near(1, name, &gradient, &wanted[&format!("gradient.{name}")], 1e-4);
            }
            let chunks = decoder.sample(&batch.condition, &noise.start).unwrap();
            near(2, "a chunk", &chunks, &wanted["sample"], 1e-5);
        }
    }
    println!("worst of losses, gradients, chunks: {worst:?}");
}

#[test]
fn bf16_runs_the_same_code() {
    let (batch, noise) = golden_batch();
    let (parameters, decoder) = golden_model(Form::Fused, WIDTHS, Precision::Bf16);
    let (_, exact) = golden_model(Form::Fused, WIDTHS, Precision::F32);
    let (loss, wanted) = (decoder.loss(&batch, &noise).unwrap(), exact.loss(&batch, &noise).unwrap());
    assert_eq!(loss.total.dtype(), DType::F32);
    // Eight bits of a number are kept.
    assert!(distance(&loss.total, &wanted.total) < 0.02);
    assert!(parameters.gradients(&loss.total.backward().unwrap()).unwrap().iter().all(Option::is_some));
    assert_eq!(decoder.sample(&batch.condition, &noise.start).unwrap().dtype(), DType::F32);
}

#[test]
fn padding_of_terms_changes_nothing() {
    let (batch, noise) = golden_batch();
    for form in FORMS {
        let (parameters, decoder) = golden_model(form, WIDTHS, Precision::F32);
        let padded = Tensor::zeros((4, 2), DType::U32, &Device::Cpu).unwrap();
        let terms = Tensor::cat(&[&batch.condition.terms.ids, &padded], 1).unwrap();
        let terms = PieceTensor::plain(terms).unwrap();
        let longer = DecoderBatch { condition: Condition { terms, ..batch.condition.clone() }, ..batch.clone() };
        let pass = |batch: &DecoderBatch| {
            let loss = decoder.loss(batch, &noise).unwrap();
            (loss.total.detach(), parameters.gradients(&loss.total.backward().unwrap()).unwrap())
        };
        let (before, after) = (pass(&batch), pass(&longer));
        assert!(distance(&after.0, &before.0) < 1e-6);
        for ((parameter, before), after) in parameters.iter().zip(before.1).zip(after.1) {
            let apart = distance(&after.unwrap(), &before.unwrap());
            assert!(apart < 1e-5, "{form:?}: {} {apart}", parameter.name());
        }
        // The third term has one token; alone it needs no padding.
        let row = |x: &Tensor| x.narrow(0, 2, 1).unwrap().contiguous().unwrap();
        let alone = Condition {
            terms: PieceTensor::plain(row(&batch.condition.terms.ids)).unwrap().columns(0, 1).unwrap(),
            features: batch.condition.features.as_ref().map(row),
            states: batch.condition.states.as_ref().map(row),
            images: None,
        };
        let together = decoder.sample(&batch.condition, &noise.start).unwrap();
        assert!(distance(&decoder.sample(&alone, &row(&noise.start)).unwrap(), &row(&together)) < 1e-6);
    }
}

#[test]
fn every_token_of_a_term_is_seen() {
    let (batch, noise) = golden_batch();
    let (_, decoder) = golden_model(Form::Fused, WIDTHS, Precision::F32);
    let before = decoder.sample(&batch.condition, &noise.start).unwrap();
    let terms = batch.condition.terms.ids.to_vec2::<u32>().unwrap();
    for at in 0..6 {
        let mut changed = terms.clone();
        changed[1][at] = 14;
        let terms = PieceTensor::plain(Tensor::new(changed, &Device::Cpu).unwrap()).unwrap();
        let after = decoder.sample(&Condition { terms, ..batch.condition.clone() }, &noise.start).unwrap();
        let row = |x: &Tensor, row: usize| x.get(row).unwrap();
        assert!(distance(&row(&after, 1), &row(&before, 1)) > 1e-4, "token {at}");
        assert!(distance(&row(&after, 0), &row(&before, 0)) < 1e-6);
    }
}

#[test]
fn actions_beyond_the_end_have_no_influence() {
    let (batch, noise) = golden_batch();
    let (_, decoder) = golden_model(Form::Fused, WIDTHS, Precision::F32);
    let beyond = (batch.counted.affine(-1.0, 1.0).unwrap() * 3.0).unwrap().unsqueeze(2).unwrap();
    let moved = DecoderBatch { actions: batch.actions.broadcast_add(&beyond).unwrap(), ..batch.clone() };
    let figures = |batch: &DecoderBatch| {
        (scalar(&decoder.loss(batch, &noise).unwrap().total), decoder.measure(batch, &noise).unwrap())
    };
    assert_eq!(figures(&moved), figures(&batch));
    let all = DecoderBatch { counted: batch.counted.ones_like().unwrap(), ..moved };
    assert_ne!(figures(&all), figures(&batch));
}

#[test]
fn errors_are_those_of_loss_and_chunks() {
    let (batch, noise) = golden_batch();
    let (_, decoder) = golden_model(Form::Fused, WIDTHS, Precision::F32);
    let found = decoder.measure(&batch, &noise).unwrap();
    assert_eq!(found.numbers, f64::from(6 + 4 + 6 + 1) * 3.0);
    let loss = f64::from(scalar(&decoder.loss(&batch, &noise).unwrap().total));
    assert!((found.velocity_mean_square() - loss).abs() < 1e-5);
    assert!((found.velocity_rms().powi(2) - loss).abs() < 1e-5);
    let chunks = decoder.sample(&batch.condition, &noise.start).unwrap();
    let squares = (chunks - &batch.actions).unwrap().sqr().unwrap().sum(2).unwrap();
    let wanted = f64::from(scalar(&(squares * &batch.counted).unwrap().sum_all().unwrap())) / found.numbers;
    assert!((found.chunk_mean_square() / wanted - 1.0).abs() < 1e-5);
    assert!((found.chunk_rms().powi(2) - found.chunk_mean_square()).abs() < 1e-9);
    let twice = found.merged(found);
    assert!((twice.velocity_mean_square() - found.velocity_mean_square()).abs() < 1e-12);
    assert_eq!(FlowError::default().velocity_mean_square(), 0.0);
}

#[test]
fn sizes_are_those_of_the_formula() {
    for config in [DecoderConfig::preset("tiny").unwrap(), golden_config(Form::Fused)] {
        for widths in [WIDTHS, Widths { features: 0, ..WIDTHS }, Widths { features: 0, states: 0, actions: 1 }] {
            assert_eq!(made(&config, widths, 90, Precision::F32).0.count(), config.parameters(widths, 90));
        }
    }
}

#[test]
fn a_grown_decoder_does_the_same_with_old_terms() {
    let (batch, noise) = golden_batch();
    let (parameters, decoder) = golden_model(Form::Fused, WIDTHS, Precision::F32);
    let config = golden_config(Form::Fused);
    let longer = DecoderConfig { tokens: config.tokens + 3, ..config };
    let (grown_parameters, grown) = made(&longer, WIDTHS, 19, Precision::F32);
    assert_eq!(grown.tables().symbols, ["term.tokens.weight"]);
    assert_eq!(grown.tables().places, ["term.place"]);
    embedding::grow(&parameters.masters(), &grown_parameters, &grown.tables(), &[vec![5, 9], vec![]]).unwrap();
    let chunks = |decoder: &Decoder| decoder.sample(&batch.condition, &noise.start).unwrap();
    assert_eq!(distance(&chunks(&grown), &chunks(&decoder)), 0.0);
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let (batch, noise) = golden_batch();
    let (_, decoder) = golden_model(Form::Fused, WIDTHS, Precision::F32);
    let refused = |change: &dyn Fn(&mut DecoderBatch, &mut FlowNoise)| {
        let (mut batch, mut noise) = (batch.clone(), noise.clone());
        change(&mut batch, &mut noise);
        decoder.loss(&batch, &noise).unwrap_err().to_string()
    };
    let error = refused(&|batch, _| batch.condition.states = None);
    assert_eq!(error, "the decoder wants states as [4, 5], found none");
    let long = PieceTensor::plain(Tensor::ones((4, 9), DType::U32, &Device::Cpu).unwrap()).unwrap();
    let error = refused(&|batch, _| batch.condition.terms = long.clone());
    assert!(error.starts_with("terms of 9 tokens for a decoder of 8"), "{error}");
    let error = refused(&|_, noise| noise.times = Tensor::new(&[0.5_f32], &Device::Cpu).unwrap());
    assert!(error.starts_with("noise of [4, 6, 3] at [1] times"), "{error}");
    let cut = term_tensor(&[vec![Piece::plain(7); 9], vec![Piece::plain(5)]], 8, &Device::Cpu).unwrap();
    assert_eq!(cut.ids.to_vec2::<u32>().unwrap(), [vec![7; 8], vec![5, 0, 0, 0, 0, 0, 0, 0]]);
}

#[test]
fn a_tiny_decoder_learns_one_batch_by_heart() {
    let config = DecoderConfig { chunk: 6, width: 48, heads: 3, ..DecoderConfig::preset("tiny").unwrap() };
    let (parameters, decoder) = made(&config, WIDTHS, 17, Precision::F32);
    let (batch, _) = golden_batch();
    // The term alone tells the chunks apart.
    let same = |x: &Option<Tensor>| x.as_ref().map(|x| x.zeros_like().unwrap());
    let condition = Condition {
        features: same(&batch.condition.features),
        states: same(&batch.condition.states),
        ..batch.condition.clone()
    };
    // Each chunk several times, under different noise.
    let rows: Vec<u32> = (0..ROWS as u32).map(|row| row % 4).collect();
    let rows = Tensor::new(rows, &Device::Cpu).unwrap();
    let often = |x: &Tensor| x.index_select(&rows, 0).unwrap();
    let condition = Condition {
        terms: PieceTensor::plain(often(&condition.terms.ids)).unwrap(),
        features: condition.features.as_ref().map(often),
        states: condition.states.as_ref().map(often),
        images: None,
    };
    let batch = DecoderBatch { condition, actions: often(&batch.actions), counted: often(&batch.counted) };
    let mut optimizer = AdamW::new(&parameters, AdamWConfig { weight_decay: 0.0, ..AdamWConfig::default() }).unwrap();
    let mut generator = ChaCha8Rng::seed_from_u64(3);
    let before = decoder.measure(&batch, &draw(&mut generator)).unwrap();
    for step in 0..500 {
        let loss = decoder.loss(&batch, &draw(&mut generator)).unwrap();
        let gradients = parameters.gradients(&loss.total.backward().unwrap()).unwrap();
        optimizer.step(&parameters, &gradients, 4e-3 * (1.0 - f64::from(step) / 500.0)).unwrap();
    }
    let after = decoder.measure(&batch, &draw(&mut generator)).unwrap();
    let figures = |error: &FlowError| (error.velocity_mean_square(), error.chunk_mean_square());
    println!("{:?} at first, {:?} at last", figures(&before), figures(&after));
    assert!(after.velocity_mean_square() < 0.1 * before.velocity_mean_square());
    assert!(after.chunk_mean_square() < 0.03 * before.chunk_mean_square());
    // The same noise gives the same chunks.
    let start = random(&[ROWS, 6, 3], 8);
    let chunks = || decoder.sample(&batch.condition, &start).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
    assert_eq!(chunks(), chunks());
}

const ROWS: usize = 24;

fn draw(generator: &mut ChaCha8Rng) -> FlowNoise {
    let start = Tensor::from_vec(noise::normal(generator, ROWS * 6 * 3), (ROWS, 6, 3), &Device::Cpu).unwrap();
    FlowNoise { start, times: Tensor::from_vec(noise::uniform(generator, ROWS), ROWS, &Device::Cpu).unwrap() }
}
