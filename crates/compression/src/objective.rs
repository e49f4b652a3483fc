//! What the rounds minimise: the cost of programs and library together, in whole units.

use crate::cost::Weights;
use crate::factored::Factored;
use crate::pattern::Partial;
use crate::space::Space;
use crate::term::{TermId, Terms};

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
pub(crate) enum Objective {
    /// Additive weights: terminal 100, application and λ 1.
    Stitch,
}

impl Objective {
    /// The cost of programs and library.
    pub(crate) fn cost(&self, corpus: &Factored) -> Cost {
        match self {
            Self::Stitch => {
                let costs = Weights::stitch().costs(&corpus.terms);
                let sum = |roots: &mut dyn Iterator<Item = TermId>| roots.map(|root| costs[root.0 as usize]).sum();
                Cost {
                    programs: sum(&mut corpus.programs.iter().copied()),
                    library: sum(&mut corpus.entries.iter().map(|entry| entry.body)),
                }
            }
        }
    }

    /// The additive weights that the search for the next abstraction minimises.
    pub(crate) fn weights(&self, _corpus: &Factored) -> Weights {
        match self {
            Self::Stitch => Weights::stitch(),
        }
    }

    /// How many candidates a search is to find.
    pub(crate) fn candidates(&self) -> usize {
        match self {
            Self::Stitch => 6,
        }
    }

    /// What a candidate must gain in the search's own weights to be looked at.
    pub(crate) fn search_floor(&self, min_gain: u64) -> i64 {
        match self {
            Self::Stitch => min_gain as i64,
        }
    }

    /// The total cost of a corpus with one more abstraction.
    pub(crate) fn cost_with(
        &self,
        _corpus: &Factored,
        _terms: &mut Terms,
        _body: TermId,
        abstraction: &Partial,
        space: &Space,
        _weights: &Weights,
    ) -> Option<u64> {
        match self {
            // Additive, and the search has counted it: the space holds programs and bodies.
            Self::Stitch => Some(space.total - abstraction.saving + u64::from(abstraction.body)),
        }
    }
}
