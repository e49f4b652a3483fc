//! The policy of a finished run, one observation at a time: what a server asks.
//!
//! ```text
//! images ─ vision ─► features ┐
//! state ──────────────────────┼─► emitter ─► program ─► decoder ─► actions, in the dataset's units and limits
//! instruction or program ─────┘   only when the active call has ended
//! ```
//! A policy with [`Landmarks`] does not ask the emitter when an episode of a known task begins: its program is then that of the
//! demonstration that looks most alike, with its targets moved, and a controller can execute it in the place of the decoder.
//! Heads with an eye see the images themselves, and there is no vision before them. A policy that was trained without programs
//! has no emitter: its decoder reads the instruction.
//! [`RunPolicy::load`] needs the directory of a run and no data; [`record`] is what the run writes down for it. [`RunPolicy::act`]
//! answers a batch of observations of different clients. **An answer is a function of the observation and of the client's
//! program**: the flow starts from the same noise every time, so that neighbouring chunks agree and results can be repeated;
//! it is the first noise of the held-out evaluation, and **given the same frame the actions are those of that evaluation.**

mod execution;
mod files;
pub mod record;
mod tongue;
mod vision;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use candle_core::{DType, Device, Tensor};
use dataset::Frame;
use models::decoder::{self, Decoder, term_tensor};
use models::emitter::{self, BeamConfig, Emitter, WordVocabulary, word_tensor};
use models::vocabulary::Piece;
use models::world_model::Start;
use models::{EyeConfig, Look, Scales, Widths, WorldModel};
use serde_json::Value;
use skills::Position;

pub use self::execution::{Emission, Executor};
use self::execution::{Execution, Need, Plan, Rhythm};
use self::files::{folder, world};
pub use self::record::{POLICY, PolicyRecord, TaskRecord};
pub use self::tongue::Refusal;
use self::tongue::{Step, Tongue, Written};
use self::vision::Vision;
pub use self::vision::WEIGHTS;
use crate::cycle::annotation::RunSkills;
use crate::cycle::wake::{noise_at, without_positions};
use crate::error::{Error, Result};
use crate::landmarks::Landmarks;
use crate::pictures::resampled;
use crate::run_dir::{CONFIG, read_json};
use crate::trained::{Phase, load_decoder, load_emitter};

/// How many standard deviations a number of a state may be from the training data.
const FARTHEST: f32 = 1e4;

/// How a policy is loaded.
#[derive(Clone, Debug)]
pub struct PolicyOptions {
    /// Where it runs.
    pub device: Device,
    /// The directory of the encoder's weights.
    pub weights: Option<PathBuf>,
    /// How many actions of each reply clients execute before they ask again: how a policy measures time.
    pub replan: usize,
    /// When the emitter writes the program of an episode.
    pub emission: Emission,
    /// What turns programs into actions.
    pub executor: Executor,
    /// Which of the run's policies: the name of its folder, such as `with`, `t1` (without a library) or `no_programs`. By
    /// default the one with the library, or the last one of the loop.
    pub arm: Option<String>,
}

/// What a policy expects and returns.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// The names of columns, limits and tasks.
    pub record: PolicyRecord,
    /// Its cameras.
    pub cameras: Vec<String>,
    /// What encodes images.
    pub encoder: String,
    /// The widths of states and actions.
    pub widths: Widths,
    /// Actions of a reply.
    pub chunk: usize,
    /// Entries of the library.
    pub library: usize,
    /// What a user should know.
    pub notes: Vec<String>,
}

/// One observation.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Whose it is.
    pub client: u64,
    /// An image of each camera.
    pub images: Vec<Frame>,
    /// The state, in the units of the dataset.
    pub state: Vec<f32>,
    /// What to do.
    pub asked: Asked,
    /// Whether an episode begins.
    pub restart: bool,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// What an instruction says.
    Prompt(String),
    /// What a program says.
    Program(String),
}

