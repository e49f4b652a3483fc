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
    assert_eq!(refused("index", vec![0; 12]), "`features.index` of `meta/info.json` is there already");
    assert_eq!(refused("a/b", vec![0; 12]), "`features.a/b` of `meta/info.json` is no key for a feature");
    // A file that was cut short.
    let data = root.directory().unwrap().join("data/chunk-000/file-000.parquet");
    let content = std::fs::read(&data).unwrap();
    std::fs::write(&data, &content[..content.len() / 2]).unwrap();
    assert!(refused("skill", vec![0; 12]).starts_with("`data/chunk-000/file-000.parquet` is no parquet file"));
}
