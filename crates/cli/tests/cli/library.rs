//! `library compress` from corpus to files.

use std::fs;

use serde_json::Value;

use crate::{run, run_with};

const SEXPRS: &str =
    r#"["(a (b (f x)) (b (f x)))", "(a (b (f y)) (b (f y)))", "(a (b (f z)) (b (f z)))", "(lam (a (b $0) (b $0)))"]"#;

/// The report without what differs from run to run.
fn timeless(mut report: Value) -> Value {
    report.as_object_mut().unwrap().remove("cpu_seconds").unwrap();
    report
}

#[test]
fn the_default_corpus_compresses_and_verifies() {
    let report = run(&["library", "compress", "--verify", "--json"]).json();
    assert_eq!(report["programs"], 200);
    assert_eq!(report["verified"], true);
    assert_eq!(report["rewritten"].as_array().unwrap().len(), 200);
    let [before, after, library] =
        ["original_cost", "final_cost", "library_cost"].map(|field| report[field].as_f64().unwrap());
    assert!(after + library < before, "{before} {after} {library}");
    let gains = report["abstractions"].as_array().unwrap().iter().map(|entry| entry["gain"].as_f64().unwrap());
    let gain: f64 = gains.inspect(|&gain| assert!(gain > 4.0)).sum();
    assert!((before - after - library - gain).abs() < 1e-6 * before, "the gains add up to what was saved");
}

#[test]
fn all_of_libero_compresses_and_verifies() {
    let report = run(&["library", "compress", "embedded:libero", "--verify", "--json"]).json();
    assert_eq!(report["programs"], 800);
    assert_eq!(report["verified"], true);
}

#[test]
fn the_report_has_its_fields() {
    let report = run_with(SEXPRS, &["library", "compress", "-", "--cost", "stitch", "--json"]).json();
    // Whether they keep their order is a feature of `serde_json` that other crates of a build can switch on.
    let mut fields: Vec<&String> = report.as_object().unwrap().keys().collect();
    fields.sort();
    insta::assert_debug_snapshot!(fields);
    let entry = report["abstractions"][0].as_object().unwrap();
    let mut keys: Vec<&String> = entry.keys().collect();
    keys.sort();
    assert_eq!(keys, ["arity", "body", "gain", "name", "type", "uses"]);
    let reasons = ["optimal", "optimal under argument capture and single place", "budget", "memory", "time"];
    assert!(reasons.contains(&report["stop_reason"].as_str().unwrap()));
}

#[test]
fn the_table_shows_library_and_costs() {
    let shown = |out: &str| out.rsplit_once("\nsearch complete").unwrap().0.to_string();
    let ran = run_with(SEXPRS, &["library", "compress", "-", "--cost", "stitch", "--verify"]);
    insta::assert_snapshot!(shown(&ran.out));
    let ran = run(&["library", "compress"]);
    insta::assert_snapshot!(shown(&ran.out));
}

/// The last line up to the figures that differ from run to run.
fn ending(out: &str) -> &str {
    out.trim_end().rsplit_once('\n').unwrap().1.split_once(": ").unwrap().0
}

#[test]
fn complete_is_said_only_of_what_is_proved() {
    let cex = concat!(env!("CARGO_MANIFEST_DIR"), "/../compression/fixtures/corpora/cex.json");
    let stitch = ["library", "compress", cex, "--cost", "stitch", "--max-arity", "1", "--rounds", "1"];
    let lost = run(&stitch).out;
    let note = "search finished; the optimum may be lost to the pruning rules argument capture and single place \
                (off with `--without argument-capture --without single-place`)";
    assert_eq!(ending(&lost), note);
    // What the note says to type finds the optimum and proves it.
    let found = run(&[&stitch[..], &["--without", "argument-capture", "--without", "single-place"]].concat()).out;
    assert_eq!(ending(&found), "search complete");
    // Under a description length the proof is about the weights that propose candidates.
    let nats = run(&["library", "compress"]).out;
    assert_eq!(
        ending(&nats),
        "search complete for the weights that propose candidates, not for the nats of whole libraries"
    );
}

#[test]
fn the_number_of_threads_does_not_change_the_result() {
    for corpus in ["embedded:libero_object", "embedded:libero"] {
        for cost in ["stitch", "nats"] {
            let [one, two] = ["1", "2"].map(|threads| {
                let options = ["library", "compress", corpus, "--cost", cost, "--threads", threads, "--json"];
                timeless(run(&options).json())
            });
            assert_eq!(one, two, "{corpus}, {cost}");
        }
    }
}