/// The answer to an observation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// `[chunk, A]`, in the units of the dataset and within its limits.
    pub actions: Vec<f32>,
    /// The program of the motion.
    pub program: String,
    /// The bytes of it that are the active call.
    pub active: Option<Range<usize>>,
    /// The program of the task.
    pub task: String,
    /// Library entries in both.
    pub library: Vec<String>,
    /// The active skill: its name in programs, its name for people, and its call.
    pub skill: Option<[String; 3]>,
    /// How much of the active call is done.
    pub progress: Option<f64>,
    /// The step of a client's program, and how many there are.
    pub step: Option<(usize, usize)>,
    /// The return that the world model expects.
    pub estimated_return: Option<f64>,
    /// Whether the program was written for this observation.
    pub rewritten: bool,
    /// Time of each stage for the whole batch, in milliseconds.
    pub stages: BTreeMap<&'static str, f64>,
}

/// The policy of a run.
pub struct RunPolicy {
    about: About,
    device: Device,
    vision: Vision,
    /// The eye's settings, if the heads see images themselves.
    eye: Option<EyeConfig>,
    /// What writes programs; none if the policy was trained without them.
    writer: Option<Writer>,
    decoder: Decoder,
    /// What tells where targets are when an episode begins.
    landmarks: Option<Landmarks>,
    /// The world model, if it has a return head, and its discount.
    world: Option<(WorldModel, f64)>,
    scales: Scales,
    tongue: Tongue,
    /// Names of skills for people.
    readable: BTreeMap<String, String>,
    rhythm: Rhythm,
    executor: Executor,
    episodes: BTreeMap<u64, Execution>,
}

/// An emitter with what it needs to write programs.
struct Writer {
    emitter: Emitter,
    words: WordVocabulary,
    beam: BeamConfig,
}

impl RunPolicy {
    /// Loads the policy of a finished run.
    ///
    /// # Errors
    /// If the run is not finished, or its files do not belong together.
    pub fn load(run: &Path, options: &PolicyOptions) -> Result<RunPolicy> {
        let PolicyOptions { device, weights, replan, emission, executor, arm } = options;
        let config: Value = read_json(&run.join(CONFIG))?;
        let RunSkills { alphabet, annotation, .. } = RunSkills::load(run)?;
        let folder = folder(run, arm.as_deref())?;
        let decoder = load_decoder(&folder, device)?;
        let emitter = match folder.join(Phase::Emitter.name()).is_dir() {
            true => Some(load_emitter(&folder, device)?),
            false => None,
        };
        let trained = decoder.record;
        let writing = emitter.as_ref().and_then(|emitter| emitter.model.config().eye);
        let eye = decoder.model.config().eye.or(writing);
        if emitter.as_ref().is_some_and(|emitter| {
            let images = |eye: EyeConfig| (eye.side, eye.patch, eye.cameras);
            emitter.record.model.vocabulary != trained.model.vocabulary
                || emitter.record.scales != trained.scales
                || writing.zip(eye).is_some_and(|(writing, eye)| images(writing) != images(eye))
        }) {
            return Err(Error::Mismatch(format!("the heads in `{}` are of different policies", folder.display())));
        }
        let record = PolicyRecord::load(run, &alphabet.layout)?;
        let (source, widths) = (trained.source, trained.widths);
        let (vision, note) = match eye {
            Some(_) => (Vision::None, None),
            None => Vision::open(&source, widths.features, weights.as_deref(), record.encoder.as_deref(), device)?,
        };
        let tongue = Tongue::load(run, alphabet, &trained.model.vocabulary, &record.tasks)?;
        let can_follow = emitter.is_some() && tongue.alphabet.can_follow();
        let executor = match executor {
            Executor::Auto if can_follow => Executor::Controller,
            Executor::Auto => Executor::Decoder,
            Executor::Controller if !can_follow => {
                return Err(Error::Mismatch(
                    "this policy needs its decoder: the controller follows programs, and only where states say where the robot is"
                        .to_owned(),
                ));
            }
            chosen => *chosen,
        };
        let setting = |place: &str| config.pointer(&format!("/settings/{place}")).cloned().unwrap_or(Value::Null);
        let beam: BeamConfig = serde_json::from_value(setting("wake/beam")).unwrap_or_default();
        let horizon = setting("cycle/horizon_segments").as_u64().unwrap_or(1) as usize;
        let landmarks = Landmarks::load(&folder)?;
        let about = About {
            record,
            cameras: if eye.is_some() || widths.features > 0 { source.cameras } else { Vec::new() },
            encoder: match eye {
                Some(eye) => format!("trained with the policy, {0}×{0} pixels", eye.side),
                None => source.encoder.unwrap_or_else(|| "none".to_owned()),
            },
            widths,
            chunk: decoder.model.config().chunk,
            library: tongue.library.len(),
            notes: note.into_iter().chain(landmarks.as_ref().map(Landmarks::note)).collect(),
        };
        let readable = annotation.into_iter().flat_map(|run| run.skills).map(|skill| (skill.skill, skill.name));
        Ok(RunPolicy {
            about,
            device: device.clone(),
            vision,
            eye,
            writer: emitter.map(|emitter| Writer {
                beam: BeamConfig { tokens: emitter.model.config().tokens, ..beam },
                words: emitter.record.model.words,
                emitter: emitter.model,
            }),
            decoder: decoder.model,
            landmarks,
            // The world model sees cached features, which a policy with an eye does not compute.
            world: if eye.is_none() { world(run, device, &trained.scales) } else { None },
            scales: trained.scales,
            tongue,
            readable: readable.collect(),
            rhythm: Rhythm {
                replan: (*replan).max(1),
                horizon,
                emission: *emission,
                returns: executor == Executor::Controller,
            },
            executor,
            episodes: BTreeMap::new(),
        })
    }

