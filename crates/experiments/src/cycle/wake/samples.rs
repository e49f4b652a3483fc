//! What wake learns from: each frame, with the programs that are right there.
//!
//! At a frame the emitter is to write two terms: the task, and what is done from the frame on over the next segments. The
//! decoder is given the task and a [plan](crate::cycle::plan), and makes the next actions. Numbers of both are the exact
//! positions of the demonstrations, not those of the grid.

use std::collections::BTreeMap;

use candle_core::Tensor;
use dataset::{EpisodeId, FragmentIndex};
use models::FragmentTable;
use models::decoder::{self, DecoderBatch, DecoderConfig, term_tensor};
use models::emitter::{self, EmitterBatch, EmitterConfig, WordVocabulary, token_tensor, word_tensor};
use models::vocabulary::{BoundVocabulary, EOS, Encoded, NumberScales, Piece, SEPARATOR, Vocabulary};
use skills::{ActionLayout, Argument, Position, SkillAlphabet, SkillCall};

use crate::cycle::corpus::{PlanTerms, Written};
use crate::cycle::demonstrations::Demonstrations;
use crate::cycle::distances::Distances;
use crate::cycle::plan::{Plan, hidden_states, nothing};
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
    /// Distinct programs with their plans.
    targets: Vec<Target>,
    /// For each frame its programs, by place in `targets`.
    target_of: Vec<u32>,
    /// A program that does nothing, without the end.
    nothing: Vec<Piece>,
    /// Where the robot is at each frame.
    positions: Vec<Position>,
    /// Which numbers an emitter may write as distances.
    distances: Distances,
    /// The instruction of each demonstration as numbers: where it begins to be executed, and later.
    instructions: Vec<Vec<u32>>,
    /// For each frame its instruction.
    instruction_of: Vec<u32>,
}

/// What is learned at the frames of a segment.
struct Target {
    /// What the emitter writes.
    written: Encoded,
    /// What the decoder executes.
    plan: Plan,
}

impl Samples {
    /// Programs as pieces of a vocabulary; `on_all` to learn from the held-out episodes as well.
    pub fn new(
        prepared: &Prepared,
        on_all: bool,
        demonstrations: &Demonstrations,
        written: &mut Written,
        alphabet: &SkillAlphabet,
        vocabulary: &Vocabulary,
        words: &WordVocabulary,
    ) -> Result<Samples> {
        let bound = vocabulary.bind(&mut written.store)?;
        let distances = Distances::new(&bound, &alphabet.layout);
        let frames = prepared.source.dataset.frames();
        let (mut target_of, mut instruction_of) = (vec![0; frames], vec![0; frames]);
        let mut positions = vec![Position::default(); frames];
        let (mut targets, mut instructions) = (Vec::new(), Vec::new());
        let mut places = BTreeMap::new();
        for (at, demonstration) in demonstrations.all.iter().enumerate() {
            let first = demonstration.segments.first().map_or(demonstration.frames.start, |segment| segment.end);
            for frame in demonstration.frames.clone() {
                instruction_of[frame] = instructions.len() as u32 + u32::from(frame >= first);
            }
            instructions.push(words.encode_beginning(&demonstration.instruction, usize::MAX));
            instructions.push(words.encode(&demonstration.instruction, usize::MAX));
            let episode = &demonstrations.episodes[at];
            demonstration.frames.clone().zip(0..).for_each(|(frame, row)| positions[frame] = episode.position(row));
            let programs = written.now[at].iter().zip(&written.plans[at]);
            for (frame, (now, plan)) in demonstration.frames.clone().zip(programs) {
                let task = written.tasks[at];
                target_of[frame] = *places.entry((task, *now, *plan)).or_insert_with(|| {
                    let plans = |term| bound.encode(&written.store, &[task, term]);
                    let PlanTerms { on_grid, exact } = *plan;
                    // A policy without programs has a plan without calls.
                    let calls = alphabet.calls(&written.store, exact).unwrap_or_default();
                    let calls_on_grid = alphabet.calls(&written.store, on_grid).unwrap_or_default();
                    let (on_grid, exact) = (plans(on_grid), plans(exact));
                    let mut target = bound.encode(&written.store, &[task, *now]);
                    refine(&mut target, &on_grid, &exact.pieces, way(alphabet, &calls_on_grid, &calls));
                    targets.push(Target { written: target, plan: Plan::new(exact, alphabet, &calls) });
                    targets.len() as u32 - 1
                });
            }
        }
        let empty = nothing(&mut written.store)?;
        let mut nothing = bound.encode(&written.store, &[empty]).pieces;
        nothing.pop();
        let spans = prepared.source.dataset.spans();
        let index = |episodes: &[EpisodeId]| FragmentIndex::new(spans, episodes, 1, 1);
        let mut learned = prepared.split.train.clone();
        if on_all {
            learned.extend(&prepared.split.held_out);
            learned.sort_unstable();
        }
        let (training, held_out) = (index(&learned)?, index(&prepared.split.held_out)?);
        Ok(Samples {
            training,
            held_out,
            targets,
            target_of,
            nothing,
            positions,
            distances,
            instructions,
            instruction_of,
        })
    }

