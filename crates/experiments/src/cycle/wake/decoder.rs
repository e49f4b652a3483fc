//! The decoder head (LCAD): from programs, image and state to actions.

use std::collections::BTreeMap;

use candle_core::{Device, Tensor};
use dataset::Shuffled;
use models::decoder::{Decoder, DecoderConfig, FlowError, FlowNoise};
use models::noise::{mix, normal, uniform};
use models::training::{Loss, Objective, Part};
use models::vocabulary::{NumberScales, Piece};
use models::{FragmentTable, Look, Parameters, Vocabulary};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use skills::{ActionLayout, Position};

use super::off_path::OffPath;
use super::samples::{Samples, decoder_batch};
use super::{
    Before, CHUNK, DecoderSettings, Head, HeldOutPrograms, Measure, Perturbation, PlanPart, TrainedHead, WakeData,
};
use super::{add_noise, every, is_finished, shaken, trained};
use crate::error::Result;
use crate::pictures::Pictures;
use crate::prepared::starts;
use crate::trained::{Launch, Phase, load_decoder};

/// Held-out frames that an evaluation during training looks at.
const GLANCE: usize = 256;

/// The group of its figures.
pub(super) const GROUP: &str = "decoder (LCAD)";

/// Everything that is needed to build a decoder again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecoderShape {
    /// Its settings.
    pub config: DecoderConfig,
    /// The tokens of programs.
    pub vocabulary: Vocabulary,
    /// The scales of numbers.
    pub numbers: NumberScales,
}

impl Head for DecoderSettings {
    fn name(&self) -> &'static str {
        Phase::Decoder.name()
    }

    fn train(
        &self,
        data: &WakeData<'_>,
        launch: Launch<'_>,
        before: Option<&Before<'_>>,
    ) -> Result<Box<dyn TrainedHead>> {
        if is_finished(&launch)? {
            return Ok(Box::new(load_decoder(launch.run, launch.device)?.model));
        }
        let learned = before.map(|before| load_decoder(before.run, launch.device)).transpose()?;
        let mut config = self.model;
        config.eye = config.eye.and_then(|eye| Some(data.pictures?.eye(eye)));
        if config.eye.is_some() && data.has_programs && !self.sees_with_programs {
            (config.eye, config.blind) = (None, true);
        }
        config.positions = !data.has_programs || self.reads_positions;
        let old = learned.as_ref().map_or(0, |learned| learned.record.model.config.tokens);
        config.tokens = config.tokens.max(data.samples.longest_plan()).max(old);
        let numbers =
            data.samples.plan_scales(data.bound, learned.as_ref().map(|learned| &learned.record.model.numbers));
        let shape = DecoderShape { config, vocabulary: data.vocabulary.clone(), numbers };
        let precision = self.precision.on(launch.device);
        let parameters = Parameters::new(launch.device, precision, launch.seed);
        let objective = DecoderObjective::new(&shape, self, launch.seed, data, parameters)?;
        if let (Some(before), Some(learned)) = (before, learned) {
            before.growth.apply(&learned.parameters.masters(), &objective.parameters, &objective.model.tables())?;
        }
        let record = data.record(Phase::Decoder, shape, self.batch.0, precision, launch.seed);
        trained(&objective, &self.train, launch, &record)?;
        Ok(Box::new(objective.model))
    }
}

