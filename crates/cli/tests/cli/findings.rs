//! Datasets as people really have them: what `run` makes of each, by the numbers of the findings that they came from.

use std::fs;
use std::path::Path;

use dataset::write::{ColumnData, EpisodeData, WriteOptions, Writer};
use dataset::{Dtype, Feature, Root};

use crate::{Ran, folder, run};

/// Settings of a run with few steps of small models: enough to get from its one end to the other.
fn few() -> Vec<String> {
    let mut sets: Vec<String> = Vec::new();
    for section in ["world_model", "amortizer", "wake.emitter", "wake.decoder"] {
        sets.extend(["steps=2", "warmup=1"].map(|set| format!("{section}.train.{set}")));
    }
    let others = [
        "amortizer.lessons=16",
        "wake.judged=4",
        "wake.emitted=2",
        "wake.beam.width=1",
        "cycle.iterations=1",
        "cycle.refactor.max_judged=2",
        "cycle.classes.compared=4",
        "cycle.classes.samples=1",
    ];
    sets.extend(others.map(str::to_owned));
    sets
}

/// A small dataset without cameras: an end effector that moves to and fro, with a gripper.
struct Small<'a> {
    /// An episode for each instruction.
    instructions: &'a [&'a str],
    /// Names of the columns of actions.
    actions: &'a [&'a str],
    rewards: bool,
    /// An action of this size in the third row of the second episode.
    garbage: Option<f32>,
}

const ARM: [&str; 4] = ["x", "y", "z", "gripper"];

impl Default for Small<'_> {
    fn default() -> Self {
        let instructions =
            &["pick up the cup", "open the drawer", "pick up the cup", "open the drawer", "pick up the cup"];
        Small { instructions, actions: &ARM, rewards: true, garbage: None }
    }
}

impl Small<'_> {
    const STEPS: usize = 36;

    fn write(&self, target: &Path) {
        let width = self.actions.len();
        let vector = |names: &[&str]| Feature::new(Dtype::Float32, &[names.len()]).named(names);
        let mut features =
            vec![("observation.state".to_owned(), vector(self.actions)), ("action".to_owned(), vector(self.actions))];
        if self.rewards {
            features.push(("next.reward".to_owned(), Feature::new(Dtype::Float32, &[1])));
        }
        let mut writer = Writer::create(target, WriteOptions::new(20, features)).unwrap();
        for (episode, task) in self.instructions.iter().enumerate() {
            let mut state = vec![0.1 * episode as f32; width];
            let (mut states, mut actions) = (Vec::new(), Vec::new());
            for step in 0..Self::STEPS {
                let phase = step / 12 + usize::from(task.starts_with("open"));
                let action: Vec<f32> = (0..width)
                    .map(|column| match column + 1 == width {
                        true => {
                            if phase % 2 == 0 {
                                -1.0
                            } else {
                                1.0
                            }
                        }
                        false if column == phase % 3 => 0.5 + 0.02 * ((step * 7 + episode * 3) % 5) as f32,
                        false => 0.0,
                    })
                    .collect();
                states.extend(state.iter().copied());
                state.iter_mut().zip(&action).for_each(|(state, action)| *state += 0.02 * action);
                actions.extend(action);
            }
            if let Some(garbage) = self.garbage.filter(|_| episode == 1) {
                actions[2 * width + 1] = garbage;
            }
            let rewards: Vec<f32> = (0..Self::STEPS).map(|step| f32::from(u8::from(step + 1 == Self::STEPS))).collect();
            let mut columns =
                vec![("observation.state", ColumnData::F32(&states)), ("action", ColumnData::F32(&actions))];
            if self.rewards {
                columns.push(("next.reward", ColumnData::F32(&rewards)));
            }
            writer.add_episode(&EpisodeData { task, columns: &columns }).unwrap();
        }
        writer.finish().unwrap();
    }
}