    /// What it expects and returns.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Forgets the episode of a client.
    pub fn forget(&mut self, client: u64) {
        self.episodes.remove(&client);
    }

    /// Answers observations of different clients. One that is refused does not affect the others.
    pub fn act(&mut self, batch: &[Observation]) -> Vec<std::result::Result<Decision, Refusal>> {
        let refused: Vec<Option<Refusal>> = batch.iter().map(|one| self.prepare(one).err()).collect();
        let rows: Vec<usize> = (0..batch.len()).filter(|row| refused[*row].is_none()).collect();
        let chosen: Vec<&Observation> = rows.iter().map(|row| &batch[*row]).collect();
        let mut decisions = self.answer_all(&chosen).into_iter();
        let lost = || Refusal::Other("internal error: no decision".to_owned());
        let mut next = || decisions.next().unwrap_or_else(|| Err(lost()));
        refused.into_iter().map(|refused| refused.map_or_else(&mut next, Err)).collect()
    }

    /// Answers a batch; if that fails as a whole, each observation by itself.
    fn answer_all(&mut self, batch: &[&Observation]) -> Vec<std::result::Result<Decision, Refusal>> {
        match self.answer(batch) {
            Ok(decisions) => decisions.into_iter().map(checked).collect(),
            Err(error) if batch.len() <= 1 => {
                batch.iter().map(|_| Err(Refusal::Other(format!("the policy failed: {error}")))).collect()
            }
            Err(_) => batch.iter().flat_map(|one| self.answer_all(&[one])).collect(),
        }
    }

