//! Parquet files as columns of plain numbers.
//!
//! Only the columns that are asked for are read. The footer of a file is not believed: what it claims is held against the
//! file's length before anything of that size is allocated, and a decoder that gives up on hostile bytes by panicking is
//! caught here, at the border.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::Type;
use parquet::file::metadata::ColumnChunkMetaData;

use crate::fault::{Error, Fault};
use crate::files::{Blob, Root};
use crate::guard::guarded;
use crate::numbers::in_words;
use crate::pages;

/// The most rows that are decoded at a time.
const BATCH: usize = 8192;

/// The most bytes that are decoded at a time, unless one row has more.
const BATCH_BYTES: u64 = 16 << 20;

/// No file that we know has more rows for each of its bytes; a footer that claims more is lying.
const MAX_ROWS_PER_BYTE: u64 = 16;

/// A parquet file of which the footer has been read.
pub(crate) struct Table {
    file: String,
    blob: Blob,
    metadata: ArrowReaderMetadata,
}

impl Table {
    /// Reads the footer.
    pub(crate) fn open(root: &Root, file: &str) -> Result<Table, Error> {
        let blob = root.open(file)?;
        // The schema that arrow leaves in the metadata is one more thing that could be malformed, and tells us nothing.
        // Without it, parquet gives lists, text and bytes of one kind each: `List`, `Utf8` and `Binary`.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = guarded(|| ArrowReaderMetadata::load(&blob, options))
            .and_then(|loaded| loaded.map_err(|error| error.to_string()))
            .map_err(|reason| malformed(file, footer_reason(&reason)))?;
        let table = Table { file: file.to_string(), blob, metadata };
        let claimed = table.metadata.metadata().file_metadata().num_rows();
        let most = table.blob.length().saturating_mul(MAX_ROWS_PER_BYTE);
        match u64::try_from(claimed) {
            Ok(rows) if rows <= most => {}
            _ => {
                return Err(
                    malformed(file, format!("it claims {claimed} rows in {} bytes", table.blob.length())).into()
                );
            }
        }
        Ok(table)
    }

