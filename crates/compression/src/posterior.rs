//! The posterior ρ_t over use: how large a share of all calls each entry and each primitive has.
//!
//! Programs make n_i calls of constant i, of K that there are (entries and primitives, used or not). Under a symmetric
//! Dirichlet prior,
//!
//! ```text
//! ρ | n ~ Dir(α + n_1, …, α + n_K)        ρ_i | n ~ Beta(a_i, A − a_i)   with a_i = α + n_i, A = Σ a_i
//! ```
//!
//! so the mean is a_i / A, and the credible interval is between quantiles of that Beta distribution: the regularised
//! incomplete beta function inverted by bisection, not a normal approximation, which is poor where it matters, at few
//! uses.

use statrs::function::beta::beta_reg;

use crate::library::{Library, LibraryEntry, Share};
use crate::loaded::{LoadError, Loaded};
use crate::programs::Programs;

/// How to estimate use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PosteriorConfig {
    /// The prior's α: as if every constant had been called that often before.
    pub alpha: f64,
    /// The probability of the credible intervals, equal tails.
    pub level: f64,
}

impl Default for PosteriorConfig {
    fn default() -> Self {
        Self { alpha: 1.0, level: 0.95 }
    }
}

impl PosteriorConfig {
    /// Refuses settings out of range.
    pub(crate) fn check(self) -> Result<(), LoadError> {
        let PosteriorConfig { alpha, level } = self;
        let wrong = |setting, found: f64, wanted| Err(LoadError::Setting { setting, found: found.to_string(), wanted });
        if !(alpha.is_finite() && alpha > 0.0) {
            return wrong("alpha", alpha, "a number above 0");
        }
        if !(level > 0.0 && level < 1.0) {
            return wrong("level", level, "a number between 0 and 1");
        }
        Ok(())
    }
}

/// The posterior over use.
#[derive(Clone, Debug, PartialEq)]
pub struct Posterior {
    /// The entries in order, then the primitives in the order of the signature.
    pub constants: Vec<ConstantUse>,
    /// All calls together.
    pub calls: u64,
}

/// How much a constant is used.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantUse {
    /// Its name.
    pub name: String,
    /// Whether it is an entry of the library.
    pub is_entry: bool,
    /// How often programs call it; calls in bodies of entries do not count.
    pub calls: u64,
    /// Its share of all calls.
    pub share: Share,
}

/// The posterior over use of a library's entries and of the primitives in programs.
pub fn posterior(programs: &Programs, config: PosteriorConfig) -> Result<Posterior, LoadError> {
    config.check()?;
    let PosteriorConfig { alpha, level } = config;
    let Loaded { corpus, dictionary } = Loaded::new(programs)?;
    let library = programs.library();
    let counts = corpus.counts(&corpus.programs);
    let calls_of = |name: &str| corpus.terms.find_symbol(name).map_or(0, |symbol| counts[symbol.0 as usize]);
    let entries = library.entries().iter().map(|entry| (entry.name.clone(), true));
    let primitives = dictionary.primitives().map(|name| (name.to_owned(), false));
    let named: Vec<(String, bool)> = entries.chain(primitives).collect();
    let counted: Vec<u64> = named.iter().map(|(name, _)| calls_of(name)).collect();
    let calls = counted.iter().fold(0, |sum: u64, &n| sum.saturating_add(n));
    let all = calls as f64 + alpha * named.len() as f64;
    let share = |n: u64| share(alpha + n as f64, all, level);
    let constants = named.into_iter().zip(counted);
    let constants =
        constants.map(|((name, is_entry), calls)| ConstantUse { name, is_entry, calls, share: share(calls) });
    Ok(Posterior { constants: constants.collect(), calls })
}

impl Posterior {
    /// The use of a constant.
    pub fn get(&self, name: &str) -> Option<&ConstantUse> {
        self.constants.iter().find(|constant| constant.name == name)
    }

    /// The library with the shares of its entries.
    pub fn annotate(&self, library: &Library) -> Library {
        let annotate = |entry: &LibraryEntry| LibraryEntry {
            posterior: self.get(&entry.name).map(|found| found.share),
            ..entry.clone()
        };
        library.with_entries(library.entries().iter().map(annotate).collect())
    }
}

/// Mean and interval of Beta(a, all − a). A constant that is the only one has the whole.
pub(crate) fn share(a: f64, all: f64, level: f64) -> Share {
    let b = all - a;
    if b <= 0.0 {
        return Share { mean: 1.0, low: 1.0, high: 1.0 };
    }
    let tail = (1.0 - level) / 2.0;
    Share { mean: a / all, low: beta_quantile(a, b, tail), high: beta_quantile(a, b, 1.0 - tail) }
}

/// The quantile of Beta(a, b), by bisection: I_x(a, b) grows with x, and a hundred halvings are below the spacing of
/// numbers.
fn beta_quantile(a: f64, b: f64, p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if beta_reg(a, b, middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_closed_forms() {
        // Beta(1, b): 1 − (1 − p)^(1/b). Beta(a, 1): p^(1/a).
        for (b, p) in [(1.0, 0.3), (2.0, 0.025), (60.0, 0.975), (1e6, 0.5)] {
            let wanted = -f64::ln_1p(-p) / b;
            let wanted = -f64::exp_m1(-wanted);
            assert!((beta_quantile(1.0, b, p) / wanted - 1.0).abs() < 1e-9, "{b} {p}");
        }
        for (a, p) in [(2.0, 0.025), (75.0, 0.975)] {
            assert!((beta_quantile(a, 1.0, p) - f64::powf(p, 1.0 / a)).abs() < 1e-12, "{a} {p}");
        }
    }

    #[test]
    fn the_quantile_splits_the_mass() {
        for (a, b) in [(3.0, 61.0), (0.5, 0.5), (1000.0, 20.0)] {
            for p in [0.025, 0.5, 0.975] {
                assert!((beta_reg(a, b, beta_quantile(a, b, p)) - p).abs() < 1e-9, "{a} {b} {p}");
            }
        }
    }
}
