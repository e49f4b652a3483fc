//! Library learning: from a corpus of programs to a library of typed abstractions that makes it shorter (SPEC §7).
//!
//! Corpus-guided top-down anti-unification in the manner of Stitch (Bowers et al., POPL 2023), with bounds and a lookahead
//! of our own. Everything is pure and deterministic: the same corpus and settings give the same bytes, for any number of
//! threads.
//!
//! ```
//! use compression::{Config, Corpus, CostKind, compress, verify};
//!
//! let corpus = Corpus::from_sexprs(&["(f (g a) (g b))", "(f (g c) (g d))", "(f (g e) (g e))"])?;
//! let config = Config { cost: CostKind::Stitch, min_gain: 0.0, ..Config::default() };
//! let compression = compress(&corpus, &config, &|_| ())?;
//! assert_eq!(compression.abstractions[0].body, "(f (g #0) (g #1))");
//! assert_eq!(compression.rewritten[0], "(fn_0 a b)");
//! verify(&corpus, &compression)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The way of a corpus, one module a step: [`Corpus`] reads it into hash-consed `term`s; `space` lays out its distinct
//! subterms; `search` fills the holes of `pattern`s, pruned by `bound`s, and proposes abstractions; `rewrite` calls them
//! where that is cheaper, giving a `factored` corpus; `lookahead` chooses among proposals across rounds by an `objective`,
//! which is Stitch's `cost` or the description length of a `grammar`; `show` writes the result and [`verify()`] reads it
//! back.

mod bound;
mod compiler;
mod compress;
mod corpus;
mod cost;
mod factored;
mod grammar;
mod library;
mod library_text;
mod loaded;
mod lookahead;
mod objective;
mod pattern;
mod places;
mod posterior;
mod prune;
mod refactor;
mod rewrite;
mod search;
pub mod sexpr;
mod show;
mod space;
pub mod term;
mod typed;
mod verify;

pub use compiler::{Call, Compiled, EntryCalls, Strategy, compile};
pub use compress::{Abstraction, CompressError, Compression, Config, CostKind, Progress, compress};
pub use corpus::{Corpus, CorpusError, ProgramProblem};
pub use library::{Library, LibraryEntry, LibraryError, LibraryProblem, Share};
pub use loaded::{DescriptionLength, LoadError, description_length, read_programs};
pub use posterior::{ConstantUse, Posterior, PosteriorConfig, posterior};
pub use prune::{PruneConfig, PruneReason, Pruned, Pruning, prune};
pub use refactor::{Candidate, Judged, Place, RefactorConfig, Refactoring, StepEnd, Verdict, admit_all, refactor};
pub use search::{Rules, Stop};
pub use verify::{VerifyError, verify};
