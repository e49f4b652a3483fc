//! The optimizer's passes over all weights.

use candle_core::{CpuStorage, DType, Device, InplaceOp1, Layout, Result, Tensor, Var};

use super::cpu;
#[cfg(feature = "cuda")]
use super::cuda;
use crate::vectorised::vectorised;

/// Numbers in a piece of work; sums of squares are made within pieces first.
pub(super) const SPAN: usize = 8192;

/// One weight in a step.
pub(crate) struct Update<'a> {
    /// The f32 master.
    pub(crate) master: &'a Var,
    /// m
    pub(crate) mean: &'a Var,
    /// v
    pub(crate) square: &'a Var,
    /// f32 or bf16.
    pub(crate) gradient: &'a Tensor,
    /// The bf16 copy of the master, if there is one.
    pub(crate) working: Option<&'a Tensor>,
    /// The decay of this weight.
    pub(crate) decay: f64,
}

/// What a step does to every number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) rate: f64,
    pub(crate) beta_1: f64,
    pub(crate) beta_2: f64,
    pub(crate) epsilon: f64,
    /// 1/(1−β₁ᵗ)
    pub(crate) correction_1: f64,
    /// 1/(1−β₂ᵗ)
    pub(crate) correction_2: f64,
    pub(crate) clip: f64,
}

/// What stays the same from step to step on a GPU: which piece of which tensor each block takes.
#[derive(Default)]
pub(crate) struct Plan {
    #[cfg(feature = "cuda")]
    pub(super) places: Option<(Vec<usize>, Tensor)>,
}

