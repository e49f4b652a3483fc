//! The amortizer k_χ: one pass over a fragment gives a point, and distances between points stand for behavioural distance
//! (paper §3.2).
//!
//! token_t = W·[s_t, a_t] + b (+ W_x·x_t + b_x with vision) + time_t → bidirectional pre-norm Transformer → mean over tokens
//! → linear → unit length. Pairwise D is then 1 − ⟨k_χ(τ), k_χ(τ')⟩ ([`crate::kernel::cosine_distances`]).
//!
//! **Beyond the paper**, an amortizer with a [`Metric`] is trained on D_φ itself ([`Supervision::Kernel`]):
//! ‖k_χ(τ) − k_χ(τ')‖ reproduces D_φ(τ, τ') in its own unit ([`crate::kernel::euclidean_distances`]). Three things differ:
//! - The embedding keeps its length. On the unit sphere no distance exceeds 2, and D_φ has no such bound.
//! - A token carries the action alone, token_t = W·a_t + b. D_φ inserts the actions of a fragment at fixed starts, so it does
//!   not depend on the states that the fragment was recorded at; whatever a student read off them would be a coincidence of
//!   the training episodes. Visual features are irrelevant for the same reason, but stay optional.
//! - A linear function of all actions is added to the embedding ([`AmortizerConfig::linear`]), so windows have `horizon` steps,
//!   not fewer.
//!
//! 256 × 3 layers with 8 heads are 2 394 432 weights at S = 8, A = 7, the paper's "2.4 M"; the paper gives the sum only, so
//! width, depth and the pooling are ours. So is the variant that sees: the paper's k_χ has states and actions alone.

mod config;
mod supervision;
#[cfg(test)]
mod tests;

use candle_core::{D, DType, Tensor};

pub use config::{AmortizerConfig, Metric, PRESETS};
pub use supervision::{Supervision, Target, loss};

use crate::contrast::normalize;
use crate::error::{Error, Result};
use crate::fragments::FragmentBatch;
use crate::layers::Linear;
use crate::ops::without_gradients;
use crate::parameters::{Init, Parameter, Scope};
use crate::transformer::{Transformer, TransformerConfig};
use crate::widths::Widths;

/// A Transformer from windows to points: unit vectors, or with a metric points at the distances of D_φ.
#[derive(Clone, Debug)]
pub struct Amortizer {
    config: AmortizerConfig,
    widths: Widths,
    token: Linear,
    vision: Option<Linear>,
    time: Parameter,
    transformer: Transformer,
    head: Linear,
    /// From all actions of a window to the embedding, with a metric.
    linear: Option<Linear>,
}

