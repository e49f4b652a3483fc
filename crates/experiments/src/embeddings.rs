//! Fragments and windows as vectors: by M_φ, by k_χ, or as they are.

use candle_core::Tensor;
use models::amortizer::Amortizer;
use models::contrast::normalize;
use models::ops::without_gradients;
use models::{FragmentBatch, FragmentTable, WorldModel};

use crate::error::Result;
use crate::windows::Windows;

/// Fragments that are embedded at once.
const CHUNK: usize = 256;

/// Vectors of equal width, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Embeddings {
    /// `[fragments, width]`
    pub values: Vec<f32>,
    /// Numbers of each.
    pub width: usize,
}

impl Embeddings {
    /// One of them.
    pub fn row(&self, at: usize) -> &[f32] {
        &self.values[at * self.width..(at + 1) * self.width]
    }

    /// Some of them, by place.
    pub fn rows(&self, places: impl IntoIterator<Item = usize>) -> Vec<f32> {
        places.into_iter().flat_map(|at| self.row(at)).copied().collect()
    }
}

/// z_T/‖z_T‖ of fragments by their first frames. Of unit length, because contrast and distillation look at angles alone.
pub fn latents(model: &WorldModel, table: &FragmentTable, starts: &[usize], length: usize) -> Result<Embeddings> {
    embedded(table, starts, length, model.config().latent, |batch| {
        without_gradients(|| normalize(&model.encode_fragment(batch)?))
    })
}

/// What M_φ makes of fragments before its bottleneck: its activations at their last step.
pub fn activations(model: &WorldModel, table: &FragmentTable, starts: &[usize], length: usize) -> Result<Embeddings> {
    embedded(table, starts, length, model.config().width, |batch| without_gradients(|| model.activations(batch)))
}

/// k_χ of fragments by their first frames. One that was trained on D_φ reads as many actions as D_φ imagines.
pub fn amortized(model: &Amortizer, table: &FragmentTable, starts: &[usize], length: usize) -> Result<Embeddings> {
    let config = model.config();
    let steps = if config.metric.is_some() { length.min(config.horizon) } else { length };
    embedded(table, starts, steps, config.embedding, |batch| without_gradients(|| model.embed(batch)))
}

/// k_χ of windows; the table is for features, where it sees.
pub fn amortized_windows(model: &Amortizer, windows: &Windows, table: &FragmentTable) -> Result<Embeddings> {
    let (mut values, width) = (Vec::new(), model.config().embedding);
    for chunk in windows.chunks(CHUNK) {
        let batch = seen_windows(model, windows, &chunk, table)?;
        values.extend(without_gradients(|| model.embed(&batch))?.flatten_all()?.to_vec1::<f32>()?);
    }
    Ok(Embeddings { values, width })
}

/// What k_χ reads of windows: actions alone where it was trained on D_φ and does not see.
pub(crate) fn seen_windows(
    model: &Amortizer,
    windows: &Windows,
    places: &[usize],
    table: &FragmentTable,
) -> Result<FragmentBatch> {
    match (model.config().metric, model.config().vision) {
        (Some(_), false) => windows.actions(places),
        _ => windows.recorded(places, table),
    }
}

/// Standardised states and actions of fragments, all steps side by side: what no learning at all reaches.
pub fn windows(table: &FragmentTable, starts: &[usize], length: usize) -> Result<Embeddings> {
    let widths = table.widths();
    embedded(table, starts, length, length * (widths.states + widths.actions), |batch| {
        Ok(Tensor::cat(&[&batch.states, &batch.actions], 2)?.flatten_from(1)?)
    })
}

fn embedded(
    table: &FragmentTable,
    starts: &[usize],
    length: usize,
    width: usize,
    embed: impl Fn(&FragmentBatch) -> models::Result<Tensor>,
) -> Result<Embeddings> {
    let mut values = Vec::with_capacity(starts.len() * width);
    for chunk in starts.chunks(CHUNK) {
        let rows = embed(&table.gather(chunk, length)?)?;
        values.extend(rows.flatten_all()?.to_vec1::<f32>()?);
    }
    Ok(Embeddings { values, width })
}
