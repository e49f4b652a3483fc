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

use language::{Signature, TermId as TreeId, TermStore};
use rustc_hash::FxHashMap;

use crate::cost::Weights;
use crate::factored::{Entry, Factored};
use crate::library::Library;
use crate::loaded::{DescriptionLength, LoadError, Loaded};
use crate::pattern::Partial;
use crate::rewrite;
use crate::space::{Node, Space};
use crate::term::{Term, TermId, Terms};

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
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// The programs, rewritten, in concrete syntax.
    pub programs: Vec<String>,
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
    /// What stands in the argument slots, in concrete syntax; `$0`, `$1`, … are variables bound around the call.
    pub arguments: Vec<String>,
    /// What the entry's value is applied to: its body may itself be a function, such as another entry with some arguments.
    pub applied_to: Vec<String>,
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

/// Rewrites programs with a library. `programs` are terms of `store` over the primitives of `base`; calls of entries that
/// they make already are unfolded first.
pub fn compile(
    store: &TermStore,
    base: &Signature,
    library: &Library,
    programs: &[TreeId],
    strategy: Strategy,
) -> Result<Compiled, LoadError> {
    let loaded = Loaded::new(store, base, library, programs)?;
    let objective = loaded.objective();
    let mut work = Work::new(&loaded.corpus);
    let uncalled = work.written(&loaded.corpus);
    let mut order: Vec<usize> = (0..library.len()).collect();
    let gain = |index: usize| library.entries()[index].gain;
    order.sort_by(|&a, &b| gain(b).total_cmp(&gain(a)).then(a.cmp(&b)));
    for index in order {
        let weights = objective.weights(&work.plain());
        work.apply(index, strategy, &weights);
    }
    let compiled = work.written(&loaded.corpus);
    let (rewritten, entries) = calls(&loaded, &compiled, library)?;
    Ok(Compiled {
        programs: loaded.programs(&compiled)?,
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
}

impl<'l> Work<'l> {
    /// Programs and bodies, all calls unfolded.
    fn new(known: &'l Factored) -> Self {
        let mut terms = Terms::with_names_of(&known.terms);
        let mut inlining = rewrite::Inlining::new(&known.terms, &known.entries);
        let programs = inlining.inline_all(&known.programs, &mut terms);
        let pending = known.entries.iter().map(|entry| Some(inlining.inline_body(entry, &mut terms))).collect();
        Self { entries: &known.entries, terms, programs, pending }
    }

    fn plain(&self) -> Factored {
        Factored::unfactored(self.terms.clone(), self.programs.clone())
    }

    /// The programs as they are now, with the library as it is known.
    fn written(&self, known: &Factored) -> Factored {
        let mut written = known.clone();
        written.programs = self.programs.iter().map(|&program| written.terms.copy(&self.terms, program)).collect();
        written
    }

    /// Calls an entry wherever the strategy says so, in programs and in the bodies still to come.
    fn apply(&mut self, index: usize, strategy: Strategy, weights: &Weights) {
        let Some(entry) = self.pending[index].take().filter(|entry| self.is_pattern(entry)) else { return };
        let mut roots = self.programs.clone();
        roots.extend(self.pending.iter().flatten().map(|entry| entry.body));
        let weighted: Vec<(TermId, u64)> = roots.iter().map(|&root| (root, 1)).collect();
        let space = Space::new(&mut self.terms, &weighted, weights);
        let Some(abstraction) = Partial::matching(entry.body, &self.terms, &space) else { return };
        let chosen: Vec<(Node, usize)> = match strategy {
            Strategy::Greedy => abstraction.nodes().iter().enumerate().map(|(row, &node)| (node, row)).collect(),
            Strategy::Cheapest => space.chosen_calls(&abstraction),
        };
        let mut into = Terms::with_names_of(&self.terms);
        let rewritten = rewrite::rewrite(&space, &self.terms, &abstraction, &chosen, entry.symbol, &roots, &mut into);
        let (programs, bodies) = rewritten.split_at(self.programs.len());
        self.programs = programs.to_vec();
        for (entry, &rewritten) in self.pending.iter_mut().flatten().zip(bodies) {
            entry.body = rewritten;
        }
        self.terms = into;
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

/// Which programs call the library, and with which arguments.
fn calls(loaded: &Loaded, compiled: &Factored, library: &Library) -> Result<(Vec<bool>, Vec<EntryCalls>), LoadError> {
    let mut store = loaded.dictionary.store.clone();
    let none = |name: String| EntryCalls { name, calls: Vec::new() };
    let mut entries: Vec<EntryCalls> = library.entries().iter().map(|entry| none(entry.name.clone())).collect();
    let mut number = FxHashMap::default();
    for (index, entry) in library.entries().iter().enumerate() {
        number.insert(store.name(&entry.name)?, index);
    }
    let mut rewritten = vec![false; compiled.programs.len()];
    for (program, &root) in compiled.programs.iter().enumerate() {
        let tree = loaded.dictionary.decode(&mut store, &compiled.terms, root)?;
        let mut pending = vec![tree];
        while let Some(next) = pending.pop() {
            let (head, arguments) = store.spine(next);
            let called = match store.get(head) {
                language::Term::Constant(name) => number.get(name),
                _ => None,
            };
            match called {
                Some(&index) => {
                    let mut slots: Vec<String> =
                        arguments.iter().map(|&argument| language::print(&store, argument)).collect();
                    let applied_to = slots.split_off(library.entries()[index].arity.min(slots.len()));
                    entries[index].calls.push(Call { program, arguments: slots, applied_to });
                    rewritten[program] = true;
                    pending.extend(arguments.iter().rev());
                }
                None => pending.extend(store.get(next).children().iter().rev().map(|&(part, _)| part)),
            }
        }
    }
    Ok((rewritten, entries))
}
