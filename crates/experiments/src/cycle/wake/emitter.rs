//! The emitter head (TPE): from instruction, image and state to programs.

use std::collections::BTreeMap;

use candle_core::{Device, Tensor};
use dataset::Shuffled;
use language::PrefixChecker;
use models::emitter::{BeamConfig, Emitter, EmitterConfig, Symbols, WordVocabulary, best, exact_match};
use models::noise::uniform;
use models::training::{Loss, Objective, Part};
use models::vocabulary::{NumberScales, Piece, SEPARATOR, UNKNOWN, Vocabulary};
use models::{FragmentTable, Look, Parameters};
use serde::{Deserialize, Serialize};

use super::samples::Samples;
use super::{Before, CHUNK, EmitterSettings, Head, HeldOutPrograms, Measure, TrainedHead, WakeData};
use super::{add_noise, drawn, every, is_finished, shaken, trained};
use crate::cycle::corpus::GOAL;
use crate::error::Result;
use crate::pictures::Pictures;
use crate::trained::{Launch, Phase, load_emitter};

/// Held-out frames that an evaluation during training looks at.
const GLANCE: usize = 512;

/// The group of its figures.
pub(super) const GROUP: &str = "emitter (TPE)";

/// Everything that is needed to build an emitter again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmitterShape {
    /// Its settings.
    pub config: EmitterConfig,
    /// The tokens of programs.
    pub vocabulary: Vocabulary,
    /// The words of instructions.
    pub words: WordVocabulary,
    /// The scales of numbers.
    pub numbers: NumberScales,
}

impl EmitterShape {
    /// The number of symbols.
    pub fn symbols(&self) -> Symbols {
        Symbols { words: self.words.len(), tokens: self.vocabulary.len() }
    }
}

impl Head for EmitterSettings {
    fn name(&self) -> &'static str {
        Phase::Emitter.name()
    }

    fn writes_programs(&self) -> bool {
        true
    }

    fn train(
        &self,
        data: &WakeData<'_>,
        launch: Launch<'_>,
        before: Option<&Before<'_>>,
    ) -> Result<Box<dyn TrainedHead>> {
        if is_finished(&launch)? {
            return Ok(Box::new(load_emitter(launch.run, launch.device)?.model));
        }
        let learned = before.map(|before| load_emitter(before.run, launch.device)).transpose()?;
        let mut config = self.model;
        config.eye = config.eye.and_then(|eye| Some(data.pictures?.eye(eye)));
        let old = learned.as_ref().map_or(0, |learned| learned.record.model.config.tokens);
        config.tokens = config.tokens.max(data.samples.longest_target()).max(old);
        let numbers = data.samples.target_scales(
            &config,
            data.bound,
            learned.as_ref().map(|learned| &learned.record.model.numbers),
        );
        let (vocabulary, words) = (data.vocabulary.clone(), data.words.clone());
        let shape = EmitterShape { config, vocabulary, words, numbers };
        let precision = self.precision.on(launch.device);
        let parameters = Parameters::new(launch.device, precision, launch.seed);
        let objective = EmitterObjective::new(&shape, self, launch.seed, data, parameters)?;
        if let (Some(before), Some(learned)) = (before, learned) {
            before.growth.apply(&learned.parameters.masters(), &objective.parameters, &objective.model.tables())?;
        }
        let record = data.record(Phase::Emitter, shape, self.batch.0, precision, launch.seed);
        trained(&objective, &self.train, launch, &record)?;
        Ok(Box::new(objective.model))
    }
}

impl TrainedHead for Emitter {
    /// The best programs; an empty one where the search finds none within its limit.
    fn programs(&self, data: &WakeData<'_>, frames: &[usize]) -> Result<Option<Vec<Vec<Piece>>>> {
        let mut checker = PrefixChecker::new(&data.written.store, &data.written.signature, GOAL);
        let beam = BeamConfig { tokens: self.config().tokens, ..data.settings.beam };
        let mut programs = Vec::with_capacity(frames.len());
        for chunk in frames.chunks(CHUNK) {
            let images = plain_images(data.pictures, self.config(), chunk)?;
            let batch = data.samples.emitter_batch(data.table, chunk, self.config(), images)?;
            let emissions = self.emit(&batch.condition, data.bound, &mut checker, &beam)?;
            let written = best(&emissions).into_iter().zip(chunk);
            programs.extend(written.map(|(pieces, frame)| data.samples.read(pieces, *frame, self.config())));
        }
        Ok(Some(programs))
    }

