//! What `train wake` refuses before it works.

use crate::{LOOP, folder, run, shown};

#[test]
fn settings_of_other_phases() {
    let sets = ["--set", "world_model.batch=8", "--set", "train.steps=3"];
    let ran = run(&[&["train", "wake", "--world-model", "runs/a", "--out", "runs/b"][..], &sets].concat());
    insta::assert_snapshot!(ran.shown());
}

#[test]
fn a_world_model_that_is_none() {
    let folder = folder(&[]);
    let path = folder.path().to_str().unwrap();
    let ran = run(&["train", "wake", "--device", "cpu", "--world-model", path, "--out", "runs/b"]);
    insta::assert_snapshot!(shown(&ran, folder.path()));
}

#[test]
fn libraries_that_are_none() {
    for (name, content) in [("library.json", "[]"), ("compressed.json", r#"{"version": "0.1.0", "abstractions": []}"#)]
    {
        let folder = folder(&[("config.json", LOOP), (name, content)]);
        let path = folder.path().join(name);
        for library in [&path, folder.path()] {
            let library = library.to_str().unwrap();
            let ran = run(&["train", "wake", "--world-model", "runs/a", "--library", library, "--out", "runs/b"]);
            insta::assert_snapshot!(shown(&ran, folder.path()));
        }
    }
}
