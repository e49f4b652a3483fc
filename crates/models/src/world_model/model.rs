//! The weights of M_φ and its passes over fragments.

use candle_core::{D, DType, Device, Tensor};

use super::config::{RETURN_HIDDEN, WorldModelConfig};
use super::gaussian::Gaussian;
use crate::error::{Error, Result};
use crate::fragments::FragmentBatch;
use crate::layers::Linear;
use crate::parameters::{Init, Parameter, Scope};
use crate::transformer::{Transformer, TransformerConfig};
use crate::widths::Widths;

/// Tokens of a step without features: state, action. Features come before them, where there are any.
const BLIND: usize = 2;

/// M_φ.
#[derive(Clone, Debug)]
pub struct WorldModel {
    pub(super) config: WorldModelConfig,
    pub(super) widths: Widths,
    /// None for a dataset without cameras.
    image: Option<Linear>,
    state: Linear,
    action: Linear,
    modality: Parameter,
    time: Parameter,
    pub(super) start: Parameter,
    pub(super) transformer: Transformer,
    posterior: Linear,
    pub(super) prior: Linear,
    pub(super) decoder_hidden: Linear,
    /// None for a dataset without cameras.
    pub(super) decoder_features: Option<Linear>,
    pub(super) decoder_states: Linear,
    pub(super) returns: Option<(Linear, Linear)>,
    pub(super) projection: Option<Linear>,
}

/// What one pass over a batch of fragments gives; all f32.
#[derive(Clone, Debug)]
pub struct Outputs {
    /// q(z_t given x_t, h_{t−1}), `[B, T, d_z]`
    pub posterior: Gaussian,
    /// p(z_t given h_{t−1}), `[B, T, d_z]`
    pub prior: Gaussian,
    /// z_t ~ q, `[B, T, d_z]`
    pub latents: Tensor,
    /// x̂_t, `[B, T, F]`
    pub features: Tensor,
    /// ŝ_t, `[B, T, S]`
    pub states: Tensor,
    /// (r̂_t, Ĝ_t), `[B, T]` each, with a return head.
    pub returns: Option<(Tensor, Tensor)>,
}

impl WorldModel {
    /// Adds its weights to a scope.
    pub fn new(scope: &mut Scope<'_>, config: &WorldModelConfig, widths: Widths) -> Result<WorldModel> {
        config.validate()?;
        let Widths { features, states, actions } = widths;
        for (what, width) in [("states", states), ("actions", actions)] {
            if width == 0 {
                return Err(Error::Config(format!("the world model needs {what}, and this dataset has none")));
            }
        }
        let &WorldModelConfig { width, layers, heads, form, latent, decoder_hidden: hidden, .. } = config;
        let normal = Init::Normal(0.02);
        let mut linear = |name: &str, inputs, outputs| Linear::new(&mut scope.enter(name), inputs, outputs, form);
        let sees = features > 0;
        let (image, state, action) = (
            sees.then(|| linear("image", features, width)).transpose()?,
            linear("state", config.waves_width(states), width)?,
            linear("action", config.waves_width(actions), width)?,
        );
        let (posterior, prior) = (linear("posterior", width, 2 * latent)?, linear("prior", width, 2 * latent)?);
        let decoder_hidden = linear("decoder.hidden", latent, hidden)?;
        let decoder_features = sees.then(|| linear("decoder.features", hidden, features)).transpose()?;
        let decoder_states = linear("decoder.states", hidden, states)?;
        let returns = match config.returns {
            true => Some((linear("returns.hidden", width, RETURN_HIDDEN)?, linear("returns.out", RETURN_HIDDEN, 2)?)),
            false => None,
        };
        let projection = config.projection.map(|outputs| linear("projection", latent, outputs)).transpose()?;
        let transformer = TransformerConfig { width, layers, heads, causal: true, form };
        Ok(WorldModel {
            config: config.clone(),
            widths,
            image,
            state,
            action,
            modality: scope.weight("modality", &[BLIND + usize::from(sees), width], normal)?,
            time: scope.weight("time", &[config.horizon, width], normal)?,
            start: scope.weight("start", &[width], normal)?,
            transformer: Transformer::new(&mut scope.enter("transformer"), transformer)?,
            posterior,
            prior,
            decoder_hidden,
            decoder_features,
            decoder_states,
            returns,
            projection,
        })
    }

    /// Its settings.
    pub fn config(&self) -> &WorldModelConfig {
        &self.config
    }

    /// The widths of what it sees.
    pub fn widths(&self) -> Widths {
        self.widths
    }

