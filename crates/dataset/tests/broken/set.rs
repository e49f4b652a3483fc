//! A small sound dataset with all that a dataset can have, and ways to break it.

use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use dataset::write::{ColumnData, EpisodeData, WriteOptions, Writer};
use dataset::{Dtype, Feature, Frame, Root};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const DATA: [&str; 2] = ["data/chunk-000/file-000.parquet", "data/chunk-000/file-001.parquet"];
pub(crate) const EPISODES: &str = "meta/episodes/chunk-000/file-000.parquet";
pub(crate) const INFO: &str = "meta/info.json";
pub(crate) const STATS: &str = "meta/stats.json";
pub(crate) const TASKS: &str = "meta/tasks.parquet";
pub(crate) const VIDEO: &str = "videos/front/chunk-000/file-000.mp4";

/// The frames of the episodes, 20 together, which is what the video has.
pub(crate) const LENGTHS: [usize; 3] = [8, 5, 7];

/// A dataset in a directory of its own.
pub(crate) struct Set {
    folder: TempDir,
}

/// The columns of a table by name.
pub(crate) type Columns = Vec<(String, ArrayRef)>;

impl Set {
    /// Three episodes of two tasks, in two data files; a camera as a video, another as pictures in the data.
    pub(crate) fn sound() -> Set {
        let set = Set { folder: tempfile::tempdir().unwrap() };
        write(&set.path());
        set.add_video();
        set.divide_data();
        set
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("pour")
    }

    pub(crate) fn root(&self) -> Root {
        Root::Directory(self.path())
    }

    /// Changes a JSON file.
    pub(crate) fn json(&self, file: &str, change: impl FnOnce(&mut Value)) {
        let path = self.path().join(file);
        let mut value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut value);
        fs::write(path, serde_json::to_vec_pretty(&value).unwrap()).unwrap();
    }

    /// Changes the columns of a parquet file.
    pub(crate) fn table(&self, file: &str, change: impl FnOnce(&mut Columns)) {
        let path = self.path().join(file);
        let mut columns = read_table(&path);
        change(&mut columns);
        write_table(&path, columns);
    }

    /// Changes the integers of a column.
    pub(crate) fn integers(&self, file: &str, column: &str, change: impl FnOnce(&mut Vec<i64>)) {
        self.table(file, |columns| {
            let place = place(columns, column);
            let values = place.as_any().downcast_ref::<Int64Array>().unwrap();
            let mut values = values.values().to_vec();
            change(&mut values);
            *place = Arc::new(Int64Array::from(values));
        });
    }

    /// Keeps some rows of a parquet file.
    pub(crate) fn keep_rows(&self, file: &str, rows: &[usize]) {
        let path = self.path().join(file);
        let batch = batch(read_table(&path));
        let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
        rows.iter().for_each(|row| writer.write(&batch.slice(*row, 1)).unwrap());
        writer.close().unwrap();
    }

    /// Changes the bytes of a file.
    pub(crate) fn bytes(&self, file: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.path().join(file);
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(path, bytes).unwrap();
    }

    /// Removes a file.
    pub(crate) fn remove(&self, file: &str) {
        fs::remove_file(self.path().join(file)).unwrap();
    }

    fn add_video(&self) {
        let folder = self.path().join(VIDEO);
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        fs::copy(clip("av1.mp4"), folder).unwrap();
        self.json(INFO, |info| {
            info["video_path"] = json!(dataset::info::VIDEO_PATH);
            info["features"]["front"] = json!({
                "dtype": "video", "shape": [48, 64, 3], "names": ["height", "width", "channels"],
            });
        });
        self.table(EPISODES, |columns| {
            let ends: Vec<usize> = LENGTHS
                .iter()
                .scan(0, |end, length| {
                    Some({
                        *end += length;
                        *end
                    })
                })
                .collect();
            let start = |at: usize| (ends[at] - LENGTHS[at]) as f64 / 20.0;
            let zeros: ArrayRef = Arc::new(Int64Array::from(vec![0; 3]));
            let from = Float64Array::from_iter_values((0..3).map(start));
            let to = Float64Array::from_iter_values(ends.iter().map(|end| *end as f64 / 20.0));
            columns.push(("videos/front/chunk_index".to_string(), zeros.clone()));
            columns.push(("videos/front/file_index".to_string(), zeros));
            columns.push(("videos/front/from_timestamp".to_string(), Arc::new(from)));
            columns.push(("videos/front/to_timestamp".to_string(), Arc::new(to)));
        });
    }

    /// Divides the rows of the data files anew, some ranges of them for each file.
    pub(crate) fn divide_rows(&self, parts: &[&[Range<usize>]]) {
        let tables = DATA.map(|file| batch(read_table(&self.path().join(file))));
        let schema = tables[0].schema();
        let rows: Vec<RecordBatch> =
            tables.iter().flat_map(|table| (0..table.num_rows()).map(|row| table.slice(row, 1))).collect();
        for (file, ranges) in DATA.iter().zip(parts) {
            let file = File::create(self.path().join(file)).unwrap();
            let mut writer = ArrowWriter::try_new(file, schema.clone(), None).unwrap();
            ranges.iter().flat_map(|range| &rows[range.clone()]).for_each(|row| writer.write(row).unwrap());
            writer.close().unwrap();
        }
    }

    /// Moves the last episode to a data file of its own.
    fn divide_data(&self) {
        let path = self.path();
        let whole = read_table(&path.join(DATA[0]));
        let first = LENGTHS[0] + LENGTHS[1];
        let part = |from, length| whole.iter().map(|(name, array)| (name.clone(), array.slice(from, length))).collect();
        write_table(&path.join(DATA[0]), part(0, first));
        write_table(&path.join(DATA[1]), part(first, LENGTHS[2]));
        self.integers(EPISODES, "data/file_index", |files| files[2] = 1);
    }
}

