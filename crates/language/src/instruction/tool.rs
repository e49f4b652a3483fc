//! What something is done with, before the verb (`use the cloth to`) or after the object (`with the cloth`), and the
//! places that come before the verb.

use super::cursor::Cursor;
use super::error::InstructionError;
use super::head::Head;
use super::lexicon;
use super::phrase::things;
use super::place::{Mark, is_grip, landmark_of, marks};
use super::tree::{Clause, Noun, Phrase, Tool, Verb};
use super::verbs::RECIPROCAL;

/// What comes before the verb of a clause.
#[derive(Default)]
pub(super) struct Lead {
    /// `in the cabinet, pick up …`.
    pub(super) marks: Vec<Mark>,
    /// `use the cloth to …`.
    pub(super) tool: Option<Tool>,
}

/// Reads what comes before the verb.
pub(super) fn lead(cursor: &mut Cursor) -> Result<Lead, InstructionError> {
    let start = cursor.at();
    let named = cursor.leads_with_tool(0);
    let uses = cursor.is(0, "use") || named;
    if uses || matches!(cursor.text(0), "with" | "using") {
        cursor.skip(usize::from(!named));
        if let Ok(mut found) = things(cursor, "use") {
            let noun = as_tool(found.swap_remove(0).0);
            let on_hand = if cursor.is(0, "to") { Vec::new() } else { marks(cursor, false)? };
            let joined = cursor.eat("to") || (!uses && cursor.is_stop(0));
            if joined && cursor.is_stop(0) {
                cursor.advance();
            }
            let is_verb = cursor.has(0, |entry| entry.is_verb) || cursor.is_unknown_verb(0);
            if on_hand.is_empty() && (joined || !uses) && is_verb {
                return Ok(Lead { tool: Some(Tool::From(noun)), ..Lead::default() });
            }
        }
        cursor.back_to(start);
        return Ok(Lead::default());
    }
    let is_verb = cursor.has(0, |entry| entry.is_verb);
    if !is_verb && cursor.preposition().is_some_and(|(_, length)| cursor.starts_noun(length)) {
        let marks = marks(cursor, false)?;
        let stop = usize::from(cursor.is_stop(0));
        if !marks.is_empty() && cursor.has(stop, |entry| entry.is_verb) {
            cursor.skip(stop);
            return Ok(Lead { marks, tool: None });
        }
        cursor.back_to(start);
    }
    Ok(Lead::default())
}

/// Reads `with the cloth` as what it is done with, and `with the red handle` as what the thing before it has.
pub(super) fn with(
    cursor: &mut Cursor,
    head: &Head,
    objects: &mut Vec<Noun>,
    marks: &mut [Mark],
    tool: &mut Option<Tool>,
) -> Result<bool, InstructionError> {
    let using = cursor.is(0, "using") || is_grip(cursor);
    if !(using || cursor.is(0, "with")) || !cursor.starts_noun(1) {
        return Ok(false);
    }
    cursor.advance();
    let start = cursor.at();
    let noun = things(cursor, "with")?.swap_remove(0).0;
    let words = cursor.words_in(cursor.span_from(start));
    // `with the handle` is a way to open a drawer, `with the black handle` tells which drawer.
    let is_tool = match &noun {
        Noun::Pronoun(..) => true,
        Noun::Phrase(phrase) => {
            phrase.nouns.last().is_some_and(|noun| lexicon::is_tool(noun))
                && (!noun.kind().part || phrase.adjectives.is_empty())
        }
    };
    let is_action = head.verb == Verb::Act;
    if is_action && lexicon::lists(RECIPROCAL, &head.word) {
        objects.push(noun);
        return Ok(true);
    }
    let host = match marks.last_mut() {
        Some(mark) => landmark_of(&mut mark.place),
        None => objects.last_mut(),
    };
    match host {
        Some(Noun::Phrase(host)) if !(using || is_tool || is_action) => host.feature = Some(without_articles(&words)),
        _ => *tool = Some(Tool::Here(as_tool(noun))),
    }
    Ok(true)
}

fn without_articles(words: &str) -> String {
    words.split(' ').filter(|word| !matches!(*word, "the" | "a" | "an")).collect::<Vec<_>>().join(" ")
}

/// A thing to do something with: of `both hands`, the word that counts stays, for nothing is done twice.
fn as_tool(noun: Noun) -> Noun {
    match noun {
        Noun::Phrase(phrase @ Phrase { count: Some(_), .. }) => {
            let counted = phrase.counted.clone();
            let adjectives = counted.into_iter().chain(phrase.adjectives.iter().cloned()).collect();
            Noun::Phrase(Phrase { count: None, counted: None, adjectives, ..phrase })
        }
        noun => noun,
    }
}

/// Spreads the tool of `use the cloth to` over the clauses that follow.
pub(super) fn share_tool(clauses: &mut [Clause], tool: Option<Tool>, before: &[Clause]) {
    let carried = before.last().is_some_and(|last| matches!(last.tool, Some(Tool::From(_) | Tool::Same)));
    let mut next = tool.or_else(|| carried.then_some(Tool::Same));
    for clause in clauses {
        if clause.tool.is_none() {
            if let Some(tool) = next.take() {
                clause.tool = Some(tool);
                next = Some(Tool::Same);
            }
        } else {
            next = None;
        }
    }
}