    /// The words that the training instructions have.
    pub fn words(demonstrations: &Demonstrations) -> WordVocabulary {
        let training = demonstrations.all.iter().filter(|one| !one.held_out);
        WordVocabulary::new(training.map(|one| one.instruction.as_str()), BUCKETS).with_beginning()
    }

    fn of(&self, frame: usize) -> &Target {
        &self.targets[self.target_of[frame] as usize]
    }

    /// The programs that the emitter is to write at a frame.
    pub fn target(&self, frame: usize) -> &Encoded {
        &self.of(frame).written
    }

    /// The same at some frames, as pieces.
    pub fn targets(&self, frames: &[usize]) -> Vec<Vec<Piece>> {
        frames.iter().map(|frame| self.target(*frame).pieces.clone()).collect()
    }

    /// What the decoder reads at some frames.
    pub fn plans(&self, frames: &[usize]) -> Vec<Vec<Piece>> {
        frames.iter().map(|frame| self.of(*frame).plan.seen_from(&self.positions[*frame])).collect()
    }

    /// The plan of a frame with targets as positions.
    pub(crate) fn plan(&self, frame: usize) -> &Plan {
        &self.of(frame).plan
    }

    /// The most pieces of a training target. Held-out programs do not shape a model; longer ones are cut.
    pub fn longest_target(&self) -> usize {
        self.trained().map(|target| target.written.pieces.len()).max().unwrap_or(0)
    }

    /// The most pieces of a training plan.
    pub fn longest_plan(&self) -> usize {
        self.trained().map(|target| target.plan.pieces.len()).max().unwrap_or(0)
    }

    /// The scales of numbers in training targets as an emitter writes them. Those of an earlier policy stay.
    pub fn target_scales(
        &self,
        config: &EmitterConfig,
        bound: &BoundVocabulary,
        before: Option<&NumberScales>,
    ) -> NumberScales {
        if !config.distances {
            return NumberScales::fit(bound, self.trained().map(|target| target.written.pieces.as_slice()), before);
        }
        let frames = self.training.iter().map(|(_, fragment)| fragment.frames.start);
        let written: Vec<Vec<Piece>> = frames.map(|frame| self.written(frame, config)).collect();
        NumberScales::fit(bound, written.iter().map(Vec::as_slice), before)
    }

    /// What an emitter writes at a frame.
    fn written(&self, frame: usize, config: &EmitterConfig) -> Vec<Piece> {
        let mut pieces = self.target(frame).pieces.clone();
        if config.distances {
            self.distances.to_distances(&mut pieces, &self.positions[frame]);
        }
        pieces
    }

    /// A program as an emitter wrote it at a frame, with positions.
    pub(crate) fn read(&self, mut emitted: Vec<Piece>, frame: usize, config: &EmitterConfig) -> Vec<Piece> {
        if config.distances {
            self.distances.to_positions(&mut emitted, &self.positions[frame]);
        }
        emitted
    }

    /// The scales of numbers in training plans. Those of an earlier policy stay.
    pub fn plan_scales(&self, bound: &BoundVocabulary, before: Option<&NumberScales>) -> NumberScales {
        let frames: Vec<usize> = self.training.iter().map(|(_, fragment)| fragment.frames.start).collect();
        let plans = self.plans(&frames);
        NumberScales::fit(bound, plans.iter().map(Vec::as_slice), before)
    }

    /// The targets of all training frames.
    fn trained(&self) -> impl Iterator<Item = &Target> {
        self.training.iter().map(|(_, fragment)| self.of(fragment.frames.start))
    }

    /// Whether a plan has a motion.
    pub fn has_motion(&self, plan: &[Piece]) -> bool {
        let motion = plan.split(|piece| piece.id == SEPARATOR).nth(1).unwrap_or_default();
        motion.len() > self.nothing.len() + 1
    }

    /// A plan without its motion, or without its task.
    pub fn without(&self, plan: &[Piece], part: Part) -> Vec<Piece> {
        let at = plan.iter().position(|piece| piece.id == SEPARATOR).unwrap_or(plan.len());
        match part {
            Part::Motion => [&plan[..at], &[Piece::plain(SEPARATOR)], &self.nothing, &[Piece::plain(EOS)]].concat(),
            Part::Task => [&self.nothing, &plan[at..]].concat(),
        }
    }

