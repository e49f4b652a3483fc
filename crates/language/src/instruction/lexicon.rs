//! What each word can be. English words are ambiguous (`close the drawer`, `close to the plate`; `an orange`, `an
//! orange mug`), so an [`Entry`] lists every category and the grammar chooses by context.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::tree::{Position, Relation};
use super::verbs::{ACTIONS, Manner, VERBS};
use super::vocabulary::{
    ADJECTIVES, ADVERBS, BODY, COLOURS, DETERMINERS, FUNCTION_WORDS, IRREGULAR_PLURALS, NOUNS, NUMBERS, POSITIONS,
    PREPOSITIONS, TOOLS,
};
use super::words::singular;

/// What a thing affords, as far as the resolution of references needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent features of a noun, read by name")]
pub(super) struct Kind {
    /// Things go into it.
    pub(super) holds: bool,
    /// Things go onto it.
    pub(super) carries: bool,
    /// It can be opened and closed.
    pub(super) opens: bool,
    /// It can be turned on and off.
    pub(super) switches: bool,
    /// It is a part of something larger.
    pub(super) part: bool,
    /// It is where all the things are, so that `the left of the table` is simply the left.
    pub(super) workspace: bool,
}

/// Prepositions: those that name a relation, and those whose relation depends on what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preposition {
    On,
    Onto,
    In,
    Into,
    Under,
    OnTopOf,
    NextTo,
    BackOf,
    Between,
    At,
    To,
    From,
    OutOf,
    Off,
    /// A relation without a primitive, by name.
    Other(&'static str),
}

impl Preposition {
    /// Whether it says where the thing comes from, never where it goes.
    pub(super) const fn is_source(self) -> bool {
        matches!(self, Preposition::From | Preposition::OutOf | Preposition::Off)
    }

    /// Whether it says that something goes there, not only that it is there.
    pub(super) const fn is_directional(self) -> bool {
        matches!(self, Preposition::To | Preposition::Into | Preposition::Onto)
    }

    /// The relation to a landmark of this kind. `pushed` tells that the thing stays on its surface.
    pub(super) const fn relation(self, landmark: Kind, pushed: bool) -> Relation {
        match self {
            Preposition::On | Preposition::Onto | Preposition::Off => Relation::On,
            Preposition::In | Preposition::Into | Preposition::OutOf => Relation::In,
            Preposition::Under => Relation::Under,
            Preposition::OnTopOf => Relation::OnTopOf,
            Preposition::BackOf => Relation::BackOf,
            Preposition::From if landmark.holds => Relation::In,
            Preposition::From => Relation::On,
            Preposition::To if landmark.holds && !pushed => Relation::In,
            Preposition::To if landmark.carries && !pushed => Relation::On,
            Preposition::NextTo | Preposition::At | Preposition::To | Preposition::Between | Preposition::Other(_) => {
                Relation::NextTo
            }
        }
    }
}

/// A noun's reading of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NounEntry {
    pub(super) kind: Kind,
    pub(super) singular: String,
    pub(super) is_plural: bool,
}

/// Every category of one word.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Entry {
    pub(super) noun: Option<NounEntry>,
    pub(super) position: Option<Position>,
    pub(super) number: Option<u32>,
    pub(super) is_colour: bool,
    pub(super) is_adjective: bool,
    pub(super) is_determiner: bool,
    pub(super) is_verb: bool,
    /// The reading as an action without a primitive of its own.
    pub(super) action: Option<(&'static str, Manner)>,
    pub(super) is_adverb: bool,
    pub(super) is_preposition: bool,
    pub(super) is_function: bool,
}

impl Entry {
    /// Whether the word is in the lexicon at all.
    pub(super) fn is_known(&self) -> bool {
        self.noun.is_some()
            || self.position.is_some()
            || self.number.is_some()
            || self.is_colour
            || self.is_adjective
            || self.is_determiner
            || self.is_verb
            || self.is_adverb
            || self.is_preposition
            || self.is_function
    }

    /// Whether the word is a noun, an adjective or a colour.
    pub(super) fn is_substantive(&self) -> bool {
        self.noun.is_some() || self.is_adjective || self.is_colour
    }

    /// Whether the word can stand before or as a noun.
    pub(super) fn is_nominal(&self) -> bool {
        self.noun.is_some() || self.is_adjective || self.is_colour || self.position.is_some()
    }
}

/// Looks a lower-case word up.
pub(super) fn entry(word: &str) -> Entry {
    LISTED.get(word).cloned().unwrap_or_else(|| Entry {
        noun: plural(word),
        number: word.parse().ok().filter(|n| (1..=100).contains(n)),
        ..Entry::default()
    })
}

/// Every word that is listed, with its categories: the lists are for people, this is for looking up.
static LISTED: LazyLock<HashMap<&'static str, Entry>> =
    LazyLock::new(|| words().map(|word| (word, listed(word))).collect());

