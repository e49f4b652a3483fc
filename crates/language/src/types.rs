//! Types: nine base types, arrows, variables and schemes (the paper's Σ plus what the grammar needs).
//!
//! ```text
//! τ ::= Twist | Wrench | GripperPhase | Pose | Lang | Bool | Nat | Motion | Joints | a | τ -> τ
//! σ ::= forall a b. τ
//! ```
//!
//! Types live in a hash-consed arena: equal types have equal [`TypeId`]s, so comparing two of them is comparing two
//! integers, and a type that mentions a subtype twice stores it once. Ids belong to the store that made them; a clone of
//! a store understands all ids of the original. The nine base types have the same id in every store.
//!
//! Departure from the paper: Σ names five types; Bool, Nat and Motion are added because `branch`, `repeat` and programs
//! themselves need them (SPEC §6), and Joints because a joint-controlled robot has no poses (SPEC §7).

use std::fmt::Write as _;

use rustc_hash::FxHashMap;
use thiserror::Error;

/// The most nodes that one type may have when written out.
pub const MAX_TYPE_SIZE: u32 = 4096;

/// The deepest nesting of arrows in one type.
pub const MAX_TYPE_DEPTH: u32 = 256;

/// A base type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Base {
    /// A velocity: three linear and three angular components.
    Twist,
    /// A force and a torque.
    Wrench,
    /// What the gripper does.
    GripperPhase,
    /// A place: position and axis-angle orientation.
    Pose,
    /// A reference to an object, in words.
    Lang,
    /// The condition of a `branch`.
    Bool,
    /// The count of a `repeat`.
    Nat,
    /// A program.
    Motion,
    /// The configuration of one part of a robot: a number for each of its joints.
    Joints,
}

impl Base {
    /// All base types, in the order of their ids.
    pub const ALL: [Base; 9] = [
        Base::Twist,
        Base::Wrench,
        Base::GripperPhase,
        Base::Pose,
        Base::Lang,
        Base::Bool,
        Base::Nat,
        Base::Motion,
        Base::Joints,
    ];

    /// The name in the concrete syntax.
    pub fn name(self) -> &'static str {
        match self {
            Base::Twist => "Twist",
            Base::Wrench => "Wrench",
            Base::GripperPhase => "GripperPhase",
            Base::Pose => "Pose",
            Base::Lang => "Lang",
            Base::Bool => "Bool",
            Base::Nat => "Nat",
            Base::Motion => "Motion",
            Base::Joints => "Joints",
        }
    }

    /// The id of this base type, the same in every store.
    pub fn id(self) -> TypeId {
        TypeId(self as u32)
    }
}

/// A type in a [`TypeStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(u32);

impl TypeId {
    /// The type of twists.
    pub const TWIST: TypeId = TypeId(Base::Twist as u32);
    /// The type of wrenches.
    pub const WRENCH: TypeId = TypeId(Base::Wrench as u32);
    /// The type of gripper phases.
    pub const GRIPPER_PHASE: TypeId = TypeId(Base::GripperPhase as u32);
    /// The type of poses.
    pub const POSE: TypeId = TypeId(Base::Pose as u32);
    /// The type of object references.
    pub const LANG: TypeId = TypeId(Base::Lang as u32);
    /// The type of conditions.
    pub const BOOL: TypeId = TypeId(Base::Bool as u32);
    /// The type of counts.
    pub const NAT: TypeId = TypeId(Base::Nat as u32);
    /// The type of programs.
    pub const MOTION: TypeId = TypeId(Base::Motion as u32);
    /// The type of joint configurations.
    pub const JOINTS: TypeId = TypeId(Base::Joints as u32);
}

/// A type variable. It prints as a letter and, past the first 26, a number: `a`, …, `z`, `a1`, ….
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeVar(pub u32);

impl TypeVar {
    /// The variable's name in the concrete syntax.
    pub fn name(self) -> String {
        let letter = char::from(b'a' + (self.0 % 26) as u8);
        match self.0 / 26 {
            0 => letter.to_string(),
            round => format!("{letter}{round}"),
        }
    }

    /// The variable of that name, if the name is one.
    pub fn from_name(name: &str) -> Option<TypeVar> {
        let letter = name.bytes().next().filter(u8::is_ascii_lowercase)?;
        let digits = &name[1..];
        let round: u32 = match digits {
            "" => 0,
            _ if digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) => return None,
            _ => digits.parse().ok()?,
        };
        round.checked_mul(26)?.checked_add(u32::from(letter - b'a')).map(TypeVar)
    }
}

