//! The words of programs: the default primitives and, if wanted, the entries of a library file.

use std::path::Path;

use language::{Signature, TermStore, parse};
use serde::Deserialize;

use crate::failure::{Failure, Problem};
use crate::files::{read_text, shown};

/// The largest library file, in bytes.
pub(crate) const MAX_LIBRARY_BYTES: u64 = 256 << 20;

/// A signature with the store that it belongs to.
pub(crate) struct Vocabulary {
    pub(crate) store: TermStore,
    pub(crate) signature: Signature,
}

/// What is read of a library file; the other fields are of no use here.
#[derive(Deserialize)]
#[serde(expecting = "an object with `abstractions`")]
struct LibraryFile {
    abstractions: Vec<Definition>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with `name` and `body`")]
struct Definition {
    name: String,
    body: String,
}

impl Vocabulary {
    /// The default primitives, and the entries of the file.
    pub(crate) fn new(library: Option<&Path>) -> Result<Vocabulary, Failure> {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        Vocabulary { store, signature }.with_library(library)
    }

    /// As [`Vocabulary::new`], with the primitives of general instructions.
    pub(crate) fn general(library: Option<&Path>) -> Result<Vocabulary, Failure> {
        let mut store = TermStore::new();
        let signature = Signature::general(&mut store);
        Vocabulary { store, signature }.with_library(library)
    }

    fn with_library(self, library: Option<&Path>) -> Result<Vocabulary, Failure> {
        let mut vocabulary = self;
        if let Some(path) = library {
            vocabulary.define_all(path)?;
        }
        Ok(vocabulary)
    }

    fn define_all(&mut self, path: &Path) -> Result<(), Failure> {
        let text = read_text(path, MAX_LIBRARY_BYTES)?;
        let file: LibraryFile = serde_json::from_str(&text).map_err(|error| {
            Problem::new(format!("{} is not a library: {error}", shown(path)))
                .fact("expected", "JSON written by `library compress --output FILE`")
                .hint(format!("run `refactor-vla library compress --output {}`", path.display()))
        })?;
        // Entries may call later ones: define those that can be defined, until none is left.
        let mut left = file.abstractions;
        while !left.is_empty() {
            let before = left.len();
            let mut refused = None;
            left.retain(|definition| match self.define(definition) {
                Ok(()) => false,
                Err(reason) => {
                    refused.get_or_insert_with(|| (definition.name.clone(), definition.body.clone(), reason));
                    true
                }
            });
            if let (Some((name, body, reason)), true) = (refused, left.len() == before) {
                return Err(Problem::new(format!("the entry `{name}` of {} cannot be used", shown(path)))
                    .fact("body", body)
                    .fact("reason", reason)
                    .hint("entries learned from programs or instructions can be called, those of s-expressions cannot")
                    .into());
            }
        }
        Ok(())
    }

    fn define(&mut self, definition: &Definition) -> Result<(), String> {
        let Vocabulary { store, signature } = self;
        let parsed = parse(store, signature, &definition.body).map_err(|report| {
            let messages: Vec<String> = report.errors.iter().map(ToString::to_string).collect();
            messages.join("; ")
        })?;
        let defined = signature.define(store, &definition.name, parsed.term);
        defined.map(drop).map_err(|error| error.to_string())
    }
}
