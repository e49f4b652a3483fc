//! Annotated copies.

use super::*;

/// A dataset of three episodes with an integer column that can be replaced, and a file that lerobot does not know.
fn source(folder: &Path) -> Root {
    let features = vec![
        ("camera".to_string(), Feature::new(Dtype::Image, &[3, 4, 3])),
        ("action".to_string(), Feature::new(Dtype::Float32, &[2])),
        ("phase".to_string(), Feature::new(Dtype::Int(64), &[1])),
    ];
    let target = folder.join("source");
    write_random(&target, &WriteOptions::new(10, features), &[4, 1, 7], 5).unwrap();
    std::fs::create_dir_all(target.join("videos/front/chunk-000")).unwrap();
    std::fs::write(target.join("videos/front/chunk-000/file-000.mp4"), "no video").unwrap();
    std::fs::write(target.join("README.md"), "read me").unwrap();
    std::fs::create_dir(target.join(".cache")).unwrap();
    std::fs::write(target.join(".cache/lock"), "").unwrap();
    Root::Directory(target)
}

#[test]
fn an_annotated_copy_has_new_columns_and_all_else_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let out = folder.path().join("out");
    let values: Vec<i64> = (0..12).map(|frame| frame % 4 - 1).collect();
    let names = ["reach", "grasp", "lift"].map(String::from).to_vec();
    let annotation = Annotation { key: "skill".to_string(), names, values: values.clone(), subtasks: true };
    annotate(&root, &out, &annotation).unwrap();
    let copy = Root::Directory(out.clone());
    let (before, after) = (batches(root.directory().unwrap(), "data"), batches(&out, "data"));
    for (before, after) in before.iter().zip(&after) {
        for (at, array) in before.columns().iter().enumerate() {
            assert_eq!(before.schema().field(at), after.schema().field(at));
            assert_eq!(array, after.column(at));
        }
    }
    let number = Feature::new(Dtype::Int(64), &[1]);
    assert_eq!(read_back(&after, "skill", &number), Values::I64(values.clone()));
    let subtasks = values.iter().map(|value| if *value < 0 { 3 } else { *value }).collect();
    assert_eq!(read_back(&after, SUBTASK_INDEX, &number), Values::I64(subtasks));
    let file = std::fs::File::open(out.join("data/chunk-000/file-000.parquet")).unwrap();
    let schema = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().schema().clone();
    let note: Value = serde_json::from_str(&schema.metadata()["huggingface"]).unwrap();
    assert_eq!(note["info"]["features"]["skill"]["dtype"], "int64");
    // Metadata.
    let vocabulary: Value = serde_json::from_slice(&copy.read("meta/skills.json", 1000).unwrap()).unwrap();
    assert_eq!(vocabulary, serde_json::json!({"feature": "skill", "names": ["reach", "grasp", "lift"], "none": -1}));
    let texts = Table::open(&copy, SUBTASKS).unwrap().texts("__index_level_0__").unwrap();
    assert_eq!(texts, ["reach", "grasp", "lift", "none"]);
    let info = Info::parse(&copy.read(INFO, 1 << 20).unwrap()).unwrap();
    assert_eq!(info.feature("skill"), Some(&number));
    let stats = Stats::parse(&copy.read(STATS, 1 << 20).unwrap()).unwrap();
    assert_eq!((stats.get("skill").unwrap().min[0], stats.get("skill").unwrap().mean[0]), (-1.0, 0.5));
    let episodes = batches(&out, "meta/episodes");
    let mut greatest = Vec::new();
    numbers(episodes[0].column_by_name("stats/skill/max").unwrap(), &mut greatest);
    assert_eq!(greatest, [2.0, -1.0, 2.0]);
    let schema = episodes[0].schema();
    assert_eq!(schema.field(schema.fields().len() - 1).name(), "meta/episodes/file_index");
    // Other files.
    assert_eq!(&copy.read("README.md", 100).unwrap()[..], b"read me");
    assert_eq!(&copy.read("videos/front/chunk-000/file-000.mp4", 100).unwrap()[..], b"no video");
    assert!(!out.join(".cache").exists());
    // Annotated again, the column is replaced, and nothing else is added.
    let again = folder.path().join("again");
    let annotation = Annotation { values: vec![0; 12], subtasks: false, ..annotation };
    annotate(&copy, &again, &annotation).unwrap();
    let replaced = batches(&again, "data");
    assert_eq!(replaced[0].schema(), after[0].schema());
    assert_eq!(read_back(&replaced, "skill", &number), Values::I64(vec![0; 12]));
    assert_eq!(batches(&again, "meta/episodes")[0].schema(), schema);
}

