//! Description length in nats under a typed grammar.
//!
//! A program is written from the top: at a slot of some type, a *production* is chosen, which is a head (a primitive, a
//! literal, a library entry, a variable or λ) with a number of arguments; then the slots of its arguments are filled the
//! same way. With n(c, k) uses of production k at slots of type c, N(c) in all and K(c) productions that the type has,
//!
//! ```text
//! p(k | c) = (n(c, k) + 1) / (N(c) + K(c))          DL = − Σ ln p
//! ```
//!
//! counted over the programs and the bodies of the library together, so DL(F) + Σ DL(program | F) is one sum and an
//! abstraction pays for its body, for one more production among those of its type, and for what estimating that costs.
//! Which parameter (of the arity) or variable (of those in scope) is meant costs the logarithm of their number; an entry
//! also says its arity, (arity + 1) ln 2, and the type of its body, ln of the number of types.
//!
//! With uniform probabilities 1 / K(c) instead, all productions of a type cost the same: that is the mode to compare with
//! Stitch's cost. A corpus without types has one type of slot.

use std::collections::BTreeMap;

use crate::cost::Weights;
use crate::factored::{Entry, Factored};
use crate::objective::Cost;
use crate::term::{SymbolId, Term, TermId};

/// What a slot is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Slot {
    /// Anything: the type is unknown or has variables.
    Any,
    /// Terms of one ground type, by number.
    Typed(u32),
}

/// The slots of a constant.
#[derive(Clone, Debug)]
pub(crate) struct SlotTypes {
    pub(crate) arguments: Vec<Slot>,
    pub(crate) result: Slot,
}

impl SlotTypes {
    pub(crate) fn unknown() -> Self {
        Self { arguments: Vec::new(), result: Slot::Any }
    }

    fn argument(&self, index: usize) -> Slot {
        self.arguments.get(index).copied().unwrap_or(Slot::Any)
    }
}

/// Where the probabilities come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probabilities {
    /// Estimated from use, with one more use for every production.
    Estimated,
    /// All productions of a type alike.
    Uniform,
}

/// A choice that the grammar offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Production {
    slot: Slot,
    head: Head,
    arguments: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Head {
    Symbol(SymbolId),
    Variable,
    Lambda,
}

/// The typed grammar of a corpus.
pub(crate) struct Grammar {
    slots: Vec<SlotTypes>,
    program: Slot,
    /// The productions of the corpus as it was read. They stay available when abstractions have replaced all their uses.
    known: Vec<Production>,
    types: usize,
}

/// How often each production is used.
type Uses = BTreeMap<Production, u64>;

impl Grammar {
    /// The grammar of an unfactored corpus, with the slots of its constants by number and the slot of programs.
    pub(crate) fn new(corpus: &Factored, slots: Vec<SlotTypes>, program: Slot) -> Self {
        let mut grammar = Self { slots, program, known: Vec::new(), types: 1 };
        let mut uses = Uses::new();
        grammar.count(corpus, &grammar.slots, program, &corpus.programs, &mut uses, &mut 0.0);
        grammar.known = uses.into_keys().collect();
        let mut types: Vec<Slot> = grammar.known.iter().map(|production| production.slot).collect();
        types.dedup();
        grammar.types = types.len().max(1);
        grammar
    }

    /// The description length of programs and library, in millionths of a nat.
    pub(crate) fn cost(&self, corpus: &Factored, probabilities: Probabilities) -> Cost {
        let description = self.describe(corpus);
        let prices = self.prices(&description, probabilities);
        let sum = |uses: &Uses| uses.iter().map(|(production, &n)| n as f64 * prices[production]).sum::<f64>();
        let headers: f64 = corpus.entries.iter().map(|entry| self.header(entry)).sum();
        Cost {
            programs: micronats(sum(&description.programs) + description.program_variables),
            library: micronats(sum(&description.library) + description.library_variables + headers),
        }
    }

