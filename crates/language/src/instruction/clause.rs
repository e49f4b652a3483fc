//! Clauses: a verb, what it acts on, where to and what with.
//!
//! ```text
//! clause  := lead? adverb* verb ("and" verb)* objects times? adverb* means?
//! lead    := mark+ | "use" thing "to" | ("with" | "using") thing
//! objects := thing tail (("," | "and") thing tail)*
//! tail    := (mark | particle | manner | "with" thing)*
//! means   := "by" gerund objects
//! ```
//! `and` joins clauses before a verb and objects before a noun. In `put the mug on the plate and the book on the shelf`
//! each object has its own target, so the verb is understood twice; `both` forbids that reading.

use super::cursor::Cursor;
use super::error::InstructionError;
use super::grammar::skip_clause;
use super::head::{Head, course, head, is_pushed, manners, resultative, trailing_particle};
use super::lexicon::{self, Preposition};
use super::negation::exception;
use super::phrase::things;
use super::place::{Mark, attach, landmark_of, marks};
use super::target::{acting, covers, placing, reach, robot_moves, with_destination};
use super::tool::{lead, share_tool, with};
use super::tree::{Clause, Noun, Place, Pronoun, Relation, Tool, Verb};
use super::verbs::{Manner, OBJECTLESS, RECIPROCAL};
use crate::diagnostic::Span;

/// Reads one clause; several come of coordinated verbs or targets. `before` are the clauses so far: after one, the object
/// may go unsaid (`pick up the mug and place on the plate`).
pub(super) fn clause(cursor: &mut Cursor, before: &[Clause]) -> Result<Vec<Clause>, InstructionError> {
    let start = cursor.at();
    let lead = lead(cursor)?;
    let follows = !before.is_empty();
    let mut heads = vec![first_head(cursor, follows)?];
    while cursor.is(0, "and") && cursor.starts_clause(1) && heads.last().is_some_and(|head| head.direction.is_none()) {
        cursor.advance();
        heads.push(head(cursor, follows)?);
    }
    let Some(last) = heads.pop() else {
        return Ok(Vec::new());
    };
    let aside = cursor.has(0, |entry| entry.position.is_some()) && cursor.ends(1);
    let goes = aside || (!cursor.starts_noun(0) && cursor.preposition().is_some());
    let moves = matches!(last.word.as_str(), "move" | "return") && last.direction.is_none() && goes;
    let mut clauses =
        if last.verb == Verb::Reach || moves { vec![reach(cursor, &last)?] } else { transitive(cursor, last, before)? };
    let times = times(cursor);
    let span = cursor.span_from(start);
    for clause in &mut clauses {
        clause.times = clause.times.max(times);
        clause.span = span;
    }
    if let Some(first) = clauses.first_mut() {
        fronted(cursor, first, lead.marks)?;
    }
    // `grasp and lift the mug`: the earlier verbs act on the same objects, and only the last goes somewhere.
    let mut all = means(cursor, before)?;
    for mut head in heads {
        let has_objects = clauses.iter().all(|clause| !clause.objects.is_empty());
        if head.verb == Verb::Reach || (head.verb != Verb::Act && !has_objects) {
            return Err(InstructionError::NoObject { after: head.word, found: "`and`".to_owned(), span });
        }
        if head.verb.takes_target() {
            head.act();
        }
        let earlier = |clause: &Clause| Clause {
            verb: head.verb,
            name: head.name.clone(),
            target: None,
            sources: Vec::new(),
            ..clause.clone()
        };
        all.extend(clauses.iter().map(earlier));
    }
    all.extend(clauses);
    share_tool(&mut all, lead.tool, before);
    Ok(all)
}

/// The verb; an instruction may start with a form of it (`grasping the handle, lift it`).
fn first_head(cursor: &mut Cursor, follows: bool) -> Result<Head, InstructionError> {
    let is_verb = cursor.has(0, |entry| entry.is_verb);
    match lexicon::gerund(cursor.text(0)).filter(|_| !is_verb && !follows) {
        Some(verb) => Ok(from_gerund(cursor, &verb)),
        None => head(cursor, follows),
    }
}

