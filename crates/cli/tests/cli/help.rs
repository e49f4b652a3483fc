//! Every help text, so that a change of one is seen.

use crate::run;

#[test]
fn help_texts() {
    for (name, args) in [
        ("refactor-vla", &[][..]),
        ("program", &["program"]),
        ("program_check", &["program", "check"]),
        ("program_eval", &["program", "eval"]),
        ("program_show", &["program", "show"]),
        ("program_from-instruction", &["program", "from-instruction"]),
        ("annotate", &["annotate"]),
        ("data", &["data"]),
        ("data_inspect", &["data", "inspect"]),
        ("data_validate", &["data", "validate"]),
        ("data_synth", &["data", "synth"]),
        ("data_synth_recursive-pour", &["data", "synth", "recursive-pour"]),
        ("data_synth_so101", &["data", "synth", "so101"]),
        ("data_view", &["data", "view"]),
        ("data_annotate", &["data", "annotate"]),
        ("features", &["features"]),
        ("library", &["library"]),
        ("library_compress", &["library", "compress"]),
        ("library_show", &["library", "show"]),
        ("report", &["report"]),
        ("serve", &["serve"]),
        ("train", &["train"]),
        ("train_wake", &["train", "wake"]),
        ("eval_closed-loop", &["eval", "closed-loop"]),
        ("eval_motor-library", &["eval", "motor-library"]),
        ("train_world-model", &["train", "world-model"]),
        ("run", &["run"]),
        ("presets_show", &["presets", "show"]),
        ("config_show", &["config", "show"]),
        ("completions", &["completions"]),
    ] {
        let ran = run(&[args, &["--help"]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{name}");
        insta::assert_snapshot!(format!("help_{name}"), ran.out.trim_end());
    }
}

#[test]
fn presets_are_listed_and_shown() {
    let ran = run(&["presets", "list"]);
    assert!(ran.code == 0 && ran.out.contains("  m188 ") && ran.out.contains("  fast-wake "), "{}", ran.shown());
    let listed = run(&["presets", "list", "--json"]).json();
    assert!(listed.as_array().unwrap().iter().any(|one| one["name"] == "fast-wake" && one["part"] == true), "{listed}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    std::fs::write(&file, run(&["presets", "show", "tiny"]).out).unwrap();
    let mine = run(&["presets", "show", file.to_str().unwrap(), "fast-wake", "--json"]).json();
    let both = run(&["presets", "show", "tiny", "fast-wake", "--json"]).json();
    assert_eq!(mine["settings"], both["settings"]);
    let ran = run(&["presets", "show", "large"]);
    assert!(
        ran.code == 2 && ran.err.contains("there is no preset `large`; there are `smoke`, `demo`"),
        "{}",
        ran.shown()
    );
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = run(&["completions", shell]);
        assert_eq!(ran.code, 0, "{shell}");
        assert!(ran.out.contains("from-instruction") && ran.out.contains("max-arity"), "{shell}");
    }
}