impl Amortizer {
    /// Adds its weights to a scope: `token`, `vision` if it sees, `time`, `transformer`, `head`, and with a metric `linear`.
    pub fn new(scope: &mut Scope<'_>, config: AmortizerConfig, widths: Widths) -> Result<Amortizer> {
        config.validate()?;
        let AmortizerConfig { width, layers, heads, embedding, horizon, vision, form, .. } = config;
        let Widths { features, states, actions } = widths;
        let motion = if config.metric.is_some() { actions } else { states + actions };
        if motion == 0 || (vision && features == 0) {
            return Err(Error::Config(format!(
                "a dataset with {states} numbers of state, {actions} of action and {features} features a step has nothing \
                 for the amortizer; `vision` needs features, which `features` makes from pictures"
            )));
        }
        // As PyTorch's linear layers start: with deviations of 0.02 as inside the blocks, tokens of a few numbers each
        // would hardly differ beside the time embedding.
        let linear = |scope: &mut Scope<'_>, name: &str, inputs: usize, outputs: usize| {
            Linear::with_init(&mut scope.enter(name), inputs, outputs, Init::FanIn(inputs), form)
        };
        let is_linear = config.metric.is_some() && config.linear;
        Ok(Amortizer {
            config,
            widths,
            token: linear(scope, "token", motion, width)?,
            vision: vision.then(|| linear(scope, "vision", features, width)).transpose()?,
            time: scope.weight("time", &[horizon, width], Init::Normal(0.02))?,
            transformer: Transformer::new(
                &mut scope.enter("transformer"),
                TransformerConfig { width, layers, heads, causal: false, form },
            )?,
            head: linear(scope, "head", width, embedding)?,
            linear: is_linear.then(|| linear(scope, "linear", horizon * actions, embedding)).transpose()?,
        })
    }

    /// Its shape.
    pub fn config(&self) -> AmortizerConfig {
        self.config
    }

    /// The widths of what it sees.
    pub fn widths(&self) -> Widths {
        self.widths
    }

    /// Points, with gradients: unit vectors, or with a metric vectors whose Euclidean distances are in units of D_φ.
    ///
    /// # Shapes
    /// Fragments of T ≤ `horizon` steps; gives `[B, embedding]` in f32. With a metric, states are not read.
    pub fn embed(&self, fragments: &FragmentBatch) -> Result<Tensor> {
        let (_, _, states) = fragments.states.dims3()?;
        let (_, steps, actions) = fragments.actions.dims3()?;
        let (_, _, features) = fragments.features.dims3()?;
        self.check(steps, Widths { features, states, actions })?;
        let precision = self.time.dtype();
        let read = |x: &Tensor| -> Result<Tensor> { Ok(x.to_dtype(precision)?.contiguous()?) };
        let motion = match self.config.metric {
            None => Tensor::cat(&[&fragments.states, &fragments.actions], D::Minus1)?,
            Some(_) => fragments.actions.clone(),
        };
        let mut tokens = self.token.forward(&read(&motion)?)?; // [B, T, width]
        if let Some(vision) = &self.vision {
            tokens = (tokens + vision.forward(&read(&fragments.features)?)?)?;
        }
        let tokens = tokens.broadcast_add(&self.time.tracked()?.narrow(0, 0, steps)?)?;
        let seen = self.transformer.forward(&tokens)?.to_dtype(DType::F32)?.mean(1)?; // [B, width]
        let mut point = self.head.forward(&seen.to_dtype(precision)?)?; // [B, embedding]
        if let Some(linear) = &self.linear {
            point = (point + linear.forward(&read(&fragments.actions.flatten_from(1)?)?)?)?;
        }
        match self.config.metric {
            None => normalize(&point),
            Some(Metric { scale, .. }) => Ok((point.to_dtype(DType::F32)? * scale)?),
        }
    }

    /// Embeds any number of fragments in the memory of one batch: each is taken, embedded and handed on before the next is
    /// asked for. The sink gets the rows of a batch, `embedding` numbers each.
    pub fn embed_stream(
        &self,
        batches: impl IntoIterator<Item = Result<FragmentBatch>>,
        sink: &mut dyn FnMut(&[f32]) -> Result<()>,
    ) -> Result<()> {
        for batch in batches {
            let batch = batch?;
            let rows = without_gradients(|| self.embed(&batch))?.flatten_all()?.to_vec1::<f32>()?;
            sink(&rows)?;
        }
        Ok(())
    }

    /// Features and states may be anything where they are not read.
    fn check(&self, steps: usize, found: Widths) -> Result<()> {
        let horizon = self.config.horizon;
        if steps == 0 || steps > horizon {
            return Err(Error::Config(format!(
                "fragments of {steps} steps for an amortizer of {horizon}; set its `horizon` to the fragments' length"
            )));
        }
        if self.linear.is_some() && steps != horizon {
            return Err(Error::Config(format!(
                "windows of {steps} steps for an amortizer that was trained on the kernel over {horizon}; cut or fill them"
            )));
        }
        let mut wanted = self.widths;
        if !self.config.vision {
            wanted.features = found.features;
        }
        if self.config.metric.is_some() {
            wanted.states = found.states;
        }
        if found != wanted {
            let say = |Widths { features, states, actions }| {
                format!("{features} features, {states} numbers of state and {actions} of action a step")
            };
            return Err(Error::Config(format!("fragments have {}, the amortizer is for {}", say(found), say(wanted))));
        }
        Ok(())
    }
}
