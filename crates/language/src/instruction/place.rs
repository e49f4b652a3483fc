//! Prepositional phrases, and the choice of which noun each one belongs to.
//!
//! A verb of placing takes one of them as its target. Of `put the butter at the back in the top drawer`, the last one
//! is the target and those before it mark the object; a bare position after the target marks the target's landmark
//! (`stack the bowl at the front on the bowl in the middle`); a source (`from the shelf`) always marks the object. A
//! pronoun cannot be marked, so that in `place it on the plate next to the ramekin` the first one is the target.
//! Otherwise a phrase marks the nearest noun before it.

use super::cursor::Cursor;
use super::error::InstructionError;
use super::lexicon::{self, Kind, Preposition};
use super::phrase::{Landmark, landmark, spot_of, things};
use super::tree::{Noun, Phrase, Place, Position, Relation, Verb};
use super::verbs::FILLERS;
use crate::diagnostic::Span;

/// A place with how it was said.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) place: Place,
    pub(super) preposition: Option<Preposition>,
    pub(super) is_source: bool,
    pub(super) span: Span,
}

/// Reads all prepositional phrases that follow. `pushed` tells that the thing stays on its surface.
pub(super) fn marks(cursor: &mut Cursor, pushed: bool) -> Result<Vec<Mark>, InstructionError> {
    let mut marks = Vec::new();
    loop {
        fillers(cursor);
        let start = cursor.at();
        // A comma may set off another place, unless that place leads to the next clause.
        let is_set_off =
            cursor.is_stop(0) && cursor.preposition_at(1).is_some_and(|(_, length)| cursor.starts_noun(1 + length));
        if is_set_off {
            cursor.advance();
        }
        let describes = describes(cursor);
        match mark(cursor, pushed)? {
            Some(_) if is_set_off && (cursor.starts_clause(0) || cursor.starts_clause(1)) => {
                cursor.back_to(start);
                return Ok(marks);
            }
            Some(mut mark) if describes => {
                match marks.last_mut().and_then(|last: &mut Mark| landmark_of(&mut last.place)) {
                    Some(Noun::Phrase(phrase)) => phrase.places.push(mark.place),
                    _ => {
                        mark.is_source = true;
                        marks.push(mark);
                    }
                }
            }
            Some(mark) => marks.push(mark),
            None => {
                cursor.back_to(start);
                return Ok(marks);
            }
        }
    }
}

/// Whether the next place tells which thing is meant and is nowhere to go: `that is on the plate`, `hidden under the
/// towel`, `closest to the sink`.
fn describes(cursor: &Cursor) -> bool {
    let is_clause = matches!(cursor.text(0), "that" | "which") && matches!(cursor.text(1), "is" | "are");
    let is_superlative = matches!(cursor.text(0), "closest" | "nearest" | "furthest" | "farthest");
    is_clause || cursor.is_posture(0) || (is_superlative && cursor.preposition().is_some())
}

/// Reads past adverbs and phrases such as `all the way`, where more of the clause follows.
fn fillers(cursor: &mut Cursor) {
    loop {
        let filler = FILLERS.iter().find(|words| cursor.are(0, words)).map_or(0, |words| words.len());
        let exactly = matches!(cursor.text(0), "right" | "just" | "directly")
            && cursor.preposition_at(1).is_some_and(|(preposition, length)| {
                use Preposition::{BackOf, NextTo, OnTopOf, Under};
                matches!(preposition, BackOf | NextTo | OnTopOf | Under) && cursor.starts_noun(1 + length)
            });
        // `move it over to the sink`
        let over = cursor.is(0, "over") && cursor.is(1, "to");
        let adverb = usize::from(cursor.has(0, |entry| entry.is_adverb) && !cursor.ends(1));
        let goes_on = |length: usize| {
            cursor.preposition_at(length).is_some() || cursor.has(length, |entry| entry.position.is_some())
        };
        match filler {
            0 if exactly || over || (adverb == 1 && goes_on(1)) => cursor.advance(),
            0 => return,
            length => cursor.skip(length),
        }
    }
}

