//! What has been spoken of so far, and what a pronoun picks from it.
//!
//! Candidates come by recency of the clause and, within a clause, object before landmark (the order of centering theory),
//! filtered by what the verb or preposition asks of a thing:
//!
//! | use | asks for |
//! | --- | --- |
//! | `pick/put/… it` | something moved before, else any object |
//! | `open it` | something that opens |
//! | `close it` | the same, landmarks first: the drawer that the bowl went into |
//! | `turn it on` | something with a switch |
//! | `in it`, `inside` | something that holds things; `inside` prefers what was just opened |
//! | `on it`, `on top` | of the last clause, what carries things; then any |
//! | `left of it`, … | the landmark of the last clause, if that was such a relation too |
//!
//! A drawer has no top of its own: `on top of it` after `close the top drawer of the cabinet` is the cabinet's.

use super::lexicon::{self, Kind};
use super::plan::Plan;
use super::tree::{Relation, Verb};

/// A thing spoken of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entity {
    /// The expression that refers to it.
    pub(super) plan: Plan,
    /// Its head noun in the singular.
    pub(super) head: String,
    /// The nouns before the head, with the head.
    pub(super) nouns: Vec<String>,
    /// Its adjectives.
    pub(super) adjectives: Vec<String>,
    /// What it affords.
    pub(super) kind: Kind,
    /// What it is a part of.
    pub(super) whole: Option<Box<Entity>>,
    /// How many there are, 1 when nothing is said.
    pub(super) count: u32,
    /// Whether it is said in the plural.
    pub(super) is_plural: bool,
}

/// One clause as later clauses remember it.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) verb: Verb,
    pub(super) objects: Vec<Entity>,
    /// The relation of the target to its landmark.
    pub(super) relation: Option<Relation>,
    /// The target's landmark first, then those in the marks of the objects.
    pub(super) landmarks: Vec<Entity>,
}

/// How a reference is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// What the verb acts on.
    Object(Verb),
    /// What a place is given by.
    Landmark(Relation),
    /// What something is a part of.
    Whole,
}

/// All clauses so far.
#[derive(Debug, Default)]
pub(super) struct Discourse {
    events: Vec<Event>,
}

