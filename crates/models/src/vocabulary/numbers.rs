//! Numbers of programs as models read and write them: continuous values, standardised for each place of a vector.
//!
//! A *slot* is a symbol that carries a number, such as the third number of a pose. Numbers are read as a few smooth features
//! φ(v), with separate columns for every slot, and added to the symbol's row. They are written as a mixture of normal
//! distributions for the slot that comes next (Bishop 1994, *Mixture density networks*), trained by likelihood. The grid of the
//! compressor plays no part here, so a target is as exact as the model knows it.
//!
//! The loss of a number is −ln(p(v)·[`CELL`]), the nats of the number rounded to a cell of that size. It is comparable with the
//! nats of symbols, and never negative, because no component is narrower than the cell.

use candle_core::{D, DType, Device, Tensor};
use serde::{Deserialize, Serialize};

use super::{BoundVocabulary, Piece, Symbol};
use crate::error::{Error, Result};
use crate::parameters::{Init, Parameter, Scope};

/// The least deviation of a component, in deviations of the slot; the cell that losses are for.
const CELL: f64 = 0.02;

/// Frequencies of the features sin(ωv) and cos(ωv), after v itself.
const FREQUENCIES: [f64; 2] = [2.0, 4.0];

/// Features of a number.
const FEATURES: usize = 1 + 2 * FREQUENCIES.len();

/// Components of the mixture that a number is written as.
const COMPONENTS: usize = 4;

/// The mean and the deviation of each slot's numbers in training programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberScales {
    slots: Vec<Scale>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scale {
    /// The symbol of the slot.
    id: u32,
    mean: f64,
    deviation: f64,
}

impl NumberScales {
    /// The scales of a vocabulary's slots over some programs. Slots that an earlier policy had keep their scales.
    pub fn fit<'a>(
        vocabulary: &BoundVocabulary,
        programs: impl IntoIterator<Item = &'a [Piece]>,
        before: Option<&NumberScales>,
    ) -> NumberScales {
        let is_slot = |id: &u32| vocabulary.symbol(*id).is_some_and(Symbol::carries_number);
        let ids: Vec<u32> = (0..vocabulary.len() as u32).filter(is_slot).collect();
        // Count, sum and sum of squares.
        let mut sums = vec![[0.0_f64; 3]; ids.len()];
        for piece in programs.into_iter().flatten() {
            if let Ok(slot) = ids.binary_search(&piece.id) {
                let [count, sum, squares] = &mut sums[slot];
                (*count, *sum, *squares) = (*count + 1.0, *sum + piece.number, *squares + piece.number * piece.number);
            }
        }
        let scale = |(id, [count, sum, squares]): (u32, [f64; 3])| {
            if let Some(kept) = before.and_then(|before| before.slots.iter().find(|slot| slot.id == id)) {
                return *kept;
            }
            let mean = sum / count.max(1.0);
            let deviation = (squares / count.max(1.0) - mean * mean).max(0.0).sqrt();
            // A number that never changes has no scale: one keeps it finite.
            let deviation = if deviation > 1e-6 * (1.0 + mean.abs()) { deviation } else { 1.0 };
            Scale { id, mean, deviation }
        };
        NumberScales { slots: ids.into_iter().zip(sums).map(scale).collect() }
    }

    /// How many slots there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether no symbol carries a number.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The deviation of a slot's numbers; none for other symbols.
    pub fn deviation(&self, id: u32) -> Option<f64> {
        self.slots.iter().find(|slot| slot.id == id).map(|slot| slot.deviation)
    }

    /// How many numbers a model learns to read numbers into rows of some width.
    pub fn reading_parameters(&self, width: usize) -> usize {
        self.len() * FEATURES * width
    }

    /// How many numbers a model learns to write numbers from rows of some width.
    pub fn writing_parameters(&self, width: usize) -> usize {
        self.len() * 3 * COMPONENTS * (width + 1)
    }
}

