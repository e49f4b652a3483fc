//! D_φ between the rows of a training batch, on the device.
//!
//! The signatures of all training windows are imagined once and kept as two tensors. A batch of B rows then costs a few
//! batched operations for all B² distances:
//!
//! D = w_R · mean over s of |V_i(s) − V_j(s)| + w_E · mean over s of ‖(m, σ)_i(s) − (m, σ)_j(s)‖ .
//!
//! The norms come from products: ‖x − y‖² = ‖x‖² + ‖y‖² − 2⟨x, y⟩. From each start the points of a batch are centred first,
//! which changes no distance and keeps the three terms of the size of the distances, so that f32 is enough.

use candle_core::{D, Device, Tensor};

use super::signatures::Signatures;
use crate::error::{Error, Result};

/// Signatures on the device, and the weights of D_φ.
#[derive(Clone, Debug)]
pub struct DistanceTable {
    /// V^τ(s), `[N, starts]`, f32.
    values: Tensor,
    /// (m, σ), `[starts, N, width]`, f32.
    points: Tensor,
    w_r: f64,
    w_e: f64,
}

impl DistanceTable {
    /// Copies signatures to a device.
    ///
    /// # Errors
    /// On clouds of several points: W₂ between samples is an assignment, which does not batch.
    pub fn new(signatures: &Signatures, w_r: f64, w_e: f64, device: &Device) -> Result<DistanceTable> {
        let (starts, points, width) = signatures.shape();
        if points != 1 {
            return Err(Error::Config(format!(
                "clouds of {points} sampled points cannot be compared in batches; set `transport` to `gaussian`"
            )));
        }
        let count = signatures.len();
        let values: Vec<f32> = (0..count).flat_map(|at| signatures.values(at)).map(|value| *value as f32).collect();
        let clouds: Vec<f32> = (0..count).flat_map(|at| signatures.clouds(at)).flatten().copied().collect();
        let clouds = Tensor::from_vec(clouds, (count, starts, width), &Device::Cpu)?;
        Ok(DistanceTable {
            values: Tensor::from_vec(values, (count, starts), &Device::Cpu)?.to_device(device)?,
            points: clouds.transpose(0, 1)?.contiguous()?.to_device(device)?,
            w_r,
            w_e,
        })
    }

    /// How many windows there are.
    pub fn len(&self) -> usize {
        self.values.dims().first().copied().unwrap_or_default()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// D_φ between all pairs of some rows, without gradients.
    ///
    /// # Shapes
    /// `rows`: `[B]` u32; gives `[B, B]` in f32. The diagonal is zero to rounding only.
    pub fn between(&self, rows: &Tensor) -> Result<Tensor> {
        let values = self.values.index_select(rows, 0)?; // [B, starts]
        let value = values.unsqueeze(1)?.broadcast_sub(&values.unsqueeze(0)?)?.abs()?.mean(2)?; // [B, B]

        let points = self.points.index_select(rows, 1)?; // [starts, B, width]
        let points = points.broadcast_sub(&points.mean_keepdim(1)?)?;
        let squares = points.sqr()?.sum_keepdim(D::Minus1)?; // [starts, B, 1]
        let products = (points.matmul(&points.transpose(1, 2)?.contiguous()?)? * 2.0)?; // [starts, B, B]
        let apart = (squares.broadcast_add(&squares.transpose(1, 2)?)? - products)?;
        let rollout = apart.maximum(0.0)?.sqrt()?.mean(0)?; // [B, B]
        Ok(((value * self.w_r)? + (rollout * self.w_e)?)?)
    }
}
