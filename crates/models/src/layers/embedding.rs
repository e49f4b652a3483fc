//! Tables with a row for each symbol: looked up on the way in, multiplied with on the way out, and grown when the
//! vocabulary grows.

use std::collections::BTreeMap;

use candle_core::{DType, Device, Tensor};

use crate::error::{Error, Result};
use crate::ops::{Form, gradients_wanted, graft};
use crate::parameters::{Init, Parameter, Parameters, Scope};

/// A row for each symbol.
#[derive(Clone, Debug)]
pub struct Embedding {
    /// `[symbols, width]`
    pub weight: Parameter,
    form: Form,
}

impl Embedding {
    /// Rows start normal with deviation 0.02.
    pub fn new(scope: &mut Scope<'_>, symbols: usize, width: usize, form: Form) -> Result<Embedding> {
        Ok(Embedding { weight: scope.weight("weight", &[symbols, width], Init::Normal(0.02))?, form })
    }

    /// The rows of some symbols.
    ///
    /// # Shapes
    /// `ids`: `[…]` u32; gives `[…, width]` in the precision of products.
    pub fn rows(&self, ids: &Tensor) -> Result<Tensor> {
        let (symbols, width) = self.weight.master().dims2()?;
        let mut shape = ids.dims().to_vec();
        shape.push(width);
        let flat = ids.flatten_all()?;
        let working = self.weight.working();
        if !self.form.is_fused_for(working) {
            return Ok(self.weight.tracked()?.index_select(&flat, 0)?.reshape(shape)?);
        }
        let rows = working.index_select(&flat, 0)?.reshape(shape)?;
        if !gradients_wanted() {
            return Ok(rows);
        }
        let weight = self.weight.clone();
        weight.expect_gradient();
        graft(self.weight.master().as_tensor(), rows, move |dy| {
            let dy = dy.contiguous()?.reshape((flat.elem_count(), width))?;
            weight.add_gradient(sums_by_symbol(&flat, &dy, symbols)?)?;
            Ok(None)
        })
    }

    /// The product of vectors with every row: what a symbol scores.
    ///
    /// # Shapes
    /// `x`: `[rows, width]` in the precision of products; gives `[rows, symbols]`.
    pub fn scores(&self, x: &Tensor) -> Result<Tensor> {
        if !self.form.is_fused_for(x) {
            return Ok(x.matmul(&self.weight.tracked()?.t()?)?);
        }
        let kept = x.detach().contiguous()?;
        let y = kept.matmul(&self.weight.working().t()?)?;
        if !gradients_wanted() {
            return Ok(y);
        }
        let (weight, tracked) = (self.weight.clone(), x.track_op());
        weight.expect_gradient();
        graft(if tracked { x } else { self.weight.master().as_tensor() }, y, move |dy| {
            let dy = dy.contiguous()?;
            weight.add_gradient(dy.t()?.matmul(&kept)?)?;
            Ok(if tracked { Some(dy.matmul(weight.working())?) } else { None })
        })
    }
}

/// The sum of the rows of each symbol. On GPUs a product with one-hot rows: Candle's own sum there is one thread for each
/// column, one row after the other.
///
/// # Shapes
/// `ids`: `[rows]`, `rows`: `[rows, width]`; gives `[symbols, width]`.
fn sums_by_symbol(ids: &Tensor, rows: &Tensor, symbols: usize) -> Result<Tensor> {
    let (_, width) = rows.dims2()?;
    if let Device::Cpu = rows.device() {
        return Ok(Tensor::zeros((symbols, width), rows.dtype(), rows.device())?.index_add(ids, rows, 0)?);
    }
    let all = Tensor::arange(0_u32, symbols as u32, ids.device())?.unsqueeze(1)?;
    let one_hot = all.broadcast_eq(&ids.unsqueeze(0)?)?.to_dtype(rows.dtype())?; // [symbols, rows]
    Ok(one_hot.matmul(rows)?)
}

/// The same numbers in each row. A product with a column of ones, because its backward pass is a product too: summing rows
/// is what Candle does slowest on a GPU.
///
/// # Shapes
/// `values`: `[a, b]`; gives `[rows, a, b]`.
pub(crate) fn repeated(values: &Tensor, rows: usize) -> Result<Tensor> {
    let (a, b) = values.dims2()?;
    let ones = Tensor::ones((rows, 1), values.dtype(), values.device())?;
    Ok(ones.matmul(&values.reshape((1, a * b))?)?.reshape((rows, a, b))?)
}

/// The weights of a model that grow, by name. Old rows come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrowingTables {
    /// Those with a row for each symbol.
    pub symbols: Vec<String>,
    /// Those with a row for each place of a program: longer programs need more.
    pub places: Vec<String>,
}

