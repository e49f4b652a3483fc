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
//! | `all the toys`, `every toy` | `all "toy"` |
//! | `all the toys except the ball` | `all "toy except ball"` |
//! | `don't drop it` | nothing, and a problem: a program cannot say what not to do |
//! | `wipe the window from top to bottom` | `act_on "wipe from top to bottom" "window"` |
//! | `fold the towel`, `pour the water in the cup` | `act_on "fold" "towel"`, `act_to "pour" "water" (in "cup")` |
//! | `wipe the table with the cloth`, `use the cloth to …` | `with "cloth" (act_on "wipe" "table")` |
//! | `around the pole` | `rel "around" "pole"` |
//!
//! The vocabulary of nouns is open: an unknown word where an object is expected is one. Verbs are listed; what a text says
//! beyond them is noted as a problem, and [`understand`] returns the program of the rest.
//!
//! Time is quadratic at most in the number of words, of which [`MAX_WORDS`] are read; nothing panics on any text.

mod clause;
mod core;
mod cursor;
mod discourse;
mod error;
mod grammar;
mod head;
mod lexicon;
mod negation;
mod phrase;
mod place;
mod plan;
mod resolve;
mod spelling;
mod target;
mod tool;
mod tree;
mod verbs;
mod vocabulary;
mod words;

pub use error::{InstructionError, UnknownWord};
pub use grammar::{Reading, parse, read};
pub use lexicon::words as lexicon_words;
pub use plan::Plan;
pub use resolve::{resolve, resolve_some};
pub use tree::{Clause, Instruction, Noun, Phrase, Place, Position, Pronoun, Relation, Tool, Verb};
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

/// An instruction as far as it is understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Understood {
    /// The program of what is understood.
    pub term: TermId,
    /// The words that are not understood, in the order of the text; empty when everything is.
    pub missing: Vec<String>,
    /// What is wrong with them.
    pub problems: Vec<InstructionError>,
    /// Misspelt words with what they were read as.
    pub corrected: Vec<(String, &'static str)>,
}

/// Reads as much of an instruction as possible, for texts that nobody will correct: `fry the egg until cooked` is
/// `act_on "fry" "egg"`, and `until cooked` is missing.
///
/// # Errors
/// When nothing is understood (the text is empty, not in English or has no verb), or the signature lacks a primitive.
///
/// # Examples
/// ```
/// use language::{Signature, TermStore, instruction, print};
///
/// let mut store = TermStore::new();
/// let signature = Signature::general(&mut store);
/// let found = instruction::understand("fry the egg until cooked", &mut store, &signature)?;
/// assert_eq!(print(&store, found.term), r#"act_on "fry" "egg""#);
/// assert_eq!(found.missing, ["until cooked"]);
/// # Ok::<(), instruction::InstructionError>(())
/// ```
pub fn understand(text: &str, store: &mut TermStore, signature: &Signature) -> Result<Understood, InstructionError> {
    let Partial { plan, problems, corrected } = partial(text)?;
    let term = plan.build(store, signature)?;
    let missing = problems.iter().map(|problem| problem.words(text)).collect();
    Ok(Understood { term, missing, problems, corrected })
}

/// A plan for the part of an instruction that is understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Partial {
    /// The plan.
    pub plan: Plan,
    /// What is not understood, in the order of the text.
    pub problems: Vec<InstructionError>,
    /// Misspelt words with what they were read as.
    pub corrected: Vec<(String, &'static str)>,
}

/// Reads as much of an instruction as possible into a plan.
///
/// # Errors
/// When nothing is understood.
pub fn partial(text: &str) -> Result<Partial, InstructionError> {
    let Reading { instruction, mut problems, corrected } = read(text)?;
    let (plan, unresolved) = resolve_some(&instruction)?;
    problems.extend(unresolved);
    Ok(Partial { plan, problems, corrected })
}

/// Reads an instruction into a plan, which [`Display`](std::fmt::Display) writes as a program.
///
/// # Errors
/// As [`program`], but for the signature.
pub fn plan(text: &str) -> Result<Plan, InstructionError> {
    resolve(&parse(text)?)
}
