//! Phase B, the decoder: from programs, picture and state to actions.

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
use super::wake::{CHUNK, every};
use crate::error::Result;
use crate::prepared::starts;

/// Held-out frames that an evaluation during training looks at.
const GLANCE: usize = 256;

/// All that a decoder needs to be built again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecoderShape {
    /// Its settings.
    pub config: DecoderConfig,
    /// What its tokens are.
    pub vocabulary: Vocabulary,
}

/// The decoder as the trainer sees it.
pub(super) struct DecoderObjective<'a> {
    pub(super) model: Decoder,
    pub(super) parameters: Parameters,
    table: &'a FragmentTable,
    samples: &'a Samples,
    order: Shuffled,
    seed: u64,
}

/// One micro-batch: frames, and for each the start of its flow and its time.
pub(super) struct Drawn {
    frames: Vec<usize>,
    noise: Vec<f32>,
    times: Vec<f32>,
}

impl<'a> DecoderObjective<'a> {
    /// A new model.
    pub(super) fn new(
        shape: &DecoderShape,
        batch: usize,
        seed: u64,
        table: &'a FragmentTable,
        samples: &'a Samples,
        mut parameters: Parameters,
    ) -> Result<DecoderObjective<'a>> {
        let model = Decoder::new(&mut parameters.root(), &shape.config, table.widths(), shape.vocabulary.len())?;
        let order = Shuffled::new(&samples.training, batch, seed)?;
        Ok(DecoderObjective { model, parameters, table, samples, order, seed })
    }
}

/// What a pass over some frames draws: a function of seed, `step` and the places in the global batch.
pub(super) fn drawn(
    decoder: (&DecoderConfig, usize),
    frames: Vec<usize>,
    seed: u64,
    step: u64,
    places: std::ops::Range<usize>,
) -> Drawn {
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
    Drawn { frames, noise, times }
}

impl Drawn {
    fn on(self, shape: (usize, usize), device: &Device) -> models::Result<(Vec<usize>, FlowNoise)> {
        let count = self.frames.len();
        let start = Tensor::from_vec(self.noise, (count, shape.0, shape.1), &Device::Cpu)?.to_device(device)?;
        let times = Tensor::from_vec(self.times, count, &Device::Cpu)?.to_device(device)?;
        Ok((self.frames, FlowNoise { start, times }))
    }
}

/// The errors at some held-out frames, given programs for them. The noise is that of evaluations: the same for every model.
pub(super) fn measured(
    model: &Decoder,
    table: &FragmentTable,
    frames: &[usize],
    programs: &[Vec<u32>],
) -> models::Result<FlowError> {
    let (config, widths) = (model.config(), model.widths());
    let mut error = FlowError::default();
    for (at, (chunk, programs)) in frames.chunks(CHUNK).zip(programs.chunks(CHUNK)).enumerate() {
        let drawn = drawn((config, widths.actions), chunk.to_vec(), 0, u64::MAX, at * CHUNK..at * CHUNK + chunk.len());
        let (frames, noise) = drawn.on((config.chunk, widths.actions), table.device())?;
        let batch = decoder_batch(table, &frames, programs, config)?;
        error = error.merged(model.measure(&batch, &noise)?);
    }
    Ok(error)
}

impl Objective for DecoderObjective<'_> {
    type Batch = Drawn;

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn prepare(&self, step: u64, part: Part) -> models::Result<Drawn> {
        let whole = self.order.batch(step);
        let places = part.range(whole.len());
        let frames = starts(&self.samples.training, &whole[places.clone()]);
        Ok(drawn((self.model.config(), self.model.widths().actions), frames, self.seed, step, places))
    }

    fn loss(&self, drawn: Drawn) -> models::Result<Loss> {
        let config = self.model.config();
        let (frames, noise) = drawn.on((config.chunk, self.model.widths().actions), self.table.device())?;
        let batch = decoder_batch(self.table, &frames, &self.samples.targets(&frames), config)?;
        self.model.loss(&batch, &noise)
    }

    fn evaluate(&self) -> models::Result<BTreeMap<String, f64>> {
        let frames = every(&self.samples.held_out, GLANCE);
        let error = measured(&self.model, self.table, &frames, &self.samples.targets(&frames))?;
        Ok(BTreeMap::from([
            ("velocity".to_owned(), error.velocity_mean_square()),
            ("chunk".to_owned(), error.chunk_mean_square()),
        ]))
    }

    fn work_per_step(&self) -> (f64, &'static str) {
        (self.order.batch(0).len() as f64, "frames")
    }
}
