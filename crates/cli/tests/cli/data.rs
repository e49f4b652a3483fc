//! Datasets as a person meets them: looked at, checked, made, annotated.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{Ran, run};

/// A synthetic dataset in a folder that is removed with it.
struct Made {
    folder: tempfile::TempDir,
}

impl Made {
    fn new() -> Made {
        let made = Made { folder: tempfile::tempdir().unwrap() };
        let ran = run(&["data", "synth", "recursive-pour", made.shown("pour").as_str(), "--demos", "2"]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        assert!(ran.out.starts_with("wrote 8 episodes, 80 frames, 4 tasks to "), "{}", ran.out);
        made
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.folder.path().to_path_buf() } else { self.folder.path().join(name) }
    }

    fn shown(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Runs a command on paths of the folder, whose name is left out of what comes back.
    fn run(&self, args: &[&str]) -> Ran {
        let args: Vec<String> =
            args.iter().map(|arg| arg.strip_prefix("./").map_or(arg.to_string(), |name| self.shown(name))).collect();
        let mut ran = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let folder = format!("{}{}", self.folder.path().display(), std::path::MAIN_SEPARATOR);
        ran.out = ran.out.replace(&folder, "").replace(folder.trim_end_matches('/'), ".");
        ran.err = ran.err.replace(&folder, "").replace(folder.trim_end_matches('/'), ".");
        ran
    }

    fn info(&self, change: impl FnOnce(&mut Value)) {
        change_json(&self.path("pour/meta/info.json"), change);
    }

    fn skills(&self, skills: &Value) {
        fs::write(self.path("skills.json"), skills.to_string()).unwrap();
    }
}

fn change_json(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

#[test]
fn the_embedded_set_is_shown_without_a_name() {
    let ran = run(&["data", "inspect"]);
    insta::assert_snapshot!(ran.shown());
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn a_synthetic_set_is_shown() {
    insta::assert_snapshot!(Made::new().run(&["data", "inspect", "./pour"]).shown());
}

/// Every robot can be made, is sound, and tells its true segments.
#[test]
fn synthetic_robots_are_sound_and_tell_their_segments() {
    let folder = tempfile::tempdir().unwrap();
    for (robot, columns, fps, cameras) in [
        ("so101", 6, 30, 2),
        ("aloha", 14, 50, 3),
        ("humanoid", 34, 30, 1),
        ("mobile", 9, 30, 2),
        ("state-only", 8, 30, 0),
    ] {
        let path = folder.path().join(robot).display().to_string();
        let told = run(&["data", "synth", robot, &path, "--episodes", "1", "--json"]).json();
        assert_eq!(
            (&told["columns"], &told["fps"], &told["cameras"], &told["rewards"]),
            (&json!(columns), &json!(fps), &json!(cameras), &json!(robot != "so101"))
        );
        let tasks = told["tasks"].as_array().unwrap();
        assert_eq!(told["episodes"], tasks.len());
        assert!(tasks.len() >= 4 && tasks.iter().all(|task| (5..=14).contains(&task["segments"].as_u64().unwrap())));
        let ran = run(&["data", "validate", &path]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{robot}: {}", ran.out);
        let shown = run(&["data", "inspect", &path, "--json"]).json();
        assert_eq!((&shown["episodes"], &shown["labels"][0]["key"]), (&told["episodes"], &json!("phase")));
    }
    let path = folder.path().join("quiet").display().to_string();
    let ran = run(&["data", "synth", "state-only", &path, "--episodes", "1", "--noise", "0", "--seed", "3"]);
    insta::assert_snapshot!(ran.shown().replace(&path, "quiet"));
    let ran = run(&["data", "synth", "state-only", &path, "--noise", "4"]);
    assert!(ran.code == 2 && ran.err.contains("0..=3"), "{}", ran.err);
}

#[test]
fn what_is_shown_is_also_json() {
    let json = run(&["data", "inspect", "--json"]).json();
    assert_eq!((&json["episodes"], &json["frames"], &json["fps"]), (&json!(36), &json!(2226), &json!(10.0)));
    assert_eq!(json["signals"].as_array().unwrap().len(), 8 + 7 + 1);
    assert_eq!(json["labels"][0]["values"][1]["name"], "grasp");
    let mut keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    keys.sort();
    insta::assert_debug_snapshot!(keys);
}

#[test]
fn columns_can_be_named() {
    let made = Made::new();
    let json =
        made.run(&["data", "inspect", "./pour", "--json", "--label-key", "role", "--state-key", "action"]).json();
    assert_eq!(json["labels"].as_array().unwrap().len(), 1);
    assert_eq!(json["signals"][0]["key"], "action");
    insta::assert_snapshot!(made.run(&["data", "inspect", "./pour", "--state-key", "stat"]).shown());
}

#[test]
fn what_actions_mean_can_be_said() {
    let robot = |options: &[&str]| run(&[&["data", "inspect", "--json"], options].concat()).json()["robot"].clone();
    let found = robot(&[]);
    assert_eq!((&found["groups"][0]["name"], &found["groups"][0]["control"]), (&json!("arm"), &json!("relative")));
    assert_eq!(found["groups"][1]["gripper"]["closes_above"], json!(true));
    let said = robot(&["--control", "arm=absolute", "--gripper", "none"]);
    assert_eq!(said["groups"][0]["control"], json!("absolute"));
    assert!(said["groups"].as_array().unwrap().iter().all(|group| group["kind"] != "gripper"));
    assert_eq!(robot(&["--gripper", "6"]), robot(&["--gripper", "gripper"]));
    insta::assert_snapshot!("no_group", run(&["data", "inspect", "--control", "left arm=absolute"]).shown());
    insta::assert_snapshot!("no_gripper_column", run(&["data", "inspect", "--gripper", "hand"]).shown());
    insta::assert_snapshot!("no_control", run(&["data", "inspect", "--control", "fast"]).shown());
}

#[test]
fn a_sound_set() {
    insta::assert_snapshot!(Made::new().run(&["data", "validate", "./pour"]).shown());
}

#[test]
fn the_wrong_directory() {
    let made = Made::new();
    insta::assert_snapshot!("no_directory", made.run(&["data", "inspect", "./powr"]).shown());
    insta::assert_snapshot!("directory_above", made.run(&["data", "inspect", "./"]).shown());
    insta::assert_snapshot!("directory_inside", made.run(&["data", "validate", "./pour/meta"]).shown());
    insta::assert_snapshot!("no_directory_json", made.run(&["data", "inspect", "./powr", "--json"]).shown());
    insta::assert_snapshot!("no_embedded_set", made.run(&["data", "inspect", "embedded:libero"]).shown());
}

#[test]
fn an_older_version() {
    let made = Made::new();
    made.info(|info| info["codebase_version"] = "v2.1".into());
    insta::assert_snapshot!(made.run(&["data", "validate", "./pour"]).shown());
}

#[test]
fn several_faults() {
    let made = Made::new();
    made.info(|info| {
        info["total_tasks"] = 5.into();
        info["features"]["action"]["shape"] = json!([3]);
    });
    fs::remove_file(made.path("pour/meta/stats.json")).unwrap();
    insta::assert_snapshot!("several_faults", made.run(&["data", "validate", "./pour"]).shown());
    insta::assert_snapshot!("several_faults_json", made.run(&["data", "validate", "./pour", "--json"]).shown());
}

#[test]
fn warnings_are_no_failure() {
    let made = Made::new();
    fs::remove_file(made.path("pour/meta/stats.json")).unwrap();
    insta::assert_snapshot!(made.run(&["data", "validate", "./pour"]).shown());
}

#[test]
fn nothing_is_written_over() {
    let made = Made::new();
    insta::assert_snapshot!(made.run(&["data", "synth", "recursive-pour", "./pour"]).shown());
}

#[test]
fn skills_go_back_into_a_copy() {
    let made = Made::new();
    made.skills(&json!({
        "feature": "skill",
        "names": ["carry", "pour"],
        "episodes": [
            {"episode": 0, "skills": [{"from": 0, "to": 1, "skill": 0}, {"from": 1, "to": 3, "skill": 1}]},
            {"episode": 3, "skills": [{"from": 10, "to": 16, "skill": 0}]},
        ],
    }));
    let ran = made.run(&["data", "annotate", "./skills.json", "./pour", "./annotated"]);
    insta::assert_snapshot!(ran.shown());
    assert_eq!(made.run(&["data", "validate", "./annotated"]).code, 0);
    let json = made.run(&["data", "inspect", "./annotated", "--json"]).json();
    let label = json["labels"].as_array().unwrap().iter().find(|label| label["key"] == "skill").unwrap();
    insta::assert_snapshot!(serde_json::to_string(&label["values"]).unwrap());
}

#[test]
fn skills_that_do_not_fit() {
    let made = Made::new();
    made.skills(&json!({
        "feature": "role",
        "names": ["carry", "pour", "carry"],
        "episodes": [
            {"episode": 0, "skills": [{"from": 0, "to": 3, "skill": 0}, {"from": 2, "to": 4, "skill": 7}]},
            {"episode": 1, "skills": [{"from": 5, "to": 5, "skill": 1}, {"from": 6, "to": 99, "skill": 1}]},
            {"episode": 0, "skills": []},
            {"episode": 80, "skills": []},
        ],
    }));
    insta::assert_snapshot!(made.run(&["data", "annotate", "./skills.json", "./pour", "./annotated"]).shown());
    assert!(!made.path("annotated").exists());
}

#[test]
fn skills_that_are_none() {
    let made = Made::new();
    made.skills(&json!({"feature": "skill", "names": [], "episode": []}));
    insta::assert_snapshot!(made.run(&["data", "annotate", "./skills.json", "./pour", "./annotated"]).shown());
}

/// One skill over the first frames of the first episode.
fn one_skill(feature: &str) -> Value {
    let episode = json!({"episode": 0, "skills": [{"from": 0, "to": 2, "skill": 0}]});
    json!({"feature": feature, "names": ["carry"], "episodes": [episode, {"episode": 1, "skills": []}]})
}

const ANNOTATE: [&str; 5] = ["data", "annotate", "./skills.json", "./pour", "./annotated"];

#[test]
fn only_annotated_episodes_and_frames_are_counted() {
    let made = Made::new();
    made.skills(&one_skill("skill"));
    assert_eq!(
        made.run(&ANNOTATE).out,
        "wrote `annotated` with `skill`: 1 skill over 1 of 8 episodes, 2 of 80 frames\n"
    );
}

#[test]
fn a_dataset_without_states_can_be_annotated() {
    let made = Made::new();
    let state = "observation.state";
    made.info(|info| {
        let features = info["features"].as_object_mut().unwrap();
        assert!(features.remove(state).is_some() && features.remove("action").is_some());
    });
    assert!(made.run(&["data", "inspect", "./pour"]).err.contains("no column is the"));
    made.skills(&one_skill("skill"));
    let ran = made.run(&ANNOTATE);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[test]
fn annotating_does_not_ask_for_another_total() {
    let made = Made::new();
    let data = made.path("pour/data/chunk-000");
    fs::copy(data.join("file-000.parquet"), data.join("old.parquet")).unwrap();
    made.skills(&one_skill("skill"));
    let ran = made.run(&ANNOTATE);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    fs::remove_file(data.join("old.parquet")).unwrap();
    fs::rename(&data, made.path("pour/part-000")).unwrap();
    made.info(|info| info["data_path"] = json!("part-{chunk_index:03d}/file-{file_index:03d}.parquet"));
    let ran = made.run(&["data", "annotate", "./skills.json", "./pour", "./again"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(made.run(&["data", "validate", "./again"]).code, 0);
}

#[test]
fn subtasks_are_not_replaced() {
    let made = Made::new();
    made.skills(&one_skill("skill"));
    assert_eq!(made.run(&ANNOTATE).code, 0);
    made.skills(&one_skill("other"));
    let again = ["data", "annotate", "./skills.json", "./annotated", "./again"];
    insta::assert_snapshot!(made.run(&again).shown());
    assert!(!made.path("again").exists());
    assert_eq!(made.run(&[&again[..], &["--no-subtasks"]].concat()).code, 0);
    let subtasks = |name: &str| fs::read(made.path(name).join("meta/subtasks.parquet")).unwrap();
    assert_eq!(subtasks("again"), subtasks("annotated"));
}

#[test]
fn a_feature_that_lerobot_has_itself() {
    let made = Made::new();
    made.skills(&one_skill("stat"));
    insta::assert_snapshot!(made.run(&ANNOTATE).shown());
}

#[test]
fn a_feature_that_is_no_name() {
    let made = Made::new();
    made.skills(&one_skill("../skill"));
    insta::assert_snapshot!(made.run(&ANNOTATE).shown());
}

#[test]
fn a_copy_inside_its_dataset() {
    let made = Made::new();
    made.skills(&one_skill("skill"));
    insta::assert_snapshot!(made.run(&["data", "annotate", "./skills.json", "./pour", "./pour/copy"]).shown());
    let ran = made.run(&["data", "annotate", "./skills.json", "./pour", "./pour"]);
    assert!(ran.code == 2 && ran.err.starts_with("error: `pour` is in the dataset `pour`"), "{}", ran.err);
    assert!(!made.path("pour/copy").exists());
}

/// A run with two skills that stand still, one for each command of the gripper.
fn still_run(made: &Made) {
    let skill = |name: &str, closed: bool| {
        let (zeros, command) = (vec![0.0; 6], if closed { 1.0 } else { -1.0 });
        let profile = json!({"shape": vec![[0.0]; 6], "gain": vec![vec![[0.0]; 6]; 6], "pace": zeros});
        json!({
            "name": name, "label": 0, "closed": [closed], "commands": [command], "members": 1, "arguments": [],
            "duration": {"steps": 10.0, "way": 0.0, "slope": 1.0, "bounds": [10, 10]}, "profiles": [profile],
        })
    };
    let arm = json!({
        "name": "arm", "space": {"pose": {"form": "axis_angle", "reference": [1.0, 0.0, 0.0, 0.0], "radians": 1.0}},
        "control": "relative", "columns": [0, 1, 2, 3, 4, 5], "states": [0, 1, 2, 3, 4, 5],
        "limits": vec![[-1.0, 1.0]; 6], "fast": vec![1.0; 6],
    });
    let gripper =
        json!({"name": "gripper", "column": 6, "threshold": 0.0, "closes_above": true, "limits": [-1.0, 1.0]});
    let alphabet = json!({
        "layout": {"width": 7, "fps": 20.0, "groups": [arm], "grippers": [gripper]},
        "config": {}, "grids": [vec![0.01; 6]], "paces": [vec![0.01; 6]], "sizes": [1.0],
        "skills": [skill("skill_0_open", false), skill("skill_0_closed", true)],
    });
    fs::create_dir(made.path("run")).unwrap();
    fs::write(
        made.path("run/config.json"),
        r#"{"settings": {"world_model": {}, "wake": {}, "cycle": {"segments": {}}}}"#,
    )
    .unwrap();
    fs::write(made.path("run/skills.json"), alphabet.to_string()).unwrap();
}

#[test]
fn the_skills_of_a_run_go_into_a_dataset() {
    let made = Made::new();
    still_run(&made);
    let annotate = ["annotate", "embedded:libero_goal_mini", "./annotated", "--run", "./run", "--json"];
    let told = made.run(&annotate).json();
    assert_eq!((&told["episodes"], told["classes"].as_array().unwrap().len()), (&json!(36), 2));
    assert_eq!(made.run(&["data", "validate", "./annotated"]).code, 0);
    let json = made.run(&["data", "inspect", "./annotated", "--json"]).json();
    let labels = json["labels"].as_array().unwrap();
    let keys: Vec<&str> = labels.iter().map(|label| label["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["phase", "skill_index", "subtask_index"]);
    assert!(labels[1]["values"][1]["name"].as_str().unwrap().starts_with("skill_0_closed · "), "{}", labels[1]);
    // The column is the command of the gripper, which is all that these skills differ in.
    let skills = labels[1]["values"].as_array().unwrap();
    assert_eq!(skills.iter().map(|value| value["frames"].as_u64().unwrap()).sum::<u64>(), 2226);
    // With the run first, it is the same command: the same outcome and the same files.
    let other = ["data", "annotate", "./run", "embedded:libero_goal_mini", "./other"];
    let mut again = made.run(&[&other[..], &["--json"]].concat()).json();
    again["dataset"] = told["dataset"].clone();
    for timing in ["seconds", "hours_per_minute", "peak_mib"] {
        again[timing] = told[timing].clone();
    }
    assert_eq!(again, told);
    let files = ["meta/subtasks.parquet", "meta/skills.json", "meta/subtasks.toml", "data/chunk-000/file-000.parquet"];
    for file in files {
        assert!(
            fs::read(made.path("annotated").join(file)).unwrap() == fs::read(made.path("other").join(file)).unwrap(),
            "{file}"
        );
    }
    insta::assert_snapshot!("a_run_without_subtasks", made.run(&[&other[..], &["--no-subtasks"]].concat()).shown());
}

#[test]
fn runs_that_cannot_annotate() {
    let made = Made::new();
    let annotate = |run: &str, dataset: &str| made.run(&["annotate", dataset, "./annotated", "--run", run]).shown();
    insta::assert_snapshot!("a_run_that_is_not_there", annotate("./nothing", "./pour"));
    fs::create_dir(made.path("begun")).unwrap();
    fs::write(
        made.path("begun/config.json"),
        r#"{"settings": {"world_model": {}, "wake": {}, "cycle": {"segments": {}}}}"#,
    )
    .unwrap();
    insta::assert_snapshot!("a_run_that_is_not_finished", annotate("./begun", "./pour"));
    insta::assert_snapshot!("a_dataset_as_a_run", annotate("./pour", "./pour"));
    still_run(&made);
    insta::assert_snapshot!("another_robot", annotate("./run", "./pour"));
    let old = json!({"layout": {"width": 7, "gripper": 6, "closed_above": 0.0, "limit": 1.0}, "skills": []});
    fs::write(made.path("run/skills.json"), old.to_string()).unwrap();
    insta::assert_snapshot!("a_run_of_an_earlier_version", annotate("./run", "./pour"));
    assert!(!made.path("annotated").exists());
}
