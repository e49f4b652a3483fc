//! Several processes that train one model, one for each GPU.
//!
//! Each takes its parts of the global batch; gradients are summed over all of them. [`Environment`] says who is who,
//! from the variables that `torchrun` or Slurm set; a [`Transport`] carries the sums: [`Nccl`] between GPUs,
//! [`Loopback`] over TCP between CPUs. Both meet at the first rank's address.

pub mod environment;
pub mod loopback;
#[cfg(feature = "nccl")]
pub mod nccl;
mod rendezvous;

use std::sync::{Arc, Mutex, PoisonError};

use candle_core::{Device, Tensor};

pub use environment::Environment;
pub use loopback::Loopback;
#[cfg(feature = "nccl")]
pub use nccl::Nccl;
pub use rendezvous::Patience;

use crate::error::{Error, Result};

/// What ranks say to each other. All ranks make the same calls in the same order.
pub trait Transport: Send + Sync {
    /// Which process this is, from zero.
    fn rank(&self) -> usize;

    /// How many there are.
    fn world(&self) -> usize;

    /// Starts summing a flat f32 tensor over all ranks and returns at once; the tensor is the transport's from now on.
    /// `label` says what it holds, and is the same on all ranks.
    fn begin_sum(&self, label: u64, values: Tensor) -> Result<()>;

    /// The sums that were begun, in that order. Work that is queued on the device afterwards sees them.
    fn finish_sums(&self) -> Result<Vec<Tensor>>;

    /// The first rank's values of an f32 tensor, which has the same shape everywhere.
    fn broadcast(&self, values: Tensor) -> Result<Tensor>;

    /// The first rank's bytes.
    fn broadcast_bytes(&self, bytes: Vec<u8>) -> Result<Vec<u8>>;

    /// What each rank says, in the order of ranks.
    fn exchange(&self, said: &[f64]) -> Result<Vec<Vec<f64>>>;

    /// Returns once all ranks are here.
    fn barrier(&self) -> Result<()> {
        self.exchange(&[]).map(drop)
    }
}

/// One process.
#[derive(Debug, Default)]
pub struct Alone {
    sums: Mutex<Vec<Tensor>>,
}

impl Transport for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn world(&self) -> usize {
        1
    }

    fn begin_sum(&self, _label: u64, values: Tensor) -> Result<()> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner).push(values);
        Ok(())
    }

    fn finish_sums(&self) -> Result<Vec<Tensor>> {
        Ok(std::mem::take(&mut *self.sums.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn broadcast(&self, values: Tensor) -> Result<Tensor> {
        Ok(values)
    }

    fn broadcast_bytes(&self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        Ok(bytes)
    }

    fn exchange(&self, said: &[f64]) -> Result<Vec<Vec<f64>>> {
        Ok(vec![said.to_vec()])
    }
}

/// Meets the other processes, if there are any: NCCL between GPUs, TCP between CPUs.
pub fn connect(environment: Option<&Environment>, device: &Device) -> Result<Arc<dyn Transport>> {
    let Some(environment) = environment.filter(|environment| environment.world > 1) else {
        return Ok(Arc::new(Alone::default()));
    };
    if device.is_cpu() {
        return Ok(Arc::new(Loopback::connect(environment, Patience::default())?));
    }
    #[cfg(feature = "nccl")]
    return Ok(Arc::new(Nccl::connect(environment, device, Patience::default())?));
    #[cfg(not(feature = "nccl"))]
    Err(Error::Transport {
        rank: environment.rank,
        reason: format!(
            "{} processes are to train on GPUs, and this program was built without NCCL; build \
             it with `--features nccl`",
            environment.world
        ),
    })
}

/// Ranks that sum different gradients.
fn other_sum(rank: usize, peer: usize) -> Error {
    let reason = format!(
        "rank {peer} sums other gradients than rank {rank}; do all processes run the same \
         program with the same settings?"
    );
    Error::Transport { rank, reason }
}
