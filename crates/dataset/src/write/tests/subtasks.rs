//! Subtasks in copies and in place.

use std::collections::BTreeMap;

use arrow_array::types::Float32Type;

use super::*;
use crate::write::language::{LANGUAGE_EVENTS, LANGUAGE_PERSISTENT};

/// A dataset of three episodes with a video and a folder of version control.
fn source(folder: &Path) -> Root {
    let features = vec![
        ("observation.state".to_string(), Feature::new(Dtype::Float32, &[3])),
        ("action".to_string(), Feature::new(Dtype::Float32, &[2])),
    ];
    let target = folder.join("source");
    write_random(&target, &WriteOptions::new(10, features), &[4, 1, 7], 5).unwrap();
    std::fs::create_dir_all(target.join("videos/front/chunk-000")).unwrap();
    std::fs::write(target.join("videos/front/chunk-000/file-000.mp4"), "no video").unwrap();
    std::fs::create_dir(target.join(".git")).unwrap();
    std::fs::write(target.join(".git/HEAD"), "main").unwrap();
    std::fs::write(target.join(".gitattributes"), "*.mp4").unwrap();
    Root::Directory(target)
}

fn runs(lengths: &[(usize, i64)]) -> Runs {
    let mut runs = Runs::default();
    lengths.iter().for_each(|(frames, value)| runs.push(*frames, *value));
    runs
}

/// Writes three subtasks and two classes.
fn put(root: &Root, place: Place<'_>, form: Form) -> Result<Option<std::path::PathBuf>, Error> {
    put_with(root, place, form, false)
}

fn put_with(root: &Root, place: Place<'_>, form: Form, link_videos: bool) -> Result<Option<std::path::PathBuf>, Error> {
    let names = ["reach for the bowl", "grasp the bowl", "move away"].map(String::from);
    let class_names = ["class_0", "class_1"].map(String::from);
    let subtasks = Subtasks {
        names: &names,
        values: &runs(&[(3, 0), (1, 1), (1, 2), (5, 0), (2, 2)]),
        class_names: &class_names,
        classes: &runs(&[(4, 1), (8, 0)]),
        form,
        link_videos,
        files: vec![("meta/subtasks.toml".to_string(), Some(b"[names]\n".to_vec()))],
    };
    write_subtasks(root, place, &subtasks, &|_| {})
}

/// All files that are not hidden, by path.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let root = Root::Directory(folder.to_path_buf());
    let files = ["data", "meta", "videos"].into_iter().flat_map(|folder| root.list(folder));
    files.map(|file| (file.clone(), std::fs::read(folder.join(&file)).unwrap())).collect()
}

#[test]
fn subtasks_are_numbers_with_texts_and_statistics() {
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let out = folder.path().join("out");
    assert_eq!(put(&root, Place::New(&out), Form::Subtasks).unwrap(), None);
    let copy = Root::Directory(out.clone());
    let number = Feature::new(Dtype::Int(64), &[1]);
    let after = batches(&out, "data");
    let expected = vec![0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 2, 2];
    assert_eq!(read_back(&after, SUBTASK_INDEX, &number), Values::I64(expected));
    assert_eq!(read_back(&after, SKILL_INDEX, &number), Values::I64([vec![1; 4], vec![0; 8]].concat()));
    let texts = Table::open(&copy, SUBTASKS).unwrap().texts("__index_level_0__").unwrap();
    assert_eq!(texts, ["reach for the bowl", "grasp the bowl", "move away"]);
    let stats = Stats::parse(&copy.read(STATS, 1 << 20).unwrap()).unwrap();
    let stats = stats.get(SUBTASK_INDEX).unwrap();
    assert_eq!((stats.count, stats.max[0]), (Some(12), 2.0));
    assert!((stats.mean[0] - 7.0 / 12.0).abs() < 1e-12);
    let mut greatest = Vec::new();
    numbers(batches(&out, "meta/episodes")[0].column_by_name("stats/subtask_index/max").unwrap(), &mut greatest);
    assert_eq!(greatest, [1.0, 2.0, 2.0]);
    let vocabulary: Value = serde_json::from_slice(&copy.read("meta/skills.json", 1000).unwrap()).unwrap();
    assert_eq!(vocabulary, serde_json::json!({"feature": "skill_index", "names": ["class_0", "class_1"]}));
    assert_eq!(&copy.read("meta/subtasks.toml", 100).unwrap()[..], b"[names]\n");
}

