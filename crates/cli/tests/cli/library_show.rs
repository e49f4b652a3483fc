//! `library show` on runs and files.

use std::fs;

use crate::{LOOP, folder, run, run_with, shown};

/// Two entries as a run writes them; the second calls the first.
pub(crate) const LIBRARY: &str = r#"{"version": 1, "next": 3, "abstractions": [
    {"name": "fn_0", "arity": 1, "type": "Lang -> Motion", "iteration": 1, "gain": 27.44, "uses": 14,
     "posterior": {"mean": 0.1034, "low": 0.05, "high": 0.2}, "body": "\\x0. seq[pick x0, place x0 (in \"basket\")]"},
    {"name": "fn_2", "arity": 0, "type": "Motion", "iteration": 2, "gain": 5.0, "uses": 3,
     "body": "seq[fn_0 \"fn_9\", fn_0 \"milk\"]"}
]}"#;

/// What `train wake` writes before all else, in short.
const WAKE: &str = r#"{"settings": {"amortizer": {}, "wake": {}, "cycle": {"iterations": 1}}}"#;

#[test]
fn the_library_of_a_run() {
    let folder = folder(&[("config.json", LOOP), ("library.json", LIBRARY)]);
    let path = folder.path().to_str().unwrap();
    insta::assert_snapshot!(shown(&run(&["library", "show", path]), folder.path()));
    let told = run(&["library", "show", path, "--json"]).json();
    assert_eq!(told["finished"], true);
    assert_eq!(told["abstractions"][1]["calls"], serde_json::json!(["fn_0"]));
    // What is printed is a library file in its turn.
    let again = folder.path().join("again.json");
    fs::write(&again, told.to_string()).unwrap();
    let ran = run(&["program", "eval", "fn_2", "--library", again.to_str().unwrap()]);
    assert_eq!(ran.out.lines().count(), 4, "{}", ran.shown());
}

#[test]
fn an_unfinished_run_shows_its_newest_library() {
    let empty =
        r#"{"inputs": {}, "result": {"library": {"version": 1, "next": 0, "abstractions": []}, "epsilon": 0.1}}"#;
    let step = format!(r#"{{"inputs": {{}}, "result": {{"library": {LIBRARY}, "epsilon": 0.1}}}}"#);
    let folder = folder(&[("config.json", LOOP), ("t1/refactor.json", empty), ("t2/policy.json", "{}")]);
    let path = folder.path().to_str().unwrap();
    insta::assert_snapshot!(shown(&run(&["library", "show", path]), folder.path()));
    fs::write(folder.path().join("t2/refactor.json"), step).unwrap();
    insta::assert_snapshot!(shown(&run(&["library", "show", path]), folder.path()));
    assert_eq!(run(&["library", "show", path, "--json"]).json()["finished"], false);
}

#[test]
fn a_single_phase_was_given_its_library() {
    let folder = folder(&[("config.json", WAKE), ("library.json", LIBRARY)]);
    let path = folder.path().to_str().unwrap();
    let ran = run(&["library", "show", path]);
    assert!(ran.out.contains("2 entries") && !ran.out.contains("finished"), "{}", ran.shown());
    assert_eq!(run(&["library", "show", path, "--json"]).json().get("finished"), None);
}

#[test]
fn what_compress_wrote() {
    let folder = folder(&[]);
    let path = folder.path().join("library.json");
    let path = path.to_str().unwrap();
    assert_eq!(run(&["library", "compress", "--output", path]).code, 0);
    insta::assert_snapshot!(shown(&run(&["library", "show", path]), folder.path()));
    let corpus = r#"["(a (b x) (b x))", "(a (b y) (b y))", "(a (b z) (b z))"]"#;
    assert_eq!(run_with(corpus, &["library", "compress", "-", "--cost", "stitch", "--output", path]).code, 0);
    insta::assert_snapshot!(shown(&run(&["library", "show", path]), folder.path()));
}

#[test]
fn what_has_no_library() {
    for (name, files) in [
        ("nothing", &[][..]),
        ("begun", &[("config.json", LOOP)]),
        ("phase", &[("config.json", r#"{"run": {"phase": "emitter"}}"#)]),
        ("broken", &[("library.json", r#"{"abstractions": [{"name": "fn_0"}]}"#)]),
        ("cut", &[("library.json", r#"{"abstractions": ["#)]),
    ] {
        let folder = folder(files);
        let ran = run(&["library", "show", folder.path().to_str().unwrap()]);
        insta::assert_snapshot!(format!("library_show_{name}"), shown(&ran, folder.path()));
    }
    insta::assert_snapshot!("library_show_nowhere", run(&["library", "show", "no/such/run"]).shown());
    let ran = run_with("library 1, next fn_1\n", &["library", "show", "-"]);
    insta::assert_snapshot!("library_show_text", ran.shown());
}
