//! The paper's experiments from the command line.

use std::fs;

use crate::run;

#[test]
fn the_list_and_the_help_name_every_experiment() {
    let (list, help) = (run(&["eval", "list"]), run(&["eval", "--help"]));
    assert_eq!((list.code, help.code), (0, 0), "{}{}", list.shown(), help.shown());
    for one in [
        "matrix",
        "mechanisms",
        "clusterer",
        "ablate",
        "windows",
        "cross-provider",
        "capacity",
        "library",
        "wake",
        "eta",
        "theory",
    ] {
        assert!(list.out.lines().any(|line| line.trim_start().starts_with(one)), "{one} is not in {}", list.out);
        assert!(help.out.contains(&format!("  {one} ")), "{one} is not in {}", help.out);
    }
    assert!(!help.out.contains("phase-c"), "the former spelling is hidden");
    let own = run(&["eval", "windows", "--help"]);
    assert!(
        own.out.contains("eval windows --preset smoke --out runs/smoke") && own.out.contains("--seeds"),
        "{}",
        own.out
    );
}

#[test]
fn an_experiment_writes_its_results_and_is_not_run_twice() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("paper");
    let args =
        ["eval", "windows", "--preset", "smoke", "--seeds", "1", "--device", "cpu", "--out", out.to_str().unwrap()];
    let ran = run(&args);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.out.contains("NMI phase") && ran.out.contains("Paired differences"), "{}", ran.out);
    for file in ["results.json", "table.md", "figure.svg"] {
        assert!(out.join("windows").join(file).is_file(), "{file}");
    }
    let again = run(&[&args[..], &["--json"]].concat());
    assert!(again.err.contains("windows libero_goal_mini/whole/seed-0: already done"), "{}", again.err);
    assert_eq!(again.json()["rows"].as_array().unwrap().len(), 3);
    assert!(
        fs::read_to_string(out.join("windows/table.md")).unwrap().contains("refactor-vla eval windows --preset smoke")
    );

    let other = run(&[&args[..], &["--set", "paper.bottleneck_steps=9"]].concat());
    assert!(other.code == 2 && other.err.contains("contains a run with other settings"), "{}", other.shown());
}

#[test]
fn mistakes_say_what_to_do() {
    let twice = run(&[
        "eval",
        "windows",
        "embedded:libero_goal_mini",
        "embedded:libero_goal_mini",
        "--preset",
        "smoke",
        "--out",
        "unused",
    ]);
    assert!(twice.code == 2 && twice.err.contains("two datasets are called `libero_goal_mini`"), "{}", twice.shown());
    let preset = run(&["eval", "eta", "--preset", "smok", "--out", "unused"]);
    assert!(preset.code == 2 && preset.err.contains("there is no preset `smok`"), "{}", preset.shown());
    let setting = run(&["eval", "eta", "--preset", "smoke", "--set", "paper.pour_demo=3", "--out", "unused"]);
    assert!(setting.code == 2 && setting.err.contains("did you mean `pour_demos`"), "{}", setting.shown());
    let former = run(&["eval", "phase-c", "--modes", "nothing", "--out", "unused"]);
    assert!(former.code == 2 && former.err.contains("`nothing` is no mode"), "{}", former.shown());
}
