//! `program` on good input.

use crate::{run, run_with};

#[test]
fn check_prints_the_principal_type() {
    assert_eq!(run(&["program", "check", r"\f. \x. f (f x)"]).out, "forall a. (a -> a) -> a -> a\n");
    let json = run(&["program", "check", r#"pick "bowl""#, "--json"]).json();
    assert_eq!(json, serde_json::json!({"ok": true, "type": "Motion"}));
}

#[test]
fn programs_come_from_arguments_stdin_and_files() {
    let source = "repeat(seq[open \"drawer\", close \"drawer\"], 2)\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("skill.txt");
    std::fs::write(&path, source).unwrap();
    let expected = "open \"drawer\"\nclose \"drawer\"\nopen \"drawer\"\nclose \"drawer\"\n";
    assert_eq!(run(&["program", "eval", source]).out, expected);
    assert_eq!(run_with(source, &["program", "eval", "-"]).out, expected);
    assert_eq!(run(&["program", "eval", &format!("@{}", path.display())]).out, expected);
}

#[test]
fn traces_keep_what_only_the_world_decides() {
    let source = r#"seq[branch(is_open "a", close "a", seq[]), place "b" (on "a")]"#;
    insta::assert_snapshot!(run(&["program", "eval", source, "--json"]).shown());
}

#[test]
fn show_lays_out_to_the_width() {
    let source = r#"seq[pick (at "bowl" left), place (at "bowl" left) (in "tray")]"#;
    insta::assert_snapshot!(run(&["program", "show", source, "--width", "40"]).shown());
    insta::assert_snapshot!(run(&["program", "show", source, "--json"]).shown());
}

#[test]
fn instructions_become_programs() {
    let text = "put the black bowl in the top drawer of the cabinet and close it";
    let ran = run(&["program", "from-instruction", text]);
    insta::assert_snapshot!(ran.shown());
    // Quotation marks may be left out, and stdin read instead.
    let words: Vec<&str> = text.split(' ').collect();
    assert_eq!(run(&[&["program", "from-instruction"], &words[..]].concat()).out, ran.out);
    assert_eq!(run_with(text, &["program", "from-instruction", "-"]).out, ran.out);
}

#[test]
fn an_instruction_that_is_understood_in_part_is_a_program_and_says_what_is_left_out() {
    for (text, program, left_out) in [
        ("fry the egg until cooked", r#"act_on "fry" "egg""#, "until cooked"),
        ("pick up the cup and don't drop it", r#"pick "cup""#, "don't drop it"),
    ] {
        let ran = run(&["program", "from-instruction", text]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(
            ran.out.starts_with(program) && ran.out.contains(&format!("not understood: `{left_out}`")),
            "{}",
            ran.out
        );
        assert!(ran.err.contains(left_out), "{}", ran.err);
        let json: serde_json::Value =
            serde_json::from_str(&run(&["program", "from-instruction", text, "--json"]).out).unwrap();
        assert_eq!((&json["program"], &json["missing"][0]), (&program.into(), &left_out.into()));
    }
    // Where nothing is understood there is no program.
    assert_eq!(run(&["program", "from-instruction", "don't drop it"]).code, 2);
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_refactor-vla"))
        .args(["program", "eval", "repeat(move still, 100000)"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
