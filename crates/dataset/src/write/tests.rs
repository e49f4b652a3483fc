//! What is written is what arrow reads back; what cannot be written leaves nothing.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use super::*;
use crate::files::Root;
use crate::frame::Frame;
use crate::info::{Dtype, Info};
use crate::table::{Table, doubles_of};

/// The values of a column, owned.
#[derive(Clone, Debug, PartialEq)]
enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
    Bool(Vec<bool>),
    Text(Vec<String>),
    Images(Vec<Frame>),
}

impl Values {
    fn random(feature: &Feature, rows: usize, random: &mut ChaCha8Rng) -> Values {
        let count = rows * feature.width();
        match &feature.dtype {
            Dtype::Float32 => Values::F32((0..count).map(|_| random.random_range(-1e6..1e6)).collect()),
            Dtype::Float64 => Values::F64((0..count).map(|_| random.random_range(-1e6..1e6)).collect()),
            Dtype::Bool => Values::Bool((0..count).map(|_| random.random()).collect()),
            Dtype::Text => Values::Text((0..count).map(|_| "ß".repeat(random.random_range(0..4))).collect()),
            Dtype::Image => {
                let (height, width) = (feature.shape[0], feature.shape[1]);
                let pixels = |random: &mut ChaCha8Rng| (0..height * width * 3).map(|_| random.random()).collect();
                Values::Images((0..rows).map(|_| Frame { width, height, pixels: pixels(random) }).collect())
            }
            Dtype::Int(_) => Values::I64((0..count).map(|_| random.random_range(-128..128)).collect()),
            _ => Values::I64((0..count).map(|_| random.random_range(0..256)).collect()),
        }
    }

    fn data(&self) -> ColumnData<'_> {
        match self {
            Values::F32(values) => ColumnData::F32(values),
            Values::F64(values) => ColumnData::F64(values),
            Values::I64(values) => ColumnData::I64(values),
            Values::Bool(values) => ColumnData::Bool(values),
            Values::Text(values) => ColumnData::Text(values),
            Values::Images(values) => ColumnData::Images(values),
        }
    }
}

fn batches(root: &Path, folder: &str) -> Vec<RecordBatch> {
    let read = |file: String| {
        let opened = std::fs::File::open(root.join(file)).unwrap();
        ParquetRecordBatchReaderBuilder::try_new(opened).unwrap().build().unwrap().map(Result::unwrap)
    };
    Root::Directory(root.to_path_buf()).list(folder).into_iter().flat_map(read).collect()
}

/// Numbers, however they are nested and typed, appended to a list.
fn numbers(array: &dyn Array, out: &mut Vec<f64>) {
    let array = array.slice(0, array.len());
    if let Some(list) = array.as_list_opt::<i32>() {
        return list.iter().for_each(|row| numbers(&row.unwrap(), out));
    } else if let Some(list) = array.as_fixed_size_list_opt() {
        return list.iter().for_each(|row| numbers(&row.unwrap(), out));
    } else if let Some(values) = array.as_boolean_opt() {
        return out.extend(values.values().iter().map(|value| f64::from(u8::from(value))));
    }
    let mut values = vec![0.0; array.len()];
    doubles_of(&array, &mut values).unwrap();
    out.append(&mut values);
}

/// A column as it was given, read with arrow.
fn read_back(batches: &[RecordBatch], key: &str, feature: &Feature) -> Values {
    let mut found = Vec::new();
    let (mut texts, mut frames) = (Vec::new(), Vec::new());
    for batch in batches {
        let array = batch.column_by_name(key).unwrap();
        assert_eq!(Some(array.data_type()), columns::column_type(feature).as_ref(), "{key}");
        match feature.dtype {
            Dtype::Text => texts.extend(array.as_string::<i32>().iter().map(|text| text.unwrap().to_string())),
            Dtype::Image => {
                let pictures = array.as_struct();
                for picture in pictures.column(0).as_binary::<i32>().iter() {
                    let picture = image::load_from_memory(picture.unwrap()).unwrap().into_rgb8();
                    let (width, height) = (picture.width() as usize, picture.height() as usize);
                    frames.push(Frame { width, height, pixels: picture.into_raw().into() });
                }
            }
            _ => numbers(array, &mut found),
        }
    }
    match &feature.dtype {
        Dtype::Text => Values::Text(texts),
        Dtype::Image => Values::Images(frames),
        Dtype::Float32 => Values::F32(found.iter().map(|value| *value as f32).collect()),
        Dtype::Float64 => Values::F64(found),
        Dtype::Bool => Values::Bool(found.iter().map(|value| *value != 0.0).collect()),
        _ => Values::I64(found.iter().map(|value| *value as i64).collect()),
    }
}

