//! The objective of all tests here, and how a run of it is started and compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use candle_core::{CpuStorage, CustomOp1, Device, Layout, Shape, Tensor};
use models::layers::Linear;
use models::ops::Form;
use models::parameters::Init;
use models::training::distributed::{Alone, Transport};
use models::training::{Loss, Objective, Options, Outcome, Part, Progress, TrainConfig, train};
use models::{Parameter, Parameters, Precision, Result, noise};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

/// Examples in a global batch: a multiple of all numbers of parts.
pub(crate) const BATCH: usize = 24;
const INPUTS: usize = 4;
const HIDDEN: usize = 16;

/// y = sin 2x₀ + x₁x₂ by two linear layers, with an operation between them that hands over its gradient itself.
pub(crate) struct Regression {
    parameters: Parameters,
    first: Linear,
    gain: Parameter,
    second: Linear,
    /// Whether the second layer is multiplied by hand with its detached weight.
    pub(crate) detached: bool,
    /// The weights that are declared as frozen.
    pub(crate) frozen: Vec<&'static str>,
    /// The step whose loss has a term that is not a number.
    pub(crate) poisoned: Option<u64>,
    /// The step from which losses are this many times larger.
    pub(crate) blown_up: Option<(u64, f64)>,
    /// Slows each step, so that a kill comes within one.
    pub(crate) pause: Duration,
    /// The evaluation that fails, counted from zero.
    pub(crate) fails: Option<u64>,
    /// Evaluations so far.
    evaluations: AtomicU64,
}

pub(crate) struct Batch {
    step: u64,
    inputs: Vec<f32>,
    targets: Vec<f32>,
}

impl Regression {
    pub(crate) fn new(precision: Precision) -> Regression {
        let mut parameters = Parameters::new(&Device::Cpu, precision, 7);
        let mut root = parameters.root();
        let composed = Form::Composed;
        let first = Linear::with_init(&mut root.enter("first"), INPUTS, HIDDEN, Init::FanIn(INPUTS), composed).unwrap();
        let gain = root.weight("gain", &[HIDDEN], Init::Ones).unwrap();
        let second = Linear::with_init(&mut root.enter("second"), HIDDEN, 1, Init::FanIn(HIDDEN), composed).unwrap();
        // A weight that takes no part keeps its value and has no gradient.
        root.weight("unused", &[3, 3], Init::Normal(1.0)).unwrap();
        Regression {
            parameters,
            first,
            gain,
            second,
            detached: false,
            frozen: vec!["unused"],
            poisoned: None,
            blown_up: None,
            pause: Duration::ZERO,
            fails: None,
            evaluations: AtomicU64::new(0),
        }
    }

    fn predict(&self, inputs: Vec<f32>) -> Result<Tensor> {
        let rows = inputs.len() / INPUTS;
        let inputs =
            Tensor::from_vec(inputs, (rows, INPUTS), &Device::Cpu)?.to_dtype(self.parameters.precision().dtype())?;
        let hidden = self.first.forward(&inputs)?.tanh()?.to_dtype(candle_core::DType::F32)?;
        self.gain.expect_gradient();
        let hidden = hidden.apply_op1(Gain(self.gain.clone()))?.to_dtype(self.parameters.precision().dtype())?;
        if self.detached {
            let weight = self.second.weight.master().as_detached_tensor();
            return Ok(hidden.matmul(&weight.t()?)?.broadcast_add(&self.second.bias.tracked()?)?);
        }
        Ok(self.second.forward(&hidden)?.to_dtype(candle_core::DType::F32)?)
    }
}

impl Objective for Regression {
    type Batch = Batch;

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn frozen(&self) -> BTreeSet<String> {
        self.frozen.iter().map(|name| (*name).to_owned()).collect()
    }

    fn prepare(&self, step: u64, part: Part) -> Result<Batch> {
        let (inputs, targets) = examples(step);
        let range = part.range(BATCH);
        let (inputs, targets) = (&inputs[range.start * INPUTS..range.end * INPUTS], &targets[range]);
        Ok(Batch { step, inputs: inputs.to_vec(), targets: targets.to_vec() })
    }

    fn loss(&self, batch: Batch) -> Result<Loss> {
        std::thread::sleep(self.pause);
        let rows = batch.targets.len();
        let targets = Tensor::from_vec(batch.targets, (rows, 1), &Device::Cpu)?;
        let mut squared = (self.predict(batch.inputs)? - targets)?.sqr()?.mean_all()?;
        if let Some((_, factor)) = self.blown_up.filter(|(step, _)| batch.step >= *step) {
            squared = (squared * factor)?;
        }
        let poison = if self.poisoned == Some(batch.step) { f64::NAN } else { 0.0 };
        let drift = (&squared * poison)?;
        let terms = vec![("squared", squared.detach()), ("drift", drift.detach())];
        Ok(Loss { total: (squared + drift)?, terms })
    }