/// Whether `by` says what to hold a thing by: `pick up the can by its handle`.
pub(super) fn is_grip(cursor: &Cursor) -> bool {
    let article = usize::from(cursor.has(1, |entry| entry.is_determiner) || matches!(cursor.text(1), "its" | "their"));
    let is_part = |ahead: usize| cursor.has(ahead, |e| e.noun.as_ref().is_some_and(|noun| noun.kind.part));
    let owned = matches!(cursor.text(1), "its" | "their");
    cursor.is(0, "by") && (owned || is_part(1 + article) || is_part(2 + article))
}

/// Takes the target of `verb` out of `marks` and gives the rest to the nouns they belong to.
pub(super) fn target(
    cursor: &Cursor,
    verb: Verb,
    object: &mut Noun,
    mut marks: Vec<Mark>,
) -> Result<Option<Place>, InstructionError> {
    let fits = |mark: &Mark| match (&mark.place, verb) {
        _ if mark.is_source => false,
        (Place::Position(_), _) => false,
        (Place::Relative(relation, _) | Place::Implied(relation, _), Verb::Stack) => {
            let nests = *relation == Relation::In && mark.preposition.is_some_and(Preposition::is_directional);
            nests || matches!(relation, Relation::On | Relation::OnTopOf)
        }
        (Place::Between(..) | Place::Other(..), Verb::Stack) => false,
        _ => true,
    };
    // `to`, `into` and `onto` always say where something goes; what follows says where that is.
    let inward = |mark: &Mark| fits(mark) && mark.preposition.is_some_and(Preposition::is_directional);
    let upon = |mark: &Mark| match &mark.place {
        Place::Relative(relation, _) | Place::Implied(relation, _) => *relation != Relation::In,
        _ => false,
    };
    let relative = match object {
        Noun::Pronoun(..) => marks.iter().position(fits),
        Noun::Phrase(_) if verb == Verb::Stack => {
            marks.iter().rposition(|mark| fits(mark) && upon(mark)).or_else(|| marks.iter().rposition(fits))
        }
        Noun::Phrase(_) => marks.iter().rposition(inward).or_else(|| marks.iter().rposition(fits)),
    };
    let bare = |mark: &Mark| verb != Verb::Stack && !mark.is_source && matches!(mark.place, Place::Position(_));
    let Some(at) = relative.or_else(|| marks.iter().rposition(bare)) else {
        attach(cursor, Some(object), marks)?;
        return Ok(None);
    };
    let (sources, after): (Vec<_>, Vec<_>) = marks.drain(at + 1..).partition(|mark| mark.is_source);
    let Some(mut target) = marks.pop() else { return Ok(None) };
    marks.extend(sources);
    attach(cursor, Some(object), marks)?;
    attach(cursor, landmark_of(&mut target.place), after)?;
    Ok(Some(target.place))
}

/// Gives each mark to the nearest noun before it.
pub(super) fn attach(cursor: &Cursor, host: Option<&mut Noun>, marks: Vec<Mark>) -> Result<(), InstructionError> {
    let Some(first) = marks.first().map(|mark| mark.span) else {
        return Ok(());
    };
    let leftover = |span: Span| InstructionError::Leftover { words: cursor.words_in(span), span };
    // From the right, so that a landmark is complete before it becomes the mark of the noun on its left.
    let mut pending: Vec<(Place, Span)> = Vec::new();
    for Mark { mut place, span, .. } in marks.into_iter().rev() {
        if let Some(landmark) = landmark_of(&mut place) {
            match landmark {
                Noun::Phrase(phrase) => phrase.places.extend(pending.drain(..).rev().map(|(place, _)| place)),
                Noun::Pronoun(..) => {
                    if let Some((_, span)) = pending.last() {
                        return Err(leftover(*span));
                    }
                }
            }
        }
        pending.push((place, span));
    }
    match host {
        Some(Noun::Phrase(phrase)) => phrase.places.extend(pending.into_iter().rev().map(|(place, _)| place)),
        Some(Noun::Pronoun(..)) | None => return Err(leftover(first)),
    }
    Ok(())
}

