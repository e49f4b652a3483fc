//! The emitter against its PyTorch twin (`fixtures/golden/wake`), and against itself.

use std::collections::BTreeMap;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use language::{PrefixChecker, Signature, TermId, TermStore, Token, TypeId, check, print, read};

use super::*;
use crate::ops::Form;
use crate::ops::testing::{distance, random};
use crate::parameters::{Parameters, Precision};
use crate::training::adamw::{AdamW, AdamWConfig};
use crate::vocabulary::{BOS, EOS, Growth, NumberScales, Piece, PieceTensor, SEPARATOR, UNKNOWN, Vocabulary};
use crate::widths::Widths;

const WIDTHS: Widths = Widths { features: 12, states: 5, actions: 3 };
const FORMS: [Form; 2] = [Form::Composed, Form::Fused];

fn golden(name: &str) -> BTreeMap<String, Tensor> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden/wake");
    let file = folder.join(format!("emitter_{name}.safetensors"));
    candle_core::safetensors::load(file, &Device::Cpu).unwrap().into_iter().collect()
}

fn made(config: &EmitterConfig, widths: Widths, symbols: Symbols, precision: Precision) -> (Parameters, Emitter) {
    let mut parameters = Parameters::new(&Device::Cpu, precision, 1);
    let emitter = Emitter::new(&mut parameters.root(), config, widths, symbols, &NumberScales::default()).unwrap();
    (parameters, emitter)
}

fn golden_config(form: Form, tied: bool) -> EmitterConfig {
    let (words, tokens, feature_tokens) = (5, 9, 2);
    EmitterConfig {
        width: 32,
        layers: 2,
        heads: 2,
        words,
        tokens,
        feature_tokens,
        eye: None,
        tied,
        number_weight: 1.0,
        distances: false,
        form,
    }
}

/// A model with those of the golden weights that it has.
fn golden_model(config: &EmitterConfig, widths: Widths, precision: Precision) -> (Parameters, Emitter) {
    let (parameters, emitter) = made(config, widths, Symbols { words: 11, tokens: 17 }, precision);
    let mut weights = golden("weights");
    weights.retain(|name, _| parameters.named(name).is_some());
    let places = parameters.named("place").unwrap().master().dims()[0];
    weights.insert("place".to_owned(), weights["place"].narrow(0, 0, places).unwrap());
    parameters.assign(&weights).unwrap();
    (parameters, emitter)
}

fn golden_batch() -> EmitterBatch {
    let fixed = golden("batch");
    let (features, states) = (Some(fixed["features"].clone()), Some(fixed["states"].clone()));
    let condition = Condition { words: fixed["words"].clone(), features, states, images: None };
    EmitterBatch { condition, tokens: PieceTensor::plain(fixed["tokens"].clone()).unwrap() }
}

#[test]
fn losses_and_gradients_are_those_of_pytorch() {
    let blind = Widths { features: 0, ..WIDTHS };
    let alone = Widths { states: 0, ..blind };
    let cases =
        [("whole", false, WIDTHS), ("tied", true, WIDTHS), ("blind", false, blind), ("words_alone", true, alone)];
    let batch = golden_batch();
    let mut worst = [0.0_f64; 3];
    for form in FORMS {
        for (case, tied, widths) in cases {
            let (parameters, emitter) = golden_model(&golden_config(form, tied), widths, Precision::F32);
            let wanted = golden(case);
            let loss = emitter.loss(&batch).unwrap();
            let mut near = |which: usize, what: &str, found: &Tensor, wanted: &Tensor, limit: f64| {
                let error = distance(found, wanted);
                assert!(error <= limit, "{case} {form:?}: {what} is off by {error}");
                worst[which] = worst[which].max(error);
            };
            near(0, "the loss", &loss.total, &wanted["total"], 1e-5);
            assert_eq!((loss.terms[0].0, loss.terms[1].0), ("cross_entropy", "accuracy"));
            near(0, "the accuracy", &loss.terms[1].1, &wanted["accuracy"], 1e-5);
            let inputs = batch.tokens.columns(0, 9).unwrap();
            near(1, "scores", &emitter.scores(&batch.condition, &inputs).unwrap(), &wanted["scores"], 1e-5);
            parameters.clear_gradients();
            let gradients = parameters.gradients(&emitter.loss(&batch).unwrap().total.backward().unwrap()).unwrap();
            for (parameter, gradient) in parameters.iter().zip(gradients) {
                let name = parameter.name();
                let gradient = gradient.unwrap_or_else(|| panic!("{case} {form:?}: {name} has no gradient"));
                near(2, name, &gradient, &wanted[&format!("gradient.{name}")], 1e-4);
            }
        }
    }
    println!("worst of losses, scores, gradients: {worst:?}");
}

