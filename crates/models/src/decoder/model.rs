//! The decoder's weights and its passes.

use candle_core::{D, DType, Device, Tensor};

use super::config::DecoderConfig;
use crate::embedding::{Embedding, GrowingTables, repeated};
use crate::error::{Error, Result};
use crate::eye::Eye;
use crate::layers::Linear;
use crate::parameters::{Init, Parameter, Scope};
use crate::transformer::{Transformer, TransformerConfig};
use crate::vocabulary::{NumberReader, NumberScales, PAD, Piece, PieceTensor, Slots};
use crate::widths::Widths;

/// The longest and the shortest wave of the flow time, which goes from 0 to 1 (as in π₀).
const PERIODS: (f64, f64) = (4.0, 4e-3);

/// The LCAD.
#[derive(Clone, Debug)]
pub struct Decoder {
    pub(super) config: DecoderConfig,
    pub(super) widths: Widths,
    symbols: usize,
    tokens: Embedding,
    /// What reads the numbers that symbols carry, if any do.
    numbers: Option<NumberReader>,
    summaries: Parameter,
    term_place: Parameter,
    term_transformer: Transformer,
    term: Linear,
    eye: Option<Eye>,
    /// The state as a token next to those of the eye.
    seen_state: Option<Linear>,
    features: Option<Linear>,
    state: Option<Linear>,
    action: Linear,
    time_hidden: Linear,
    time: Linear,
    place: Parameter,
    transformer: Transformer,
    output: Linear,
    /// Radians at flow time 1, `[1, width / 2]`.
    waves: Tensor,
}

/// What a chunk is decoded from.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The tokens of the typed term, `<pad>` after the last: `[B, L]`, L at most the setting `tokens`. How much padding
    /// there is changes nothing. [`term_tensor`] makes it.
    pub terms: PieceTensor,
    /// What is seen in the current frame, standardised; `[B, F]`, wanted if the model's F is not 0.
    pub features: Option<Tensor>,
    /// The state of the current frame, standardised; `[B, S]`, wanted if the model's S is not 0.
    pub states: Option<Tensor>,
    /// Images for a model with an eye, as [`EyeConfig::tensor`](crate::EyeConfig::tensor) makes them; `features` are then ignored.
    pub images: Option<Tensor>,
}

/// A condition as tokens: what all Euler steps share.
#[derive(Clone, Debug)]
pub struct Conditioned {
    /// `[B, prefix, width]`
    tokens: Tensor,
}

impl Conditioned {
    /// Without its graph.
    #[must_use]
    pub fn detach(&self) -> Conditioned {
        Conditioned { tokens: self.tokens.detach() }
    }
}

/// Terms as a condition has them; of a longer one the first `limit` tokens are kept.
///
/// # Shapes
/// Gives `[B, L]`, where L is the length of the longest, at least 1.
pub fn term_tensor(terms: &[Vec<Piece>], limit: usize, device: &Device) -> Result<PieceTensor> {
    let most = terms.iter().map(Vec::len).max().unwrap_or(0).clamp(1, limit.max(1));
    PieceTensor::new(terms, most, device)
}