impl TrainedHead for Decoder {
    /// Errors as the policy runs (with its own programs, or with none), and with the demonstrations' programs as an oracle.
    /// All are measured at the same frames.
    fn measures(&self, data: &WakeData<'_>, held_out: &HeldOutPrograms) -> Result<Vec<Measure>> {
        let HeldOutPrograms { frames, plans, emitted, .. } = held_out;
        let lower = |name: &str, value: f64, note: &str| Measure::lower(GROUP, name, value, note);
        let layout = &data.alphabet.layout;
        let with = |plans: &[Vec<Piece>]| measured(self, (data.table, data.pictures, layout), frames, plans);
        let own = match emitted {
            Some(emitted) => with(&data.planned(frames, emitted)?)?,
            None => with(plans)?,
        };
        let as_run = "as the policy runs: given the programs that it emits, or the instruction alone";
        let mut measures = vec![
            lower("chunk error", own.chunk_mean_square(), &format!("mean square after all Euler steps, {as_run}")),
            lower("velocity error", own.velocity_mean_square(), as_run),
        ];
        if emitted.is_some() {
            let error = with(plans)?;
            let future = "an oracle: programs describe the episode's own future";
            measures.push(lower("chunk error, oracle programs", error.chunk_mean_square(), future));
            let velocity = lower("velocity error, oracle programs", error.velocity_mean_square(), future);
            measures.push(velocity.with_paper("0.090–0.113"));
        }
        Ok(measures)
    }
}

/// The decoder as the trainer sees it.
struct DecoderObjective<'a> {
    model: Decoder,
    parameters: Parameters,
    table: &'a FragmentTable,
    samples: &'a Samples,
    pictures: Option<&'a Pictures>,
    /// None if there are no programs, or lessons are on the path.
    off_path: Option<OffPath<'a>>,
    layout: &'a ActionLayout,
    order: Shuffled,
    numbers: NumberScales,
    perturb: Perturbation,
    seed: u64,
}

/// One micro-batch: frames, and for each the start of its flow and its time.
struct FlowDraw {
    frames: Vec<usize>,
    noise: Vec<f32>,
    times: Vec<f32>,
    plans: Vec<Vec<Piece>>,
    /// `[B, chunk, A]` and `[B, chunk]`, where they are not those of the frames.
    lessons: Option<(Vec<f32>, Vec<f32>)>,
    /// What is added to standardised states.
    shaken: Vec<f32>,
    looks: Option<Vec<Look>>,
}

impl<'a> DecoderObjective<'a> {
    /// A new model.
    fn new(
        shape: &DecoderShape,
        settings: &DecoderSettings,
        seed: u64,
        data: &WakeData<'a>,
        mut parameters: Parameters,
    ) -> Result<DecoderObjective<'a>> {
        let WakeData { table, samples, pictures, prepared, demonstrations, alphabet, has_programs, .. } = *data;
        let DecoderShape { config, vocabulary, numbers } = shape;
        let model = Decoder::new(&mut parameters.root(), config, table.widths(), vocabulary.len(), numbers)?;
        let order = Shuffled::new(&samples.training, settings.batch.0, seed)?;
        let (numbers, perturb, layout) = (numbers.clone(), settings.perturb, &alphabet.layout);
        // A decoder that reads positions would have to see moved ones.
        let is_moved = has_programs && perturb.off_path > 0.0 && !config.positions;
        let actions = &prepared.source.dataset.columns().actions;
        let off_path =
            is_moved.then(|| OffPath::new(demonstrations, alphabet, actions, table.scales(), perturb.off_path));
        Ok(DecoderObjective {
            model,
            parameters,
            table,
            samples,
            pictures,
            off_path,
            layout,
            order,
            numbers,
            perturb,
            seed,
        })
    }
}

impl DecoderObjective<'_> {
    /// The plan of a frame as a policy might have it, seen from where the robot is.
    fn perturbed(&self, frame: usize, from: Option<&Position>, generator: &mut ChaCha8Rng) -> Vec<Piece> {
        let Perturbation { numbers, no_motion, no_task, .. } = self.perturb;
        let mut plan = match from {
            Some(position) => self.samples.plan(frame).seen_from(position),
            None => self.samples.plans(&[frame]).swap_remove(0),
        };
        let [dropped, amount] = uniform(generator, 2)[..] else { return plan };
        for piece in &mut plan {
            if let Some(deviation) = self.numbers.deviation(piece.id) {
                let off = f64::from(normal(generator, 1)[0]);
                piece.number += off * f64::from(amount) * numbers * deviation.min(piece.number.abs());
            }
        }
        // Without programs there is an instruction alone, which must stay.
        if !self.samples.has_motion(&plan) {
            return plan;
        }
        match f64::from(dropped) {
            at if at < no_motion => self.samples.without(&plan, PlanPart::Motion),
            at if at < no_motion + no_task => self.samples.without(&plan, PlanPart::Task),
            _ => plan,
        }
    }
}