fn from_gerund(cursor: &mut Cursor, verb: &str) -> Head {
    let entry = lexicon::entry(verb);
    let form = super::verbs::VERBS.iter().find(|(word, particle, _)| *word == verb && particle.is_none());
    let particle = cursor.is(1, "up") && form.is_some_and(|(word, _, _)| matches!(*word, "pick" | "lift"));
    cursor.skip(1 + usize::from(particle));
    let manner = entry.action.map_or(Manner::InPlace, |(_, manner)| manner);
    Head::plain(verb.to_owned(), form.map_or(Verb::Act, |(_, _, verb)| *verb), manner)
}

/// `by rotating the lock`: what is done first.
fn means(cursor: &mut Cursor, before: &[Clause]) -> Result<Vec<Clause>, InstructionError> {
    let Some(verb) = lexicon::gerund(cursor.text(1)).filter(|_| cursor.is(0, "by")) else {
        return Ok(Vec::new());
    };
    cursor.advance();
    let head = from_gerund(cursor, &verb);
    transitive(cursor, head, before)
}

/// Reads past `the positions of`, which are what is swapped in any case.
fn places_of(cursor: &mut Cursor) {
    let article = usize::from(cursor.is(0, "the"));
    let is_place =
        matches!(cursor.text(article), "position" | "positions" | "place" | "places" | "location" | "locations");
    if is_place && cursor.is(article + 1, "of") && cursor.starts_noun(article + 2) {
        cursor.skip(article + 2);
    }
}

/// Objects that share a target, or objects of a verb that needs none.
pub(super) struct Segment {
    pub(super) objects: Vec<Noun>,
    pub(super) marks: Vec<Mark>,
    pub(super) span: Span,
}

fn transitive(cursor: &mut Cursor, mut head: Head, before: &[Clause]) -> Result<Vec<Clause>, InstructionError> {
    let announced = cursor.is(0, "both");
    let mut segments: Vec<Segment> = Vec::new();
    let mut tool = None;
    let recipient = recipient(cursor);
    if lexicon::lists(RECIPROCAL, &head.word) {
        places_of(cursor);
    }
    loop {
        let start = cursor.at();
        if head.manner == Manner::Alone && head.verb == Verb::Act && segments.is_empty() {
            bare_words(cursor, &mut head);
        }
        let found = match objects(cursor, &head, before, segments.is_empty()) {
            Err(_) if !segments.is_empty() => {
                // What comes before is understood without it: `…, one with each arm`.
                cursor.back_to(start);
                skip_clause(cursor);
                let span = cursor.span_from(start);
                cursor.problem(InstructionError::Leftover { words: cursor.words_in(span), span });
                break;
            }
            found => found?,
        };
        let Some(mut objects) = found else {
            // `write with the pen`
            with(cursor, &head, &mut Vec::new(), &mut [], &mut tool)?;
            let span = cursor.span_from(start.saturating_sub(1));
            return Ok(vec![Clause { tool, ..alone(head, span) }]);
        };
        let mut marks = tail(cursor, &mut head, &mut objects, &mut tool)?;
        let span = cursor.span_from(start);
        match segments.last_mut() {
            Some(open) if open.marks.is_empty() || announced => {
                if let Some(previous) = open.objects.last_mut() {
                    attach(cursor, Some(previous), std::mem::take(&mut open.marks))?;
                }
                open.objects.append(&mut objects);
                open.marks.append(&mut marks);
                open.span = open.span.to(span);
            }
            _ => segments.push(Segment { objects, marks, span }),
        }
        let end = cursor.at();
        if !next_object(cursor) {
            break;
        }
        if head.times > 1 {
            // `press the left button twice, then the right one`: the number is of the first alone.
            cursor.back_to(end);
            break;
        }
    }
    if let Some(result) = resultative(cursor.text(0)).filter(|_| is_pushed(&head) && !cursor.starts_noun(1)) {
        head.verb = result;
        cursor.advance();
    }
    if let (Some(mark), Some(last)) = (recipient, segments.last_mut()) {
        last.marks.push(mark);
    }
    let moved = head.verb.takes_target() || (head.verb == Verb::Act && head.manner == Manner::Moving);
    if moved && !announced {
        share_landmark(&mut segments);
    }
    segments.iter_mut().for_each(covers);
    with_destination(&mut head, &segments);
    if head.is_qualified {
        if head.verb.takes_target() {
            head.manner = Manner::Moving;
        }
        head.act();
    }
    let mut clauses = if head.verb == Verb::Act {
        acting(cursor, &head, segments)?
    } else if head.verb.takes_target() {
        let mut placed = Vec::new();
        for segment in segments {
            placed.push(placing(cursor, &head, segment, before)?);
        }
        placed
    } else {
        let mut objects = Vec::new();
        let mut sources = Vec::new();
        let span = segments.first().map_or_else(|| cursor.span(), |segment| segment.span);
        for mut segment in segments {
            sources.extend(pronoun_sources(&segment.objects, &mut segment.marks));
            attach(cursor, segment.objects.last_mut(), segment.marks)?;
            objects.append(&mut segment.objects);
        }
        vec![Clause { objects, sources, ..alone(head.clone(), span) }]
    };
    robot_moves(&head, &mut clauses);
    for clause in &mut clauses {
        clause.tool.clone_from(&tool);
    }
    Ok(clauses)
}

