//! A noun phrase while it is read, and what it becomes.

use super::lexicon::Kind;
use super::phrase::Thing;
use super::tree::{Noun, Phrase, Position, Pronoun};
use crate::diagnostic::Span;

/// A noun phrase under construction.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) pronoun: Option<Pronoun>,
    pub(super) positions: Vec<Position>,
    pub(super) adjectives: Vec<String>,
    pub(super) shared: Vec<(Vec<Position>, Vec<String>)>,
    pub(super) nouns: Vec<String>,
    pub(super) plural: Option<String>,
    pub(super) count: Option<u32>,
    pub(super) counted: Option<String>,
    pub(super) both: bool,
    pub(super) all: bool,
    pub(super) whole: Option<Box<Thing>>,
    pub(super) contents: Option<String>,
    pub(super) from: Option<String>,
    pub(super) spot: Option<Position>,
    pub(super) article: bool,
    pub(super) kind: Kind,
    pub(super) span: Span,
}

impl Core {
    /// A phrase without words.
    pub(super) fn new(span: Span) -> Self {
        Core {
            pronoun: None,
            positions: Vec::new(),
            adjectives: Vec::new(),
            shared: Vec::new(),
            nouns: Vec::new(),
            plural: None,
            count: None,
            counted: None,
            both: false,
            all: false,
            whole: None,
            contents: None,
            from: None,
            spot: None,
            article: false,
            kind: Kind::default(),
            span,
        }
    }

    /// The reference.
    pub(super) fn finish(self) -> Thing {
        if let Some(pronoun) = self.pronoun {
            return (Noun::Pronoun(pronoun, self.span), Kind::default());
        }
        // `both` counts only before a plural; in `both the soup and the sauce` it announces the coordination.
        let said = if self.both { Some(2) } else { self.count };
        let count = said.filter(|n| *n > 1 && self.plural.is_some() && !self.all);
        let counted = self.counted.filter(|_| count.is_some());
        let plural = self.plural.filter(|_| said != Some(1));
        // A spot that is itself a part of something goes by its own name: `the handle of the left`.
        let spot = self.spot.map(|position| position.primitive().to_owned());
        let phrase = Phrase {
            positions: self.positions,
            adjectives: self.adjectives,
            nouns: if self.nouns.is_empty() { spot.into_iter().collect() } else { self.nouns },
            plural,
            count,
            counted,
            all: self.all,
            whole: self.whole.map(|thing| Box::new(thing.0)),
            contents: self.contents,
            from: self.from,
            feature: None,
            except: None,
            also: Vec::new(),
            places: Vec::new(),
            span: self.span,
        };
        (Noun::Phrase(phrase), self.kind)
    }

    /// The references, several where modifiers share the noun.
    pub(super) fn finish_all(mut self) -> Vec<Thing> {
        let shared = std::mem::take(&mut self.shared);
        if shared.is_empty() {
            return vec![self.finish()];
        }
        let (last, kind) = Core { plural: None, count: None, counted: None, both: false, ..self }.finish();
        let with_modifiers = |(positions, adjectives): (Vec<Position>, Vec<String>)| match &last {
            Noun::Phrase(phrase) => (Noun::Phrase(Phrase { positions, adjectives, ..phrase.clone() }), kind),
            Noun::Pronoun(..) => (last.clone(), kind),
        };
        let mut things: Vec<Thing> = shared.into_iter().map(with_modifiers).collect();
        things.push((last, kind));
        things
    }

    /// Adds `of whole`: a part of something, a spot of something, or else what a vessel contains.
    pub(super) fn of(mut self, whole: Core) -> Self {
        let span = self.span.to(whole.span);
        if self.spot.is_some() || self.kind.part || whole.pronoun.is_some() || whole.nouns.is_empty() {
            self.whole = Some(Box::new(whole.finish()));
        } else {
            let plural = whole.plural.or_else(|| whole.nouns.last().cloned());
            let modifiers = whole.adjectives.into_iter().chain(whole.nouns.iter().rev().skip(1).rev().cloned());
            self.contents = Some(modifiers.chain(plural).collect::<Vec<_>>().join(" "));
        }
        Core { span, ..self }
    }

    /// Whether anything stands before its noun.
    pub(super) fn has_modifier(&self) -> bool {
        !self.positions.is_empty() || !self.adjectives.is_empty()
    }
}

/// A phrase that says nothing.
pub(super) fn empty(span: Span) -> Phrase {
    Phrase {
        positions: Vec::new(),
        adjectives: Vec::new(),
        nouns: Vec::new(),
        plural: None,
        count: None,
        counted: None,
        all: false,
        whole: None,
        contents: None,
        from: None,
        feature: None,
        except: None,
        also: Vec::new(),
        places: Vec::new(),
        span,
    }
}
