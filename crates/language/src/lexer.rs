//! Source text to lexemes with spans. Bad characters become errors and are skipped, so that parsing goes on.

use crate::diagnostic::{Span, SyntaxError};

/// The words that cannot name a primitive, an entry or a variable.
pub const KEYWORDS: [&str; 9] = ["seq", "repeat", "branch", "true", "false", "pose", "twist", "wrench", "joints"];

/// One lexeme.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Lexeme {
    Identifier(String),
    /// A number as written: sign, fraction and exponent are optional.
    Number(String),
    Text(String),
    /// `$` and a natural number: a variable that the text does not bind.
    Free(String),
    Lambda,
    ForAll,
    Arrow,
    Dot,
    Colon,
    Comma,
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    End,
}

impl Lexeme {
    /// How messages name this lexeme.
    pub(crate) fn describe(&self) -> String {
        match self {
            Lexeme::Identifier(name) => format!("`{name}`"),
            Lexeme::Number(digits) => format!("the number `{digits}`"),
            Lexeme::Text(_) => "a quoted text".into(),
            Lexeme::Free(digits) => format!("the free variable `${digits}`"),
            Lexeme::Lambda => "`\\`".into(),
            Lexeme::ForAll => "`forall`".into(),
            Lexeme::Arrow => "`->`".into(),
            Lexeme::Dot => "`.`".into(),
            Lexeme::Colon => "`:`".into(),
            Lexeme::Comma => "`,`".into(),
            Lexeme::LeftParen => "`(`".into(),
            Lexeme::RightParen => "`)`".into(),
            Lexeme::LeftBracket => "`[`".into(),
            Lexeme::RightBracket => "`]`".into(),
            Lexeme::End => "the end of the text".into(),
        }
    }
}

/// Whether a word may name a primitive, a library entry or a bound variable.
pub fn is_identifier(word: &str) -> bool {
    let mut bytes = word.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(is_word_byte)
        && !KEYWORDS.contains(&word)
}

/// The lexemes of a text, ended by [`Lexeme::End`].
pub(crate) fn lex(source: &str, errors: &mut Vec<SyntaxError>) -> Vec<(Lexeme, Span)> {
    let mut lexer = Lexer { source, at: 0, errors };
    let mut lexemes = Vec::new();
    while let Some(found) = lexer.next() {
        lexemes.push(found);
    }
    // The end is shown at the last character, since there is nothing behind it to point at.
    let last = source.trim_end().char_indices().next_back();
    let span = last.map_or(Span::default(), |(at, symbol)| Span { start: at, end: at + symbol.len_utf8() });
    lexemes.push((Lexeme::End, span));
    lexemes
}

struct Lexer<'s, 'e> {
    source: &'s str,
    at: usize,
    errors: &'e mut Vec<SyntaxError>,
}

impl Lexer<'_, '_> {
    fn next(&mut self) -> Option<(Lexeme, Span)> {
        loop {
            let start = self.at;
            let symbol = self.peek()?;
            self.at += symbol.len_utf8();
            let lexeme = match symbol {
                _ if symbol.is_whitespace() => continue,
                '#' => {
                    self.skip_while(|c| c != '\n');
                    continue;
                }
                '\\' | 'λ' => Lexeme::Lambda,
                '∀' => Lexeme::ForAll,
                '→' => Lexeme::Arrow,
                '.' => Lexeme::Dot,
                ':' => Lexeme::Colon,
                ',' => Lexeme::Comma,
                '(' => Lexeme::LeftParen,
                ')' => Lexeme::RightParen,
                '[' => Lexeme::LeftBracket,
                ']' => Lexeme::RightBracket,
                '-' if self.peek() == Some('>') => {
                    self.at += 1;
                    Lexeme::Arrow
                }
                '-' if self.peek().is_some_and(|c| c.is_ascii_digit()) => self.number(start),
                '0'..='9' => self.number(start),
                '$' if self.peek().is_some_and(|c| c.is_ascii_digit()) => {
                    self.skip_while(|c| c.is_ascii_digit());
                    Lexeme::Free(self.source[start + 1..self.at].to_string())
                }
                '"' => match self.text(start) {
                    Some(text) => Lexeme::Text(text),
                    None => continue,
                },
                'a'..='z' | 'A'..='Z' | '_' => {
                    self.skip_while(|c| c.is_ascii() && is_word_byte(c as u8));
                    Lexeme::Identifier(self.source[start..self.at].to_string())
                }
                _ => {
                    self.errors.push(SyntaxError::UnknownCharacter { found: symbol, span: self.span(start) });
                    continue;
                }
            };
            return Some((lexeme, self.span(start)));
        }
    }

