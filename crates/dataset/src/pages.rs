//! What the pages of a parquet file claim, checked before a decoder believes it.
use parquet::file::metadata::ParquetMetaData;
use crate::files::Blob;

/// Why the file is not to be decoded.
pub(crate) fn check(_blob: &Blob, _metadata: &ParquetMetaData) -> Result<(), String> {
    Ok(())
}