/// Which symbol is which slot, on a device.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    scales: NumberScales,
    /// One where a symbol is a slot, `[symbols, slots]` f32.
    one_hot: Tensor,
    /// Mean and deviation by symbol, `[symbols, 2]` f32.
    units: Tensor,
}

impl Slots {
    /// `None` if no symbol carries a number.
    pub(crate) fn new(scales: &NumberScales, symbols: usize, device: &Device) -> Result<Option<Slots>> {
        if scales.is_empty() {
            return Ok(None);
        }
        let count = scales.len();
        let (mut one_hot, mut units) = (vec![0.0_f32; symbols * count], [0.0_f32, 1.0].repeat(symbols));
        for (slot, scale) in scales.slots.iter().enumerate() {
            let id = scale.id as usize;
            if id >= symbols {
                return Err(Error::Config(format!("a number's symbol is {id}, and the vocabulary has {symbols}")));
            }
            one_hot[id * count + slot] = 1.0;
            units[2 * id..2 * id + 2].copy_from_slice(&[scale.mean as f32, scale.deviation as f32]);
        }
        Ok(Some(Slots {
            scales: scales.clone(),
            one_hot: Tensor::from_vec(one_hot, (symbols, count), device)?,
            units: Tensor::from_vec(units, (symbols, 2), device)?,
        }))
    }

    /// Numbers in deviations of their slots, and which slot each is, one-hot.
    ///
    /// # Shapes
    /// `ids`, `numbers`: `[rows]`; gives `[rows]` and `[rows, slots]`.
    fn standardised(&self, ids: &Tensor, numbers: &Tensor) -> Result<(Tensor, Tensor)> {
        let (units, slot) = (self.units.index_select(ids, 0)?, self.one_hot.index_select(ids, 0)?);
        let (mean, deviation) = (units.narrow(1, 0, 1)?.squeeze(1)?, units.narrow(1, 1, 1)?.squeeze(1)?);
        Ok((((numbers - mean)? / deviation)?, slot))
    }
}

/// Reads numbers into the rows of their symbols.
#[derive(Clone, Debug)]
pub(crate) struct NumberReader {
    slots: Slots,
    /// `[slots · FEATURES, width]`
    pub(crate) weight: Parameter,
}

impl NumberReader {
    /// Adds `weight` to a scope.
    pub(crate) fn new(scope: &mut Scope<'_>, slots: Slots, width: usize) -> Result<NumberReader> {
        let rows = slots.scales.len() * FEATURES;
        Ok(NumberReader { weight: scope.weight("weight", &[rows, width], Init::FanIn(FEATURES))?, slots })
    }

    /// What numbers add to the rows of their symbols; zeros for symbols that carry none.
    ///
    /// # Shapes
    /// `ids`, `numbers`: `[B, L]`; gives `[B, L, width]` in the precision of products.
    pub(crate) fn rows(&self, ids: &Tensor, numbers: &Tensor) -> Result<Tensor> {
        let (samples, length) = ids.dims2()?;
        let (slots, width) = (self.slots.scales.len(), self.weight.master().dims2()?.1);
        let (v, slot) = self.slots.standardised(&ids.flatten_all()?, &numbers.flatten_all()?)?;
        let mut features = vec![v.clone()];
        for frequency in FREQUENCIES {
            let angle = (&v * frequency)?;
            features.extend([angle.sin()?, angle.cos()?]);
        }
        let features = Tensor::stack(&features, 1)?; // [rows, FEATURES]
        let spread = slot.unsqueeze(2)?.broadcast_mul(&features.unsqueeze(1)?)?; // [rows, slots, FEATURES]
        let weight = self.weight.tracked()?;
        let spread = spread.reshape((samples * length, slots * FEATURES))?.to_dtype(weight.dtype())?;
        Ok(spread.matmul(&weight)?.reshape((samples, length, width))?)
    }
}