/// Makes a run of datasets in a directory, given by their names there.
fn run_on(folder: &Path, datasets: &[&str], more: &[&str]) -> Ran {
    let place = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let mut words = vec!["run".to_owned()];
    words.extend(datasets.iter().map(|name| place(name)));
    words.extend(["--preset", "tiny", "--device", "cpu", "--out"].map(str::to_owned));
    words.push(place("run"));
    words.extend(few().into_iter().flat_map(|set| ["--set".to_owned(), set]));
    words.extend(more.iter().map(|word| (*word).to_owned()));
    run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// It trained its world model to the end, and failed then: "34 columns besides the gripper do not fit a twist".
#[test]
fn finding_1_a_humanoid_of_34_columns_is_run_to_the_end() {
    let folder = folder(&[]);
    let place = folder.path().join("humanoid");
    let made = run(&["data", "synth", "humanoid", "--episodes", "3", place.to_str().unwrap()]);
    assert!(made.code == 0 && made.out.contains("34 columns"), "{}", made.shown());
    let ran = run_on(folder.path(), &["humanoid"], &[]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let (start, _) = ran.err.split_once("world model\n").unwrap();
    for group in ["left arm", "right arm", "left leg", "right leg", "head", "torso"] {
        assert!(start.contains(&format!("robot, {group}: ")), "{group}: {start}");
    }
    let page = fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    assert!(page.contains("move ") && page.contains("left arm") && page.contains("Held-out figures"));
    let summary: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("run/summary.json")).unwrap()).unwrap();
    assert!(summary["skills"].as_u64().unwrap() > 1 && summary["segments"].as_u64().unwrap() > 15, "{summary}");
}

/// A phase alone takes as long as in a run, so what is not understood is said before it as well.
#[test]
fn finding_8_single_phases_say_what_a_run_says_before_they_train() {
    let folder = folder(&[]);
    let instructions =
        &["pick up the cup", "qwrtzl qwrtzl", "pick up the cup", "qwrtzl qwrtzl", "pick up the cup", "qwrtzl qwrtzl"];
    Small { rewards: false, instructions, ..Small::default() }.write(&folder.path().join("blind"));
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let train = |phase: &str, more: &[&str], section: &str| {
        let mut words = vec!["train".to_owned(), phase.to_owned(), place("blind")];
        words.extend(["--preset", "tiny", "--device", "cpu", "--out"].map(str::to_owned));
        words.push(place(phase));
        words.extend(more.iter().map(|word| (*word).to_owned()));
        let is_its_own = |set: &String| set.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'));
        let sets = few().into_iter().filter(is_its_own);
        words.extend(sets.flat_map(|set| ["--set".to_owned(), set]));
        let ran = run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(ran.code, 0, "{phase}: {}", ran.shown());
        let said = [
            "blind: 4 training and 2 held-out episodes of 2 tasks, 20 frames per second\n",
            "robot, arm: 3 action columns",
            "robot, gripper: 1 action column, which opens and closes it\n",
            "note: 1 of 2 instructions is not understood and becomes one step, `instructed \"…\"`: `qwrtzl qwrtzl`\n",
            "note: there are no rewards: no returns are learned\n",
        ];
        for line in said {
            assert!(ran.err.contains(line), "{phase}, {line}: {}", ran.err);
        }
    };
    train("world-model", &[], "world_model");
    train("amortizer", &["--teacher", &place("world-model")], "amortizer");
    train("wake", &["--world-model", &place("world-model")], "wake");
}

