//! `report` on directories with and without a finished run.

use std::fs;
use std::path::Path;

use crate::{LOOP, Ran, folder, run, shown};

/// The least that a page can be made from.
const DATA: &str = r#"{"schema": 3, "run": {"title": "a<b", "datasets": [], "presets": ["tiny"], "seed": 7,
    "version": "0.1.0", "device": "cpu", "labels": "no labels were used", "seconds": 12.5, "command": "refactor-vla demo",
    "config_hash": "00ff", "config": null}, "tasks": [], "phases": [], "iterations": [], "training": [], "skills": [],
    "map": null, "kernel": null, "episodes": [], "library": [], "candidates": [], "arms": [], "metrics": [], "notes": []}"#;

fn report(run_in: &Path, more: &[&str]) -> Ran {
    run(&[&["report", run_in.to_str().unwrap()], more].concat())
}

#[test]
fn a_page_is_written_again() {
    let folder = folder(&[("report.json", DATA), ("report.html", "an old page")]);
    let ran = report(folder.path(), &[]);
    insta::assert_snapshot!(shown(&ran, folder.path()));
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("a&lt;b") && page.contains("</html>"));

    let other = folder.path().join("other.html");
    let told = report(folder.path(), &["--out", other.to_str().unwrap(), "--json"]).json();
    assert_eq!(told["report"], other.to_str().unwrap());
    assert_eq!(fs::read_to_string(other).unwrap(), page);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing else is left there");
}

#[test]
fn directories_that_are_no_finished_run() {
    for (name, files) in [
        ("empty", &[][..]),
        ("unfinished", &[("config.json", LOOP)]),
        ("phase", &[("config.json", r#"{"run": {"phase": "world_model"}}"#)]),
        ("several", &[("a/config.json", LOOP), ("b/config.json", LOOP), ("c/notes.txt", "mine")]),
        ("broken", &[("report.json", r#"{"schema": 3, "run": "#)]),
        ("newer", &[("report.json", r#"{"schema": 4, "pages": 3}"#)]),
        ("older", &[("report.json", r#"{"schema": 0}"#)]),
        ("other", &[("report.json", "[]"), ("config.json", LOOP)]),
    ] {
        let folder = folder(files);
        let ran = report(folder.path(), &[]);
        insta::assert_snapshot!(format!("report_{name}"), shown(&ran, folder.path()));
        assert!(!folder.path().join("report.html").exists());
    }
    insta::assert_snapshot!("report_nowhere", run(&["report", "no/such/run"]).shown());
    let folder = folder(&[("report.json", DATA)]);
    let file = folder.path().join("report.json");
    insta::assert_snapshot!("report_file", shown(&report(&file, &[]), folder.path()));
    let out = folder.path().to_str().unwrap();
    insta::assert_snapshot!("report_out", shown(&report(folder.path(), &["--out", out]), folder.path()));
}

#[test]
fn the_page_is_not_written_over_its_data() {
    let folder = folder(&[("report.json", DATA), ("other/notes.txt", "mine")]);
    for name in ["report.json", "other/../report.json"] {
        let out = folder.path().join(name);
        let ran = report(folder.path(), &["--out", out.to_str().unwrap()]);
        insta::assert_snapshot!(shown(&ran, folder.path()));
    }
    assert_eq!(fs::read_to_string(folder.path().join("report.json")).unwrap(), DATA);
}
