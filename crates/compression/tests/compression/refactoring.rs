//! Refactoring, pruning and compiling: no program changes its meaning, and what is said to be gained is gained.

use compression::{
    Candidate, Config, Corpus, Library, NotProposed, PosteriorConfig, Programs, PruneConfig, RefactorConfig,
    Refactoring, Shape, StepEnd, Strategy, Verdict, admit_all, compile, compress, description_length, posterior, prune,
    refactor,
};
use language::{TermId, TermStore, evaluate, print};
use proptest::prelude::*;

use crate::worlds::{World, kitchen};

fn eager() -> RefactorConfig {
    RefactorConfig { min_gain: 0.0, max_arity: 3, ..RefactorConfig::default() }
}

fn step(world: &World, library: &Library, programs: &[TermId], config: &RefactorConfig) -> Refactoring<()> {
    refactor(&world.bind(library, programs), config, admit_all).unwrap()
}

/// Every place of a candidate stands for the steps that its expansion makes. `original` are the programs without a library,
/// terms of the store that the step started from.
fn check_places<T>(found: &Refactoring<T>, world: &World, original: &[TermId], candidate: &Candidate) -> usize {
    assert!(candidate.unplaced.is_empty());
    let mut store = found.store.clone();
    let mut checked = 0;
    for place in &candidate.places {
        assert_eq!(place.arguments.len().min(candidate.arity), place.arguments.len());
        let Some(steps) = place.steps.clone() else { continue };
        assert!(place.own.iter().all(|own| steps.start <= own.start && own.end <= steps.end && own.start < own.end));
        // An expansion that is no motion is an argument of the step.
        let Ok(trace) = evaluate(&mut store, &world.base, place.expansion) else { continue };
        let whole = evaluate(&mut store, &world.base, original[place.program]).unwrap();
        assert_eq!(trace, whole[steps], "{} in {}", print(&store, place.expansion), place.program);
        checked += 1;
    }
    checked
}

/// What is said of a candidate as text is said of its term.
fn check_term(world: &World, store: &TermStore, library: &Library, candidate: &Candidate) {
    let mut store = store.clone();
    assert_eq!(print(&store, candidate.term), candidate.body);
    // Entries that the step itself has admitted are not in the library that it started from.
    let Ok(signature) = library.define(&mut store, &world.base) else { return };
    let Ok(scheme) = language::infer(&mut store, &signature, candidate.term) else { return };
    assert_eq!(store.types().show_scheme(scheme), candidate.principal_type);
    assert_eq!(candidate.parameters.len(), candidate.arity);
    let (types, _) = store.types().uncurry(scheme.body());
    for (parameter, ty) in candidate.parameters.iter().zip(types) {
        assert_eq!(parameter.ty, store.types().show(ty));
        assert!(candidate.body.contains(&format!("\\{}.", parameter.name)), "{parameter:?} in {}", candidate.body);
    }
}

#[test]
fn without_a_gate_a_step_is_a_compression_without_lookahead() {
    let mut world = World::new();
    let programs = world.read(&kitchen());
    let corpus = Corpus::from_programs(&world.store, &world.base, &programs).unwrap();
    let compression = compress(&corpus, &Config { lookahead: 0.0, ..Config::default() }, &|_| ()).unwrap();
    let config = RefactorConfig { shape: Shape::Any, ..RefactorConfig::default() };
    let refactoring = step(&world, &Library::new(), &programs, &config);
    assert_eq!(refactoring.programs.texts(), compression.rewritten);
    assert!((refactoring.before.total() - compression.original_cost).abs() < 1e-6);
    assert!((refactoring.after.programs - compression.final_cost).abs() < 1e-6);
    assert!((refactoring.after.library - compression.library_cost).abs() < 1e-6);
    let library = refactoring.programs.library();
    assert_eq!(library.len(), compression.abstractions.len());
    for (entry, wanted) in library.entries().iter().zip(&compression.abstractions) {
        assert_eq!((&entry.name, &entry.body, entry.uses), (&wanted.name, &wanted.body, wanted.uses));
        assert_eq!((entry.arity, entry.gain), (wanted.arity, wanted.gain));
        assert_eq!(Some(&entry.principal_type), wanted.principal_type.as_ref());
    }
    let parallel = step(&world, &Library::new(), &programs, &RefactorConfig { threads: 3, ..config });
    assert_eq!((parallel.programs.library(), parallel.programs.texts()), (library, refactoring.programs.texts()));
}

