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

mod handling;

use language::instruction::Plan;

use crate::phrase::{Phrases, verb_phrase, with_article};
use crate::reading::singular;
use crate::verbs::{Manner, body_arm, first_word, is_body_place, is_home, manner, moves_away, place_object};

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
