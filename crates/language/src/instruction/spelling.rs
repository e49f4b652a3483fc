//! Slips of the hand: the nearest word of a class, and the words that are corrected without asking.
//!
//! A suggestion is made for the class of words that the grammar expects at that place, so that `flod` suggests `fold`
//! where a verb is wanted and not `food`. Only the commonest slips are corrected silently (and reported): two neighbours
//! swapped, or one letter dropped or doubled in a long word. Anything else that stands where an object is expected is a
//! new noun, for the vocabulary of nouns is open.

use std::sync::LazyLock;

use super::lexicon::{self, Entry};

/// The class of words that is expected somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Verbs.
    Verb,
    /// Nouns and what stands before them.
    Nominal,
    /// Prepositions and other words of the grammar.
    Grammar,
}

impl Class {
    fn has(self, entry: &Entry) -> bool {
        match self {
            Class::Verb => entry.is_verb,
            Class::Nominal => entry.is_nominal(),
            Class::Grammar => entry.is_preposition || entry.is_function || entry.is_determiner,
        }
    }
}

/// The nearest word of a class, if it is near enough to be a slip of the hand: one edit for up to four letters, two for
/// more. Ties go to the same first letter, then to the earlier word of the lexicon.
pub(super) fn nearest(word: &str, class: Class) -> Option<&'static str> {
    let letters: Vec<char> = word.chars().collect();
    let allowed = match letters.len() {
        3..=4 => EDIT,
        5..=24 => 2 * EDIT,
        _ => return None,
    };
    SPELLINGS
        .iter()
        .filter(|(spelling, _, _)| spelling.len() > 1 && spelling.len().abs_diff(letters.len()) * EDIT <= allowed)
        .filter(|(_, _, entry)| class.has(entry))
        .map(|(spelling, word, _)| (edit_cost(&letters, spelling), spelling.first() != letters.first(), *word))
        .filter(|(cost, _, _)| *cost <= allowed)
        .min_by_key(|(cost, differs, _)| (*cost, *differs))
        .map(|(_, _, candidate)| candidate)
}

/// The word of a class that an unknown word surely is.
pub(super) fn correction(word: &str, class: Class) -> Option<&'static str> {
    let letters: Vec<char> = word.chars().collect();
    // A swap shows in short words, a dropped letter only in longer ones.
    let (shortest, shortest_drop) = match class {
        Class::Verb => (3, 5),
        Class::Grammar => (3, 3),
        Class::Nominal => (5, 6),
    };
    if letters.len() < shortest || letters.len() > 24 || word.chars().any(|c| c.is_ascii_digit()) {
        return None;
    }
    let is_slip = |spelling: &[char]| {
        let same_start = spelling.first() == letters.first();
        let swapped = spelling.len() == letters.len() && edit_cost(&letters, spelling) == SWAP;
        let dropped = spelling.len().abs_diff(letters.len()) == 1
            && letters.len() >= shortest_drop
            && edit_cost(&letters, spelling) == EDIT;
        // `plates` is a plural, not a slip for `plate`.
        let inflected = letters.len() > spelling.len() && matches!(letters.last(), Some('s' | 'd' | 'r' | 'y'));
        same_start && (swapped || (dropped && !inflected))
    };
    let found = SPELLINGS.iter().filter(|(spelling, _, entry)| {
        class.has(entry) && spelling.len() > 1 && spelling.len().abs_diff(letters.len()) < 2 && is_slip(spelling)
    });
    found.min_by_key(|(spelling, _, _)| edit_cost(&letters, spelling)).map(|(_, word, _)| *word)
}

/// The letters of every word of the lexicon, with its categories.
static SPELLINGS: LazyLock<Vec<(Vec<char>, &'static str, Entry)>> =
    LazyLock::new(|| lexicon::words().map(|word| (word.chars().collect(), word, lexicon::entry(word))).collect());

/// The cost of inserting, deleting or replacing a letter.
const EDIT: usize = 2;
/// The cost of swapping two neighbours, the commonest slip in typing.
const SWAP: usize = 1;

/// Weighted edit distance with swaps of neighbours (optimal string alignment).
fn edit_cost(a: &[char], b: &[char]) -> usize {
    // Both are near in length and at most two dozen letters, so rows of fixed size will do.
    const ROW: usize = 32;
    if b.len() >= ROW {
        return usize::MAX;
    }
    let (mut before, mut last, mut row) = ([0; ROW], [0; ROW], [0; ROW]);
    for (j, cost) in last.iter_mut().enumerate() {
        *cost = j * EDIT;
    }
    for i in 1..=a.len() {
        row[0] = i * EDIT;
        for j in 1..=b.len() {
            let replaced = last[j - 1] + if a[i - 1] == b[j - 1] { 0 } else { EDIT };
            let mut best = replaced.min(last[j] + EDIT).min(row[j - 1] + EDIT);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + SWAP);
            }
            row[j] = best;
        }
        (before, last, row) = (last, row, before);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_spellings_are_found_within_their_class() {
        let cases = [
            ("drwaer", Class::Nominal, Some("drawer")),
            ("teh", Class::Grammar, Some("the")),
            ("microwve", Class::Nominal, Some("microwave")),
            ("flod", Class::Verb, Some("fold")),
            ("wpie", Class::Verb, Some("wipe")),
            ("xylophone", Class::Nominal, None),
            ("zz", Class::Verb, None),
        ];
        for (typed, class, meant) in cases {
            assert_eq!(nearest(typed, class), meant, "{typed}");
        }
    }

    #[test]
    fn only_common_slips_are_corrected() {
        let cases = [
            ("basekt", Class::Nominal, Some("basket")),
            ("platic", Class::Nominal, Some("plastic")),
            ("pikc", Class::Verb, Some("pick")),
            ("onn", Class::Grammar, Some("on")),
            ("fist", Class::Verb, None),
            ("gizmo", Class::Nominal, None),
            ("clamps", Class::Nominal, None),
            ("panel", Class::Nominal, None),
            ("7upp", Class::Nominal, None),
        ];
        for (typed, class, meant) in cases {
            assert_eq!(correction(typed, class), meant, "{typed}");
        }
    }
}
