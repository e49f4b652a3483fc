//! What the verbs and phrases of a plan mean for the hand: does it touch, turn or pour, and which arm is spoken of.

use language::instruction::Plan;

use crate::steps::ArmChoice;

/// Words for a part of the robot's own body after `with`.
const BODY: &[&str] = &["arm", "arms", "hand", "hands", "gripper", "grippers"];

/// What an action does to its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It is touched: press, tap.
    Touch,
    /// It is turned: rotate, screw.
    Turn,
    /// What is in it goes elsewhere as it is turned: pour.
    Pour,
    /// It goes from one hand to another: hand over, pass.
    Hand,
    /// It is moved along: slide, sweep.
    Slide,
    /// It is not touched: wave, point.
    Gesture,
    /// Anything else.
    Other,
}

/// Verbs by their manner; all others are `Other`.
const MANNERS: &[(Manner, &str)] = &[
    (
        Manner::Touch,
        "press push tap touch poke prod click hit strike knock ring toggle dial button type slap kick topple switch",
    ),
    (
        Manner::Turn,
        "turn rotate twist spin screw unscrew tighten loosen flip tilt tip invert crank wind unwind reorient orient",
    ),
    (Manner::Pour, "pour dump drip drizzle trickle sprinkle spill empty"),
    (Manner::Hand, "hand pass give transfer"),
    (
        Manner::Gesture,
        "wave point look greet nod bow salute watch show inspect check find search locate examine scan count",
    ),
    (Manner::Slide, "slide sweep drag pull scoot shift wipe brush scrape swipe"),
];

/// Verbs that are done all over a surface, which nobody takes in the hand for it.
const CLEANING: &str = "clean wipe wash scrub dust mop vacuum polish sanitize sterilize disinfect rinse dry sweep brush tidy clear \
     declutter organize organise rake";

/// Those of them that are done with something in the hand, unless they clean `up`.
const WIPING: &str =
    "clean wipe wash scrub dust mop vacuum polish sanitize sterilize disinfect rinse dry sweep brush rake";

/// What is cleaned where it stands.
const SURFACES: &str = "table tabletop counter countertop worktop workspace workbench bench desk floor ground wall window mirror \
     whiteboard blackboard board stove stovetop cooktop sink shelf bookshelf surface room kitchen bathroom bed sofa couch \
     carpet rug door screen area oven fridge refrigerator";

/// Verbs that move their object from outside to inside.
const INTO: &str = "pour dump drip drizzle trickle sprinkle spill empty insert sweep brush wipe kick hit shoot scoop load dunk plug \
     screw slot push pull roll slide pot throw toss drop thread fit squeeze stuff transfer";

/// Verbs of going somewhere.
const GOING: &str = "return go move come head drive walk";

/// Whether a verb cleans something that is not taken in the hand for it; `noun` is the phrase of the object.
pub(crate) fn cleans_surface(verb: &str, noun: &str) -> bool {
    let last = noun.rsplit(' ').next().unwrap_or(noun);
    lists(CLEANING, first_word(verb)) && lists(SURFACES, last)
}

/// Whether a surface is cleaned with a tool that nobody need name: `wipe`, but not `tidy up`.
pub(crate) fn wipes(verb: &str) -> bool {
    lists(WIPING, first_word(verb)) && !lists(verb, "up")
}

/// Whether an action moves its object into a container, rather than happening there.
pub(crate) fn goes_into(verb: &str) -> bool {
    lists(INTO, verb)
}

/// Whether a verb with this object is a motion of the robot itself: `return home`.
pub(crate) fn goes_home(verb: &str, object: &Plan) -> bool {
    lists(GOING, first_word(verb)) && is_home(object)
}

/// Whether an object is where the robot belongs.
pub(crate) fn is_home(object: &Plan) -> bool {
    matches!(object, Plan::Text(name) if name == "home")
}

fn lists(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|one| one == word)
}

/// The actions of the body of a `with`: verb, object and place of each.
pub(crate) fn actions<'a>(plan: &'a Plan, found: &mut Vec<(&'a str, &'a Plan, Option<&'a Plan>)>) {
    match plan {
        Plan::Seq(plans) => plans.iter().for_each(|plan| actions(plan, found)),
        Plan::Repeat(body, times) => (0..(*times).min(16)).for_each(|_| actions(body, found)),
        Plan::Call(name, arguments) => match (*name, &arguments[..]) {
            ("act_on" | "act_to", [Plan::Text(verb), object, rest @ ..]) => found.push((verb, object, rest.first())),
            (name, [object, rest @ ..]) => found.push((name, object, rest.first())),
            _ => {}
        },
        Plan::Text(_) => {}
    }
}

/// Whether a plan leaves its object elsewhere, so that the next repetition is about another one.
pub(crate) fn moves_away(plan: &Plan) -> bool {
    match plan {
        Plan::Seq(plans) => plans.iter().any(moves_away),
        Plan::Repeat(body, _) => moves_away(body),
        Plan::Call(name, _) => matches!(*name, "pick" | "place" | "put" | "stack" | "act_to"),
        Plan::Text(_) => false,
    }
}

/// What a verb does to its object.
pub(crate) fn manner(verb: &str) -> Manner {
    let first = first_word(verb);
    let found = MANNERS.iter().find(|(_, verbs)| verbs.split(' ').any(|one| one == first));
    found.map_or(Manner::Other, |(manner, _)| *manner)
}

/// The verb without its particles.
pub(crate) fn first_word(verb: &str) -> &str {
    verb.split(' ').next().unwrap_or(verb)
}

/// What an object is taken from, if it is said: `the water from the cup`.
pub(crate) fn source(object: &Plan) -> Option<&Plan> {
    match object {
        Plan::Call("at", arguments) => arguments.get(1).and_then(place_object),
        _ => None,
    }
}

/// The object of a place.
pub(crate) fn place_object(place: &Plan) -> Option<&Plan> {
    match place {
        Plan::Call("rel", arguments) => arguments.get(1),
        Plan::Call(_, arguments) => arguments.first(),
        _ => None,
    }
}

/// Whether a place is at a part of the robot.
pub(crate) fn is_body_place(place: &Plan) -> bool {
    place_object(place).and_then(body_arm).is_some()
}

/// The arm that words such as `the left arm` or `both hands` mean; `None` for anything else.
pub(crate) fn body_arm(thing: &Plan) -> Option<ArmChoice> {
    let (text, side) = match thing {
        Plan::Text(text) => (text, None),
        Plan::Call("at", arguments) => match &arguments[..] {
            [Plan::Text(text), Plan::Call(side, none)] if none.is_empty() => (text, Some(*side)),
            _ => return None,
        },
        _ => return None,
    };
    let mut words = text.split(' ').rev();
    if !words.next().is_some_and(|last| BODY.contains(&last)) {
        return None;
    }
    let word = side.or_else(|| words.next());
    Some(match word {
        None | Some("robot" | "your" | "one" | "same") => ArmChoice::Any,
        Some("both" | "two") => ArmChoice::Both,
        Some(side) => ArmChoice::Named(side.to_owned()),
    })
}
