//! The typed vocabulary: which number stands for which token of a program.
//!
//! A [`Vocabulary`] is a list of spellings, one for each token, and a token's number is its place. It only grows: new
//! library entries and new literals are appended, so **the number of a token never changes** and what a model has learned
//! of it stays. Tokens themselves belong to a [`TermStore`]; [`Vocabulary::bind`] says what the spellings mean in one.
//!
//! | spelling | token |
//! |---|---|
//! | `pick/1`, `x_pos/0` | a constant and its arguments |
//! | `"milk"`, `12`, `true`, `twist[…]` | a literal |
//! | `$0/0` | a bound variable and its arguments |
//! | `\`, `\Lang` | a λ, without and with the type of its variable |
//! | `@/1` | a λ that is applied |
//! | `seq[`, `]`, `repeat(`, `branch(` | syntax |
//! | `<pad>`, `<bos>`, `<eos>`, `<unknown>`, `<separator>` | none: around and between programs |

use std::collections::{BTreeMap, BTreeSet};

use language::{Head, Index, Literal, Signature, Term, TermId, TermStore, Token, parse, parse_type, print, tokens_of};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Fills a sequence up to the length of a batch.
pub const PAD: u32 = 0;
/// Comes before the first token.
pub const BOS: u32 = 1;
/// Comes after the last one.
pub const EOS: u32 = 2;
/// A token that is not in the vocabulary.
pub const UNKNOWN: u32 = 3;
/// Stands between two programs.
pub const SEPARATOR: u32 = 4;

const SPECIAL: [&str; 5] = ["<pad>", "<bos>", "<eos>", "<unknown>", "<separator>"];
const SYNTAX: [(&str, Token); 4] =
    [("seq[", Token::Seq), ("]", Token::EndSeq), ("repeat(", Token::Repeat), ("branch(", Token::Branch)];

/// Spellings of tokens by number. As JSON it is the list of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Vocabulary {
    spellings: Vec<String>,
    known: BTreeSet<String>,
}

/// A vocabulary's tokens in one store.
#[derive(Clone, Debug)]
pub struct BoundVocabulary {
    tokens: Vec<Option<Token>>,
    ids: BTreeMap<Token, u32>,
}

/// Programs as numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The tokens, with [`SEPARATOR`] between programs and [`EOS`] at the end.
    pub ids: Vec<u32>,
    /// How many of them are [`UNKNOWN`].
    pub unknown: usize,
}

impl Default for Vocabulary {
    fn default() -> Self {
        Vocabulary::new()
    }
}

impl Vocabulary {
    /// What every vocabulary starts with: the special tokens and the syntax.
    pub fn new() -> Vocabulary {
        let mut vocabulary = Vocabulary { spellings: Vec::new(), known: BTreeSet::new() };
        for spelling in SPECIAL.into_iter().chain(SYNTAX.map(|(spelling, _)| spelling)) {
            vocabulary.append(spelling.to_owned());
        }
        vocabulary
    }

    /// How many tokens there are, the special ones counted.
    pub fn len(&self) -> usize {
        self.spellings.len()
    }

    /// Never: there are always the special tokens.
    pub fn is_empty(&self) -> bool {
        self.spellings.is_empty()
    }

    /// All spellings, by number.
    pub fn spellings(&self) -> &[String] {
        &self.spellings
    }

    /// Whether the other one is this one with tokens appended, or the same.
    pub fn is_start_of(&self, other: &Vocabulary) -> bool {
        other.spellings.starts_with(&self.spellings)
    }

    /// Appends every constant with all the arguments that its type names. Gives the number of new tokens.
    pub fn extend_with_signature(&mut self, store: &TermStore, signature: &Signature) -> usize {
        let before = self.len();
        for entry in signature.entries() {
            let args = store.types().uncurry(entry.scheme.body()).0.len();
            self.append(format!("{}/{args}", store.spelling(entry.name)));
        }
        self.len() - before
    }

    /// Appends the tokens of some programs that are new, in the order in which they are met. Gives their number.
    pub fn extend_with_terms(&mut self, store: &mut TermStore, terms: &[TermId]) -> usize {
        let before = self.len();
        let mut seen = BTreeSet::new();
        for &term in terms {
            for token in tokens_of(store, term) {
                if seen.insert(token)
                    && let Some(spelling) = spelling_of(store, token)
                {
                    self.append(spelling);
                }
            }
        }
        self.len() - before
    }

