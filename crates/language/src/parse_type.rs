//! The concrete syntax of types, and the cursor over lexemes that both parsers share.
//!
//! ```text
//! scheme ::= [("forall" | "∀") variable… "."] type
//! type   ::= atom [("->" | "→") type]
//! atom   ::= base | variable | "(" type ")"
//! ```

use crate::diagnostic::{Report, Span, SyntaxError, suggest};
use crate::lexer::{Lexeme, lex};
use crate::types::{Base, Scheme, TypeError, TypeId, TypeStore, TypeVar};

/// The deepest nesting of brackets in a text; brackets that build nothing count too.
pub(crate) const MAX_NESTING: usize = 512;

/// The most errors that one report lists.
const MAX_ERRORS: usize = 32;

/// Parses a type.
pub fn parse_type(types: &mut TypeStore, source: &str) -> Result<TypeId, Report> {
    let mut cursor = Cursor::new(source);
    let parsed = cursor.parse_type(types);
    cursor.finish(source, parsed)
}

/// Parses a type scheme. Without a quantifier, all variables are quantified.
pub fn parse_scheme(types: &mut TypeStore, source: &str) -> Result<Scheme, Report> {
    let mut cursor = Cursor::new(source);
    let mut bound = None;
    let quantifier = matches!(cursor.peek(), Lexeme::Identifier(word) if word == "forall");
    if quantifier || *cursor.peek() == Lexeme::ForAll {
        let (_, origin) = cursor.advance();
        let mut names = Vec::new();
        while let Lexeme::Identifier(name) = cursor.peek().clone() {
            let (_, span) = cursor.advance();
            match TypeVar::from_name(&name) {
                Some(variable) => names.push(variable),
                None => cursor.error(SyntaxError::Unexpected {
                    found: format!("`{name}`"),
                    wanted: "a type variable".into(),
                    span,
                    origin: Some(origin),
                }),
            }
        }
        cursor.expect(&Lexeme::Dot, Some(origin));
        bound = Some(names);
    }
    let parsed = cursor.parse_type(types);
    if let (Some(bound), Some(id)) = (bound, parsed) {
        for variable in types.variables_of(id) {
            if !bound.contains(&variable) {
                let span = Span { start: 0, end: source.len() };
                cursor.errors.push(SyntaxError::UnboundTypeVariable { name: variable.name(), span });
            }
        }
    }
    let id = cursor.finish(source, parsed)?;
    Ok(types.generalise(id))
}

/// A position in a list of lexemes, and the errors so far.
pub(crate) struct Cursor {
    lexemes: Vec<(Lexeme, Span)>,
    at: usize,
    nesting: usize,
    errors: Vec<SyntaxError>,
    /// Where the last error was reported, so that its consequences at the same place are not.
    last_error: Option<usize>,
    gave_up: bool,
}

impl Cursor {
    pub(crate) fn new(source: &str) -> Cursor {
        let mut errors = Vec::new();
        let lexemes = lex(source, &mut errors);
        Cursor { lexemes, at: 0, nesting: 0, errors, last_error: None, gave_up: false }
    }

    pub(crate) fn peek(&self) -> &Lexeme {
        self.lexemes.get(self.at).map_or(&Lexeme::End, |(lexeme, _)| lexeme)
    }

    pub(crate) fn span(&self) -> Span {
        self.lexemes.get(self.at).or(self.lexemes.last()).map_or(Span::default(), |&(_, span)| span)
    }

    /// The end of what was read last.
    pub(crate) fn last_span(&self) -> Span {
        self.at.checked_sub(1).and_then(|at| self.lexemes.get(at)).map_or(Span::default(), |&(_, span)| span)
    }

    pub(crate) fn advance(&mut self) -> (Lexeme, Span) {
        let found = (self.peek().clone(), self.span());
        if found.0 != Lexeme::End {
            self.at += 1;
        }
        found
    }

    pub(crate) fn error(&mut self, error: SyntaxError) {
        if !self.gave_up && self.last_error != Some(self.at) {
            self.last_error = Some(self.at);
            self.errors.push(error);
        }
    }

    pub(crate) fn unexpected(&mut self, wanted: &str, origin: Option<Span>) {
        // A text that is not closed swallows what is missing here.
        let unclosed = |error: &SyntaxError| matches!(error, SyntaxError::UnterminatedText { .. });
        if *self.peek() == Lexeme::End && self.errors.iter().any(unclosed) {
            return;
        }
        let (found, span) = (self.peek().describe(), self.span());
        self.error(SyntaxError::Unexpected { found, wanted: wanted.to_string(), span, origin });
    }

