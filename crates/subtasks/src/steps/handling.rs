//! What a hand does with an object: it takes it, brings it, lets it go, moves it where it is, or hands it over.

use language::instruction::Plan;

use super::{ArmChoice, Builder, Held, Kind, NEEDED, OPTIONAL, USUAL};
use crate::phrase::verb_phrase;
use crate::verbs::{
    Manner, actions, body_arm, cleans_surface, first_word, goes_home, is_body_place, manner, place_object, source,
    wipes,
};

impl Builder {
    /// The robot moves its own hand or arm, for which it does not reach.
    pub(super) fn own_motion(&mut self, kind: Kind, verb: &str, part: &Plan, place: Option<&Plan>) {
        self.new_handling();
        let there = place.map(|place| self.phrases.place(place, true)).unwrap_or_default();
        let name = [verb_phrase(verb, &self.phrases.object(part)), there];
        let name = name.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        self.arm = body_arm(part).unwrap_or_default();
        self.push(kind, first_word(verb), Some(part), name, NEEDED);
    }

    /// Reaches for an object, grasps and lifts it, as far as it is not held yet.
    pub(super) fn take(&mut self, object: &Plan, price: f64) {
        if self.held == Held::Lifted(object.clone()) {
            return;
        }
        let price = if self.held == Held::Perhaps(object.clone()) { OPTIONAL } else { price };
        self.seize(object, price, None);
        self.step(Kind::Lift, "lift", object, price.min(USUAL));
        self.held = Held::Lifted(object.clone());
    }

    /// Reaches for an object and grasps it, or a part of it.
    pub(super) fn seize(&mut self, object: &Plan, price: f64, part: Option<String>) {
        let price = match &self.held {
            Held::This(held) | Held::Lifted(held) if held == object => return,
            Held::Perhaps(held) if held == object => price.min(OPTIONAL),
            _ => {
                self.put_down();
                self.new_handling();
                price
            }
        };
        self.drive_to(object, &format!("to {}", self.described(object)));
        self.reach(object, price.min(USUAL * 2.0));
        match part {
            Some(part) => self.push(Kind::Grasp, "grasp", Some(object), format!("grasp {part}"), price),
            None => self.step(Kind::Grasp, "grasp", object, price),
        }
        self.held = Held::This(object.clone());
    }

    pub(super) fn put(&mut self, object: &Plan, place: &Plan) {
        self.take(object, NEEDED);
        self.bring(object, place, USUAL);
        let there = self.phrases.place(place, false);
        let name = format!("place {} {there}", self.named(object));
        self.push(Kind::Place, "place", Some(object), name, USUAL);
        self.release(object, NEEDED);
        self.retreat();
    }

    /// A base may drive there first.
    pub(super) fn drive_to(&mut self, object: &Plan, there: &str) {
        if self.drives {
            self.push(Kind::Go, "drive", Some(object), format!("drive {there}"), OPTIONAL);
        }
    }

    pub(super) fn bring(&mut self, object: &Plan, place: &Plan, price: f64) {
        let there = self.phrases.place(place, true);
        self.drive_to(object, &there);
        let price = if self.drives { OPTIONAL } else { price };
        let name = format!("move {} {there}", self.named(object));
        self.push(Kind::Transport, "transport", Some(object), name, price);
    }

    pub(super) fn release(&mut self, object: &Plan, price: f64) {
        self.step(Kind::Release, "release", object, price);
        self.held = Held::Nothing;
    }

    /// What is held may be put down before anything else is done.
    pub(super) fn put_down(&mut self) {
        if let Held::This(object) | Held::Lifted(object) = self.held.clone() {
            self.push(Kind::Place, "place", Some(&object), self.sentence("put down", &object), OPTIONAL);
            self.release(&object, OPTIONAL);
            self.retreat();
        }
    }

    /// The robot itself goes where it belongs, which is how its hand goes away.
    pub(super) fn go_home(&mut self, verb: &str) {
        if self.steps.last().is_some_and(|step| step.kind == Kind::Retreat) {
            self.steps.pop();
        }
        self.new_handling();
        self.push(Kind::Go, first_word(verb), None, format!("{verb} home"), USUAL);
    }