    /// Tokens of a step: features if there are any, state, action.
    fn modalities(&self) -> usize {
        BLIND + usize::from(self.image.is_some())
    }

    /// All that the loss needs of a batch.
    ///
    /// # Shapes
    /// `noise`: `[B, T, d_z]`, standard normal, f32.
    pub fn forward(&self, batch: &FragmentBatch, noise: &Tensor) -> Result<Outputs> {
        let (posterior, actions) = self.read(batch)?;
        let posterior = Gaussian::from_raw(&self.posterior.forward(&posterior)?)?;
        let (fragments, steps, _) = actions.dims3()?;
        let first = self.repeated(&self.start.tracked()?, fragments)?.unsqueeze(1)?;
        let before = match steps {
            1 => first,
            _ => Tensor::cat(&[&first, &actions.narrow(1, 0, steps - 1)?], 1)?,
        };
        let prior = self.expect(&before)?;
        let latents = posterior.sample(noise)?;
        let (features, states) = self.decode(&latents)?;
        let returns = self.returns(&actions)?;
        Ok(Outputs { posterior, prior, latents, features, states, returns })
    }

    /// The vector that stands for a fragment: the mean of the posterior at its last step, without gradients.
    ///
    /// # Shapes
    /// `[B, d_z]`, f32.
    pub fn encode_fragment(&self, batch: &FragmentBatch) -> Result<Tensor> {
        let (states, _) = self.read(batch)?;
        let (_, steps, _) = states.dims3()?;
        let last = states.detach().narrow(1, steps - 1, 1)?.squeeze(1)?.contiguous()?;
        Ok(Gaussian::from_raw(&self.posterior.forward(&last)?)?.mean.contiguous()?.detach())
    }

    /// The activations that the posterior of the last step is read from, h at `state_t`, without gradients: what the world
    /// model makes of a fragment before its bottleneck.
    ///
    /// # Shapes
    /// `[B, width]`, f32.
    pub fn activations(&self, batch: &FragmentBatch) -> Result<Tensor> {
        let (states, _) = self.read(batch)?;
        let (_, steps, _) = states.dims3()?;
        Ok(states.detach().narrow(1, steps - 1, 1)?.squeeze(1)?.to_dtype(DType::F32)?.contiguous()?)
    }

    /// The tokens of some steps, of which the first is step `from`.
    ///
    /// # Shapes
    /// `features`: `[B, T, F]`, `states`: `[B, T, S]`, `actions`: `[B, T, A]`; gives `[B, 3·T, width]`, or `[B, 2·T, width]`
    /// without features.
    pub(super) fn tokens(&self, features: &Tensor, states: &Tensor, actions: &Tensor, from: usize) -> Result<Tensor> {
        let (fragments, steps, _) = states.dims3()?;
        let (width, modalities) = (self.config.width, self.modalities());
        if from + steps > self.config.horizon {
            let (wanted, horizon) = (from + steps, self.config.horizon);
            return Err(Error::Config(format!(
                "{wanted} steps are more than the world model's `horizon` of {horizon}; shorten the fragments or raise it"
            )));
        }
        let dtype = self.start.dtype();
        let (states, actions) = (self.waves(states)?, self.waves(actions)?);
        let seen = self.image.iter().map(|image| (image, features));
        let inputs = seen.chain([(&self.state, &states), (&self.action, &actions)]);
        let read = inputs.map(|(linear, values)| linear.forward(&values.to_dtype(dtype)?.contiguous()?));
        // [B, T, modalities, width], all of a fragment in one row.
        let tokens = Tensor::stack(&read.collect::<Result<Vec<_>>>()?, 2)?;
        let tokens = tokens.reshape((fragments, steps * modalities * width))?;
        let time = self.time.tracked_f32().narrow(0, from, steps)?.unsqueeze(1)?;
        let embedding = time.broadcast_add(&self.modality.tracked_f32().unsqueeze(0)?)?.to_dtype(dtype)?;
        let tokens = (tokens + self.repeated(&embedding, fragments)?)?;
        Ok(tokens.reshape((fragments, steps * modalities, width))?)
    }

