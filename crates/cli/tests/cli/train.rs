//! What `train wake` refuses before it works.

use std::fs;

use crate::library_show::LIBRARY;
use crate::{LOOP, folder, run, run_with, shown};

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

#[test]
fn skills_that_cannot_be_compared() {
    let folder = folder(&[("library.json", LIBRARY)]);
    let (path, library) = (folder.path().to_str().unwrap(), folder.path().join("library.json"));
    let arguments = ["train", "wake", "--device", "cpu", "--world-model", path, "--out", "runs/b", "--library"];
    let wake = |stdin: &str, library: &str| run_with(stdin, &[&arguments[..], &[library]].concat());
    // None beside the library: it is told, and the world model, which is none, is what fails.
    insta::assert_snapshot!(shown(&wake("", library.to_str().unwrap()), folder.path()));
    insta::assert_snapshot!(shown(&wake(LIBRARY, "-"), folder.path()));
    // A library without entries calls no skills.
    let ran = wake(r#"{"version": 1, "next": 0, "abstractions": []}"#, "-");
    assert!(!ran.err.contains("warning"), "{}", ran.shown());
    // Skills that cannot be read.
    let skills = folder.path().join("skills.json");
    fs::create_dir(&skills).unwrap();
    insta::assert_snapshot!(shown(&wake("", library.to_str().unwrap()), folder.path()));
    fs::remove_dir(&skills).unwrap();
    fs::write(&skills, "{}").unwrap();
    let ran = wake("", library.to_str().unwrap());
    assert!(!ran.err.contains("warning"), "{}", ran.shown());
}
