//! An exponential mean of the weights: e ← e + (1 − d)·(w − e) after each step, in which a weight that stays is its own
//! mean, to the bit.
//!
//! d = min(decay, (1 + t)/(10 + t)) with t steps taken, so that the first weights, which are noise, are soon forgotten.

use std::collections::BTreeMap;

use candle_core::{DType, Tensor, Var};

use crate::error::{Error, Result};
use crate::parameters::Parameters;

/// The mean, in f32 where the weights are.
pub struct Ema {
    decay: f64,
    means: Vec<Var>,
}

impl Ema {
    /// Starts at the weights.
    pub fn new(parameters: &Parameters, decay: f64) -> Result<Ema> {
        let copy = |master: &Tensor| Ok(Var::from_tensor(&master.detach().copy()?)?);
        let means: Result<_> = parameters.iter().map(|one| copy(one.master().as_tensor())).collect();
        Ok(Ema { decay, means: means? })
    }

    /// After step `steps`, counted from one.
    pub fn update(&mut self, parameters: &Parameters, steps: u64) -> Result<()> {
        let decay = decay(self.decay, steps);
        for (parameter, mean) in parameters.iter().zip(&self.means) {
            let weight = parameter.master().as_detached_tensor();
            let mean_so_far = mean.as_detached_tensor();
            mean.set(&(&mean_so_far + ((weight - &mean_so_far)? * (1.0 - decay))?)?)?;
        }
        Ok(())
    }

    /// The means by the names of the parameters.
    pub fn state(&self, parameters: &Parameters) -> BTreeMap<String, Tensor> {
        let named =
            |(parameter, mean): (&crate::Parameter, &Var)| (parameter.name().to_owned(), mean.as_detached_tensor());
        parameters.iter().zip(&self.means).map(named).collect()
    }

    /// Goes on from a state.
    pub fn restore(&mut self, parameters: &Parameters, state: &BTreeMap<String, Tensor>) -> Result<()> {
        for (parameter, mean) in parameters.iter().zip(&self.means) {
            let name = parameter.name();
            let value = state.get(name).ok_or_else(|| Error::Config(format!("no mean of `{name}`")))?;
            mean.set(&value.to_device(mean.device())?.to_dtype(DType::F32)?)?;
        }
        Ok(())
    }
}

fn decay(most: f64, steps: u64) -> f64 {
    most.min((1.0 + steps as f64) / (10.0 + steps as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Precision;
    use crate::parameters::Init;
    use candle_core::Device;

    #[test]
    fn follows_the_weights_by_the_formula() {
        let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 0);
        let weight = parameters.root().weight("w", &[2], Init::Ones).unwrap();
        let mut ema = Ema::new(&parameters, 0.9).unwrap();
        let mut wanted = 1.0_f64;
        for step in 1..=200_u64 {
            let value = step as f32;
            weight.master().set(&Tensor::new(&[value, value], &Device::Cpu).unwrap()).unwrap();
            ema.update(&parameters, step).unwrap();
            let d = 0.9_f64.min((1.0 + step as f64) / (10.0 + step as f64));
            wanted = d * wanted + (1.0 - d) * f64::from(value);
            let found = ema.state(&parameters)["w"].to_vec1::<f32>().unwrap();
            assert!((f64::from(found[0]) - wanted).abs() < 1e-4 * wanted, "step {step}: {found:?}, wanted {wanted}");
        }
        // The mean trails a line by d/(1 − d) steps.
        assert!((wanted - (200.0 - 9.0)).abs() < 1e-2, "{wanted}");
    }
}
