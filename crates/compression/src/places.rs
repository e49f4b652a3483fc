//! Which steps of a program's trace a call stands for.
//!
//! A program is evaluated with one entry left folded. Wherever a call of it is met, its body is unfolded over *names* for
//! its arguments, so that what the body does itself and what an argument does are told apart:
//!
//! ```text
//! f = \x. \m. seq[pick x, m, open x]         seq[close "a", f "b" (push "c" left), close "d"]
//!
//! step      0           1         2               3         4
//!           close "a"   pick "b"  push "c" left   open "b"  close "d"
//! f: steps              └───────────────────────────────┘
//! f: own                └───────┘                 └─────┘
//! ```
//!
//! Steps are numbered as [`language::evaluate`] numbers the events of the whole trace. What happens in the arms of a
//! condition that only the world can decide has no number of its own, and neither have calls there. A call inside `repeat` is
//! there once for each time, unless it does nothing.

use std::ops::Range;
use std::rc::Rc;

use language::{Literal, MAX_NORMALIZE_STEPS, MAX_SIZE, Name, Term, TermError, TermId, TermStore};
use rustc_hash::FxHashMap;

/// The most steps of a trace, and the most calls in it, that are looked at in one program.
const MAX_STEPS: usize = 100_000;

/// A call, as terms of the store.
#[derive(Clone, Debug)]
pub(crate) struct FoundCall {
    /// Its arguments, unfolded.
    pub(crate) arguments: Vec<TermId>,
    /// The whole call, unfolded.
    pub(crate) expansion: TermId,
    pub(crate) steps: Option<Range<usize>>,
    pub(crate) own: Vec<Range<usize>>,
}

/// An entry that stays folded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Folded {
    pub(crate) name: Name,
    pub(crate) arity: usize,
    /// Its definition: closed, normal, and without calls of entries.
    pub(crate) body: TermId,
}

/// Why the calls of a program were not all found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PlaceError {
    Term(TermError),
    TooMany,
}

impl From<TermError> for PlaceError {
    fn from(error: TermError) -> Self {
        Self::Term(error)
    }
}

/// The calls of an entry that a program makes, in order of their first step. `program` is normal, and calls no other entry.
/// Also says how many steps the trace has.
pub(crate) fn find_calls(
    store: &mut TermStore,
    entry: Folded,
    program: TermId,
) -> Result<(Vec<FoundCall>, usize), PlaceError> {
    let mut walk = Walk { store, entry, calls: Vec::new(), step: 0, used: 0, events: 0, undecided: 0 };
    walk.unroll(program, &None)?;
    Ok((walk.calls, walk.step))
}

/// What the names of arguments stand for inside an unfolded body.
struct Frame {
    outer: Env,
    /// How many frames there are, this one included.
    level: usize,
    names: Vec<Name>,
    /// Terms over the names of outer frames.
    values: Vec<TermId>,
    /// The number of the call.
    call: usize,
}

type Env = Option<Rc<Frame>>;

struct Walk<'s> {
    store: &'s mut TermStore,
    entry: Folded,
    calls: Vec<FoundCall>,
    /// The next step of the trace.
    step: usize,
    /// Steps and calls so far, those inside arms included.
    used: usize,
    /// Steps so far, those inside arms included.
    events: usize,
    /// How many undecided conditions are around.
    undecided: usize,
}

