//! Terms in a hash-consed arena.
//!
//! ```text
//! e ::= prim | f | x | literal | λx:τ. e | e₁ e₂ | seq[e₁,…,e_k] | repeat(e, n) | branch(c, e₁, e₂)
//! ```
//!
//! * Variables are de Bruijn indices. The name that was written for a binder is kept beside the node for printing only:
//!   α-equivalent terms have the same [`TermId`], and the first name given to a λ is the one that it keeps.
//! * Primitives and library entries are both [`Term::Constant`]; the [`Signature`](crate::Signature) says which is which.
//! * `seq` is canonical: [`TermStore::seq`] is its only constructor, and it flattens nested sequences, drops empty ones
//!   and returns the one item of a sequence of one. So `seq[a, seq[b, c]]`, `seq[seq[a, b], c]` and `seq[a, b, c]` are
//!   the same term – doing motions one after the other is associative – and `seq[]` is the motion that does nothing.
//! * A term is at most [`MAX_DEPTH`] deep and [`MAX_SIZE`] nodes large (written out, not shared). Constructors refuse
//!   more, so every recursive walk over a term is safe on a thread with a 2 MiB stack and ends in reasonable time.
//!
//! Ids belong to the store that made them; a clone of a store understands all ids of the original.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::lexer::is_identifier;
use crate::types::{TypeId, TypeStore};

/// The deepest term.
pub const MAX_DEPTH: u32 = 512;

/// The most nodes of one term when written out.
pub const MAX_SIZE: u32 = 1 << 20;

/// A term in a [`TermStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId(u32);

/// An identifier: the name of a primitive, a library entry or a binder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(u32);

/// The content of a quoted text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(u32);

/// A de Bruijn index: how many λs lie between a variable and its binder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Index(pub u32);

/// Six finite numbers, compared bit by bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Vector6([u64; 6]);

impl Vector6 {
    /// Six finite numbers: linear part first, then angular.
    pub fn new(values: [f64; 6]) -> Result<Vector6, TermError> {
        match values.iter().position(|value| !value.is_finite()) {
            Some(index) => Err(TermError::NotFinite { index, value: values[index] }),
            None => Ok(Vector6(values.map(f64::to_bits))),
        }
    }

    /// The numbers.
    pub fn values(self) -> [f64; 6] {
        self.0.map(f64::from_bits)
    }
}

/// The numbers of one part of a robot, at least one and at most [`JointVector::MAX`], compared bit by bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JointVector {
    len: u8,
    /// Zero from `len` on.
    bits: [u64; JointVector::MAX],
}

impl JointVector {
    /// The most numbers: the joints of one limb, not of a whole robot.
    pub const MAX: usize = 8;

    /// Finite numbers, in the order of the joints.
    pub fn new(values: &[f64]) -> Result<JointVector, TermError> {
        if !(1..=JointVector::MAX).contains(&values.len()) {
            return Err(TermError::JointCount { found: values.len() });
        }
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return Err(TermError::NotFinite { index, value: values[index] });
        }
        let mut bits = [0; JointVector::MAX];
        bits.iter_mut().zip(values).for_each(|(bits, value)| *bits = value.to_bits());
        Ok(JointVector { len: values.len() as u8, bits })
    }

    /// The numbers.
    pub fn values(self) -> Vec<f64> {
        self.bits[..usize::from(self.len)].iter().map(|bits| f64::from_bits(*bits)).collect()
    }
}

/// A literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Literal {
    /// A count, of type Nat.
    Natural(u64),
    /// A truth value, of type Bool.
    Boolean(bool),
    /// A quoted text, of type Lang.
    Text(Text),
    /// `pose[x, y, z, rx, ry, rz]`.
    Pose(Vector6),
    /// `twist[vx, vy, vz, wx, wy, wz]`.
    Twist(Vector6),
    /// `wrench[fx, fy, fz, tx, ty, tz]`.
    Wrench(Vector6),
    /// `joints[j1, …]`.
    Joints(JointVector),
}

impl Literal {
    /// The type of the literal.
    pub fn type_id(self) -> TypeId {
        match self {
            Literal::Natural(_) => TypeId::NAT,
            Literal::Boolean(_) => TypeId::BOOL,
            Literal::Text(_) => TypeId::LANG,
            Literal::Pose(_) => TypeId::POSE,
            Literal::Twist(_) => TypeId::TWIST,
            Literal::Wrench(_) => TypeId::WRENCH,
            Literal::Joints(_) => TypeId::JOINTS,
        }
    }
}

