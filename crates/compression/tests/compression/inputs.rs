//! Any input gives a result or an error: odd corpora, bad ones, deep ones, wide ones.

use compression::{Config, Corpus, CostKind, compress, verify};
use proptest::prelude::*;

use crate::corpora::{COSTS, Shape, compressed, config, corpus, programs, total};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_corpora_verify(
        programs in programs(Shape {
            symbols: &["f", "fn_0", "fn_1", "x"], lambdas: true, tags: true, leaves: 24, programs: 6,
        }),
        repeated in 1..=3usize,
        cost in prop::sample::select(COSTS.to_vec()),
        arity in 0..=3usize,
    ) {
        let programs = vec![programs; repeated].concat();
        let corpus = corpus(&programs);
        let compression = compressed(&corpus, &config(cost, arity, 4));
        prop_assert_eq!(verify(&corpus, &compression), Ok(()));
        prop_assert!(total(&compression) <= compression.original_cost + 1e-9);
    }

    #[test]
    fn arbitrary_texts_are_read_or_refused(texts in prop::collection::vec("[()$#a0_ lm]{0,12}", 0..4)) {
        if let Ok(corpus) = Corpus::from_sexprs(&texts)
            && let Ok(compression) = compress(&corpus, &config(CostKind::Nats, 2, 2), &|_| ())
        {
            prop_assert_eq!(verify(&corpus, &compression), Ok(()));
        }
    }
}

#[test]
fn small_corpora_are_no_trouble() {
    for texts in [&["a"][..], &["a", "a"], &["a", "b"], &["(lam $0)"], &["(f x)"], &["fn_0", "(fn_0 fn_0)"]] {
        for cost in COSTS {
            let corpus = corpus(texts);
            verify(&corpus, &compressed(&corpus, &config(cost, 2, 3))).unwrap();
        }
    }
}

#[test]
fn names_of_abstractions_are_new() {
    let corpus = corpus(&["(fn_0 (g a) (g b) fn_2)", "(fn_0 (g c) (g d) fn_2)", "(fn_0 (g e) (g e) fn_2)"]);
    let compression = compressed(&corpus, &config(CostKind::Stitch, 2, 3));
    assert_eq!(compression.abstractions[0].name, "fn_1");
    verify(&corpus, &compression).unwrap();
}

#[test]
fn an_empty_corpus_is_refused() {
    let empty = Corpus::from_sexprs::<&str>(&[]).unwrap();
    let error = compress(&empty, &Config::default(), &|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "the corpus has no program, expected at least one");
}

#[test]
fn all_bad_programs_are_listed() {
    let error = Corpus::from_sexprs(&["(f x", "(f x)", "", "(lam $1)", "(f #0)", "(f x))"]).unwrap_err();
    assert_eq!(error.problems.len(), 5);
    assert_eq!(
        error.to_string(),
        "program 0: `(` at byte 0 is never closed; add a `)`\n\
         program 2: the program is empty, expected an s-expression such as `(f x)`\n\
         program 3: the program has a free variable `$0`; every `$i` needs more than i `lam` around it\n\
         program 4: `#0` at byte 3 is a parameter, which only the body of an abstraction may use\n\
         program 5: unexpected text at byte 5 after the end of the program; one string holds one program"
    );
}

/// Compresses in a thread with the default stack. How long it takes is not asserted: a busy machine would decide it.
fn in_a_thread(texts: Vec<String>, cost: CostKind) {
    let run = move || {
        let corpus = corpus(&texts);
        let config = Config { max_steps: Some(20), lookahead: 0.0, ..config(cost, 2, 2) };
        verify(&corpus, &compressed(&corpus, &config)).unwrap();
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

const DEEP: usize = 100_000;

fn nested(open: &str, inside: &str) -> String {
    open.repeat(DEEP) + inside + &")".repeat(DEEP)
}

#[test]
fn deep_nesting_needs_neither_stack_nor_patience() {
    let cases = [
        nested("(f ", "x"),
        nested("(", "x"),
        "(lam ".to_owned() + &nested("(f ", "$0") + ")",
        "(lam (lam ".to_owned() + &nested("(f ", "$1") + "))",
        nested("(lam ", "$0"),
        nested("(lam (f ", "$1").replacen(')', "))", DEEP),
    ];
    for text in cases {
        for cost in [CostKind::Stitch, CostKind::Nats] {
            in_a_thread(vec![text.clone(), text.clone()], cost);
        }
    }
}

#[test]
fn wide_programs_need_no_patience() {
    let repeated = format!("(f{})", " a".repeat(DEEP));
    let distinct = format!("(f{})", (0..DEEP).map(|number| format!(" a{number}")).collect::<String>());
    for text in [repeated, distinct] {
        for cost in [CostKind::Stitch, CostKind::Nats] {
            in_a_thread(vec![text.clone(), text.clone()], cost);
        }
    }
}

/// Costs of single programs are 32 bits wide; prices in nats grow with the number of symbols.
#[test]
fn the_largest_program_of_distinct_symbols_fits() {
    let text = format!("(f{})", (0..1_000_000).map(|number| format!(" a{number}")).collect::<String>());
    in_a_thread(vec![text], CostKind::Nats);
}
