//! The steps that an instruction asks for, in the order in which a robot has to take them.
//!
//! ```text
//! put "bowl" (on "plate")   reach for the bowl · grasp the bowl · lift the bowl · move the bowl to the plate ·
//!                           place the bowl on the plate · release the bowl · move away
//! open "drawer"             reach for the drawer · grasp the handle of the drawer · open the drawer · release … · move away
//! ```
//!
//! Steps follow from the primitives of the plan and from what a verb does to its object (module `verbs`), so any instruction
//! that the language understands has steps. What is held is tracked: `pick` followed by `place` reaches once, and what
//! nobody says to place may be put down. A step that a robot may leave out has a low price for skipping it; see [`crate::align`].
//!
//! `put all the cubes in the box` says that something is done to several objects, and not to how many. Its steps are repeated
//! as often as they may have been taken, each time with another object, and rounds after the first may be left out whole.

use language::instruction::Plan;

use crate::phrase::{Phrases, verb_phrase, with_article};
use crate::reading::singular;
use crate::verbs::{
    Manner, actions, body_arm, cleans_surface, first_word, goes_home, is_body_place, is_home, manner, moves_away,
    place_object, source, wipes,
};

/// The most steps of one instruction; repetitions beyond it are not expected one by one.
pub const MAX_STEPS: usize = 96;

/// What the objects of a repetition are called. There are no more rounds in one of an open number.
const ORDINALS: [&str; 12] = [
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth",
];

/// The price of skipping a step that a robot hardly can leave out, in seconds of motion that does not fit.
pub const NEEDED: f64 = 1.0;

/// The same for a step that is usual.
pub const USUAL: f64 = 0.15;

/// The same for a step that is as often left out.
pub const OPTIONAL: f64 = 0.02;

/// What kind of motion a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The empty hand goes to an object.
    Reach,
    /// The gripper closes around it.
    Grasp,
    /// The held object goes up.
    Lift,
    /// The held object goes to its target.
    Transport,
    /// The held object goes down to its target.
    Place,
    /// The gripper opens.
    Release,
    /// The empty hand goes away.
    Retreat,
    /// An object moves along a surface or on rails, held or not.
    Slide,
    /// The hand turns something.
    Turn,
    /// The hand touches something and need not close.
    Touch,
    /// The robot goes somewhere.
    Go,
    /// Any other action.
    Act,
}

/// Which arm takes a step.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ArmChoice {
    /// The instruction does not say.
    #[default]
    Any,
    /// The arm with this word in its name, such as `left`.
    Named(String),
    /// Both arms together.
    Both,
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What kind of motion it is.
    pub kind: Kind,
    /// The phase in one word: `reach`, `grasp`, `open`, `pour`.
    pub phase: String,
    /// The object without article, if there is one: `black bowl`.
    pub object: Option<String>,
    /// What a person would call it: `lift the black bowl`.
    pub name: String,
    /// What skipping it costs, in seconds of motion that does not fit.
    pub skip: f64,
    /// Which arm takes it.
    pub arm: ArmChoice,
    /// Steps of the same handling are taken by the same arm.
    pub handling: usize,
    /// Its round, if it is repeated an open number of times.
    pub round: Option<Round>,
    /// It may be done with something that the instruction does not name, which is taken before and put away afterwards.
    pub with_tool: bool,
}

/// A round of a repetition of an open number of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Which repetition of the instruction.
    pub repetition: usize,
    /// Which round of it, from 0. Others than the first may be left out.
    pub at: usize,
}

/// The steps of an instruction's plan, in order; with `drives` for a robot on a base, which may drive to what it handles. What
/// is done to an open number of objects is repeated for `rounds` of them, at least one; with one it is not counted.
pub fn steps(plan: &Plan, drives: bool, rounds: usize) -> Vec<Step> {
    let mut builder = Builder {
        rounds: rounds.clamp(1, ORDINALS.len()),
        repetitions: 0,
        round: None,
        counted: false,
        phrases: Phrases::of(plan),
        steps: Vec::new(),
        handling: 0,
        held: Held::Nothing,
        arm: ArmChoice::Any,
        ordinal: None,
        drives,
        within: false,
    };
    builder.visit(plan);
    if let Held::This(object) | Held::Lifted(object) = builder.held.clone() {
        builder.step(Kind::Transport, "carry", &object, 0.0);
    }
    // Demonstrations often put down again what the instruction only says to take.
    builder.put_down();
    let mut steps = builder.steps;
    steps.truncate(MAX_STEPS);
    // A hand that goes on to the next object need not go away first.
    let last = steps.len().saturating_sub(1);
    steps[..last].iter_mut().filter(|step| step.kind == Kind::Retreat).for_each(|step| step.skip = 0.0);
    steps
}

