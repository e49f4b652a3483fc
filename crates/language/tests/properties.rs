//! Properties of the language over random types, terms and texts.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails loudly")]

use language::{
    Entry, EvaluateError, Event, Generator, Index, JointVector, Literal, Name, PrefixChecker, Scheme, Signature,
    Substitution, Term, TermId, TermStore, Token, Type, TypeId, TypeStore, TypeVar, Vector6, check, evaluate, infer,
    parse, parse_scheme, parse_type, pretty, print, read, show_trace, term_of, tokens_of,
};
use proptest::prelude::*;

/// The default signature and a small polymorphic library.
fn world() -> (TermStore, Signature) {
    let mut store = TermStore::new();
    let mut signature = Signature::standard(&mut store);
    for (name, source) in [
        ("f0", r"\x. \p. seq[pick x, place x p]"),
        ("twice", r"\f. \x. f (f x)"),
        ("const", r"\x. \y. x"),
        ("f1", r#"\x. repeat(twice (\m. seq[m, f0 x (in "basket")]) (open x), 2)"#),
    ] {
        let term = parse(&mut store, &signature, source).unwrap().term;
        signature.define(&mut store, name, term).unwrap();
    }
    (store, signature)
}

fn generated(store: &mut TermStore, signature: &Signature, seed: u64, budget: u32) -> TermId {
    Generator::new(seed).term(store, signature, TypeId::MOTION, budget).unwrap().unwrap()
}

/// A type over the variables a, b, c and three base types.
fn random_type(generator: &mut Generator, types: &mut TypeStore, depth: u32) -> TypeId {
    match generator.below(if depth == 0 { 4 } else { 7 }) {
        0 | 1 => types.variable(TypeVar(generator.below(3) as u32)),
        2 => TypeId::POSE,
        3 => TypeId::LANG,
        _ => {
            let domain = random_type(generator, types, depth - 1);
            let codomain = random_type(generator, types, depth - 1);
            types.arrow(domain, codomain).unwrap()
        }
    }
}

/// A term without regard to types: variables may be free and applications wrong.
fn untyped_term(generator: &mut Generator, store: &mut TermStore, depth: u32) -> TermId {
    if depth == 0 || generator.below(6) == 0 {
        return match generator.below(4) {
            0 => store.variable(Index(generator.below(4) as u32)),
            1 => store.text("é\"\\\n\u{1}"),
            2 => store.natural(u64::MAX),
            _ => store.call(["pick", "in", "const", "x_pos"][generator.below(4)], &[]).unwrap(),
        };
    }
    let part = |generator: &mut Generator, store: &mut TermStore| untyped_term(generator, store, depth - 1);
    match generator.below(6) {
        0 | 1 => {
            let (function, argument) = (part(generator, store), part(generator, store));
            store.apply(function, argument).unwrap()
        }
        2 => {
            let body = part(generator, store);
            let name = store.name(["x", "pick", "const", "x1"][generator.below(4)]).unwrap();
            let annotation = random_type(generator, store.types_mut(), 2);
            store.lambda(name, (generator.below(2) == 0).then_some(annotation), body).unwrap()
        }
        3 => {
            let items: Vec<TermId> = (0..generator.below(4)).map(|_| part(generator, store)).collect();
            store.seq(&items).unwrap()
        }
        4 => {
            let (body, count) = (part(generator, store), part(generator, store));
            store.repeat(body, count).unwrap()
        }
        _ => {
            let parts = [part(generator, store), part(generator, store), part(generator, store)];
            store.branch(parts[0], parts[1], parts[2]).unwrap()
        }
    }
}

/// The same term, built with another name for every binder.
fn renamed(store: &mut TermStore, term: TermId, depth: u32) -> TermId {
    let parts: Vec<(TermId, u32)> = store.get(term).children();
    let parts: Vec<TermId> = parts.into_iter().map(|(part, under)| renamed(store, part, depth + under)).collect();
    match (store.get(term).clone(), &parts[..]) {
        (Term::Lambda { annotation, .. }, &[body]) => {
            let name = store.name(&format!("renamed{depth}")).unwrap();
            store.lambda(name, annotation, body).unwrap()
        }
        _ => store.with_children(term, &parts).unwrap(),
    }
}

/// The trace, unless it is too large: four nested `twice` of something that triples are a well-typed way to 3¹⁶ nodes.
fn within_limits(result: Result<Vec<Event>, EvaluateError>) -> Option<Vec<Event>> {
    match result {
        Ok(events) => Some(events),
        Err(EvaluateError::Normalize(_) | EvaluateError::TooManyEvents { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// A value of the reference evaluator, which knows neither substitution nor normal forms: λs are closures.
#[derive(Clone)]
enum Value {
    Closure(TermId, Vec<Value>),
    Literal(String),
    Call(Name, Vec<Value>),
    Trace(Vec<String>),
}

fn reference(store: &TermStore, signature: &Signature, term: TermId, scope: &[Value]) -> Value {
    let value = |term| reference(store, signature, term, scope);
    let lines = |term| trace_of(store, reference(store, signature, term, scope));
    match store.get(term) {
        Term::Variable(index) => scope[scope.len() - 1 - index.0 as usize].clone(),
        Term::Literal(_) => Value::Literal(print(store, term)),
        Term::Lambda { body, .. } => Value::Closure(*body, scope.to_vec()),
        Term::Constant(name) => match signature.get(*name).and_then(Entry::body) {
            Some(body) => reference(store, signature, body, &[]),
            None => Value::Call(*name, Vec::new()),
        },
        Term::Apply(function, argument) => match value(*function) {
            Value::Closure(body, mut scope) => {
                scope.push(value(*argument));
                reference(store, signature, body, &scope)
            }
            Value::Call(name, mut arguments) => {
                arguments.push(value(*argument));
                Value::Call(name, arguments)
            }
            _ => unreachable!("well-typed"),
        },
        Term::Seq(items) => Value::Trace(items.iter().flat_map(|&item| lines(item)).collect()),
        Term::Repeat(body, count) => {
            let Value::Literal(count) = value(*count) else { unreachable!("no primitive counts") };
            let once = lines(*body);
            Value::Trace((0..count.parse().unwrap()).flat_map(|_: u64| once.clone()).collect())
        }
        Term::Branch(condition, then, otherwise) => {
            let indented = |term| lines(term).into_iter().map(|line| format!("  {line}"));
            match value(*condition) {
                Value::Literal(known) => value(if known == "true" { *then } else { *otherwise }),
                condition => {
                    let mut trace = vec![format!("if {}", show_value(store, &condition, false))];
                    trace.extend(indented(*then));
                    trace.push("else".into());
                    trace.extend(indented(*otherwise));
                    Value::Trace(trace)
                }
            }
        }
    }
}

fn trace_of(store: &TermStore, value: Value) -> Vec<String> {
    match value {
        Value::Trace(lines) => lines,
        call => vec![show_value(store, &call, false)],
    }
}

fn show_value(store: &TermStore, value: &Value, argument: bool) -> String {
    match value {
        Value::Literal(text) => text.clone(),
        Value::Call(name, arguments) => {
            let parts: Vec<String> = arguments.iter().map(|argument| show_value(store, argument, true)).collect();
            let text = [&[store.spelling(*name).to_string()], &parts[..]].concat().join(" ");
            if argument && !arguments.is_empty() { format!("({text})") } else { text }
        }
        Value::Closure(..) | Value::Trace(_) => unreachable!("default primitives take neither functions nor motions"),
    }
}

/// Whether `specific` is `general` with types for its variables, found by matching and not by unification.
fn is_instance(types: &TypeStore, general: TypeId, specific: TypeId, bound: &mut [Option<TypeId>]) -> bool {
    match (types.get(general), types.get(specific)) {
        (Type::Variable(variable), _) => *bound[variable.0 as usize].get_or_insert(specific) == specific,
        (Type::Arrow(a, b), Type::Arrow(c, d)) => is_instance(types, a, c, bound) && is_instance(types, b, d, bound),
        _ => general == specific,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printing_and_parsing_round_trip(seed: u64, depth in 0u32..7, width in 1usize..100) {
        let (mut store, signature) = world();
        let term = untyped_term(&mut Generator::new(seed), &mut store, depth);
        for text in [print(&store, term), pretty(&store, term, width)] {
            let parsed = parse(&mut store, &signature, &text);
            prop_assert_eq!(parsed.map(|parsed| parsed.term), Ok(term), "{}", text);
        }
        let tokens = tokens_of(&store, term);
        prop_assert_eq!(term_of(&mut store, &tokens), Ok(term));
    }

    #[test]
    fn literals_round_trip_to_the_bit(bits: [u64; 6], content in any::<String>(), count: u64) {
        let (mut store, signature) = world();
        let values = bits.map(f64::from_bits).map(|value| if value.is_finite() { value } else { -0.0 });
        let vector = Vector6::new(values).unwrap();
        let text = store.text_literal(&content);
        let wrench = Literal::Wrench(vector);
        let joints = Literal::Joints(JointVector::new(&values[..1 + (count % 6) as usize]).unwrap());
        for literal in [Literal::Pose(vector), Literal::Twist(vector), wrench, joints, text, Literal::Natural(count)] {
            let term = store.literal(literal);
            let printed = print(&store, term);
            let parsed = parse(&mut store, &signature, &printed);
            prop_assert_eq!(parsed.map(|parsed| parsed.term), Ok(term), "{}", printed);
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(source in any::<String>()) {
        let (mut store, signature) = world();
        let _ = read(&mut store, &signature, &source, Some(TypeId::MOTION));
        let _ = parse_scheme(store.types_mut(), &source);
    }

    #[test]
    fn any_soup_of_words_is_parsed_or_refused(words in proptest::collection::vec(0usize..30, 0..60)) {
        const WORDS: [&str; 30] = [
            "seq", "repeat", "branch", "pose", "true", "\\x", "λ", ".", ":", ",", "(", ")", "[", "]", "->", "∀", "a",
            "Lang", "pick", "place", "\"b\"", "\"", "3", "-1.5e3", "$0", "x", "# c", "\n", "f1", "é",
        ];
        let source: Vec<&str> = words.into_iter().map(|word| WORDS[word]).collect();
        let (mut store, signature) = world();
        for source in [source.join(" "), source.concat()] {
            if let Err(report) = read(&mut store, &signature, &source, None) {
                prop_assert!(!report.errors.is_empty());
            }
            let _ = parse_type(store.types_mut(), &source);
        }
    }

    #[test]
    fn unification_is_symmetric_idempotent_and_most_general(seed: u64) {
        let mut types = TypeStore::new();
        let mut generator = Generator::new(seed);
        let [left, right] = [(); 2].map(|()| random_type(&mut generator, &mut types, 3));
        let mut forward = Substitution::with_variables(3);
        let mut backward = Substitution::with_variables(3);
        let unified = forward.unify(&types, left, right).is_ok();
        prop_assert_eq!(backward.unify(&types, right, left).is_ok(), unified);
        let variables: Vec<TypeId> = (0..3).map(|variable| types.variable(TypeVar(variable))).collect();
        if !unified {
            for variable in variables {
                prop_assert_eq!(forward.resolve(&mut types, variable), Ok(variable), "rolled back");
            }
            return Ok(());
        }
        let common = forward.resolve(&mut types, left).unwrap();
        prop_assert_eq!(forward.resolve(&mut types, right), Ok(common));
        prop_assert_eq!(forward.resolve(&mut types, common), Ok(common), "idempotent");
        let other = backward.resolve(&mut types, left).unwrap();
        prop_assert_eq!(types.generalise(common), types.generalise(other), "symmetric up to names");
        // Every ground unifier that a random search finds is an instance of ours.
        for _ in 0..20 {
            let ground: Vec<TypeId> = (0..3).map(|_| {
                let id = random_type(&mut generator, &mut types, 1);
                types.replace(id, &|_| Some(TypeId::NAT)).unwrap()
            }).collect();
            let apply = |types: &mut TypeStore, id| types.replace(id, &|v| Some(ground[v.0 as usize])).unwrap();
            let (instance, same) = (apply(&mut types, left), apply(&mut types, right));
            if instance == same {
                prop_assert!(is_instance(&types, common, instance, &mut [None; 3]));
            }
        }
    }

    #[test]
    fn inference_is_principal(seed: u64) {
        let (mut store, signature) = world();
        let mut generator = Generator::new(seed);
        let goal = generator.ground_type(&mut store, 4);
        let term = generator.term(&mut store, &signature, goal, 12).unwrap().unwrap();
        let scheme: Scheme = infer(&mut store, &signature, term).unwrap();
        let variables = scheme.variables() as usize;
        prop_assert!(is_instance(store.types(), scheme.body(), goal, &mut vec![None; variables]));
        // A type is a type of the term exactly if it is an instance of the principal one.
        for _ in 0..10 {
            let candidate = generator.ground_type(&mut store, 4);
            let instance = is_instance(store.types(), scheme.body(), candidate, &mut vec![None; variables]);
            prop_assert_eq!(check(&mut store, &signature, term, candidate).is_ok(), instance);
        }
    }

    #[test]
    fn evaluation_agrees_with_an_evaluator_by_closures(seed: u64, budget in 1u32..60) {
        let (mut store, signature) = world();
        let term = generated(&mut store, &signature, seed, budget);
        let Some(events) = within_limits(evaluate(&mut store, &signature, term)) else {
            return Ok(());
        };
        let expected = trace_of(&store, reference(&store, &signature, term, &[]));
        let found = show_trace(&store, &events);
        prop_assert_eq!(found.lines().collect::<Vec<_>>(), expected, "{}", print(&store, term));
    }

    #[test]
    fn reduction_preserves_type_and_meaning(seed: u64, budget in 1u32..40) {
        let (mut store, signature) = world();
        let term = generated(&mut store, &signature, seed, budget);
        let Some(before) = within_limits(evaluate(&mut store, &signature, term)) else {
            return Ok(());
        };
        let before = Ok(before);
        let normal = store.beta_normalize(term, 1 << 20, 1 << 24).unwrap();
        prop_assert_eq!(store.beta_normalize(normal, 1 << 20, 1 << 24), Ok(normal));
        prop_assert_eq!(evaluate(&mut store, &signature, normal), before.clone());
        let inlined = signature.inline(&mut store, term, |_| true).unwrap();
        prop_assert_eq!(evaluate(&mut store, &signature, inlined), before.clone());
        // A λ around and an argument that is not used change nothing.
        let raised = store.raise(term, 1).unwrap();
        let name = store.name("unused").unwrap();
        let wrapped = store.lambda(name, None, raised).unwrap();
        let redex = store.apply(wrapped, term).unwrap();
        prop_assert_eq!(evaluate(&mut store, &signature, redex), before);
    }

    #[test]
    fn alpha_variants_are_the_same_term_and_mean_the_same(seed: u64) {
        let (mut store, signature) = world();
        let term = generated(&mut store, &signature, seed, 30);
        let variant = renamed(&mut store, term, 0);
        prop_assert_eq!(variant, term);
        prop_assert_eq!(evaluate(&mut store, &signature, variant), evaluate(&mut store, &signature, term));
    }

    #[test]
    fn every_prefix_of_a_well_typed_term_is_accepted(seed: u64, budget in 1u32..60) {
        let (mut store, signature) = world();
        let term = generated(&mut store, &signature, seed, budget);
        let mut checker = PrefixChecker::new(&store, &signature, TypeId::MOTION);
        let mut state = checker.start();
        for token in tokens_of(&store, term) {
            prop_assert!(!state.is_complete());
            prop_assert_eq!(checker.allowed(&state, &[token]), vec![true]);
            state = checker.step(&state, token).unwrap();
        }
        prop_assert!(state.is_complete());
        prop_assert!(checker.step(&state, Token::Seq).is_err());
    }

    #[test]
    fn complete_prefixes_are_exactly_the_well_typed_terms(seed: u64, depth in 0u32..4) {
        let (mut store, signature) = world();
        let term = untyped_term(&mut Generator::new(seed), &mut store, depth);
        let mut checker = PrefixChecker::new(&store, &signature, TypeId::MOTION);
        let mut state = Some(checker.start());
        for token in tokens_of(&store, term) {
            state = state.and_then(|state| checker.step(&state, token).ok());
        }
        let accepted = state.is_some_and(|state| state.is_complete());
        prop_assert_eq!(check(&mut store, &signature, term, TypeId::MOTION).is_ok(), accepted);
    }
}
