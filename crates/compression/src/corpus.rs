//! Corpora: programs as they were written, ready to be compressed.

use language::{Signature, TermStore};

use crate::factored::Factored;
use crate::grammar::{Grammar, Slot, SlotTypes};
use crate::sexpr::{self, Params, SexprError};
use crate::term::{TermId, Terms};
use crate::typed::Dictionary;

/// Programs to compress, with the syntax they are written in.
#[derive(Clone, Debug)]
pub struct Corpus {
    pub(crate) terms: Terms,
    pub(crate) programs: Vec<TermId>,
    pub(crate) syntax: Syntax,
}

/// The syntax of a corpus.
#[derive(Clone, Debug)]
pub(crate) enum Syntax {
    /// Stitch's s-expressions, without types.
    Sexpr,
    /// Programs of the motor language.
    Typed(Box<Dictionary>),
}

/// Why a corpus cannot be read: every program that is wrong, by its place in the corpus, from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.describe())]
pub struct CorpusError {
    /// What is wrong with which program.
    pub problems: Vec<(usize, ProgramProblem)>,
}

/// What is wrong with a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramProblem {
    /// It is no s-expression.
    #[error(transparent)]
    Sexpr(#[from] SexprError),
    /// It is no program of the motor language.
    #[error("the program does not parse: {0}")]
    Unreadable(String),
    /// It has free variables.
    #[error("the program has free variables, expected a closed program")]
    Open,
    /// It has no type.
    #[error("the program has no type: {0}")]
    Untyped(String),
}

impl CorpusError {
    fn describe(&self) -> String {
        let lines = self.problems.iter().map(|(index, problem)| format!("program {index}: {problem}"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Corpus {
    /// Reads Stitch's s-expressions. All mistakes are reported, not only the first.
    pub fn from_sexprs<S: AsRef<str>>(programs: &[S]) -> Result<Self, CorpusError> {
        let mut terms = Terms::new();
        let mut read = Vec::with_capacity(programs.len());
        let mut problems = Vec::new();
        for (index, program) in programs.iter().enumerate() {
            match sexpr::parse(&mut terms, program.as_ref(), Params::Refuse) {
                Ok(id) => read.push(id),
                Err(error) => problems.push((index, error.into())),
            }
        }
        if !problems.is_empty() {
            return Err(CorpusError { problems });
        }
        Ok(Self { terms, programs: read, syntax: Syntax::Sexpr })
    }

    /// Takes closed, well-typed programs of the motor language.
    pub fn from_programs(
        store: &TermStore,
        signature: &Signature,
        programs: &[language::TermId],
    ) -> Result<Self, CorpusError> {
        let mut dictionary = Dictionary::new(store.clone(), signature.clone());
        let mut terms = Terms::new();
        dictionary.reserve_names(&mut terms);
        let mut encoded = Vec::with_capacity(programs.len());
        let mut problems = Vec::new();
        let mut typed: rustc_hash::FxHashMap<language::TermId, bool> = Default::default();
        for (index, &program) in programs.iter().enumerate() {
            if !store.is_closed(program) {
                problems.push((index, ProgramProblem::Open));
                continue;
            }
            // Corpora repeat programs; one inference each will do.
            if typed.get(&program) != Some(&true) {
                if let Err(errors) = language::infer(&mut dictionary.store, signature, program) {
                    let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
                    problems.push((index, ProgramProblem::Untyped(messages.join("; "))));
                    continue;
                }
                typed.insert(program, true);
            }
            match dictionary.encode(store, &mut terms, program) {
                Ok(root) => encoded.push(root),
                Err(error) => problems.push((index, ProgramProblem::Untyped(error.to_string()))),
            }
        }
        if !problems.is_empty() {
            return Err(CorpusError { problems });
        }
        Ok(Self { terms, programs: encoded, syntax: Syntax::Typed(Box::new(dictionary)) })
    }

    /// The number of programs.
    pub fn len(&self) -> usize {
        self.programs.len()
    }

    /// Whether there is no program.
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// The number of distinct subterms of all programs together.
    pub fn distinct_terms(&self) -> usize {
        self.terms.len()
    }

    pub(crate) fn unfactored(&self) -> Factored {
        Factored::unfactored(self.terms.clone(), self.programs.clone())
    }

    pub(crate) fn grammar(&self) -> Grammar {
        let corpus = self.unfactored();
        match &self.syntax {
            Syntax::Typed(dictionary) => dictionary.grammar(&corpus),
            Syntax::Sexpr => {
                let slots = (0..self.terms.name_count()).map(|_| SlotTypes::unknown()).collect();
                Grammar::new(&corpus, slots, Slot::Any)
            }
        }
    }
}
