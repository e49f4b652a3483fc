//! What a program means: the sequence of primitive calls that it makes, with their arguments.
//!
//! ```text
//! ⟦prim v₁ … vₙ⟧ = [prim v₁ … vₙ]        ⟦seq[e₁, …, e_k]⟧ = ⟦e₁⟧ ++ … ++ ⟦e_k⟧
//! ⟦repeat(e, n)⟧ = ⟦e⟧ ++ … ++ ⟦e⟧        ⟦branch(c, e₁, e₂)⟧ = [if c then ⟦e₁⟧ else ⟦e₂⟧], or one arm if c is a literal
//! ```
//!
//! Library entries are unfolded and the term is β-normalised first, so arguments are closed normal terms: two values are
//! equal if and only if their ids are. (Arguments that are functions, which no default primitive takes, are compared up
//! to β, but neither up to η nor up to annotations.) The trace is symbolic – a condition that only the world can decide
//! stays in it with both arms – so meaning needs no oracle, and "rewriting preserves meaning" is a comparison of traces.
//!
//! Evaluation is total. Well-typed terms have a normal form; the bounds of [`Limits`] turn a normal form or a trace that
//! is too large into an error. Repeating the empty motion costs nothing, however often.

use miette::Diagnostic;
use thiserror::Error;

use crate::diagnostic::InferError;
use crate::infer::check;
use crate::print::print;
use crate::signature::Signature;
use crate::substitute::MAX_NORMALIZE_STEPS;
use crate::term::{Literal, MAX_SIZE, Name, Term, TermError, TermId, TermStore};
use crate::types::TypeId;

/// How much work an evaluation may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most events of the trace, those inside arms included.
    pub max_events: usize,
    /// The most steps of normalisation.
    pub max_steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_events: 100_000, max_steps: MAX_NORMALIZE_STEPS }
    }
}

/// One event of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A primitive is called.
    Call {
        /// The primitive.
        primitive: Name,
        /// Its arguments: closed normal terms.
        arguments: Vec<TermId>,
        /// The call as a term.
        term: TermId,
    },
    /// The world decides which arm happens.
    Branch {
        /// The condition: a closed normal term that is no literal.
        condition: TermId,
        /// What happens if it holds.
        then: Vec<Event>,
        /// What happens otherwise.
        otherwise: Vec<Event>,
    },
    /// The world decides how often the body happens. Needs a primitive of type Nat, of which there is none by default.
    Repeat {
        /// The count: a closed normal term that is no literal.
        count: TermId,
        /// What happens that often.
        body: Vec<Event>,
    },
}

/// Why a term has no trace.
#[derive(Clone, Debug, PartialEq, Error, Diagnostic)]
pub enum EvaluateError {
    /// The term is no program.
    #[error(
        "only closed programs of type Motion have a meaning: {}",
        .errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    IllTyped {
        /// Why.
        errors: Vec<InferError>,
    },
    /// The normal form is out of bounds.
    #[error("the normal form is out of bounds: {0}")]
    Normalize(#[from] TermError),
    /// The trace is out of bounds.
    #[error("this program makes more than {limit} calls; lower a count of `repeat`, or raise the limit")]
    TooManyEvents {
        /// The bound.
        limit: usize,
    },
}

/// The trace of a closed program, within the default limits.
pub fn evaluate(store: &mut TermStore, signature: &Signature, term: TermId) -> Result<Vec<Event>, EvaluateError> {
    evaluate_within(store, signature, term, Limits::default())
}

/// The trace of a closed program, within limits.
pub fn evaluate_within(
    store: &mut TermStore,
    signature: &Signature,
    term: TermId,
    limits: Limits,
) -> Result<Vec<Event>, EvaluateError> {
    check(store, signature, term, TypeId::MOTION).map_err(|errors| EvaluateError::IllTyped { errors })?;
    let unfolded = signature.inline(store, term, |_| true)?;
    let normal = store.beta_normalize(unfolded, MAX_SIZE, limits.max_steps)?;
    let mut events = Vec::new();
    Unroller { store, limit: limits.max_events, used: 0 }.unroll(normal, &mut events)?;
    Ok(events)
}

/// A trace as text, one event a line.
pub fn show_trace(store: &TermStore, events: &[Event]) -> String {
    let mut text = String::new();
    write_trace(store, events, 0, &mut text);
    text
}

struct Unroller<'s> {
    store: &'s TermStore,
    limit: usize,
    /// Events so far, those inside arms included.
    used: usize,
}

