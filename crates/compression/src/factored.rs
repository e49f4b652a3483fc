//! A corpus factored into a library and the programs that call it.

use crate::cost::Weights;
use crate::pattern::Partial;
use crate::rewrite;
use crate::space::Space;
use crate::term::{SymbolId, Term, TermId, Terms};

/// An entry of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) symbol: SymbolId,
    pub(crate) arity: usize,
    pub(crate) body: TermId,
}

/// Programs and the library they call. Bodies may call other entries, never in a circle.
#[derive(Clone, Debug)]
pub(crate) struct Factored {
    pub(crate) terms: Terms,
    pub(crate) programs: Vec<TermId>,
    pub(crate) entries: Vec<Entry>,
    /// Names of new entries are numbered from here on: those before it were taken once, even where the entry is gone.
    pub(crate) next_name: usize,
}

impl Factored {
    /// The corpus as it was read: an empty library.
    pub(crate) fn unfactored(terms: Terms, programs: Vec<TermId>) -> Self {
        Self { terms, programs, entries: Vec::new(), next_name: 0 }
    }

    /// The programs, then the bodies. Bodies are part of what is compressed: a later abstraction shortens earlier ones.
    pub(crate) fn roots(&self) -> Vec<TermId> {
        self.programs.iter().copied().chain(self.entries.iter().map(|entry| entry.body)).collect()
    }

    /// Lays out programs and bodies for the search.
    ///
    /// `terms` are those of this corpus, which the layout extends.
    pub(crate) fn space(&self, terms: &mut Terms, weights: &Weights) -> Space {
        let roots: Vec<(TermId, u64)> = self.roots().into_iter().map(|root| (root, 1)).collect();
        Space::new(terms, &roots, weights)
    }

    /// The corpus rewritten with one more abstraction, wherever that is cheaper. `body` is a term of `terms`, which
    /// extends the terms of this corpus. `None` when the body matches nowhere.
    ///
    /// No circle can arise: a body that is rewritten to call the new entry held all that the new entry calls.
    pub(crate) fn admit(&self, terms: &mut Terms, body: TermId, arity: usize, weights: &Weights) -> Option<Self> {
        let space = self.space(terms, weights);
        let abstraction = Partial::matching(body, terms, &space)?;
        let mut into = Terms::with_names_of(terms);
        let symbol = into.fresh_symbol(self.next_name.max(self.entries.len()));
        let calls = space.chosen_calls(&abstraction);
        let roots = rewrite::rewrite(&space, terms, &abstraction, &calls, symbol, &self.roots(), &mut into);
        let body = into.copy(terms, body);
        let (programs, bodies) = roots.split_at(self.programs.len());
        let rewritten = self.entries.iter().zip(bodies).map(|(entry, &body)| Entry { body, ..*entry });
        let entries = rewritten.chain([Entry { symbol, arity, body }]).collect();
        Some(Self { terms: into, programs: programs.to_vec(), entries, next_name: self.next_name })
    }

    /// The programs with every call inlined, as terms of the store that is returned.
    pub(crate) fn inlined(&self) -> (Terms, Vec<TermId>) {
        let mut terms = Terms::with_names_of(&self.terms);
        let mut inlining = rewrite::Inlining::new(&self.terms, &self.entries);
        let programs = inlining.inline_all(&self.programs, &mut terms);
        (terms, programs)
    }

    /// The numbers of the entries, each after those that its body calls.
    pub(crate) fn definition_order(&self) -> Vec<usize> {
        let calls = |entry: &Entry| -> Vec<SymbolId> {
            let parts = self.terms.reachable([entry.body]).into_iter();
            parts
                .filter_map(|id| if let Term::Symbol(symbol) = self.terms.get(id) { Some(symbol) } else { None })
                .collect()
        };
        let calls: Vec<Vec<SymbolId>> = self.entries.iter().map(calls).collect();
        let mut order: Vec<usize> = Vec::with_capacity(self.entries.len());
        while order.len() < self.entries.len() {
            let is_free = |&entry: &usize| {
                !order.contains(&entry)
                    && (0..self.entries.len())
                        .all(|other| order.contains(&other) || !calls[entry].contains(&self.entries[other].symbol))
            };
            // There is always one, as bodies do not call each other in a circle.
            let Some(next) = (0..self.entries.len()).find(is_free) else {
                break;
            };
            order.push(next);
        }
        order
    }

    /// The corpus with one entry inlined in programs and in the other entries.
    pub(crate) fn without(&self, index: usize) -> Self {
        self.inlined_entry(index, |at| at != index)
    }

    /// The corpus with the calls of one entry inlined; the entry stays, at no use.
    pub(crate) fn uncalled(&self, index: usize) -> Self {
        self.inlined_entry(index, |_| true)
    }

    /// One entry inlined in programs and in the entries that are kept.
    fn inlined_entry(&self, index: usize, is_kept: impl Fn(usize) -> bool) -> Self {
        let mut terms = Terms::with_names_of(&self.terms);
        let mut inlining = rewrite::Inlining::new(&self.terms, &self.entries[index..=index]);
        let programs = inlining.inline_all(&self.programs, &mut terms);
        let kept = self.entries.iter().enumerate().filter(|&(at, _)| is_kept(at));
        let entries = kept.map(|(_, entry)| inlining.inline_body(entry, &mut terms)).collect();
        Self { terms, programs, entries, next_name: self.next_name }
    }

    /// How often each entry is called, in programs and bodies together.
    pub(crate) fn uses(&self) -> Vec<u64> {
        let counts = self.counts(&self.roots());
        self.entries.iter().map(|entry| counts[entry.symbol.0 as usize]).collect()
    }

    /// How often each constant is called when the programs run, by its number: a call in the body of an entry counts once for
    /// each call of the entry.
    pub(crate) fn calls_made(&self) -> Vec<u64> {
        let mut made = self.counts(&self.programs);
        // Callers before what they call, so that each entry's own number is settled when it is passed on.
        for &index in self.definition_order().iter().rev() {
            let entry = &self.entries[index];
            let times = made[entry.symbol.0 as usize];
            for (total, n) in made.iter_mut().zip(self.counts(&[entry.body])) {
                *total = total.saturating_add(times.saturating_mul(n));
            }
        }
        made
    }

    /// How often each constant occurs in the given terms, by its number.
    pub(crate) fn counts(&self, roots: &[TermId]) -> Vec<u64> {
        let mut count = vec![0u64; self.terms.len()];
        for root in roots {
            count[root.0 as usize] += 1;
        }
        let mut counts = vec![0; self.terms.name_count()];
        for index in (0..self.terms.len()).rev() {
            let id = TermId(index as u32);
            for child in self.terms.children(id) {
                // A program may be a tree of more nodes than a number holds.
                count[child.0 as usize] = count[child.0 as usize].saturating_add(count[index]);
            }
            if let Term::Symbol(symbol) = self.terms.get(id) {
                counts[symbol.0 as usize] = count[index];
            }
        }
        counts
    }
}