#[test]
fn finding_3_a_task_with_one_episode_is_trained_on_and_named() {
    let folder = folder(&[]);
    let instructions = ["pick up the cup", "open the drawer", "pick up the cup", "push the plate"];
    Small { instructions: &instructions, ..Small::default() }.write(&folder.path().join("single"));
    let (data, out) = (folder.path().join("single"), folder.path().join("run"));
    let train = |more: &[&str]| {
        let (data, out) = (data.to_str().unwrap(), out.to_str().unwrap());
        let words = ["train", "world-model", data, "--preset", "tiny", "--device", "cpu", "--out", out];
        run(&[&words[..], &["--set", "world_model.train.steps=2", "--set", "world_model.train.warmup=1"], more]
            .concat())
    };
    let ran = train(&[]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let note = "note: 2 tasks have a single episode, which is used for training and not for evaluation: `open the drawer`, \
                `push the plate`\n";
    assert!(ran.err.contains(note), "{}", ran.err);
    let config: serde_json::Value = serde_json::from_slice(&fs::read(out.join("config.json")).unwrap()).unwrap();
    assert_eq!(config["split"], serde_json::json!({ "train": [0, 1, 3], "held_out": [2] }));

    let ran = train(&["--hold-out", "0"]);
    assert!(ran.code == 2 && ran.err.contains("`--hold-out 1` holds out the fewest"), "{}", ran.shown());

    fs::remove_dir_all(&data).unwrap();
    Small { instructions: &instructions[..2], ..Small::default() }.write(&data);
    let ran = train(&["--resume"]);
    assert!(
        ran.err.starts_with("error: each of the 2 tasks has a single episode, so none can be held out"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("record a second episode"), "{}", ran.err);
}

#[test]
fn finding_4_a_dataset_without_cameras_is_learned_from() {
    let folder = folder(&[]);
    Small { rewards: false, ..Small::default() }.write(&folder.path().join("blind"));
    let ran = run_on(folder.path(), &["blind"], &[]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert_eq!(ran.err.matches("has no cameras").count(), 1, "it is said once: {}", ran.err);
    let page = fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    assert!(page.contains("The data has no pictures") && !page.contains("data:image/"));
    // What a run does without is said before it starts (finding 8).
    let (start, _) = ran.err.split_once("world model\n").unwrap();
    assert!(start.contains("note: there are no rewards: the return gate is inactive"), "{start}");
    assert!(start.contains("blind: 3 training and 2 held-out episodes of 2 tasks"), "{start}");

    let place = folder.path().join("blind");
    let ran = run(&["features", place.to_str().unwrap(), "--encoder", "pixels:2", "--cache", "cache"]);
    assert!(ran.code == 2 && ran.err.contains("hint: no features are needed"), "{}", ran.shown());
}

#[test]
fn finding_5_garbage_is_refused_before_training() {
    let folder = folder(&[]);
    Small { garbage: Some(6.6e22), ..Small::default() }.write(&folder.path().join("garbage"));
    let ran = run_on(folder.path(), &["garbage"], &[]);
    let said = "error: column `action.y` of `data/chunk-000/file-000.parquet` is 6.6e22 in row 38 (episode 1)\n";
    assert!(ran.code == 2 && ran.err.starts_with(said), "{}", ran.shown());
    assert!(!folder.path().join("run").exists());
    let place = folder.path().join("garbage");
    let validated = run(&["data", "validate", place.to_str().unwrap()]);
    assert!(validated.code == 2 && validated.err.starts_with(said), "{}", validated.shown());
}

/// Features were computed on another machine, and the videos stayed there.
#[test]
fn finding_6_a_run_without_videos_ends_with_a_report_without_pictures() {
    let folder = folder(&[]);
    let copy = |root: Root, target: &str| {
        let Root::Memory { files, .. } = root else { panic!("it is in memory") };
        for (name, content) in files.iter().filter(|(name, _)| !name.starts_with("videos/")) {
            let path = folder.path().join(target).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    };
    copy(dataset::embedded("libero_goal_mini").unwrap(), "goal");
    copy(dataset::embedded_features("libero_goal_mini").unwrap(), "cache");
    let ran = run_on(folder.path(), &["goal"], &["--cache", folder.path().join("cache").to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let (start, _) = ran.err.split_once("world model\n").unwrap();
    assert!(start.contains("note: the report will have no pictures") && start.contains("is missing"), "{start}");
    let page = fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    assert!(page.contains("Skills are shown without pictures") && !page.contains("data:image/"));
}

#[test]
fn datasets_of_different_robots_name_their_columns() {
    let folder = folder(&[]);
    Small::default().write(&folder.path().join("arm"));
    let joints =
        ["shoulder_pan.pos", "shoulder_lift.pos", "elbow_flex.pos", "wrist_flex.pos", "wrist_roll.pos", "gripper"];
    Small { actions: &joints, ..Small::default() }.write(&folder.path().join("so101"));
    let ran = run_on(folder.path(), &["arm", "so101"], &[]);
    let said = "error: `arm` and `so101` cannot be joined: actions have 4 columns in `arm` (`action`) and 6 in `so101` (`action`); \
                only `arm` has `x`, `y`, `z`, only `so101` has `shoulder_pan.pos`, ";
    assert!(ran.code == 2 && ran.err.contains(said), "{}", ran.shown());
    assert!(ran.err.contains("hint: ") && ran.err.contains("`--each`"), "{}", ran.err);
}

#[test]
fn finding_10_a_place_that_cannot_be_written_is_said_in_words() {
    let folder = folder(&[("file", "")]);
    Small::default().write(&folder.path().join("blind"));
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let ran = run(&["run", &place("blind"), "--preset", "tiny", "--device", "cpu", "--out", &place("file/run")]);
    assert!(ran.code == 2 && !ran.err.contains("os error"), "{}", ran.shown());
    assert!(ran.err.contains("a part of the path is a file, not a directory\nhint: choose a directory"), "{}", ran.err);
    let ran = run(&["features", "embedded:libero_goal_mini", "--encoder", "pixels:2", "--cache", &place("file/cache")]);
    assert!(ran.err.starts_with("error: features cannot be kept in "), "{}", ran.shown());
}
