//! Pruning: entries that no longer pay their way are inlined and removed.
//!
//! The posterior over use decides (see [`crate::posterior()`]). An entry goes
//!
//! * by share, when the posterior does not make it likely enough that the entry is called often enough to pay for its
//!   description (below);
//! * or by length, when programs and library are shorter without it.
//!
//! **The share at which an entry pays.** Let L be what the entry costs while nothing calls it, in nats, and S what all its
//! calls save. Both are measured, by inlining the calls and then removing the entry too. With n calls, an entry breaks even
//! at n L / S of them, and at no less than one call: a call cannot save more than the whole body says. In a corpus of A calls
//! (those of the posterior, its prior's included) this is a share,
//!
//! ```text
//! q = max(1, n L / S) / A        keep if P(ρ ≥ q | n) ≥ PruneConfig::min_probability
//! ```
//!
//! Why not a fixed share: the number of calls that pays depends on the entry and not on the size of the corpus. A fixed share
//! is below any upper bound that a small corpus can give (an unused entry may have a share of 3.7 / A at 97.5 %), so that it
//! removes nothing there, and it removes useful entries of single tasks from a large corpus.
//!
//! The default of 3/4 removes whatever is called at most once, as P(ρ ≥ 1/A) is 0.37 without a call and 0.74 with one. More
//! calls must be about a fifth above break-even (n = 3: pays at 2.5 or less; 10: at 8.5 or less). The rule of length alone
//! asks less: it compares on the programs in which the entry was chosen as the best of many, and is optimistic for that
//! reason.
//!
//! A call counts each time that the programs make it, be it by way of another entry, so that an entry which only other entries
//! call is as much in use as they are; there the length decides. What is removed is inlined, in programs and in the other
//! entries, so no program changes its meaning. Entries go one at a time and the figures are measured anew after each, as
//! inlining one adds calls of those that it called.

use statrs::function::beta::beta_reg;

use crate::factored::Factored;
use crate::library::Share;
use crate::loaded::{DescriptionLength, LoadError, Loaded};
use crate::objective::Objective;
use crate::posterior::{PosteriorConfig, share};
use crate::programs::Programs;

/// When an entry is removed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PruneConfig {
    /// An entry is removed if the posterior probability that its share of all calls pays for its description is below this.
    /// The default is 3/4; 0 removes none.
    pub min_probability: f64,
    /// The prior of the shares, and the level of the intervals that are reported.
    pub posterior: PosteriorConfig,
    /// Whether entries are removed without which the description length is lower.
    pub by_length: bool,
}

impl Default for PruneConfig {
    fn default() -> Self {
        Self { min_probability: 0.75, posterior: PosteriorConfig::default(), by_length: true }
    }
}

/// Why an entry was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PruneReason {
    /// It is too unlikely that its share of use pays for its description.
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
    if !(0.0..=1.0).contains(&config.min_probability) {
        let found = config.min_probability.to_string();
        return Err(LoadError::Setting { setting: "min_probability", found, wanted: "a probability between 0 and 1" });
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

/// How much the programs use an entry: its share is distributed as Beta(a, all − a).
struct Use {
    /// How often the programs call it, by way of other entries included.
    calls: u64,
    a: f64,
    all: f64,
    share: Share,
}

/// P(ρ ≥ q) for ρ ~ Beta(a, all − a). A constant that is the only one has the whole.
fn at_least(a: f64, all: f64, q: f64) -> f64 {
    let b = all - a;
    if b <= 0.0 || q <= 0.0 {
        return 1.0;
    }
    if q >= 1.0 { 0.0 } else { 1.0 - beta_reg(a, b, q) }
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

    /// Removes the entry that pays with the smallest probability, if that is too small and what comes out can be written.
    fn rare(&self, config: &PruneConfig) -> Option<(Pruned, Self)> {
        let uses = self.uses(config);
        let objective = self.loaded.objective();
        let mut rare: Vec<(f64, usize)> = uses
            .iter()
            .enumerate()
            .map(|(index, used)| (self.probability_of_paying(index, used, &objective), index))
            .filter(|&(probability, _)| probability < config.min_probability)
            .collect();
        rare.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        rare.into_iter().find_map(|(_, index)| {
            let next = self.after(&self.loaded.corpus.without(index)).ok()?;
            Some((self.pruned(index, uses[index].share, &next, PruneReason::SmallShare), next))
        })
    }

    /// The posterior probability that the share of an entry is at least that at which it breaks even.
    fn probability_of_paying(&self, index: usize, used: &Use, objective: &Objective<'_>) -> f64 {
        let corpus = &self.loaded.corpus;
        let cost = |corpus: &Factored| objective.cost(corpus).total() as f64;
        let (with, uncalled, without) = (cost(corpus), cost(&corpus.uncalled(index)), cost(&corpus.without(index)));
        let (description, saved) = (uncalled - without, uncalled - with);
        let &Use { calls, a, all, .. } = used;
        let pays_at = match calls {
            0 => 1.0,
            _ if saved <= 0.0 => return 0.0,
            n => (n as f64 * description / saved).max(1.0),
        };
        at_least(a, all, pays_at / all)
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
        let uses = self.uses(config);
        without.into_iter().find_map(|(_, index, next)| {
            let next = self.after(&next).ok()?;
            let pruned = self.pruned(index, uses[index].share, &next, PruneReason::Shorter);
            (pruned.saved > 0.0).then_some((pruned, next))
        })
    }

    /// The posterior of each entry's share among the calls that the programs make, by way of other entries included.
    fn uses(&self, config: &PruneConfig) -> Vec<Use> {
        let corpus = &self.loaded.corpus;
        let calls = corpus.calls_made();
        let constants = self.loaded.dictionary.primitives().map(|name| corpus.terms.find_symbol(name));
        let of = |symbol: Option<crate::term::SymbolId>| symbol.map_or(0, |symbol| calls[symbol.0 as usize]);
        let primitives: Vec<u64> = constants.map(of).collect();
        let entries: Vec<u64> = corpus.entries.iter().map(|entry| calls[entry.symbol.0 as usize]).collect();
        let PosteriorConfig { alpha, level } = config.posterior;
        let made: f64 = primitives.iter().chain(&entries).map(|&n| n as f64).sum();
        let all = made + alpha * (primitives.len() + entries.len()) as f64;
        let one = |&calls: &u64| {
            let a = alpha + calls as f64;
            Use { calls, a, all, share: share(a, all, level) }
        };
        entries.iter().map(one).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_is_that_of_closed_forms() {
        // Beta(1, b): (1 − q)^b. Beta(2, b): (1 − q)^(b + 1) + (b + 1) q (1 − q)^b.
        for all in [62.0, 630.0, 1e5] {
            let q: f64 = 1.0 / all;
            let unused = (1.0 - q).powf(all - 1.0);
            let once = unused + (all - 1.0) * q * (1.0 - q).powf(all - 2.0);
            assert!((at_least(1.0, all, q) - unused).abs() < 1e-9 && unused < 0.4);
            assert!((at_least(2.0, all, q) - once).abs() < 1e-9 && once < PruneConfig::default().min_probability);
        }
        assert_eq!((at_least(5.0, 5.0, 0.3), at_least(1.0, 9.0, 1.0), at_least(1.0, 9.0, 0.0)), (1.0, 0.0, 1.0));
    }
}
