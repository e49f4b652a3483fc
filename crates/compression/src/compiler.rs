//! The grammatical compiler (wake): programs rewritten with a library, and what became of them.
//!
//! Entries are taken one by one, by decreasing gain at admission, and each replaces what it matches; what one has replaced
//! the next ones see as a call. [`Strategy::Greedy`] is the paper's: every match becomes a call, from the outside in.
//! [`Strategy::Cheapest`] is ours: for each entry the dynamic programme of the search chooses the matches that make the
//! programs cheapest. Both take the entries in the same order.
//!
//! A body may be written with other entries that come later in that order. So bodies are unfolded first, and those still to
//! come are rewritten together with the programs: the pattern that an entry is matched by is always written with what has
//! been applied so far.
//!
//! An entry that takes the rest of a sequence, `f = \\x. \\rest. seq[pick x, lift x, rest]`, is also called where nothing comes
//! after it: `seq[pick "a", lift "a"]` is `f "a" (seq[])`. Otherwise whether an entry matches would depend on where a
//! program ends.

use std::cmp::Ordering;

use language::TermId as TreeId;
use rustc_hash::FxHashMap;

use crate::cost::Weights;
use crate::factored::{Entry, Factored};
use crate::library::LibraryEntry;
use crate::loaded::{DescriptionLength, LoadError, Loaded};
use crate::pattern::Partial;
use crate::programs::Programs;
use crate::rewrite;
use crate::space::{Node, Space};
use crate::term::{SymbolId, Term, TermId, Terms};

/// Which matches of an entry become calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// All of them, from the outside in. The paper's.
    #[default]
    Greedy,
    /// Those that make the programs cheapest, by the search's own optimal rewriting.
    Cheapest,
}

/// Programs, compiled.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The programs, rewritten.
    pub programs: Programs,
    /// For each program whether it calls the library now.
    pub rewritten: Vec<bool>,
    /// For each entry the calls that programs make, in the order of the library.
    pub entries: Vec<EntryCalls>,
    /// The description length with the library and no call of it.
    pub before: DescriptionLength,
    /// The description length with the calls.
    pub after: DescriptionLength,
}

/// The calls of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryCalls {
    /// The entry.
    pub name: String,
    /// The calls, by program, within one from left to right.
    pub calls: Vec<Call>,
}

/// A call in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The program, by its place in the corpus, from 0.
    pub program: usize,
    /// The whole call, a term of the store of [`Compiled::programs`]. It may have variables that are bound around it.
    pub term: TreeId,
    /// What stands in the argument slots.
    pub arguments: Vec<TreeId>,
    /// What the entry's value is applied to: its body may itself be a function, such as another entry with some arguments.
    pub applied_to: Vec<TreeId>,
}

impl Compiled {
    /// The share of programs that call the library; 0 of none.
    pub fn share_rewritten(&self) -> f64 {
        let rewritten = self.rewritten.iter().filter(|&&rewritten| rewritten).count();
        rewritten as f64 / self.rewritten.len().max(1) as f64
    }

    /// How many entries are called.
    pub fn entries_used(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.calls.is_empty()).count()
    }
}

/// Rewrites programs with their library; calls of entries that they make already are unfolded first.
pub fn compile(programs: &Programs, strategy: Strategy) -> Result<Compiled, LoadError> {
    let library = programs.library();
    let mut loaded = Loaded::new(programs)?;
    let sequences = loaded.dictionary.sequences(&mut loaded.corpus.terms)?;
    let loaded = loaded;
    let objective = loaded.objective();
    let mut work = Work::new(&loaded.corpus, sequences);
    let uncalled = work.written(&loaded.corpus);
    let mut order: Vec<usize> = (0..library.len()).collect();
    let gain = |index: usize| library.entries()[index].gain;
    order.sort_by(|&a, &b| gain(b).total_cmp(&gain(a)).then(a.cmp(&b)));
    for index in order {
        let weights = objective.weights(&work.plain());
        work.apply(index, strategy, &weights);
    }
    let compiled = work.written(&loaded.corpus);
    // The library stays as it is, what is known of its uses included.
    let written = loaded.written(programs, &compiled, |_| None)?;
    let written = Programs { library: library.clone(), ..written };
    let (rewritten, entries) = calls(&written);
    Ok(Compiled {
        programs: written,
        rewritten,
        entries,
        before: loaded.description_length(&objective, &uncalled),
        after: loaded.description_length(&objective, &compiled),
    })
}

