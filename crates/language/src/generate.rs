//! Random well-typed terms, for property tests here and in crates that build on this one.
//!
//! The generator is type-directed: it is asked for a term of a type and chooses among all that could stand there –
//! variables in scope, constants whose result fits, literals, λs, redexes, and the syntax of motions – so every term
//! that it returns is well-typed by construction. Same seed, same terms.

use crate::signature::Signature;
use crate::term::{Index, JointVector, Literal, TermError, TermId, TermStore, Vector6};
use crate::types::{Base, Type, TypeId};
use crate::unify::Substitution;

/// A seeded source of well-typed terms.
#[derive(Clone, Debug)]
pub struct Generator {
    state: u64,
}

impl Generator {
    /// A generator; equal seeds give equal terms.
    pub fn new(seed: u64) -> Generator {
        Generator { state: seed }
    }

    /// A closed term of the type, of about `budget` nodes. Nothing if the signature has no term of that type, which for
    /// the default signature does not happen. Variables of the type are taken as Motion.
    pub fn term(
        &mut self,
        store: &mut TermStore,
        signature: &Signature,
        goal: TypeId,
        budget: u32,
    ) -> Result<Option<TermId>, TermError> {
        let goal = store.types_mut().replace(goal, &|_| Some(TypeId::MOTION)).unwrap_or(TypeId::MOTION);
        self.at(store, signature, goal, &mut Vec::new(), budget)
    }

    /// A type without variables, of up to `budget` arrows.
    pub fn ground_type(&mut self, store: &mut TermStore, budget: u32) -> TypeId {
        if budget == 0 || self.below(2) == 0 {
            return Base::ALL[self.below(8)].id();
        }
        let domain = self.ground_type(store, budget / 2);
        let codomain = self.ground_type(store, budget / 2);
        store.types_mut().arrow(domain, codomain).unwrap_or(TypeId::MOTION)
    }

    /// A number below `bound` (0 if that is 0).
    pub fn below(&mut self, bound: usize) -> usize {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        match bound {
            0 => 0,
            _ => (mixed % bound as u64) as usize,
        }
    }

    fn at(
        &mut self,
        store: &mut TermStore,
        signature: &Signature,
        goal: TypeId,
        scope: &mut Vec<TypeId>,
        budget: u32,
    ) -> Result<Option<TermId>, TermError> {
        if let Type::Arrow(domain, codomain) = store.types().get(goal) {
            // Sometimes a function that is no λ, if there is one.
            if budget >= 2
                && self.below(4) == 0
                && let Some(term) = self.head(store, signature, goal, scope, budget)?
            {
                return Ok(Some(term));
            }
            scope.push(domain);
            let body = self.at(store, signature, codomain, scope, budget.saturating_sub(1))?;
            scope.pop();
            let annotation = (self.below(2) == 0).then_some(domain);
            let binder = store.name(["x", "y", "p", "pick"][self.below(4)])?;
            return body.map(|body| store.lambda(binder, annotation, body)).transpose();
        }
        if budget > 3 && self.below(8) == 0 {
            return self.redex(store, signature, goal, scope, budget);
        }
        if goal == TypeId::MOTION && budget > 2 && self.below(2) == 0 {
            return self.motion(store, signature, scope, budget);
        }
        self.head(store, signature, goal, scope, budget)
    }

    /// `(λx. e) a`.
    fn redex(
        &mut self,
        store: &mut TermStore,
        signature: &Signature,
        goal: TypeId,
        scope: &mut Vec<TypeId>,
        budget: u32,
    ) -> Result<Option<TermId>, TermError> {
        let domain = self.ground_type(store, 2);
        let Ok(function) = store.types_mut().arrow(domain, goal) else {
            return Ok(None);
        };
        let function = self.at(store, signature, function, scope, budget / 2)?;
        let argument = self.at(store, signature, domain, scope, budget / 2)?;
        function.zip(argument).map(|(function, argument)| store.apply(function, argument)).transpose()
    }

    /// `seq`, `repeat` or `branch`.
    fn motion(
        &mut self,
        store: &mut TermStore,
        signature: &Signature,
        scope: &mut Vec<TypeId>,
        budget: u32,
    ) -> Result<Option<TermId>, TermError> {
        let wanted: Vec<TypeId> = match self.below(4) {
            0 => vec![TypeId::MOTION, TypeId::NAT],
            1 => vec![TypeId::BOOL, TypeId::MOTION, TypeId::MOTION],
            _ => vec![TypeId::MOTION; self.below(5)],
        };
        let share = (budget - 1) / wanted.len().max(1) as u32;
        let mut parts = Vec::new();
        for &part in &wanted {
            match self.at(store, signature, part, scope, share)? {
                Some(part) => parts.push(part),
                None => return Ok(None),
            }
        }
        match (&wanted[..], &parts[..]) {
            ([TypeId::MOTION, TypeId::NAT], &[body, count]) => store.repeat(body, count),
            ([TypeId::BOOL, ..], &[condition, then, otherwise]) => store.branch(condition, then, otherwise),
            _ => store.seq(&parts),
        }
        .map(Some)
    }