#[test]
fn bf16_runs_the_same_code() {
    let batch = golden_batch();
    let config = golden_config(Form::Fused, true);
    let (parameters, emitter) = golden_model(&config, WIDTHS, Precision::Bf16);
    let (_, exact) = golden_model(&config, WIDTHS, Precision::F32);
    let (loss, wanted) = (emitter.loss(&batch).unwrap(), exact.loss(&batch).unwrap());
    assert_eq!(loss.total.dtype(), DType::F32);
    // Eight bits of a number are kept.
    assert!(distance(&loss.total, &wanted.total) < 0.02);
    assert!(parameters.gradients(&loss.total.backward().unwrap()).unwrap().iter().all(Option::is_some));
}

#[test]
fn figures_for_each_token_add_up_to_the_loss_and_padding_adds_nothing() {
    let (_, emitter) = golden_model(&golden_config(Form::Fused, false), WIDTHS, Precision::F32);
    let batch = golden_batch();
    let loss = emitter.loss(&batch).unwrap();
    let scores = emitter.token_scores(&batch).unwrap();
    let sum = |x: &Tensor| x.sum_all().unwrap().to_scalar::<f32>().unwrap();
    let counted = sum(&scores.counted);
    assert!((sum(&scores.nats) / counted - loss.total.to_scalar::<f32>().unwrap()).abs() < 1e-5);
    assert!((sum(&scores.correct) / counted - loss.terms[1].1.to_scalar::<f32>().unwrap()).abs() < 1e-6);
    // The third program has one token and the end.
    let short = EmitterBatch {
        condition: batch.condition.select(&[2]).unwrap(),
        tokens: PieceTensor::plain(batch.tokens.ids.narrow(0, 2, 1).unwrap()).unwrap().columns(0, 3).unwrap(),
    };
    let alone = emitter.token_scores(&short).unwrap().nats;
    assert!(distance(&alone, &scores.nats.narrow(0, 2, 1).unwrap().narrow(1, 0, 2).unwrap()) < 1e-6);
    assert_eq!(scores.nats.to_vec2::<f32>().unwrap()[2][2..], [0.0; 7]);
}

#[test]
fn sizes_are_those_of_the_formula() {
    let symbols = Symbols { words: 30, tokens: 90 };
    for config in [EmitterConfig::preset("tiny").unwrap(), golden_config(Form::Fused, true)] {
        for widths in [WIDTHS, Widths { features: 0, ..WIDTHS }, Widths { features: 0, states: 0, actions: 1 }] {
            assert_eq!(made(&config, widths, symbols, Precision::F32).0.count(), config.parameters(widths, symbols));
        }
    }
}

#[test]
fn conditions_that_do_not_fit_are_refused() {
    let (_, emitter) = golden_model(&golden_config(Form::Fused, true), WIDTHS, Precision::F32);
    let batch = golden_batch();
    let refused = |change: &dyn Fn(&mut EmitterBatch)| {
        let mut batch = batch.clone();
        change(&mut batch);
        emitter.loss(&batch).unwrap_err().to_string()
    };
    let error = refused(&|batch| batch.condition.features = None);
    assert_eq!(error, "the emitter wants features as [4, 12], found none");
    assert!(refused(&|batch| batch.condition.words = batch.tokens.ids.clone()).contains("instructions of 10 words"));
    let ids = &batch.tokens.ids;
    let long = PieceTensor::plain(Tensor::cat(&[ids, ids], 1).unwrap()).unwrap();
    let error = refused(&|batch| batch.tokens = long.clone());
    assert!(error.starts_with("27 tokens are more than the emitter's 17"), "{error}");
}

/// Programs over the default signature, and a small emitter for them.
struct World {
    store: TermStore,
    signature: Signature,
    vocabulary: Vocabulary,
    scales: NumberScales,
    parameters: Parameters,
    emitter: Emitter,
}

