//! The emitter's weights and its passes.

use candle_core::{DType, Device, Tensor};

use super::config::{EmitterConfig, Symbols};
use super::words::NO_WORD;
use crate::embedding::{Embedding, GrowingTables, repeated};
use crate::error::{Error, Result};
use crate::eye::Eye;
use crate::layers::Linear;
use crate::parameters::{Init, Parameter, Scope};
use crate::transformer::{Transformer, TransformerConfig};
use crate::vocabulary::{BOS, NumberReader, NumberScales, NumberWriter, Piece, PieceTensor, Slots, padded};
use crate::widths::Widths;

/// Words, features, state, tokens of programs.
const KINDS: usize = 4;

/// The TPE.
#[derive(Clone, Debug)]
pub struct Emitter {
    pub(super) config: EmitterConfig,
    pub(super) widths: Widths,
    pub(super) symbols: Symbols,
    words: Embedding,
    tokens: Embedding,
    /// Without it scores are products with `tokens`.
    output: Option<Embedding>,
    /// What reads and writes the numbers that symbols carry, if any do.
    numbers: Option<(NumberReader, NumberWriter)>,
    eye: Option<Eye>,
    features: Option<Linear>,
    state: Option<Linear>,
    kind: Parameter,
    place: Parameter,
    /// Which kind stands at which place, one-hot, `[places, KINDS]`.
    kinds: Tensor,
    pub(super) transformer: Transformer,
}

/// What programs are emitted for.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The words of the instruction, filled up with [`NO_WORD`]; `[B, words]` u32.
    pub words: Tensor,
    /// What is seen in the current frame, standardised; `[B, F]`, wanted if the model's F is not 0.
    pub features: Option<Tensor>,
    /// The state of the current frame, standardised; `[B, S]`, wanted if the model's S is not 0.
    pub states: Option<Tensor>,
    /// Images for a model with an eye, as [`EyeConfig::tensor`](crate::EyeConfig::tensor) makes them; `features` are then ignored.
    pub images: Option<Tensor>,
}

/// What the emitter learns from.
#[derive(Clone, Debug)]
pub struct EmitterBatch {
    /// What the programs are for.
    pub condition: Condition,
    /// `<bos>`, the programs with `<separator>` between them, `<eos>`, filled up with `<pad>`: `[B, N + 1]`, N at most
    /// the setting `tokens`. [`token_tensor`] makes it.
    pub tokens: PieceTensor,
}

/// Targets as a batch has them: `<bos>` before each, `<pad>` after it.
///
/// # Shapes
/// Gives `[B, N + 1]`, where N is the length of the longest.
pub fn token_tensor(targets: &[Vec<Piece>], device: &Device) -> Result<PieceTensor> {
    let most = targets.iter().map(Vec::len).max().unwrap_or(0);
    let started: Vec<Vec<Piece>> = targets
        .iter()
        .map(|target| std::iter::once(Piece::plain(BOS)).chain(target.iter().copied()).collect())
        .collect();
    PieceTensor::new(&started, most + 1, device)
}

/// Instructions as a condition has them, [`NO_WORD`] after the last word; words beyond the limit are left out.
///
/// # Shapes
/// Gives `[B, words]` u32.
pub fn word_tensor(instructions: &[Vec<u32>], words: usize, device: &Device) -> Result<Tensor> {
    padded(instructions, words, NO_WORD, device)
}

impl Condition {
    /// Some of its rows, in any order.
    pub fn select(&self, rows: &[u32]) -> Result<Condition> {
        let rows = Tensor::new(rows, self.words.device())?;
        let select = |x: &Tensor| x.index_select(&rows, 0);
        Ok(Condition {
            words: select(&self.words)?,
            features: self.features.as_ref().map(select).transpose()?,
            states: self.states.as_ref().map(select).transpose()?,
            images: self.images.as_ref().map(select).transpose()?,
        })
    }
}

