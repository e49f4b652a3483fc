//! Text to words: the only place that looks at characters.
//!
//! An instruction may come from a person (`Put the bowl on the plate.`) or from a file name
//! (`KITCHEN_SCENE3_turn_on_the_stove_demo`), so case, underscores, hyphens, doubled spaces, quotes and a scene prefix
//! carry no meaning. Commas and full stops survive as [`Token::Stop`], because they end a clause.

use super::error::InstructionError;
use super::lexicon;
use crate::diagnostic::Span;

/// Longest accepted text in bytes.
pub const MAX_BYTES: usize = 4096;
/// Largest accepted number of words.
pub const MAX_WORDS: usize = 256;

/// What a stretch of text is to the grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A word, in lower case.
    Word(String),
    /// The genitive `'s`.
    Genitive,
    /// A comma, full stop, semicolon or the like.
    Stop,
}

/// A token and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spanned {
    pub(super) token: Token,
    pub(super) span: Span,
}

/// Splits `text` into tokens without its scene prefix, its `demo` suffix and its outer punctuation.
pub(super) fn split(text: &str) -> Result<Vec<Spanned>, InstructionError> {
    if text.len() > MAX_BYTES {
        return Err(InstructionError::TooLong { found: text.len(), limit: MAX_BYTES, unit: "bytes" });
    }
    let mut tokens = tokens(text);
    let from_file_name = text.contains('_');
    let is_word = |t: &Spanned, word: &str| matches!(&t.token, Token::Word(w) if w == word);
    while matches!(tokens.last(), Some(t) if t.token == Token::Stop || (from_file_name && is_word(t, "demo"))) {
        tokens.pop();
    }
    let scene = tokens.iter().take(4).position(|t| matches!(&t.token, Token::Word(w) if is_scene_number(w)));
    let start = scene.map_or(0, |at| at + 1);
    let stops = tokens[start..].iter().take_while(|t| t.token == Token::Stop).count();
    tokens.drain(..start + stops);
    if tokens.is_empty() {
        return Err(InstructionError::Empty);
    }
    if tokens.len() > MAX_WORDS {
        return Err(InstructionError::TooLong { found: tokens.len(), limit: MAX_WORDS, unit: "words" });
    }
    Ok(tokens)
}

fn tokens(text: &str) -> Vec<Spanned> {
    let mut tokens: Vec<Spanned> = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        let mut end = start + c.len_utf8();
        let token = if c.is_alphanumeric() {
            while let Some(&(at, next)) = chars.peek().filter(|(_, next)| next.is_alphanumeric()) {
                end = at + next.len_utf8();
                chars.next();
            }
            Token::Word(text[start..end].to_lowercase())
        } else if matches!(c, '\'' | '’') {
            let rest = &text[end..];
            let contracted = rest.starts_with(['t', 'T']) && !rest[1..].starts_with(char::is_alphanumeric);
            if let Some(Spanned { token: Token::Word(word), span }) = tokens.last_mut().filter(|_| contracted)
                && span.end == start
                && word.ends_with('n')
            {
                // `don't` is `do not`; the `n` of `can't` belongs to both.
                if word != "can" {
                    word.pop();
                }
                chars.next();
                end += 1;
                tokens.push(Spanned { token: Token::Word("not".to_owned()), span: Span { start, end } });
                continue;
            }
            let genitive = rest.starts_with(['s', 'S']) && !rest[1..].starts_with(char::is_alphanumeric);
            if !genitive || !matches!(tokens.last(), Some(t) if t.span.end == start) {
                continue;
            }
            chars.next();
            end += 1;
            Token::Genitive
        } else if c.is_whitespace() || c.is_control() || "_-–—\"“”‘`()[]{}*".contains(c) {
            continue;
        } else if ",.;:!?".contains(c) {
            if matches!(tokens.last(), Some(t) if t.token == Token::Stop) {
                continue;
            }
            Token::Stop
        } else {
            Token::Word(c.to_string())
        };
        tokens.push(Spanned { token, span: Span { start, end } });
    }
    tokens
}

/// `scene3` as in `KITCHEN_SCENE3_…`.
fn is_scene_number(word: &str) -> bool {
    word.strip_prefix("scene").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// The singular of a regular or listed English plural that the lexicon knows as a noun.
pub(super) fn singular(word: &str) -> Option<String> {
    let known = |stem: String| lexicon::noun(&stem).is_some().then_some(stem);
    if let Some(stem) = lexicon::irregular_plural(word) {
        return Some(stem.to_owned());
    }
    let stem = word.strip_suffix('s').filter(|stem| stem.len() > 1)?;
    known(stem.to_owned())
        .or_else(|| known(stem.strip_suffix('e')?.to_owned()))
        .or_else(|| known(format!("{}y", stem.strip_suffix("ie")?)))
        .or_else(|| known(format!("{}f", stem.strip_suffix("ve")?)))
        .or_else(|| known(format!("{}fe", stem.strip_suffix("ve")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let shown = |t: Spanned| match t.token {
            Token::Word(word) => word,
            Token::Genitive => "'s".to_owned(),
            Token::Stop => ",".to_owned(),
        };
        split(text).unwrap().into_iter().map(shown).collect()
    }

    #[test]
    fn file_names_lose_scene_and_suffix() {
        assert_eq!(words("KITCHEN_SCENE3_turn_on_the_stove_demo"), ["turn", "on", "the", "stove"]);
        assert_eq!(words("LIVING_ROOM_SCENE12_close_it"), ["close", "it"]);
        assert_eq!(words("show the demo"), ["show", "the", "demo"]);
    }

    #[test]
    fn punctuation_separates_clauses_and_is_dropped_outside() {
        assert_eq!(
            words("  Open the  drawer, then  CLOSE it.!"),
            ["open", "the", "drawer", ",", "then", "close", "it"]
        );
        assert_eq!(words("the cabinet's 'left' door"), ["the", "cabinet", "'s", "left", "door"]);
    }

    #[test]
    fn plurals_follow_the_rules() {
        let cases =
            [("pots", "pot"), ("boxes", "box"), ("knives", "knife"), ("shelves", "shelf"), ("cherries", "cherry")];
        for (plural, stem) in cases {
            assert_eq!(singular(plural).as_deref(), Some(stem), "{plural}");
        }
        assert_eq!(singular("glass"), None);
    }
}
