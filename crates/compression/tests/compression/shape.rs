//! The shape of skills: motions are parameters at the tail and in arms only, whatever the programs.

use compression::{
    Candidate, Config, Corpus, Library, Programs, RefactorConfig, Refactoring, Shape, Verdict, admit_all, compress,
    refactor,
};
use language::{Index, MAX_NORMALIZE_STEPS, MAX_SIZE, Signature, Term, TermId, TermStore, infer};
use proptest::prelude::*;

use crate::worlds::{World, kitchen};

/// Where a subterm stands, as the text of a body shows it once everything is unfolded.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    Tail,
    Arm,
    Item,
    Argument,
}

/// What is wrong with the shape of a library's entries.
fn faults(programs: &Programs) -> Vec<String> {
    let mut store = programs.store().clone();
    let mut faults = Vec::new();
    for entry in programs.library().entries() {
        let body = programs.definition(&entry.name).unwrap().body;
        let fault = fault_of(&mut store, programs.signature(), body);
        faults.extend(fault.map(|fault| format!("{fault} in {}\n{}", entry.body, programs.library().to_text())));
    }
    faults
}

fn fault_of(store: &mut TermStore, signature: &Signature, body: TermId) -> Option<String> {
    let inlined = signature.inline(store, body, |_| true).unwrap();
    let mut inner = store.beta_normalize(inlined, MAX_SIZE, MAX_NORMALIZE_STEPS).unwrap();
    let scheme = infer(store, signature, inner).unwrap();
    let (types, _) = store.types().uncurry(scheme.body());
    let mut params = 0;
    while let Term::Lambda { body, .. } = *store.get(inner) {
        (inner, params) = (body, params + 1);
    }
    let mut pending = vec![(inner, 0, At::Tail)];
    while let Some((term, depth, at)) = pending.pop() {
        match store.get(term).clone() {
            Term::Variable(Index(index)) if index >= depth => {
                let param = &types[params - 1 - (index - depth) as usize];
                let is_motion = store.types().show(*param).contains("Motion");
                if at == At::Item || is_motion && at == At::Argument {
                    return Some(format!("a parameter of type {} as {at:?}", store.types().show(*param)));
                }
            }
            Term::Lambda { body, .. } => pending.push((body, depth + 1, at)),
            Term::Apply(function, argument) => {
                if matches!(*store.get(function), Term::Variable(Index(index)) if index >= depth) {
                    return Some("a parameter that is applied".into());
                }
                pending.extend([(function, depth, at), (argument, depth, At::Argument)]);
            }
            Term::Seq(items) => {
                let last = items.len().saturating_sub(1);
                let places = items.iter().enumerate();
                pending.extend(places.map(|(place, &item)| (item, depth, if place == last { at } else { At::Item })));
            }
            Term::Repeat(body, count) => pending.extend([(body, depth, At::Arm), (count, depth, At::Argument)]),
            Term::Branch(condition, then, otherwise) => {
                let arms = [(then, depth, At::Arm), (otherwise, depth, At::Arm)];
                pending.extend(arms.into_iter().chain([(condition, depth, At::Argument)]));
            }
            Term::Variable(_) | Term::Constant(_) | Term::Literal(_) => {}
        }
    }
    None
}

fn step(world: &World, library: &Library, programs: &[TermId], config: &RefactorConfig) -> Refactoring<()> {
    refactor(&world.bind(library, programs), config, admit_all).unwrap()
}