impl Walk<'_> {
    fn unroll(&mut self, term: TermId, env: &Env) -> Result<(), PlaceError> {
        match self.store.get(term).clone() {
            Term::Seq(items) => {
                for &item in items.iter() {
                    self.unroll(item, env)?;
                }
                Ok(())
            }
            Term::Repeat(body, count) => {
                let count = self.decide(count, env)?;
                if let Term::Literal(Literal::Natural(times)) = *self.store.get(count) {
                    for _ in 0..times {
                        let before = self.events;
                        self.unroll(body, env)?;
                        // Repeating what does nothing takes no time, however often.
                        if self.events == before {
                            break;
                        }
                    }
                    return Ok(());
                }
                self.undecided(&[body], env)
            }
            Term::Branch(condition, then, otherwise) => {
                let condition = self.decide(condition, env)?;
                match *self.store.get(condition) {
                    Term::Literal(Literal::Boolean(true)) => self.unroll(then, env),
                    Term::Literal(Literal::Boolean(false)) => self.unroll(otherwise, env),
                    _ => self.undecided(&[then, otherwise], env),
                }
            }
            _ => self.unroll_spine(term, env),
        }
    }

    fn unroll_spine(&mut self, term: TermId, env: &Env) -> Result<(), PlaceError> {
        let (head, arguments) = self.store.spine(term);
        if let Term::Constant(name) = *self.store.get(head) {
            if name == self.entry.name && arguments.len() >= self.entry.arity {
                return self.call(term, &arguments, env);
            }
            if let Some((value, outer)) = lookup(name, env) {
                let applied = self.store.apply_all(value, &arguments)?;
                let applied = self.normal(applied)?;
                // The value is of the place where the call stands, the arguments are of the body: they are closed under
                // names of this frame, so a value that is applied is resolved first.
                return match arguments.is_empty() {
                    true => self.unroll(applied, &outer),
                    false => {
                        let resolved = self.resolve(applied, env)?;
                        self.unroll(resolved, &outer)
                    }
                };
            }
        }
        // A primitive with all its arguments: one step.
        let resolved = self.resolve(term, env)?;
        let here = (self.undecided == 0).then_some(self.step);
        self.calls_within(resolved, here)?;
        self.pay()?;
        if let (Some(step), Some(frame)) = (here, env) {
            self.own(frame.call, step);
        }
        self.advance();
        Ok(())
    }

    fn call(&mut self, term: TermId, arguments: &[TermId], env: &Env) -> Result<(), PlaceError> {
        self.pay()?;
        let (values, rest) = arguments.split_at(self.entry.arity);
        let whole = self.resolve(term, env)?;
        let number = self.record(whole)?;
        let level = env.as_ref().map_or(0, |frame| frame.level) + 1;
        let mut names = Vec::with_capacity(values.len());
        let mut unfolded = self.entry.body;
        for index in 0..values.len() {
            // No entry or primitive is called so; the names are never seen.
            let name = self.store.name(&format!("argument'{index}'{level}"))?;
            names.push(name);
            let constant = self.store.constant(name);
            unfolded = self.store.apply(unfolded, constant)?;
        }
        // What comes after the arguments is written at the place of the call, so it stands in its terms.
        for &argument in rest {
            let argument = self.resolve(argument, env)?;
            unfolded = self.store.apply(unfolded, argument)?;
        }
        let unfolded = self.normal(unfolded)?;
        let start = self.step;
        let frame = Frame { outer: env.clone(), level, names, values: values.to_vec(), call: number };
        self.unroll(unfolded, &Some(Rc::new(frame)))?;
        if self.undecided == 0 {
            self.calls[number].steps = Some(start..self.step);
        }
        Ok(())
    }

    /// Arms of which the world decides: one step of the whole trace.
    fn undecided(&mut self, arms: &[TermId], env: &Env) -> Result<(), PlaceError> {
        self.pay()?;
        self.undecided += 1;
        for &arm in arms {
            self.unroll(arm, env)?;
        }
        self.undecided -= 1;
        if let (0, Some(frame)) = (self.undecided, env) {
            self.own(frame.call, self.step);
        }
        self.advance();
        Ok(())
    }

    /// A count or a condition, unfolded. Calls in it stand for no step.
    fn decide(&mut self, term: TermId, env: &Env) -> Result<TermId, PlaceError> {
        let resolved = self.resolve(term, env)?;
        self.calls_within(resolved, None)?;
        self.unfold(resolved)
    }

    /// Notes the calls inside the arguments of a primitive, each with the step that the primitive is.
    fn calls_within(&mut self, term: TermId, step: Option<usize>) -> Result<(), PlaceError> {
        if !self.store.constants(term).contains(&self.entry.name) {
            return Ok(());
        }
        let mut pending = vec![term];
        while let Some(term) = pending.pop() {
            let (head, arguments) = self.store.spine(term);
            if *self.store.get(head) == Term::Constant(self.entry.name) {
                self.pay()?;
                let number = self.record(term)?;
                self.calls[number].steps = step.map(|step| step..step + 1);
                self.calls[number].own = step.map(|step| step..step + 1).into_iter().collect();
                pending.extend(arguments.iter().rev());
            } else {
                pending.extend(self.store.get(term).children().iter().rev().map(|&(part, _)| part));
            }
        }
        Ok(())
    }

    /// Adds a call that is written in no frame's names.
    fn record(&mut self, call: TermId) -> Result<usize, PlaceError> {
        let (_, arguments) = self.store.spine(call);
        let mut unfolded = Vec::with_capacity(self.entry.arity);
        for &argument in arguments.iter().take(self.entry.arity) {
            unfolded.push(self.unfold(argument)?);
        }
        let expansion = self.unfold(call)?;
        self.calls.push(FoundCall { arguments: unfolded, expansion, steps: None, own: Vec::new() });
        Ok(self.calls.len() - 1)
    }

    fn own(&mut self, call: usize, step: usize) {
        match self.calls[call].own.last_mut() {
            Some(last) if last.end == step => last.end += 1,
            _ => self.calls[call].own.push(step..step + 1),
        }
    }

    fn advance(&mut self) {
        self.events += 1;
        if self.undecided == 0 {
            self.step += 1;
        }
    }

    fn pay(&mut self) -> Result<(), PlaceError> {
        self.used += 1;
        if self.used > MAX_STEPS { Err(PlaceError::TooMany) } else { Ok(()) }
    }

    /// The term with the names of all frames replaced by what they stand for.
    fn resolve(&mut self, term: TermId, env: &Env) -> Result<TermId, PlaceError> {
        let mut frames = Vec::new();
        let mut next = env;
        while let Some(frame) = next {
            frames.push(frame.clone());
            next = &frame.outer;
        }
        if frames.is_empty() {
            return Ok(term);
        }
        let mut replaced = FxHashMap::default();
        // From the outermost in: values are written in names of outer frames.
        for frame in frames.iter().rev() {
            for (&name, &value) in frame.names.iter().zip(&frame.values) {
                let value = replace(self.store, value, &mut replaced)?;
                replaced.insert(self.store.constant(name), value);
            }
        }
        let resolved = replace(self.store, term, &mut replaced)?;
        self.normal(resolved)
    }

    /// The term with the folded entry unfolded too.
    fn unfold(&mut self, term: TermId) -> Result<TermId, PlaceError> {
        let folded = self.store.constant(self.entry.name);
        let mut replaced = FxHashMap::from_iter([(folded, self.entry.body)]);
        let unfolded = replace(self.store, term, &mut replaced)?;
        self.normal(unfolded)
    }

    fn normal(&mut self, term: TermId) -> Result<TermId, PlaceError> {
        Ok(self.store.beta_normalize(term, MAX_SIZE, MAX_NORMALIZE_STEPS)?)
    }
}

