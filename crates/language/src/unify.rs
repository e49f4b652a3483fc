//! Robinson unification with a full occurs check, on a persistent substitution.
//!
//! A [`Substitution`] maps variables to types. It is persistent: a clone is a snapshot and costs O(1), which is what the
//! beams of [`PrefixChecker`](crate::PrefixChecker) fork, and what [`Substitution::unify`] goes back to when it fails –
//! it commits whole or leaves the substitution untouched.
//!
//! Bindings are triangular (a bound type may mention bound variables) and variables are joined by rank, so a chain of
//! variables is at most logarithmically long. Types share their parts; pairs that were already unified are not unified
//! again and parts that were already searched are not searched again, so neither unification nor the occurs check is
//! exponential. Types that are too large when written out are an error, found when they are resolved.

use rustc_hash::{FxHashMap, FxHashSet};
use thiserror::Error;

use crate::persistent::PersistentArray;
use crate::types::{MAX_TYPE_DEPTH, Scheme, Type, TypeError, TypeId, TypeStore, TypeVar};

/// The most steps of one unification.
const MAX_STEPS: u64 = 1 << 17;

/// Why two types have no common instance.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnifyError {
    /// Two parts differ in their constructor.
    #[error("the types differ")]
    Mismatch {
        /// The part of the left type.
        left: TypeId,
        /// The part of the right type.
        right: TypeId,
    },
    /// A variable would have to contain itself.
    #[error("the type {} would contain itself", variable.name())]
    Infinite {
        /// The variable.
        variable: TypeVar,
        /// The type that contains it.
        within: TypeId,
    },
    /// The types are too large.
    #[error(transparent)]
    TooLarge(#[from] TypeError),
}

#[derive(Clone, Copy, Debug)]
enum Binding {
    /// Unbound, with the height of the tree of variables below it.
    Root { rank: u8 },
    /// Bound to a type.
    Bound(TypeId),
}

/// A finite map from type variables to types.
#[derive(Clone, Debug, Default)]
pub struct Substitution {
    bindings: PersistentArray<Binding>,
    next: u32,
    steps: u64,
}

impl Substitution {
    /// The identity.
    pub fn new() -> Substitution {
        Substitution::default()
    }

    /// The identity, in which the first `count` variables belong to the caller and are never made fresh.
    pub fn with_variables(count: u32) -> Substitution {
        Substitution { next: count, ..Substitution::default() }
    }

    /// A variable that was not used before.
    pub fn fresh(&mut self, types: &mut TypeStore) -> TypeId {
        let variable = TypeVar(self.next);
        self.next = self.next.saturating_add(1);
        types.variable(variable)
    }

    /// An instance of a scheme with fresh variables.
    pub fn instantiate(&mut self, types: &mut TypeStore, scheme: Scheme) -> Result<TypeId, TypeError> {
        if scheme.variables() == 0 {
            return Ok(scheme.body());
        }
        let fresh: Vec<TypeId> = (0..scheme.variables()).map(|_| self.fresh(types)).collect();
        types.replace(scheme.body(), &|variable| fresh.get(variable.0 as usize).copied())
    }

    /// Follows bound variables until the constructor of the type is known, or the variable is unbound.
    pub fn shallow(&mut self, types: &TypeStore, mut id: TypeId) -> TypeId {
        while let Type::Variable(variable) = types.get(id) {
            self.steps += 1;
            match self.bindings.get(variable.0) {
                Some(Binding::Bound(next)) => id = next,
                _ => break,
            }
        }
        id
    }

    /// The type with all bound variables replaced.
    pub fn resolve(&mut self, types: &mut TypeStore, id: TypeId) -> Result<TypeId, TypeError> {
        self.resolve_at(types, id, 0, &mut FxHashMap::default())
    }

    /// Extends the substitution to a most general one that makes both types equal, or leaves it as it was.
    pub fn unify(&mut self, types: &TypeStore, left: TypeId, right: TypeId) -> Result<(), UnifyError> {
        let before = self.bindings.clone();
        let result = self.unify_pairs(types, left, right);
        if result.is_err() {
            self.bindings = before;
        }
        result
    }

