//! Hints for options that have another name now and are still accepted.

use std::ffi::OsString;

/// Commands, an option as it was once, and how it is written now.
const OLD: [(&[&str], &str, &str); 3] = [
    (&["run", "train"], "--dataset", "datasets are written without `--dataset`, after the command"),
    (&["run", "train"], "--features", "`--features` is called `--cache`, as in `refactor-vla features`"),
    (&["eval"], "--features", "`--features` is called `--cache`, as in `refactor-vla features`"),
];

/// What to write instead of old options in a command line.
pub(crate) fn notes(words: &[OsString]) -> Vec<String> {
    let words: Vec<&str> = words.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let Some(command) = words.first() else { return Vec::new() };
    let has = |option: &str| words.iter().any(|word| word.split('=').next() == Some(option));
    let old = OLD.iter().filter(|(commands, option, _)| commands.contains(command) && has(option));
    old.map(|(_, _, hint)| (*hint).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_options_have_hints_where_they_were_options() {
        let of = |line: &str| notes(&line.split(' ').map(OsString::from).collect::<Vec<_>>()).len();
        assert_eq!(of("refactor-vla run --dataset a --features=b --out c"), 2);
        assert_eq!(of("refactor-vla run a --cache b --out c"), 0);
        assert_eq!(of("refactor-vla eval returns a --dataset b --features c"), 1);
        assert_eq!(of("refactor-vla"), 0);
    }
}