fn any_feature() -> impl Strategy<Value = Feature> {
    let number = prop::sample::select(vec![
        Dtype::Float32,
        Dtype::Float64,
        Dtype::Bool,
        Dtype::Int(8),
        Dtype::Int(16),
        Dtype::Int(32),
        Dtype::Int(64),
        Dtype::Uint(8),
        Dtype::Uint(16),
        Dtype::Uint(32),
        Dtype::Uint(64),
    ]);
    prop_oneof![
        6 => (number, prop::collection::vec(1usize..5, 1..4)).prop_map(|(dtype, shape)| Feature::new(dtype, &shape)),
        1 => Just(Feature::new(Dtype::Text, &[1])),
        1 => (1usize..6, 1usize..6).prop_map(|(height, width)| Feature::new(Dtype::Image, &[height, width, 3])),
    ]
}

fn write_random(
    target: &Path,
    options: &WriteOptions,
    lengths: &[usize],
    seed: u64,
) -> Result<(Summary, Vec<Vec<Values>>), Error> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut writer = Writer::create(target, options.clone())?;
    let mut written = Vec::new();
    for (episode, length) in lengths.iter().enumerate() {
        let values: Vec<Values> =
            options.features.iter().map(|(_, feature)| Values::random(feature, *length, &mut random)).collect();
        let columns: Vec<_> =
            options.features.iter().zip(&values).map(|((key, _), values)| (key.as_str(), values.data())).collect();
        let task = format!("task {}", episode % 2);
        writer.add_episode(&EpisodeData { task: &task, columns: &columns })?;
        written.push(values);
    }
    Ok((writer.finish()?, written))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_is_written_is_what_arrow_reads_back(
        features in prop::collection::vec(any_feature(), 1..5),
        lengths in prop::collection::vec(1usize..30, 1..5),
        seed in any::<u64>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("set");
        let features: Vec<(String, Feature)> =
            features.into_iter().enumerate().map(|(at, feature)| (format!("column.{at}"), feature)).collect();
        let options = WriteOptions::new(20, features);
        let (summary, written) = write_random(&target, &options, &lengths, seed).unwrap();
        let frames = lengths.iter().sum::<usize>();
        prop_assert_eq!((summary.frames, summary.episodes), (frames as u64, lengths.len() as u64));
        let found = batches(&target, "data");
        for (at, (key, feature)) in options.features.iter().enumerate() {
            let parts: Vec<&Values> = written.iter().map(|episode| &episode[at]).collect();
            prop_assert_eq!(read_back(&found, key, feature), joined(&parts), "{}", feature.shown());
        }
        let number = Feature::new(Dtype::Int(64), &[1]);
        let index = read_back(&found, "index", &number);
        prop_assert_eq!(index, Values::I64((0..frames as i64).collect()));
        let root = Root::Directory(target.clone());
        let info = Info::parse(&root.read(INFO, 1 << 20).unwrap()).unwrap();
        prop_assert_eq!((info.total_frames, info.features), (frames as u64, options.all_features()));
        let stats = Stats::parse(&root.read(STATS, 1 << 24).unwrap()).unwrap();
        prop_assert!(stats.misfits(&options.all_features()).is_empty());
        let text = |(_, feature): &&(String, Feature)| feature.dtype == Dtype::Text;
        prop_assert_eq!(stats.features.len(), options.features.len() + 5 - options.features.iter().filter(text).count());
    }
}