    /// How many variables were looked at and types compared since the substitution was made, for tests of cost.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn unify_pairs(&mut self, types: &TypeStore, left: TypeId, right: TypeId) -> Result<(), UnifyError> {
        let limit = self.steps.saturating_add(MAX_STEPS);
        let mut pending = vec![(left, right)];
        let mut done: FxHashSet<(TypeId, TypeId)> = FxHashSet::default();
        while let Some((left, right)) = pending.pop() {
            self.steps += 1;
            if self.steps > limit {
                return Err(TypeError::TooLarge.into());
            }
            let (left, right) = (self.shallow(types, left), self.shallow(types, right));
            if left == right {
                continue;
            }
            match (types.get(left), types.get(right)) {
                (Type::Variable(a), Type::Variable(b)) => self.join(a, left, b, right),
                (Type::Variable(variable), _) => self.bind(types, variable, right, limit)?,
                (_, Type::Variable(variable)) => self.bind(types, variable, left, limit)?,
                (Type::Arrow(domain, codomain), Type::Arrow(other_domain, other_codomain)) => {
                    if done.insert((left, right)) {
                        // Left to right, so that the first difference in reading order is the one reported.
                        pending.extend([(codomain, other_codomain), (domain, other_domain)]);
                    }
                }
                _ => return Err(UnifyError::Mismatch { left, right }),
            }
        }
        Ok(())
    }

    fn join(&mut self, a: TypeVar, a_id: TypeId, b: TypeVar, b_id: TypeId) {
        let rank = |binding| match binding {
            Some(Binding::Root { rank }) => rank,
            _ => 0,
        };
        let (rank_a, rank_b) = (rank(self.bindings.get(a.0)), rank(self.bindings.get(b.0)));
        let (child, parent, parent_id) = if rank_a < rank_b { (a, b, b_id) } else { (b, a, a_id) };
        if rank_a == rank_b {
            self.bindings.set(parent.0, Binding::Root { rank: rank_a.saturating_add(1) });
        }
        self.bindings.set(child.0, Binding::Bound(parent_id));
    }

    fn bind(&mut self, types: &TypeStore, variable: TypeVar, id: TypeId, limit: u64) -> Result<(), UnifyError> {
        let mut pending = vec![id];
        let mut searched: FxHashSet<TypeId> = FxHashSet::default();
        while let Some(next) = pending.pop() {
            self.steps += 1;
            if self.steps > limit {
                return Err(TypeError::TooLarge.into());
            }
            let next = self.shallow(types, next);
            if types.is_ground(next) {
                continue;
            }
            match types.get(next) {
                Type::Variable(found) if found == variable => {
                    return Err(UnifyError::Infinite { variable, within: id });
                }
                Type::Arrow(domain, codomain) if searched.insert(next) => pending.extend([domain, codomain]),
                _ => {}
            }
        }
        self.bindings.set(variable.0, Binding::Bound(id));
        Ok(())
    }

    fn resolve_at(
        &mut self,
        types: &mut TypeStore,
        id: TypeId,
        depth: u32,
        known: &mut FxHashMap<TypeId, TypeId>,
    ) -> Result<TypeId, TypeError> {
        let id = self.shallow(types, id);
        self.steps += 1;
        if types.is_ground(id) {
            return Ok(id);
        }
        if let Some(&resolved) = known.get(&id) {
            return Ok(resolved);
        }
        let Type::Arrow(domain, codomain) = types.get(id) else {
            return Ok(id);
        };
        // The result is at least as deep as the walk, so this refuses nothing that `arrow` would not refuse.
        if depth >= MAX_TYPE_DEPTH {
            return Err(TypeError::TooLarge);
        }
        let domain = self.resolve_at(types, domain, depth + 1, known)?;
        let codomain = self.resolve_at(types, codomain, depth + 1, known)?;
        let resolved = types.arrow(domain, codomain)?;
        known.insert(id, resolved);
        Ok(resolved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_type;

    fn unified(left: &str, right: &str) -> Result<String, UnifyError> {
        let mut types = TypeStore::new();
        let left = parse_type(&mut types, left).unwrap();
        let right = parse_type(&mut types, right).unwrap();
        let mut substitution = Substitution::with_variables(26);
        substitution.unify(&types, left, right)?;
        let (left, right) = (substitution.resolve(&mut types, left).unwrap(), substitution.resolve(&mut types, right));
        assert_eq!(right, Ok(left));
        let scheme = types.generalise(left);
        Ok(types.show_scheme(scheme))
    }

    #[test]
    fn examples() {
        assert_eq!(unified("a -> b", "b -> Pose").as_deref(), Ok("Pose -> Pose"));
        assert_eq!(unified("(a -> b) -> a", "c -> d").as_deref(), Ok("forall a b. (a -> b) -> a"));
        assert!(matches!(unified("a -> a", "Pose -> Lang"), Err(UnifyError::Mismatch { .. })));
        assert!(matches!(unified("a", "a -> a"), Err(UnifyError::Infinite { .. })));
        assert!(matches!(unified("a -> b -> a", "(b -> Nat) -> (a -> Nat) -> c"), Err(UnifyError::Infinite { .. })));
    }

    #[test]
    fn a_failed_unification_leaves_nothing_behind() {
        let mut types = TypeStore::new();
        let left = parse_type(&mut types, "a -> b -> a").unwrap();
        let right = parse_type(&mut types, "Pose -> Nat -> Lang").unwrap();
        let mut substitution = Substitution::with_variables(2);
        assert!(substitution.unify(&types, left, right).is_err());
        assert_eq!(substitution.resolve(&mut types, left), Ok(left));
    }

    #[test]
    fn chains_of_variables_stay_short() {
        let mut types = TypeStore::new();
        let mut substitution = Substitution::new();
        let variables: Vec<TypeId> = (0..4096).map(|_| substitution.fresh(&mut types)).collect();
        for pair in variables.windows(2).rev() {
            substitution.unify(&types, pair[0], pair[1]).unwrap();
        }
        let before = substitution.steps();
        substitution.shallow(&types, variables[4095]);
        assert!(substitution.steps() - before <= 13);
    }

    #[test]
    fn doubling_types_are_an_error_and_not_a_hang() {
        let mut types = TypeStore::new();
        let mut substitution = Substitution::new();
        let mut chains: Vec<Vec<TypeId>> = Vec::new();
        for _ in 0..2 {
            let variables: Vec<TypeId> = (0..2000).map(|_| substitution.fresh(&mut types)).collect();
            for pair in variables.windows(2) {
                let doubled = types.arrow(pair[1], pair[1]).unwrap();
                substitution.unify(&types, pair[0], doubled).unwrap();
            }
            chains.push(variables);
        }
        assert_eq!(substitution.resolve(&mut types, chains[0][0]), Err(TypeError::TooLarge));
        // Linear, although the types have 2¹⁹⁹⁹ leaves.
        assert_eq!(substitution.unify(&types, chains[0][0], chains[1][0]), Ok(()));
    }
}
