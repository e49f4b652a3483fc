//! Kinds of library entries: which of them put several skills together, and which merely abbreviate.
//!
//! A library that makes programs shorter need not hold new skills. An entry that names one motion with some arguments fixed
//! also saves nats, and so does a constant. Counting entries by kind tells them apart.

use language::{Signature, Term, TermId, TermStore, TypeId};
use serde::{Deserialize, Serialize};

use crate::programs::Programs;

/// What kind of abstraction an entry is. The first that applies counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Its body names two or more motions: `\x0. seq[pick x0, lift x0]`.
    SeveralMotions,
    /// It has no parameter and its body takes none: `skill_3 twist[…] 12`.
    Constant,
    /// Its body is one call of an entry or a primitive of which arguments are missing or are parameters as they are:
    /// `fn_1 4` or `\x0. skill_3 x0 12`.
    PartialApplication,
    /// Anything else, such as one motion followed by the rest of the program.
    Other,
}

/// How many entries of each kind a library has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryKinds {
    /// Entries that put several motions together.
    pub several_motions: usize,
    /// Calls of one entry or primitive with some arguments fixed.
    pub partial_applications: usize,
    /// Entries without parameters.
    pub constants: usize,
    /// All others.
    pub others: usize,
}

impl EntryKinds {
    /// Counts the entries of a bound library.
    pub fn of(programs: &Programs) -> EntryKinds {
        let mut counts = EntryKinds::default();
        for entry in programs.library().entries() {
            let Some(definition) = programs.definition(&entry.name) else { continue };
            *match definition.kind {
                EntryKind::SeveralMotions => &mut counts.several_motions,
                EntryKind::Constant => &mut counts.constants,
                EntryKind::PartialApplication => &mut counts.partial_applications,
                EntryKind::Other => &mut counts.others,
            } += 1;
        }
        counts
    }

    /// All entries.
    pub fn total(self) -> usize {
        self.several_motions + self.partial_applications + self.constants + self.others
    }
}

/// How many motions a term names: primitives and entries whose result is a Motion, each time that they occur.
pub fn motions_named(store: &TermStore, signature: &Signature, term: TermId) -> usize {
    let mut pending = vec![term];
    let mut found = 0;
    while let Some(term) = pending.pop() {
        if let Term::Constant(name) = store.get(term)
            && let Some(entry) = signature.get(*name)
        {
            let (_, result) = store.types().uncurry(entry.scheme.body());
            found += usize::from(result == TypeId::MOTION);
        }
        pending.extend(store.get(term).children().iter().map(|&(child, _)| child));
    }
    found
}

/// The kind of an entry with this λ-body.
pub(crate) fn kind_of(store: &TermStore, signature: &Signature, body: TermId) -> EntryKind {
    if motions_named(store, signature, body) >= 2 {
        return EntryKind::SeveralMotions;
    }
    let (mut inner, mut parameters) = (body, 0);
    while let Term::Lambda { body, .. } = *store.get(inner) {
        (inner, parameters) = (body, parameters + 1);
    }
    let (head, arguments) = store.spine(inner);
    let wanted = match store.get(head) {
        Term::Constant(name) => signature.get(*name).map(|entry| store.types().uncurry(entry.scheme.body()).0.len()),
        _ => None,
    };
    let is_missing = wanted.is_some_and(|wanted| arguments.len() < wanted);
    if parameters == 0 && !is_missing {
        return EntryKind::Constant;
    }
    let is_plain = |&argument: &TermId| store.is_closed(argument) || matches!(store.get(argument), Term::Variable(_));
    match wanted.is_some() && arguments.iter().all(is_plain) {
        true => EntryKind::PartialApplication,
        false => EntryKind::Other,
    }
}