    /// The episode of an observation: a new one, or the one that is under way.
    fn prepare(&mut self, one: &Observation) -> std::result::Result<(), Refusal> {
        let Widths { states, .. } = self.about.widths;
        if one.state.len() != states || one.images.len() != self.about.cameras.len() {
            return Err(Refusal::Other(format!(
                "{} numbers of state and {} images; expected {states} and {}",
                one.state.len(),
                one.images.len(),
                self.about.cameras.len()
            )));
        }
        if let Some(image) = one.images.iter().find(|image| image.width.min(image.height) < self.least_side()) {
            let (width, height, least) = (image.width, image.height, self.least_side());
            return Err(Refusal::Other(format!(
                "an image is {width}×{height} pixels; the policy needs {least}×{least} or more"
            )));
        }
        // Numbers far from all training data would become infinite inside a network, for the whole batch.
        let mut standard = one.state.clone();
        self.scales.states.apply(&mut standard);
        if let Some(at) = standard.iter().position(|value| value.is_nan() || value.abs() > FARTHEST) {
            return Err(Refusal::Other(format!(
                "number {at} of the state is {:?}, more than {FARTHEST} standard deviations from the training data; check its \
                 unit",
                one.state[at]
            )));
        }
        let body = self.rhythm.body(&self.tongue.alphabet);
        let known = self.episodes.get(&one.client);
        // Clients that run several episodes of one task say nothing in between.
        let jumped = known.is_some_and(|known| known.has_jumped(&body, &body.position(&one.state)));
        if one.restart || jumped || known.is_none() {
            let plan = match &one.asked {
                Asked::Prompt(instruction) => Plan::Prompt(instruction.clone()),
                Asked::Program(source) => Plan::Program(self.tongue.steps(source)?),
            };
            self.episodes.insert(one.client, Execution::new(plan));
        }
        Ok(())
    }

    fn answer(&mut self, batch: &[&Observation]) -> Result<Vec<Decision>> {
        if batch.is_empty() {
            return Ok(Vec::new());
        }
        let mut clock = Clock::default();
        let frames: Vec<Frame> = batch.iter().flat_map(|one| one.images.iter().cloned()).collect();
        let encoded = self.vision.encode(&frames, batch.len()).map_err(Error::Mismatch)?;
        clock.add("resize", encoded.resize);
        clock.add("vision", encoded.vision);
        let images = clock.time("resize", || self.images(&frames, batch.len()))?;
        let seen = Seen { images, ..self.seen(batch, encoded.features)? };
        let positions: Vec<Position> = {
            let body = self.rhythm.body(&self.tongue.alphabet);
            batch.iter().map(|one| body.position(&one.state)).collect()
        };
        let rewritten = clock.time("emitter", || self.write(batch, &seen, &positions))?;
        let chunks = clock.time("decoder", || match self.executor {
            Executor::Controller => self.follow(batch, &positions, &seen),
            _ => self.decode(batch, &positions, &seen),
        })?;
        let returns = match self.world.is_some() {
            true => clock.time("return", || self.returns(&seen, &chunks))?,
            false => vec![None; batch.len()],
        };
        let Widths { actions, .. } = self.about.widths;
        let mut values: Vec<f32> = chunks.flatten_all()?.to_vec1()?;
        self.scales.actions.invert(&mut values);
        self.about.record.clip(&mut values);
        let mut decisions = Vec::with_capacity(batch.len());
        for (row, own) in values.chunks_exact((self.about.chunk * actions).max(1)).enumerate() {
            let body = self.rhythm.body(&self.tongue.alphabet);
            if let Some(execution) = self.episodes.get_mut(&batch[row].client) {
                execution.sends(&body, &positions[row], own);
            }
            let mut decision = self.status(batch[row].client, &positions[row]);
            decision.actions = own.to_vec();
            decision.estimated_return = returns[row];
            decision.rewritten = rewritten[row];
            decision.stages = clock.0.clone();
            decisions.push(decision);
        }
        Ok(decisions)
    }

