//! The last library: entries with the entries that they call, and a few calls of the training programs with their expansions.

use compression::Library;
use language::{Signature, TermStore, evaluate, print};
use report::{Entry, Expansion, Posterior};

use super::parameters::{called, parameters};
use crate::cycle::driver::World;
use crate::cycle::refactoring::parsed;
use crate::cycle::summary::RunSummary;
use crate::error::Result;

/// Calls of an entry that are shown with their expansions.
const EXPANSIONS: usize = 3;

/// The entries, in the order of the library.
pub(super) fn entries(world: &World, library: &Library, summary: &RunSummary) -> Result<Vec<Entry>> {
    let mut store = world.corpus.store.clone();
    let signature = library.define(&mut store, &world.corpus.base)?;
    let programs = summary.refactor.last().map(|last| last.programs.as_slice()).unwrap_or_default();
    let (bound, terms) = parsed(&world.corpus, library, programs)?;
    let compiled = compression::compile(&bound, &world.corpus.base, library, &terms, compression::Strategy::Greedy)?;
    let names = || library.entries().iter().map(|entry| entry.name.as_str());
    let entry = |entry: &compression::LibraryEntry| {
        let calls = compiled.entries.iter().filter(|one| one.name == entry.name).flat_map(|one| &one.calls);
        let calls = calls.map(|call| call_text(&entry.name, call.arguments.iter().chain(&call.applied_to)));
        Entry {
            name: entry.name.clone(),
            ty: entry.principal_type.clone(),
            body: entry.body.clone(),
            holes: parameters(&entry.body, &entry.principal_type, entry.arity),
            uses: entry.uses,
            gain_nats: entry.gain,
            posterior: entry.posterior.map(|share| Posterior { mean: share.mean, low: share.low, high: share.high }),
            calls: called(&entry.body, names()),
            iteration: entry.iteration,
            kind: None,
            expansions: expansions(&mut store, &signature, calls),
        }
    };
    Ok(library.entries().iter().map(entry).collect())
}

/// A call in concrete syntax.
fn call_text<'a>(name: &str, arguments: impl Iterator<Item = &'a String>) -> String {
    std::iter::once(name.to_owned())
        .chain(arguments.map(|argument| format!("({argument})")))
        .collect::<Vec<_>>()
        .join(" ")
}

/// The first few different calls that have an expansion, with it.
fn expansions(store: &mut TermStore, signature: &Signature, calls: impl Iterator<Item = String>) -> Vec<Expansion> {
    let mut found = Vec::<Expansion>::new();
    for call in calls {
        if found.len() >= EXPANSIONS {
            break;
        }
        if found.iter().any(|known| known.call == call) {
            continue;
        }
        if let Some(meaning) = expansion(store, signature, &call) {
            found.push(Expansion { call, meaning });
        }
    }
    found
}

/// The primitive calls of a program, one a line; `None` for a program that cannot be evaluated, such as one with variables
/// that are bound around it.
fn expansion(store: &mut TermStore, signature: &Signature, text: &str) -> Option<String> {
    let term = language::parse(store, signature, text).ok()?.term;
    let events = evaluate(store, signature, term).ok()?;
    let lines: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            language::Event::Call { term, .. } => Some(print(store, *term)),
            language::Event::Branch { .. } | language::Event::Repeat { .. } => None,
        })
        .collect();
    Some(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycle::report::fixture;

    #[test]
    fn calls_expand_to_primitive_calls() {
        let mut store = TermStore::new();
        let base = Signature::standard(&mut store);
        let library = fixture::library(1);
        let signature = library.define(&mut store, &base).unwrap();
        let call = call_text("fn_0", [&"\"milk\"".to_owned()].into_iter());
        assert_eq!(call, "fn_0 (\"milk\")");
        let calls = [call.clone(), "fn_0 $0".to_owned(), call.clone()];
        let found = expansions(&mut store, &signature, calls.into_iter());
        assert_eq!(found.len(), 1, "the same call once, and none with a free variable: {found:?}");
        assert_eq!(found[0].call, call);
        assert_eq!(found[0].meaning, "pick \"milk\"\nplace \"milk\" (in \"basket\")");
    }

    #[test]
    fn only_a_few_calls_are_shown() {
        let mut store = TermStore::new();
        let base = Signature::standard(&mut store);
        let signature = fixture::library(1).define(&mut store, &base).unwrap();
        let calls = ["milk", "bowl", "plate", "mug", "box"].map(|item| format!("fn_0 (\"{item}\")"));
        assert_eq!(expansions(&mut store, &signature, calls.into_iter()).len(), EXPANSIONS);
    }
}
