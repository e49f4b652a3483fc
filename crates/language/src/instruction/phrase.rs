//! Noun phrases: `both moka pots`, `the top drawer of the cabinet`, `the yellow and white mug`, `table center`.
//!
//! ```text
//! thing    := pronoun | core ("'s" core)* ("of" core)*
//! core     := quantifier* determiner* number? modifier* noun+ | determiner* position | noun+ position
//! modifier := position | adjective | number | colour ("and" colour)?
//! noun     := a noun of the lexicon | an unknown word | a verb after an article | noun "or" noun
//! ```
//! A position before a noun is a modifier (`the left plate`), else it is a spot (`the left of the plate`). Modifiers
//! around `and` share the noun (`the top and the bottom drawer`). Chains are loops: depth costs no stack.

use super::core::{Core, empty};
use super::cursor::Cursor;
use super::error::InstructionError;
use super::head::manner_length;
use super::lexicon::{self, Entry, Kind, NounEntry};
use super::tree::{Noun, Phrase, Position, Pronoun};
use super::vocabulary::ORDINALS;
use crate::diagnostic::Span;

/// A reference and what its head noun affords.
pub(super) type Thing = (Noun, Kind);

/// What a preposition can stand before.
#[derive(Debug)]
pub(super) enum Landmark {
    /// A thing.
    Thing(Thing),
    /// A position, of something or of the workspace; `article` tells `in the front of` from `in front of`.
    Spot { position: Position, whole: Option<Thing>, article: bool, span: Span },
}

/// Reads what a verb acts on: several when modifiers share a noun.
pub(super) fn things(cursor: &mut Cursor, after: &str) -> Result<Vec<Thing>, InstructionError> {
    let start = cursor.at();
    let core = chain(cursor, after)?;
    let is_cover = core.article && core.spot == Some(Position::Top);
    if core.spot.is_some() && core.whole.is_none() && !is_cover {
        cursor.back_to(start);
        return Err(no_object(cursor, after));
    }
    Ok(core.finish_all())
}

/// Reads what a preposition stands before.
pub(super) fn landmark(cursor: &mut Cursor, after: &str) -> Result<Landmark, InstructionError> {
    let start = cursor.at();
    let core = chain(cursor, after)?;
    if !core.shared.is_empty() {
        let span = cursor.span_from(start);
        return Err(InstructionError::Leftover { words: cursor.words_in(span), span });
    }
    Ok(match core.spot {
        Some(position) => {
            let Core { whole, article, span, .. } = core;
            Landmark::Spot { position, whole: whole.map(|thing| *thing), article, span }
        }
        None => Landmark::Thing(core.finish()),
    })
}

/// A phrase that names a spot of a thing as a part of it: `the middle of the tray`.
pub(super) fn spot_of(position: Position, whole: Noun, span: Span) -> Noun {
    let nouns = vec![position.primitive().to_owned()];
    Noun::Phrase(Phrase { nouns, whole: Some(Box::new(whole)), ..empty(span) })
}

fn no_object(cursor: &Cursor, after: &str) -> InstructionError {
    InstructionError::NoObject { after: after.to_owned(), found: cursor.found(), span: cursor.span() }
}

fn chain(cursor: &mut Cursor, after: &str) -> Result<Core, InstructionError> {
    let mut links = Vec::new();
    let mut last = core(cursor, after)?;
    while last.pronoun.is_none() && cursor.is(0, "of") && cursor.starts_noun(1) {
        cursor.advance();
        links.push(std::mem::replace(&mut last, core(cursor, "of")?));
    }
    Ok(links.into_iter().rev().fold(last, |whole, part| part.of(whole)))
}

/// A core with the owners before it: `the cabinet's top drawer`.
fn core(cursor: &mut Cursor, after: &str) -> Result<Core, InstructionError> {
    let mut core = plain(cursor, after)?;
    while core.pronoun.is_none() && core.spot.is_none() && cursor.eat_genitive() {
        let owner = std::mem::replace(&mut core, plain(cursor, "'s")?);
        core.span = owner.span.to(core.span);
        core.whole = Some(Box::new(owner.finish()));
    }
    Ok(core)
}

