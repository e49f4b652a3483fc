//! Shifting, instantiation and β-normalisation of terms with de Bruijn indices.

use rustc_hash::FxHashMap;

use crate::term::{Index, MAX_DEPTH, Term, TermError, TermId, TermStore};

/// The default bound on the work of a normalisation, counted in nodes visited or copied.
pub const MAX_NORMALIZE_STEPS: u64 = 20_000_000;

impl TermStore {
    /// Whether variable `index`, counted from the root of the term, occurs.
    pub fn has_free(&self, term: TermId, index: Index) -> bool {
        let mut pending = vec![(term, index.0)];
        let mut visited = rustc_hash::FxHashSet::default();
        while let Some((next, index)) = pending.pop() {
            if self.reach(next) <= index || !visited.insert((next, index)) {
                continue;
            }
            match self.get(next) {
                Term::Variable(found) if found.0 == index => return true,
                other => pending.extend(other.children().iter().map(|&(child, under)| (child, index + under))),
            }
        }
        false
    }

    /// The term with all free indices raised, for a place under `by` more binders.
    pub fn raise(&mut self, term: TermId, by: u32) -> Result<TermId, TermError> {
        let mut raise = |store: &mut TermStore, index: u32, depth: u32| {
            let raised = index.checked_add(by).and_then(|sum| sum.checked_add(depth)).ok_or(TermError::TooDeep)?;
            Ok(store.variable(Index(raised)))
        };
        self.map_free(term, 0, &mut raise, &mut FxHashMap::default())
    }

    /// The term with all free indices lowered, for a place under `by` fewer binders; nothing if it uses one of those.
    pub fn lower(&mut self, term: TermId, by: u32) -> Result<Option<TermId>, TermError> {
        let mut captured = false;
        let mut lower = |store: &mut TermStore, index: u32, depth: u32| {
            captured |= index < by;
            Ok(store.variable(Index(index.saturating_sub(by) + depth)))
        };
        let lowered = self.map_free(term, 0, &mut lower, &mut FxHashMap::default())?;
        Ok((!captured).then_some(lowered))
    }

    /// The body of a λ with its variable replaced: `body[0 := argument]`, other free indices lowered by one.
    pub fn instantiate(&mut self, body: TermId, argument: TermId) -> Result<TermId, TermError> {
        let mut replace = |store: &mut TermStore, index: u32, depth: u32| match index.checked_sub(1) {
            Some(outer) => Ok(store.variable(Index(outer + depth))),
            None => store.raise(argument, depth),
        };
        self.map_free(body, 0, &mut replace, &mut FxHashMap::default())
    }

    /// The β-normal form. Well-typed terms have one; ill-typed terms and terms whose normal form is huge hit a bound.
    ///
    /// `max_size` bounds the size of every intermediate term and of the result, `max_steps` the nodes visited or copied
    /// ([`MAX_NORMALIZE_STEPS`] is a good value). Arguments are normalised first, and every shared subterm once.
    pub fn beta_normalize(&mut self, term: TermId, max_size: u32, max_steps: u64) -> Result<TermId, TermError> {
        let mut normalizer = Normalizer { store: self, known: FxHashMap::default(), steps: 0, max_size, max_steps };
        normalizer.normal(term, 0)
    }

    /// Rebuilds a term with its free variables replaced. `replace` gets a variable's index as seen from the root and
    /// the number of binders around it, and returns a term for that place.
    fn map_free(
        &mut self,
        term: TermId,
        depth: u32,
        replace: &mut impl FnMut(&mut TermStore, u32, u32) -> Result<TermId, TermError>,
        known: &mut FxHashMap<(TermId, u32), TermId>,
    ) -> Result<TermId, TermError> {
        if self.reach(term) <= depth {
            return Ok(term);
        }
        if let Term::Variable(index) = *self.get(term) {
            return replace(self, index.0 - depth, depth);
        }
        if let Some(&mapped) = known.get(&(term, depth)) {
            return Ok(mapped);
        }
        let mut parts = Vec::new();
        for (child, under) in self.get(term).children() {
            parts.push(self.map_free(child, depth + under, replace, known)?);
        }
        let mapped = self.with_children(term, &parts)?;
        known.insert((term, depth), mapped);
        Ok(mapped)
    }
}

