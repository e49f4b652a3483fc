//! Equivalence operators of other systems next to ours, on the same fragments, probe and clusterer (SPEC §11).
//!
//! An *equivalence operator* says which fragments of demonstrations are the same skill. Each is a type in a file of its own
//! that implements [`Operator`], and one line in [`operators`]. [`compare()`] chooses the settings of each on training episodes,
//! runs it on shared seeds, and scores it against tasks and against phases.
//!
//! | operator | classes | learned from |
//! |---|---|---|
//! | `ours_fragments`, `ours_segments` | KMeans on k_χ, which has learned D_φ | a world model's rollouts |
//! | `atomic_vla` | the expert that a gate chooses | actions |
//! | `atom_skill` | KMeans on contrastive embeddings of stretches between gripper keyframes | time and words |
//! | `blade`, `lrll` | symbolic conditions before and after a stretch, a library that grows | rules |
//! | `buds` | spectral clusters of agglomerated stretches | – |
//! | `prise` | tokens of byte-pair encoding over quantised steps | – |
//! | `frozen_features`, `raw_windows`, `segment_actions` | KMeans | – |
//!
//! No operator sees `task_index` or `phase`. Vectors are clustered into as many classes as the probe has tasks, by the KMeans of
//! all other experiments; where an operator makes classes by itself, there are as many as it makes.

mod atom_skill;
mod atomic_vla;
mod blade;
mod buds;
mod compare;
mod fragments;
mod frozen_features;
mod lrll;
mod ours;
mod prise;
mod raw_windows;
mod resampled;
mod segment_actions;
mod symbols;
mod table;
mod training;

use candle_core::Device;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::atom_skill::AtomSkill;
pub use self::atomic_vla::AtomicVla;
pub use self::blade::Blade;
pub use self::buds::Buds;
pub use self::compare::{CRITERION, Cell, Comparison, Difference, Entry, Figure, Settings, Tried, compare};
pub use self::fragments::{Demonstrated, Fragments, Trainings};
pub use self::frozen_features::FrozenFeatures;
pub use self::lrll::Lrll;
pub use self::ours::Ours;
pub use self::prise::Prise;
pub use self::raw_windows::RawWindows;
pub use self::segment_actions::SegmentActions;
use crate::error::{Error, Result};

/// How much an operator may learn from, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Its name.
    pub name: String,
    /// Training fragments, evenly chosen; all of them if there are fewer.
    pub fragments: usize,
    /// Steps of an operator's training, if it has one.
    pub steps: u64,
}

impl Budget {
    /// The paper's: 4096 training fragments and 500 steps.
    pub fn paper() -> Budget {
        Budget { name: "paper".to_owned(), fragments: 4096, steps: 500 }
    }

    /// All training fragments and 4000 steps, as many as the paper's own models are trained.
    pub fn converged() -> Budget {
        Budget { name: "converged".to_owned(), fragments: usize::MAX, steps: 4000 }
    }

    /// One of the two, by name.
    ///
    /// # Errors
    /// On any other name.
    pub fn named(name: &str) -> Result<Budget> {
        let known = [Budget::paper(), Budget::converged()];
        known.into_iter().find(|budget| budget.name == name).ok_or_else(|| {
            Error::Settings(vec![format!("there is no budget `{name}`; there are `paper` and `converged`")])
        })
    }
}

/// What an operator found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// The class of each fragment of the probe.
    pub probe: Vec<i64>,
    /// Where each held-out episode is cut: rows of the episode, without its first one.
    pub cuts: Option<Vec<Vec<usize>>>,
}

/// An equivalence operator.
pub trait Operator {
    /// Its name in tables and files.
    fn name(&self) -> &'static str;

    /// What it stands for, and which parts of the original are replaced by what.
    fn source(&self) -> &'static str;

    /// Settings to choose from, as many as the other operators have.
    fn choices(&self, budget: &Budget) -> Vec<Value>;

    /// What the data lack that it needs, in words; `None` if they have all of it.
    fn missing(&self, _data: &Fragments<'_>) -> Option<String> {
        None
    }

    /// Learns from the training fragments, and classifies the held-out ones.
    ///
    /// # Errors
    /// On a choice that is none of its settings, and if the user interrupts a training.
    fn labels(&self, data: &Fragments<'_>, choice: &Value, seed: u64, device: &Device) -> Result<Found>;
}

/// All operators, ours first.
pub fn operators() -> Vec<Box<dyn Operator>> {
    vec![
        Box::new(Ours::fragments()),
        Box::new(Ours::segments()),
        Box::new(AtomicVla),
        Box::new(AtomSkill),
        Box::new(Blade),
        Box::new(Lrll),
        Box::new(Buds),
        Box::new(Prise),
        Box::new(FrozenFeatures),
        Box::new(RawWindows),
        Box::new(SegmentActions),
    ]
}

/// Some operators by name, in the order of [`operators`]; all of them if no names are given.
///
/// # Errors
/// Names every name that is no operator.
pub fn operators_named(names: &[String]) -> Result<Vec<Box<dyn Operator>>> {
    let all = operators();
    let unknown: Vec<String> = names
        .iter()
        .filter(|name| !all.iter().any(|operator| operator.name() == *name))
        .map(|name| {
            let known: Vec<&str> = all.iter().map(|operator| operator.name()).collect();
            format!("there is no operator `{name}`; there are `{}`", known.join("`, `"))
        })
        .collect();
    if !unknown.is_empty() {
        return Err(Error::Settings(unknown));
    }
    Ok(all.into_iter().filter(|one| names.is_empty() || names.iter().any(|name| name == one.name())).collect())
}

/// The settings of an operator, of a choice. What a choice does not say is an error, and so is what is not a setting.
fn setting<S: DeserializeOwned>(operator: &str, choice: &Value) -> Result<S> {
    serde_json::from_value(choice.clone())
        .map_err(|error| Error::Settings(vec![format!("{choice} is no choice of `{operator}`: {error}")]))
}

/// The refusal of a setting's value.
fn refused(operator: &str, name: &str, found: impl std::fmt::Display, wanted: &str) -> Error {
    Error::Settings(vec![format!("`{name}` of `{operator}` is {found}, wanted {wanted}")])
}
