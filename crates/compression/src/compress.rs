//! Compressing a corpus: the entry point, its settings and its result.

use std::time::{Duration, Instant};

use crate::corpus::{Corpus, Syntax};
use crate::factored::Factored;
use crate::grammar::Probabilities;
use crate::lookahead::{self, RoundLimits};
use crate::objective::{Measure, Objective};
use crate::search::{DEFAULT_MAX_MEMORY, Rules, SearchLimits, Stop};
use crate::shape::Shape;
use crate::show;

/// What a corpus costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostKind {
    /// Stitch's: terminal 100, application and λ 1.
    Stitch,
    /// Description length in nats under a typed grammar, probabilities estimated from use. The search minimises additive
    /// weights near it and proposes candidates, which are then priced exactly.
    Nats,
    /// Description length in nats, all productions of a type equally probable.
    UniformNats,
}

/// How to compress.
#[derive(Clone, Debug)]
pub struct Config {
    /// The most parameters an abstraction may have.
    pub max_arity: usize,
    /// The most rounds.
    pub rounds: usize,
    /// The most abstractions that one round admits.
    pub per_round: usize,
    /// What is minimised, library included.
    pub cost: CostKind,
    /// An abstraction must lower the cost by more than this.
    pub min_gain: f64,
    /// The search steps spent on looking ahead across rounds, as a multiple of those of the greedy path; 0 is greedy.
    pub lookahead: f64,
    /// The number of threads. The result does not depend on it.
    pub threads: usize,
    /// The most steps of one search; without it a search runs until its result is optimal.
    pub max_steps: Option<u64>,
    /// The memory in bytes that the queue of one search may take.
    pub max_memory: u64,
    /// The most time in all. With it the result may depend on the machine.
    pub time_limit: Option<Duration>,
    /// The pruning rules of the search.
    pub rules: Rules,
}

impl Default for Config {
    /// The paper's setting: nats, threshold 4 (§ library refactoring), with up to 8 abstractions over all rounds.
    fn default() -> Self {
        Self {
            max_arity: 2,
            rounds: 8,
            per_round: 1,
            cost: CostKind::Nats,
            min_gain: 4.0,
            lookahead: 1.25,
            threads: 1,
            max_steps: None,
            max_memory: DEFAULT_MAX_MEMORY,
            time_limit: None,
            rules: Rules::default(),
        }
    }
}

/// How far a compression has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The round that has just ended, from 1, on the path being tried.
    pub round: usize,
    /// The search steps of that path so far.
    pub steps: u64,
    /// The cost reached, library included.
    pub cost: f64,
}

/// A corpus and the library that was found for it.
#[derive(Clone, Debug)]
pub struct Compression {
    /// The cost of the programs as they were.
    pub original_cost: f64,
    /// The cost of the rewritten programs, the library aside.
    pub final_cost: f64,
    /// The cost of the library.
    pub library_cost: f64,
    /// The library, in the order in which it grew.
    pub abstractions: Vec<Abstraction>,
    /// The programs, rewritten, in the corpus's own syntax.
    pub rewritten: Vec<String>,
    /// Why the searches stopped: optimal only if each of them was. Under nats that is said of the additive weights that the
    /// search minimises, see [`CostKind::Nats`].
    pub stop: Stop,
    /// How many partial abstractions were expanded in all.
    pub steps: u64,
}

/// An entry of the library.
#[derive(Clone, Debug, PartialEq)]
pub struct Abstraction {
    /// What programs call it.
    pub name: String,
    /// The number of its parameters.
    pub arity: usize,
    /// Its principal type. In a corpus without types every constant is of type `forall a. a`; `None` if even that has no
    /// type.
    pub principal_type: Option<String>,
    /// Its body: over `#0`, `#1`, … in s-expressions, a λ-term in the motor language. It may call other entries, later
    /// ones too, never in a circle.
    pub body: String,
    /// How often programs and other entries call it.
    pub uses: u64,
    /// How much it lowered the cost when it was admitted, its body included.
    pub gain: f64,
}

/// Why a corpus cannot be compressed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompressError {
    /// There is no program.
    #[error("the corpus has no program, expected at least one")]
    Empty,
    /// No thread could be started.
    #[error("could not start {threads} threads: {reason}; use fewer")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
        reason: String,
    },
}

/// Finds a library that makes the corpus cheapest. `progress` hears of each round on each path that is tried, from any
/// thread.
pub fn compress(
    corpus: &Corpus,
    config: &Config,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Compression, CompressError> {
    if corpus.is_empty() {
        return Err(CompressError::Empty);
    }
    if config.threads <= 1 {
        return Ok(compress_here(corpus, config, progress));
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(config.threads)
        .build()
        .map_err(|error| CompressError::Threads { threads: config.threads, reason: error.to_string() })?;
    Ok(pool.install(|| compress_here(corpus, config, progress)))
}

fn compress_here(corpus: &Corpus, config: &Config, progress: &(dyn Fn(Progress) + Sync)) -> Compression {
    let measure = match config.cost {
        CostKind::Stitch => Measure::Stitch,
        CostKind::Nats => Measure::Nats(corpus.grammar(), Probabilities::Estimated),
        CostKind::UniformNats => Measure::Nats(corpus.grammar(), Probabilities::Uniform),
    };
    let dictionary = match &corpus.syntax {
        Syntax::Typed(dictionary) => Some(&**dictionary),
        Syntax::Sexpr => None,
    };
    let objective = Objective { measure, dictionary };
    let limits = RoundLimits {
        rounds: config.rounds,
        per_round: config.per_round,
        lookahead: config.lookahead,
        min_gain: (config.min_gain.max(0.0) * objective.unit()) as u64,
        search: SearchLimits {
            max_arity: config.max_arity,
            keep: objective.candidates(),
            floor: 0,
            max_steps: config.max_steps.unwrap_or(u64::MAX),
            max_memory: config.max_memory,
            // A limit past the end of time is none.
            deadline: config.time_limit.and_then(|limit| Instant::now().checked_add(limit)),
            parallel: config.threads > 1,
            rules: config.rules,
            shape: Shape::Any,
        },
    };
    let report = |round: usize, steps: u64, cost: u64| {
        progress(Progress { round, steps, cost: cost as f64 / objective.unit() });
    };
    let unfactored = corpus.unfactored();
    let original = objective.cost(&unfactored);
    let rounds = lookahead::run(unfactored, &objective, &limits, &report);
    let end = &rounds.best.end;
    let cost = objective.cost(end);
    let in_units = |cost: u64| cost as f64 / objective.unit();
    Compression {
        original_cost: in_units(original.total()),
        final_cost: in_units(cost.programs),
        library_cost: in_units(cost.library),
        abstractions: abstractions(corpus, end, &rounds.best.costs, objective.unit()),
        rewritten: show::programs(&corpus.syntax, end),
        stop: rounds.stop,
        steps: rounds.steps,
    }
}

fn abstractions(corpus: &Corpus, end: &Factored, costs: &[u64], unit: f64) -> Vec<Abstraction> {
    let uses = end.uses();
    let shown = show::entries(&corpus.syntax, end);
    let gains = costs.windows(2).map(|pair| (pair[0] - pair[1]) as f64 / unit);
    let mut abstractions = Vec::with_capacity(end.entries.len());
    for (((entry, (body, principal_type)), uses), gain) in end.entries.iter().zip(shown).zip(uses).zip(gains) {
        let name = end.terms.name(entry.symbol).to_owned();
        abstractions.push(Abstraction { name, arity: entry.arity, principal_type, body, uses, gain });
    }
    abstractions
}