#[test]
fn an_annotation_that_does_not_fit_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let out = folder.path().join("out");
    let refused = |key: &str, values: Vec<i64>| {
        let annotation = Annotation { key: key.to_string(), names: vec!["a".to_string()], values, subtasks: true };
        let error = annotate(&root, &out, &annotation).unwrap_err().to_string();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        error
    };
    assert_eq!(
        refused("skill", vec![0; 11]),
        "`skill` has 11 rows, its episodes have 12; `subtask_index` has 11 rows, its episodes have 12"
    );
    assert_eq!(refused("skill", vec![1; 12]), "column `skill` of `meta/skills.json` is 1 in frame 0");
    assert_eq!(refused("action", vec![0; 12]), "`features.action` of `meta/info.json` is float32[2]");
    // A file that was cut short.
    let data = root.directory().unwrap().join("data/chunk-000/file-000.parquet");
    let content = std::fs::read(&data).unwrap();
    std::fs::write(&data, &content[..content.len() / 2]).unwrap();
    assert!(refused("skill", vec![0; 12]).starts_with("`data/chunk-000/file-000.parquet` is no parquet file"));
}

fn annotation(values: Vec<i64>) -> Annotation {
    Annotation { key: "skill".to_string(), names: vec!["reach".to_string()], values, subtasks: true }
}

#[test]
fn data_files_are_those_of_the_episodes_wherever_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let directory = root.directory().unwrap();
    // The first folder holds nothing but what the chunk's number is in, and `//` is one `/`.
    std::fs::rename(directory.join("data/chunk-000"), directory.join("chunk-000")).unwrap();
    let info = std::fs::read_to_string(directory.join(INFO)).unwrap();
    let moved = info.replace("data/chunk-{chunk_index:03d}/file", "chunk-{chunk_index:03d}//file");
    assert_ne!(info, moved);
    std::fs::write(directory.join(INFO), moved).unwrap();
    let out = folder.path().join("out");
    annotate(&root, &out, &annotation(vec![0; 12])).unwrap();
    let found = read_back(&batches(&out, "chunk-000"), "skill", &Feature::new(Dtype::Int(64), &[1]));
    assert_eq!(found, Values::I64(vec![0; 12]));
}

#[test]
fn a_stray_parquet_file_is_copied_and_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let data = root.directory().unwrap().join("data/chunk-000");
    std::fs::copy(data.join("file-000.parquet"), data.join("file-000.backup.parquet")).unwrap();
    std::fs::write(data.join("notes.parquet"), "no parquet").unwrap();
    let out = folder.path().join("out");
    annotate(&root, &out, &annotation(vec![0; 12])).unwrap();
    for name in ["file-000.backup.parquet", "notes.parquet"] {
        let copy = std::fs::read(out.join("data/chunk-000").join(name)).unwrap();
        assert_eq!(copy, std::fs::read(data.join(name)).unwrap());
    }
}

#[test]
fn a_wrong_total_does_not_stop_an_annotation_but_missing_rows_do() {
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let directory = root.directory().unwrap();
    let info = std::fs::read_to_string(directory.join(INFO)).unwrap();
    std::fs::write(directory.join(INFO), info.replace("\"total_frames\": 12", "\"total_frames\": 99")).unwrap();
    annotate(&root, &folder.path().join("out"), &annotation(vec![0; 12])).unwrap();
    let short = folder.path().join("short");
    let options = WriteOptions::new(10, vec![("action".to_string(), Feature::new(Dtype::Float32, &[2]))]);
    write_random(&short, &options, &[5], 5).unwrap();
    let file = "data/chunk-000/file-000.parquet";
    std::fs::copy(short.join(file), directory.join(file)).unwrap();
    let error = annotate(&root, &folder.path().join("again"), &annotation(vec![0; 12])).unwrap_err();
    let fault = Fault::WrongRows { file: file.to_string(), found: 5, expected: 12 };
    assert_eq!(error.faults(), [fault]);
    assert!(!folder.path().join("again").exists());
}

