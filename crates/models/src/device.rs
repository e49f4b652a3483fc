//! Where tensors live: `auto`, `cpu`, `cuda:N`.

use std::fmt;
use std::str::FromStr;

use candle_core::Device;

use crate::error::Error;

/// A device by name, before it is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The first GPU if the program was built for one and there is one, the CPU otherwise.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU by number.
    Cuda(usize),
}

impl DeviceChoice {
    /// Opens the device, or says why it cannot be had.
    pub fn open(self) -> Result<Device, Error> {
        match self {
            DeviceChoice::Cpu => Ok(Device::Cpu),
            DeviceChoice::Auto => Ok(Device::new_cuda(0).unwrap_or(Device::Cpu)),
            DeviceChoice::Cuda(number) => Device::new_cuda(number).map_err(|error| Error::NoDevice {
                wanted: self.to_string(),
                reason: match cfg!(feature = "cuda") {
                    true => error.to_string(),
                    false => "this program was built without GPUs, that is without `--features cuda`".to_string(),
                },
            }),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Auto => f.write_str("auto"),
            DeviceChoice::Cpu => f.write_str("cpu"),
            DeviceChoice::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<DeviceChoice, String> {
        match (text, text.strip_prefix("cuda:").map(str::parse)) {
            ("auto", _) => Ok(DeviceChoice::Auto),
            ("cpu", _) => Ok(DeviceChoice::Cpu),
            (_, Some(Ok(number))) => Ok(DeviceChoice::Cuda(number)),
            _ => Err(format!("`{text}` is no device: `auto`, `cpu` and `cuda:N` are")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_printed_as_they_are_read() {
        for written in ["auto", "cpu", "cuda:0", "cuda:3"] {
            assert_eq!(written.parse::<DeviceChoice>().map(|choice| choice.to_string()), Ok(written.to_string()));
        }
        for written in ["gpu", "cuda:", "cuda:-1", ""] {
            assert!(written.parse::<DeviceChoice>().is_err(), "`{written}`");
        }
    }
}
