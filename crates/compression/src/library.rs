//! The library F_t: named abstractions that persist over outer iterations.
//!
//! A library is text and numbers alone, so it belongs to no store: [`Library::define`] gives a [`Signature`] of any store,
//! and with it everything of the `language` crate (parsing, [`language::PrefixChecker`], [`language::evaluate`]) knows the
//! entries. Entries may call each other in any order, never in a circle. **A name that was taken once is never given to
//! another entry**, not even after pruning: programs and models of earlier iterations keep their meaning.
//!
//! As JSON the entries are called `abstractions` and have the fields that `library compress --json` writes, so that whoever
//! reads the one reads the other.

use std::collections::{BTreeMap, BTreeSet};

use language::{Signature, Term, TermId, TermStore};
use serde::{Deserialize, Serialize};

/// The version of the format, in JSON and in text.
pub(crate) const VERSION: u32 = 1;

/// The largest number in a name that we give.
const MAX_NUMBER: u64 = 1_000_000_000;

/// The most nodes that an entry may have when the entries it calls are unfolded. Short bodies that call each other twice
/// would otherwise take longer to unfold than anyone can wait.
const MAX_UNFOLDED: u64 = 1 << 22;

/// A library: entries in the order in which they were admitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `abstractions`")]
pub struct Library {
    version: u32,
    /// The next entry is `fn_` and this number.
    next: u64,
    abstractions: Vec<LibraryEntry>,
}

/// An entry of a library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LibraryEntry {
    /// What programs call it.
    pub name: String,
    /// The number of its parameters: the first λ of its body. A body may have more λ than that.
    pub arity: usize,
    /// The principal type of its body.
    #[serde(rename = "type")]
    pub principal_type: String,
    /// The outer iteration t in which it was admitted, from 1.
    pub iteration: u32,
    /// How much it lowered the description length when it was admitted, its body included, in nats.
    pub gain: f64,
    /// How often programs and other entries call it.
    pub uses: u64,
    /// Its share of all calls that programs make, see [`crate::posterior()`]; none before that was asked for.
    #[serde(default)]
    pub posterior: Option<Share>,
    /// Its λ-body in concrete syntax.
    pub body: String,
}

/// A share in [0, 1] with a credible interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// The posterior mean.
    pub mean: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// Why a library cannot be used: everything that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct LibraryError {
    /// What is wrong, in order of entries.
    pub problems: Vec<LibraryProblem>,
}

/// One thing that is wrong with a library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LibraryProblem {
    /// The text is no library at all.
    #[error("this is no library: {reason}")]
    Format {
        /// What is wrong with it.
        reason: String,
    },
    /// A line of the text form is no definition.
    #[error("line {line}: {reason}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What was found and what was wanted.
        reason: String,
    },
    /// It was written by another version.
    #[error("the library is of version {found}, but this program reads version {VERSION}")]
    Version {
        /// What it says.
        found: u32,
    },
    /// The counter of names is past its limit.
    #[error("the next name would be `fn_{next}`, but numbers go up to {MAX_NUMBER}")]
    Next {
        /// What it says.
        next: u64,
    },
    /// A name is none, or is taken by a primitive or another entry.
    #[error("the name of entry `{name}` cannot be used: {reason}")]
    Name {
        /// The name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A body does not parse or has no type.
    #[error("the body of `{name}` is not valid: {reason}")]
    Body {
        /// The entry.
        name: String,
        /// Why.
        reason: String,
    },
    /// A body has fewer plain λ than the entry has parameters.
    #[error("`{name}` has arity {arity}, but its body does not start with {arity} λ without annotation")]
    Arity {
        /// The entry.
        name: String,
        /// Its arity.
        arity: usize,
    },
    /// The type that is written is not that of the body.
    #[error("`{name}` is said to be of type `{found}`, but its body is of type `{wanted}`")]
    Type {
        /// The entry.
        name: String,
        /// What is written.
        found: String,
        /// The principal type.
        wanted: String,
    },
    /// The entry calls itself, perhaps by way of others.
    #[error("`{name}` calls itself in a circle, or calls an entry that does")]
    Cycle {
        /// The entry.
        name: String,
    },
    /// The entry is too large when unfolded.
    #[error("`{name}` has more than {MAX_UNFOLDED} nodes when the entries it calls are unfolded")]
    TooLarge {
        /// The entry.
        name: String,
    },
    /// A gain or a share is not finite.
    #[error("a number of `{name}` is not finite")]
    Number {
        /// The entry.
        name: String,
    },
}

impl Default for Library {
    fn default() -> Self {
        Self { version: VERSION, next: 0, abstractions: Vec::new() }
    }
}