fn plain(cursor: &mut Cursor, after: &str) -> Result<Core, InstructionError> {
    let start = cursor.at();
    let mut core = Core::new(cursor.span());
    determiners(cursor, &mut core);
    core.pronoun = match cursor.text(0) {
        "it" => Some(Pronoun::It),
        "them" | "they" => Some(Pronoun::Them),
        _ if core.both && !cursor.starts_noun(0) => Some(Pronoun::Both),
        _ => None,
    };
    if core.pronoun.is_some() {
        if matches!(cursor.text(0), "it" | "them" | "they") {
            cursor.advance();
            cursor.eat("both");
        }
        core.span = cursor.span_from(start);
        return Ok(core);
    }
    if read_quantity(cursor, &mut core) {
        core.span = cursor.span_from(start);
        return Ok(core);
    }
    while read_modifier(cursor, &mut core) {}
    while core.spot.is_none() && read_noun(cursor, &mut core) {}
    if core.nouns.is_empty() && core.spot.is_none() {
        // `stack the red on the blue`: a description without its noun.
        core.nouns.extend(core.adjectives.pop());
    }
    if core.nouns.is_empty() && core.spot.is_none() {
        return Err(no_object(cursor, after));
    }
    counted_from(cursor, &mut core);
    core.span = cursor.span_from(start);
    Ok(core)
}

/// Reads the end that an ordinal counts from: `the second hook from the left`.
fn counted_from(cursor: &mut Cursor, core: &mut Core) {
    let is_ordinal = core.adjectives.iter().any(|word| lexicon::lists(ORDINALS, word));
    if !is_ordinal || !cursor.is(0, "from") || core.nouns.is_empty() {
        return;
    }
    let at = 1 + usize::from(cursor.is(1, "the"));
    let goes_on = cursor.is(at + 1, "of") || cursor.has(at + 1, Entry::is_nominal) || cursor.is(at + 1, "to");
    if cursor.has(at, |entry| entry.position.is_some()) && !goes_on {
        core.from = Some(cursor.text(at).to_owned());
        cursor.skip(at + 1);
    }
}

fn determiners(cursor: &mut Cursor, core: &mut Core) {
    loop {
        let counts = cursor.has(1, |entry| entry.is_nominal() || entry.is_determiner) || cursor.is(1, "of");
        match cursor.text(0) {
            "both" => {
                core.both = true;
                core.counted = Some("both".to_owned());
            }
            "all" => core.all = true,
            "every" | "each" if cursor.is(1, "other") && !noun_ahead(cursor, 2) => return,
            "every" | "each" => {
                core.all = true;
                core.article = true;
            }
            "another" => {
                core.article = true;
                core.adjectives.push("other".to_owned());
            }
            owner @ ("its" | "their") => {
                let pronoun = if owner == "its" { Pronoun::It } else { Pronoun::Them };
                core.article = true;
                core.whole = Some(Box::new((Noun::Pronoun(pronoun, cursor.span()), Kind::default())));
            }
            "of" if core.both || core.all || core.count.is_some() => {}
            _ if cursor.has(0, |entry| entry.is_determiner) => core.article = true,
            _ if counts && cursor.has(0, |entry| entry.number.is_some()) => read_number(cursor, core),
            _ => return,
        }
        cursor.advance();
    }
}

/// Notes a number; of `one of the two balls` the first counts.
fn read_number(cursor: &Cursor, core: &mut Core) {
    if core.count.is_none() {
        core.count = cursor.entry(0).and_then(|entry| entry.number);
        core.counted = Some(cursor.text(0).to_owned());
    }
}

/// Reads `everything` and `each other`, which are whole noun phrases.
fn read_quantity(cursor: &mut Cursor, core: &mut Core) -> bool {
    if cursor.is(0, "everything") {
        core.all = true;
        core.nouns.push("object".to_owned());
        cursor.advance();
        return true;
    }
    let reciprocal = cursor.is(0, "each") && cursor.is(1, "other");
    if reciprocal {
        core.nouns.push("each other".to_owned());
        cursor.skip(2);
    }
    reciprocal
}

