//! Terms to text with as few parentheses as the grammar allows, on one line or laid out to a width.
//!
//! `parse(print(t)) = t` and `parse(pretty(t, width)) = t` for every term whose constants are in the signature. Since
//! variables are indices, a binder may print under another name than it was written with: one that no constant of the
//! term and no binder around it has. A variable that nothing binds prints as `$k`.

use std::fmt::Write as _;

use rustc_hash::FxHashSet;

use crate::term::{Index, Literal, Term, TermId, TermStore};

/// The term on one line.
pub fn print(store: &TermStore, term: TermId) -> String {
    let mut printer = Printer::new(store, term);
    printer.flat(term, Place::Top, usize::MAX);
    printer.text
}

/// The term over several lines where it is wider than `width` characters.
pub fn pretty(store: &TermStore, term: TermId, width: usize) -> String {
    let mut printer = Printer::new(store, term);
    printer.broken(term, Place::Top, 0, width);
    printer.text
}

/// The names that [`print`] gives to the first `count` λ of a term, outermost first; fewer where the term has fewer.
pub fn binder_names(store: &TermStore, mut term: TermId, count: usize) -> Vec<String> {
    let mut printer = Printer::new(store, term);
    while let Term::Lambda { body, .. } = *store.get(term) {
        if printer.scope.len() == count {
            break;
        }
        printer.open_binder(term);
        term = body;
    }
    printer.scope
}

/// A literal in concrete syntax.
pub(crate) fn write_literal(store: &TermStore, literal: Literal, text: &mut String) {
    match literal {
        Literal::Natural(value) => drop(write!(text, "{value}")),
        Literal::Boolean(value) => drop(write!(text, "{value}")),
        Literal::Text(content) => write_quoted(store.content(content), text),
        Literal::Pose(vector) => write_vector("pose", &vector.values(), text),
        Literal::Twist(vector) => write_vector("twist", &vector.values(), text),
        Literal::Wrench(vector) => write_vector("wrench", &vector.values(), text),
        Literal::Joints(vector) => write_vector("joints", &vector.values(), text),
    }
}

/// What stands around a term decides whether it needs parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    Function,
    Argument,
}

struct Printer<'s> {
    store: &'s TermStore,
    /// The names that a binder may not take: those of the constants of the whole term and of the binders in scope.
    taken: FxHashSet<String>,
    /// The names of the binders around the current place, innermost last.
    scope: Vec<String>,
    text: String,
}

