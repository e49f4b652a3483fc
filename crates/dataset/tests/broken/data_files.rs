//! x
use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, ListArray};
use std::sync::Arc;

/// A column of vectors.
pub(crate) fn vectors<const WIDTH: usize>(rows: &[[f32; WIDTH]]) -> ArrayRef {
    let rows = rows.iter().map(|row| Some(row.iter().map(|value| Some(*value)).collect::<Vec<_>>()));
    Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(rows))
}
