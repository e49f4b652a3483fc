//! Types, terms, parser, printer, inference and evaluation of the typed motor-program language (SPEC §6).
//!
//! ```text
//! e ::= prim | f | x | literal | λx:τ. e | e₁ e₂ | seq[e₁,…,e_k] | repeat(e, n) | branch(c, e₁, e₂)
//! τ ::= Twist | Wrench | GripperPhase | Pose | Lang | Bool | Nat | Motion | a | τ -> τ
//! ```
//!
//! Everything is pure: no IO, no printing, no panic on any input. Terms and types live in one [`TermStore`] and are named
//! by small ids, equal exactly if what they name is equal; ids are meaningless in other stores, except in clones. A
//! [`Signature`] says what the constants are: primitives, and library entries defined over them.
//!
//! | to … | use |
//! | --- | --- |
//! | read and write programs | [`parse`], [`read`] (with its type), [`print`](print()), [`pretty`] |
//! | build and take apart terms | [`TermStore`], [`Term`], [`TermStore::spine`], [`Term::children`], [`TermStore::with_children`] |
//! | move terms under binders | [`TermStore::raise`], [`TermStore::lower`], [`TermStore::instantiate`], [`TermStore::beta_normalize`] |
//! | infer types | [`infer`], [`check`], [`infer_at`]; [`Substitution`] underneath |
//! | grow and shrink a library | [`Signature::define`], [`Signature::remove`], [`Signature::inline`] |
//! | know what a program does | [`evaluate`], [`show_trace`] |
//! | emit programs token by token | [`tokens_of`], [`term_of`], [`PrefixChecker`] |
//! | go between motion and programs | [`quantize`], [`motor_program`], [`motor_symbols`] |
//! | understand task language | [`instruction`] |
//! | test | [`Generator`]: random well-typed terms |
//!
//! ```
//! use language::{PrefixChecker, Signature, TermStore, TypeId, evaluate, parse, read, show_trace, tokens_of};
//!
//! let mut store = TermStore::new();
//! let mut signature = Signature::standard(&mut store);
//!
//! // From text …
//! let source = r#"seq[pick "alphabet soup", place "alphabet soup" (in "basket")]"#;
//! let parsed = parse(&mut store, &signature, source)?;
//!
//! // … or by hand: equal terms have equal ids.
//! let (soup, basket) = (store.text("alphabet soup"), store.text("basket"));
//! let there = store.call("in", &[basket])?;
//! let pick = store.call("pick", &[soup])?;
//! let place = store.call("place", &[soup, there])?;
//! assert_eq!(store.seq(&[pick, place])?, parsed.term);
//!
//! // A library entry gets a generalised type, and programs that use it keep their meaning.
//! let body = read(&mut store, &signature, r"\x. \p. seq[pick x, place x p]", None)?;
//! assert_eq!(store.types().show_scheme(body.scheme), "Lang -> Pose -> Motion");
//! signature.define(&mut store, "f0", body.term)?;
//! let shorter = read(&mut store, &signature, r#"f0 "alphabet soup" (in "basket")"#, Some(TypeId::MOTION))?.term;
//! let trace = evaluate(&mut store, &signature, shorter)?;
//! assert_eq!(trace, evaluate(&mut store, &signature, parsed.term)?);
//! assert_eq!(show_trace(&store, &trace), "pick \"alphabet soup\"\nplace \"alphabet soup\" (in \"basket\")\n");
//!
//! // Errors are data with places, all of them at once.
//! let report = read(&mut store, &signature, r#"seq[pick left, plaice "a" top]"#, None).unwrap_err();
//! assert_eq!(report.to_string(), "nothing is called `plaice`");
//!
//! // A decoder asks which tokens may come next.
//! let mut checker = PrefixChecker::new(&store, &signature, TypeId::MOTION);
//! let mut state = checker.start();
//! for token in tokens_of(&store, shorter) {
//!     assert_eq!(checker.allowed(&state, &[token]), [true]);
//!     state = checker.step(&state, token)?;
//! }
//! assert!(state.is_complete());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod diagnostic;
mod evaluate;
mod generate;
mod infer;
pub mod instruction;
mod lexer;
mod motor;
mod parse;
mod parse_type;
mod persistent;
mod prefix;
mod print;
mod signature;
mod spans;
mod substitute;
mod term;
mod token;
mod types;
mod unify;

pub use diagnostic::{InferError, ProgramError, Report, Span, SyntaxError, suggest};
pub use evaluate::{EvaluateError, Event, Limits, evaluate, evaluate_within, show_trace};
pub use generate::Generator;
pub use infer::{Typed, check, infer, infer_at, read};
pub use lexer::{KEYWORDS, is_identifier};
pub use motor::{MAX_MOTOR_SYMBOLS, MotorError, MotorSymbol, motor_program, motor_symbols, quantize};
pub use parse::{Parsed, parse, parse_scheme, parse_type};
pub use prefix::{PrefixChecker, PrefixError, PrefixState};
pub use print::{binder_names, pretty, print};
pub use signature::{DEFAULT_PRIM_TYPES, Entry, GENERAL_PRIM_TYPES, Kind, Signature, SignatureError};
pub use spans::{SpanNode, SpanTree};
pub use substitute::MAX_NORMALIZE_STEPS;
pub use term::{
    Index, JointVector, Literal, MAX_DEPTH, MAX_SIZE, Name, Term, TermError, TermId, TermStore, Text, Vector6,
};
pub use token::{Head, Token, TokenError, term_of, tokens_of};
pub use types::{Base, MAX_TYPE_DEPTH, MAX_TYPE_SIZE, Scheme, Type, TypeError, TypeId, TypeStore, TypeVar};
pub use unify::{Substitution, UnifyError};