#[test]
fn what_was_rejected_does_not_come_back() {
    let mut world = World::new();
    let programs = world.read(&kitchen());
    let programs = world.bind(&Library::new(), &programs);
    let reject = |_: &Candidate, _: &TermStore| Verdict { admitted: false, figures: 7 };
    let config = RefactorConfig { max_judged: 1000, ..RefactorConfig::default() };
    let rejected = refactor(&programs, &config, reject).unwrap();
    assert_eq!(rejected.end, StepEnd::NothingGains);
    assert!(rejected.programs.library().is_empty() && rejected.judged.len() > 5);
    assert_eq!(rejected.before, rejected.after);
    let mut bodies: Vec<&str> = rejected.judged.iter().map(|judged| &*judged.candidate.body).collect();
    bodies.sort_unstable();
    bodies.dedup();
    assert_eq!(bodies.len(), rejected.judged.len());
    assert!(rejected.judged.iter().all(|judged| judged.verdict.figures == 7 && judged.candidate.gain > 4.0));
    // With one rejected, the others are still found, and the limit on judgements ends the step.
    let first = rejected.judged[0].candidate.body.clone();
    let gate = |candidate: &Candidate, _: &TermStore| Verdict { admitted: candidate.body != first, figures: () };
    let config = RefactorConfig { max_judged: 3, ..config };
    let some = refactor(&programs, &config, gate).unwrap();
    assert_eq!((some.judged.len(), some.programs.library().len(), some.end), (3, 2, StepEnd::Judged));
}