    pub(crate) fn expect(&mut self, wanted: &Lexeme, origin: Option<Span>) -> Option<Span> {
        if self.peek() == wanted {
            return Some(self.advance().1);
        }
        self.unexpected(&wanted.describe(), origin);
        None
    }

    /// Goes one level deeper; past [`MAX_NESTING`] it reports that once and gives up on the rest of the text.
    pub(crate) fn enter(&mut self, too_deep: SyntaxError) -> bool {
        if self.nesting >= MAX_NESTING {
            self.error(too_deep);
            self.gave_up = true;
            self.at = self.lexemes.len().saturating_sub(1);
            return false;
        }
        self.nesting += 1;
        true
    }

    pub(crate) fn leave(&mut self) {
        self.nesting -= 1;
    }

    /// Skips to the next comma or closing bracket of the enclosing list.
    pub(crate) fn recover(&mut self) {
        let mut open = 0usize;
        loop {
            match self.peek() {
                Lexeme::End => return,
                Lexeme::Comma | Lexeme::RightParen | Lexeme::RightBracket if open == 0 => return,
                Lexeme::LeftParen | Lexeme::LeftBracket => open += 1,
                Lexeme::RightParen | Lexeme::RightBracket => open -= 1,
                _ => {}
            }
            self.at += 1;
        }
    }

    /// The parsed value if all of the text was read without an error.
    pub(crate) fn finish<T>(mut self, source: &str, parsed: Option<T>) -> Result<T, Report> {
        if *self.peek() != Lexeme::End {
            self.unexpected("the end of the text", None);
        }
        match parsed {
            Some(value) if self.errors.is_empty() => Ok(value),
            _ => {
                self.errors.truncate(MAX_ERRORS);
                Err(Report::new(source, self.errors))
            }
        }
    }

    pub(crate) fn parse_type(&mut self, types: &mut TypeStore) -> Option<TypeId> {
        let start = self.span();
        // Arrows to the right are a loop, so that only brackets nest.
        let mut parts = vec![self.parse_type_atom(types)];
        while *self.peek() == Lexeme::Arrow {
            self.advance();
            parts.push(self.parse_type_atom(types));
        }
        let mut domains = parts.into_iter().collect::<Option<Vec<TypeId>>>()?;
        let codomain = domains.pop()?;
        match types.arrows(&domains, codomain) {
            Ok(id) => Some(id),
            Err(source) => {
                let span = start.to(self.last_span());
                self.error(SyntaxError::Type { source, span });
                None
            }
        }
    }

    fn parse_type_atom(&mut self, types: &mut TypeStore) -> Option<TypeId> {
        match self.peek().clone() {
            Lexeme::LeftParen => {
                let (_, origin) = self.advance();
                let too_deep = SyntaxError::Type { source: TypeError::TooLarge, span: origin };
                if !self.enter(too_deep) {
                    return None;
                }
                let inner = self.parse_type(types);
                self.leave();
                self.expect(&Lexeme::RightParen, Some(origin))?;
                inner
            }
            Lexeme::Identifier(word) => {
                let span = self.span();
                let base = Base::ALL.iter().find(|base| base.name() == word).map(|base| base.id());
                let id = base.or_else(|| TypeVar::from_name(&word).map(|variable| types.variable(variable)));
                if id.is_none() {
                    let names = Base::ALL.map(Base::name);
                    let fallback =
                        format!("the types are {}, variables such as `a`, and arrows between them", names.join(", "));
                    self.error(SyntaxError::UnknownType { help: suggest(&word, names, &fallback), name: word, span });
                }
                self.advance();
                id
            }
            _ => {
                self.unexpected("a type", None);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_round_trip() {
        let mut types = TypeStore::new();
        for text in ["Lang -> Pose -> Motion", "(a -> Motion) -> a -> b1", "Twist", "((a -> b) -> c) -> (a -> b) -> c"]
        {
            let id = parse_type(&mut types, text).unwrap();
            assert_eq!(types.show(id), text);
        }
    }

    #[test]
    fn quantifiers_bind_every_variable() {
        let mut types = TypeStore::new();
        let spelled = parse_scheme(&mut types, "∀c. c → c").unwrap();
        assert_eq!(parse_scheme(&mut types, "forall a. a -> a"), Ok(spelled));
        assert_eq!(parse_scheme(&mut types, "z -> z"), Ok(spelled));
        assert!(parse_scheme(&mut types, "forall a. a -> b").is_err());
    }

    #[test]
    fn deep_brackets_are_one_error() {
        let mut types = TypeStore::new();
        let report = parse_type(&mut types, &"(".repeat(100_000)).unwrap_err();
        assert_eq!(report.errors.len(), 1);
        let long = vec!["Pose"; 100_000].join(" -> ");
        assert_eq!(parse_type(&mut types, &long).unwrap_err().errors.len(), 1);
    }
}
