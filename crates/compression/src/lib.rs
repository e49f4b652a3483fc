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
//!
//! Over outer iterations a [`Library`] persists. [`refactor()`] takes one step of it, every candidate judged by a gate of the
//! caller's that sees which stretches of which traces it would merge; [`posterior()`] says how much each entry is used,
//! [`prune()`] inlines those that no longer pay, and [`compile()`] rewrites programs with what is left.
//!
//! ```
//! use compression::{Library, RefactorConfig, Strategy, Verdict, compile, read_programs, refactor};
//! use language::{Signature, TermStore};
//!
//! let mut store = TermStore::new();
//! let base = Signature::standard(&mut store);
//! let demos = ["milk", "soup", "butter", "mug"].map(|x| format!(r#"seq[pick "{x}", place "{x}" (in "basket")]"#));
//! let programs = read_programs(&mut store, &base, &demos)?;
//!
//! // The gate sees what would be merged: here, that each call stands for both steps of its demonstration.
//! let step = refactor(&store, &base, &Library::new(), &programs, &RefactorConfig::default(), |candidate| {
//!     let lengths: Vec<_> = candidate.places.iter().filter_map(|place| place.steps.clone()).map(|s| s.len()).collect();
//!     Verdict { admitted: lengths.iter().all(|&length| length == 2), figures: lengths }
//! })?;
//! assert_eq!(step.library.entries()[0].body, r#"\x0. seq[pick x0, place x0 (in "basket")]"#);
//! assert_eq!(step.programs[0], r#"fn_0 "milk""#);
//! assert_eq!(step.judged[0].verdict.figures, [2, 2, 2, 2]);
//! assert!(step.after.total() < step.before.total() - 4.0);
//!
//! // The library is data: text for people, JSON for programs, a signature for everything else.
//! let library = Library::from_text(&step.library.to_text(), &store, &base)?;
//! let compiled = compile(&store, &base, &library, &programs[..1], Strategy::Greedy)?;
//! assert_eq!(compiled.entries[0].calls[0].arguments, [r#""milk""#]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
mod shape;
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
pub use shape::Shape;
pub use verify::{VerifyError, verify};
