//! Losses that pull embeddings of the same kind together and push all others away.
//!
//! With unit rows zᵢ, temperature τ, and P(i) the other rows with the label of row i:
//!
//! SupCon  L = mean over i with P(i) ≠ ∅ of  −1/|P(i)| · Σ_{p ∈ P(i)} log( exp(zᵢ·z_p/τ) / Σ_{a ≠ i} exp(zᵢ·z_a/τ) ) ,
//!
//! the form with the sum outside the logarithm. NT-Xent is the same with pairs for classes: rows 2i and 2i+1 are the two
//! views of one thing, so each row has exactly one positive. Both are computed in f32 with the largest off-diagonal logit of
//! each row taken off first; a row's product with itself never enters an exponential, so that low temperatures are safe.

use std::collections::BTreeMap;

use candle_core::{D, DType, Tensor};

use crate::error::{Error, Result};

/// The paper's temperature, in phase A and in phase C.
pub const TEMPERATURE: f64 = 0.1;

/// Rows shorter than this are divided by it instead of by their length.
const LEAST_LENGTH: f64 = 1e-6;

/// Added to logits that must not be the largest of their row; any real logit is far above it.
const FAR_BELOW: f64 = -1e30;

/// Rows of unit length, in f32. A row of zeros stays zero, and gradients are finite everywhere.
///
/// # Shapes
/// `x`: `[…, width]`, and so is the result.
pub fn normalize(x: &Tensor) -> Result<Tensor> {
    let x = x.to_dtype(DType::F32)?;
    // The floor is under the root: the root's own gradient at zero is infinite.
    let squares = x.sqr()?.sum_keepdim(D::Minus1)?.maximum(LEAST_LENGTH * LEAST_LENGTH)?;
    Ok(x.broadcast_div(&squares.sqrt()?)?)
}

/// Supervised contrast: rows with equal labels are positives of each other. Without any such pair it is zero, still tracked.
///
/// # Shapes
/// `embeddings`: `[batch, width]`, unit rows in f32; one label for each; gives a scalar.
pub fn supcon(embeddings: &Tensor, labels: &[i64], temperature: f64) -> Result<Tensor> {
    let (rows, _) = embeddings.dims2()?;
    if labels.len() != rows {
        return Err(Error::Config(format!("{rows} embeddings have {} labels; each needs one", labels.len())));
    }
    if !(temperature > 0.0 && temperature.is_finite()) {
        return Err(Error::Config(format!("a temperature of {temperature}; it must be positive")));
    }
    let mut sizes: BTreeMap<i64, usize> = BTreeMap::new();
    for label in labels {
        *sizes.entry(*label).or_default() += 1;
    }
    let positives: Vec<usize> = labels.iter().map(|label| sizes[label] - 1).collect();
    let anchors = positives.iter().filter(|count| **count > 0).count();
    if anchors == 0 {
        // Not `* 0.0`: Candle drops a product with the number zero from the graph.
        return Ok(embeddings.mul(&embeddings.zeros_like()?)?.sum_all()?);
    }

    let device = embeddings.device();
    let shares = positives.iter().map(|count| if *count == 0 { 0.0 } else { 1.0 / (count * anchors) as f32 }).collect();
    let shares: Tensor = Tensor::from_vec::<_, f32>(shares, (rows, 1), device)?;
    let labels = Tensor::from_slice(labels, (rows, 1), device)?;
    let diagonal = Tensor::eye(rows, DType::F32, device)?;
    let others = (1.0 - &diagonal)?;
    // [rows, rows]: how much the log-probability of column j counts in row i.
    let weights = labels.broadcast_eq(&labels.t()?)?.to_dtype(DType::F32)?.mul(&others)?.broadcast_mul(&shares)?;

    let logits = (embeddings.matmul(&embeddings.t()?)? / temperature)?;
    let largest = (logits.detach() + (diagonal * FAR_BELOW)?)?.max_keepdim(D::Minus1)?;
    let shifted = logits.broadcast_sub(&largest)?.mul(&others)?;
    let partition = shifted.exp()?.mul(&others)?.sum_keepdim(D::Minus1)?.log()?;
    Ok(shifted.broadcast_sub(&partition)?.mul(&weights)?.sum_all()?.neg()?)
}

