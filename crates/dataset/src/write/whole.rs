//! Parquet files that are read and written as a whole: all columns in their own types, one row group after the other.

use std::fs::File;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::beside::{Beside, unwritable};
use super::columns::refused_array;
use super::rolling::refused;
use crate::fault::{Error, Fault};
use crate::files::{Blob, Root};
use crate::guard::guarded;
use crate::pages;
use crate::table::{Table, integers_of};

/// Rows that are held at a time: pictures are among them.
const BATCH: usize = 256;

/// A parquet file that is read with all its columns as they are.
pub(super) struct Whole {
    file: String,
    blob: Blob,
    metadata: ArrowReaderMetadata,
}

impl Whole {
    pub(super) fn open(source: &Root, file: &str) -> Result<Whole, Error> {
        // Whether the footer can be believed.
        Table::open(source, file)?;
        let blob = source.open(file)?;
        let metadata = guarded(|| ArrowReaderMetadata::load(&blob, ArrowReaderOptions::new()))
            .and_then(|loaded| loaded.map_err(|error| error.to_string()))
            .map_err(|reason| malformed(file, reason))?;
        Ok(Whole { file: file.to_string(), blob, metadata })
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// What is noted in the file, but for the arrow schema, which is written anew.
    pub(super) fn notes(&self) -> Vec<KeyValue> {
        let notes = self.metadata.metadata().file_metadata().key_value_metadata().cloned().unwrap_or_default();
        notes.into_iter().filter(|note| note.key != parquet::arrow::ARROW_SCHEMA_META_KEY).collect()
    }

    /// All rows of each row group, some at a time.
    pub(super) fn scan(
        &self,
        mut sink: impl FnMut(&RecordBatch) -> Result<(), Error>,
        mut group_ends: impl FnMut() -> Result<(), Error>,
    ) -> Result<(), Error> {
        for group in 0..self.metadata.metadata().num_row_groups() {
            pages::check(&self.blob, self.metadata.metadata(), &[group], &|_| true)
                .map_err(|reason| malformed(&self.file, format!("it has {reason}")))?;
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.blob.clone(), self.metadata.clone())
                .with_row_groups(vec![group])
                .with_batch_size(BATCH);
            let mut reader = guarded(|| builder.build())
                .and_then(|built| built.map_err(|error| error.to_string()))
                .map_err(|reason| malformed(&self.file, reason))?;
            while let Some(batch) = guarded(|| reader.next().transpose())
                .and_then(|batch| batch.map_err(|error| error.to_string()))
                .map_err(|reason| malformed(&self.file, reason))?
            {
                sink(&batch)?;
            }
            group_ends()?;
        }
        Ok(())
    }

    pub(super) fn integers(&self, batch: &RecordBatch, column: &str) -> Result<Vec<i64>, Error> {
        let (file, column) = (self.file.clone(), column.to_string());
        let Some(array) = batch.column_by_name(&column) else {
            return Err(Fault::MissingColumn { file, column, expected: "int64".to_string() }.into());
        };
        let mut values = vec![0; array.len()];
        match integers_of(array, &mut values) {
            Ok(()) => Ok(values),
            Err(_) => {
                let found = array.data_type().to_string();
                Err(Fault::WrongType { file, column, found, expected: "int64 without gaps".to_string() }.into())
            }
        }
    }
}

/// A parquet file that is being written.
pub(super) struct Output {
    file: String,
    writer: ArrowWriter<File>,
}

impl Output {
    pub(super) fn create(
        beside: &Beside,
        file: &str,
        schema: &SchemaRef,
        properties: WriterProperties,
    ) -> Result<Output, Error> {
        let writer = ArrowWriter::try_new(beside.file(file)?, schema.clone(), Some(properties));
        Ok(Output { file: file.to_string(), writer: writer.map_err(|error| refused(file, &error))? })
    }

    pub(super) fn write(&mut self, schema: &SchemaRef, arrays: Vec<ArrayRef>) -> Result<(), Error> {
        let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(|error| refused_array(&self.file, &error))?;
        self.writer.write(&batch).map_err(|error| refused(&self.file, &error))
    }

    pub(super) fn end_group(&mut self) -> Result<(), Error> {
        self.writer.flush().map_err(|error| refused(&self.file, &error))
    }

    pub(super) fn close(self) -> Result<(), Error> {
        let file = self.writer.into_inner().map_err(|error| refused(&self.file, &error))?;
        file.sync_all().map_err(|error| unwritable(&self.file, &error))
    }
}

fn malformed(file: &str, reason: String) -> Fault {
    Fault::Malformed { file: file.to_string(), format: "parquet", reason }
}
