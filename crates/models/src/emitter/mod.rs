//! The typed program emitter, TPE (paper §3.4, phase B): from instruction, picture and state to programs.
//!
//! A causal Transformer over `[words, features, state, <bos>, t₁, <separator>, t₂, …]`: each word and each token of a
//! program has a learned row, features and state go through a linear map, and kind and place are added. Programs come one
//! after the other (in our loop the task's program, then the motor program of what is done from now on), each a term of its
//! own. The loss is the mean of −ln p(token given all before it).
//!
//! [`Emitter::emit`] writes programs by beam search over well-typed prefixes. Its symbols are those of a
//! [`Vocabulary`](crate::vocabulary::Vocabulary).
//!
//! Departures: the paper says neither how large its emitter is nor how the instruction enters; words with rows of their own
//! need no pretrained language model, and a hash gives unknown words a row too. Words are filled up to a fixed number, so
//! that what else is in a batch has no influence.

mod beam;
mod config;
mod loss;
mod model;
#[cfg(test)]
mod tests;
mod words;

pub use beam::{BeamConfig, BeamStatistics, Emission, Hypothesis, Stop, best, exact_match};
pub use config::{EmitterConfig, PRESETS, Symbols};
pub use loss::TokenScores;
pub use model::{Condition, Emitter, EmitterBatch, token_tensor, word_tensor};
pub use words::{NO_WORD, WordVocabulary};