impl Discourse {
    /// Remembers a clause.
    pub(super) fn add(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Whether these things are in the hand: picked, and not put anywhere since.
    pub(super) fn holds(&self, things: &[Entity]) -> bool {
        // An action without a primitive, such as shaking, leaves the thing in the hand.
        let mut kept = self.events.iter().rev().filter(|event| event.verb != Verb::Act);
        let last = kept.find(|event| event.objects.iter().any(|object| things.contains(object)));
        last.is_some_and(|event| event.verb.holds() && event.objects == things)
    }

    /// What `it` refers to; `current` are the objects of the clause being read, which are not their own landmarks.
    pub(super) fn it(&self, role: Role, current: &[Entity]) -> Option<Entity> {
        match role {
            Role::Object(Verb::Open) => {
                self.first(|e| e.kind.opens).or_else(|| self.owner()).or_else(|| self.first(|_| true))
            }
            Role::Object(Verb::Close) => self.closable(),
            Role::Object(Verb::TurnOn | Verb::TurnOff) => {
                self.first(|e| e.kind.switches).or_else(|| self.first(|_| true))
            }
            Role::Object(Verb::Put | Verb::Place) if self.held().is_some() => self.held(),
            Role::Object(_) => self.moved().or_else(|| self.first(|_| true)),
            Role::Whole => self.first(|_| true),
            Role::Landmark(relation) => self.landmark(relation, current),
        }
    }

    /// What `them` refers to: things coordinated, counted or stacked in one clause, the objects of the last
    /// two, or an object with its landmark.
    pub(super) fn them(&self) -> Option<Vec<Entity>> {
        let group = |event: &Event| match &event.objects[..] {
            [object] if event.verb == Verb::Stack => event.landmarks.first().map(|below| vec![pair(object, below)]),
            [object] if object.is_plural => Some(vec![object.clone()]),
            [_, _, ..] => Some(event.objects.clone()),
            _ => None,
        };
        let last = self.events.last().and_then(group);
        let of_two = || match &self.events[..] {
            [.., before, last] => match (&before.objects[..], &last.objects[..]) {
                ([first], [second]) if first != second => Some(vec![first.clone(), second.clone()]),
                _ => None,
            },
            _ => None,
        };
        // `put the plate under the bowl and lift them`: the object and its landmark.
        let with_landmark = || match self.events.last() {
            Some(Event { objects, landmarks, .. }) => Some(vec![objects.first()?.clone(), landmarks.first()?.clone()]),
            None => None,
        };
        let earlier = || self.events.iter().rev().find_map(group);
        last.or_else(of_two).or_else(earlier).or_else(with_landmark)
    }

    /// The thing that `inside` or `on top` leaves unsaid.
    pub(super) fn implied(&self, relation: Relation, current: &[Entity]) -> Option<Entity> {
        let opened = || self.events.iter().rev().find(|e| e.verb == Verb::Open).and_then(|e| e.objects.last().cloned());
        let holds = |e: &Entity| e.kind.holds && !current.contains(e);
        // After `lift the lid of the pot`, `inside` is inside the pot.
        let whole = || self.in_order().find_map(|e| e.whole.as_deref().filter(|whole| holds(whole)).cloned());
        let holder = || self.find(holds).or_else(whole);
        match relation {
            Relation::In => opened().or_else(holder).map(|found| reachable(found, relation)),
            _ => self.landmark(relation, current),
        }
    }

    /// The last thing whose description `one` borrows: an object for an object, a landmark for a landmark.
    pub(super) fn like(&self, role: Role) -> Option<&Entity> {
        let same_role = self.events.iter().rev().find_map(|event| match role {
            Role::Object(_) => event.objects.last(),
            Role::Landmark(_) | Role::Whole => event.landmarks.first(),
        });
        same_role.or_else(|| self.in_order().next())
    }

    /// The last mention with this head noun that passes the test.
    pub(super) fn mention(&self, head: &str, test: impl Fn(&Entity) -> bool) -> Option<&Entity> {
        self.in_order().find(|entity| entity.head == head && test(entity))
    }

    fn landmark(&self, relation: Relation, current: &[Entity]) -> Option<Entity> {
        let other = |entity: &Entity| !current.contains(entity);
        let found = match relation {
            Relation::In => self.find(|e| e.kind.holds && other(e)),
            Relation::On | Relation::OnTopOf => self.events.iter().rev().find_map(|event| {
                let mut things = event.objects.iter().chain(&event.landmarks).filter(|e| other(e));
                things.clone().find(|e| e.kind.carries).or_else(|| things.next()).cloned()
            }),
            // `the knife to the right of the plate and the fork to the left of it`: the parallel says what `it` is.
            _ => self
                .events
                .last()
                .filter(|event| event.relation.is_some_and(is_lateral))
                .and_then(|event| event.landmarks.first().filter(|e| other(e)).cloned()),
        };
        let found = found.or_else(|| self.find(other))?;
        Some(reachable(found, relation))
    }

    fn closable(&self) -> Option<Entity> {
        let mut things = self.events.iter().rev().flat_map(|event| event.landmarks.iter().chain(&event.objects));
        let opened = || self.events.iter().rev().find(|e| e.verb == Verb::Open).and_then(|e| e.objects.last().cloned());
        let found = things.clone().find(|e| e.kind.opens).cloned();
        found.or_else(opened).or_else(|| self.owner()).or_else(|| things.next().cloned())
    }

    /// The thing that has a part of this name, `its door`: a door is that of something that opens, a lid that of the last
    /// thing that holds something, a button that of an appliance. `None` where any thing may have such a part.
    pub(super) fn owner_of(&self, part: &str, closes: bool) -> Option<Entity> {
        match part {
            "door" | "drawer" | "hatch" | "flap" => self.find(|e| e.kind.opens).or_else(|| self.find(|e| e.kind.holds)),
            "lid" | "cap" | "cover" | "cork" => self.events.iter().rev().find_map(|event| {
                let (objects, landmarks) = (event.objects.iter().rev(), event.landmarks.iter());
                let things: Vec<_> =
                    if closes { landmarks.chain(objects).collect() } else { objects.chain(landmarks).collect() };
                things.into_iter().find(|e| e.kind.holds).cloned()
            }),
            "button" | "knob" | "switch" | "dial" => self.find(|e| e.kind.switches),
            _ => None,
        }
    }

    /// The thing that opens and that a part was spoken of: `grasp the drawer handle and open it`.
    fn owner(&self) -> Option<Entity> {
        self.in_order().find_map(|entity| {
            let whole = entity.whole.as_deref().filter(|whole| whole.kind.opens).cloned();
            whole.or_else(|| {
                let (_, before) = entity.nouns.split_last().filter(|_| entity.kind.part)?;
                let kind = before.last().and_then(|noun| lexicon::noun(noun)).filter(|kind| kind.opens)?;
                let head = before.last()?.clone();
                let plan = Plan::Text(before.join(" "));
                Some(Entity { plan, head, kind, nouns: before.to_vec(), whole: None, ..entity.clone() })
            })
        })
    }

    /// What is in the hand while other things are acted on: `pick up the sponge, wipe the table and put it back`.
    fn held(&self) -> Option<Entity> {
        let handles = |event: &&Event| {
            !matches!(event.verb, Verb::Act | Verb::Open | Verb::Close | Verb::TurnOn | Verb::TurnOff | Verb::Reach)
        };
        let last = self.events.iter().rev().find(handles).filter(|event| event.verb.holds())?;
        last.objects.last().filter(|entity| !entity.is_plural).cloned()
    }

    fn moved(&self) -> Option<Entity> {
        let moves = |event: &&Event| {
            !matches!(event.verb, Verb::Open | Verb::Close | Verb::TurnOn | Verb::TurnOff | Verb::Reach)
        };
        self.events.iter().rev().filter(moves).find_map(|event| event.objects.last()).cloned()
    }

    fn first(&self, test: impl Fn(&Entity) -> bool) -> Option<Entity> {
        self.find(|e| !e.is_plural && test(e)).or_else(|| self.find(test))
    }

    fn find(&self, test: impl Fn(&Entity) -> bool) -> Option<Entity> {
        self.in_order().find(|entity| test(entity)).cloned()
    }

    fn in_order(&self) -> impl Iterator<Item = &Entity> {
        self.events.iter().rev().flat_map(|event| event.objects.iter().rev().chain(&event.landmarks))
    }
}

fn is_lateral(relation: Relation) -> bool {
    matches!(relation, Relation::LeftOf | Relation::RightOf | Relation::FrontOf | Relation::BackOf)
}

/// The thing itself or what it is a part of: only `in` is about a drawer rather than its cabinet, and never about a door.
fn reachable(entity: Entity, relation: Relation) -> Entity {
    let is_inside = relation == Relation::In;
    match entity.whole {
        Some(whole) if entity.kind.part && entity.kind.opens && entity.kind.holds != is_inside => *whole,
        whole => Entity { whole, ..entity },
    }
}

/// Two things as one.
pub(super) fn pair(first: &Entity, second: &Entity) -> Entity {
    let plan = Plan::Call("both", vec![first.plan.clone(), second.plan.clone()]);
    Entity { plan, is_plural: true, count: 1, whole: None, ..first.clone() }
}
