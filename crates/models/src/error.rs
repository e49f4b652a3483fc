//! What can go wrong between files, tensors and devices.

/// Why something could not be built or computed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The tensor framework refused an operation.
    #[error("{0}")]
    Tensor(#[from] candle_core::Error),
    /// A device was asked for that is not there.
    #[error("no device `{wanted}`: {reason}")]
    NoDevice {
        /// What was asked for.
        wanted: String,
        /// Why it cannot be had, and what can.
        reason: String,
    },
}