    fn evaluate(&self) -> Result<BTreeMap<String, f64>> {
        if self.fails == Some(self.evaluations.fetch_add(1, Ordering::Relaxed)) {
            return Err(models::Error::Config("the evaluation failed".into()));
        }
        let (inputs, targets) = examples(u64::MAX);
        let error = (self.predict(inputs)? - Tensor::from_vec(targets, (BATCH, 1), &Device::Cpu)?)?;
        let mean = error.sqr()?.mean_all()?.to_scalar::<f32>()?;
        Ok(BTreeMap::from([("squared".to_owned(), f64::from(mean))]))
    }

    fn work_per_step(&self) -> (f64, &'static str) {
        (BATCH as f64, "examples")
    }
}

fn examples(step: u64) -> (Vec<f32>, Vec<f32>) {
    let mut generator = ChaCha8Rng::seed_from_u64(noise::mix(3, &step.to_le_bytes()));
    let inputs = noise::normal(&mut generator, BATCH * INPUTS);
    let target = |x: &[f32]| (2.0 * x[0]).sin() + x[1] * x[2];
    let targets = inputs.chunks(INPUTS).map(target).collect();
    (inputs, targets)
}

/// y = x · w, whose gradient for w does not go through Candle.
struct Gain(Parameter);

impl CustomOp1 for Gain {
    fn name(&self) -> &'static str {
        "gain"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> candle_core::Result<(CpuStorage, Shape)> {
        let (start, end) = layout.contiguous_offsets().unwrap();
        let weights = self.0.master().to_vec1::<f32>()?;
        let inputs = &storage.as_slice::<f32>()?[start..end];
        let outputs = inputs.chunks(HIDDEN).flat_map(|row| row.iter().zip(&weights).map(|(x, w)| x * w)).collect();
        Ok((CpuStorage::F32(outputs), layout.shape().clone()))
    }

    fn bwd(&self, arg: &Tensor, _: &Tensor, gradient: &Tensor) -> candle_core::Result<Option<Tensor>> {
        let handed = (arg * gradient)?.sum(0)?;
        self.0.add_gradient(handed).map_err(candle_core::Error::wrap)?;
        gradient.broadcast_mul(&self.0.master().as_detached_tensor()).map(Some)
    }
}

/// Settings of a short run.
pub(crate) fn config() -> TrainConfig {
    TrainConfig {
        steps: 60,
        rate: 1e-2,
        warmup: 5,
        log_every: 7,
        evaluate_every: 20,
        checkpoint_every: 10,
        ..TrainConfig::default()
    }
}

pub(crate) struct Run<'a> {
    pub(crate) objective: Regression,
    pub(crate) config: TrainConfig,
    pub(crate) resume: bool,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) stop: Option<&'a AtomicBool>,
    /// Sets the flag at the first reading from this step on.
    pub(crate) stop_at: u64,
    pub(crate) metadata: Value,
}

impl Run<'_> {
    pub(crate) fn new(config: TrainConfig) -> Run<'static> {
        Run {
            objective: Regression::new(Precision::F32),
            config,
            resume: false,
            transport: Arc::new(Alone::default()),
            stop: None,
            stop_at: u64::MAX,
            metadata: json!({ "seed": 7 }),
        }
    }

    pub(crate) fn start(self, directory: &Path) -> Result<Outcome> {
        let mut progress = |progress: &Progress| {
            if progress.step >= self.stop_at {
                self.stop.unwrap().store(true, Ordering::Relaxed);
            }
        };
        let options = Options {
            resume: self.resume,
            transport: self.transport,
            progress: &mut progress,
            stop: self.stop,
            metadata: self.metadata,
        };
        train(&self.objective, &self.config, directory, options)
    }
}

/// The bytes of the result.
pub(crate) fn model(directory: &Path) -> Vec<u8> {
    fs::read(directory.join("model.safetensors")).unwrap()
}

/// The values of the result by name.
pub(crate) fn weights(directory: &Path) -> BTreeMap<String, Vec<f32>> {
    let tensors = candle_core::safetensors::load(directory.join("model.safetensors"), &Device::Cpu).unwrap();
    tensors.into_iter().map(|(name, tensor)| (name, tensor.flatten_all().unwrap().to_vec1().unwrap())).collect()
}

/// The lines of the metrics without what is measured by a clock.
pub(crate) fn metrics(directory: &Path) -> Vec<Value> {
    let text = fs::read_to_string(directory.join("metrics.jsonl")).unwrap();
    let line = |line: &str| {
        let mut value: Value = serde_json::from_str(line).unwrap();
        for name in ["per_second", "seconds"] {
            value.as_object_mut().unwrap().remove(name);
        }
        value
    };
    text.lines().map(line).collect()
}
