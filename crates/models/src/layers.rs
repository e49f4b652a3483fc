//! Weights and the layers that use them: linear layers and layer normalisation here, tables and Transformers below.
//!
//! Everything that touches the detached values of a [`Parameter`] is in this module. Such values have no gradient in
//! Candle's graph, so code that uses one must hand over the gradient itself; models outside build on the layers, or read
//! [`Parameter::tracked`].

pub(crate) mod convolution;
pub mod embedding;
pub mod parameters;
pub mod transformer;

use candle_core::{D, DType, Tensor};

use crate::error::Result;
use crate::ops::bias_activation::{self, Activation};
use crate::ops::{Form, gradients_wanted, graft, layer_norm};
use crate::parameters::{Init, Parameter, Scope};

/// The constant that layer normalisation adds to the variance.
pub const EPSILON: f64 = 1e-5;

/// y = x Wᵀ + b.
#[derive(Clone, Debug)]
pub struct Linear {
    /// `[outputs, inputs]`
    pub weight: Parameter,
    /// `[outputs]`
    pub bias: Parameter,
    form: Form,
}

impl Linear {
    /// Weights start normal with deviation `0.02`, biases at zero.
    pub fn new(scope: &mut Scope<'_>, inputs: usize, outputs: usize, form: Form) -> Result<Linear> {
        Linear::with_init(scope, inputs, outputs, Init::Normal(0.02), form)
    }

    /// Weights start as said, biases at zero.
    pub fn with_init(scope: &mut Scope<'_>, inputs: usize, outputs: usize, init: Init, form: Form) -> Result<Linear> {
        let weight = scope.weight("weight", &[outputs, inputs], init)?;
        let bias = scope.weight("bias", &[outputs], Init::Zeros)?;
        Ok(Linear { weight, bias, form })
    }

    /// # Shapes
    /// `x`: `[…, inputs]`, in the precision of products; gives `[…, outputs]`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.activated(x, Activation::None)
    }

    /// The layer and GELU (by tanh) after it.
    ///
    /// # Shapes
    /// As [`forward`](Linear::forward).
    pub fn forward_gelu(&self, x: &Tensor) -> Result<Tensor> {
        self.activated(x, Activation::GeluTanh)
    }

    fn activated(&self, x: &Tensor, activation: Activation) -> Result<Tensor> {
        let (outputs, inputs) = self.weight.master().dims2()?;
        let mut shape = x.dims().to_vec();
        if let Some(last) = shape.last_mut() {
            *last = outputs;
        }
        let x = x.reshape((x.elem_count() / inputs.max(1), inputs))?;
        let y = if self.form.is_fused_for(&x) { self.fused(&x, activation)? } else { self.composed(&x, activation)? };
        Ok(y.reshape(shape)?)
    }

    fn composed(&self, x: &Tensor, activation: Activation) -> Result<Tensor> {
        let y = x.matmul(&self.weight.tracked()?.t()?)?.broadcast_add(&self.bias.tracked()?)?;
        Ok(match activation {
            Activation::None => y,
            Activation::GeluTanh => y.gelu()?,
            Activation::GeluErf => y.gelu_erf()?,
        })
    }

    fn fused(&self, x: &Tensor, activation: Activation) -> Result<Tensor> {
        let kept = x.detach().contiguous()?;
        let product = kept.matmul(&self.weight.working().t()?)?;
        let y = bias_activation::forward(&product, &self.bias.vector(), activation)?;
        if !gradients_wanted() {
            return Ok(y);
        }
        let (weight, bias, tracked) = (self.weight.clone(), self.bias.clone(), x.track_op());
        weight.expect_gradient();
        bias.expect_gradient();
        graft(anchor(x, &self.bias), y, move |dy| {
            let dy = dy.contiguous()?;
            let (dy, summed) = bias_activation::backward(&product, &bias.vector(), &dy, activation)?;
            bias.add_gradient(summed)?;
            weight.add_gradient(dy.t()?.matmul(&kept)?)?;
            Ok(if tracked { Some(dy.matmul(weight.working())?) } else { None })
        })
    }
}

/// Normalisation of the last dimension: (x − μ)/√(σ² + ε) · w + b.
#[derive(Clone, Debug)]
pub struct LayerNorm {
    /// `[width]`
    pub weight: Parameter,
    /// `[width]`
    pub bias: Parameter,
    form: Form,
}

impl LayerNorm {
    /// Weights start at one, biases at zero.
    pub fn new(scope: &mut Scope<'_>, width: usize, form: Form) -> Result<LayerNorm> {
        let weight = scope.weight("weight", &[width], Init::Ones)?;
        let bias = scope.weight("bias", &[width], Init::Zeros)?;
        Ok(LayerNorm { weight, bias, form })
    }

    /// # Shapes
    /// `x`: `[…, width]`, and so is the result.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if self.form.is_fused_for(x) { self.fused(x) } else { self.composed(x) }
    }

    fn composed(&self, x: &Tensor) -> Result<Tensor> {
        let dtype = x.dtype();
        let x = x.to_dtype(DType::F32)?;
        let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
        let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
        let normal = centred.broadcast_div(&(variance + EPSILON)?.sqrt()?)?;
        let scaled = normal.broadcast_mul(&self.weight.tracked_f32())?.broadcast_add(&self.bias.tracked_f32())?;
        Ok(scaled.to_dtype(dtype)?)
    }

    fn fused(&self, x: &Tensor) -> Result<Tensor> {
        let width = self.weight.master().elem_count();
        let rows = x.elem_count() / width.max(1);
        let flat = x.detach().contiguous()?.reshape((rows, width))?;
        let kept = layer_norm::forward(&flat, None, (&self.weight.vector(), &self.bias.vector()), EPSILON)?;
        let y = kept.y.reshape(x.shape())?;
        if !gradients_wanted() {
            return Ok(y);
        }
        let (weight, bias, shape) = (self.weight.clone(), self.bias.clone(), x.shape().clone());
        weight.expect_gradient();
        bias.expect_gradient();
        graft(anchor(x, &self.bias), y, move |dy| {
            let found = layer_norm::backward(&kept, &weight.vector(), &dy.contiguous()?.reshape((rows, width))?, None)?;
            weight.add_gradient(found.weight)?;
            bias.add_gradient(found.bias)?;
            Ok(Some(found.x.reshape(&shape)?))
        })
    }
}

/// What a fused operation hangs on in Candle's graph: its input, or a weight where the input is plain data.
fn anchor<'a>(x: &'a Tensor, weight: &'a Parameter) -> &'a Tensor {
    if x.track_op() { x } else { weight.master().as_tensor() }
}
