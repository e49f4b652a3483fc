//! Clauses: a verb, what it acts on and where to.
//!
//! ```text
//! instruction := clause (connective clause)*
//! clause      := adverb* verb ("and" verb)* objects mark* times? adverb*
//! objects     := thing mark* (("," | "and") thing mark*)*
//! ```
//! `and` joins clauses before a verb and objects before a noun. In `put the mug on the plate and the book on the shelf`
//! each object has its own target, so the verb is understood twice; `both` forbids that reading.

use super::cursor::{Cursor, Expected};
use super::error::InstructionError;
use super::lexicon::Preposition;
use super::phrase::things;
use super::place::{Mark, attach, marks, target};
use super::tree::{Clause, Instruction, Noun, Place, Pronoun, Relation, Verb};
use super::vocabulary::VERBS;
use crate::diagnostic::Span;

/// Reads an instruction into its syntax tree.
///
/// # Errors
/// Every unknown word at once, or else the first thing that is missing or left over.
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
    let mut cursor = Cursor::new(text)?;
    let result = instruction(&mut cursor);
    // With an unknown word the structure around it is a guess, so that complaint goes first.
    cursor.unknown_words().map_or(result, Err)
}

fn instruction(cursor: &mut Cursor) -> Result<Instruction, InstructionError> {
    let mut clauses = Vec::new();
    connectives(cursor);
    loop {
        clauses.extend(clause(cursor, !clauses.is_empty())?);
        let joined = connectives(cursor);
        if cursor.is_at_end() && joined != Some("and") {
            return Ok(Instruction { clauses });
        }
        if joined.is_none() && !cursor.has(0, |entry| entry.is_verb) {
            let start = cursor.at();
            while !cursor.is_at_end() {
                cursor.advance();
            }
            let span = cursor.span_from(start);
            return Err(InstructionError::Leftover { words: cursor.words_in(span), span });
        }
    }
}

/// Reads past what stands between clauses and returns the last word of it that needs a clause after it.
fn connectives(cursor: &mut Cursor) -> Option<&'static str> {
    let mut last = None;
    loop {
        if cursor.is(0, "and") {
            last = Some("and");
        } else if cursor.is(0, "then") || cursor.is_stop(0) {
            last = last.or(Some("then"));
        } else if cursor.is(0, "after") && cursor.is(1, "that") {
            cursor.advance();
        } else if !cursor.has(0, |entry| entry.is_adverb) {
            return last;
        }
        cursor.advance();
    }
}

/// A verb as read: the particle of `turn … on` may still be to come.
#[derive(Debug, Clone, Copy)]
struct Head {
    word: &'static str,
    verb: Option<Verb>,
}

/// `follows` tells that a clause came before, so that the object may go unsaid: `pick up the mug and place on the plate`.
fn clause(cursor: &mut Cursor, follows: bool) -> Result<Vec<Clause>, InstructionError> {
    let start = cursor.at();
    let mut heads = vec![head(cursor)?];
    while cursor.is(0, "and") && cursor.has(1, |entry| entry.is_verb) {
        cursor.advance();
        heads.push(head(cursor)?);
    }
    let Some(&last) = heads.last() else {
        return Ok(Vec::new());
    };
    let mut clauses = if last.verb == Some(Verb::Reach) || (last.word == "move" && !cursor.starts_noun(0)) {
        vec![reach(cursor, last)?]
    } else {
        transitive(cursor, last, follows)?
    };
    let times = times(cursor);
    let span = cursor.span_from(start);
    for clause in &mut clauses {
        clause.times = times;
        clause.span = span;
    }
    // `grasp and lift the mug`: the earlier verbs act on the same objects, and only the last goes somewhere.
    let mut all = Vec::new();
    for head in &heads[..heads.len() - 1] {
        let verb = head.verb.filter(|verb| !verb.takes_target() && *verb != Verb::Reach);
        let verb =
            verb.ok_or(InstructionError::NoObject { after: head.word.to_owned(), found: "`and`".to_owned(), span })?;
        all.extend(clauses.iter().map(|clause| Clause { verb, target: None, ..clause.clone() }));
    }
    all.extend(clauses);
    Ok(all)
}