/// What the hand holds before the next step.
#[derive(Clone, Debug, PartialEq)]
enum Held {
    Nothing,
    This(Plan),
    /// It is held above where it was.
    Lifted(Plan),
    /// It may still be held: an action with it has just ended.
    Perhaps(Plan),
}

struct Builder {
    phrases: Phrases,
    steps: Vec<Step>,
    handling: usize,
    held: Held,
    arm: ArmChoice,
    /// `first`, `second`, … of objects that a repetition takes one by one.
    ordinal: Option<&'static str>,
    drives: bool,
    /// The arm of this handling is the one that was named for it.
    within: bool,
    /// For how many of an open number of objects steps are repeated.
    rounds: usize,
    /// Repetitions of an open number so far.
    repetitions: usize,
    /// The present round of such a repetition.
    round: Option<Round>,
    /// Inside of any repetition.
    counted: bool,
}

impl Builder {
    fn visit(&mut self, plan: &Plan) {
        if self.steps.len() >= MAX_STEPS {
            return;
        }
        match plan {
            Plan::Text(_) => {}
            Plan::Seq(plans) => self.sequence(plans),
            Plan::Repeat(body, times) => self.repeat(body, *times),
            Plan::Call(name, arguments) => match self.several(plan) {
                Some(_) => self.each(std::slice::from_ref(plan)),
                None => self.call(name, arguments),
            },
        }
    }

    /// What is done to the same objects one after another, such as `pick` and `place`, is done to each of them.
    fn sequence(&mut self, mut plans: &[Plan]) {
        while let Some(first) = plans.first() {
            let objects = self.several(first);
            let same = plans.iter().take_while(|plan| objects.is_some() && several(plan) == objects).count();
            let (own, others) = plans.split_at(same.max(1));
            if same > 0 {
                self.each(own)
            } else {
                self.visit(first)
            }
            plans = others;
        }
    }

