//! The syntax tree of an instruction: who does what to which thing, and where to. Nothing is resolved here, a pronoun
//! is still a pronoun.

use super::lexicon::{self, Kind};
use crate::diagnostic::Span;

/// A whole instruction: the things to do, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// At least one clause.
    pub clauses: Vec<Clause>,
}

/// One verb with what it acts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// The action.
    pub verb: Verb,
    /// The verb as text, with its particle and manner (`clean up`, `place upright`); what [`Verb::Act`] does.
    pub name: String,
    /// What is acted on; several when coordinated (`the soup and the sauce`), none for [`Verb::Reach`].
    pub objects: Vec<Noun>,
    /// Where it is to end up.
    pub target: Option<Place>,
    /// Where a pronoun's thing is (`remove it from the box`); a described thing has its places in its description.
    pub sources: Vec<Place>,
    /// What it is done with.
    pub tool: Option<Tool>,
    /// How often (`twice`), 1 when nothing is said.
    pub times: u32,
    /// The clause in the text.
    pub span: Span,
}

/// What something is done with, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tool {
    /// For this clause: `wipe the table with the cloth`.
    Here(Noun),
    /// From this clause on: `use the cloth to wipe the table and the chair`.
    From(Noun),
    /// As in the clause before.
    Same,
}

/// The actions: those of LIBERO, each a primitive of the signature, and any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each variant is the verb it is named after")]
pub enum Verb {
    Pick,
    Place,
    Put,
    Push,
    Pull,
    Stack,
    Open,
    Close,
    TurnOn,
    TurnOff,
    Grasp,
    Lift,
    Release,
    Reach,
    /// Any other action, with its name as text.
    Act,
}

impl Verb {
    /// The primitive's name.
    pub const fn primitive(self) -> &'static str {
        match self {
            Verb::Pick => "pick",
            Verb::Place => "place",
            Verb::Put => "put",
            Verb::Push => "push",
            Verb::Pull => "pull",
            Verb::Stack => "stack",
            Verb::Open => "open",
            Verb::Close => "close",
            Verb::TurnOn => "turn_on",
            Verb::TurnOff => "turn_off",
            Verb::Grasp => "grasp",
            Verb::Lift => "lift",
            Verb::Release => "release",
            Verb::Reach => "reach",
            Verb::Act => "act_on",
        }
    }

    /// Whether the verb needs a place besides its object.
    pub const fn takes_target(self) -> bool {
        matches!(self, Verb::Place | Verb::Put | Verb::Push | Verb::Pull | Verb::Stack)
    }

    /// Whether the object is in the gripper afterwards.
    pub const fn holds(self) -> bool {
        matches!(self, Verb::Pick | Verb::Grasp | Verb::Lift)
    }
}

/// Something that refers to a thing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly every noun is a description")]
pub enum Noun {
    /// A description.
    Phrase(Phrase),
    /// A pronoun.
    Pronoun(Pronoun, Span),
}

impl Noun {
    /// Where it stands in the text.
    pub fn span(&self) -> Span {
        match self {
            Noun::Phrase(phrase) => phrase.span,
            Noun::Pronoun(_, span) => *span,
        }
    }

    /// What its head noun affords.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Noun::Phrase(phrase) => phrase.nouns.last().and_then(|noun| lexicon::noun(noun)).unwrap_or_default(),
            Noun::Pronoun(..) => Kind::default(),
        }
    }
}

/// A word for something said before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pronoun {
    /// One thing said before.
    It,
    /// Several things said before.
    Them,
    /// `both` without a noun.
    Both,
}

impl Pronoun {
    /// The word as a person would write it.
    pub const fn word(self) -> &'static str {
        match self {
            Pronoun::It => "it",
            Pronoun::Them => "them",
            Pronoun::Both => "both",
        }
    }
}

/// A description of a thing: `the middle black bowl on the plate`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// Positions before the noun, as written (`top left`).
    pub positions: Vec<Position>,
    /// Adjectives before the noun, with the `and` of `yellow and white`.
    pub adjectives: Vec<String>,
    /// The noun with the nouns before it, the last in the singular; the last is `one` in `the red one`.
    pub nouns: Vec<String>,
    /// The last noun as written, when that was a plural.
    pub plural: Option<String>,
    /// How many, when said (`both pots`, `two bowls`).
    pub count: Option<u32>,
    /// The word that counts them, as written.
    pub counted: Option<String>,
    /// Whether it means every thing of the description (`all the toys`).
    pub all: bool,
    /// What it is a part of (`of the cabinet`).
    pub whole: Option<Box<Noun>>,
    /// What is in it (`a bottle of wine`).
    pub contents: Option<String>,
    /// The end that an ordinal counts from (`the second hook from the left`).
    pub from: Option<String>,
    /// What it has (`the cup with the red handle`).
    pub feature: Option<String>,
    /// What is left out of `all` of them (`except the red one`).
    pub except: Option<String>,
    /// What else is meant in the same place (`in front of the pot and the spoon`).
    pub also: Vec<Noun>,
    /// Where it is; of several, the first is nearest to the noun.
    pub places: Vec<Place>,
    /// The phrase in the text.
    pub span: Span,
}

/// A place, as the goal of a motion or as the mark of a thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// `on the left`.
    Position(Position),
    /// `next to the plate`.
    Relative(Relation, Box<Noun>),
    /// `between the plate and the ramekin`.
    Between(Box<Noun>, Box<Noun>),
    /// `around the pole`: a relation without a primitive, by name.
    Other(String, Box<Noun>),
    /// `inside`, `on top`: the thing itself goes without saying.
    Implied(Relation, Span),
}

/// Relations of one landmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each variant is the relation it is named after")]
pub enum Relation {
    On,
    In,
    Under,
    OnTopOf,
    NextTo,
    LeftOf,
    RightOf,
    FrontOf,
    BackOf,
}

impl Relation {
    /// The primitive's name.
    pub const fn primitive(self) -> &'static str {
        match self {
            Relation::On => "on",
            Relation::In => "in",
            Relation::Under => "under",
            Relation::OnTopOf => "on_top_of",
            Relation::NextTo => "next_to",
            Relation::LeftOf => "left_of",
            Relation::RightOf => "right_of",
            Relation::FrontOf => "front_of",
            Relation::BackOf => "back_of",
        }
    }
}

/// Named positions in the workspace, or among things of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each variant is the position it is named after")]
pub enum Position {
    Left,
    Right,
    Middle,
    Front,
    Back,
    Top,
    Bottom,
    Center,
}

impl Position {
    /// The primitive's name.
    pub const fn primitive(self) -> &'static str {
        match self {
            Position::Left => "left",
            Position::Right => "right",
            Position::Middle => "middle",
            Position::Front => "front",
            Position::Back => "back",
            Position::Top => "top",
            Position::Bottom => "bottom",
            Position::Center => "center",
        }
    }

    /// The relation that `to the <position> of` means, where there is one.
    pub const fn relation(self) -> Option<Relation> {
        match self {
            Position::Left => Some(Relation::LeftOf),
            Position::Right => Some(Relation::RightOf),
            Position::Front => Some(Relation::FrontOf),
            Position::Back => Some(Relation::BackOf),
            Position::Top => Some(Relation::OnTopOf),
            Position::Middle | Position::Center | Position::Bottom => None,
        }
    }
}