fn head(cursor: &mut Cursor) -> Result<Head, InstructionError> {
    let here = |particle: &Option<&str>| particle.is_none_or(|particle| cursor.is(1, particle));
    let of_word = || VERBS.iter().filter(|(word, _, _)| cursor.is(0, word));
    let Some((word, _, _)) = of_word().next() else {
        cursor.expect(Expected::Verb);
        return Err(InstructionError::NoVerb { found: cursor.found(), span: cursor.span() });
    };
    // The form with a particle wins where the particle is there.
    let form = of_word().filter(|(_, particle, _)| here(particle)).max_by_key(|(_, particle, _)| particle.is_some());
    let head = Head { word, verb: form.map(|(_, _, verb)| *verb) };
    let length = 1 + usize::from(form.is_some_and(|(_, particle, _)| particle.is_some()));
    (0..length).for_each(|_| cursor.advance());
    Ok(head)
}

/// Objects that share a target, or objects of a verb that needs none.
struct Segment {
    objects: Vec<Noun>,
    marks: Vec<Mark>,
    span: Span,
}

fn transitive(cursor: &mut Cursor, head: Head, follows: bool) -> Result<Vec<Clause>, InstructionError> {
    let pushed = matches!(head.verb, Some(Verb::Push | Verb::Pull));
    let announced = cursor.is(0, "both");
    let mut verb = head.verb;
    let start = cursor.at().saturating_sub(1);
    let mut segments: Vec<Segment> = Vec::new();
    loop {
        let start = cursor.at();
        let unsaid = follows && segments.is_empty() && verb.is_some_and(Verb::takes_target) && !cursor.starts_noun(0);
        let mut objects: Vec<Noun> = if unsaid && cursor.preposition().is_some() {
            vec![Noun::Pronoun(Pronoun::It, cursor.span_from(start.saturating_sub(1)))]
        } else {
            things(cursor, head.word)?.into_iter().map(|(noun, _)| noun).collect()
        };
        let mut marks = particles_and_marks(cursor, head, &mut verb, pushed)?;
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
        if !next_object(cursor) {
            break;
        }
    }
    let Some(mut verb) = verb else {
        let found = format!("`{}` without `on` or `off`", head.word);
        return Err(InstructionError::NoVerb { found, span: cursor.span_from(start) });
    };
    verb = resultative(cursor, verb);
    verb = with_destination(head, verb, &segments);
    if verb.takes_target() {
        segments.into_iter().map(|segment| placing(cursor, verb, segment)).collect()
    } else {
        let mut objects = Vec::new();
        let span = segments.first().map_or_else(|| cursor.span(), |segment| segment.span);
        for mut segment in segments {
            attach(cursor, segment.objects.last_mut(), segment.marks)?;
            objects.append(&mut segment.objects);
        }
        Ok(vec![Clause { verb, objects, target: None, times: 1, span }])
    }
}

fn placing(cursor: &Cursor, verb: Verb, segment: Segment) -> Result<Clause, InstructionError> {
    let Segment { mut objects, marks, span } = segment;
    let goal = match objects.last_mut() {
        Some(object) => target(cursor, verb, object, marks)?,
        None => None,
    };
    if let (None, Some((_, length))) = (&goal, cursor.preposition()) {
        let after = (0..length).map(|ahead| cursor.text(ahead)).collect::<Vec<_>>().join(" ");
        return Err(InstructionError::NoObject { after, found: cursor.found_at(length), span: cursor.span() });
    }
    let hint = match verb {
        Verb::Push | Verb::Pull => "add a place such as `to the left` or `to the front of the stove`",
        Verb::Stack => "add what to stack it on, such as `on the plate`",
        _ => "add a place such as `on the plate` or `in the top drawer`",
    };
    let goal = goal.ok_or(InstructionError::NoTarget { verb: verb.primitive(), hint, span })?;
    Ok(Clause { verb, objects, target: Some(goal), times: 1, span })
}

