//! Where the object of a verb ends up: which place of a clause is its target, and what a verb is when it has none.

use super::clause::{Segment, alone, pronoun_sources};
use super::cursor::Cursor;
use super::error::InstructionError;
use super::head::Head;
use super::lexicon::{self, Preposition};
use super::phrase::things;
use super::place::{Mark, attach, marks, target};
use super::tree::{Clause, Noun, Phrase, Place, Relation, Tool, Verb};
use super::verbs::Manner;

/// A verb with a target, such as `put`. Pushing a button or stacking cups has none and is an action of that name.
pub(super) fn placing(
    cursor: &mut Cursor,
    head: &Head,
    segment: Segment,
    before: &[Clause],
) -> Result<Clause, InstructionError> {
    let Segment { mut objects, mut marks, span } = segment;
    let sources = pronoun_sources(&objects, &mut marks);
    let is_part = objects.last().is_some_and(|object| object.kind().part);
    let slides = matches!(head.verb, Verb::Push | Verb::Pull);
    let stays = |mark: &Mark| {
        slides && (is_part || head.direction.is_some()) && !mark.preposition.is_some_and(Preposition::is_directional)
    };
    let located: Vec<Mark> = {
        // `push the button on the left` says which button, `push it left` where to.
        let goes = |mark: &Mark| matches!(mark.place, Place::Position(_)) && mark.preposition != Some(Preposition::On);
        let keep = marks.iter().take_while(|mark| stays(mark) && !goes(mark)).count();
        marks.drain(..keep).collect()
    };
    attach(cursor, objects.last_mut(), located)?;
    let goal = match objects.last_mut() {
        Some(object) => target(cursor, head.verb, object, marks)?,
        None => None,
    };
    if head.verb == Verb::Stack && goal.as_ref().is_some_and(is_reciprocal) {
        let mut acted = head.clone();
        acted.act();
        return Ok(Clause { objects, sources, ..alone(acted, span) });
    }
    // `stack both bowls`: one of them on the other.
    if let ([Noun::Phrase(phrase)], None, Verb::Stack) = (&objects[..], &goal, head.verb)
        && phrase.count == Some(2)
    {
        let one = Noun::Phrase(Phrase { count: None, counted: None, plural: None, ..phrase.clone() });
        let target = Some(Place::Relative(Relation::On, Box::new(one.clone())));
        return Ok(Clause { objects: vec![one], target, sources, ..alone(head.clone(), span) });
    }
    let goal = goal.or(head.direction.map(Place::Position)).or_else(|| reached(before, head));
    if let Some(goal) = goal {
        return Ok(Clause { objects, target: Some(goal), sources, ..alone(head.clone(), span) });
    }
    if let Some((_, length)) = cursor.preposition() {
        let after = (0..length).map(|ahead| cursor.text(ahead)).collect::<Vec<_>>().join(" ");
        let error = InstructionError::NoObject { after, found: cursor.found_at(length), span: cursor.span() };
        cursor.problem(error);
        cursor.skip(length);
    } else if head.particle.is_none()
        && matches!(head.word.as_str(), "put" | "place" | "bring" | "transfer" | "relocate" | "deposit")
    {
        let hint = "add a place such as `on the plate` or `in the top drawer`";
        cursor.problem(InstructionError::NoTarget { verb: head.verb.primitive(), hint, span });
    }
    let mut acted = head.clone();
    acted.act();
    Ok(Clause { objects, sources, ..alone(acted, span) })
}

/// Actions without a primitive of their own, each segment with its own target, or all objects without one.
pub(super) fn acting(cursor: &Cursor, head: &Head, segments: Vec<Segment>) -> Result<Vec<Clause>, InstructionError> {
    let mut clauses: Vec<Clause> = Vec::new();
    for Segment { mut objects, mut marks, span } in segments {
        let sources = pronoun_sources(&objects, &mut marks);
        let is_pronoun = matches!(objects.last(), Some(Noun::Pronoun(..)));
        let goes = |mark: &Mark| {
            let is_place = matches!(mark.place, Place::Relative(..) | Place::Between(..) | Place::Other(..));
            let directed = mark.preposition.is_none_or(Preposition::is_directional);
            let moved = head.manner == Manner::Moving || is_pronoun || matches!(mark.place, Place::Other(..));
            // `flip the switch on the right` says which switch, `turn it to the right` where to.
            let is_there = matches!(mark.preposition, Some(Preposition::On | Preposition::In | Preposition::At));
            let points = matches!(mark.place, Place::Position(_)) && (head.manner == Manner::Moving || !is_there);
            !mark.is_source && ((is_place && (moved || directed)) || points)
        };
        // What is not a target belongs to the object, before or after it in the text.
        let inward = |mark: &Mark| matches!(mark.preposition, Some(Preposition::Into | Preposition::Onto));
        let at = match marks.iter().position(inward) {
            Some(at) => Some(at),
            None if is_pronoun => marks.iter().position(goes),
            None => marks.iter().rposition(goes),
        };
        let mut goal = head.direction.map(Place::Position);
        if let Some(at) = at.filter(|_| goal.is_none()) {
            let after = marks.split_off(at + 1);
            let mut place = marks.pop().map(|mark| mark.place);
            let (own, after): (Vec<Mark>, Vec<Mark>) = after.into_iter().partition(|mark| mark.is_source);
            marks.extend(own);
            attach(cursor, place.as_mut().and_then(super::place::landmark_of), after)?;
            goal = place;
        }
        attach(cursor, objects.last_mut(), marks)?;
        match clauses.last_mut() {
            Some(last) if last.target.is_none() && goal.is_none() => last.objects.append(&mut objects),
            _ => clauses.push(Clause { objects, target: goal, sources, ..alone(head.clone(), span) }),
        }
    }
    Ok(clauses)
}

