//! Linear layers and layer normalisation.

use candle_core::{D, DType, Tensor};

use crate::error::Result;
use crate::ops::Form;
use crate::parameters::{Init, Parameter, Scope};

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
        let _ = self.form;
        let (outputs, inputs) = self.weight.master().dims2()?;
        let mut shape = x.dims().to_vec();
        let rows = x.elem_count() / inputs;
        let y =
            x.reshape((rows, inputs))?.matmul(&self.weight.tracked()?.t()?)?.broadcast_add(&self.bias.tracked()?)?;
        if let Some(last) = shape.last_mut() {
            *last = outputs;
        }
        Ok(y.reshape(shape)?)
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

/// What is added to the variance.
pub const EPSILON: f64 = 1e-5;

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
        let _ = self.form;
        let dtype = x.dtype();
        let x = x.to_dtype(DType::F32)?;
        let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
        let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
        let normal = centred.broadcast_div(&(variance + EPSILON)?.sqrt()?)?;
        let scaled = normal.broadcast_mul(&self.weight.tracked_f32())?.broadcast_add(&self.bias.tracked_f32())?;
        Ok(scaled.to_dtype(dtype)?)
    }
}
