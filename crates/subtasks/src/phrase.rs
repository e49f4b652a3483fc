//! English phrases for the objects, places and verbs of an instruction's plan.
//!
//! Names of subtasks are read often, so they are short: `the black bowl`, not `the black bowl next to the ramekin`. The
//! description stands where an object is first spoken of, and where two objects of one instruction would have the same
//! short phrase.

use language::instruction::Plan;

use crate::verbs::{first_word, goes_into, is_body_place};

/// Words after a verb that stay in front of its object: `knock over the can`, `wave to the visitor`.
const BEFORE_OBJECT: &[&str] = &["up", "down", "off", "on", "out", "in", "over", "away", "to", "at", "for", "through"];

/// First words of a noun phrase that take the place of an article.
const DETERMINERS: &[&str] =
    &["a", "an", "the", "my", "your", "our", "his", "her", "its", "their", "each", "every", "some"];

/// The objects of one instruction, so that different ones get different phrases.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phrases {
    objects: Vec<Plan>,
}

impl Phrases {
    /// Collects the objects that an instruction handles.
    pub(crate) fn of(plan: &Plan) -> Phrases {
        let mut phrases = Phrases::default();
        phrases.collect(plan);
        phrases
    }

    fn collect(&mut self, plan: &Plan) {
        match plan {
            Plan::Seq(plans) => plans.iter().for_each(|plan| self.collect(plan)),
            Plan::Repeat(plan, _) => self.collect(plan),
            Plan::Call("with", arguments) => arguments.iter().skip(1).for_each(|plan| self.collect(plan)),
            Plan::Call(name, arguments) => {
                let object = if name.starts_with("act") { arguments.get(1) } else { arguments.first() };
                if let Some(object) = object.filter(|object| !self.objects.contains(object)) {
                    self.objects.push(object.clone());
                }
            }
            Plan::Text(_) => {}
        }
    }

    /// The noun phrase of an object without its article: `black bowl`, `top drawer`.
    pub(crate) fn noun(&self, object: &Plan) -> String {
        let short = short(object);
        let mut others = self.objects.iter().filter(|other| *other != object);
        if others.any(|other| self::short(other) == short) { long(object) } else { short }
    }

    /// The noun phrase of an object without its article, with what tells it from others of its kind: `black bowl next to the
    /// ramekin`.
    pub(crate) fn described(&self, object: &Plan) -> String {
        match object {
            // A block that one arm hands to the other one is not a block "on the left arm".
            Plan::Call("at", arguments) if arguments.get(1).is_some_and(is_body_place) => self.noun(object),
            Plan::Call("at", _) => long(object),
            _ => self.noun(object),
        }
    }

    /// The noun phrase of an object with its article.
    pub(crate) fn object(&self, object: &Plan) -> String {
        with_article(&self.noun(object))
    }

    /// A place where an action with this verb leaves its object: `into the bowl` of what is poured, `to the left` of what is
    /// swept, `on the wall` of what is hung up.
    pub(crate) fn place_of(&self, verb: &str, place: &Plan) -> String {
        let there = self.place(place, is_side(place));
        match (place, there.strip_prefix("in ")) {
            (Plan::Call("in", _), Some(inside)) if goes_into(first_word(verb)) => format!("into {inside}"),
            _ => there,
        }
    }

    /// A place where something is: `on the plate`; or, with `going`, where something goes: `to the plate`.
    pub(crate) fn place(&self, place: &Plan, going: bool) -> String {
        let Plan::Call(name, arguments) = place else { return String::new() };
        let first = arguments.first().map(|object| self.object(object)).unwrap_or_default();
        let second = arguments.get(1).map(|object| self.object(object)).unwrap_or_default();
        match (*name, going) {
            ("on" | "in" | "next_to", true) => format!("to {first}"),
            ("on_top_of", true) => format!("to the top of {first}"),
            ("front_of", true) => format!("to the front of {first}"),
            ("left_of", _) => format!("to the left of {first}"),
            ("right_of", _) => format!("to the right of {first}"),
            ("on_top_of", false) => format!("on top of {first}"),
            ("front_of", false) => format!("in front of {first}"),
            ("back_of", _) => format!("behind {first}"),
            ("next_to", false) => format!("next to {first}"),
            ("between", _) => format!("between {first} and {second}"),
            ("top", true) => "up".to_owned(),
            ("bottom", true) => "down".to_owned(),
            ("left" | "right" | "middle" | "center" | "front" | "back", true) => format!("to the {name}"),
            ("left" | "right", false) => format!("on the {name}"),
            ("middle" | "center", false) => format!("in the {name}"),
            ("front" | "back" | "top" | "bottom", false) => format!("at the {name}"),
            ("rel", _) => format!("{} {second}", arguments.first().map(short).unwrap_or_default()),
            (relation, _) => format!("{} {first}", relation.replace('_', " ")),
        }
    }
}

/// `the` before a noun phrase, unless it has a determiner or is a name of its own: `box #2`, `home`.
pub(crate) fn with_article(noun: &str) -> String {
    let first = noun.split(' ').next().unwrap_or_default();
    let own = noun.is_empty() || noun == "home" || noun.contains("# ") || DETERMINERS.contains(&first);
    if own { noun.to_owned() } else { format!("the {noun}") }
}

