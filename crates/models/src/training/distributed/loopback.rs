//! Sums over TCP, for CPUs: the first rank adds what the others send, in the order of ranks, and answers.
//!
//! A thread does it, so that the backward pass goes on meanwhile. Sums are the same bits on every rank, and those that
//! one process would get from adding the parts in order.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use candle_core::{DType, Device, Shape, Tensor};

use super::Transport;
use super::environment::Environment;
use super::rendezvous::{Patience, Star};
use crate::error::{Error, Result};

/// Messages other than sums carry this.
const CONTROL: u64 = 0;

/// Ranks connected by TCP.
pub struct Loopback {
    rank: usize,
    world: usize,
    control: Mutex<Star>,
    sums: Mutex<Sums>,
}

struct Sums {
    /// None once a sum has failed.
    work: Option<Sender<(u64, Vec<f32>)>>,
    done: Receiver<Result<Vec<f32>>>,
    begun: Vec<(Device, Shape)>,
}

impl Loopback {
    /// Meets the other ranks.
    pub fn connect(environment: &Environment, patience: Patience) -> Result<Loopback> {
        let mut channels = Star::connect(environment, 2, patience)?.into_iter();
        let (Some(control), Some(star)) = (channels.next(), channels.next()) else {
            return Err(Error::Transport { rank: environment.rank, reason: "no channel was opened".into() });
        };
        let (work, jobs) = channel();
        let (answers, done) = channel();
        // It ends when `work` or `done` is dropped, or when a rank is lost.
        std::thread::spawn(move || serve(star, &jobs, &answers));
        let sums = Sums { work: Some(work), done, begun: Vec::new() };
        let (rank, world) = (control.rank(), control.world());
        Ok(Loopback { rank, world, control: Mutex::new(control), sums: Mutex::new(sums) })
    }

    fn control(&self) -> MutexGuard<'_, Star> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for Loopback {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.world
    }

    fn begin_sum(&self, label: u64, values: Tensor) -> Result<()> {
        let (device, shape) = (values.device().clone(), values.shape().clone());
        let values = floats(&values)?;
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        sums.begun.push((device, shape));
        if sums.work.as_ref().is_some_and(|work| work.send((label, values)).is_ok()) {
            return Ok(());
        }
        // The thread has ended, and has said why.
        sums.work = None;
        let failure = sums.done.iter().find_map(Result::err);
        Err(failure.unwrap_or_else(|| Error::Transport { rank: self.rank, reason: "sums have ended".into() }))
    }

    fn finish_sums(&self) -> Result<Vec<Tensor>> {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = std::mem::take(&mut sums.begun);
        let finish = |(device, shape): (Device, Shape)| {
            let ended = |_| Error::Transport { rank: self.rank, reason: "sums have ended".into() };
            Ok(Tensor::from_vec(sums.done.recv().map_err(ended)??, shape, &device)?)
        };
        begun.into_iter().map(finish).collect()
    }

    fn broadcast(&self, values: Tensor) -> Result<Tensor> {
        let mine = if self.rank == 0 { bytes(&floats(&values)?) } else { Vec::new() };
        let first = self.control().broadcast(CONTROL, mine)?;
        if self.rank == 0 {
            return Ok(values);
        }
        if first.len() != values.elem_count() * 4 {
            return Err(super::other_sum(self.rank, 0));
        }
        Ok(Tensor::from_vec(numbers(&first), values.shape(), values.device())?)
    }

    fn broadcast_bytes(&self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        self.control().broadcast(CONTROL, bytes)
    }

    fn exchange(&self, said: &[f64]) -> Result<Vec<Vec<f64>>> {
        self.control().exchange(CONTROL, said)
    }
}

fn serve(mut star: Star, jobs: &Receiver<(u64, Vec<f32>)>, answers: &Sender<Result<Vec<f32>>>) {
    for (label, values) in jobs {
        let sum = sum(&mut star, label, values);
        let failed = sum.is_err();
        if answers.send(sum).is_err() || failed {
            return;
        }
    }
}

fn sum(star: &mut Star, label: u64, mut values: Vec<f32>) -> Result<Vec<f32>> {
    let rank = star.rank();
    if rank == 0 {
        star.gather(label, |peer, bytes| add(&mut values, &bytes).ok_or_else(|| super::other_sum(rank, peer)))?;
        star.send(label, &bytes(&values))?;
        return Ok(values);
    }
    star.send(label, &bytes(&values))?;
    let first = numbers(&star.hear(label)?);
    if first.len() == values.len() { Ok(first) } else { Err(super::other_sum(rank, 0)) }
}

/// None if the lengths differ.
fn add(values: &mut [f32], bytes: &[u8]) -> Option<()> {
    let (chunks, rest) = bytes.as_chunks();
    if chunks.len() != values.len() || !rest.is_empty() {
        return None;
    }
    values.iter_mut().zip(chunks).for_each(|(value, chunk)| *value += f32::from_le_bytes(*chunk));
    Some(())
}

fn floats(values: &Tensor) -> Result<Vec<f32>> {
    Ok(values.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?)
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn numbers(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect()
}
