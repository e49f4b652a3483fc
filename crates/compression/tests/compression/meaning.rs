//! Rewriting preserves what programs do, and every abstraction has a type.

use compression::{Compression, Config, Corpus, CostKind, verify};
use language::{Event, Generator, Signature, TermId, TermStore, TypeId, evaluate, parse, read};

use crate::corpora::{compressed, config};

/// The default signature and a small polymorphic library.
fn world() -> (TermStore, Signature) {
    let mut store = TermStore::new();
    let mut signature = Signature::standard(&mut store);
    for (name, source) in [("twice", r"\f. \x. f (f x)"), ("const", r"\x. \y. x"), ("fn_0", r"\x. seq[pick x, pick x]")]
    {
        let term = parse(&mut store, &signature, source).unwrap().term;
        signature.define(&mut store, name, term).unwrap();
    }
    (store, signature)
}

/// What a rewritten program does, with the library defined.
fn traces(store: &mut TermStore, signature: &Signature, compression: &Compression) -> Vec<Vec<Event>> {
    let mut library = signature.clone();
    let mut left: Vec<_> = compression.abstractions.iter().collect();
    while !left.is_empty() {
        let before = left.len();
        left.retain(|entry| {
            // Entries may call later ones.
            let Ok(body) = read(store, &library, &entry.body, None) else { return true };
            let name = library.define(store, &entry.name, body.term).unwrap();
            let scheme = library.get(name).unwrap().scheme;
            assert_eq!(entry.principal_type.as_deref(), Some(&*store.types().show_scheme(scheme)), "{}", entry.body);
            false
        });
        assert!(left.len() < before, "no entry of {left:?} can be defined");
    }
    let run = |text: &String| {
        let program =
            read(store, &library, text, Some(TypeId::MOTION)).unwrap_or_else(|report| panic!("{text}: {report}"));
        evaluate(store, &library, program.term).unwrap()
    };
    compression.rewritten.iter().map(run).collect()
}

fn check(store: &mut TermStore, signature: &Signature, programs: &[TermId], config: &Config) -> usize {
    let corpus = Corpus::from_programs(store, signature, programs).unwrap();
    let compression = compressed(&corpus, config);
    verify(&corpus, &compression).unwrap();
    let rewritten = traces(store, signature, &compression);
    for (&program, rewritten) in programs.iter().zip(rewritten) {
        assert_eq!(evaluate(store, signature, program).unwrap(), rewritten);
    }
    compression.abstractions.len()
}

#[test]
fn random_programs_keep_their_meaning() {
    let mut abstractions = 0;
    for seed in 0..60 {
        let (mut store, signature) = world();
        let mut generator = Generator::new(seed);
        let mut programs: Vec<TermId> =
            (0..10).filter_map(|_| generator.term(&mut store, &signature, TypeId::MOTION, 40).unwrap()).collect();
        // A random program may make too many calls.
        programs.retain(|&program| evaluate(&mut store, &signature, program).is_ok());
        if programs.is_empty() {
            continue;
        }
        for cost in [CostKind::Stitch, CostKind::Nats] {
            abstractions += check(&mut store, &signature, &programs, &Config { lookahead: 0.5, ..config(cost, 2, 3) });
        }
    }
    assert!(abstractions > 100, "only {abstractions} abstractions were tried");
}

#[test]
fn every_form_of_the_language_keeps_its_meaning() {
    let (mut store, signature) = world();
    let mut texts = Vec::new();
    for (a, b) in [("soup", "basket"), ("milk", "basket"), ("butter", "tray"), ("mug", "plate")] {
        texts.push(format!(r#"seq[pick "{a}", place "{a}" (in "{b}"), pick "{a}", open "{b}"]"#));
        texts.push(format!(r#"repeat(seq[pick "{a}", repeat(open "{b}", 3)], 2)"#));
        texts.push(format!(r#"branch(true, seq[pick "{a}", place "{a}" (on "{b}")], seq[])"#));
        texts.push(format!(r#"(\x. seq[pick x, twice (\m. seq[m, place x (in "{b}")]) (open "{a}")]) "{a}""#));
        texts.push(format!(r#"twice (\m:Motion. seq[open "{a}", m, close "{a}"]) (const (pick "{b}") "{a}")"#));
    }
    let programs: Vec<TermId> = texts
        .iter()
        .map(|text| {
            read(&mut store, &signature, text, Some(TypeId::MOTION)).unwrap_or_else(|e| panic!("{text}: {e}")).term
        })
        .collect();
    for cost in [CostKind::Stitch, CostKind::Nats, CostKind::UniformNats] {
        for arity in 0..=3 {
            let found = check(&mut store, &signature, &programs, &config(cost, arity, 6));
            assert!(found > 0 || arity == 0, "{cost:?} arity {arity}");
        }
    }
}

/// The signature knows `fn_0`, though no program calls it.
#[test]
fn names_of_a_library_that_no_program_calls_are_not_taken() {
    let (mut store, signature) = world();
    let programs: Vec<TermId> = ["a", "b", "c", "d", "e"]
        .map(|name| format!(r#"seq[pick "{name}", place "{name}" (in "basket")]"#))
        .iter()
        .map(|text| parse(&mut store, &signature, text).unwrap().term)
        .collect();
    assert_eq!(check(&mut store, &signature, &programs, &config(CostKind::Stitch, 1, 1)), 1);
}
