//! Rewriting a corpus with an abstraction, and inlining it again.
//!
//! Which subterms become calls is for the caller to say. With `Space::chosen_calls` the rewriting is optimal: each subterm
//! is replaced exactly where that makes the corpus cheapest, calls nested in arguments included (the dynamic programme of
//! the `space` module).

use rustc_hash::FxHashMap;

use crate::factored::Entry;
use crate::pattern::Partial;
use crate::space::{Node, Space};
use crate::term::{SymbolId, Term, TermId, Terms};

/// Rewrites `roots` with the abstraction, called `name`, into a fresh store. `calls` are the nodes to replace, ascending,
/// each with its row; of two that overlap the outer one wins, and the inner one stays where it lies in an argument.
pub(crate) fn rewrite(
    space: &Space,
    terms: &Terms,
    abstraction: &Partial,
    calls: &[(Node, usize)],
    name: SymbolId,
    roots: &[TermId],
    into: &mut Terms,
) -> Vec<TermId> {
    // From the roots down: which nodes the rewritten corpus still holds.
    let mut needed = vec![false; space.len()];
    let root_nodes = space.nodes_of(roots);
    for &root in &root_nodes {
        needed[root as usize] = true;
    }
    let mut row = calls.len();
    for node in (1..space.len() as Node).rev() {
        while row > 0 && calls[row - 1].0 > node {
            row -= 1;
        }
        if !needed[node as usize] {
            continue;
        }
        if row > 0 && calls[row - 1].0 == node {
            for param in 0..abstraction.arity {
                let argument = abstraction.param(param)[calls[row - 1].1];
                needed[space.lowered_from(argument).map_or(argument, |(from, _)| from) as usize] = true;
            }
        } else {
            needed[space.left(node) as usize] = true;
            needed[space.right(node) as usize] = true;
        }
    }
    // From the leaves up: build them.
    let call_head = into.add(Term::Symbol(name));
    let mut built = vec![TermId(0); space.len()];
    let mut row = 0;
    for node in 1..space.len() as Node {
        while row < calls.len() && calls[row].0 < node {
            row += 1;
        }
        if !needed[node as usize] {
            continue;
        }
        built[node as usize] = if row < calls.len() && calls[row].0 == node {
            let mut call = call_head;
            for param in 0..abstraction.arity {
                let argument = abstraction.param(param)[calls[row].1];
                let argument = match space.lowered_from(argument) {
                    None => built[argument as usize],
                    // The search admits only arguments that can be lowered, so this never falls back.
                    Some((from, depth)) => into.lower(built[from as usize], depth).unwrap_or(built[from as usize]),
                };
                call = into.add(Term::App(call, argument));
            }
            call
        } else {
            match terms.get(space.term(node)) {
                Term::App(..) => {
                    into.add(Term::App(built[space.left(node) as usize], built[space.right(node) as usize]))
                }
                Term::Lam(tag, _) => into.add(Term::Lam(tag, built[space.left(node) as usize])),
                leaf => into.add(leaf),
            }
        };
    }
    root_nodes.iter().map(|&root| built[root as usize]).collect()
}

/// Replaces calls of library entries by their bodies, all the way down.
///
/// A call with fewer arguments than its entry has parameters becomes the λ that it stands for, applied and reduced as
/// more arguments are met; so what comes out has no call left and is the term that was abstracted.
pub(crate) struct Inlining<'a> {
    from: &'a Terms,
    entries: &'a [Entry],
    done: FxHashMap<TermId, Inlined>,
}

/// A term without calls, or a function that still waits for arguments: an entry and those it has.
#[derive(Clone, Debug)]
enum Inlined {
    Term(TermId),
    Waiting(usize, Vec<Inlined>),
}

impl<'a> Inlining<'a> {
    pub(crate) fn new(from: &'a Terms, entries: &'a [Entry]) -> Self {
        Self { from, entries, done: FxHashMap::default() }
    }

    /// Terms of the store with all calls inlined, as terms of `into`. In bodies of entries that are not inlined, parameters
    /// stay what they are.
    pub(crate) fn inline_all(&mut self, ids: &[TermId], into: &mut Terms) -> Vec<TermId> {
        self.inline_parts(ids, into);
        let settle = |id: &TermId| {
            let inlined = self.done[id].clone();
            self.settle(inlined, into)
        };
        ids.iter().map(settle).collect()
    }

    /// An entry that stays, with all calls in its body inlined. If the body was a call that lacks arguments, the entry takes
    /// those too: a λ would make a redex of every call.
    pub(crate) fn inline_body(&mut self, entry: &Entry, into: &mut Terms) -> Entry {
        self.inline_parts(&[entry.body], into);
        let mut inlined = self.done[&entry.body].clone();
        let mut arity = entry.arity;
        while let Inlined::Waiting(..) = inlined {
            let param = Inlined::Term(into.add(Term::Param(arity as u32)));
            inlined = self.apply(inlined, param, into);
            arity += 1;
        }
        Entry { arity, body: self.settle(inlined, into), ..*entry }
    }

    fn inline_parts(&mut self, ids: &[TermId], into: &mut Terms) {
        for part in self.from.reachable(ids.iter().copied()) {
            if self.done.contains_key(&part) {
                continue;
            }
            let inlined = match self.from.get(part) {
                Term::App(f, x) => {
                    let (f, x) = (self.done[&f].clone(), self.done[&x].clone());
                    self.apply(f, x, into)
                }
                Term::Lam(tag, body) => {
                    let body = self.done[&body].clone();
                    let body = self.settle(body, into);
                    Inlined::Term(into.add(Term::Lam(tag, body)))
                }
                Term::Symbol(symbol) => match self.entries.iter().position(|entry| entry.symbol == symbol) {
                    Some(entry) if self.entries[entry].arity == 0 => self.call(entry, &[], into),
                    Some(entry) => Inlined::Waiting(entry, Vec::new()),
                    None => Inlined::Term(into.add(Term::Symbol(symbol))),
                },
                leaf => Inlined::Term(into.add(leaf)),
            };
            self.done.insert(part, inlined);
        }
    }