#[test]
fn subtasks_that_are_there_are_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let (once, twice) = (folder.path().join("once"), folder.path().join("twice"));
    annotate(&root, &once, &annotation(vec![0; 12])).unwrap();
    let once = Root::Directory(once);
    let other = Annotation { key: "other".to_string(), ..annotation(vec![-1; 12]) };
    let error = annotate(&once, &twice, &other).unwrap_err().to_string();
    assert_eq!(error, "`features.subtask_index` of `meta/info.json` is there already");
    annotate(&once, &twice, &Annotation { subtasks: false, ..other }).unwrap();
    let texts = Table::open(&Root::Directory(twice), SUBTASKS).unwrap().texts("__index_level_0__").unwrap();
    assert_eq!(texts, ["reach"]);
}

#[test]
fn keys_that_name_files_or_columns_of_lerobot_are_refused() {
    for key in ["", ".skill", "..", "a/b", "a\\b", "a b", "fähigkeit", "a\n", "a`"] {
        assert!(wrong_key(key).is_some_and(|wanted| wanted.starts_with("letters")), "{key:?}");
    }
    for key in
        ["task", "subtask", "subtask_index", "stat", "Stat", "info", "index", "timestamp", "task_index", "stat_index"]
    {
        assert!(wrong_key(key).is_some_and(|wanted| wanted.starts_with("a name that lerobot")), "{key:?}");
    }
    for key in ["skill", "skill_index", "observation.skill", "skill-2", "_S", "tasks", "infos"] {
        assert_eq!(wrong_key(key), None, "{key:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let stat = Annotation { key: "stat".to_string(), ..annotation(vec![0; 12]) };
    let error = annotate(&root, &folder.path().join("out"), &stat).unwrap_err().to_string();
    assert_eq!(error, "`features.stat` of `meta/info.json` is no key for skills");
}

#[test]
fn a_file_that_the_names_would_overwrite_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    std::fs::write(root.directory().unwrap().join("meta/skills.json"), "{}").unwrap();
    let error = annotate(&root, &folder.path().join("out"), &annotation(vec![0; 12])).unwrap_err().to_string();
    assert_eq!(error, "cannot write `meta/skills.json`: the dataset has such a file, but no column `skill`");
}

#[test]
#[cfg(unix)]
fn a_copy_inside_its_dataset_is_refused_through_links_too() {
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let directory = root.directory().unwrap().to_path_buf();
    std::os::unix::fs::symlink(directory.join("meta"), folder.path().join("link")).unwrap();
    std::os::unix::fs::symlink(&directory, folder.path().join("alias")).unwrap();
    let count = || std::fs::read_dir(&directory).unwrap().count();
    let before = count();
    let inside = [
        directory.clone(),
        directory.join("copy"),
        directory.join("a/b/../copy"),
        folder.path().join("link/copy"),
        folder.path().join("alias"),
        folder.path().join("new/../alias/copy"),
    ];
    for out in inside {
        for root in [root.clone(), Root::Directory(folder.path().join("alias"))] {
            let error = annotate(&root, &out, &annotation(vec![0; 12])).unwrap_err().to_string();
            assert!(error.contains("it is inside the dataset that is copied"), "{error}");
        }
    }
    assert_eq!(count(), before);
    // A name that only starts like the dataset's is another one.
    annotate(&root, &folder.path().join("source2"), &annotation(vec![0; 12])).unwrap();
}

#[test]
#[cfg(unix)]
fn changing_a_video_of_a_copy_does_not_change_the_source() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let root = source(folder.path());
    let (out, video) = (folder.path().join("out"), "videos/front/chunk-000/file-000.mp4");
    let original = root.directory().unwrap().join(video);
    let before = std::fs::read(&original).unwrap();
    // A copy of what is write-protected can be changed.
    std::fs::set_permissions(&original, std::fs::Permissions::from_mode(0o444)).unwrap();
    annotate(&root, &out, &annotation(vec![0; 12])).unwrap();
    assert_eq!(std::fs::read(out.join(video)).unwrap(), before);
    assert_eq!(std::fs::metadata(out.join(video)).unwrap().permissions().mode() & 0o777, 0o644);
    std::fs::write(out.join(video), "another video").unwrap();
    assert_eq!(std::fs::read(&original).unwrap(), before);
}
