//! The incremental checker against inference: exactness by enumeration, and cost by counting.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails loudly")]

use std::collections::BTreeSet;

use language::{
    Base, Generator, Head, Index, PrefixChecker, PrefixState, Signature, TermStore, Token, TypeId, check, parse,
    term_of, tokens_of,
};

fn head(store: &mut TermStore, word: &str, args: u32) -> Token {
    Token::Head { head: Head::Constant(store.name(word).unwrap()), args }
}

fn variable(index: u32, args: u32) -> Token {
    Token::Head { head: Head::Variable(Index(index)), args }
}

/// A signature with a polymorphic and a higher-order constant, and a vocabulary over it.
fn small_world() -> (TermStore, Signature, Vec<Token>) {
    let mut store = TermStore::new();
    let mut signature = Signature::empty();
    for (name, type_text) in [
        ("go", "Lang -> Motion"),
        ("soup", "Lang"),
        ("same", "forall a. a -> a"),
        ("hold", "(Motion -> Motion) -> Motion"),
    ] {
        signature.declare(&mut store, name, type_text, "").unwrap();
    }
    let vocabulary = vec![
        head(&mut store, "soup", 0),
        variable(0, 0),
        variable(0, 1),
        head(&mut store, "go", 0),
        head(&mut store, "go", 1),
        head(&mut store, "same", 0),
        head(&mut store, "same", 1),
        head(&mut store, "same", 2),
        head(&mut store, "hold", 1),
        Token::Lambda(None),
        Token::Lambda(Some(TypeId::LANG)),
        Token::Apply { args: 1 },
        Token::Seq,
        Token::EndSeq,
    ];
    (store, signature, vocabulary)
}

/// Calls `visit` for all token sequences of up to `length` tokens that are terms, typed or not.
fn enumerate(
    store: &mut TermStore,
    vocabulary: &[Token],
    length: usize,
    tokens: &mut Vec<Token>,
    visit: &mut dyn FnMut(&mut TermStore, &[Token]),
) {
    if tokens.len() == length {
        return;
    }
    for &token in vocabulary {
        tokens.push(token);
        match term_of(store, tokens) {
            Ok(_) => visit(store, tokens),
            Err(language::TokenError::Truncated) => enumerate(store, vocabulary, length, tokens, visit),
            Err(_) => {}
        }
        tokens.pop();
    }
}

fn run(checker: &mut PrefixChecker, tokens: &[Token]) -> Option<PrefixState> {
    tokens.iter().try_fold(checker.start(), |state, &token| checker.step(&state, token).ok())
}

/// Completes a prefix with the first token that is allowed, from a vocabulary of leaves before everything else.
fn complete(checker: &mut PrefixChecker, state: &PrefixState, closing: &[Token], tokens: &mut Vec<Token>) -> bool {
    let mut state = state.clone();
    for _ in 0..10_000 {
        if state.is_complete() {
            return true;
        }
        let Some(at) = checker.allowed(&state, closing).iter().position(|&allowed| allowed) else {
            return false;
        };
        tokens.push(closing[at]);
        state = checker.step(&state, closing[at]).unwrap();
    }
    false
}

#[test]
fn a_prefix_is_accepted_exactly_if_a_well_typed_term_begins_with_it() {
    let (mut store, signature, vocabulary) = small_world();
    let mut checker = PrefixChecker::new(&store, &signature, TypeId::MOTION);

    // Whatever begins a well-typed term is accepted.
    let mut prefixes: BTreeSet<Vec<Token>> = BTreeSet::new();
    let mut terms = 0;
    enumerate(&mut store, &vocabulary, 5, &mut Vec::new(), &mut |store, tokens| {
        let term = term_of(store, tokens).unwrap();
        let typed = check(store, &signature, term, TypeId::MOTION).is_ok();
        assert_eq!(run(&mut checker, tokens).is_some_and(|state| state.is_complete()), typed, "{tokens:?}");
        if typed {
            terms += 1;
            prefixes.extend((0..=tokens.len()).map(|length| tokens[..length].to_vec()));
        }
    });
    assert!(terms > 100, "only {terms} terms");
    for prefix in &prefixes {
        assert!(run(&mut checker, prefix).is_some(), "{prefix:?}");
    }

    // Whatever is accepted begins a well-typed term: here is one.
    let two = Token::Head { head: Head::Literal(language::Literal::Natural(2)), args: 0 };
    let closing = [vocabulary[0], two, Token::EndSeq, Token::Seq, Token::Lambda(None), Token::Repeat];
    let mut pending = vec![Vec::new()];
    let mut accepted = 0;
    while let Some(prefix) = pending.pop() {
        let Some(state) = run(&mut checker, &prefix) else {
            assert!(!prefixes.contains(&prefix));
            continue;
        };
        accepted += 1;
        let mut tokens = prefix.clone();
        assert!(complete(&mut checker, &state, &closing, &mut tokens), "{prefix:?} is stuck at {tokens:?}");
        let term = term_of(&mut store, &tokens).unwrap();
        assert!(check(&mut store, &signature, term, TypeId::MOTION).is_ok(), "{tokens:?}");
        if prefix.len() < 3 {
            pending.extend(vocabulary.iter().map(|&token| [&prefix[..], &[token]].concat()));
        }
    }
    assert!(accepted > 100, "only {accepted} prefixes");
}

