//! A step of the optimizer over all weights, in three launches whatever their number.

use candle_core::{CudaDevice, DType, Device, Error, Result, Tensor};

use super::{Arg, Grid, address, checked, elementwise, empty};
use crate::ops::update::{Plan, Rule, SPAN, Update};

/// Words of `Entry` in elementwise.cu.
const WORDS: usize = 7;

/// Updates weights and moments in place; returns the norm of all gradients, a scalar on the device.
pub(in crate::ops) fn step(device: &CudaDevice, plan: &mut Plan, updates: &[Update<'_>], rule: Rule) -> Result<Tensor> {
    let module = elementwise(device, DType::BF16, 1024)?;
    let entries = entries(device, updates)?;
    let places = places(device, plan, updates)?;
    let blocks = places.dim(0)?;
    let partial = empty(device, DType::F32, &[blocks])?;
    let norm = empty(device, DType::F32, &[2])?;
    let grid = || Grid { blocks: (blocks as u32, 1), threads: (256, 1), shared: 0 };
    let table = checked(device, &entries, DType::I64, &[WORDS * updates.len()])?;
    let pieces = checked(device, &places, DType::I64, &[blocks])?;
    let sums = checked(device, &partial, DType::F32, &[blocks])?;
    let scale = checked(device, &norm, DType::F32, &[2])?;
    // SAFETY: `squares(entries, places, partial)`. A block takes one piece of one tensor of the table, whose tensors `entries`
    // has checked, and writes its own sum; `places` has only pieces of tensors of these lengths.
    unsafe { module.launch("squares", grid(), &[table, pieces, sums]) }?;
    let clipping = [sums, Arg::count(blocks)?, Arg::Float(1.0), Arg::Float(rule.clip as f32), scale];
    // SAFETY: `clipping(partial, int, float, float, norm)`. One block of 1024 threads reads `blocks` sums and writes the norm
    // and the factor that clips it.
    unsafe { module.launch("clipping", Grid { blocks: (1, 1), threads: (1024, 1), shared: 0 }, &clipping) }?;
    let float = |value: f64| Arg::Float(value as f32);
    let args = [
        table,
        pieces,
        scale,
        float(rule.rate),
        float(rule.beta_1),
        float(rule.beta_2),
        float(rule.epsilon),
        float(rule.correction_1),
        float(rule.correction_2),
    ];
    // SAFETY: `adamw(entries, places, norm, six floats)`. Blocks are laid out as for `squares`, so each number is read and
    // written by one thread.
    unsafe { module.launch("adamw", grid(), &args) }?;
    norm.narrow(0, 0, 1)?.squeeze(0)
}

/// The table of tensors in the layout of `Entry` in elementwise.cu. All tensors of an update are checked to be of one
/// length and of the types that the kernels take them for.
fn entries(device: &CudaDevice, updates: &[Update<'_>]) -> Result<Tensor> {
    let mut words = Vec::with_capacity(WORDS * updates.len());
    for update in updates {
        let shape = update.master.dims();
        let place = |tensor: &Tensor, dtype: DType| {
            if tensor.dtype() != dtype || tensor.dims() != shape {
                let found = (tensor.dtype(), tensor.dims());
                return Err(Error::Msg(format!("the optimizer was given {found:?}, it takes {:?}", (dtype, shape))));
            }
            address(device, tensor)
        };
        let narrow = update.gradient.dtype() == DType::BF16;
        words.extend([
            place(update.master, DType::F32)?,
            place(update.mean, DType::F32)?,
            place(update.square, DType::F32)?,
            place(update.gradient, if narrow { DType::BF16 } else { DType::F32 })?,
            update.working.map_or(Ok(0), |working| place(working, DType::BF16))?,
            update.master.elem_count() as u64,
            u64::from(narrow) | (u64::from((update.decay as f32).to_bits()) << 32),
        ]);
    }
    let words: Vec<i64> = words.into_iter().map(u64::cast_signed).collect();
    Tensor::from_vec(words, WORDS * updates.len(), &Device::Cuda(device.clone()))
}

/// For each block its tensor and its piece, two halves of a word.
fn places(device: &CudaDevice, plan: &mut Plan, updates: &[Update<'_>]) -> Result<Tensor> {
    let lengths: Vec<usize> = updates.iter().map(|update| update.master.elem_count()).collect();
    match &plan.places {
        Some((known, places)) if *known == lengths => Ok(places.clone()),
        _ => {
            let pieces = |(at, length): (usize, &usize)| (0..length.div_ceil(SPAN)).map(move |piece| (at, piece));
            let words =
                lengths.iter().enumerate().flat_map(pieces).map(|(at, piece)| at as i64 | ((piece as i64) << 32));
            let words: Vec<i64> = words.collect();
            let count = words.len();
            let places = Tensor::from_vec(words, count, &Device::Cuda(device.clone()))?;
            plan.places = Some((lengths, places.clone()));
            Ok(places)
        }
    }
}
