//! Terms as sequences of tokens: preorder, in spine form.
//!
//! `place "bowl" (in "basket")` is `place/2 "bowl"/0 in/1 "basket"/0`: a head says how many arguments follow it, so no
//! token closes it. A sequence is open-ended and has a closing token. Every term has exactly one token sequence:
//! [`tokens_of`] and [`term_of`] are inverse to each other, and sequences that no term prints as – a `seq` of one item
//! or directly in a `seq`, an `Apply` of something that is a head – are refused.

use thiserror::Error;

use crate::term::{Index, Literal, MAX_DEPTH, Name, Term, TermError, TermId, TermStore};
use crate::types::TypeId;

/// What can be applied without brackets around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Head {
    /// A primitive or a library entry.
    Constant(Name),
    /// A bound variable.
    Variable(Index),
    /// A literal.
    Literal(Literal),
}

/// One token of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Token {
    /// A head, followed by its arguments.
    Head {
        /// The head.
        head: Head,
        /// How many arguments follow.
        args: u32,
    },
    /// A λ with the type of its variable, followed by its body.
    Lambda(Option<TypeId>),
    /// A λ that is applied, followed by the λ and the arguments.
    Apply {
        /// How many arguments follow the λ; at least one.
        args: u32,
    },
    /// A sequence, followed by its items and [`Token::EndSeq`].
    Seq,
    /// The end of a sequence.
    EndSeq,
    /// A repetition, followed by motion and count.
    Repeat,
    /// A choice, followed by condition and both arms.
    Branch,
}