/// Programs of motions with what is continuous as their arguments, as those of the skills crate are.
fn motor(world: &mut World, seed: u64, count: usize) -> Vec<TermId> {
    let mut state = seed;
    let mut below = move |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    for skill in 0..4 {
        let name = format!("skill_{skill}");
        world.base.declare(&mut world.store, &name, "Twist -> Nat -> Motion", "a skill").unwrap();
    }
    let mut texts = Vec::new();
    for _ in 0..count {
        let mut calls = [0, 1, 2, 3]
            .map(|skill| format!("skill_{skill} twist[{}, {}, 0, 0, 0, 0] {}", below(9), below(9), 4 + 2 * below(3)));
        let tail = std::mem::take(&mut calls[3]);
        let mut items = calls[..3].to_vec();
        match below(4) {
            0 => items.insert(0, tail),
            1 => items.push(tail),
            2 => items.push(format!("repeat(seq[{}, {tail}], {})", items[1], 2 + below(2))),
            _ => items.push(format!(r#"branch(is_open "lid", {tail}, seq[{}, {tail}])"#, items[0])),
        }
        texts.push(format!("seq[{}]", items.join(", ")));
    }
    world.read(&texts)
}

/// What the refactoring of motor programs admitted: a motion in front of, and one behind, the only own call.
#[test]
fn motions_around_a_call_are_no_skill() {
    let mut world = World::new();
    let programs = motor(&mut world, 5, 40);
    let config = RefactorConfig { max_arity: 4, ..RefactorConfig::default() };
    let free = step(&world, &Library::new(), &programs, &RefactorConfig { shape: Shape::Any, ..config.clone() });
    assert!(!faults(&free.programs).is_empty(), "{}", free.programs.library().to_text());
    let shaped = step(&world, &Library::new(), &programs, &config);
    assert_eq!(faults(&shaped.programs), Vec::<String>::new());
    assert!(shaped.programs.library().len() > 2 && shaped.steps < free.steps, "{}, {}", shaped.steps, free.steps);
}

/// Entries that were there before, and calls of them that only a person writes, are seen through.
#[test]
fn what_an_entry_does_with_a_motion_counts() {
    let mut world = World::new();
    let text = "then = \\x. \\m. seq[pick x, m]\nthrice = \\m. repeat(m, 3)\nfirst = \\m. \\x. seq[m, pick x]\n";
    let library = Library::from_text(text, &world.store, &world.base).unwrap();
    let motions = [r#"(open "q")"#, r#"(lift "b")"#, r#"(lift "c")"#, r#"(lift "d")"#];
    for (call, is_param) in [(r#"then "o" M"#, false), ("thrice M", true), (r#"first M "o""#, false)] {
        let program = |motion: &&str| format!(r#"seq[{}, close "far", stack "s" "t"]"#, call.replace('M', motion));
        let texts: Vec<String> = motions.iter().cycle().take(12).map(program).collect();
        let programs = world.read_with(&library, &texts);
        let config = RefactorConfig { min_gain: 0.0, max_judged: 500, ..RefactorConfig::default() };
        let refuse = |_: &Candidate, _: &TermStore| Verdict { admitted: false, figures: () };
        let found = refactor(&world.bind(&library, &programs), &config, refuse).unwrap();
        let mut store = found.store.clone();
        let signature = library.define(&mut store, &world.base).unwrap();
        for judged in &found.judged {
            let fault = fault_of(&mut store, &signature, judged.candidate.term);
            assert_eq!(fault, None, "{}", judged.candidate.body);
        }
        let takes_motion = |body: &str| (0..2).any(|param| body.contains(&call.replace('M', &format!("x{param}"))));
        let found_any = found.judged.iter().any(|judged| takes_motion(&judged.candidate.body));
        assert_eq!(found_any, is_param, "{call}");
    }
}

#[test]
fn a_call_with_some_arguments_fixed_is_kept() {
    let mut world = World::new();
    let programs = motor(&mut world, 11, 60);
    let config = RefactorConfig { max_arity: 6, max_admitted: 12, ..RefactorConfig::default() };
    let found = step(&world, &Library::new(), &programs, &config);
    let is_partial = |body: &str| body.trim_start_matches(|c| c != 'f').starts_with("fn_") && !body.contains("seq");
    let library = found.programs.library();
    assert!(library.entries().iter().any(|entry| is_partial(&entry.body)), "{}", library.to_text());
}

#[test]
fn without_the_shape_a_step_searches_as_compress_does() {
    let mut world = World::new();
    let programs = world.read(&kitchen());
    let corpus = Corpus::from_programs(&world.store, &world.base, &programs).unwrap();
    let wanted = compress(&corpus, &Config { lookahead: 0.0, max_arity: 3, ..Config::default() }, &|_| ()).unwrap();
    let config = RefactorConfig { max_arity: 3, shape: Shape::Any, ..RefactorConfig::default() };
    let found = step(&world, &Library::new(), &programs, &config);
    assert_eq!((found.programs.texts(), found.steps), (wanted.rewritten, wanted.steps));
}

/// Two steps, the second on what the first has written.
fn check(world: &World, programs: &[TermId], config: &RefactorConfig) -> Result<(), TestCaseError> {
    let mut programs = world.bind(&Library::new(), programs);
    let traces = World::shown(&programs);
    for _ in 0..2 {
        let found = refactor(&programs, config, admit_all).unwrap();
        prop_assert_eq!(faults(&found.programs), Vec::<String>::new());
        prop_assert_eq!(&World::shown(&found.programs), &traces);
        let parallel = refactor(&programs, &RefactorConfig { threads: 2, ..config.clone() }, admit_all).unwrap();
        prop_assert_eq!(&parallel.programs.texts(), &found.programs.texts());
        programs = found.programs;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn entries_over_random_programs_have_the_shape(seed in 0..u64::MAX, higher in any::<bool>(), arity in 1..=4usize) {
        let mut world = if higher { World::higher_order() } else { World::new() };
        let programs = world.random(seed, 4);
        let config = RefactorConfig { min_gain: 0.0, max_arity: arity, max_steps: Some(3000), ..RefactorConfig::default() };
        check(&world, &programs, &config)?;
    }

    #[test]
    fn entries_over_motor_programs_have_the_shape(seed in 0..u64::MAX, arity in 2..=6usize) {
        let mut world = World::new();
        let programs = motor(&mut world, seed, 16);
        let config = RefactorConfig { min_gain: 0.0, max_arity: arity, max_steps: Some(3000), ..RefactorConfig::default() };
        check(&world, &programs, &config)?;
    }
}