/// One term constructor, its parts given by id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A bound variable.
    Variable(Index),
    /// A primitive or a library entry.
    Constant(Name),
    /// A literal.
    Literal(Literal),
    /// `λx:τ. body`. Type variables in an annotation stand for unknown types, for each λ anew.
    Lambda {
        /// The written type of the variable.
        annotation: Option<TypeId>,
        /// The term under the binder.
        body: TermId,
    },
    /// A function applied to one argument.
    Apply(TermId, TermId),
    /// One motion after the other: none, or at least two, and none of them a sequence.
    Seq(Arc<[TermId]>),
    /// A motion, as often as the second term says.
    Repeat(TermId, TermId),
    /// Condition, motion if it holds, motion otherwise.
    Branch(TermId, TermId, TermId),
}

impl Term {
    /// The direct parts, each with the number of binders (0 or 1) that it lies under, in order of writing.
    pub fn children(&self) -> Vec<(TermId, u32)> {
        match self {
            Term::Variable(_) | Term::Constant(_) | Term::Literal(_) => Vec::new(),
            Term::Lambda { body, .. } => vec![(*body, 1)],
            Term::Apply(function, argument) => vec![(*function, 0), (*argument, 0)],
            Term::Seq(items) => items.iter().map(|&item| (item, 0)).collect(),
            Term::Repeat(body, count) => vec![(*body, 0), (*count, 0)],
            Term::Branch(condition, then, otherwise) => vec![(*condition, 0), (*then, 0), (*otherwise, 0)],
        }
    }
}

/// A term that may not be built.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TermError {
    /// Deeper than [`MAX_DEPTH`].
    #[error("this term is nested deeper than {MAX_DEPTH} levels; name a part of it as a library entry")]
    TooDeep,
    /// Larger than the bound.
    #[error("this term has more than {limit} nodes; use `repeat` or name a part of it as a library entry")]
    TooLarge {
        /// The bound.
        limit: u32,
    },
    /// Normalisation did more work than allowed.
    #[error("normalising this term takes more than {limit} steps; check its type, or raise the limit")]
    TooManySteps {
        /// The bound.
        limit: u64,
    },
    /// A word that is a keyword or no identifier.
    #[error(
        "`{name}` cannot be a name: letters, digits, `_` and `'` are allowed, \
         a digit or `'` may not be first, and keywords are reserved"
    )]
    BadName {
        /// The word.
        name: String,
    },
    /// No numbers or more than one part of a robot has.
    #[error("{found} numbers cannot be joints; expected 1 to {}", JointVector::MAX)]
    JointCount {
        /// How many there are.
        found: usize,
    },
    /// NaN or an infinity.
    #[error("number {index} is {value}, but poses, twists, wrenches and joints hold finite numbers")]
    NotFinite {
        /// Its position in the literal.
        index: usize,
        /// The number.
        value: f64,
    },
}

#[derive(Clone, Debug)]
struct Node {
    term: Term,
    binder: Option<Name>,
    size: u32,
    depth: u32,
    /// One more than the largest free index; 0 for a closed term.
    reach: u32,
}

#[derive(Clone, Debug, Default)]
struct Interner {
    texts: Vec<Arc<str>>,
    ids: FxHashMap<Arc<str>, u32>,
}

impl Interner {
    fn intern(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = self.texts.len() as u32;
        let shared: Arc<str> = text.into();
        self.texts.push(shared.clone());
        self.ids.insert(shared, id);
        id
    }
}

/// The arena of terms, and of the types, names and texts in them.
#[derive(Clone, Debug, Default)]
pub struct TermStore {
    types: TypeStore,
    nodes: Vec<Node>,
    ids: FxHashMap<Term, TermId>,
    names: Interner,
    texts: Interner,
}

impl TermStore {
    /// An empty store.
    pub fn new() -> TermStore {
        TermStore::default()
    }

    /// The types of annotations and signatures.
    pub fn types(&self) -> &TypeStore {
        &self.types
    }

    /// The types, to add to.
    pub fn types_mut(&mut self) -> &mut TypeStore {
        &mut self.types
    }

    /// The constructor of a term.
    pub fn get(&self, id: TermId) -> &Term {
        &self.node(id).term
    }

    /// The number of nodes of the term when written out.
    pub fn size(&self, id: TermId) -> u32 {
        self.node(id).size
    }

    /// The number of levels of the term; a leaf has one.
    pub fn depth(&self, id: TermId) -> u32 {
        self.node(id).depth
    }

    /// One more than the largest free de Bruijn index; 0 for a closed term.
    pub fn reach(&self, id: TermId) -> u32 {
        self.node(id).reach
    }

    /// Whether the term has no free variable.
    pub fn is_closed(&self, id: TermId) -> bool {
        self.reach(id) == 0
    }

