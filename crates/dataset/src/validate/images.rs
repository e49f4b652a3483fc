//! Pictures inside data files: whether they are there, their size, and whether they decode.

use std::io::Cursor;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use image::ImageReader;
use rayon::prelude::*;

use super::Validation;
use super::notes::Notes;
use super::videos::size_of;
use crate::fault::Fault;
use crate::guard::guarded;
use crate::numbers::in_words;
use crate::picture::decode_picture;
use crate::table::Table;

/// Pictures that are held at a time.
const BATCH: usize = 256;

/// Checks a column of pictures; gives the number of those that are good.
pub(super) fn check(validation: &Validation<'_>, table: &Table, key: &str, notes: &mut Notes) -> usize {
    let file = table.file();
    let wanted = validation.info.feature(key).map(size_of);
    let mut good = 0;
    let scanned = table.scan_by(&[key], BATCH, |row, arrays| {
        let wrong_type = || Fault::WrongType {
            file: file.to_string(),
            column: key.to_string(),
            found: in_words(arrays[0].data_type()),
            expected: "pictures as bytes of PNG or JPEG".to_string(),
        };
        let pictures = encoded(&arrays[0]).ok_or_else(wrong_type)?;
        let look = |(at, bytes): (usize, &Option<&[u8]>)| -> Result<(), Fault> {
            let row = row + at;
            let Some(bytes) = bytes else {
                let (file, column) = (file.to_string(), key.to_string());
                return Err(Fault::MissingValue { file, column, row, count: 1 });
            };
            let size = size(bytes, validation.options.decode, file, &format!("in row {row} of column `{key}`"))?;
            match wanted {
                Some(wanted) if wanted != size => Err(Fault::WrongSize {
                    file: file.to_string(),
                    camera: key.to_string(),
                    found: format!("{}×{} in row {row}", size.0, size.1),
                    expected: format!("{}×{}, width × height", wanted.0, wanted.1),
                }),
                _ => Ok(()),
            }
        };
        let looked: Vec<Result<(), Fault>> = pictures.par_iter().enumerate().map(look).collect();
        for result in looked {
            match result {
                Ok(()) => good += 1,
                Err(fault) => notes.add(key, fault),
            }
        }
        Ok(())
    });
    if let Err(error) = scanned {
        notes.extend(error.into_faults());
    }
    good
}

/// The bytes of each picture: of a struct with a field `bytes`, or the column itself.
fn encoded(array: &ArrayRef) -> Option<Vec<Option<&[u8]>>> {
    let bytes = match array.data_type() {
        DataType::Struct(_) => array.as_struct().column_by_name("bytes")?,
        _ => array,
    };
    bytes.as_binary_opt::<i32>().map(|bytes| bytes.iter().collect())
}

/// Width and height, from the head of the file or from the whole of it.
fn size(bytes: &[u8], decode: bool, file: &str, picture: &str) -> Result<(usize, usize), Fault> {
    if decode {
        let frame = decode_picture(bytes, file, picture).map_err(|error| error.into_faults().swap_remove(0))?;
        return Ok((frame.width, frame.height));
    }
    let read = || {
        let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().map_err(|error| error.to_string())?;
        match reader.format() {
            Some(_) => reader.into_dimensions().map_err(|error| error.to_string()),
            None => Err("it is neither PNG nor JPEG".to_string()),
        }
    };
    let bad = |reason| Fault::BadPicture { file: file.to_string(), picture: picture.to_string(), reason };
    let (width, height) = guarded(read).and_then(|size| size).map_err(bad)?;
    Ok((width as usize, height as usize))
}
