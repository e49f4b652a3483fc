//! Programs of the motor language as terms of the compressor, and back.
//!
//! The compressor knows application, λ, variables and constants. The rest of the language becomes constants applied to
//! arguments: a literal is a constant by its spelling, `repeat(e, n)` is `repeat e n`, `branch(c, a, b)` is
//! `branch c a b`, and `seq[a, b, c]` is `seq a (seq b c)` with a binary `seq`, so that every run of a sequence that
//! reaches its end, and every run at its start with the rest as a parameter, is a subterm. Sequences are associative and
//! canonical in the language, so the way back is unique.
//!
//! A constant that lacks arguments (an abstraction may be `seq (pick x)`, waiting for the rest) is η-expanded on the way
//! back, and such an expansion is taken off again on the way in, so that text gives back the term that was written.

use language::{
    Index, Literal, Scheme, Signature, Term as Tree, TermError, TermId as TreeId, TermStore, Type, TypeId, TypeStore,
};

use crate::factored::Factored;
use crate::grammar::{Grammar, Slot, SlotTypes};
use crate::shape::{Position, Slots};
use crate::term::{SymbolId, Term, TermId, Terms};

/// What the constants and tags of a typed corpus stand for.
#[derive(Clone, Debug)]
pub(crate) struct Dictionary {
    pub(crate) store: TermStore,
    pub(crate) signature: Signature,
    meanings: Vec<Meaning>,
    /// The annotation of λ by tag; tag 0 is none.
    annotations: Vec<Option<TypeId>>,
}

/// What a constant stands for.
#[derive(Clone, Debug)]
enum Meaning {
    /// A term of the language: a primitive, a literal, the empty sequence.
    Tree(TreeId),
    Seq,
    Repeat,
    Branch,
}

impl Meaning {
    /// How many arguments its syntax needs.
    fn arity(&self) -> usize {
        match self {
            Self::Tree(_) => 0,
            Self::Seq | Self::Repeat => 2,
            Self::Branch => 3,
        }
    }
}

impl Dictionary {
    pub(crate) fn new(store: TermStore, signature: Signature) -> Self {
        Self { store, signature, meanings: Vec::new(), annotations: vec![None] }
    }

    /// The names of the primitives, in the order of the signature.
    pub(crate) fn primitives(&self) -> impl Iterator<Item = &str> {
        let entries = self.signature.entries().iter().filter(|entry| entry.body().is_none());
        entries.map(|entry| self.store.spelling(entry.name))
    }

    /// Makes the names of the signature known, so that no abstraction takes one of them, whether programs use it or not.
    pub(crate) fn reserve_names(&mut self, terms: &mut Terms) {
        for entry in self.signature.entries() {
            let tree = self.store.constant(entry.name);
            let symbol = terms.symbol(&language::print(&self.store, tree));
            if symbol.0 as usize == self.meanings.len() {
                self.meanings.push(Meaning::Tree(tree));
            }
        }
    }

    /// Makes the name of a library entry known, which the signature does not have.
    pub(crate) fn reserve_name(&mut self, terms: &mut Terms, name: &str) -> Result<SymbolId, TermError> {
        let spelled = self.store.name(name)?;
        let tree = self.store.constant(spelled);
        let symbol = terms.symbol(name);
        if symbol.0 as usize == self.meanings.len() {
            self.meanings.push(Meaning::Tree(tree));
        }
        Ok(symbol)
    }

    /// The constants for `seq` and `seq[]`, whether programs have them or not.
    pub(crate) fn sequences(&mut self, terms: &mut Terms) -> Result<(SymbolId, SymbolId), TermError> {
        let empty = self.store.seq(&[])?;
        self.constant(terms, "seq", Meaning::Seq);
        self.constant(terms, "seq[]", Meaning::Tree(empty));
        Ok((terms.symbol("seq"), terms.symbol("seq[]")))
    }

