//! Refactoring, pruning and compiling: no program changes its meaning, and what is said to be gained is gained.

use compression::{
    Candidate, Config, Corpus, Library, PosteriorConfig, PruneConfig, RefactorConfig, Refactoring, Shape, StepEnd,
    Strategy, Verdict, admit_all, compile, compress, description_length, posterior, prune, refactor,
};
use language::{TermId, evaluate};
use proptest::prelude::*;

use crate::worlds::{World, kitchen};

fn eager() -> RefactorConfig {
    RefactorConfig { min_gain: 0.0, max_arity: 3, ..RefactorConfig::default() }
}

fn step(world: &World, library: &Library, programs: &[TermId], config: &RefactorConfig) -> Refactoring<()> {
    refactor(&world.store, &world.base, library, programs, config, admit_all).unwrap()
}

/// Every place of a candidate stands for the steps that its expansion makes.
fn check_places(world: &mut World, candidate: &Candidate, traces: &[Vec<language::Event>]) -> usize {
    assert!(candidate.unplaced.is_empty());
    let mut checked = 0;
    for place in &candidate.places {
        assert_eq!(place.arguments.len().min(candidate.arity), place.arguments.len());
        let Some(steps) = place.steps.clone() else { continue };
        assert!(place.own.iter().all(|own| steps.start <= own.start && own.end <= steps.end && own.start < own.end));
        let program = world.read(std::slice::from_ref(&place.expansion))[0];
        // An expansion that is no motion is an argument of the step.
        let Ok(trace) = evaluate(&mut world.store, &world.base, program) else { continue };
        assert_eq!(trace, traces[place.program][steps], "{} in {}", place.expansion, place.program);
        checked += 1;
    }
    checked
}

#[test]
fn without_a_gate_a_step_is_a_compression_without_lookahead() {
    let mut world = World::new();
    let programs = world.read(&kitchen());
    let corpus = Corpus::from_programs(&world.store, &world.base, &programs).unwrap();
    let compression = compress(&corpus, &Config { lookahead: 0.0, ..Config::default() }, &|_| ()).unwrap();
    let config = RefactorConfig { shape: Shape::Any, ..RefactorConfig::default() };
    let refactoring = step(&world, &Library::new(), &programs, &config);
    assert_eq!(refactoring.programs, compression.rewritten);
    assert!((refactoring.before.total() - compression.original_cost).abs() < 1e-6);
    assert!((refactoring.after.programs - compression.final_cost).abs() < 1e-6);
    assert!((refactoring.after.library - compression.library_cost).abs() < 1e-6);
    assert_eq!(refactoring.library.len(), compression.abstractions.len());
    for (entry, wanted) in refactoring.library.entries().iter().zip(&compression.abstractions) {
        assert_eq!((&entry.name, &entry.body, entry.uses), (&wanted.name, &wanted.body, wanted.uses));
        assert_eq!((entry.arity, entry.gain), (wanted.arity, wanted.gain));
        assert_eq!(Some(&entry.principal_type), wanted.principal_type.as_ref());
    }
    let parallel = step(&world, &Library::new(), &programs, &RefactorConfig { threads: 3, ..config });
    assert_eq!((parallel.library, parallel.programs), (refactoring.library, refactoring.programs));
}