impl Emitter {
    /// Adds its weights to a scope: `words`, `tokens`, `output` unless tied, `numbers.{read, write}` if symbols carry numbers,
    /// `eye`, `features`, `state`, `kind`, `place` and `transformer`.
    pub fn new(
        scope: &mut Scope<'_>,
        config: &EmitterConfig,
        widths: Widths,
        symbols: Symbols,
        scales: &NumberScales,
    ) -> Result<Emitter> {
        config.validate(widths)?;
        let EmitterConfig { width, layers, heads, words, tokens, tied, form, .. } = *config;
        let (visual, numbers) = config.visual(widths);
        let mut table = |name: &str, symbols| Embedding::new(&mut scope.enter(name), symbols, width, form);
        let (word_rows, token_rows) = (table("words", symbols.words)?, table("tokens", symbols.tokens)?);
        let output = if tied { None } else { Some(table("output", symbols.tokens)?) };
        // As PyTorch's linear layers start: a few numbers with deviations of 0.02 would hardly be seen beside the places.
        let mut linear = |name: &str, inputs: usize| match inputs {
            0 => Ok(None),
            _ => Linear::with_init(&mut scope.enter(name), inputs, width, Init::FanIn(inputs), form).map(Some),
        };
        let (features, state) = (linear("features", numbers)?, linear("state", widths.states)?);
        let eye = config.eye.as_ref().map(|eye| Eye::new(&mut scope.enter("eye"), eye, width)).transpose()?;
        let places = config.prefix(widths) + tokens;
        let kind = scope.weight("kind", &[KINDS, width], Init::Normal(0.02))?;
        let place = scope.weight("place", &[places, width], Init::Normal(0.02))?;
        let counts = [words, visual, usize::from(state.is_some()), tokens];
        let one_hot: Vec<f32> = counts
            .iter()
            .enumerate()
            .flat_map(|(kind, count)| std::iter::repeat_n(kind, *count))
            .flat_map(|kind| (0..KINDS).map(move |at| f32::from(u8::from(at == kind))))
            .collect();
        let kinds = Tensor::from_vec(one_hot, (places, KINDS), place.master().device())?;
        let transformer = TransformerConfig { width, layers, heads, causal: true, form };
        let slots = Slots::new(scales, symbols.tokens, place.master().device())?;
        let mut number_scope = scope.enter("numbers");
        let numbers = match slots {
            Some(slots) => Some((
                NumberReader::new(&mut number_scope.enter("read"), slots.clone(), width)?,
                NumberWriter::new(&mut number_scope.enter("write"), slots, width)?,
            )),
            None => None,
        };
        Ok(Emitter {
            config: *config,
            widths,
            symbols,
            words: word_rows,
            tokens: token_rows,
            output,
            numbers,
            eye,
            features,
            state,
            kind,
            place,
            kinds,
            transformer: Transformer::new(&mut scope.enter("transformer"), transformer)?,
        })
    }

    /// Its settings.
    pub fn config(&self) -> &EmitterConfig {
        &self.config
    }

    /// The widths of what it sees.
    pub fn widths(&self) -> Widths {
        self.widths
    }

    /// How many symbols it was made for.
    pub fn symbols(&self) -> Symbols {
        self.symbols
    }

    /// The tables that grow with vocabulary and programs.
    pub fn tables(&self) -> GrowingTables {
        let tables = std::iter::once(&self.tokens).chain(&self.output);
        let numbers = self.numbers.iter().flat_map(|(reader, writer)| [&reader.weight, &writer.weight]);
        GrowingTables {
            symbols: tables.map(|table| table.weight.name().to_owned()).collect(),
            places: std::iter::once(&self.place).chain(numbers).map(|table| table.name().to_owned()).collect(),
        }
    }

    /// What each token scores as the next one, with gradients.
    ///
    /// # Shapes
    /// `inputs`: `[B, N]`, `<bos>` first; gives `[B·N, symbols]`, f32: row b·N + t is for the token after input t.
    pub fn scores(&self, condition: &Condition, inputs: &PieceTensor) -> Result<Tensor> {
        self.score(&self.seen(condition, inputs)?)
    }

    /// What the model has seen up to each input.
    ///
    /// # Shapes
    /// `inputs`: `[B, N]`; gives `[B·N, width]`.
    pub(super) fn seen(&self, condition: &Condition, inputs: &PieceTensor) -> Result<Tensor> {
        let (samples, count) = inputs.ids.dims2()?;
        let prefix = self.config.prefix(self.widths);
        let mut parts = self.read(condition)?;
        parts.push(self.rows(inputs)?);
        let seen = self.transformer.forward(&self.placed(&parts, 0)?)?;
        let seen = seen.narrow(1, prefix, count)?.contiguous()?;
        Ok(seen.reshape((samples * count, self.config.width))?)
    }