    pub(super) fn reach(&mut self, object: &Plan, price: f64) {
        let name = format!("reach for {}", self.described(object));
        self.push(Kind::Reach, "reach", Some(object), name, price);
    }

    pub(super) fn retreat(&mut self) {
        self.push(Kind::Retreat, "retreat", None, "move away".to_owned(), OPTIONAL);
    }

    /// Moves something that stays where it belongs: a drawer, a knob, a plate that is pushed. A hand may do so without
    /// closing, and then does not have to open.
    pub(super) fn manipulate(&mut self, kind: Kind, verb: &str, object: &Plan, there: &str, grasping: f64) {
        let part = if kind == Kind::Turn && verb.starts_with("turn o") {
            Some(format!("the knob of {}", self.named(object)))
        } else {
            self.handle_of_container(verb, object)
        };
        self.seize(object, grasping, part.clone());
        let name = verb_phrase(verb, &self.named(object));
        let name = if there.is_empty() { name } else { format!("{name} {there}") };
        self.push(kind, first_word(verb), Some(object), name, NEEDED);
        let released = part.unwrap_or_else(|| self.named(object));
        self.push(Kind::Release, "release", Some(object), format!("release {released}"), grasping);
        self.held = Held::Nothing;
        self.retreat();
    }

    /// Any other verb.
    pub(super) fn act(&mut self, verb: &str, object: &Plan, place: Option<&Plan>) {
        let there = place.map(|place| self.phrases.place_of(verb, place)).unwrap_or_default();
        let join = |name: String| if there.is_empty() { name } else { format!("{name} {there}") };
        if place.is_none() && goes_home(verb, object) {
            return self.go_home(verb);
        }
        match manner(verb) {
            _ if cleans_surface(verb, &self.noun(object)) => {
                self.put_down();
                self.new_handling();
                let name = join(verb_phrase(verb, &self.named(object)));
                self.push(Kind::Act, first_word(verb), Some(object), name, NEEDED);
                if let Some(step) = self.steps.last_mut() {
                    step.with_tool = wipes(verb);
                }
                self.retreat();
            }
            Manner::Gesture => {
                self.new_handling();
                let name = join(verb_phrase(verb, &self.named(object)));
                self.push(Kind::Act, first_word(verb), Some(object), name, NEEDED);
                self.retreat();
            }
            Manner::Hand if place.is_some_and(is_body_place) => self.hand_over(verb, object, place),
            Manner::Touch => {
                let again = self.steps.last().is_some_and(|step| step.kind == Kind::Retreat)
                    && self.steps.iter().rev().nth(1).is_some_and(|step| step.object == Some(self.noun(object)));
                if !again {
                    self.put_down();
                    self.new_handling();
                }
                self.reach(object, if again { OPTIONAL } else { USUAL });
                self.step(Kind::Grasp, "grasp", object, OPTIONAL);
                let name = join(verb_phrase(verb, &self.named(object)));
                self.push(Kind::Touch, first_word(verb), Some(object), name, NEEDED);
                self.step(Kind::Release, "release", object, OPTIONAL);
                self.retreat();
            }
            Manner::Pour => {
                // What is poured is moved in what it is in.
                let container = source(object).unwrap_or(object).clone();
                self.take(&container, USUAL);
                if let Some(place) = place {
                    self.bring(&container, place, OPTIONAL);
                }
                let name = join(verb_phrase(verb, &self.phrases.object(object)));
                self.push(Kind::Turn, first_word(verb), Some(object), name, NEEDED);
                self.push(
                    Kind::Transport,
                    "transport",
                    Some(&container),
                    self.sentence("move back", &container),
                    OPTIONAL,
                );
                self.push(Kind::Place, "place", Some(&container), self.sentence("put down", &container), OPTIONAL);
                self.step(Kind::Release, "release", &container, OPTIONAL);
                self.retreat();
                self.held = Held::Perhaps(container);
            }
            manner => {
                let kind = match manner {
                    Manner::Turn => Kind::Turn,
                    Manner::Slide => Kind::Slide,
                    // What goes somewhere ends there as what is placed does.
                    _ if place.is_some() => Kind::Place,
                    _ => Kind::Act,
                };
                self.seize(object, USUAL, None);
                self.step(Kind::Lift, "lift", object, OPTIONAL);
                if let Some(place) = place {
                    self.bring(object, place, USUAL);
                }
                let name = join(verb_phrase(verb, &self.named(object)));
                self.push(kind, first_word(verb), Some(object), name, NEEDED);
                self.step(Kind::Release, "release", object, OPTIONAL);
                self.retreat();
                self.held = Held::Perhaps(object.clone());
            }
        }
    }

