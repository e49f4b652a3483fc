//! Writes the datasets that `tests/interop/read_back.py` opens with the lerobot package, and beside each a JSON file
//! with the values that must come back.
//!
//! `cargo run --release -p dataset --example interop_write -- <out> [<dataset to annotate>]`

use std::path::{Path, PathBuf};

use dataset::write::{Annotation, ColumnData, EpisodeData, WriteOptions, Writer, annotate};
use dataset::{Dtype, Error, Fault, Feature, Frame, Root};
use rand::Rng as _;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use serde_json::{Map, Value, json};

fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(out) = arguments.next() else {
        return tell("usage: interop_write <out> [<dataset to annotate>]");
    };
    match write_all(&out, arguments.next()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => tell(&error.to_string()),
    }
}

#[expect(clippy::print_stderr, reason = "an example is run by hand")]
fn tell(message: &str) -> std::process::ExitCode {
    eprintln!("error: {message}");
    std::process::ExitCode::FAILURE
}

fn write_all(out: &Path, source: Option<PathBuf>) -> Result<(), Error> {
    plain(out)?;
    pictures(out)?;
    many_files(out)?;
    // Annotations of our own files, and of files that lerobot wrote.
    annotated(out, "annotated_many_files", &out.join("many_files"), "skill", -1)?;
    annotated(out, "annotated_pictures", &out.join("pictures"), "skill_index", 0)?;
    source.map_or(Ok(()), |source| annotated(out, "annotated_source", &source, "skill_index", -1))
}

/// A copy with a made-up skill for each frame, under the key of a file of skills or that of a run's skills; with −1 as the
/// least, some frames have none.
fn annotated(out: &Path, name: &str, source: &Path, key: &str, least: i64) -> Result<(), Error> {
    let root = Root::Directory(source.to_path_buf());
    let info = dataset::Info::parse(&root.read("meta/info.json", 1 << 20)?)?;
    let names = ["reach", "skill_0_closed · close gripper", "lift → carry"].map(String::from).to_vec();
    let span = names.len() as i64 - least;
    let values: Vec<i64> = (0..info.total_frames as i64).map(|frame| frame / 9 % span + least).collect();
    let annotation = Annotation { key: key.to_string(), names, values, subtasks: true };
    annotate(&root, &out.join(name), &annotation)?;
    let expected = json!({"source": source, "key": key, "names": annotation.names, "values": annotation.values});
    save(&out.join(format!("{name}.json")), &expected)
}

/// All types of numbers, vectors, text and a feature of two axes.
fn plain(out: &Path) -> Result<(), Error> {
    let features = vec![
        ("observation.state", Feature::new(Dtype::Float32, &[4]).named(&["a", "b", "c", "d"])),
        ("action", Feature::new(Dtype::Float32, &[3]).named(&["x", "y", "z"])),
        ("observation.grid", Feature::new(Dtype::Float32, &[2, 3])),
        ("observation.precise", Feature::new(Dtype::Float64, &[2])),
        ("next.reward", Feature::new(Dtype::Float32, &[1])),
        ("next.done", Feature::new(Dtype::Bool, &[1])),
        ("contacts", Feature::new(Dtype::Bool, &[2])),
        ("phase", Feature::new(Dtype::Int(64), &[1])),
        ("small", Feature::new(Dtype::Int(8), &[2])),
        ("byte", Feature::new(Dtype::Uint(8), &[1])),
        ("note", Feature::new(Dtype::Text, &[1])),
    ];
    let lengths = [1, 2, 37, 60, 5];
    let options = WriteOptions { robot_type: Some("arm".to_string()), ..options(20, features) };
    write(out, "plain", options, &lengths, 3)
}

/// Two cameras, one of which is large enough for lerobot to look at some pixels only.
fn pictures(out: &Path) -> Result<(), Error> {
    let features = vec![
        ("observation.images.front", Feature::new(Dtype::Image, &[24, 32, 3])),
        ("observation.images.wide", Feature::new(Dtype::Image, &[160, 320, 3])),
        ("observation.state", Feature::new(Dtype::Float32, &[2])),
        ("action", Feature::new(Dtype::Float32, &[2])),
    ];
    write(out, "pictures", options(10, features), &[7, 12], 2)
}

/// Several data files in several chunks.
fn many_files(out: &Path) -> Result<(), Error> {
    let features = vec![
        ("observation.state", Feature::new(Dtype::Float64, &[256])),
        ("action", Feature::new(Dtype::Float32, &[7])),
    ];
    let options = WriteOptions { data_file_mb: 1, chunks_size: 2, ..options(30, features) };
    write(out, "many_files", options, &[90; 30], 4)
}

fn options(fps: u32, features: Vec<(&str, Feature)>) -> WriteOptions {
    WriteOptions::new(fps, features.into_iter().map(|(key, feature)| (key.to_string(), feature)).collect())
}

/// The values of one column.
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
            Dtype::Float32 => Values::F32((0..count).map(|_| random.random_range(-3.0..3.0)).collect()),
            Dtype::Float64 => Values::F64((0..count).map(|_| random.random_range(-3.0..3.0)).collect()),
            Dtype::Bool => Values::Bool((0..count).map(|_| random.random()).collect()),
            Dtype::Text => {
                Values::Text((0..count).map(|row| format!("row {row} → {}", random.random::<u8>())).collect())
            }
            Dtype::Image => {
                let (height, width) = (feature.shape[0], feature.shape[1]);
                let mut frame =
                    || Frame { width, height, pixels: (0..height * width * 3).map(|_| random.random()).collect() };
                Values::Images((0..rows).map(|_| frame()).collect())
            }
            _ => Values::I64((0..count).map(|_| random.random_range(0..100)).collect()),
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

    /// Pictures as a digest of their pixels.
    fn json(&self) -> Value {
        match self {
            Values::F32(values) => json!(values),
            Values::F64(values) => json!(values),
            Values::I64(values) => json!(values),
            Values::Bool(values) => json!(values),
            Values::Text(values) => json!(values),
            Values::Images(frames) => frames.iter().map(|frame| json!(digest(&frame.pixels))).collect(),
        }
    }
}

/// FNV-1a, which is three lines in any language.
fn digest(bytes: &[u8]) -> String {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

fn write(out: &Path, name: &str, options: WriteOptions, lengths: &[usize], tasks: usize) -> Result<(), Error> {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let features = options.features.clone();
    let mut expected = Vec::new();
    let fps = options.fps;
    let mut writer = Writer::create(&out.join(name), options)?;
    for (episode, length) in lengths.iter().enumerate() {
        let task = format!("do task {} → “gently”", (episode * 2) % tasks);
        let values: Vec<(&str, Values)> = features
            .iter()
            .map(|(key, feature)| (key.as_str(), Values::random(feature, *length, &mut random)))
            .collect();
        let columns: Vec<(&str, ColumnData<'_>)> = values.iter().map(|(key, values)| (*key, values.data())).collect();
        writer.add_episode(&EpisodeData { task: &task, columns: &columns })?;
        let columns: Map<String, Value> = values.iter().map(|(key, values)| (key.to_string(), values.json())).collect();
        expected.push(json!({"task": task, "length": length, "columns": columns}));
    }
    let summary = writer.finish()?;
    let expected = json!({"fps": fps, "data_files": summary.data_files, "episodes": expected});
    save(&out.join(format!("{name}.json")), &expected)
}

fn save(path: &Path, value: &Value) -> Result<(), Error> {
    let file = path.display().to_string();
    std::fs::write(path, value.to_string())
        .map_err(|error| Fault::Unwritable { file, reason: error.to_string() }.into())
}