impl World {
    fn new(programs: &[&str], everything: bool, seed: u64) -> World {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        let mut vocabulary = Vocabulary::new();
        if everything {
            vocabulary.extend_with_signature(&store, &signature);
        }
        let terms: Vec<TermId> = programs.iter().map(|text| parsed(&mut store, &signature, text)).collect();
        vocabulary.extend_with_terms(&mut store, &terms);
        let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, seed);
        let scales = scales(&mut store, &vocabulary, &terms);
        let emitter = World::emitter(&mut parameters, &vocabulary, &scales);
        // Far from uniform, so that choices matter.
        for (at, parameter) in parameters.iter().enumerate() {
            let noise = (random(parameter.master().dims(), seed * 100 + at as u64) * 0.2).unwrap();
            parameter.master().set(&(parameter.master().as_detached_tensor() + noise).unwrap()).unwrap();
        }
        World { store, signature, vocabulary, scales, parameters, emitter }
    }

    fn emitter(parameters: &mut Parameters, vocabulary: &Vocabulary, scales: &NumberScales) -> Emitter {
        let config = EmitterConfig {
            words: 4,
            tokens: 24,
            width: 32,
            number_weight: 1.0,
            ..EmitterConfig::preset("tiny").unwrap()
        };
        let symbols = Symbols { words: 6, tokens: vocabulary.len() };
        let widths = Widths { features: 0, states: 3, actions: 1 };
        Emitter::new(&mut parameters.root(), &config, widths, symbols, scales).unwrap()
    }

    fn checker(&self) -> PrefixChecker {
        PrefixChecker::new(&self.store, &self.signature, TypeId::MOTION)
    }

    fn emit(&mut self, condition: &Condition, beam: &BeamConfig) -> Vec<Emission> {
        let bound = self.vocabulary.bind(&mut self.store).unwrap();
        self.emitter.emit(condition, &bound, &mut self.checker(), beam).unwrap()
    }
}

fn scales(store: &mut TermStore, vocabulary: &Vocabulary, terms: &[TermId]) -> NumberScales {
    let bound = vocabulary.bind(store).unwrap();
    let programs: Vec<Vec<Piece>> = terms.iter().map(|term| bound.encode(store, &[*term]).pieces).collect();
    NumberScales::fit(&bound, programs.iter().map(Vec::as_slice), None)
}

/// The symbols of a program, without the numbers that they carry.
fn ids(pieces: &[Piece]) -> Vec<u32> {
    pieces.iter().map(|piece| piece.id).collect()
}

fn parsed(store: &mut TermStore, signature: &Signature, text: &str) -> TermId {
    read(store, signature, text, Some(TypeId::MOTION)).unwrap().term
}

fn condition(samples: usize) -> Condition {
    let words: Vec<Vec<u32>> = (0..samples as u32).map(|at| vec![1 + at % 5, 1 + at % 3]).collect();
    let words = word_tensor(&words, 4, &Device::Cpu).unwrap();
    Condition { words, features: None, states: Some(random(&[samples, 3], 9)), images: None }
}

const PROGRAMS: [&str; 4] = [
    r#"seq[pick "milk", place "milk" (in "basket")]"#,
    "seq[repeat(move x_pos, 5), grip grip_close, repeat(grip hold_closed, 2)]",
    r#"branch(holding "milk", release "milk", seq[])"#,
    "goto pose[0, 1, 0, 0, 0, 0]",
];

#[test]
fn whatever_the_weights_are_every_program_is_well_typed() {
    let mut found = 0;
    for seed in 1..6 {
        let mut world = World::new(&PROGRAMS, true, seed);
        let beam = BeamConfig { width: 5, tokens: 24, terms: 2, ..BeamConfig::default() };
        for emission in world.emit(&condition(3), &beam) {
            assert!(emission.statistics.refused > 0 && emission.statistics.refused < emission.statistics.checked);
            assert!(emission.hypotheses.windows(2).all(|two| two[0].log_probability >= two[1].log_probability));
            for hypothesis in &emission.hypotheses {
                let terms = hypothesis.terms(&mut world.store).unwrap();
                assert_eq!(terms.len(), 2);
                for term in terms {
                    assert!(check(&mut world.store, &world.signature, term, TypeId::MOTION).is_ok());
                    found += 1;
                }
                assert!(hypothesis.pieces.len() <= 24 && ids(&hypothesis.pieces).ends_with(&[EOS]));
            }
        }
    }
    assert!(found >= 50, "{found}");
}

