//! What one gate measured about one candidate. Gates produce these figures, the summary of a run stores them and the page
//! draws them, so that a new gate changes none of the three.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::json_number;
use crate::programs::Verdict;

/// The judgement of one gate about one candidate, with the numbers that led to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The name of the gate, such as `soundness`; unique within a candidate.
    pub gate: String,
    /// Whether the candidate passed.
    pub verdict: Verdict,
    /// The measured value; `None` where the gate is inactive.
    pub value: Option<f64>,
    /// Lower end of the confidence interval of the value.
    pub low: Option<f64>,
    /// Upper end of the confidence interval of the value.
    pub high: Option<f64>,
    /// The limit that the gate compares with.
    pub limit: Option<f64>,
    /// The unit of value, interval and limit, such as `nats`; empty for dimensionless figures.
    pub unit: String,
    /// Why the candidate was rejected or the gate is inactive, as a sentence; empty where it passed.
    pub reason: String,
    /// Further numbers by name, such as `pairs` or `worst`.
    #[serde(deserialize_with = "json_number::named")]
    pub details: BTreeMap<String, f64>,
}

impl Figure {
    /// A gate that cannot judge, with the reason.
    pub fn inactive(gate: &str, reason: impl Into<String>) -> Figure {
        Figure {
            gate: gate.to_owned(),
            verdict: Verdict::Inactive,
            value: None,
            low: None,
            high: None,
            limit: None,
            unit: String::new(),
            reason: reason.into(),
            details: BTreeMap::new(),
        }
    }

    /// Whether the candidate is rejected by this gate.
    pub fn rejects(&self) -> bool {
        self.verdict == Verdict::Failed
    }
}
