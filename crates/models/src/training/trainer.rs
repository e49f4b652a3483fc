//! The loop: batches, losses, gradients, steps; and every so often a reading, an evaluation, a checkpoint.
//!
//! Reading a scalar waits for the device. It happens at readings and checkpoints alone; between them the host only
//! queues work.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use candle_core::{DType, Tensor};
use serde_json::{Value, json};

use super::adamw::AdamW;
use super::checkpoint;
use super::clock::Clock;
use super::config::TrainConfig;
use super::ema::Ema;
use super::monitor::{LOSS, Monitor, NORM, Reading, TERMS};
use super::objective::{Objective, Part};
use super::prepare::{Prepared, prepare};
use super::recorder::{self, About, Recorder, Snapshot};
use super::reduce::Reducer;
use super::run::{Options, Outcome, Progress, Summary};
use super::schedule;
use crate::error::{Error, Result};
use crate::parameters::Parameters;

/// Trains, or resumes training, until the last step, the stop flag or an error.
pub fn train<O: Objective>(objective: &O, config: &TrainConfig, run: &Path, options: Options<'_>) -> Result<Outcome> {
    config.validate()?;
    let _tidy = Tidy(objective.parameters());
    let mut session = Session::open(objective, config, run, options)?;
    session.make_up()?;
    let parts = session.parts();
    let finished = std::thread::scope(|scope| {
        let mut batches = prepare(scope, objective, session.step..config.steps, parts.clone());
        while session.step < config.steps {
            session.take_step(&mut batches, &parts)?;
            if session.look()? {
                return Ok(false);
            }
        }
        Ok::<bool, Error>(true)
    })?;
    session.finish(finished)
}

/// A run that is under way on one rank.
struct Session<'a, 'o, O> {
    objective: &'a O,
    config: &'a TrainConfig,
    run: &'a Path,
    options: Options<'o>,
    recorder: Option<Recorder>,
    optimizer: AdamW,
    ema: Option<Ema>,
    reducer: Arc<Reducer>,
    step: u64,
    monitor: Monitor,
    /// The names of the loss's terms, once there was one.
    names: Option<Vec<&'static str>>,
    /// Whether the gradients of a step were compared with the weights that the objective trains.
    checked: bool,
    /// Steps whose scalars are still on the device.
    unread: Vec<Unread>,
    clock: Clock,
    resumed_from: Option<u64>,
    last_checkpoint: Option<u64>,
    loss: Option<f64>,
    evaluation: BTreeMap<String, f64>,
    warnings: Vec<String>,
}

struct Unread {
    step: u64,
    norm: Tensor,
    /// Loss and terms of each part, one after the other.
    values: Vec<Tensor>,
}

impl<'a, 'o, O: Objective> Session<'a, 'o, O> {
    fn open(objective: &'a O, config: &'a TrainConfig, run: &'a Path, options: Options<'o>) -> Result<Self> {
        let parameters = objective.parameters();
        let (mut recorder, mut snapshot, mut warnings) = (None, None, Vec::new());
        if options.transport.rank() == 0 {
            let settings = settings(config, options.transport.world(), &options.metadata)?;
            let opened = recorder::open(run, settings, options.resume, parameters.device())?;
            (recorder, snapshot, warnings) = (Some(opened.recorder), opened.snapshot, opened.warnings);
        }
        let about = snapshot.as_ref().map(|snapshot| snapshot.about.clone()).unwrap_or_default();
        let mut session = Session {
            objective,
            config,
            run,
            recorder,
            optimizer: AdamW::new(parameters, config.adamw)?,
            ema: None,
            reducer: Reducer::new(options.transport.clone()),
            options,
            step: about.step,
            monitor: about.monitor,
            names: None,
            checked: false,
            unread: Vec::new(),
            clock: Clock::start(about.step),
            resumed_from: None,
            last_checkpoint: None,
            loss: None,
            evaluation: BTreeMap::new(),
            warnings,
        };
        if let Some(Snapshot { weights, moments, averages, .. }) = snapshot {
            parameters.assign(&weights)?;
            session.optimizer.restore(parameters, session.step, &moments)?;
            session.ema = session.new_ema()?;
            if let Some(ema) = &mut session.ema {
                ema.restore(parameters, &averages)?;
            }
        }
        session.agree()?;
        if session.ema.is_none() {
            session.ema = session.new_ema()?;
        }
        session.resumed_from = Some(session.step).filter(|step| *step > 0);
        session.last_checkpoint = session.resumed_from;
        session.clock = Clock::start(session.step);
        Ok(session)
    }

