//! Files with pictures, and which pictures of them are decoded together.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray};
use arrow_schema::DataType;

use super::FrameKey;
use crate::fault::{Error, Fault};
use crate::table::Table;
use crate::video::VideoFile;

/// The fewest pictures that are worth a piece of their own.
pub(super) const PIECE: usize = 8;

/// A wanted picture and its place in the file that has it.
pub(super) struct Place {
    pub(super) key: FrameKey,
    /// Which of the opened files.
    pub(super) source: usize,
    /// The picture's number in a video, or the row of a data file.
    pub(super) number: usize,
}

/// A file with pictures.
pub(super) enum Source {
    Video(Arc<VideoFile>),
    Table { table: Arc<Table>, column: String, groups: Vec<usize> },
}

/// Cuts pictures that are sorted by file and number into pieces of one file each, at keyframes only; none is empty.
pub(super) fn cut<'p>(places: &'p [Place], sources: &[Source]) -> Vec<&'p [Place]> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for at in 1..places.len() {
        let (before, here) = (&places[at - 1], &places[at]);
        let apart = match &sources[here.source] {
            Source::Video(video) => at - start >= PIECE && video.start_of(before.number) != video.start_of(here.number),
            // A reader of rows starts at the head of their group, so a group is read once.
            Source::Table { groups, .. } => {
                let group = |row: usize| groups.partition_point(|start| *start <= row);
                group(before.number) != group(here.number)
            }
        };
        if before.source != here.source || apart {
            pieces.push(&places[start..at]);
            start = at;
        }
    }
    if start < places.len() {
        pieces.push(&places[start..]);
    }
    pieces
}

/// The encoded pictures of a column: a struct with a field `bytes`, or the bytes themselves.
pub(super) fn pictures_of<'a>(
    table: &Table,
    column: &str,
    row: usize,
    array: &'a ArrayRef,
) -> Result<&'a BinaryArray, Error> {
    let bytes = match array.data_type() {
        DataType::Struct(_) => array.as_struct().column_by_name("bytes"),
        _ => Some(array),
    };
    let wrong = || Fault::WrongType {
        file: table.file().to_string(),
        column: column.to_string(),
        found: array.data_type().to_string(),
        expected: "pictures as bytes of PNG or JPEG".to_string(),
    };
    let pictures = bytes.and_then(|bytes| bytes.as_binary_opt::<i32>()).ok_or_else(wrong)?;
    match (0..pictures.len()).find(|at| pictures.is_null(*at)) {
        None => Ok(pictures),
        Some(at) => Err(Fault::MissingValue {
            file: table.file().to_string(),
            column: column.to_string(),
            row: row + at,
            count: pictures.null_count(),
        }
        .into()),
    }
}