    /// What the spellings mean in a store. Names and texts that it does not have yet are added to it.
    pub fn bind(&self, store: &mut TermStore) -> Result<BoundVocabulary> {
        let mut tokens = vec![None; SPECIAL.len()];
        let mut ids = BTreeMap::new();
        for (at, spelling) in self.spellings.iter().enumerate().skip(SPECIAL.len()) {
            let token = token_of(store, spelling)
                .ok_or_else(|| Error::Config(format!("token {at} of the vocabulary, `{spelling}`, spells no token")))?;
            tokens.push(Some(token));
            ids.insert(token, at as u32);
        }
        Ok(BoundVocabulary { tokens, ids })
    }

    fn append(&mut self, spelling: String) {
        if self.known.insert(spelling.clone()) {
            self.spellings.push(spelling);
        }
    }
}

impl BoundVocabulary {
    /// How many tokens there are, the special ones counted.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Never: there are always the special tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The token of a number; nothing for special ones.
    pub fn token(&self, id: u32) -> Option<Token> {
        self.tokens.get(id as usize).copied().flatten()
    }

    /// The number of a token, [`UNKNOWN`] if it has none.
    pub fn id(&self, token: Token) -> u32 {
        self.ids.get(&token).copied().unwrap_or(UNKNOWN)
    }

    /// Programs one after the other: `t₁ <separator> t₂ … <eos>`.
    pub fn encode(&self, store: &TermStore, terms: &[TermId]) -> Encoded {
        let mut ids = Vec::new();
        for (at, &term) in terms.iter().enumerate() {
            if at > 0 {
                ids.push(SEPARATOR);
            }
            ids.extend(tokens_of(store, term).into_iter().map(|token| self.id(token)));
        }
        ids.push(EOS);
        let unknown = ids.iter().filter(|id| **id == UNKNOWN).count();
        Encoded { ids, unknown }
    }

    /// Back to tokens, one list for each program, up to the first [`EOS`]. Special tokens inside are left out.
    pub fn decode(&self, ids: &[u32]) -> Vec<Vec<Token>> {
        let body = ids.split(|id| *id == EOS).next().unwrap_or_default();
        let program = |part: &[u32]| part.iter().filter_map(|id| self.token(*id)).collect();
        body.split(|id| *id == SEPARATOR).map(program).collect()
    }
}

impl TryFrom<Vec<String>> for Vocabulary {
    type Error = String;

    fn try_from(spellings: Vec<String>) -> std::result::Result<Vocabulary, String> {
        if !spellings.starts_with(&Vocabulary::new().spellings) {
            return Err(format!("a vocabulary starts with `{}` and the syntax", SPECIAL.join("`, `")));
        }
        let known: BTreeSet<String> = spellings.iter().cloned().collect();
        if known.len() < spellings.len() {
            return Err("a vocabulary has each token once, and this one has some twice".to_owned());
        }
        Ok(Vocabulary { spellings, known })
    }
}

impl From<Vocabulary> for Vec<String> {
    fn from(vocabulary: Vocabulary) -> Vec<String> {
        vocabulary.spellings
    }
}

/// Nothing for a literal with arguments, which no type allows.
fn spelling_of(store: &mut TermStore, token: Token) -> Option<String> {
    Some(match token {
        Token::Head { head: Head::Constant(name), args } => format!("{}/{args}", store.spelling(name)),
        Token::Head { head: Head::Variable(Index(index)), args } => format!("${index}/{args}"),
        Token::Head { head: Head::Literal(literal), args: 0 } => {
            let term = store.literal(literal);
            print(store, term)
        }
        Token::Head { head: Head::Literal(_), .. } => return None,
        Token::Lambda(None) => "\\".to_owned(),
        Token::Lambda(Some(annotation)) => format!("\\{}", store.types().show(annotation)),
        Token::Apply { args } => format!("@/{args}"),
        token => SYNTAX.iter().find(|(_, known)| *known == token)?.0.to_owned(),
    })
}

fn token_of(store: &mut TermStore, spelling: &str) -> Option<Token> {
    if let Some((_, token)) = SYNTAX.iter().find(|(known, _)| *known == spelling) {
        return Some(*token);
    }
    if let Some(annotation) = spelling.strip_prefix('\\') {
        return match annotation {
            "" => Some(Token::Lambda(None)),
            text => Some(Token::Lambda(Some(parse_type(store.types_mut(), text).ok()?))),
        };
    }
    let literal = |literal| Some(Token::Head { head: Head::Literal(literal), args: 0 });
    if let Ok(number) = spelling.parse() {
        return literal(Literal::Natural(number));
    }
    let quoted = spelling.starts_with('"');
    match spelling.rsplit_once('/').filter(|_| !quoted) {
        None => {
            let term = parse(store, &Signature::empty(), spelling).ok()?.term;
            if let Term::Literal(found) = *store.get(term) { literal(found) } else { None }
        }
        Some((head, args)) => {
            let args = args.parse().ok()?;
            if head == "@" {
                return Some(Token::Apply { args });
            }
            let head = match head.strip_prefix('$') {
                Some(index) => Head::Variable(Index(index.parse().ok()?)),
                None => Head::Constant(store.name(head).ok()?),
            };
            Some(Token::Head { head, args })
        }
    }
}