#[test]
fn what_was_refused_does_not_come_back() {
    let mut world = World::new();
    let programs = world.read(&kitchen());
    let refuse = |_: &Candidate| Verdict { admitted: false, figures: 7 };
    let config = RefactorConfig { max_judged: 1000, ..RefactorConfig::default() };
    let refused = refactor(&world.store, &world.base, &Library::new(), &programs, &config, refuse).unwrap();
    assert_eq!(refused.end, StepEnd::NothingGains);
    assert!(refused.library.is_empty() && refused.judged.len() > 5);
    assert_eq!(refused.before, refused.after);
    let mut bodies: Vec<&str> = refused.judged.iter().map(|judged| &*judged.candidate.body).collect();
    bodies.sort_unstable();
    bodies.dedup();
    assert_eq!(bodies.len(), refused.judged.len());
    assert!(refused.judged.iter().all(|judged| judged.verdict.figures == 7 && judged.candidate.gain > 4.0));
    // With one refused, the others are still found, and the limit on judgements ends the step.
    let first = refused.judged[0].candidate.body.clone();
    let gate = |candidate: &Candidate| Verdict { admitted: candidate.body != first, figures: () };
    let config = RefactorConfig { max_judged: 3, ..config };
    let some = refactor(&world.store, &world.base, &Library::new(), &programs, &config, gate).unwrap();
    assert_eq!((some.judged.len(), some.library.len(), some.end), (3, 2, StepEnd::Judged));
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
    let traces = world.traces(&Library::new(), &programs);
    assert!(check_places(&mut world, candidate, &traces) >= 12, "{candidate:?}");
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
    let World { store, base } = &world;
    let found = posterior(store, base, &library, &programs, PosteriorConfig::default()).unwrap();
    let all = (4 + 61 + 1) as f64;
    assert_eq!(found.calls, 4);
    for (name, calls) in [("pick", 2), ("open", 1), ("close", 0), ("f", 1)] {
        let constant = found.get(name).unwrap();
        assert_eq!((constant.calls, constant.share.mean), (calls, (calls + 1) as f64 / all), "{name}");
        assert!(constant.share.low < constant.share.mean && constant.share.mean < constant.share.high);
    }
    assert!((found.constants.iter().map(|constant| constant.share.mean).sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(found.annotate(&library).get("f").unwrap().posterior.is_some());
    let bad = PosteriorConfig { alpha: 0.0, ..PosteriorConfig::default() };
    assert!(posterior(store, base, &library, &programs, bad).is_err());
}

#[test]
fn names_are_never_given_twice() {
    let mut world = World::new();
    let programs = world.read(&kitchen());
    let first =
        step(&world, &Library::new(), &programs, &RefactorConfig { max_admitted: 2, ..RefactorConfig::default() });
    let taken: Vec<String> = first.library.entries().iter().map(|entry| entry.name.clone()).collect();
    assert_eq!(taken, ["fn_0", "fn_1"]);
    let programs = world.read_with(&first.library, &first.programs);
    let all = PruneConfig { min_uses: u64::MAX, by_length: false };
    let pruned = prune(&world.store, &world.base, &first.library, &programs, all).unwrap();
    assert!(pruned.library.is_empty());
    let json = serde_json::to_string(&pruned.library).unwrap();
    let empty = Library::from_json(&json, &world.store, &world.base).unwrap();
    let programs = world.read_with(&empty, &pruned.programs);
    let again = step(&world, &empty, &programs, &RefactorConfig { iteration: 2, ..RefactorConfig::default() });
    let names: Vec<&str> = again.library.entries().iter().map(|entry| &*entry.name).collect();
    assert_eq!(names[..2], ["fn_2", "fn_3"]);
    assert!(again.library.entries().iter().all(|entry| entry.iteration == 2));
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
    let compiled = compile(&world.store, &world.base, &library, &programs, Strategy::Greedy).unwrap();
    // A sequence is a list: `grab` ends where its pattern does, so only a run that reaches the end is one.
    assert_eq!(compiled.programs[1], r#"seq[open "b", near "c"]"#);
    assert_eq!(compiled.programs[2], texts[2]);
    assert_eq!(compiled.rewritten, [true, true, false]);
    assert_eq!(compiled.share_rewritten(), 2.0 / 3.0);
    assert_eq!(compiled.entries_used(), 1);
    assert_eq!(compiled.entries[1].calls[0].arguments, [r#""a""#]);
    assert_eq!(world.traces_of(&library, &compiled.programs), world.traces(&Library::new(), &programs));
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
    let compiled = compile(&world.store, &world.base, &library, &programs, Strategy::Greedy).unwrap();
    assert_eq!(compiled.programs, [r#"onto "a" "b""#, r#"move_to "shelf" "c" "d""#]);
    assert_eq!(compiled.entries_used(), 2);
    let onto = compiled.entries.iter().find(|entry| entry.name == "onto").unwrap();
    assert!(onto.calls[0].arguments.is_empty());
    assert_eq!(onto.calls[0].applied_to, [r#""a""#, r#""b""#]);
    assert_eq!(world.traces_of(&library, &compiled.programs), world.traces(&Library::new(), &programs));
}

/// Two outer iterations with pruning and compiling after each, everything measured from scratch.
fn iterate(world: &mut World, original: &[TermId], config: &RefactorConfig) -> usize {
    let traces = world.traces(&Library::new(), original);
    let (mut library, mut programs) = (Library::new(), original.to_vec());
    let mut found = 0;
    for iteration in 1..=2 {
        let taken = library.next();
        let mut places = 0;
        let config = RefactorConfig { iteration, max_admitted: 3, ..config.clone() };
        let result = step(world, &library, &programs, &config);
        for judged in &result.judged {
            places += check_places(world, &judged.candidate, &traces);
        }
        found += result.library.len() - library.len();
        assert!(result.judged.is_empty() || places > 0 || result.judged.iter().all(|j| !j.candidate.places.is_empty()));
        // Gains add up to the drop, and the drop is there when measured from the text alone.
        let gains: f64 = result.judged.iter().map(|judged| judged.candidate.gain).sum();
        assert!((result.before.total() - gains - result.after.total()).abs() < 1e-5);
        let written = world.read_with(&result.library, &result.programs);
        let measured = description_length(&world.store, &world.base, &result.library, &written).unwrap();
        assert!(
            (measured.total() - result.after.total()).abs() < 1e-4,
            "{measured:?} measured, {:?} said\n{}{}",
            result.after,
            result.library.to_text(),
            result.programs.join("\n")
        );
        assert_eq!(world.traces(&result.library, &written), traces);
        let numbers = result.library.entries().iter().filter_map(|entry| entry.name[3..].parse::<u64>().ok());
        assert!(numbers.filter(|&number| number >= taken).count() == result.library.len() - library.len());

        for min_uses in [2, 4] {
            let config = PruneConfig { min_uses, by_length: true };
            let pruned = prune(&world.store, &world.base, &result.library, &written, config).unwrap();
            assert_eq!(world.traces_of(&pruned.library, &pruned.programs), traces);
            assert_eq!(pruned.library.next(), result.library.next());
            assert!(pruned.library.entries().iter().all(|entry| entry.uses >= min_uses));
            let programs = world.read_with(&pruned.library, &pruned.programs);
            let measured = description_length(&world.store, &world.base, &pruned.library, &programs).unwrap();
            assert!((measured.total() - pruned.after.total()).abs() < 1e-4, "{measured:?}, {:?}", pruned.after);
            let saved: f64 = pruned.removed.iter().map(|removed| removed.saved).sum();
            assert!((pruned.before.total() - saved - pruned.after.total()).abs() < 1e-5);
        }
        for strategy in [Strategy::Greedy, Strategy::Cheapest] {
            let compiled = compile(&world.store, &world.base, &result.library, original, strategy).unwrap();
            assert_eq!(world.traces_of(&result.library, &compiled.programs), traces);
            let calls: usize = compiled.entries.iter().map(|entry| entry.calls.len()).sum();
            assert_eq!(calls > 0, compiled.rewritten.contains(&true));
        }
        (library, programs) = (result.library, written);
    }
    found
}

#[test]
fn iterations_on_the_kitchen_keep_every_promise() {
    let mut world = World::new();
    let programs = world.read(&kitchen());
    assert!(iterate(&mut world, &programs, &RefactorConfig::default()) > 2);
    let compiled = {
        let library = step(&world, &Library::new(), &programs, &RefactorConfig::default()).library;
        compile(&world.store, &world.base, &library, &programs, Strategy::Greedy).unwrap()
    };
    assert!(compiled.share_rewritten() > 0.9 && compiled.after.total() < compiled.before.total());
}

/// Inlining `place` for two arguments in an entry that gave it one left a λ, and with it another grammar when read again.
#[test]
fn inlining_a_call_that_lacks_arguments_is_measured_as_it_is_written() {
    let mut world = World::new();
    let programs = world.random(840_643_871_664_349_123, 4);
    iterate(&mut world, &programs, &eager());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn iterations_on_random_programs_keep_every_promise(seed in 0..u64::MAX, higher in any::<bool>()) {
        let mut world = if higher { World::higher_order() } else { World::new() };
        let programs = world.random(seed, 4);
        iterate(&mut world, &programs, &eager());
    }
}
