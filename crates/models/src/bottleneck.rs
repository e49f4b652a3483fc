//! A variational bottleneck over vectors: the mechanism alternatives "VAE-64" and "VIB" of the paper's supplement.
//!
//! ```text
//! q(z given x) = N(μ(x), σ²(x)) ,   loss = mean (y(z) − t)² + β · KL(q ‖ N(0, 1)) / |t|
//! ```
//! With t = x it is a variational autoencoder (Kingma & Welling 2014). With another target it is the variational
//! information bottleneck (Alemi et al. 2017) for a Gaussian target of unit variance: z keeps of x what predicts t. The
//! paper gives neither sizes nor β; ours are in [`BottleneckConfig`].

use candle_core::Tensor;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::layers::Linear;
use crate::ops::{Form, without_gradients};
use crate::parameters::{Init, Scope};

/// The shape of a bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BottleneckConfig {
    /// Numbers of z (paper: 64).
    pub latent: usize,
    /// Units of the hidden layer of encoder and decoder (ours).
    pub hidden: usize,
    /// β, the weight of the divergence (ours).
    pub beta: f64,
}

impl Default for BottleneckConfig {
    fn default() -> Self {
        BottleneckConfig { latent: 64, hidden: 256, beta: 0.1 }
    }
}

/// An encoder to a Gaussian, and a decoder from samples of it.
#[derive(Clone, Debug)]
pub struct Bottleneck {
    config: BottleneckConfig,
    encoder: [Linear; 2],
    decoder: [Linear; 2],
}

/// The terms of the loss, scalars.
#[derive(Clone, Debug)]
pub struct BottleneckLosses {
    /// The mean squared error of the target.
    pub error: Tensor,
    /// Nats of q(z given x) from the standard normal distribution.
    pub kl: Tensor,
    /// Their weighted sum.
    pub total: Tensor,
}

impl Bottleneck {
    /// Adds its weights to a scope: `encoder.{hidden, out}` and `decoder.{hidden, out}`.
    pub fn new(
        scope: &mut Scope<'_>,
        config: BottleneckConfig,
        inputs: usize,
        outputs: usize,
        form: Form,
    ) -> Result<Bottleneck> {
        let BottleneckConfig { latent, hidden, beta } = config;
        if latent * hidden * inputs * outputs == 0 || !(beta >= 0.0 && beta.is_finite()) {
            return Err(Error::Config(format!(
                "a bottleneck from {inputs} numbers over {latent} to {outputs} with {hidden} hidden units and β = {beta}; \
                 expected 1 or more of each, and β of 0 or more"
            )));
        }
        let mut linear =
            |name: &str, from, to| Linear::with_init(&mut scope.enter(name), from, to, Init::FanIn(from), form);
        Ok(Bottleneck {
            config,
            encoder: [linear("encoder.hidden", inputs, hidden)?, linear("encoder.out", hidden, 2 * latent)?],
            decoder: [linear("decoder.hidden", latent, hidden)?, linear("decoder.out", hidden, outputs)?],
        })
    }

    /// μ and ln σ².
    ///
    /// # Shapes
    /// `inputs`: `[B, inputs]`, f32; gives `[B, latent]` twice.
    fn posterior(&self, inputs: &Tensor) -> Result<(Tensor, Tensor)> {
        let [hidden, out] = &self.encoder;
        let raw = out.forward(&hidden.forward_gelu(inputs)?)?;
        let latent = self.config.latent;
        // Beyond ±8 a variance is as good as zero or infinite, and its exponential overflows.
        Ok((raw.narrow(1, 0, latent)?.contiguous()?, raw.narrow(1, latent, latent)?.clamp(-8.0, 8.0)?))
    }

    /// μ(x), without gradients.
    ///
    /// # Shapes
    /// As the posterior's.
    pub fn encode(&self, inputs: &Tensor) -> Result<Tensor> {
        without_gradients(|| Ok(self.posterior(inputs)?.0))
    }