    /// The name that was written for the variable of a λ.
    pub fn binder(&self, id: TermId) -> Option<Name> {
        self.node(id).binder
    }

    /// How many different terms the store holds.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the store holds no term.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// An identifier.
    pub fn name(&mut self, word: &str) -> Result<Name, TermError> {
        match is_identifier(word) {
            true => Ok(Name(self.names.intern(word))),
            false => Err(TermError::BadName { name: word.to_string() }),
        }
    }

    /// The name of that spelling, if the store has met it.
    pub fn find_name(&self, word: &str) -> Option<Name> {
        self.names.ids.get(word).map(|&id| Name(id))
    }

    /// The spelling of a name.
    pub fn spelling(&self, name: Name) -> &str {
        &self.names.texts[name.0 as usize]
    }

    /// The content of a quoted text.
    pub fn content(&self, text: Text) -> &str {
        &self.texts.texts[text.0 as usize]
    }

    /// A literal text without the term around it.
    pub fn text_literal(&mut self, content: &str) -> Literal {
        Literal::Text(Text(self.texts.intern(content)))
    }

    /// A bound variable.
    pub fn variable(&mut self, index: Index) -> TermId {
        self.leaf(Term::Variable(index), index.0.saturating_add(1))
    }

    /// A primitive or a library entry.
    pub fn constant(&mut self, name: Name) -> TermId {
        self.leaf(Term::Constant(name), 0)
    }

    /// A literal.
    pub fn literal(&mut self, literal: Literal) -> TermId {
        self.leaf(Term::Literal(literal), 0)
    }

    /// A count.
    pub fn natural(&mut self, value: u64) -> TermId {
        self.literal(Literal::Natural(value))
    }

    /// A truth value.
    pub fn boolean(&mut self, value: bool) -> TermId {
        self.literal(Literal::Boolean(value))
    }

    /// A quoted text.
    pub fn text(&mut self, content: &str) -> TermId {
        let literal = self.text_literal(content);
        self.literal(literal)
    }

    /// `λbinder:annotation. body`, in which the variable is [`Index`] 0 of the body.
    pub fn lambda(&mut self, binder: Name, annotation: Option<TypeId>, body: TermId) -> Result<TermId, TermError> {
        self.intern(Term::Lambda { annotation, body }, Some(binder))
    }

    /// A function applied to one argument.
    pub fn apply(&mut self, function: TermId, argument: TermId) -> Result<TermId, TermError> {
        self.intern(Term::Apply(function, argument), None)
    }

    /// A function applied to several arguments.
    pub fn apply_all(&mut self, function: TermId, arguments: &[TermId]) -> Result<TermId, TermError> {
        arguments.iter().try_fold(function, |function, &argument| self.apply(function, argument))
    }

    /// A constant, by its spelling, applied to arguments.
    pub fn call(&mut self, word: &str, arguments: &[TermId]) -> Result<TermId, TermError> {
        let name = self.name(word)?;
        let constant = self.constant(name);
        self.apply_all(constant, arguments)
    }

    /// One motion after the other, in canonical form (see the module's documentation).
    pub fn seq(&mut self, items: &[TermId]) -> Result<TermId, TermError> {
        let mut flat: Vec<TermId> = Vec::with_capacity(items.len());
        for &item in items {
            match self.get(item) {
                Term::Seq(inner) => flat.extend(inner.iter()),
                _ => flat.push(item),
            }
            if flat.len() >= MAX_SIZE as usize {
                return Err(TermError::TooLarge { limit: MAX_SIZE });
            }
        }
        match flat[..] {
            [only] => Ok(only),
            _ => self.intern(Term::Seq(flat.into()), None),
        }
    }

    /// A motion, as often as `count` says.
    pub fn repeat(&mut self, body: TermId, count: TermId) -> Result<TermId, TermError> {
        self.intern(Term::Repeat(body, count), None)
    }

    /// A choice between two motions.
    pub fn branch(&mut self, condition: TermId, then: TermId, otherwise: TermId) -> Result<TermId, TermError> {
        self.intern(Term::Branch(condition, then, otherwise), None)
    }

    /// The same constructor over other parts, given in the order of [`Term::children`]. Parts that are missing stay.
    pub fn with_children(&mut self, id: TermId, parts: &[TermId]) -> Result<TermId, TermError> {
        let part = |at: usize, old: TermId| parts.get(at).copied().unwrap_or(old);
        match self.get(id).clone() {
            Term::Variable(_) | Term::Constant(_) | Term::Literal(_) => Ok(id),
            Term::Lambda { annotation, body } => {
                let binder = self.binder(id);
                self.intern(Term::Lambda { annotation, body: part(0, body) }, binder)
            }
            Term::Apply(function, argument) => self.apply(part(0, function), part(1, argument)),
            Term::Seq(_) => self.seq(parts),
            Term::Repeat(body, count) => self.repeat(part(0, body), part(1, count)),
            Term::Branch(condition, then, otherwise) => {
                self.branch(part(0, condition), part(1, then), part(2, otherwise))
            }
        }
    }