#[test]
fn what_others_wrote_is_told_from_what_we_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let info = |root: &Root| Info::parse(&root.read(INFO, 1 << 20).unwrap()).unwrap();
    let foreign = |root: &Root| {
        let found = foreign_subtasks(root, &info(root)).unwrap();
        found.into_iter().next().map(|found| found.what)
    };
    assert_eq!(foreign(&root), None);
    let out = folder.path().join("out");
    put(&root, Place::New(&out), Form::Subtasks).unwrap();
    let ours = Root::Directory(out.clone());
    assert_eq!(foreign(&ours), None);
    // Texts that a person changed.
    let beside = Beside::create(&folder.path().join("texts")).unwrap();
    tables::write_texts(&beside, SUBTASKS, SUBTASK_INDEX, &["other".to_string()]).unwrap();
    beside.finish().unwrap();
    std::fs::copy(folder.path().join("texts").join(SUBTASKS), out.join(SUBTASKS)).unwrap();
    let found = foreign(&ours).unwrap();
    assert_eq!(found, "texts of `meta/subtasks.parquet` that were changed since");
    // Without the record, everything is somebody else's.
    std::fs::remove_file(out.join(RECORD)).unwrap();
    assert_eq!(foreign(&ours).unwrap(), "a column `subtask_index`");
}

#[test]
fn numbers_that_were_changed_in_the_data_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let foreign = |place: &Path| {
        let root = Root::Directory(place.to_path_buf());
        let found = foreign_subtasks(&root, &Info::parse(&root.read(INFO, 1 << 20).unwrap()).unwrap()).unwrap();
        found.into_iter().next().map(|found| found.what)
    };
    let places = ["numbers", "edited", "classes"].map(|name| folder.path().join(name));
    put(&root, Place::New(&places[0]), Form::Subtasks).unwrap();
    assert_eq!(foreign(&places[0]), None);
    let ours = Root::Directory(places[0].clone());
    // One boundary is moved by one frame.
    let moved = vec![0, 0, 1, 1, 2, 0, 0, 0, 0, 0, 2, 2];
    rewrite_with_columns(&ours, &places[1], &[ExtraColumn { key: SUBTASK_INDEX, values: &moved }]).unwrap();
    assert_eq!(foreign(&places[1]).unwrap(), "numbers in the column `subtask_index` that were changed since");
    rewrite_with_columns(&ours, &places[2], &[ExtraColumn { key: SKILL_INDEX, values: &vec![0; 12] }]).unwrap();
    assert_eq!(foreign(&places[2]).unwrap(), "numbers in the column `skill_index` that were changed since");
}