/// Reads one position, adjective or `and` before the noun; false where the noun starts.
fn read_modifier(cursor: &mut Cursor, core: &mut Core) -> bool {
    let Some(entry) = cursor.entry(0).cloned() else {
        return false;
    };
    let is_modifier = |ahead| cursor.has(ahead, |e| e.is_colour || e.is_adjective || e.position.is_some());
    let is_nominal = |ahead| noun_ahead(cursor, ahead);
    let article = usize::from(cursor.has(1, |e| e.is_determiner));
    let noun_follows = is_nominal(1);
    let two_colours = |ahead| cursor.has(ahead, |e| e.is_colour) && is_nominal(ahead + 1);
    let shares_noun =
        |and| is_modifier(and + 1 + article_after(cursor, and)) && is_nominal(and + 2 + article_after(cursor, and));
    if cursor.is(0, "and") {
        let colours = article == 0 && core.adjectives.last().is_some_and(|word| is_colour(word)) && two_colours(1);
        if colours {
            core.adjectives.push("and".to_owned());
        } else if core.has_modifier() && shares_noun(0) {
            core.shared.push((std::mem::take(&mut core.positions), std::mem::take(&mut core.adjectives)));
        } else {
            return false;
        }
        (0..=if colours { 0 } else { article }).for_each(|_| cursor.advance());
        return true;
    }
    if entry.number.is_some() && noun_follows && core.has_modifier() && !cursor.is(0, "one") {
        read_number(cursor, core);
        cursor.advance();
        return true;
    }
    // The hand of `the left hand corner` adds nothing.
    let is_side = matches!(core.positions.last(), Some(Position::Left | Position::Right));
    if is_side && cursor.is(0, "hand") && cursor.has(1, |e| e.noun.as_ref().is_some_and(|noun| noun.kind.part)) {
        cursor.advance();
        return true;
    }
    // `the glass and the red mug` are a glass and a mug, not two mugs.
    let shares = entry.noun.is_none() && shares_noun(1);
    let and_follows = cursor.is(1, "and") && (shares || (entry.is_colour && two_colours(2)));
    let is_open = cursor.is(0, "open") && core.article && noun_follows;
    if is_open || ((entry.is_colour || entry.is_adjective) && (noun_follows || and_follows || entry.noun.is_none())) {
        core.adjectives.push(cursor.text(0).to_owned());
    } else if let Some(position) = entry.position {
        let position_follows = cursor.has(1, |e| e.position.is_some()) && core.nouns.is_empty();
        if noun_follows || and_follows || position_follows {
            core.positions.push(position);
        } else if !core.positions.is_empty() && core.adjectives.is_empty() {
            // `the bottom right of the table`: two positions name a region, as a corner does.
            core.nouns.push(position.primitive().to_owned());
            core.kind = lexicon::noun("corner").unwrap_or_default();
            cursor.advance();
            return false;
        } else if core.has_modifier() {
            return false;
        } else {
            core.spot = Some(position);
            cursor.advance();
            return false;
        }
    } else {
        return false;
    }
    cursor.advance();
    true
}

/// Whether the words from there on lead to a noun over modifiers only; `glass right of the plate` does not past `glass`.
fn noun_ahead(cursor: &Cursor, from: usize) -> bool {
    let is_colour = |ahead: usize| cursor.has(ahead, |e| e.is_colour);
    let is_modifier = |e: &Entry| e.noun.is_none() && (e.is_colour || e.is_adjective || e.position.is_some());
    let mut ahead = from;
    while cursor.has(ahead, is_modifier)
        || (cursor.is(ahead, "and") && ahead > from && is_colour(ahead - 1) && is_colour(ahead + 1))
    {
        ahead += 1;
    }
    cursor.has(ahead, |e| e.noun.is_some()) || matches!(cursor.text(ahead), "one" | "ones")
}

fn article_after(cursor: &Cursor, and: usize) -> usize {
    usize::from(cursor.has(and + 1, |entry| entry.is_determiner))
}

fn is_colour(word: &str) -> bool {
    super::lexicon::entry(word).is_colour
}