    /// The path in the dataset.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.metadata.metadata().file_metadata().num_rows() as usize
    }

    /// The type of a column.
    pub(crate) fn column(&self, name: &str) -> Option<&DataType> {
        self.metadata.schema().fields().iter().find(|field| field.name() == name).map(|field| field.data_type())
    }

    /// The columns' names, in the file's order.
    pub(crate) fn columns(&self) -> Vec<&str> {
        self.metadata.schema().fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// Hands the wanted columns over, some rows at a time; the sink gets the first row's number and one array for each
    /// wanted column.
    pub(crate) fn scan(
        &self,
        wanted: &[&str],
        mut sink: impl FnMut(usize, &[ArrayRef]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.scan_some(wanted, 0..self.rows(), BATCH, |first, columns| sink(first, columns))
    }

    /// As [`Table::scan`], so many rows at a time: few where a row is large.
    pub(crate) fn scan_by(
        &self,
        wanted: &[&str],
        batch: usize,
        sink: impl FnMut(usize, &[ArrayRef]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.scan_some(wanted, 0..self.rows(), batch, sink)
    }

    /// As [`Table::scan_by`], for some of the rows. Whole row groups outside the range are not read.
    pub(crate) fn scan_some(
        &self,
        wanted: &[&str],
        rows: Range<usize>,
        batch: usize,
        mut sink: impl FnMut(usize, &[ArrayRef]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for name in wanted {
            if self.column(name).is_none() {
                return Err(self.missing(name).into());
            }
        }
        let (groups, skipped) = self.groups_of(&rows);
        let batch = batch.min(self.fitting_rows(wanted));
        let fields = self.metadata.schema().fields();
        let roots =
            fields.iter().enumerate().filter(|(_, field)| wanted.contains(&field.name().as_str())).map(|(at, _)| at);
        let schema = self.metadata.parquet_schema();
        let mask = ProjectionMask::roots(schema, roots);
        pages::check(&self.blob, self.metadata.metadata(), &groups, &|leaf| mask.leaf_included(leaf))
            .map_err(|reason| malformed(&self.file, format!("it has {reason}")))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.blob.clone(), self.metadata.clone())
            .with_projection(mask)
            .with_row_groups(groups)
            .with_offset(rows.start - skipped)
            .with_limit(rows.len())
            .with_batch_size(batch.min(rows.len().max(1)));
        let mut reader = guarded(|| builder.build())
            .and_then(|built| built.map_err(|error| error.to_string()))
            .map_err(|reason| malformed(&self.file, reason))?;
        let mut first = rows.start;
        while let Some(batch) = guarded(|| reader.next().transpose())
            .and_then(|batch| batch.map_err(|error| error.to_string()))
            .map_err(|reason| malformed(&self.file, reason))?
        {
            if batch.num_rows() > rows.end - first {
                return Err(malformed(&self.file, "it has more rows than its footer says".to_string()).into());
            }
            sink(first, &ordered(&batch, wanted))?;
            first += batch.num_rows();
        }
        match first == rows.end {
            true => Ok(()),
            false => {
                let reason = format!("it ends after {first} rows, its footer says {}", self.rows());
                Err(malformed(&self.file, reason).into())
            }
        }
    }

    /// The first row of each row group.
    pub(crate) fn group_starts(&self) -> Vec<usize> {
        let mut first = 0;
        let starts = self.metadata.metadata().row_groups().iter().map(|group| {
            let start = first;
            first += usize::try_from(group.num_rows()).unwrap_or(0);
            start
        });
        starts.collect()
    }

    /// The row groups that a range of rows touches, and the number of rows before them.
    fn groups_of(&self, rows: &Range<usize>) -> (Vec<usize>, usize) {
        let mut groups = Vec::new();
        let (mut first, mut skipped) = (0, 0);
        for (at, group) in self.metadata.metadata().row_groups().iter().enumerate() {
            let next = first + usize::try_from(group.num_rows()).unwrap_or(0);
            if next <= rows.start {
                skipped = next;
            } else if first < rows.end {
                groups.push(at);
            }
            first = next;
        }
        (groups, skipped)
    }

    /// The rows of some columns that fit into [`BATCH_BYTES`], as far as the footer says what they hold.
    fn fitting_rows(&self, wanted: &[&str]) -> usize {
        let is_wanted = |leaf: &&ColumnChunkMetaData| {
            leaf.column_path().parts().first().is_some_and(|root| wanted.contains(&root.as_str()))
        };
        let bytes = |leaf: &ColumnChunkMetaData| {
            let values = u64::try_from(leaf.num_values()).unwrap_or(0);
            match leaf.column_type() {
                Type::BOOLEAN | Type::INT32 | Type::FLOAT => values.saturating_mul(4),
                Type::INT64 | Type::DOUBLE => values.saturating_mul(8),
                // Texts and pictures; a dictionary would make them larger than this, but pictures have none.
                _ => u64::try_from(leaf.uncompressed_size()).unwrap_or(0).max(values.saturating_mul(16)),
            }
        };
        let groups = self.metadata.metadata().row_groups().iter();
        let leaves = groups.flat_map(|group| group.columns().iter().filter(is_wanted));
        let total = leaves.map(bytes).fold(0, u64::saturating_add);
        let a_row = total.div_ceil(self.rows().max(1) as u64).max(1);
        usize::try_from(BATCH_BYTES / a_row).unwrap_or(BATCH).clamp(1, BATCH)
    }

    fn missing(&self, column: &str) -> Fault {
        // Tables of episodes have a hundred columns of statistics.
        const MOST: usize = 12;
        let mut known: Vec<&str> = self.columns().into_iter().filter(|name| !name.starts_with("stats/")).collect();
        if known.len() > MOST {
            known.truncate(MOST);
            known.push("…");
        }
        let expected = format!("a column of that name beside {}", known.join(", "));
        Fault::MissingColumn { file: self.file.clone(), column: column.to_string(), expected }
    }

    /// A whole column of integers.
    pub(crate) fn integers(&self, column: &str) -> Result<Vec<i64>, Error> {
        let mut values = Vec::new();
        self.scan(&[column], |first, arrays| {
            let from = values.len();
            values.resize(from + arrays[0].len(), 0);
            self.fill(column, first, integers_of(&arrays[0], &mut values[from..]), "integers", &arrays[0])
        })?;
        Ok(values)
    }

    /// A whole column of numbers.
    pub(crate) fn floats(&self, column: &str) -> Result<Vec<f64>, Error> {
        let mut values = Vec::new();
        self.scan(&[column], |first, arrays| {
            let from = values.len();
            values.resize(from + arrays[0].len(), 0.0);
            self.fill(column, first, doubles_of(&arrays[0], &mut values[from..]), "numbers", &arrays[0])
        })?;
        Ok(values)
    }

    /// A whole column of texts.
    pub(crate) fn texts(&self, column: &str) -> Result<Vec<String>, Error> {
        let mut values = Vec::new();
        self.scan(&[column], |first, arrays| {
            let filled = texts_of(&arrays[0], |text| values.push(text.to_string()));
            self.fill(column, first, filled, "text", &arrays[0])
        })?;
        Ok(values)
    }

    /// A whole column of lists of texts.
    pub(crate) fn text_lists(&self, column: &str) -> Result<Vec<Vec<String>>, Error> {
        let mut values = Vec::new();
        self.scan(&[column], |first, arrays| {
            let filled = match arrays[0].data_type() {
                DataType::List(_) => arrays[0].as_list::<i32>().iter().enumerate().try_for_each(|(row, list)| {
                    let mut texts = Vec::new();
                    // The place of a text in its list is not that of its row.
                    texts_of(&list.ok_or(Bad::Missing(row))?, |text| texts.push(text.to_string())).map_err(|bad| {
                        match bad {
                            Bad::Missing(_) => Bad::Missing(row),
                            other => other,
                        }
                    })?;
                    values.push(texts);
                    Ok(())
                }),
                // A single text is a list of one.
                _ => texts_of(&arrays[0], |text| values.push(vec![text.to_string()])),
            };
            self.fill(column, first, filled, "lists of texts", &arrays[0])
        })?;
        Ok(values)
    }

    /// Turns what is wrong with an array into a fault of its column.
    pub(crate) fn fill(
        &self,
        column: &str,
        first: usize,
        filled: Result<(), Bad>,
        expected: &str,
        array: &ArrayRef,
    ) -> Result<(), Error> {
        let (file, column) = (self.file.clone(), column.to_string());
        filled.map_err(|bad| {
            match bad {
                Bad::Type => {
                    let found = in_words(array.data_type());
                    Fault::WrongType { file, column, found, expected: expected.to_string() }
                }
                Bad::Missing(row) => {
                    Fault::MissingValue { file, column, row: first + row, count: array.null_count().max(1) }
                }
                Bad::Width { row, found, expected } => {
                    Fault::WrongWidth { file, column, row: first + row, found, expected }
                }
            }
            .into()
        })
    }
}

/// What is wrong with an array, in terms of its own rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// Its type is not what was wanted.
    Type,
    /// A row is empty.
    Missing(usize),
    /// A row has the wrong number of values.
    Width { row: usize, found: usize, expected: usize },
}

/// What is wrong with a footer, without the words that say that it is one.
fn footer_reason(reason: &str) -> String {
    let known = ["Parquet error: ", "EOF: ", "External: "];
    let reason = known.iter().find_map(|prefix| reason.strip_prefix(prefix)).unwrap_or(reason);
    match reason {
        _ if reason.contains("Corrupt footer") => "its end is missing or damaged".to_string(),
        _ if reason.contains("too small") => "it is too short".to_string(),
        _ => format!("its footer is damaged ({reason})"),
    }
}

fn malformed(file: &str, reason: String) -> Fault {
    Fault::Malformed { file: file.to_string(), format: "parquet", reason }
}

fn ordered(batch: &RecordBatch, wanted: &[&str]) -> Vec<ArrayRef> {
    wanted.iter().filter_map(|name| batch.column_by_name(name).cloned()).collect()
}

/// The first row without a value.
fn complete(array: &dyn Array) -> Result<(), Bad> {
    match array.null_count() {
        0 => Ok(()),
        _ => Err(Bad::Missing((0..array.len()).find(|row| array.is_null(*row)).unwrap_or(0))),
    }
}

/// Rows of `width` numbers, one after the other; lists in lists are taken apart.
pub(crate) fn rows_of(array: &ArrayRef, width: usize, out: &mut [f32]) -> Result<(), Bad> {
    let DataType::List(_) = array.data_type() else {
        return if width == 1 { singles_of(array, out) } else { Err(Bad::Type) };
    };
    complete(array)?;
    let list = array.as_list::<i32>();
    let mut values = list.values().clone();
    let mut ends: Vec<usize> = list.offsets().iter().map(|end| *end as usize).collect();
    while let DataType::List(_) = values.data_type() {
        let inner = used(&values, &ends)?;
        ends = ends.iter().map(|end| inner.offsets()[*end] as usize).collect();
        values = inner.values().clone();
    }
    let lengths = ends.windows(2).map(|ends| ends[1] - ends[0]).enumerate();
    if let Some((row, found)) = lengths.into_iter().find(|(_, length)| *length != width) {
        return Err(Bad::Width { row, found, expected: width });
    }
    singles_of(&values.slice(ends[0], array.len() * width), out).map_err(|bad| match bad {
        // The place of a value as the place of its row.
        Bad::Missing(value) => Bad::Missing(value / width.max(1)),
        other => other,
    })
}

/// Lists in lists, if none that belongs to a row is missing. `ends` are where rows end in them, after where the first
/// begins.
fn used<'a>(values: &'a ArrayRef, ends: &[usize]) -> Result<&'a ListArray, Bad> {
    let all = ends[0]..ends[ends.len() - 1];
    match all.clone().find(|at| values.null_count() > 0 && values.is_null(*at)) {
        Some(at) => Err(Bad::Missing(ends.partition_point(|end| *end <= at) - 1)),
        None => Ok(values.as_list::<i32>()),
    }
}