#[test]
fn the_file_is_what_stdout_gets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.json");
    let printed = run(&["library", "compress", "--json"]).json();
    let file = path.to_str().unwrap();
    for words in [&["library", "compress", "--output", file][..], &["--output", file, "library", "compress", "--json"]]
    {
        let ran = run(words);
        assert!(ran.code == 0 && ran.out.is_empty(), "{}", ran.shown());
        let written: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(timeless(written), timeless(printed.clone()));
    }
    assert!(run(&["library", "compress"]).out.contains("arity"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn old_spellings_of_json_files_have_a_hint() {
    for words in
        [&["library", "compress", "--json", "new.json"][..], &["library", "compress", "-", "--json", "new.json"]]
    {
        let ran = run(words);
        assert_eq!(ran.code, 2, "{}", ran.shown());
        assert!(ran.err.contains("to write JSON to a file, type `--output new.json`"), "{}", ran.shown());
    }
}

#[test]
fn learned_entries_can_be_called() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.json");
    let path = path.to_str().unwrap();
    let report = run(&["library", "compress", "--json"]).json();
    fs::write(path, report.to_string()).unwrap();
    let rewritten = report["rewritten"][0].as_str().unwrap();
    assert_eq!(
        run(&["program", "eval", rewritten, "--library", path]).out,
        "pick \"alphabet soup\"\nplace \"alphabet soup\" (in \"basket\")\n"
    );
}

#[test]
fn searches_say_why_they_stopped() {
    let report = run(&["library", "compress", "embedded:libero", "--max-steps", "1", "--json"]).json();
    assert_eq!(report["stop_reason"], "budget");
    let report = run(&["library", "compress", "embedded:libero", "--time-limit", "0", "--json"]).json();
    assert_eq!(report["stop_reason"], "time");
}

#[test]
fn pruning_rules_change_the_work_and_not_the_result() {
    let final_cost = |extra: &[&str]| {
        let options = ["library", "compress", "-", "--cost", "stitch", "--lookahead", "0", "--json"];
        run_with(SEXPRS, &[&options, extra].concat()).json()["final_cost"].clone()
    };
    let expected = final_cost(&[]);
    for rule in ["argument-capture", "redundant-argument", "single-place", "spent-rows", "exhausted-arity"] {
        assert_eq!(final_cost(&["--without", rule]), expected, "without {rule}");
    }
    assert_eq!(final_cost(&["--with", "overlap"]), expected, "with overlap");
}

#[test]
fn a_library_of_s_expressions_has_nothing_to_call() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.json");
    let path = path.to_str().unwrap();
    let ran = run_with(SEXPRS, &["library", "compress", "-", "--cost", "stitch", "--output", path]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let ran = run(&["program", "check", "seq[]", "--library", path]);
    insta::assert_snapshot!(ran.shown().replace(path, "library.json"));
}

#[test]
fn entries_that_call_later_ones_can_be_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.json");
    let library = r#"{"abstractions": [
        {"name": "twice", "body": "\\x. seq[once x, once x]"},
        {"name": "once", "body": "\\x. pick x"}
    ]}"#;
    fs::write(&path, library).unwrap();
    let ran = run(&["program", "eval", r#"twice "a""#, "--library", path.to_str().unwrap()]);
    assert_eq!(ran.out, "pick \"a\"\npick \"a\"\n", "{}", ran.shown());
}

/// A long chain of calls without a short period has very many partial abstractions, and each matches at many places.
#[test]
fn finding_10_a_memory_limit_is_named_with_its_flag() {
    let chain = (0..20_000_u64).fold("x".to_owned(), |inner, at| format!("(f{} {inner})", (7 * at * at + at / 3) % 3));
    let corpus = serde_json::json!([chain]).to_string();
    let ran =
        run_with(&corpus, &["library", "compress", "-", "--cost", "stitch", "--rounds", "1", "--max-memory", "1"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("search stopped by its memory limit of 1 MiB (`--max-memory`): "), "{}", ran.out);
    assert!(!ran.out.contains("budget of steps"), "{}", ran.out);
    let help = run(&["library", "compress", "--help"]).out;
    assert!(help.contains("--max-memory <MIB>") && help.contains("[default: 1024]"), "{help}");
}
