//! Instructions of public benchmarks and community datasets: how many parse to what a person writes, what is kept of a
//! sentence that is understood in part, and what an error suggests.

use std::fmt::Write;

use language::instruction::{self, InstructionError};
use language::{Signature, TermStore, TypeId};
use proptest::prelude::*;

const WILD: &str = include_str!("../fixtures/wild_instructions.txt");

/// The lines of a fixture: source, instruction, program.
fn lines(fixture: &str) -> impl Iterator<Item = [&str; 3]> {
    let rows = fixture.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    rows.map(|line| {
        let fields: Vec<&str> = line.splitn(3, " | ").collect();
        fields.try_into().unwrap_or_else(|_| panic!("three fields: {line}"))
    })
}

/// How many instructions of a fixture there are, how many are understood as a person writes them, and how many of those
/// without a problem; the rest as text.
fn score(fixture: &str) -> (usize, usize, usize, String) {
    let mut store = TermStore::new();
    let signature = Signature::general(&mut store);
    let (mut all, mut right, mut whole, mut wrong) = (0, 0, 0, String::new());
    for [source, text, expected] in lines(fixture) {
        let program = language::parse(&mut store, &signature, expected);
        let program = program.unwrap_or_else(|report| panic!("{text}: {report:?}")).term;
        all += 1;
        match instruction::understand(text, &mut store, &signature) {
            Ok(found) if found.term == program => {
                right += 1;
                whole += usize::from(found.missing.is_empty());
            }
            Ok(found) => {
                let read = language::print(&store, found.term);
                writeln!(wrong, "{source}: {text}\n    expected {expected}\n    found    {read}").unwrap();
            }
            Err(error) => writeln!(wrong, "{source}: {text}\n    expected {expected}\n    error    {error}").unwrap(),
        }
    }
    (all, right, whole, wrong)
}

#[test]
fn finding_8_instructions_in_the_wild() {
    let (all, right, whole, wrong) = score(WILD);
    println!("{right} of {all} as a person writes them, {whole} without a problem\n{wrong}");
    assert!(all >= 300, "{all} instructions");
    assert!(right * 100 >= all * 90, "{right} of {all}\n{wrong}");
}