/// Programs on their way, with the bodies of the entries still to come.
struct Work<'l> {
    entries: &'l [Entry],
    terms: Terms,
    programs: Vec<TermId>,
    /// Each entry, its body written with what has been applied so far; none once it was its turn. Where a body is another
    /// entry that lacks arguments, these are parameters too, so that a whole call is what it matches.
    pending: Vec<Option<Entry>>,
    /// `seq` and `seq[]`.
    sequences: (SymbolId, SymbolId),
    /// Of each entry the parameter that is the rest of a sequence, if it has one.
    rests: Vec<Option<usize>>,
}

impl<'l> Work<'l> {
    /// Programs and bodies, all calls unfolded.
    fn new(known: &'l Factored, sequences: (SymbolId, SymbolId)) -> Self {
        let mut terms = Terms::with_names_of(&known.terms);
        let mut inlining = rewrite::Inlining::new(&known.terms, &known.entries);
        let programs = inlining.inline_all(&known.programs, &mut terms);
        let pending: Vec<Entry> = known.entries.iter().map(|entry| inlining.inline_body(entry, &mut terms)).collect();
        let rests = pending.iter().map(|entry| rest_of(&terms, entry.body, sequences.0)).collect();
        let pending = pending.into_iter().map(Some).collect();
        Self { entries: &known.entries, terms, programs, pending, sequences, rests }
    }

    fn plain(&self) -> Factored {
        Factored::unfactored(self.terms.clone(), self.programs.clone())
    }

    /// The programs as they are now, with the library as it is known.
    fn written(&self, known: &Factored) -> Factored {
        let mut written = known.clone();
        written.programs = written.terms.copy_all(&self.terms, &self.programs);
        written
    }

    /// Calls an entry wherever the strategy says so, in programs and in the bodies still to come.
    fn apply(&mut self, index: usize, strategy: Strategy, weights: &Weights) {
        let Some(entry) = self.pending[index].take() else { return };
        let ending = self.rests[index].and_then(|rest| self.ending(&entry, rest));
        if self.is_pattern(&entry) {
            self.call(&entry, strategy, weights);
        }
        let Some(Ending { terms, pattern, call }) = ending else { return };
        let pattern = Entry { body: self.terms.copy(&terms, pattern.body), ..pattern };
        if self.is_pattern(&pattern) {
            // Such a call has one argument more than its pattern has parameters.
            let weights = Weights { call: 2 * weights.call + weights.app, ..weights.clone() };
            self.call(&pattern, strategy, &weights);
            let call = self.terms.copy(&terms, call);
            self.inline(&Entry { body: call, ..pattern });
        }
    }

    /// An entry as it is where the rest of the sequence, which is its parameter `rest`, is empty.
    fn ending(&mut self, entry: &Entry, rest: usize) -> Option<Ending> {
        let (seq, empty) = self.sequences;
        let symbol = self.terms.symbol(ENDING);
        let mut terms = Terms::with_names_of(&self.terms);
        let body = terms.copy(&self.terms, entry.body);
        let empty = terms.add(Term::Symbol(empty));
        let arguments: Vec<TermId> = (0..entry.arity)
            .map(|param| match param.cmp(&rest) {
                Ordering::Less => terms.add(Term::Param(param as u32)),
                Ordering::Equal => empty,
                Ordering::Greater => terms.add(Term::Param(param as u32 - 1)),
            })
            .collect();
        let pattern = rewrite::instantiate(&mut terms, body, &arguments);
        let pattern = without_empty_rest(&mut terms, pattern, seq, empty);
        // One motion that nothing follows is not told from one in the middle of a sequence.
        let is_known = |head: SymbolId| head == seq || self.entries.iter().any(|entry| entry.symbol == head);
        if !matches!(terms.get(terms.spine(pattern).0), Term::Symbol(head) if is_known(head)) {
            return None;
        }
        let name = terms.add(Term::Symbol(entry.symbol));
        let call = terms.apply(name, arguments);
        Some(Ending { terms, pattern: Entry { symbol, arity: entry.arity - 1, body: pattern }, call })
    }

    /// Replaces matches of an entry's body by calls of its symbol.
    fn call(&mut self, entry: &Entry, strategy: Strategy, weights: &Weights) {
        let roots = self.roots();
        let weighted: Vec<(TermId, u64)> = roots.iter().map(|&root| (root, 1)).collect();
        let space = Space::new(&mut self.terms, &weighted, weights);
        let Some(abstraction) = Partial::matching(entry.body, &self.terms, &space) else { return };
        let chosen: Vec<(Node, usize)> = match strategy {
            Strategy::Greedy => abstraction.nodes().iter().enumerate().map(|(row, &node)| (node, row)).collect(),
            Strategy::Cheapest => space.chosen_calls(&abstraction),
        };
        let mut into = Terms::with_names_of(&self.terms);
        let rewritten = rewrite::rewrite(&space, &self.terms, &abstraction, &chosen, entry.symbol, &roots, &mut into);
        self.replace(into, &rewritten);
    }