#[test]
fn without_type_checking_nothing_is_checked_and_programs_may_be_none() {
    let beam = BeamConfig { width: 5, tokens: 24, typed: false, ..BeamConfig::default() };
    let is_broken = |seed: u64| {
        let mut world = World::new(&PROGRAMS, true, seed);
        let emissions = world.emit(&condition(4), &beam);
        assert!(emissions.iter().all(|emission| emission.statistics.checked == 0));
        let mut hypotheses = emissions.iter().flat_map(|emission| &emission.hypotheses);
        hypotheses.any(|hypothesis| hypothesis.terms(&mut world.store).is_err())
    };
    assert!((2..8).any(is_broken));
}

#[test]
fn a_beam_with_a_cache_finds_what_whole_passes_find() {
    let mut world = World::new(&PROGRAMS, true, 3);
    for (width, terms) in [(1, 1), (4, 2)] {
        let beam = BeamConfig { width, terms, tokens: 24, ..BeamConfig::default() };
        let cached = world.emit(&condition(3), &beam);
        let whole = world.emit(&condition(3), &BeamConfig { cached: false, ..beam });
        for (cached, whole) in cached.iter().zip(&whole) {
            assert_eq!(cached.statistics, whole.statistics);
            assert_eq!(cached.stop, whole.stop);
            assert_eq!(cached.hypotheses.len(), whole.hypotheses.len());
            for (cached, whole) in cached.hypotheses.iter().zip(&whole.hypotheses) {
                assert_eq!(ids(&cached.pieces), ids(&whole.pieces));
                let numbers = cached.pieces.iter().zip(&whole.pieces);
                assert!(numbers.map(|(a, b)| (a.number - b.number).abs()).all(|apart| apart < 1e-3));
                assert!((cached.log_probability - whole.log_probability).abs() < 1e-4);
            }
        }
        // Samples do not see each other.
        let last = world.emit(&condition(3).select(&[2]).unwrap(), &beam);
        let all = |emission: &Emission| emission.hypotheses.iter().map(|one| ids(&one.pieces)).collect::<Vec<_>>();
        assert_eq!(all(&last[0]), all(&cached[2]));
    }
}

#[test]
fn a_wide_beam_keeps_the_likeliest_task_whatever_motion_follows() {
    let (mut lost, mut compared) = (0, 0);
    for seed in 0..8 {
        let mut world = World::new(&PROGRAMS, true, seed);
        let beam = BeamConfig { width: 8, tokens: 24, ..BeamConfig::default() };
        let tasks = world.emit(&condition(3), &BeamConfig { terms: 1, ..beam });
        let settled = world.emit(&condition(3), &beam);
        let together = world.emit(&condition(3), &BeamConfig { term_by_term: false, ..beam });
        for ((task, settled), together) in tasks.iter().zip(&settled).zip(&together) {
            let (Some(task), Some(first)) = (task.hypotheses.first(), settled.hypotheses.first()) else { continue };
            let task = &ids(&task.pieces)[..task.pieces.len() - 1];
            let keeps = |one: &Hypothesis| {
                let pieces = ids(&one.pieces);
                pieces.starts_with(task) && pieces[task.len()] == SEPARATOR
            };
            assert!(settled.hypotheses.iter().all(keeps));
            let Some(other) = together.hypotheses.first() else { continue };
            lost += usize::from(!keeps(other));
            // What both find has the same probability, that of task and motion.
            if ids(&other.pieces) == ids(&first.pieces) {
                assert!((other.log_probability - first.log_probability).abs() < 1e-4);
                compared += 1;
            }
        }
    }
    assert!(lost > 0 && compared > 0, "tasks are lost if motions are ranked with them: {lost}, {compared}");
}