/// What a pass over some frames draws: a function of seed, `step` and the places in the global batch.
fn drawn(
    decoder: (&DecoderConfig, usize),
    frames: Vec<usize>,
    seed: u64,
    step: u64,
    places: std::ops::Range<usize>,
) -> FlowDraw {
    let (config, actions) = decoder;
    let (mut noise, mut times) = (Vec::new(), Vec::new());
    for place in places {
        let mut name = b"decoder noise".to_vec();
        name.extend(step.to_le_bytes());
        name.extend((place as u64).to_le_bytes());
        let mut generator = ChaCha8Rng::seed_from_u64(mix(seed, &name));
        times.extend(uniform(&mut generator, 1));
        noise.extend(normal(&mut generator, config.chunk * actions));
    }
    FlowDraw { frames, noise, times, plans: Vec::new(), lessons: None, shaken: Vec::new(), looks: None }
}

/// The noise at one place of an evaluation: `chunk` rows of as many numbers as an action has.
pub(crate) fn noise_at(decoder: (&DecoderConfig, usize), place: usize) -> Vec<f32> {
    drawn(decoder, Vec::new(), 0, u64::MAX, place..place + 1).noise
}

/// The chunk that an evaluation decodes at one frame, given the plan there: what [`measured`] compares with the actions.
#[cfg(test)]
pub(crate) fn evaluated_chunk(
    model: &Decoder,
    seen: (&FragmentTable, Option<&Pictures>, &ActionLayout),
    frame: usize,
    plans: &[Vec<Piece>],
) -> models::Result<Vec<f32>> {
    let (table, pictures, layout) = seen;
    let (config, widths) = (model.config(), model.widths());
    let drawn = drawn((config, widths.actions), vec![frame], 0, u64::MAX, 0..1);
    let (frames, noise) = drawn.on((config.chunk, widths.actions), table.device())?;
    let images = plain_images(pictures, config, &frames)?;
    let batch = decoder_batch(table, &frames, plans, config, images, layout)?;
    Ok(model.sample(&batch.condition, &noise.start)?.flatten_all()?.to_vec1()?)
}

impl FlowDraw {
    fn on(self, shape: (usize, usize), device: &Device) -> models::Result<(Vec<usize>, FlowNoise)> {
        let count = self.frames.len();
        let start = Tensor::from_vec(self.noise, (count, shape.0, shape.1), &Device::Cpu)?.to_device(device)?;
        let times = Tensor::from_vec(self.times, count, &Device::Cpu)?.to_device(device)?;
        Ok((self.frames, FlowNoise { start, times }))
    }
}

/// The images of some frames as they are, for a decoder with an eye.
fn plain_images(
    pictures: Option<&Pictures>,
    config: &DecoderConfig,
    frames: &[usize],
) -> models::Result<Option<Tensor>> {
    config.eye.zip(pictures).map(|(eye, pictures)| pictures.seen(&eye, frames, None)).transpose()
}

/// The errors at some held-out frames, given plans for them. The noise is that of evaluations: the same for every model.
fn measured(
    model: &Decoder,
    seen: (&FragmentTable, Option<&Pictures>, &ActionLayout),
    frames: &[usize],
    plans: &[Vec<Piece>],
) -> models::Result<FlowError> {
    let (table, pictures, layout) = seen;
    let (config, widths) = (model.config(), model.widths());
    let mut error = FlowError::default();
    for (at, (chunk, plans)) in frames.chunks(CHUNK).zip(plans.chunks(CHUNK)).enumerate() {
        let drawn = drawn((config, widths.actions), chunk.to_vec(), 0, u64::MAX, at * CHUNK..at * CHUNK + chunk.len());
        let (frames, noise) = drawn.on((config.chunk, widths.actions), table.device())?;
        let images = plain_images(pictures, config, &frames)?;
        let batch = decoder_batch(table, &frames, plans, config, images, layout)?;
        error = error.merged(model.measure(&batch, &noise)?);
    }
    Ok(error)
}