/// What a name stands for, and where that was written.
fn lookup(name: Name, env: &Env) -> Option<(TermId, Env)> {
    let mut next = env;
    while let Some(frame) = next {
        if let Some(index) = frame.names.iter().position(|&known| known == name) {
            return Some((frame.values[index], frame.outer.clone()));
        }
        next = &frame.outer;
    }
    None
}

/// Replaces closed parts of a term, and remembers what it rebuilt.
fn replace(store: &mut TermStore, term: TermId, replaced: &mut FxHashMap<TermId, TermId>) -> Result<TermId, TermError> {
    if let Some(&known) = replaced.get(&term) {
        return Ok(known);
    }
    let mut parts = Vec::new();
    for (part, _) in store.get(term).children() {
        parts.push(replace(store, part, replaced)?);
    }
    let rebuilt = if parts.is_empty() { term } else { store.with_children(term, &parts)? };
    replaced.insert(term, rebuilt);
    Ok(rebuilt)
}

#[cfg(test)]
mod tests {
    use language::Signature;

    use super::*;

    /// The calls of `f` in a program: arguments, steps and own steps of each, as text. Steps are those of the evaluation.
    fn calls(body: &str, arity: usize, program: &str) -> String {
        let mut store = TermStore::new();
        let mut signature = Signature::standard(&mut store);
        let body = language::parse(&mut store, &signature, body).unwrap().term;
        let name = signature.define(&mut store, "f", body).unwrap();
        let program = language::parse(&mut store, &signature, program).unwrap().term;
        let (calls, steps) = find_calls(&mut store, Folded { name, arity, body }, program).unwrap();
        let trace = language::evaluate(&mut store, &signature, program).unwrap();
        assert_eq!(steps, trace.len());
        let mut text = Vec::new();
        for call in calls {
            if let (Some(steps), Ok(expanded)) =
                (call.steps.clone(), language::evaluate(&mut store, &signature, call.expansion))
            {
                assert_eq!(expanded, trace[steps]);
            }
            let arguments: Vec<String> = call.arguments.iter().map(|&id| language::print(&store, id)).collect();
            text.push(format!("{} {:?} {:?}", arguments.join(" "), call.steps, call.own));
        }
        text.join("; ")
    }

