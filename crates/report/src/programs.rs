//! The library of typed programs, and the figures of the gates for every candidate.

use serde::{Deserialize, Serialize};

use crate::figure::Figure;
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
    /// The drop in total description length when it was admitted, in nats.
    #[serde(deserialize_with = "json_number::one")]
    pub gain_nats: f64,
    /// Posterior share of calls that are calls of it, with its interval; 0 to 1.
    pub posterior: Option<Posterior>,
    /// Names of the entries that its body calls.
    pub calls: Vec<String>,
    /// The outer iteration that admitted it.
    pub iteration: u32,
    /// Its kind, such as `several skills`, `partial application` or `constant`, where it was determined. An abbreviation
    /// saves nats without composing skills, so the page counts entries by kind.
    pub kind: Option<String>,
    /// A few calls from the corpus with their expansions.
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

/// A call and its expansion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expansion {
    /// The call, such as `fn_0 "milk"`.
    pub call: String,
    /// The primitive calls that it expands to; line breaks are kept.
    pub meaning: String,
}

/// A candidate for the library, with the figures of all gates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// The outer iteration that proposed it.
    pub iteration: u32,
    /// The name that it got, `None` if it was rejected.
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
    /// One figure for each gate, in the order of the gates.
    pub figures: Vec<Figure>,
    /// Whether it was admitted.
    pub admitted: bool,
}

impl Candidate {
    /// Why it was rejected: one sentence for each gate that rejects it. Empty for an admitted candidate.
    pub fn rejections(&self) -> Vec<String> {
        let sentence = |figure: &Figure| match figure.reason.as_str() {
            "" => format!("{} recorded no reason", figure.gate),
            reason => format!("{}: {reason}", figure.gate),
        };
        self.figures.iter().filter(|figure| figure.rejects()).map(sentence).collect()
    }
}

/// The verdict of a gate on a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The candidate passes.
    Passed,
    /// The candidate is rejected.
    Failed,
    /// The gate cannot judge, for example without rewards, or is switched off.
    Inactive,
}
