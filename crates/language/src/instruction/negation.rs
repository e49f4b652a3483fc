//! What an instruction says not to do, and which things it leaves out.
//!
//! A program says only what is done. A negated clause (`don't drop it`) is therefore left out and noted, never read as the
//! command that it forbids; so is a thing that is named to be left alone (`the cup, not the bowl`). What `all` leaves out
//! is a part of the description: `all the cubes except the red one` is `all "cube except red cube"`.
//!
//! A negation reaches up to the next comma, `then` or `but` with a verb after it: `don't touch the cup and move it` forbids
//! both.

use super::cursor::Cursor;
use super::error::InstructionError;
use super::lexicon;
use super::phrase::things;
use super::place::{Mark, landmark_of};
use super::tree::{Noun, Phrase};
use super::verbs::PREAMBLE;

/// Words that negate the verb after them.
const NEGATORS: &str = "not never dont cannot cant";

/// Words that may stand before a negation, apart from those that may stand before any verb: `be careful not to`.
const LEADS: &str = "do does did be careful make sure may might that";

/// The longest lead of a negation, in words.
const LONGEST: usize = 9;

/// Words that leave something out of `all`.
const EXCEPTIONS: &[&[&str]] = &[
    &["except", "for"],
    &["except"],
    &["excluding"],
    &["apart", "from"],
    &["aside", "from"],
    &["other", "than"],
    &["besides"],
    &["but"],
];

/// Words that name a thing to leave alone.
const ALTERNATIVES: &[&[&str]] = &[&["instead", "of"], &["rather", "than"], &["but", "not"], &["and", "not"], &["not"]];

/// Whether a negated clause starts `ahead` places on.
pub(super) fn is_negated(cursor: &Cursor, ahead: usize) -> bool {
    let avoids = cursor.is(ahead, "avoid") || cursor.is(ahead, "no");
    if avoids && lexicon::gerund(cursor.text(ahead + 1)).is_some() {
        return true;
    }
    let is_lead = |at: usize| {
        lexicon::lists(PREAMBLE, cursor.text(at))
            || lexicon::lists(LEADS, cursor.text(at))
            || cursor.has(at, |entry| entry.is_adverb)
    };
    let lead = (ahead..ahead + LONGEST).take_while(|&at| is_lead(at)).count();
    is_negator(cursor, ahead + lead)
}

/// Whether the word `ahead` places on negates what follows.
pub(super) fn is_negator(cursor: &Cursor, ahead: usize) -> bool {
    lexicon::lists(NEGATORS, cursor.text(ahead))
}

/// Reads past a negated clause, if one comes next, and says what it forbids.
pub(super) fn negated(cursor: &mut Cursor) -> Option<InstructionError> {
    if !is_negated(cursor, 0) {
        return None;
    }
    let start = cursor.at();
    while !cursor.is_at_end() {
        if cursor.is_stop(0) || matches!(cursor.text(0), "then" | "but") {
            let here = cursor.at();
            while cursor.is_stop(0) || matches!(cursor.text(0), "then" | "but" | "and") {
                cursor.advance();
            }
            let goes_on = cursor.starts_clause(0) || cursor.is_unknown_verb(0) || is_negated(cursor, 0);
            cursor.back_to(here);
            if goes_on {
                break;
            }
        }
        cursor.advance();
    }
    Some(forbidden(cursor, start))
}

/// Reads what is left out after an object: `except the red one`, `not the bowl`. False if nothing is.
pub(super) fn exception(
    cursor: &mut Cursor,
    objects: &mut [Noun],
    marks: &mut [Mark],
) -> Result<bool, InstructionError> {
    let said = |list: &[&[&str]]| list.iter().find(|words| cursor.are(0, words)).map(|words| words.len());
    let starts = |length: &usize| cursor.starts_noun(*length) && !cursor.starts_clause(*length);
    if let Some(length) = said(ALTERNATIVES).filter(starts) {
        let start = cursor.at();
        cursor.skip(length);
        things(cursor, "not")?;
        let error = forbidden(cursor, start);
        cursor.problem(error);
        return Ok(true);
    }
    let Some(length) = said(EXCEPTIONS).filter(starts) else {
        return Ok(false);
    };
    let several = |noun: &Noun| matches!(noun, Noun::Phrase(phrase) if phrase.all || phrase.plural.is_some());
    let landmark = marks.last_mut().and_then(|mark| landmark_of(&mut mark.place)).filter(|noun| several(noun));
    let host = landmark.or_else(|| objects.last_mut().filter(|noun| several(noun)));
    let Some(Noun::Phrase(host)) = host else {
        return Ok(false);
    };
    cursor.skip(length);
    loop {
        let start = cursor.at();
        for (noun, _) in things(cursor, "except")? {
            let words = cursor.words_in(cursor.span_from(start));
            let left_out = host.except.get_or_insert_default();
            if !left_out.is_empty() {
                left_out.push_str(" and ");
            }
            left_out.push_str(&named(&noun, &words, host.nouns.as_slice()));
        }
        let joins = matches!(cursor.text(0), "and" | "or") && starts_thing(cursor, 1);
        if !joins {
            return Ok(true);
        }
        cursor.advance();
    }
}

fn starts_thing(cursor: &Cursor, ahead: usize) -> bool {
    cursor.starts_noun(ahead) && !cursor.starts_clause(ahead) && !cursor.is_unknown_verb(ahead)
}

/// What is left out, in words; `one` borrows the noun of what it is left out of.
fn named(noun: &Noun, words: &str, host: &[String]) -> String {
    let Noun::Phrase(Phrase { adjectives, nouns, positions, .. }) = noun else { return words.to_owned() };
    let own = if nouns.last().is_some_and(|noun| noun == "one") { host } else { &nouns[..] };
    let positions = positions.iter().map(|position| position.primitive());
    let words = positions.chain(adjectives.iter().chain(own).map(String::as_str));
    words.collect::<Vec<_>>().join(" ")
}

fn forbidden(cursor: &Cursor, start: usize) -> InstructionError {
    let span = cursor.span_from(start);
    InstructionError::Negated { words: cursor.words_in(span), span }
}
