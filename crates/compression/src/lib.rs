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
//! Over outer iterations a [`Library`] persists. [`Programs`] binds it to a store, with programs as terms. [`refactor()`] takes
//! one step of it, every candidate judged by a gate of the caller's that sees which stretches of which traces it would merge;
//! [`posterior()`] says how much each entry is used, [`prune()`] inlines those that no longer pay, [`compile()`] rewrites
//! programs with what is left, and [`held_out_length()`] says what the library is worth on programs that it was not learned
//! from. All of them take and give terms; text is for files and people.
//!
//! ```
//! use compression::{Library, Programs, RefactorConfig, Strategy, Verdict, compile, refactor};
//! use language::{Signature, TermStore};
//!
//! let mut store = TermStore::new();
//! let base = Signature::standard(&mut store);
//! let demos = ["milk", "soup", "butter", "mug"].map(|x| format!(r#"seq[pick "{x}", place "{x}" (in "basket")]"#));
//! let programs = Programs::read(&store, &base, &Library::new(), &demos)?;
//!
//! // The gate sees what would be merged: here, that each call stands for both steps of its demonstration.
//! let step = refactor(&programs, &RefactorConfig::default(), |candidate, _| {
//!     let lengths: Vec<_> = candidate.places.iter().filter_map(|place| place.steps.clone()).map(|s| s.len()).collect();
//!     Verdict { admitted: lengths.iter().all(|&length| length == 2), figures: lengths }
//! })?;
//! let library = step.programs.library();
//! assert_eq!(library.entries()[0].body, r#"\x0. seq[pick x0, place x0 (in "basket")]"#);
//! assert_eq!(step.programs.definition("fn_0").unwrap().parameters[0].ty, "Lang");
//! assert_eq!(step.programs.texts()[0], r#"fn_0 "milk""#);
//! assert_eq!(step.judged[0].verdict.figures, [2, 2, 2, 2]);
//! assert!(step.after.total() < step.before.total() - 4.0);
//!
//! // The library is data: text for people, JSON for programs, a signature for everything else.
//! let library = Library::from_text(&library.to_text(), &store, &base)?;
//! let compiled = compile(&Programs::read(&store, &base, &library, &demos[..1])?, Strategy::Greedy)?;
//! let argument = compiled.entries[0].calls[0].arguments[0];
//! assert_eq!(language::print(compiled.programs.store(), argument), r#""milk""#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bound;
mod capture;
mod compiler;
mod compress;
mod corpus;
mod cost;
mod factored;
mod grammar;
mod held_out;
mod kinds;
mod library;
mod library_text;
mod loaded;
mod lookahead;
mod objective;
mod pattern;
mod places;
mod posterior;
mod programs;
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
pub use held_out::{HeldOutLength, held_out_length};
pub use kinds::{EntryKind, EntryKinds, motions_named};
pub use library::{Library, LibraryEntry, LibraryError, LibraryProblem, Share};
pub use loaded::{DescriptionLength, LoadError, description_length, read_programs};
pub use posterior::{ConstantUse, Posterior, PosteriorConfig, posterior};
pub use programs::{Definition, Parameter, Programs};
pub use prune::{PruneConfig, PruneReason, Pruned, Pruning, prune};
pub use refactor::{
    Candidate, Judged, NotProposed, Place, RefactorConfig, Refactoring, StepEnd, Verdict, admit_all, refactor,
};
pub use search::{DEFAULT_MAX_MEMORY, Rules, Stop};
pub use shape::Shape;
pub use verify::{VerifyError, verify};
