//! The columns of data files: from slices to arrow arrays, in the types that lerobot writes.
//!
//! A feature of shape `[1]` is a column of plain values, `[n]` one of lists of fixed length, more axes are lists in
//! lists. Pictures are `{bytes, path}` with a PNG in `bytes`.

use std::collections::HashMap;
use std::io::Cursor;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeListArray, ListArray, PrimitiveArray, StringArray, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder};
use parquet::basic::Compression;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use crate::fault::{Error, Fault};
use crate::frame::Frame;
use crate::info::{Dtype, Feature};

/// The values of one column for all frames of an episode, row by row.
#[derive(Clone, Copy, Debug)]
pub enum ColumnData<'a> {
    /// For `float32`.
    F32(&'a [f32]),
    /// For `float64`.
    F64(&'a [f64]),
    /// For integers of any width.
    I64(&'a [i64]),
    /// For `bool`.
    Bool(&'a [bool]),
    /// For `string`.
    Text(&'a [String]),
    /// For `image`.
    Images(&'a [Frame]),
}

impl ColumnData<'_> {
    /// The number of values, over all rows; a picture is one.
    pub fn len(&self) -> usize {
        match self {
            ColumnData::F32(values) => values.len(),
            ColumnData::F64(values) => values.len(),
            ColumnData::I64(values) => values.len(),
            ColumnData::Bool(values) => values.len(),
            ColumnData::Text(values) => values.len(),
            ColumnData::Images(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the values are, in messages.
    fn shown(&self) -> &'static str {
        match self {
            ColumnData::F32(_) => "float32",
            ColumnData::F64(_) => "float64",
            ColumnData::I64(_) => "integers",
            ColumnData::Bool(_) => "bool",
            ColumnData::Text(_) => "text",
            ColumnData::Images(_) => "pictures",
        }
    }

    /// A value as a number; nothing for text and pictures.
    pub(crate) fn number(&self, at: usize) -> f64 {
        match self {
            ColumnData::F32(values) => f64::from(values[at]),
            ColumnData::F64(values) => values[at],
            ColumnData::I64(values) => values[at] as f64,
            ColumnData::Bool(values) => f64::from(u8::from(values[at])),
            ColumnData::Text(_) | ColumnData::Images(_) => 0.0,
        }
    }

    /// What is wrong with it as a feature's column of so many rows.
    pub(crate) fn check(&self, file: &str, key: &str, feature: &Feature, rows: usize) -> Vec<Fault> {
        let wrong = |found: String, expected: String| Fault::WrongType {
            file: file.to_string(),
            column: key.to_string(),
            found,
            expected,
        };
        let fits = match (self, &feature.dtype) {
            (ColumnData::F32(_), Dtype::Float32) | (ColumnData::F64(_), Dtype::Float64) => true,
            (ColumnData::Bool(_), Dtype::Bool) | (ColumnData::Text(_), Dtype::Text) => true,
            (ColumnData::Images(_), Dtype::Image) => true,
            (ColumnData::I64(_), dtype) => dtype.is_integer(),
            _ => false,
        };
        if !fits {
            return vec![wrong(self.shown().to_string(), feature.shown())];
        }
        let width = if feature.dtype == Dtype::Image { 1 } else { feature.width() };
        if self.len() != rows * width {
            let expected = format!("{} values: {rows} rows of {}", rows * width, feature.shown());
            return vec![wrong(format!("{} values", self.len()), expected)];
        }
        match self {
            ColumnData::F32(values) => not_finite(file, key, width, values.iter().map(|value| f64::from(*value))),
            ColumnData::F64(values) => not_finite(file, key, width, values.iter().copied()),
            ColumnData::I64(values) => {
                let (least, most) = limits(&feature.dtype);
                let outside = values.iter().find(|value| **value < least || **value > most);
                outside.map(|value| wrong(format!("{value} in a row"), feature.shown())).into_iter().collect()
            }
            ColumnData::Images(frames) => misshapen(file, key, feature, frames).into_iter().collect(),
            ColumnData::Bool(_) | ColumnData::Text(_) => Vec::new(),
        }
    }
}

fn not_finite(file: &str, key: &str, width: usize, values: impl Iterator<Item = f64>) -> Vec<Fault> {
    let mut bad = values.enumerate().filter(|(_, value)| !value.is_finite());
    let Some((at, value)) = bad.next() else { return Vec::new() };
    let mut rows: Vec<usize> = bad.map(|(at, _)| at / width.max(1)).collect();
    rows.push(at / width.max(1));
    rows.sort_unstable();
    rows.dedup();
    let (file, column) = (file.to_string(), key.to_string());
    vec![Fault::NotFinite { file, column, row: at / width.max(1), episode: None, value, count: rows.len() }]
}

fn limits(dtype: &Dtype) -> (i64, i64) {
    match dtype {
        Dtype::Int(bits) if *bits < 64 => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        Dtype::Uint(bits) if *bits < 64 => (0, (1 << bits) - 1),
        Dtype::Uint(_) => (0, i64::MAX),
        _ => (i64::MIN, i64::MAX),
    }
}

fn misshapen(file: &str, key: &str, feature: &Feature, frames: &[Frame]) -> Option<Fault> {
    let [height, width, 3] = feature.shape[..] else {
        return Some(Fault::WrongType {
            file: file.to_string(),
            column: key.to_string(),
            found: feature.shown(),
            expected: "pictures of shape [height, width, 3]".to_string(),
        });
    };
    let wrong =
        |frame: &&Frame| (frame.height, frame.width) != (height, width) || frame.pixels.len() != height * width * 3;
    frames.iter().find(wrong).map(|frame| Fault::WrongSize {
        file: file.to_string(),
        camera: key.to_string(),
        found: format!("{}×{} with {} bytes", frame.width, frame.height, frame.pixels.len()),
        expected: format!("{width}×{height} with {} bytes", height * width * 3),
    })
}

/// The arrow type of a feature's column; none for videos, whose pictures are elsewhere.
pub(crate) fn column_type(feature: &Feature) -> Option<DataType> {
    let value = match &feature.dtype {
        Dtype::Float32 => DataType::Float32,
        Dtype::Float64 => DataType::Float64,
        Dtype::Int(8) => DataType::Int8,
        Dtype::Int(16) => DataType::Int16,
        Dtype::Int(32) => DataType::Int32,
        Dtype::Int(_) => DataType::Int64,
        Dtype::Uint(8) => DataType::UInt8,
        Dtype::Uint(16) => DataType::UInt16,
        Dtype::Uint(32) => DataType::UInt32,
        Dtype::Uint(_) => DataType::UInt64,
        Dtype::Bool => DataType::Boolean,
        Dtype::Text => DataType::Utf8,
        Dtype::Image => return Some(DataType::Struct(picture_fields())),
        Dtype::Video | Dtype::Other(_) => return None,
    };
    Some(match feature.shape[..] {
        [] | [1] => value,
        [width] => DataType::FixedSizeList(element(value), width as i32),
        _ => feature.shape.iter().fold(value, |inner, _| DataType::List(element(inner))),
    })
}

fn element(value: DataType) -> Arc<Field> {
    Arc::new(Field::new("element", value, true))
}

fn picture_fields() -> Fields {
    vec![Field::new("bytes", DataType::Binary, true), Field::new("path", DataType::Utf8, true)].into()
}

/// The rows of an episode as an arrow array.
pub(crate) fn array(
    file: &str,
    feature: &Feature,
    data: &ColumnData<'_>,
    rows: Range<usize>,
) -> Result<ArrayRef, Error> {
    let width = if feature.dtype == Dtype::Image { 1 } else { feature.width() };
    let range = rows.start * width..rows.end * width;
    let values: ArrayRef = match data {
        ColumnData::F32(values) => primitive::<Float32Type, _>(&values[range], |value| value),
        ColumnData::F64(values) => primitive::<Float64Type, _>(&values[range], |value| value),
        ColumnData::I64(values) => integers(&feature.dtype, &values[range]),
        ColumnData::Bool(values) => Arc::new(BooleanArray::from(values[range].to_vec())),
        ColumnData::Text(values) => Arc::new(StringArray::from_iter_values(&values[range])),
        ColumnData::Images(frames) => return pictures(file, &frames[range], rows.start),
    };
    let count = rows.len();
    let wrapped = match feature.shape[..] {
        [] | [1] => Ok(values),
        [width] => {
            let field = element(values.data_type().clone());
            FixedSizeListArray::try_new(field, width as i32, values, None).map(|list| Arc::new(list) as ArrayRef)
        }
        _ => nest(values, &feature.shape, count),
    };
    wrapped.map_err(|error| refused_array(file, &error))
}

/// Wraps values into lists in lists, one for each axis; the outermost has so many rows.
pub(crate) fn nest(values: ArrayRef, shape: &[usize], rows: usize) -> Result<ArrayRef, ArrowError> {
    let mut values = values;
    for (at, side) in shape.iter().enumerate().rev() {
        let count = rows * shape[..at].iter().product::<usize>();
        let field = element(values.data_type().clone());
        let offsets = OffsetBuffer::try_from_repeated_length(*side, count)
            .map_err(|error| ArrowError::ArithmeticOverflow(error.to_string()))?;
        values = Arc::new(ListArray::try_new(field, offsets, values, None)?);
    }
    Ok(values)
}

pub(crate) fn refused_array(file: &str, error: &ArrowError) -> Error {
    Fault::Unwritable { file: file.to_string(), reason: error.to_string() }.into()
}

fn primitive<T: ArrowPrimitiveType, V: Copy>(values: &[V], cast: impl Fn(V) -> T::Native) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values(values.iter().map(|value| cast(*value))))
}

/// Values were checked to fit.
fn integers(dtype: &Dtype, values: &[i64]) -> ArrayRef {
    match dtype {
        Dtype::Int(8) => primitive::<Int8Type, _>(values, |value| value as i8),
        Dtype::Int(16) => primitive::<Int16Type, _>(values, |value| value as i16),
        Dtype::Int(32) => primitive::<Int32Type, _>(values, |value| value as i32),
        Dtype::Uint(8) => primitive::<UInt8Type, _>(values, |value| value as u8),
        Dtype::Uint(16) => primitive::<UInt16Type, _>(values, |value| value as u16),
        Dtype::Uint(32) => primitive::<UInt32Type, _>(values, |value| value as u32),
        Dtype::Uint(_) => primitive::<UInt64Type, _>(values, |value| value as u64),
        _ => primitive::<Int64Type, _>(values, |value| value),
    }
}

fn pictures(file: &str, frames: &[Frame], first: usize) -> Result<ArrayRef, Error> {
    let files: Vec<Vec<u8>> = frames.par_iter().map(|frame| png(file, frame)).collect::<Result<_, Error>>()?;
    if files.iter().map(Vec::len).sum::<usize>() > i32::MAX as usize {
        let reason = format!("the pictures of {} rows have more than 2 GiB", frames.len());
        return Err(Fault::Unwritable { file: file.to_string(), reason }.into());
    }
    let paths = (first..first + frames.len()).map(|frame| format!("frame-{frame:06}.png"));
    let columns: Vec<ArrayRef> =
        vec![Arc::new(BinaryArray::from_iter_values(&files)), Arc::new(StringArray::from_iter_values(paths))];
    StructArray::try_new(picture_fields(), columns, None)
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(|error| refused_array(file, &error))
}

/// A picture as a PNG file.
fn png(file: &str, frame: &Frame) -> Result<Vec<u8>, Error> {
    let mut content = Cursor::new(Vec::new());
    PngEncoder::new(&mut content)
        .write_image(&frame.pixels, frame.width as u32, frame.height as u32, ExtendedColorType::Rgb8)
        .map_err(|error| Fault::Unwritable { file: file.to_string(), reason: error.to_string() })?;
    Ok(content.into_inner())
}

/// The schema of the data files, and how they are written.
pub(crate) fn data_format(features: &[(String, Feature)]) -> (SchemaRef, WriterProperties) {
    let fields: Vec<Field> =
        features.iter().filter_map(|(key, feature)| Some(Field::new(key, column_type(feature)?, true))).collect();
    let known: Map<String, Value> =
        features.iter().filter_map(|(key, feature)| Some((key.clone(), huggingface_feature(feature)?))).collect();
    let note = json!({"info": {"features": known}}).to_string();
    let (mut properties, metadata) = noted(properties(), HUGGINGFACE, note);
    for (key, _) in features.iter().filter(|(_, feature)| feature.dtype == Dtype::Image) {
        properties = plain_pictures(properties, key);
    }
    (Arc::new(Schema::new(fields).with_metadata(metadata)), properties.build())
}

/// Where the `datasets` package notes its features.
pub(crate) const HUGGINGFACE: &str = "huggingface";

/// Adds a note to a file. Where there is an arrow schema, pyarrow looks for notes only in it; other readers look only
/// in the file's own metadata: so it is put into both.
pub(crate) fn noted(
    properties: WriterPropertiesBuilder,
    name: &str,
    note: String,
) -> (WriterPropertiesBuilder, HashMap<String, String>) {
    let value = KeyValue::new(name.to_string(), note.clone());
    (properties.set_key_value_metadata(Some(vec![value])), HashMap::from([(name.to_string(), note)]))
}

/// No two pictures are alike, and PNG files are compressed.
pub(crate) fn plain_pictures(properties: WriterPropertiesBuilder, key: &str) -> WriterPropertiesBuilder {
    let bytes = ColumnPath::new(vec![key.to_string(), "bytes".to_string()]);
    properties
        .set_column_dictionary_enabled(bytes.clone(), false)
        .set_column_statistics_enabled(bytes.clone(), EnabledStatistics::None)
        .set_column_compression(bytes, Compression::UNCOMPRESSED)
}

/// What the `datasets` package calls a feature, which it notes in parquet files: this is how it knows pictures.
pub(crate) fn huggingface_feature(feature: &Feature) -> Option<Value> {
    let value = match &feature.dtype {
        Dtype::Image => return Some(json!({"_type": "Image"})),
        Dtype::Video | Dtype::Other(_) => return None,
        dtype => json!({"dtype": dtype.name(), "_type": "Value"}),
    };
    Some(match feature.shape[..] {
        [] | [1] => value,
        [width] => json!({"feature": value, "length": width, "_type": "List"}),
        _ => json!({
            "shape": feature.shape, "dtype": feature.dtype.name(), "_type": format!("Array{}D", feature.shape.len()),
        }),
    })
}

/// How all parquet files are written.
pub(crate) fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("refactor-vla {}", env!("CARGO_PKG_VERSION")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_of_another_shape_than_height_width_3_are_refused() {
        let frames = [Frame { width: 2, height: 2, pixels: vec![0; 12].into() }];
        let check = |shape: &[usize]| {
            ColumnData::Images(&frames).check("episode 0", "camera", &Feature::new(Dtype::Image, shape), 1)
        };
        assert_eq!(check(&[2, 2, 3]), []);
        for shape in [&[3, 2, 2][..], &[2, 2, 1], &[2, 2], &[12], &[]] {
            assert!(matches!(check(shape)[..], [Fault::WrongType { .. }]), "{shape:?}");
        }
        assert!(matches!(check(&[2, 4, 3])[..], [Fault::WrongSize { .. }]));
    }
}
