//! Errors as data: what was found, what was wanted, what to do next, and where.
//!
//! Every error is an enum variant with its data and byte spans; all implement [`miette::Diagnostic`] with labels, so that
//! the command line renders them over the source. A [`Report`] holds the source and all errors found in it.

use std::fmt;

use miette::{Diagnostic, LabeledSpan, SourceCode, SourceSpan};
use thiserror::Error;

use crate::term::TermError;
use crate::types::TypeError;

/// A range of bytes of a source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The smallest span that holds both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl From<Span> for SourceSpan {
    fn from(span: Span) -> SourceSpan {
        (span.start, span.end.saturating_sub(span.start)).into()
    }
}

/// A place where a text is no program.
#[derive(Clone, Debug, PartialEq, Error, Diagnostic)]
pub enum SyntaxError {
    /// A character that begins nothing.
    #[error("the character `{found}` has no meaning here")]
    #[diagnostic(help("remove it, or quote it if it belongs to the name of an object"))]
    UnknownCharacter {
        /// The character.
        found: char,
        /// Where.
        #[label("not part of the language")]
        span: Span,
    },
    /// A quoted text without its end.
    #[error("this text has no closing `\"`")]
    #[diagnostic(help("close it on the same line; write a line break inside a text as `\\n`"))]
    UnterminatedText {
        /// From the quotation mark to the end of the line.
        #[label("opened here")]
        span: Span,
    },
    /// An unknown escape.
    #[error("this escape is unknown")]
    #[diagnostic(help(
        "the escapes are `\\\"`, `\\\\`, `\\n`, `\\t`, `\\r` and `\\u{{…}}` with up to six hexadecimal digits"
    ))]
    BadEscape {
        /// The backslash and what follows it.
        #[label("not an escape")]
        span: Span,
    },
    /// Something else than the grammar wants.
    #[error("found {found}, wanted {wanted}")]
    Unexpected {
        /// What stands there.
        found: String,
        /// What the grammar wants there.
        wanted: String,
        /// Where.
        #[label("{wanted} should be here")]
        span: Span,
        /// The bracket or word that makes it wanted.
        #[label("because of this")]
        origin: Option<Span>,
    },
    /// A name that is neither bound nor in the signature.
    #[error("nothing is called `{name}`")]
    UnknownName {
        /// The name.
        name: String,
        /// What to do.
        #[help]
        help: String,
        /// Where.
        #[label("not a variable, primitive or library entry")]
        span: Span,
    },
    /// A word that is no type.
    #[error("there is no type `{name}`")]
    UnknownType {
        /// The word.
        name: String,
        /// What to do.
        #[help]
        help: String,
        /// Where.
        #[label("not a type")]
        span: Span,
    },
    /// A variable that the quantifier does not bind.
    #[error("the type variable `{name}` is not bound by `forall`")]
    #[diagnostic(help("list it after `forall`, or leave the quantifier out to bind all variables"))]
    UnboundTypeVariable {
        /// The variable.
        name: String,
        /// The scheme.
        #[label("in this scheme")]
        span: Span,
    },
    /// A number that does not fit.
    #[error("`{written}` is not {wanted}")]
    BadNumber {
        /// The number as written.
        written: String,
        /// What was wanted.
        wanted: &'static str,
        /// Where.
        #[label("wanted {wanted}")]
        span: Span,
    },
    /// A vector literal of the wrong length.
    #[error("this {kind} has {found} numbers, wanted 6")]
    #[diagnostic(help("give three linear parts, then three angular ones"))]
    WrongLength {
        /// `pose`, `twist` or `wrench`.
        kind: &'static str,
        /// How many numbers were written.
        found: usize,
        /// The literal.
        #[label("{found} numbers")]
        span: Span,
    },
    /// A term over the limits.
    #[error("{source}")]
    Term {
        /// Which limit.
        source: TermError,
        /// Where.
        #[label("here")]
        span: Span,
    },
    /// A type over the limits.
    #[error("{source}")]
    Type {
        /// Which limit.
        source: TypeError,
        /// Where.
        #[label("here")]
        span: Span,
    },
}