/// Reads one noun of a compound; false after the last.
fn read_noun(cursor: &mut Cursor, core: &mut Core) -> bool {
    let in_compound = !core.nouns.is_empty();
    // `two cups in the box and one on the table`
    let stands_alone = cursor.is(0, "one") && cursor.preposition_at(1).is_some();
    if !in_compound && matches!(cursor.text(0), "one" | "ones") && (core.article || core.has_modifier() || stands_alone)
    {
        core.plural = cursor.is(0, "ones").then(|| "ones".to_owned());
        core.nouns.push("one".to_owned());
        cursor.advance();
        return false;
    }
    let Some(entry) = cursor.entry(0).cloned() else {
        return false;
    };
    let is_place = cursor.preposition().is_some_and(|(_, length)| length > 1);
    if in_compound && (is_place || manner_length(cursor) > 0 || cursor.is_posture(0)) {
        return false;
    }
    if joins_names(cursor, in_compound) {
        if let (Some(surface), Some(last)) = (core.plural.take(), core.nouns.last_mut()) {
            *last = surface;
        }
        core.nouns.push(cursor.text(0).to_owned());
        cursor.advance();
        return true;
    }
    let noun = match entry.noun {
        None if !in_compound || continues_name(cursor, &entry) => open_noun(cursor, core, &entry),
        noun => noun,
    };
    if let Some(noun) = noun {
        // A plural inside a compound keeps its form (`cookies box`); only the head is counted.
        if let (Some(surface), Some(last)) = (core.plural.take(), core.nouns.last_mut()) {
            *last = surface;
        }
        core.plural = noun.is_plural.then(|| cursor.text(0).to_owned());
        core.kind = noun.kind;
        core.nouns.push(noun.singular);
        cursor.advance();
        return true;
    }
    let Some(position) = entry.position.filter(|_| in_compound && core.whole.is_none()) else {
        return false;
    };
    let names_part = cursor.has(1, |e| e.noun.as_ref().is_some_and(|noun| noun.kind.part)) && !cursor.is(1, "side");
    let names_spot = matches!(position, Position::Middle | Position::Center)
        && !cursor.is(1, "of")
        && !cursor.has(1, |e| e.is_nominal());
    if !names_part && !names_spot {
        return false;
    }
    let span = core.span;
    let owner = std::mem::replace(core, Core::new(span));
    core.whole = Some(Box::new(owner.finish()));
    cursor.advance();
    if names_spot {
        core.spot = Some(position);
    } else {
        core.positions.push(position);
    }
    names_part
}

/// Whether the next word is `or` between two names, or a number at the end of one (`connect four`).
fn joins_names(cursor: &Cursor, in_compound: bool) -> bool {
    let is_last = cursor.ends(1) || cursor.preposition_at(1).is_some();
    let is_step = cursor.is_stop(1) && cursor.starts_clause(2);
    let numbered = cursor.has(0, |entry| entry.number.is_some()) && !cursor.is(0, "one") && is_last && !is_step;
    // `grape scented cup`: an adjective inside a name.
    let described = cursor.has(0, |entry| entry.is_adjective && entry.noun.is_none() && !entry.is_adverb);
    let labelled = cursor.is(0, "a") && (cursor.ends(1) || cursor.preposition_at(1).is_some());
    in_compound && (labelled || ((cursor.is(0, "or") || described) && noun_ahead(cursor, 1)) || numbered)
}

/// Whether an action after a noun names a thing with it: `trail mix`, before a place.
fn continues_name(cursor: &Cursor, entry: &Entry) -> bool {
    let is_place = cursor.preposition_at(1).is_some_and(|(_, length)| cursor.starts_noun(1 + length));
    entry.action.is_some() && !entry.is_substantive() && is_place
}

/// A word that is no noun in the lexicon and stands where only a noun can: `from the stack`, `a turn`.
fn open_noun(cursor: &Cursor, core: &Core, entry: &Entry) -> Option<NounEntry> {
    let asked_for = core.article || core.all || core.count.is_some() || core.has_modifier() || !core.nouns.is_empty();
    let possible = entry.is_verb && entry.position.is_none() && !entry.is_adverb;
    (asked_for && possible).then(|| NounEntry {
        kind: lexicon::noun(cursor.text(0)).unwrap_or_default(),
        singular: cursor.text(0).to_owned(),
        is_plural: false,
    })
}
