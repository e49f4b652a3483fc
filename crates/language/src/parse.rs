//! The concrete syntax of terms, with recovery: one run reports every independent error.
//!
//! ```text
//! term   ::= ("\" | "λ") name [":" type] "." term | atom atom…
//! atom   ::= name | "$" natural | natural | "true" | "false" | text | vector | "(" term ")"
//!          | "seq" "[" term, … "]" | "repeat" "(" term "," term ")" | "branch" "(" term "," term "," term ")"
//! vector ::= ("pose" | "twist" | "wrench") "[" six numbers "]" | "joints" "[" one to eight numbers "]"
//! ```
//!
//! Application associates to the left, a λ reaches as far right as it can, `#` begins a comment, and lists may end with
//! a comma. A name means the innermost variable of that name, or else the primitive or library entry of the signature.
//! `$k` is variable k of those that the text does not bind: parts of terms can be written too, though only closed terms
//! have a type.

use crate::diagnostic::{Report, Span, SyntaxError, suggest};
use crate::lexer::{KEYWORDS, Lexeme};
use crate::parse_type::Cursor;
pub use crate::parse_type::{parse_scheme, parse_type};
use crate::signature::Signature;
use crate::spans::{SpanNode, SpanTree};
use crate::term::{Index, JointVector, Literal, Name, Term, TermError, TermId, TermStore, Vector6};

/// A parsed term and where its parts were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The term.
    pub term: TermId,
    /// Its spans.
    pub spans: SpanTree,
}

/// Parses a term. All names must be bound or in the signature; types are not checked.
pub fn parse(store: &mut TermStore, signature: &Signature, source: &str) -> Result<Parsed, Report> {
    let cursor = Cursor::new(source);
    let mut parser = Parser { cursor, store, signature, spans: SpanTree::default(), scope: Vec::new() };
    let parsed = parser.term();
    let Parser { cursor, mut spans, .. } = parser;
    let (term, root) = cursor.finish(source, parsed)?;
    spans.set_root(root);
    Ok(Parsed { term, spans })
}

type Written = (TermId, SpanNode);

struct Parser<'a> {
    cursor: Cursor,
    store: &'a mut TermStore,
    signature: &'a Signature,
    spans: SpanTree,
    /// Binders around the current place, innermost last.
    scope: Vec<Name>,
}

