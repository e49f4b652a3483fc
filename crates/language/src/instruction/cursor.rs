//! The words of one instruction with a reading position, and the tests that the grammar makes on them.

use super::error::{InstructionError, UnknownWord};
use super::lexicon::{self, Entry, Kind, NounEntry, Preposition};
use super::vocabulary::PREPOSITIONS;
use super::words::{self, Token};
use crate::diagnostic::Span;

/// What the grammar looks for at a place, in the words of an error message.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expected {
    Verb,
    Object,
    MoreOrPlace,
}

impl Expected {
    const fn text(self) -> &'static str {
        match self {
            Expected::Verb => "a verb, such as `put` or `open`",
            Expected::Object => "an object, such as `bowl` or `plate`",
            Expected::MoreOrPlace => "a preposition, such as `on` or `in`, or the rest of the object's name",
        }
    }
}

#[derive(Debug)]
struct Word {
    text: String,
    span: Span,
    entry: Entry,
    is_stop: bool,
    is_genitive: bool,
}

#[derive(Debug)]
struct Unknown {
    index: usize,
    word: String,
    suggestion: Option<&'static str>,
    expected: Option<Expected>,
}

/// A reader of words. It never goes back further than a caller's own [`Cursor::at`].
#[derive(Debug)]
pub(super) struct Cursor {
    words: Vec<Word>,
    unknown: Vec<Unknown>,
    at: usize,
}

impl Cursor {
    /// Splits and looks up the text. An unknown word stands in for its nearest spelling, or else for a noun, so that one
    /// reading finds every unknown word.
    pub(super) fn new(text: &str) -> Result<Self, InstructionError> {
        let mut unknown = Vec::new();
        let mut read = Vec::new();
        for (index, spanned) in words::split(text)?.into_iter().enumerate() {
            let span = spanned.span;
            let blank = Word { text: String::new(), span, entry: Entry::default(), is_stop: false, is_genitive: false };
            read.push(match spanned.token {
                Token::Stop => Word { is_stop: true, text: ",".to_owned(), ..blank },
                Token::Genitive => Word { is_genitive: true, text: "'s".to_owned(), ..blank },
                Token::Word(word) => {
                    let entry = lexicon::entry(&word);
                    if entry.is_known() {
                        Word { text: word, entry, ..blank }
                    } else {
                        let suggestion = lexicon::nearest(&word);
                        let text = suggestion.map_or_else(|| word.clone(), str::to_owned);
                        let entry = suggestion.map_or_else(|| placeholder(&word), lexicon::entry);
                        unknown.push(Unknown { index, word, suggestion, expected: None });
                        Word { text, entry, ..blank }
                    }
                }
            });
        }
        Ok(Cursor { words: read, unknown, at: 0 })
    }

    /// The error that names every unknown word, if there is one.
    pub(super) fn unknown_words(&self) -> Option<InstructionError> {
        let named = |unknown: &Unknown| UnknownWord {
            word: unknown.word.clone(),
            span: self.words[unknown.index].span,
            expected: unknown
                .expected
                .or_else(|| likely(&self.words[unknown.index].entry))
                .map_or(ANY_WORD, Expected::text),
            suggestion: unknown.suggestion,
        };
        let words: Vec<_> = self.unknown.iter().map(named).collect();
        (!words.is_empty()).then(|| InstructionError::unknown(words))
    }

    /// Notes what was looked for at the current word, for the case that it is unknown; the first note stands.
    pub(super) fn expect(&mut self, expected: Expected) {
        let at = self.at;
        if let Some(unknown) = self.unknown.iter_mut().find(|unknown| unknown.index == at) {
            unknown.expected.get_or_insert(expected);
        }
    }

    /// The reading position.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Goes back to a position that [`Cursor::at`] gave.
    pub(super) fn back_to(&mut self, at: usize) {
        self.at = at;
    }

