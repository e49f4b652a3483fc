//! The library-conditioned action decoder, LCAD (paper §3.4, phase B): from a typed term, state and picture to a chunk of
//! actions by rectified flow.
//!
//! x₀ ~ N(0, I), x₁ the chunk (16 × A, standardised), x_u = (1 − u)·x₀ + u·x₁, and v̂(x_u, u) learns x₁ − x₀ by its mean
//! squared error. From noise to a chunk are 10 Euler steps of v̂.
//!
//! A small causal Transformer reads the term into a few vectors ([`Decoder::condition`]), after what an [eye](crate::eye) sees if
//! there is one; a bidirectional one sees `[summaries, features, state, x_u¹ … x_u¹⁶]`, where every action's token also carries
//! the flow time. The condition is read once for all Euler steps.
//!
//! Departures: the paper gives 4 layers, d 384 and ≈ 10.9 M weights, not how the term enters. Summaries rather than the
//! term's tokens in the attention of the chunk: padding behind a causal reader is seen by nothing that matters, so that no
//! mask is needed and **padding changes nothing**, and the ten passes over the chunk stay short. Its v_err has no definition;
//! [`FlowError`] has three readings.

mod config;
mod flow;
mod model;
#[cfg(test)]
mod tests;

pub use config::{DecoderConfig, PRESETS};
pub use flow::{DecoderBatch, FlowError, FlowNoise, euler};
pub use model::{Condition, Conditioned, Decoder, term_tensor};