    fn apply(&mut self, function: Inlined, argument: Inlined, into: &mut Terms) -> Inlined {
        match function {
            Inlined::Term(f) => {
                let x = self.settle(argument, into);
                Inlined::Term(into.add(Term::App(f, x)))
            }
            Inlined::Waiting(entry, mut arguments) => {
                arguments.push(argument);
                if arguments.len() == self.entries[entry].arity {
                    self.call(entry, &arguments, into)
                } else {
                    Inlined::Waiting(entry, arguments)
                }
            }
        }
    }

    /// The body of an entry, at arguments under `0` binders of it.
    fn call(&mut self, entry: usize, arguments: &[Inlined], into: &mut Terms) -> Inlined {
        // Bodies nest no deeper than the library has entries.
        self.body(self.entries[entry].body, 0, arguments, into)
    }

    fn body(&mut self, id: TermId, depth: u32, arguments: &[Inlined], into: &mut Terms) -> Inlined {
        enum Task {
            Visit(TermId, u32),
            Lam(u32),
            App,
        }
        let mut tasks = vec![Task::Visit(id, depth)];
        let mut results: Vec<Inlined> = Vec::new();
        while let Some(task) = tasks.pop() {
            match task {
                Task::Visit(id, depth) => match self.from.get(id) {
                    Term::Param(index) => results.push(raise(&arguments[index as usize], depth, into)),
                    Term::Lam(tag, inner) => tasks.extend([Task::Lam(tag), Task::Visit(inner, depth + 1)]),
                    Term::App(f, x) => tasks.extend([Task::App, Task::Visit(x, depth), Task::Visit(f, depth)]),
                    Term::Symbol(symbol) => {
                        let entry = self.entries.iter().position(|entry| entry.symbol == symbol);
                        results.push(match entry {
                            Some(entry) if self.entries[entry].arity == 0 => self.call(entry, &[], into),
                            Some(entry) => Inlined::Waiting(entry, Vec::new()),
                            None => Inlined::Term(into.add(Term::Symbol(symbol))),
                        });
                    }
                    leaf @ Term::Var(..) => results.push(Inlined::Term(into.add(leaf))),
                },
                Task::Lam(tag) => {
                    if let Some(inner) = results.pop() {
                        let inner = self.settle(inner, into);
                        results.push(Inlined::Term(into.add(Term::Lam(tag, inner))));
                    }
                }
                Task::App => {
                    if let (Some(x), Some(f)) = (results.pop(), results.pop()) {
                        let applied = self.apply(f, x, into);
                        results.push(applied);
                    }
                }
            }
        }
        results.pop().unwrap_or_else(|| Inlined::Term(into.add(Term::Param(0))))
    }

    /// A function that gets no further argument is the λ over those it lacks.
    fn settle(&mut self, inlined: Inlined, into: &mut Terms) -> TermId {
        match inlined {
            Inlined::Term(id) => id,
            Inlined::Waiting(entry, arguments) => {
                let missing = (self.entries[entry].arity - arguments.len()) as u32;
                let mut all: Vec<Inlined> = arguments.iter().map(|argument| raise(argument, missing, into)).collect();
                all.extend((0..missing).rev().map(|index| Inlined::Term(into.add(Term::Var(index, 0)))));
                let body = self.call(entry, &all, into);
                let body = self.settle(body, into);
                (0..missing).fold(body, |body, _| into.add(Term::Lam(0, body)))
            }
        }
    }
}

fn raise(inlined: &Inlined, depth: u32, into: &mut Terms) -> Inlined {
    match inlined {
        Inlined::Term(id) => Inlined::Term(into.raise(*id, depth)),
        Inlined::Waiting(entry, arguments) => {
            Inlined::Waiting(*entry, arguments.iter().map(|argument| raise(argument, depth, into)).collect())
        }
    }
}

/// The body with its parameters replaced by the arguments.
pub(crate) fn instantiate(terms: &mut Terms, body: TermId, arguments: &[TermId]) -> TermId {
    enum Task {
        Visit(TermId, u32),
        Lam(u32),
        App,
    }
    let mut tasks = vec![Task::Visit(body, 0)];
    let mut results: Vec<TermId> = Vec::new();
    while let Some(task) = tasks.pop() {
        match task {
            Task::Visit(id, _) if !terms.has_param(id) => results.push(id),
            Task::Visit(id, depth) => match terms.get(id) {
                Term::Param(index) => {
                    let argument = arguments.get(index as usize).copied().unwrap_or(id);
                    results.push(terms.raise(argument, depth));
                }
                Term::Lam(tag, inner) => {
                    tasks.push(Task::Lam(tag));
                    tasks.push(Task::Visit(inner, depth + 1));
                }
                Term::App(f, x) => {
                    tasks.push(Task::App);
                    tasks.push(Task::Visit(x, depth));
                    tasks.push(Task::Visit(f, depth));
                }
                Term::Symbol(_) | Term::Var(..) => results.push(id),
            },
            Task::Lam(tag) => {
                if let Some(inner) = results.pop() {
                    results.push(terms.add(Term::Lam(tag, inner)));
                }
            }
            Task::App => {
                if let (Some(x), Some(f)) = (results.pop(), results.pop()) {
                    results.push(terms.add(Term::App(f, x)));
                }
            }
        }
    }
    results.pop().unwrap_or(body)
}