struct Normalizer<'s> {
    store: &'s mut TermStore,
    /// Normal forms so far. De Bruijn indices make them independent of the place of the term.
    known: FxHashMap<TermId, TermId>,
    steps: u64,
    max_size: u32,
    max_steps: u64,
}

impl Normalizer<'_> {
    fn normal(&mut self, term: TermId, level: u32) -> Result<TermId, TermError> {
        // Contracting a redex may uncover another below it, so the walk can be deeper than any one term.
        if level > 3 * MAX_DEPTH {
            return Err(TermError::TooDeep);
        }
        let mut current = term;
        let mut contracted = Vec::new();
        let result = loop {
            self.pay(1)?;
            if let Some(&known) = self.known.get(&current) {
                break known;
            }
            contracted.push(current);
            let mut parts = Vec::new();
            for (child, _) in self.store.get(current).children() {
                parts.push(self.normal(child, level + 1)?);
            }
            let rebuilt = self.store.with_children(current, &parts)?;
            let redex = match *self.store.get(rebuilt) {
                Term::Apply(function, argument) => match *self.store.get(function) {
                    Term::Lambda { body, .. } => Some((body, argument)),
                    _ => None,
                },
                _ => None,
            };
            let Some((body, argument)) = redex else {
                break rebuilt;
            };
            let closed = self.store.is_closed(argument);
            self.pay(u64::from(self.store.size(body)))?;
            current = self.store.instantiate(body, argument)?;
            if !closed {
                // A closed argument is shared as it is; an open one is copied for every depth at which it is used.
                self.pay(u64::from(self.store.size(current)))?;
            }
            if self.store.size(current) > self.max_size {
                return Err(TermError::TooLarge { limit: self.max_size });
            }
        };
        self.known.extend(contracted.into_iter().map(|term| (term, result)));
        Ok(result)
    }

    fn pay(&mut self, steps: u64) -> Result<(), TermError> {
        self.steps = self.steps.saturating_add(steps);
        match self.steps > self.max_steps {
            true => Err(TermError::TooManySteps { limit: self.max_steps }),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use crate::signature::Signature;
    use crate::term::MAX_SIZE;

    fn normal(source: &str) -> Result<(TermStore, TermId, TermId), TermError> {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        let term = parse(&mut store, &signature, source).unwrap().term;
        let normal = store.beta_normalize(term, MAX_SIZE, 1_000_000)?;
        Ok((store, term, normal))
    }

    #[test]
    fn arguments_are_not_captured() {
        let (mut store, _, found) = normal(r"\y. (\f. \y. f y) (\x. place y x)").unwrap();
        let signature = Signature::standard(&mut store);
        let expected = parse(&mut store, &signature, r"\y. \z. place y z").unwrap().term;
        assert_eq!(found, expected);
    }

    #[test]
    fn sequences_stay_flat_after_reduction() {
        let (mut store, _, found) = normal(r#"(\m. seq[m, open "a", m]) seq[pick "b", close "c"]"#).unwrap();
        let signature = Signature::standard(&mut store);
        let expected = r#"seq[pick "b", close "c", open "a", pick "b", close "c"]"#;
        assert_eq!(found, parse(&mut store, &signature, expected).unwrap().term);
    }

    #[test]
    fn divergence_and_explosion_are_errors() {
        assert!(matches!(normal(r"(\x. x x) (\x. x x)"), Err(TermError::TooManySteps { .. })));
        let grow = r"(\x. seq[x x, x x]) (\x. seq[x x, x x])";
        assert!(normal(grow).is_err());
        let double = format!("{}still{}", r"(\x. seq[x, x]) (".repeat(30), ")".repeat(30));
        assert!(matches!(normal(&double), Err(TermError::TooLarge { .. } | TermError::TooManySteps { .. })));
    }

    #[test]
    fn raising_and_lowering_are_inverse() {
        let mut store = TermStore::new();
        let free = store.variable(Index(2));
        let binder = store.name("x").unwrap();
        let term = store.apply(free, free).unwrap();
        let term = store.lambda(binder, None, term).unwrap();
        let raised = store.raise(term, 3).unwrap();
        assert_eq!(store.lower(raised, 3), Ok(Some(term)));
        assert!(store.has_free(raised, Index(4)) && !store.has_free(raised, Index(1)));
        assert_eq!(store.lower(term, 2), Ok(None));
    }
}
