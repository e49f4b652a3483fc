//! Figures of each outer iteration, and the loss curves of each training.

use serde::{Deserialize, Serialize};

use crate::json_number;

/// Figures of one outer iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Iteration {
    /// The outer iteration, from 1; 0 is the state before the loop.
    pub t: u32,
    /// Description length of all training programs given the library F_t, in nats.
    #[serde(deserialize_with = "json_number::one")]
    pub programs_nats: f64,
    /// Description length of the library F_t itself, in nats.
    #[serde(deserialize_with = "json_number::one")]
    pub library_nats: f64,
    /// Description length of the programs of held-out demonstrations given F_t, in nats, where it was measured.
    pub held_out_nats: Option<f64>,
    /// Entries of F_t.
    pub entries: u64,
    /// Candidates that were never proposed because they save too few nats, where they were counted.
    pub not_proposed: Option<u64>,
    /// The policy of this iteration; `None` before the loop.
    pub policy: Option<IterationPolicy>,
}

/// Held-out figures of the policy that outer iteration t trains. It writes programs with **F_{t−1}**, so the policy of t = 1
/// has no library.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IterationPolicy {
    /// Entries of F_{t−1}, the library that it was trained with.
    pub library_entries: u64,
    /// Share of tokens that the emitter (TPE) predicts correctly, 0 to 1.
    #[serde(deserialize_with = "json_number::one")]
    pub token_accuracy: f64,
    /// Share of programs that the emitter writes exactly, 0 to 1.
    #[serde(deserialize_with = "json_number::one")]
    pub exact_match: f64,
    /// Velocity error of the action decoder (LCAD) given oracle programs.
    #[serde(deserialize_with = "json_number::one")]
    pub velocity_error: f64,
}

/// One training: a model, in one outer iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingPhase {
    /// The trained model, such as `world model`; trainings of one name share their charts.
    pub name: String,
    /// The outer iteration in which it was trained, `None` if once for the whole run.
    pub iteration: Option<u32>,
    /// The terms of its loss, the total first.
    pub terms: Vec<LossTerm>,
}

/// One term of a loss over the steps of a training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossTerm {
    /// Its name, such as `total`, `recon`, `kl`.
    pub name: String,
    /// On training batches.
    pub training: Series,
    /// On held-out episodes; may be empty.
    pub held_out: Series,
}

/// Values over steps. Both vectors have the same length; any number of points is fine, long series are thinned when they
/// are drawn, and peaks are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Optimiser steps, ascending.
    #[serde(deserialize_with = "json_number::many")]
    pub steps: Vec<f64>,
    /// The value at each step.
    #[serde(deserialize_with = "json_number::many")]
    pub values: Vec<f64>,
}
