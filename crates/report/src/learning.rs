//! How the run went: figures of each outer iteration, and the loss curves of each training.

use serde::{Deserialize, Serialize};

use crate::json_number;

/// Figures after one outer iteration. All but the description lengths may be missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Iteration {
    /// The outer iteration, from 1; 0 is the state before the loop.
    pub t: u32,
    /// Description length of all programs given the library, in nats.
    #[serde(deserialize_with = "json_number::one")]
    pub programs_nats: f64,
    /// Description length of the library itself, in nats.
    #[serde(deserialize_with = "json_number::one")]
    pub library_nats: f64,
    /// Entries of the library.
    pub entries: u64,
    /// Skills that clustering found.
    pub skills: Option<u64>,
    /// Normalised mutual information of skills and tasks on the probe, 0 to 1.
    pub nmi_task: Option<f64>,
    /// Adjusted Rand index of skills and tasks, at most 1.
    pub ari_task: Option<f64>,
    /// Normalised mutual information of skills and true phases, 0 to 1.
    pub nmi_phase: Option<f64>,
    /// Adjusted Rand index of skills and true phases, at most 1.
    pub ari_phase: Option<f64>,
    /// Share of tokens that the emitter (TPE) gets right on held-out episodes, 0 to 1.
    pub tpe_token_accuracy: Option<f64>,
    /// Share of whole programs that it gets right, 0 to 1.
    pub tpe_exact_match: Option<f64>,
    /// Velocity error of the action decoder (LCAD) on held-out episodes, programs written with the library.
    pub lcad_error_with_library: Option<f64>,
    /// The same for programs written without it.
    pub lcad_error_without_library: Option<f64>,
    /// Wall-clock time of this iteration in seconds.
    pub seconds: Option<f64>,
}

/// One training: a model, in one outer iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingPhase {
    /// What was trained, such as `world model`; trainings of one name share their figures.
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
/// are drawn, in a way that keeps peaks.
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
