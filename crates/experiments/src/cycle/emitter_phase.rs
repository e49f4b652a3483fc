//! Phase B, the emitter: from instruction, picture and state to programs.

use std::collections::BTreeMap;

use candle_core::Tensor;
use dataset::Shuffled;
use models::emitter::{Emitter, EmitterConfig, Symbols, WordVocabulary};
use models::training::{Loss, Objective, Part};
use models::{FragmentTable, Parameters, Vocabulary};
use serde::{Deserialize, Serialize};

use super::samples::Samples;
use super::wake::{CHUNK, every};
use crate::error::Result;

/// Held-out frames that an evaluation during training looks at.
const GLANCE: usize = 512;

/// All that an emitter needs to be built again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmitterShape {
    /// Its settings.
    pub config: EmitterConfig,
    /// What its tokens are.
    pub vocabulary: Vocabulary,
    /// What its words are.
    pub words: WordVocabulary,
}

impl EmitterShape {
    /// How many symbols there are.
    pub fn symbols(&self) -> Symbols {
        Symbols { words: self.words.len(), tokens: self.vocabulary.len() }
    }
}

/// The emitter as the trainer sees it.
pub(super) struct EmitterObjective<'a> {
    pub(super) model: Emitter,
    pub(super) parameters: Parameters,
    table: &'a FragmentTable,
    samples: &'a Samples,
    order: Shuffled,
}

impl<'a> EmitterObjective<'a> {
    /// A new model.
    pub(super) fn new(
        shape: &EmitterShape,
        batch: usize,
        seed: u64,
        table: &'a FragmentTable,
        samples: &'a Samples,
        mut parameters: Parameters,
    ) -> Result<EmitterObjective<'a>> {
        let model = Emitter::new(&mut parameters.root(), &shape.config, table.widths(), shape.symbols())?;
        let order = Shuffled::new(&samples.training, batch, seed)?;
        Ok(EmitterObjective { model, parameters, table, samples, order })
    }
}

impl Objective for EmitterObjective<'_> {
    type Batch = Vec<usize>;

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn prepare(&self, step: u64, part: Part) -> models::Result<Vec<usize>> {
        let whole = self.order.batch(step);
        Ok(crate::prepared::starts(&self.samples.training, &whole[part.range(whole.len())]))
    }

    fn loss(&self, frames: Vec<usize>) -> models::Result<Loss> {
        self.model.loss(&self.samples.emitter_batch(self.table, &frames, self.model.config().words)?)
    }

    fn evaluate(&self) -> models::Result<BTreeMap<String, f64>> {
        let (mut nats, mut right, mut count) = (0.0, 0.0, 0.0);
        for frames in every(&self.samples.held_out, GLANCE).chunks(CHUNK) {
            let batch = self.samples.emitter_batch(self.table, frames, self.model.config().words)?;
            let scores = self.model.token_scores(&batch)?;
            let sum = |x: &Tensor| -> models::Result<f64> { Ok(f64::from(x.sum_all()?.to_scalar::<f32>()?)) };
            nats += sum(&scores.nats)?;
            right += sum(&scores.correct)?;
            count += sum(&scores.counted)?;
        }
        let mean = |sum: f64| sum / f64::max(count, 1.0);
        Ok(BTreeMap::from([("cross_entropy".to_owned(), mean(nats)), ("accuracy".to_owned(), mean(right))]))
    }

    fn work_per_step(&self) -> (f64, &'static str) {
        (self.order.batch(0).len() as f64, "frames")
    }
}