    /// Gives all ranks the first one's state.
    fn agree(&mut self) -> Result<()> {
        let transport = self.options.transport.clone();
        if transport.world() == 1 {
            return Ok(());
        }
        let parameters = self.objective.parameters();
        let about = About { step: self.step, monitor: self.monitor.clone() };
        let unreadable =
            |error: serde_json::Error| Error::Transport { rank: transport.rank(), reason: error.to_string() };
        let said = transport.broadcast_bytes(serde_json::to_vec(&about).map_err(unreadable)?)?;
        About { step: self.step, monitor: self.monitor } = serde_json::from_slice(&said).map_err(unreadable)?;
        let share = |tensors: BTreeMap<String, Tensor>| -> Result<BTreeMap<String, Tensor>> {
            tensors.into_iter().map(|(name, tensor)| Ok((name, transport.broadcast(tensor)?))).collect()
        };
        let weights = share(parameters.masters())?;
        let follows = transport.rank() > 0;
        if follows {
            parameters.assign(&weights)?;
        }
        if self.step == 0 {
            return Ok(());
        }
        let moments = share(self.optimizer.state(parameters))?;
        if follows {
            self.optimizer.restore(parameters, self.step, &moments)?;
            self.ema = self.new_ema()?;
        }
        if let Some(ema) = &mut self.ema {
            let averages = share(ema.state(parameters))?;
            if follows {
                ema.restore(parameters, &averages)?;
            }
        }
        Ok(())
    }

    fn new_ema(&self) -> Result<Option<Ema>> {
        self.config.ema.map(|decay| Ema::new(self.objective.parameters(), decay)).transpose()
    }

    /// The parts of a global batch that this rank takes, in order.
    fn parts(&self) -> Vec<Part> {
        let (rank, each) = (self.options.transport.rank(), self.config.accumulation);
        let count = self.options.transport.world() * each;
        (rank * each..(rank + 1) * each).map(|index| Part { index, count }).collect()
    }

    /// One step of the optimizer; nothing in it waits for the device.
    fn take_step(&mut self, batches: &mut Prepared<'_, O::Batch>, parts: &[Part]) -> Result<()> {
        let (objective, parameters) = (self.objective, self.objective.parameters());
        let on_cpu = parameters.device().is_cpu();
        let mut values = Vec::new();
        let mut gradients = Vec::new();
        for (place, part) in (1..).zip(parts) {
            let batch = batches.next()?;
            let loss = on_pool(on_cpu, || objective.loss(batch))?;
            let names: Vec<&'static str> = loss.terms.iter().map(|(name, _)| *name).collect();
            let known = self.names.get_or_insert_with(|| names.clone());
            if *known != names {
                return Err(Error::Config(format!("the loss has terms {names:?}, and had {known:?} before")));
            }
            values.push(loss.total.detach());
            values.extend(loss.terms.into_iter().map(|(_, value)| value.detach()));
            if place < parts.len() {
                self.reducer.add_part(parameters, &on_pool(on_cpu, || loss.total.backward())?)?;
            } else {
                self.reducer.begin_last(parameters);
                let found = on_pool(on_cpu, || loss.total.backward())?;
                gradients = self.reducer.finish(parameters, &found, part.count)?;
            }
        }
        if !std::mem::replace(&mut self.checked, true) {
            check_gradients(parameters, &gradients, &objective.frozen())?;
        }
        let step = self.step + 1;
        let (optimizer, rate) = (&mut self.optimizer, schedule::rate(self.config, step));
        let norm = on_pool(on_cpu, || optimizer.step(parameters, &gradients, rate))?;
        if let Some(ema) = &mut self.ema {
            ema.update(parameters, step)?;
        }
        self.unread.push(Unread { step, norm, values });
        self.step = step;
        Ok(())
    }

    /// What is due after a step. Returns whether to stop.
    fn look(&mut self) -> Result<bool> {
        let TrainConfig { steps, log_every, evaluate_every, checkpoint_every, keep_checkpoints, .. } = *self.config;
        let last = self.step == steps;
        let (report, save) = (self.due(log_every), self.due(checkpoint_every) || last);
        let evaluate = self.due(evaluate_every) && self.options.transport.rank() == 0;
        // Ranks must agree to stop, so with several the flag is looked at when they speak anyway.
        let alone = self.options.transport.world() == 1;
        let mut stopped = false;
        if report || save || (alone && self.wants_stop()) {
            stopped = self.read()?;
        }
        if report {
            self.report()?;
        }
        let paused = Instant::now();
        // Before the evaluation, whose failure would lose the steps since the last one.
        if save || stopped {
            self.save(keep_checkpoints)?;
        }
        if evaluate && let Err(error) = self.evaluate() {
            // With several ranks there is no reading without the others, and so nothing to save.
            if alone && self.last_checkpoint != Some(self.step) {
                self.read()?;
                self.save(keep_checkpoints)?;
            }
            return Err(error);
        }
        self.clock.paused += paused.elapsed();
        Ok(stopped && !last)
    }