/// Reads marks around the particle of `pick the bowl up from the plate`, which also decides between `turn … on` and
/// `turn … off`.
fn particles_and_marks(
    cursor: &mut Cursor,
    head: Head,
    verb: &mut Option<Verb>,
    pushed: bool,
) -> Result<Vec<Mark>, InstructionError> {
    let mut found = marks(cursor, pushed)?;
    let form = VERBS.iter().find(|(word, particle, form)| {
        *word == head.word && verb.is_none_or(|verb| verb == *form) && particle.is_some_and(|p| cursor.is(0, p))
    });
    let moved = verb.is_some_and(Verb::takes_target) && matches!(cursor.text(0), "down" | "away" | "up");
    if form.is_some() || moved {
        *verb = form.map_or(*verb, |(_, _, form)| Some(*form));
        cursor.advance();
        found.extend(marks(cursor, pushed)?);
    }
    Ok(found)
}

/// Reads past the `,` or `and` before another object; leaves one before a verb alone.
fn next_object(cursor: &mut Cursor) -> bool {
    let comma = usize::from(cursor.is_stop(0));
    let skip = comma + usize::from(cursor.is(comma, "and"));
    let found = skip > 0 && cursor.starts_noun(skip) && !cursor.has(skip, |entry| entry.is_verb);
    if found {
        (0..skip).for_each(|_| cursor.advance());
    }
    found
}

/// `push the drawer shut`, `pull the door open`.
fn resultative(cursor: &mut Cursor, verb: Verb) -> Verb {
    let result = match cursor.text(0) {
        "open" => Verb::Open,
        "closed" | "shut" => Verb::Close,
        _ => return verb,
    };
    if !matches!(verb, Verb::Push | Verb::Pull) || cursor.starts_noun(1) {
        return verb;
    }
    cursor.advance();
    result
}

/// `drop the can in the bin` and `take the mug to the table` are puttings; `drop the can` and `take the mug` are not.
fn with_destination(head: Head, verb: Verb, segments: &[Segment]) -> Verb {
    let Some(last) = segments.last() else { return verb };
    let goes = |mark: &Mark| !mark.is_source && !matches!(mark.place, Place::Position(_));
    let put = match head.word {
        "drop" => last.marks.iter().any(goes),
        "take" | "get" => last.marks.iter().any(|mark| goes(mark) && mark.preposition == Some(Preposition::To)),
        _ => false,
    };
    if put { Verb::Put } else { verb }
}

/// `reach for the mug`, `move to the left of the plate`: the place is all there is. Reaching for a thing means being
/// next to it.
fn reach(cursor: &mut Cursor, head: Head) -> Result<Clause, InstructionError> {
    let start = cursor.at();
    let mut objects = Vec::new();
    let mut found = marks(cursor, true)?;
    if found.is_empty() {
        let (object, _) = things(cursor, head.word)?.swap_remove(0);
        objects.push(object);
        found = marks(cursor, true)?;
    }
    let span = cursor.span_from(start);
    let goal = match objects.pop() {
        Some(mut object) => {
            attach(cursor, Some(&mut object), found)?;
            Place::Relative(Relation::NextTo, Box::new(object))
        }
        None => {
            let rest = found.split_off(1.min(found.len()));
            let Some(mut first) = found.pop() else {
                let hint = "add a place such as `to the left of the plate`";
                return Err(InstructionError::NoTarget { verb: "reach", hint, span });
            };
            if let Place::Relative(_, landmark) = &mut first.place {
                attach(cursor, Some(landmark), rest)?;
            } else {
                attach(cursor, None, rest)?;
            }
            first.place
        }
    };
    Ok(Clause { verb: Verb::Reach, objects, target: Some(goal), times: 1, span })
}

fn times(cursor: &mut Cursor) -> u32 {
    let counted =
        cursor.entry(0).and_then(|entry| entry.number).filter(|_| cursor.is(1, "times") || cursor.is(1, "time"));
    let (times, words) = match (counted, cursor.text(0)) {
        (Some(n), _) => (n, 2),
        (None, "once") => (1, 1),
        (None, "twice") => (2, 1),
        _ => return 1,
    };
    (0..words).for_each(|_| cursor.advance());
    times
}
