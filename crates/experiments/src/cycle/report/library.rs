//! The last library: entries with the entries that they call, and a few calls of the training programs with their expansions.

use compression::{EntryKind, Library, Strategy, compile};
use language::{Signature, TermId, TermStore, evaluate, print};
use report::{Entry, Expansion, Hole, Posterior};

use crate::cycle::driver::World;
use crate::cycle::refactoring::read;
use crate::cycle::summary::RunSummary;
use crate::error::Result;

/// Calls of an entry that are shown with their expansions.
const EXPANSIONS: usize = 3;

/// The entries, in the order of the library.
pub(super) fn entries(world: &World, library: &Library, summary: &RunSummary) -> Result<Vec<Entry>> {
    let Some(last) = summary.refactor.last() else { return Ok(Vec::new()) };
    let compiled = compile(&read(&world.corpus, last)?, Strategy::Greedy)?;
    let programs = &compiled.programs;
    let mut store = programs.store().clone();
    let mut found = Vec::new();
    for entry in library.entries() {
        let Some(definition) = programs.definition(&entry.name) else { continue };
        let calls = compiled.entries.iter().filter(|one| one.name == entry.name).flat_map(|one| &one.calls);
        let holes = definition.parameters.iter().map(|one| Hole { name: one.name.clone(), ty: one.ty.clone() });
        found.push(Entry {
            name: entry.name.clone(),
            ty: entry.principal_type.clone(),
            body: entry.body.clone(),
            holes: holes.collect(),
            uses: entry.uses,
            gain_nats: entry.gain,
            posterior: entry.posterior.map(|share| Posterior { mean: share.mean, low: share.low, high: share.high }),
            calls: definition.calls.clone(),
            iteration: entry.iteration,
            kind: Some(kind_name(definition.kind).to_owned()),
            expansions: expansions(&mut store, programs.signature(), calls.map(|call| call.term)),
        });
    }
    Ok(found)
}

/// A kind of entry in words.
fn kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::SeveralMotions => "several skills",
        EntryKind::Constant => "constant",
        EntryKind::PartialApplication => "partial application",
        EntryKind::Other => "other",
    }
}

/// The first few different calls that have an expansion, with it.
fn expansions(store: &mut TermStore, signature: &Signature, calls: impl Iterator<Item = TermId>) -> Vec<Expansion> {
    let mut found = Vec::<Expansion>::new();
    for term in calls {
        if found.len() >= EXPANSIONS {
            break;
        }
        let call = print(store, term);
        if found.iter().any(|known| known.call == call) {
            continue;
        }
        if let Some(meaning) = expansion(store, signature, term) {
            found.push(Expansion { call, meaning });
        }
    }
    found
}

/// The primitive calls of a program, one a line; `None` for a program that cannot be evaluated, such as one with variables
/// that are bound around it.
fn expansion(store: &mut TermStore, signature: &Signature, term: TermId) -> Option<String> {
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
        let signature = fixture::library(1).define(&mut store, &base).unwrap();
        let milk = language::parse(&mut store, &signature, "fn_0 \"milk\"").unwrap().term;
        let found = expansions(&mut store, &signature, [milk, milk].into_iter());
        assert_eq!(found.len(), 1, "the same call once: {found:?}");
        assert_eq!(found[0].call, "fn_0 \"milk\"");
        assert_eq!(found[0].meaning, "pick \"milk\"\nplace \"milk\" (in \"basket\")");
    }

    #[test]
    fn only_a_few_calls_are_shown() {
        let mut store = TermStore::new();
        let base = Signature::standard(&mut store);
        let signature = fixture::library(1).define(&mut store, &base).unwrap();
        let calls = ["milk", "bowl", "plate", "mug", "box"]
            .map(|item| language::parse(&mut store, &signature, &format!("fn_0 \"{item}\"")).unwrap().term);
        assert_eq!(expansions(&mut store, &signature, calls.into_iter()).len(), EXPANSIONS);
    }
}