    /// States or actions as they are read: x, sin 2x, cos 2x, … sin 2ⁿx, cos 2ⁿx, with n = `frequencies`.
    ///
    /// # Shapes
    /// `values`: `[…, d]`; gives `[…, d·(1 + 2n)]`.
    pub(super) fn waves(&self, values: &Tensor) -> Result<Tensor> {
        let mut parts = vec![values.clone()];
        for octave in 1..=self.config.frequencies {
            let phase = (values * f64::from(1_u32 << octave))?;
            parts.extend([phase.sin()?, phase.cos()?]);
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Tensor::cat(&parts, D::Minus1)? })
    }

    /// The prior from h.
    ///
    /// # Shapes
    /// `h`: `[…, width]`; gives `[…, d_z]`.
    pub(super) fn expect(&self, h: &Tensor) -> Result<Gaussian> {
        Gaussian::from_raw(&self.prior.forward(&h.contiguous()?)?)
    }

    /// x̂ and ŝ from z.
    ///
    /// # Shapes
    /// `latents`: `[…, d_z]`; gives `[…, F]` and `[…, S]`, f32. Without cameras F is zero, and the first tensor is on the CPU.
    pub(super) fn decode(&self, latents: &Tensor) -> Result<(Tensor, Tensor)> {
        let latents = latents.to_dtype(self.start.dtype())?.contiguous()?;
        let hidden = self.decoder_hidden.forward_gelu(&latents)?;
        let features = match &self.decoder_features {
            Some(linear) => linear.forward(&hidden)?.to_dtype(DType::F32)?,
            None => {
                let mut shape = latents.dims().to_vec();
                shape.last_mut().into_iter().for_each(|width| *width = 0);
                Tensor::zeros(shape, DType::F32, &Device::Cpu)?
            }
        };
        Ok((features, self.decoder_states.forward(&hidden)?.to_dtype(DType::F32)?))
    }

    /// r̂ and Ĝ from h.
    ///
    /// # Shapes
    /// `h`: `[…, width]`; gives `[…]` twice, f32.
    pub(super) fn returns(&self, h: &Tensor) -> Result<Option<(Tensor, Tensor)>> {
        let Some((hidden, out)) = &self.returns else { return Ok(None) };
        let both = out.forward(&hidden.forward_gelu(&h.contiguous()?)?)?.to_dtype(DType::F32)?;
        let last = both.rank() - 1;
        let scaled = |place: usize, scale: f64| -> Result<Tensor> {
            let one = both.narrow(last, place, 1)?.squeeze(last)?;
            Ok(if scale == 1.0 { one } else { (one * scale)? })
        };
        Ok(Some((scaled(0, self.config.reward_scale)?, scaled(1, self.config.return_scale)?)))
    }

    /// What the contrastive term compares: z_T or its projection, of length one.
    ///
    /// # Shapes
    /// `posterior`: `[B, T, d_z]`; gives `[B, d]`, f32.
    pub(super) fn embed(&self, posterior: &Gaussian) -> Result<Tensor> {
        let (_, steps, _) = posterior.mean.dims3()?;
        let last = posterior.mean.narrow(1, steps - 1, 1)?.squeeze(1)?.contiguous()?;
        let projected = match &self.projection {
            None => last,
            Some(linear) => linear.forward(&last.to_dtype(self.start.dtype())?)?.to_dtype(DType::F32)?,
        };
        // As in PyTorch's `normalize`, but smooth: a vector of zeros stays one.
        let length = (projected.sqr()?.sum_keepdim(1)? + 1e-12)?.sqrt()?;
        Ok(projected.broadcast_div(&length)?)
    }

    /// The outputs at `state_t` and at `action_t`.
    ///
    /// # Shapes
    /// `[B, T, width]` each.
    fn read(&self, batch: &FragmentBatch) -> Result<(Tensor, Tensor)> {
        let (fragments, steps, _) = batch.states.dims3()?;
        let tokens = self.tokens(&batch.features, &batch.states, &batch.actions, 0)?;
        let outputs = self.transformer.forward(&tokens)?;
        let modalities = self.modalities();
        let outputs = outputs.reshape((fragments, steps, modalities, self.config.width))?;
        let at = |modality: usize| outputs.narrow(2, modality, 1)?.squeeze(2)?.contiguous();
        Ok((at(modalities - 2)?, at(modalities - 1)?))
    }

    /// The same numbers in each row. A product with a column of ones, because its backward pass is a product too: summing
    /// rows is what Candle does slowest on a GPU.
    ///
    /// # Shapes
    /// `values`: n numbers; gives `[rows, n]`.
    fn repeated(&self, values: &Tensor, rows: usize) -> Result<Tensor> {
        let ones = Tensor::ones((rows, 1), values.dtype(), values.device())?;
        Ok(ones.matmul(&values.reshape((1, values.elem_count()))?)?)
    }
}