/// Every program within a limit, with ln p by whole passes and a mask of its own.
fn enumerate(world: &mut World, condition: &Condition, limit: usize) -> Vec<(Vec<u32>, f64)> {
    let bound = world.vocabulary.bind(&mut world.store).unwrap();
    let tokens: Vec<(u32, Token)> =
        (0..bound.len() as u32).filter_map(|id| Some((id, bound.symbol(id)?.example()?))).collect();
    let mut checker = world.checker();
    let mut open = vec![(Vec::new(), 0.0_f64, checker.start())];
    let mut complete = Vec::new();
    while let Some((ids, score, state)) = open.pop() {
        let inputs: Vec<u32> = [BOS].into_iter().chain(ids.iter().copied()).collect();
        let inputs = PieceTensor::plain(Tensor::from_vec(inputs, (1, ids.len() + 1), &Device::Cpu).unwrap()).unwrap();
        let scores = world.emitter.scores(condition, &inputs).unwrap().to_vec2::<f32>().unwrap();
        let weight = |id: u32| f64::from(scores[ids.len()][id as usize]).exp();
        let steps: Vec<_> =
            tokens.iter().filter_map(|(id, token)| Some((*id, checker.step(&state, *token).ok()?))).collect();
        let total: f64 = steps.iter().map(|(id, _)| weight(*id)).sum();
        for (id, state) in steps {
            let (mut ids, score) = (ids.clone(), score + (weight(id) / total).ln());
            ids.push(id);
            match state.is_complete() {
                true => {
                    ids.push(EOS);
                    if ids.len() <= limit {
                        complete.push((ids, score));
                    }
                }
                false if ids.len() < limit => open.push((ids, score, state)),
                false => {}
            }
        }
    }
    complete.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    complete
}

