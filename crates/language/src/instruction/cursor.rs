//! The words of one instruction with a reading position, and the tests that the grammar makes on them.

use super::error::{InstructionError, UnknownWord};
use super::lexicon::{self, Entry, Kind, NounEntry, Preposition};
use super::spelling::{self, Class};
use super::vocabulary::{FOREIGN, NOUNS_IN_LY, PREPOSITIONS};
use super::words::{self, Spanned, Token};
use crate::diagnostic::Span;

#[derive(Debug)]
struct Word {
    text: String,
    span: Span,
    entry: Entry,
    is_stop: bool,
    is_genitive: bool,
}

/// A reader of words. It never goes back further than a caller's own [`Cursor::at`].
#[derive(Debug)]
pub(super) struct Cursor {
    words: Vec<Word>,
    at: usize,
    problems: Vec<InstructionError>,
    corrected: Vec<(String, &'static str)>,
}

impl Cursor {
    /// Splits and looks up the text. An unknown word is a slip for a known one of the class that its place asks for, or
    /// else a new noun.
    pub(super) fn new(text: &str) -> Result<Self, InstructionError> {
        let tokens = words::split(text)?;
        foreign(&tokens)?;
        let mut read: Vec<Word> = Vec::new();
        let mut corrected = Vec::new();
        for spanned in tokens {
            let span = spanned.span;
            let blank = Word { text: String::new(), span, entry: Entry::default(), is_stop: false, is_genitive: false };
            read.push(match spanned.token {
                Token::Stop => Word { is_stop: true, text: ",".to_owned(), ..blank },
                Token::Genitive => Word { is_genitive: true, text: "'s".to_owned(), ..blank },
                Token::Word(word) => {
                    let entry = lexicon::entry(&word);
                    if entry.is_known() {
                        Word { text: word, entry, ..blank }
                    } else if let Some(meant) = slip(&word, read.last()) {
                        corrected.push((word, meant));
                        Word { text: meant.to_owned(), entry: lexicon::entry(meant), ..blank }
                    } else {
                        let entry = open_class(&word);
                        Word { text: word, entry, ..blank }
                    }
                }
            });
        }
        third_person(&mut read);
        Ok(Cursor { words: read, at: 0, problems: Vec::new(), corrected })
    }

    /// Notes that something was not understood; reading goes on without it.
    pub(super) fn problem(&mut self, error: InstructionError) {
        self.problems.push(error);
    }

