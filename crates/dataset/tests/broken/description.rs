//! The directory and `meta/info.json`.

use std::fs;

use dataset::{Overrides, Root, ValidateOptions, explain, validate};
use serde_json::json;

use crate::set::{INFO, Set};
use crate::told;

/// What is told about a path in the folder around a sound dataset.
fn told_of(set: &Set, path: &str) -> String {
    let around = set.path().parent().unwrap().to_path_buf();
    let root = Root::Directory(around.join(path));
    let report = validate(root, &Overrides::default(), &ValidateOptions::default(), &|_| {});
    explain(&report.faults).replace(&around.display().to_string(), "<around>")
}

#[test]
fn no_such_directory() {
    insta::assert_snapshot!(told_of(&Set::sound(), "powr"));
}

#[test]
fn a_file_is_no_directory() {
    insta::assert_snapshot!(told_of(&Set::sound(), "pour/meta/info.json"));
}

#[test]
fn the_directory_above_datasets() {
    insta::assert_snapshot!(told_of(&Set::sound(), ""));
}

#[test]
fn a_directory_inside_a_dataset() {
    insta::assert_snapshot!(told_of(&Set::sound(), "pour/data/chunk-000"));
}

#[test]
fn an_empty_directory() {
    let set = Set::sound();
    fs::create_dir(set.path().parent().unwrap().join("empty")).unwrap();
    insta::assert_snapshot!(told_of(&set, "empty"));
}

#[test]
fn version_2_1() {
    let set = Set::sound();
    set.json(INFO, |info| info["codebase_version"] = "v2.1".into());
    insta::assert_snapshot!(told_of(&set, "pour"));
}

#[test]
fn a_version_of_the_future() {
    let set = Set::sound();
    set.json(INFO, |info| info["codebase_version"] = "v4.0".into());
    insta::assert_snapshot!(told(&set));
}

#[test]
fn no_version() {
    let set = Set::sound();
    set.json(INFO, |info| drop(info.as_object_mut().unwrap().shift_remove("codebase_version")));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn json_that_breaks_off() {
    let set = Set::sound();
    set.bytes(INFO, |bytes| bytes.truncate(120));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn json_that_is_a_list() {
    let set = Set::sound();
    set.json(INFO, |info| *info = json!([1, 2]));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn wrong_values_all_at_once() {
    let set = Set::sound();
    set.json(INFO, |info| {
        info["fps"] = 0.into();
        info["total_frames"] = "many".into();
        info["total_tasks"] = (-2).into();
        info["chunks_size"] = json!([]);
    });
    insta::assert_snapshot!(told(&set));
}

#[test]
fn no_features() {
    let set = Set::sound();
    set.json(INFO, |info| drop(info.as_object_mut().unwrap().shift_remove("features")));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn features_without_type_or_shape() {
    let set = Set::sound();
    set.json(INFO, |info| {
        info["features"]["action"] = json!({"dtype": "float32"});
        info["features"]["phase"]["dtype"] = json!(null);
        info["features"]["front"]["shape"] = json!([48, 64]);
        info["features"]["observation.state"]["shape"] = json!([-3]);
    });
    insta::assert_snapshot!(told(&set));
}

#[test]
fn paths_that_leave_the_directory() {
    let set = Set::sound();
    set.json(INFO, |info| info["data_path"] = "../../{chunk_index:03d}/{file_index:03d}.parquet".into());
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_path_without_its_numbers() {
    let set = Set::sound();
    set.json(INFO, |info| info["data_path"] = "data/chunk-{chunk_index:03d}/all.parquet".into());
    insta::assert_snapshot!(told(&set));
}

#[test]
fn videos_without_a_path() {
    let set = Set::sound();
    set.json(INFO, |info| info["video_path"] = json!(null));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn totals_that_do_not_add_up() {
    let set = Set::sound();
    set.json(INFO, |info| {
        info["total_episodes"] = 4.into();
        info["total_frames"] = 19.into();
        info["total_tasks"] = 1.into();
    });
    insta::assert_snapshot!(told(&set));
}

#[test]
fn a_split_of_more_episodes_than_there_are() {
    let set = Set::sound();
    set.json(INFO, |info| info["splits"] = json!({"train": "0:2", "test": "2:9"}));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn columns_that_could_be_anything() {
    let set = Set::sound();
    let rename = |columns: &mut crate::set::Columns| {
        for (name, _) in columns.iter_mut() {
            *name = name.replace("observation.state", "joints").replace("action", "motors");
        }
    };
    set.table(crate::set::DATA[0], rename);
    set.table(crate::set::DATA[1], rename);
    for file in [INFO, crate::set::STATS] {
        set.json(file, |value| {
            let features = if file == INFO { &mut value["features"] } else { value };
            for (old, new) in [("observation.state", "joints"), ("action", "motors")] {
                let feature = features.as_object_mut().unwrap().shift_remove(old).unwrap();
                features[new] = feature;
            }
        });
    }
    insta::assert_snapshot!(told(&set));
}

#[test]
fn keys_that_are_not_there() {
    let set = Set::sound();
    let overrides = Overrides {
        state: Some("stat".to_string()),
        cameras: Some(vec!["front".to_string(), "phase".to_string()]),
        ..Overrides::default()
    };
    let report = validate(set.root(), &overrides, &ValidateOptions::default(), &|_| {});
    insta::assert_snapshot!(explain(&report.faults));
}

/// It was taken for v3.
#[test]
fn a_version_that_is_none() {
    let set = Set::sound();
    set.json(INFO, |info| info["codebase_version"] = "banana".into());
    insta::assert_snapshot!(told(&set));
}