    /// One arm brings an object, the other one takes it, the first one lets it go.
    pub(super) fn hand_over(&mut self, verb: &str, object: &Plan, place: Option<&Plan>) {
        let giver = source(object).and_then(body_arm).unwrap_or_default();
        let taker = place.and_then(place_object).and_then(body_arm).unwrap_or_default();
        let (arm, within) = (self.arm.clone(), std::mem::replace(&mut self.within, true));
        self.arm = giver.clone();
        self.take(object, NEEDED);
        let mut name = verb_phrase(verb, &self.named(object));
        if let Some(to) = place.and_then(place_object) {
            name = format!("{name} to {}", self.phrases.object(to));
        }
        self.push(Kind::Transport, "transport", Some(object), name, USUAL);
        self.arm = taker.clone();
        self.new_handling();
        self.step(Kind::Reach, "reach for", object, USUAL);
        self.step(Kind::Grasp, "grasp", object, NEEDED);
        let handling = self.handling;
        self.arm = giver;
        self.handling = usize::MAX;
        self.step(Kind::Release, "release", object, NEEDED);
        self.push(Kind::Retreat, "retreat", None, "move away".to_owned(), OPTIONAL);
        self.handling = handling;
        // The taker keeps the object for what follows.
        self.arm = if taker == ArmChoice::Any { arm } else { taker };
        self.within = within;
        self.held = Held::Lifted(object.clone());
    }

    pub(super) fn with(&mut self, tool: &Plan, body: &Plan) {
        if let Some(arm) = body_arm(tool) {
            // The arm stays for what is done with the same object afterwards.
            let outer = std::mem::replace(&mut self.within, true);
            self.arm = arm;
            self.visit(body);
            self.within = outer;
            return;
        }
        if matches!(tool, Plan::Call("part", _)) {
            return self.visit(body);
        }
        self.take(tool, NEEDED);
        let mut objects = Vec::new();
        actions(body, &mut objects);
        for (verb, object, place) in objects {
            let there = self.phrases.object(object);
            let carried = format!("move {} to {there}", self.named(tool));
            self.push(Kind::Transport, "transport", Some(tool), carried, OPTIONAL);
            let kind = match manner(verb) {
                Manner::Turn => Kind::Turn,
                _ => Kind::Act,
            };
            let mut name = format!("{} with {}", verb_phrase(verb, &there), self.named(tool));
            if let Some(place) = place {
                name = format!("{} {}", verb_phrase(verb, &there), self.phrases.place_of(verb, place));
            }
            self.push(kind, first_word(verb), Some(object), name, NEEDED);
        }
        self.push(Kind::Transport, "transport", Some(tool), self.sentence("move back", tool), OPTIONAL);
        self.push(Kind::Place, "place", Some(tool), self.sentence("put down", tool), OPTIONAL);
        self.step(Kind::Release, "release", tool, OPTIONAL);
        self.retreat();
        self.held = Held::Perhaps(tool.clone());
    }

    /// The handle of what is opened or closed.
    pub(super) fn handle_of_container(&self, verb: &str, object: &Plan) -> Option<String> {
        let named = self.named(object);
        (matches!(verb, "open" | "close") && !named.contains("handle")).then(|| format!("the handle of {named}"))
    }
}
