//! Windows of k actions, as D_φ takes them: the first k of a fragment, or k of a segment of a demonstration.
//!
//! Segments are of any length. Of a longer one the k middle actions count; a shorter one is done and then held still
//! ([`skills::ActionLayout::stillness`]). The amortizer is trained on such windows as well as on those of fragments, so that
//! it is accurate where the loop uses it. Each action goes with the frame that it was recorded at, for forms of the kernel
//! that read states or features too; actions that hold still go with the last frame.

use std::ops::Range;

use candle_core::{DType, Device, Tensor};
use models::{FragmentBatch, FragmentTable};
use skills::ActionLayout;

use crate::cycle::demonstrations::{Demonstrations, SegmentId, rows};
use crate::embeddings::Embeddings;
use crate::error::{Error, Result};
use crate::prepared::Prepared;

/// Fragments that are gathered at once.
const CHUNK: usize = 1024;

/// Windows of equal length.
#[derive(Clone, Debug)]
pub struct Windows {
    /// Standardised, `[windows, steps, A]` on the device, f32.
    actions: Tensor,
    /// The frame of each action, `[windows, steps]`.
    frames: Vec<usize>,
    steps: usize,
}

impl Windows {
    /// The first `steps` actions of fragments, by their first frames.
    pub fn of_fragments(table: &FragmentTable, starts: &[usize], steps: usize) -> Result<Windows> {
        let chunks: models::Result<Vec<Tensor>> =
            starts.chunks(CHUNK).map(|chunk| Ok(table.gather(chunk, steps)?.actions)).collect();
        let frames = starts.iter().flat_map(|start| *start..start + steps).collect();
        match chunks?.as_slice() {
            [] => {
                Err(Error::Mismatch("no fragments to take windows of; are all episodes shorter than one?".to_owned()))
            }
            chunks => Ok(Windows { actions: Tensor::cat(chunks, 0)?, frames, steps }),
        }
    }

    /// `steps` actions of segments: the middle ones, or all and then stillness. Standardised as the table is.
    pub fn of_segments(
        prepared: &Prepared,
        demonstrations: &Demonstrations,
        ids: &[SegmentId],
        steps: usize,
        table: &FragmentTable,
    ) -> Result<Windows> {
        let stretches: Vec<Range<usize>> = ids.iter().map(|id| demonstrations.frames(*id)).collect();
        Windows::of_stretches(prepared, &demonstrations.layout, &stretches, steps, table)
    }

    /// `steps` actions of stretches of the dataset's frames, in the same way.
    pub fn of_stretches(
        prepared: &Prepared,
        layout: &ActionLayout,
        stretches: &[Range<usize>],
        steps: usize,
        table: &FragmentTable,
    ) -> Result<Windows> {
        let (mut values, mut frames) = (Vec::new(), Vec::with_capacity(stretches.len() * steps));
        for own in stretches {
            let first = own.start + own.len().saturating_sub(steps) / 2;
            let seen = first..own.end.min(first + steps);
            let actions = rows(&prepared.source.dataset, &seen)?;
            values.extend_from_slice(actions.values());
            let held = layout.stillness(actions.rows().last().unwrap_or_default());
            (seen.len()..steps).for_each(|_| values.extend_from_slice(&held));
            frames.extend((0..steps).map(|step| (first + step).min(seen.end.saturating_sub(1))));
        }
        table.scales().actions.apply(&mut values);
        let shape = (stretches.len(), steps, table.widths().actions);
        let actions = Tensor::from_vec(values, shape, &Device::Cpu)?.to_device(table.device())?;
        Ok(Windows { actions, frames, steps })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.frames.len() / self.steps.max(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of them, by place.
    pub fn some(&self, places: &[usize]) -> Result<Windows> {
        let frames = places.iter().flat_map(|at| &self.frames[at * self.steps..(at + 1) * self.steps]).copied();
        Ok(Windows { actions: self.select(places)?, frames: frames.collect(), steps: self.steps })
    }

    /// Actions alone, which is all that D_φ takes: states and features have no columns.
    pub fn actions(&self, places: &[usize]) -> Result<FragmentBatch> {
        let nothing = Tensor::zeros((places.len(), self.steps, 0), DType::F32, &Device::Cpu)?;
        let actions = self.select(places)?;
        Ok(FragmentBatch { features: nothing.clone(), states: nothing, actions, rewards: None, returns: None })
    }

    /// Actions with the states and features that they were recorded at.
    pub fn recorded(&self, places: &[usize], table: &FragmentTable) -> Result<FragmentBatch> {
        let frames: Vec<usize> =
            places.iter().flat_map(|at| &self.frames[at * self.steps..(at + 1) * self.steps]).copied().collect();
        let seen = table.gather(&frames, 1)?;
        let shaped = |x: &Tensor| -> Result<Tensor> {
            let (_, _, width) = x.dims3()?;
            Ok(x.reshape((places.len(), self.steps, width))?)
        };
        Ok(FragmentBatch {
            features: shaped(&seen.features)?,
            states: shaped(&seen.states)?,
            actions: self.select(places)?,
            rewards: None,
            returns: None,
        })
    }

    /// All actions of each window side by side: what a clustering without any model looks at.
    pub fn rows(&self) -> Result<Embeddings> {
        let (_, steps, width) = self.actions.dims3()?;
        Ok(Embeddings { values: self.actions.flatten_all()?.to_vec1()?, width: steps * width })
    }

    /// Places in chunks of so many.
    pub fn chunks(&self, size: usize) -> Vec<Vec<usize>> {
        (0..self.len()).collect::<Vec<_>>().chunks(size).map(<[usize]>::to_vec).collect()
    }

    fn select(&self, places: &[usize]) -> Result<Tensor> {
        let rows: Vec<u32> = places.iter().map(|at| *at as u32).collect();
        Ok(self.actions.index_select(&Tensor::from_vec(rows, places.len(), self.actions.device())?, 0)?)
    }
}