impl Decoder {
    /// Adds its weights to a scope: `term.{tokens, summaries, place, transformer, out}`, `term.numbers` if symbols carry numbers,
    /// `eye` and `seen_state`, `features`, `state`, `action`, `time.{hidden, out}`, `place`, `transformer` and `output`. `symbols`
    /// is the vocabulary's length.
    pub fn new(
        scope: &mut Scope<'_>,
        config: &DecoderConfig,
        widths: Widths,
        symbols: usize,
        scales: &NumberScales,
    ) -> Result<Decoder> {
        config.validate(widths)?;
        let &DecoderConfig { width, layers, heads, form, term_width, term_layers, term_heads, summaries, .. } = config;
        let normal = Init::Normal(0.02);
        // As PyTorch's linear layers start: a few numbers with deviations of 0.02 would hardly be seen beside the places.
        let mut linear = |name: &str, inputs: usize, outputs: usize| {
            Linear::with_init(&mut scope.enter(name), inputs, outputs, Init::FanIn(inputs), form)
        };
        let (_, feature) = config.visual(widths);
        let features = if feature > 0 { Some(linear("features", feature, width)?) } else { None };
        let state = if widths.states > 0 { Some(linear("state", widths.states, width)?) } else { None };
        let (action, output) = (linear("action", widths.actions, width)?, linear("output", width, widths.actions)?);
        let time_hidden = linear("time.hidden", width, config.time_hidden)?;
        let (time, term) = (linear("time.out", config.time_hidden, width)?, linear("term.out", term_width, width)?);
        let place = scope.weight("place", &[config.prefix(widths) + config.chunk, width], normal)?;
        let device = place.master().device().clone();
        let eye = config.eye.as_ref().map(|eye| Eye::new(&mut scope.enter("eye"), eye, term_width)).transpose()?;
        let seen_state = match eye.is_some() && widths.states > 0 {
            true => Some(Linear::with_init(
                &mut scope.enter("seen_state"),
                widths.states,
                term_width,
                Init::FanIn(widths.states),
                form,
            )?),
            false => None,
        };
        let mut inner = scope.enter("term");
        let reader =
            TransformerConfig { width: term_width, layers: term_layers, heads: term_heads, causal: true, form };
        let transformer = TransformerConfig { width, layers, heads, causal: false, form };
        Ok(Decoder {
            config: *config,
            widths,
            symbols,
            tokens: Embedding::new(&mut inner.enter("tokens"), symbols, term_width, form)?,
            numbers: Slots::new(scales, symbols, &device)?
                .map(|slots| NumberReader::new(&mut inner.enter("numbers"), slots, term_width))
                .transpose()?,
            summaries: inner.weight("summaries", &[summaries, term_width], normal)?,
            term_place: inner.weight(
                "place",
                &[config.read(widths) + config.tokens + summaries, term_width],
                normal,
            )?,
            term_transformer: Transformer::new(&mut inner.enter("transformer"), reader)?,
            term,
            eye,
            seen_state,
            features,
            state,
            action,
            time_hidden,
            time,
            place,
            transformer: Transformer::new(&mut scope.enter("transformer"), transformer)?,
            output,
            waves: waves(width / 2, &device)?,
        })
    }

    /// Its settings.
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    /// The widths of what it sees and does.
    pub fn widths(&self) -> Widths {
        self.widths
    }

    /// How many tokens it was made for.
    pub fn symbols(&self) -> usize {
        self.symbols
    }

    /// The tables that grow with vocabulary and programs.
    pub fn tables(&self) -> GrowingTables {
        GrowingTables {
            symbols: vec![self.tokens.weight.name().to_owned()],
            places: std::iter::once(&self.term_place)
                .chain(self.numbers.iter().map(|numbers| &numbers.weight))
                .map(|table| table.name().to_owned())
                .collect(),
        }
    }

    /// The part of a pass that does not depend on chunk and flow time.
    pub fn condition(&self, condition: &Condition) -> Result<Conditioned> {
        let (samples, _) = condition.terms.ids.dims2()?;
        let mut read = Vec::new();
        if let Some(eye) = &self.eye {
            read.push(eye.forward(condition.images.as_ref())?);
        }
        let (visual, numbers) = self.config.visual(self.widths);
        let visual = if self.eye.is_some() { 0 } else { visual };
        let mut parts = Vec::new();
        let inputs = [
            ("features", &self.features, &condition.features, visual, visual * numbers),
            ("states", &self.state, &condition.states, 1, self.widths.states),
        ];
        for (what, linear, values, tokens, width) in inputs {
            let Some(linear) = linear else { continue };
            let Some(values) = values.as_ref().filter(|values| values.dims() == [samples, width]) else {
                let found = values.as_ref().map_or("none".to_owned(), |values| format!("{:?}", values.dims()));
                return Err(Error::Config(format!("the decoder wants {what} as [{samples}, {width}], found {found}")));
            };
            let values = self.working(values)?.reshape((samples, tokens, width / tokens))?;
            if let (Some(seen), "states") = (&self.seen_state, what) {
                read.push(seen.forward(&values)?);
            }
            parts.push(linear.forward(&values)?);
        }
        parts.insert(0, self.term.forward(&self.summarize(read, &condition.terms)?)?);
        Ok(Conditioned { tokens: Tensor::cat(&parts, 1)? })
    }