impl Library {
    /// The empty library.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads JSON, and checks that it defines what it says over the primitives of `base`. All problems are reported.
    pub fn from_json(text: &str, store: &TermStore, base: &Signature) -> Result<Self, LibraryError> {
        let library: Self = serde_json::from_str(text)
            .map_err(|error| LibraryError { problems: vec![LibraryProblem::Format { reason: error.to_string() }] })?;
        library.check(store, base)?;
        Ok(library)
    }

    /// The entries, oldest first.
    pub fn entries(&self) -> &[LibraryEntry] {
        &self.abstractions
    }

    /// The entry of a name.
    pub fn get(&self, name: &str) -> Option<&LibraryEntry> {
        self.abstractions.iter().find(|entry| entry.name == name)
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.abstractions.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.abstractions.is_empty()
    }

    /// The number from which names are free. Greater than that of every entry there is or was.
    pub fn next(&self) -> u64 {
        self.abstractions
            .iter()
            .filter_map(|entry| number(&entry.name))
            .fold(self.next, |next, taken| next.max(taken.saturating_add(1)))
    }

    /// Checks that every body parses, has the type that is written, and calls nothing in a circle.
    pub fn check(&self, store: &TermStore, base: &Signature) -> Result<(), LibraryError> {
        self.define(&mut store.clone(), base).map(drop)
    }

    /// The signature with the entries defined, each after those it calls. `base` is a signature of `store`.
    pub fn define(&self, store: &mut TermStore, base: &Signature) -> Result<Signature, LibraryError> {
        let mut problems = self.number_problems();
        let bodies = self.parse(store, base, &mut problems);
        let mut signature = base.clone();
        let mut unfolded: BTreeMap<&str, u64> = BTreeMap::new();
        // Entries that something is known to be wrong with; what calls them cannot be judged.
        let mut failed: BTreeSet<&str> = BTreeSet::new();
        let names: BTreeSet<&str> = self.abstractions.iter().map(|entry| entry.name.as_str()).collect();
        let mut left: Vec<(&LibraryEntry, TermId, Vec<&str>)> = Vec::new();
        for (entry, body) in self.abstractions.iter().zip(&bodies) {
            match *body {
                None => drop(failed.insert(&entry.name)),
                Some(body) => left.push((entry, body, callees(&names, store, base, body))),
            }
        }
        loop {
            let before = left.len();
            let mut waiting = Vec::new();
            for (entry, body, callees) in left {
                if callees.iter().any(|callee| failed.contains(*callee)) {
                    failed.insert(&entry.name);
                } else if !callees.iter().all(|callee| unfolded.contains_key(callee)) {
                    waiting.push((entry, body, callees));
                } else {
                    match define_entry(store, &mut signature, entry, body, &mut unfolded) {
                        Ok(()) => {}
                        Err(problem) => {
                            failed.insert(&entry.name);
                            problems.push(problem);
                        }
                    }
                }
            }
            left = waiting;
            if left.len() == before || left.is_empty() {
                break;
            }
        }
        problems.extend(left.iter().map(|(entry, ..)| LibraryProblem::Cycle { name: entry.name.clone() }));
        if problems.is_empty() { Ok(signature) } else { Err(LibraryError { problems }) }
    }

    /// The library with other entries. Names that were taken stay taken.
    pub(crate) fn with_entries(&self, entries: Vec<LibraryEntry>) -> Self {
        let grown = Self { version: VERSION, next: self.next(), abstractions: entries };
        Self { next: grown.next(), ..grown }
    }

    /// A library as it was read, not yet checked.
    pub(crate) fn unchecked(version: u32, next: u64, abstractions: Vec<LibraryEntry>) -> Self {
        Self { version, next, abstractions }
    }

    fn number_problems(&self) -> Vec<LibraryProblem> {
        let mut problems = Vec::new();
        if self.version != VERSION {
            problems.push(LibraryProblem::Version { found: self.version });
        }
        if self.next() > MAX_NUMBER {
            problems.push(LibraryProblem::Next { next: self.next() });
        }
        for entry in &self.abstractions {
            let share = entry.posterior.map_or([0.0; 3], |share| [share.mean, share.low, share.high]);
            if !entry.gain.is_finite() || !share.iter().all(|number| number.is_finite()) {
                problems.push(LibraryProblem::Number { name: entry.name.clone() });
            }
        }
        problems
    }

    /// The bodies, parsed where every name of the library is known, whatever its type.
    fn parse(
        &self,
        store: &mut TermStore,
        base: &Signature,
        problems: &mut Vec<LibraryProblem>,
    ) -> Vec<Option<TermId>> {
        let mut named = base.clone();
        let declared: Vec<bool> = (self.abstractions.iter())
            .map(|entry| match named.declare(store, &entry.name, "forall a. a", "") {
                Ok(_) => true,
                Err(error) => {
                    problems.push(LibraryProblem::Name { name: entry.name.clone(), reason: error.to_string() });
                    false
                }
            })
            .collect();
        let mut parse = |(entry, declared): (&LibraryEntry, bool)| match language::parse(store, &named, &entry.body) {
            Ok(parsed) => declared.then_some(parsed.term),
            Err(report) => {
                let messages: Vec<String> = report.errors.iter().map(ToString::to_string).collect();
                problems.push(LibraryProblem::Body { name: entry.name.clone(), reason: messages.join("; ") });
                None
            }
        };
        self.abstractions.iter().zip(declared).map(&mut parse).collect()
    }
}