    /// A program of `source` as a term of the compressor. The dictionary's store gets the constants and literals that the
    /// program has, and none of its λ, so what is decoded later does not depend on how programs were written.
    ///
    /// Recursion is safe: terms of the language are no deeper than [`language::MAX_DEPTH`].
    pub(crate) fn encode(&mut self, source: &TermStore, terms: &mut Terms, tree: TreeId) -> Result<TermId, TermError> {
        Ok(match source.get(tree) {
            Tree::Variable(Index(index)) => terms.add(Term::Var(*index, 0)),
            Tree::Constant(_) | Tree::Literal(_) => {
                let name = language::print(source, tree);
                let known = terms.find_symbol(&name).filter(|symbol| (symbol.0 as usize) < self.meanings.len());
                match known {
                    Some(symbol) => terms.add(Term::Symbol(symbol)),
                    None => {
                        let tree = self.leaf(source, tree)?;
                        self.constant(terms, &name, Meaning::Tree(tree))
                    }
                }
            }
            Tree::Lambda { annotation, body } => {
                let annotation = annotation.map(|id| self.annotation(source.types(), id)).transpose()?;
                let known = self.annotations.iter().position(|&known| known == annotation);
                let tag = known.unwrap_or_else(|| {
                    self.annotations.push(annotation);
                    self.annotations.len() - 1
                });
                let body = self.encode(source, terms, *body)?;
                self.unexpanded(terms, tag as u32, body).unwrap_or_else(|| terms.add(Term::Lam(tag as u32, body)))
            }
            Tree::Apply(f, x) => {
                let (f, x) = (self.encode(source, terms, *f)?, self.encode(source, terms, *x)?);
                terms.add(Term::App(f, x))
            }
            Tree::Seq(items) => {
                let mut items = items.iter().rev();
                let Some(&last) = items.next() else {
                    let empty = self.store.seq(&[])?;
                    return Ok(self.constant(terms, "seq[]", Meaning::Tree(empty)));
                };
                let mut rest = self.encode(source, terms, last)?;
                for &item in items {
                    let item = self.encode(source, terms, item)?;
                    let seq = self.constant(terms, "seq", Meaning::Seq);
                    rest = terms.apply(seq, [item, rest]);
                }
                rest
            }
            Tree::Repeat(body, count) => {
                self.encode_call(source, terms, ("repeat", Meaning::Repeat), &[*body, *count])?
            }
            Tree::Branch(condition, then, otherwise) => {
                self.encode_call(source, terms, ("branch", Meaning::Branch), &[*condition, *then, *otherwise])?
            }
        })
    }

    /// The body of a library entry, which is λ over its parameters: the term under the first `arity` λ. `None` when there
    /// are fewer, or when one of them has an annotation, which a parameter cannot keep.
    pub(crate) fn encode_body(
        &mut self,
        source: &TermStore,
        terms: &mut Terms,
        tree: TreeId,
        arity: usize,
    ) -> Result<Option<TermId>, TermError> {
        let mut inner = tree;
        for _ in 0..arity {
            match *source.get(inner) {
                Tree::Lambda { annotation: None, body } => inner = body,
                _ => return Ok(None),
            }
        }
        let body = self.encode(source, terms, inner)?;
        Ok(terms.bind_params(body, arity))
    }

    /// A constant or a literal of another store.
    fn leaf(&mut self, source: &TermStore, tree: TreeId) -> Result<TreeId, TermError> {
        Ok(match *source.get(tree) {
            Tree::Constant(name) => {
                let name = self.store.name(source.spelling(name))?;
                self.store.constant(name)
            }
            Tree::Literal(Literal::Text(content)) => self.store.text(source.content(content)),
            Tree::Literal(literal) => self.store.literal(literal),
            _ => tree,
        })
    }

    /// A type of another store.
    fn annotation(&mut self, source: &TypeStore, id: TypeId) -> Result<TypeId, TermError> {
        Ok(match source.get(id) {
            Type::Base(base) => base.id(),
            Type::Variable(variable) => self.store.types_mut().variable(variable),
            Type::Arrow(domain, codomain) => {
                let (domain, codomain) = (self.annotation(source, domain)?, self.annotation(source, codomain)?);
                // It is as large as the type that it copies, which was within the bounds.
                self.store.types_mut().arrow(domain, codomain).map_err(|_| TermError::TooDeep)?
            }
        })
    }

    /// What was η-expanded only because its syntax lacks an argument: `seq a` for `\y. seq[a, y]`.
    fn unexpanded(&self, terms: &mut Terms, tag: u32, body: TermId) -> Option<TermId> {
        let Term::App(function, argument) = terms.get(body) else { return None };
        if tag != 0 || terms.get(argument) != Term::Var(0, 0) {
            return None;
        }
        let Term::Symbol(head) = terms.get(terms.spine(function).0) else { return None };
        let is_syntax = self.meanings.get(head.0 as usize).is_some_and(|meaning| meaning.arity() > 0);
        if is_syntax { terms.lower(function, 1) } else { None }
    }