    /// What the heads see, standardised.
    fn seen(&self, batch: &[&Observation], mut features: Vec<f32>) -> Result<Seen> {
        let Widths { features: cached, states, .. } = self.about.widths;
        let width = if self.eye.is_none() { cached } else { 0 };
        self.scales.features.apply(&mut features);
        // A policy without its encoder sees the average image.
        features.iter_mut().filter(|value| value.is_nan()).for_each(|value| *value = 0.0);
        let on = |values: Vec<f32>, width: usize| -> Result<Tensor> {
            Ok(Tensor::from_vec(values, (batch.len(), width), &Device::Cpu)?.to_device(&self.device)?)
        };
        let features = if width > 0 { Some(on(features, width)?) } else { None };
        let mut rows: Vec<f32> = batch.iter().flat_map(|one| one.state.iter().copied()).collect();
        self.scales.states.apply(&mut rows);
        Ok(Seen { features, states: on(rows, states)?, images: None })
    }

    /// The images of all observations for heads with an eye.
    fn images(&self, frames: &[Frame], count: usize) -> Result<Option<Tensor>> {
        let Some(eye) = self.eye else { return Ok(None) };
        let mut seen = vec![0.0; frames.len() * eye.bytes()];
        for (frame, out) in frames.iter().zip(seen.chunks_exact_mut(eye.bytes())) {
            eye.see(&resampled(frame, eye.side).map_err(Error::Mismatch)?, &Look::PLAIN, out);
        }
        Ok(Some(eye.tensor(seen, count, &self.device)?))
    }

    /// The shortest side that an image may have.
    fn least_side(&self) -> usize {
        self.eye.map_or_else(|| self.vision.least_side(), |eye| eye.side)
    }

    /// Writes the programs of all observations that need one; says which.
    fn write(&mut self, batch: &[&Observation], seen: &Seen, positions: &[Position]) -> Result<Vec<bool>> {
        let body = self.rhythm.body(&self.tongue.alphabet);
        let (mut rows, mut words, mut beginnings, mut aiming) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut rewritten = vec![false; batch.len()];
        for (row, one) in batch.iter().enumerate() {
            let Some(execution) = self.episodes.get_mut(&one.client) else { continue };
            match execution.observe(&body, &positions[row]) {
                Need::Nothing => {}
                Need::Motion(calls) => {
                    execution.begin_motion(
                        &body,
                        &positions[row],
                        self.tongue.planner().of_calls(&calls, &positions[row])?,
                    );
                    rewritten[row] = true;
                }
                Need::Emission { words: instruction, beginning, begins, aims } => {
                    let landmarks = self.landmarks.as_ref().filter(|_| begins && self.rhythm.follows_landmarks());
                    if let Some(seen) = landmarks.and_then(|landmarks| landmarks.plan(&instruction, &one.images)) {
                        let plan = self.tongue.planner().of_calls(&seen.calls, &positions[row])?;
                        let (task, motion) =
                            (self.tongue.read(seen.task), self.tongue.moved(seen.motion, &seen.calls)?);
                        execution.begin(&body, &positions[row], plan, task, motion, 0);
                        rewritten[row] = true;
                        continue;
                    }
                    let Some(writer) = &self.writer else {
                        let plan = self.tongue.instruction_plan(&instruction)?;
                        execution.begin(&body, &positions[row], plan, Written::default(), Written::default(), 0);
                        continue;
                    };
                    rows.push(row);
                    words.push(match begins {
                        true => writer.words.encode_beginning(&instruction, usize::MAX),
                        false => writer.words.encode(&instruction, usize::MAX),
                    });
                    beginnings.push(beginning);
                    aiming.push(aims);
                }
            }
        }
        let Some(Writer { emitter, beam, .. }) = self.writer.as_ref().filter(|_| !rows.is_empty()) else {
            return Ok(rewritten);
        };
        let own = seen.rows(&rows)?;
        let words = word_tensor(&words, emitter.config().words, &self.device)?;
        let condition =
            emitter::Condition { words, features: own.features, states: Some(own.states), images: own.images };
        let mut checker = self.tongue.checker();
        let emissions = emitter.emit_after(&condition, &beginnings, 1, &self.tongue.bound, &mut checker, beam)?;
        for ((row, emission), aims) in rows.into_iter().zip(emissions).zip(aiming) {
            let best = emission.hypotheses.into_iter().next();
            let mut pieces = best.map(|best| best.pieces).unwrap_or_default();
            if emitter.config().distances {
                self.tongue.distances.to_positions(&mut pieces, &positions[row]);
            }
            let programs = self.tongue.bound.decode(&pieces);
            let mut programs = programs.iter().map(|tokens| self.tongue.written(tokens));
            let (task, motion) = (programs.next().unwrap_or_default(), programs.next().unwrap_or_default());
            if let Some(execution) = self.episodes.get_mut(&batch[row].client) {
                if aims {
                    let seen = self.tongue.planner().of_pieces(&pieces, &positions[row], 0)?;
                    if let Some(calls) = execution.aim(&body, &seen.calls) {
                        execution.aimed(self.tongue.planner().of_calls(&calls, &positions[row])?);
                    }
                    continue;
                }
                let over = execution.over(&body, &motion);
                let plan = self.tongue.planner().of_pieces(&pieces, &positions[row], over)?;
                execution.begin(&body, &positions[row], plan, task, motion, over);
            }
            rewritten[row] = true;
        }
        Ok(rewritten)
    }

