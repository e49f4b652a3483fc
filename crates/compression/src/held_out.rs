//! What a library is worth on programs that it was not learned from.
//!
//! The description length of a training corpus falls with every entry that is admitted, because that is what admits it.
//! Whether the library says something about programs to come shows on held-out ones: their description length under a grammar
//! whose probabilities are estimated on the training programs,
//!
//! ```text
//! DL(p | F) = − Σ ln p(k | c)          p(k | c) = (n(c, k) + 1) / (N(c) + K(c))
//! ```
//!
//! with n and N counted over the training programs and the bodies of F, and K(c) over all productions that training or
//! held-out programs use: the grammar knows every word (a number that no training program has, too), but not how often
//! it occurs. Both figures, with the library and without, are of the programs alone; the library was paid for in training.
//! Programs that call a library have fewer productions, so what no training program has is less improbable with one; a part of
//! the saving is that, and not the entries themselves.

use language::TermId;

use crate::compiler::{Strategy, compile};
use crate::factored::Factored;
use crate::loaded::{LoadError, Loaded};
use crate::programs::Programs;

/// The description lengths of held-out programs, in nats, one for each program.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOutLength {
    /// Without a library, under the grammar of the training programs without a library.
    pub without_library: Vec<f64>,
    /// Compiled with the library, under the grammar of the training programs that call it.
    pub with_library: Vec<f64>,
}

impl HeldOutLength {
    /// Both in total: without the library, and with it.
    pub fn totals(&self) -> (f64, f64) {
        (self.without_library.iter().sum(), self.with_library.iter().sum())
    }
}

/// Measures held-out programs, which are terms of the store of `training` over its primitives and entries. Both training and
/// held-out programs are compiled with the library of `training` by `strategy`, each without a look at the other.
pub fn held_out_length(
    training: &Programs,
    held_out: &[TermId],
    strategy: Strategy,
) -> Result<HeldOutLength, LoadError> {
    let training = training.with_terms(training.store().clone(), training.terms().to_vec())?;
    let training = compile(&training, strategy)?.programs;
    let compiled = compile(&training.with_terms(training.store().clone(), held_out.to_vec())?, strategy)?.programs;
    let all: Vec<TermId> = training.terms().iter().chain(compiled.terms()).copied().collect();
    let loaded = Loaded::new(&compiled.with_terms(compiled.store().clone(), all)?)?;
    let (terms, programs) = loaded.corpus.inlined();
    let plain = Factored::unfactored(terms, programs);
    let grammar = loaded.dictionary.grammar(&plain);
    Ok(HeldOutLength {
        without_library: grammar.costs_after(&plain, training.len()),
        with_library: grammar.costs_after(&loaded.corpus, training.len()),
    })
}