/// The categories of a word, from every list.
fn listed(word: &str) -> Entry {
    let noun = noun(word).map(|kind| NounEntry { kind, singular: word.to_owned(), is_plural: false });
    Entry {
        noun: noun.or_else(|| plural(word)),
        position: POSITIONS.iter().find(|(w, _)| *w == word).map(|(_, position)| *position),
        number: NUMBERS.iter().find(|(w, _)| *w == word).map(|(_, n)| *n),
        is_colour: lists(COLOURS, word),
        is_adjective: lists(ADJECTIVES, word),
        is_determiner: lists(DETERMINERS, word),
        is_verb: VERBS.iter().any(|(w, _, _)| *w == word) || action(word).is_some(),
        action: action(word),
        is_adverb: lists(ADVERBS, word),
        is_preposition: PREPOSITIONS.iter().any(|(words, _)| words[0] == word),
        is_function: lists(FUNCTION_WORDS, word),
    }
}

/// A noun's plural.
fn plural(word: &str) -> Option<NounEntry> {
    let stem = singular(word)?;
    Some(NounEntry { kind: noun(&stem)?, singular: stem, is_plural: true })
}

/// The reading of a word as an action, with the word itself.
fn action(word: &str) -> Option<(&'static str, Manner)> {
    ACTIONS.iter().find_map(|(manner, words)| {
        let listed = words.split_ascii_whitespace().find(|listed| *listed == word)?;
        Some((listed, *manner))
    })
}

/// The verb that `rotating` is a form of.
pub(super) fn gerund(word: &str) -> Option<String> {
    let stem = word.strip_suffix("ing").filter(|stem| stem.len() > 1)?;
    let is_verb = |verb: &String| entry(verb).is_verb;
    let doubled = || {
        let (last, before) = stem.char_indices().next_back().zip(stem.chars().rev().nth(1))?;
        (last.1 == before).then(|| stem[..last.0].to_owned())
    };
    [Some(stem.to_owned()), Some(format!("{stem}e")), doubled()].into_iter().flatten().find(is_verb)
}

/// Whether a noun names a tool or a hand, so that `with` it says how.
pub(super) fn is_tool(noun: &str) -> bool {
    lists(TOOLS, noun)
}

/// Whether a noun names the robot or its hand.
pub(super) fn is_body(noun: &str) -> bool {
    lists(BODY, noun)
}

/// Whether a text of words has this one.
pub(super) fn lists(words: &str, word: &str) -> bool {
    words.split_ascii_whitespace().any(|listed| listed == word)
}

/// The kind of a noun in the singular.
pub(super) fn noun(word: &str) -> Option<Kind> {
    NOUN_KINDS.get(word).copied()
}

static NOUN_KINDS: LazyLock<HashMap<&'static str, Kind>> = LazyLock::new(|| {
    let listed = NOUNS.iter().flat_map(|(kind, words)| words.split_ascii_whitespace().map(|word| (word, *kind)));
    // The first list that has a word counts.
    let mut kinds = HashMap::new();
    listed.for_each(|(word, kind)| {
        kinds.entry(word).or_insert(kind);
    });
    kinds
});

/// The singular of a plural that no rule gives.
pub(super) fn irregular_plural(word: &str) -> Option<&'static str> {
    IRREGULAR_PLURALS.iter().find(|(plural, _)| *plural == word).map(|(_, stem)| *stem)
}

/// Every word of the lexicon, nouns in the singular, in a fixed order; some stand in several categories.
pub fn words() -> impl Iterator<Item = &'static str> {
    let actions = ACTIONS.iter().flat_map(|(_, words)| words.split_ascii_whitespace());
    let verbs = VERBS.iter().map(|(word, _, _)| *word).chain(actions);
    let nouns = NOUNS.iter().flat_map(|(_, words)| words.split_ascii_whitespace());
    let positions = POSITIONS.iter().map(|(word, _)| *word);
    let prepositions = PREPOSITIONS.iter().flat_map(|(words, _)| words.iter().copied());
    let numbers = NUMBERS.iter().map(|(word, _)| *word);
    let lists =
        [COLOURS, ADJECTIVES, ADVERBS, DETERMINERS, FUNCTION_WORDS].into_iter().flat_map(str::split_ascii_whitespace);
    verbs.chain(nouns).chain(positions).chain(prepositions).chain(numbers).chain(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_words_keep_all_their_categories() {
        let orange = entry("orange");
        assert!(orange.noun.is_some() && orange.is_colour);
        assert!(entry("moka").noun.is_some());
        assert!(entry("pots").noun.is_some_and(|noun| noun.is_plural && noun.singular == "pot"));
        assert!(!entry("gizmo").is_known());
    }

    #[test]
    fn gerunds_lead_to_their_verb() {
        let cases = [("rotating", "rotate"), ("grasping", "grasp"), ("setting", "set"), ("putting", "put")];
        for (word, verb) in cases {
            assert_eq!(gerund(word).as_deref(), Some(verb), "{word}");
        }
        assert_eq!(gerund("string"), None);
        assert_eq!(gerund("ing"), None);
    }

    #[test]
    fn there_are_two_hundred_verbs() {
        let verbs: std::collections::BTreeSet<_> = words().filter(|word| entry(word).is_verb).collect();
        assert!(verbs.len() >= 200, "{}", verbs.len());
    }

    #[test]
    fn no_noun_stands_in_two_kinds() {
        let mut nouns: Vec<_> = NOUNS.iter().flat_map(|(_, words)| words.split_ascii_whitespace()).collect();
        let total = nouns.len();
        nouns.sort_unstable();
        nouns.dedup();
        assert_eq!(nouns.len(), total);
    }
}
