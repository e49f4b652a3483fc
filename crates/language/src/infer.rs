//! Hindley–Milner inference.
//!
//! ```text
//! Γ ⊢ prim : instance of its scheme      Γ ⊢ e₁ : τ → τ'   Γ ⊢ e₂ : τ  ⟹  Γ ⊢ e₁ e₂ : τ'
//! Γ, x:τ ⊢ e : τ'  ⟹  Γ ⊢ λx:τ. e : τ → τ'
//! seq : Motion … → Motion      repeat : Motion → Nat → Motion      branch : Bool → Motion → Motion → Motion
//! ```
//!
//! Generalisation happens at library definitions ([`Signature::define`]) and for whole terms; variables bound by λ are
//! monomorphic. Both arms of `branch` are motions: the evaluator keeps a condition that is not known as an event of the
//! trace, which is only possible where a motion is expected.
//!
//! Type variables in the annotation of a λ stand for unknown types and are local to that λ. Had they the whole term for
//! scope, inlining two entries that both write `a` would tie them together, and rewriting would not preserve typing.
//!
//! Inference goes on after an error, so one run reports all of them. What a place wants is passed inwards, so that an
//! error is reported at the smallest term that is wrong, together with where the expectation comes from.

use crate::diagnostic::{InferError, Report, Span, suggest};
use crate::parse::{Parsed, parse};
use crate::signature::Signature;
use crate::spans::{SpanNode, SpanTree};
use crate::term::{Term, TermId, TermStore};
use crate::types::{Scheme, Type, TypeError, TypeId};
use crate::unify::{Substitution, UnifyError};

/// The most errors that one run reports.
const MAX_ERRORS: usize = 32;

/// A term that was read from text, with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    /// The term.
    pub term: TermId,
    /// Where its parts were written.
    pub spans: SpanTree,
    /// Its principal type.
    pub scheme: Scheme,
}

/// The principal type of a closed term.
pub fn infer(store: &mut TermStore, signature: &Signature, term: TermId) -> Result<Scheme, Vec<InferError>> {
    infer_at(store, signature, term, None, None)
}

/// The principal type of a closed term at a place that wants `goal`; variables of the goal stand for unknown types.
pub fn check(
    store: &mut TermStore,
    signature: &Signature,
    term: TermId,
    goal: TypeId,
) -> Result<Scheme, Vec<InferError>> {
    infer_at(store, signature, term, None, Some(goal))
}

/// The principal type of a closed term, with its spans and the type that is wanted where they are known.
pub fn infer_at(
    store: &mut TermStore,
    signature: &Signature,
    term: TermId,
    spans: Option<&SpanTree>,
    goal: Option<TypeId>,
) -> Result<Scheme, Vec<InferError>> {
    let mut inference = Inference {
        store,
        signature,
        spans,
        substitution: Substitution::new(),
        environment: Vec::new(),
        errors: Vec::new(),
    };
    let root = spans.and_then(SpanTree::root);
    let wanted = match goal {
        Some(goal) => inference.annotation(goal, root),
        None => inference.fresh(),
    };
    inference.check(term, root, wanted, Reason::Goal);
    let resolved = inference.substitution.resolve(inference.store.types_mut(), wanted);
    let Inference { mut errors, .. } = inference;
    match resolved {
        Ok(id) if errors.is_empty() => Ok(store.types_mut().generalise(id)),
        Ok(_) => Err(errors),
        Err(source) => {
            let span = spans.and_then(|spans| spans.root().map(|root| spans.span(root)));
            errors.push(InferError::TooLarge { source, span });
            Err(errors)
        }
    }
}

/// Parses a text and infers its type, which `goal` restricts. All errors of the first stage that fails are reported.
pub fn read(store: &mut TermStore, signature: &Signature, source: &str, goal: Option<TypeId>) -> Result<Typed, Report> {
    let Parsed { term, spans } = parse(store, signature, source)?;
    match infer_at(store, signature, term, Some(&spans), goal) {
        Ok(scheme) => Ok(Typed { term, spans, scheme }),
        Err(errors) => Err(Report::new(source, errors)),
    }
}