    /// # Shapes
    /// Gives `[B, chunk, A]`, standardised.
    fn decode(&self, batch: &[&Observation], positions: &[Position], seen: &Seen) -> Result<Tensor> {
        let config = self.decoder.config();
        let Widths { actions, .. } = self.about.widths;
        let plan = |(one, position): (&&Observation, &Position)| {
            self.episodes.get(&one.client).map(|own| own.executed.seen_from(position)).unwrap_or_default()
        };
        let plans: Vec<Vec<Piece>> = batch.iter().zip(positions).map(plan).collect();
        let terms = term_tensor(&plans, config.tokens, &self.device)?;
        let Seen { features, mut states, images } = seen.clone();
        if !config.positions {
            states = without_positions(&states, &self.tongue.alphabet.layout)?;
        }
        let condition = decoder::Condition { terms, features, states: Some(states), images };
        let noise = noise_at((config, actions), 0).repeat(batch.len());
        let noise = Tensor::from_vec(noise, (batch.len(), config.chunk, actions), &Device::Cpu)?;
        Ok(self.decoder.sample(&condition, &noise.to_device(&self.device)?)?)
    }

    /// The same by the controller. A program without motions cannot be followed: there the decoder acts.
    fn follow(&mut self, batch: &[&Observation], positions: &[Position], seen: &Seen) -> Result<Tensor> {
        let (chunk, replan) = (self.about.chunk, self.rhythm.replan);
        let is_empty =
            |one: &&Observation| self.episodes.get(&one.client).is_none_or(|own| own.executed.calls.is_empty());
        let decoded: Vec<f32> = match batch.iter().any(is_empty) {
            true => self.decode(batch, positions, seen)?.flatten_all()?.to_vec1()?,
            false => Vec::new(),
        };
        let body = self.rhythm.body(&self.tongue.alphabet);
        let own_size = chunk * self.about.widths.actions;
        let mut values: Vec<f32> = Vec::with_capacity(batch.len() * own_size);
        for (row, (one, position)) in batch.iter().zip(positions).enumerate() {
            let Some(own) = self.episodes.get_mut(&one.client).filter(|own| !own.executed.calls.is_empty()) else {
                values.extend(&decoded[row * own_size..(row + 1) * own_size]);
                continue;
            };
            let calls = &own.executed.calls;
            let followed = self.tongue.alphabet.follow(calls, position, own.under_way(), chunk, replan.min(chunk))?;
            own.followed(&body, position, followed.over, followed.under_way);
            let mut rows: Vec<f32> = followed.rows.into_iter().map(|value| value as f32).collect();
            self.scales.actions.apply(&mut rows);
            values.extend(rows);
        }
        Ok(Tensor::from_vec(values, (batch.len(), chunk, self.about.widths.actions), &self.device)?)
    }

