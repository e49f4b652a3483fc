//! S-expressions in Stitch's corpus syntax: `(f x y)` is curried application, `(lam e)` a λ, `$i` a de Bruijn variable,
//! `#i` a parameter of an abstraction (in bodies only), everything else a constant. `lam_T` and `$i_T` carry a tag T.
//!
//! Both directions are iterative: nesting costs heap, not stack.

use crate::term::{Term, TermId, Terms};

/// Why a text is not an s-expression. Offsets are bytes into the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SexprError {
    /// Nothing but white space.
    #[error("the program is empty, expected an s-expression such as `(f x)`")]
    Empty,
    /// `)` without `(`.
    #[error("`)` at byte {at} closes nothing; remove it or add a `(` before it")]
    Unopened {
        /// Where the `)` stands.
        at: usize,
    },
    /// `(` without `)`.
    #[error("`(` at byte {at} is never closed; add a `)`")]
    Unclosed {
        /// Where the innermost open `(` stands.
        at: usize,
    },
    /// `()`.
    #[error("`()` at byte {at} applies nothing, expected a function and its arguments")]
    Nothing {
        /// Where the `(` stands.
        at: usize,
    },
    /// A λ with no body or with several.
    #[error("`{word}` at byte {at} has {found} parts after it, expected one body, as in `(lam (f $0))`")]
    LambdaParts {
        /// The word, `lam` with its tag.
        word: String,
        /// Where it stands.
        at: usize,
        /// How many parts follow it.
        found: usize,
    },
    /// `lam` somewhere else than first in its parentheses.
    #[error("`{word}` at byte {at} stands alone, expected it first in parentheses, as in `(lam (f $0))`")]
    LambdaAlone {
        /// The word, `lam` with its tag.
        word: String,
        /// Where it stands.
        at: usize,
    },
    /// A variable or parameter whose index is not a number.
    #[error("`{word}` at byte {at} is not a variable, expected a number up to 65535 as in `$0` or `#0`")]
    Index {
        /// The word.
        word: String,
        /// Where it stands.
        at: usize,
    },
    /// A parameter in a program.
    #[error("`{word}` at byte {at} is a parameter, which only the body of an abstraction may use")]
    Param {
        /// The word.
        word: String,
        /// Where it stands.
        at: usize,
    },
    /// A variable that no λ binds.
    #[error("the program has a free variable `${index}`; every `$i` needs more than i `lam` around it")]
    Free {
        /// The largest free index, counted outside all λ.
        index: u32,
    },
    /// More after the expression.
    #[error("unexpected text at byte {at} after the end of the program; one string holds one program")]
    Trailing {
        /// Where the rest begins.
        at: usize,
    },
    /// A program too large for the costs to be counted.
    #[error("the program has more than {limit} words; split it")]
    TooLarge {
        /// The largest number of words.
        limit: usize,
    },
}

/// The most words one program may have, so that its cost fits 32 bits under every cost model.
pub const MAX_WORDS: usize = 1 << 20;

/// Whether `#i` may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Params {
    /// A program: no parameter.
    Refuse,
    /// The body of an abstraction.
    Allow,
}

/// Reads one closed s-expression.
pub fn parse(terms: &mut Terms, text: &str, params: Params) -> Result<TermId, SexprError> {
    struct Open {
        at: usize,
        lambda: Option<(u32, String, usize)>,
        parts: usize,
        value: Option<TermId>,
    }
    let mut stack: Vec<Open> = Vec::new();
    let mut done: Option<TermId> = None;
    let mut words = 0;
    let mut rest = Words { text, at: 0 };
    while let Some((at, word)) = rest.next() {
        if done.is_some() {
            return Err(SexprError::Trailing { at });
        }
        words += 1;
        if words > MAX_WORDS {
            return Err(SexprError::TooLarge { limit: MAX_WORDS });
        }
        let value = match word {
            "(" => {
                stack.push(Open { at, lambda: None, parts: 0, value: None });
                continue;
            }
            ")" => {
                let open = stack.pop().ok_or(SexprError::Unopened { at })?;
                match (open.lambda, open.value) {
                    (None, None) => return Err(SexprError::Nothing { at: open.at }),
                    (None, Some(value)) => value,
                    (Some((tag, _, _)), Some(body)) if open.parts == 1 => terms.add(Term::Lam(tag, body)),
                    (Some((_, word, at)), _) => {
                        return Err(SexprError::LambdaParts { word, at, found: open.parts });
                    }
                }
            }
            _ => match atom(terms, word, at, params)? {
                Atom::Term(id) => id,
                Atom::Lambda(tag) => match stack.last_mut() {
                    Some(open) if open.parts == 0 && open.lambda.is_none() => {
                        open.lambda = Some((tag, word.to_owned(), at));
                        continue;
                    }
                    _ => {
                        return Err(SexprError::LambdaAlone { word: word.to_owned(), at });
                    }
                },
            },
        };
        match stack.last_mut() {
            None => done = Some(value),
            Some(open) => {
                open.parts += 1;
                open.value = Some(match open.value {
                    None => value,
                    // The extra parts of a λ are counted, and refused when it closes.
                    Some(first) if open.lambda.is_some() => first,
                    Some(f) => terms.add(Term::App(f, value)),
                });
            }
        }
    }
    if let Some(open) = stack.last() {
        return Err(SexprError::Unclosed { at: open.at });
    }
    let id = done.ok_or(SexprError::Empty)?;
    match terms.open(id) {
        0 => Ok(id),
        open => Err(SexprError::Free { index: open - 1 }),
    }
}