/// A clip of 20 pictures, 20 in a second.
pub(crate) fn clip(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden/frames").join(name)
}

/// A column of a table, to be replaced.
pub(crate) fn place<'c>(columns: &'c mut Columns, name: &str) -> &'c mut ArrayRef {
    columns.iter_mut().find(|(column, _)| column == name).map(|(_, array)| array).unwrap()
}

fn read_table(path: &Path) -> Columns {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1, "small tables come in one piece");
    let schema = batches[0].schema();
    schema.fields().iter().map(|field| field.name().clone()).zip(batches[0].columns().iter().cloned()).collect()
}

fn batch(columns: Columns) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn write_table(path: &Path, columns: Columns) {
    let batch = batch(columns);
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn write(path: &Path) {
    let features = vec![
        ("observation.state".to_string(), Feature::new(Dtype::Float32, &[3]).named(&["x", "y", "z"])),
        ("action".to_string(), Feature::new(Dtype::Float32, &[2])),
        ("next.reward".to_string(), Feature::new(Dtype::Float32, &[1])),
        ("next.done".to_string(), Feature::new(Dtype::Bool, &[1])),
        ("phase".to_string(), Feature::new(Dtype::Int(64), &[1])),
        ("wrist".to_string(), Feature::new(Dtype::Image, &[4, 6, 3])),
    ];
    let mut writer = Writer::create(path, WriteOptions::new(20, features)).unwrap();
    for (episode, length) in LENGTHS.into_iter().enumerate() {
        let state: Vec<f32> = (0..length * 3).map(|at| (episode * 100 + at) as f32 * 0.01).collect();
        let action: Vec<f32> = (0..length * 2).map(|at| (at as f32 * 0.7).sin()).collect();
        let reward: Vec<f32> = (0..length).map(|at| f32::from(u8::from(at + 1 == length))).collect();
        let done: Vec<bool> = (0..length).map(|at| at + 1 == length).collect();
        let phase: Vec<i64> = (0..length).map(|at| (at / 3) as i64).collect();
        let pictures: Vec<Frame> = (0..length)
            .map(|at| Frame { width: 6, height: 4, pixels: vec![(at * 20) as u8; 6 * 4 * 3].into() })
            .collect();
        let columns = [
            ("observation.state", ColumnData::F32(&state)),
            ("action", ColumnData::F32(&action)),
            ("next.reward", ColumnData::F32(&reward)),
            ("next.done", ColumnData::Bool(&done)),
            ("phase", ColumnData::I64(&phase)),
            ("wrist", ColumnData::Images(&pictures)),
        ];
        let task = ["pour the water", "put the cup down"][episode % 2];
        writer.add_episode(&EpisodeData { task, columns: &columns }).unwrap();
    }
    writer.finish().unwrap();
}