    /// What the world model expects after the first action of each chunk.
    fn returns(&self, seen: &Seen, chunks: &Tensor) -> Result<Vec<Option<f64>>> {
        let Some((world, discount)) = &self.world else { return Ok(Vec::new()) };
        let (samples, _, _) = chunks.dims3()?;
        let features = match &seen.features {
            Some(features) => features.clone(),
            None => Tensor::zeros((samples, 0), DType::F32, &self.device)?,
        };
        let start = Start { features, states: seen.states.clone() };
        let imagined = world.imagine(&start, &chunks.narrow(1, 0, 1)?.contiguous()?, None)?;
        let read = |tensor: &Tensor| -> Result<Vec<f32>> { Ok(tensor.flatten_all()?.to_dtype(DType::F32)?.to_vec1()?) };
        let expected = read(&imagined.rewards)?.into_iter().zip(read(&imagined.returns)?);
        Ok(expected.map(|(reward, after)| Some(f64::from(reward) + discount * f64::from(after))).collect())
    }

    fn status(&self, client: u64, position: &Position) -> Decision {
        let Some(execution) = self.episodes.get(&client) else { return Decision::default() };
        let body = self.rhythm.body(&self.tongue.alphabet);
        let motion = &execution.motion;
        let skill = motion.calls.get(execution.active).and_then(|call| {
            let name = self.tongue.alphabet.skills.get(call.skill.0)?.name.clone();
            let readable = self.readable.get(&name).unwrap_or(&name).clone();
            Some([name, readable, motion.call_texts.get(execution.active)?.clone()])
        });
        let (task, step) = match &execution.plan {
            Plan::Prompt(_) => (execution.task.text.clone(), None),
            Plan::Program(steps) => {
                let at = execution.step.min(steps.len().saturating_sub(1));
                let task = match &steps[at] {
                    Step::Known { text, .. } | Step::New { text, .. } => text.clone(),
                    Step::Motion { written } => written.text.clone(),
                };
                (task, Some((at, steps.len())))
            }
        };
        let mut library = [execution.task.entries.clone(), motion.entries.clone()].concat();
        library.sort();
        library.dedup();
        Decision {
            program: motion.text.clone(),
            active: motion.spans.get(execution.active).cloned(),
            task,
            library,
            skill,
            progress: execution.progress(&body, position),
            step,
            ..Decision::default()
        }
    }
}

/// A decision that a robot can execute.
fn checked(decision: Decision) -> std::result::Result<Decision, Refusal> {
    match decision.actions.iter().all(|value| value.is_finite()) {
        true => Ok(decision),
        false => Err(Refusal::Other("the policy's actions are not finite numbers; check the state's units".to_owned())),
    }
}

/// `[B, F]` and `[B, S]`, standardised.
#[derive(Clone)]
struct Seen {
    features: Option<Tensor>,
    states: Tensor,
    /// For heads with an eye.
    images: Option<Tensor>,
}

impl Seen {
    fn rows(&self, rows: &[usize]) -> Result<Seen> {
        let rows: Vec<u32> = rows.iter().map(|row| *row as u32).collect();
        let rows = Tensor::new(rows, self.states.device())?;
        let select = |x: &Tensor| x.index_select(&rows, 0);
        Ok(Seen {
            features: self.features.as_ref().map(select).transpose()?,
            states: select(&self.states)?,
            images: self.images.as_ref().map(select).transpose()?,
        })
    }
}

/// Milliseconds by stage.
#[derive(Default)]
struct Clock(BTreeMap<&'static str, f64>);

impl Clock {
    fn add(&mut self, stage: &'static str, time: Duration) {
        *self.0.entry(stage).or_default() += time.as_secs_f64() * 1000.0;
    }

    fn time<T>(&mut self, stage: &'static str, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = work();
        self.add(stage, begun.elapsed());
        done
    }
}
