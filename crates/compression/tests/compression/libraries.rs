//! Libraries as data: what is read is what was written, and what is wrong is said, all of it.

use compression::{Library, LibraryProblem, RefactorConfig, admit_all, refactor};
use language::{PrefixChecker, TypeId, tokens_of};
use proptest::prelude::*;

use crate::worlds::{World, kitchen};

fn learned(world: &mut World, texts: &[String]) -> Library {
    let programs = world.read(texts);
    let found = refactor(&world.bind(&Library::new(), &programs), &RefactorConfig::default(), admit_all).unwrap();
    found.programs.library().clone()
}

fn problems(text: &str) -> Vec<LibraryProblem> {
    let World { store, base } = World::new();
    Library::from_text(text, &store, &base).unwrap_err().problems
}

#[test]
fn json_comes_back_as_it_was() {
    let mut world = World::new();
    let library = learned(&mut world, &kitchen());
    assert!(library.len() > 1);
    let json = serde_json::to_string_pretty(&library).unwrap();
    assert_eq!(Library::from_json(&json, &world.store, &world.base).unwrap(), library);
    let strange = json.replacen("\"next\"", "\"colour\": 1, \"next\"", 1);
    assert!(Library::from_json(&strange, &world.store, &world.base).is_err());
    let newer = json.replacen("\"version\": 1", "\"version\": 2", 1);
    let error = Library::from_json(&newer, &world.store, &world.base).unwrap_err();
    assert_eq!(error.problems, [LibraryProblem::Version { found: 2 }]);
}

#[test]
fn a_definition_needs_a_name_and_a_body_only() {
    let World { mut store, base } = World::new();
    let text = "# by hand\n\ngrab = \\x. seq[near x, grasp x]\nnear : Lang -> Motion = \\x. reach (on x)\n";
    let library = Library::from_text(text, &store, &base).unwrap();
    let grab = library.get("grab").unwrap();
    assert_eq!((grab.arity, &*grab.principal_type), (1, "Lang -> Motion"));
    assert_eq!(
        library.to_text(),
        "library 1, next fn_0\n\
        grab/1 : Lang -> Motion [t 0, 0 uses, 0.0 nats] = \\x. seq[near x, grasp x]\n\
        near/1 : Lang -> Motion [t 0, 0 uses, 0.0 nats] = \\x. reach (on x)\n"
    );
    // The prefix checker knows the entries.
    let signature = library.define(&mut store, &base).unwrap();
    let program = language::parse(&mut store, &signature, r#"grab "mug""#).unwrap().term;
    let mut checker = PrefixChecker::new(&store, &signature, TypeId::MOTION);
    let mut state = checker.start();
    for token in tokens_of(&store, program) {
        state = checker.step(&state, token).unwrap();
    }
    assert!(state.is_complete());
}

#[test]
fn everything_that_is_wrong_is_reported() {
    let found = problems(
        "library 1, next fn_1\nnonsense\na = pick left\nb = c\nc = b\nd/2 = \\x. pick x\npick = seq[]\ne : Motion = \\x. pick x\n\
         f = \\x. plaice x\ng [12 apples] = seq[]\nfn_1000000000 = seq[]\n",
    );
    let is = |wanted: fn(&LibraryProblem) -> bool| found.iter().filter(|problem| wanted(problem)).count();
    assert_eq!(is(|problem| matches!(problem, LibraryProblem::Line { line: 2 | 10, .. })), 2, "{found:?}");
    assert_eq!(
        is(|problem| matches!(problem, LibraryProblem::Body { name, .. } if name == "a" || name == "f")),
        2,
        "{found:?}"
    );
    assert_eq!(is(|problem| matches!(problem, LibraryProblem::Cycle { name } if name == "b" || name == "c")), 2);
    assert_eq!(is(|problem| matches!(problem, LibraryProblem::Arity { arity: 2, .. })), 1);
    assert_eq!(is(|problem| matches!(problem, LibraryProblem::Name { .. })), 1);
    assert_eq!(is(|problem| matches!(problem, LibraryProblem::Type { .. })), 1);
    assert_eq!(is(|problem| matches!(problem, LibraryProblem::Next { .. })), 1);
    assert_eq!(found.len(), 10, "{found:?}");
}

#[test]
fn a_library_that_explodes_when_unfolded_is_refused() {
    let mut text = "f0 = seq[pick \"a\", pick \"b\"]\n".to_owned();
    for level in 1..60 {
        text += &format!("f{level} = seq[f{0}, f{0}]\n", level - 1);
    }
    assert!(matches!(problems(&text)[..], [LibraryProblem::TooLarge { .. }]));
}

#[test]
fn a_body_over_several_lines_is_written_on_one() {
    let World { store, base } = World::new();
    let json = r##"{"version": 1, "next": 1, "abstractions": [{"name": "fn_0", "arity": 0, "type": "Motion", "iteration": 1,
        "gain": 1.0, "uses": 2, "body": "seq[ # first\n  pick \"a # \\\" b\", # then\n\n  pick \"c\"\n] # all"}]}"##;
    let library = Library::from_json(json, &store, &base).unwrap();
    let text = library.to_text();
    assert!(text.ends_with("= seq[ pick \"a # \\\" b\", pick \"c\" ]\n"), "{text}");
    assert_eq!(Library::from_text(&text, &store, &base).unwrap().to_text(), text);
}

#[test]
fn a_library_of_many_entries_is_read_in_time() {
    let World { store, base } = World::new();
    let text: String = (0..20_000).map(|at| format!("f{at} = pick \"a\"\n")).collect();
    let started = std::time::Instant::now();
    assert_eq!(Library::from_text(&text, &store, &base).unwrap().len(), 20_000);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn text_gives_back_names_and_bodies(seed in 0..u64::MAX) {
        let mut world = World::higher_order();
        let programs = world.random(seed, 4);
        let config = RefactorConfig { min_gain: 0.0, max_arity: 3, ..RefactorConfig::default() };
        let found = refactor(&world.bind(&Library::new(), &programs), &config, admit_all).unwrap();
        let (library, World { store, base }) = (found.programs.library().clone(), &world);
        let text = library.to_text();
        let read = Library::from_text(&text, store, base).unwrap();
        prop_assert_eq!(read.to_text(), text);
        let named = |library: &Library| -> Vec<(String, usize, String)> {
            library.entries().iter().map(|entry| (entry.name.clone(), entry.arity, entry.body.clone())).collect()
        };
        prop_assert_eq!(named(&read), named(&library));
        prop_assert_eq!(read.next(), library.next());
        let json = serde_json::to_string(&library).unwrap();
        prop_assert_eq!(Library::from_json(&json, store, base).unwrap(), library);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "([a-c/:=0-9\\\\.x \\[\\],\n\"]|seq|fn_|nats|library){0,60}") {
        let World { store, base } = World::new();
        if let Ok(library) = Library::from_text(&text, &store, &base) {
            prop_assert!(library.check(&store, &base).is_ok());
        }
        prop_assert!(Library::from_json(&text, &store, &base).is_err());
    }
}