    fn due(&self, every: u64) -> bool {
        every > 0 && (self.step.is_multiple_of(every) || self.step == self.config.steps)
    }

    /// The evaluation of the checkpoint that a run goes on from, if it failed or was cut short: it comes after the checkpoint.
    fn make_up(&mut self) -> Result<()> {
        let missing = self.recorder.as_ref().is_some_and(|recorder| !recorder.evaluated());
        if self.resumed_from.is_some() && missing && self.due(self.config.evaluate_every) {
            let paused = Instant::now();
            self.evaluate()?;
            self.clock.paused += paused.elapsed();
        }
        Ok(())
    }

    fn wants_stop(&self) -> bool {
        self.options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Waits for the device, and brings the scalars of all steps so far to all ranks. Returns whether any wants to
    /// stop.
    fn read(&mut self) -> Result<bool> {
        let device = self.objective.parameters().device();
        let unread = std::mem::take(&mut self.unread);
        let scalar = |value: &Tensor| value.to_dtype(DType::F32)?.to_device(device)?.reshape(1);
        let scalars = unread.iter().flat_map(|one| std::iter::once(&one.norm).chain(&one.values)).map(scalar);
        let scalars: Vec<Tensor> = scalars.collect::<std::result::Result<_, candle_core::Error>>()?;
        let mut mine = vec![f64::from(u8::from(self.wants_stop()))];
        if !scalars.is_empty() {
            mine.extend(Tensor::cat(&scalars, 0)?.to_vec1::<f32>()?.into_iter().map(f64::from));
        }
        let all = self.options.transport.exchange(&mine)?;
        let rank = self.options.transport.rank();
        if all.iter().any(|said| said.len() != mine.len()) {
            return Err(Error::Transport { rank, reason: "ranks do not have the same number of losses".into() });
        }
        let names = self.names.clone().unwrap_or_default();
        let width = 1 + names.len();
        let mut at = 1;
        for one in &unread {
            let reading = Reading { step: one.step, values: means(&all, at, one.values.len(), width) };
            at += 1 + one.values.len();
            if let Some(reason) = self.monitor.take(reading, &names, self.config) {
                return Err(self.diverged(one.step, &reason));
            }
        }
        Ok(all.iter().any(|said| said[0] > 0.0))
    }

    fn report(&mut self) -> Result<()> {
        let means = self.monitor.report();
        let (work, unit) = self.objective.work_per_step();
        let (speed, eta_seconds) = self.clock.report(self.step, self.config.steps);
        self.loss = Some(means[LOSS]);
        let names = self.names.iter().flatten().copied();
        let progress = Progress {
            step: self.step,
            steps: self.config.steps,
            loss: means[LOSS],
            terms: names.zip(means[TERMS..].iter().copied()).collect(),
            rate: schedule::rate(self.config, self.step),
            gradient_norm: means[NORM],
            per_second: work * speed,
            unit,
            eta_seconds,
        };
        if let Some(recorder) = &mut self.recorder {
            recorder.progress(&progress, self.clock.started.elapsed().as_secs_f64())?;
            (self.options.progress)(&progress);
        }
        Ok(())
    }

    /// With the averaged weights, if there are any: they are the result.
    fn evaluate(&mut self) -> Result<()> {
        let parameters = self.objective.parameters();
        self.evaluation = match &self.ema {
            None => self.objective.evaluate()?,
            Some(ema) => {
                let copy = |(name, tensor): (String, Tensor)| Ok((name, tensor.copy()?));
                let weights = parameters.masters().into_iter().map(copy).collect::<Result<BTreeMap<_, _>>>()?;
                parameters.assign(&ema.state(parameters))?;
                let figures = self.objective.evaluate();
                parameters.assign(&weights)?;
                figures?
            }
        };
        // A forward pass announces gradients that now never come.
        parameters.clear_gradients();
        match &mut self.recorder {
            Some(recorder) => recorder.evaluation(self.step, &self.evaluation),
            None => Ok(()),
        }
    }

    fn save(&mut self, keep: usize) -> Result<()> {
        if let Some(recorder) = &self.recorder {
            let parameters = self.objective.parameters();
            let snapshot = Snapshot {
                about: About { step: self.step, monitor: self.monitor.clone() },
                weights: parameters.masters(),
                moments: self.optimizer.state(parameters),
                averages: self.ema.as_ref().map(|ema| ema.state(parameters)).unwrap_or_default(),
            };
            if let Some(name) = recorder.checkpoint(&snapshot, keep)? {
                return Err(self.diverged(self.step, &format!("`{name}` has values that are not finite")));
            }
        }
        self.last_checkpoint = Some(self.step);
        Ok(())
    }

    fn finish(self, finished: bool) -> Result<Outcome> {
        let parameters = self.objective.parameters();
        let mut model = None;
        if let Some(recorder) = self.recorder.as_ref().filter(|_| finished) {
            let weights = self.ema.as_ref().map_or_else(|| parameters.masters(), |ema| ema.state(parameters));
            model = Some(recorder.model(self.step, &weights)?);
        }
        // Whoever started the processes may end all once one has ended.
        self.options.transport.barrier()?;
        let summary = Summary {
            step: self.step,
            resumed_from: self.resumed_from,
            loss: self.loss,
            evaluation: self.evaluation,
            checkpoint: checkpoint::path_of(self.run, self.step),
            model,
            warnings: self.warnings,
        };
        Ok(if finished { Outcome::Finished(summary) } else { Outcome::Stopped(summary) })
    }

    fn diverged(&self, step: u64, reason: &str) -> Error {
        let good = match self.last_checkpoint {
            Some(good) => format!("the last good weights are `{}`", checkpoint::path_of(self.run, good).display()),
            None => "there is no checkpoint before it".to_owned(),
        };
        Error::Diverged { step, reason: format!("{reason}; {good}; a lower `rate` or `adamw.clip` may help") }
    }
}

/// Checks that exactly the weights that are not frozen have a gradient.
fn check_gradients(parameters: &Parameters, gradients: &[Option<Tensor>], frozen: &BTreeSet<String>) -> Result<()> {
    let mut wrong = Vec::new();
    for (parameter, gradient) in parameters.iter().zip(gradients) {
        let name = parameter.name();
        match (gradient.is_some(), frozen.contains(name)) {
            (false, false) => wrong.push(format!("`{name}` has no gradient")),
            (true, true) => wrong.push(format!("`{name}` has a gradient but is declared as frozen")),
            _ => {}
        }
    }
    let unknown = frozen.iter().filter(|name| parameters.named(name).is_none());
    wrong.extend(unknown.map(|name| format!("`{name}` is declared as frozen but is not a weight of the model")));
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Error::Config(format!(
        "the first step does not train the weights that it should: {}; let the loss depend on each trained weight \
         (`Parameter::tracked`, or a layer) and name all others in `Objective::frozen`",
        wrong.join("; ")
    )))
}

