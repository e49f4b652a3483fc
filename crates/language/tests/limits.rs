//! Nothing overflows the stack, runs away or panics at the limits. Test threads have the default 2 MiB stack.

use language::{
    Index, MAX_DEPTH, PrefixChecker, Signature, TermId, TermStore, TypeId, check, evaluate, infer, parse, parse_type,
    pretty, print, read, term_of, tokens_of,
};

fn world() -> (TermStore, Signature) {
    let mut store = TermStore::new();
    let signature = Signature::standard(&mut store);
    (store, signature)
}

/// Every operation on a term; the results do not matter here.
fn exercise(store: &mut TermStore, signature: &Signature, term: TermId) {
    for text in [print(store, term), pretty(store, term, 80), pretty(store, term, 1)] {
        // Brackets nest at most as deep as terms, so what prints parses.
        assert_eq!(parse(store, signature, &text).map(|parsed| parsed.term), Ok(term));
        let _ = read(store, signature, &text, Some(TypeId::MOTION));
    }
    let tokens = tokens_of(store, term);
    assert_eq!(term_of(store, &tokens), Ok(term));
    let typed = infer(store, signature, term).is_ok() && check(store, signature, term, TypeId::MOTION).is_ok();
    let mut checker = PrefixChecker::new(store, signature, TypeId::MOTION);
    let accepted = tokens.iter().try_fold(checker.start(), |state, &token| checker.step(&state, token).ok());
    assert_eq!(accepted.is_some_and(|state| state.is_complete()), typed);
    let _ = store.beta_normalize(term, 1 << 20, 1 << 20);
    let _ = evaluate(store, signature, term);
    let _ = store.raise(term, 7);
    let _ = store.lower(term, 7);
    let _ = store.has_free(term, Index(0));
    let _ = signature.inline(store, term, |_| true);
}

#[test]
fn every_operation_is_safe_on_the_deepest_terms() {
    let (mut store, signature) = world();
    type Wrap = fn(&mut TermStore, TermId) -> Result<TermId, language::TermError>;
    let wraps: [(&str, Wrap); 7] = [
        ("λ", |store, inner| {
            let name = store.name("x")?;
            store.lambda(name, None, inner)
        }),
        ("argument", |store, inner| store.call("pick", &[inner])),
        ("function", |store, inner| {
            let argument = store.text("a");
            store.apply(inner, argument)
        }),
        ("redex", |store, inner| {
            let name = store.name("x")?;
            let variable = store.variable(Index(0));
            let identity = store.lambda(name, None, variable)?;
            store.apply(identity, inner)
        }),
        ("repeat", |store, inner| {
            let count = store.natural(1);
            store.repeat(inner, count)
        }),
        ("branch", |store, inner| {
            let condition = store.text("c");
            let condition = store.call("is_open", &[condition])?;
            let nothing = store.seq(&[])?;
            store.branch(condition, inner, nothing)
        }),
        ("seq", |store, inner| {
            let one = store.natural(1);
            let repeated = store.repeat(inner, one)?;
            let nothing = store.text("a");
            let nothing = store.call("pick", &[nothing])?;
            store.seq(&[repeated, nothing])
        }),
    ];
    for (name, wrap) in wraps {
        let leaf = store.text("a");
        let mut term = store.call("pick", &[leaf]).unwrap();
        while let Ok(next) = wrap(&mut store, term) {
            term = next;
        }
        assert!(store.depth(term) > MAX_DEPTH - 2, "{name}");
        exercise(&mut store, &signature, term);
    }
}

#[test]
fn deep_and_long_texts_are_errors() {
    let (mut store, signature) = world();
    for piece in ["(", "\\x.", "seq[", "pick(", "repeat(", "branch(", "\\x:(", "[", "pose[", ")", "]", ",", "\"", "$"] {
        let report = parse(&mut store, &signature, &piece.repeat(100_000)).unwrap_err();
        assert!((1..=32).contains(&report.errors.len()), "{piece}: {}", report.errors.len());
    }
    assert!(parse_type(store.types_mut(), &"(a -> ".repeat(100_000)).is_err());
    let balanced = format!("{}seq[]{}", "(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(parse(&mut store, &signature, &balanced).unwrap_err().errors.len(), 1);
}

#[test]
fn long_sequences_are_no_problem() {
    let (mut store, signature) = world();
    let text = format!("seq[{}]", vec!["move x_pos"; 30_000].join(", "));
    let typed = read(&mut store, &signature, &text, Some(TypeId::MOTION)).unwrap();
    assert_eq!(evaluate(&mut store, &signature, typed.term).unwrap().len(), 30_000);
    let laid_out = pretty(&store, typed.term, 80);
    assert_eq!(parse(&mut store, &signature, &laid_out).unwrap().term, typed.term);
}

#[test]
fn a_long_chain_of_library_entries_unfolds() {
    let (mut store, mut signature) = world();
    let mut body = parse(&mut store, &signature, "\\x. pick x").unwrap().term;
    for entry in 0..3000 {
        let name = format!("f{entry}");
        signature.define(&mut store, &name, body).unwrap();
        body = store.call(&name, &[]).unwrap();
    }
    let soup = store.text("soup");
    let program = store.apply(body, soup).unwrap();
    assert_eq!(evaluate(&mut store, &signature, program).unwrap().len(), 1);
}