/// Writes the number of the slot that comes next, as a mixture of normal distributions.
#[derive(Clone, Debug)]
pub(crate) struct NumberWriter {
    slots: Slots,
    /// `[slots · 3 · COMPONENTS, width + 1]`; the last column is for a constant one.
    pub(crate) weight: Parameter,
}

/// The loss of numbers and their errors, `[rows]` each, zero where the symbol carries none.
pub(crate) struct NumberScores {
    /// −ln(p·[`CELL`]), with its gradient.
    pub(crate) nats: Tensor,
    /// Distance from the most likely value, in deviations of the slot.
    pub(crate) errors: Tensor,
}

impl NumberWriter {
    /// Adds `weight` to a scope.
    pub(crate) fn new(scope: &mut Scope<'_>, slots: Slots, width: usize) -> Result<NumberWriter> {
        let rows = slots.scales.len() * 3 * COMPONENTS;
        Ok(NumberWriter { weight: scope.weight("weight", &[rows, width + 1], Init::FanIn(width))?, slots })
    }

    /// Logits, means and logarithms of deviations of all slots.
    ///
    /// # Shapes
    /// `seen`: `[rows, width]`; gives `[rows, slots, 3 · COMPONENTS]`, f32.
    fn parts(&self, seen: &Tensor) -> Result<Tensor> {
        let (rows, _) = seen.dims2()?;
        let seen = seen.to_dtype(DType::F32)?;
        let ones = Tensor::ones((rows, 1), DType::F32, seen.device())?;
        let parts = Tensor::cat(&[seen, ones], 1)?.matmul(&self.weight.tracked_f32().t()?)?;
        Ok(parts.reshape((rows, self.slots.scales.len(), 3 * COMPONENTS))?)
    }

    /// How well the numbers of the next symbols are predicted.
    ///
    /// # Shapes
    /// `seen`: `[rows, width]`; `ids`, `numbers`: `[rows]`.
    pub(crate) fn scores(&self, seen: &Tensor, ids: &Tensor, numbers: &Tensor) -> Result<NumberScores> {
        let (v, slot) = self.slots.standardised(ids, numbers)?;
        let counted = slot.sum(1)?;
        let own = self.parts(seen)?.broadcast_mul(&slot.unsqueeze(2)?)?.sum(1)?; // [rows, 3 · COMPONENTS]
        let part = |at: usize| own.narrow(1, at * COMPONENTS, COMPONENTS);
        let (logits, means, deviations) = (part(0)?, part(1)?, deviations(&part(2)?)?);
        let z = means.broadcast_sub(&v.unsqueeze(1)?)?.div(&deviations)?;
        let log_density = ((log_softmax(&logits)? - (z.sqr()? * 0.5)?)? - deviations.log()?)?;
        let nats = (log_sum_exp(&log_density)?.neg()? + (0.5 * std::f64::consts::TAU.ln() - CELL.ln()))?.squeeze(1)?;
        let best = best(&logits.detach(), &means.detach())?;
        let errors = ((best - v)?.abs()? * &counted)?;
        Ok(NumberScores { nats: (nats * &counted)?, errors })
    }

    /// The most likely number of each slot, in its own units, with four significant digits.
    ///
    /// # Shapes
    /// `seen`: `[rows, width]`; gives for each row the numbers of all slots by symbol.
    pub(crate) fn values(&self, seen: &Tensor) -> Result<Vec<Vec<(u32, f64)>>> {
        let parts = self.parts(seen)?.detach();
        let part = |at: usize| parts.narrow(2, at * COMPONENTS, COMPONENTS);
        let best = best(&part(0)?, &part(1)?)?.to_vec2::<f32>()?;
        let scaled =
            |(scale, value): (&Scale, f32)| (scale.id, four_digits(scale.mean + f64::from(value) * scale.deviation));
        Ok(best.into_iter().map(|row| self.slots.scales.slots.iter().zip(row).map(scaled).collect()).collect())
    }
}