/// A verb with its object: `knock over the can`, `rotate the block 90 degrees`, `fold the cloth in half`.
pub(crate) fn verb_phrase(verb: &str, object: &str) -> String {
    let (first, rest) = verb.split_once(' ').unwrap_or((verb, ""));
    let particles = rest.split(' ').all(|word| BEFORE_OBJECT.contains(&word));
    let parts = if particles { [first, rest, object] } else { [first, object, rest] };
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Whether a place is a side rather than a relation to an object.
fn is_side(place: &Plan) -> bool {
    matches!(place, Plan::Call(_, arguments) if arguments.is_empty())
}

fn short(object: &Plan) -> String {
    match object {
        Plan::Text(name) => name.clone(),
        Plan::Call("at", arguments) => match &arguments[..] {
            // `from table center` says where it is, and `the center bowl` is not what people say.
            [thing, Plan::Call("center", _)] => short(thing),
            [thing, Plan::Call(side, none)] if none.is_empty() => format!("{side} {}", short(thing)),
            [thing, ..] => short(thing),
            [] => String::new(),
        },
        Plan::Call("part", arguments) => match &arguments[..] {
            // `handle` alone says little, `top drawer` says enough.
            [Plan::Call("at", spot), _] if matches!(&spot[..], [_, Plan::Call("center", _)]) => {
                format!("center {}", short(&spot[0]))
            }
            [Plan::Text(part), whole] => format!("{part} of {}", with_article(&short(whole))),
            [part, ..] => short(part),
            [] => String::new(),
        },
        Plan::Call("both", arguments) => both(arguments, short),
        Plan::Call(_, arguments) => arguments.first().map(short).unwrap_or_default(),
        Plan::Seq(_) | Plan::Repeat(..) => String::new(),
    }
}

fn long(object: &Plan) -> String {
    match object {
        Plan::Call("at", arguments) => match &arguments[..] {
            [thing, place] if !is_side(place) || matches!(place, Plan::Call("center", _)) => {
                format!("{} {}", long(thing), Phrases::default().place(place, false))
            }
            _ => short(object),
        },
        Plan::Call("part", arguments) => match &arguments[..] {
            [part, whole] => format!("{} of {}", short(part), with_article(&short(whole))),
            _ => short(object),
        },
        Plan::Call("both", arguments) => both(arguments, long),
        _ => short(object),
    }
}

fn both(objects: &[Plan], noun: fn(&Plan) -> String) -> String {
    objects.iter().map(noun).collect::<Vec<_>>().join(" and the ")
}

#[cfg(test)]
mod tests {
    use language::instruction::partial;

    use super::*;

    fn first_argument(text: &str) -> (Phrases, Plan) {
        let plan = partial(text).unwrap().plan;
        let phrases = Phrases::of(&plan);
        let mut found = plan;
        loop {
            found = match found {
                Plan::Seq(mut plans) => plans.swap_remove(0),
                Plan::Call(_, mut arguments) => return (phrases, arguments.swap_remove(0)),
                other => panic!("{other} has no argument"),
            };
        }
    }

    #[test]
    fn objects_have_short_phrases_that_tell_them_apart() {
        for (text, wanted) in [
            ("pick up the black bowl next to the ramekin and place it on the plate", "the black bowl"),
            ("open the middle drawer of the cabinet", "the middle drawer"),
            ("grasp the handle of the drawer", "the handle of the drawer"),
            ("put the left bowl on the plate", "the left bowl"),
            (
                "put the bowl on the stove on the plate and put the bowl on the cabinet on the tray",
                "the bowl on the stove",
            ),
        ] {
            let (phrases, object) = first_argument(text);
            assert_eq!(phrases.object(&object), wanted, "{text}");
        }
    }

    #[test]
    fn descriptions_say_which_one() {
        for (text, wanted) in [
            ("pick up the black bowl next to the ramekin and place it on the plate", "black bowl next to the ramekin"),
            (
                "pick up the black bowl between the plate and the ramekin",
                "black bowl between the plate and the ramekin",
            ),
            ("pick up the black bowl in the top drawer of the cabinet", "black bowl in the top drawer"),
            ("pick up the black bowl from table center", "black bowl in the center"),
            ("take the lid off the pot", "lid on the pot"),
            ("pick up the left bowl", "left bowl"),
            ("open the middle drawer of the cabinet", "middle drawer"),
            ("open the center drawer of the cabinet", "center drawer"),
        ] {
            let (phrases, object) = first_argument(text);
            assert_eq!(phrases.described(&object), wanted, "{text}");
        }
        let (phrases, object) = first_argument("pick up the black bowl from table center");
        assert_eq!(phrases.noun(&object), "black bowl");
    }

    #[test]
    fn words_of_a_verb_stand_where_they_belong() {
        assert_eq!(verb_phrase("knock over", "the can"), "knock over the can");
        assert_eq!(verb_phrase("place upright", "the can"), "place the can upright");
        assert_eq!(verb_phrase("rotate 90 degrees", "the block"), "rotate the block 90 degrees");
        assert_eq!(verb_phrase("wave", ""), "wave");
        assert_eq!(verb_phrase("fold in half", "the cloth"), "fold the cloth in half");
    }
}