/// Changes texts of a data file's language rows, and its style where it is a plan.
fn speak(place: &Path, text: &str, style: &str) {
    let file = place.join("data/chunk-000/file-000.parquet");
    let batch = batches(place, "data").remove(0);
    let list = batch.column_by_name(LANGUAGE_PERSISTENT).unwrap().as_list::<i32>().clone();
    let (rows, count) = (list.values().as_struct().clone(), list.values().len());
    let (fields, mut columns, nulls) = rows.into_parts();
    for (at, text) in [(1, text), (2, style)] {
        let mut texts: Vec<String> = columns[at].as_string::<i32>().iter().map(|it| it.unwrap().to_string()).collect();
        texts[count - 1] = text.to_string();
        columns[at] = std::sync::Arc::new(arrow_array::StringArray::from(texts));
    }
    let rows = std::sync::Arc::new(arrow_array::StructArray::new(fields, columns, nulls));
    let (element, offsets, _, nulls) = list.into_parts();
    let list = arrow_array::ListArray::new(element, offsets, rows, nulls);
    let place = batch.schema().index_of(LANGUAGE_PERSISTENT).unwrap();
    let (schema, mut columns, _) = batch.into_parts();
    columns[place] = std::sync::Arc::new(list);
    let batch = arrow_array::RecordBatch::try_new(schema.clone(), columns).unwrap();
    let opened = std::fs::File::create(file).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(opened, schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn language_rows_of_others_are_kept_and_changed_ones_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let foreign = |place: &Path| {
        let root = Root::Directory(place.to_path_buf());
        let found = foreign_subtasks(&root, &Info::parse(&root.read(INFO, 1 << 20).unwrap()).unwrap()).unwrap();
        found.into_iter().next().map(|found| found.what)
    };
    let place = folder.path().join("spoken");
    put(&root, Place::New(&place), Form::Language).unwrap();
    assert_eq!(foreign(&place), None);
    speak(&place, "my own words", "subtask");
    assert_eq!(foreign(&place).unwrap(), "texts in the column `language_persistent` that were changed since");
    speak(&place, "first this, then that", "plan");
    let styles = |place: &Path| {
        let list = batches(place, "data")[0].column_by_name(LANGUAGE_PERSISTENT).unwrap().as_list::<i32>().clone();
        let rows = list.value(11);
        let texts = |name: &str| {
            let texts = rows.as_struct().column_by_name(name).unwrap().as_string::<i32>().clone();
            texts.iter().map(|it| it.unwrap().to_string()).collect::<Vec<_>>()
        };
        texts("style").into_iter().zip(texts("content")).collect::<Vec<_>>()
    };
    let plan = ("plan".to_string(), "first this, then that".to_string());
    let subtask = |text: &str| ("subtask".to_string(), text.to_string());
    let spoken = Root::Directory(place.clone());
    let outs = ["again", "numbers"].map(|name| folder.path().join(name));
    put(&spoken, Place::New(&outs[0]), Form::Language).unwrap();
    assert_eq!(styles(&outs[0]), [plan.clone(), subtask("reach for the bowl"), subtask("move away")]);
    assert_eq!(foreign(&outs[0]), None);
    // As numbers, the plan stays and subtasks are in one place only.
    put(&spoken, Place::New(&outs[1]), Form::Subtasks).unwrap();
    assert_eq!(styles(&outs[1]), [plan]);
    assert_eq!(foreign(&outs[1]), None);
}

#[test]
fn in_place_the_old_dataset_becomes_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let place = root.directory().unwrap().to_path_buf();
    let before = contents(&place);
    let backup = put(&root, Place::InPlace, Form::Subtasks).unwrap().unwrap();
    assert_eq!(backup.file_name().unwrap(), "source.backup-1");
    assert_eq!(contents(&backup), before);
    let info = Info::parse(&root.read(INFO, 1 << 20).unwrap()).unwrap();
    assert!(info.feature(SUBTASK_INDEX).is_some());
    // Version control stays with the dataset.
    assert_eq!(std::fs::read(place.join(".git/HEAD")).unwrap(), b"main");
    assert!(place.join(".gitattributes").exists() && !backup.join(".git").exists());
    let once = contents(&place);
    let second = put(&root, Place::InPlace, Form::Subtasks).unwrap().unwrap();
    assert_eq!((second.file_name().unwrap().to_str(), contents(&second)), (Some("source.backup-2"), once));
    assert_eq!(contents(&backup), before);
    // Nothing else is left.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
#[cfg(unix)]
fn in_place_modes_are_kept_and_a_write_protected_dataset_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let place = root.directory().unwrap().to_path_buf();
    let set = |file: &str, mode: u32| {
        std::fs::set_permissions(place.join(file), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let mode = |file: &str| std::fs::metadata(place.join(file)).unwrap().permissions().mode() & 0o777;
    let (data, video) = ("data/chunk-000/file-000.parquet", "videos/front/chunk-000/file-000.mp4");
    for (file, mode) in [("", 0o700), ("meta", 0o750), (INFO, 0o600), (data, 0o640), (video, 0o620)] {
        set(file, mode);
    }
    put(&root, Place::InPlace, Form::Subtasks).unwrap().unwrap();
    for (file, wanted) in [("", 0o700), ("meta", 0o750), (INFO, 0o600), (data, 0o640), (video, 0o620)] {
        assert_eq!(mode(file), wanted, "{file}: {:o}", mode(file));
    }
    // Files that were not there before are as private as `info.json`.
    assert_eq!(mode(SUBTASKS), 0o600);
    set(data, 0o440);
    let before = contents(&place);
    let error = put(&root, Place::InPlace, Form::Subtasks).unwrap_err().to_string();
    assert!(error.ends_with(&format!("`{data}` in it is write-protected")), "{error}");
    assert_eq!((contents(&place), mode(data)), (before, 0o440));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
#[cfg(unix)]
fn videos_are_hard_links_only_on_request() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    for (name, link) in [("copied", false), ("linked", true)] {
        let out = folder.path().join(name);
        put_with(&root, Place::New(&out), Form::Subtasks, link).unwrap();
        let same = |file: &str| {
            let number = |directory: &Path| std::fs::metadata(directory.join(file)).unwrap().ino();
            number(root.directory().unwrap()) == number(&out)
        };
        assert_eq!(same("videos/front/chunk-000/file-000.mp4"), link);
        assert!(!same("meta/tasks.parquet"));
    }
}

#[test]
fn a_failure_in_the_middle_leaves_the_dataset_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let place = root.directory().unwrap().to_path_buf();
    // The episodes' metadata are read after the data were written.
    let data = place.join("data/chunk-000/file-000.parquet");
    let content = std::fs::read(&data).unwrap();
    std::fs::write(&data, &content[..content.len() - 9]).unwrap();
    let before = contents(&place);
    put(&root, Place::InPlace, Form::Subtasks).unwrap_err();
    assert_eq!(contents(&place), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn language_columns_take_the_place_of_subtask_numbers_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let places = ["once", "language", "back"].map(|name| folder.path().join(name));
    put(&root, Place::New(&places[0]), Form::Subtasks).unwrap();
    put(&Root::Directory(places[0].clone()), Place::New(&places[1]), Form::Language).unwrap();
    let copy = Root::Directory(places[1].clone());
    let info: Value = serde_json::from_slice(&copy.read(INFO, 1 << 20).unwrap()).unwrap();
    let features = info["features"].as_object().unwrap();
    let described = serde_json::json!({"dtype": "language", "shape": [1], "names": null});
    assert_eq!((&features[LANGUAGE_PERSISTENT], &features[LANGUAGE_EVENTS]), (&described, &described));
    assert!(!features.contains_key(SUBTASK_INDEX) && !copy.has(SUBTASKS));
    let stats = Stats::parse(&copy.read(STATS, 1 << 20).unwrap()).unwrap();
    assert!(stats.get(SUBTASK_INDEX).is_none() && stats.get(SKILL_INDEX).is_some());
    let episodes = batches(&places[1], "meta/episodes");
    assert!(episodes[0].column_by_name("stats/subtask_index/max").is_none());
    let data = batches(&places[1], "data");
    assert!(data[0].column_by_name(SUBTASK_INDEX).is_none());
    let persistent = data[0].column_by_name(LANGUAGE_PERSISTENT).unwrap().as_list::<i32>();
    let row = |frame: usize| {
        let rows = persistent.value(frame);
        let rows = rows.as_struct();
        let texts = rows.column_by_name("content").unwrap().as_string::<i32>();
        let times = rows.column_by_name("timestamp").unwrap().as_primitive::<Float32Type>();
        texts.iter().zip(times.values()).map(|(text, time)| (text.unwrap().to_string(), *time)).collect::<Vec<_>>()
    };
    let first = [("reach for the bowl".to_string(), 0.0), ("grasp the bowl".to_string(), 0.3)];
    assert_eq!((&row(0)[..], &row(3)[..]), (&first[..], &first[..]));
    assert_eq!(row(4), [("move away".to_string(), 0.0)]);
    assert_eq!(row(11), [("reach for the bowl".to_string(), 0.0), ("move away".to_string(), 0.5)]);
    // And back.
    put(&copy, Place::New(&places[2]), Form::Subtasks).unwrap();
    let keys = |place: &Path| {
        let info = Info::parse(&Root::Directory(place.to_path_buf()).read(INFO, 1 << 20).unwrap()).unwrap();
        info.features.into_iter().map(|(key, _)| key).collect::<std::collections::BTreeSet<String>>()
    };
    assert_eq!(keys(&places[2]), keys(&places[0]));
    let number = Feature::new(Dtype::Int(64), &[1]);
    assert_eq!(
        read_back(&batches(&places[2], "data"), SUBTASK_INDEX, &number),
        read_back(&batches(&places[0], "data"), SUBTASK_INDEX, &number)
    );
}

#[test]
fn both_forms_are_read_back_alike() {
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let open = |root: Root| crate::Dataset::open(root, &crate::Overrides::default()).unwrap();
    assert_eq!(crate::FrameSubtasks::of(&open(root.clone())).unwrap(), None);
    let [one, other] = [("one", Form::Subtasks), ("other", Form::Language)].map(|(name, form)| {
        let out = folder.path().join(name);
        put(&root, Place::New(&out), form).unwrap();
        crate::FrameSubtasks::of(&open(Root::Directory(out))).unwrap().unwrap()
    });
    assert_eq!((one.names.len(), &one.values), (3, &runs(&[(3, 0), (1, 1), (1, 2), (5, 0), (2, 2)])));
    assert_eq!(other, one);
}