fn singles_of(array: &ArrayRef, out: &mut [f32]) -> Result<(), Bad> {
    complete(array)?;
    match array.data_type() {
        DataType::Float32 => {
            out.copy_from_slice(array.as_primitive::<Float32Type>().values());
            Ok(())
        }
        DataType::Float64 => convert::<Float64Type, _>(array, out, |value| value as f32),
        DataType::Boolean => {
            out.iter_mut().zip(array.as_boolean().values()).for_each(|(out, value)| *out = f32::from(value));
            Ok(())
        }
        _ => {
            let mut integers = vec![0; array.len()];
            integers_of(array, &mut integers)?;
            out.iter_mut().zip(integers).for_each(|(out, value)| *out = value as f32);
            Ok(())
        }
    }
}

/// One number for each row, in double precision.
pub(crate) fn doubles_of(array: &ArrayRef, out: &mut [f64]) -> Result<(), Bad> {
    complete(array)?;
    match array.data_type() {
        DataType::Float64 => convert::<Float64Type, _>(array, out, |value| value),
        DataType::Float32 => convert::<Float32Type, _>(array, out, f64::from),
        _ => {
            let mut integers = vec![0; array.len()];
            integers_of(array, &mut integers)?;
            out.iter_mut().zip(integers).for_each(|(out, value)| *out = value as f64);
            Ok(())
        }
    }
}

