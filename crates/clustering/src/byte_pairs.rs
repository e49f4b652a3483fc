//! Byte-pair encoding (Gage 1994; Sennrich, Haddow and Birch 2016) of sequences of symbols.
//!
//! The pair of neighbours that is most frequent in the sequences becomes a new symbol, everywhere at once from left to right;
//! then the next one. Of equally frequent pairs the one with the smaller symbols is taken. Merges and encodings are those of
//! the `tokenizers` package with each sequence as one word.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::error::ClusteringError;

/// Merges that were learned, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BytePairs {
    /// How many symbols there were at first; they are 0, 1, ….
    pub symbols: u32,
    /// The pairs that became symbols: the i-th is `symbols + i`.
    pub merges: Vec<(u32, u32)>,
}

/// Learns at most `merges` merges. It stops early where no pair occurs twice.
///
/// # Errors
/// On a symbol of `symbols` or more.
pub fn byte_pairs(sequences: &[Vec<u32>], symbols: u32, merges: usize) -> Result<BytePairs, ClusteringError> {
    check(sequences.iter().flatten(), symbols)?;
    let mut sequences = sequences.to_vec();
    let mut found = BytePairs { symbols, merges: Vec::new() };
    while found.merges.len() < merges {
        let mut counts = BTreeMap::<(u32, u32), usize>::new();
        for pair in sequences.iter().flat_map(|sequence| sequence.windows(2)) {
            *counts.entry((pair[0], pair[1])).or_default() += 1;
        }
        // The last of equals is taken, so they are walked from the largest pair to the smallest.
        let Some((&pair, &count)) = counts.iter().rev().max_by_key(|(_, count)| **count) else { break };
        if count < 2 {
            break;
        }
        let symbol = symbols + found.merges.len() as u32;
        for sequence in &mut sequences {
            let mut merged = Vec::with_capacity(sequence.len());
            let mut at = 0;
            while at < sequence.len() {
                let is_pair = at + 1 < sequence.len() && (sequence[at], sequence[at + 1]) == pair;
                merged.push(if is_pair { symbol } else { sequence[at] });
                at += if is_pair { 2 } else { 1 };
            }
            *sequence = merged;
        }
        found.merges.push(pair);
    }
    Ok(found)
}

impl BytePairs {
    /// The tokens of a sequence, each with the places that it covers.
    ///
    /// # Errors
    /// On a symbol that there is not.
    pub fn encode(&self, sequence: &[u32]) -> Result<Vec<(u32, Range<usize>)>, ClusteringError> {
        check(sequence.iter(), self.symbols)?;
        let mut tokens: Vec<(u32, Range<usize>)> =
            sequence.iter().enumerate().map(|(at, symbol)| (*symbol, at..at + 1)).collect();
        for (at, &(left, right)) in self.merges.iter().enumerate() {
            let mut merged: Vec<(u32, Range<usize>)> = Vec::with_capacity(tokens.len());
            let mut rest = tokens.into_iter().peekable();
            while let Some((symbol, mut places)) = rest.next() {
                let next = rest.next_if(|next| symbol == left && next.0 == right);
                let symbol = next.map_or(symbol, |next| {
                    places.end = next.1.end;
                    self.symbols + at as u32
                });
                merged.push((symbol, places));
            }
            tokens = merged;
        }
        Ok(tokens)
    }
}

fn check<'a>(mut sequence: impl Iterator<Item = &'a u32>, symbols: u32) -> Result<(), ClusteringError> {
    match sequence.find(|symbol| **symbol >= symbols) {
        None => Ok(()),
        Some(symbol) => Err(ClusteringError::BadSetting {
            name: "a symbol",
            found: symbol.to_string(),
            wanted: "symbols below the number of symbols",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_pairs_become_symbols_and_places_stay_covered() {
        let found = byte_pairs(&[vec![0, 1, 0, 1, 2], vec![0, 1, 2]], 3, 10).unwrap();
        assert_eq!(found.merges, [(0, 1), (3, 2)]);
        let tokens = found.encode(&[2, 0, 1, 2, 0]).unwrap();
        assert_eq!(tokens, [(2, 0..1), (4, 1..4), (0, 4..5)]);
    }

    #[test]
    fn of_equal_pairs_the_smaller_is_first() {
        let found = byte_pairs(&[vec![2, 3], vec![2, 3], vec![0, 1], vec![0, 1]], 4, 1).unwrap();
        assert_eq!(found.merges, [(0, 1)]);
    }

    #[test]
    fn unknown_symbols_are_refused() {
        assert!(byte_pairs(&[vec![0, 3]], 3, 1).is_err());
        assert!(byte_pairs(&[vec![0, 2]], 3, 1).unwrap().encode(&[3]).is_err());
    }
}
