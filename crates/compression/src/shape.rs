//! Which parameters an abstraction may have, by where they stand in its body.
//!
//! The encoding of sequences is binary, so `\x. \y. seq[x, pick "a", y]` is as good a pattern as any: it saves symbols and
//! is no skill. A skill makes motions of its own. Under [`Shape::Skill`] a parameter that is a motion stands
//!
//! * as the rest of the sequence, at the tail of the body, without which nothing matches in the middle of a sequence; or
//! * in an arm of `repeat` or `branch`, or as the argument of a primitive that takes motions: the skill is then about it.
//!
//! It never stands as an item of a sequence, so every item is a call of the body's own; and no parameter is applied, as
//! in `x0 x1`. What an entry of the library does with its arguments counts as if its body stood there. Parameters of
//! other types stand anywhere.
//!
//! The search keeps to this from the first filling on. As no parameter is a function, the head of every call is fixed:
//! rows are parted by it as soon as a call is opened, which loses no abstraction and makes the sums that bound them
//! smaller. The bounds are over a subset of what they were over, hence admissible. The rules that give up an abstraction
//! for another one put a subterm of the corpus in place of a parameter, or one parameter in place of two; either keeps
//! the shape.

use rustc_hash::FxHashSet;

use crate::factored::{Entry, Factored};
use crate::term::{Term, TermId, Terms};

/// The shape that abstractions must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Any: whatever makes the corpus shorter.
    #[default]
    Any,
    /// Motions are parameters at the tail of the body and in arms only, and no parameter is applied. In a corpus without
    /// types every abstraction has this shape.
    Skill,
}

/// Where in a body a subterm stands; or, of an argument of a constant, where that puts it. Later ones allow less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Position {
    /// Where no motion stands.
    Value,
    /// In an arm: the motion that the body is about.
    Arm,
    /// At the tail of the body; of an argument, wherever the call stands.
    Tail,
    /// Where no parameter may stand: an item of a sequence, what is applied, or what the types do not tell.
    Fixed,
}

impl Position {
    /// The place of an argument of a call that stands at `self`, when the constant puts it at `slot`.
    pub(crate) fn of_argument(self, slot: Position) -> Position {
        match (slot, self) {
            // A call that is a value has no motion for its tail.
            (Position::Tail, Position::Value) => Position::Fixed,
            (Position::Tail, outer) => outer,
            (slot, _) => slot,
        }
    }
}

/// Where each constant puts its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    by_symbol: Vec<Vec<Position>>,
}

impl Slots {
    /// `by_symbol` are those of the constants that are no entries of the corpus's library.
    pub(crate) fn new(mut by_symbol: Vec<Vec<Position>>, corpus: &Factored) -> Self {
        by_symbol.resize(corpus.terms.name_count().max(by_symbol.len()), Vec::new());
        let mut slots = Self { by_symbol };
        for &index in &corpus.definition_order() {
            let entry = &corpus.entries[index];
            slots.by_symbol[entry.symbol.0 as usize] = slots.of_entry(&corpus.terms, entry);
        }
        slots
    }

    /// Where the argument of this number goes when `head` is what is applied.
    pub(crate) fn argument(&self, terms: &Terms, head: TermId, index: usize) -> Position {
        let Term::Symbol(symbol) = terms.get(head) else { return Position::Fixed };
        let slots = self.by_symbol.get(symbol.0 as usize);
        slots.and_then(|slots| slots.get(index)).copied().unwrap_or(Position::Fixed)
    }

    /// Where an entry puts its parameters, and after them what its body still waits for.
    fn of_entry(&self, terms: &Terms, entry: &Entry) -> Vec<Position> {
        let mut positions = vec![Position::Value; entry.arity];
        let mut met: FxHashSet<(TermId, Position)> = FxHashSet::default();
        let mut pending = vec![(entry.body, Position::Tail)];
        while let Some((id, place)) = pending.pop() {
            if !terms.has_param(id) || !met.insert((id, place)) {
                continue;
            }
            match terms.get(id) {
                Term::Param(param) => {
                    if let Some(known) = positions.get_mut(param as usize) {
                        *known = place.max(*known);
                    }
                }
                Term::Lam(_, body) => pending.push((body, place)),
                Term::App(..) => {
                    let (head, arguments) = terms.spine(id);
                    let is_lambda = matches!(terms.get(head), Term::Lam(..));
                    pending.push((head, if is_lambda { place } else { Position::Fixed }));
                    for (index, &argument) in arguments.iter().enumerate() {
                        pending.push((argument, place.of_argument(self.argument(terms, head, index))));
                    }
                }
                Term::Symbol(_) | Term::Var(..) => {}
            }
        }
        let (head, arguments) = terms.spine(entry.body);
        if let Term::Symbol(symbol) = terms.get(head) {
            let all = self.by_symbol.get(symbol.0 as usize).map_or(&[][..], |slots| slots);
            positions.extend_from_slice(all.get(arguments.len()..).unwrap_or(&[]));
        }
        positions
    }
}