/// One type constructor, its parts given by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A base type.
    Base(Base),
    /// A variable.
    Variable(TypeVar),
    /// A function type: domain and codomain.
    Arrow(TypeId, TypeId),
}

/// `∀ a₀ … aₙ₋₁. body`: the quantified variables are exactly those of the body, numbered in order of first occurrence,
/// so that two schemes of one store mean the same if and only if they are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scheme {
    variables: u32,
    body: TypeId,
}

impl Scheme {
    /// How many variables are quantified; they are `TypeVar(0)` up to this number.
    pub fn variables(self) -> u32 {
        self.variables
    }

    /// The type under the quantifier.
    pub fn body(self) -> TypeId {
        self.body
    }

    /// The type itself, when nothing is quantified.
    pub fn monotype(self) -> Option<TypeId> {
        (self.variables == 0).then_some(self.body)
    }
}

/// A type that may not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TypeError {
    /// The type has more than [`MAX_TYPE_SIZE`] nodes or is nested deeper than [`MAX_TYPE_DEPTH`].
    #[error(
        "this type is too large: at most {MAX_TYPE_SIZE} parts and {MAX_TYPE_DEPTH} levels are allowed; \
         split the definition"
    )]
    TooLarge,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    kind: Type,
    size: u32,
    depth: u32,
    ground: bool,
}

/// The arena of types.
#[derive(Clone, Debug)]
pub struct TypeStore {
    nodes: Vec<Node>,
    ids: FxHashMap<Type, TypeId>,
}

impl Default for TypeStore {
    fn default() -> Self {
        TypeStore::new()
    }
}

impl TypeStore {
    /// A store that holds the base types.
    pub fn new() -> TypeStore {
        let mut store = TypeStore { nodes: Vec::new(), ids: FxHashMap::default() };
        for base in Base::ALL {
            store.intern(Node { kind: Type::Base(base), size: 1, depth: 1, ground: true });
        }
        store
    }

    /// The constructor of a type.
    pub fn get(&self, id: TypeId) -> Type {
        self.nodes[id.0 as usize].kind
    }

    /// The type of a variable.
    pub fn variable(&mut self, variable: TypeVar) -> TypeId {
        self.intern(Node { kind: Type::Variable(variable), size: 1, depth: 1, ground: false })
    }

    /// The function type `domain -> codomain`.
    pub fn arrow(&mut self, domain: TypeId, codomain: TypeId) -> Result<TypeId, TypeError> {
        let (left, right) = (self.node(domain), self.node(codomain));
        let size = left.size.saturating_add(right.size).saturating_add(1);
        let depth = left.depth.max(right.depth) + 1;
        if size > MAX_TYPE_SIZE || depth > MAX_TYPE_DEPTH {
            return Err(TypeError::TooLarge);
        }
        let ground = left.ground && right.ground;
        Ok(self.intern(Node { kind: Type::Arrow(domain, codomain), size, depth, ground }))
    }

    /// The function type `d₁ -> … -> dₙ -> codomain`.
    pub fn arrows(&mut self, domains: &[TypeId], codomain: TypeId) -> Result<TypeId, TypeError> {
        domains.iter().rev().try_fold(codomain, |result, &domain| self.arrow(domain, result))
    }

    /// Splits `d₁ -> … -> dₙ -> r` into its arguments and the result, which is no arrow.
    pub fn uncurry(&self, mut id: TypeId) -> (Vec<TypeId>, TypeId) {
        let mut domains = Vec::new();
        while let Type::Arrow(domain, codomain) = self.get(id) {
            domains.push(domain);
            id = codomain;
        }
        (domains, id)
    }

    /// Whether the type has no variables.
    pub fn is_ground(&self, id: TypeId) -> bool {
        self.node(id).ground
    }

    /// The number of nodes of the type when written out.
    pub fn size(&self, id: TypeId) -> u32 {
        self.node(id).size
    }

    /// The variables of a type in order of first occurrence.
    pub fn variables_of(&self, id: TypeId) -> Vec<TypeVar> {
        let mut found = Vec::new();
        let mut pending = vec![id];
        while let Some(next) = pending.pop() {
            match self.get(next) {
                _ if self.is_ground(next) => {}
                Type::Variable(variable) if !found.contains(&variable) => found.push(variable),
                Type::Arrow(domain, codomain) => pending.extend([codomain, domain]),
                _ => {}
            }
        }
        found
    }