/// What must be the same when a run goes on. How the parts are spread over processes may change.
fn settings(config: &TrainConfig, world: usize, metadata: &Value) -> Result<Value> {
    let mut train = serde_json::to_value(config).map_err(|error| Error::Config(error.to_string()))?;
    if let Value::Object(fields) = &mut train {
        fields.remove("accumulation");
    }
    Ok(json!({ "train": train, "parts": world * config.accumulation, "metadata": metadata }))
}

/// Loss, norm and terms of a step: means over the parts of all ranks, in order. The norm is the same on all.
fn means(all: &[Vec<f64>], at: usize, values: usize, width: usize) -> Vec<f64> {
    let parts = || all.iter().flat_map(|said| said[at + 1..at + 1 + values].chunks(width));
    let mean = |index: usize| parts().map(|part| part[index]).sum::<f64>() / parts().count().max(1) as f64;
    let mut means: Vec<f64> = (0..width).map(mean).collect();
    means.insert(NORM, all[0][at]);
    means
}

/// Leaves no hook and no gradient behind, however training ended.
struct Tidy<'a>(&'a Parameters);

impl Drop for Tidy<'_> {
    fn drop(&mut self) {
        self.0.set_gradient_hook(None);
        self.0.clear_gradients();
    }
}
/// Runs work on a thread of rayon's pool, where operations on CPUs need not wake a thread up first: a tenth of a step on two
/// cores.
fn on_pool<T: Send>(on_cpu: bool, work: impl FnOnce() -> T + Send) -> T {
    if on_cpu { rayon::scope(|_| work()) } else { work() }
}
