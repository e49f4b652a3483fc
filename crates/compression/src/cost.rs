//! Additive costs of terms: what each node adds to the cost of a program.
//!
//! `Weights::stitch` is the cost Stitch reports: 100 for a terminal, 1 for application and λ. The search minimises any
//! such additive cost exactly.

use crate::term::{Term, TermId, Terms};

/// What each kind of node costs.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    /// A constant's cost by [`crate::term::SymbolId`]; constants past the end cost [`Weights::call`].
    pub(crate) symbols: Vec<u32>,
    /// The name of the new abstraction where it is called.
    pub(crate) call: u32,
    /// A variable.
    pub(crate) var: u32,
    /// A parameter, in the body of an abstraction.
    pub(crate) param: u32,
    /// An application.
    pub(crate) app: u32,
    /// A λ.
    pub(crate) lam: u32,
}

impl Weights {
    /// Stitch's cost: terminal 100, application and λ 1.
    pub(crate) fn stitch() -> Self {
        Self { symbols: Vec::new(), call: 100, var: 100, param: 100, app: 1, lam: 1 }
    }

    /// The cost of a leaf; 0 for other nodes.
    pub(crate) fn leaf(&self, term: Term) -> u32 {
        match term {
            Term::Symbol(symbol) => self.symbols.get(symbol.0 as usize).copied().unwrap_or(self.call),
            Term::Var(..) => self.var,
            Term::Param(_) => self.param,
            Term::Lam(..) | Term::App(..) => 0,
        }
    }

    /// The least that any leaf costs.
    pub(crate) fn smallest_leaf(&self) -> u32 {
        let leaves = [self.call, self.var, self.param];
        self.symbols.iter().chain(&leaves).copied().min().unwrap_or(0)
    }

    /// The cost of every term of a store.
    pub(crate) fn costs(&self, terms: &Terms) -> Vec<u64> {
        let mut costs: Vec<u64> = Vec::with_capacity(terms.len());
        for index in 0..terms.len() {
            let term = terms.get(TermId(index as u32));
            costs.push(match term {
                Term::App(f, x) => u64::from(self.app) + costs[f.0 as usize] + costs[x.0 as usize],
                Term::Lam(_, body) => u64::from(self.lam) + costs[body.0 as usize],
                leaf => u64::from(self.leaf(leaf)),
            });
        }
        costs
    }
}
