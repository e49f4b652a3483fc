//! Where a command computes: its device, and the other processes if `torchrun` or Slurm started several.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use experiments::cycle::{Event, Extensions, RunOptions};
use models::DeviceChoice;
use models::training::distributed::{Environment, Transport, connect};

use super::args::{ComputeArgs, HowArgs};
use super::watch::stop_flag;
use crate::failure::Failure;

/// A device, the way to other processes, and the flag that Ctrl-C sets.
pub(crate) struct Place {
    pub(crate) device: experiments::Device,
    transport: Arc<dyn Transport>,
    pub(crate) stop: &'static AtomicBool,
}

impl Place {
    /// Opens the device and meets the other processes. With several processes and `--device auto` each takes the GPU of its
    /// local rank.
    pub(crate) fn open(compute: &ComputeArgs) -> Result<Place, Failure> {
        let environment = Environment::from_process()?;
        let several = environment.as_ref().filter(|environment| environment.world > 1);
        let device = match (several, compute.device) {
            (Some(environment), DeviceChoice::Auto) if cfg!(feature = "cuda") => {
                DeviceChoice::Cuda(environment.local_rank).open()?
            }
            (_, device) => device.open()?,
        };
        let transport = connect(environment.as_ref(), &device)?;
        Ok(Place { device, transport, stop: stop_flag()? })
    }

    /// Whether this process prints results.
    pub(crate) fn is_first(&self) -> bool {
        self.transport.rank() == 0
    }

    /// How a run is made here.
    pub(crate) fn options<'a>(
        &'a self,
        out: &'a Path,
        preset: &'a str,
        how: &HowArgs,
        command: String,
        observer: &'a mut dyn FnMut(Event<'_>),
    ) -> RunOptions<'a> {
        RunOptions {
            out,
            resume: how.resume,
            preset,
            seed: how.seed,
            device: &self.device,
            transport: self.transport.clone(),
            stop: Some(self.stop),
            observer,
            runs_on: self.in_words(),
            command,
            extensions: Extensions::default(),
        }
    }

    fn in_words(&self) -> String {
        let device = in_words(&self.device);
        match self.transport.world() {
            1 => device,
            world => format!("{world} processes, each on {device}"),
        }
    }
}

/// A device in words, for the record.
pub(crate) fn in_words(device: &experiments::Device) -> String {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    if device.is_cpu() { format!("cpu, {threads} threads") } else { "cuda".to_owned() }
}
