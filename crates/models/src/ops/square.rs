//! The mean of (a − b)², as losses have it.
//!
//! Candle's backward pass goes through every operation of it with a tensor of its own; ours is one product with 2/n.

use candle_core::{D, DType, Tensor};

use super::{Form, gradients_wanted, graft};
use crate::error::Result;

/// The mean of (a − b)² over all numbers, in f32. `b` is data: it gets no gradient.
///
/// # Shapes
/// `a`, in f32, and `b` alike; gives a scalar.
pub fn mean_square(a: &Tensor, b: &Tensor, form: Form) -> Result<Tensor> {
    let b = b.detach().to_dtype(DType::F32)?;
    if !form.is_fused_for(a) {
        return mean_of_squares(&(a - b)?);
    }
    let difference = (a.detach() - b)?;
    let mean = mean_of_squares(&difference)?;
    if !gradients_wanted() || !a.track_op() {
        return Ok(mean);
    }
    graft(a, mean, move |gradient| {
        let twice = (gradient * (2.0 / difference.elem_count().max(1) as f64))?;
        Ok(Some(difference.broadcast_mul(&twice)?))
    })
}

/// In two steps, rows first: Candle sums a whole tensor with a single block of threads.
fn mean_of_squares(x: &Tensor) -> Result<Tensor> {
    Ok(x.sqr()?.mean(D::Minus1)?.mean_all()?)
}

#[cfg(test)]
mod tests {
    use candle_core::Var;

    use super::*;
    use crate::ops::testing::{distance, random};

    #[test]
    fn both_forms_have_the_same_value_and_gradient() {
        let (a, b) = (Var::from_tensor(&random(&[3, 5, 7], 1)).unwrap(), random(&[3, 5, 7], 2));
        let found = |form| {
            let loss = (mean_square(&a, &b, form).unwrap() * 3.0).unwrap();
            (loss.to_scalar::<f32>().unwrap(), loss.backward().unwrap().get(&a).unwrap().clone())
        };
        let ((fused, ours), (composed, candles)) = (found(Form::Fused), found(Form::Composed));
        assert!((fused - composed).abs() < 1e-6);
        assert!(distance(&ours, &candles) < 1e-6);
    }
}