/// Writes a term as an s-expression that [`parse`] reads back to the same term.
pub fn print(terms: &Terms, id: TermId) -> String {
    enum Piece {
        Term(TermId),
        Text(&'static str),
    }
    let mut out = String::new();
    let mut stack = vec![Piece::Term(id)];
    while let Some(piece) = stack.pop() {
        let id = match piece {
            Piece::Text(text) => {
                out.push_str(text);
                continue;
            }
            Piece::Term(id) => id,
        };
        match terms.get(id) {
            Term::Symbol(symbol) => out.push_str(terms.name(symbol)),
            Term::Var(index, 0) => out.push_str(&format!("${index}")),
            Term::Var(index, tag) => out.push_str(&format!("${index}_{tag}")),
            Term::Param(index) => out.push_str(&format!("#{index}")),
            Term::Lam(tag, body) => {
                out.push_str(&if tag == 0 { "(lam ".to_owned() } else { format!("(lam_{tag} ") });
                stack.push(Piece::Text(")"));
                stack.push(Piece::Term(body));
            }
            Term::App(..) => {
                let (head, arguments) = terms.spine(id);
                out.push('(');
                stack.push(Piece::Text(")"));
                for &argument in arguments.iter().rev() {
                    stack.push(Piece::Term(argument));
                    stack.push(Piece::Text(" "));
                }
                stack.push(Piece::Term(head));
            }
        }
    }
    out
}

enum Atom {
    Term(TermId),
    Lambda(u32),
}

fn atom(terms: &mut Terms, word: &str, at: usize, params: Params) -> Result<Atom, SexprError> {
    if word == "lam" || word == "lambda" {
        return Ok(Atom::Lambda(0));
    }
    if let Some(tag) = word.strip_prefix("lam_").and_then(number) {
        return Ok(Atom::Lambda(tag));
    }
    let bad_index = || SexprError::Index { word: word.to_owned(), at };
    if let Some(variable) = word.strip_prefix('$') {
        let (index, tag) = variable.split_once('_').unwrap_or((variable, "0"));
        let index = number(index).ok_or_else(bad_index)?;
        let tag = number(tag).ok_or_else(bad_index)?;
        return Ok(Atom::Term(terms.add(Term::Var(index, tag))));
    }
    if let Some(index) = word.strip_prefix('#') {
        let index = number(index).ok_or_else(bad_index)?;
        return match params {
            Params::Allow => Ok(Atom::Term(terms.add(Term::Param(index)))),
            Params::Refuse => Err(SexprError::Param { word: word.to_owned(), at }),
        };
    }
    let symbol = terms.symbol(word);
    Ok(Atom::Term(terms.add(Term::Symbol(symbol))))
}

/// A decimal number without sign or leading zeros, up to 65535.
fn number(text: &str) -> Option<u32> {
    let canonical = text == "0" || (!text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()));
    canonical.then(|| text.parse::<u16>().ok().map(u32::from)).flatten()
}

/// Splits a text into parentheses and words.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<(usize, &'a str)> {
        let rest = &self.text[self.at..];
        let start = self.at + (rest.len() - rest.trim_start().len());
        let rest = &self.text[start..];
        let length = match rest.chars().next()? {
            '(' | ')' => 1,
            _ => rest.find(|c: char| c.is_whitespace() || c == '(' || c == ')').unwrap_or(rest.len()),
        };
        self.at = start + length;
        Some((start, &rest[..length]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, SexprError> {
        let mut terms = Terms::new();
        parse(&mut terms, text, Params::Refuse).map(|id| print(&terms, id))
    }

    #[test]
    fn programs_round_trip() {
        for text in ["a", "(a b c)", "((l 1) t (r 6) t)", "(lam (f $0 (lam ($1 $0))))", "(a (lam_1 (a $0_1)))"] {
            let expected = text.replace("((l 1) t", "(l 1 t");
            assert_eq!(read(text).as_deref(), Ok(expected.as_str()));
        }
    }

    #[test]
    fn parentheses_around_a_head_are_currying() {
        assert_eq!(read("((f x) y)"), read("(f x y)"));
        assert_eq!(read("(((a)))"), Ok("a".into()));
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        assert_eq!(read("  "), Err(SexprError::Empty));
        assert_eq!(read("(a b"), Err(SexprError::Unclosed { at: 0 }));
        assert_eq!(read("(a b))"), Err(SexprError::Trailing { at: 5 }));
        assert_eq!(read(")"), Err(SexprError::Unopened { at: 0 }));
        assert_eq!(read("(a ())"), Err(SexprError::Nothing { at: 3 }));
        assert_eq!(read("(a $x)"), Err(SexprError::Index { word: "$x".into(), at: 3 }));
        assert_eq!(read("(a #0)"), Err(SexprError::Param { word: "#0".into(), at: 3 }));
        assert_eq!(read("(lam $1)"), Err(SexprError::Free { index: 0 }));
        assert_eq!(read("(lam a b)"), Err(SexprError::LambdaParts { word: "lam".into(), at: 1, found: 2 }));
        assert_eq!(read("(a lam)"), Err(SexprError::LambdaAlone { word: "lam".into(), at: 3 }));
    }

    #[test]
    fn deep_nesting_needs_no_stack() {
        let deep = "(f ".repeat(200_000) + "x" + &")".repeat(200_000);
        assert_eq!(read(&deep).map(|text| text.len()), Ok(deep.len()));
    }
}
