//! The weights of a model: named, in f32, with the copies that products use and the place where gradients are collected.
//!
//! Models read a [`Parameter`] with [`Parameter::tracked`], a tensor whose gradient Candle finds. The layers of this module
//! have backward passes that Candle does not know. They read detached values, `working` and `vector`, and hand over the
//! gradients with [`Parameter::add_gradient`]. A detached value in plain Candle code would silently train nothing, so
//! only the layers can read one, and the trainer refuses to go on if a trained parameter has no gradient after the first
//! step. [`Parameters::gradients`] collects the gradients of both kinds.
//!
//! In bf16 the working copy is kept next to the f32 master and is written by the optimizer, so no pass over the weights is
//! spent on casting. Initial values depend only on the seed and on the parameter's name, neither on the order of
//! construction nor on the device.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Tensor, Var};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::noise;
use crate::ops::update::Update;

/// The precision of products; masters, sums and moments are f32 in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// 32-bit floats everywhere.
    #[default]
    F32,
    /// bfloat16 activations and products.
    Bf16,
}

impl Precision {
    /// The type of activations.
    pub fn dtype(self) -> DType {
        match self {
            Precision::F32 => DType::F32,
            Precision::Bf16 => DType::BF16,
        }
    }
}

/// The initial values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// All zeros.
    Zeros,
    /// All ones.
    Ones,
    /// Normal with mean zero and this standard deviation.
    Normal(f64),
    /// Uniform in ±1/√inputs, as PyTorch's linear layers start.
    FanIn(usize),
}

/// One weight; cloning gives another handle to the same one.
#[derive(Clone)]
pub struct Parameter(Arc<Weight>);

struct Weight {
    index: usize,
    name: String,
    master: Var,
    /// The copy in the precision of products; the master itself in f32.
    working: Tensor,
    sink: Arc<Sink>,
}

/// Called with the index and the final gradient of a parameter as soon as the backward pass has it.
pub type GradientHook = Box<dyn Fn(usize, &Tensor) -> Result<()> + Send + Sync>;

/// Gradients that layers handed over during the backward passes of one step.
#[derive(Default)]
struct Sink {
    state: Mutex<SinkState>,
}

#[derive(Default)]
struct SinkState {
    gradients: Vec<Option<Tensor>>,
    /// Uses in the current forward pass whose gradients are still to come.
    pending: Vec<usize>,
    hook: Option<Arc<GradientHook>>,
}

impl Parameter {
    /// Its full name, such as `layers.3.attention.qkv.weight`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its place in [`Parameters`].
    pub fn index(&self) -> usize {
        self.0.index
    }

    /// The f32 master.
    pub fn master(&self) -> &Var {
        &self.0.master
    }

    /// The type of its copy for products, which is that of activations.
    pub fn dtype(&self) -> DType {
        self.0.working.dtype()
    }

    /// The detached copy in the precision of products, for layers that hand over gradients themselves.
    pub(in crate::layers) fn working(&self) -> &Tensor {
        &self.0.working
    }

    /// The weight for plain Candle code, in the precision of products. Candle finds its gradient.
    pub fn tracked(&self) -> Result<Tensor> {
        let master = self.0.master.as_tensor();
        if self.0.working.dtype() == DType::F32 {
            Ok(master.clone())
        } else {
            Ok(master.to_dtype(self.0.working.dtype())?)
        }
    }

    /// The weight for plain Candle code in f32, whatever the precision of products, for small heads and losses. Candle finds
    /// its gradient.
    pub fn tracked_f32(&self) -> Tensor {
        self.0.master.as_tensor().clone()
    }

    /// The detached master, for layers that hand over gradients themselves and take f32, such as biases and norms.
    pub(in crate::layers) fn vector(&self) -> Tensor {
        self.0.master.as_detached_tensor()
    }

    /// Announces in the forward pass that the next backward pass will hand over a gradient.
    pub fn expect_gradient(&self) {
        let mut state = self.0.sink.lock();
        state.reach(self.0.index);
        state.pending[self.0.index] += 1;
    }

