//! Terms of the compressor: an untyped λ-calculus with constants, hash-consed.
//!
//! Equal subterms are one [`TermId`], so a corpus is a DAG and every measure over it (cost, number of occurrences, the
//! rewriting dynamic programme) is one pass over the distinct nodes. Ids are topologically ordered: a child's id is
//! smaller than its parent's.
//!
//! Variables are de Bruijn indices. A [`Term::Param`] is a parameter of an abstraction; it occurs only in the bodies of
//! library entries. λ and variables carry a tag, which Stitch's corpora use to tell kinds of binders apart (`lam_1`,
//! `$0_1`) and our typed programs use for the binder's type; terms with different tags are different terms.

use rustc_hash::FxHashMap;

/// A constant's name, interned in a [`Terms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId(pub u32);

/// A distinct term of a [`Terms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermId(pub u32);

/// The number of a parameter of an abstraction, from 0.
pub type ParamIndex = u32;

/// One node of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A constant: a primitive, a literal or the name of a library entry.
    Symbol(SymbolId),
    /// A de Bruijn variable, counted from the innermost binder, with its tag.
    Var(u32, u32),
    /// A parameter of the abstraction whose body this is.
    Param(ParamIndex),
    /// λ with a tag.
    Lam(u32, TermId),
    /// Application of the first to the second.
    App(TermId, TermId),
}

/// A store of hash-consed terms with the names of their constants.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    nodes: Vec<Term>,
    index: FxHashMap<Term, TermId>,
    /// For each term, one more than its largest free de Bruijn index; 0 for closed terms.
    open: Vec<u32>,
    has_param: Vec<bool>,
    names: Vec<String>,
    symbols: FxHashMap<String, SymbolId>,
}

impl Terms {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store that knows the names of this one, under the same ids.
    pub fn with_names_of(other: &Terms) -> Self {
        Self { names: other.names.clone(), symbols: other.symbols.clone(), ..Self::default() }
    }

    /// The id of a constant's name, new or known.
    pub fn symbol(&mut self, name: &str) -> SymbolId {
        if let Some(&id) = self.symbols.get(name) {
            return id;
        }
        let id = SymbolId(self.names.len() as u32);
        self.names.push(name.to_owned());
        self.symbols.insert(name.to_owned(), id);
        id
    }

    /// The id of a constant's name if it is known.
    pub fn find_symbol(&self, name: &str) -> Option<SymbolId> {
        self.symbols.get(name).copied()
    }

    /// A name for the library entry of this number that no constant has yet.
    pub fn fresh_symbol(&mut self, number: usize) -> SymbolId {
        let mut number = number;
        while self.find_symbol(&format!("fn_{number}")).is_some() {
            number += 1;
        }
        self.symbol(&format!("fn_{number}"))
    }

    /// A constant's name.
    pub fn name(&self, symbol: SymbolId) -> &str {
        &self.names[symbol.0 as usize]
    }

    /// The number of names, which is one more than the largest [`SymbolId`].
    pub fn name_count(&self) -> usize {
        self.names.len()
    }

    /// The number of distinct terms.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no term has been added.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node of a term.
    pub fn get(&self, id: TermId) -> Term {
        self.nodes[id.0 as usize]
    }

    /// Adds a node, or finds the equal one.
    pub fn add(&mut self, term: Term) -> TermId {
        if let Some(&id) = self.index.get(&term) {
            return id;
        }
        let (open, has_param) = match term {
            Term::Symbol(_) => (0, false),
            Term::Var(index, _) => (index.saturating_add(1), false),
            Term::Param(_) => (0, true),
            Term::Lam(_, body) => (self.open(body).saturating_sub(1), self.has_param(body)),
            Term::App(f, x) => (self.open(f).max(self.open(x)), self.has_param(f) || self.has_param(x)),
        };
        let id = TermId(self.nodes.len() as u32);
        self.nodes.push(term);
        self.index.insert(term, id);
        self.open.push(open);
        self.has_param.push(has_param);
        id
    }

    /// Adds the application of `head` to `arguments`, in order.
    pub fn apply(&mut self, head: TermId, arguments: impl IntoIterator<Item = TermId>) -> TermId {
        arguments.into_iter().fold(head, |f, x| self.add(Term::App(f, x)))
    }

    /// One more than the largest free de Bruijn index of a term; 0 when it is closed.
    pub fn open(&self, id: TermId) -> u32 {
        self.open[id.0 as usize]
    }

    /// Whether a parameter occurs in the term.
    pub fn has_param(&self, id: TermId) -> bool {
        self.has_param[id.0 as usize]
    }

    /// The children of a term: none, the body of a λ, or function and argument.
    pub fn children(&self, id: TermId) -> impl Iterator<Item = TermId> + use<> {
        let (a, b) = match self.get(id) {
            Term::Lam(_, body) => (Some(body), None),
            Term::App(f, x) => (Some(f), Some(x)),
            _ => (None, None),
        };
        a.into_iter().chain(b)
    }

    /// Everything that occurs in the given terms, ascending, so children before parents.
    pub fn reachable(&self, roots: impl IntoIterator<Item = TermId>) -> Vec<TermId> {
        let mut seen = vec![false; self.len()];
        for root in roots {
            seen[root.0 as usize] = true;
        }
        for index in (0..self.len()).rev() {
            if seen[index] {
                for child in self.children(TermId(index as u32)) {
                    seen[child.0 as usize] = true;
                }
            }
        }
        (0..self.len()).filter(|&index| seen[index]).map(|index| TermId(index as u32)).collect()
    }

