//! The pre-norm Transformer that every model here is built on.
//!
//! x ← x + W_o · attention(LN(x)) ,  x ← x + W₂ · gelu(W₁ · LN(x) + b₁) , and a last LN. GELU is the tanh form. Queries, keys
//! and values come from one product, ordered `[3, heads, width / heads]` in its output. Weights start normal with deviation
//! 0.02, those that write into the residual stream with 0.02/√(2·layers).
//!
//! The fused form is one node of Candle's graph, with its backward pass written out beside its forward pass in `fused`.
//!
//! A causal model can be run in pieces: [`Transformer::extend`] takes the next tokens and keeps keys and values in a
//! [`Cache`]; the outputs are those of the whole sequence at once.

mod fused;

use candle_core::Tensor;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::layers::{LayerNorm, Linear};
use crate::ops::attention::probabilities;
use crate::ops::{Form, without_gradients};
use crate::parameters::{Init, Parameter, Scope};

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

    /// Some of its sequences, in any order and as often as wanted: what a beam search goes on with.
    pub fn select(&self, rows: &[u32]) -> Result<Cache> {
        let Some((keys, _)) = self.keys_values.first() else { return Ok(Cache::default()) };
        let rows = Tensor::new(rows, keys.device())?;
        let select = |x: &Tensor| x.contiguous()?.index_select(&rows, 0);
        let each = |(keys, values): &(Tensor, Tensor)| Ok((select(keys)?, select(values)?));
        Ok(Cache { keys_values: self.keys_values.iter().map(each).collect::<Result<_>>()? })
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
        if self.config.form.is_fused_for(x) {
            return fused::forward(self, x);
        }
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
        without_gradients(|| {
            let mut x = x.detach();
            for (block, kept) in self.blocks.iter().zip(&mut cache.keys_values) {
                x = block.forward(&x, self.config, Some((kept, fresh)))?.detach();
            }
            Ok(self.norm.forward(&x)?.detach())
        })
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
        let seen = probabilities(&query, &keys, config.causal)?.to_dtype(values.dtype())?.matmul(&values)?;
        let seen = seen.transpose(1, 2)?.reshape((batch, tokens, width))?;
        let x = (x + self.out.forward(&seen)?)?;
        let hidden = self.up.forward(&self.norm_2.forward(&x)?)?.gelu()?;
        Ok((&x + self.down.forward(&hidden)?)?)
    }
}

impl Transformer {
    fn each_parameter(&self, each: impl Fn(&Parameter)) {
        let norms = |norm: &LayerNorm| [&norm.weight, &norm.bias].into_iter().for_each(&each);
        let linears = |linear: &Linear| [&linear.weight, &linear.bias].into_iter().for_each(&each);
        for block in &self.blocks {
            [&block.norm_1, &block.norm_2].into_iter().for_each(norms);
            [&block.qkv, &block.out, &block.up, &block.down].into_iter().for_each(linears);
        }
        norms(&self.norm);
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;
    use crate::ops::testing::{distance, random};
    use crate::parameters::{Parameters, Precision};

    fn model(form: Form, causal: bool, layers: usize) -> (Parameters, Transformer) {
        let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 3);
        let config = TransformerConfig { width: 24, layers, heads: 3, causal, form };
        let model = Transformer::new(&mut parameters.root(), config).unwrap();
        // Away from the zeros and ones that weights start with, so that every gradient matters.
        for (at, parameter) in parameters.iter().enumerate() {
            let noise = (random(parameter.master().dims(), 100 + at as u64) * 0.2).unwrap();
            parameter.master().set(&(parameter.vector() + noise).unwrap()).unwrap();
        }
        (parameters, model)
    }

    #[test]
    fn fused_equals_composed_with_all_gradients() {
        for causal in [true, false] {
            for layers in [1, 3] {
                let x = Var::from_tensor(&random(&[4, 9, 24], 1)).unwrap();
                let dy = random(&[4, 9, 24], 2);
                let [fused, composed] = [Form::Fused, Form::Composed].map(|form| {
                    let (parameters, model) = model(form, causal, layers);
                    let y = model.forward(&x).unwrap();
                    let found = (&y * &dy).unwrap().sum_all().unwrap().backward().unwrap();
                    let gradients = parameters.gradients(&found).unwrap();
                    let names: Vec<String> = parameters.iter().map(|one| one.name().to_owned()).collect();
                    (y.detach(), found.get(&x).unwrap().clone(), gradients, names)
                });
                assert!(distance(&fused.0, &composed.0) < 1e-5);
                assert!(distance(&fused.1, &composed.1) < 1e-5);
                for ((fused, composed), name) in fused.2.iter().zip(&composed.2).zip(&fused.3) {
                    let apart = distance(fused.as_ref().unwrap(), composed.as_ref().unwrap());
                    assert!(apart < 1e-4, "{name}: {apart}");
                }
            }
        }
    }

    #[test]
    fn pieces_give_what_the_whole_gives() {
        for form in [Form::Fused, Form::Composed] {
            let (_, model) = model(form, true, 2);
            let x = random(&[2, 10, 24], 5);
            let whole = without_gradients(|| model.forward(&x)).unwrap();
            let mut cache = Cache::default();
            let mut pieces = Vec::new();
            for (start, length) in [(0, 3), (3, 1), (4, 4), (8, 2)] {
                pieces.push(model.extend(&x.narrow(1, start, length).unwrap(), &mut cache).unwrap());
                assert_eq!(cache.tokens(), start + length);
            }
            assert!(distance(&Tensor::cat(&pieces, 1).unwrap(), &whole) < 1e-5);
        }
    }

    #[test]
    fn a_selected_cache_goes_on_with_the_selected_sequences() {
        let (_, model) = model(Form::Fused, true, 2);
        let (x, rows) = (random(&[3, 6, 24], 5), [2_u32, 0, 2]);
        let whole = without_gradients(|| model.forward(&x)).unwrap();
        let rows_of = |x: &Tensor| x.index_select(&Tensor::new(&rows, &Device::Cpu).unwrap(), 0).unwrap();
        let mut cache = Cache::default();
        assert_eq!(cache.select(&rows).unwrap().tokens(), 0);
        model.extend(&x.narrow(1, 0, 4).unwrap(), &mut cache).unwrap();
        let mut cache = cache.select(&rows).unwrap();
        let found = model.extend(&rows_of(&x).narrow(1, 4, 2).unwrap(), &mut cache).unwrap();
        assert!(distance(&found, &rows_of(&whole).narrow(1, 4, 2).unwrap()) < 1e-5);
    }

    #[test]
    fn a_hook_hears_of_each_gradient_once() {
        let (parameters, model) = model(Form::Fused, true, 2);
        let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let ears = heard.clone();
        parameters.set_gradient_hook(Some(Box::new(move |index, _| {
            ears.lock().unwrap().push(index);
            Ok(())
        })));
        model.forward(&random(&[2, 5, 24], 1)).unwrap().sqr().unwrap().sum_all().unwrap().backward().unwrap();
        let mut heard = heard.lock().unwrap().clone();
        heard.sort_unstable();
        assert_eq!(heard, (0..parameters.len()).collect::<Vec<_>>());
    }
}