#[cfg(test)]
mod tests {
    use language::{Signature, TermStore, parse};

    use super::*;
    use crate::library::Library;
    use crate::loaded::Loaded;
    use crate::programs::Programs;
    use crate::search::{DEFAULT_MAX_MEMORY, Rules, SearchLimits, search};
    use crate::term::SymbolId;

    fn loaded(texts: &[String]) -> Loaded {
        let mut store = TermStore::new();
        let base = Signature::standard(&mut store);
        let programs: Vec<_> = texts.iter().map(|text| parse(&mut store, &base, text).unwrap().term).collect();
        Loaded::new(&Programs::new(&store, &base, &Library::new(), programs).unwrap()).unwrap()
    }

    /// The best gain of a search of skills, and the best of those in a search of everything that have the shape.
    fn best(texts: &[String], max_arity: usize, rules: Rules) -> (i64, i64) {
        let loaded = loaded(texts);
        let corpus = &loaded.corpus;
        let weights = loaded.objective().weights(corpus);
        let slots = loaded.dictionary.slots(corpus);
        let limits = SearchLimits {
            max_arity,
            keep: 1,
            floor: 0,
            max_steps: u64::MAX,
            max_memory: DEFAULT_MAX_MEMORY,
            deadline: None,
            parallel: false,
            rules,
            shape: Shape::Skill,
        };
        let mut terms = corpus.terms.clone();
        let mut space = corpus.space(&mut terms, &weights);
        let everything = search(&space, &SearchLimits { keep: usize::MAX, shape: Shape::Any, ..limits });
        let gain = everything.best.iter().find(|abstraction| {
            let body = abstraction.body_term(&space, &mut terms);
            let entry = Entry { symbol: SymbolId(0), arity: abstraction.arity, body };
            slots.of_entry(&terms, &entry)[..abstraction.arity].iter().all(|&position| position != Position::Fixed)
        });
        let wanted = gain.map_or(0, |abstraction| abstraction.gain(&space));
        space.restrict_to_skills(&slots, &terms);
        let found = search(&space, &limits);
        (found.best.first().map_or(0, |abstraction| abstraction.gain(&space)), wanted)
    }

    /// The restricted search loses no skill, whichever rules prune it.
    #[test]
    fn the_best_skill_is_the_best_of_all_that_have_the_shape() {
        let mut state = 1u64;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        let mut gained = 0;
        for case in 0..20 {
            let mut program = || {
                let mut motion = || match below(4) {
                    0 => format!("pick \"{}\"", below(3)),
                    1 => format!("place \"{}\" (on \"{}\")", below(3), below(2)),
                    2 => "open \"b\"".to_owned(),
                    _ => format!("repeat(seq[lift \"{}\", close \"a\"], {})", below(2), below(3)),
                };
                let (a, b, c) = (motion(), motion(), motion());
                let last = motion();
                if below(3) > 0 { format!("seq[{a}, {b}, {c}, {last}]") } else { format!("seq[{a}, {b}]") }
            };
            let texts: Vec<String> = (0..5).map(|_| program()).collect();
            let exact = Rules { argument_capture: false, single_place: false, ..Rules::default() };
            for rules in [exact, Rules { exhausted_arity: false, spent_rows: false, overlap: true, ..exact }] {
                let (found, wanted) = best(&texts, case % 4, rules);
                assert_eq!(found, wanted, "{texts:#?} at arity {}", case % 4);
                gained += i64::from(found > 0);
            }
            // Argument capture gives up the same here as it does without the shape, and never gains more.
            let (captured, wanted) = best(&texts, case % 4, Rules::default());
            assert!(captured <= best(&texts, case % 4, exact).0 && captured >= wanted, "{texts:#?}");
        }
        assert!(gained > 20);
    }
}