impl<'s> Printer<'s> {
    fn new(store: &'s TermStore, term: TermId) -> Printer<'s> {
        let taken = store.constants(term).into_iter().map(|name| store.spelling(name).to_string()).collect();
        Printer { store, taken, scope: Vec::new(), text: String::new() }
    }

    /// Writes the term on one line; stops and says no once the text is longer than `limit` bytes.
    fn flat(&mut self, term: TermId, place: Place, limit: usize) -> bool {
        if self.text.len() > limit {
            return false;
        }
        let store = self.store;
        let parenthesised = needs_parentheses(store.get(term), place);
        if parenthesised {
            self.text.push('(');
        }
        let fits = match store.get(term) {
            Term::Variable(index) => {
                self.variable(*index);
                true
            }
            Term::Constant(name) => {
                self.text.push_str(store.spelling(*name));
                true
            }
            Term::Literal(literal) => {
                write_literal(store, *literal, &mut self.text);
                true
            }
            Term::Lambda { body, .. } => {
                self.open_binder(term);
                self.text.push(' ');
                let fits = self.flat(*body, Place::Top, limit);
                self.close_binder();
                fits
            }
            Term::Apply(function, argument) => {
                self.flat(*function, Place::Function, limit) && {
                    self.text.push(' ');
                    self.flat(*argument, Place::Argument, limit)
                }
            }
            Term::Seq(items) => self.flat_list("seq[", items, "]", limit),
            Term::Repeat(body, count) => self.flat_list("repeat(", &[*body, *count], ")", limit),
            Term::Branch(condition, then, otherwise) => {
                self.flat_list("branch(", &[*condition, *then, *otherwise], ")", limit)
            }
        };
        if parenthesised {
            self.text.push(')');
        }
        fits && self.text.len() <= limit
    }

    fn flat_list(&mut self, open: &str, items: &[TermId], close: &str, limit: usize) -> bool {
        self.text.push_str(open);
        for (at, &item) in items.iter().enumerate() {
            if at > 0 {
                self.text.push_str(", ");
            }
            if !self.flat(item, Place::Top, limit) {
                return false;
            }
        }
        self.text.push_str(close);
        true
    }

    /// Writes the term on one line if it fits, and its parts on lines of their own if not.
    fn broken(&mut self, term: TermId, place: Place, indent: usize, width: usize) {
        let start = self.text.len();
        let used = self.text[start - self.column()..].chars().count();
        // One character is left for the comma or bracket that may follow.
        let room = width.saturating_sub(used + 1);
        if self.flat(term, place, start.saturating_add(room)) {
            return;
        }
        self.text.truncate(start);
        let store = self.store;
        let parenthesised = needs_parentheses(store.get(term), place);
        if parenthesised {
            self.text.push('(');
        }
        match store.get(term) {
            Term::Variable(_) | Term::Constant(_) | Term::Literal(_) => {
                self.flat(term, place, usize::MAX);
            }
            Term::Lambda { body, .. } => {
                self.open_binder(term);
                self.line(indent + 2);
                self.broken(*body, Place::Top, indent + 2, width);
                self.close_binder();
            }
            Term::Apply(..) => {
                let (head, arguments) = store.spine(term);
                self.broken(head, Place::Function, indent, width);
                for argument in arguments {
                    self.line(indent + 2);
                    self.broken(argument, Place::Argument, indent + 2, width);
                }
            }
            Term::Seq(items) => self.broken_list("seq[", items, "]", indent, width),
            Term::Repeat(body, count) => self.broken_list("repeat(", &[*body, *count], ")", indent, width),
            Term::Branch(condition, then, otherwise) => {
                self.broken_list("branch(", &[*condition, *then, *otherwise], ")", indent, width);
            }
        }
        if parenthesised {
            self.text.push(')');
        }
    }

    fn broken_list(&mut self, open: &str, items: &[TermId], close: &str, indent: usize, width: usize) {
        self.text.push_str(open);
        for (at, &item) in items.iter().enumerate() {
            self.line(indent + 2);
            self.broken(item, Place::Top, indent + 2, width);
            if at + 1 < items.len() {
                self.text.push(',');
            }
        }
        self.line(indent);
        self.text.push_str(close);
    }

    /// How many bytes the current line has.
    fn column(&self) -> usize {
        self.text.len() - self.text.rfind('\n').map_or(0, |at| at + 1)
    }

    fn line(&mut self, indent: usize) {
        self.text.push('\n');
        // Past this depth the indentation would be most of the text.
        self.text.extend(std::iter::repeat_n(' ', indent.min(80)));
    }

    fn variable(&mut self, index: Index) {
        let index = index.0 as usize;
        match self.scope.len().checked_sub(index + 1) {
            Some(at) => self.text.push_str(&self.scope[at]),
            None => drop(write!(self.text, "${}", index - self.scope.len())),
        }
    }

    /// Writes `\name:type.` and brings the name into scope.
    fn open_binder(&mut self, lambda: TermId) {
        let store = self.store;
        let written = store.binder(lambda).map_or("x", |name| store.spelling(name));
        let mut name = written.to_string();
        let mut suffix = 0;
        while self.taken.contains(&name) {
            suffix += 1;
            name = format!("{written}{suffix}");
        }
        let _ = write!(self.text, "\\{name}");
        if let Term::Lambda { annotation: Some(annotation), .. } = store.get(lambda) {
            let _ = write!(self.text, ":{}", store.types().show(*annotation));
        }
        self.text.push('.');
        self.taken.insert(name.clone());
        self.scope.push(name);
    }

    fn close_binder(&mut self) {
        if let Some(name) = self.scope.pop() {
            self.taken.remove(&name);
        }
    }
}

fn needs_parentheses(term: &Term, place: Place) -> bool {
    match term {
        Term::Lambda { .. } => place != Place::Top,
        Term::Apply(..) => place == Place::Argument,
        _ => false,
    }
}

pub(crate) fn write_quoted(content: &str, text: &mut String) {
    text.push('"');
    for symbol in content.chars() {
        match symbol {
            '"' | '\\' => text.extend(['\\', symbol]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            _ if symbol.is_control() => drop(write!(text, "\\u{{{:x}}}", u32::from(symbol))),
            _ => text.push(symbol),
        }
    }
    text.push('"');
}

fn write_vector(kind: &str, values: &[f64], text: &mut String) {
    text.push_str(kind);
    for (at, &value) in values.iter().enumerate() {
        text.push_str(if at == 0 { "[" } else { ", " });
        // Both forms are the shortest that read back as the same bits.
        let plain = value == 0.0 || (1e-5..1e15).contains(&value.abs());
        let _ = if plain { write!(text, "{value}") } else { write!(text, "{value:e}") };
    }
    text.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use crate::signature::Signature;

    fn parsed(source: &str) -> (TermStore, Signature, TermId) {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        let term = parse(&mut store, &signature, source).unwrap().term;
        (store, signature, term)
    }

    #[test]
    fn parentheses_are_minimal() {
        for source in [
            r#"seq[pick "a b", place "a" (in "c")]"#,
            r"\f:Lang -> Pose. \x. place x (f x)",
            r"(\x. pick x) $3",
            r"(\x. \y. stack x y) (part $0 $1)",
            r"goto pose[0.1, -0, 1e-7, 1e300, -123456.789, 5]",
            "repeat(branch(not true, seq[], reach left), 18446744073709551615)",
        ] {
            let (store, _, term) = parsed(source);
            assert_eq!(print(&store, term), source);
        }
    }

    #[test]
    fn names_that_would_capture_are_changed() {
        let (mut store, signature, term) = parsed(r"\x. \x. stack x $0");
        assert_eq!(print(&store, term), r"\x. \x1. stack x1 $0");
        assert_eq!(binder_names(&store, term, 9), ["x", "x1"]);
        assert_eq!(binder_names(&store, term, 1), ["x"]);
        // `\pick. pick x` in which the inner `pick` is the primitive.
        let pick = store.name("pick").unwrap();
        let (function, variable) = (store.constant(pick), store.variable(Index(0)));
        let body = store.apply(function, variable).unwrap();
        let term = store.lambda(pick, None, body).unwrap();
        let text = print(&store, term);
        assert_eq!(text, r"\pick1. pick pick1");
        assert_eq!(parse(&mut store, &signature, &text).unwrap().term, term);
        assert_eq!(binder_names(&store, term, 3), ["pick1"]);
    }

    #[test]
    fn wide_terms_are_laid_out() {
        let (store, _, term) =
            parsed(r#"(\x:Lang. seq[pick x, repeat(place x (between "the red bowl" "the plate"), 2), seq[]]) "cream""#);
        insta::assert_snapshot!(pretty(&store, term, 48), @r#"
        (\x:Lang.
          seq[
            pick x,
            repeat(
              place
                x
                (between "the red bowl" "the plate"),
              2
            )
          ])
          "cream"
        "#);
    }
}
