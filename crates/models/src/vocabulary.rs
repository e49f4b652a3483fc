//! The typed vocabulary: which number stands for which [`Symbol`] of a program.
//!
//! A [`Vocabulary`] is a list of spellings, one for each symbol, and a symbol's number is its place. It only grows: new
//! library entries and new literals are appended, so **the number of a symbol never changes** and what a model has learned
//! of it stays. Programs are rows of [`Piece`]s: symbols, with the numbers that some of them carry. [`Growth`] carries a model over to a larger vocabulary. Symbols themselves belong to a [`TermStore`];
//! [`Vocabulary::bind`] says what the spellings mean in one. The emitter writes these symbols and the decoder reads them.
//!
//! | spelling | symbol |
//! |---|---|
//! | `pick/1`, `x_pos/0` | a constant and its arguments |
//! | `"milk"`, `12`, `true` | a literal |
//! | `twist[`, `twist,1` | the first number of a vector, and any other; its value is kept separately |
//! | `$0/0` | a bound variable and its arguments |
//! | `\`, `\Lang` | a λ, without and with the type of its variable |
//! | `@/1` | a λ that is applied |
//! | `seq[`, `]`, `repeat(`, `branch(` | syntax |
//! | `<pad>`, `<bos>`, `<eos>`, `<unknown>`, `<separator>` | none: around and between programs |

use std::collections::{BTreeMap, BTreeSet};

use candle_core::{DType, Device, Tensor};
use language::{Signature, TermId, TermStore, Token, tokens_of};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

mod growth;
mod numbers;
mod symbol;

pub use growth::Growth;
pub use numbers::NumberScales;
pub(crate) use numbers::{NumberReader, NumberWriter, Slots};
use symbol::SYNTAX;
pub(crate) use symbol::{Joined, OpenVector};
pub use symbol::{Symbol, VectorKind};

/// Fills a sequence up to the length of a batch.
pub const PAD: u32 = 0;
/// Comes before the first token.
pub const BOS: u32 = 1;
/// Comes after the last one.
pub const EOS: u32 = 2;
/// A symbol that is not in the vocabulary.
pub const UNKNOWN: u32 = 3;
/// Stands between two programs.
pub const SEPARATOR: u32 = 4;

const SPECIAL: [&str; 5] = ["<pad>", "<bos>", "<eos>", "<unknown>", "<separator>"];

/// Spellings of symbols by number. As JSON it is the list of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Vocabulary {
    spellings: Vec<String>,
    known: BTreeSet<String>,
}

/// A vocabulary's symbols in one store.
#[derive(Clone, Debug)]
pub struct BoundVocabulary {
    symbols: Vec<Option<Symbol>>,
    ids: BTreeMap<Symbol, u32>,
}

/// A symbol by its number in the vocabulary, and the number that it carries if it stands in a vector (zero if not).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// Which symbol.
    pub id: u32,
    /// The number that it carries.
    pub number: f64,
}

/// Rows of pieces of one length on a device.
#[derive(Clone, Debug)]
pub struct PieceTensor {
    /// The symbols, filled up with [`PAD`]: `[B, L]` u32.
    pub ids: Tensor,
    /// The numbers that they carry: `[B, L]` f32.
    pub numbers: Tensor,
}

/// Programs as pieces.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    /// The symbols, with [`SEPARATOR`] between programs and [`EOS`] at the end.
    pub pieces: Vec<Piece>,
    /// For each of them whether it stands in a vector.
    pub is_number: Vec<bool>,
    /// For each of them whether a token begins there.
    pub is_start: Vec<bool>,
    /// How many of them are [`UNKNOWN`].
    pub unknown: usize,
}

impl Piece {
    /// A symbol that carries no number.
    pub fn plain(id: u32) -> Piece {
        Piece { id, number: 0.0 }
    }
}

impl PieceTensor {
    /// Rows of pieces, truncated or filled up at their end.
    ///
    /// # Shapes
    /// Gives `[rows, length]`.
    pub fn new(rows: &[Vec<Piece>], length: usize, device: &Device) -> Result<PieceTensor> {
        let filled =
            |row: &Vec<Piece>| row.clone().into_iter().chain(std::iter::repeat(Piece::plain(PAD))).take(length);
        let all: Vec<Piece> = rows.iter().flat_map(filled).collect();
        let (ids, numbers) =
            all.into_iter().map(|piece| (piece.id, piece.number as f32)).unzip::<_, _, Vec<_>, Vec<_>>();
        let shape = (rows.len(), length);
        Ok(PieceTensor {
            ids: Tensor::from_vec(ids, shape, device)?,
            numbers: Tensor::from_vec(numbers, shape, device)?,
        })
    }

    /// Symbols that carry no numbers.
    ///
    /// # Shapes
    /// `ids`: `[B, L]` u32.
    pub fn plain(ids: Tensor) -> Result<PieceTensor> {
        Ok(PieceTensor { numbers: ids.zeros_like()?.to_dtype(DType::F32)?, ids })
    }

    /// Some of its columns.
    pub fn columns(&self, first: usize, count: usize) -> Result<PieceTensor> {
        let part = |x: &Tensor| x.narrow(1, first, count)?.contiguous();
        Ok(PieceTensor { ids: part(&self.ids)?, numbers: part(&self.numbers)? })
    }
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