    /// All terms of the loss.
    ///
    /// # Shapes
    /// `inputs`: `[B, inputs]`, `targets`: `[B, outputs]`, `noise`: `[B, latent]`, standard normal; all f32.
    pub fn loss(&self, inputs: &Tensor, targets: &Tensor, noise: &Tensor) -> Result<BottleneckLosses> {
        let (mean, log_variance) = self.posterior(inputs)?;
        let sample = (&mean + ((&log_variance / 2.0)?.exp()? * noise)?)?;
        let [hidden, out] = &self.decoder;
        let decoded = out.forward(&hidden.forward_gelu(&sample.contiguous()?)?)?;
        let error = (decoded - targets)?.sqr()?.mean_all()?;
        let nats = (((mean.sqr()? + log_variance.exp()?)? - &log_variance)? - 1.0)?;
        let kl = (nats.sum(1)?.mean_all()? / 2.0)?;
        let (_, outputs) = targets.dims2()?;
        let total = (&error + (&kl * (self.config.beta / outputs as f64))?)?;
        Ok(BottleneckLosses { error, kl, total })
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::parameters::{Parameters, Precision};
    use crate::training::adamw::{AdamW, AdamWConfig};

    fn rows(count: usize, width: usize, of: impl Fn(usize, usize) -> f32) -> Tensor {
        let values: Vec<f32> = (0..count * width).map(|at| of(at / width, at % width)).collect();
        Tensor::from_vec(values, (count, width), &Device::Cpu).unwrap()
    }

    fn trained(beta: f64) -> (Bottleneck, BottleneckLosses) {
        let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 0);
        let config = BottleneckConfig { latent: 2, hidden: 16, beta };
        let model = Bottleneck::new(&mut parameters.root(), config, 6, 6, Form::default()).unwrap();
        // Six numbers that are two in truth.
        let of = |row: usize, column: usize| {
            let (one, other) = ((row % 8) as f32 / 4.0 - 1.0, (row / 8) as f32 / 4.0 - 1.0);
            if column.is_multiple_of(2) { one * (1 + column) as f32 / 3.0 } else { other }
        };
        let inputs = rows(64, 6, of);
        let noise = rows(64, 2, |row, column| ((row * 37 + column * 11) % 17) as f32 / 8.0 - 1.0);
        let mut optimizer = AdamW::new(&parameters, AdamWConfig { weight_decay: 0.0, ..Default::default() }).unwrap();
        let mut losses = model.loss(&inputs, &inputs, &noise).unwrap();
        for _ in 0..300 {
            let gradients = parameters.gradients(&losses.total.backward().unwrap()).unwrap();
            optimizer.step(&parameters, &gradients, 1e-2).unwrap();
            losses = model.loss(&inputs, &inputs, &noise).unwrap();
        }
        (model, losses)
    }

    #[test]
    fn it_keeps_what_it_must_and_a_large_beta_leaves_nothing() {
        let value = |tensor: &Tensor| tensor.to_scalar::<f32>().unwrap();
        let (_, free) = trained(1e-4);
        let (model, tight) = trained(1e3);
        assert!(value(&free.error) < 0.05, "{:?}", value(&free.error));
        assert!(value(&free.kl) > 1.0 && value(&tight.kl) < 0.01, "{} {}", value(&free.kl), value(&tight.kl));
        assert!(value(&tight.error) > 4.0 * value(&free.error));
        let same = model.encode(&rows(3, 6, |_, column| column as f32)).unwrap().to_vec2::<f32>().unwrap();
        assert!(same[0] == same[1] && same[0].len() == 2);
    }

    #[test]
    fn impossible_shapes_are_refused() {
        let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 0);
        let config = BottleneckConfig { latent: 0, ..BottleneckConfig::default() };
        let error = Bottleneck::new(&mut parameters.root(), config, 3, 3, Form::default()).unwrap_err().to_string();
        assert!(error.contains("over 0 to 3"), "{error}");
    }
}
