//! What is written is what arrow reads back; what cannot be written leaves nothing.

mod agreeing;
mod annotating;
mod subtasks;
mod writing;

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
