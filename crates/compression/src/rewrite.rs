//! Rewriting a corpus with an abstraction, and inlining it again.
//!
//! The rewriting is optimal: each subterm is replaced by a call exactly where that makes the corpus cheapest, calls
//! nested in arguments included (the dynamic programme of the `space` module).

use crate::pattern::Partial;
use crate::space::{Node, Space};
use crate::term::{SymbolId, Term, TermId, Terms};

/// Rewrites `roots` with the abstraction, called `name`, into a fresh store. Also says how many calls there are in all
/// roots together, each root counted once.
pub(crate) fn rewrite(
    space: &Space,
    terms: &Terms,
    abstraction: &Partial,
    name: SymbolId,
    roots: &[TermId],
    into: &mut Terms,
) -> Vec<TermId> {
    let mut values = Vec::new();
    let calls = space.chosen_calls(abstraction, &mut values);
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