/// `drop the can in the bin`, `take the mug to the table` and `pick the pen into the box` are puttings; `drop the can`
/// and `take the mug` are not. Lifting something to a place is an action of that name.
pub(super) fn with_destination(head: &mut Head, segments: &[Segment]) {
    let Some(last) = segments.last() else { return };
    let goes = |mark: &Mark| !mark.is_source && !matches!(mark.place, Place::Position(_));
    let directed = |mark: &Mark| {
        let inward = matches!(mark.preposition, Some(Preposition::Into | Preposition::Onto));
        let at = matches!(&mark.place, Place::Relative(Relation::NextTo | Relation::In | Relation::On, _));
        inward || (mark.preposition == Some(Preposition::To) && at)
    };
    let put = match head.word.as_str() {
        "drop" => last.marks.iter().any(goes),
        "take" | "get" => {
            last.marks.iter().any(|mark| goes(mark) && mark.preposition.is_some_and(Preposition::is_directional))
        }
        _ => head.verb == Verb::Pick && last.marks.iter().any(directed),
    };
    let carries = matches!(head.verb, Verb::Lift | Verb::Grasp) && last.marks.iter().any(directed);
    if put {
        head.verb = Verb::Put;
    } else if carries {
        head.act();
        head.manner = Manner::InPlace;
    }
}

/// A lid comes from and goes to the top of a container, not the inside.
pub(super) fn covers(segment: &mut Segment) {
    let is_cover = |noun: &String| matches!(noun.as_str(), "lid" | "cap" | "cover" | "cork");
    let Some(Noun::Phrase(phrase)) = segment.objects.last() else { return };
    if !phrase.nouns.last().is_some_and(is_cover) {
        return;
    }
    for mark in &mut segment.marks {
        if let (Some(Preposition::From | Preposition::To), Place::Relative(relation @ Relation::In, _)) =
            (mark.preposition, &mut mark.place)
        {
            *relation = Relation::On;
        }
    }
}

/// `move the gripper to the cup` is reaching, with the arm that is named.
pub(super) fn robot_moves(head: &Head, clauses: &mut [Clause]) {
    if head.word != "move" {
        return;
    }
    for clause in clauses {
        let [Noun::Phrase(phrase)] = &clause.objects[..] else { continue };
        let Phrase { nouns, positions, .. } = phrase;
        if clause.target.is_none() || !nouns.last().is_some_and(|noun| lexicon::is_body(noun)) {
            continue;
        }
        if !positions.is_empty() {
            clause.tool = Some(Tool::Here(Noun::Phrase(phrase.clone())));
        }
        clause.verb = Verb::Reach;
        clause.objects.clear();
    }
}

/// `reach for the mug`, `move to the left of the plate`: the place is all there is. Reaching for a thing means being
/// next to it.
pub(super) fn reach(cursor: &mut Cursor, head: &Head) -> Result<Clause, InstructionError> {
    let start = cursor.at();
    let mut objects = Vec::new();
    let mut found = marks(cursor, true)?;
    if found.is_empty() {
        let (object, _) = things(cursor, &head.word)?.swap_remove(0);
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
    Ok(Clause { verb: Verb::Reach, target: Some(goal), ..alone(head.clone(), span) })
}

/// After `move to the drawer`, what is put goes there.
fn reached(before: &[Clause], head: &Head) -> Option<Place> {
    let last = before.last().filter(|last| last.verb == Verb::Reach && matches!(head.verb, Verb::Put | Verb::Place))?;
    match last.target.as_ref()? {
        Place::Relative(Relation::NextTo, noun) if noun.kind().holds => {
            Some(Place::Relative(Relation::In, noun.clone()))
        }
        Place::Relative(Relation::NextTo, noun) if noun.kind().carries => {
            Some(Place::Relative(Relation::On, noun.clone()))
        }
        place => Some(place.clone()),
    }
}

/// `on top of each other`.
fn is_reciprocal(place: &Place) -> bool {
    let named = |phrase: &Phrase| phrase.nouns.last().is_some_and(|noun| noun == "each other");
    matches!(place, Place::Relative(_, noun) if matches!(&**noun, Noun::Phrase(phrase) if named(phrase)))
}