    /// A literal, or a variable or constant with its arguments.
    fn head(
        &mut self,
        store: &mut TermStore,
        signature: &Signature,
        goal: TypeId,
        scope: &mut Vec<TypeId>,
        budget: u32,
    ) -> Result<Option<TermId>, TermError> {
        // Each candidate with the types of its arguments.
        let mut candidates: Vec<(TermId, Vec<TypeId>)> = Vec::new();
        for (at, &id) in scope.iter().enumerate() {
            let variable = store.variable(Index((scope.len() - 1 - at) as u32));
            candidates.extend(fitting(store, id, goal, budget).map(|arguments| (variable, arguments)));
        }
        for entry in signature.entries() {
            let mut substitution = Substitution::new();
            let Ok(id) = substitution.instantiate(store.types_mut(), entry.scheme) else {
                continue;
            };
            let constant = store.constant(entry.name);
            candidates.extend(fitting(store, id, goal, budget).map(|arguments| (constant, arguments)));
        }
        if let Some(literal) = self.literal(store, goal) {
            let weight = 1 + candidates.len() / 8;
            candidates.extend(std::iter::repeat_n((literal, Vec::new()), weight));
        }
        while !candidates.is_empty() {
            let (head, wanted) = candidates.swap_remove(self.below(candidates.len()));
            let share = budget.saturating_sub(1) / wanted.len().max(1) as u32;
            let mut arguments = Vec::new();
            for id in &wanted {
                // Variables that the result leaves open may be anything.
                let id = store.types_mut().replace(*id, &|_| Some(TypeId::LANG)).unwrap_or(*id);
                arguments.extend(self.at(store, signature, id, scope, share)?);
            }
            if arguments.len() == wanted.len() {
                return store.apply_all(head, &arguments).map(Some);
            }
        }
        Ok(None)
    }

    /// A literal of a base type, or the empty sequence.
    fn literal(&mut self, store: &mut TermStore, goal: TypeId) -> Option<TermId> {
        const NUMBERS: [f64; 8] = [0.0, -0.0, 1.0, -0.25, 0.1, 1e-9, -1e20, f64::MIN_POSITIVE];
        let Type::Base(base) = store.types().get(goal) else {
            return None;
        };
        let vector = Vector6::new([0; 6].map(|_| NUMBERS[self.below(NUMBERS.len())])).ok()?;
        Some(match base {
            Base::Nat => store.natural(self.below(4) as u64),
            Base::Bool => store.boolean(self.below(2) == 0),
            Base::Lang => store.text(["bowl", "a \"plate\"", "", "back\\slash\n", "Küche \u{7}"][self.below(5)]),
            Base::Pose => store.literal(Literal::Pose(vector)),
            Base::Twist => store.literal(Literal::Twist(vector)),
            Base::Wrench => store.literal(Literal::Wrench(vector)),
            Base::Joints => {
                let count = 1 + self.below(JointVector::MAX);
                let values: Vec<f64> = (0..count).map(|_| NUMBERS[self.below(NUMBERS.len())]).collect();
                store.literal(Literal::Joints(JointVector::new(&values).ok()?))
            }
            Base::Motion => store.seq(&[]).ok()?,
            Base::GripperPhase => return None,
        })
    }
}

/// The types of the arguments after which a head of type `id` has type `goal`; more than none only with a budget.
fn fitting(store: &mut TermStore, id: TypeId, goal: TypeId, budget: u32) -> Option<Vec<TypeId>> {
    let mut arguments = Vec::new();
    let mut result = id;
    loop {
        let mut substitution = Substitution::with_variables(64);
        if substitution.unify(store.types(), result, goal).is_ok() {
            let resolved = arguments.iter().map(|&id| substitution.resolve(store.types_mut(), id));
            return resolved.collect::<Result<Vec<_>, _>>().ok();
        }
        match store.types().get(result) {
            Type::Arrow(domain, codomain) if budget > 0 => {
                arguments.push(domain);
                result = codomain;
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::infer::check;

    #[test]
    fn generated_terms_have_the_type_that_was_asked_for() {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        for seed in 0..500 {
            let mut generator = Generator::new(seed);
            let goal = generator.ground_type(&mut store, 4);
            let term = generator.term(&mut store, &signature, goal, 30).unwrap().unwrap();
            assert_eq!(check(&mut store, &signature, term, goal).map(|scheme| scheme.monotype()), Ok(Some(goal)));
        }
    }
}
