//! The learned parts: frozen encoder, world model, kernel, amortizer, emitter, decoder, and how they are trained.

pub mod amortizer;
pub mod bottleneck;
pub mod contrast;
pub mod decoder;
pub mod device;
pub mod emitter;
pub mod encoder;
pub mod error;
pub mod eye;
pub mod fragments;
pub mod kernel;
pub mod layers;
pub mod noise;
pub mod ops;
pub mod training;
mod vectorised;
pub mod vocabulary;
mod widths;
pub mod world_model;

pub use decoder::{Decoder, DecoderConfig};
pub use device::{DeviceChoice, prepare_process};
pub use emitter::{Emitter, EmitterConfig};
pub use error::{Error, Result};
pub use eye::{EyeConfig, Look};
pub use fragments::{FragmentBatch, FragmentTable, Scales, TableOptions};
pub use layers::{embedding, parameters, transformer};
pub use parameters::{Parameter, Parameters, Precision};
pub use vocabulary::Vocabulary;
pub use widths::Widths;
pub use world_model::{WorldModel, WorldModelConfig};