    /// What writes the numbers that symbols carry, if any do.
    pub(super) fn writer(&self) -> Option<&NumberWriter> {
        self.numbers.as_ref().map(|(_, writer)| writer)
    }

    /// Symbols and the numbers that they carry as vectors.
    fn rows(&self, inputs: &PieceTensor) -> Result<Tensor> {
        let rows = self.tokens.rows(&inputs.ids)?;
        match &self.numbers {
            Some((reader, _)) => Ok((rows + reader.rows(&inputs.ids, &inputs.numbers)?)?),
            None => Ok(rows),
        }
    }

    /// The condition as tokens, at their places.
    ///
    /// # Shapes
    /// Gives `[B, prefix, width]`.
    pub(super) fn prefix(&self, condition: &Condition) -> Result<Tensor> {
        self.placed(&self.read(condition)?, 0)
    }

    /// Tokens of programs, of which the first is input `from`, at their places.
    ///
    /// # Shapes
    /// `inputs`: `[B, n]`; gives `[B, n, width]`.
    pub(super) fn placed_inputs(&self, inputs: &PieceTensor, from: usize) -> Result<Tensor> {
        self.placed(&[self.rows(inputs)?], self.config.prefix(self.widths) + from)
    }

    /// # Shapes
    /// `seen`: `[rows, width]`; gives `[rows, symbols]`, f32.
    pub(super) fn score(&self, seen: &Tensor) -> Result<Tensor> {
        Ok(self.output.as_ref().unwrap_or(&self.tokens).scores(seen)?.to_dtype(DType::F32)?)
    }

    /// Words, features and state, each `[B, n, width]`.
    fn read(&self, condition: &Condition) -> Result<Vec<Tensor>> {
        let (samples, words) = condition.words.dims2()?;
        if words != self.config.words {
            return Err(Error::Config(format!(
                "instructions of {words} words for an emitter of {}; `word_tensor` fills them up",
                self.config.words
            )));
        }
        let dtype = self.place.dtype();
        let mut parts = vec![self.words.rows(&condition.words)?];
        let (visual, numbers) = self.config.visual(self.widths);
        if let Some(eye) = &self.eye {
            parts.push(eye.forward(condition.images.as_ref())?);
        }
        let inputs = [
            ("features", &self.features, &condition.features, visual, visual * numbers),
            ("states", &self.state, &condition.states, 1, self.widths.states),
        ];
        for (what, linear, values, tokens, width) in inputs {
            let Some(linear) = linear else { continue };
            let Some(values) = values.as_ref().filter(|values| values.dims() == [samples, width]) else {
                let found = values.as_ref().map_or("none".to_owned(), |values| format!("{:?}", values.dims()));
                return Err(Error::Config(format!("the emitter wants {what} as [{samples}, {width}], found {found}")));
            };
            parts.push(linear.forward(&values.to_dtype(dtype)?.contiguous()?.reshape((
                samples,
                tokens,
                width / tokens,
            ))?)?);
        }
        Ok(parts)
    }

    /// Parts one after the other, with the embeddings of kind and place from `from` on.
    fn placed(&self, parts: &[Tensor], from: usize) -> Result<Tensor> {
        let tokens = Tensor::cat(parts, 1)?.contiguous()?;
        let (samples, count, _) = tokens.dims3()?;
        let places = self.kinds.dims2()?.0;
        if from + count > places {
            return Err(Error::Config(format!(
                "{} tokens are more than the emitter's {places}; shorten the programs or raise `tokens`",
                from + count
            )));
        }
        let kinds = self.kinds.narrow(0, from, count)?.matmul(&self.kind.tracked_f32())?;
        let learned = (self.place.tracked_f32().narrow(0, from, count)? + kinds)?;
        Ok((&tokens + repeated(&learned.to_dtype(tokens.dtype())?, samples)?)?)
    }
}