/// Updates weights and moments in place; returns the norm of all gradients, a scalar on the device.
pub(crate) fn fused(plan: &mut Plan, updates: &[Update<'_>], rule: Rule) -> Result<Tensor> {
    let _ = &plan;
    match updates.first().map(|update| update.master.device()) {
        #[cfg(feature = "cuda")]
        Some(Device::Cuda(device)) => cuda::update::step(device, plan, updates, rule),
        _ => cpu_step(updates, rule),
    }
}

/// The same in plain Candle.
pub(crate) fn composed(updates: &[Update<'_>], rule: Rule) -> Result<Tensor> {
    let Some(first) = updates.first() else { return Tensor::zeros((), DType::F32, &Device::Cpu) };
    let mut squares = Tensor::zeros((), DType::F32, first.master.device())?;
    for update in updates {
        squares = (squares + update.gradient.to_dtype(DType::F32)?.sqr()?.sum_all()?)?;
    }
    let norm = squares.sqrt()?;
    let found = f64::from(norm.to_scalar::<f32>()?);
    let scale = if found > rule.clip { rule.clip / found } else { 1.0 };
    for update in updates {
        let gradient = (update.gradient.to_dtype(DType::F32)? * scale)?;
        let mean = ((update.mean.as_detached_tensor() * rule.beta_1)? + (&gradient * (1.0 - rule.beta_1))?)?;
        let square = ((update.square.as_detached_tensor() * rule.beta_2)? + (gradient.sqr()? * (1.0 - rule.beta_2))?)?;
        update.mean.set(&mean)?;
        update.square.set(&square)?;
        let step = ((mean * rule.correction_1)? / ((square * rule.correction_2)?.sqrt()? + rule.epsilon)?)?;
        let kept = (update.master.as_detached_tensor() * (1.0 - rule.rate * update.decay))?;
        update.master.set(&(kept - (step * rule.rate)?)?)?;
        refresh(update)?;
    }
    Ok(norm)
}

/// Writes the master into the working copy.
fn refresh(update: &Update<'_>) -> Result<()> {
    match update.working {
        Some(working) => working.slice_set(&update.master.as_detached_tensor().to_dtype(working.dtype())?, 0, 0),
        None => Ok(()),
    }
}

fn cpu_step(updates: &[Update<'_>], rule: Rule) -> Result<Tensor> {
    use rayon::prelude::*;
    let gradients: Result<Vec<Tensor>> = updates.iter().map(|update| update.gradient.to_dtype(DType::F32)).collect();
    let gradients = gradients?;
    let mut squares = 0.0_f64;
    for gradient in &gradients {
        squares += cpu::slice(gradient, |values| {
            let pieces: Vec<f64> = values.par_chunks(SPAN).map(sum_of_squares).collect();
            Ok(pieces.iter().sum::<f64>())
        })?;
    }
    let norm = squares.sqrt() as f32;
    let scale = if f64::from(norm) > rule.clip { (rule.clip / f64::from(norm)) as f32 } else { 1.0 };
    for (update, gradient) in updates.iter().zip(&gradients) {
        cpu::slice(gradient, |gradient| {
            mutate(update.master, |master| {
                mutate(update.mean, |mean| {
                    mutate(update.square, |square| {
                        let moments = mean.par_chunks_mut(SPAN).zip(square.par_chunks_mut(SPAN));
                        let pieces = master.par_chunks_mut(SPAN).zip(gradient.par_chunks(SPAN)).zip(moments);
                        pieces.for_each(|((master, gradient), moments)| {
                            piece(master, gradient, moments, scale, update.decay, rule);
                        });
                        Ok(())
                    })
                })
            })
        })?;
        refresh(update)?;
    }
    cpu::tensor(vec![norm], ())
}

vectorised! {
    fn sum_of_squares<'a>(values: &'a [f32]) -> f64 {
        let mut lanes = [0.0_f32; 16];
        let chunks = values.chunks_exact(16);
        let rest: f32 = chunks.remainder().iter().map(|value| value * value).sum();
        for chunk in chunks {
            for at in 0..16 {
                lanes[at] += chunk[at] * chunk[at];
            }
        }
        lanes.iter().map(|lane| f64::from(*lane)).sum::<f64>() + f64::from(rest)
    }
}

vectorised! {
    fn piece<'a>(
        master: &'a mut [f32],
        gradient: &'a [f32],
        moments: (&'a mut [f32], &'a mut [f32]),
        scale: f32,
        decay: f64,
        rule: Rule,
    ) -> () {
        let (beta_1, beta_2, rate, epsilon) =
            (rule.beta_1 as f32, rule.beta_2 as f32, rule.rate as f32, rule.epsilon as f32);
        let (correction_1, correction_2) = (rule.correction_1 as f32, rule.correction_2 as f32);
        let keep = (1.0 - rule.rate * decay) as f32;
        for (((master, gradient), mean), square) in master.iter_mut().zip(gradient).zip(moments.0).zip(moments.1) {
            let gradient = gradient * scale;
            *mean = beta_1 * *mean + (1.0 - beta_1) * gradient;
            *square = beta_2 * *square + (1.0 - beta_2) * gradient * gradient;
            let step = (*mean * correction_1) / ((*square * correction_2).sqrt() + epsilon);
            *master = *master * keep - rate * step;
        }
    }
}

/// Runs `with` on the numbers of an f32 tensor on the CPU, to change them.
fn mutate(tensor: &Tensor, with: impl FnOnce(&mut [f32]) -> Result<()>) -> Result<()> {
    struct Mutate<F>(std::cell::Cell<Option<F>>);
    impl<F: FnOnce(&mut [f32]) -> Result<()>> InplaceOp1 for Mutate<F> {
        fn name(&self) -> &'static str {
            "mutate"
        }
        fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
            match (storage, layout.contiguous_offsets(), self.0.take()) {
                (CpuStorage::F32(values), Some((start, end)), Some(with)) => with(&mut values[start..end]),
                _ => Err(candle_core::Error::Msg("wanted contiguous f32".into())),
            }
        }
    }
    tensor.inplace_op1(&Mutate(std::cell::Cell::new(Some(with))))
}