#[test]
fn candidates_that_save_too_little_are_counted_and_not_judged() {
    let mut world = World::new();
    let programs = world.read(&kitchen());
    let programs = world.bind(&Library::new(), &programs);
    let reject = |_: &Candidate, _: &TermStore| Verdict { admitted: false, figures: () };
    let with = |min_gain: f64| {
        let config = RefactorConfig { min_gain, max_judged: 1000, ..RefactorConfig::default() };
        refactor(&programs, &config, reject).unwrap()
    };
    let (low, high) = (with(4.0), with(20.0));
    let above = low.judged.iter().filter(|judged| judged.candidate.gain > 20.0).count();
    assert_eq!(high.judged.len(), above);
    assert!(low.judged.len() > above && low.not_proposed.count > 0);
    // What is judged at the lower threshold only is now counted, and its best saving is the largest of those.
    let best = low.judged.iter().map(|judged| judged.candidate.gain).filter(|&gain| gain <= 20.0).fold(0.0, f64::max);
    assert!((high.not_proposed.best_gain.unwrap() - best).abs() < 1e-6, "{:?} {best}", high.not_proposed);
    assert!(high.not_proposed.count >= low.judged.len() - above);
    assert!(low.not_proposed.best_gain.unwrap() <= 4.0);
    // A corpus in which nothing is found says so.
    let few = world.read(&[r#"pick "a""#.to_owned()]);
    let nothing = step(&world, &Library::new(), &few, &RefactorConfig::default());
    assert_eq!(nothing.not_proposed, NotProposed { count: 0, best_gain: None });
}

#[test]
fn places_are_stretches_of_the_trace() {
    let mut world = World::new();
    let texts: Vec<String> = [("a", "u"), ("b", "v"), ("c", "w"), ("d", "x"), ("e", "y"), ("f", "z")]
        .iter()
        .flat_map(|(x, y)| {
            [
                format!(r#"seq[lift "{y}", pick "{x}", place "{x}" (in "box"), open "lid"]"#),
                format!(r#"repeat(seq[pick "{x}", place "{x}" (in "box"), open "lid"], 2)"#),
            ]
        })
        .collect();
    let programs = world.read(&texts);
    let config = RefactorConfig { max_admitted: 1, max_arity: 1, ..RefactorConfig::default() };
    let found = step(&world, &Library::new(), &programs, &config);
    let candidate = &found.judged[0].candidate;
    assert!(check_places(&found, &world, &programs, candidate) >= 12, "{candidate:?}");
    // Inside `repeat` there is one place for each time.
    let in_second: Vec<_> = candidate.places.iter().filter(|place| place.program == 1).collect();
    assert_eq!(in_second.len(), 2, "{candidate:?}");
    assert!(in_second[0].steps != in_second[1].steps);
}

#[test]
fn the_posterior_is_that_of_the_counts() {
    let mut world = World::new();
    let texts = [r#"seq[pick "a", pick "b", open "c"]"#.to_owned(), r#"f "d""#.to_owned()];
    let library = Library::from_text("f = \\x. seq[pick x, close x]", &world.store, &world.base).unwrap();
    let programs = world.read_with(&library, &texts);
    let programs = world.bind(&library, &programs);
    let found = posterior(&programs, PosteriorConfig::default()).unwrap();
    let all = (4 + 61 + 1) as f64;
    assert_eq!(found.calls, 4);
    for (name, calls) in [("pick", 2), ("open", 1), ("close", 0), ("f", 1)] {
        let constant = found.get(name).unwrap();
        assert_eq!((constant.calls, constant.share.mean), (calls, (calls + 1) as f64 / all), "{name}");
        assert!(constant.share.low < constant.share.mean && constant.share.mean < constant.share.high);
    }
    assert!((found.constants.iter().map(|constant| constant.share.mean).sum::<f64>() - 1.0).abs() < 1e-12);
    let bad = PosteriorConfig { alpha: 0.0, ..PosteriorConfig::default() };
    assert!(posterior(&programs, bad).is_err());
    assert!(programs.annotated(&found).library().get("f").unwrap().posterior.is_some());
}

#[test]
fn names_are_never_given_twice() {
    let mut world = World::new();
    let programs = world.read(&kitchen());
    let first =
        step(&world, &Library::new(), &programs, &RefactorConfig { max_admitted: 2, ..RefactorConfig::default() });
    let taken: Vec<String> = first.programs.library().entries().iter().map(|entry| entry.name.clone()).collect();
    assert_eq!(taken, ["fn_0", "fn_1"]);
    // No entry of so few programs pays for certain, so this removes every one.
    let all = PruneConfig { min_probability: 1.0, by_length: false, ..PruneConfig::default() };
    let pruned = prune(&first.programs, all).unwrap();
    assert!(pruned.programs.library().is_empty());
    let json = serde_json::to_string(pruned.programs.library()).unwrap();
    let empty = Library::from_json(&json, &world.store, &world.base).unwrap();
    let programs = Programs::read(&world.store, &world.base, &empty, &pruned.programs.texts()).unwrap();
    let again = refactor(&programs, &RefactorConfig { iteration: 2, ..RefactorConfig::default() }, admit_all).unwrap();
    let library = again.programs.library();
    let names: Vec<&str> = library.entries().iter().map(|entry| &*entry.name).collect();
    assert_eq!(names[..2], ["fn_2", "fn_3"]);
    assert!(library.entries().iter().all(|entry| entry.iteration == 2));
}

#[test]
fn the_compiler_fills_slots_and_counts() {
    let mut world = World::new();
    // `near` is called by `grab`, which comes first by gain; both are found in programs that know neither.
    let text =
        "grab [9 nats] = \\x. seq[near x, grasp x]\nnear [3 nats] = \\x. reach (on x)\nunused = \\x. stack x x\n";
    let library = Library::from_text(text, &world.store, &world.base).unwrap();
    let texts = [r#"seq[reach (on "a"), grasp "a", lift "a"]"#, r#"seq[open "b", reach (on "c")]"#, r#"open "d""#]
        .map(String::from);
    let programs = world.read(&texts);
    let compiled = compile(&world.bind(&library, &programs), Strategy::Greedy).unwrap();
    let written = compiled.programs.texts();
    // A sequence is a list: `grab` ends where its pattern does, so only a run that reaches the end is one.
    assert_eq!(written[1], r#"seq[open "b", near "c"]"#);
    assert_eq!(written[2], texts[2]);
    assert_eq!(compiled.rewritten, [true, true, false]);
    assert_eq!(compiled.share_rewritten(), 2.0 / 3.0);
    assert_eq!(compiled.entries_used(), 1);
    let call = &compiled.entries[1].calls[0];
    assert_eq!(shown(&compiled.programs, &call.arguments), [r#""a""#]);
    assert_eq!(print(compiled.programs.store(), call.term), r#"near "a""#);
    assert_eq!(World::traces_of(&compiled.programs), world.traces(&Library::new(), &programs));
}

#[test]
fn the_compiler_calls_entries_whose_body_lacks_arguments() {
    let mut world = World::new();
    // `onto` is `move_to` with one of its three arguments, and comes first by gain.
    let text =
        "move_to [3 nats] = \\p. \\x. \\y. seq[pick x, place x (on p), lift y]\nonto [9 nats] = move_to \"tray\"\n";
    let library = Library::from_text(text, &world.store, &world.base).unwrap();
    let texts =
        [r#"seq[pick "a", place "a" (on "tray"), lift "b"]"#, r#"seq[pick "c", place "c" (on "shelf"), lift "d"]"#]
            .map(String::from);
    let programs = world.read(&texts);
    let compiled = compile(&world.bind(&library, &programs), Strategy::Greedy).unwrap();
    assert_eq!(compiled.programs.texts(), [r#"onto "a" "b""#, r#"move_to "shelf" "c" "d""#]);
    assert_eq!(compiled.entries_used(), 2);
    let onto = compiled.entries.iter().find(|entry| entry.name == "onto").unwrap();
    assert!(onto.calls[0].arguments.is_empty());
    assert_eq!(shown(&compiled.programs, &onto.calls[0].applied_to), [r#""a""#, r#""b""#]);
    assert_eq!(World::traces_of(&compiled.programs), world.traces(&Library::new(), &programs));
}

#[test]
fn an_entry_that_takes_the_rest_is_called_where_nothing_is_left() {
    let mut world = World::new();
    let text = "two = \\x. \\rest. seq[pick x, lift x, rest]\none = \\x. \\rest. seq[open x, rest]\n";
    let library = Library::from_text(text, &world.store, &world.base).unwrap();
    let texts = [
        r#"seq[pick "a", lift "a", close "b"]"#,
        r#"seq[close "b", pick "a", lift "a"]"#,
        r#"seq[pick "a", lift "b"]"#,
        r#"open "c""#,
    ]
    .map(String::from);
    let programs = world.read(&texts);
    let compiled = compile(&world.bind(&library, &programs), Strategy::Greedy).unwrap();
    // One motion at the end is left as it is: nothing tells it from one in the middle.
    assert_eq!(
        compiled.programs.texts(),
        [r#"two "a" (close "b")"#, r#"seq[close "b", two "a" seq[]]"#, r#"seq[pick "a", lift "b"]"#, r#"open "c""#]
    );
    assert_eq!(World::traces_of(&compiled.programs), world.traces(&Library::new(), &programs));
    assert_eq!(compiled.entries[0].calls.len(), 2);
}

fn shown(programs: &Programs, terms: &[TermId]) -> Vec<String> {
    terms.iter().map(|&term| print(programs.store(), term)).collect()
}

/// Two outer iterations with pruning and compiling after each, everything measured from scratch.
fn iterate(world: &World, original: &[TermId], config: &RefactorConfig) -> usize {
    let mut programs = world.bind(&Library::new(), original);
    let traces = World::shown(&programs);
    let mut found = 0;
    for iteration in 1..=2 {
        let taken = programs.library().next();
        let config = RefactorConfig { iteration, max_admitted: 3, ..config.clone() };
        let result = refactor(&programs, &config, admit_all).unwrap();
        let (before, library) = (programs.library(), result.programs.library());
        let mut places = 0;
        for judged in &result.judged {
            places += check_places(&result, world, original, &judged.candidate);
            check_term(world, &result.store, before, &judged.candidate);
        }
        found += library.len() - before.len();
        assert!(result.judged.is_empty() || places > 0 || result.judged.iter().all(|j| !j.candidate.places.is_empty()));
        // Gains add up to the drop, and the drop is there when measured again.
        let gains: f64 = result.judged.iter().map(|judged| judged.candidate.gain).sum();
        assert!((result.before.total() - gains - result.after.total()).abs() < 1e-5);
        let measured = description_length(&result.programs).unwrap();
        assert!(
            (measured.total() - result.after.total()).abs() < 1e-4,
            "{measured:?} measured, {:?} said\n{}{}",
            result.after,
            library.to_text(),
            result.programs.texts().join("\n")
        );
        assert_eq!(World::shown(&result.programs), traces);
        let numbers = library.entries().iter().filter_map(|entry| entry.name[3..].parse::<u64>().ok());
        assert!(numbers.filter(|&number| number >= taken).count() == library.len() - before.len());
        check_text(world, &result.programs, &config);

        for min_probability in [0.0, 0.75] {
            let config = PruneConfig { min_probability, ..PruneConfig::default() };
            let pruned = prune(&result.programs, config).unwrap();
            assert_eq!(World::shown(&pruned.programs), traces);
            assert_eq!(pruned.programs.library().next(), library.next());
            let measured = description_length(&pruned.programs).unwrap();
            assert!((measured.total() - pruned.after.total()).abs() < 1e-4, "{measured:?}, {:?}", pruned.after);
            let saved: f64 = pruned.removed.iter().map(|removed| removed.saved).sum();
            assert!((pruned.before.total() - saved - pruned.after.total()).abs() < 1e-5);
        }
        let plain = world.bind(library, original);
        for strategy in [Strategy::Greedy, Strategy::Cheapest] {
            let compiled = compile(&plain, strategy).unwrap();
            assert_eq!(World::shown(&compiled.programs), traces);
            assert_eq!(compiled.programs.library(), library);
            let calls: usize = compiled.entries.iter().map(|entry| entry.calls.len()).sum();
            assert_eq!(calls > 0, compiled.rewritten.contains(&true));
        }
        programs = result.programs;
    }
    found
}

/// Programs that were written and read again are the same, and so is all that follows from them.
fn check_text(world: &World, programs: &Programs, config: &RefactorConfig) {
    let read = Programs::read(&world.store, &world.base, programs.library(), &programs.texts()).unwrap();
    assert_eq!(read.texts(), programs.texts());
    let names = |programs: &Programs| -> Vec<String> {
        let entries = programs.signature().entries().iter();
        entries.map(|entry| programs.store().spelling(entry.name).to_owned()).collect()
    };
    assert_eq!(names(&read), names(programs));
    let [one, other] = [programs, &read].map(|programs| refactor(programs, config, admit_all).unwrap());
    assert_eq!(one.programs.library(), other.programs.library());
    assert_eq!(one.programs.texts(), other.programs.texts());
    assert_eq!((one.after, one.steps, one.not_proposed), (other.after, other.steps, other.not_proposed));
    let bodies = |found: &Refactoring<()>| -> Vec<String> {
        found.judged.iter().map(|judged| judged.candidate.body.clone()).collect()
    };
    assert_eq!(bodies(&one), bodies(&other));
}

#[test]
fn iterations_on_the_kitchen_keep_every_promise() {
    let mut world = World::new();
    let programs = world.read(&kitchen());
    assert!(iterate(&world, &programs, &RefactorConfig::default()) > 2);
    let found = step(&world, &Library::new(), &programs, &RefactorConfig::default());
    let compiled = compile(&world.bind(found.programs.library(), &programs), Strategy::Greedy).unwrap();
    assert!(compiled.share_rewritten() > 0.9 && compiled.after.total() < compiled.before.total());
}

/// Inlining `place` for two arguments in an entry that gave it one left a λ, and with it another grammar when read again.
#[test]
fn inlining_a_call_that_lacks_arguments_is_measured_as_it_is_written() {
    let mut world = World::new();
    let programs = world.random(840_643_871_664_349_123, 4);
    iterate(&world, &programs, &eager());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn iterations_on_random_programs_keep_every_promise(seed in 0..u64::MAX, higher in any::<bool>()) {
        let mut world = if higher { World::higher_order() } else { World::new() };
        let programs = world.random(seed, 4);
        iterate(&world, &programs, &eager());
    }
}