/// `in front of the pot and spoon`: an object without a place after one with a place belongs to that place.
fn share_landmark(segments: &mut Vec<Segment>) {
    let [.., before, last] = &mut segments[..] else { return };
    let [Noun::Phrase(more)] = &last.objects[..] else { return };
    let Some(Noun::Phrase(landmark)) = before.marks.last_mut().and_then(|mark| landmark_of(&mut mark.place)) else {
        return;
    };
    if last.marks.is_empty() && more.count.is_none() {
        landmark.also.push(Noun::Phrase(more.clone()));
        segments.pop();
    }
}

/// Reads the `me` of `give me the apple` as where the apple goes.
fn recipient(cursor: &mut Cursor) -> Option<Mark> {
    let named = matches!(cursor.text(0), "me" | "us" | "him" | "her") && cursor.has(1, |entry| entry.is_determiner);
    if !named {
        return None;
    }
    let span = cursor.span();
    let (noun, _) = things(cursor, "to").ok()?.swap_remove(0);
    let place = Place::Relative(Relation::NextTo, Box::new(noun));
    Some(Mark { place, preposition: Some(Preposition::To), is_source: false, span })
}

/// The objects that come next; none where the verb needs none and there is none.
fn objects(
    cursor: &mut Cursor,
    head: &Head,
    before: &[Clause],
    is_first: bool,
) -> Result<Option<Vec<Noun>>, InstructionError> {
    let it = |cursor: &Cursor| Noun::Pronoun(Pronoun::It, cursor.span_from(cursor.at().saturating_sub(1)));
    if is_first && !cursor.starts_noun(0) {
        let moved = head.verb == Verb::Act && head.manner == Manner::Moving;
        let placed = (head.verb.takes_target() || moved) && cursor.preposition().is_some();
        let ends = cursor.ends(0) && !head.verb.takes_target();
        let needs_object = head.manner != Manner::Alone;
        let objectless = lexicon::lists(OBJECTLESS, &head.word) && head.verb == Verb::Act;
        if !before.is_empty() && needs_object && !objectless && (placed || (ends && head.verb != Verb::TurnOn)) {
            return Ok(Some(vec![it(cursor)]));
        }
        if head.verb == Verb::Act && (cursor.ends(0) || (head.manner == Manner::Alone && !cursor.starts_noun(0))) {
            return Ok(None);
        }
    }
    let found = things(cursor, &head.word)?;
    Ok(Some(found.into_iter().map(|(noun, _)| noun).collect()))
}

/// Reads `wave hi` and `trot forward` as one name, up to an object that an article announces.
fn bare_words(cursor: &mut Cursor, head: &mut Head) {
    let names = |cursor: &Cursor| {
        let asked = cursor.has(0, |entry| entry.is_determiner || entry.number.is_some());
        cursor.starts_noun(0) && !asked && !matches!(cursor.text(0), "it" | "them" | "its" | "their" | "all" | "both")
    };
    while !cursor.is_at_end() && names(cursor) {
        let word = cursor.text(0).to_owned();
        head.qualify(&word);
        cursor.advance();
    }
}

/// A clause that is only a verb.
pub(super) fn alone(head: Head, span: Span) -> Clause {
    Clause {
        verb: head.verb,
        name: head.name,
        objects: Vec::new(),
        target: None,
        sources: Vec::new(),
        tool: None,
        times: head.times,
        span,
    }
}

