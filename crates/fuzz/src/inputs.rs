//! Inputs: what a target is fed, from pure noise to nearly right.
//!
//! | kind | share | finds |
//! | --- | --- | --- |
//! | bytes read as lossy UTF-8 | 1/10 | lexers that split characters |
//! | words of the language in any order | 2/10 | parsers that trust what comes next |
//! | texts by a grammar | 4/10 | everything behind the parser |
//! | seeds and grammar texts, mutated | 3/10 | recovery, rare combinations |
//! | nesting up to 100 000 deep | 1/1000 | recursion without a limit |

use crate::random::Random;

/// The deepest nesting.
pub(crate) const MAX_NESTING: usize = 100_000;

/// What the inputs of a language are made of.
pub(crate) struct Source {
    /// The words that mean something in the language.
    pub(crate) words: Vec<String>,
    /// Good texts.
    pub(crate) seeds: Vec<String>,
    /// What can be nested: before, innermost, after.
    pub(crate) nests: &'static [(&'static str, &'static str, &'static str)],
    /// Mostly good texts without end.
    pub(crate) grammar: Box<dyn Fn(&mut Random) -> String + Send + Sync>,
}

impl Source {
    /// One input.
    pub(crate) fn input(&self, random: &mut Random) -> String {
        if random.once_in(1000) {
            return self.nesting(random);
        }
        match random.below(10) {
            0 => bytes(random),
            1 | 2 => self.soup(random),
            3..=6 => (self.grammar)(random),
            _ => self.mutated(random),
        }
    }

    fn soup(&self, random: &mut Random) -> String {
        let count = random.magnitude(60);
        let separator = if random.once_in(4) { "" } else { " " };
        let words: Vec<&str> = (0..count).filter_map(|_| random.pick(&self.words).map(String::as_str)).collect();
        words.join(separator)
    }

    fn nesting(&self, random: &mut Random) -> String {
        let depth = random.magnitude(MAX_NESTING);
        let (before, core, after) = random.pick(self.nests).copied().unwrap_or_default();
        // Balanced, only opened, only closed, or closed once too often or too seldom.
        let (opened, closed) = match random.below(6) {
            0 => (depth, 0),
            1 => (0, depth),
            2 => (depth, depth + 1),
            3 => (depth, depth - 1),
            _ => (depth, depth),
        };
        format!("{}{core}{}", before.repeat(opened), after.repeat(closed))
    }

    fn mutated(&self, random: &mut Random) -> String {
        let mut text = self.good(random);
        for _ in 0..random.magnitude(8) {
            text = match random.once_in(2) {
                true => self.mutate_words(&text, random),
                false => self.mutate_characters(&text, random),
            };
        }
        text
    }

    fn good(&self, random: &mut Random) -> String {
        match random.pick(&self.seeds) {
            Some(seed) if !random.once_in(3) => seed.clone(),
            _ => (self.grammar)(random),
        }
    }

    fn mutate_words(&self, text: &str, random: &mut Random) -> String {
        let mut pieces: Vec<String> = pieces(text).into_iter().map(String::from).collect();
        let other = match random.once_in(3) {
            true => self.good(random),
            false => random.pick(&self.words).cloned().unwrap_or_default(),
        };
        let other = self::pieces(&other).into_iter().map(String::from).collect();
        mutate(&mut pieces, other, random);
        pieces.concat()
    }

    fn mutate_characters(&self, text: &str, random: &mut Random) -> String {
        let mut characters: Vec<char> = text.chars().collect();
        let other = vec![character(random)];
        mutate(&mut characters, other, random);
        characters.into_iter().collect()
    }
}

/// Deletes, duplicates, swaps, replaces or inserts a stretch.
fn mutate<T: Clone>(items: &mut Vec<T>, other: Vec<T>, random: &mut Random) {
    let (start, end) = stretch(items.len(), random);
    match random.below(5) {
        0 => drop(items.drain(start..end)),
        1 => {
            let times = random.magnitude(if end - start > 20 { 2 } else { 12 });
            let copy: Vec<T> = items[start..end].to_vec();
            for _ in 0..times {
                items.splice(end..end, copy.iter().cloned());
            }
        }
        2 if !items.is_empty() => {
            let (a, b) = (random.below(items.len()), random.below(items.len()));
            items.swap(a, b);
        }
        3 => drop(items.splice(start..end, other)),
        _ => drop(items.splice(start..start, other)),
    }
}

/// A short stretch of a list, seldom a long one.
fn stretch(length: usize, random: &mut Random) -> (usize, usize) {
    let start = random.below(length + 1);
    let end = start + random.magnitude(length.max(1));
    (start, end.min(length))
}

/// Words and single characters of anything else, blanks included: concatenated they are the text.
fn pieces(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '#' | '/');
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match is_word(first) {
            true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (piece, behind) = rest.split_at(length);
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

fn bytes(random: &mut Random) -> String {
    let count = random.magnitude(200);
    // Printable characters half of the time: pure noise is mostly replacement characters.
    let ascii = random.once_in(2);
    let bytes: Vec<u8> = (0..count)
        .map(|_| match ascii {
            true => 32 + random.below(96) as u8,
            false => random.below(256) as u8,
        })
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn character(random: &mut Random) -> char {
    const ODD: [char; 22] = [
        '(', ')', '[', ']', '"', '\\', '$', '#', ',', '.', ':', '-', '\n', '\t', '\0', 'λ', '∀', 'é', '\u{301}',
        '\u{a0}', '\u{feff}', '🦀',
    ];
    match random.below(4) {
        0 => char::from(32 + random.below(95) as u8),
        1 => char::from_u32(random.below(0x11_0000) as u32).unwrap_or('\u{fffd}'),
        _ => random.pick(&ODD).copied().unwrap_or('('),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_whole_text() {
        let text = "seq[pick \"é\", $0 λx_1.  x]\n";
        assert_eq!(pieces(text).concat(), text);
        assert_eq!(pieces("pick (in x)").len(), 7);
    }

    #[test]
    fn an_input_is_a_function_of_seed_target_and_index() {
        let source = Source {
            words: vec!["a".into(), "(".into()],
            seeds: vec!["(a a)".into()],
            nests: &[("(", "a", ")")],
            grammar: Box::new(|random| "a".repeat(random.below(9))),
        };
        let inputs =
            |seed| -> Vec<String> { (0..2000).map(|index| source.input(&mut Random::new(seed, "x", index))).collect() };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
    }
}
