//! AdamW with clipping by the global norm.
//!
//! g ← g · min(1, clip/‖g‖),  m ← β₁m + (1−β₁)g,  v ← β₂v + (1−β₂)g²,
//! w ← w·(1 − rate·decay) − rate·m̂/(√v̂ + ε), with m̂ = m/(1−β₁ᵗ), v̂ = v/(1−β₂ᵗ). Decay is for matrices only: biases, norms
//! and embeddings of one dimension have none. Masters and moments are f32, whatever the precision of the gradients.
//!
//! Fused, a step is two passes over all weights (the norm, the update), which write the working copies too: on CUDA two
//! launches whatever the number of tensors, and the norm never leaves the device.

use std::collections::BTreeMap;

use candle_core::{DType, Device, Tensor, Var};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::ops::Form;
use crate::ops::update::{self, Rule};
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
    /// Fused or composed operations.
    pub form: Form,
}

impl Default for AdamWConfig {
    fn default() -> Self {
        AdamWConfig { beta_1: 0.9, beta_2: 0.95, epsilon: 1e-8, weight_decay: 0.01, clip: 1.0, form: Form::Fused }
    }
}

/// The optimizer and its moments.
pub struct AdamW {
    config: AdamWConfig,
    steps: u64,
    moments: Vec<(Var, Var)>,
    plan: update::Plan,
}

impl AdamW {
    /// Moments at zero.
    pub fn new(parameters: &Parameters, config: AdamWConfig) -> Result<AdamW> {
        let zeros = |shape: &[usize]| Var::zeros(shape, DType::F32, parameters.device());
        let moments: std::result::Result<_, candle_core::Error> =
            parameters.iter().map(|one| Ok((zeros(one.master().dims())?, zeros(one.master().dims())?))).collect();
        Ok(AdamW { config, steps: 0, moments: moments?, plan: update::Plan::default() })
    }

    /// One step with gradients in the order of the parameters; those without one stay as they are. Returns the norm of all
    /// gradients before clipping, as a scalar on the device: reading it waits for the device.
    pub fn step(&mut self, parameters: &Parameters, gradients: &[Option<Tensor>], rate: f64) -> Result<Tensor> {
        let AdamWConfig { beta_1, beta_2, epsilon, weight_decay, clip, form } = self.config;
        self.steps += 1;
        let correction = |beta: f64| 1.0 / (1.0 - beta.powf(self.steps as f64));
        let (correction_1, correction_2) = (correction(beta_1), correction(beta_2));
        let rule = Rule { rate, beta_1, beta_2, epsilon, correction_1, correction_2, clip };
        let contiguous: std::result::Result<Vec<Option<Tensor>>, candle_core::Error> =
            gradients.iter().map(|gradient| gradient.as_ref().map(Tensor::contiguous).transpose()).collect();
        let gradients = contiguous?;
        let mut updates = Vec::with_capacity(self.moments.len());
        for ((parameter, gradient), (mean, square)) in parameters.iter().zip(&gradients).zip(&self.moments) {
            let Some(gradient) = gradient else { continue };
            let master = parameter.master();
            if gradient.dims() != master.dims() {
                let found = gradient.dims();
                return Err(Error::Config(format!("the gradient of `{}` is {found:?}", parameter.name())));
            }
            let decay = if master.rank() >= 2 { weight_decay } else { 0.0 };
            updates.push(parameter.update((mean, square), gradient, decay));
        }
        let fused = form == Form::Fused && !matches!(parameters.device(), Device::Metal(_));
        Ok(if fused { update::fused(&mut self.plan, &updates, rule)? } else { update::composed(&updates, rule)? })
    }

    /// Steps taken.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The moments by name, `<parameter>.mean` and `<parameter>.square`.
    pub fn state(&self, parameters: &Parameters) -> BTreeMap<String, Tensor> {
        let named = parameters.iter().zip(&self.moments).flat_map(|(parameter, (mean, square))| {
            let name = |kind: &str| format!("{}.{kind}", parameter.name());
            [(name("mean"), mean.as_detached_tensor()), (name("square"), square.as_detached_tensor())]
        });
        named.collect()
    }

    /// Goes on from a state.
    pub fn restore(&mut self, parameters: &Parameters, steps: u64, state: &BTreeMap<String, Tensor>) -> Result<()> {
        let find = |name: String, target: &Var| -> Result<()> {
            let value = state.get(&name);
            let value = value.ok_or_else(|| Error::Config(format!("the optimizer's state has no `{name}`")))?;
            Ok(target.set(&value.to_device(target.device())?)?)
        };
        for (parameter, (mean, square)) in parameters.iter().zip(&self.moments) {
            find(format!("{}.mean", parameter.name()), mean)?;
            find(format!("{}.square", parameter.name()), square)?;
        }
        self.steps = steps;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{distance, random};
    use crate::parameters::{Init, Precision};

    #[test]
    fn fused_equals_composed() {
        let [fused, composed] = [Form::Fused, Form::Composed].map(|form| {
            let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 5);
            for (name, shape) in [("a", vec![130, 70]), ("b", vec![70]), ("c", vec![3, 4, 5])] {
                parameters.root().weight(name, &shape, Init::Normal(1.0)).unwrap();
            }
            let mut optimizer = AdamW::new(&parameters, AdamWConfig { form, ..AdamWConfig::default() }).unwrap();
            let mut norms = Vec::new();
            for step in 0..5_u64 {
                // Clipped at first, then not; one weight has no gradient for a while.
                let scale = 10.0_f64.powi(-(step as i32));
                let gradient = |(at, one): (usize, &crate::Parameter)| {
                    let drawn = (random(one.master().dims(), 10 * step + at as u64) * scale).unwrap();
                    (at != 1 || step > 1).then_some(drawn)
                };
                let gradients: Vec<Option<Tensor>> = parameters.iter().enumerate().map(gradient).collect();
                norms.push(optimizer.step(&parameters, &gradients, 1e-2).unwrap().to_scalar::<f32>().unwrap());
            }
            (parameters.masters(), optimizer.state(&parameters), norms)
        });
        for (name, value) in &fused.0 {
            assert!(distance(value, &composed.0[name]) < 1e-6, "{name}");
        }
        for (name, value) in &fused.1 {
            assert!(distance(value, &composed.1[name]) < 1e-5, "{name}");
        }
        for (fused, composed) in fused.2.iter().zip(&composed.2) {
            assert!((fused / composed - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn a_gradient_that_is_not_finite_shows_in_the_norm() {
        for form in [Form::Fused, Form::Composed] {
            let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 5);
            parameters.root().weight("a", &[4], Init::Ones).unwrap();
            let mut optimizer = AdamW::new(&parameters, AdamWConfig { form, ..AdamWConfig::default() }).unwrap();
            let gradient = Tensor::from_vec(vec![1.0_f32, f32::NAN, 0.0, 0.0], 4, &Device::Cpu).unwrap();
            let norm = optimizer.step(&parameters, &[Some(gradient)], 1e-2).unwrap().to_scalar::<f32>().unwrap();
            assert!(norm.is_nan());
        }
    }
}
