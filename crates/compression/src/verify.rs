//! Checking a compression from its text alone: inlining every abstraction gives back the corpus.
//!
//! Bodies and rewritten programs are parsed as a user would parse them, so the check covers printing as well.

use language::TermStore;

use crate::compress::{Abstraction, Compression};
use crate::corpus::{Corpus, Syntax};
use crate::factored::{Entry, Factored};
use crate::sexpr::{self, Params};
use crate::term::Terms;
use crate::typed::Dictionary;

/// Where a compression is not what it claims to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// There are more or fewer rewritten programs than programs.
    #[error("{found} programs were rewritten, but the corpus has {wanted}")]
    Count {
        /// Programs of the compression.
        found: usize,
        /// Programs of the corpus.
        wanted: usize,
    },
    /// The body of an abstraction cannot be read or typed, or calls itself.
    #[error("the body of `{name}` is not valid: {reason}")]
    Body {
        /// The abstraction.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// A rewritten program cannot be read.
    #[error("program {index} is not valid: {reason}")]
    Program {
        /// Its place in the corpus, from 0.
        index: usize,
        /// What is wrong.
        reason: String,
    },
    /// Inlining gives another program.
    #[error("program {index} inlines to `{found}`, but it was `{wanted}`")]
    Differs {
        /// Its place in the corpus, from 0.
        index: usize,
        /// What it is now.
        found: String,
        /// What it was.
        wanted: String,
    },
}

/// Whether inlining every abstraction of a compression gives back the corpus.
pub fn verify(corpus: &Corpus, compression: &Compression) -> Result<(), VerifyError> {
    let (found, wanted) = (compression.rewritten.len(), corpus.len());
    if found != wanted {
        return Err(VerifyError::Count { found, wanted });
    }
    match &corpus.syntax {
        Syntax::Sexpr => verify_sexprs(corpus, compression),
        Syntax::Typed(dictionary) => verify_programs(dictionary, corpus, compression),
    }
}

fn verify_sexprs(corpus: &Corpus, compression: &Compression) -> Result<(), VerifyError> {
    let mut terms = Terms::new();
    let mut entries = Vec::new();
    for Abstraction { name, arity, body, .. } in &compression.abstractions {
        let invalid = |reason: String| VerifyError::Body { name: name.clone(), reason };
        let body = sexpr::parse(&mut terms, body, Params::Allow).map_err(|error| invalid(error.to_string()))?;
        if terms.params(body).iter().any(|&param| param as usize >= *arity) {
            return Err(invalid(format!("it uses more than its {arity} parameters")));
        }
        entries.push(Entry { symbol: terms.symbol(name), arity: *arity, body });
    }
    let mut programs = Vec::new();
    for (index, program) in compression.rewritten.iter().enumerate() {
        let read = sexpr::parse(&mut terms, program, Params::Refuse);
        programs.push(read.map_err(|error| VerifyError::Program { index, reason: error.to_string() })?);
    }
    let factored = Factored { terms, programs, entries, next_name: 0 };
    if factored.definition_order().len() < factored.entries.len() {
        let name = factored.terms.name(factored.entries[0].symbol).to_owned();
        return Err(VerifyError::Body { name, reason: "the library calls itself in a circle".into() });
    }
    let (inlined, programs) = factored.inlined();
    for (index, (&found, &wanted)) in programs.iter().zip(&corpus.programs).enumerate() {
        let (found, wanted) = (sexpr::print(&inlined, found), sexpr::print(&corpus.terms, wanted));
        if found != wanted {
            return Err(VerifyError::Differs { index, found, wanted });
        }
    }
    Ok(())
}

fn verify_programs(dictionary: &Dictionary, corpus: &Corpus, compression: &Compression) -> Result<(), VerifyError> {
    let mut store: TermStore = dictionary.store.clone();
    let mut library = dictionary.signature.clone();
    // Entries may call later ones: define those that can be defined, until none is left.
    let mut left: Vec<&Abstraction> = compression.abstractions.iter().collect();
    while !left.is_empty() {
        let mut waiting = Vec::new();
        let mut last = None;
        for &entry in &left {
            let defined =
                language::parse(&mut store, &library, &entry.body).map_err(|report| report.to_string()).and_then(
                    |parsed| library.define(&mut store, &entry.name, parsed.term).map_err(|error| error.to_string()),
                );
            if let Err(reason) = defined {
                last = Some(VerifyError::Body { name: entry.name.clone(), reason });
                waiting.push(entry);
            }
        }
        match last {
            Some(error) if waiting.len() == left.len() => return Err(error),
            _ => left = waiting,
        }
    }
    for (index, program) in compression.rewritten.iter().enumerate() {
        let invalid = |reason: String| VerifyError::Program { index, reason };
        let parsed = language::parse(&mut store, &library, program).map_err(|report| invalid(report.to_string()))?;
        // What the corpus's own library defines stays a call, as it is in the corpus.
        let is_new = |name| dictionary.signature.get(name).is_none();
        let inlined = library.inline(&mut store, parsed.term, is_new).map_err(|error| invalid(error.to_string()))?;
        let normal = |store: &mut TermStore, tree| {
            store.beta_normalize(tree, language::MAX_SIZE, 1 << 24).map_err(|error| invalid(error.to_string()))
        };
        let found = normal(&mut store, inlined)?;
        let original = dictionary.decode(&mut store, &corpus.terms, corpus.programs[index]);
        let wanted = original.map_err(|error| invalid(error.to_string()))?;
        if found != wanted && found != normal(&mut store, wanted)? {
            let (found, wanted) = (language::print(&store, found), language::print(&store, wanted));
            return Err(VerifyError::Differs { index, found, wanted });
        }
    }
    Ok(())
}
