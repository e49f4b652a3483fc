//! What the rounds minimise: the cost of programs and library together, in whole units.
//!
//! Stitch's cost is additive, and the search minimises it exactly. The description length is not: an abstraction changes
//! how often every production is used, and so all prices. There the search minimises additive weights near it and finds
//! many candidates, each of which is then priced exactly.

use crate::cost::Weights;
use crate::factored::Factored;
use crate::grammar::{Grammar, Probabilities};
use crate::pattern::Partial;
use crate::space::Space;
use crate::term::{TermId, Terms};
use crate::typed::Dictionary;

/// The cost of a factored corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) programs: u64,
    pub(crate) library: u64,
}

impl Cost {
    pub(crate) fn total(self) -> u64 {
        self.programs + self.library
    }
}

/// A measure of factored corpora.
pub(crate) enum Measure {
    /// Additive weights: terminal 100, application and λ 1. One unit is 1.
    Stitch,
    /// Description length under a typed grammar. One unit is a millionth of a nat.
    Nats(Grammar, Probabilities),
}

/// What the rounds minimise, and which abstractions they may admit.
pub(crate) struct Objective<'a> {
    pub(crate) measure: Measure,
    /// For a typed corpus, what its constants mean: then every abstraction must have a type.
    pub(crate) dictionary: Option<&'a Dictionary>,
}

impl Objective<'_> {
    /// How many units make one of the cost that people read.
    pub(crate) fn unit(&self) -> f64 {
        match self.measure {
            Measure::Stitch => 1.0,
            Measure::Nats(..) => 1e6,
        }
    }

    /// The cost of programs and library.
    pub(crate) fn cost(&self, corpus: &Factored) -> Cost {
        match &self.measure {
            Measure::Stitch => {
                let costs = Weights::stitch().costs(&corpus.terms);
                let sum = |roots: &mut dyn Iterator<Item = TermId>| roots.map(|root| costs[root.0 as usize]).sum();
                Cost {
                    programs: sum(&mut corpus.programs.iter().copied()),
                    library: sum(&mut corpus.entries.iter().map(|entry| entry.body)),
                }
            }
            Measure::Nats(grammar, probabilities) => grammar.cost(corpus, *probabilities),
        }
    }

    /// The additive weights that the search for the next abstraction minimises.
    pub(crate) fn weights(&self, corpus: &Factored) -> Weights {
        match &self.measure {
            Measure::Stitch => Weights::stitch(),
            Measure::Nats(grammar, probabilities) => grammar.weights(corpus, *probabilities),
        }
    }

    /// How many candidates a search is to find.
    pub(crate) fn candidates(&self) -> usize {
        match self.measure {
            Measure::Stitch => 4,
            Measure::Nats(..) => 24,
        }
    }

    /// What a candidate must gain in the search's own weights to be looked at, when it must gain `least` units.
    pub(crate) fn search_floor(&self, least: u64) -> i64 {
        match self.measure {
            Measure::Stitch => i64::try_from(least).unwrap_or(i64::MAX),
            Measure::Nats(..) => 0,
        }
    }

    /// The total cost of a corpus with one more abstraction; `None` when it may not be admitted.
    pub(crate) fn cost_with(
        &self,
        corpus: &Factored,
        terms: &mut Terms,
        body: TermId,
        abstraction: &Partial,
        space: &Space,
        weights: &Weights,
    ) -> Option<u64> {
        if let Some(dictionary) = self.dictionary {
            let mut store = dictionary.store.clone();
            let library = dictionary.define(&mut store, corpus);
            dictionary.principal_type(&mut store, &library, terms, body, abstraction.arity)?;
        }
        match self.measure {
            // Additive, and the search has counted it: the space holds programs and bodies.
            Measure::Stitch => Some(space.total - abstraction.saving + u64::from(abstraction.body)),
            Measure::Nats(..) => {
                let admitted = corpus.admit(&mut terms.clone(), body, abstraction.arity, weights)?;
                Some(self.cost(&admitted).total())
            }
        }
    }
}
