//! What wake learns from: each frame, with the programs that are right there.
//!
//! At a frame the emitter is to write two terms: the task, and what is done from the frame on over the next segments. The
//! decoder is given both, and makes the next actions.

use std::collections::BTreeMap;

use candle_core::{Device, Tensor};
use dataset::{EpisodeId, FragmentIndex};
use models::decoder::{self, DecoderBatch, DecoderConfig, term_tensor};
use models::emitter::{self, EmitterBatch, EmitterConfig, WordVocabulary, token_tensor, word_tensor};
use models::vocabulary::{Encoded, Vocabulary};
use models::{EyeConfig, FragmentTable};

use crate::cycle::corpus::Written;
use crate::cycle::demonstrations::Demonstrations;
use crate::error::Result;
use crate::prepared::Prepared;

/// Rows for words that no instruction of the training data has.
const BUCKETS: u32 = 64;

/// Every frame with its words and programs as numbers.
pub struct Samples {
    /// The frames that are learned from, as fragments of one step.
    pub training: FragmentIndex,
    /// The frames that are judged by.
    pub held_out: FragmentIndex,
    /// Distinct programs as numbers.
    targets: Vec<Encoded>,
    /// For each frame its programs, by place in `targets`.
    target_of: Vec<u32>,
    /// The instruction of each demonstration as numbers.
    instructions: Vec<Vec<u32>>,
    /// For each frame its instruction.
    instruction_of: Vec<u32>,
}

impl Samples {
    /// Programs as numbers of a vocabulary.
    pub fn new(
        prepared: &Prepared,
        demonstrations: &Demonstrations,
        written: &mut Written,
        vocabulary: &Vocabulary,
        words: &WordVocabulary,
    ) -> Result<Samples> {
        let bound = vocabulary.bind(&mut written.store)?;
        let frames = prepared.source.dataset.frames();
        let (mut target_of, mut instruction_of) = (vec![0; frames], vec![0; frames]);
        let (mut targets, mut instructions) = (Vec::new(), Vec::new());
        let mut places = BTreeMap::new();
        for (at, demonstration) in demonstrations.all.iter().enumerate() {
            demonstration.frames.clone().for_each(|frame| instruction_of[frame] = instructions.len() as u32);
            instructions.push(words.encode(&demonstration.instruction, usize::MAX));
            for (frame, now) in demonstration.frames.clone().zip(&written.now[at]) {
                let programs = [written.tasks[at], *now];
                target_of[frame] = *places.entry(programs).or_insert_with(|| {
                    targets.push(bound.encode(&written.store, &programs));
                    targets.len() as u32 - 1
                });
            }
        }
        let spans = prepared.source.dataset.spans();
        let index = |episodes: &[EpisodeId]| FragmentIndex::new(spans, episodes, 1, 1);
        let (training, held_out) = (index(&prepared.split.train)?, index(&prepared.split.held_out)?);
        Ok(Samples { training, held_out, targets, target_of, instructions, instruction_of })
    }

    /// The words that the training instructions have.
    pub fn words(demonstrations: &Demonstrations) -> WordVocabulary {
        let training = demonstrations.all.iter().filter(|one| !one.held_out);
        WordVocabulary::new(training.map(|one| one.instruction.as_str()), BUCKETS)
    }

    /// The programs of a frame as numbers.
    pub fn target(&self, frame: usize) -> &Encoded {
        &self.targets[self.target_of[frame] as usize]
    }

    /// The programs of some frames as numbers.
    pub fn targets(&self, frames: &[usize]) -> Vec<Vec<u32>> {
        frames.iter().map(|frame| self.target(*frame).ids.clone()).collect()
    }

    /// The most tokens of a training target. Held-out programs do not shape a model; longer ones are cut.
    pub fn longest(&self) -> usize {
        let frames = self.training.iter().map(|(_, fragment)| fragment.frames.start);
        frames.map(|frame| self.target(frame).ids.len()).max().unwrap_or(0)
    }

    /// What the emitter learns at some frames, as far as it has room for words and tokens.
    pub fn emitter_batch(
        &self,
        table: &FragmentTable,
        frames: &[usize],
        config: &EmitterConfig,
        images: Option<Vec<f32>>,
    ) -> models::Result<EmitterBatch> {
        let seen = Seen::new(table, frames)?;
        let instructions: Vec<Vec<u32>> =
            frames.iter().map(|frame| self.instructions[self.instruction_of[*frame] as usize].clone()).collect();
        let words = word_tensor(&instructions, config.words, table.device())?;
        let mut targets = self.targets(frames);
        targets.iter_mut().for_each(|ids| ids.truncate(config.tokens));
        Ok(EmitterBatch {
            condition: emitter::Condition {
                words,
                features: seen.features,
                states: Some(seen.states),
                images: image_tensor(config.eye, images, frames.len(), table.device())?,
            },
            tokens: token_tensor(&targets, table.device())?,
        })
    }
}

/// What a decoder learns at some frames, or is judged by, given programs for them.
pub(super) fn decoder_batch(
    table: &FragmentTable,
    frames: &[usize],
    programs: &[Vec<u32>],
    config: &DecoderConfig,
    images: Option<Vec<f32>>,
) -> models::Result<DecoderBatch> {
    let seen = Seen::new(table, frames)?;
    let (actions, counted) = table.chunks(frames, config.chunk)?;
    let terms = term_tensor(programs, config.tokens, table.device())?;
    Ok(DecoderBatch {
        condition: decoder::Condition {
            terms,
            features: seen.features,
            states: Some(seen.states),
            images: image_tensor(config.eye, images, frames.len(), table.device())?,
        },
        actions,
        counted,
    })
}

/// Images on the device, for a head with an eye.
fn image_tensor(
    eye: Option<EyeConfig>,
    images: Option<Vec<f32>>,
    count: usize,
    device: &Device,
) -> models::Result<Option<Tensor>> {
    eye.zip(images).map(|(eye, images)| eye.tensor(images, count, device)).transpose()
}

/// What is seen at some frames: `[B, F]` and `[B, S]`.
struct Seen {
    features: Option<Tensor>,
    states: Tensor,
}

impl Seen {
    fn new(table: &FragmentTable, frames: &[usize]) -> models::Result<Seen> {
        let batch = table.gather(frames, 1)?;
        let features = if table.widths().features > 0 { Some(batch.features.squeeze(1)?) } else { None };
        Ok(Seen { features, states: batch.states.squeeze(1)? })
    }
}