#[test]
fn a_beam_as_wide_as_everything_finds_the_best_of_all_programs() {
    for seed in 1..4 {
        let mut world = World::new(&[r#"seq[pick "a", release "b"]"#], false, seed);
        let (condition, limit) = (condition(1), 7);
        let all = enumerate(&mut world, &condition, limit);
        assert!(all.len() > 20, "{}", all.len());
        let beam = BeamConfig { width: 100_000, tokens: limit, terms: 1, ..BeamConfig::default() };
        let emission = world.emit(&condition, &beam).remove(0);
        assert_eq!(emission.stop, Stop::Exhausted);
        assert_eq!(emission.hypotheses.len(), all.len());
        for (found, (wanted, score)) in emission.hypotheses.iter().zip(&all) {
            // Scores that are equal up to rounding may change places.
            let near = |other: &f64| (found.log_probability - other).abs() < 1e-4;
            assert!(
                near(score) && all.iter().any(|(same, score)| *same == ids(&found.pieces) && near(score)),
                "{wanted:?}"
            );
        }
        assert_eq!(ids(&emission.hypotheses[0].pieces), all[0].0);
        // A narrow one may find less, never more.
        let narrow = world.emit(&condition, &BeamConfig { width: 2, ..beam }).remove(0);
        assert!(narrow.hypotheses.iter().all(|one| one.log_probability <= all[0].1 + 1e-4));
    }
}

#[test]
fn what_is_ill_typed_has_no_share() {
    // Of type Lang there are two terms in this vocabulary, and all else is refused before the softmax.
    let mut world = World::new(&[r#"seq[pick "a", release "b"]"#], false, 1);
    let bound = world.vocabulary.bind(&mut world.store).unwrap();
    let mut checker = PrefixChecker::new(&world.store, &world.signature, TypeId::LANG);
    let beam = BeamConfig { terms: 1, tokens: 24, ..BeamConfig::default() };
    let emission = world.emitter.emit(&condition(1), &bound, &mut checker, &beam).unwrap().remove(0);
    assert_eq!(emission.hypotheses.len(), 2);
    let total: f64 = emission.hypotheses.iter().map(|one| one.log_probability.exp()).sum();
    assert!((total - 1.0).abs() < 1e-9, "{total}");
    // Only programs that are ranked together share their probability.
    let two = BeamConfig { terms: 2, term_by_term: false, ..beam };
    let emission = world.emitter.emit(&condition(1), &bound, &mut checker, &two).unwrap().remove(0);
    let total: f64 = emission.hypotheses.iter().map(|one| one.log_probability.exp()).sum();
    assert_eq!(emission.hypotheses.len(), 4);
    assert!((total - 1.0).abs() < 1e-9, "{total}");
}

#[test]
fn vectors_are_written_number_by_number() {
    // Of type Twist there is one vector by its symbols; its numbers are the model's own.
    let mut world = World::new(&[], false, 6);
    let vectors = ["twist[0, 0.5, -1, 0, 0, 0]", "twist[0.5, 0, 0, 0, 0, 0]"];
    let terms: Vec<TermId> =
        vectors.iter().map(|text| read(&mut world.store, &world.signature, text, None).unwrap().term).collect();
    let mut vocabulary = Vocabulary::new();
    vocabulary.extend_with_terms(&mut world.store, &terms);
    assert_eq!(vocabulary.spellings()[9..], ["twist[", "twist,1", "twist,2", "twist,3", "twist,4", "twist,5"]);
    let scales = scales(&mut world.store, &vocabulary, &terms);
    let bound = vocabulary.bind(&mut world.store).unwrap();
    let emitter = World::emitter(&mut Parameters::new(&Device::Cpu, Precision::F32, 6), &vocabulary, &scales);
    let mut checker = PrefixChecker::new(&world.store, &world.signature, TypeId::TWIST);
    let beam = BeamConfig { width: 1000, terms: 1, tokens: 24, ..BeamConfig::default() };
    let emission = emitter.emit(&condition(1), &bound, &mut checker, &beam).unwrap().remove(0);
    let [hypothesis] = &emission.hypotheses[..] else { panic!("{} hypotheses", emission.hypotheses.len()) };
    assert!(hypothesis.log_probability.abs() < 1e-9);
    let written = hypothesis.terms(&mut world.store).unwrap();
    assert_eq!(bound.encode(&world.store, &written).pieces, hypothesis.pieces);
    assert!(hypothesis.pieces.iter().filter(|piece| piece.number != 0.0).count() >= 4);
}

#[test]
fn a_grown_emitter_scores_old_tokens_as_before() {
    let mut world = World::new(&PROGRAMS, true, 4);
    let mut vocabulary = world.vocabulary.clone();
    let body =
        read(&mut world.store, &world.signature, r#"\x. seq[pick x, place x (in "basket")]"#, None).unwrap().term;
    world.signature.define(&mut world.store, "f0", body).unwrap();
    let term = parsed(&mut world.store, &world.signature, r#"f0 "butter""#);
    vocabulary.extend_with_signature(&world.store, &world.signature);
    vocabulary.extend_with_terms(&mut world.store, &[term]);
    let growth = Growth::between(&world.vocabulary, &vocabulary, &mut world.store, &world.signature).unwrap();
    assert_eq!(growth.len(), 2);
    let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 77);
    let grown = World::emitter(&mut parameters, &vocabulary, &world.scales);
    growth.apply(&world.parameters.masters(), &parameters, &grown.tables()).unwrap();

    let (before, after) = (world.parameters.masters(), parameters.masters());
    let old = world.vocabulary.len();
    for (name, value) in &before {
        let kept = after[name].narrow(0, 0, value.dims()[0]).unwrap();
        let bits = |x: &Tensor| x.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        assert_eq!(bits(&kept), bits(value), "{name}");
    }
    let bound = vocabulary.bind(&mut world.store).unwrap();
    let of_body: Vec<u32> = language::tokens_of(&world.store, body)
        .into_iter()
        .flat_map(|token| bound.ids_of(token))
        .filter(|id| *id != UNKNOWN)
        .collect();
    assert!(of_body.len() >= 5);
    for name in grown.tables().symbols {
        let rows = after[&name].to_vec2::<f32>().unwrap();
        let mean = of_body.iter().map(|id| rows[*id as usize][3]).sum::<f32>() / of_body.len() as f32;
        assert!((rows[old][3] - mean).abs() < 1e-6, "{name}");
        assert_ne!(rows[old + 1][3], 0.0);
    }
    let program = parsed(&mut world.store, &world.signature, PROGRAMS[0]);
    let inputs = token_tensor(&[bound.encode(&world.store, &[program]).pieces], &Device::Cpu).unwrap();
    let was = world.emitter.scores(&condition(1), &inputs).unwrap();
    let is = grown.scores(&condition(1), &inputs).unwrap().narrow(1, 0, old).unwrap();
    assert!(distance(&is, &was) < 1e-6);

    let smaller = Growth::between(&vocabulary, &world.vocabulary, &mut world.store, &world.signature);
    assert!(smaller.unwrap_err().to_string().contains("only grow at its end"));
    // The old emitter does not take the new vocabulary.
    let mut checker = world.checker();
    let error =
        world.emitter.emit(&condition(1), &bound, &mut checker, &BeamConfig { tokens: 24, ..BeamConfig::default() });
    assert!(error.unwrap_err().to_string().contains("grow the emitter"));
}

#[test]
fn a_tiny_emitter_learns_one_batch_by_heart() {
    let mut world = World::new(&PROGRAMS, true, 5);
    let bound = world.vocabulary.bind(&mut world.store).unwrap();
    let terms: Vec<TermId> = PROGRAMS.iter().map(|text| parsed(&mut world.store, &world.signature, text)).collect();
    let pairs: Vec<[TermId; 2]> = [[0, 1], [2, 3], [0, 3]].map(|[a, b]| [terms[a], terms[b]]).to_vec();
    let targets: Vec<Vec<Piece>> = pairs.iter().map(|pair| bound.encode(&world.store, pair).pieces).collect();
    let batch = EmitterBatch { condition: condition(3), tokens: token_tensor(&targets, &Device::Cpu).unwrap() };
    let mut optimizer =
        AdamW::new(&world.parameters, AdamWConfig { weight_decay: 0.0, ..AdamWConfig::default() }).unwrap();
    let beam = BeamConfig { width: 1, tokens: 24, ..BeamConfig::default() };
    assert_eq!(exact_match(&best(&world.emit(&batch.condition, &beam)), &targets), 0.0);
    for _ in 0..400 {
        let loss = world.emitter.loss(&batch).unwrap();
        let gradients = world.parameters.gradients(&loss.total.backward().unwrap()).unwrap();
        optimizer.step(&world.parameters, &gradients, 3e-3).unwrap();
    }
    let loss = world.emitter.loss(&batch).unwrap();
    let term = |at: usize| loss.terms[at].1.to_scalar::<f32>().unwrap();
    assert!(term(0) < 0.05, "{}", term(0));
    assert_eq!(term(1), 1.0);
    let greedy = world.emit(&batch.condition, &beam);
    assert_eq!(exact_match(&best(&greedy), &targets), 1.0);
    let first = greedy[0].hypotheses[0].terms(&mut world.store).unwrap();
    assert_eq!(print(&world.store, first[0]), PROGRAMS[0]);
    let errors = world.emitter.token_scores(&batch).unwrap().errors.max_all().unwrap().to_scalar::<f32>().unwrap();
    assert!(errors < 0.1, "{errors}");
    let wide = world.emit(&batch.condition, &BeamConfig { width: 4, ..beam });
    assert_eq!(exact_match(&best(&wide), &targets), 1.0);
    assert!(wide.iter().all(|emission| emission.hypotheses[0].log_probability > -0.5));
}

#[test]
fn given_beginnings_are_kept_and_the_best_program_alone_is_the_best_of_all() {
    let mut world = World::new(&PROGRAMS, true, 7);
    let bound = world.vocabulary.bind(&mut world.store).unwrap();
    let task = parsed(&mut world.store, &world.signature, PROGRAMS[0]);
    let mut beginning = bound.encode(&world.store, &[task]).pieces;
    beginning.pop();
    beginning.push(Piece::plain(SEPARATOR));
    let beam = BeamConfig { width: 4, tokens: 24, ..BeamConfig::default() };
    let mut checker = world.checker();
    let mut emit = |beginnings: &[Vec<Piece>], wanted: usize| {
        world.emitter.emit_after(&condition(2), beginnings, wanted, &bound, &mut checker, &beam)
    };
    let (all, one) = (emit(&[], beam.width).unwrap(), emit(&[], 1).unwrap());
    assert_eq!(best(&all), best(&one));
    assert!(all.iter().zip(&one).all(|(all, one)| one.statistics.steps <= all.statistics.steps));
    // The first row begins as it is told to, the second is free.
    let begun = emit(&[beginning.clone()], beam.width).unwrap();
    assert!(
        begun[0].hypotheses.iter().all(|one| one.pieces.starts_with(&beginning)) && !begun[0].hypotheses.is_empty()
    );
    assert_eq!(best(&begun[1..]), best(&all[1..]));
    let error = emit(&[vec![Piece::plain(UNKNOWN)]], 1).unwrap_err().to_string();
    assert!(error.contains("a symbol that no program has"), "{error}");
}
