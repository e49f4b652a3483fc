//! Pruning: entries that no longer pay their way are inlined and removed.
//!
//! The posterior over use decides (see [`crate::posterior()`]). An entry goes
//!
//! * when its share of all calls is small for certain: the upper end of the credible interval of its share is below
//!   [`PruneConfig::min_share`]. Here a call counts each time that the programs make it, be it by way of another entry, so that
//!   an entry which only other entries call is as much in use as they are;
//! * or when programs and library are shorter without it.
//!
//! A small corpus cannot tell that a share is small, however rare the calls are; there the description length decides. What is
//! removed is inlined, in programs and in the other entries, so no program changes its meaning. Entries go one at a time and
//! the figures are measured anew after each, as inlining one adds calls of those that it called.

use crate::factored::Factored;
use crate::library::Share;
use crate::loaded::{DescriptionLength, LoadError, Loaded};
use crate::posterior::{PosteriorConfig, share};
use crate::programs::Programs;

/// When an entry is removed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PruneConfig {
    /// An entry is removed if the upper end of the credible interval of its share of all calls is below this. The default is
    /// one call in a thousand; 0 removes none.
    pub min_share: f64,
    /// The prior of the shares and the level of their intervals.
    pub posterior: PosteriorConfig,
    /// Whether entries are removed without which the description length is lower.
    pub by_length: bool,
}

impl Default for PruneConfig {
    fn default() -> Self {
        Self { min_share: 1e-3, posterior: PosteriorConfig::default(), by_length: true }
    }
}

/// Why an entry was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PruneReason {
    /// The upper credible bound of its share of use is below the threshold.
    SmallShare,
    /// The corpus is shorter without it.
    Shorter,
}

/// An entry that was removed.
#[derive(Clone, Debug, PartialEq)]
pub struct Pruned {
    /// Its name, which no other entry will have.
    pub name: String,
    /// How often programs and other entries called it when it was removed.
    pub uses: u64,
    /// Its share of the calls that the programs made, by way of other entries included.
    pub share: Share,
    /// How much its removal lowered the description length, in nats; below 0 if it raised it.
    pub saved: f64,
    /// Why.
    pub reason: PruneReason,
}

/// The result of pruning.
#[derive(Clone, Debug)]
pub struct Pruning {
    /// The programs, with calls of what was removed inlined, and the library that is left.
    pub programs: Programs,
    /// What was removed, in order.
    pub removed: Vec<Pruned>,
    /// The description length at the start.
    pub before: DescriptionLength,
    /// The description length at the end.
    pub after: DescriptionLength,
}

/// Prunes the library of some programs.
///
/// # Errors
/// On settings out of range, and on results past the bounds of the language.
pub fn prune(programs: &Programs, config: PruneConfig) -> Result<Pruning, LoadError> {
    config.posterior.check()?;
    if !(0.0..=1.0).contains(&config.min_share) {
        let found = config.min_share.to_string();
        return Err(LoadError::Setting { setting: "min_share", found, wanted: "a share between 0 and 1" });
    }
    let mut current = Measured::new(programs.clone())?;
    let before = current.length;
    let mut removed = Vec::new();
    while let Some((pruned, next)) =
        current.rare(&config).or_else(|| if config.by_length { current.needless(&config) } else { None })
    {
        removed.push(pruned);
        current = next;
    }
    let written = current.written(&current.loaded.corpus)?;
    Ok(Pruning { programs: written, removed, before, after: current.length })
}

/// Programs with what they measure. After each removal everything is written and loaded again, so that the figures are those
/// of what comes out: where an argument was a call that lacks arguments, it has become a λ.
struct Measured {
    programs: Programs,
    loaded: Loaded,
    length: DescriptionLength,
}

impl Measured {
    fn new(programs: Programs) -> Result<Self, LoadError> {
        let loaded = Loaded::new(&programs)?;
        let length = loaded.description_length(&loaded.objective(), &loaded.corpus);
        Ok(Self { programs, loaded, length })
    }

    /// Removes the entry with the smallest share, if that is too small and what comes out can be written.
    fn rare(&self, config: &PruneConfig) -> Option<(Pruned, Self)> {
        let shares = self.shares(config);
        let mut rare: Vec<usize> = (0..shares.len()).filter(|&index| shares[index].high < config.min_share).collect();
        rare.sort_by(|&a, &b| shares[a].high.total_cmp(&shares[b].high).then(a.cmp(&b)));
        rare.into_iter().find_map(|index| {
            let next = self.after(&self.loaded.corpus.without(index)).ok()?;
            Some((self.pruned(index, shares[index], &next, PruneReason::SmallShare), next))
        })
    }

    /// Removes the entry without which the corpus is shortest, if that is shorter than with it.
    fn needless(&self, config: &PruneConfig) -> Option<(Pruned, Self)> {
        let objective = self.loaded.objective();
        let corpus = &self.loaded.corpus;
        let with_all = objective.cost(corpus).total();
        let mut without: Vec<(u64, usize, Factored)> = (0..corpus.entries.len())
            .map(|index| {
                let next = corpus.without(index);
                (objective.cost(&next).total(), index, next)
            })
            .filter(|&(length, ..)| length < with_all)
            .collect();
        without.sort_by_key(|&(length, index, _)| (length, index));
        let shares = self.shares(config);
        without.into_iter().find_map(|(_, index, next)| {
            let next = self.after(&next).ok()?;
            let pruned = self.pruned(index, shares[index], &next, PruneReason::Shorter);
            (pruned.saved > 0.0).then_some((pruned, next))
        })
    }

    /// The posterior share of each entry among the calls that the programs make, by way of other entries included.
    fn shares(&self, config: &PruneConfig) -> Vec<Share> {
        let corpus = &self.loaded.corpus;
        let calls = corpus.calls_made();
        let constants = self.loaded.dictionary.primitives().map(|name| corpus.terms.find_symbol(name));
        let of = |symbol: Option<crate::term::SymbolId>| symbol.map_or(0, |symbol| calls[symbol.0 as usize]);
        let primitives: Vec<u64> = constants.map(of).collect();
        let entries: Vec<u64> = corpus.entries.iter().map(|entry| calls[entry.symbol.0 as usize]).collect();
        let PosteriorConfig { alpha, level } = config.posterior;
        let made: f64 = primitives.iter().chain(&entries).map(|&n| n as f64).sum();
        let all = made + alpha * (primitives.len() + entries.len()) as f64;
        entries.iter().map(|&n| share(alpha + n as f64, all, level)).collect()
    }

    fn pruned(&self, index: usize, share: Share, next: &Self, reason: PruneReason) -> Pruned {
        let corpus = &self.loaded.corpus;
        let name = corpus.terms.name(corpus.entries[index].symbol).to_owned();
        let saved = self.length.total() - next.length.total();
        Pruned { name, uses: corpus.uses()[index], share, saved, reason }
    }

    /// A corpus over the same dictionary, written and loaded again.
    fn after(&self, corpus: &Factored) -> Result<Self, LoadError> {
        Self::new(self.written(corpus)?)
    }

    fn written(&self, corpus: &Factored) -> Result<Programs, LoadError> {
        self.loaded.written(&self.programs, corpus, |name| self.programs.library.get(name).cloned())
    }
}