/// Contrast without labels: rows 2i and 2i+1 are positives of each other, all other rows are negatives.
///
/// # Shapes
/// `embeddings`: `[2n, width]`, unit rows in f32; gives a scalar.
pub fn nt_xent(embeddings: &Tensor, temperature: f64) -> Result<Tensor> {
    let (rows, _) = embeddings.dims2()?;
    if rows % 2 != 0 {
        return Err(Error::Config(format!("{rows} embeddings are not pairs; rows 2i and 2i+1 belong together")));
    }
    let pairs: Vec<i64> = (0..rows as i64).map(|row| row / 2).collect();
    supcon(embeddings, &pairs, temperature)
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Case {
        name: String,
        loss: String,
        temperature: f64,
        width: usize,
        labels: Vec<i64>,
        values: Vec<f32>,
        value: f64,
        gradient: Vec<f64>,
    }

    fn rows(values: &[f32], width: usize) -> Var {
        Var::from_slice(values, (values.len() / width, width), &Device::Cpu).unwrap()
    }

    fn loss_and_gradient(x: &Var, loss: impl Fn(&Tensor) -> Result<Tensor>) -> (f64, Vec<f32>) {
        let loss = loss(&normalize(x).unwrap()).unwrap();
        let gradients = loss.backward().unwrap();
        let gradient = gradients.get(x).unwrap().flatten_all().unwrap().to_vec1().unwrap();
        (f64::from(loss.to_scalar::<f32>().unwrap()), gradient)
    }

    #[test]
    fn losses_and_gradients_equal_pytorch() {
        let golden = include_str!("../fixtures/golden/contrast/golden.json");
        let cases: Vec<Case> = serde_json::from_str(golden).unwrap();
        assert!(cases.len() >= 6);
        for case in cases {
            let x = rows(&case.values, case.width);
            let (value, gradient) = loss_and_gradient(&x, |z| match case.loss.as_str() {
                "supcon" => supcon(z, &case.labels, case.temperature),
                _ => nt_xent(z, case.temperature),
            });
            assert!((value - case.value).abs() <= 1e-5 * case.value.abs(), "{}: {value} {}", case.name, case.value);
            let scale = case.gradient.iter().fold(0.0_f64, |most, one| most.max(one.abs()));
            for (ours, theirs) in gradient.iter().zip(&case.gradient) {
                assert!((f64::from(*ours) - theirs).abs() <= 1e-5 * scale, "{}: {ours} {theirs}", case.name);
            }
        }
    }

    #[test]
    fn rows_without_a_positive_are_no_anchors_but_negatives() {
        // Row 2 is alone: the loss is that of rows 0 and 1, whose denominators include it.
        let x = rows(&[1.0, 0.0, 0.0, 1.0, -1.0, 0.0], 2);
        let loss = supcon(x.as_tensor(), &[5, 5, 9], 1.0).unwrap().to_scalar::<f32>().unwrap();
        let first = -(1.0 / (1.0 + (-1.0_f32).exp())).ln();
        let second = -(0.5_f32).ln();
        assert!((loss - (first + second) / 2.0).abs() < 1e-6);
    }

    #[test]
    fn no_pair_at_all_is_a_tracked_zero() {
        for labels in [vec![3], vec![1, 2, 3]] {
            let x = rows(&vec![0.5; labels.len() * 4], 4);
            let (value, gradient) = loss_and_gradient(&x, |z| supcon(z, &labels, TEMPERATURE));
            assert_eq!(value, 0.0);
            assert!(gradient.iter().all(|one| *one == 0.0));
        }
    }

    #[test]
    fn zero_rows_have_finite_values_and_gradients() {
        let x = rows(&[0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0], 3);
        let unit: Vec<Vec<f32>> = normalize(&x).unwrap().to_vec2().unwrap();
        assert_eq!(unit[0], [0.0; 3]);
        assert_eq!(unit[1], [1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0]);
        let (value, gradient) = loss_and_gradient(&x, |z| nt_xent(z, TEMPERATURE));
        assert!(value.is_finite() && gradient.iter().all(|one| one.is_finite()));
    }

    #[test]
    fn opposite_rows_at_a_low_temperature_do_not_overflow() {
        // All off-diagonal logits of row 0 are −1000, the diagonal is 1000.
        let x = rows(&[1.0, 0.0, -1.0, 0.0, -1.0, 0.0], 2);
        let (value, gradient) = loss_and_gradient(&x, |z| supcon(z, &[0, 0, 1], 1e-3));
        // Row 0: log 2. Row 1: its positive is 2000 below its negative.
        assert!((value - (2.0_f64.ln() + 2000.0) / 2.0).abs() < 1e-3, "{value}");
        assert!(gradient.iter().all(|one| one.is_finite()));
    }

    #[test]
    fn wrong_shapes_and_temperatures_are_refused() {
        let x = rows(&[1.0, 0.0, 0.0, 1.0, 1.0, 0.0], 2);
        assert!(supcon(x.as_tensor(), &[0, 0], 0.1).is_err());
        assert!(nt_xent(x.as_tensor(), 0.1).is_err());
        for temperature in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(supcon(x.as_tensor(), &[0, 0, 1], temperature).is_err());
        }
    }
}
