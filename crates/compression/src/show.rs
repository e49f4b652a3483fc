//! Libraries and rewritten programs as text, in the syntax of their corpus.

use language::{Signature, TermStore};

use crate::corpus::Syntax;
use crate::factored::{Entry, Factored};
use crate::sexpr;
use crate::term::{Term, TermId};
use crate::typed::Dictionary;

/// The programs of a factored corpus.
pub(crate) fn programs(syntax: &Syntax, corpus: &Factored) -> Vec<String> {
    match syntax {
        Syntax::Sexpr => corpus.programs.iter().map(|&program| sexpr::print(&corpus.terms, program)).collect(),
        Syntax::Typed(dictionary) => {
            let mut store = dictionary.store.clone();
            let show = |&program: &TermId| match dictionary.decode(&mut store, &corpus.terms, program) {
                Ok(tree) => language::print(&store, tree),
                // A rewritten program is no deeper than the one it was; if it were, it is still shown, as an s-expression.
                Err(_) => sexpr::print(&corpus.terms, program),
            };
            corpus.programs.iter().map(show).collect()
        }
    }
}

/// The body and the principal type of each entry.
pub(crate) fn entries(syntax: &Syntax, corpus: &Factored) -> Vec<(String, Option<String>)> {
    match syntax {
        Syntax::Sexpr => untyped_entries(corpus),
        Syntax::Typed(dictionary) => typed_entries(dictionary, corpus),
    }
}

fn typed_entries(dictionary: &Dictionary, corpus: &Factored) -> Vec<(String, Option<String>)> {
    let mut store = dictionary.store.clone();
    let library = dictionary.define(&mut store, corpus);
    let show = |entry: &Entry| {
        let body = match dictionary.decode_body(&mut store, &corpus.terms, entry.body, entry.arity) {
            Ok(tree) => language::print(&store, tree),
            Err(_) => sexpr::print(&corpus.terms, entry.body),
        };
        let scheme = library.find(&store, corpus.terms.name(entry.symbol)).map(|entry| entry.scheme);
        (body, scheme.map(|scheme| store.types().show_scheme(scheme)))
    };
    corpus.entries.iter().map(show).collect()
}

/// Bodies as s-expressions. Their types are those of the language's inference, where every constant of the corpus is of
/// type `forall a. a` and every entry has the type of its body.
fn untyped_entries(corpus: &Factored) -> Vec<(String, Option<String>)> {
    let mut store = TermStore::new();
    let mut signature = Signature::empty();
    let mut types = vec![None; corpus.entries.len()];
    for entry in corpus.definition_order() {
        let Entry { symbol, arity, body } = corpus.entries[entry];
        types[entry] = untyped_type(&mut store, &mut signature, corpus, body, arity, symbol.0);
    }
    let bodies = corpus.entries.iter().map(|entry| sexpr::print(&corpus.terms, entry.body));
    bodies.zip(types).collect()
}

fn untyped_type(
    store: &mut TermStore,
    signature: &mut Signature,
    corpus: &Factored,
    body: TermId,
    arity: usize,
    number: u32,
) -> Option<String> {
    // Symbols may be any words, so constants go by number.
    let constant = |number: u32| format!("c{number}");
    let mut trees = std::collections::BTreeMap::new();
    let mut depth = std::collections::BTreeMap::from([(body, 0u32)]);
    let parts = corpus.terms.reachable([body]);
    for &id in parts.iter().rev() {
        let own = depth.get(&id).copied().unwrap_or(0);
        let inner = own + u32::from(matches!(corpus.terms.get(id), Term::Lam(..)));
        for child in corpus.terms.children(id) {
            // A shared open subterm under several depths has one tree for each; such bodies get no type here.
            if *depth.entry(child).or_insert(inner) != inner && corpus.terms.has_param(child) {
                return None;
            }
        }
    }
    for &id in &parts {
        let tree = match corpus.terms.get(id) {
            Term::Symbol(symbol) => {
                let name = constant(symbol.0);
                if signature.find(store, &name).is_none() {
                    signature.declare(store, &name, "forall a. a", "").ok()?;
                }
                let name = store.name(&name).ok()?;
                store.constant(name)
            }
            Term::Var(index, _) => store.variable(language::Index(index)),
            Term::Param(index) => {
                let index = depth.get(&id).copied().unwrap_or(0) + arity as u32 - 1 - index;
                store.variable(language::Index(index))
            }
            Term::Lam(_, inner) => {
                let name = store.name("y").ok()?;
                store.lambda(name, None, trees[&inner]).ok()?
            }
            Term::App(f, x) => store.apply(trees[&f], trees[&x]).ok()?,
        };
        trees.insert(id, tree);
    }
    let mut tree = trees[&body];
    for param in (0..arity).rev() {
        let name = store.name(&format!("x{param}")).ok()?;
        tree = store.lambda(name, None, tree).ok()?;
    }
    signature.define(store, &constant(number), tree).ok()?;
    let scheme = signature.find(store, &constant(number))?.scheme;
    Some(store.types().show_scheme(scheme))
}
