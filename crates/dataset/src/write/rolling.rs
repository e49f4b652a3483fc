//! Parquet files `chunk-000/file-000.parquet` and on, a new one where the last is full.
//!
//! Rows of one episode stay in one file. As in lerobot, a file is full when it would pass its size with as many more
//! rows of the size of those that it has. Row groups end with an episode, but hold several short ones: lerobot makes
//! one of each, and then every reader's memory and time for a footer grow with the number of episodes.

use std::fs::File;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::beside::{Beside, unwritable};
use crate::fault::{Error, Fault};

/// A row group is ended after an episode with at least as many rows.
const ROW_GROUP_ROWS: usize = 8192;

/// A row group is ended after an episode with at least as many bytes.
const ROW_GROUP_BYTES: usize = 8 << 20;

/// A row group is ended with at least as many bytes, wherever it is, since it is held in memory.
const MAX_ROW_GROUP_BYTES: usize = 64 << 20;

/// Where a file is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FilePlace {
    pub(crate) chunk: u64,
    pub(crate) file: u64,
}

/// The files of one folder.
pub(crate) struct Rolling {
    folder: &'static str,
    schema: SchemaRef,
    properties: WriterProperties,
    /// In bytes.
    limit: u64,
    chunks_size: u64,
    place: FilePlace,
    rows: u64,
    open: Option<ArrowWriter<File>>,
}

impl Rolling {
    pub(crate) fn new(
        folder: &'static str,
        schema: SchemaRef,
        properties: WriterProperties,
        limit: u64,
        chunks_size: u64,
    ) -> Rolling {
        Rolling { folder, schema, properties, limit, chunks_size, place: FilePlace::default(), rows: 0, open: None }
    }

    /// Makes sure that there is a file for so many more rows, and says which.
    pub(crate) fn begin(&mut self, beside: &Beside, rows: u64) -> Result<FilePlace, Error> {
        if let Some(open) = &self.open {
            let bytes = (open.bytes_written() + open.in_progress_size()) as u64;
            let more = bytes as f64 / self.rows.max(1) as f64 * rows as f64;
            if self.rows > 0 && bytes as f64 + more >= self.limit as f64 {
                self.close()?;
                self.place = match self.place.file + 1 {
                    full if full >= self.chunks_size => FilePlace { chunk: self.place.chunk + 1, file: 0 },
                    file => FilePlace { file, ..self.place },
                };
            }
        }
        if self.open.is_none() {
            let file = beside.file(&self.name())?;
            let writer = ArrowWriter::try_new(file, self.schema.clone(), Some(self.properties.clone()));
            self.open = Some(writer.map_err(|error| refused(&self.name(), &error))?);
            self.rows = 0;
        }
        Ok(self.place)
    }

    /// Appends rows to the file that was begun.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let name = self.name();
        let Some(open) = &mut self.open else {
            return Err(Fault::Unwritable { file: name, reason: "it is not open".to_string() }.into());
        };
        open.write(batch).map_err(|error| refused(&name, &error))?;
        self.rows += batch.num_rows() as u64;
        if open.in_progress_size() >= MAX_ROW_GROUP_BYTES {
            open.flush().map_err(|error| refused(&name, &error))?;
        }
        Ok(())
    }

    /// Says that here is a good place to end a row group.
    pub(crate) fn pause(&mut self) -> Result<(), Error> {
        let name = self.name();
        match &mut self.open {
            Some(open) if open.in_progress_rows() >= ROW_GROUP_ROWS || open.in_progress_size() >= ROW_GROUP_BYTES => {
                open.flush().map_err(|error| refused(&name, &error))
            }
            _ => Ok(()),
        }
    }

    /// Ends the last file.
    pub(crate) fn close(&mut self) -> Result<(), Error> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let file = open.into_inner().map_err(|error| refused(&self.name(), &error))?;
        file.sync_all().map_err(|error| unwritable(&self.name(), &error))
    }

    /// The number of files begun.
    pub(crate) fn files(&self) -> u64 {
        match (self.rows, &self.open) {
            (0, None) => 0,
            _ => self.place.chunk * self.chunks_size + self.place.file + 1,
        }
    }

    fn name(&self) -> String {
        parquet_file(self.folder, self.place)
    }
}

/// The path of a file inside the dataset.
pub(crate) fn parquet_file(folder: &str, place: FilePlace) -> String {
    format!("{folder}/chunk-{:03}/file-{:03}.parquet", place.chunk, place.file)
}

/// What the parquet crate would not write; often the disk's fault.
pub(crate) fn refused(file: &str, error: &ParquetError) -> Error {
    if let ParquetError::External(inner) = error
        && let Some(error) = inner.downcast_ref::<std::io::Error>()
    {
        return unwritable(file, error);
    }
    Fault::Unwritable { file: file.to_string(), reason: error.to_string() }.into()
}