pub(super) fn landmark_of(place: &mut Place) -> Option<&mut Noun> {
    match place {
        Place::Relative(_, noun) | Place::Between(_, noun) | Place::Other(_, noun) => Some(noun),
        Place::Position(_) | Place::Implied(..) => None,
    }
}

fn mark(cursor: &mut Cursor, pushed: bool) -> Result<Option<Mark>, InstructionError> {
    let start = cursor.at();
    if matches!(cursor.text(0), "that" | "which") && matches!(cursor.text(1), "is" | "are") {
        cursor.skip(2);
    }
    if cursor.is_posture(0) {
        cursor.advance();
    }
    let found = bare_position(cursor)?.map(|place| (place, None, false));
    let found = if found.is_some() { found } else { prepositional(cursor, pushed)? };
    if found.is_none() {
        cursor.back_to(start);
    }
    let span = cursor.span_from(start);
    Ok(found.map(|(place, preposition, is_source)| Mark { place, preposition, is_source, span }))
}

/// `left`, `left of the plate`; not the `back` of `put it back in the drawer`, which is skipped.
fn bare_position(cursor: &mut Cursor) -> Result<Option<Place>, InstructionError> {
    let Some(position) = cursor.entry(0).and_then(|entry| entry.position).filter(|_| cursor.preposition().is_none())
    else {
        return Ok(None);
    };
    if cursor.is(1, "of") && cursor.starts_noun(2) {
        let after = cursor.text(0).to_owned();
        let spot = landmark(cursor, &after)?;
        return Ok(Some(place_at(Preposition::To, spot, false)));
    }
    if cursor.has(1, |entry| entry.is_nominal() && entry.number.is_none()) {
        return Ok(None);
    }
    let word_is_back = cursor.is(0, "back");
    cursor.advance();
    let skipped = word_is_back && cursor.preposition().is_some_and(|(_, length)| cursor.starts_noun(length));
    Ok((!skipped).then_some(Place::Position(position)))
}

type Found = (Place, Option<Preposition>, bool);

fn prepositional(cursor: &mut Cursor, pushed: bool) -> Result<Option<Found>, InstructionError> {
    let Some((mut preposition, mut length)) = cursor.preposition() else {
        return Ok(None);
    };
    let is_source = preposition.is_source();
    let by_means = cursor.is(0, "by") && (lexicon::gerund(cursor.text(1)).is_some() || is_grip(cursor));
    if by_means || (preposition == Preposition::To && cursor.starts_clause(length)) {
        return Ok(None);
    }
    let inner = cursor.preposition_at(length).is_some_and(|(_, words)| cursor.starts_noun(length + words));
    if (is_source && !cursor.starts_noun(length)) || (preposition == Preposition::To && inner) {
        // `from under the table` says more than `from`, and `to above the cloth` more than `to`.
        cursor.skip(length);
        match cursor.preposition() {
            Some(inner) => (preposition, length) = inner,
            None => return Ok(None),
        }
    }
    let start = cursor.at();
    let after = (0..length).map(|ahead| cursor.text(ahead)).collect::<Vec<_>>().join(" ");
    if let Some((relation, words)) = implied(cursor, preposition, length) {
        (0..words).for_each(|_| cursor.advance());
        let span = cursor.span_from(start);
        return Ok(Some((Place::Implied(relation, span), Some(preposition), is_source)));
    }
    if !cursor.starts_noun(length) {
        return Ok(None);
    }
    (0..length).for_each(|_| cursor.advance());
    let place = match preposition {
        Preposition::Between => between(cursor)?,
        Preposition::Other(name) => match landmark(cursor, &after)? {
            Landmark::Thing((noun, _)) => Place::Other(name.to_owned(), Box::new(noun)),
            spot @ Landmark::Spot { .. } => place_at(Preposition::NextTo, spot, pushed),
        },
        _ => place_at(preposition, landmark(cursor, &after)?, pushed),
    };
    Ok(Some((place, Some(preposition), is_source)))
}