    /// Everything that was not understood, and the slips that were corrected.
    pub(super) fn into_problems(self) -> (Vec<InstructionError>, Vec<(String, &'static str)>) {
        (self.problems, self.corrected)
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

    /// Reads past several words.
    pub(super) fn skip(&mut self, words: usize) {
        self.at += words;
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

    /// Whether these words come `ahead` places on.
    pub(super) fn are(&self, ahead: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(index, word)| self.is(ahead + index, word))
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

    /// Whether a phrase ends before the word `ahead` places on.
    pub(super) fn ends(&self, ahead: usize) -> bool {
        self.at + ahead >= self.words.len()
            || self.is_stop(ahead)
            || matches!(self.text(ahead), "and" | "then" | "to" | "with" | "using" | "by")
            || self.has(ahead, |entry| entry.is_adverb)
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
        self.starts_reference(ahead)
            || (self.has(ahead, possible)
                && !self.has(ahead, |entry| entry.is_verb && !entry.is_substantive() && entry.position.is_none()))
    }

    /// Whether the word `ahead` places on is a pronoun or quantifier, which no verb is.
    fn starts_reference(&self, ahead: usize) -> bool {
        matches!(self.text(ahead), "it" | "them" | "they" | "both" | "its" | "their" | "all" | "everything" | "another")
            || self.are(ahead, &["each", "other"])
    }

    /// Whether a clause can start with the verb `ahead` places on. A word that is a noun or an adjective as well (`water`,
    /// `clean`) is a verb where an object follows that no compound goes on with.
    pub(super) fn starts_clause(&self, ahead: usize) -> bool {
        let Some(entry) = self.entry(ahead) else { return false };
        let object =
            |at: usize| self.starts_reference(at) || self.has(at, |next| next.is_determiner || next.number.is_some());
        let particle = matches!(self.text(ahead + 1), "up" | "down" | "out" | "away") && object(ahead + 2);
        let is_ambiguous = entry.is_substantive() || entry.position.is_some();
        // `and head to the table`, next to `the lamp head`.
        let heads = self.is(ahead, "head") && matches!(self.text(ahead + 1), "to" | "toward" | "towards" | "for");
        entry.is_verb && (!is_ambiguous || object(ahead + 1) || particle || heads)
    }

    /// Whether the word `ahead` places on is no verb in the lexicon and stands where only one can: before an article or a
    /// pronoun.
    pub(super) fn is_unknown_verb(&self, ahead: usize) -> bool {
        let is_object = matches!(self.text(ahead + 1), "the" | "a" | "an" | "my" | "your" | "it" | "them");
        let entry = lexicon::entry(self.text(ahead));
        let is_noun = entry.noun.is_some() && !entry.is_verb && !entry.is_adjective && !entry.is_function;
        is_object && !self.is_stop(ahead) && (is_noun || !entry.is_known())
    }

    /// Whether a hand or tool to do something with comes `ahead` places on: `the right arm to open the box`.
    pub(super) fn leads_with_tool(&self, ahead: usize) -> bool {
        const LONGEST: usize = 5;
        self.starts_noun(ahead)
            && (ahead..ahead + LONGEST)
                .any(|at| lexicon::is_tool(self.text(at)) && self.is(at + 1, "to") && self.starts_clause(at + 2))
    }

    /// Whether the word `ahead` places on is a participle that says how a thing is somewhere: `lying on the shelf`.
    pub(super) fn is_posture(&self, ahead: usize) -> bool {
        let word = self.text(ahead);
        let entry = lexicon::entry(word);
        let is_form = !entry.is_known() && (word.ends_with("ing") || word.ends_with("ed"));
        let is_state = entry.is_adjective && entry.noun.is_none() && word.ends_with("ed");
        let is_irregular = matches!(word, "hanging" | "found" | "kept" | "left" | "hidden" | "stuck" | "hung" | "laid");
        (is_form || is_state || is_irregular) && self.preposition_at(ahead + 1).is_some()
    }

    /// The preposition that comes next, with its number of words.
    pub(super) fn preposition(&self) -> Option<(Preposition, usize)> {
        self.preposition_at(0)
    }

    /// The preposition `ahead` places on, with its number of words.
    pub(super) fn preposition_at(&self, ahead: usize) -> Option<(Preposition, usize)> {
        PREPOSITIONS
            .iter()
            .find(|(words, _)| self.are(ahead, words))
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

    /// The error for a word that stands where a verb is expected: unknown, or of another class.
    pub(super) fn no_verb(&self) -> InstructionError {
        let span = self.span();
        if self.is_at_end() || lexicon::entry(self.text(0)).is_known() || self.is_stop(0) {
            return InstructionError::NoVerb { found: self.found(), span };
        }
        let word = self.text(0).to_owned();
        let suggestion = spelling::nearest(&word, Class::Verb);
        let expected = "a verb, such as `put` or `open`";
        InstructionError::unknown(vec![UnknownWord { word, span, expected, suggestion }])
    }
}

/// Reads `the robot picks up the cube and places it …` as a command: where a subject comes first, the forms of verbs at
/// the start of clauses are the verbs.
fn third_person(words: &mut [Word]) {
    let article = usize::from(words.first().is_some_and(|word| word.entry.is_determiner));
    let is_subject = |word: &Word| {
        matches!(
            word.text.as_str(),
            "robot" | "arm" | "gripper" | "manipulator" | "agent" | "person" | "it" | "he" | "she"
        )
    };
    let named = words[article..].iter().take_while(|word| is_subject(word)).count();
    if named == 0 {
        return;
    }
    let mut starts = false;
    for (index, word) in words.iter_mut().enumerate() {
        let form = word.text.strip_suffix('s').map(|stem| (stem, stem.strip_suffix('e').unwrap_or(stem)));
        let is_verb = |stem: &str| lexicon::entry(stem).is_verb;
        let stem = form.and_then(|(long, short)| [long, short].into_iter().find(|stem| is_verb(stem)));
        if let Some(stem) = stem.filter(|_| starts || index == article + named).map(str::to_owned) {
            word.entry = lexicon::entry(&stem);
            word.text = stem;
        }
        starts = word.is_stop || word.entry.is_adverb || matches!(word.text.as_str(), "and" | "then");
    }
}

/// The word that an unknown one surely is, given the word before it: a verb starts a clause, a noun follows an article, a
/// preposition or a verb, and after a noun a word of the grammar is as likely as more of the name.
fn slip(word: &str, before: Option<&Word>) -> Option<&'static str> {
    let Some(before) = before.filter(|before| !before.is_stop) else {
        return spelling::correction(word, Class::Verb);
    };
    if matches!(before.text.as_str(), "and" | "then") {
        // After `and`, a noun is as likely as a verb.
        return spelling::correction(word, Class::Verb).or_else(|| spelling::correction(word, Class::Nominal));
    }
    let entry = &before.entry;
    let opens_noun =
        entry.is_determiner || entry.is_preposition || entry.is_adjective || entry.is_colour || entry.is_verb;
    if opens_noun && entry.noun.is_none() {
        return spelling::correction(word, Class::Nominal);
    }
    spelling::correction(word, Class::Grammar).or_else(|| spelling::correction(word, Class::Nominal))
}

/// What an unknown word can be by its form: an adverb, or else a noun.
fn open_class(word: &str) -> Entry {
    if word.len() > 4 && word.ends_with("ly") && !lexicon::lists(NOUNS_IN_LY, word) {
        return Entry { is_adverb: true, ..Entry::default() };
    }
    let stem = word.strip_suffix('s').filter(|stem| stem.len() > 2 && !stem.ends_with(['s', 'u', 'i']));
    let singular = stem.map_or_else(|| word.to_owned(), singular);
    let noun = NounEntry { kind: Kind::default(), singular, is_plural: stem.is_some() };
    Entry { noun: Some(noun), ..Entry::default() }
}

/// The singular of an unknown plural without its `s`.
fn singular(stem: &str) -> String {
    if let Some(before) = stem.strip_suffix("ie") {
        return format!("{before}y");
    }
    let sibilant =
        |before: &&str| before.ends_with(['s', 'x', 'z']) || before.ends_with("ch") || before.ends_with("sh");
    stem.strip_suffix('e').filter(sibilant).unwrap_or(stem).to_owned()
}

/// Refuses a text in another language: letters of another script, or articles and prepositions of another language and
/// none of English.
fn foreign(tokens: &[Spanned]) -> Result<(), InstructionError> {
    let words = || {
        tokens.iter().filter_map(|spanned| match &spanned.token {
            Token::Word(word) => Some((word.as_str(), spanned.span)),
            Token::Genitive | Token::Stop => None,
        })
    };
    let is_latin = |word: &str| word.chars().all(|c| !c.is_alphabetic() || c < '\u{250}');
    let other_script = words().filter(|(word, _)| !is_latin(word)).count();
    if other_script * 2 > words().count() {
        let span = words().find(|(word, _)| !is_latin(word)).map_or_else(Span::default, |(_, span)| span);
        return Err(InstructionError::NotEnglish { span });
    }
    let is_english = |word: &str| {
        let entry = lexicon::entry(word);
        !lexicon::lists(FOREIGN, word) && (entry.is_determiner || entry.is_preposition || entry.is_function)
    };
    let Some((_, span)) = words().find(|(word, _)| lexicon::lists(FOREIGN, word)) else {
        return Ok(());
    };
    if words().any(|(word, _)| is_english(word) && word != "in" && word != "a") {
        return Ok(());
    }
    Err(InstructionError::NotEnglish { span })
}