    /// Replaces calls of an entry by its body.
    fn inline(&mut self, entry: &Entry) {
        let mut into = Terms::with_names_of(&self.terms);
        let inlined = rewrite::Inlining::new(&self.terms, &[*entry]).inline_all(&self.roots(), &mut into);
        self.replace(into, &inlined);
    }

    /// The programs, then the bodies still to come.
    fn roots(&self) -> Vec<TermId> {
        self.programs.iter().copied().chain(self.pending.iter().flatten().map(|entry| entry.body)).collect()
    }

    fn replace(&mut self, terms: Terms, roots: &[TermId]) {
        let (programs, bodies) = roots.split_at(self.programs.len());
        self.programs = programs.to_vec();
        for (entry, &body) in self.pending.iter_mut().flatten().zip(bodies) {
            entry.body = body;
        }
        self.terms = terms;
    }
    /// Whether a body says where it is to be called: a match must give all arguments, and what has no constant of its own,
    /// or only renames another entry, matches what it does not shorten.
    fn is_pattern(&self, &Entry { body, arity, .. }: &Entry) -> bool {
        let (head, arguments) = self.terms.spine(body);
        let is_param = |&argument: &TermId| matches!(self.terms.get(argument), Term::Param(_));
        let is_renaming = arguments.iter().all(is_param)
            && matches!(self.terms.get(head), Term::Symbol(symbol) if self.entries.iter().any(|e| e.symbol == symbol));
        let has_constant =
            self.terms.reachable([body]).into_iter().any(|part| matches!(self.terms.get(part), Term::Symbol(_)));
        self.terms.params(body).len() == arity && has_constant && !is_renaming
    }
}

/// What stands for a call at the end of a sequence until it is written out. It is no identifier, so no entry has this name.
const ENDING: &str = "at the end";

/// An entry as it is called where nothing follows: terms of their own store.
struct Ending {
    terms: Terms,
    /// What is matched.
    pattern: Entry,
    /// What replaces it: the entry with an empty sequence for the rest.
    call: TermId,
}

/// The parameter that a body ends with, as the rest of a sequence.
fn rest_of(terms: &Terms, mut body: TermId, seq: SymbolId) -> Option<usize> {
    let seq = Term::Symbol(seq);
    loop {
        let (head, parts) = terms.spine(body);
        match (terms.get(head), &parts[..]) {
            (head, &[_, rest]) if head == seq => body = rest,
            (Term::Param(param), []) => return Some(param as usize),
            _ => return None,
        }
    }
}

/// A term with `seq x seq[]` replaced by `x`.
fn without_empty_rest(terms: &mut Terms, id: TermId, seq: SymbolId, empty: TermId) -> TermId {
    let seq = terms.add(Term::Symbol(seq));
    let mut changed: FxHashMap<TermId, TermId> = FxHashMap::default();
    for part in terms.reachable([id]) {
        let rebuilt = match terms.get(part) {
            Term::App(f, x) => {
                let (f, x) = (changed[&f], changed[&x]);
                match terms.get(f) {
                    Term::App(head, item) if head == seq && x == empty => item,
                    _ => terms.add(Term::App(f, x)),
                }
            }
            Term::Lam(tag, body) => terms.add(Term::Lam(tag, changed[&body])),
            _ => part,
        };
        changed.insert(part, rebuilt);
    }
    changed[&id]
}

/// Which programs call the library, and with which arguments.
fn calls(programs: &Programs) -> (Vec<bool>, Vec<EntryCalls>) {
    let (store, library) = (programs.store(), programs.library().entries());
    let none = |entry: &LibraryEntry| EntryCalls { name: entry.name.clone(), calls: Vec::new() };
    let mut entries: Vec<EntryCalls> = library.iter().map(none).collect();
    let mut number = FxHashMap::default();
    for (index, entry) in library.iter().enumerate() {
        number.extend(store.find_name(&entry.name).map(|name| (name, index)));
    }
    let mut rewritten = vec![false; programs.len()];
    for (program, &root) in programs.terms().iter().enumerate() {
        let mut pending = vec![root];
        while let Some(next) = pending.pop() {
            let (head, arguments) = store.spine(next);
            let called = match store.get(head) {
                language::Term::Constant(name) => number.get(name),
                _ => None,
            };
            match called {
                Some(&index) => {
                    pending.extend(arguments.iter().rev());
                    let mut slots = arguments;
                    let applied_to = slots.split_off(library[index].arity.min(slots.len()));
                    entries[index].calls.push(Call { program, term: next, arguments: slots, applied_to });
                    rewritten[program] = true;
                }
                None => pending.extend(store.get(next).children().iter().rev().map(|&(part, _)| part)),
            }
        }
    }
    (rewritten, entries)
}