    fn number(&mut self, start: usize) -> Lexeme {
        self.skip_while(|c| c.is_ascii_digit());
        let mut ahead = self.source[self.at..].chars();
        if ahead.next() == Some('.') && ahead.next().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
            self.skip_while(|c| c.is_ascii_digit());
        }
        let mut ahead = self.source[self.at..].chars();
        if matches!(ahead.next(), Some('e' | 'E')) {
            let sign = matches!(ahead.clone().next(), Some('+' | '-'));
            if sign {
                ahead.next();
            }
            if ahead.next().is_some_and(|c| c.is_ascii_digit()) {
                self.at += if sign { 2 } else { 1 };
                self.skip_while(|c| c.is_ascii_digit());
            }
        }
        Lexeme::Number(self.source[start..self.at].to_string())
    }

    /// The rest of a quoted text. Errors inside do not end it, so that one bad escape is one error.
    fn text(&mut self, start: usize) -> Option<String> {
        let mut text = String::new();
        loop {
            let at = self.at;
            let Some(symbol) = self.peek().filter(|&c| c != '\n') else {
                self.errors.push(SyntaxError::UnterminatedText { span: self.span(start) });
                return None;
            };
            self.at += symbol.len_utf8();
            match symbol {
                '"' => return Some(text),
                '\\' => match self.escape() {
                    Some(escaped) => text.push(escaped),
                    None => self.errors.push(SyntaxError::BadEscape { span: self.span(at) }),
                },
                _ => text.push(symbol),
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        let symbol = self.peek().filter(|&c| c != '\n')?;
        self.at += symbol.len_utf8();
        match symbol {
            '"' | '\\' => Some(symbol),
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'u' => {
                let digits = self.source[self.at..].strip_prefix('{')?;
                let digits = &digits[..digits.find('}').filter(|&length| length <= 6)?];
                self.at += digits.len() + 2;
                u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)
            }
            _ => None,
        }
    }

    fn peek(&self) -> Option<char> {
        self.source[self.at..].chars().next()
    }

    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        while let Some(symbol) = self.peek().filter(|&c| wanted(c)) {
            self.at += symbol.len_utf8();
        }
    }

    fn span(&self, start: usize) -> Span {
        Span { start, end: self.at }
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'\''
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexemes(source: &str) -> (Vec<Lexeme>, usize) {
        let mut errors = Vec::new();
        let found = lex(source, &mut errors).into_iter().map(|(lexeme, _)| lexeme).collect();
        (found, errors.len())
    }

    #[test]
    fn both_spellings_are_the_same() {
        assert_eq!(lexemes("\\x:Lang->Pose."), lexemes("λx:Lang→Pose."));
    }

    #[test]
    fn a_dot_after_a_type_is_no_fraction() {
        let (found, errors) = lexemes("1.5 2.x -3e-2 e");
        assert_eq!(errors, 0);
        assert_eq!(found[0], Lexeme::Number("1.5".into()));
        assert_eq!(found[1..3], [Lexeme::Number("2".into()), Lexeme::Dot]);
        assert_eq!(found[4], Lexeme::Number("-3e-2".into()));
    }

    #[test]
    fn bad_input_is_reported_and_skipped() {
        let (found, errors) = lexemes("pick é \"a\\qb\" \"open");
        assert_eq!(errors, 3);
        assert_eq!(found[1], Lexeme::Text("ab".into()));
    }
}