    /// Hands over a gradient. Several gradients of one parameter are summed.
    pub fn add_gradient(&self, gradient: Tensor) -> Result<()> {
        let index = self.0.index;
        let (hook, sum) = {
            let mut state = self.0.sink.lock();
            state.reach(index);
            let sum = match state.gradients[index].take() {
                None => gradient,
                Some(earlier) => (earlier + gradient)?,
            };
            state.gradients[index] = Some(sum.clone());
            state.pending[index] = state.pending[index].saturating_sub(1);
            (state.hook.clone().filter(|_| state.pending[index] == 0), sum)
        };
        match hook {
            Some(hook) => hook(index, &sum),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.0.name, self.0.master.dims())
    }
}

impl Sink {
    fn lock(&self) -> std::sync::MutexGuard<'_, SinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SinkState {
    fn reach(&mut self, index: usize) {
        if self.gradients.len() <= index {
            self.gradients.resize(index + 1, None);
            self.pending.resize(index + 1, 0);
        }
    }
}

/// All weights of a model.
pub struct Parameters {
    entries: Vec<Parameter>,
    by_name: BTreeMap<String, usize>,
    device: Device,
    precision: Precision,
    seed: u64,
    sink: Arc<Sink>,
}

impl Parameters {
    /// An empty set of weights.
    pub fn new(device: &Device, precision: Precision, seed: u64) -> Parameters {
        let (entries, by_name, sink) = (Vec::new(), BTreeMap::new(), Arc::new(Sink::default()));
        Parameters { entries, by_name, device: device.clone(), precision, seed, sink }
    }

    /// The scope without a prefix. Layers take a scope and add their weights to it.
    pub fn root(&mut self) -> Scope<'_> {
        Scope { parameters: self, prefix: String::new() }
    }

    /// The weights in the order of construction.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Parameter> {
        self.entries.iter()
    }

    /// The weight with an index.
    pub fn get(&self, index: usize) -> Option<&Parameter> {
        self.entries.get(index)
    }

    /// The weight with a name.
    pub fn named(&self, name: &str) -> Option<&Parameter> {
        self.by_name.get(name).map(|index| &self.entries[*index])
    }

    /// The number of weights, in tensors.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of values in all weights.
    pub fn count(&self) -> usize {
        self.entries.iter().map(|parameter| parameter.master().elem_count()).sum()
    }

    /// The device of the weights.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The precision of products.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Sets or removes the function that is called with each gradient that a layer handed over, as soon as it is final. In an
    /// accumulated step, only the last backward pass calls it.
    pub fn set_gradient_hook(&self, hook: Option<GradientHook>) {
        self.sink.lock().hook = hook.map(Arc::new);
    }

    /// Takes the gradients of a backward pass: those that Candle found and those that layers handed over. Parameters that
    /// took no part have none. Gradients are f32 or in the precision of products.
    pub fn gradients(&self, found: &GradStore) -> Result<Vec<Option<Tensor>>> {
        let mut by_hand = std::mem::take(&mut self.sink.lock().gradients);
        by_hand.resize(self.entries.len(), None);
        let sum = |(parameter, by_hand): (&Parameter, Option<Tensor>)| {
            let by_candle = found.get(parameter.master().as_tensor()).map(Tensor::detach);
            match (by_hand, by_candle) {
                (Some(by_hand), Some(by_candle)) => Ok(Some((by_hand.to_dtype(DType::F32)? + by_candle)?)),
                (by_hand, by_candle) => Ok(by_hand.or(by_candle)),
            }
        };
        self.entries.iter().zip(by_hand).map(sum).collect()
    }

    /// Discards the gradients of a pass that was not finished.
    pub fn clear_gradients(&self) {
        let mut state = self.sink.lock();
        state.gradients.clear();
        state.pending.clear();
    }

    /// Overwrites the masters and their working copies by name. The names and shapes must be exactly those of the model.
    pub fn assign(&self, values: &BTreeMap<String, Tensor>) -> Result<()> {
        let mut wrong = Vec::new();
        for parameter in &self.entries {
            match values.get(parameter.name()) {
                None => wrong.push(format!("`{}` is missing", parameter.name())),
                Some(value) if value.dims() != parameter.master().dims() => wrong.push(format!(
                    "`{}` is {:?}, wanted {:?}",
                    parameter.name(),
                    value.dims(),
                    parameter.master().dims()
                )),
                Some(_) => {}
            }
        }
        wrong.extend(
            values
                .keys()
                .filter(|name| !self.by_name.contains_key(*name))
                .map(|name| format!("`{name}` is not a weight of this model")),
        );
        if !wrong.is_empty() {
            return Err(Error::Config(format!("weights do not fit the model: {}", wrong.join("; "))));
        }
        for parameter in &self.entries {
            let value = values[parameter.name()].to_device(&self.device)?.to_dtype(DType::F32)?;
            parameter.0.master.set(&value)?;
            parameter.refresh()?;
        }
        Ok(())
    }

    /// The masters by name.
    pub fn masters(&self) -> BTreeMap<String, Tensor> {
        self.entries
            .iter()
            .map(|parameter| (parameter.name().to_owned(), parameter.master().as_detached_tensor()))
            .collect()
    }
}

