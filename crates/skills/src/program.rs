//! Calls of skills as programs, and back: `seq[skill_3 pose[…], skill_1 (by twist[…])]`.

use language::{Event, JointVector, Literal, Name, Signature, Term, TermId, TermStore, Vector6, evaluate, print};

use crate::alphabet::{BY, BY_JOINTS, SkillAlphabet, SkillId};
use crate::encode::{Argument, SkillCall};
use crate::error::SkillError;
use crate::layout::Space;

impl SkillAlphabet {
    /// The program that makes these calls one after the other.
    pub fn program(&self, store: &mut TermStore, calls: &[SkillCall]) -> Result<TermId, SkillError> {
        let mut items = Vec::with_capacity(calls.len());
        for call in calls {
            let skill = self.skill(call.skill)?;
            let arguments: Result<Vec<TermId>, SkillError> = skill
                .arguments
                .iter()
                .zip(&call.arguments)
                .map(|(group, argument)| written(store, &self.layout.groups[*group].space, argument))
                .collect();
            items.push(store.call(&skill.name, &arguments?)?);
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
        let &Term::Constant(name) = store.get(head) else { return Err(not_skill()) };
        let id = self.find(store, name).ok_or_else(not_skill)?;
        let groups = &self.skill(id)?.arguments;
        if groups.len() != arguments.len() {
            return Err(not_skill());
        }
        let read = |(group, argument): (&usize, &TermId)| {
            let group = &self.layout.groups[*group];
            let (argument, numbers) = read(store, *argument)?;
            // A pose is written with six numbers whatever it has.
            (numbers >= group.dims()).then(|| argument.cut(group.dims()))
        };
        let arguments: Option<Vec<Argument>> = groups.iter().zip(&arguments).map(read).collect();
        Ok(SkillCall { skill: id, arguments: arguments.ok_or_else(not_skill)? })
    }

    fn find(&self, store: &TermStore, name: Name) -> Option<SkillId> {
        let word = store.spelling(name);
        self.skills.iter().position(|skill| skill.name == word).map(SkillId)
    }
}

impl Argument {
    fn cut(self, numbers: usize) -> Argument {
        let cut = |mut values: Vec<f64>| {
            values.truncate(numbers);
            values
        };
        match self {
            Argument::To(values) => Argument::To(cut(values)),
            Argument::By(values) => Argument::By(cut(values)),
        }
    }
}

fn written(store: &mut TermStore, space: &Space, argument: &Argument) -> Result<TermId, SkillError> {
    let six = |values: &[f64]| {
        let mut six = [0.0; 6];
        six.iter_mut().zip(values).for_each(|(to, from)| *to = *from);
        Vector6::new(six)
    };
    Ok(match (space, argument) {
        (Space::Pose(_), Argument::To(target)) => store.literal(Literal::Pose(six(target)?)),
        (Space::Pose(_), Argument::By(distance)) => {
            let distance = store.literal(Literal::Twist(six(distance)?));
            store.call(BY, &[distance])?
        }
        (Space::Joints, Argument::To(target)) => store.literal(Literal::Joints(JointVector::new(target)?)),
        (Space::Joints, Argument::By(distance)) => {
            let distance = store.literal(Literal::Joints(JointVector::new(distance)?));
            store.call(BY_JOINTS, &[distance])?
        }
    })
}

/// An argument, and how many numbers it is written with.
fn read(store: &TermStore, term: TermId) -> Option<(Argument, usize)> {
    let numbers = |literal: &Term| match literal {
        Term::Literal(Literal::Pose(vector) | Literal::Twist(vector)) => Some(vector.values().to_vec()),
        Term::Literal(Literal::Joints(vector)) => Some(vector.values()),
        _ => None,
    };
    let (head, arguments) = store.spine(term);
    let (values, is_distance) = match (store.get(head), &arguments[..]) {
        (literal @ Term::Literal(_), []) => (numbers(literal)?, false),
        (Term::Constant(name), [distance]) if [BY, BY_JOINTS].contains(&store.spelling(*name)) => {
            (numbers(store.get(*distance))?, true)
        }
        _ => return None,
    };
    let count = values.len();
    Some((if is_distance { Argument::By(values) } else { Argument::To(values) }, count))
}
