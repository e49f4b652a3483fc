//! Type checking of terms that are still being written, token by token.
//!
//! A beam search extends many prefixes by one token at a time and forks them constantly. [`PrefixChecker::step`] checks
//! the new token against the hole that it fills, [`PrefixChecker::allowed`] says which tokens of a vocabulary may come
//! next, and a [`PrefixState`] is cloned in O(1).
//!
//! # Cost
//! A state is a persistent stack of holes plus a persistent [`Substitution`]. A step pops one hole, unifies its type
//! with that of the token, and pushes the holes of the token's parts as one frame. A frame leaves the stack together
//! with its last hole, so no step cleans up after others. The substitution is a trie that is shared with all earlier
//! states, variables are joined by rank, and an environment of binders is a trie too. Hence a step costs O(s · log v),
//! where s is the size of the types involved – a property of the signature, capped by
//! [`MAX_TYPE_SIZE`](crate::MAX_TYPE_SIZE) – and v the number of type variables made so far, which only polymorphic
//! entries and λs add to. Nothing looks at the tokens already written, so the cost does not grow with their number.
//!
//! # Exactness
//! A prefix is accepted if and only if the types of its open holes can be unified with their places. That is the same as
//! being the prefix of some well-typed term, provided that every base type has a closed term: instantiate all variables
//! that are left with Motion; then every hole has a type τ₁ → … → τₙ → B, and λs around a term of type B fill it. Lang,
//! Nat, Bool, Pose, Twist and Wrench have literals and Motion has `seq[]` (and `repeat(seq[], 0)` where a sequence would
//! not be canonical); GripperPhase needs a constant, which the
//! default signature has. [`PrefixChecker::uninhabited`] lists base types without one; for those a prefix may be
//! accepted that nothing completes. The other exception are terms at the limit of depth, of which a hole may want more
//! λs than there are levels left.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::persistent::PersistentArray;
use crate::signature::Signature;
use crate::term::{MAX_DEPTH, MAX_SIZE, Name, TermError, TermStore};
use crate::token::{Head, Token};
use crate::types::{Base, Scheme, Type, TypeError, TypeId, TypeStore};
use crate::unify::{Substitution, UnifyError};

