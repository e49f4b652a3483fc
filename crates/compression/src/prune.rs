//! Pruning: entries that no longer pay their way are inlined and removed.
//!
//! An entry goes when fewer than `min_uses` calls of it are left, or when programs and library are shorter without it. What
//! is removed is inlined, in programs and in the other entries, so no program changes its meaning. Entries go one at a time
//! and the figures are measured anew after each, as inlining one adds calls of those that it called.

use language::{Signature, TermId as TreeId, TermStore};

use crate::factored::Factored;
use crate::library::Library;
use crate::loaded::{DescriptionLength, LoadError, Loaded};

/// When an entry is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneConfig {
    /// Entries with fewer calls, in programs and other entries, are removed.
    pub min_uses: u64,
    /// Whether entries are removed without which the description length is lower.
    pub by_length: bool,
}

impl Default for PruneConfig {
    fn default() -> Self {
        Self { min_uses: 2, by_length: true }
    }
}

/// Why an entry was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PruneReason {
    /// Too few calls were left.
    FewUses,
    /// The corpus is shorter without it.
    Shorter,
}

/// An entry that was removed.
#[derive(Clone, Debug, PartialEq)]
pub struct Pruned {
    /// Its name, which no other entry will have.
    pub name: String,
    /// How often it was called when it was removed.
    pub uses: u64,
    /// How much its removal lowered the description length, in nats; below 0 if it raised it.
    pub saved: f64,
    /// Why.
    pub reason: PruneReason,
}

/// The result of pruning.
#[derive(Clone, Debug, PartialEq)]
pub struct Pruning {
    /// What is left.
    pub library: Library,
    /// The programs, with calls of what was removed inlined.
    pub programs: Vec<String>,
    /// What was removed, in order.
    pub removed: Vec<Pruned>,
    /// The description length at the start.
    pub before: DescriptionLength,
    /// The description length at the end.
    pub after: DescriptionLength,
}

/// Prunes a library. `programs` are terms of `store` over the primitives of `base` and the library's entries.
pub fn prune(
    store: &TermStore,
    base: &Signature,
    library: &Library,
    programs: &[TreeId],
    config: PruneConfig,
) -> Result<Pruning, LoadError> {
    let loaded = Loaded::new(store, base, library, programs)?;
    let objective = loaded.objective();
    let mut corpus = loaded.corpus.clone();
    let mut removed = Vec::new();
    let before = loaded.description_length(&objective, &corpus);
    let mut length = before;
    loop {
        let uses = corpus.uses();
        let rare = (0..uses.len()).filter(|&index| uses[index] < config.min_uses).min_by_key(|&index| uses[index]);
        let found = match rare {
            Some(index) => Some((index, corpus.without(index), PruneReason::FewUses)),
            None if config.by_length => shortest(&loaded, &corpus, |next| objective.cost(next).total())
                .map(|(index, next)| (index, next, PruneReason::Shorter)),
            None => None,
        };
        let Some((index, next, reason)) = found else { break };
        let next_length = loaded.description_length(&objective, &next);
        let name = corpus.terms.name(corpus.entries[index].symbol).to_owned();
        removed.push(Pruned { name, uses: uses[index], saved: length.total() - next_length.total(), reason });
        (corpus, length) = (next, next_length);
    }
    Ok(Pruning {
        library: library.with_entries(loaded.entries(&corpus, |name| library.get(name).cloned())?),
        programs: loaded.programs(&corpus)?,
        removed,
        before,
        after: length,
    })
}

/// The entry without which the corpus is shortest, if that is shorter than with it and can still be written.
fn shortest(loaded: &Loaded, corpus: &Factored, cost: impl Fn(&Factored) -> u64) -> Option<(usize, Factored)> {
    let with_all = cost(corpus);
    let mut without: Vec<(u64, usize, Factored)> = (0..corpus.entries.len())
        .map(|index| {
            let next = corpus.without(index);
            (cost(&next), index, next)
        })
        .filter(|&(length, ..)| length < with_all)
        .collect();
    without.sort_by_key(|&(length, index, _)| (length, index));
    let can_be_written = |next: &Factored| loaded.programs(next).is_ok() && loaded.entries(next, |_| None).is_ok();
    without.into_iter().find(|(.., next)| can_be_written(next)).map(|(_, index, next)| (index, next))
}
