//! A library and programs that call it, as a factored corpus of the compressor, and back.

use language::{Signature, TermId as TreeId, TermStore};
use rustc_hash::FxHashMap;

use crate::corpus::{CorpusError, ProgramProblem};
use crate::factored::{Entry, Factored};
use crate::grammar::Probabilities;
use crate::library::{self, LibraryEntry, LibraryError};
use crate::objective::{Measure, Objective};
use crate::programs::Programs;
use crate::term::{TermId, Terms};
use crate::typed::Dictionary;

/// Why a library and programs that call it cannot be worked on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LoadError {
    /// The library is not valid.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// Some programs are not valid.
    #[error(transparent)]
    Programs(#[from] CorpusError),
    /// What comes out is out of the language's bounds.
    #[error("the result cannot be written: {0}")]
    Bounds(#[from] language::TermError),
    /// A setting is out of range.
    #[error("{setting} is {found}, expected {wanted}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// Its value.
        found: String,
        /// What is allowed.
        wanted: &'static str,
    },
    /// No thread could be started.
    #[error(transparent)]
    Threads(#[from] crate::compress::CompressError),
}

/// The description length of a corpus, in nats.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescriptionLength {
    /// Σ DL(program | F).
    pub programs: f64,
    /// DL(F).
    pub library: f64,
}

impl DescriptionLength {
    /// Programs and library together.
    pub fn total(self) -> f64 {
        self.programs + self.library
    }
}

/// The description length of programs and the library that they call, in nats.
///
/// The productions of the programs as they would be without a library stay available at no use, so the figure depends on
/// what was factored and how, not on the step at which it is measured.
pub fn description_length(programs: &Programs) -> Result<DescriptionLength, LoadError> {
    let loaded = Loaded::new(programs)?;
    Ok(loaded.description_length(&loaded.objective(), &loaded.corpus))
}

/// Reads programs that are written with a library. All mistakes are reported, not only the first.
pub fn read_programs<S: AsRef<str>>(
    store: &mut TermStore,
    signature: &Signature,
    programs: &[S],
) -> Result<Vec<TreeId>, CorpusError> {
    let mut read = Vec::with_capacity(programs.len());
    let mut problems = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        match language::parse(store, signature, program.as_ref()) {
            Ok(parsed) => read.push(parsed.term),
            Err(report) => {
                let messages: Vec<String> = report.errors.iter().map(ToString::to_string).collect();
                problems.push((index, ProgramProblem::Unreadable(messages.join("; "))));
            }
        }
    }
    if problems.is_empty() { Ok(read) } else { Err(CorpusError { problems }) }
}

/// A library and programs as a factored corpus.
pub(crate) struct Loaded {
    pub(crate) dictionary: Dictionary,
    pub(crate) corpus: Factored,
}

impl Loaded {
    pub(crate) fn new(programs: &Programs) -> Result<Self, LoadError> {
        let Programs { origin, base, library, store, signature, terms: trees } = programs;
        let mut dictionary = Dictionary::new(origin.clone(), base.clone());
        let mut terms = Terms::new();
        dictionary.reserve_names(&mut terms);
        let mut encoded: FxHashMap<TreeId, TermId> = FxHashMap::default();
        let mut roots = Vec::with_capacity(trees.len());
        for &program in trees {
            roots.push(match encoded.get(&program) {
                Some(&known) => known,
                None => {
                    let root = dictionary.encode(store, &mut terms, program)?;
                    encoded.insert(program, root);
                    root
                }
            });
        }
        let mut entries = Vec::with_capacity(library.len());
        for entry in library.entries() {
            // The library is defined, so every body is there and has its λ.
            let Some(body) = signature.find(store, &entry.name).and_then(language::Entry::body) else { continue };
            let Some(body) = dictionary.encode_body(store, &mut terms, body, entry.arity)? else { continue };
            let symbol = dictionary.reserve_name(&mut terms, &entry.name)?;
            entries.push(Entry { symbol, arity: entry.arity, body });
        }
        let next_name = usize::try_from(library.next()).unwrap_or(usize::MAX);
        Ok(Self { dictionary, corpus: Factored { terms, programs: roots, entries, next_name } })
    }

    /// Description length in nats. Its grammar is that of the programs without a library.
    pub(crate) fn objective(&self) -> Objective<'_> {
        let (terms, programs) = self.corpus.inlined();
        let grammar = self.dictionary.grammar(&Factored::unfactored(terms, programs));
        Objective { measure: Measure::Nats(grammar, Probabilities::Estimated), dictionary: Some(&self.dictionary) }
    }

    pub(crate) fn description_length(&self, objective: &Objective<'_>, corpus: &Factored) -> DescriptionLength {
        let cost = objective.cost(corpus);
        let nats = |cost: u64| cost as f64 / objective.unit();
        DescriptionLength { programs: nats(cost.programs), library: nats(cost.library) }
    }

    /// A corpus over this dictionary as programs with their library. `from` is what was loaded; `known` says of each entry
    /// what is not in the corpus, and body, type and uses are those of now.
    pub(crate) fn written(
        &self,
        from: &Programs,
        corpus: &Factored,
        known: impl Fn(&str) -> Option<LibraryEntry>,
    ) -> Result<Programs, LoadError> {
        let mut store = self.dictionary.store.clone();
        let mut bodies = Vec::with_capacity(corpus.entries.len());
        for entry in &corpus.entries {
            let body = self.dictionary.decode_body(&mut store, &corpus.terms, entry.body, entry.arity)?;
            bodies.push((corpus.terms.name(entry.symbol), body));
        }
        let signature = library::define_terms(&mut store, &from.base, &bodies)?;
        let mut entries = Vec::with_capacity(corpus.entries.len());
        for ((entry, uses), &(name, body)) in corpus.entries.iter().zip(corpus.uses()).zip(&bodies) {
            let scheme = signature.find(&store, name).map(|entry| entry.scheme);
            let known = known(name);
            entries.push(LibraryEntry {
                name: name.to_owned(),
                arity: entry.arity,
                principal_type: scheme.map(|scheme| store.types().show_scheme(scheme)).unwrap_or_default(),
                iteration: known.as_ref().map_or(0, |known| known.iteration),
                gain: known.as_ref().map_or(0.0, |known| known.gain),
                uses,
                posterior: known.and_then(|known| known.posterior),
                body: language::print(&store, body),
            });
        }
        let mut decoded: FxHashMap<TermId, TreeId> = FxHashMap::default();
        let mut terms = Vec::with_capacity(corpus.programs.len());
        for &program in &corpus.programs {
            terms.push(match decoded.get(&program) {
                Some(&known) => known,
                None => {
                    let tree = self.dictionary.decode(&mut store, &corpus.terms, program)?;
                    decoded.insert(program, tree);
                    tree
                }
            });
        }
        Ok(Programs {
            origin: from.origin.clone(),
            base: from.base.clone(),
            library: from.library.with_entries(entries),
            store,
            signature,
            terms,
        })
    }
}
