//! Instructions as numbers, one for each word.
//!
//! Words of the training data have numbers of their own; any other word falls into one of a few buckets by a hash of its
//! spelling, so that no instruction is refused and two unknown words are seldom taken for the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::noise;

/// Fills an instruction up to the number of words that a model reads.
pub const NO_WORD: u32 = 0;

/// Stands before an instruction whose execution begins. No instruction has this word, because words have letters and digits only.
const BEGINNING: &str = "<begin>";

/// Known words, and buckets for all others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct WordVocabulary {
    words: Vec<String>,
    buckets: u32,
    ids: BTreeMap<String, u32>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    words: Vec<String>,
    buckets: u32,
}

impl WordVocabulary {
    /// The words of some instructions in alphabetical order, so that the order of instructions does not matter. There is
    /// at least one bucket.
    pub fn new<'a>(instructions: impl IntoIterator<Item = &'a str>, buckets: u32) -> WordVocabulary {
        let mut words: Vec<String> = instructions.into_iter().flat_map(words_of).collect();
        words.sort_unstable();
        words.dedup();
        Stored { words, buckets }.into()
    }

    /// The same with one more word, which says that the execution of an instruction begins.
    #[must_use]
    pub fn with_beginning(self) -> WordVocabulary {
        let Stored { mut words, buckets } = self.into();
        if !words.iter().any(|word| word == BEGINNING) {
            words.insert(0, BEGINNING.to_owned());
        }
        Stored { words, buckets }.into()
    }

    /// How many numbers there are: for no word, for each known one, for each bucket.
    pub fn len(&self) -> usize {
        1 + self.words.len() + self.buckets as usize
    }

    /// Never: there is always the number for no word.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The numbers of an instruction's words, at most `limit` of them.
    pub fn encode(&self, instruction: &str, limit: usize) -> Vec<u32> {
        words_of(instruction).take(limit).map(|word| self.id(&word)).collect()
    }

    /// The same where the execution of the instruction begins. A vocabulary without a word for that does not tell.
    pub fn encode_beginning(&self, instruction: &str, limit: usize) -> Vec<u32> {
        let mark = self.ids.get(BEGINNING).copied();
        mark.into_iter().chain(self.encode(instruction, usize::MAX)).take(limit).collect()
    }

    fn id(&self, word: &str) -> u32 {
        self.ids.get(word).copied().unwrap_or_else(|| {
            let bucket = noise::mix(0, word.as_bytes()) % u64::from(self.buckets);
            1 + self.words.len() as u32 + bucket as u32
        })
    }
}

impl From<Stored> for WordVocabulary {
    fn from(Stored { words, buckets }: Stored) -> WordVocabulary {
        let ids = words.iter().zip(1..).map(|(word, id)| (word.clone(), id)).collect();
        WordVocabulary { words, buckets: buckets.max(1), ids }
    }
}

impl From<WordVocabulary> for Stored {
    fn from(WordVocabulary { words, buckets, .. }: WordVocabulary) -> Stored {
        Stored { words, buckets }
    }
}

/// Lower-cased runs of letters and digits; everything else only separates them.
fn words_of(instruction: &str) -> impl Iterator<Item = String> + '_ {
    instruction.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_words_have_numbers_too() {
        let words = WordVocabulary::new(["Pick up the milk, then the butter.", "open the drawer"], 4);
        assert_eq!(words.len(), 1 + 8 + 4);
        let known = words.encode("the MILK", 10);
        assert_eq!(known, words.encode("The milk!", 10));
        assert!(known.iter().all(|id| (1..=8).contains(id)));
        let unseen = words.encode("wipe the größte Tisch", 10);
        assert_eq!(unseen.len(), 4);
        assert!(unseen.iter().all(|id| (*id as usize) < words.len()) && unseen[0] > 8);
        assert_eq!(words.encode("open the drawer", 2).len(), 2);
        let text = serde_json::to_string(&words).unwrap();
        assert_eq!(serde_json::from_str::<WordVocabulary>(&text).unwrap(), words);
    }

    #[test]
    fn the_word_for_a_beginning_is_in_no_instruction() {
        let plain = WordVocabulary::new(["pick up the milk"], 4);
        assert_eq!(
            plain.encode_beginning("pick up", 9),
            plain.encode("pick up", 9),
            "an older vocabulary has no such word"
        );
        let words = plain.with_beginning();
        assert_eq!(words, words.clone().with_beginning());
        let beginning = words.encode_beginning("pick up", 9);
        assert_eq!(beginning[1..], words.encode("pick up", 9));
        assert!(!words.encode("<begin> begin pick up the milk", 9).contains(&beginning[0]));
        assert_eq!(words.encode_beginning("pick up the milk", 2).len(), 2);
    }
}