    /// Reads past one word.
    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    /// Whether every word is read.
    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.words.len()
    }

    /// The word `ahead` places on, empty past the end.
    pub(super) fn text(&self, ahead: usize) -> &str {
        self.words.get(self.at + ahead).map_or("", |word| word.text.as_str())
    }

    /// Whether the word `ahead` places on is this one.
    pub(super) fn is(&self, ahead: usize, word: &str) -> bool {
        self.text(ahead) == word
    }

    /// Reads past this word if it comes next.
    pub(super) fn eat(&mut self, word: &str) -> bool {
        let found = self.is(0, word);
        self.at += usize::from(found);
        found
    }

    /// The categories of the word `ahead` places on.
    pub(super) fn entry(&self, ahead: usize) -> Option<&Entry> {
        self.words.get(self.at + ahead).map(|word| &word.entry)
    }

    /// Whether the word `ahead` places on has a category.
    pub(super) fn has(&self, ahead: usize, category: impl Fn(&Entry) -> bool) -> bool {
        self.entry(ahead).is_some_and(category)
    }

    /// Whether a comma or full stop comes next.
    pub(super) fn is_stop(&self, ahead: usize) -> bool {
        self.words.get(self.at + ahead).is_some_and(|word| word.is_stop)
    }

    /// Reads past `'s` if it comes next.
    pub(super) fn eat_genitive(&mut self) -> bool {
        let found = self.words.get(self.at).is_some_and(|word| word.is_genitive);
        self.at += usize::from(found);
        found
    }

    /// Whether a noun phrase can start `ahead` places on.
    pub(super) fn starts_noun(&self, ahead: usize) -> bool {
        let possible = |entry: &Entry| entry.is_determiner || entry.number.is_some() || entry.is_nominal();
        let pronoun = matches!(self.text(ahead), "it" | "them" | "they" | "both" | "its" | "their" | "all");
        pronoun || (self.has(ahead, possible) && !self.has(ahead, |entry| entry.is_verb && entry.noun.is_none()))
    }

    /// The preposition that comes next, with its number of words.
    pub(super) fn preposition(&self) -> Option<(Preposition, usize)> {
        PREPOSITIONS
            .iter()
            .find(|(words, _)| words.iter().enumerate().all(|(ahead, word)| self.is(ahead, word)))
            .map(|(words, preposition)| (*preposition, words.len()))
    }

    /// The span of the current word, or of the last one when all are read.
    pub(super) fn span(&self) -> Span {
        let word = self.words.get(self.at).or(self.words.last());
        word.map_or_else(Span::default, |word| word.span)
    }

    /// The span from the word at `start` to the last word read.
    pub(super) fn span_from(&self, start: usize) -> Span {
        let first = self.words.get(start).map_or_else(|| self.span(), |word| word.span);
        let last = self.at.checked_sub(1).and_then(|at| self.words.get(at)).map_or(first, |word| word.span);
        if last.end < first.start { first } else { first.to(last) }
    }

    /// The next word for an error message.
    pub(super) fn found(&self) -> String {
        self.found_at(0)
    }

    /// The word `ahead` places on for an error message.
    pub(super) fn found_at(&self, ahead: usize) -> String {
        match self.words.get(self.at + ahead) {
            Some(word) => format!("`{}`", word.text),
            None => "the end of the instruction".to_owned(),
        }
    }

    /// The words of a span, for an error message.
    pub(super) fn words_in(&self, span: Span) -> String {
        let inside = |word: &&Word| word.span.start >= span.start && word.span.end <= span.end;
        self.words.iter().filter(inside).map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
    }
}

const ANY_WORD: &str = "a word of the lexicon";

/// What was looked for where a stand-in fitted without being asked for by name.
fn likely(entry: &Entry) -> Option<Expected> {
    if entry.is_preposition {
        Some(Expected::MoreOrPlace)
    } else if entry.is_verb {
        Some(Expected::Verb)
    } else {
        (entry.is_nominal() || entry.is_determiner).then_some(Expected::Object)
    }
}

fn placeholder(word: &str) -> Entry {
    let noun = NounEntry { kind: Kind::default(), singular: word.to_owned(), is_plural: false };
    Entry { noun: Some(noun), ..Entry::default() }
}
