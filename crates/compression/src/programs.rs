//! A library and programs that call it, as terms: what refactoring, pruning, the posterior and the compiler take and give.
//!
//! A [`Library`] is data (names, bodies as text) and belongs to no store. [`Programs`] binds one: a [`TermStore`], the
//! [`Signature`] in which the entries are defined, and programs as [`TermId`]s. Text is read when programs are bound and
//! written when somebody asks for it; between [`crate::refactor()`], [`crate::prune()`], [`crate::posterior()`] and
//! [`crate::compile()`] nothing is printed and parsed again.
//!
//! **Stores.** Results are written into a copy of the store that the programs were bound in, so terms of that store keep
//! their ids in every result. Terms that a step itself made belong to its result alone. A result is a function of that
//! store, the library and the programs: whether they came from memory or from a file makes no difference.

use language::{Signature, TermId, TermStore};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::corpus::{CorpusError, ProgramProblem};
use crate::kinds::{EntryKind, kind_of};
use crate::library::Library;
use crate::loaded::LoadError;
use crate::posterior::Posterior;

/// Programs written with a library, all closed and well typed.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The store that the programs were bound in, which results extend.
    pub(crate) origin: TermStore,
    /// The primitives.
    pub(crate) base: Signature,
    pub(crate) library: Library,
    pub(crate) store: TermStore,
    /// The primitives and the entries.
    pub(crate) signature: Signature,
    pub(crate) terms: Vec<TermId>,
}

/// A parameter of an entry or of a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name in the body as it is printed.
    pub name: String,
    /// Its type, part of the principal type of the body.
    #[serde(rename = "type")]
    pub ty: String,
}

/// An entry of a bound library.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its λ-body, a term of [`Programs::store`].
    pub body: TermId,
    /// Its parameters, in order.
    pub parameters: Vec<Parameter>,
    /// The entries that its body calls, in the order of the library.
    pub calls: Vec<String>,
    /// What kind of abstraction it is.
    pub kind: EntryKind,
}

impl Programs {
    /// Binds a library and programs, which are terms of `store` over the primitives of `base` and the library's entries.
    ///
    /// # Errors
    /// On a library that is not valid, and on programs that are open or have no type; all of them are reported.
    pub fn new(
        store: &TermStore,
        base: &Signature,
        library: &Library,
        terms: Vec<TermId>,
    ) -> Result<Programs, LoadError> {
        let mut bound = store.clone();
        let signature = library.define(&mut bound, base)?;
        check(&mut bound, &signature, &terms)?;
        let (origin, base, library) = (store.clone(), base.clone(), library.clone());
        Ok(Programs { origin, base, library, store: bound, signature, terms })
    }

    /// Binds a library and reads programs that are written with it.
    ///
    /// # Errors
    /// As [`Programs::new`], and on programs that do not parse.
    pub fn read<S: AsRef<str>>(
        store: &TermStore,
        base: &Signature,
        library: &Library,
        texts: &[S],
    ) -> Result<Programs, LoadError> {
        let mut bound = store.clone();
        let signature = library.define(&mut bound, base)?;
        let terms = crate::loaded::read_programs(&mut bound, &signature, texts)?;
        check(&mut bound, &signature, &terms)?;
        let (origin, base, library) = (store.clone(), base.clone(), library.clone());
        Ok(Programs { origin, base, library, store: bound, signature, terms })
    }

    /// Other programs with the same library. `store` extends that of these programs, and so do all results.
    ///
    /// # Errors
    /// On programs that are open or have no type.
    pub fn with_terms(&self, mut store: TermStore, terms: Vec<TermId>) -> Result<Programs, LoadError> {
        check(&mut store, &self.signature, &terms)?;
        Ok(Programs { origin: store.clone(), store, terms, ..self.clone_library() })
    }

    /// The store of the terms.
    pub fn store(&self) -> &TermStore {
        &self.store
    }

    /// The primitives.
    pub fn base(&self) -> &Signature {
        &self.base
    }

    /// The primitives and the entries.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The library as data.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// The programs, terms of [`Programs::store`].
    pub fn terms(&self) -> &[TermId] {
        &self.terms
    }

    /// The number of programs.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Whether there is no program.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The programs in concrete syntax.
    pub fn texts(&self) -> Vec<String> {
        self.terms.iter().map(|&term| language::print(&self.store, term)).collect()
    }

    /// What the library says of an entry, as terms; `None` if it has no entry of that name.
    pub fn definition(&self, name: &str) -> Option<Definition> {
        let arity = self.library.get(name)?.arity;
        let defined = self.signature.find(&self.store, name)?;
        let body = defined.body()?;
        let called: FxHashSet<&str> =
            self.store.constants(body).into_iter().map(|name| self.store.spelling(name)).collect();
        let entries = self.library.entries().iter().filter(|entry| called.contains(entry.name.as_str()));
        Some(Definition {
            body,
            parameters: parameters(&self.store, body, defined.scheme, arity),
            calls: entries.map(|entry| entry.name.clone()).collect(),
            kind: kind_of(&self.store, &self.signature, body),
        })
    }

    /// The programs with the shares of a posterior in their library.
    pub fn annotated(self, posterior: &Posterior) -> Programs {
        Programs { library: posterior.annotate(&self.library), ..self }
    }

    /// Takes the store, the signature with the entries, and the programs.
    pub fn into_parts(self) -> (TermStore, Signature, Vec<TermId>) {
        (self.store, self.signature, self.terms)
    }

    /// The same library without programs.
    fn clone_library(&self) -> Programs {
        Programs {
            origin: TermStore::new(),
            base: self.base.clone(),
            library: self.library.clone(),
            store: TermStore::new(),
            signature: self.signature.clone(),
            terms: Vec::new(),
        }
    }
}

/// The parameters of a λ-term: the names of its first `arity` λ, and the types that its principal type gives them.
pub(crate) fn parameters(store: &TermStore, body: TermId, scheme: language::Scheme, arity: usize) -> Vec<Parameter> {
    let (types, _) = store.types().uncurry(scheme.body());
    let names = language::binder_names(store, body, arity);
    names.into_iter().zip(types).map(|(name, ty)| Parameter { name, ty: store.types().show(ty) }).collect()
}

/// Refuses programs that are open or have no type.
fn check(store: &mut TermStore, signature: &Signature, terms: &[TermId]) -> Result<(), LoadError> {
    let mut problems = Vec::new();
    // Corpora repeat programs; one inference each will do.
    let mut typed: FxHashSet<TermId> = FxHashSet::default();
    for (index, &term) in terms.iter().enumerate() {
        if typed.contains(&term) {
            continue;
        }
        if !store.is_closed(term) {
            problems.push((index, ProgramProblem::Open));
        } else if let Err(errors) = language::infer(store, signature, term) {
            let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
            problems.push((index, ProgramProblem::Untyped(messages.join("; "))));
        } else {
            typed.insert(term);
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(CorpusError { problems }.into()) }
}
