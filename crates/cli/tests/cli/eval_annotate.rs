//! `eval annotate` on data that every copy of the program has.

use std::fs;

use serde_json::Value;

use crate::{folder, run, shown};

const MINI: &str = "embedded:libero_goal_mini";

/// The report of a cutter.
fn cutter<'a>(cutters: &'a Value, name: &str) -> &'a Value {
    let found = cutters.as_array().unwrap().iter().find(|one| one["name"] == name);
    assert!(found.is_some(), "there is no `{name}` in {cutters}");
    found.unwrap()
}

#[test]
fn help() {
    insta::assert_snapshot!(run(&["eval", "annotate", "--help"]).out.trim_end());
}

/// Checks that the means of the episodes' own figures are those of the cutters.
fn same_means(cutters: &Value, scores: &[&Value]) {
    for (key, name, figure) in [
        ("subtasks_f1", "ours, subtasks", "boundary_02"),
        ("boundary_f1", "ours, segments", "boundary_02"),
        ("phase_object", "ours, subtasks", "phase_object"),
    ] {
        let mean = scores.iter().map(|one| one[key].as_f64().unwrap()).sum::<f64>() / scores.len() as f64;
        let wanted = cutter(cutters, name)[figure]["mean"].as_f64().unwrap();
        assert!((mean - wanted).abs() < 1e-9, "{key}: {mean} and not {wanted}");
    }
}

#[test]
fn every_cutter_is_scored_in_the_same_way_every_time() {
    let first = run(&["eval", "annotate", MINI, "--json"]);
    let report = &first.json()[0];
    assert_eq!(first.out, run(&["eval", "annotate", MINI, "--json"]).out);
    let recorded = &report["recorded"];
    for name in [
        "ours, subtasks",
        "ours, segments",
        "ours, segments, tuned",
        "uniform, true count",
        "gripper events",
        "gripper events and hold",
        "speed minima",
        "PELT on actions",
        "KMeans on windows",
    ] {
        let own = cutter(recorded, name);
        for figure in ["boundary_02", "boundary_05", "segment_50", "segment_75", "phase", "phase_object"] {
            let [mean, low, high] = ["mean", "low", "high"].map(|key| own[figure][key].as_f64().unwrap());
            assert!((0.0..=1.0).contains(&mean) && low <= mean && mean <= high, "{name}, {figure}: {own}");
        }
        assert!(own["boundary_02"]["mean"].as_f64() <= own["boundary_05"]["mean"].as_f64(), "{own}");
        assert!(own["segment_75"]["mean"].as_f64() <= own["segment_50"]["mean"].as_f64(), "{own}");
        assert!(own["phase_object"]["mean"].as_f64() <= own["phase"]["mean"].as_f64(), "{own}");
    }
    let f1 = |name: &str| cutter(recorded, name)["boundary_02"]["mean"].as_f64().unwrap();
    assert!(f1("ours, segments") > f1("uniform, true count"), "{recorded}");
    let episodes = report["episodes"].as_array().unwrap();
    assert_eq!(episodes.len() as u64, report["held_out_episodes"].as_u64().unwrap());
    same_means(recorded, &episodes.iter().map(|episode| &episode["scores"]).collect::<Vec<_>>());
    for episode in episodes {
        assert_eq!(episode["truth"].as_array().unwrap().last().unwrap()["rows"]["end"], episode["rows"]);
        assert_eq!(episode["subtasks"].as_array().unwrap().last().unwrap()["end"], episode["rows"]);
    }
}

#[test]
fn a_synthetic_robot_with_noise_a_peer_and_a_plot() {
    let folder = folder(&[]);
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let made = run(&["data", "synth", "state-only", &place("robot"), "--episodes", "2"]);
    assert_eq!(made.code, 0, "{}", made.shown());
    // A peer that knows the answer for the second half of the episodes, which are held out.
    let args = ["eval", "annotate", &place("robot"), "--json"];
    let plain = run(&args).json();
    let cuts: serde_json::Map<String, Value> = plain[0]["episodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let truth = one["truth"].as_array().unwrap().iter().skip(1);
            let starts: Vec<Value> = truth.map(|segment| segment["rows"]["start"].clone()).collect();
            (one["episode"].to_string(), Value::Array(vec![Value::Array(starts)]))
        })
        .collect();
    let peer = serde_json::json!({"name": "oracle", "settings": ["-"], "cuts": {"robot": cuts}});
    fs::write(place("peer.json"), peer.to_string()).unwrap();
    let more = ["--noise", "--peer", &place("peer.json"), "--output", &place("out.json"), "--plot", &place("plot.svg")];
    let ran = run(&[&args[..3], &more].concat());
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.out.contains("oracle") && ran.out.contains("beginner operator"), "{}", ran.out);
    let written: Value = serde_json::from_slice(&fs::read(place("out.json")).unwrap()).unwrap();
    let oracle = cutter(&written[0]["recorded"], "oracle");
    assert_eq!(oracle["boundary_02"]["mean"], 1.0, "{oracle}");
    assert_eq!(oracle["segment_75"]["pooled"], 1.0, "{oracle}");
    let levels: Vec<&Value> = written[0]["disturbed"].as_array().unwrap().iter().map(|one| &one["level"]).collect();
    assert_eq!(levels, ["practised", "ordinary", "beginner"]);
    for level in written[0]["disturbed"].as_array().unwrap() {
        same_means(&level["cutters"], &level["episodes"].as_array().unwrap().iter().collect::<Vec<_>>());
    }
    assert!(fs::read_to_string(place("plot.svg")).unwrap().starts_with("<svg"));
}

#[test]
fn what_cannot_be_scored() {
    let folder = folder(&[
        ("peer.json", r#"{"name": "p", "settings": ["a", "b"], "cuts": {"libero_goal_mini": {"3": [[1]]}}}"#),
        ("other.json", "[1]"),
    ]);
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for args in [
        &["--peer", &place("peer.json")][..],
        &["--peer", &place("other.json")],
        &["--objects", &place("other.json")],
        &["--plot", &place("plot.svg")],
    ] {
        let ran = run(&[&["eval", "annotate", MINI], args].concat());
        insta::assert_snapshot!(shown(&ran, folder.path()));
    }
    let pour = place("pour");
    assert_eq!(run(&["data", "synth", "recursive-pour", &pour, "--demos", "2"]).code, 0);
    insta::assert_snapshot!(shown(&run(&["eval", "annotate", &pour]), folder.path()));
}

#[test]
fn wrong_instructions_are_noticed_and_right_ones_are_used() {
    let report = run(&["eval", "annotate", MINI, "--shuffled", "--json"]).json();
    for rows in ["held_out", "training"] {
        let row = &report[rows][0];
        let share = |kind: &str| {
            let [by_motion, all] = ["by_motion", "all"].map(|key| row[kind][key].as_f64().unwrap());
            assert!(all > 0.0, "{row}");
            by_motion / all
        };
        assert_eq!((share("right"), share("nonsense")), (0.0, 1.0), "{row}");
        // What asks for the same steps cannot be told apart by motion.
        assert!(share("other_steps") > 0.8 && share("same_steps") < 0.05, "{row}");
    }
    let text = run(&["eval", "annotate", MINI, "--shuffled"]).out;
    assert!(text.contains("Robots that are moved by end effectors: an alignment is used"), "{text}");
}