    /// Appends the symbols of some programs that are new, in the order in which they are met. Gives their number.
    pub fn extend_with_terms(&mut self, store: &mut TermStore, terms: &[TermId]) -> usize {
        let before = self.len();
        let mut seen = BTreeSet::new();
        for &term in terms {
            for (symbol, _) in tokens_of(store, term).into_iter().flat_map(Symbol::of) {
                if seen.insert(symbol)
                    && let Some(spelling) = symbol.spelling(store)
                {
                    self.append(spelling);
                }
            }
        }
        self.len() - before
    }

    /// What the spellings mean in a store. Names and texts that it does not have yet are added to it.
    pub fn bind(&self, store: &mut TermStore) -> Result<BoundVocabulary> {
        let mut symbols = vec![None; SPECIAL.len()];
        let mut ids = BTreeMap::new();
        for (at, spelling) in self.spellings.iter().enumerate().skip(SPECIAL.len()) {
            let symbol = Symbol::read(store, spelling).ok_or_else(|| {
                Error::Config(format!("symbol {at} of the vocabulary, `{spelling}`, spells nothing that a program has"))
            })?;
            symbols.push(Some(symbol));
            ids.insert(symbol, at as u32);
        }
        Ok(BoundVocabulary { symbols, ids })
    }

    fn append(&mut self, spelling: String) {
        if self.known.insert(spelling.clone()) {
            self.spellings.push(spelling);
        }
    }
}

impl BoundVocabulary {
    /// How many symbols there are, the special ones counted.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Never: there are always the special ones.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// What a number stands for; nothing for special ones.
    pub fn symbol(&self, id: u32) -> Option<Symbol> {
        self.symbols.get(id as usize).copied().flatten()
    }

    /// The number of a symbol, [`UNKNOWN`] if it has none.
    pub fn id(&self, symbol: Symbol) -> u32 {
        self.ids.get(&symbol).copied().unwrap_or(UNKNOWN)
    }

    /// The numbers of a token's symbols.
    pub fn ids_of(&self, token: Token) -> Vec<u32> {
        Symbol::of(token).into_iter().map(|(symbol, _)| self.id(symbol)).collect()
    }

    /// Programs one after the other: `t₁ <separator> t₂ … <eos>`.
    pub fn encode(&self, store: &TermStore, terms: &[TermId]) -> Encoded {
        let mut encoded = Encoded { pieces: Vec::new(), is_number: Vec::new(), is_start: Vec::new(), unknown: 0 };
        let mut push = |piece: Piece, is_number: bool, is_start: bool| {
            encoded.pieces.push(piece);
            encoded.is_number.push(is_number);
            encoded.is_start.push(is_start);
            encoded.unknown += usize::from(piece.id == UNKNOWN);
        };
        for (at, &term) in terms.iter().enumerate() {
            if at > 0 {
                push(Piece::plain(SEPARATOR), false, true);
            }
            for token in tokens_of(store, term) {
                for (place, (symbol, number)) in Symbol::of(token).into_iter().enumerate() {
                    push(Piece { id: self.id(symbol), number }, symbol.carries_number(), place == 0);
                }
            }
        }
        push(Piece::plain(EOS), false, true);
        encoded
    }

    /// Back to tokens, one list for each program, up to the first [`EOS`]. Special symbols inside are left out, and so is
    /// what makes no token: numbers without a vector, vectors with too few numbers.
    pub fn decode(&self, pieces: &[Piece]) -> Vec<Vec<Token>> {
        let body = pieces.split(|piece| piece.id == EOS).next().unwrap_or_default();
        let program = |part: &[Piece]| {
            let (mut tokens, mut open) = (Vec::new(), None);
            for piece in part {
                let Some(symbol) = self.symbol(piece.id) else { continue };
                match symbol.join(open.take(), piece.number) {
                    Some(Joined::Whole(token)) => tokens.push(token),
                    Some(Joined::Open(vector)) => open = Some(vector),
                    None => {}
                }
            }
            tokens
        };
        body.split(|piece| piece.id == SEPARATOR).map(program).collect()
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

/// Rows of one length, truncated or padded at their end.
///
/// # Shapes
/// Gives `[rows, length]` u32.
pub(crate) fn padded(rows: &[Vec<u32>], length: usize, with: u32, device: &Device) -> Result<Tensor> {
    let all = rows.iter().flat_map(|row| row.iter().copied().chain(std::iter::repeat(with)).take(length)).collect();
    Ok(Tensor::from_vec::<_, u32>(all, (rows.len(), length), device)?)
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
            assert_eq!(bound.decode(&encoded.pieces), [tokens_of(&store, term), tokens_of(&store, term)]);
        }
        // The same numbers stand for the same programs elsewhere.
        let mut other = TermStore::new();
        let elsewhere = vocabulary.bind(&mut other).unwrap();
        for &term in &terms {
            let tokens = &elsewhere.decode(&bound.encode(&store, &[term]).pieces)[0];
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
        assert_eq!(error, "symbol 9 of the vocabulary, `no token`, spells nothing that a program has");
    }
}