    /// A program of the compressor as a term of the language, in a store that extends the dictionary's.
    pub(crate) fn decode(&self, store: &mut TermStore, terms: &Terms, id: TermId) -> Result<TreeId, TermError> {
        self.tree(store, terms, id, 0, 0)
    }

    /// An entry of the library as a term of the language: λ over its parameters.
    pub(crate) fn decode_body(
        &self,
        store: &mut TermStore,
        terms: &Terms,
        body: TermId,
        arity: usize,
    ) -> Result<TreeId, TermError> {
        let arity = arity as u32;
        let mut tree = self.tree(store, terms, body, arity, 0)?;
        for param in (0..arity).rev() {
            let name = store.name(&format!("x{param}"))?;
            tree = store.lambda(name, None, tree)?;
        }
        Ok(tree)
    }

    /// Defines the entries of a library, each after those it calls. Entries that do not type are left out.
    pub(crate) fn define(&self, store: &mut TermStore, corpus: &Factored) -> Signature {
        let mut signature = self.signature.clone();
        for &entry in &corpus.definition_order() {
            let entry = &corpus.entries[entry];
            let name = corpus.terms.name(entry.symbol).to_owned();
            if let Ok(tree) = self.decode_body(store, &corpus.terms, entry.body, entry.arity) {
                // An entry that does not type has no type to show; `accepts` keeps such out of the library.
                let _ = signature.define(store, &name, tree);
            }
        }
        signature
    }

    /// The principal type of a candidate over a library, if it has one.
    pub(crate) fn principal_type(
        &self,
        store: &mut TermStore,
        library: &Signature,
        terms: &Terms,
        body: TermId,
        arity: usize,
    ) -> Option<Scheme> {
        let tree = self.decode_body(store, terms, body, arity).ok()?;
        language::infer(store, library, tree).ok()
    }

    /// The description-length grammar: what each slot of each constant is for.
    pub(crate) fn grammar(&self, corpus: &Factored) -> Grammar {
        let types = self.store.types();
        let slot = |id: TypeId| {
            if types.is_ground(id) { Slot::Typed(id_number(types, id)) } else { Slot::Any }
        };
        let of_scheme = |id: TypeId| {
            let (arguments, result) = types.uncurry(id);
            SlotTypes { arguments: arguments.into_iter().map(slot).collect(), result: slot(result) }
        };
        let motion = slot(TypeId::MOTION);
        let syntax = |arguments: &[TypeId]| SlotTypes {
            arguments: arguments.iter().map(|&id| slot(id)).collect(),
            result: motion,
        };
        let meanings = self.meanings.iter().map(|meaning| match meaning {
            Meaning::Tree(tree) => match self.store.get(*tree) {
                Tree::Constant(name) => match self.signature.get(*name) {
                    Some(entry) => of_scheme(entry.scheme.body()),
                    None => SlotTypes::unknown(),
                },
                Tree::Literal(literal) => of_scheme(literal.type_id()),
                _ => syntax(&[]),
            },
            Meaning::Seq => syntax(&[TypeId::MOTION, TypeId::MOTION]),
            Meaning::Repeat => syntax(&[TypeId::MOTION, TypeId::NAT]),
            Meaning::Branch => syntax(&[TypeId::BOOL, TypeId::MOTION, TypeId::MOTION]),
        });
        Grammar::new(corpus, meanings.collect(), motion)
    }

    /// Where each constant puts its arguments, as far as its type tells.
    pub(crate) fn slots(&self, corpus: &Factored) -> Slots {
        let types = self.store.types();
        let of_meaning = |meaning: &Meaning| match meaning {
            Meaning::Tree(tree) => {
                let Tree::Constant(name) = self.store.get(*tree) else { return Vec::new() };
                let Some(entry) = self.signature.get(*name) else { return Vec::new() };
                let place = |argument: TypeId| match types.is_ground(argument) {
                    false => Position::Fixed,
                    true if !names_motion(types, argument) => Position::Value,
                    // What a definition does with a motion is not looked up; a primitive takes it as `repeat` does.
                    true if entry.body().is_some() => Position::Fixed,
                    true => Position::Arm,
                };
                types.uncurry(entry.scheme.body()).0.into_iter().map(place).collect()
            }
            Meaning::Seq => vec![Position::Fixed, Position::Tail],
            Meaning::Repeat => vec![Position::Arm, Position::Value],
            Meaning::Branch => vec![Position::Value, Position::Arm, Position::Arm],
        };
        Slots::new(self.meanings.iter().map(of_meaning).collect(), corpus)
    }

