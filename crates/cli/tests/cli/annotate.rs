//! `annotate` and `data view`: named subtasks as a person gets, corrects and looks at them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use dataset::write::{ColumnData, EpisodeData, ExtraColumn, WriteOptions, Writer, rewrite_with_columns};
use dataset::{Dtype, Feature};
use serde_json::{Value, json};

use crate::{Ran, run};

/// A folder with a synthetic dataset in it.
struct Made {
    folder: tempfile::TempDir,
}

impl Made {
    fn new(robot: &str) -> Made {
        let made = Made { folder: tempfile::tempdir().unwrap() };
        let ran = made.run(&["data", "synth", robot, "./set", "--episodes", "1"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        made
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a command on paths of the folder, whose name is left out of what comes back.
    fn run(&self, args: &[&str]) -> Ran {
        let own = |arg: &&str| arg.strip_prefix("./").map(|name| self.path(name).display().to_string());
        let args: Vec<String> = args.iter().map(|arg| own(arg).unwrap_or_else(|| arg.to_string())).collect();
        let mut ran = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let folder = format!("{}{}", self.folder.path().display(), std::path::MAIN_SEPARATOR);
        ran.out = ran.out.replace(&folder, "");
        ran.err = ran.err.replace(&folder, "");
        ran
    }

    fn annotate(&self, args: &[&str]) -> Value {
        self.run(&[&["annotate"], args, &["--json"]].concat()).json()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn sound(&self, name: &str) -> bool {
        let ran = self.run(&["data", "validate", &format!("./{name}")]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
        true
    }
}

/// The rows of a table of subtasks: episode, start, end, name, named_by.
fn rows(csv: &str) -> Vec<(usize, usize, usize, String, String)> {
    let row = |line: &str| {
        let (front, named_by) = line.rsplit_once(',').unwrap();
        let fields: Vec<&str> = front.splitn(6, ',').collect();
        let number = |at: usize| fields[at].parse().unwrap();
        let name = match fields[5].strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap().0,
            None => fields[5].split(',').next().unwrap(),
        };
        (number(0), number(1), number(2), name.to_owned(), named_by.to_owned())
    };
    csv.lines().skip(1).map(row).collect()
}

/// A dataset of a single joint that goes to and fro, with a task in words.
fn joint(path: &Path, task: &str, value: impl Fn(usize) -> f32) {
    let features = ["observation.state", "action"].map(|key| (key.to_string(), Feature::new(Dtype::Float32, &[1])));
    let mut writer = Writer::create(path, WriteOptions::new(20, features.to_vec())).unwrap();
    let values: Vec<f32> = (0..120).map(value).collect();
    let columns = [("observation.state", ColumnData::F32(&values)), ("action", ColumnData::F32(&values))];
    writer.add_episode(&EpisodeData { task, columns: &columns }).unwrap();
    writer.finish().unwrap();
}

#[test]
fn every_robot_gets_subtasks_that_cover_its_episodes() {
    for robot in ["so101", "aloha", "humanoid", "mobile", "state-only"] {
        let made = Made::new(robot);
        let told = made.annotate(&["./set", "./out", "--segments", "./rows.csv"]);
        assert!(made.sound("out"));
        let shown = made.run(&["data", "inspect", "./out", "--json"]).json();
        let keys: Vec<&str> =
            shown["labels"].as_array().unwrap().iter().map(|label| label["key"].as_str().unwrap()).collect();
        assert_eq!(keys, ["phase", "skill_index", "subtask_index"], "{robot}");
        let rows = rows(&made.text("rows.csv"));
        assert_eq!(told["subtasks"], rows.len(), "{robot}");
        let mut ends = std::collections::BTreeMap::new();
        for (episode, start, end, name, _) in &rows {
            assert_eq!(ends.insert(*episode, *end).unwrap_or(0), *start, "{robot}");
            assert!(start < end && !name.is_empty(), "{robot}");
        }
        assert_eq!(json!(ends.values().sum::<usize>()), told["frames"], "{robot}");
        let each = rows.len() as f64 / ends.len() as f64;
        assert!((2.0..40.0).contains(&each), "{robot}: {each} subtasks in an episode");
        assert!(!told["classes"].as_array().unwrap().is_empty());
    }
}

#[test]
fn annotating_twice_gives_the_same_files() {
    let made = Made::new("state-only");
    made.annotate(&["./set", "./one", "--segments", "./one.csv"]);
    made.annotate(&["./set", "./two", "--segments", "./two.csv"]);
    assert_eq!(made.text("one.csv"), made.text("two.csv"));
    for file in ["meta/subtasks.toml", "meta/skills.json", "meta/stats.json", "meta/info.json"] {
        assert_eq!(made.text(&format!("one/{file}")), made.text(&format!("two/{file}")), "{file}");
    }
}

#[test]
fn names_can_be_corrected() {
    let made = Made::new("state-only");
    let before = made.annotate(&["./set", "./one", "--write-names", "./names.toml"]);
    assert_eq!(made.text("names.toml"), made.text("one/meta/subtasks.toml"));
    let generated = before["names"][0]["name"].as_str().unwrap().to_owned();
    let quoted = format!("\"{generated}\" = \"{generated}\"");
    let edited = made.text("names.toml").replace(&quoted, &format!("\"{generated}\" = \"say cheese\""));
    assert_ne!(edited, made.text("names.toml"));
    fs::write(made.path("names.toml"), &edited).unwrap();
    let after = made.annotate(&["./set", "./two", "--names", "./names.toml"]);
    let renamed = after["names"].as_array().unwrap().iter().find(|one| one["name"] == "say cheese").unwrap();
    assert_eq!(renamed["subtasks"], before["names"][0]["subtasks"]);
    assert!(!after["names"].as_array().unwrap().iter().any(|one| one["name"] == generated.as_str()));
    // The dataset remembers it: annotated again, the name stays.
    let again = made.annotate(&["./two", "./three"]);
    assert_eq!(again["names"], after["names"]);
    // A name that is not there is said.
    fs::write(made.path("names.toml"), "[names]\n\"gasp\" = \"grasp\"\n").unwrap();
    let ran = made.run(&["annotate", "./set", "./four", "--names", "./names.toml"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, "warning: no subtask is called `gasp`, which the names rename\n"));
    fs::write(made.path("names.toml"), "[names]\n\"a\" = \"\"\nb = 3\n").unwrap();
    let ran = made.run(&["annotate", "./set", "./five", "--names", "./names.toml"]);
    insta::assert_snapshot!("names_that_are_none", ran.shown());
    assert!(!made.path("five").exists());
}

#[test]
fn boundaries_can_be_corrected() {
    let made = Made::new("state-only");
    made.annotate(&["./set", "./one", "--segments", "./one.csv"]);
    let csv = made.text("one.csv");
    // The whole table given back changes nothing.
    let told = made.annotate(&["./set", "./same", "--segments-from", "./one.csv", "--segments", "./same.csv"]);
    assert_eq!((made.text("same.csv"), told["corrected"].as_u64()), (csv.clone(), Some(0)));
    assert!(!made.path("same/meta/subtasks_corrections.csv").exists());
    // One episode with another boundary and name; the others stay as they are.
    let length = rows(&csv).iter().filter(|row| row.0 == 1).map(|row| row.2).max().unwrap();
    let edited = format!("episode,start,end,name\n1,0,7,wait\n1,7,{length},\"pour, slowly\"\n");
    fs::write(made.path("edited.csv"), edited).unwrap();
    let told = made.annotate(&["./set", "./two", "--segments-from", "./edited.csv", "--segments", "./two.json"]);
    assert_eq!(told["corrected"], 1);
    let after: Vec<Value> = serde_json::from_str(&made.text("two.json")).unwrap();
    let of = |episode: u64| after.iter().filter(move |row| row["episode"] == episode).collect::<Vec<_>>();
    assert_eq!((of(1).len(), &of(1)[1]["name"], &of(1)[1]["named_by"]), (2, &json!("pour, slowly"), &json!("person")));
    assert_eq!((&of(1)[1]["start"], &of(1)[1]["confidence"]), (&json!(7), &json!(1.0)));
    assert_eq!(of(0).len(), rows(&csv).iter().filter(|row| row.0 == 0).count());
    assert!(made.sound("two"));
    // The result remembers them, in place too.
    made.annotate(&["./two", "./three", "--segments", "./three.json"]);
    assert_eq!(made.text("three.json"), made.text("two.json"));
    let ran = made.run(&["annotate", "./three", "--in-place"]);
    assert!(ran.out.contains("read corrections of 1 episode from `meta/subtasks_corrections.csv`"), "{}", ran.shown());
    assert!(ran.out.contains("1 episode corrected by a person, kept in"), "{}", ran.shown());
    // A table with the episode as it was generated takes the correction back.
    let told = made.annotate(&["./three", "./four", "--segments-from", "./one.csv", "--segments", "./four.csv"]);
    assert_eq!((made.text("four.csv"), &told["corrected"]), (csv, &json!(0)));
    assert!(!made.path("four/meta/subtasks_corrections.csv").exists());
}

/// The first name of a vocabulary under another name.
fn renamed(text: &str, name: &str) -> (String, String) {
    let line = text.lines().find(|line| line.starts_with('"')).unwrap();
    let (generated, _) = line.split_once(" = ").unwrap();
    (generated.trim_matches('"').to_owned(), text.replace(line, &format!("{generated} = \"{name}\"")))
}

#[test]
fn names_and_a_table_go_together() {
    let made = Made::new("state-only");
    let before = made.annotate(&["./set", "./one", "--segments", "./one.csv", "--write-names", "./names.toml"]);
    let (generated, edited) = renamed(&made.text("names.toml"), "say cheese");
    fs::write(made.path("names.toml"), edited).unwrap();
    // The table is as it was generated, so the names apply to it.
    let args = ["annotate", "./set", "./two", "--names", "./names.toml", "--segments-from", "./one.csv", "--json"];
    let ran = made.run(&args);
    assert_eq!(ran.err, "");
    let after = ran.json();
    let of = |told: &Value, name: &str| told["names"].as_array().unwrap().iter().find(|it| it["name"] == name).cloned();
    assert_eq!(of(&after, "say cheese").unwrap()["subtasks"], of(&before, &generated).unwrap()["subtasks"]);
    assert_eq!((of(&after, &generated), &after["corrected"]), (None, &json!(0)));
    // A file of other names goes over those that the dataset has.
    let vocabulary = made.text("two/meta/subtasks.toml");
    let other = vocabulary.lines().filter(|line| line.starts_with('"')).find(|line| !line.contains("say cheese"));
    let (other, _) = other.unwrap().split_once(" = ").unwrap();
    fs::write(made.path("more.toml"), format!("[names]\n{other} = \" smile \"\n")).unwrap();
    let told = made.annotate(&["./two", "./three", "--names", "./more.toml"]);
    assert!(of(&told, "say cheese").is_some() && of(&told, "smile").is_some(), "{told}");
}

#[test]
fn a_moved_boundary_keeps_its_name_in_the_vocabulary() {
    let made = Made::new("state-only");
    made.annotate(&["./set", "./one", "--segments", "./one.csv", "--write-names", "./names.toml"]);
    let (generated, edited) = renamed(&made.text("names.toml"), "say cheese");
    fs::write(made.path("names.toml"), edited).unwrap();
    let mut table = rows(&made.text("one.csv"));
    let place = (0..table.len() - 1).find(|at| table[*at].3 == generated && table[*at].0 == table[at + 1].0).unwrap();
    (table[place].2, table[place + 1].1) = (table[place].2 - 1, table[place + 1].1 - 1);
    let lines = table.iter().map(|(episode, start, end, name, _)| format!("{episode},{start},{end},\"{name}\"\n"));
    fs::write(made.path("moved.csv"), format!("episode,start,end,name\n{}", lines.collect::<String>())).unwrap();
    let files = ["--names", "./names.toml", "--segments-from", "./moved.csv", "--segments", "./two.csv"];
    let told = made.annotate(&[&["./set", "./two"][..], &files].concat());
    assert_eq!(told["corrected"], 1);
    let after = rows(&made.text("two.csv"));
    assert_eq!((after[place].2, after[place].3.as_str()), (table[place].2, "say cheese"));
    assert!(after.iter().all(|row| row.3 != generated), "{after:?}");
}

/// Moves the end of the first subtask with a name by a frame, and writes the table without seconds.
fn moved(csv: &str, name: &str) -> (usize, usize, String) {
    let mut table = rows(csv);
    let place = (0..table.len() - 1).find(|at| table[*at].3 == name && table[*at].0 == table[at + 1].0).unwrap();
    (table[place].2, table[place + 1].1) = (table[place].2 - 1, table[place + 1].1 - 1);
    let lines = table.iter().map(|(episode, start, end, name, _)| format!("{episode},{start},{end},\"{name}\"\n"));
    (place, table[place].2, format!("episode,start,end,name\n{}", lines.collect::<String>()))
}

#[test]
fn a_second_name_reaches_a_boundary_that_was_moved() {
    let made = Made::new("state-only");
    made.annotate(&["./set", "./one", "--write-names", "./names.toml"]);
    let (_, edited) = renamed(&made.text("names.toml"), "say cheese");
    fs::write(made.path("names.toml"), edited).unwrap();
    made.annotate(&["./set", "./two", "--names", "./names.toml", "--segments", "./two.csv"]);
    let (place, end, table) = moved(&made.text("two.csv"), "say cheese");
    fs::write(made.path("moved.csv"), table).unwrap();
    let told = made.annotate(&["./two", "--in-place", "--segments-from", "./moved.csv", "--segments", "./three.csv"]);
    assert_eq!(told["corrected"], 1);
    let found = rows(&made.text("three.csv"));
    assert_eq!((found[place].2, found[place].3.as_str(), found[place].4.as_str()), (end, "say cheese", "person"));
    // Once more, in the vocabulary of the dataset.
    let vocabulary = made.text("two/meta/subtasks.toml");
    fs::write(made.path("two/meta/subtasks.toml"), vocabulary.replace("= \"say cheese\"", "= \"smile\"")).unwrap();
    made.annotate(&["./two", "--in-place", "--segments", "./four.csv"]);
    let after = rows(&made.text("four.csv"));
    assert_eq!((after[place].2, after[place].3.as_str()), (end, "smile"));
    assert!(after.iter().all(|row| row.3 != "say cheese"), "{after:?}");
}

#[test]
fn seconds_that_somebody_edited_are_not_ignored() {
    let made = Made::new("state-only");
    made.annotate(&["./set", "./one", "--segments", "./one.csv"]);
    let csv = made.text("one.csv");
    let second = csv.lines().nth(2).unwrap();
    let fields: Vec<&str> = second.split(',').collect();
    let edited = second.replacen(&format!(",{},", fields[3]), ",0.123,", 1);
    assert_ne!(edited, second);
    fs::write(made.path("seconds.csv"), csv.replacen(second, &edited, 1)).unwrap();
    let ran = made.run(&["annotate", "./set", "./two", "--segments-from", "./seconds.csv"]);
    let told = format!("line 3: `start_s` is 0.123, `start` is frame {}, which is at", fields[1]);
    assert_eq!((ran.code, made.path("two").exists()), (2, false), "{}", ran.shown());
    assert!(ran.err.contains(&told) && ran.err.contains("edit `start` and `end`"), "{}", ran.err);
    // Who edits frames need not edit seconds; it is only said that these are not read.
    let start: usize = fields[1].parse().unwrap();
    let text = csv.replacen(&format!(",{start},"), &format!(",{},", start - 3), 2);
    fs::write(made.path("frames.csv"), text).unwrap();
    let ran =
        made.run(&["annotate", "./set", "./three", "--segments-from", "./frames.csv", "--segments", "./three.csv"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(ran.err.starts_with("warning: `frames.csv`: only `start` and `end` are read"), "{}", ran.err);
    assert_eq!(rows(&made.text("three.csv"))[1].1, start - 3);
}

#[test]
fn a_page_has_frames_and_says_which_names_are_after_the_motion() {
    let made = Made { folder: tempfile::tempdir().unwrap() };
    joint(&made.path("set"), "la vida es sueño", |frame| if frame < 60 { 0.0 } else { (frame - 60) as f32 });
    let page = |set: &str| {
        let ran = made.run(&["data", "view", set, "./page.html"]);
        assert_eq!(ran.code, 0, "{}", ran.shown());
        made.text("page.html")
    };
    let preview = page("./set");
    made.annotate(&["./set", "./one"]);
    let annotated = page("./one");
    for page in [&preview, &annotated] {
        assert!(page.contains("frames 0–") && page.contains("–120") && page.contains("by motion"), "{page}");
    }
    // A name of a person is not one after the motion.
    let vocabulary = made.text("one/meta/subtasks.toml");
    assert!(vocabulary.contains("[by_motion]"), "{vocabulary}");
    let mine = vocabulary.lines().map(|line| match line.split_once(" = ") {
        Some((generated, _)) => format!("{generated} = \"mine {}\n", generated.trim_start_matches('"')),
        None => format!("{line}\n"),
    });
    fs::write(made.path("mine.toml"), mine.collect::<String>()).unwrap();
    made.annotate(&["./set", "./two", "--names", "./mine.toml"]);
    assert!(!page("./two").contains("by motion"));
}

#[test]
fn an_existing_result_and_a_corrected_table_are_not_replaced() {
    let made = Made::new("state-only");
    made.annotate(&["./set", "./one", "--segments", "./one.csv"]);
    let csv = made.text("one.csv");
    let ran = made.run(&["data", "view", "./one", "./one.csv"]);
    assert_eq!((ran.code, made.text("one.csv")), (2, csv));
    assert!(ran.err.contains("is not the name of a page") && ran.err.contains("--segments-from"), "{}", ran.err);
    let ran = made.run(&["annotate", "./set", "./one"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("there is a dataset in `one` already"), "{}", ran.err);
    assert!(ran.err.contains("refactor-vla annotate one --in-place"), "{}", ran.err);
}

#[test]
fn numbers_that_a_person_changed_are_kept_or_refused() {
    let made = Made::new("state-only");
    made.annotate(&["./set", "./ours", "--segments", "./ours.csv"]);
    let ours = dataset::Root::Directory(made.path("ours"));
    let whole = dataset::Dataset::open(ours.clone(), &dataset::Overrides::default()).unwrap();
    let mut values = whole.columns().labels["subtask_index"].clone();
    let end = values.iter().position(|value| *value != values[0]).unwrap();
    values[end] = values[0];
    let column = ExtraColumn { key: "subtask_index", values: &values };
    rewrite_with_columns(&ours, &made.path("edited"), &[column]).unwrap();
    insta::assert_snapshot!(made.run(&["annotate", "./edited", "./out"]).shown());
    assert!(!made.path("out").exists());
    let told = made.annotate(&["./edited", "./kept", "--segments-from", "./edited", "--segments", "./kept.csv"]);
    assert_eq!(told["corrected"], 1);
    let (kept, old) = (rows(&made.text("kept.csv")), rows(&made.text("ours.csv")));
    assert_eq!((kept[0].2, kept[1].1, kept.len()), (end + 1, end + 1, old.len()));
    made.annotate(&["./kept", "./again", "--segments", "./again.csv"]);
    assert_eq!(made.text("again.csv"), made.text("kept.csv"));
    made.annotate(&["./edited", "./replaced", "--replace", "--segments", "./replaced.csv"]);
    assert_eq!(made.text("replaced.csv"), made.text("ours.csv"));
}

#[test]
fn files_that_a_person_edited_are_not_overwritten() {
    let made = Made::new("state-only");
    let outputs = ["--segments", "./rows.csv", "--write-names", "./names.toml"];
    let annotate = |out: &str| made.run(&[&["annotate", "./set", out], &outputs[..]].concat());
    assert_eq!((annotate("./one").code, annotate("./two").code), (0, 0));
    for (file, name) in [("rows.csv", "a_table_that_was_edited"), ("names.toml", "names_that_were_edited")] {
        let before = made.text(file);
        let edited = format!("{before}# mine\n");
        fs::write(made.path(file), &edited).unwrap();
        insta::assert_snapshot!(name, annotate("./three").shown());
        assert_eq!((made.text(file), made.path("three").exists()), (edited, false));
        fs::write(made.path(file), before).unwrap();
    }
}

#[test]
fn the_table_and_the_column_have_the_same_subtasks() {
    for robot in ["so101", "aloha", "state-only"] {
        let made = Made::new(robot);
        let told = made.annotate(&["./set", "./out", "--segments", "./rows.csv"]);
        let found = rows(&made.text("rows.csv"));
        let equal = found.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].3 == pair[1].3);
        assert_eq!((equal, told["subtasks"].as_u64()), (None, Some(found.len() as u64)), "{robot}");
    }
}

#[test]
fn corrections_that_do_not_fit() {
    let made = Made::new("state-only");
    fs::write(made.path("bad.csv"), "episode,start,end,name\n0,0,4,a\n0,6,9,b\n0,8,20,c\n77,0,1,d\n1,2,x,e\n").unwrap();
    let ran = made.run(&["annotate", "./set", "./out", "--segments-from", "./bad.csv"]);
    insta::assert_snapshot!(ran.shown());
    assert!(!made.path("out").exists());
    let ran = made.run(&["annotate", "./set", "./out", "--segments", "./rows.txt"]);
    insta::assert_snapshot!("a_table_of_another_kind", ran.shown());
}

#[test]
fn in_place_there_is_a_backup_and_names_are_kept() {
    let made = Made::new("state-only");
    let ran = made.run(&["annotate", "./set", "--in-place"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("the dataset as it was is in `set.backup-1`"), "{}", ran.out);
    assert!(made.sound("set") && made.sound("set.backup-1"));
    assert!(!made.path("set.backup-1/meta/subtasks.parquet").exists());
    // A person edits the vocabulary where it is.
    let text = made.text("set/meta/subtasks.toml");
    let line = text.lines().find(|line| line.starts_with('"')).unwrap();
    let (generated, _) = line.split_once(" = ").unwrap();
    fs::write(made.path("set/meta/subtasks.toml"), text.replace(line, &format!("{generated} = \"my name\""))).unwrap();
    let told = made.annotate(&["./set", "--in-place"]);
    assert!(told["names"].as_array().unwrap().iter().any(|one| one["name"] == "my name"));
    assert!(made.path("set.backup-2").exists() && made.text("set/meta/subtasks.toml").contains("my name"));
    // A dataset that is gone and has a backup.
    fs::rename(made.path("set"), made.path("set.backup-3")).unwrap();
    insta::assert_snapshot!(made.run(&["annotate", "./set", "--in-place"]).shown());
}

#[test]
fn subtasks_of_others_are_kept_unless_asked() {
    let made = Made::new("state-only");
    let skills = json!({
        "feature": "skill", "names": ["mine"],
        "episodes": [{"episode": 0, "skills": [{"from": 0, "to": 5, "skill": 0}]}],
    });
    fs::write(made.path("skills.json"), skills.to_string()).unwrap();
    assert_eq!(made.run(&["data", "annotate", "./skills.json", "./set", "./theirs"]).code, 0);
    insta::assert_snapshot!(made.run(&["annotate", "./theirs", "./out"]).shown());
    let told = made.annotate(&["./theirs", "./out", "--replace"]);
    assert!(told["subtasks"].as_u64().unwrap() > 0 && made.sound("out"));
}

#[test]
fn language_columns_and_back() {
    let made = Made::new("state-only");
    made.annotate(&["./set", "./numbers", "--segments", "./one.csv"]);
    made.annotate(&["./numbers", "./language", "--format", "language", "--segments", "./two.csv"]);
    assert_eq!(made.text("one.csv"), made.text("two.csv"));
    assert!(made.sound("language") && !made.path("language/meta/subtasks.parquet").exists());
    let info: Value = serde_json::from_str(&made.text("language/meta/info.json")).unwrap();
    assert_eq!(info["features"]["language_persistent"]["dtype"], "language");
    assert!(info["features"]["subtask_index"].is_null());
}

#[test]
fn one_episode_without_words_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let to_and_fro = |row: usize| if row < 60 { row as f32 } else { (120 - row) as f32 };
    for (name, task) in [("empty", ""), ("odd", "ぱん 🙂"), ("unknown", "flurb the gnarl")] {
        let (set, out) = (folder.path().join(name), folder.path().join(format!("{name}-out")));
        joint(&set, task, to_and_fro);
        let told = run(&["annotate", set.to_str().unwrap(), out.to_str().unwrap(), "--json"]).json();
        assert_eq!((&told["episodes"], &told["frames"]), (&json!(1), &json!(120)));
        assert!((1..=6).contains(&told["subtasks"].as_u64().unwrap()), "{told}");
    }
    // A robot that never moves.
    let (set, out) = (folder.path().join("still"), folder.path().join("still-out"));
    joint(&set, "wait", |_| 1.0);
    let told = run(&["annotate", set.to_str().unwrap(), out.to_str().unwrap(), "--json"]).json();
    assert_eq!((&told["classes"].as_array().unwrap().len(), &told["episodes"]), (&1, &json!(1)));
}

#[test]
fn what_is_not_finite_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    // Numbers without a pattern are in the file as they are, which the test makes use of.
    let value = |row: usize| (row * 7919 % 1009) as f32 * 0.123_456_7;
    joint(&set, "wait", value);
    // The writer takes no such number, so it is put into the file afterwards.
    let file = set.join("data/chunk-000/file-000.parquet");
    let mut bytes = fs::read(&file).unwrap();
    let wanted = value(77).to_le_bytes();
    let places: Vec<usize> = (0..bytes.len() - 4).filter(|at| bytes[*at..at + 4] == wanted).collect();
    assert!(!places.is_empty(), "the number is not in the file as it is");
    places.iter().for_each(|at| bytes[*at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes()));
    fs::write(&file, bytes).unwrap();
    let ran = run(&["annotate", set.to_str().unwrap(), folder.path().join("out").to_str().unwrap()]);
    assert!(ran.code == 2 && ran.err.contains("NaN in row 77"), "{}", ran.err);
    assert!(!ran.err.contains("training"), "{}", ran.err);
    // What is finite but absurd is told with its place as well.
    let set = folder.path().join("large");
    joint(&set, "wait", |row| if row == 77 { 1e30 } else { row as f32 });
    let ran = run(&["annotate", set.to_str().unwrap(), folder.path().join("out").to_str().unwrap()]);
    assert!(ran.code == 2 && ran.err.contains("in row 77 (episode 0)"), "{}", ran.err);
    assert!(
        ran.err.contains("data/chunk-000/file-000.parquet") && ran.err.contains("observation.state"),
        "{}",
        ran.err
    );
}

#[test]
fn places_that_cannot_be() {
    let made = Made::new("state-only");
    let annotate = |args: &[&str]| made.run(&[&["annotate"], args].concat()).shown();
    insta::assert_snapshot!("no_place", annotate(&["./set"]));
    insta::assert_snapshot!("swapped_places", annotate(&["./out", "./set"]));
    insta::assert_snapshot!("two_places_in_place", annotate(&["./set", "./out", "--in-place"]));
    insta::assert_snapshot!("place_inside", annotate(&["./set", "./set/out"]));
    insta::assert_snapshot!("old_order", annotate(&["runs/kitchen", "./set", "./out"]));
    insta::assert_snapshot!("embedded_in_place", annotate(&["embedded:libero_goal_mini", "--in-place"]));
    insta::assert_snapshot!("run_that_is_none", annotate(&["./set", "./out", "--run", "./set"]));
    assert!(!made.path("out").exists());
}

/// Root may write anywhere, so permissions must be looked at.
#[test]
#[cfg(unix)]
fn a_write_protected_dataset_is_not_replaced_even_by_root() {
    use std::os::unix::fs::PermissionsExt as _;
    let made = Made::new("state-only");
    let set = |name: &str, mode: u32| {
        fs::set_permissions(made.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    set("set/meta/info.json", 0o444);
    insta::assert_snapshot!(made.run(&["annotate", "./set", "--in-place"]).shown());
    set("set/meta/info.json", 0o640);
    set("set", 0o550);
    let ran = made.run(&["annotate", "./set", "--in-place"]);
    assert!(ran.code == 2 && ran.err.contains("cannot write `set`: it is write-protected"), "{}", ran.err);
    assert!(!made.path("set.backup-1").exists());
    // A copy can be made, and changed.
    assert_eq!(made.run(&["annotate", "./set", "./out"]).code, 0);
    assert_eq!(made.run(&["annotate", "./out", "--in-place"]).code, 0);
    set("set", 0o750);
    assert_eq!(made.run(&["annotate", "./set", "--in-place"]).code, 0);
    let mode = |name: &str| fs::metadata(made.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("set"), mode("set/meta/info.json"), mode("set/meta/subtasks.parquet")), (0o750, 0o640, 0o640));
}

/// A process that is killed at any moment leaves the dataset or its backup whole, and the next run goes well.
#[test]
fn killed_at_any_moment_nothing_is_lost() {
    let made = Made::new("state-only");
    let set = made.path("set");
    for wait in [0, 20, 60, 120, 200, 300, 450] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_refactor-vla"))
            .args(["annotate", set.to_str().unwrap(), "--in-place"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        let _ = child.kill();
        child.wait().unwrap();
        if !set.exists() {
            // Between the two renames: the newest backup is the dataset.
            let newest = (1..).map(|at| made.path(&format!("set.backup-{at}"))).take_while(|path| path.exists()).last();
            fs::rename(newest.unwrap(), &set).unwrap();
        }
        assert!(made.sound("set"), "killed after {wait} ms");
    }
    assert_eq!(made.run(&["annotate", "./set", "--in-place"]).code, 0);
    let left = fs::read_dir(made.folder.path()).unwrap().flatten().map(|entry| entry.file_name());
    let left: Vec<String> = left.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(left.iter().all(|name| !name.contains("partial")), "{left:?}");
}

#[test]
fn episodes_are_shown_as_film_strips() {
    let made = Made::new("so101");
    let ran = made.run(&["data", "view", "./set", "./preview.html", "--episodes", "2", "--pictures", "4"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "page: preview.html with 2 episodes\n"), "{}", ran.err);
    let page = made.text("preview.html");
    assert_eq!((page.matches("<article").count(), page.matches("data:image/jpeg").count()), (2, 8));
    assert!(page.contains("would write") && page.len() < 200_000, "{}", page.len());
    made.annotate(&["./set", "./out"]);
    assert_eq!(made.run(&["data", "view", "./out", "./page.html"]).code, 0);
    let page = made.text("page.html");
    let names: Value = made.annotate(&["./set", "./again"])["names"].clone();
    assert!(!page.contains("would write"));
    let escaped = |name: &str| name.replace('&', "&amp;").replace('\'', "&#39;").replace('"', "&quot;");
    assert!(names.as_array().unwrap().iter().all(|one| page.contains(&escaped(one["name"].as_str().unwrap()))));
    // Without cameras there are bands alone.
    let arm = Made::new("state-only");
    assert_eq!(arm.run(&["data", "view", "./set", "./page.html"]).code, 0);
    assert!(!arm.text("page.html").contains("<img"));
}