/// One integer for each row, or one list of one integer. Unsigned 64-bit integers past the signed ones saturate.
pub(crate) fn integers_of(array: &ArrayRef, out: &mut [i64]) -> Result<(), Bad> {
    complete(array)?;
    match array.data_type() {
        DataType::Int64 => convert::<Int64Type, _>(array, out, |value| value),
        DataType::Int32 => convert::<Int32Type, _>(array, out, i64::from),
        DataType::Int16 => convert::<Int16Type, _>(array, out, i64::from),
        DataType::Int8 => convert::<Int8Type, _>(array, out, i64::from),
        DataType::UInt64 => convert::<UInt64Type, _>(array, out, |value| i64::try_from(value).unwrap_or(i64::MAX)),
        DataType::UInt32 => convert::<UInt32Type, _>(array, out, i64::from),
        DataType::UInt16 => convert::<UInt16Type, _>(array, out, i64::from),
        DataType::UInt8 => convert::<UInt8Type, _>(array, out, i64::from),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            if let Some((row, found)) = list.offsets().lengths().enumerate().find(|(_, length)| *length != 1) {
                return Err(Bad::Width { row, found, expected: 1 });
            }
            let from = list.offsets()[0] as usize;
            integers_of(&list.values().slice(from, array.len()), out)
        }
        _ => Err(Bad::Type),
    }
}

/// One truth value for each row; integers count as true where they are not 0.
pub(crate) fn booleans_of(array: &ArrayRef, out: &mut [bool]) -> Result<(), Bad> {
    complete(array)?;
    if *array.data_type() == DataType::Boolean {
        out.iter_mut().zip(array.as_boolean().values()).for_each(|(out, value)| *out = value);
        return Ok(());
    }
    let mut numbers = vec![0.0; array.len()];
    doubles_of(array, &mut numbers)?;
    out.iter_mut().zip(numbers).for_each(|(out, value)| *out = value != 0.0);
    Ok(())
}

fn texts_of(array: &ArrayRef, mut sink: impl FnMut(&str)) -> Result<(), Bad> {
    complete(array)?;
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().flatten().for_each(&mut sink),
        _ => return Err(Bad::Type),
    }
    Ok(())
}