/// `inside`, `underneath`, `on top`, `in there`, with nothing after them.
fn implied(cursor: &Cursor, preposition: Preposition, length: usize) -> Option<(Relation, usize)> {
    if cursor.is(length, "there") {
        return Some((preposition.relation(Kind::default(), false), length + 1));
    }
    if cursor.is(0, "on") && cursor.is(1, "top") {
        let continues = cursor.is(2, "of") || cursor.has(2, |entry| entry.is_nominal());
        return (!continues).then_some((Relation::OnTopOf, 2));
    }
    let stands_alone = matches!(cursor.text(0), "inside" | "underneath" | "beneath" | "within");
    (stands_alone && !cursor.starts_noun(length) && !cursor.is(length, "of"))
        .then(|| (preposition.relation(Kind::default(), false), length))
}

fn between(cursor: &mut Cursor) -> Result<Place, InstructionError> {
    let mut ends = things(cursor, "between")?.into_iter().map(|(noun, _)| noun);
    let Some(first) = ends.next() else {
        return Ok(Place::Position(Position::Middle));
    };
    let second = match (ends.next(), &first) {
        (Some(second), _) => second,
        (None, Noun::Phrase(Phrase { plural: Some(_), .. }) | Noun::Pronoun(..)) if !cursor.is(0, "and") => {
            first.clone()
        }
        _ => {
            cursor.eat("and");
            let mut second = things(cursor, "between")?;
            second.swap_remove(0).0
        }
    };
    Ok(Place::Between(Box::new(first), Box::new(second)))
}

fn place_at(preposition: Preposition, landmark: Landmark, pushed: bool) -> Place {
    let (position, whole, article, span) = match landmark {
        Landmark::Thing((Noun::Phrase(phrase), kind)) => match side(&phrase, preposition) {
            Some(position) => return beside(position, phrase),
            None => {
                let relation = preposition.relation(kind, pushed);
                return Place::Relative(relation, Box::new(Noun::Phrase(phrase)));
            }
        },
        Landmark::Thing((noun, kind)) => {
            return Place::Relative(preposition.relation(kind, pushed), Box::new(noun));
        }
        Landmark::Spot { position, whole, article, span } => (position, whole, article, span),
    };
    let Some((whole, kind)) = whole else {
        return Place::Position(position);
    };
    let goes_beside = position.relation().filter(|_| preposition == Preposition::To);
    let in_front = preposition == Preposition::In && !article;
    if kind.workspace && position != Position::Top && goes_beside.is_none() && !in_front {
        return Place::Position(position);
    }
    let within = if kind.holds && preposition != Preposition::Onto { Relation::In } else { Relation::On };
    let relation = match preposition {
        Preposition::In if article && kind.holds => None,
        Preposition::In
        | Preposition::On
        | Preposition::Onto
        | Preposition::At
        | Preposition::To
        | Preposition::From => position.relation(),
        _ => None,
    };
    match (relation, preposition) {
        (Some(relation), _) => Place::Relative(relation, Box::new(whole)),
        (None, Preposition::Under | Preposition::NextTo | Preposition::OnTopOf | Preposition::BackOf) => {
            Place::Relative(preposition.relation(kind, pushed), Box::new(spot_of(position, whole, span)))
        }
        (None, _) => Place::Relative(within, Box::new(spot_of(position, whole, span))),
    }
}

/// The position in `on the left side`, `to the right-hand side of the plate`.
fn side(phrase: &Phrase, preposition: Preposition) -> Option<Position> {
    let plain = phrase.nouns == ["side"] && phrase.adjectives.iter().all(|word| word == "hand");
    match phrase.positions[..] {
        [position] if plain && (preposition != Preposition::In || phrase.whole.is_none()) => Some(position),
        _ => None,
    }
}

fn beside(position: Position, phrase: Phrase) -> Place {
    match (position.relation(), phrase.whole.clone()) {
        (_, Some(whole)) if whole.kind().workspace => Place::Position(position),
        (Some(relation), Some(whole)) => Place::Relative(relation, whole),
        (None, Some(_)) => Place::Relative(Relation::On, Box::new(Noun::Phrase(phrase))),
        (_, None) => Place::Position(position),
    }
}