    fn measures(&self, data: &WakeData<'_>, held_out: &HeldOutPrograms) -> Result<Vec<Measure>> {
        let TokenCounts { task, structure, number_errors, unknown } = token_counts(self, data, &held_out.judged)?;
        let all = task.and(structure);
        let higher = |name: &str, value: f64, note: &str| Measure::higher(GROUP, name, value, note);
        let mut measures = vec![
            higher(
                "token accuracy",
                all.share(),
                "names and syntax of task and motion, given the correct ones before; the paper's programs are not public",
            )
            .with_paper("0.812–0.904"),
            higher("task tokens", task.share(), "given the correct ones before"),
            higher("names and syntax", structure.share(), "tokens of motions: skills, library entries, syntax"),
            Measure::lower(
                GROUP,
                "number error",
                number_errors.share(),
                "numbers of motions, given the correct ones before: mean distance in deviations of the training numbers",
            ),
            Measure::lower(
                GROUP,
                "unknown tokens",
                unknown / all.all.max(1.0),
                "tokens that never occur in training; counted as wrong",
            ),
        ];
        if let Some(emitted) = &held_out.emitted {
            let exact = exact_match(emitted, &held_out.oracle);
            let tasks = exact_match(&tasks(emitted), &tasks(&held_out.oracle));
            measures.push(higher("exact tasks", tasks, "emitted by beam search"));
            measures.push(higher(
                "exact programs",
                exact,
                "names and syntax of task and motion, emitted by beam search",
            ));
        }
        Ok(measures)
    }
}

/// Correct tokens by kind.
#[derive(Default)]
struct TokenCounts {
    task: Counted,
    structure: Counted,
    /// The sum of errors and the count of numbers.
    number_errors: Counted,
    unknown: f64,
}

/// How many are correct, of how many.
#[derive(Clone, Copy, Default)]
struct Counted {
    correct: f64,
    all: f64,
}

impl Counted {
    fn and(self, other: Counted) -> Counted {
        Counted { correct: self.correct + other.correct, all: self.all + other.all }
    }

    fn share(self) -> f64 {
        self.correct / self.all.max(1.0)
    }
}

/// Counts correct tokens under teacher forcing. The separator belongs to the task, the end to the motion's structure.
fn token_counts(emitter: &Emitter, data: &WakeData<'_>, frames: &[usize]) -> Result<TokenCounts> {
    let mut counts = TokenCounts::default();
    for chunk in frames.chunks(CHUNK) {
        let images = plain_images(data.pictures, emitter.config(), chunk)?;
        let batch = data.samples.emitter_batch(data.table, chunk, emitter.config(), images)?;
        let scores = emitter.token_scores(&batch)?;
        let (correct, errors) = (scores.correct.to_vec2::<f32>()?, scores.errors.to_vec2::<f32>()?);
        for ((frame, correct), errors) in chunk.iter().zip(correct).zip(errors) {
            let target = data.samples.target(*frame);
            let mut in_task = true;
            // What the model has no room for cannot be written.
            let scored = correct.into_iter().zip(errors).chain(std::iter::repeat((0.0, f32::NAN)));
            let symbols = target.pieces.iter().zip(&target.is_number).zip(scored);
            for ((piece, is_number), (correct, error)) in symbols {
                let id = piece.id;
                if *is_number {
                    // A number that the model has no room or no symbol for has no error.
                    if !in_task && id != UNKNOWN && error.is_finite() {
                        counts.number_errors.correct += f64::from(error);
                        counts.number_errors.all += 1.0;
                    }
                    continue;
                }
                let kind = if in_task { &mut counts.task } else { &mut counts.structure };
                // A token that is not in the vocabulary cannot be written.
                kind.correct += if id == UNKNOWN { 0.0 } else { f64::from(correct) };
                kind.all += 1.0;
                in_task &= id != SEPARATOR;
            }
            counts.unknown += target.unknown as f64;
        }
    }
    Ok(counts)
}

/// The first of two programs, of each.
fn tasks(programs: &[Vec<Piece>]) -> Vec<Vec<Piece>> {
    let task = |pieces: &Vec<Piece>| pieces.split(|piece| piece.id == SEPARATOR).next().unwrap_or_default().to_vec();
    programs.iter().map(task).collect()
}

/// The emitter as the trainer sees it.
struct EmitterObjective<'a> {
    model: Emitter,
    parameters: Parameters,
    table: &'a FragmentTable,
    samples: &'a Samples,
    pictures: Option<&'a Pictures>,
    order: Shuffled,
    noise: SeenNoise,
    seed: u64,
}

/// How what is seen is varied in training.
#[derive(Clone, Copy)]
struct SeenNoise {
    states: f64,
    features: f64,
    hidden: f64,
}

/// One micro-batch: frames, how an emitter with an eye looks at them, what is added to standardised states and features, and
/// whose images are hidden.
struct EmitterDraw {
    frames: Vec<usize>,
    looks: Option<Vec<Look>>,
    states: Vec<f32>,
    features: Vec<f32>,
    hidden: Vec<bool>,
}