/// Deviations of components, at least a cell.
fn deviations(logarithms: &Tensor) -> Result<Tensor> {
    Ok((logarithms.clamp(-12_f32, 3_f32)?.exp()? + CELL)?)
}

fn log_sum_exp(x: &Tensor) -> Result<Tensor> {
    let most = x.max_keepdim(D::Minus1)?.detach();
    Ok((x.broadcast_sub(&most)?.exp()?.sum_keepdim(D::Minus1)?.log()? + most)?)
}

fn log_softmax(x: &Tensor) -> Result<Tensor> {
    Ok(x.broadcast_sub(&log_sum_exp(x)?)?)
}

/// The mean of the component with the largest share. A component that holds a number which some demonstrations repeat exactly is
/// narrow, so that the highest peak would be there however rare it is.
///
/// # Shapes
/// `[…, COMPONENTS]` each; gives `[…]`.
fn best(logits: &Tensor, means: &Tensor) -> Result<Tensor> {
    let largest = logits.contiguous()?.argmax_keepdim(D::Minus1)?;
    Ok(means.contiguous()?.gather(&largest, D::Minus1)?.squeeze(D::Minus1)?)
}

/// A number with four significant digits, so that it is short in a program and the same in its text.
fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use language::{Signature, TermStore, read};

    use super::*;
    use crate::ops::testing::random;
    use crate::parameters::{Parameters, Precision};
    use crate::training::adamw::{AdamW, AdamWConfig};
    use crate::vocabulary::{PieceTensor, Vocabulary};

    fn fitted(texts: &[&str]) -> (BoundVocabulary, Vec<Vec<Piece>>, NumberScales) {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        let terms: Vec<_> = texts.iter().map(|text| read(&mut store, &signature, text, None).unwrap().term).collect();
        let mut vocabulary = Vocabulary::new();
        vocabulary.extend_with_signature(&store, &signature);
        vocabulary.extend_with_terms(&mut store, &terms);
        let bound = vocabulary.bind(&mut store).unwrap();
        let programs: Vec<Vec<Piece>> = terms.iter().map(|term| bound.encode(&store, &[*term]).pieces).collect();
        let scales = NumberScales::fit(&bound, programs.iter().map(Vec::as_slice), None);
        (bound, programs, scales)
    }

    #[test]
    fn scales_are_those_of_each_place_and_earlier_ones_stay() {
        let (bound, programs, scales) =
            fitted(&["goto pose[1, 5, 0, 0, 0, 0]", "goto pose[3, 5, 0, 0, 0, 0]", r#"pick "milk""#]);
        assert_eq!(scales.len(), 6);
        let [first, second] = [0, 1].map(|at| scales.slots[at]);
        assert_eq!((first.mean, first.deviation, second.mean, second.deviation), (2.0, 1.0, 5.0, 1.0));
        let later = NumberScales::fit(&bound, programs[..1].iter().map(Vec::as_slice), Some(&scales));
        assert_eq!(later, scales);
        assert_eq!(scales.deviation(first.id), Some(1.0));
        assert_eq!(scales.deviation(0), None);
    }

    #[test]
    fn what_numbers_add_depends_on_slot_and_size_and_other_symbols_get_nothing() {
        let (bound, programs, scales) = fitted(&["goto pose[1, 2, 0, 0, 0, 0]", "goto pose[3, 4, 1, 0, 0, 0]"]);
        let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 3);
        let slots = Slots::new(&scales, bound.len(), &Device::Cpu).unwrap().unwrap();
        let reader = NumberReader::new(&mut parameters.root(), slots, 8).unwrap();
        let tensor = PieceTensor::new(&programs, programs[0].len(), &Device::Cpu).unwrap();
        let rows = reader.rows(&tensor.ids, &tensor.numbers).unwrap().to_vec3::<f32>().unwrap();
        // `goto`, six numbers, the end.
        assert!(rows[0][0].iter().chain(&rows[0][7]).all(|value| *value == 0.0));
        assert_ne!(rows[0][1], rows[1][1]);
        assert_ne!(rows[0][1], rows[0][2]);
        assert_eq!(rows[0][4], rows[1][4]);
    }

    #[test]
    fn the_density_of_a_mixture_sums_to_one() {
        let (bound, programs, scales) = fitted(&["goto pose[1, 2, 0, 0, 0, 0]", "goto pose[3, 4, 1, 0, 0, 0]"]);
        let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 3);
        let slots = Slots::new(&scales, bound.len(), &Device::Cpu).unwrap().unwrap();
        let writer = NumberWriter::new(&mut parameters.root(), slots, 8).unwrap();
        let (id, step, count) = (programs[0][1].id, 0.002, 20_000);
        // Numbers from −18 to 22, one row for each.
        let seen = random(&[1, 8], 7).broadcast_as((count, 8)).unwrap().contiguous().unwrap();
        let ids = Tensor::full(id, count, &Device::Cpu).unwrap();
        let numbers: Vec<f32> = (0..count).map(|at| (at as f64 * step - 18.0) as f32).collect();
        let numbers = Tensor::from_vec(numbers, count, &Device::Cpu).unwrap();
        let scores = writer.scores(&seen, &ids, &numbers).unwrap();
        let nats = scores.nats.to_vec1::<f32>().unwrap();
        let sum: f64 = nats.iter().map(|nats| f64::from(-nats).exp() / CELL * step).sum();
        assert!((sum - 1.0).abs() < 1e-3, "{sum}");
        assert!(nats.iter().all(|nats| *nats > 0.0));
        // The value that is written is the one with the smallest loss nearby.
        let value = writer.values(&seen.narrow(0, 0, 1).unwrap()).unwrap()[0].iter().find(|one| one.0 == id).unwrap().1;
        let errors = scores.errors.to_vec1::<f32>().unwrap();
        let nearest = errors.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0;
        assert!((nearest as f64 * step - 18.0 - value).abs() < 0.01);
    }

    #[test]
    fn a_number_that_has_two_values_is_not_written_as_their_mean() {
        let (bound, programs, scales) = fitted(&["goto pose[-1, 0, 0, 0, 0, 0]", "goto pose[1, 0, 0, 0, 0, 0]"]);
        let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 3);
        let slots = Slots::new(&scales, bound.len(), &Device::Cpu).unwrap().unwrap();
        let writer = NumberWriter::new(&mut parameters.root(), slots, 4).unwrap();
        let seen = Tensor::ones((2, 4), DType::F32, &Device::Cpu).unwrap();
        let ids = Tensor::new(&[programs[0][1].id, programs[1][1].id], &Device::Cpu).unwrap();
        let numbers = Tensor::new(&[-1.0_f32, 1.0], &Device::Cpu).unwrap();
        let mut optimizer = AdamW::new(&parameters, AdamWConfig::default()).unwrap();
        let mut last = f32::INFINITY;
        for step in 0..600 {
            let loss = writer.scores(&seen, &ids, &numbers).unwrap().nats.sum_all().unwrap();
            last = loss.to_scalar().unwrap();
            let gradients = parameters.gradients(&loss.backward().unwrap()).unwrap();
            optimizer.step(&parameters, &gradients, 0.05 * (1.0 - f64::from(step) / 600.0)).unwrap();
        }
        let value = writer.values(&seen).unwrap()[0].iter().find(|one| one.0 == programs[0][1].id).unwrap().1;
        assert!((value.abs() - 1.0).abs() < 0.1, "{value}");
        // Two values of equal weight, each within a cell: ln 2 + ln √(2π) nats, and a little for the width.
        assert!(last / 2.0 < 2.0, "{last}");
    }

    #[test]
    fn numbers_have_four_digits() {
        assert_eq!(four_digits(0.123_456), 0.1235);
        assert_eq!(four_digits(-98_765.4), -98_770.0);
        assert_eq!(four_digits(0.0), 0.0);
    }
}