    /// The parameters that occur in a term, in the order of their first use from left to right.
    pub fn params(&self, id: TermId) -> Vec<ParamIndex> {
        let mut params = Vec::new();
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            match self.get(id) {
                Term::Param(index) if !params.contains(&index) => params.push(index),
                Term::Lam(_, body) if self.has_param(body) => stack.push(body),
                Term::App(f, x) => stack.extend([x, f].into_iter().filter(|&part| self.has_param(part))),
                _ => {}
            }
        }
        params
    }

    /// Adds a term of another store that has the same names.
    pub fn copy(&mut self, from: &Terms, id: TermId) -> TermId {
        self.copy_all(from, &[id])[0]
    }

    /// Adds terms of another store that has the same names, in one pass over that store.
    pub fn copy_all(&mut self, from: &Terms, ids: &[TermId]) -> Vec<TermId> {
        let mut copied: FxHashMap<TermId, TermId> = FxHashMap::default();
        for part in from.reachable(ids.iter().copied()) {
            let term = match from.get(part) {
                Term::App(f, x) => Term::App(copied[&f], copied[&x]),
                Term::Lam(tag, body) => Term::Lam(tag, copied[&body]),
                leaf => leaf,
            };
            copied.insert(part, self.add(term));
        }
        ids.iter().map(|id| copied[id]).collect()
    }

    /// Splits an application into its head and its arguments, in order.
    pub fn spine(&self, id: TermId) -> (TermId, Vec<TermId>) {
        let mut head = id;
        let mut arguments = Vec::new();
        while let Term::App(f, x) = self.get(head) {
            arguments.push(x);
            head = f;
        }
        arguments.reverse();
        (head, arguments)
    }
}

impl Terms {
    /// The term as seen from outside its `depth` innermost free binders: every free index lowered by `depth`. `None` when
    /// the term uses one of those binders.
    pub fn lower(&mut self, id: TermId, depth: u32) -> Option<TermId> {
        self.shift(id, |free| free.checked_sub(depth))
    }

    /// The term placed under `depth` more binders: every free index raised by `depth`.
    pub fn raise(&mut self, id: TermId, depth: u32) -> TermId {
        // Raising never fails; were an index to overflow, the term is kept and the verification reports it.
        if depth == 0 { id } else { self.shift(id, |free| free.checked_add(depth)).unwrap_or(id) }
    }

    /// The term with its `arity` outermost free variables as parameters: the body of an abstraction whose λ are taken off.
    /// `None` when the term has other free variables.
    pub fn bind_params(&mut self, id: TermId, arity: usize) -> Option<TermId> {
        let arity = u32::try_from(arity).ok()?;
        self.map_free(id, |terms, free, _, _| Some(terms.add(Term::Param(arity.checked_sub(free + 1)?))))
    }

    /// Maps the free indices of a term, each counted outside the term's own binders.
    fn shift(&mut self, id: TermId, map: impl Fn(u32) -> Option<u32>) -> Option<TermId> {
        self.map_free(id, |terms, free, depth, tag| {
            let index = map(free)?.checked_add(depth)?;
            Some(terms.add(Term::Var(index, tag)))
        })
    }

    /// Replaces the free variables of a term: `replace` gets the index as seen from outside, the number of binders around
    /// the place, and the tag.
    fn map_free(&mut self, id: TermId, replace: impl Fn(&mut Self, u32, u32, u32) -> Option<TermId>) -> Option<TermId> {
        enum Task {
            Visit(TermId, u32),
            Lam(u32, TermId, u32),
            App(TermId, u32),
        }
        let mut memo: FxHashMap<(TermId, u32), TermId> = FxHashMap::default();
        let mut tasks = vec![Task::Visit(id, 0)];
        let mut results: Vec<TermId> = Vec::new();
        while let Some(task) = tasks.pop() {
            match task {
                Task::Visit(id, depth) if self.open(id) <= depth => results.push(id),
                Task::Visit(id, depth) => {
                    if let Some(&known) = memo.get(&(id, depth)) {
                        results.push(known);
                        continue;
                    }
                    match self.get(id) {
                        Term::Var(index, tag) => {
                            let replaced = replace(self, index - depth, depth, tag)?;
                            results.push(replaced);
                        }
                        Term::Lam(tag, body) => {
                            tasks.push(Task::Lam(tag, id, depth));
                            tasks.push(Task::Visit(body, depth + 1));
                        }
                        Term::App(f, x) => {
                            tasks.push(Task::App(id, depth));
                            tasks.push(Task::Visit(x, depth));
                            tasks.push(Task::Visit(f, depth));
                        }
                        Term::Symbol(_) | Term::Param(_) => results.push(id),
                    }
                }
                Task::Lam(tag, id, depth) => {
                    let body = results.pop()?;
                    let shifted = self.add(Term::Lam(tag, body));
                    memo.insert((id, depth), shifted);
                    results.push(shifted);
                }
                Task::App(id, depth) => {
                    let x = results.pop()?;
                    let f = results.pop()?;
                    let shifted = self.add(Term::App(f, x));
                    memo.insert((id, depth), shifted);
                    results.push(shifted);
                }
            }
        }
        results.pop()
    }
}
