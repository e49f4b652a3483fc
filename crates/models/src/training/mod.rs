//! One trainer for all phases.
//!
//! A phase is an [`Objective`]: its weights, its batches as a function of the step, its loss. [`train`] is the rest:
//! ```text
//! prepare (another thread, two steps ahead) → loss → backward ─→ gradients of parts, summed in order
//!                                                        └ over ranks while the backward pass goes on
//! → mean → clip → AdamW → EMA → every so often: metrics, evaluation, checkpoint
//! ```
//! **A killed run that is resumed ends with the weights of an unbroken one, bit for bit**: batches are functions of the
//! step, and a checkpoint, one file that appears whole or not at all, has everything else. **The processes of a run
//! give the weights of one process** that takes as many parts itself: sums are taken in the order of parts and ranks.
//! Over TCP that holds to the bit; NCCL chooses its own order, so there it holds to rounding.
//!
//! A run directory, which the first rank alone writes:
//! ```text
//! checkpoints/step-00000400.safetensors    weights, moments, averages, and the state of the run
//! metrics.jsonl                            one line for each reading and each evaluation
//! events/events.out.tfevents.*             the same for TensorBoard
//! model.safetensors                        at the end: the weights alone
//! lock                                     held while a process trains
//! ```

pub mod adamw;
pub mod checkpoint;
mod clock;
pub mod config;
pub mod distributed;
pub mod ema;
pub mod events;
pub mod metrics;
mod monitor;
pub mod objective;
mod prepare;
mod recorder;
mod reduce;
pub mod run;
pub mod schedule;
pub mod trainer;

pub use adamw::{AdamW, AdamWConfig};
pub use checkpoint::load_model;
pub use config::TrainConfig;
pub use objective::{Loss, Objective, Part};
pub use recorder::{Difference, differences};
pub use run::{Options, Outcome, Progress, Summary};
pub use trainer::train;