/// Carries what a model has learned into one with a larger vocabulary and room for longer programs: every weight is copied,
/// bit by bit, and tables get the old rows first. New symbol i is the mean of the rows `sources[i]`, all of which stand
/// before it; without sources it stays as it was drawn, and so do new places.
///
/// The moments of an optimizer have the old shapes and are not carried over: they start again at zero, so a new run of
/// the trainer warms up as its first one did.
pub fn grow(
    learned: &BTreeMap<String, Tensor>,
    grown: &Parameters,
    tables: &GrowingTables,
    sources: &[Vec<u32>],
) -> Result<()> {
    let mut values = learned.clone();
    let of_both = |name: &String| match (learned.get(name), grown.named(name)) {
        (Some(old), Some(fresh)) => Ok((old.clone(), fresh)),
        _ => Err(Error::Config(format!("`{name}` is no table of both models"))),
    };
    for name in &tables.places {
        let (old, fresh) = of_both(name)?;
        let ((rows, _), (all, _)) = (old.dims2()?, fresh.master().dims2()?);
        let more = all.checked_sub(rows).ok_or_else(|| {
            Error::Config(format!("`{name}` has {rows} places and shall have {all}; a model does not get shorter"))
        })?;
        values.insert(name.clone(), grown_table(&old, &fresh.vector(), &vec![Vec::new(); more])?);
    }
    for name in &tables.symbols {
        let (old, fresh) = of_both(name)?;
        let ((rows, _), (all, _)) = (old.dims2()?, fresh.master().dims2()?);
        if all != rows + sources.len() {
            return Err(Error::Config(format!(
                "`{name}` has {rows} rows and shall have {all}, but the vocabulary grew by {}",
                sources.len()
            )));
        }
        values.insert(name.clone(), grown_table(&old, &fresh.vector(), sources)?);
    }
    grown.assign(&values)
}

fn grown_table(old: &Tensor, fresh: &Tensor, sources: &[Vec<u32>]) -> Result<Tensor> {
    let (rows, width) = old.dims2()?;
    let host = |x: &Tensor| -> Result<Vec<Vec<f32>>> {
        Ok(x.to_device(&Device::Cpu)?.to_dtype(DType::F32)?.to_vec2::<f32>()?)
    };
    let (mut table, fresh) = (host(old)?, host(fresh)?);
    for (at, sources) in sources.iter().enumerate() {
        let row = match sources.is_empty() {
            true => fresh[rows + at].clone(),
            false => mean_of(&table, sources, width)?,
        };
        table.push(row);
    }
    let count = table.len();
    Ok(Tensor::from_vec(table.concat(), (count, width), &Device::Cpu)?)
}

fn mean_of(table: &[Vec<f32>], sources: &[u32], width: usize) -> Result<Vec<f32>> {
    let mut sum = vec![0.0_f64; width];
    for &source in sources {
        let row = table.get(source as usize).ok_or_else(|| {
            Error::Config(format!("row {} cannot start from row {source}, which comes later", table.len()))
        })?;
        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    Ok(sum.into_iter().map(|sum| (sum / sources.len() as f64) as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{distance, random};
    use crate::parameters::Precision;

    fn table(form: Form) -> (Parameters, Embedding) {
        let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 5);
        let embedding = Embedding::new(&mut parameters.root(), 7, 4, form).unwrap();
        (parameters, embedding)
    }

    #[test]
    fn fused_equals_composed_where_a_table_is_used_twice() {
        let ids = Tensor::new(&[[1_u32, 6, 1], [0, 3, 6]], &Device::Cpu).unwrap();
        let dy = random(&[6, 7], 3);
        let [fused, composed] = [Form::Fused, Form::Composed].map(|form| {
            let (parameters, embedding) = table(form);
            let rows = embedding.rows(&ids).unwrap();
            assert_eq!(rows.dims(), [2, 3, 4]);
            let scores = embedding.scores(&rows.reshape((6, 4)).unwrap()).unwrap();
            let found = (&scores * &dy).unwrap().sum_all().unwrap().backward().unwrap();
            (scores.detach(), parameters.gradients(&found).unwrap()[0].clone().unwrap())
        });
        assert!(distance(&fused.0, &composed.0) < 1e-6);
        assert!(distance(&fused.1, &composed.1) < 1e-6);
    }

    #[test]
    fn the_same_numbers_come_in_each_row() {
        let values = random(&[3, 4], 1);
        let found = repeated(&values, 2).unwrap();
        for row in 0..2 {
            assert_eq!(distance(&found.get(row).unwrap(), &values), 0.0);
        }
    }

    #[test]
    fn a_row_cannot_start_from_one_that_comes_later() {
        let (old, _) = table(Form::Fused);
        let mut grown = Parameters::new(&Device::Cpu, Precision::F32, 5);
        Embedding::new(&mut grown.root(), 8, 4, Form::Fused).unwrap();
        let tables = GrowingTables { symbols: vec!["weight".to_owned()], places: Vec::new() };
        assert!(grow(&old.masters(), &grown, &tables, &[vec![9]]).is_err());
        assert!(grow(&old.masters(), &grown, &tables, &[]).is_err());
        grow(&old.masters(), &grown, &tables, &[vec![0, 2]]).unwrap();
        let rows = grown.masters()["weight"].to_vec2::<f32>().unwrap();
        assert_eq!(rows[..7], old.masters()["weight"].to_vec2::<f32>().unwrap());
        assert!((rows[7][1] - (rows[0][1] + rows[2][1]) / 2.0).abs() < 1e-7);
    }

    #[test]
    fn places_are_added_and_never_taken_away() {
        let (old, _) = table(Form::Fused);
        let tables = GrowingTables { symbols: Vec::new(), places: vec!["weight".to_owned()] };
        let rows = |parameters: &Parameters| parameters.masters()["weight"].to_vec2::<f32>().unwrap();
        for (places, fits) in [(9, true), (7, true), (6, false)] {
            let mut grown = Parameters::new(&Device::Cpu, Precision::F32, 5);
            Embedding::new(&mut grown.root(), places, 4, Form::Fused).unwrap();
            let drawn = rows(&grown);
            assert_eq!(grow(&old.masters(), &grown, &tables, &[]).is_ok(), fits);
            if fits {
                assert_eq!(rows(&grown)[..7], rows(&old));
                assert_eq!(rows(&grown)[7..], drawn[7..]);
            }
        }
    }
}
