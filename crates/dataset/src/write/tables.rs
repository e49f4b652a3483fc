//! `meta/tasks.parquet` and `meta/subtasks.parquet`: texts and their numbers.
//!
//! The text is the index of a pandas table: a column `__index_level_0__`, with a note in the file's metadata that makes
//! pandas put it back. lerobot looks texts up by row, so row `i` has number `i`.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use serde_json::json;

use super::beside::{Beside, unwritable};
use super::columns::{noted, properties};
use super::rolling::refused;
use crate::fault::{Error, Fault};

/// Writes such a table; `number` is the name of its column, such as `task_index`.
pub(crate) fn write_texts(beside: &Beside, file: &str, number: &str, texts: &[String]) -> Result<(), Error> {
    const INDEX: &str = "__index_level_0__";
    let pandas = json!({
        "index_columns": [INDEX],
        "column_indexes": [{
            "name": null, "field_name": null, "pandas_type": "unicode", "numpy_type": "object",
            "metadata": {"encoding": "UTF-8"},
        }],
        "columns": [
            {"name": number, "field_name": number, "pandas_type": "int64", "numpy_type": "int64", "metadata": null},
            {"name": null, "field_name": INDEX, "pandas_type": "unicode", "numpy_type": "object", "metadata": null},
        ],
        "attributes": {},
        "creator": {"library": "pyarrow", "version": "21.0.0"},
        "pandas_version": "2.3.1",
    });
    let fields = vec![Field::new(number, DataType::Int64, true), Field::new(INDEX, DataType::Utf8, true)];
    let (properties, metadata) = noted(properties(), "pandas", pandas.to_string());
    let schema = Arc::new(Schema::new(fields).with_metadata(metadata));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(0..texts.len() as i64)),
        Arc::new(StringArray::from_iter_values(texts)),
    ];
    let batch = RecordBatch::try_new(schema.clone(), columns)
        .map_err(|error| Fault::Unwritable { file: file.to_string(), reason: error.to_string() })?;
    let mut writer = ArrowWriter::try_new(beside.file(file)?, schema, Some(properties.build()))
        .map_err(|error| refused(file, &error))?;
    writer.write(&batch).map_err(|error| refused(file, &error))?;
    let written = writer.into_inner().map_err(|error| refused(file, &error))?;
    written.sync_all().map_err(|error| unwritable(file, &error))
}
