//! One layer of the Transformer, and the normalisation between layers.
//!
//! ```text
//! x ← x + λ₁ ⊙ (softmax(q kᵀ/√d) v Wₒ + bₒ)      q, k, v = LN₁(x) W_qkv + b_qkv
//! x ← x + λ₂ ⊙ (GELU(LN₂(x) W₁ + b₁) W₂ + b₂)
//! ```
//! λ₁ and λ₂, the layer scales, are folded into the weights that stand before them. Between the products run the operations
//! of [`ops`](crate::ops), each one pass over memory: a residual connection is added in the pass of the normalisation that
//! follows it, so a layer hands its last product on as [`Stream::added`]. The residual stream is f32 on every device; the
//! products are in the precision of the weights.

use candle_core::{DType, Device, Result, Tensor};

use super::config::DinoV2Config;
use super::error::EncoderError;
use super::weights::Weights;
use crate::ops::bias_activation::{self, Activation};
use crate::ops::{attention, layer_norm};

/// The device of the model and the precision of its products.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) device: Device,
    pub(super) precision: DType,
}

/// The residual stream of a batch between two layers. `rows` = batch · tokens.
pub(super) struct Stream {
    /// `[rows, D]` in f32.
    x: Tensor,
    /// A product that is still to be added to it, in f32, and its bias: `[rows, D]` and `[D]`.
    added: Option<(Tensor, Tensor)>,
    batch: usize,
}

impl Stream {
    /// # Shapes
    /// `x`: `[B, N, D]` in f32.
    pub(super) fn new(x: &Tensor) -> Result<Stream> {
        let (batch, tokens, width) = x.dims3()?;
        Ok(Stream { x: x.contiguous()?.reshape((batch * tokens, width))?, added: None, batch })
    }
}

/// y = LN(x) ⊙ w + b.
pub(super) struct Norm {
    weight: Tensor,
    bias: Tensor,
    eps: f64,
}

impl Norm {
    pub(super) fn new(
        weights: &Weights<'_>,
        name: &str,
        eps: f64,
        place: &Place,
    ) -> std::result::Result<Norm, EncoderError> {
        let vector =
            |part: &str| Ok::<_, EncoderError>(weights.get(&format!("{name}.{part}"))?.to_device(&place.device)?);
        Ok(Norm { weight: vector("weight")?, bias: vector("bias")?, eps })
    }

    /// The stream with everything added, normalised.
    ///
    /// # Shapes
    /// Gives `[B, N, D]` in f32.
    pub(super) fn last(&self, stream: Stream) -> Result<Tensor> {
        let batch = stream.batch;
        let y = self.forward(stream)?.y;
        let (rows, width) = y.dims2()?;
        y.reshape((batch, rows / batch, width))
    }

    fn forward(&self, Stream { x, added, .. }: Stream) -> Result<layer_norm::Normalized> {
        let added = added.as_ref().map(|(product, bias)| (product, bias));
        layer_norm::forward(&x, added, (&self.weight, &self.bias), self.eps)
    }
}

/// x W + b, W as `[in, out]`.
struct Linear {
    weight: Tensor,
    /// In f32; the operation that follows the product adds it.
    bias: Tensor,
}

impl Linear {
    /// # Shapes
    /// `weight`: `[out, in]`, as files have it; `bias`: `[out]`; `scale`: `[out]`.
    fn new(weight: &Tensor, bias: &Tensor, scale: Option<&Tensor>, place: &Place) -> Result<Linear> {
        let (weight, bias) = match scale {
            Some(scale) => (weight.broadcast_mul(&scale.unsqueeze(1)?)?, (bias * scale)?),
            None => (weight.clone(), bias.clone()),
        };
        let weight = weight.t()?.contiguous()?.to_dtype(place.precision)?.to_device(&place.device)?;
        Ok(Linear { weight, bias: bias.to_dtype(DType::F32)?.to_device(&place.device)? })
    }
}

/// Attention and MLP, each behind a normalisation and a residual connection.
pub(super) struct Layer {
    heads: usize,
    attention_norm: Norm,
    qkv: Linear,
    output: Linear,
    mlp_norm: Norm,
    widen: Linear,
    narrow: Linear,
}

impl Layer {
    pub(super) fn new(
        weights: &Weights<'_>,
        config: &DinoV2Config,
        number: usize,
        place: &Place,
    ) -> std::result::Result<Layer, EncoderError> {
        let get = |name: &str| weights.get(&format!("encoder.layer.{number}.{name}"));
        let norm =
            |name: &str| Norm::new(weights, &format!("encoder.layer.{number}.{name}"), config.layer_norm_eps, place);
        let parts = ["query", "key", "value"];
        let qkv = parts.map(|part| get(&format!("attention.attention.{part}.weight")));
        let qkv = Tensor::cat(&qkv.into_iter().collect::<std::result::Result<Vec<_>, _>>()?, 0)?;
        let qkv_bias = match config.qkv_bias {
            true => {
                let biases = parts.map(|part| get(&format!("attention.attention.{part}.bias")));
                Tensor::cat(&biases.into_iter().collect::<std::result::Result<Vec<_>, _>>()?, 0)?
            }
            false => Tensor::zeros(3 * config.hidden_size, DType::F32, &Device::Cpu)?,
        };
        let scaled = |name: &str, scale: &str| {
            let (weight, bias) = (get(&format!("{name}.weight"))?, get(&format!("{name}.bias"))?);
            Ok::<_, EncoderError>(Linear::new(&weight, &bias, Some(&get(scale)?), place)?)
        };
        Ok(Layer {
            heads: config.heads,
            attention_norm: norm("norm1")?,
            qkv: Linear::new(&qkv, &qkv_bias, None, place)?,
            output: scaled("attention.output.dense", "layer_scale1.lambda1")?,
            mlp_norm: norm("norm2")?,
            widen: Linear::new(&get("mlp.fc1.weight")?, &get("mlp.fc1.bias")?, None, place)?,
            narrow: scaled("mlp.fc2", "layer_scale2.lambda1")?,
        })
    }

    pub(super) fn forward(&self, stream: Stream, place: &Place) -> Result<Stream> {
        let batch = stream.batch;
        let first = self.attention_norm.forward(stream)?;
        let (rows, width) = first.y.dims2()?;
        let qkv = first.y.to_dtype(place.precision)?.matmul(&self.qkv.weight)?;
        let qkv = qkv.reshape((batch, rows / batch, 3, self.heads, width / self.heads))?;
        // Every token attends to every token.
        let seen = attention::forward(&qkv, &self.qkv.bias, false)?.reshape((rows, width))?;
        let out = seen.matmul(&self.output.weight)?.to_dtype(DType::F32)?;
        let after = Stream { x: first.sum, added: Some((out, self.output.bias.clone())), batch };
        let second = self.mlp_norm.forward(after)?;
        let wide = second.y.to_dtype(place.precision)?.matmul(&self.widen.weight)?;
        let wide = bias_activation::forward(&wide, &self.widen.bias, Activation::GeluErf)?;
        let narrow = wide.matmul(&self.narrow.weight)?.to_dtype(DType::F32)?;
        Ok(Stream { x: second.sum, added: Some((narrow, self.narrow.bias.clone())), batch })
    }
}
