//! What a library is worth on programs that it was not learned from, and what kinds of entries it has.

use compression::{
    EntryKind, EntryKinds, Library, Programs, RefactorConfig, Strategy, admit_all, held_out_length, refactor,
};
use language::TermId;

use crate::worlds::World;

fn fetch(object: &str) -> String {
    format!(r#"seq[open "drawer", pick "{object}", place "{object}" (in "basket"), close "drawer"]"#)
}

fn learned(world: &mut World, held_out: &[String]) -> (Programs, Vec<TermId>) {
    let texts: Vec<String> = ["milk", "soup", "mug", "bowl", "plate", "book"].map(fetch).to_vec();
    let (training, held_out) = (world.read(&texts), world.read(held_out));
    let found = refactor(&world.bind(&Library::new(), &training), &RefactorConfig::default(), admit_all).unwrap();
    assert!(!found.programs.library().is_empty());
    (found.programs, held_out)
}

#[test]
fn a_library_shortens_programs_like_those_it_was_learned_from() {
    let mut world = World::new();
    let (training, held_out) = learned(&mut world, &[fetch("milk"), fetch("jar")]);
    let found = held_out_length(&training, &held_out, Strategy::Greedy).unwrap();
    assert_eq!((found.without_library.len(), found.with_library.len()), (2, 2));
    assert!(found.with_library[0] < found.without_library[0] - 1.0, "{found:?}");
    // A word that no training program has is known, but costs more than one that some have.
    assert!(found.with_library[1] < found.without_library[1] - 1.0, "{found:?}");
    assert!(found.with_library[1] > found.with_library[0] && found.with_library[1].is_finite());
    let (without, with) = found.totals();
    assert!((without - found.without_library.iter().sum::<f64>()).abs() < 1e-9 && with < without);
}

/// A library has nothing for a program of other motions. Its training programs have fewer productions all the same, and so an
/// unseen one is less improbable: that much any library saves.
#[test]
fn a_library_is_worth_less_on_other_programs() {
    let mut world = World::new();
    let other = r#"seq[turn_on "stove", push "pan" left]"#.to_owned();
    let (training, held_out) = learned(&mut world, &[fetch("jar"), other]);
    let found = held_out_length(&training, &held_out, Strategy::Cheapest).unwrap();
    let saved: Vec<f64> = found.without_library.iter().zip(&found.with_library).map(|(a, b)| a - b).collect();
    assert!(saved[0] / found.without_library[0] > 2.0 * saved[1] / found.without_library[1], "{found:?}");
}

/// Training programs `pick "a"` twice, held out `pick "b"`: at slots of Motion there is one production, of probability 1; at
/// slots of Lang `"a"` was used twice and `"b"` never, so p("b") = (0 + 1) / (2 + 2).
#[test]
fn the_length_of_a_held_out_program_is_what_a_hand_counts() {
    let mut world = World::new();
    let texts = [r#"pick "a""#, r#"pick "a""#, r#"pick "b""#].map(String::from);
    let read = world.read(&texts);
    let training = world.bind(&Library::new(), &read[..2]);
    let found = held_out_length(&training, &read[2..], Strategy::Greedy).unwrap();
    assert!((found.without_library[0] - 4.0f64.ln()).abs() < 1e-9, "{found:?}");
    assert_eq!(found.with_library, found.without_library);
    // Held-out programs are not counted: with more of them the price of each is the same.
    let more = held_out_length(&training, &[read[2], read[2], read[2]], Strategy::Greedy).unwrap();
    assert_eq!(more.without_library, vec![found.without_library[0]; 3]);
}

#[test]
fn kinds_of_entries_are_told_apart() {
    let world = World::new();
    let text = "several = \\x. seq[pick x, lift x]\n\
                pair = seq[pick \"a\", lift \"a\"]\n\
                constant = pick \"a\"\n\
                lacking = several\n\
                fixed = \\x. place x (in \"basket\")\n\
                inside = \\x. place \"a\" (in x)\n\
                then = \\x. \\m. seq[pick x, m]\n";
    let library = Library::from_text(text, &world.store, &world.base).unwrap();
    let programs = world.bind(&library, &[]);
    let kind = |name: &str| programs.definition(name).unwrap().kind;
    assert_eq!((kind("several"), kind("pair")), (EntryKind::SeveralMotions, EntryKind::SeveralMotions));
    assert_eq!(kind("constant"), EntryKind::Constant);
    assert_eq!((kind("lacking"), kind("fixed")), (EntryKind::PartialApplication, EntryKind::PartialApplication));
    assert_eq!((kind("inside"), kind("then")), (EntryKind::Other, EntryKind::Other));
    let counts = EntryKinds::of(&programs);
    assert_eq!(counts, EntryKinds { several_motions: 2, partial_applications: 2, constants: 1, others: 2 });
    assert_eq!(counts.total(), library.len());
}

#[test]
fn definitions_are_data() {
    let world = World::new();
    let text = "then = \\what. \\rest. seq[pick what, rest]\ntwofold = \\f. \\x. seq[then x (f x), f \"then\"]\n";
    let library = Library::from_text(text, &world.store, &world.base).unwrap();
    let programs = world.bind(&library, &[]);
    let both = programs.definition("twofold").unwrap();
    let parameters: Vec<_> = both.parameters.iter().map(|parameter| (&*parameter.name, &*parameter.ty)).collect();
    assert_eq!(parameters, [("f", "Lang -> Motion"), ("x", "Lang")]);
    // A text is no call.
    assert_eq!(both.calls, ["then"]);
    assert!(programs.definition("then").unwrap().calls.is_empty() && programs.definition("pick").is_none());
}
