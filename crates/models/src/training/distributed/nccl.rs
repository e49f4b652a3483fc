//! Sums between GPUs by NCCL, on a stream of their own.
//!
//! Ranks meet over TCP, where the first one hands out NCCL's id. A sum is queued on the communication stream after an
//! event of the compute stream that says its values are there; `finish_sums` makes the compute stream wait for an event
//! after the last sum. The host waits for neither, so sums run while the backward pass is still being computed.
//!
//! NCCL checks nothing: ranks that sum tensors of different lengths wait for ever. So each new label is compared over
//! TCP first, which costs the first step a few messages and the others nothing. A rank that dies leaves the others
//! waiting inside NCCL; `torchrun` and `srun --kill-on-bad-exit` end them.
//!
//! All calls come from the thread that computes: Candle's stream is that of the calling thread.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::cuda_backend::cudarc::driver::CudaStream;
use candle_core::cuda_backend::cudarc::driver::result::DriverError;
use candle_core::cuda_backend::cudarc::nccl::result::NcclError;
use candle_core::cuda_backend::cudarc::nccl::{Comm, Id, ReduceOp};
use candle_core::{CpuStorage, CudaStorage, DType, Device, InplaceOp1, Layout, Tensor};

use super::environment::Environment;
use super::rendezvous::{Patience, Star};
use super::{Transport, other_sum};
use crate::error::{Error, Result};

/// Messages over TCP carry this.
const CONTROL: u64 = 0;

/// The length of NCCL's id.
const ID: usize = 128;

/// GPUs connected by NCCL, one for each process.
pub struct Nccl {
    rank: usize,
    world: usize,
    compute: Arc<CudaStream>,
    communication: Arc<CudaStream>,
    communicator: Communicator,
    control: Mutex<Star>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Tensors that are being summed; they must live until the compute stream waits for their sums.
    begun: Vec<Tensor>,
    /// Labels that all ranks were found to share.
    known: BTreeSet<u64>,
}

/// NCCL's handle.
struct Communicator(Mutex<Comm>);

#[expect(unsafe_code, reason = "the handle is a pointer, which the compiler takes for bound to its thread")]
// SAFETY: NCCL's communicators may be used from any thread, by one at a time, which the mutex sees to.
unsafe impl Send for Communicator {}
#[expect(unsafe_code, reason = "see above")]
// SAFETY: as above.
unsafe impl Sync for Communicator {}

impl Nccl {
    /// Meets the other ranks; `device` is this one's GPU.
    pub fn connect(environment: &Environment, device: &Device, patience: Patience) -> Result<Nccl> {
        let Environment { rank, world, .. } = *environment;
        let mut control = Star::connect(environment, 1, patience)?
            .pop()
            .ok_or_else(|| Error::Transport { rank, reason: "no channel was opened".into() })?;
        let compute = device.as_cuda_device()?.cuda_stream();
        let communication = compute.context().new_stream().map_err(|error| driver(rank, &error))?;
        let mine = if rank == 0 {
            Id::new().map_err(|error| nccl(rank, &error))?.internal().map(|byte| byte.to_le_bytes()[0]).to_vec()
        } else {
            Vec::new()
        };
        let said = control.broadcast(CONTROL, mine)?;
        let id: [u8; ID] = said
            .try_into()
            .map_err(|said: Vec<u8>| Error::Transport { rank, reason: format!("an id of {} bytes", said.len()) })?;
        let id = Id::uninit(id.map(|byte| std::ffi::c_char::from_le_bytes([byte])));
        let comm = Comm::from_rank(communication.clone(), rank, world, id).map_err(|error| nccl(rank, &error))?;
        let communicator = Communicator(Mutex::new(comm));
        let (control, state) = (Mutex::new(control), Mutex::default());
        Ok(Nccl { rank, world, compute, communication, communicator, control, state })
    }

    /// Queues an operation on a flat f32 tensor, in place, after all that was computed so far.
    fn queue(&self, collective: Collective, values: &Tensor) -> Result<()> {
        self.communication.join(&self.compute).map_err(|error| driver(self.rank, &error))?;
        let communicator = self.communicator.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(values.inplace_op1(&InPlace { collective, communicator: &communicator })?)
    }

    /// Lets what is computed from now on wait for all that was queued.
    fn wait(&self) -> Result<()> {
        self.compute.join(&self.communication).map_err(|error| driver(self.rank, &error))
    }

    fn control(&self) -> MutexGuard<'_, Star> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for Nccl {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.world
    }

    fn begin_sum(&self, label: u64, values: Tensor) -> Result<()> {
        let mut state = self.state();
        if state.known.insert(label) {
            // Two halves, because a float holds no 64 bits.
            let mine = [(label >> 32) as f64, (label & 0xffff_ffff) as f64];
            let all = self.control().exchange(CONTROL, &mine)?;
            if let Some(peer) = all.iter().position(|said| *said != mine) {
                return Err(other_sum(self.rank, peer));
            }
        }
        self.queue(Collective::Sum, &values)?;
        state.begun.push(values);
        Ok(())
    }

    fn finish_sums(&self) -> Result<Vec<Tensor>> {
        self.wait()?;
        Ok(std::mem::take(&mut self.state().begun))
    }

    fn broadcast(&self, values: Tensor) -> Result<Tensor> {
        let values = values.to_dtype(DType::F32)?.copy()?;
        self.queue(Collective::Broadcast, &values)?;
        self.wait()?;
        Ok(values)
    }

    fn broadcast_bytes(&self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        self.control().broadcast(CONTROL, bytes)
    }

    fn exchange(&self, said: &[f64]) -> Result<Vec<Vec<f64>>> {
        self.control().exchange(CONTROL, said)
    }
}

#[derive(Clone, Copy)]
enum Collective {
    Sum,
    Broadcast,
}

/// A collective operation in the shape that Candle hands out storage for.
struct InPlace<'a> {
    collective: Collective,
    communicator: &'a Comm,
}

impl InplaceOp1 for InPlace<'_> {
    fn name(&self) -> &'static str {
        match self.collective {
            Collective::Sum => "all-reduce",
            Collective::Broadcast => "broadcast",
        }
    }

    fn cpu_fwd(&self, _: &mut CpuStorage, _: &Layout) -> candle_core::Result<()> {
        Err(candle_core::Error::Msg("NCCL works on GPUs alone".into()))
    }

    fn cuda_fwd(&self, storage: &mut CudaStorage, layout: &Layout) -> candle_core::Result<()> {
        let (start, end) = layout
            .contiguous_offsets()
            .ok_or_else(|| candle_core::Error::Msg("what NCCL works on must be contiguous".into()))?;
        let mut values = storage.as_cuda_slice_mut::<f32>()?.slice_mut(start..end);
        let done = match self.collective {
            Collective::Sum => self.communicator.all_reduce_in_place(&mut values, &ReduceOp::Sum),
            Collective::Broadcast => self.communicator.broadcast_in_place(&mut values, 0),
        };
        done.map(drop).map_err(|error| candle_core::Error::Msg(format!("NCCL: {:?}", error.0)))
    }
}

fn nccl(rank: usize, error: &NcclError) -> Error {
    Error::Transport { rank, reason: format!("NCCL: {:?}; `NCCL_DEBUG=INFO` makes it say more", error.0) }
}

fn driver(rank: usize, error: &DriverError) -> Error {
    Error::Transport { rank, reason: format!("CUDA: {error}") }
}