    /// What the emitter learns at some frames, as far as it has room for words and tokens.
    pub fn emitter_batch(
        &self,
        table: &FragmentTable,
        frames: &[usize],
        config: &EmitterConfig,
        images: Option<Tensor>,
    ) -> models::Result<EmitterBatch> {
        let seen = Seen::new(table, frames)?;
        let instructions: Vec<Vec<u32>> =
            frames.iter().map(|frame| self.instructions[self.instruction_of[*frame] as usize].clone()).collect();
        let words = word_tensor(&instructions, config.words, table.device())?;
        let mut targets: Vec<Vec<Piece>> = frames.iter().map(|frame| self.written(*frame, config)).collect();
        targets.iter_mut().for_each(|pieces| pieces.truncate(config.tokens));
        Ok(EmitterBatch {
            condition: emitter::Condition { words, features: seen.features, states: Some(seen.states), images },
            tokens: token_tensor(&targets, table.device())?,
        })
    }
}

/// What a decoder learns at some frames, or is judged by, given plans for them.
pub(super) fn decoder_batch(
    table: &FragmentTable,
    frames: &[usize],
    plans: &[Vec<Piece>],
    config: &DecoderConfig,
    images: Option<Tensor>,
    layout: &ActionLayout,
) -> models::Result<DecoderBatch> {
    let mut seen = Seen::new(table, frames)?;
    if !config.positions {
        seen.states = without_positions(&seen.states, layout)?;
    }
    let (actions, counted) = table.chunks(frames, config.chunk)?;
    let terms = term_tensor(plans, config.tokens, table.device())?;
    Ok(DecoderBatch {
        condition: decoder::Condition { terms, features: seen.features, states: Some(seen.states), images },
        actions,
        counted,
    })
}

/// Standardised states in which the positions that a plan makes superfluous are zero.
///
/// # Shapes
/// `states`: `[B, S]`; gives the same.
pub(crate) fn without_positions(states: &Tensor, layout: &ActionLayout) -> models::Result<Tensor> {
    let (_, width) = states.dims2()?;
    let mut kept = vec![1.0_f32; width];
    hidden_states(layout).into_iter().filter(|column| *column < width).for_each(|column| kept[column] = 0.0);
    Ok(states.broadcast_mul(&Tensor::from_vec(kept, (1, width), states.device())?)?)
}

/// A part of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What was asked for.
    Task,
    /// What is done.
    Motion,
}

/// Two distances are the same if their numbers differ by less.
const SAME: f64 = 1e-6;

/// From one target of a group to its next one: on the grid, and exactly.
type Step = [Vec<f64>; 2];

/// The steps between the targets of calls that have only positions.
fn way(alphabet: &SkillAlphabet, on_grid: &[SkillCall], exact: &[SkillCall]) -> Vec<Step> {
    let mut last: Vec<Option<Step>> = vec![None; alphabet.layout.groups.len()];
    let mut steps = Vec::new();
    for (on_grid, exact) in on_grid.iter().zip(exact) {
        let groups = alphabet.skills.get(on_grid.skill.0).map_or(&[][..], |skill| &skill.arguments);
        for (group, arguments) in groups.iter().zip(on_grid.arguments.iter().zip(&exact.arguments)) {
            let (Argument::To(on_grid), Argument::To(exact)) = arguments else { continue };
            let now = [on_grid.clone(), exact.clone()];
            let before = last[*group].replace(now.clone());
            let between =
                |(to, from): (&Vec<f64>, &Vec<f64>)| to.iter().zip(from).map(|(to, from)| to - from).collect();
            if let Some(before) = before {
                steps.push([between((&now[0], &before[0])), between((&now[1], &before[1]))]);
            }
        }
    }
    steps
}

/// Puts exact numbers in the place of those on the grid: vectors of `target` that `on_grid` has too become those of `exact`, and
/// distances become those of the exact way.
fn refine(target: &mut Encoded, on_grid: &Encoded, exact: &[Piece], mut way: Vec<Step>) {
    let vectors = |encoded: &Encoded| -> Vec<std::ops::Range<usize>> {
        let is_number = &encoded.is_number;
        let starts = (0..is_number.len()).filter(|at| is_number[*at] && encoded.is_start[*at]);
        let end = |start: usize| (start + 1..is_number.len()).find(|at| !is_number[*at] || encoded.is_start[*at]);
        starts.map(|start| start..end(start).unwrap_or(is_number.len())).collect()
    };
    for vector in vectors(target) {
        let same = |place: &std::ops::Range<usize>| on_grid.pieces[place.clone()] == target.pieces[vector.clone()];
        if let Some(place) = vectors(on_grid).into_iter().find(same) {
            target.pieces[vector].copy_from_slice(&exact[place]);
            continue;
        }
        let numbers = &mut target.pieces[vector];
        let is_step = |[on_grid, _]: &Step| {
            let apart = numbers.iter().zip(on_grid).map(|(piece, number)| (piece.number - number).abs());
            on_grid.len() <= numbers.len() && apart.fold(0.0, f64::max) < SAME
        };
        // The way is walked once, so equal distances are taken in their order.
        if let Some(at) = way.iter().position(is_step) {
            let [_, exact] = way.remove(at);
            numbers.iter_mut().zip(exact).for_each(|(piece, number)| piece.number = number);
        }
    }
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
