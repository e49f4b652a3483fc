//! What `run` refuses before it works.

use crate::{folder, run, shown};

#[test]
fn datasets_whose_runs_would_lie_in_one_place() {
    let folder = folder(&[]);
    let out = folder.path().join("runs");
    let datasets = ["one/goal", "two/goal/", "embedded:goal", "sets/..", ".", "/", "one/object"];
    let ran = run(&[&["run", "--out", out.to_str().unwrap(), "--dataset"], &datasets[..]].concat());
    insta::assert_snapshot!(shown(&ran, folder.path()));
    assert!(!out.exists());
}

#[test]
fn one_dataset_may_have_any_path() {
    let folder = folder(&[]);
    let out = folder.path().join("run");
    let ran = run(&["run", "--device", "cpu", "--out", out.to_str().unwrap(), "--dataset", "/no/such/.."]);
    assert!(ran.err.starts_with("error: there is no dataset"), "{}", ran.shown());
}