    /// Quantifies over all variables of a type.
    pub fn generalise(&mut self, id: TypeId) -> Scheme {
        let variables = self.variables_of(id);
        let renumbered: Vec<TypeId> = (0..variables.len() as u32).map(|new| self.variable(TypeVar(new))).collect();
        let body = self.replace(id, &|variable| variables.iter().position(|&v| v == variable).map(|at| renumbered[at]));
        Scheme { variables: variables.len() as u32, body: body.unwrap_or(id) }
    }

    /// Replaces variables by types; those for which `replacement` gives nothing stay.
    pub fn replace(
        &mut self,
        id: TypeId,
        replacement: &impl Fn(TypeVar) -> Option<TypeId>,
    ) -> Result<TypeId, TypeError> {
        if self.is_ground(id) {
            return Ok(id);
        }
        match self.get(id) {
            Type::Base(_) => Ok(id),
            Type::Variable(variable) => Ok(replacement(variable).unwrap_or(id)),
            Type::Arrow(domain, codomain) => {
                let domain = self.replace(domain, replacement)?;
                let codomain = self.replace(codomain, replacement)?;
                self.arrow(domain, codomain)
            }
        }
    }

    /// The type in concrete syntax.
    pub fn show(&self, id: TypeId) -> String {
        let mut text = String::new();
        self.write(id, false, &mut text);
        text
    }

    /// The scheme in concrete syntax; no quantifier is written where there are no variables.
    pub fn show_scheme(&self, scheme: Scheme) -> String {
        let mut text = String::new();
        for index in 0..scheme.variables {
            let start = if index == 0 { "forall " } else { " " };
            let _ = write!(text, "{start}{}", TypeVar(index).name());
        }
        if scheme.variables > 0 {
            text.push_str(". ");
        }
        self.write(scheme.body, false, &mut text);
        text
    }

    fn write(&self, id: TypeId, in_domain: bool, text: &mut String) {
        match self.get(id) {
            Type::Base(base) => text.push_str(base.name()),
            Type::Variable(variable) => text.push_str(&variable.name()),
            Type::Arrow(domain, codomain) => {
                if in_domain {
                    text.push('(');
                }
                self.write(domain, true, text);
                text.push_str(" -> ");
                self.write(codomain, false, text);
                if in_domain {
                    text.push(')');
                }
            }
        }
    }

    fn node(&self, id: TypeId) -> Node {
        self.nodes[id.0 as usize]
    }

    fn intern(&mut self, node: Node) -> TypeId {
        let next = TypeId(self.nodes.len() as u32);
        let id = *self.ids.entry(node.kind).or_insert(next);
        if id == next {
            self.nodes.push(node);
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_types_have_fixed_ids() {
        let store = TypeStore::new();
        for base in Base::ALL {
            assert_eq!(store.get(base.id()), Type::Base(base));
        }
    }

    #[test]
    fn variable_names_are_a_bijection() {
        for index in (0..2000).chain([u32::MAX]) {
            assert_eq!(TypeVar::from_name(&TypeVar(index).name()), Some(TypeVar(index)));
        }
        for bad in ["", "a0", "a01", "ab", "A", "a99999999999", "é"] {
            assert_eq!(TypeVar::from_name(bad), None, "{bad}");
        }
    }

    #[test]
    fn schemes_are_numbered_by_first_occurrence() {
        let mut store = TypeStore::new();
        let (p, q) = (store.variable(TypeVar(7)), store.variable(TypeVar(3)));
        let one = store.arrows(&[p, q], p).unwrap();
        let other = store.arrows(&[q, p], q).unwrap();
        let scheme = store.generalise(one);
        assert_eq!(scheme, store.generalise(other));
        assert_eq!(store.show_scheme(scheme), "forall a b. a -> b -> a");
    }

    #[test]
    fn a_type_that_doubles_is_refused_instead_of_filling_memory() {
        let mut store = TypeStore::new();
        let mut id = TypeId::POSE;
        let refused = (0..64).find_map(|_| match store.arrow(id, id) {
            Ok(next) => {
                id = next;
                None
            }
            Err(error) => Some(error),
        });
        assert_eq!(refused, Some(TypeError::TooLarge));
    }
}
