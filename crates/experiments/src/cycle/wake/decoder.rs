//! The decoder head (LCAD): from programs, image and state to actions.

use std::collections::BTreeMap;

use candle_core::{Device, Tensor};
use dataset::Shuffled;
use models::decoder::{Decoder, DecoderConfig, FlowError, FlowNoise};
use models::noise::{mix, normal, uniform};
use models::training::{Loss, Objective, Part};
use models::{FragmentTable, Parameters, Vocabulary};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::samples::{Samples, decoder_batch};
use super::{Before, CHUNK, DecoderSettings, Head, HeldOutPrograms, Measure, TrainedHead, WakeData};
use super::{every, is_finished, trained};
use crate::error::Result;
use crate::pictures::Pictures;
use crate::prepared::starts;
use crate::trained::{Launch, Phase, load_decoder};

/// Held-out frames that an evaluation during training looks at.
const GLANCE: usize = 256;

/// The group of its figures.
pub(super) const GROUP: &str = "decoder (LCAD)";

/// Everything that is needed to build a decoder again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecoderShape {
    /// Its settings.
    pub config: DecoderConfig,
    /// The tokens of programs.
    pub vocabulary: Vocabulary,
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
        let old = learned.as_ref().map_or(0, |learned| learned.record.model.config.tokens);
        config.tokens = config.tokens.max(data.samples.longest()).max(old);
        let shape = DecoderShape { config, vocabulary: data.vocabulary.clone() };
        let precision = self.precision.on(launch.device);
        let parameters = Parameters::new(launch.device, precision, launch.seed);
        let objective = DecoderObjective::new(&shape, self.batch.0, launch.seed, data, parameters)?;
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
        let HeldOutPrograms { frames, oracle, emitted, .. } = held_out;
        let lower = |name: &str, value: f64, note: &str| Measure::lower(GROUP, name, value, note);
        let with = |programs: &[Vec<u32>]| measured(self, (data.table, data.pictures), frames, programs);
        let own = with(emitted.as_deref().unwrap_or(oracle))?;
        let as_run = "as the policy runs: given the programs that it emits, or the instruction alone";
        let mut measures = vec![
            lower("chunk error", own.chunk_mean_square(), &format!("mean square after all Euler steps, {as_run}")),
            lower("velocity error", own.velocity_mean_square(), as_run),
        ];
        if emitted.is_some() {
            let error = with(oracle)?;
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
    order: Shuffled,
    seed: u64,
}

/// One micro-batch: frames, and for each the start of its flow and its time.
struct FlowDraw {
    frames: Vec<usize>,
    noise: Vec<f32>,
    times: Vec<f32>,
    images: Option<Vec<f32>>,
}

impl<'a> DecoderObjective<'a> {
    /// A new model.
    fn new(
        shape: &DecoderShape,
        batch: usize,
        seed: u64,
        data: &WakeData<'a>,
        mut parameters: Parameters,
    ) -> Result<DecoderObjective<'a>> {
        let WakeData { table, samples, pictures, .. } = *data;
        let model = Decoder::new(&mut parameters.root(), &shape.config, table.widths(), shape.vocabulary.len())?;
        let order = Shuffled::new(&samples.training, batch, seed)?;
        Ok(DecoderObjective { model, parameters, table, samples, pictures, order, seed })
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
    FlowDraw { frames, noise, times, images: None }
}

/// The noise at one place of an evaluation: `chunk` rows of as many numbers as an action has.
pub(crate) fn noise_at(decoder: (&DecoderConfig, usize), place: usize) -> Vec<f32> {
    drawn(decoder, Vec::new(), 0, u64::MAX, place..place + 1).noise
}

/// The chunk that an evaluation decodes at one frame, given the programs there: what [`measured`] compares with the actions.
#[cfg(test)]
pub(crate) fn evaluated_chunk(
    model: &Decoder,
    seen: (&FragmentTable, Option<&Pictures>),
    frame: usize,
    programs: &[Vec<u32>],
) -> models::Result<Vec<f32>> {
    let (table, pictures) = seen;
    let (config, widths) = (model.config(), model.widths());
    let drawn = drawn((config, widths.actions), vec![frame], 0, u64::MAX, 0..1);
    let (frames, noise) = drawn.on((config.chunk, widths.actions), table.device())?;
    let images = plain_images(pictures, config, &frames);
    let batch = decoder_batch(table, &frames, programs, config, images)?;
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
fn plain_images(pictures: Option<&Pictures>, config: &DecoderConfig, frames: &[usize]) -> Option<Vec<f32>> {
    config.eye.zip(pictures).map(|(eye, pictures)| pictures.plain(&eye, frames))
}

/// The errors at some held-out frames, given programs for them. The noise is that of evaluations: the same for every model.
fn measured(
    model: &Decoder,
    seen: (&FragmentTable, Option<&Pictures>),
    frames: &[usize],
    programs: &[Vec<u32>],
) -> models::Result<FlowError> {
    let (table, pictures) = seen;
    let (config, widths) = (model.config(), model.widths());
    let mut error = FlowError::default();
    for (at, (chunk, programs)) in frames.chunks(CHUNK).zip(programs.chunks(CHUNK)).enumerate() {
        let drawn = drawn((config, widths.actions), chunk.to_vec(), 0, u64::MAX, at * CHUNK..at * CHUNK + chunk.len());
        let (frames, noise) = drawn.on((config.chunk, widths.actions), table.device())?;
        let images = plain_images(pictures, config, &frames);
        let batch = decoder_batch(table, &frames, programs, config, images)?;
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
        let (config, first) = (self.model.config(), places.start);
        let images = config.eye.zip(self.pictures);
        let images = images.map(|(eye, pictures)| pictures.varied(&eye, &frames, self.seed, step, first));
        Ok(FlowDraw { images, ..drawn((config, self.model.widths().actions), frames, self.seed, step, places) })
    }

    fn loss(&self, mut drawn: FlowDraw) -> models::Result<Loss> {
        let config = self.model.config();
        let images = drawn.images.take();
        let (frames, noise) = drawn.on((config.chunk, self.model.widths().actions), self.table.device())?;
        let batch = decoder_batch(self.table, &frames, &self.samples.targets(&frames), config, images)?;
        self.model.loss(&batch, &noise)
    }

    fn evaluate(&self) -> models::Result<BTreeMap<String, f64>> {
        let frames = every(&self.samples.held_out, GLANCE);
        let error = measured(&self.model, (self.table, self.pictures), &frames, &self.samples.targets(&frames))?;
        Ok(BTreeMap::from([
            ("velocity".to_owned(), error.velocity_mean_square()),
            ("chunk".to_owned(), error.chunk_mean_square()),
        ]))
    }

    fn work_per_step(&self) -> (f64, &'static str) {
        (self.order.batch(0).len() as f64, "frames")
    }
}
