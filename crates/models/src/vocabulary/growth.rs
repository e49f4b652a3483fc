//! What becomes of a model when its vocabulary grows.

use std::collections::BTreeMap;

use candle_core::Tensor;
use language::{Head, Signature, TermStore, Token, tokens_of};

use super::symbol::Symbol;
use super::{UNKNOWN, Vocabulary};
use crate::embedding::{self, GrowingTables};
use crate::error::{Error, Result};
use crate::parameters::Parameters;

/// Which rows new rows start from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Growth {
    sources: Vec<Vec<u32>>,
}

impl Growth {
    /// From one vocabulary to another that starts with it. A new library entry starts as the mean of the tokens of its
    /// definition, as far as they stand before it; other new tokens start as they are drawn.
    ///
    /// Numbers go with names: the name of an entry that was removed must not be given to another one.
    pub fn between(old: &Vocabulary, new: &Vocabulary, store: &mut TermStore, signature: &Signature) -> Result<Growth> {
        if !old.is_start_of(new) {
            return Err(Error::Config("a vocabulary can only grow at its end; extend the old one".into()));
        }
        let bound = new.bind(store)?;
        let sources_of = |id: u32| -> Vec<u32> {
            let Some(Symbol::Token(Token::Head { head: Head::Constant(name), .. })) = bound.symbol(id) else {
                return Vec::new();
            };
            let Some(body) = signature.get(name).and_then(language::Entry::body) else { return Vec::new() };
            let symbols = tokens_of(store, body).into_iter().flat_map(|token| bound.ids_of(token));
            symbols.filter(|source| *source != UNKNOWN && *source < id).collect()
        };
        Ok(Growth { sources: (old.len() as u32..new.len() as u32).map(sources_of).collect() })
    }

    /// How many tokens are new.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Writes what the old model has learned into the new one, which was made for the larger vocabulary; `tables` are its
    /// tables ([`Emitter::tables`](crate::emitter::Emitter::tables), [`Decoder::tables`](crate::decoder::Decoder::tables)). Rows of
    /// old tokens and all other weights stay bit by bit, so old tokens score as before and only the softmax's sum is larger.
    ///
    /// Moments of the optimizer are not carried over: they start again with the next run of the trainer.
    pub fn apply(&self, learned: &BTreeMap<String, Tensor>, grown: &Parameters, tables: &GrowingTables) -> Result<()> {
        embedding::grow(learned, grown, tables, &self.sources)
    }
}
