//! What the pages of a parquet file claim, checked before a decoder believes it.
//!
//! Each page starts with a header in thrift's compact protocol, and the header says how many bytes the page has once
//! decompressed. Decoders allocate that much at once, so a header with a lie in it costs gigabytes. Here the headers are
//! walked first, each a few dozen bytes:
//!
//! ```text
//! PageHeader { 1: type i32, 2: uncompressed_page_size i32, 3: compressed_page_size i32, … }
//! ```

use std::ops::Range;

use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

use crate::files::Blob;

/// A page may have this many bytes whatever its compressed size.
const MAX_PAGE: u64 = 64 << 20;

/// Beyond that, compression is believed up to this ratio.
const MAX_RATIO: u64 = 64;

/// Bytes that are read for a header at first; statistics in it can make it longer.
const HEADER: usize = 256;

/// No header is longer, in bytes.
const MAX_HEADER: usize = 1 << 20;

/// Why the columns of some row groups are not to be decoded; `wanted` chooses leaf columns.
pub(crate) fn check(
    blob: &Blob,
    metadata: &ParquetMetaData,
    groups: &[usize],
    wanted: &dyn Fn(usize) -> bool,
) -> Result<(), String> {
    for &group in groups {
        for (leaf, column) in metadata.row_group(group).columns().iter().enumerate() {
            if wanted(leaf) {
                check_chunk(blob, column)
                    .map_err(|reason| format!("{reason} in column `{}`", column.column_path().string()))?;
            }
        }
    }
    Ok(())
}

fn check_chunk(blob: &Blob, column: &ColumnChunkMetaData) -> Result<(), String> {
    let range = chunk_range(column).filter(|range| range.end <= blob.length()).ok_or("a place outside the file")?;
    let mut at = range.start;
    while at < range.end {
        let (header, page) = read_header(blob, at, range.end)?;
        let (compressed, uncompressed) = (sized(page.compressed)?, sized(page.uncompressed)?);
        if uncompressed > MAX_PAGE.max(compressed.saturating_mul(MAX_RATIO)) {
            return Err(format!("a page that claims to grow from {compressed} to {uncompressed} bytes"));
        }
        at += header as u64 + compressed;
        if at > range.end {
            return Err("a page that passes the end of its column".to_string());
        }
    }
    Ok(())
}

fn chunk_range(column: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let start = match column.dictionary_page_offset() {
        Some(offset) if offset > 0 => offset.min(column.data_page_offset()),
        _ => column.data_page_offset(),
    };
    let start = u64::try_from(start).ok()?;
    Some(start..start.checked_add(u64::try_from(column.compressed_size()).ok()?)?)
}

fn sized(size: i64) -> Result<u64, String> {
    u64::try_from(size).map_err(|_| format!("a page of {size} bytes"))
}

/// The sizes in a page's header.
struct Page {
    compressed: i64,
    uncompressed: i64,
}

/// The header at a place, and its own length.
fn read_header(blob: &Blob, at: u64, end: u64) -> Result<(usize, Page), String> {
    let mut length = HEADER;
    loop {
        let here = usize::try_from(end - at).unwrap_or(usize::MAX).min(length);
        let bytes = blob.read_at(at, here).map_err(|error| error.to_string())?;
        match parse(&mut Thrift { bytes: &bytes, at: 0 }) {
            Some(found) => return Ok(found),
            None if here < length || length >= MAX_HEADER => return Err("a page header that is damaged".to_string()),
            None => length *= 8,
        }
    }
}

fn parse(thrift: &mut Thrift<'_>) -> Option<(usize, Page)> {
    let mut page = Page { compressed: -1, uncompressed: -1 };
    let mut field = 0;
    loop {
        let (kind, id) = thrift.field(field)?;
        match (kind, id) {
            (STOP, _) => return Some((thrift.at, page)),
            (I32, 2) => page.uncompressed = thrift.zigzag()?,
            (I32, 3) => page.compressed = thrift.zigzag()?,
            _ => thrift.skip(kind, MAX_DEPTH)?,
        }
        field = id;
    }
}

// Kinds of thrift's compact protocol.
const STOP: u8 = 0;
const I32: u8 = 5;

/// Page headers nest three deep.
const MAX_DEPTH: usize = 8;

/// Bytes in thrift's compact protocol; `None` is the end of the bytes, or nonsense.
struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Thrift<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The next field's kind and number, given the number of the one before.
    fn field(&mut self, before: i64) -> Option<(u8, i64)> {
        let head = self.byte()?;
        match (head & 0x0f, i64::from(head >> 4)) {
            (STOP, _) => Some((STOP, 0)),
            (kind, 0) => Some((kind, self.zigzag()?)),
            (kind, step) => Some((kind, before.checked_add(step)?)),
        }
    }

    fn advance(&mut self, count: u64) -> Option<()> {
        self.at = self.at.checked_add(usize::try_from(count).ok()?).filter(|at| *at <= self.bytes.len())?;
        Some(())
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // True and false, which live in the field's head.
            1 | 2 => Some(()),
            3 => self.advance(1),
            4..=6 => self.varint().map(drop),
            7 => self.advance(8),
            8 => {
                let length = self.varint()?;
                self.advance(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                (0..count).try_for_each(|_| self.skip_element(head & 0x0f, depth))
            }
            12 => {
                let mut field = 0;
                loop {
                    let (kind, id) = self.field(field)?;
                    if kind == STOP {
                        return Some(());
                    }
                    self.skip(kind, depth)?;
                    field = id;
                }
            }
            _ => None,
        }
    }

    /// In lists, truth values take a byte of their own.
    fn skip_element(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            1 | 2 => self.advance(1),
            _ => self.skip(kind, depth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_gives_its_sizes_and_its_length() {
        // type 0; uncompressed 300; compressed 20; a struct with an i32 and a binary; end.
        let bytes = [0x15, 0, 0x15, 0xd8, 0x04, 0x15, 0x28, 0x2c, 0x15, 6, 0x18, 2, 9, 9, 0, 0, 77];
        let (length, page) = parse(&mut Thrift { bytes: &bytes, at: 0 }).unwrap();
        assert_eq!((length, page.uncompressed, page.compressed), (16, 300, 20));
        for end in 0..length {
            assert!(parse(&mut Thrift { bytes: &bytes[..end], at: 0 }).is_none(), "cut at {end}");
        }
    }

    #[test]
    fn nonsense_ends() {
        for seed in 0..2000_u32 {
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            };
            let bytes: Vec<u8> = (0..64).map(|_| next()).collect();
            let _ = parse(&mut Thrift { bytes: &bytes, at: 0 });
        }
        // A list that claims more elements than there are bytes.
        let bytes = [0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x0f];
        assert!(parse(&mut Thrift { bytes: &bytes, at: 0 }).is_none());
    }
}
