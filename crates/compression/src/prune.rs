//! Pruning: entries that no longer pay their way are inlined and removed.
//!
//! An entry goes when fewer than `min_uses` calls of it are left, or when programs and library are shorter without it. What
//! is removed is inlined, in programs and in the other entries, so no program changes its meaning. Entries go one at a time
//! and the figures are measured anew after each, as inlining one adds calls of those that it called.

use language::{Signature, TermId as TreeId, TermStore};

use crate::factored::Factored;
use crate::library::Library;
use crate::loaded::{DescriptionLength, LoadError, Loaded, read_programs};

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
    let mut current = Written::new(store, base, library.clone(), programs)?;
    let before = current.length;
    let mut removed = Vec::new();
    while let Some((pruned, next)) =
        current.rare(base, config.min_uses).or_else(|| if config.by_length { current.needless(base) } else { None })
    {
        removed.push(pruned);
        current = next;
    }
    let corpus = &current.loaded.corpus;
    let kept = current.loaded.entries(corpus, |name| library.get(name).cloned())?;
    Ok(Pruning {
        library: library.with_entries(kept),
        programs: current.loaded.programs(corpus)?,
        removed,
        before,
        after: current.length,
    })
}

/// A library and programs with what they measure. After each removal everything is written and read again, so that the
/// figures are those of what comes out: where an argument was a call that lacks arguments, it has become a λ.
struct Written {
    library: Library,
    loaded: Loaded,
    length: DescriptionLength,
}

impl Written {
    fn new(store: &TermStore, base: &Signature, library: Library, programs: &[TreeId]) -> Result<Self, LoadError> {
        let loaded = Loaded::new(store, base, &library, programs)?;
        let length = loaded.description_length(&loaded.objective(), &loaded.corpus);
        Ok(Self { library, loaded, length })
    }

    /// Removes the entry with the fewest calls, if those are too few and what comes out can be written.
    fn rare(&self, base: &Signature, min_uses: u64) -> Option<(Pruned, Self)> {
        let uses = self.loaded.corpus.uses();
        let mut rare: Vec<usize> = (0..uses.len()).filter(|&index| uses[index] < min_uses).collect();
        rare.sort_by_key(|&index| uses[index]);
        let mut removals = rare.into_iter().map(|index| {
            let next = self.rewritten(base, &self.loaded.corpus.without(index)).ok()?;
            Some((self.pruned(index, uses[index], &next, PruneReason::FewUses), next))
        });
        removals.find_map(|removal| removal)
    }

    /// Removes the entry without which the corpus is shortest, if that is shorter than with it.
    fn needless(&self, base: &Signature) -> Option<(Pruned, Self)> {
        let objective = self.loaded.objective();
        let corpus = &self.loaded.corpus;
        let uses = corpus.uses();
        let with_all = objective.cost(corpus).total();
        let mut without: Vec<(u64, usize, Factored)> = (0..corpus.entries.len())
            .map(|index| {
                let next = corpus.without(index);
                (objective.cost(&next).total(), index, next)
            })
            .filter(|&(length, ..)| length < with_all)
            .collect();
        without.sort_by_key(|&(length, index, _)| (length, index));
        without.into_iter().find_map(|(_, index, next)| {
            let next = self.rewritten(base, &next).ok()?;
            let pruned = self.pruned(index, uses[index], &next, PruneReason::Shorter);
            (pruned.saved > 0.0).then_some((pruned, next))
        })
    }

    fn pruned(&self, index: usize, uses: u64, next: &Self, reason: PruneReason) -> Pruned {
        let corpus = &self.loaded.corpus;
        let name = corpus.terms.name(corpus.entries[index].symbol).to_owned();
        Pruned { name, uses, saved: self.length.total() - next.length.total(), reason }
    }

    /// A corpus over the same dictionary, written and read again.
    fn rewritten(&self, base: &Signature, corpus: &Factored) -> Result<Self, LoadError> {
        let entries = self.loaded.entries(corpus, |name| self.library.get(name).cloned())?;
        let library = self.library.with_entries(entries);
        let mut store = self.loaded.dictionary.store.clone();
        let signature = library.define(&mut store, base)?;
        let programs = read_programs(&mut store, &signature, &self.loaded.programs(corpus)?)?;
        Self::new(&store, base, library, &programs)
    }
}
