//! One layer of the Transformer, and LayerNorm.
//!
//! ```text
//! x ← x + λ₁ ⊙ (softmax(q kᵀ/√d) v Wₒ + bₒ)      q, k, v = LN₁(x) W_qkv + b_qkv
//! x ← x + λ₂ ⊙ (GELU(LN₂(x) W₁ + b₁) W₂ + b₂)
//! ```
//! λ₁ and λ₂, the layer scales, are folded into the weights that stand before them. Residuals are f32 on every device; on
//! GPUs the products are in the precision of the weights.

use candle_core::{D, DType, Device, Result, Tensor};

use super::config::DinoV2Config;
use super::cpu;
use super::error::EncoderError;
use super::weights::Weights;

/// How the operations between products are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passes {
    /// By our own loops, on CPUs, in f32.
    Fused,
    /// By the tensor framework's operations, on any device.
    Composed,
}

/// Where and in what the model computes.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) device: Device,
    pub(super) precision: DType,
    pub(super) passes: Passes,
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

    /// # Shapes
    /// `x`: `[B, N, D]` in f32; the result: the same.
    pub(super) fn forward(&self, x: &Tensor, passes: Passes) -> Result<Tensor> {
        if passes == Passes::Fused {
            return cpu::layer_norm(x, &self.weight, &self.bias, self.eps);
        }
        let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
        let deviation = (centred.sqr()?.mean_keepdim(D::Minus1)? + self.eps)?.sqrt()?;
        centred.broadcast_div(&deviation)?.broadcast_mul(&self.weight)?.broadcast_add(&self.bias)
    }
}

/// x W + b, W as `[in, out]`.
struct Linear {
    weight: Tensor,
    /// In the precision of the result that it is added to.
    bias: Tensor,
}

impl Linear {
    /// # Shapes
    /// `weight`: `[out, in]`, as files have it; `bias`: `[out]`; `scale`: `[out]`.
    fn new(weight: &Tensor, bias: &Tensor, scale: Option<&Tensor>, bias_in: DType, place: &Place) -> Result<Linear> {
        let (weight, bias) = match scale {
            Some(scale) => (weight.broadcast_mul(&scale.unsqueeze(1)?)?, (bias * scale)?),
            None => (weight.clone(), bias.clone()),
        };
        let weight = weight.t()?.contiguous()?.to_dtype(place.precision)?.to_device(&place.device)?;
        Ok(Linear { weight, bias: bias.to_dtype(bias_in)?.to_device(&place.device)? })
    }

    /// The product alone: who calls adds the bias in the pass that follows.
    ///
    /// # Shapes
    /// `x`: `[B, N, in]`; the result: `[B, N, out]`.
    fn product(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, tokens, width) = x.dims3()?;
        let out = self.weight.dim(1)?;
        x.reshape((batch * tokens, width))?.matmul(&self.weight)?.reshape((batch, tokens, out))
    }
}

/// Attention and MLP, each behind a LayerNorm and beside a residual.
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
        let (products, residuals) = (place.precision, DType::F32);
        let scaled = |name: &str, scale: &str| {
            let (weight, bias) = (get(&format!("{name}.weight"))?, get(&format!("{name}.bias"))?);
            Ok::<_, EncoderError>(Linear::new(&weight, &bias, Some(&get(scale)?), residuals, place)?)
        };
        Ok(Layer {
            heads: config.heads,
            attention_norm: norm("norm1")?,
            qkv: Linear::new(&qkv, &qkv_bias, None, products, place)?,
            output: scaled("attention.output.dense", "layer_scale1.lambda1")?,
            mlp_norm: norm("norm2")?,
            widen: Linear::new(&get("mlp.fc1.weight")?, &get("mlp.fc1.bias")?, None, products, place)?,
            narrow: scaled("mlp.fc2", "layer_scale2.lambda1")?,
        })
    }

    /// # Shapes
    /// `x`: `[B, N, D]` in f32, contiguous and nobody else's; the result: the same.
    pub(super) fn forward(&self, x: Tensor, place: &Place) -> Result<Tensor> {
        let inner = self.attention_norm.forward(&x, place.passes)?.to_dtype(place.precision)?;
        let qkv = self.qkv.product(&inner)?;
        let seen = self.attention(&qkv, place.passes)?;
        let x = self.output.add_to(x, &seen, place.passes)?;
        let inner = self.mlp_norm.forward(&x, place.passes)?.to_dtype(place.precision)?;
        let wide = self.widen.product(&inner)?;
        let wide = match place.passes {
            Passes::Fused => {
                cpu::bias_gelu(&wide, &self.widen.bias)?;
                wide
            }
            Passes::Composed => wide.broadcast_add(&self.widen.bias)?.gelu_erf()?,
        };
        self.narrow.add_to(x, &wide, place.passes)
    }

    /// Attention of every token to every token, without a mask.
    ///
    /// # Shapes
    /// `qkv`: `[B, N, 3 · D]` without its bias; the result: `[B, N, D]`.
    fn attention(&self, qkv: &Tensor, passes: Passes) -> Result<Tensor> {
        let (batch, tokens, width) = qkv.dims3()?;
        let (heads, head) = (self.heads, width / 3 / self.heads);
        if passes == Passes::Fused {
            // Picture by picture, so that the scores stay in the cache.
            let pictures = (0..batch).map(|picture| {
                let parts = cpu::split_heads(&qkv.narrow(0, picture, 1)?, &self.qkv.bias, heads)?; // [3, H, N, d]
                let (queries, keys, values) = (parts.get(0)?, parts.get(1)?, parts.get(2)?);
                let scores = queries.matmul(&keys.t()?)?; // [H, N, N]
                cpu::softmax(&scores)?;
                cpu::merge_heads(&scores.matmul(&values)?, heads) // [1, N, D]
            });
            return Tensor::cat(&pictures.collect::<Result<Vec<_>>>()?, 0);
        }
        let parts = qkv.broadcast_add(&self.qkv.bias)?.reshape((batch, tokens, 3, heads, head))?;
        let parts = parts.permute((2, 0, 3, 1, 4))?.contiguous()?; // [3, B, H, N, d]
        let queries = (parts.get(0)? * (head as f64).powf(-0.5))?;
        // Sums over a row of half-precision exponentials would lose what small ones add.
        let scores = queries.matmul(&parts.get(1)?.t()?)?.to_dtype(DType::F32)?; // [B, H, N, N]
        let powers = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?)?.exp()?;
        let shares = powers.broadcast_div(&powers.sum_keepdim(D::Minus1)?)?.to_dtype(qkv.dtype())?;
        let seen = shares.matmul(&parts.get(2)?)?; // [B, H, N, d]
        seen.transpose(1, 2)?.contiguous()?.reshape((batch, tokens, width / 3))
    }
}

impl Linear {
    /// residual + x W + b.
    ///
    /// # Shapes
    /// `residual`: `[B, N, out]` in f32; `x`: `[B, N, in]`; the result: as the residual.
    fn add_to(&self, residual: Tensor, x: &Tensor, passes: Passes) -> Result<Tensor> {
        let product = self.product(x)?;
        match passes {
            Passes::Fused => {
                cpu::add(&residual, &product, &self.bias)?;
                Ok(residual)
            }
            Passes::Composed => residual + product.to_dtype(DType::F32)?.broadcast_add(&self.bias)?,
        }
    }
}