fn convert<T: ArrowPrimitiveType, O>(array: &ArrayRef, out: &mut [O], to: impl Fn(T::Native) -> O) -> Result<(), Bad> {
    out.iter_mut().zip(array.as_primitive::<T>().values()).for_each(|(out, value)| *out = to(*value));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use arrow_array::builder::{LargeStringBuilder, ListBuilder, StringBuilder};
    use arrow_array::types::Float32Type;
    use arrow_array::{FixedSizeListArray, LargeBinaryArray, LargeStringArray, StringViewArray};
    use parquet::arrow::ArrowWriter;

    use super::*;

    /// A file of these columns, and the directory that it is in.
    fn written(columns: Vec<(&str, ArrayRef)>) -> (tempfile::TempDir, Table) {
        let folder = tempfile::tempdir().unwrap();
        let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, it)| (name, it, true)));
        let batch = batch.unwrap();
        let file = File::create(folder.path().join("a.parquet")).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let table = Table::open(&Root::Directory(folder.path().to_path_buf()), "a.parquet").unwrap();
        (folder, table)
    }

    #[test]
    fn an_empty_list_of_texts_in_a_later_batch_has_its_own_row() {
        let empty = BATCH + 10;
        for inside in [false, true] {
            let mut lists = ListBuilder::new(StringBuilder::new());
            for row in 0..BATCH + 20 {
                lists.values().append_option((row != empty || !inside).then_some("pour"));
                lists.append(row != empty || inside);
            }
            let (_folder, table) = written(vec![("tasks", Arc::new(lists.finish()))]);
            let error = table.text_lists("tasks").unwrap_err();
            assert!(matches!(error.faults(), [Fault::MissingValue { row, .. }] if *row == empty), "{error}");
        }
    }

    #[test]
    fn wide_rows_come_a_few_at_a_time() {
        let width = 120 * 160;
        let values: ArrayRef = Arc::new(arrow_array::Float32Array::from(vec![0.0; 600 * width]));
        let field = Arc::new(arrow_schema::Field::new_list_field(DataType::Float32, true));
        let wide = FixedSizeListArray::try_new(field, width as i32, values, None).unwrap();
        let narrow = arrow_array::Int64Array::from_iter_values(0..600);
        let (_folder, table) = written(vec![("depth", Arc::new(wide)), ("index", Arc::new(narrow))]);
        let largest = |wanted: &[&str]| {
            let mut largest = 0;
            table
                .scan(wanted, |_, arrays| {
                    largest = arrays[0].len().max(largest);
                    Ok(())
                })
                .unwrap();
            largest
        };
        assert_eq!(largest(&["index"]), 600);
        assert_eq!(largest(&["index", "depth"]), (16 << 20) / (width * 4 + 8));
    }

    #[test]
    fn matrices_are_rows_of_their_numbers() {
        let mut rows = ListBuilder::new(ListBuilder::new(arrow_array::builder::Float32Builder::new()));
        for row in 0..3 {
            for at in 0..2 {
                rows.values().append_value((0..4).map(|place| Some((row * 8 + at * 4 + place) as f32)));
            }
            rows.append(true);
        }
        let matrices: ArrayRef = Arc::new(rows.finish());
        let mut out = [0.0; 16];
        rows_of(&matrices.slice(1, 2), 8, &mut out).unwrap();
        assert_eq!(out.to_vec(), (8..24).map(|value| value as f32).collect::<Vec<_>>());
        assert_eq!(rows_of(&matrices, 4, &mut [0.0; 12]), Err(Bad::Width { row: 0, found: 8, expected: 4 }));
        let mut rows = ListBuilder::new(ListBuilder::new(arrow_array::builder::Float32Builder::new()));
        for row in 0..3 {
            rows.values().append_value([Some(1.0)]);
            rows.values().append(row != 1);
            rows.append(true);
        }
        let matrices: ArrayRef = Arc::new(rows.finish());
        assert_eq!(rows_of(&matrices, 1, &mut [0.0; 3]), Err(Bad::Missing(1)));
    }

    /// Which is why nothing else is read: arrow's other kinds are not what parquet gives without arrow's schema.
    #[test]
    fn lists_and_texts_are_of_one_kind_whatever_they_were_written_as() {
        let mut lists = ListBuilder::new(LargeStringBuilder::new());
        lists.append_value([Some("pour")]);
        let fixed = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>([Some([Some(1.0), Some(2.0)])], 2);
        let (_folder, table) = written(vec![
            ("large", Arc::new(LargeStringArray::from(vec!["a"]))),
            ("view", Arc::new(StringViewArray::from(vec!["b"]))),
            ("bytes", Arc::new(LargeBinaryArray::from(vec![&b"c"[..]]))),
            ("lists", Arc::new(lists.finish())),
            ("fixed", Arc::new(fixed)),
        ]);
        let types: Vec<String> = table.columns().iter().map(|name| in_words(table.column(name).unwrap())).collect();
        assert_eq!(types, ["text", "text", "binary", "lists of text", "lists of float32"]);
    }
}
