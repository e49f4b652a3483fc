//! Columns of a data file as `meta/info.json` lists them: whether they are what they should be, and their values.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use crate::info::{Dtype, Feature, Info};
use crate::roles::AUTOMATIC;
use crate::table::{Bad, booleans_of, doubles_of, integers_of};

/// A column of numbers that a data file should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Its name.
    pub(crate) key: String,
    /// What its values are.
    class: Class,
    /// Values in a row.
    pub(crate) width: usize,
    /// Whether a row is a number or a list, not lists in a list.
    pub(crate) flat: bool,
    /// As `float32[8]`.
    pub(crate) shown: String,
}

/// What numbers are, whatever their precision: all readers convert that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Float,
    Integer,
    Truth,
}

impl Expected {
    /// All columns of numbers that a description asks for, with those that every dataset has.
    pub(crate) fn all(info: &Info) -> Vec<Expected> {
        let mut all: Vec<Expected> =
            info.features.iter().filter_map(|(key, feature)| Expected::of(key, feature)).collect();
        for key in AUTOMATIC.iter().filter(|key| info.feature(key).is_none()) {
            let dtype = if *key == "timestamp" { Dtype::Float32 } else { Dtype::Int(64) };
            all.extend(Expected::of(key, &Feature::new(dtype, &[1])));
        }
        all
    }

    fn of(key: &str, feature: &Feature) -> Option<Expected> {
        let class = match &feature.dtype {
            dtype if dtype.is_float() => Class::Float,
            dtype if dtype.is_integer() => Class::Integer,
            Dtype::Bool => Class::Truth,
            _ => return None,
        };
        let (width, flat) = (feature.width(), feature.shape.len() <= 1);
        Some(Expected { key: key.to_string(), class, width, flat, shown: feature.shown() })
    }
}

/// Whether a column's type is what was expected; if not, the type in words.
pub(crate) fn fitting(expected: &Expected, found: &DataType) -> Result<(), String> {
    let (leaf, nested) = leaf(found);
    let class = match leaf {
        DataType::Float32 | DataType::Float64 => Some(Class::Float),
        DataType::Boolean => Some(Class::Truth),
        leaf if leaf.is_integer() => Some(Class::Integer),
        _ => None,
    };
    let vector = nested || expected.width == 1;
    if class == Some(expected.class) && vector { Ok(()) } else { Err(in_words(found)) }
}

/// The values of a column, row by row.
pub(crate) fn numbers(expected: &Expected, array: &ArrayRef) -> Result<Vec<f64>, Bad> {
    let rows = array.len();
    let mut values = array.clone();
    let mut outer = true;
    loop {
        if let Some(at) = (0..values.len()).find(|at| values.null_count() > 0 && values.is_null(*at)) {
            // The place of a value is not that of its row once lists are taken apart.
            let row = if outer { at } else { at * rows / values.len().max(1) };
            return Err(Bad::Missing(row));
        }
        values = match values.data_type() {
            DataType::List(_) => {
                let list = values.as_list::<i32>();
                if outer && expected.flat {
                    let wrong = |(_, length): &(usize, usize)| *length != expected.width;
                    if let Some((row, found)) = list.offsets().lengths().enumerate().find(wrong) {
                        return Err(Bad::Width { row, found, expected: expected.width });
                    }
                }
                let (from, to) = (list.offsets()[0] as usize, list.offsets()[list.len()] as usize);
                list.values().slice(from, to - from)
            }
            _ => break,
        };
        outer = false;
    }
    if rows.checked_mul(expected.width) != Some(values.len()) {
        return Err(Bad::Width { row: 0, found: values.len() / rows.max(1), expected: expected.width });
    }
    let mut out = vec![0.0; values.len()];
    match expected.class {
        Class::Float => doubles_of(&values, &mut out)?,
        Class::Integer => {
            let mut integers = vec![0; values.len()];
            integers_of(&values, &mut integers)?;
            out.iter_mut().zip(integers).for_each(|(out, value)| *out = value as f64);
        }
        Class::Truth => {
            let mut truths = vec![false; values.len()];
            booleans_of(&values, &mut truths)?;
            out.iter_mut().zip(truths).for_each(|(out, value)| *out = f64::from(u8::from(value)));
        }
    }
    Ok(out)
}

/// The type of the values in lists, and whether there are lists.
fn leaf(found: &DataType) -> (&DataType, bool) {
    match found {
        DataType::List(field) => (leaf(field.data_type()).0, true),
        other => (other, false),
    }
}

/// As a person would say it, rather than arrow.
pub(crate) fn in_words(found: &DataType) -> String {
    match found {
        DataType::List(field) => format!("lists of {}", in_words(field.data_type())),
        DataType::Utf8 => "text".to_string(),
        DataType::Boolean => "bool".to_string(),
        other => other.to_string().to_lowercase(),
    }
}
