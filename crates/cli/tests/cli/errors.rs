//! What a person reads after the likely mistakes.

use std::fs;

use crate::{run, run_with};

#[test]
fn a_misspelt_primitive() {
    insta::assert_snapshot!(run(&["program", "check", r#"seq[pikc "bowl", place "bowl" (on "plate")]"#]).shown());
}

#[test]
fn type_errors_all_at_once() {
    let source = "seq[pick left, place \"a\" \"b\", repeat(open \"c\", \"d\")]";
    insta::assert_snapshot!(run(&["program", "check", source]).shown());
    insta::assert_snapshot!(run(&["program", "check", source, "--json"]).shown());
}

#[test]
fn only_motions_can_be_evaluated() {
    insta::assert_snapshot!(run(&["program", "eval", r"\x. pick x"]).shown());
}

#[test]
fn too_many_calls() {
    insta::assert_snapshot!(run(&["program", "eval", "repeat(move still, 4)", "--max-calls", "3"]).shown());
    insta::assert_snapshot!(run(&["program", "eval", "repeat(move still, 4)", "--max-calls", "3", "--json"]).shown());
}

#[test]
fn brackets_that_are_never_closed() {
    insta::assert_snapshot!(run(&["program", "show", "seq[pick (at \"bowl\" left, open \"drawer\"]"]).shown());
}

#[test]
fn nesting_that_is_too_deep() {
    let source = format!("{}\"a\"{}", "(".repeat(5000), ")".repeat(5000));
    let ran = run(&["program", "check", &source, "--json"]);
    assert_eq!(ran.code, 2);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    insta::assert_snapshot!(json["errors"][0]["message"].as_str().unwrap());
}

#[test]
fn an_empty_program() {
    insta::assert_snapshot!(run_with("\n", &["program", "check", "-"]).shown());
}

#[test]
fn unknown_words_of_an_instruction() {
    let words = ["program", "from-instruction", "wrpie the gizmo"];
    insta::assert_snapshot!(run(&words).shown());
    insta::assert_snapshot!(run(&[&words[..], &["--json"]].concat()).shown());
}

#[test]
fn a_missing_file() {
    insta::assert_snapshot!(run(&["program", "check", "@no/such/file"]).shown());
    insta::assert_snapshot!(run(&["library", "compress", "no/such/file.json"]).shown());
}

#[test]
fn usage() {
    insta::assert_snapshot!(run(&["library", "compress", "--cost", "foo"]).shown());
    insta::assert_snapshot!(run(&["library", "compress", "--without", "thinking"]).shown());
    insta::assert_snapshot!(run(&["library", "compress", "--min-gain", "-1"]).shown());
    insta::assert_snapshot!(run(&["library", "compress", "--threads", "0"]).shown());
    insta::assert_snapshot!(run(&["library", "compress", "--lookahead", "1e300"]).shown());
    insta::assert_snapshot!(run(&["program", "chekc", "seq[]"]).shown());
}

#[test]
fn corpora_that_are_none() {
    for (name, content) in [
        ("object", r#"{"programs": []}"#),
        ("elements", r#"["(f x)", 3, null, ["(f y)"]]"#),
        ("empty", "[]"),
        ("broken", "[\"(f x)\",\n \"(f y)\""),
        ("nothing", ""),
    ] {
        insta::assert_snapshot!(format!("corpus_{name}"), run_with(content, &["library", "compress", "-"]).shown());
    }
}

#[test]
fn corpora_with_bad_programs_report_all_of_them() {
    for (name, content) in [
        ("sexprs", r#"["(f x", "(f x)", "(f y))", "(f (lam))", "(f $0)", "()"]"#),
        ("programs", r#"["pick \"a\"", "pick left", "plaice \"a\" top", "seq[pick \"a\", place \"b\"]"]"#),
        ("instructions", r#"["open the drawer", "frobnicate the drawer", "put the bowl", "turn on the stove"]"#),
    ] {
        let ran = run_with(content, &["library", "compress", "-"]);
        insta::assert_snapshot!(format!("bad_{name}"), format!("{content}\n\n{}", ran.shown()));
    }
    let many = serde_json::to_string(&vec!["(f"; 1000]).unwrap();
    let ran = run_with(&many, &["library", "compress", "-"]);
    assert!(ran.err.contains("1000 of the 1000") && ran.err.contains("… and 980 more"), "{}", ran.err);
}

#[test]
fn a_file_that_is_not_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("corpus.json");
    fs::write(&path, [b'[', b'"', 0xff]).unwrap();
    let ran = run(&["library", "compress", path.to_str().unwrap()]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.ends_with("is not a text file\n  found  a byte that is not UTF-8 at 2\nhint: save it as UTF-8\n"));
}

#[test]
fn embedded_corpora_are_named() {
    insta::assert_snapshot!(run(&["library", "compress", "embedded:libero_90"]).shown());
}

#[test]
fn places_that_cannot_be_written_are_known_before_the_search() {
    insta::assert_snapshot!(run(&["library", "compress", "--output", "no/such/directory/library.json"]).shown());
    insta::assert_snapshot!(run(&["library", "compress", "--output", "/"]).shown());
}

#[test]
fn a_library_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("library.json"), "[]").unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_refactor-vla"));
    let output = command
        .args(["program", "check", "seq[]", "--library", "library.json"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap());
}

#[test]
fn world_models_that_are_not_one_for_each_dataset() {
    let ran = run(&["eval", "motor-library", "--world-model", "runs/a", "--world-model", "runs/b"]);
    insta::assert_snapshot!(ran.shown());
}
