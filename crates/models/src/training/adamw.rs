//! AdamW with clipping by the global norm.
//!
//! g ← g · min(1, clip/‖g‖),  m ← β₁m + (1−β₁)g,  v ← β₂v + (1−β₂)g²,
//! w ← w − rate·(m̂/(√v̂ + ε) + decay·w). Decay is for matrices only: biases, norms and embeddings of one dimension have none.
//! Masters and moments are f32, whatever the precision of the gradients.

use std::collections::BTreeMap;

use candle_core::{DType, Device, Tensor, Var};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::parameters::Parameters;

/// Its constants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdamWConfig {
    /// Decay of the mean of gradients.
    pub beta_1: f64,
    /// Decay of the mean of their squares.
    pub beta_2: f64,
    /// What is added to the root of the squares.
    pub epsilon: f64,
    /// How much of a matrix is taken away, for a rate of one.
    pub weight_decay: f64,
    /// The largest global norm of the gradients; larger ones are scaled down to it.
    pub clip: f64,
}

impl Default for AdamWConfig {
    fn default() -> Self {
        AdamWConfig { beta_1: 0.9, beta_2: 0.95, epsilon: 1e-8, weight_decay: 0.01, clip: 1.0 }
    }
}

/// The optimizer and its moments.
pub struct AdamW {
    config: AdamWConfig,
    steps: u64,
    moments: Vec<(Var, Var)>,
}

impl AdamW {
    /// Moments at zero.
    pub fn new(parameters: &Parameters, config: AdamWConfig) -> Result<AdamW> {
        let zeros = |shape: &[usize]| Var::zeros(shape, DType::F32, parameters.device());
        let moments: std::result::Result<_, candle_core::Error> =
            parameters.iter().map(|one| Ok((zeros(one.master().dims())?, zeros(one.master().dims())?))).collect();
        Ok(AdamW { config, steps: 0, moments: moments? })
    }

    /// One step with gradients in the order of the parameters; those without one stay as they are. Returns the norm of all
    /// gradients before clipping, as a scalar on the device: reading it waits for the device.
    pub fn step(&mut self, parameters: &Parameters, gradients: &[Option<Tensor>], rate: f64) -> Result<Tensor> {
        let AdamWConfig { beta_1, beta_2, epsilon, weight_decay, clip } = self.config;
        self.steps += 1;
        let mut squares = Tensor::zeros((), DType::F32, parameters.device())?;
        for gradient in gradients.iter().flatten() {
            squares = (squares + gradient.to_dtype(DType::F32)?.sqr()?.sum_all()?)?;
        }
        let norm = squares.sqrt()?;
        let scale = (norm.to_scalar::<f32>()?.recip() as f64 * clip).min(1.0);
        let (first, second) = (1.0 - beta_1.powf(self.steps as f64), 1.0 - beta_2.powf(self.steps as f64));
        for ((parameter, gradient), (mean, square)) in parameters.iter().zip(gradients).zip(&self.moments) {
            let Some(gradient) = gradient else { continue };
            let gradient = (gradient.to_dtype(DType::F32)? * scale)?;
            mean.set(&((mean.as_tensor() * beta_1)? + (&gradient * (1.0 - beta_1))?)?.detach())?;
            square.set(&((square.as_tensor() * beta_2)? + (gradient.sqr()? * (1.0 - beta_2))?)?.detach())?;
            let update = ((mean.as_tensor() / first)? / ((square.as_tensor() / second)?.sqrt()? + epsilon)?)?;
            let master = parameter.master();
            let decay = if master.rank() >= 2 { weight_decay } else { 0.0 };
            let next = ((master.as_tensor() * (1.0 - rate * decay))? - (update * rate)?)?;
            master.set(&next.detach())?;
            parameter.refresh()?;
        }
        Ok(norm)
    }

    /// Steps taken.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The moments by name, `<parameter>.mean` and `<parameter>.square`.
    pub fn state(&self, parameters: &Parameters) -> BTreeMap<String, Tensor> {
        let named = parameters.iter().zip(&self.moments).flat_map(|(parameter, (mean, square))| {
            [("mean", mean), ("square", square)]
                .map(|(kind, value)| (format!("{}.{kind}", parameter.name()), value.as_detached_tensor()))
        });
        named.collect()
    }

    /// Goes on from a state.
    pub fn restore(&mut self, parameters: &Parameters, steps: u64, state: &BTreeMap<String, Tensor>) -> Result<()> {
        let find = |name: String, target: &Var| -> Result<()> {
            let value =
                state.get(&name).ok_or_else(|| Error::Config(format!("the optimizer's state has no `{name}`")))?;
            Ok(target.set(&value.to_device(&device_of(target))?)?)
        };
        for (parameter, (mean, square)) in parameters.iter().zip(&self.moments) {
            find(format!("{}.mean", parameter.name()), mean)?;
            find(format!("{}.square", parameter.name()), square)?;
        }
        self.steps = steps;
        Ok(())
    }
}

fn device_of(var: &Var) -> Device {
    var.device().clone()
}