impl Objective for DecoderObjective<'_> {
    type Batch = FlowDraw;

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn prepare(&self, step: u64, part: Part) -> models::Result<FlowDraw> {
        let whole = self.order.batch(step);
        let places = part.range(whole.len());
        let frames = starts(&self.samples.training, &whole[places.clone()]);
        let config = self.model.config();
        let looks = config.eye.zip(self.pictures);
        let looks = looks.map(|(eye, pictures)| pictures.looks(&eye, places.clone(), self.seed, step));
        let shaken =
            shaken("state noise", self.perturb.states, self.model.widths().states, places.clone(), self.seed, step);
        let mut plans = Vec::with_capacity(frames.len());
        let mut lessons = self.off_path.as_ref().map(|_| (Vec::new(), Vec::new()));
        for (frame, place) in frames.iter().zip(places.clone()) {
            let mut name = b"decoder perturbation".to_vec();
            name.extend(step.to_le_bytes());
            name.extend((place as u64).to_le_bytes());
            let mut generator = ChaCha8Rng::seed_from_u64(mix(self.seed, &name));
            let lesson = self.off_path.as_ref().and_then(|path| path.lesson(*frame, config.chunk, &mut generator));
            plans.push(self.perturbed(*frame, lesson.as_ref().map(|lesson| &lesson.position), &mut generator));
            if let (Some((actions, counted)), Some(lesson)) = (&mut lessons, lesson) {
                actions.extend(lesson.actions);
                counted.extend(lesson.counted);
            }
        }
        let drawn = drawn((config, self.model.widths().actions), frames, self.seed, step, places);
        Ok(FlowDraw { looks, plans, lessons, shaken, ..drawn })
    }

    fn loss(&self, mut drawn: FlowDraw) -> models::Result<Loss> {
        let config = self.model.config();
        let looks = drawn.looks.take();
        let (plans, shaken) = (std::mem::take(&mut drawn.plans), std::mem::take(&mut drawn.shaken));
        let lessons = drawn.lessons.take();
        let (frames, noise) = drawn.on((config.chunk, self.model.widths().actions), self.table.device())?;
        let images = config.eye.zip(self.pictures);
        let images = images.map(|(eye, pictures)| pictures.seen(&eye, &frames, looks.as_deref())).transpose()?;
        let mut batch = decoder_batch(self.table, &frames, &plans, config, images, self.layout)?;
        add_noise(&mut batch.condition.states, shaken)?;
        if let Some((actions, counted)) = lessons {
            let device = self.table.device();
            batch.actions = Tensor::from_vec(actions, batch.actions.dims(), &Device::Cpu)?.to_device(device)?;
            batch.counted = Tensor::from_vec(counted, batch.counted.dims(), &Device::Cpu)?.to_device(device)?;
        }
        self.model.loss(&batch, &noise)
    }

    fn evaluate(&self) -> models::Result<BTreeMap<String, f64>> {
        let frames = every(&self.samples.held_out, GLANCE);
        let error =
            measured(&self.model, (self.table, self.pictures, self.layout), &frames, &self.samples.plans(&frames))?;
        Ok(BTreeMap::from([
            ("velocity".to_owned(), error.velocity_mean_square()),
            ("chunk".to_owned(), error.chunk_mean_square()),
        ]))
    }

    fn work_per_step(&self) -> (f64, &'static str) {
        (self.order.batch(0).len() as f64, "frames")
    }
}