impl Unroller<'_> {
    /// Appends the trace of a normal term.
    fn unroll(&mut self, term: TermId, events: &mut Vec<Event>) -> Result<(), EvaluateError> {
        let store = self.store;
        match store.get(term) {
            Term::Seq(items) => {
                for &item in items.iter() {
                    self.unroll(item, events)?;
                }
            }
            Term::Repeat(body, count) => match *store.get(*count) {
                Term::Literal(Literal::Natural(0)) => {}
                Term::Literal(Literal::Natural(times)) => {
                    let (start, before) = (events.len(), self.used);
                    self.unroll(*body, events)?;
                    let (end, once) = (events.len(), self.used - before);
                    if once > 0 {
                        let more = usize::try_from(times - 1).ok().and_then(|times| once.checked_mul(times));
                        self.count(more.unwrap_or(usize::MAX))?;
                        (1..times).for_each(|_| events.extend_from_within(start..end));
                    }
                }
                _ => {
                    self.count(1)?;
                    let mut inner = Vec::new();
                    self.unroll(*body, &mut inner)?;
                    events.push(Event::Repeat { count: *count, body: inner });
                }
            },
            Term::Branch(condition, then, otherwise) => match *store.get(*condition) {
                Term::Literal(Literal::Boolean(true)) => self.unroll(*then, events)?,
                Term::Literal(Literal::Boolean(false)) => self.unroll(*otherwise, events)?,
                _ => {
                    self.count(1)?;
                    let (mut first, mut second) = (Vec::new(), Vec::new());
                    self.unroll(*then, &mut first)?;
                    self.unroll(*otherwise, &mut second)?;
                    events.push(Event::Branch { condition: *condition, then: first, otherwise: second });
                }
            },
            // A closed normal term of type Motion that is none of the above is a primitive with all its arguments.
            _ => {
                self.count(1)?;
                let (head, arguments) = store.spine(term);
                if let Term::Constant(primitive) = *store.get(head) {
                    events.push(Event::Call { primitive, arguments, term });
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, events: usize) -> Result<(), EvaluateError> {
        self.used = self.used.saturating_add(events);
        match self.used > self.limit {
            true => Err(EvaluateError::TooManyEvents { limit: self.limit }),
            false => Ok(()),
        }
    }
}

fn write_trace(store: &TermStore, events: &[Event], indent: usize, text: &mut String) {
    let line = |line: &str, text: &mut String| {
        text.extend(std::iter::repeat_n(' ', indent));
        text.push_str(line);
        text.push('\n');
    };
    for event in events {
        match event {
            Event::Call { term, .. } => line(&print(store, *term), text),
            Event::Branch { condition, then, otherwise } => {
                line(&format!("if {}", print(store, *condition)), text);
                write_trace(store, then, indent + 2, text);
                line("else", text);
                write_trace(store, otherwise, indent + 2, text);
            }
            Event::Repeat { count, body } => {
                line(&format!("{} times", print(store, *count)), text);
                write_trace(store, body, indent + 2, text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    fn trace(source: &str) -> Result<String, EvaluateError> {
        let mut store = TermStore::new();
        let mut signature = Signature::standard(&mut store);
        let body = parse(&mut store, &signature, r"\x. \p. seq[pick x, place x p]").unwrap().term;
        signature.define(&mut store, "f0", body).unwrap();
        let term = parse(&mut store, &signature, source).unwrap().term;
        let events = evaluate(&mut store, &signature, term)?;
        Ok(show_trace(&store, &events))
    }

    #[test]
    fn library_calls_unfold() {
        insta::assert_snapshot!(
            trace(r#"seq[open "drawer", f0 (at "bowl" left) (in "drawer"), repeat(close "drawer", 2)]"#).unwrap(),
            @r#"
        open "drawer"
        pick (at "bowl" left)
        place (at "bowl" left) (in "drawer")
        close "drawer"
        close "drawer"
        "#
        );
    }

    #[test]
    fn conditions_stay_in_the_trace_unless_they_are_known() {
        insta::assert_snapshot!(
            trace(r#"seq[branch(not (is_open "drawer"), open "drawer", seq[]), branch(false, pick "a", pick "b")]"#)
                .unwrap(),
            @r#"
        if not (is_open "drawer")
          open "drawer"
        else
        pick "b"
        "#
        );
    }

    #[test]
    fn huge_counts_are_an_error_unless_nothing_is_repeated() {
        let huge = u64::MAX;
        assert_eq!(trace(&format!("repeat(repeat(seq[], {huge}), {huge})")).as_deref(), Ok(""));
        assert_eq!(trace("repeat(pick \"a\", 0)").as_deref(), Ok(""));
        for source in [format!("repeat(move still, {huge})"), "repeat(repeat(move still, 100000), 2)".into()] {
            assert!(matches!(trace(&source), Err(EvaluateError::TooManyEvents { .. })), "{source}");
        }
        assert!(trace("repeat(move still, 100000)").is_ok());
    }

    #[test]
    fn only_motions_have_a_meaning() {
        assert!(matches!(trace(r"\x. pick x"), Err(EvaluateError::IllTyped { .. })));
        assert!(matches!(trace("$0"), Err(EvaluateError::IllTyped { .. })));
    }
}
