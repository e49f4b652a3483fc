//! New datasets.

use super::*;

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
