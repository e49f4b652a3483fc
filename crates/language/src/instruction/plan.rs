//! A program before it is a term: the concrete syntax as a tree.

use std::fmt;

use super::error::InstructionError;
use crate::signature::{GENERAL_PRIM_TYPES, Signature};
use crate::term::{TermId, TermStore};

/// A program in the vocabulary of the signature. [`Display`](fmt::Display) writes the concrete syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// The name of an object.
    Text(String),
    /// A primitive with its arguments.
    Call(&'static str, Vec<Plan>),
    /// One after the other.
    Seq(Vec<Plan>),
    /// The same several times.
    Repeat(Box<Plan>, u32),
}

impl Plan {
    /// One plan alone, or several in sequence.
    pub(super) fn seq(mut plans: Vec<Plan>) -> Plan {
        match plans.len() {
            1 => plans.swap_remove(0),
            _ => Plan::Seq(plans),
        }
    }

    /// The plan `times` times.
    pub(super) fn times(self, times: u32) -> Plan {
        if times == 1 { self } else { Plan::Repeat(Box::new(self), times) }
    }

    /// How many primitives and names it has.
    pub(super) fn size(&self) -> usize {
        match self {
            Plan::Text(_) => 1,
            Plan::Call(_, plans) | Plan::Seq(plans) => 1 + plans.iter().map(Plan::size).sum::<usize>(),
            Plan::Repeat(plan, _) => 1 + plan.size(),
        }
    }

    /// Whether it calls a primitive of general instructions, so that its signature needs
    /// [`declare_general`](Signature::declare_general).
    pub fn is_general(&self) -> bool {
        match self {
            Plan::Text(_) => false,
            Plan::Call(name, plans) => {
                GENERAL_PRIM_TYPES.iter().any(|(general, _, _)| general == name) || plans.iter().any(Plan::is_general)
            }
            Plan::Seq(plans) => plans.iter().any(Plan::is_general),
            Plan::Repeat(plan, _) => plan.is_general(),
        }
    }

    /// Builds the term.
    ///
    /// # Errors
    /// When the signature lacks a primitive, or the term is larger than the store allows.
    pub fn build(&self, store: &mut TermStore, signature: &Signature) -> Result<TermId, InstructionError> {
        let build_all = |plans: &[Plan], store: &mut TermStore| {
            plans.iter().map(|plan| plan.build(store, signature)).collect::<Result<Vec<_>, _>>()
        };
        Ok(match self {
            Plan::Text(name) => store.text(name),
            Plan::Call(name, arguments) => {
                if signature.find(store, name).is_none() {
                    return Err(InstructionError::NoPrimitive { name });
                }
                let arguments = build_all(arguments, store)?;
                store.call(name, &arguments)?
            }
            Plan::Seq(plans) => {
                let items = build_all(plans, store)?;
                store.seq(&items)?
            }
            Plan::Repeat(plan, times) => {
                let body = plan.build(store, signature)?;
                let count = store.natural(u64::from(*times));
                store.repeat(body, count)?
            }
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plan::Text(name) => {
                let mut quoted = String::new();
                crate::print::write_quoted(name, &mut quoted);
                f.write_str(&quoted)
            }
            Plan::Call(name, arguments) => {
                write!(f, "{name}")?;
                arguments.iter().try_for_each(|argument| match argument {
                    Plan::Call(_, inner) if !inner.is_empty() => write!(f, " ({argument})"),
                    _ => write!(f, " {argument}"),
                })
            }
            Plan::Seq(plans) => {
                write!(f, "seq[")?;
                for (index, plan) in plans.iter().enumerate() {
                    write!(f, "{}{plan}", if index == 0 { "" } else { ", " })?;
                }
                write!(f, "]")
            }
            Plan::Repeat(plan, times) => write!(f, "repeat({plan}, {times})"),
        }
    }
}