/// The images of some frames as they are, for an emitter with an eye.
fn plain_images(
    pictures: Option<&Pictures>,
    config: &EmitterConfig,
    frames: &[usize],
) -> models::Result<Option<Tensor>> {
    config.eye.zip(pictures).map(|(eye, pictures)| pictures.seen(&eye, frames, None)).transpose()
}

impl<'a> EmitterObjective<'a> {
    /// A new model.
    fn new(
        shape: &EmitterShape,
        settings: &EmitterSettings,
        seed: u64,
        data: &WakeData<'a>,
        mut parameters: Parameters,
    ) -> Result<EmitterObjective<'a>> {
        let WakeData { table, samples, pictures, .. } = *data;
        let model =
            Emitter::new(&mut parameters.root(), &shape.config, table.widths(), shape.symbols(), &shape.numbers)?;
        let order = Shuffled::new(&samples.training, settings.batch.0, seed)?;
        let noise = SeenNoise {
            states: settings.state_noise,
            features: settings.feature_noise,
            hidden: settings.hidden_images,
        };
        Ok(EmitterObjective { model, parameters, table, samples, pictures, order, noise, seed })
    }
}

impl Objective for EmitterObjective<'_> {
    type Batch = EmitterDraw;

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn prepare(&self, step: u64, part: Part) -> models::Result<EmitterDraw> {
        let whole = self.order.batch(step);
        let places = part.range(whole.len());
        let frames = crate::prepared::starts(&self.samples.training, &whole[places.clone()]);
        let (seed, noise, widths) = (self.seed, self.noise, self.model.widths());
        let hidden = drawn("hidden images", places.clone(), seed, step, |generator| {
            vec![f64::from(uniform(generator, 1)[0]) < noise.hidden]
        });
        let looks = self.model.config().eye.zip(self.pictures).map(|(eye, pictures)| {
            let mut looks = pictures.looks(&eye, places.clone(), seed, step);
            let of = looks.chunks_mut(eye.cameras.max(1)).zip(&hidden).filter(|(_, hidden)| **hidden);
            of.for_each(|(looks, _)| looks.fill(Look::HIDDEN));
            looks
        });
        let seen = if looks.is_none() && noise.features > 0.0 { widths.features } else { 0 };
        let features = shaken("feature noise", noise.features, seen, places.clone(), seed, step);
        let states = shaken("state noise", noise.states, widths.states, places, seed, step);
        Ok(EmitterDraw { frames, looks, states, features, hidden })
    }

    fn loss(&self, drawn: EmitterDraw) -> models::Result<Loss> {
        let EmitterDraw { frames, looks, states, features, hidden } = drawn;
        let images = self.model.config().eye.zip(self.pictures);
        let images = images.map(|(eye, pictures)| pictures.seen(&eye, &frames, looks.as_deref())).transpose()?;
        let mut batch = self.samples.emitter_batch(self.table, &frames, self.model.config(), images)?;
        add_noise(&mut batch.condition.states, states)?;
        if !features.is_empty() {
            add_noise(&mut batch.condition.features, features)?;
        }
        if let Some(features) = batch.condition.features.as_mut().filter(|_| hidden.contains(&true)) {
            // The mean of all features is zero.
            let kept: Vec<f32> = hidden.iter().map(|hidden| f32::from(u8::from(!hidden))).collect();
            let kept = Tensor::from_vec(kept, (hidden.len(), 1), &Device::Cpu)?.to_device(features.device())?;
            *features = features.broadcast_mul(&kept.to_dtype(features.dtype())?)?;
        }
        self.model.loss(&batch)
    }

    fn evaluate(&self) -> models::Result<BTreeMap<String, f64>> {
        let (mut nats, mut right, mut count, mut errors, mut numbers) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for frames in every(&self.samples.held_out, GLANCE).chunks(CHUNK) {
            let images = plain_images(self.pictures, self.model.config(), frames)?;
            let batch = self.samples.emitter_batch(self.table, frames, self.model.config(), images)?;
            let scores = self.model.token_scores(&batch)?;
            let sum = |x: &Tensor| -> models::Result<f64> { Ok(f64::from(x.sum_all()?.to_scalar::<f32>()?)) };
            nats += sum(&scores.nats)?;
            right += sum(&scores.correct)?;
            count += sum(&scores.counted)?;
            errors += sum(&scores.errors)?;
            let targets = frames.iter().map(|frame| self.samples.target(*frame));
            numbers += targets.flat_map(|target| &target.is_number).filter(|is_number| **is_number).count() as f64;
        }
        let mean = |sum: f64| sum / f64::max(count, 1.0);
        Ok(BTreeMap::from([
            ("cross_entropy".to_owned(), mean(nats)),
            ("accuracy".to_owned(), mean(right)),
            ("number_error".to_owned(), errors / f64::max(numbers, 1.0)),
        ]))
    }

    fn work_per_step(&self) -> (f64, &'static str) {
        (self.order.batch(0).len() as f64, "frames")
    }
}