#[test]
fn random_walks_over_the_whole_signature_can_be_completed() {
    let mut store = TermStore::new();
    let mut signature = Signature::standard(&mut store);
    let twice = parse(&mut store, &signature, r"\f. \x. f (f x)").unwrap().term;
    signature.define(&mut store, "twice", twice).unwrap();
    let mut vocabulary = vec![Token::Seq, Token::EndSeq, Token::Repeat, Token::Branch, Token::Lambda(None)];
    vocabulary.extend([Token::Apply { args: 1 }, Token::Apply { args: 2 }, variable(0, 0), variable(1, 1)]);
    for entry in signature.entries() {
        vocabulary.extend((0..4).map(|args| Token::Head { head: Head::Constant(entry.name), args }));
    }
    let mut closing = vec![variable(0, 0)];
    for literal in ["\"soup\"", "2", "true", "left", "still", "wrench[0,0,0,0,0,0]", "grip_open"] {
        let term = parse(&mut store, &signature, literal).unwrap().term;
        closing.extend(tokens_of(&store, term));
    }
    closing.extend([Token::EndSeq, Token::Seq, Token::Lambda(None), Token::Repeat]);
    vocabulary.extend(&closing);

    let mut checker = PrefixChecker::new(&store, &signature, TypeId::MOTION);
    assert_eq!(checker.uninhabited(), []);
    for seed in 0..300 {
        let mut generator = Generator::new(seed);
        let mut state = checker.start();
        let mut tokens = Vec::new();
        for _ in 0..generator.below(25) {
            let allowed = checker.allowed(&state, &vocabulary);
            let choices: Vec<Token> =
                (0..vocabulary.len()).filter(|&at| allowed[at]).map(|at| vocabulary[at]).collect();
            if state.is_complete() {
                assert!(choices.is_empty());
                break;
            }
            let token = choices[generator.below(choices.len())];
            tokens.push(token);
            state = checker.step(&state, token).unwrap();
        }
        assert!(complete(&mut checker, &state, &closing, &mut tokens), "{tokens:?}");
        let term = term_of(&mut store, &tokens).unwrap();
        assert!(check(&mut store, &signature, term, TypeId::MOTION).is_ok());
        assert_eq!(tokens_of(&store, term), tokens);
    }
}

#[test]
fn the_cost_of_a_step_does_not_grow_with_the_prefix() {
    let mut store = TermStore::new();
    let mut signature = Signature::standard(&mut store);
    for (name, source) in [("twice", r"\f. \x. f (f x)"), ("f0", r"\x. \p. seq[pick x, place x p]")] {
        let term = parse(&mut store, &signature, source).unwrap().term;
        signature.define(&mut store, name, term).unwrap();
    }
    // Polymorphic calls, λs without types and redexes make new type variables in every item.
    let item = r#"twice (\m. seq[m, (\x. f0 x (on x)) "bowl"]) (repeat(branch(true, open "a", seq[]), 2))"#;
    let term = parse(&mut store, &signature, item).unwrap().term;
    let item = tokens_of(&store, term);
    let mut checker = PrefixChecker::new(&store, &signature, TypeId::MOTION);
    let mut state = checker.step(&checker.start(), Token::Seq).unwrap();
    let mut costs: Vec<u64> = Vec::new();
    for _ in 0..4000 {
        let before = state.unifier_steps();
        for &token in &item {
            state = checker.step(&state, token).unwrap();
        }
        costs.push(state.unifier_steps() - before);
    }
    assert!(costs.iter().all(|&cost| cost == costs[0]), "first {}, last {}", costs[0], costs[3999]);
    assert!(costs[0] < 20 * item.len() as u64, "{} steps for {} tokens", costs[0], item.len());
}

#[test]
fn forks_do_not_disturb_each_other() {
    let (mut store, signature, _) = small_world();
    let mut checker = PrefixChecker::new(&store, &signature, TypeId::MOTION);
    let start = checker.start();
    let applied = checker.step(&start, head(&mut store, "same", 2)).unwrap();
    assert_eq!(checker.wanted(&applied).as_deref(), Some("a -> Motion"));
    let go = checker.step(&applied, head(&mut store, "go", 0)).unwrap();
    let same = checker.step(&applied, head(&mut store, "same", 0)).unwrap();
    assert_eq!(checker.wanted(&go).as_deref(), Some("Lang"));
    assert_eq!(checker.wanted(&same).as_deref(), Some("Motion"));
    assert_eq!(checker.wanted(&applied).as_deref(), Some("a -> Motion"));
    let done = checker.step(&go, head(&mut store, "soup", 0)).unwrap();
    assert!(done.is_complete() && checker.wanted(&done).is_none());
}

#[test]
fn a_type_too_large_to_show_is_not_mistaken_for_a_complete_term() {
    let (mut store, signature, _) = small_world();
    let mut checker = PrefixChecker::new(&store, &signature, TypeId::MOTION);
    let start = checker.start();
    let applied = checker.step(&start, head(&mut store, "same", 333)).unwrap();
    assert!(!applied.is_complete());
    let wanted = checker.wanted(&applied).unwrap();
    assert!(wanted.contains("too large"), "{wanted}");
}

#[test]
fn beams_can_live_on_several_threads() {
    fn shareable<T: Send + Sync + Clone + 'static>() {}
    shareable::<PrefixChecker>();
    shareable::<PrefixState>();
    shareable::<TermStore>();
    shareable::<Signature>();
}

#[test]
fn types_without_terms_are_named() {
    let (store, signature, _) = small_world();
    let checker = PrefixChecker::new(&store, &signature, TypeId::MOTION);
    assert_eq!(checker.uninhabited(), [Base::GripperPhase]);
}