    /// The description length in nats of each program from `estimated_on` on, with probabilities estimated on the programs
    /// before it and on the library alone.
    ///
    /// Productions that only the later programs use are known to the grammar, at no use: it knows every word, but not how
    /// often it occurs.
    pub(crate) fn costs_after(&self, corpus: &Factored, estimated_on: usize) -> Vec<f64> {
        let slots = self.slots_with_entries(corpus);
        let (first, later) = corpus.programs.split_at(estimated_on.min(corpus.programs.len()));
        let mut description = self.describe(&Factored { programs: first.to_vec(), ..corpus.clone() });
        let mut counted = Vec::with_capacity(later.len());
        for &program in later {
            let (mut uses, mut variables) = (Uses::new(), 0.0);
            self.count(corpus, &slots, self.program, &[program], &mut uses, &mut variables);
            for &production in uses.keys() {
                description.programs.entry(production).or_insert(0);
            }
            counted.push((uses, variables));
        }
        let prices = self.prices(&description, Probabilities::Estimated);
        let cost = |(uses, variables): &(Uses, f64)| {
            uses.iter().map(|(production, &n)| n as f64 * prices[production]).sum::<f64>() + variables
        };
        counted.iter().map(cost).collect()
    }

    /// Additive weights near the description length, in thousandths of a nat: each constant at its mean price now. The
    /// search minimises these; the candidates it finds are then compared by [`Grammar::cost`].
    pub(crate) fn weights(&self, corpus: &Factored, probabilities: Probabilities) -> Weights {
        let description = self.describe(corpus);
        let prices = self.prices(&description, probabilities);
        let mut paid: BTreeMap<Head, (f64, u64)> = BTreeMap::new();
        let mut all = (0.0, 0);
        for uses in [&description.programs, &description.library] {
            for (production, &n) in uses {
                let price = n as f64 * prices[production];
                let sum = paid.entry(production.head).or_default();
                *sum = (sum.0 + price, sum.1 + n);
                all = (all.0 + price, all.1 + n);
            }
        }
        let in_units = |unit: f64| {
            let mean = |(price, n): (f64, u64)| ((price / n.max(1) as f64 * unit) as u32).max(1);
            let of = |head: Head| paid.get(&head).map(|&sum| mean(sum));
            let average = mean(all);
            let symbols = 0..corpus.terms.name_count() as u32;
            Weights {
                symbols: symbols.map(|symbol| of(Head::Symbol(SymbolId(symbol))).unwrap_or(average)).collect(),
                call: average,
                var: of(Head::Variable).unwrap_or(average),
                param: of(Head::Variable).unwrap_or(average),
                app: 0,
                lam: of(Head::Lambda).unwrap_or(average),
            }
        };
        let weights = in_units(1000.0);
        // Costs of terms are 32 bits wide in the search; for a program of millions of nats the unit is larger.
        let costs = weights.costs(&corpus.terms);
        let largest = corpus.roots().into_iter().map(|root| costs[root.0 as usize]).max().unwrap_or(0) as f64;
        let limit = f64::from(u32::MAX / 4);
        if largest <= limit { weights } else { in_units(1000.0 * limit / largest) }
    }

    fn describe(&self, corpus: &Factored) -> Description {
        let slots = self.slots_with_entries(corpus);
        let mut description = Description::default();
        let Description { programs, library, program_variables, library_variables } = &mut description;
        self.count(corpus, &slots, self.program, &corpus.programs, programs, program_variables);
        for entry in &corpus.entries {
            let slot = self.result(corpus, &slots, entry.body);
            self.count(corpus, &slots, slot, &[entry.body], library, library_variables);
            *library_variables += params(corpus, entry.body) as f64 * (entry.arity.max(1) as f64).ln();
        }
        description
    }

    /// The price of each production in nats.
    fn prices(&self, description: &Description, probabilities: Probabilities) -> BTreeMap<Production, f64> {
        let mut uses = description.programs.clone();
        for (&production, &n) in &description.library {
            *uses.entry(production).or_insert(0) += n;
        }
        for &production in &self.known {
            uses.entry(production).or_insert(0);
        }
        let mut totals: BTreeMap<Slot, (u64, u64)> = BTreeMap::new();
        for (production, &n) in &uses {
            let total = totals.entry(production.slot).or_default();
            *total = (total.0 + n, total.1 + 1);
        }
        let price = |(production, n): (Production, u64)| {
            let (all, kinds) = totals[&production.slot];
            let p = match probabilities {
                Probabilities::Estimated => (n + 1) as f64 / (all + kinds) as f64,
                Probabilities::Uniform => 1.0 / kinds as f64,
            };
            (production, -p.ln())
        };
        uses.into_iter().map(price).collect()
    }

    fn header(&self, entry: &Entry) -> f64 {
        (entry.arity + 1) as f64 * std::f64::consts::LN_2 + (self.types as f64).ln()
    }

