//! Sound datasets have no faults, and several faults are all told.

use std::path::PathBuf;

use dataset::write::{ColumnData, EpisodeData, WriteOptions, Writer};
use dataset::{Dataset, Dtype, Feature, Overrides, Root, ValidateOptions, validate};

use crate::set::{DATA, INFO, STATS, Set, VIDEO, place};
use crate::told;

#[test]
fn the_small_set_is_sound() {
    let set = Set::sound();
    let options = ValidateOptions { decode: true, stats: true };
    let report = validate(set.root(), &Overrides::default(), &options, &|_| {});
    assert_eq!(report.faults, []);
    let checked = report.checked;
    assert_eq!((checked.files, checked.episodes, checked.rows, checked.pictures), (3, 3, 20, 40));
    assert_eq!(Dataset::open(set.root(), &Overrides::default()).unwrap().frames(), 20);
}

/// What lerobot writes is sound. Pictures are decoded for the small set only, for the sake of time.
#[test]
fn demonstrations_of_lerobot_are_sound() {
    for name in ["libero_object", "libero_spatial", "libero_goal", "libero_10", "libero_object_image_tiny"] {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
        if !path.is_dir() {
            eprintln!("skipped: `../shared/data/{name}` is not there");
            continue;
        }
        let options = ValidateOptions { decode: name.ends_with("tiny"), stats: true };
        let report = validate(Root::Directory(path), &Overrides::default(), &options, &|_| {});
        assert_eq!(report.faults, [], "{name}");
        assert_eq!(report.checked.pictures, 2 * report.checked.rows, "{name}");
    }
}

#[test]
fn the_embedded_set_is_sound() {
    for name in dataset::EMBEDDED_NAMES {
        let root = dataset::embedded(name).unwrap();
        let report = validate(root, &Overrides::default(), &ValidateOptions::default(), &|_| {});
        assert_eq!(report.faults, [], "{name}");
    }
}

/// A missing file hides nothing.
#[test]
fn several_faults_are_all_told() {
    let set = Set::sound();
    set.json(INFO, |info| info["total_frames"] = 21.into());
    set.remove(DATA[0]);
    set.table(DATA[1], |columns| {
        let actions = place(columns, "action");
        *actions = crate::data_files::vectors(&[[0.0, f32::NAN], [0.0, 1.0]].repeat(4)[..7]);
    });
    set.integers(DATA[1], "task_index", |tasks| tasks[3] = 9);
    set.bytes(VIDEO, |bytes| bytes.truncate(9000));
    set.json(STATS, |stats| stats["phase"]["max"] = serde_json::json!([7, 8]));
    insta::assert_snapshot!(told(&set));
}

#[test]
fn faults_come_in_the_same_order_every_time() {
    let set = Set::sound();
    set.remove(DATA[0]);
    set.remove(VIDEO);
    set.remove(STATS);
    let first = told(&set);
    for _ in 0..5 {
        assert_eq!(told(&set), first);
    }
}

/// A matrix was refused even where the user named it.
#[test]
fn a_matrix_that_the_user_names_is_the_state() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("poses");
    let features = vec![
        ("poses".to_string(), Feature::new(Dtype::Float32, &[2, 4])),
        ("action".to_string(), Feature::new(Dtype::Float32, &[2])),
    ];
    let poses: Vec<f32> = (0..40).map(|value| value as f32).collect();
    let columns = [("poses", ColumnData::F32(&poses)), ("action", ColumnData::F32(&poses[..10]))];
    let mut writer = Writer::create(&path, WriteOptions::new(20, features)).unwrap();
    writer.add_episode(&EpisodeData { task: "pour", columns: &columns }).unwrap();
    writer.finish().unwrap();
    let named = Overrides { state: Some("poses".to_string()), ..Overrides::default() };
    let report = validate(Root::Directory(path.clone()), &named, &ValidateOptions::default(), &|_| {});
    assert_eq!(report.faults, []);
    let dataset = Dataset::open(Root::Directory(path), &named).unwrap();
    assert_eq!((dataset.columns().states.width, &dataset.columns().states.values), (8, &poses));
    assert_eq!(dataset::inspect(&dataset).unwrap().frames, 5);
}
