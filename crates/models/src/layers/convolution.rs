//! Convolutions over square grids of places, with GELU after them: neighbourhoods as rows, then one product.

use candle_core::{Device, Tensor};

use crate::error::Result;
use crate::ops::bias_activation::{self, Activation};
use crate::ops::unfold::Unfold;
use crate::ops::{Form, gradients_wanted, graft};
use crate::parameters::{Init, Parameter, Scope};

/// Places of a neighbourhood on a side.
const KERNEL: usize = 3;

/// y = gelu(W · neighbourhood + b) at every place, or at every second one on a side.
#[derive(Clone, Debug)]
pub(crate) struct Convolution {
    /// `[outputs, 9 · inputs]`, the places of a neighbourhood row by row.
    weight: Parameter,
    /// `[outputs]`
    bias: Parameter,
    unfold: Unfold,
    form: Form,
}

impl Convolution {
    /// Adds `weight` and `bias` to a scope. `side` is that of the input's grid.
    pub(crate) fn new(
        scope: &mut Scope<'_>,
        side: usize,
        stride: usize,
        (inputs, outputs): (usize, usize),
        form: Form,
    ) -> Result<Convolution> {
        let rows = KERNEL * KERNEL * inputs;
        let weight = scope.weight("weight", &[outputs, rows], Init::FanIn(rows))?;
        let bias = scope.weight("bias", &[outputs], Init::Zeros)?;
        let unfold = Unfold::new(side, KERNEL, stride, 1, weight.master().device())?;
        Ok(Convolution { weight, bias, unfold, form })
    }

    /// How many numbers it learns.
    pub(crate) fn parameters(inputs: usize, outputs: usize) -> usize {
        KERNEL * KERNEL * inputs * outputs + outputs
    }

    /// # Shapes
    /// `x`: `[B, P, inputs]` in the precision of products; gives `[B, Q, outputs]`.
    pub(crate) fn forward_gelu(&self, x: &Tensor) -> Result<Tensor> {
        let (samples, _, inputs) = x.dims3()?;
        let shape = (samples, self.unfold.side * self.unfold.side, self.weight.master().dims2()?.0);
        let kept = x.detach().contiguous()?;
        if !self.form.is_fused_for(&kept) {
            let rows = self.composed_rows(x)?.reshape(((), self.unfold.taps * inputs))?;
            let y = rows.matmul(&self.weight.tracked()?.t()?)?.broadcast_add(&self.bias.tracked()?)?;
            return Ok(y.gelu()?.reshape(shape)?);
        }
        let activation = Activation::GeluTanh;
        let product = self.unfold.forward(&kept)?.matmul(&self.weight.working().t()?)?;
        let y = bias_activation::forward(&product, &self.bias.vector(), activation)?.reshape(shape)?;
        if !gradients_wanted() {
            return Ok(y);
        }
        let (weight, bias, tracked, unfold) =
            (self.weight.clone(), self.bias.clone(), x.track_op(), self.unfold.clone());
        weight.expect_gradient();
        bias.expect_gradient();
        graft(if tracked { x } else { self.bias.master().as_tensor() }, y, move |dy| {
            let dy = dy.contiguous()?.reshape(product.shape())?;
            let (dy, summed) = bias_activation::backward(&product, &bias.vector(), &dy, activation)?;
            bias.add_gradient(summed)?;
            // Rows are nine times as large as what they are gathered from, so they are made anew and not kept.
            weight.add_gradient(dy.t()?.matmul(&unfold.forward(&kept)?)?)?;
            Ok(if tracked { Some(unfold.backward(&dy.matmul(weight.working())?)?) } else { None })
        })
    }

    /// Neighbourhoods by Candle's own operations, whose gradients Candle knows.
    ///
    /// # Shapes
    /// `x`: `[B, P, inputs]`; gives `[B · Q · 9, inputs]`.
    fn composed_rows(&self, x: &Tensor) -> Result<Tensor> {
        let (samples, _, inputs) = x.dims3()?;
        let zeros = Tensor::zeros((samples, 1, inputs), x.dtype(), x.device())?;
        let indices = Tensor::new(self.unfold.places(), &Device::Cpu)?.to_device(x.device())?;
        let rows = Tensor::cat(&[x, &zeros], 1)?.contiguous()?.index_select(&indices, 1)?;
        Ok(rows.reshape(((), inputs))?)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Var;

    use super::*;
    use crate::ops::testing::{distance, random};
    use crate::parameters::{Parameters, Precision};

    #[test]
    fn fused_equals_composed_with_its_gradients() {
        for stride in [1, 2] {
            let dy = random(&[2, if stride == 1 { 36 } else { 9 }, 5], 3);
            let [fused, composed] = [Form::Fused, Form::Composed].map(|form| {
                let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 5);
                let layer = Convolution::new(&mut parameters.root(), 6, stride, (3, 5), form).unwrap();
                let x = Var::from_tensor(&random(&[2, 36, 3], 1)).unwrap();
                let y = layer.forward_gelu(&x).unwrap();
                let found = (&y * &dy).unwrap().sum_all().unwrap().backward().unwrap();
                let weights = parameters.gradients(&found).unwrap();
                [y.detach(), found.get(&x).unwrap().clone(), weights[0].clone().unwrap(), weights[1].clone().unwrap()]
            });
            for (fused, composed) in fused.iter().zip(&composed) {
                assert!(distance(fused, composed) < 1e-5, "stride {stride}: {}", distance(fused, composed));
            }
        }
    }
}