    /// The slots of all constants, those of library entries as their bodies use the parameters.
    fn slots_with_entries(&self, corpus: &Factored) -> Vec<SlotTypes> {
        let mut slots = self.slots.clone();
        slots.resize_with(corpus.terms.name_count().max(slots.len()), SlotTypes::unknown);
        // Bodies may call entries of any number, never in a circle; each pass settles one more level.
        for _ in 0..corpus.entries.len() {
            let before: Vec<Vec<Slot>> =
                corpus.entries.iter().map(|entry| slots[entry.symbol.0 as usize].arguments.clone()).collect();
            for entry in &corpus.entries {
                let mut arguments = vec![Slot::Any; entry.arity];
                // The constant at the head of each term, with how many arguments it has there.
                let mut heads: BTreeMap<TermId, (SymbolId, usize)> = BTreeMap::new();
                for id in corpus.terms.reachable([entry.body]) {
                    match corpus.terms.get(id) {
                        Term::Symbol(symbol) => {
                            heads.insert(id, (symbol, 0));
                        }
                        Term::App(f, x) => {
                            let Some(&(symbol, index)) = heads.get(&f) else { continue };
                            heads.insert(id, (symbol, index + 1));
                            if let Term::Param(param) = corpus.terms.get(x)
                                && arguments[param as usize] == Slot::Any
                            {
                                arguments[param as usize] = slots[symbol.0 as usize].argument(index);
                            }
                        }
                        _ => {}
                    }
                }
                let result = self.result(corpus, &slots, entry.body);
                slots[entry.symbol.0 as usize] = SlotTypes { arguments, result };
            }
            if corpus.entries.iter().map(|entry| &slots[entry.symbol.0 as usize].arguments).eq(before.iter()) {
                break;
            }
        }
        slots
    }

    /// The slot that a term fits, as far as its head tells.
    fn result(&self, corpus: &Factored, slots: &[SlotTypes], id: TermId) -> Slot {
        let (head, parts) = corpus.terms.spine(id);
        match corpus.terms.get(head) {
            Term::Symbol(symbol) => {
                let types = &slots[symbol.0 as usize];
                if parts.len() == types.arguments.len() { types.result } else { Slot::Any }
            }
            _ => Slot::Any,
        }
    }

    /// Counts the productions that write the roots, and what naming their variables costs.
    fn count(
        &self,
        corpus: &Factored,
        slots: &[SlotTypes],
        slot: Slot,
        roots: &[TermId],
        uses: &mut Uses,
        variables: &mut f64,
    ) {
        // From the largest term down, so that every term is met once for each slot it fills.
        let mut pending: BTreeMap<(TermId, Slot, u32), u64> = BTreeMap::new();
        for &root in roots {
            *pending.entry((root, slot, 0)).or_insert(0) += 1;
        }
        while let Some(((id, slot, depth), n)) = pending.pop_last() {
            let (head, parts) = corpus.terms.spine(id);
            let (kind, types) = match corpus.terms.get(head) {
                Term::Symbol(symbol) => (Head::Symbol(symbol), slots.get(symbol.0 as usize)),
                Term::Var(..) => {
                    *variables += n as f64 * f64::from(depth.max(1)).ln();
                    (Head::Variable, None)
                }
                Term::Param(_) => (Head::Variable, None),
                Term::Lam(_, body) => {
                    *pending.entry((body, Slot::Any, depth + 1)).or_insert(0) += n;
                    (Head::Lambda, None)
                }
                Term::App(..) => continue,
            };
            *uses.entry(Production { slot, head: kind, arguments: parts.len() as u32 }).or_insert(0) += n;
            for (index, &part) in parts.iter().enumerate() {
                let slot = types.map_or(Slot::Any, |types| types.argument(index));
                *pending.entry((part, slot, depth)).or_insert(0) += n;
            }
        }
    }
}

/// The productions that write a factored corpus.
#[derive(Default)]
struct Description {
    programs: Uses,
    library: Uses,
    program_variables: f64,
    library_variables: f64,
}

/// How often parameters occur in a body.
fn params(corpus: &Factored, body: TermId) -> u64 {
    let reachable = corpus.terms.reachable([body]);
    let mut count: BTreeMap<TermId, u64> = BTreeMap::from([(body, 1)]);
    let mut found = 0;
    for &id in reachable.iter().rev() {
        let n = count.get(&id).copied().unwrap_or(0);
        if let Term::Param(_) = corpus.terms.get(id) {
            found += n;
        }
        for child in corpus.terms.children(id) {
            *count.entry(child).or_insert(0) += n;
        }
    }
    found
}

fn micronats(nats: f64) -> u64 {
    (nats * 1e6).round() as u64
}
