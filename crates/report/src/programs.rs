//! The library of typed programs, and how the gates judged every candidate for it.

use serde::{Deserialize, Serialize};

use crate::json_number;

/// An entry of the library.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name in programs, such as `fn_0`. Names are unique.
    pub name: String,
    /// Its type, such as `Lang -> Motion`.
    #[serde(rename = "type")]
    pub ty: String,
    /// Its body as the language prints it; line breaks and indentation are kept.
    pub body: String,
    /// The parameters by the names that the body uses, in order.
    pub holes: Vec<Hole>,
    /// Calls in the rewritten corpus and in other entries.
    pub uses: u64,
    /// By how much it made the whole shorter when it was admitted, in nats.
    #[serde(deserialize_with = "json_number::one")]
    pub gain_nats: f64,
    /// Posterior share of calls that are calls of it, with its interval; 0 to 1.
    pub posterior: Option<Posterior>,
    /// Names of the entries that its body calls.
    pub calls: Vec<String>,
    /// The outer iteration that admitted it.
    pub iteration: u32,
    /// Calls from the corpus with what they mean, a few.
    pub expansions: Vec<Expansion>,
}

/// A parameter of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hole {
    /// Its name in the body, such as `x0`.
    pub name: String,
    /// Its type, such as `Lang`.
    #[serde(rename = "type")]
    pub ty: String,
}

/// The posterior of an entry's share of use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Posterior {
    /// Its mean.
    #[serde(deserialize_with = "json_number::one")]
    pub mean: f64,
    /// Lower end of its 95 % interval.
    #[serde(deserialize_with = "json_number::one")]
    pub low: f64,
    /// Upper end of its 95 % interval.
    #[serde(deserialize_with = "json_number::one")]
    pub high: f64,
}

/// A call and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expansion {
    /// The call, such as `fn_0 "milk"`.
    pub call: String,
    /// What it unfolds to, primitive calls only; line breaks are kept.
    pub meaning: String,
}

/// A candidate for the library, and what each gate measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// The outer iteration that proposed it.
    pub iteration: u32,
    /// The name that it got, `None` if it was refused.
    pub name: Option<String>,
    /// Its body as the language prints it; line breaks and indentation are kept.
    pub body: String,
    /// Its parameters by the names that the body uses, in order.
    pub holes: Vec<Hole>,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: String,
    /// Places of the corpus that it matches.
    pub uses: u64,
    /// BEK soundness: the mean D_φ between motions that it merges, at most ε_t. No unit.
    pub soundness: Gate,
    /// Return preservation: the mean size of the difference of returns up to its upper confidence bound, which must be below ε.
    pub returns: Gate,
    /// MDL gain in nats, which must exceed its limit.
    pub gain: Gate,
    /// Whether it was admitted.
    pub admitted: bool,
    /// Why, as a sentence; needed for those refused.
    pub reason: String,
}

/// What one gate measured and said.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// What it said.
    pub verdict: Verdict,
    /// What it measured; `None` where it did not.
    pub value: Option<f64>,
    /// Lower end of the confidence interval, where there is one.
    pub low: Option<f64>,
    /// Upper end of it.
    pub high: Option<f64>,
    /// What the value was held against.
    pub limit: Option<f64>,
}

/// What a gate says of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It lets the candidate through.
    Passed,
    /// It does not.
    Failed,
    /// It cannot judge, for example without reward, or was switched off.
    Inactive,
    /// An earlier gate had already refused.
    NotReached,
}
