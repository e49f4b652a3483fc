//! A node of Candle's graph whose value is already there and whose backward pass is a function.

use std::cell::Cell;

use candle_core::{CpuStorage, CudaStorage, CustomOp1, Layout, MetalStorage, Result, Shape, Storage, Tensor};

thread_local! {
    static INFERENCE: Cell<bool> = const { Cell::new(false) };
}

/// Runs something for its values alone: fused operations keep nothing for a backward pass.
pub fn without_gradients<T>(run: impl FnOnce() -> T) -> T {
    let before = INFERENCE.replace(true);
    let result = run();
    INFERENCE.set(before);
    result
}

/// Whether a backward pass may follow, on this thread.
pub fn gradients_wanted() -> bool {
    !INFERENCE.get()
}

/// Joins `output` to the graph behind `input`. When the backward pass comes by, `backward` gets the gradient of the output and
/// gives that of the input, or none if nobody needs it. The output is copied once, since Candle owns what its operations make.
pub fn graft(
    input: &Tensor,
    output: Tensor,
    backward: impl Fn(&Tensor) -> crate::Result<Option<Tensor>> + Send + Sync + 'static,
) -> crate::Result<Tensor> {
    Ok(input.apply_op1(Graft { output, backward })?)
}

struct Graft<F> {
    output: Tensor,
    backward: F,
}

impl<F: Fn(&Tensor) -> crate::Result<Option<Tensor>> + Send + Sync> Graft<F> {
    fn copy<S>(&self, take: impl Fn(Storage) -> Option<S>) -> Result<(S, Shape)> {
        let (storage, layout) = self.output.storage_and_layout();
        let copy = take(storage.try_clone(layout)?);
        let copy = copy.ok_or_else(|| candle_core::Error::Msg("grafted onto another device".into()))?;
        Ok((copy, layout.shape().clone()))
    }
}

impl<F: Fn(&Tensor) -> crate::Result<Option<Tensor>> + Send + Sync> CustomOp1 for Graft<F> {
    fn name(&self) -> &'static str {
        "graft"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        self.copy(|storage| if let Storage::Cpu(storage) = storage { Some(storage) } else { None })
    }

    fn cuda_fwd(&self, _: &CudaStorage, _: &Layout) -> Result<(CudaStorage, Shape)> {
        self.copy(|storage| if let Storage::Cuda(storage) = storage { Some(storage) } else { None })
    }

    fn metal_fwd(&self, _: &MetalStorage, _: &Layout) -> Result<(MetalStorage, Shape)> {
        self.copy(|storage| if let Storage::Metal(storage) = storage { Some(storage) } else { None })
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        (self.backward)(gradient).map_err(|error| match error {
            crate::Error::Tensor(error) => error,
            error => candle_core::Error::Msg(error.to_string()),
        })
    }
}