/// Why a token may not come next.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PrefixError {
    /// The term is complete.
    #[error("the term is complete; no token may follow")]
    Complete,
    /// The token has another type than its place.
    #[error("the token has type {found}, but its place wants {wanted}")]
    Mismatch {
        /// The type of the token after its arguments.
        found: String,
        /// The type of the hole.
        wanted: String,
    },
    /// The head takes fewer arguments.
    #[error("the head takes {taken} arguments, not {args}")]
    TooManyArguments {
        /// How many it takes.
        taken: u32,
        /// How many the token announces.
        args: u32,
    },
    /// The signature has no such constant.
    #[error("the signature has no such constant; make a new checker when the library changes")]
    UnknownConstant,
    /// Nothing binds the variable.
    #[error("variable {index} has no binder here")]
    FreeVariable {
        /// Its index.
        index: u32,
    },
    /// No term has the token at this place.
    #[error("the token is not canonical here: {reason}")]
    NotCanonical {
        /// What is wrong.
        reason: &'static str,
    },
    /// The term is over the limits.
    #[error(transparent)]
    Term(#[from] TermError),
    /// A type is over the limits.
    #[error(transparent)]
    Type(#[from] TypeError),
}

/// Why a token is refused, before anyone asks for it in words: a search refuses most of its vocabulary at every step.
enum Rejection {
    Mismatch { found: TypeId, wanted: TypeId, substitution: Substitution },
    Because(PrefixError),
}

impl<E: Into<PrefixError>> From<E> for Rejection {
    fn from(error: E) -> Rejection {
        Rejection::Because(error.into())
    }
}

/// Checks prefixes of terms of one type over one signature.
#[derive(Clone, Debug)]
pub struct PrefixChecker {
    types: TypeStore,
    schemes: FxHashMap<Name, Scheme>,
    start: PrefixState,
    uninhabited: Vec<Base>,
}

/// A prefix of a term, as far as its types are concerned. Cloning is O(1).
#[derive(Clone, Debug)]
pub struct PrefixState {
    substitution: Substitution,
    stack: Option<Arc<Frame>>,
    size: u32,
}

/// Holes of one node that are still open: at least one, except in a sequence, which is open-ended.
#[derive(Debug)]
struct Frame {
    holes: Holes,
    scope: Scope,
    below: Option<Arc<Frame>>,
}

#[derive(Clone, Debug)]
enum Holes {
    /// The parts from `next` on.
    Parts { parts: Arc<[Hole]>, next: usize },
    /// The items of a sequence, of which `count` are written.
    Items { count: usize, level: u32 },
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    wanted: TypeId,
    /// The depth of the term that fills it, within the whole.
    level: u32,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Anywhere,
    Item,
    Function,
}

/// The types of the binders around a hole, outermost first.
#[derive(Clone, Debug, Default)]
struct Scope {
    types: PersistentArray<TypeId>,
    depth: u32,
}

impl PrefixState {
    /// Whether the tokens so far are a whole term.
    pub fn is_complete(&self) -> bool {
        self.stack.is_none()
    }

    /// The steps of unification since the empty prefix, for tests of cost.
    pub fn unifier_steps(&self) -> u64 {
        self.substitution.steps()
    }
}

impl PrefixChecker {
    /// A checker for terms of type `goal`, whose variables stand for unknown types. The signature and the goal belong to
    /// the store; the checker keeps a copy of its types and does not see later changes.
    pub fn new(store: &TermStore, signature: &Signature, goal: TypeId) -> PrefixChecker {
        let mut types = store.types().clone();
        let mut substitution = Substitution::new();
        let scheme = types.generalise(goal);
        let wanted = substitution.instantiate(&mut types, scheme).unwrap_or(goal);
        let hole = Hole { wanted, level: 1, place: Place::Anywhere };
        let root =
            Frame { holes: Holes::Parts { parts: Arc::new([hole]), next: 0 }, scope: Scope::default(), below: None };
        let schemes = signature.entries().iter().map(|entry| (entry.name, entry.scheme)).collect();
        let uninhabited = uninhabited(&types, signature);
        PrefixChecker {
            types,
            schemes,
            start: PrefixState { substitution, stack: Some(Arc::new(root)), size: 0 },
            uninhabited,
        }
    }

    /// The empty prefix.
    pub fn start(&self) -> PrefixState {
        self.start.clone()
    }

    /// The base types of which no closed term exists (see the module's documentation).
    pub fn uninhabited(&self) -> &[Base] {
        &self.uninhabited
    }

    /// The type that the next token must have, in concrete syntax; nothing for a complete term. Of a type
    /// that is too large to show, which may still have terms, it says that.
    pub fn wanted(&mut self, state: &PrefixState) -> Option<String> {
        let hole = next_hole(state.stack.as_deref()?);
        let resolved = match state.substitution.clone().resolve(&mut self.types, hole.wanted) {
            Ok(resolved) => resolved,
            Err(error) => return Some(error.to_string()),
        };
        let scheme = self.types.generalise(resolved);
        Some(self.types.show(scheme.body()))
    }

    /// Which tokens of the vocabulary may come next, in its order.
    pub fn allowed(&mut self, state: &PrefixState, vocabulary: &[Token]) -> Vec<bool> {
        vocabulary.iter().map(|&token| self.extended(state, token).is_ok()).collect()
    }

    /// The prefix with one more token.
    pub fn step(&mut self, state: &PrefixState, token: Token) -> Result<PrefixState, PrefixError> {
        self.extended(state, token).map_err(|rejection| match rejection {
            Rejection::Because(error) => error,
            Rejection::Mismatch { found, wanted, mut substitution } => {
                let mut shown = |id| match substitution.resolve(&mut self.types, id) {
                    Ok(resolved) => self.types.show(resolved),
                    Err(error) => error.to_string(),
                };
                PrefixError::Mismatch { found: shown(found), wanted: shown(wanted) }
            }
        })
    }

    fn extended(&mut self, state: &PrefixState, token: Token) -> Result<PrefixState, Rejection> {
        let frame = state.stack.as_ref().ok_or(PrefixError::Complete)?;
        if token == Token::EndSeq {
            return match frame.holes {
                Holes::Items { count: 1, .. } => {
                    refuse(PrefixError::NotCanonical { reason: "a sequence of one is that one" })
                }
                Holes::Items { .. } => Ok(PrefixState { stack: frame.below.clone(), ..state.clone() }),
                Holes::Parts { .. } => refuse(PrefixError::NotCanonical { reason: "no sequence is open here" }),
            };
        }
        let hole = next_hole(frame);
        let mut next = PrefixState {
            substitution: state.substitution.clone(),
            stack: without_next_hole(frame),
            size: state.size.saturating_add(nodes_of(token)),
        };
        if next.size > MAX_SIZE {
            return Err(TermError::TooLarge { limit: MAX_SIZE }.into());
        }
        let holes = self.fill(&mut next.substitution, &frame.scope, hole, token)?;
        if let Some((holes, scope)) = holes {
            next.stack = Some(Arc::new(Frame { holes, scope, below: next.stack.take() }));
        }
        Ok(next)
    }

    /// Unifies the hole with the token and returns the holes of the token's parts, if it has any.
    fn fill(
        &mut self,
        substitution: &mut Substitution,
        scope: &Scope,
        hole: Hole,
        token: Token,
    ) -> Result<Option<(Holes, Scope)>, Rejection> {
        let spine = match token {
            Token::Head { args, .. } | Token::Apply { args } => args,
            _ => 0,
        };
        let level = hole.level.saturating_add(spine);
        if level > MAX_DEPTH || (level == MAX_DEPTH && !matches!(token, Token::Head { .. } | Token::Seq)) {
            return Err(TermError::TooDeep.into());
        }
        let plain = |wanted| Hole { wanted, level: hole.level + 1, place: Place::Anywhere };
        let parts = |holes: &[Hole]| Ok(Some((Holes::Parts { parts: holes.into(), next: 0 }, scope.clone())));
        match (token, hole.place) {
            (Token::Head { .. } | Token::Apply { .. }, Place::Function) => {
                refuse(PrefixError::NotCanonical { reason: "a head takes its arguments itself, without `Apply`" })
            }
            (Token::Head { head, args }, _) => {
                let holes = self.arguments(substitution, scope, hole, head, args)?;
                match holes.is_empty() {
                    true => Ok(None),
                    false => parts(&holes),
                }
            }
            (Token::Apply { args: 0 }, _) => {
                refuse(PrefixError::NotCanonical { reason: "`Apply` has at least one argument" })
            }
            (Token::Apply { args }, _) => {
                let domains: Vec<TypeId> = (0..args).map(|_| substitution.fresh(&mut self.types)).collect();
                let wanted = self.types.arrows(&domains, hole.wanted)?;
                let mut holes = vec![Hole { wanted, level, place: Place::Function }];
                holes.extend(spine_holes(&domains, hole.level));
                parts(&holes)
            }
            (Token::Lambda(annotation), _) => {
                let (domain, codomain) = self.split(substitution, hole.wanted)?;
                if let Some(annotation) = annotation {
                    let scheme = self.types.generalise(annotation);
                    let annotated = substitution.instantiate(&mut self.types, scheme)?;
                    self.unify(substitution, annotated, domain)?;
                }
                let mut inner = scope.clone();
                inner.types.set(inner.depth, domain);
                inner.depth += 1;
                Ok(Some((Holes::Parts { parts: Arc::new([plain(codomain)]), next: 0 }, inner)))
            }
            (Token::Seq, Place::Item) => {
                refuse(PrefixError::NotCanonical { reason: "a sequence directly in a sequence is one sequence" })
            }
            (Token::Seq, _) => {
                self.unify(substitution, TypeId::MOTION, hole.wanted)?;
                Ok(Some((Holes::Items { count: 0, level: hole.level + 1 }, scope.clone())))
            }
            (Token::Repeat, _) => {
                self.unify(substitution, TypeId::MOTION, hole.wanted)?;
                parts(&[plain(TypeId::MOTION), plain(TypeId::NAT)])
            }
            (Token::Branch, _) => {
                self.unify(substitution, TypeId::MOTION, hole.wanted)?;
                parts(&[plain(TypeId::BOOL), plain(TypeId::MOTION), plain(TypeId::MOTION)])
            }
            (Token::EndSeq, _) => refuse(PrefixError::NotCanonical { reason: "no sequence is open here" }),
        }
    }

    /// The holes of a head's arguments, once its result fits the hole.
    fn arguments(
        &mut self,
        substitution: &mut Substitution,
        scope: &Scope,
        hole: Hole,
        head: Head,
        args: u32,
    ) -> Result<Vec<Hole>, Rejection> {
        let mut result = match head {
            Head::Literal(literal) => literal.type_id(),
            Head::Variable(index) => {
                let at = scope.depth.checked_sub(index.0.saturating_add(1));
                at.and_then(|at| scope.types.get(at)).ok_or(PrefixError::FreeVariable { index: index.0 })?
            }
            Head::Constant(name) => {
                let scheme = *self.schemes.get(&name).ok_or(PrefixError::UnknownConstant)?;
                substitution.instantiate(&mut self.types, scheme)?
            }
        };
        let mut domains = Vec::new();
        for taken in 0..args {
            let (domain, codomain) = match self.split(substitution, result) {
                Err(Rejection::Mismatch { .. }) => return refuse(PrefixError::TooManyArguments { taken, args }),
                split => split?,
            };
            domains.push(domain);
            result = codomain;
        }
        self.unify(substitution, result, hole.wanted)?;
        Ok(spine_holes(&domains, hole.level).collect())
    }

    /// Domain and codomain of a type that must be a function.
    fn split(&mut self, substitution: &mut Substitution, id: TypeId) -> Result<(TypeId, TypeId), Rejection> {
        let shape = substitution.shallow(&self.types, id);
        if let Type::Arrow(domain, codomain) = self.types.get(shape) {
            return Ok((domain, codomain));
        }
        let (domain, codomain) = (substitution.fresh(&mut self.types), substitution.fresh(&mut self.types));
        let arrow = self.types.arrow(domain, codomain)?;
        self.unify(substitution, arrow, shape)?;
        Ok((domain, codomain))
    }

    fn unify(&mut self, substitution: &mut Substitution, found: TypeId, wanted: TypeId) -> Result<(), Rejection> {
        match substitution.unify(&self.types, found, wanted) {
            Ok(()) => Ok(()),
            Err(UnifyError::TooLarge(source)) => Err(source.into()),
            Err(UnifyError::Mismatch { .. } | UnifyError::Infinite { .. }) => {
                Err(Rejection::Mismatch { found, wanted, substitution: substitution.clone() })
            }
        }
    }
}

fn refuse<T>(error: PrefixError) -> Result<T, Rejection> {
    Err(Rejection::Because(error))
}

fn next_hole(frame: &Frame) -> Hole {
    match &frame.holes {
        Holes::Items { level, .. } => Hole { wanted: TypeId::MOTION, level: *level, place: Place::Item },
        Holes::Parts { parts, next } => parts[*next],
    }
}

/// The stack after its next hole is taken. A frame goes with its last hole.
fn without_next_hole(frame: &Arc<Frame>) -> Option<Arc<Frame>> {
    let holes = match &frame.holes {
        Holes::Parts { parts, next } if next + 1 >= parts.len() => return frame.below.clone(),
        Holes::Parts { parts, next } => Holes::Parts { parts: parts.clone(), next: next + 1 },
        Holes::Items { count, level } => Holes::Items { count: count + 1, level: *level },
    };
    Some(Arc::new(Frame { holes, scope: frame.scope.clone(), below: frame.below.clone() }))
}

/// The arguments of a spine at `level`: the first of n lies under n applications, the last under one.
fn spine_holes(domains: &[TypeId], level: u32) -> impl Iterator<Item = Hole> {
    let count = domains.len() as u32;
    (0..count).zip(domains).map(move |(at, &wanted)| Hole { wanted, level: level + count - at, place: Place::Anywhere })
}

/// How many nodes of the term a token stands for.
fn nodes_of(token: Token) -> u32 {
    match token {
        Token::Head { args, .. } => args.saturating_add(1),
        Token::Apply { args } => args,
        _ => 1,
    }
}

/// Base types without literals that no constant, applied to inhabited types, results in.
fn uninhabited(types: &TypeStore, signature: &Signature) -> Vec<Base> {
    let mut missing = vec![Base::GripperPhase];
    loop {
        // A function type has a term if its result has one: a λ that ignores its argument.
        let inhabited =
            |id: TypeId| !matches!(types.get(types.uncurry(id).1), Type::Base(base) if missing.contains(&base));
        let found = signature.entries().iter().find_map(|entry| {
            let (domains, result) = types.uncurry(entry.scheme.body());
            let ready = domains.into_iter().all(inhabited);
            match types.get(result) {
                Type::Base(base) if ready && missing.contains(&base) => Some(base),
                _ => None,
            }
        });
        match found {
            Some(base) => missing.retain(|&other| other != base),
            None => return missing,
        }
    }
}