impl Parameter {
    /// What a step of the optimizer needs: it writes the master, both moments, and the copy for products if there is one.
    pub(crate) fn update<'a>(
        &'a self,
        (mean, square): (&'a Var, &'a Var),
        gradient: &'a Tensor,
        decay: f64,
    ) -> Update<'a> {
        let working = Some(&self.0.working).filter(|working| working.dtype() != DType::F32);
        Update { master: &self.0.master, mean, square, gradient, working, decay }
    }

    /// The largest difference between the master and its copy for products: 0 in f32, rounding in bf16.
    pub fn copy_error(&self) -> Result<f32> {
        let copy = self.0.working.to_dtype(DType::F32)?;
        Ok((copy - self.0.master.as_detached_tensor())?.abs()?.flatten_all()?.max(0)?.to_scalar()?)
    }

    /// Writes the master into the working copy. Code that sets the master calls it afterwards.
    pub fn refresh(&self) -> Result<()> {
        let working = &self.0.working;
        if working.dtype() != DType::F32 {
            working.slice_set(&self.0.master.as_detached_tensor().to_dtype(working.dtype())?, 0, 0)?;
        }
        Ok(())
    }
}

/// A prefix under which a layer adds its weights.
pub struct Scope<'a> {
    parameters: &'a mut Parameters,
    prefix: String,
}

impl Scope<'_> {
    /// The scope below this one.
    pub fn enter(&mut self, name: impl fmt::Display) -> Scope<'_> {
        let prefix = self.full(&name.to_string());
        Scope { parameters: self.parameters, prefix }
    }

    /// Adds a weight.
    pub fn weight(&mut self, name: &str, shape: &[usize], init: Init) -> Result<Parameter> {
        let name = self.full(name);
        let parameters = &mut *self.parameters;
        if parameters.by_name.contains_key(&name) {
            return Err(Error::Config(format!("two weights are called `{name}`")));
        }
        let values = initial(init, shape.iter().product(), parameters.seed, &name);
        let master = Var::from_tensor(&Tensor::from_vec(values, shape, &Device::Cpu)?.to_device(&parameters.device)?)?;
        let working = match parameters.precision {
            Precision::F32 => master.as_detached_tensor(),
            Precision::Bf16 => master.as_detached_tensor().to_dtype(DType::BF16)?,
        };
        let index = parameters.entries.len();
        let sink = parameters.sink.clone();
        let parameter = Parameter(Arc::new(Weight { index, name: name.clone(), master, working, sink }));
        parameters.entries.push(parameter.clone());
        parameters.by_name.insert(name, index);
        Ok(parameter)
    }

    fn full(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}.{name}", self.prefix) }
    }
}

fn initial(init: Init, count: usize, seed: u64, name: &str) -> Vec<f32> {
    let mut generator = ChaCha8Rng::seed_from_u64(noise::mix(seed, name.as_bytes()));
    match init {
        Init::Zeros => vec![0.0; count],
        Init::Ones => vec![1.0; count],
        Init::Normal(deviation) => {
            let mut values = noise::normal(&mut generator, count);
            values.iter_mut().for_each(|value| *value *= deviation as f32);
            values
        }
        Init::FanIn(inputs) => {
            let bound = 1.0 / (inputs.max(1) as f32).sqrt();
            noise::uniform(&mut generator, count).into_iter().map(|unit| (2.0 * unit - 1.0) * bound).collect()
        }
    }
}