    fn encode_call(
        &mut self,
        source: &TermStore,
        terms: &mut Terms,
        (name, meaning): (&str, Meaning),
        arguments: &[TreeId],
    ) -> Result<TermId, TermError> {
        let mut call = self.constant(terms, name, meaning);
        for &argument in arguments {
            let argument = self.encode(source, terms, argument)?;
            call = terms.add(Term::App(call, argument));
        }
        Ok(call)
    }

    fn constant(&mut self, terms: &mut Terms, name: &str, meaning: Meaning) -> TermId {
        let symbol = terms.symbol(name);
        if symbol.0 as usize == self.meanings.len() {
            self.meanings.push(meaning);
        }
        terms.add(Term::Symbol(symbol))
    }

    /// A term under `depth` binders of its own, inside `arity` binders for parameters.
    fn tree(
        &self,
        store: &mut TermStore,
        terms: &Terms,
        id: TermId,
        arity: u32,
        depth: u32,
    ) -> Result<TreeId, TermError> {
        let (head, arguments) = terms.spine(id);
        let meaning = match terms.get(head) {
            Term::Symbol(symbol) => self.meanings.get(symbol.0 as usize),
            _ => None,
        };
        let needed = meaning.map_or(0, Meaning::arity);
        if arguments.len() < needed {
            // λ over what is missing; everything inside moves under one more binder.
            let missing = (needed - arguments.len()) as u32;
            let mut parts = Vec::with_capacity(needed);
            for &argument in &arguments {
                let part = self.tree(store, terms, argument, arity, depth)?;
                parts.push(store.raise(part, missing)?);
            }
            for index in (0..missing).rev() {
                parts.push(store.variable(Index(index)));
            }
            let mut tree = syntax_tree(store, meaning, &parts)?;
            for index in (0..missing).rev() {
                let name = store.name(&format!("y{index}"))?;
                tree = store.lambda(name, None, tree)?;
            }
            return Ok(tree);
        }
        let mut parts = Vec::with_capacity(arguments.len());
        for &argument in &arguments {
            parts.push(self.tree(store, terms, argument, arity, depth)?);
        }
        let tree = match terms.get(head) {
            Term::Symbol(symbol) => match meaning {
                Some(Meaning::Tree(tree)) => *tree,
                Some(_) => syntax_tree(store, meaning, &parts[..needed])?,
                None => {
                    let name = store.name(terms.name(symbol))?;
                    store.constant(name)
                }
            },
            Term::Var(index, _) => store.variable(Index(index)),
            Term::Param(index) => store.variable(Index(depth + arity.saturating_sub(index + 1))),
            Term::Lam(tag, body) => {
                let body = self.tree(store, terms, body, arity, depth + 1)?;
                let name = store.name("x")?;
                store.lambda(name, self.annotations.get(tag as usize).copied().flatten(), body)?
            }
            // A spine's head is no application.
            Term::App(..) => store.seq(&[])?,
        };
        store.apply_all(tree, &parts[needed..])
    }
}

fn syntax_tree(store: &mut TermStore, meaning: Option<&Meaning>, parts: &[TreeId]) -> Result<TreeId, TermError> {
    match (meaning, parts) {
        (Some(Meaning::Repeat), &[body, count]) => store.repeat(body, count),
        (Some(Meaning::Branch), &[condition, then, otherwise]) => store.branch(condition, then, otherwise),
        (_, parts) => store.seq(parts),
    }
}

/// Whether a type is Motion, or that of a function from or to it.
fn names_motion(types: &TypeStore, id: TypeId) -> bool {
    let (arguments, result) = types.uncurry(id);
    result == TypeId::MOTION || arguments.into_iter().any(|argument| names_motion(types, argument))
}

/// A ground type as a number, by its spelling, so that it does not depend on the store.
fn id_number(types: &TypeStore, id: TypeId) -> u32 {
    types.show(id).bytes().fold(2_166_136_261, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619))
}