/// The signature with entries defined whose bodies are terms of `store`, in the order in which [`Library::define`] does it.
pub(crate) fn define_terms(
    store: &mut TermStore,
    base: &Signature,
    entries: &[(&str, TermId)],
) -> Result<Signature, LibraryError> {
    let names: BTreeSet<&str> = entries.iter().map(|&(name, _)| name).collect();
    let mut signature = base.clone();
    let mut left: Vec<(&str, TermId, Vec<&str>)> =
        entries.iter().map(|&(name, body)| (name, body, callees(&names, store, base, body))).collect();
    while !left.is_empty() {
        let before = left.len();
        let mut waiting = Vec::new();
        for (name, body, callees) in left {
            if callees.iter().any(|callee| signature.find(store, callee).is_none()) {
                waiting.push((name, body, callees));
                continue;
            }
            let problem = |reason: String| LibraryError {
                problems: vec![LibraryProblem::Body { name: name.to_owned(), reason }],
            };
            signature.define(store, name, body).map_err(|error| problem(error.to_string()))?;
        }
        left = waiting;
        if left.len() == before {
            let problems = left.iter().map(|&(name, ..)| LibraryProblem::Cycle { name: name.to_owned() }).collect();
            return Err(LibraryError { problems });
        }
    }
    Ok(signature)
}

/// The entries that a body calls, of those that there are. What has the name of a constant of `base` is that constant.
fn callees<'l>(names: &BTreeSet<&'l str>, store: &TermStore, base: &Signature, body: TermId) -> Vec<&'l str> {
    let called = store.constants(body).into_iter().filter(|&name| base.get(name).is_none());
    called.filter_map(|name| names.get(store.spelling(name)).copied()).collect()
}

/// The number in a name that we give.
pub(crate) fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("fn_")?;
    let is_plain = digits == "0" || !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { digits.parse().ok() } else { None }
}

/// How many λ without annotation a term starts with.
pub(crate) fn plain_lambdas(store: &TermStore, mut term: TermId) -> usize {
    let mut count = 0;
    while let Term::Lambda { annotation: None, body } = *store.get(term) {
        (count, term) = (count + 1, body);
    }
    count
}

/// Defines an entry whose callees are defined.
fn define_entry<'l>(
    store: &mut TermStore,
    signature: &mut Signature,
    entry: &'l LibraryEntry,
    body: TermId,
    unfolded: &mut BTreeMap<&'l str, u64>,
) -> Result<(), LibraryProblem> {
    let name = || entry.name.clone();
    if plain_lambdas(store, body) < entry.arity {
        return Err(LibraryProblem::Arity { name: name(), arity: entry.arity });
    }
    let size = unfolded_size(store, body, unfolded);
    if size > MAX_UNFOLDED {
        return Err(LibraryProblem::TooLarge { name: name() });
    }
    let defined = signature.define(store, &entry.name, body);
    let defined = defined.map_err(|error| LibraryProblem::Body { name: name(), reason: error.to_string() })?;
    unfolded.insert(&entry.name, size);
    let wanted = signature.get(defined).map(|entry| store.types().show_scheme(entry.scheme)).unwrap_or_default();
    if wanted != entry.principal_type {
        return Err(LibraryProblem::Type { name: name(), found: entry.principal_type.clone(), wanted });
    }
    Ok(())
}

/// The nodes of a body with calls unfolded, arguments counted where they are written.
fn unfolded_size(store: &TermStore, body: TermId, unfolded: &BTreeMap<&str, u64>) -> u64 {
    let mut known: BTreeMap<TermId, u64> = BTreeMap::new();
    // Terms are no deeper than the language's limit, so the walk may recurse.
    fn size(store: &TermStore, id: TermId, unfolded: &BTreeMap<&str, u64>, known: &mut BTreeMap<TermId, u64>) -> u64 {
        if let Some(&size) = known.get(&id) {
            return size;
        }
        let own = match *store.get(id) {
            Term::Constant(name) => unfolded.get(store.spelling(name)).copied().unwrap_or(1),
            _ => 1,
        };
        let parts = store.get(id).children().into_iter();
        let total = parts.fold(own, |sum, (part, _)| sum.saturating_add(size(store, part, unfolded, known)));
        known.insert(id, total);
        total
    }
    size(store, body, unfolded, &mut known)
}