    /// The objects of an action that is to be repeated for each of them.
    fn several<'a>(&self, plan: &'a Plan) -> Option<&'a Plan> {
        if self.counted || self.rounds <= 1 { None } else { several(plan) }
    }

    /// Repeats some plans, once for each of an open number of objects.
    fn each(&mut self, plans: &[Plan]) {
        self.counted = true;
        for at in 0..self.rounds {
            if self.steps.len() >= MAX_STEPS {
                break;
            }
            self.round = Some(Round { repetition: self.repetitions, at });
            self.ordinal = ORDINALS.get(at).copied();
            self.put_down();
            self.held = Held::Nothing;
            plans.iter().for_each(|plan| self.visit(plan));
            if let Held::This(object) | Held::Lifted(object) = self.held.clone() {
                self.step(Kind::Transport, "carry", &object, 0.0);
                self.put_down();
            }
        }
        // The next handling is not about one of them.
        self.held = Held::Nothing;
        (self.counted, self.ordinal, self.round) = (false, None, None);
        self.repetitions += 1;
    }

    fn repeat(&mut self, body: &Plan, times: u32) {
        let (outer, counted) = (self.ordinal, std::mem::replace(&mut self.counted, true));
        for at in 0..times as usize {
            if self.steps.len() >= MAX_STEPS {
                break;
            }
            // What was put away is another object the next time; what was pressed is the same one.
            self.ordinal = if moves_away(body) { ORDINALS.get(at).copied().or(outer) } else { outer };
            self.visit(body);
        }
        (self.ordinal, self.counted) = (outer, counted);
    }

    fn call(&mut self, name: &str, arguments: &[Plan]) {
        match (name, arguments) {
            ("open" | "close", [object]) if body_arm(object).is_some() => {
                let kind = if name == "open" { Kind::Release } else { Kind::Grasp };
                self.own_motion(kind, name, object, None);
            }
            ("push" | "pull" | "put" | "place", [object, place]) if body_arm(object).is_some() => {
                self.own_motion(Kind::Act, "move", object, Some(place));
            }
            ("act_on", [Plan::Text(verb), object]) if body_arm(object).is_some() => {
                self.own_motion(Kind::Act, verb, object, None);
            }
            ("act_to", [Plan::Text(verb), object, place]) if body_arm(object).is_some() => {
                self.own_motion(Kind::Act, verb, object, Some(place));
            }
            ("place" | "put", [object, place]) if is_body_place(place) => {
                self.hand_over("hand over", object, Some(place));
            }
            ("pick" | "lift", [object]) => self.take(object, NEEDED),
            ("grasp", [object]) => self.seize(object, NEEDED, None),
            ("place" | "put", [object, place]) => self.put(object, place),
            ("stack", [object, below]) => {
                self.put(object, &Plan::Call("on", vec![below.clone()]));
            }
            ("push" | "pull", [object, place]) => {
                let there = self.phrases.place(place, true);
                self.manipulate(Kind::Slide, name, object, &there, USUAL);
            }
            ("open" | "close", [object]) => self.manipulate(Kind::Slide, name, object, "", USUAL),
            ("turn_on" | "turn_off", [object]) => {
                let verb = name.replace('_', " ");
                self.manipulate(Kind::Turn, &verb, object, "", USUAL);
            }
            ("release", [object]) => {
                self.release(object, NEEDED);
                self.retreat();
            }
            ("reach", [place]) if place_object(place).is_some_and(is_home) => {
                let verb = if self.drives { "drive" } else { "move" };
                self.go_home(verb);
            }
            ("reach", [place]) => {
                let there = self.phrases.place(place, true);
                self.new_handling();
                let (phase, verb) = if self.drives { ("drive", "drive") } else { ("move", "move") };
                self.push(Kind::Go, phase, None, format!("{verb} {there}"), USUAL);
            }
            ("with", [tool, body]) => self.with(tool, body),
            ("act", [Plan::Text(verb)]) => {
                self.new_handling();
                let kind = if manner(verb) == Manner::Turn { Kind::Turn } else { Kind::Act };
                self.push(kind, first_word(verb), None, verb.clone(), USUAL);
            }
            ("act_on", [Plan::Text(verb), object]) => self.act(verb, object, None),
            ("act_to", [Plan::Text(verb), object, place]) => self.act(verb, object, Some(place)),
            _ => arguments.iter().for_each(|argument| self.visit(argument)),
        }
    }

    /// The robot moves its own hand or arm, for which it does not reach.
    fn own_motion(&mut self, kind: Kind, verb: &str, part: &Plan, place: Option<&Plan>) {
        self.new_handling();
        let there = place.map(|place| self.phrases.place(place, true)).unwrap_or_default();
        let name = [verb_phrase(verb, &self.phrases.object(part)), there];
        let name = name.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        self.arm = body_arm(part).unwrap_or_default();
        self.push(kind, first_word(verb), Some(part), name, NEEDED);
    }

    /// Reaches for an object, grasps and lifts it, as far as it is not held yet.
    fn take(&mut self, object: &Plan, price: f64) {
        if self.held == Held::Lifted(object.clone()) {
            return;
        }
        let price = if self.held == Held::Perhaps(object.clone()) { OPTIONAL } else { price };
        self.seize(object, price, None);
        self.step(Kind::Lift, "lift", object, price.min(USUAL));
        self.held = Held::Lifted(object.clone());
    }

    /// Reaches for an object and grasps it, or a part of it.
    fn seize(&mut self, object: &Plan, price: f64, part: Option<String>) {
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

    fn put(&mut self, object: &Plan, place: &Plan) {
        self.take(object, NEEDED);
        self.bring(object, place, USUAL);
        let there = self.phrases.place(place, false);
        let name = format!("place {} {there}", self.named(object));
        self.push(Kind::Place, "place", Some(object), name, USUAL);
        self.release(object, NEEDED);
        self.retreat();
    }

    /// A base may drive there first.
    fn drive_to(&mut self, object: &Plan, there: &str) {
        if self.drives {
            self.push(Kind::Go, "drive", Some(object), format!("drive {there}"), OPTIONAL);
        }
    }

    fn bring(&mut self, object: &Plan, place: &Plan, price: f64) {
        let there = self.phrases.place(place, true);
        self.drive_to(object, &there);
        let price = if self.drives { OPTIONAL } else { price };
        let name = format!("move {} {there}", self.named(object));
        self.push(Kind::Transport, "transport", Some(object), name, price);
    }

    fn release(&mut self, object: &Plan, price: f64) {
        self.step(Kind::Release, "release", object, price);
        self.held = Held::Nothing;
    }

    /// What is held may be put down before anything else is done.
    fn put_down(&mut self) {
        if let Held::This(object) | Held::Lifted(object) = self.held.clone() {
            self.push(Kind::Place, "place", Some(&object), self.sentence("put down", &object), OPTIONAL);
            self.release(&object, OPTIONAL);
            self.retreat();
        }
    }

    /// The robot itself goes where it belongs, which is how its hand goes away.
    fn go_home(&mut self, verb: &str) {
        if self.steps.last().is_some_and(|step| step.kind == Kind::Retreat) {
            self.steps.pop();
        }
        self.new_handling();
        self.push(Kind::Go, first_word(verb), None, format!("{verb} home"), USUAL);
    }

    fn reach(&mut self, object: &Plan, price: f64) {
        let name = format!("reach for {}", self.described(object));
        self.push(Kind::Reach, "reach", Some(object), name, price);
    }

    fn retreat(&mut self) {
        self.push(Kind::Retreat, "retreat", None, "move away".to_owned(), OPTIONAL);
    }

    /// Moves something that stays where it belongs: a drawer, a knob, a plate that is pushed. A hand may do so without
    /// closing, and then does not have to open.
    fn manipulate(&mut self, kind: Kind, verb: &str, object: &Plan, there: &str, grasping: f64) {
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
    fn act(&mut self, verb: &str, object: &Plan, place: Option<&Plan>) {
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
    fn hand_over(&mut self, verb: &str, object: &Plan, place: Option<&Plan>) {
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

    fn with(&mut self, tool: &Plan, body: &Plan) {
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
    fn handle_of_container(&self, verb: &str, object: &Plan) -> Option<String> {
        let named = self.named(object);
        (matches!(verb, "open" | "close") && !named.contains("handle")).then(|| format!("the handle of {named}"))
    }

    fn new_handling(&mut self) {
        self.handling += 1;
        self.held = Held::Nothing;
        if !self.within {
            self.arm = ArmChoice::Any;
        }
    }

    fn noun(&self, object: &Plan) -> String {
        let noun = self.phrases.noun(object);
        match self.ordinal {
            Some(ordinal) if self.round.is_some() => format!("{ordinal} {}", one_of(&noun)),
            Some(ordinal) => format!("{ordinal} {noun}"),
            None => noun,
        }
    }

    fn named(&self, object: &Plan) -> String {
        with_article(&self.noun(object))
    }

    /// As [`Builder::named`], with what tells the object from others of its kind.
    fn described(&self, object: &Plan) -> String {
        if self.round.is_some() {
            return self.named(object);
        }
        let noun = self.phrases.described(object);
        with_article(&self.ordinal.map_or(noun.clone(), |ordinal| format!("{ordinal} {noun}")))
    }

    fn sentence(&self, verb: &str, object: &Plan) -> String {
        verb_phrase(verb, &self.named(object))
    }

    fn step(&mut self, kind: Kind, verb: &str, object: &Plan, skip: f64) {
        let name = self.sentence(verb, object);
        let phase = if kind == Kind::Transport { "transport" } else { first_word(verb) };
        self.push(kind, phase, Some(object), name, skip);
    }

    fn push(&mut self, kind: Kind, phase: &str, object: Option<&Plan>, name: String, skip: f64) {
        let object = object.map(|object| self.noun(object));
        let (phase, arm, handling, round) = (phase.to_owned(), self.arm.clone(), self.handling, self.round);
        self.steps.push(Step { kind, phase, object, name, skip, arm, handling, round, with_tool: false });
    }
}

/// The objects of an action that is done to each of several, whose number is open.
fn several(plan: &Plan) -> Option<&Plan> {
    let Plan::Call(name, arguments) = plan else { return None };
    let object = match (*name, &arguments[..]) {
        ("place" | "put", [_, place]) if is_body_place(place) => return None,
        ("pick" | "lift" | "place" | "put" | "stack" | "open" | "close", [object, ..]) => object,
        ("act_on", [Plan::Text(verb), object]) if manner(verb) == Manner::Other => object,
        ("act_to", [Plan::Text(verb), object, place]) if manner(verb) == Manner::Other && !is_body_place(place) => {
            object
        }
        _ => return None,
    };
    (body_arm(object).is_none() && are_several(object)).then_some(object)
}

/// Whether a phrase means several things: `all "cube"`, `"cubes"`, `at "cubes" left`.
fn are_several(object: &Plan) -> bool {
    match object {
        Plan::Call("all", _) => true,
        Plan::Call("at", arguments) => arguments.first().is_some_and(are_several),
        Plan::Text(noun) => singular(noun).is_some(),
        _ => false,
    }
}

/// One of several: `cube` of `cubes`, and of `red and blue cubes` as well.
fn one_of(noun: &str) -> String {
    let one = singular(noun).unwrap_or_else(|| noun.to_owned());
    match one.contains(" and ") || one.contains(" or ") {
        true => one.rsplit(' ').next().unwrap_or_default().to_owned(),
        false => one,
    }
}