    /// Splits `f a₁ … aₙ` into its head, which is no application, and the arguments.
    pub fn spine(&self, mut id: TermId) -> (TermId, Vec<TermId>) {
        let mut arguments = Vec::new();
        while let Term::Apply(function, argument) = self.get(id) {
            arguments.push(*argument);
            id = *function;
        }
        arguments.reverse();
        (id, arguments)
    }

    /// The constants of a term, each once, in order of first occurrence.
    pub fn constants(&self, id: TermId) -> Vec<Name> {
        let mut found = Vec::new();
        let mut known = rustc_hash::FxHashSet::default();
        let mut visited = rustc_hash::FxHashSet::default();
        let mut pending = vec![id];
        while let Some(next) = pending.pop() {
            if !visited.insert(next) {
                continue;
            }
            match self.get(next) {
                Term::Constant(name) if known.insert(*name) => found.push(*name),
                term => pending.extend(term.children().iter().rev().map(|&(child, _)| child)),
            }
        }
        found
    }

    fn node(&self, id: TermId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    fn leaf(&mut self, term: Term, reach: u32) -> TermId {
        self.insert(Node { term, binder: None, size: 1, depth: 1, reach })
    }

    fn intern(&mut self, term: Term, binder: Option<Name>) -> Result<TermId, TermError> {
        let mut node = Node { binder, size: 1, depth: 0, reach: 0, term: Term::Seq(Arc::new([])) };
        for (child, binders) in term.children() {
            let part = self.node(child);
            node.size = node.size.saturating_add(part.size);
            node.depth = node.depth.max(part.depth);
            node.reach = node.reach.max(part.reach.saturating_sub(binders));
        }
        node.depth += 1;
        if node.depth > MAX_DEPTH {
            return Err(TermError::TooDeep);
        }
        if node.size > MAX_SIZE {
            return Err(TermError::TooLarge { limit: MAX_SIZE });
        }
        node.term = term;
        Ok(self.insert(node))
    }

    fn insert(&mut self, node: Node) -> TermId {
        let next = TermId(self.nodes.len() as u32);
        let id = *self.ids.entry(node.term.clone()).or_insert(next);
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
    fn sequences_are_associative_by_construction() {
        let mut store = TermStore::new();
        let [a, b, c] = ["a", "b", "c"].map(|word| store.call(word, &[]).unwrap());
        let empty = store.seq(&[]).unwrap();
        let flat = store.seq(&[a, b, c]).unwrap();
        let right = store.seq(&[b, c]).unwrap();
        let left = store.seq(&[a, b]).unwrap();
        assert_eq!(store.seq(&[a, right]), Ok(flat));
        assert_eq!(store.seq(&[empty, left, empty, c]), Ok(flat));
        assert_eq!(store.seq(&[empty, a]), Ok(a));
        assert_eq!(store.seq(&[empty, empty]), Ok(empty));
    }

    #[test]
    fn alpha_equivalent_terms_are_one_and_keep_the_first_name() {
        let mut store = TermStore::new();
        let (x, y) = (store.name("x").unwrap(), store.name("y").unwrap());
        let body = store.variable(Index(0));
        let first = store.lambda(x, None, body).unwrap();
        assert_eq!(store.lambda(y, None, body), Ok(first));
        assert_eq!(store.binder(first), Some(x));
        assert!(store.is_closed(first) && !store.is_closed(body));
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let mut store = TermStore::new();
        let f = store.call("f", &[]).unwrap();
        let mut deep = f;
        let refused = (0..1000).find_map(|_| store.apply(f, deep).map(|next| deep = next).err());
        assert_eq!(refused, Some(TermError::TooDeep));
        let mut wide = store.apply(f, f).unwrap();
        let refused = (0..64).find_map(|_| store.seq(&[wide, wide]).map(|next| wide = next).err());
        assert_eq!(refused, Some(TermError::TooLarge { limit: MAX_SIZE }));
    }

    #[test]
    fn vectors_are_finite_and_bit_exact() {
        assert!(matches!(
            Vector6::new([0.0, f64::NAN, 0.0, 0.0, 0.0, 0.0]),
            Err(TermError::NotFinite { index: 1, .. })
        ));
        assert_ne!(Vector6::new([0.0; 6]), Vector6::new([-0.0; 6]));
    }
}