fn joined(parts: &[&Values]) -> Values {
    let mut all = parts[0].clone();
    for part in &parts[1..] {
        match (&mut all, part) {
            (Values::F32(all), Values::F32(part)) => all.extend(part),
            (Values::F64(all), Values::F64(part)) => all.extend(part),
            (Values::I64(all), Values::I64(part)) => all.extend(part),
            (Values::Bool(all), Values::Bool(part)) => all.extend(part),
            (Values::Text(all), Values::Text(part)) => all.extend(part.iter().cloned()),
            (Values::Images(all), Values::Images(part)) => all.extend(part.iter().cloned()),
            _ => unreachable!("columns keep their type"),
        }
    }
    all
}

fn vectors(width: usize) -> WriteOptions {
    WriteOptions::new(10, vec![("action".to_string(), Feature::new(Dtype::Float32, &[width]))])
}

#[test]
fn large_data_is_divided_into_files_and_chunks_between_episodes() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    let options = WriteOptions { data_file_mb: 1, chunks_size: 2, ..vectors(512) };
    let (summary, _) = write_random(&target, &options, &[150; 14], 3).unwrap();
    let root = Root::Directory(target.clone());
    let files = root.list("data");
    assert_eq!(files.len() as u64, summary.data_files);
    assert!(files.len() > 4 && files.contains(&"data/chunk-001/file-001.parquet".to_string()), "{files:?}");
    assert!(!files.iter().any(|file| file.ends_with("file-002.parquet")), "{files:?}");
    let table = Table::open(&root, "meta/episodes/chunk-000/file-000.parquet").unwrap();
    let (chunks, numbers) = (table.integers("data/chunk_index").unwrap(), table.integers("data/file_index").unwrap());
    let from = table.integers("dataset_from_index").unwrap();
    for (episode, (chunk, file)) in chunks.iter().zip(&numbers).enumerate() {
        let file = format!("data/chunk-{chunk:03}/file-{file:03}.parquet");
        let data = Table::open(&root, &file).unwrap();
        let own = data.integers("episode_index").unwrap().iter().filter(|found| **found == episode as i64).count();
        assert_eq!((own, from[episode]), (150, episode as i64 * 150), "{file}");
        assert!(std::fs::metadata(target.join(&file)).unwrap().len() < 5 << 18);
    }
}

#[test]
fn the_same_episodes_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let features = vec![
        ("camera".to_string(), Feature::new(Dtype::Image, &[4, 5, 3])),
        ("action".to_string(), Feature::new(Dtype::Float32, &[3])),
    ];
    let options = WriteOptions::new(10, features);
    let targets = ["a", "b"].map(|name| folder.path().join(name));
    for target in &targets {
        write_random(target, &options, &[3, 5], 1).unwrap();
    }
    let [one, other] = targets.map(Root::Directory);
    for file in one.list("meta").into_iter().chain(one.list("data")) {
        assert_eq!(one.read(&file, 1 << 24).unwrap(), other.read(&file, 1 << 24).unwrap(), "{file}");
    }
}

#[test]
fn a_writer_that_is_dropped_leaves_nothing_and_one_that_ends_leaves_one_directory() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("deep/set");
    let left = || std::fs::read_dir(folder.path().join("deep")).unwrap().count();
    let mut writer = Writer::create(&target, vectors(1)).unwrap();
    writer.add_episode(&EpisodeData { task: "t", columns: &[("action", ColumnData::F32(&[1.0]))] }).unwrap();
    assert_eq!((left(), target.exists()), (1, false));
    drop(writer);
    assert_eq!(left(), 0);
    assert!(matches!(Writer::create(&target, vectors(1)).unwrap().finish().unwrap_err().faults(), [Fault::NoFrames]));
    assert_eq!(left(), 0);
    // An empty directory is filled, any other is refused.
    std::fs::create_dir(&target).unwrap();
    write_random(&target, &vectors(1), &[2], 0).unwrap();
    assert_eq!((left(), target.join("meta/info.json").exists()), (1, true));
    let refused = Writer::create(&target, vectors(1)).unwrap_err().to_string();
    assert!(refused.ends_with("deep/set`: it exists and is not empty"), "{refused}");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(Writer::create(&file, vectors(1)).unwrap_err().to_string().contains("it exists and is no directory"));
}

