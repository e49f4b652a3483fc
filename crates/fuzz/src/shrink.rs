//! Makes a failing input smaller: deletes what can go, in ever smaller stretches.

use std::time::{Duration, Instant};

/// The smallest text found within `patience` that still fails.
pub(crate) fn shrink(text: &str, patience: Duration, fails: impl Fn(&str) -> bool) -> String {
    let start = Instant::now();
    let mut characters: Vec<char> = text.chars().collect();
    let mut length = characters.len().div_ceil(2);
    while length > 0 {
        let mut at = 0;
        let mut shorter = false;
        while at < characters.len() {
            if start.elapsed() > patience {
                return characters.into_iter().collect();
            }
            let mut candidate = characters.clone();
            candidate.drain(at..(at + length).min(characters.len()));
            if fails(&candidate.iter().collect::<String>()) {
                characters = candidate;
                shorter = true;
            } else {
                at += length;
            }
        }
        // What could not go before may go now that other things went.
        if !shorter || length > 1 {
            length /= 2;
        }
    }
    characters.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_can_go_goes() {
        let fails = |text: &str| text.contains('(') && text.contains('é');
        let patience = Duration::from_secs(10);
        assert_eq!(shrink("some (text) with é in it", patience, fails), "(é");
        assert_eq!(shrink("", patience, |_| true), "");
    }
}
