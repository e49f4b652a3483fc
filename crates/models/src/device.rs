//! Where tensors live: `auto`, `cpu`, `cuda:N`.

use std::fmt;
use std::str::FromStr;

use candle_core::Device;

use crate::error::{Error, Result};

/// Gives elementwise operations of the tensor framework one thread. To be called first thing in `main`.
///
/// Candle runs them on a pool of its own, whose threads wait for work in a loop: on a small machine they take the cores that
/// rayon's threads need for products and for the operations that are ours, a fifth of a training step on two cores. What is
/// hot is ours; the rest is too small to be worth a second pool. `CANDLE_NUM_THREADS` in the environment has the last word.
pub fn prepare_process() {
    const THREADS: &str = "CANDLE_NUM_THREADS";
    if std::env::var_os(THREADS).is_none() {
        // SAFETY: no other thread runs yet, so none reads the environment meanwhile.
        #[expect(unsafe_code, reason = "there is no other way to tell Candle")]
        unsafe {
            std::env::set_var(THREADS, "1");
        }
    }
}

/// A device by name, before it is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first GPU if there is one and the program was built for it, the CPU otherwise.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU by number.
    Cuda(usize),
}

impl DeviceChoice {
    /// Opens the device.
    pub fn open(self) -> Result<Device> {
        match self {
            DeviceChoice::Cpu => Ok(Device::Cpu),
            DeviceChoice::Auto if cfg!(feature = "cuda") => Ok(Device::new_cuda(0).unwrap_or(Device::Cpu)),
            DeviceChoice::Auto => Ok(Device::Cpu),
            DeviceChoice::Cuda(_) if !cfg!(feature = "cuda") => Err(Error::NoDevice {
                wanted: self.to_string(),
                reason: "this program was built without GPUs; build it with `--features cuda`, or say `--device cpu`"
                    .into(),
            }),
            DeviceChoice::Cuda(ordinal) => Device::new_cuda(ordinal).map_err(|error| Error::NoDevice {
                wanted: self.to_string(),
                reason: format!("{error}; `nvidia-smi -L` lists the GPUs, `--device cpu` does without"),
            }),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Auto => write!(f, "auto"),
            DeviceChoice::Cpu => write!(f, "cpu"),
            DeviceChoice::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "auto" => Ok(DeviceChoice::Auto),
            "cpu" => Ok(DeviceChoice::Cpu),
            "cuda" => Ok(DeviceChoice::Cuda(0)),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|ordinal| ordinal.parse().ok())
                .map(DeviceChoice::Cuda)
                .ok_or_else(|| format!("`{text}` is no device; `auto`, `cpu` and `cuda:N` are")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in ["auto", "cpu", "cuda:0", "cuda:7"] {
            assert_eq!(name.parse::<DeviceChoice>().map(|choice| choice.to_string()), Ok(name.to_owned()));
        }
        assert!("gpu".parse::<DeviceChoice>().is_err());
        assert!("cuda:x".parse::<DeviceChoice>().is_err());
    }
}
