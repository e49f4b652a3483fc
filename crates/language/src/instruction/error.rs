//! What can be wrong with an instruction, and what to do about it.

use miette::{Diagnostic, LabeledSpan};
use thiserror::Error;

use crate::diagnostic::Span;
use crate::term::TermError;

/// Why an instruction has no program. Spans are bytes of the instruction's text.
#[derive(Debug, Clone, PartialEq, Error, Diagnostic)]
pub enum InstructionError {
    /// There is no word in the text.
    #[error("the instruction is empty")]
    #[diagnostic(help("write a command such as `put the bowl on the plate`"))]
    Empty,

    /// The text is longer than any instruction.
    #[error("the instruction has {found} {unit}, at most {limit} are read")]
    #[diagnostic(help("split it into several instructions"))]
    TooLong {
        /// Its length.
        found: usize,
        /// The largest accepted length.
        limit: usize,
        /// What is counted: bytes or words.
        unit: &'static str,
    },

    /// The text is in another language.
    #[error("the instruction is not in English")]
    #[diagnostic(help("translate it; without a translation it is kept as text: `instructed \"…\"`"))]
    NotEnglish {
        /// A word that shows it.
        #[label("not an English word")]
        span: Span,
    },

    /// Words that are not in the lexicon, all of them.
    #[error("unknown {} {}", if words.len() == 1 { "word" } else { "words" }, quoted(words))]
    #[diagnostic(help("use a verb of the lexicon, or add this one to `instruction/verbs.rs`"))]
    UnknownWords {
        /// The words in the order of the text.
        words: Vec<UnknownWord>,
        /// One label for each word: what was expected there, and a near spelling.
        #[label(collection)]
        labels: Vec<LabeledSpan>,
    },

    /// A clause that does not start with a verb.
    #[error("expected a verb, found {found}")]
    #[diagnostic(help("start each clause with a verb such as `put`, `pick up`, `open` or `turn on`"))]
    NoVerb {
        /// What stands there instead.
        found: String,
        /// Where.
        #[label("here a verb is wanted")]
        span: Span,
    },

    /// A verb or preposition without the thing it needs.
    #[error("`{after}` needs an object, found {found}")]
    #[diagnostic(help("name a thing such as `the bowl` or `the top drawer of the cabinet`"))]
    NoObject {
        /// The word that needs it.
        after: String,
        /// What stands there instead.
        found: String,
        /// Where.
        #[label("here an object is wanted")]
        span: Span,
    },

    /// A verb of placing without a place.
    #[error("`{verb}` needs a place to go to")]
    #[diagnostic(help("{hint}"))]
    NoTarget {
        /// The verb.
        verb: &'static str,
        /// An example of what to add.
        hint: &'static str,
        /// The clause.
        #[label("where to?")]
        span: Span,
    },

    /// A pronoun, or an implied thing, that nothing said before explains.
    #[error("nothing before `{word}` says what it refers to")]
    #[diagnostic(help("name the thing instead of `{word}`"))]
    NoAntecedent {
        /// The word.
        word: String,
        /// Where.
        #[label("refers to nothing")]
        span: Span,
    },

    /// Words after the end of a clause, or a phrase that modifies nothing.
    #[error("cannot place `{words}` in the sentence")]
    #[diagnostic(help("expected `and`, `then` or the end of the instruction"))]
    Leftover {
        /// The words.
        words: String,
        /// Where.
        #[label("belongs to nothing")]
        span: Span,
    },

    /// Something that is not to be done, which no program says.
    #[error("`{words}` says what not to do, which a program cannot say")]
    #[diagnostic(help("it is left out; say what to do instead"))]
    Negated {
        /// The words.
        words: String,
        /// Where.
        #[label("left out")]
        span: Span,
    },

    /// The signature has no such primitive.
    #[error("the signature has no primitive `{name}`")]
    #[diagnostic(help("use `Signature::general`, or declare `{name}`"))]
    NoPrimitive {
        /// The primitive.
        name: &'static str,
    },

    /// The program is larger than a term may be.
    #[error(transparent)]
    Term(#[from] TermError),
}

/// A word that is not in the lexicon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    /// The word, in lower case.
    pub word: String,
    /// Where it stands.
    pub span: Span,
    /// What the grammar expected there.
    pub expected: &'static str,
    /// A word of the lexicon spelt nearly the same.
    pub suggestion: Option<&'static str>,
}

impl InstructionError {
    /// The words of the instruction's text that it is about; the message where it is about none.
    pub fn words(&self, text: &str) -> String {
        let span = match self {
            InstructionError::NotEnglish { span }
            | InstructionError::NoVerb { span, .. }
            | InstructionError::NoObject { span, .. }
            | InstructionError::NoTarget { span, .. }
            | InstructionError::NoAntecedent { span, .. }
            | InstructionError::Leftover { span, .. }
            | InstructionError::Negated { span, .. } => Some(*span),
            InstructionError::UnknownWords { words, .. } => words.first().map(|word| word.span),
            _ => None,
        };
        let said = span.and_then(|span| text.get(span.start..span.end)).filter(|said| !said.is_empty());
        said.map_or_else(|| self.to_string(), str::to_owned)
    }

    /// The error for these unknown words.
    pub(super) fn unknown(words: Vec<UnknownWord>) -> Self {
        let label = |unknown: &UnknownWord| {
            let meant = unknown.suggestion.map(|word| format!("; did you mean `{word}`?")).unwrap_or_default();
            LabeledSpan::new_with_span(Some(format!("expected {}{meant}", unknown.expected)), unknown.span)
        };
        let labels = words.iter().map(label).collect();
        InstructionError::UnknownWords { words, labels }
    }
}

fn quoted(words: &[UnknownWord]) -> String {
    words.iter().map(|unknown| format!("`{}`", unknown.word)).collect::<Vec<_>>().join(", ")
}
