//! What `run` refuses before it works.

use crate::{folder, run, shown};

#[test]
fn datasets_whose_runs_would_lie_in_one_place() {
    let folder = folder(&[]);
    let out = folder.path().join("runs");
    let datasets = ["one/goal", "two/goal/", "embedded:goal", "sets/..", ".", "/", "one/object"];
    let ran = run(&[&["run", "--each", "--out", out.to_str().unwrap()], &datasets[..]].concat());
    insta::assert_snapshot!(shown(&ran, folder.path()));
    assert!(!out.exists());
}

#[test]
fn one_dataset_may_have_any_path() {
    let folder = folder(&[]);
    let out = folder.path().join("run");
    let ran = run(&["run", "--device", "cpu", "--out", out.to_str().unwrap(), "/no/such/.."]);
    assert!(ran.err.starts_with("error: there is no dataset"), "{}", ran.shown());
}

#[test]
fn datasets_that_cannot_be_joined() {
    let folder = folder(&[]);
    let (pour, out) = (folder.path().join("pour"), folder.path().join("run"));
    let made = run(&["data", "synth", "recursive-pour", pour.to_str().unwrap(), "--demos", "2"]);
    assert_eq!(made.code, 0);
    let datasets = ["embedded:libero_goal_mini", pour.to_str().unwrap()];
    let ran = run(&[&["run", "--device", "cpu", "--out", out.to_str().unwrap()], &datasets[..]].concat());
    insta::assert_snapshot!(shown(&ran, folder.path()));
    assert!(!out.exists());
    // The old option is the same as the argument, with a hint.
    let option =
        run(&[&["run", "--device", "cpu", "--out", out.to_str().unwrap(), "--dataset"], &datasets[..]].concat());
    let hint = "note: datasets are written without `--dataset`, after the command\n";
    assert_eq!((option.code, option.err), (ran.code, format!("{hint}{}", ran.err)));
}

#[test]
fn a_run_without_a_dataset() {
    insta::assert_snapshot!(run(&["run", "--out", "run"]).shown());
}