/// Reads what follows an object: places, the particle of `pick the bowl up from the plate`, how and what with.
fn tail(
    cursor: &mut Cursor,
    head: &mut Head,
    objects: &mut Vec<Noun>,
    tool: &mut Option<Tool>,
) -> Result<Vec<Mark>, InstructionError> {
    let pushed = matches!(head.verb, Verb::Push | Verb::Pull);
    let mut found = Vec::new();
    loop {
        if manners(cursor, head) || course(cursor, head) || exception(cursor, objects, &mut found)? {
            continue;
        }
        let counted = cursor.at();
        head.times = head.times.max(times(cursor));
        if cursor.at() > counted {
            continue;
        }
        let start = cursor.at();
        if head.follows && head.verb.takes_target() && cursor.is(0, "in") && cursor.ends(1) {
            // `open the oven, then slide the tray in`: the thing that was opened goes unsaid.
            let span = cursor.span();
            let place = Place::Implied(Relation::In, span);
            found.push(Mark { place, preposition: Some(Preposition::In), is_source: false, span });
            cursor.advance();
        }
        found.extend(marks(cursor, pushed)?);
        if trailing_particle(cursor, head) || cursor.at() > start {
            continue;
        }
        if !with(cursor, head, objects, &mut found, tool)? {
            return Ok(found);
        }
    }
}

/// Takes the sources out of `marks` where the object is a pronoun, which has no description to add them to.
pub(super) fn pronoun_sources(objects: &[Noun], marks: &mut Vec<Mark>) -> Vec<Place> {
    if !matches!(objects.last(), Some(Noun::Pronoun(..))) {
        return Vec::new();
    }
    let (sources, rest) = std::mem::take(marks).into_iter().partition(|mark| mark.is_source);
    *marks = rest;
    let sources: Vec<Mark> = sources;
    sources.into_iter().map(|mark| mark.place).collect()
}

/// Reads past the `,` or `and` before another object; leaves one before a verb alone.
fn next_object(cursor: &mut Cursor) -> bool {
    let comma = usize::from(cursor.is_stop(0));
    let and = comma + usize::from(cursor.is(comma, "and"));
    let skip = and + usize::from(and > 0 && cursor.is(and, "then"));
    let is_place = cursor.preposition_at(skip).is_some_and(|(_, length)| cursor.starts_noun(skip + length));
    let is_place = is_place || cursor.leads_with_tool(skip);
    let found = skip > 0
        && !is_place
        && cursor.starts_noun(skip)
        && !cursor.starts_clause(skip)
        && !cursor.is_unknown_verb(skip);
    let named = |cursor: &Cursor| !lexicon::entry(cursor.text(skip)).is_known() && comma == 1;
    // After a comma, an unknown form of a verb starts a remark: `…, leaving the others alone`.
    if !found || (named(cursor) && cursor.text(skip).ends_with("ing")) {
        return false;
    }
    cursor.skip(skip);
    true
}

/// Gives the marks before the verb to the first object.
fn fronted(cursor: &Cursor, clause: &mut Clause, marks: Vec<Mark>) -> Result<(), InstructionError> {
    match clause.objects.first_mut() {
        Some(object @ Noun::Phrase(_)) => attach(cursor, Some(object), marks),
        _ => {
            clause.sources.extend(marks.into_iter().map(|mark| mark.place));
            Ok(())
        }
    }
}

fn times(cursor: &mut Cursor) -> u32 {
    let number = |ahead: usize| cursor.entry(ahead).and_then(|entry| entry.number);
    let is_times = |ahead: usize| cursor.is(ahead, "times") || cursor.is(ahead, "time");
    let counted = match (number(0), number(1)) {
        (Some(n), _) if is_times(1) => Some((n, 2)),
        // `twenty-five times`.
        (Some(tens), Some(ones)) if is_times(2) && tens >= 20 && tens % 10 == 0 && ones < 10 => Some((tens + ones, 3)),
        _ => None,
    };
    let (times, words) = match (counted, cursor.text(0)) {
        (Some(counted), _) => counted,
        (None, "once") => (1, 1),
        (None, "twice") => (2, 1),
        _ => return 1,
    };
    cursor.skip(words);
    times
}