/// Tokens that are no term.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TokenError {
    /// The tokens end inside the term.
    #[error("the tokens end inside a term; wanted at least one more")]
    Truncated,
    /// Tokens follow the term.
    #[error("the term ends before token {at}; remove the tokens from there on")]
    Trailing {
        /// The first token too many.
        at: usize,
    },
    /// A token that no term has at that place.
    #[error("token {at} is not canonical: {reason}")]
    NotCanonical {
        /// Its position.
        at: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// A term over the limits.
    #[error(transparent)]
    Term(#[from] TermError),
}

/// The tokens of a term.
pub fn tokens_of(store: &TermStore, term: TermId) -> Vec<Token> {
    let mut tokens = Vec::new();
    write(store, term, &mut tokens);
    tokens
}

/// The term of a token sequence.
pub fn term_of(store: &mut TermStore, tokens: &[Token]) -> Result<TermId, TokenError> {
    let mut reader = Reader { tokens, at: 0 };
    let term = reader.term(store, 1, Place::Anywhere)?;
    match reader.at < tokens.len() {
        true => Err(TokenError::Trailing { at: reader.at }),
        false => Ok(term),
    }
}

fn write(store: &TermStore, term: TermId, tokens: &mut Vec<Token>) {
    let (head, arguments) = store.spine(term);
    let args = arguments.len() as u32;
    match store.get(head) {
        Term::Variable(index) => tokens.push(Token::Head { head: Head::Variable(*index), args }),
        Term::Constant(name) => tokens.push(Token::Head { head: Head::Constant(*name), args }),
        Term::Literal(literal) => tokens.push(Token::Head { head: Head::Literal(*literal), args }),
        other => {
            if args > 0 {
                tokens.push(Token::Apply { args });
            }
            tokens.push(match other {
                Term::Lambda { annotation, .. } => Token::Lambda(*annotation),
                Term::Repeat(..) => Token::Repeat,
                Term::Branch(..) => Token::Branch,
                _ => Token::Seq,
            });
            for (child, _) in other.children() {
                write(store, child, tokens);
            }
            if let Term::Seq(_) = other {
                tokens.push(Token::EndSeq);
            }
        }
    }
    for argument in arguments {
        write(store, argument, tokens);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Anywhere,
    Item,
    Function,
}

struct Reader<'t> {
    tokens: &'t [Token],
    at: usize,
}

impl Reader<'_> {
    fn term(&mut self, store: &mut TermStore, level: u32, place: Place) -> Result<TermId, TokenError> {
        if level > MAX_DEPTH {
            return Err(TermError::TooDeep.into());
        }
        let at = self.at;
        let refuse = |reason| Err(TokenError::NotCanonical { at, reason });
        let token = *self.tokens.get(at).ok_or(TokenError::Truncated)?;
        self.at += 1;
        match (token, place) {
            (Token::Head { .. } | Token::Apply { .. }, Place::Function) => {
                refuse("a head takes its arguments itself, without `Apply`")
            }
            (Token::Head { head, args }, _) => {
                let head = match head {
                    Head::Constant(name) => store.constant(name),
                    Head::Variable(index) => store.variable(index),
                    Head::Literal(literal) => store.literal(literal),
                };
                self.arguments(store, head, args, level)
            }
            (Token::Apply { args: 0 }, _) => refuse("`Apply` has at least one argument"),
            (Token::Apply { args }, _) => {
                let function = self.term(store, level.saturating_add(args), Place::Function)?;
                self.arguments(store, function, args, level)
            }
            (Token::Lambda(annotation), _) => {
                let binder = store.name("x")?;
                let body = self.term(store, level + 1, Place::Anywhere)?;
                Ok(store.lambda(binder, annotation, body)?)
            }
            (Token::Seq, Place::Item) => refuse("a sequence directly in a sequence is one sequence"),
            (Token::Seq, _) => {
                let mut items = Vec::new();
                while self.tokens.get(self.at) != Some(&Token::EndSeq) {
                    items.push(self.term(store, level + 1, Place::Item)?);
                }
                if items.len() == 1 {
                    return Err(TokenError::NotCanonical { at: self.at, reason: "a sequence of one is that one" });
                }
                self.at += 1;
                Ok(store.seq(&items)?)
            }
            (Token::EndSeq, _) => refuse("no sequence is open here"),
            (Token::Repeat, _) => {
                let body = self.term(store, level + 1, Place::Anywhere)?;
                let count = self.term(store, level + 1, Place::Anywhere)?;
                Ok(store.repeat(body, count)?)
            }
            (Token::Branch, _) => {
                let condition = self.term(store, level + 1, Place::Anywhere)?;
                let then = self.term(store, level + 1, Place::Anywhere)?;
                let otherwise = self.term(store, level + 1, Place::Anywhere)?;
                Ok(store.branch(condition, then, otherwise)?)
            }
        }
    }

    fn arguments(
        &mut self,
        store: &mut TermStore,
        mut function: TermId,
        args: u32,
        level: u32,
    ) -> Result<TermId, TokenError> {
        for _ in 0..args {
            let argument = self.term(store, level.saturating_add(1), Place::Anywhere)?;
            function = store.apply(function, argument)?;
        }
        Ok(function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Generator;
    use crate::signature::Signature;

    #[test]
    fn tokens_and_terms_are_inverse() {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        for seed in 0..300 {
            let term = Generator::new(seed).term(&mut store, &signature, TypeId::MOTION, 40).unwrap().unwrap();
            let tokens = tokens_of(&store, term);
            assert_eq!(term_of(&mut store, &tokens), Ok(term));
            assert!(term_of(&mut store, &tokens[..tokens.len() - 1]).is_err());
        }
    }

    #[test]
    fn sequences_that_no_term_has_are_refused() {
        let mut store = TermStore::new();
        let one = Token::Head { head: Head::Literal(Literal::Natural(1)), args: 0 };
        for tokens in [
            vec![Token::Seq, one, Token::EndSeq],
            vec![Token::Seq, Token::Seq, Token::EndSeq, one, Token::EndSeq],
            vec![Token::Apply { args: 1 }, one, one],
            vec![Token::Apply { args: 0 }, Token::Lambda(None), one],
            vec![Token::EndSeq],
            vec![one, one],
            vec![],
            vec![Token::Lambda(None); 100_000],
            vec![Token::Head { head: Head::Variable(Index(u32::MAX)), args: u32::MAX }],
        ] {
            assert!(term_of(&mut store, &tokens).is_err());
        }
    }
}
