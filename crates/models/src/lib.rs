//! The learned parts: frozen encoder, world model, kernel, amortizer, and how they are trained.

pub mod device;
pub mod encoder;
pub mod error;

pub use device::DeviceChoice;
pub use error::Error;
