//! The inverse parser: an instruction in English to a typed program.
//!
//! ```text
//! text ─words─► tokens ─lexicon─► categories ─grammar─► Instruction ─resolve─► Plan ─build─► TermId
//! ```
//! A lexicon of word categories ([`lexicon_words`]) and a recursive-descent grammar, no list of sentences: what LIBERO
//! says about bowls can be said about any noun of the lexicon. The tree ([`Instruction`]) keeps the words' structure,
//! the plan has pronouns, ellipses and coordination resolved.
//!
//! | text | program |
//! | --- | --- |
//! | `the left plate`, `the plate on the left` | `at "plate" left` |
//! | `the top drawer of the cabinet` | `part (at "drawer" top) "cabinet"` |
//! | `the bowl on the plate` as an object | `at "bowl" (on "plate")` |
//! | `to the front of the stove` | `front_of "stove"` |
//! | `in the middle of the tray` | `in (part "middle" "tray")`, a spot of a thing being a part of it |
//! | `from table center`, `on the left of the table` | `center`, `left`: the workspace is understood |
//! | `both moka pots` | `repeat(…, 2)` |
//!
//! Time is quadratic at most in the number of words, of which [`MAX_WORDS`] are read; nothing panics on any text.

mod cursor;
mod discourse;
mod error;
mod grammar;
mod lexicon;
mod phrase;
mod place;
mod plan;
mod resolve;
mod tree;
mod vocabulary;
mod words;

pub use error::{InstructionError, UnknownWord};
pub use grammar::parse;
pub use lexicon::words as lexicon_words;
pub use plan::Plan;
pub use resolve::resolve;
pub use tree::{Clause, Instruction, Noun, Phrase, Place, Position, Pronoun, Relation, Verb};
pub use words::{MAX_BYTES, MAX_WORDS};

use crate::signature::Signature;
use crate::term::{TermId, TermStore};

/// Reads an instruction into a typed program.
///
/// # Errors
/// When the text cannot be read ([`parse`]), a pronoun has no antecedent ([`resolve`]) or the signature lacks one of the
/// primitives.
///
/// # Examples
/// ```
/// use language::{Signature, TermStore, instruction, parse};
///
/// let mut store = TermStore::new();
/// let signature = Signature::standard(&mut store);
/// let text = "put the black bowl in the top drawer of the cabinet and close it";
/// let program = instruction::program(text, &mut store, &signature)?;
/// let source = r#"seq[
///     put "black bowl" (in (part (at "drawer" top) "cabinet")),
///     close (part (at "drawer" top) "cabinet")
/// ]"#;
/// assert_eq!(program, parse(&mut store, &signature, source).unwrap().term);
/// # Ok::<(), instruction::InstructionError>(())
/// ```
pub fn program(text: &str, store: &mut TermStore, signature: &Signature) -> Result<TermId, InstructionError> {
    plan(text)?.build(store, signature)
}

/// Reads an instruction into a plan, which [`Display`](std::fmt::Display) writes as a program.
///
/// # Errors
/// As [`program`], but for the signature.
pub fn plan(text: &str) -> Result<Plan, InstructionError> {
    resolve(&parse(text)?)
}
