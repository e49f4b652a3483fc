//! The pre-norm Transformer that every model here is built on.
//!
//! x ← x + W_o · attention(LN(x)) ,  x ← x + W₂ · gelu(W₁ · LN(x) + b₁) , and a last LN. GELU is the tanh form. Queries, keys
//! and values come from one product, ordered `[3, heads, width / heads]` in its output. Weights start normal with deviation
//! 0.02, those that write into the residual stream with 0.02/√(2·layers).
//!
//! A causal model can be run in pieces: [`Transformer::extend`] takes the next tokens and keeps keys and values in a
//! [`Cache`]; the outputs are those of the whole sequence at once.

use candle_core::{D, DType, Tensor};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::layers::{LayerNorm, Linear};
use crate::ops::Form;
use crate::parameters::{Init, Scope};

/// The shape of a Transformer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransformerConfig {
    /// Numbers in a token.
    pub width: usize,
    /// Blocks.
    pub layers: usize,
    /// Attention heads in a block; they divide the width.
    pub heads: usize,
    /// Whether a token sees only those before it and itself.
    pub causal: bool,
    /// Fused or composed operations.
    #[serde(default)]
    pub form: Form,
}

/// Blocks and a last normalisation.
#[derive(Clone, Debug)]
pub struct Transformer {
    config: TransformerConfig,
    blocks: Vec<Block>,
    norm: LayerNorm,
}

#[derive(Clone, Debug)]
struct Block {
    norm_1: LayerNorm,
    qkv: Linear,
    out: Linear,
    norm_2: LayerNorm,
    up: Linear,
    down: Linear,
}

/// Keys and values of the tokens seen so far, `[batch, heads, tokens, head width]` for each block.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    keys_values: Vec<(Tensor, Tensor)>,
}

impl Cache {
    /// How many tokens it holds.
    pub fn tokens(&self) -> usize {
        self.keys_values.first().map_or(0, |(keys, _)| keys.dims().get(2).copied().unwrap_or(0))
    }
}

impl Transformer {
    /// Adds its weights to a scope: `layers.N.{norm_1, qkv, out, norm_2, up, down}` and `norm`.
    pub fn new(scope: &mut Scope<'_>, config: TransformerConfig) -> Result<Transformer> {
        let TransformerConfig { width, layers, heads, form, .. } = config;
        if heads == 0 || width % heads != 0 {
            return Err(Error::Config(format!("{heads} heads do not divide a width of {width}")));
        }
        let normal = Init::Normal(0.02);
        let residual = Init::Normal(0.02 / (2.0 * layers.max(1) as f64).sqrt());
        let block = |scope: &mut Scope<'_>| {
            Ok(Block {
                norm_1: LayerNorm::new(&mut scope.enter("norm_1"), width, form)?,
                qkv: Linear::with_init(&mut scope.enter("qkv"), width, 3 * width, normal, form)?,
                out: Linear::with_init(&mut scope.enter("out"), width, width, residual, form)?,
                norm_2: LayerNorm::new(&mut scope.enter("norm_2"), width, form)?,
                up: Linear::with_init(&mut scope.enter("up"), width, 4 * width, normal, form)?,
                down: Linear::with_init(&mut scope.enter("down"), 4 * width, width, residual, form)?,
            })
        };
        let blocks: Result<Vec<Block>> =
            (0..layers).map(|at| block(&mut scope.enter(format!("layers.{at}")))).collect();
        Ok(Transformer { config, blocks: blocks?, norm: LayerNorm::new(&mut scope.enter("norm"), width, form)? })
    }

    /// Its shape.
    pub fn config(&self) -> TransformerConfig {
        self.config
    }

    /// # Shapes
    /// `x`: `[batch, tokens, width]` in the precision of products, and so is the result.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        for block in &self.blocks {
            x = block.forward(&x, self.config, None)?;
        }
        self.norm.forward(&x)
    }

    /// The next tokens of a causal sequence, without gradients.
    ///
    /// # Shapes
    /// `x`: `[batch, new tokens, width]`, and so is the result.
    pub fn extend(&self, x: &Tensor, cache: &mut Cache) -> Result<Tensor> {
        if !self.config.causal {
            return Err(Error::Config("only a causal Transformer can be run in pieces".into()));
        }
        cache.keys_values.resize_with(self.blocks.len(), || (x.clone(), x.clone()));
        let fresh = cache.tokens() == 0 || cache.keys_values.iter().any(|(keys, _)| keys.rank() != 4);
        let mut x = x.detach();
        for (block, kept) in self.blocks.iter().zip(&mut cache.keys_values) {
            x = block.forward(&x, self.config, Some((kept, fresh)))?.detach();
        }
        Ok(self.norm.forward(&x)?.detach())
    }
}

impl Block {
    fn forward(
        &self,
        x: &Tensor,
        config: TransformerConfig,
        cache: Option<(&mut (Tensor, Tensor), bool)>,
    ) -> Result<Tensor> {
        let (batch, tokens, width) = x.dims3()?;
        let head = width / config.heads;
        let qkv = self.qkv.forward(&self.norm_1.forward(x)?)?.reshape((batch, tokens, 3, config.heads, head))?;
        // Each [batch, heads, tokens, head].
        let part = |which: usize| qkv.narrow(2, which, 1)?.squeeze(2)?.transpose(1, 2)?.contiguous();
        let (query, mut keys, mut values) = (part(0)?, part(1)?, part(2)?);
        if let Some((kept, fresh)) = cache {
            if !fresh {
                keys = Tensor::cat(&[&kept.0, &keys], 2)?;
                values = Tensor::cat(&[&kept.1, &values], 2)?;
            }
            *kept = (keys.detach(), values.detach());
        }
        let seen = attend(&query, &keys, &values, config.causal)?;
        let seen = seen.transpose(1, 2)?.reshape((batch, tokens, width))?;
        let x = (x + self.out.forward(&seen)?)?;
        let hidden = self.up.forward(&self.norm_2.forward(&x)?)?.gelu()?;
        Ok((&x + self.down.forward(&hidden)?)?)
    }
}

/// softmax(q kᵀ/√d + mask) v, with the softmax in f32. Queries are the last tokens of the keys.
fn attend(query: &Tensor, keys: &Tensor, values: &Tensor, causal: bool) -> Result<Tensor> {
    let (.., queries, head) = query.dims4()?;
    let (.., tokens, _) = keys.dims4()?;
    let scores = (query.matmul(&keys.transpose(2, 3)?.contiguous()?)?.to_dtype(DType::F32)? / (head as f64).sqrt())?;
    let scores = if causal {
        let first = tokens - queries;
        let mask: Vec<f32> = (0..queries)
            .flat_map(|row| (0..tokens).map(move |column| if column > first + row { f32::NEG_INFINITY } else { 0.0 }))
            .collect();
        scores.broadcast_add(&Tensor::from_vec(mask, (queries, tokens), query.device())?)?
    } else {
        scores
    };
    let scores = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?.detach())?.exp()?;
    let weights = scores.broadcast_div(&scores.sum_keepdim(D::Minus1)?)?;
    Ok(weights.to_dtype(values.dtype())?.matmul(values)?)
}