impl Parser<'_> {
    fn term(&mut self) -> Option<Written> {
        let too_deep = SyntaxError::Term { source: TermError::TooDeep, span: self.cursor.span() };
        if !self.cursor.enter(too_deep) {
            return None;
        }
        let parsed = match self.cursor.peek() {
            Lexeme::Lambda => self.lambda(),
            _ => self.application(),
        };
        self.cursor.leave();
        parsed
    }

    fn lambda(&mut self) -> Option<Written> {
        let (_, start) = self.cursor.advance();
        let binder_span = self.cursor.span();
        let binder = match self.cursor.peek().clone() {
            Lexeme::Identifier(word) if !KEYWORDS.contains(&word.as_str()) => {
                self.cursor.advance();
                self.store.name(&word).ok()
            }
            _ => {
                self.cursor.unexpected("the name of a variable", Some(start));
                None
            }
        };
        let mut annotation = None;
        let mut complete = binder.is_some();
        if *self.cursor.peek() == Lexeme::Colon {
            self.cursor.advance();
            annotation = self.cursor.parse_type(self.store.types_mut());
            complete &= annotation.is_some();
        }
        if self.cursor.expect(&Lexeme::Dot, Some(start)).is_none() {
            self.cursor.recover();
            return None;
        }
        // The body is read even if the head is bad, since it may hold errors of its own.
        self.scope.extend(binder);
        let body = self.term();
        if binder.is_some() {
            self.scope.pop();
        }
        let (binder, (body, body_node)) = (binder?, body?);
        let binder_node = self.spans.add(binder_span, Vec::new());
        let built = self.store.lambda(binder, annotation, body);
        complete.then(|| self.built(built, start, vec![body_node, binder_node]))?
    }

    fn application(&mut self) -> Option<Written> {
        let start = self.cursor.span();
        let mut result = self.atom();
        while self.starts_atom() {
            let argument = self.atom();
            result = match (result, argument) {
                (Some((function, function_node)), Some((argument, argument_node))) => {
                    let built = self.store.apply(function, argument);
                    self.built(built, start, vec![function_node, argument_node])
                }
                _ => None,
            };
        }
        result
    }

    fn starts_atom(&self) -> bool {
        matches!(
            self.cursor.peek(),
            Lexeme::Identifier(_) | Lexeme::Number(_) | Lexeme::Text(_) | Lexeme::Free(_) | Lexeme::LeftParen
        )
    }

    fn atom(&mut self) -> Option<Written> {
        match self.cursor.peek().clone() {
            Lexeme::LeftParen => {
                let (_, open) = self.cursor.advance();
                let inner = self.term();
                if *self.cursor.peek() != Lexeme::RightParen {
                    self.cursor.unexpected("`)`", Some(open));
                    self.cursor.recover();
                }
                if *self.cursor.peek() == Lexeme::RightParen {
                    self.cursor.advance();
                }
                let (term, node) = inner?;
                self.spans.widen(node, open.to(self.cursor.last_span()));
                Some((term, node))
            }
            Lexeme::Number(written) => {
                let (_, span) = self.cursor.advance();
                match written.parse() {
                    Ok(value) => Some(self.leaf(Literal::Natural(value), span)),
                    Err(_) => {
                        let wanted = "a natural number up to 18446744073709551615";
                        self.cursor.error(SyntaxError::BadNumber { written, wanted, span });
                        None
                    }
                }
            }
            Lexeme::Free(written) => {
                let (_, span) = self.cursor.advance();
                let index = written.parse::<u32>().ok().and_then(|index| index.checked_add(self.scope.len() as u32));
                let Some(index) = index else {
                    let wanted = "the index of a free variable";
                    self.cursor.error(SyntaxError::BadNumber { written, wanted, span });
                    return None;
                };
                Some((self.store.variable(Index(index)), self.spans.add(span, Vec::new())))
            }
            Lexeme::Text(content) => {
                let (_, span) = self.cursor.advance();
                let literal = self.store.text_literal(&content);
                Some(self.leaf(literal, span))
            }
            Lexeme::Identifier(word) => match word.as_str() {
                "true" | "false" => {
                    let (_, span) = self.cursor.advance();
                    Some(self.leaf(Literal::Boolean(word == "true"), span))
                }
                "seq" => self.sequence(),
                "repeat" => {
                    let (start, [body, count]) = self.arguments("`(` after `repeat`", "two parts of `repeat`")?;
                    let built = self.store.repeat(body.0, count.0);
                    self.built(built, start, vec![body.1, count.1])
                }
                "branch" => {
                    let (start, [condition, then, otherwise]) =
                        self.arguments("`(` after `branch`", "three parts of `branch`")?;
                    let built = self.store.branch(condition.0, then.0, otherwise.0);
                    self.built(built, start, vec![condition.1, then.1, otherwise.1])
                }
                "pose" => self.six("pose", Literal::Pose),
                "twist" => self.six("twist", Literal::Twist),
                "wrench" => self.six("wrench", Literal::Wrench),
                "joints" => {
                    let (values, span) = self.vector("`[` and the numbers of the joints")?;
                    self.vector_leaf(JointVector::new(&values).map(Literal::Joints), span)
                }
                _ => self.name(&word),
            },
            _ => {
                self.cursor.unexpected("a term", None);
                None
            }
        }
    }

    fn name(&mut self, word: &str) -> Option<Written> {
        let span = self.cursor.span();
        let name = self.store.find_name(word);
        let distance = self.scope.iter().rev().position(|&binder| Some(binder) == name);
        let term = match (distance, name.and_then(|name| self.signature.get(name))) {
            (Some(distance), _) => self.store.variable(Index(distance as u32)),
            (None, Some(entry)) => self.store.constant(entry.name),
            (None, None) => {
                let store = &*self.store;
                let known = self.scope.iter().copied().chain(self.signature.entries().iter().map(|entry| entry.name));
                let help = suggest(
                    word,
                    known.map(|name| store.spelling(name)),
                    "bind it with `\\`, define it in the library, or quote it if it is the name of an object",
                );
                self.cursor.error(SyntaxError::UnknownName { name: word.to_string(), help, span });
                self.cursor.advance();
                return None;
            }
        };
        self.cursor.advance();
        Some((term, self.spans.add(span, Vec::new())))
    }

    fn sequence(&mut self) -> Option<Written> {
        let (_, start) = self.cursor.advance();
        if *self.cursor.peek() != Lexeme::LeftBracket {
            self.cursor.unexpected("`[` after `seq`", Some(start));
            return None;
        }
        let items = self.list(&Lexeme::RightBracket, "`,` or `]`", Self::term);
        let items: Vec<Written> = items.into_iter().collect::<Option<_>>()?;
        let terms: Vec<TermId> = items.iter().map(|&(term, _)| term).collect();
        let built = self.store.seq(&terms);
        if let [(term, node)] = items[..] {
            return Some((term, node));
        }
        // The spans are flattened as the constructor flattens the terms.
        let mut nodes = Vec::new();
        for (term, node) in items {
            match self.store.get(term) {
                Term::Seq(_) => nodes.extend_from_slice(self.spans.children(node)),
                _ => nodes.push(node),
            }
        }
        match (&built, &nodes[..]) {
            (Ok(term), [node]) => Some((*term, *node)),
            _ => self.built(built, start, nodes),
        }
    }

    /// The bracketed parts of `repeat` and `branch`, exactly N of them.
    fn arguments<const N: usize>(&mut self, wanted_open: &str, wanted: &str) -> Option<(Span, [Written; N])> {
        let (_, start) = self.cursor.advance();
        if *self.cursor.peek() != Lexeme::LeftParen {
            self.cursor.unexpected(wanted_open, Some(start));
            return None;
        }
        let items = self.list(&Lexeme::RightParen, "`,` or `)`", Self::term);
        let found = items.len();
        if found != N {
            let span = start.to(self.cursor.last_span());
            self.cursor.error(SyntaxError::Unexpected {
                found: format!("{found} parts"),
                wanted: wanted.to_string(),
                span,
                origin: None,
            });
        }
        let items: Vec<Written> = items.into_iter().collect::<Option<_>>()?;
        Some((start, items.try_into().ok()?))
    }

    /// The numbers of a vector, whose keyword is next.
    fn vector(&mut self, wanted: &str) -> Option<(Vec<f64>, Span)> {
        let (_, start) = self.cursor.advance();
        if *self.cursor.peek() != Lexeme::LeftBracket {
            self.cursor.unexpected(wanted, Some(start));
            return None;
        }
        let numbers = self.list(&Lexeme::RightBracket, "`,` or `]`", Self::number);
        let span = start.to(self.cursor.last_span());
        Some((numbers.into_iter().collect::<Option<_>>()?, span))
    }

    fn six(&mut self, kind: &'static str, literal: impl Fn(Vector6) -> Literal) -> Option<Written> {
        let (values, span) = self.vector("`[` and six numbers")?;
        let found = values.len();
        let Ok(values) = <[f64; 6]>::try_from(values) else {
            self.cursor.error(SyntaxError::WrongLength { kind, found, span });
            return None;
        };
        self.vector_leaf(Vector6::new(values).map(literal), span)
    }

    fn vector_leaf(&mut self, literal: Result<Literal, TermError>, span: Span) -> Option<Written> {
        match literal {
            Ok(literal) => Some(self.leaf(literal, span)),
            Err(source) => {
                self.cursor.error(SyntaxError::Term { source, span });
                None
            }
        }
    }

    fn number(&mut self) -> Option<f64> {
        let Lexeme::Number(written) = self.cursor.peek().clone() else {
            self.cursor.unexpected("a number", None);
            return None;
        };
        let (_, span) = self.cursor.advance();
        let value = written.parse().ok().filter(|value: &f64| value.is_finite());
        if value.is_none() {
            self.cursor.error(SyntaxError::BadNumber { written, wanted: "a finite number", span });
        }
        value
    }

    /// Items between commas, from the opening to the closing bracket. An item that is bad is skipped and is `None`.
    fn list<T>(&mut self, close: &Lexeme, wanted: &str, item: impl Fn(&mut Self) -> Option<T>) -> Vec<Option<T>> {
        let (_, open) = self.cursor.advance();
        let mut items = Vec::new();
        while self.cursor.peek() != close && *self.cursor.peek() != Lexeme::End {
            let parsed = item(self);
            items.push(parsed);
            if self.cursor.peek() != close && *self.cursor.peek() != Lexeme::Comma {
                self.cursor.unexpected(wanted, Some(open));
                self.cursor.recover();
            }
            match self.cursor.peek() {
                Lexeme::Comma => {
                    self.cursor.advance();
                }
                _ => break,
            }
        }
        match self.cursor.peek() == close {
            true => {
                self.cursor.advance();
            }
            false => {
                // The list is not closed: what follows belongs to someone further out.
                self.cursor.unexpected(wanted, Some(open));
                items.push(None);
            }
        }
        items
    }

    fn leaf(&mut self, literal: Literal, span: Span) -> Written {
        (self.store.literal(literal), self.spans.add(span, Vec::new()))
    }

    fn built(&mut self, built: Result<TermId, TermError>, start: Span, parts: Vec<SpanNode>) -> Option<Written> {
        let span = start.to(self.cursor.last_span());
        match built {
            Ok(term) => Some((term, self.spans.add(span, parts))),
            Err(source) => {
                self.cursor.error(SyntaxError::Term { source, span });
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(source: &str) -> Vec<String> {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        match parse(&mut store, &signature, source) {
            Ok(_) => Vec::new(),
            Err(report) => report.errors.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn the_examples_of_the_specification_parse() {
        for source in [
            r#"seq[pick "alphabet soup", place "alphabet soup" (in "basket")]"#,
            r"\x:Lang. pick x",
            "λx:Lang. pick x",
            "repeat(move x_pos, 3) # five steps\n",
            r#"branch(is_open "drawer", seq[], open "drawer",)"#,
            "goto pose[0.1, -0.2, 0.3, 0, 1e-3, -0]",
            "seq[grip grip_close, press wrench[0,0,-5,0,0,0], move twist[0,0,1,0,0,0],]",
        ] {
            assert_eq!(errors(source), Vec::<String>::new(), "{source}");
        }
    }

    #[test]
    fn several_errors_are_reported_at_once() {
        let found = errors("seq[pikc \"a\", place \"b\" (inn \"c\"), repeat(open \"d\"), goto pose[1, 2]]");
        assert_eq!(
            found,
            [
                "nothing is called `pikc`",
                "nothing is called `inn`",
                "found 1 parts, wanted two parts of `repeat`",
                "this pose has 2 numbers, wanted 6",
            ]
        );
    }

    #[test]
    fn an_open_bracket_is_one_error() {
        assert_eq!(errors("seq[pick \"a\", (open \"b\""), ["found the end of the text, wanted `)`"]);
        assert_eq!(errors("seq[(pick \"a\", open \"b\"]").len(), 1);
    }

    #[test]
    fn nested_sequences_have_the_spans_of_their_flat_form() {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        let source = "seq[pick \"a\", seq[open \"b\", close \"c\"], seq[]]";
        let Parsed { term, spans } = parse(&mut store, &signature, source).unwrap();
        let root = spans.root().unwrap();
        let written: Vec<&str> =
            spans.children(root).iter().map(|&node| spans.span(node)).map(|s| &source[s.start..s.end]).collect();
        assert_eq!(store.get(term).children().len(), 3);
        assert_eq!(written, ["pick \"a\"", "open \"b\"", "close \"c\""]);
    }

    #[test]
    fn deep_nesting_is_one_error() {
        for open in ["(", "seq[", "\\x.", "repeat(", "pick (", "branch(true,"] {
            assert_eq!(errors(&open.repeat(100_000)).len(), 1, "{open}");
        }
        assert_eq!(errors(&format!("pick{}", " \"a\"".repeat(100_000))).len(), 1);
    }
}