/// Why a place wants a type.
#[derive(Clone, Copy)]
enum Reason {
    Goal,
    Argument { function: TermId, position: usize, span: Option<Span> },
    Item(Option<Span>),
    Body(Option<Span>),
    Count(Option<Span>),
    Condition(Option<Span>),
    Arm(Option<Span>),
    Annotation(Option<Span>),
}

struct Inference<'a> {
    store: &'a mut TermStore,
    signature: &'a Signature,
    spans: Option<&'a SpanTree>,
    substitution: Substitution,
    /// The types of the binders around the current place, innermost last.
    environment: Vec<TypeId>,
    errors: Vec<InferError>,
}

impl Inference<'_> {
    /// Unifies the type of the term with the wanted one, or records why that fails.
    fn check(&mut self, term: TermId, node: Option<SpanNode>, wanted: TypeId, reason: Reason) {
        match self.store.get(term).clone() {
            Term::Lambda { annotation, body } => self.check_lambda(term, annotation, body, node, wanted, reason),
            Term::Seq(items) => {
                let origin = Reason::Item(self.word(node, "seq"));
                for (at, &item) in items.iter().enumerate() {
                    self.check(item, self.part(node, at), TypeId::MOTION, origin);
                }
                self.expect(term, node, TypeId::MOTION, wanted, reason);
            }
            Term::Repeat(body, count) => {
                let origin = self.word(node, "repeat");
                self.check(body, self.part(node, 0), TypeId::MOTION, Reason::Body(origin));
                self.check(count, self.part(node, 1), TypeId::NAT, Reason::Count(origin));
                self.expect(term, node, TypeId::MOTION, wanted, reason);
            }
            Term::Branch(condition, then, otherwise) => {
                let origin = self.word(node, "branch");
                self.check(condition, self.part(node, 0), TypeId::BOOL, Reason::Condition(origin));
                self.check(then, self.part(node, 1), TypeId::MOTION, Reason::Arm(origin));
                self.check(otherwise, self.part(node, 2), TypeId::MOTION, Reason::Arm(origin));
                self.expect(term, node, TypeId::MOTION, wanted, reason);
            }
            Term::Apply(..) => {
                if let Some(found) = self.application(term, node) {
                    self.expect(term, node, found, wanted, reason);
                }
            }
            Term::Variable(_) | Term::Constant(_) | Term::Literal(_) => {
                if let Some(found) = self.leaf(term, node) {
                    self.expect(term, node, found, wanted, reason);
                }
            }
        }
    }

    fn check_lambda(
        &mut self,
        term: TermId,
        annotation: Option<TypeId>,
        body: TermId,
        node: Option<SpanNode>,
        wanted: TypeId,
        reason: Reason,
    ) {
        let body_node = self.part(node, 0);
        let binder = self.part(node, 1);
        let annotated = annotation.map(|annotation| self.annotation(annotation, binder));
        let shape = self.substitution.shallow(self.store.types(), wanted);
        if let Type::Arrow(domain, codomain) = self.store.types().get(shape) {
            let mut parameter = domain;
            if let Some(annotated) = annotated {
                self.expect(term, binder.or(node), annotated, domain, Reason::Annotation(self.reason_span(reason)));
                parameter = annotated;
            }
            self.environment.push(parameter);
            self.check(body, body_node, codomain, reason);
            self.environment.pop();
            return;
        }
        let parameter = annotated.unwrap_or_else(|| self.fresh());
        let result = self.fresh();
        self.environment.push(parameter);
        self.check(body, body_node, result, Reason::Goal);
        self.environment.pop();
        match self.store.types_mut().arrow(parameter, result) {
            Ok(found) => self.expect(term, node, found, wanted, reason),
            Err(source) => self.too_large(source, node),
        }
    }

    /// The type of `f a₁ … aₙ`, or nothing after an error that leaves it unknown.
    fn application(&mut self, term: TermId, node: Option<SpanNode>) -> Option<TypeId> {
        let (head, arguments) = self.store.spine(term);
        // The span nodes of the arguments, outermost application first.
        let mut head_node = node;
        let mut nodes = Vec::with_capacity(arguments.len());
        for _ in &arguments {
            nodes.push(self.part(head_node, 1));
            head_node = self.part(head_node, 0);
        }
        nodes.reverse();
        let span = self.span(head_node);
        let found = match self.store.get(head) {
            Term::Variable(_) | Term::Constant(_) | Term::Literal(_) => self.leaf(head, head_node),
            _ => {
                let unknown = self.fresh();
                self.check(head, head_node, unknown, Reason::Goal);
                Some(unknown)
            }
        };
        // Arguments are looked at even if nothing is known about the function: they may have errors of their own.
        let mut function = found;
        for (position, &argument) in arguments.iter().enumerate() {
            let parts = match function {
                Some(id) => self.split(id, nodes[position]),
                None => Ok(None),
            };
            let Ok(parts) = parts else {
                let error = InferError::TooManyArguments {
                    function: self.describe(head),
                    taken: position,
                    arguments: arguments.len(),
                    span: self.span(nodes[position]),
                    origin: span,
                };
                self.error(error);
                function = None;
                let unknown = self.fresh();
                self.check(argument, nodes[position], unknown, Reason::Goal);
                continue;
            };
            let (domain, codomain) = match parts {
                Some((domain, codomain)) => (domain, Some(codomain)),
                None => (self.fresh(), None),
            };
            self.check(argument, nodes[position], domain, Reason::Argument { function: head, position, span });
            function = codomain;
        }
        function
    }

    /// Domain and codomain of a function type, made for an unknown type; `Err` for a type that is no function.
    fn split(&mut self, id: TypeId, node: Option<SpanNode>) -> Result<Option<(TypeId, TypeId)>, ()> {
        let shape = self.substitution.shallow(self.store.types(), id);
        match self.store.types().get(shape) {
            Type::Arrow(domain, codomain) => Ok(Some((domain, codomain))),
            Type::Base(_) => Err(()),
            Type::Variable(_) => {
                let (domain, codomain) = (self.fresh(), self.fresh());
                let unified = match self.store.types_mut().arrow(domain, codomain) {
                    Ok(arrow) => self.substitution.unify(self.store.types(), shape, arrow),
                    Err(source) => Err(source.into()),
                };
                // A fresh arrow always unifies with an unbound variable, except past the limits.
                if let Err(UnifyError::TooLarge(source)) = unified {
                    self.too_large(source, node);
                    return Ok(None);
                }
                Ok(Some((domain, codomain)))
            }
        }
    }

    fn leaf(&mut self, term: TermId, node: Option<SpanNode>) -> Option<TypeId> {
        let span = self.span(node);
        match *self.store.get(term) {
            Term::Variable(index) => {
                let depth = self.environment.len();
                let found = depth.checked_sub(index.0 as usize + 1).map(|at| self.environment[at]);
                if found.is_none() {
                    self.error(InferError::FreeVariable { index: index.0 - depth as u32, span });
                }
                found
            }
            Term::Literal(literal) => Some(literal.type_id()),
            Term::Constant(name) => {
                let Some(entry) = self.signature.get(name) else {
                    let store = &*self.store;
                    let known = self.signature.entries().iter().map(|entry| store.spelling(entry.name));
                    let name = store.spelling(name).to_string();
                    let help = suggest(&name, known, "declare it as a primitive or define it in the library");
                    self.error(InferError::UnknownConstant { name, help, span });
                    return None;
                };
                match self.substitution.instantiate(self.store.types_mut(), entry.scheme) {
                    Ok(id) => Some(id),
                    Err(source) => {
                        self.too_large(source, node);
                        None
                    }
                }
            }
            _ => None,
        }
    }

    fn expect(&mut self, term: TermId, node: Option<SpanNode>, found: TypeId, wanted: TypeId, reason: Reason) {
        let Err(error) = self.substitution.unify(self.store.types(), found, wanted) else {
            return;
        };
        let span = self.span(node);
        let origin = self.reason_span(reason).filter(|&origin| Some(origin) != span);
        let shown = match error {
            UnifyError::TooLarge(source) => Err(source),
            UnifyError::Mismatch { .. } | UnifyError::Infinite { .. } => self.show_pair(found, wanted),
        };
        let (found_text, wanted_text) = match shown {
            Ok(texts) => texts,
            Err(source) => return self.too_large(source, node),
        };
        if let UnifyError::Infinite { .. } = error {
            self.error(InferError::Infinite { found: found_text, wanted: wanted_text, span, origin });
            return;
        }
        let reason = self.explain(reason, &wanted_text);
        let help = self.mismatch_help(term, found, wanted);
        self.error(InferError::Mismatch { found: found_text, wanted: wanted_text, reason, help, span, origin });
    }

    /// A hint where the term is a function that lacks arguments.
    fn mismatch_help(&mut self, term: TermId, found: TypeId, wanted: TypeId) -> Option<String> {
        let types = self.store.types_mut();
        let found = self.substitution.resolve(types, found).ok()?;
        let wanted = self.substitution.resolve(types, wanted).ok()?;
        let (missing, result) = types.uncurry(found);
        let (wanted_arguments, _) = types.uncurry(wanted);
        if result != wanted || missing.is_empty() || !wanted_arguments.is_empty() {
            return None;
        }
        let missing: Vec<String> = missing.into_iter().map(|id| types.show(id)).collect();
        let what = self.describe(term);
        Some(format!("{what} lacks {} of its arguments: {}", missing.len(), missing.join(", ")))
    }

    /// Both types in concrete syntax, their unknown parts named by the same letters.
    fn show_pair(&mut self, left: TypeId, right: TypeId) -> Result<(String, String), TypeError> {
        let types = self.store.types_mut();
        let left = self.substitution.resolve(types, left)?;
        let right = self.substitution.resolve(types, right)?;
        let pair = types.arrow(left, right)?;
        let renamed = types.generalise(pair).body();
        match types.get(renamed) {
            Type::Arrow(left, right) => Ok((types.show(left), types.show(right))),
            _ => Ok((types.show(left), types.show(right))),
        }
    }

    fn explain(&self, reason: Reason, wanted: &str) -> String {
        match reason {
            Reason::Goal => "that is what was asked for".into(),
            Reason::Argument { function, position, .. } => {
                format!("{} takes {wanted} as argument {}", self.describe(function), position + 1)
            }
            Reason::Item(_) => "the items of `seq` are motions".into(),
            Reason::Body(_) => "`repeat` repeats a motion".into(),
            Reason::Count(_) => "`repeat` counts with a natural number".into(),
            Reason::Condition(_) => "`branch` decides by a condition".into(),
            Reason::Arm(_) => "both arms of `branch` are motions".into(),
            Reason::Annotation(_) => "the annotation disagrees with the place of the function".into(),
        }
    }

    fn reason_span(&self, reason: Reason) -> Option<Span> {
        match reason {
            Reason::Goal => None,
            Reason::Argument { span, .. }
            | Reason::Item(span)
            | Reason::Body(span)
            | Reason::Count(span)
            | Reason::Condition(span)
            | Reason::Arm(span)
            | Reason::Annotation(span) => span,
        }
    }

    fn describe(&self, term: TermId) -> String {
        let (head, arguments) = self.store.spine(term);
        match self.store.get(head) {
            Term::Constant(name) if arguments.is_empty() => format!("`{}`", self.store.spelling(*name)),
            Term::Constant(name) => format!("this call of `{}`", self.store.spelling(*name)),
            Term::Variable(_) => "the variable".into(),
            Term::Literal(_) => "a literal".into(),
            _ => "this function".into(),
        }
    }

    /// The type that an annotation or a goal wants: its variables are unknown types of this one place.
    fn annotation(&mut self, id: TypeId, node: Option<SpanNode>) -> TypeId {
        let types = self.store.types_mut();
        let scheme = types.generalise(id);
        match self.substitution.instantiate(types, scheme) {
            Ok(id) => id,
            Err(source) => {
                self.too_large(source, node);
                self.fresh()
            }
        }
    }

    fn fresh(&mut self) -> TypeId {
        self.substitution.fresh(self.store.types_mut())
    }

    fn error(&mut self, error: InferError) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        }
    }

    fn too_large(&mut self, source: TypeError, node: Option<SpanNode>) {
        let span = self.span(node);
        self.error(InferError::TooLarge { source, span });
    }

    fn part(&self, node: Option<SpanNode>, at: usize) -> Option<SpanNode> {
        self.spans?.child(node?, at)
    }

    fn span(&self, node: Option<SpanNode>) -> Option<Span> {
        Some(self.spans?.span(node?))
    }

    /// The span of the keyword that begins a part.
    fn word(&self, node: Option<SpanNode>, word: &str) -> Option<Span> {
        let span = self.span(node)?;
        Some(Span { start: span.start, end: (span.start + word.len()).min(span.end) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(source: &str) -> Result<String, Vec<String>> {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        match read(&mut store, &signature, source, None) {
            Ok(typed) => Ok(store.types().show_scheme(typed.scheme)),
            Err(report) => Err(report.errors.iter().map(ToString::to_string).collect()),
        }
    }

    #[test]
    fn principal_types() {
        for (source, expected) in [
            (r#"pick "soup""#, "Motion"),
            (r"\x. pick x", "Lang -> Motion"),
            (r"\x. x", "forall a. a -> a"),
            (r"\f. \g. \x. f (g x)", "forall a b c. (a -> b) -> (c -> a) -> c -> b"),
            (r"\m. \n. repeat(m, n)", "Motion -> Nat -> Motion"),
            (r"\c. \x. branch(c, pick x, seq[])", "Bool -> Lang -> Motion"),
            (r"\x:a. \y:a. x", "forall a b. a -> b -> a"),
            (r"(\x:a -> Pose. x) on", "Lang -> Pose"),
            ("seq[]", "Motion"),
            ("twist[0,0,0,0,0,1]", "Twist"),
        ] {
            assert_eq!(inferred(source).as_deref(), Ok(expected), "{source}");
        }
    }

    #[test]
    fn several_errors_are_found_in_one_run() {
        let found = inferred(r#"seq[pick left, place "a" "b", repeat(open "c", "d"), "e" 3]"#).unwrap_err();
        assert_eq!(
            found,
            [
                "found Pose, wanted Lang: `pick` takes Lang as argument 1",
                "found Lang, wanted Pose: `place` takes Pose as argument 2",
                "found Lang, wanted Nat: `repeat` counts with a natural number",
                "found 1 arguments to a literal, which takes 0",
            ]
        );
    }

    #[test]
    fn self_application_has_no_type() {
        let found = inferred(r"\x. x x").unwrap_err();
        assert_eq!(found, ["found a type that contains itself: a -> b would have to be a"]);
    }

    #[test]
    fn terms_without_spans_give_the_same_errors() {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        let left = store.call("left", &[]).unwrap();
        let wrong = store.call("pick", &[left]).unwrap();
        let errors = infer(&mut store, &signature, wrong).unwrap_err();
        assert!(matches!(&errors[..], [InferError::Mismatch { span: None, origin: None, .. }]));
    }

    #[test]
    fn exponential_types_are_refused() {
        let mut store = TermStore::new();
        let mut signature = Signature::standard(&mut store);
        let pair = read(&mut store, &signature, r"\x. \k. k x x", None).unwrap().term;
        signature.define(&mut store, "pair", pair).unwrap();
        let chain = format!(r"\x. {}x{}", "pair (".repeat(40), ")".repeat(40));
        let report = read(&mut store, &signature, &chain, None).unwrap_err();
        assert!(report.errors.iter().any(|error| error.to_string().contains("too large")), "{report:?}");
    }
}
