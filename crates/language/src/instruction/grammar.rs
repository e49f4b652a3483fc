//! Instructions: clauses and what joins them.
//!
//! ```text
//! instruction := preamble? clause (connective clause)*
//! connective  := "," | "and" | "then" | "but" | "after that" | "to" before a verb
//! ```
//! A part that is not understood is noted and skipped up to the next clause, so that one odd phrase does not cost the
//! rest of the sentence. [`parse`] refuses such a text, [`read`] returns what it understood with what it did not.

use super::clause::clause;
use super::cursor::Cursor;
use super::error::InstructionError;
use super::lexicon;
use super::negation::{is_negated, is_negator, negated};
use super::tree::{Clause, Instruction};
use super::verbs::PREAMBLE;

/// Reads an instruction into its syntax tree.
///
/// # Errors
/// The first thing that is unknown, missing or left over.
///
/// # Examples
/// ```
/// use language::instruction::{Verb, parse};
///
/// let tree = parse("Turn on the stove, then put the moka pot on it.")?;
/// let verbs: Vec<Verb> = tree.clauses.iter().map(|clause| clause.verb).collect();
/// assert_eq!(verbs, [Verb::TurnOn, Verb::Put]);
/// # Ok::<(), language::instruction::InstructionError>(())
/// ```
pub fn parse(text: &str) -> Result<Instruction, InstructionError> {
    let reading = read(text)?;
    match reading.problems.into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok(reading.instruction),
    }
}

/// An instruction as far as it is understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// What is understood, at least one clause.
    pub instruction: Instruction,
    /// What is not, in the order of the text.
    pub problems: Vec<InstructionError>,
    /// Words that were read as others, misspelt in the text.
    pub corrected: Vec<(String, &'static str)>,
}

/// Reads as much of an instruction as possible.
///
/// # Errors
/// When nothing is understood: the first problem.
pub fn read(text: &str) -> Result<Reading, InstructionError> {
    let mut cursor = Cursor::new(text)?;
    let clauses = instruction(&mut cursor);
    let (problems, corrected) = cursor.into_problems();
    if clauses.is_empty() {
        return Err(problems.into_iter().next().unwrap_or(InstructionError::Empty));
    }
    Ok(Reading { instruction: Instruction { clauses }, problems, corrected })
}

fn instruction(cursor: &mut Cursor) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = Vec::new();
    connectives(cursor);
    preamble(cursor);
    loop {
        let start = cursor.at();
        let read = match negated(cursor) {
            Some(error) => {
                cursor.problem(error);
                Ok(Vec::new())
            }
            None => clause(cursor, &clauses),
        };
        match read {
            Ok(found) => clauses.extend(found),
            Err(error) => {
                cursor.back_to(start.max(cursor.at()));
                cursor.problem(error);
                skip_clause(cursor);
            }
        }
        let joined = connectives(cursor);
        if cursor.is_at_end() {
            if joined == Some("and") {
                let error = cursor.no_verb();
                cursor.problem(error);
            }
            return clauses;
        }
        if joined.is_none() && !cursor.starts_clause(0) && !is_negated(cursor, 0) {
            let start = cursor.at();
            skip_clause(cursor);
            let span = cursor.span_from(start);
            cursor.problem(InstructionError::Leftover { words: cursor.words_in(span), span });
            if connectives(cursor).is_some() && cursor.is_at_end() {
                return clauses;
            }
        }
        if cursor.is_at_end() {
            return clauses;
        }
    }
}

/// Reads past at least one word, up to the next `and`, `then` or comma with a verb after it.
pub(super) fn skip_clause(cursor: &mut Cursor) {
    let mut is_forbidden = false;
    while !cursor.is_at_end() {
        // What follows `so that you don't drop it and` is forbidden as well.
        is_forbidden |= is_negator(cursor, 0);
        let joins = (cursor.is(0, "and") && !is_forbidden) || cursor.is(0, "then") || cursor.is_stop(0);
        if joins {
            let start = cursor.at();
            connectives(cursor);
            let found = cursor.starts_clause(0) || cursor.is_unknown_verb(0) || is_negated(cursor, 0);
            cursor.back_to(start);
            if found {
                return;
            }
        }
        cursor.advance();
    }
}

/// Reads past what stands between clauses and returns the last word of it that needs a clause after it.
pub(super) fn connectives(cursor: &mut Cursor) -> Option<&'static str> {
    let mut last = None;
    loop {
        let contrasts = cursor.is(0, "but") && (cursor.starts_clause(1) || is_negated(cursor, 1));
        if cursor.is(0, "and") || contrasts {
            last = Some("and");
        } else if cursor.is(0, "then") || cursor.is_stop(0) {
            last = last.or(Some("then"));
        } else if cursor.has(0, |entry| entry.number.is_some()) && cursor.is_stop(1) {
            // The number of a step: `1. open the drawer 2. close it`.
        } else if cursor.is(0, "after") && cursor.is(1, "that") {
            cursor.advance();
        } else if cursor.are(0, &["in", "order", "to"]) || cursor.are(0, &["so", "as", "to"]) {
            cursor.skip(2);
            last = Some("and");
        } else if cursor.is(0, "to") && cursor.starts_clause(1) {
            last = Some("and");
        } else if !cursor.has(0, |entry| entry.is_adverb) {
            return last;
        }
        cursor.advance();
    }
}

/// Reads past `the robot should`, `could you`, `your task is to`: words that lead to the first verb and name nothing.
fn preamble(cursor: &mut Cursor) {
    const LONGEST: usize = 9;
    let lets = cursor.is(0, "let") && matches!(cursor.text(1), "us" | "'s");
    if cursor.has(0, |entry| entry.is_verb) && !cursor.is(0, "try") && !lets {
        return;
    }
    let start = cursor.at();
    let is_lead = |cursor: &Cursor, ahead: usize| {
        let word = cursor.text(ahead);
        let is_filler = cursor.is_stop(ahead) || cursor.has(ahead, |entry| entry.is_adverb);
        is_filler || lexicon::lists(PREAMBLE, word)
    };
    let mut read = 0;
    while read < LONGEST && !cursor.is_at_end() && is_lead(cursor, 0) {
        cursor.advance();
        read += 1;
        let leads = cursor.has(0, |entry| entry.is_verb) && !is_lead(cursor, 0);
        let before = cursor.at() - 1;
        cursor.back_to(before);
        let ends_lead = !cursor.has(0, |entry| entry.is_determiner);
        cursor.back_to(before + 1);
        if leads && ends_lead {
            return;
        }
    }
    cursor.back_to(start);
}