/// A place where a term has no type. Spans are missing for terms that were not parsed.
#[derive(Clone, Debug, PartialEq, Eq, Error, Diagnostic)]
pub enum InferError {
    /// Two types that do not unify.
    #[error("found {found}, wanted {wanted}: {reason}")]
    Mismatch {
        /// The type that the term has.
        found: String,
        /// The type that its place wants.
        wanted: String,
        /// Where the expectation comes from, in words.
        reason: String,
        /// What to do, where that is clear.
        #[help]
        help: Option<String>,
        /// The term.
        #[label("this is {found}")]
        span: Option<Span>,
        /// What the expectation comes from.
        #[label("this wants {wanted}")]
        origin: Option<Span>,
    },
    /// An application of something that is no function.
    #[error("found {arguments} arguments to {function}, which takes {taken}")]
    #[diagnostic(help("take the others away, or put a comma where the next motion begins"))]
    TooManyArguments {
        /// The function.
        function: String,
        /// How many arguments it takes.
        taken: usize,
        /// How many it was given.
        arguments: usize,
        /// The first argument too many.
        #[label("one argument too many")]
        span: Option<Span>,
        /// The function.
        #[label("this takes {taken}")]
        origin: Option<Span>,
    },
    /// A type that would contain itself.
    #[error("found a type that contains itself: {found} would have to be {wanted}")]
    #[diagnostic(help("a term cannot be applied to itself; give the function and its argument names of their own"))]
    Infinite {
        /// The type that the term has.
        found: String,
        /// The type that its place wants.
        wanted: String,
        /// The term.
        #[label("here")]
        span: Option<Span>,
        /// What the expectation comes from.
        #[label("this wants {wanted}")]
        origin: Option<Span>,
    },
    /// A constant that the signature does not have.
    #[error("nothing in the signature is called `{name}`")]
    UnknownConstant {
        /// Its name.
        name: String,
        /// What to do.
        #[help]
        help: String,
        /// Where.
        #[label("neither primitive nor library entry")]
        span: Option<Span>,
    },
    /// A variable without a binder.
    #[error("variable {index} has no binder")]
    #[diagnostic(help("only closed terms have a type; abstract over the variable first"))]
    FreeVariable {
        /// Its de Bruijn index, counted from the root of the term.
        index: u32,
        /// Where.
        #[label("free here")]
        span: Option<Span>,
    },
    /// A type over the limits.
    #[error("{source}")]
    TooLarge {
        /// Which limit.
        source: TypeError,
        /// Where.
        #[label("here")]
        span: Option<Span>,
    },
}

/// Anything wrong with a program.
#[derive(Clone, Debug, PartialEq, Error, Diagnostic)]
pub enum ProgramError {
    /// The text is no term.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Syntax(#[from] SyntaxError),
    /// The term has no type.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Type(#[from] InferError),
}

impl ProgramError {
    /// Where the error begins: its first label.
    fn start(&self) -> Option<usize> {
        self.labels()?.next().map(|label| label.offset())
    }
}

/// All errors of one source text.
#[derive(Clone, Debug, PartialEq, Error)]
pub struct Report {
    /// The text.
    pub source_text: String,
    /// What is wrong with it, in order of place; never empty.
    pub errors: Vec<ProgramError>,
}

impl Report {
    /// A report on a text.
    pub fn new<E: Into<ProgramError>>(source_text: &str, errors: impl IntoIterator<Item = E>) -> Report {
        let mut errors: Vec<ProgramError> = errors.into_iter().map(Into::into).collect();
        errors.sort_by_key(ProgramError::start);
        Report { source_text: source_text.to_string(), errors }
    }

    fn only(&self) -> Option<&ProgramError> {
        match &self.errors[..] {
            [only] => Some(only),
            _ => None,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.errors[..] {
            [only] => only.fmt(f),
            errors => write!(f, "this text has {} errors", errors.len()),
        }
    }
}

/// A report of one error looks like that error; a report of several lists them.
impl Diagnostic for Report {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source_text)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.only()?.help()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.only()?.labels()
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        match self.only() {
            Some(_) => None,
            None => Some(Box::new(self.errors.iter().map(|error| error as &dyn Diagnostic))),
        }
    }
}

/// A hint that names the closest of the known words, if one is close, and otherwise says `fallback`.
pub fn suggest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>, fallback: &str) -> String {
    let limit = (word.chars().count() / 3).clamp(1, 3);
    let close = known.into_iter().map(|name| (edit_distance(word, name, limit), name)).min();
    match close {
        Some((distance, name)) if distance <= limit => format!("did you mean `{name}`?"),
        _ => fallback.to_string(),
    }
}

/// The number of insertions, deletions, substitutions and swaps of neighbours between two words, or more than `limit`.
fn edit_distance(left: &str, right: &str, limit: usize) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    if left.len().abs_diff(right.len()) > limit {
        return limit + 1;
    }
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for (i, &a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &b) in right.iter().enumerate() {
            let mut best = (rows[i][j] + usize::from(a != b)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a == right[j - 1] && left[i - 1] == b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let known = ["pick", "place", "push", "turn_on"];
        assert_eq!(suggest("pikc", known, "none"), "did you mean `pick`?");
        assert_eq!(suggest("turnon", known, "none"), "did you mean `turn_on`?");
        assert_eq!(suggest("fly", known, "none"), "none");
    }
}