    #[test]
    fn what_an_argument_does_is_not_the_calls_own() {
        let body = r"\x. \m. seq[pick x, m, open x]";
        let program = r#"seq[close "a", f "b" (push "c" left), close "d"]"#;
        assert_eq!(calls(body, 2, program), r#""b" push "c" left Some(1..4) [1..2, 3..4]"#);
        // A call in an argument of another call.
        let nested = r#"f "a" (f "b" (close "c"))"#;
        assert_eq!(
            calls(body, 2, nested),
            r#""a" seq[pick "b", close "c", open "b"] Some(0..5) [0..1, 4..5]; "b" close "c" Some(1..4) [1..2, 3..4]"#
        );
        // An argument that is a function of what the body gives it.
        let applied = calls(r#"\g. seq[pick "a", g "b"]"#, 1, r#"f (\x. open x)"#);
        assert_eq!(applied, r#"\x. open x Some(0..2) [0..1]"#);
    }

    #[test]
    fn repetition_makes_a_place_of_every_time() {
        let found = calls(r"\x. seq[pick x, open x]", 1, r#"repeat(seq[close "a", f "b"], 2)"#);
        assert_eq!(found, r#""b" Some(1..3) [1..3]; "b" Some(4..6) [4..6]"#);
        assert_eq!(calls(r"\x. \n. repeat(pick x, n)", 2, r#"f "a" 3"#), r#""a" 3 Some(0..3) [0..3]"#);
        assert_eq!(calls(r"seq[]", 0, "repeat(f, 1000000000)"), " Some(0..0) []");
    }

    #[test]
    fn a_call_that_is_no_motion_has_the_step_of_its_primitive() {
        let found = calls(r"\x. at x left", 1, r#"seq[open "a", pick (f (f "b"))]"#);
        assert_eq!(found, r#"at "b" left Some(1..2) [1..2]; "b" Some(1..2) [1..2]"#);
    }

    #[test]
    fn what_the_world_decides_has_no_steps() {
        let found = calls(r"\x. pick x", 1, r#"seq[branch(is_open "a", f "b", seq[]), f "c"]"#);
        assert_eq!(found, r#""b" None []; "c" Some(1..2) [1..2]"#);
        let known = calls(r"\x. branch(true, pick x, open x)", 1, r#"f "a""#);
        assert_eq!(known, r#""a" Some(0..1) [0..1]"#);
    }
}