#[cfg(test)]
mod tests {
    use language::{Generator, TypeId, read};

    use super::*;

    #[test]
    fn every_token_is_spelled_and_read_back_in_another_store() {
        let mut store = TermStore::new();
        let signature = Signature::standard(&mut store);
        let mut terms: Vec<TermId> = (0..200)
            .map(|seed| Generator::new(seed).term(&mut store, &signature, TypeId::MOTION, 40).unwrap().unwrap())
            .collect();
        let sources = [
            r#"pick "a \"b\" / 3""#,
            r"\x:Lang -> Motion. \y. x y",
            r#"(\x. pick x) "a""#,
            "goto pose[1, -2.5e-3, 0, 0, 0, 1]",
        ];
        for source in sources {
            terms.push(read(&mut store, &signature, source, None).unwrap().term);
        }
        let mut vocabulary = Vocabulary::new();
        vocabulary.extend_with_signature(&store, &signature);
        vocabulary.extend_with_terms(&mut store, &terms);
        let bound = vocabulary.bind(&mut store).unwrap();
        assert_eq!(bound.len(), vocabulary.len());
        for &term in &terms {
            let encoded = bound.encode(&store, &[term, term]);
            assert_eq!(encoded.unknown, 0);
            assert_eq!(bound.decode(&encoded.ids), [tokens_of(&store, term), tokens_of(&store, term)]);
        }
        // The same numbers stand for the same programs elsewhere.
        let mut other = TermStore::new();
        let elsewhere = vocabulary.bind(&mut other).unwrap();
        for &term in &terms {
            let tokens = &elsewhere.decode(&bound.encode(&store, &[term]).ids)[0];
            let there = language::term_of(&mut other, tokens).unwrap();
            assert_eq!(elsewhere.encode(&other, &[there]), bound.encode(&store, &[term]));
        }
    }

    #[test]
    fn numbers_never_change_and_what_is_unknown_is_counted() {
        let mut store = TermStore::new();
        let mut signature = Signature::standard(&mut store);
        let mut vocabulary = Vocabulary::new();
        vocabulary.extend_with_signature(&store, &signature);
        let before = vocabulary.clone();
        assert_eq!(vocabulary.extend_with_signature(&store, &signature), 0);
        let term = read(&mut store, &signature, r#"seq[pick "milk", repeat(move x_pos, 3)]"#, None).unwrap().term;
        assert_eq!(before.bind(&mut store).unwrap().encode(&store, &[term]).unknown, 2);
        let body = read(&mut store, &signature, r"\x. seq[pick x, move x_pos]", None).unwrap().term;
        signature.define(&mut store, "f0", body).unwrap();
        assert_eq!(vocabulary.extend_with_signature(&store, &signature), 1);
        assert_eq!(vocabulary.extend_with_terms(&mut store, &[term]), 2);
        assert_eq!(vocabulary.spellings().last().map(String::as_str), Some("3"));
        assert!(before.is_start_of(&vocabulary) && !vocabulary.is_start_of(&before));
        assert_eq!(vocabulary.bind(&mut store).unwrap().encode(&store, &[term]).unknown, 0);
    }

    #[test]
    fn json_is_a_list_and_is_checked() {
        let vocabulary = Vocabulary::new();
        let text = serde_json::to_string(&vocabulary).unwrap();
        assert_eq!(text, r#"["<pad>","<bos>","<eos>","<unknown>","<separator>","seq[","]","repeat(","branch("]"#);
        assert_eq!(serde_json::from_str::<Vocabulary>(&text).unwrap(), vocabulary);
        assert!(serde_json::from_str::<Vocabulary>(r#"["seq["]"#).is_err());
        let with = |more: &str| text.replace("branch(\"]", &format!("branch(\",{more}]"));
        assert!(serde_json::from_str::<Vocabulary>(&with(r#""a/0","b/0""#)).is_ok());
        assert!(serde_json::from_str::<Vocabulary>(&with(r#""a/0","a/0""#)).is_err());
        let odd: Vocabulary = serde_json::from_str(&with(r#""no token""#)).unwrap();
        let error = odd.bind(&mut TermStore::new()).unwrap_err().to_string();
        assert_eq!(error, "token 9 of the vocabulary, `no token`, spells no token");
    }
}