#[test]
fn a_refused_episode_says_all_that_is_wrong_and_leaves_the_dataset_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    let features = vec![
        ("action".to_string(), Feature::new(Dtype::Float32, &[2])),
        ("phase".to_string(), Feature::new(Dtype::Int(8), &[1])),
        ("camera".to_string(), Feature::new(Dtype::Image, &[2, 2, 3])),
        ("done".to_string(), Feature::new(Dtype::Bool, &[1])),
    ];
    let mut writer = Writer::create(&target, WriteOptions::new(10, features)).unwrap();
    let small = [
        Frame { width: 1, height: 2, pixels: Arc::new([0; 6]) },
        Frame { width: 2, height: 2, pixels: Arc::new([0; 12]) },
    ];
    let wrong: [(&str, ColumnData<'_>); 4] = [
        ("action", ColumnData::F32(&[0.0, f32::NAN, 1.0, f32::INFINITY])),
        ("phase", ColumnData::I64(&[127, 128])),
        ("camera", ColumnData::Images(&small)),
        ("speed", ColumnData::F32(&[0.0])),
    ];
    let error = writer.add_episode(&EpisodeData { task: "t", columns: &wrong }).unwrap_err();
    let wanted = "there is no column `speed`; \
        column `action` of `episode 0` is NaN in row 0, and in 1 more row; \
        column `phase` of `episode 0` is 128 in a row; \
        pictures of `episode 0` are 1×2 with 6 bytes; \
        `episode 0` has no column `done`";
    assert_eq!(error.to_string(), wanted);
    let good = [small[1].clone()];
    let mut right: [(&str, ColumnData<'_>); 4] = [
        ("action", ColumnData::F32(&[0.0, 1.0])),
        ("phase", ColumnData::I64(&[-128])),
        ("camera", ColumnData::Images(&good)),
        ("done", ColumnData::Bool(&[true, false])),
    ];
    let error = writer.add_episode(&EpisodeData { task: "t", columns: &right }).unwrap_err();
    assert_eq!(error.to_string(), "column `done` of `episode 0` is 2 values");
    right[3].1 = ColumnData::Bool(&[true]);
    right[0].1 = ColumnData::F64(&[0.0, 1.0]);
    let error = writer.add_episode(&EpisodeData { task: "t", columns: &right }).unwrap_err();
    assert_eq!(error.to_string(), "column `action` of `episode 0` is float64");
    right[0].1 = ColumnData::F32(&[]);
    assert!(writer.add_episode(&EpisodeData { task: "t", columns: &right }).is_err());
    right[0].1 = ColumnData::F32(&[0.0, 1.0]);
    writer.add_episode(&EpisodeData { task: "t", columns: &right }).unwrap();
    assert_eq!(writer.finish().unwrap(), Summary { episodes: 1, frames: 1, tasks: 1, data_files: 1 });
}

#[test]
fn options_that_cannot_be_written_are_all_named() {
    let feature = |dtype, shape: &[usize]| Feature::new(dtype, shape);
    let features = vec![
        ("a/b".to_string(), feature(Dtype::Float32, &[1])),
        ("index".to_string(), feature(Dtype::Int(64), &[1])),
        ("video".to_string(), feature(Dtype::Video, &[2, 2, 3])),
        ("grey".to_string(), feature(Dtype::Image, &[2, 2, 1])),
        ("empty".to_string(), feature(Dtype::Float32, &[0])),
        ("huge".to_string(), feature(Dtype::Float32, &[usize::MAX, 2])),
        ("huge".to_string(), feature(Dtype::Text, &[1])),
    ];
    let options = WriteOptions { chunks_size: 0, ..WriteOptions::new(0, features) };
    let folder = tempfile::tempdir().unwrap();
    let error = Writer::create(&folder.path().join("set"), options).unwrap_err();
    let keys: Vec<&str> = error
        .faults()
        .iter()
        .map(|fault| match fault {
            Fault::BadInfo { key, .. } => key.as_str(),
            other => panic!("{other}"),
        })
        .collect();
    let wanted = [
        "fps",
        "chunks_size",
        "features",
        "features.index",
        "features.video",
        "features.grey",
        "features.empty",
        "features.huge",
        "features.huge",
    ];
    assert_eq!(keys, wanted);
}

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