    /// The velocity at a point of the flow.
    ///
    /// # Shapes
    /// `x`: `[B, chunk, A]`, `times`: `[B]`, both f32; gives `[B, chunk, A]`, f32.
    pub fn velocity(&self, condition: &Conditioned, x: &Tensor, times: &Tensor) -> Result<Tensor> {
        let (samples, chunk, actions) = x.dims3()?;
        if (chunk, actions) != (self.config.chunk, self.widths.actions) {
            return Err(Error::Config(format!(
                "chunks of {chunk} actions of {actions} numbers for a decoder of {} of {}",
                self.config.chunk, self.widths.actions
            )));
        }
        let prefix = self.config.prefix(self.widths);
        let angles = times.to_dtype(DType::F32)?.unsqueeze(1)?.broadcast_mul(&self.waves)?; // [B, width / 2]
        let angles = self.working(&Tensor::cat(&[angles.sin()?, angles.cos()?], D::Minus1)?)?;
        let time = self.time.forward(&self.time_hidden.forward_gelu(&angles)?)?; // [B, width]
        let steps = self.action.forward(&self.working(x)?)?.broadcast_add(&time.unsqueeze(1)?)?;
        let tokens = Tensor::cat(&[&condition.tokens, &steps], 1)?.contiguous()?; // [B, prefix + chunk, width]
        let tokens = (tokens + repeated(&self.place.tracked()?, samples)?)?;
        let seen = self.transformer.forward(&tokens)?.narrow(1, prefix, chunk)?.contiguous()?;
        Ok(self.output.forward(&seen)?.to_dtype(DType::F32)?)
    }

    /// What is read, as vectors: what an eye sees, and the term. They are read causally with padding behind them, and the
    /// summaries' own tokens come right behind the term's last one: they see all of it, and nothing of the padding.
    ///
    /// # Shapes
    /// `read`: `[B, n, term_width]` each; `terms`: `[B, L]`; gives `[B, summaries, term_width]`.
    fn summarize(&self, mut read: Vec<Tensor>, terms: &PieceTensor) -> Result<Tensor> {
        let (samples, length) = terms.ids.dims2()?;
        let DecoderConfig { summaries, term_width, tokens: most, .. } = self.config;
        if length > most {
            return Err(Error::Config(format!(
                "terms of {length} tokens for a decoder of {most}; cut them with `term_tensor` or raise `tokens`"
            )));
        }
        let (device, count, before) = (terms.ids.device(), length + summaries, self.config.read(self.widths));
        let ids = Tensor::cat(&[&terms.ids, &Tensor::full(PAD, (samples, summaries), device)?], 1)?;
        let mut rows = self.tokens.rows(&ids)?; // [B, count, term_width]
        if let Some(reader) = &self.numbers {
            let room = Tensor::zeros((samples, summaries), DType::F32, device)?;
            rows = (rows + reader.rows(&ids, &Tensor::cat(&[&terms.numbers, &room], 1)?)?)?;
        }
        let dtype = rows.dtype();
        // [B, summaries, count]: one where a summary stands. As products, summaries are put there and taken out again.
        let lengths = terms.ids.ne(PAD)?.to_dtype(DType::F32)?.sum_keepdim(1)?; // [B, 1]
        let places = Tensor::arange(0_u32, summaries as u32, device)?.to_dtype(DType::F32)?.unsqueeze(0)?;
        let places = lengths.broadcast_add(&places)?.unsqueeze(2)?; // [B, summaries, 1]
        let all = Tensor::arange(0_u32, count as u32, device)?.to_dtype(DType::F32)?.reshape((1, 1, count))?;
        let chosen = places.broadcast_eq(&all)?.to_dtype(dtype)?;
        let put = chosen.transpose(1, 2)?.contiguous()?.reshape((samples * count, summaries))?;
        let put = put.matmul(&self.summaries.tracked()?)?.reshape((samples, count, term_width))?;
        read.push((rows + put)?);
        let rows = Tensor::cat(&read, 1)?.contiguous()?; // [B, before + count, term_width]
        let learned = self.term_place.tracked()?.narrow(0, 0, before + count)?.contiguous()?;
        let seen = self.term_transformer.forward(&(rows + repeated(&learned, samples)?)?)?;
        Ok(chosen.matmul(&seen.narrow(1, before, count)?.contiguous()?)?)
    }

    fn working(&self, x: &Tensor) -> Result<Tensor> {
        Ok(x.to_dtype(self.place.dtype())?.contiguous()?)
    }
}

/// Waves from the longest to the shortest, evenly in the logarithm.
fn waves(count: usize, device: &Device) -> Result<Tensor> {
    let (longest, shortest) = PERIODS;
    let wave = |at: usize| {
        let share = at as f64 / (count.max(2) - 1) as f64;
        (std::f64::consts::TAU / (longest * (shortest / longest).powf(share))) as f32
    };
    Ok(Tensor::from_vec((0..count).map(wave).collect::<Vec<f32>>(), (1, count), device)?)
}
