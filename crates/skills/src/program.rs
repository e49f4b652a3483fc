//! Calls of skills as programs, and back: `seq[skill_3 twist[…] 12, skill_1 twist[…] 9]`.

use language::{Event, Literal, Name, Signature, Term, TermId, TermStore, Vector6, evaluate, print};

use crate::alphabet::{MAX_SKILL_STEPS, SkillAlphabet, SkillCall, SkillId};
use crate::error::SkillError;

impl SkillAlphabet {
    /// The program that makes these calls one after the other.
    pub fn program(&self, store: &mut TermStore, calls: &[SkillCall]) -> Result<TermId, SkillError> {
        let mut items = Vec::with_capacity(calls.len());
        for call in calls {
            let skills = self.skills.len();
            let skill =
                self.skills.get(call.skill.0).ok_or(SkillError::UnknownSkill { found: call.skill.0, skills })?;
            let twist = store.literal(Literal::Twist(Vector6::new(call.twist)?));
            let steps = store.natural(call.steps);
            items.push(store.call(&skill.name, &[twist, steps])?);
        }
        Ok(store.seq(&items)?)
    }

    /// The calls of a program without library calls: the inverse of [`SkillAlphabet::program`].
    pub fn calls(&self, store: &TermStore, program: TermId) -> Result<Vec<SkillCall>, SkillError> {
        let items = match store.get(program) {
            Term::Seq(items) => items.to_vec(),
            _ => vec![program],
        };
        items.into_iter().map(|item| self.read_call(store, item)).collect()
    }

    /// The calls that a program makes once its library entries, repetitions and decided branches are unfolded.
    pub fn calls_of_term(
        &self,
        store: &mut TermStore,
        signature: &Signature,
        term: TermId,
    ) -> Result<Vec<SkillCall>, SkillError> {
        let trace = evaluate(store, signature, term)?;
        self.calls_of_trace(store, &trace)
    }

    /// The calls of an evaluated program.
    pub fn calls_of_trace(&self, store: &TermStore, trace: &[Event]) -> Result<Vec<SkillCall>, SkillError> {
        let mut calls = Vec::with_capacity(trace.len());
        for event in trace {
            match event {
                Event::Call { term, .. } => calls.push(self.read_call(store, *term)?),
                Event::Branch { condition: term, .. } | Event::Repeat { count: term, .. } => {
                    return Err(SkillError::Undecided { found: print(store, *term) });
                }
            }
        }
        Ok(calls)
    }

    fn read_call(&self, store: &TermStore, term: TermId) -> Result<SkillCall, SkillError> {
        let not_skill = || SkillError::NotSkill { found: print(store, term) };
        let (head, arguments) = store.spine(term);
        let (&Term::Constant(name), &[twist, steps]) = (store.get(head), arguments.as_slice()) else {
            return Err(not_skill());
        };
        let skill = self.find(store, name).ok_or_else(not_skill)?;
        match (store.get(twist), store.get(steps)) {
            (&Term::Literal(Literal::Twist(twist)), &Term::Literal(Literal::Natural(steps))) => {
                if steps > MAX_SKILL_STEPS {
                    return Err(SkillError::TooLong { limit: MAX_SKILL_STEPS as usize });
                }
                Ok(SkillCall { skill, twist: twist.values(), steps })
            }
            _ => Err(not_skill()),
        }
    }

    fn find(&self, store: &TermStore, name: Name) -> Option<SkillId> {
        let word = store.spelling(name);
        self.skills.iter().position(|skill| skill.name == word).map(SkillId)
    }
}
