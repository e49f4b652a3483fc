//! Types, terms, parser, printer, inference and evaluation of the typed motor-program language.
//!
//! Everything is pure: no IO, no printing, no panic on any input. Terms and types live in one [`TermStore`] and are
//! named by small ids; a [`Signature`] says what the constants are.
//!
//! ```
//! use language::{Signature, TermStore, parse};
//!
//! let mut store = TermStore::new();
//! let signature = Signature::standard(&mut store);
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
pub use print::{pretty, print};
pub use signature::{DEFAULT_PRIM_TYPES, Entry, Kind, Signature, SignatureError};
pub use spans::{SpanNode, SpanTree};
pub use substitute::MAX_NORMALIZE_STEPS;
pub use term::{Index, Literal, MAX_DEPTH, MAX_SIZE, Name, Term, TermError, TermId, TermStore, Text, Vector6};
pub use token::{Head, Token, TokenError, term_of, tokens_of};
pub use types::{Base, MAX_TYPE_DEPTH, MAX_TYPE_SIZE, Scheme, Type, TypeError, TypeId, TypeStore, TypeVar};
pub use unify::{Substitution, UnifyError};
