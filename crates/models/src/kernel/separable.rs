//! `separable_vpk`: D_φ with two small networks on z in the place of rollouts (paper §3.2, "Two-mode implementation").
//!
//! D(τ, τ') = w_R·|V(z) − V(z')| + w_E·‖f^k(z) − f^k(z')‖ , with `VHead` V: z → 1 and `LatentTransition` f(z) = z + MLP(z).
//! f is deterministic, so P^k is a point and W₂ the distance of points.
//!
//! They learn what the reference imagines: f^j(z) the expected latent after each step j ≤ k, V(z) the expected return V^τ,
//! both averaged over starts. A squared error averaged over starts and one against the average differ by a constant, so the
//! average is the target. Departure: the paper trains this mode by distillation of z_T alone, which leaves V without a target.

use candle_core::{DType, Tensor};
use serde::{Deserialize, Serialize};

use super::signatures::Signatures;
use crate::error::{Error, Result};
use crate::layers::Linear;
use crate::ops::{Form, without_gradients};
use crate::parameters::{Init, Scope};

/// The shape of both networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SeparableConfig {
    /// Numbers in z: d_z of the world model, or the amortizer's embedding.
    pub latent: usize,
    /// Units in each hidden layer (ours).
    pub hidden: usize,
    /// Fused or composed operations.
    pub form: Form,
}

impl Default for SeparableConfig {
    fn default() -> Self {
        SeparableConfig { latent: 64, hidden: 256, form: Form::default() }
    }
}

/// `VHead` and `LatentTransition`.
#[derive(Clone, Debug)]
pub struct Separable {
    config: SeparableConfig,
    value: Mlp,
    transition: Mlp,
}

/// What they should say; see [`super::MonteCarlo::targets`].
#[derive(Clone, Debug)]
pub struct Targets {
    /// The latent after each step, `[B, k, d_z]`, f32.
    pub latents: Tensor,
    /// V^τ, `[B]`, f32.
    pub values: Tensor,
}

/// The terms of the loss, scalars.
#[derive(Clone, Debug)]
pub struct SeparableLosses {
    /// Mean of (f^j(z) − ẑ_j)² over batch, steps and dimensions.
    pub transition: Tensor,
    /// Mean of (V(z) − V^τ)² over the batch.
    pub value: Tensor,
    /// Their sum.
    pub total: Tensor,
}

impl Separable {
    /// Adds its weights to a scope: `value.{hidden, out}` and `transition.{hidden, out}`. The transition starts as the identity.
    pub fn new(scope: &mut Scope<'_>, config: SeparableConfig) -> Result<Separable> {
        let SeparableConfig { latent, hidden, form } = config;
        if latent * hidden == 0 {
            return Err(Error::Config(format!("a separable kernel of {latent} numbers and {hidden} hidden units")));
        }
        let value = Mlp::new(&mut scope.enter("value"), [latent, hidden, 1], Init::FanIn(hidden), form)?;
        let transition = Mlp::new(&mut scope.enter("transition"), [latent, hidden, latent], Init::Zeros, form)?;
        Ok(Separable { config, value, transition })
    }

    /// Its shape.
    pub fn config(&self) -> SeparableConfig {
        self.config
    }

    /// V(z).
    ///
    /// # Shapes
    /// `z`: `[B, d_z]`; gives `[B]` in f32.
    pub fn value(&self, z: &Tensor) -> Result<Tensor> {
        Ok(self.value.forward(z)?.squeeze(1)?)
    }

    /// f(z), f²(z), …, f^k(z).
    ///
    /// # Shapes
    /// `z`: `[B, d_z]`; gives `[B, k, d_z]` in f32.
    pub fn rollout(&self, z: &Tensor, steps: usize) -> Result<Tensor> {
        let mut z = z.to_dtype(DType::F32)?;
        let mut rolled = Vec::with_capacity(steps);
        for _ in 0..steps {
            z = (&z + self.transition.forward(&z)?)?;
            rolled.push(z.clone());
        }
        Ok(Tensor::stack(&rolled, 1)?)
    }

    /// All terms of the loss.
    ///
    /// # Shapes
    /// `z`: `[B, d_z]`, for targets of B fragments.
    pub fn loss(&self, z: &Tensor, targets: &Targets) -> Result<SeparableLosses> {
        let (_, steps, _) = targets.latents.dims3()?;
        let transition = (self.rollout(z, steps)? - &targets.latents)?.sqr()?.mean_all()?;
        let value = (self.value(z)? - &targets.values)?.sqr()?.mean_all()?;
        let total = (&transition + &value)?;
        Ok(SeparableLosses { transition, value, total })
    }

    /// V(z) and f^k(z) of each fragment, as signatures from a single start; their distances are D. Batches of z are taken one
    /// at a time.
    pub fn signatures(&self, batches: impl IntoIterator<Item = Result<Tensor>>, steps: usize) -> Result<Signatures> {
        if steps == 0 {
            return Err(Error::Config("a rollout of no steps; set the kernel's `horizon` to 1 or more".into()));
        }
        let mut signatures = Signatures::new(1, 1, self.config.latent)?;
        for z in batches {
            let z = z?;
            let (values, rolled) = without_gradients(|| (self.value(&z), self.rollout(&z, steps)));
            let values: Vec<f64> = values?.to_vec1::<f32>()?.into_iter().map(f64::from).collect();
            let last = rolled?.narrow(1, steps - 1, 1)?;
            signatures.push(&values, &last.flatten_all()?.to_vec1::<f32>()?)?;
        }
        Ok(signatures)
    }
}

/// W₂ · gelu(W₁ x + b₁) + b₂.
#[derive(Clone, Debug)]
struct Mlp {
    hidden: Linear,
    out: Linear,
}

impl Mlp {
    fn new(scope: &mut Scope<'_>, widths: [usize; 3], out: Init, form: Form) -> Result<Mlp> {
        let [inputs, hidden, outputs] = widths;
        Ok(Mlp {
            hidden: Linear::with_init(&mut scope.enter("hidden"), inputs, hidden, Init::FanIn(inputs), form)?,
            out: Linear::with_init(&mut scope.enter("out"), hidden, outputs, out, form)?,
        })
    }

    /// # Shapes
    /// `x`: `[B, inputs]`; gives `[B, outputs]` in f32.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = x.to_dtype(self.hidden.weight.dtype())?.contiguous()?;
        let y = self.out.forward(&self.hidden.forward(&x)?.gelu()?)?;
        Ok(y.to_dtype(DType::F32)?)
    }
}
